//! The state of a run: what may come next ([`Guard`]) and what came so far ([`Output`]). Both go to
//! whoever runs the sequence: the loop of one request ([`Decoder`](super::Decoder)), or the scheduler of many.

use crate::constraint::Constraint;
use crate::decode::text::TextStream;
use crate::decode::verify::{Law, decide};
use crate::decode::{FinishReason, Outcome, Request, Statistics, StepView, Strategy};
use crate::error::{Kind, Result};
use crate::matcher::{Mask, Matcher};
use crate::sample::logprob::{StepLogProbs, log_probs};
use crate::sample::random::{Purpose, uniform};
use crate::sample::{Sampler, Settings, Step};
use crate::vocab::{Token, TokenId, Vocabulary};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// A matcher for documents of at most `most` tokens, without that bound if none can be planned.
pub(crate) fn within(constraint: &Constraint, most: usize) -> Result<Matcher> {
    match constraint.matcher_within(most as u64) {
        Err(error) if *error.kind() == (Kind::BudgetTooSmall { min: u64::MAX }) => {
            Ok(constraint.matcher())
        }
        matcher => matcher,
    }
}

/// What may come next.
#[derive(Clone)]
pub(crate) enum Guard {
    /// What the constraint allows.
    Constrained(Box<Matcher>),
    /// Every id that is a token: padding has logits too, which mean nothing.
    Free(Vec<u32>),
}

impl Guard {
    /// What may come in the output of a request that was checked, so that it is whole when its tokens or the
    /// context end; a constraint of which no document can be planned is the one exception.
    pub fn new(request: &Request, vocabulary: &Vocabulary, context: usize) -> Result<Self> {
        if let Some(constraint) = &request.constraint {
            // The last token need not fit the context: nothing is computed after it.
            let room = context.saturating_sub(request.prompt.len());
            let most = request.max_tokens.min(room + 1);
            return Ok(Guard::Constrained(Box::new(within(constraint, most)?)));
        }
        let mut words = vec![0; vocabulary.len().div_ceil(32)];
        for id in 0..vocabulary.len() {
            let used = vocabulary.token(id as TokenId).is_some_and(|token| *token != Token::Unused);
            words[id / 32] |= u32::from(used) << (id % 32);
        }
        Ok(Guard::Free(words))
    }

    pub fn mask(&mut self) -> Result<Mask<'_>> {
        match self {
            Guard::Constrained(matcher) => matcher.mask(),
            Guard::Free(words) => Ok(Mask::Dense(words)),
        }
    }

    pub fn accept(&mut self, token: TokenId) -> Result<()> {
        match self {
            Guard::Constrained(matcher) => matcher.accept(token),
            Guard::Free(_) => Ok(()),
        }
    }

    /// Takes bytes that the output has already.
    pub fn accept_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Guard::Constrained(matcher) => matcher.accept_bytes(bytes),
            Guard::Free(_) => Ok(()),
        }
    }

    /// Whether the output could end after `cut` bytes, which end in the last token.
    fn may_end(&self, cut: usize) -> bool {
        let Guard::Constrained(matcher) = self else { return true };
        let mut matcher = matcher.fork();
        let mut whole = Vec::new();
        while matcher.text().len() > cut {
            whole = matcher.text()[..].to_vec();
            if matcher.rollback(1).is_err() {
                return false;
            }
        }
        let rest = whole.get(matcher.text().len()..cut).unwrap_or_default();
        matcher.accept_bytes(rest).is_ok() && matcher.can_stop()
    }

    /// Whether the output is complete within a number of tokens.
    pub fn is_budgeted(&self) -> bool {
        matches!(self, Guard::Constrained(matcher) if matcher.tokens_left().is_some())
    }

    /// Whether the document is whole and nothing may follow.
    pub fn is_complete(&self) -> bool {
        matches!(self, Guard::Constrained(matcher) if matcher.is_complete())
    }

    /// The reason that an end token stands for here.
    pub fn end(&self) -> FinishReason {
        match self {
            Guard::Constrained(_) => FinishReason::Complete,
            Guard::Free(_) => FinishReason::EndToken,
        }
    }
}

/// What came so far.
pub(crate) struct Output<'r> {
    pub request: Cow<'r, Request>,
    sampler: Sampler,
    pub tokens: Vec<TokenId>,
    pub text: TextStream,
    pub log_probs: Vec<StepLogProbs>,
    pub statistics: Statistics,
    /// The time of the model up to the last step that was watched.
    watched: Duration,
}

impl<'r> Output<'r> {
    pub fn new(request: Cow<'r, Request>) -> Result<Self> {
        let settings = match request.strategy {
            Strategy::Greedy => Settings { temperature: 0.0, ..request.settings.clone() },
            _ => request.settings.clone(),
        };
        let statistics =
            Statistics { prompt_tokens: request.prompt.len(), ..Statistics::default() };
        Ok(Self {
            sampler: Sampler::new(settings, request.index)?,
            tokens: Vec::new(),
            text: TextStream::new(&request.stop),
            log_probs: Vec::new(),
            statistics,
            request,
            watched: Duration::ZERO,
        })
    }

    /// What came out, when it ended for this reason.
    pub fn outcome(mut self, finish: FinishReason, total: Duration) -> Outcome {
        self.statistics.tokens = self.tokens.len();
        self.statistics.total_time = total;
        Outcome {
            bytes: self.text.into_bytes(),
            tokens: self.tokens,
            finish,
            log_probs: self.log_probs,
            statistics: self.statistics,
        }
    }

    /// Whether the output ends here, before another token.
    pub fn finished(&self, guard: &Guard, context: usize) -> Option<FinishReason> {
        if guard.is_complete() {
            return Some(FinishReason::Complete);
        }
        if self.tokens.len() >= self.request.max_tokens {
            return Some(FinishReason::MaxTokens);
        }
        // The last token need not fit: nothing is computed after it.
        let full = self.request.prompt.len() + self.tokens.len() > context;
        full.then_some(FinishReason::ContextFull)
    }

    /// Chooses a token: from `scores` instead of the logits, if there are any; the drafted one by
    /// the rejection rule, if it is given with the law that it was drawn from.
    pub fn choose(
        &mut self,
        mask: Mask<'_>,
        (logits, scores): (&[f32], Option<&[f32]>),
        drafted: Option<(TokenId, Option<&Law>)>,
    ) -> Result<TokenId> {
        let clock = Instant::now();
        let position = self.tokens.len() as u64;
        let step = Step { logits, mask: Some(mask), history: &self.tokens, position };
        let scored = Step { logits: scores.unwrap_or(logits), ..step };
        let token = match drafted {
            None => self.sampler.sample(&scored)?,
            Some((token, law)) => {
                let (seed, stream) = (self.sampler.settings().seed, self.sampler.stream());
                let number = |purpose| uniform(seed, stream, position, purpose);
                let numbers = (number(Purpose::Accept), number(Purpose::Residual));
                // What was not drawn is a draft that is sure.
                let sure = vec![(token, 1.0)];
                decide(&self.sampler.law(&scored)?, law.unwrap_or(&sure), token, numbers)
            }
        };
        if let Some(alternatives) = self.request.log_probs {
            self.log_probs.push(log_probs(&step, token, alternatives)?);
        }
        self.statistics.sample_time += clock.elapsed();
        Ok(token)
    }

    /// Tells whoever watches of a token that was chosen.
    pub fn watch(
        &mut self,
        (token, mask): (TokenId, Mask<'_>),
        logits: Option<&[f32]>,
        mask_time: Duration,
    ) {
        let Some(watch) = &self.request.watch else { return };
        let model_time = self.statistics.prompt_time + self.statistics.model_time;
        let since = model_time.saturating_sub(self.watched);
        let step =
            StepView { before: &self.tokens, token, mask, logits, mask_time, model_time: since };
        watch.see(&step);
        self.watched = model_time;
    }

    /// Takes a chosen token.
    pub fn take(
        &mut self,
        guard: &mut Guard,
        token: TokenId,
        (vocabulary, sink): (&Vocabulary, &mut dyn FnMut(&str)),
    ) -> Result<Option<FinishReason>> {
        let clock = Instant::now();
        guard.accept(token)?;
        self.statistics.mask_time += clock.elapsed();
        if vocabulary.is_end(token) {
            self.statistics.end_tokens += 1;
            return Ok(Some(guard.end()));
        }
        self.tokens.push(token);
        let bytes = vocabulary.bytes(token).unwrap_or_default();
        let stopped = self.text.push(bytes, |cut| guard.may_end(cut));
        if stopped.is_none() {
            self.text.show(false, sink);
        }
        Ok(stopped.map(FinishReason::Stop))
    }
}
