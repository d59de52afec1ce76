//! The loop of one request on sequence 0.

use crate::decode::text::TextStream;
use crate::decode::{Decoder, FinishReason, Outcome, Request, Statistics, Strategy};
use crate::error::{Error, Kind, Result};
use crate::matcher::{Mask, Matcher};
use crate::model::{Batch, Model, context_full};
use crate::sample::logprob::{StepLogProbs, log_probs};
use crate::sample::{Sampler, Settings, Step};
use crate::vocab::{Token, TokenId, Vocabulary};
use std::time::Instant;

/// The sequence that requests run on.
const SEQUENCE: u32 = 0;

/// Tokens of the prompt that go through the model at a time, always at multiples of this place.
const CHUNK: usize = 64;

impl<'m> Decoder<'m> {
    /// A decoder on `model`, whose first sequence it takes over.
    pub fn new(model: &'m mut dyn Model) -> Self {
        Self { model, held: Vec::new() }
    }

    /// The model.
    pub fn model(&self) -> &dyn Model {
        self.model
    }

    /// Runs a request.
    ///
    /// # Errors
    /// As [`Decoder::stream`].
    pub fn run(&mut self, request: &Request) -> Result<Outcome> {
        self.stream(request, &mut |_| ())
    }

    /// Runs a request and calls `sink` with each piece of text as soon as it is certain.
    ///
    /// # Errors
    /// [`Kind::BadArgument`] for settings out of range, an empty prompt, a constraint over another
    /// vocabulary, or stop texts together with a constraint; [`Kind::TooLarge`] if the prompt does
    /// not fit the context; [`Kind::Model`] if the model fails; [`Kind::Cancelled`].
    pub fn stream(&mut self, request: &Request, sink: &mut dyn FnMut(&str)) -> Result<Outcome> {
        let began = Instant::now();
        self.check(request)?;
        let mut run = Run::new(request, self.model.vocabulary())?;
        let kept = self.reuse(&request.prompt)?;
        run.statistics.reused_tokens = kept;
        let mut pending = request.prompt[kept..].to_vec();
        let finish = loop {
            if let Some(finish) = run.finished(self.model.context_len()) {
                break finish;
            }
            if request.cancel.as_ref().is_some_and(|cancel| cancel.is_cancelled()) {
                return Err(Error::new(Kind::Cancelled, "the run was cancelled"));
            }
            let token = self.step(&mut run, &pending)?;
            if let Some(finish) = run.take(token, self.model, sink)? {
                break finish;
            }
            pending = vec![token];
        };
        run.text.show(true, sink);
        run.statistics.tokens = run.tokens.len();
        run.statistics.total_time = began.elapsed();
        Ok(Outcome {
            bytes: run.text.into_bytes(),
            tokens: run.tokens,
            finish,
            log_probs: run.log_probs,
            statistics: run.statistics,
        })
    }

    /// Refuses what cannot work before the model does anything.
    fn check(&self, request: &Request) -> Result<()> {
        let bad = |message: &str| Err(Error::new(Kind::BadArgument, message));
        let (prompt, room) = (request.prompt.len(), self.model.context_len());
        if prompt == 0 {
            return bad("the prompt is empty");
        }
        if prompt >= room {
            return Err(context_full(prompt + 1, room));
        }
        let Some(constraint) = &request.constraint else { return Ok(()) };
        if !request.stop.is_empty() {
            return bad("stop texts could cut the document that the constraint completes");
        }
        match constraint.vocabulary().hash() == self.model.vocabulary().hash() {
            true => Ok(()),
            false => bad("the constraint was compiled for another vocabulary than the model's"),
        }
    }

    /// Cuts the sequence down to what it shares with `prompt`, in whole chunks, so that the rest is
    /// computed in the same chunks as without it. At least one token is left to compute.
    fn reuse(&mut self, prompt: &[TokenId]) -> Result<usize> {
        let shared = self.held.iter().zip(prompt).take_while(|(a, b)| a == b).count();
        let mut kept = shared.min(prompt.len() - 1) / CHUNK * CHUNK;
        if self.model.truncate(SEQUENCE, kept).is_err() {
            // A recurrent model cannot go back to the middle of a sequence.
            kept = 0;
            self.model.truncate(SEQUENCE, kept)?;
        }
        self.held.truncate(kept);
        Ok(kept)
    }

    /// Computes `pending` and chooses the token after it.
    fn step(&mut self, run: &mut Run<'_>, pending: &[TokenId]) -> Result<TokenId> {
        let Run { request, matcher, everything, sampler, tokens, .. } = run;
        let (probs, statistics) = (&mut run.log_probs, &mut run.statistics);
        let clock = Instant::now();
        let mask = match matcher {
            Some(matcher) => matcher.mask()?,
            None => Mask::Dense(everything),
        };
        statistics.mask_time += clock.elapsed();
        let forced = mask.count() == 1;
        // Where one token is allowed its logits change nothing, and the model can skip them.
        let logits = !forced || request.log_probs.is_some();
        let clock = Instant::now();
        let row = self.feed(pending, logits)?;
        match tokens.is_empty() {
            true => statistics.prompt_time += clock.elapsed(),
            false => statistics.model_time += clock.elapsed(),
        }
        statistics.passes += usize::from(!tokens.is_empty());
        statistics.forced_tokens += usize::from(forced);
        let clock = Instant::now();
        let position = tokens.len() as u64;
        let token = match row {
            Some(logits) => {
                let step = Step { logits, mask: Some(mask), history: tokens, position };
                let token = sampler.sample(&step)?;
                if let Some(alternatives) = request.log_probs {
                    probs.push(log_probs(&step, token, alternatives)?);
                }
                token
            }
            None => first(&mask)?,
        };
        statistics.sample_time += clock.elapsed();
        Ok(token)
    }

    /// Appends tokens to the sequence, in chunks at fixed places, and returns the logits after the
    /// last one if they are wanted.
    fn feed(&mut self, tokens: &[TokenId], logits: bool) -> Result<Option<&[f32]>> {
        let mut rest = tokens;
        let mut last = 0;
        while !rest.is_empty() {
            let room = CHUNK - self.held.len() % CHUNK;
            let (chunk, after) = rest.split_at(room.min(rest.len()));
            let mut batch = Batch::new();
            for (i, &token) in chunk.iter().enumerate() {
                let wanted = logits && after.is_empty() && i + 1 == chunk.len();
                last = batch.push(token, SEQUENCE, wanted);
            }
            self.model.eval(&batch)?;
            self.held.extend_from_slice(chunk);
            rest = after;
        }
        if !logits {
            return Ok(None);
        }
        let row = self.model.logits(last)?;
        let width = self.model.vocabulary().len();
        match row.len() == width {
            true => Ok(Some(row)),
            false => {
                let message = format!(
                    "the model gave {} logits for a vocabulary of {width} tokens, at position {} of the sequence",
                    row.len(),
                    self.held.len()
                );
                Err(Error::new(Kind::Model, message))
            }
        }
    }
}

/// The only token of a mask.
fn first(mask: &Mask<'_>) -> Result<TokenId> {
    let token = match mask {
        Mask::Sparse(ids) => ids.first().copied(),
        Mask::Dense(words) => (0..).zip(*words).find(|(_, word)| **word != 0).map(|(at, word)| {
            let at: TokenId = at;
            at * 32 + word.trailing_zeros()
        }),
    };
    token.ok_or_else(|| Error::new(Kind::DeadEnd, "no token is allowed"))
}

/// Every id that is a token, as a mask: padding has logits too, which mean nothing.
fn all(vocabulary: &Vocabulary) -> Vec<u32> {
    let mut words = vec![0; vocabulary.len().div_ceil(32)];
    for id in 0..vocabulary.len() {
        let used = vocabulary.token(id as TokenId).is_some_and(|token| *token != Token::Unused);
        words[id / 32] |= u32::from(used) << (id % 32);
    }
    words
}

/// The state of a request that is being run.
struct Run<'r> {
    request: &'r Request,
    matcher: Option<Matcher>,
    /// Without a constraint: every id that is a token.
    everything: Vec<u32>,
    sampler: Sampler,
    tokens: Vec<TokenId>,
    text: TextStream,
    log_probs: Vec<StepLogProbs>,
    statistics: Statistics,
}

impl<'r> Run<'r> {
    fn new(request: &'r Request, vocabulary: &Vocabulary) -> Result<Self> {
        let settings = match request.strategy {
            Strategy::Greedy => Settings { temperature: 0.0, ..request.settings.clone() },
            Strategy::Sample => request.settings.clone(),
        };
        let statistics =
            Statistics { prompt_tokens: request.prompt.len(), ..Statistics::default() };
        Ok(Self {
            request,
            matcher: request.constraint.as_ref().map(|constraint| constraint.matcher()),
            everything: if request.constraint.is_some() { Vec::new() } else { all(vocabulary) },
            sampler: Sampler::new(settings, request.index)?,
            tokens: Vec::new(),
            text: TextStream::new(&request.stop),
            log_probs: Vec::new(),
            statistics,
        })
    }

    /// Whether the output ends here, before another token.
    fn finished(&self, context: usize) -> Option<FinishReason> {
        if self.matcher.as_ref().is_some_and(Matcher::is_complete) {
            return Some(FinishReason::Complete);
        }
        if self.tokens.len() >= self.request.max_tokens {
            return Some(FinishReason::MaxTokens);
        }
        // The last token need not fit: nothing is computed after it.
        let full = self.request.prompt.len() + self.tokens.len() > context;
        full.then_some(FinishReason::ContextFull)
    }

    /// Takes a chosen token into the output.
    fn take(
        &mut self,
        token: TokenId,
        model: &dyn Model,
        sink: &mut dyn FnMut(&str),
    ) -> Result<Option<FinishReason>> {
        let clock = Instant::now();
        if let Some(matcher) = &mut self.matcher {
            matcher.accept(token)?;
        }
        self.statistics.mask_time += clock.elapsed();
        if model.vocabulary().end_tokens().contains(&token) {
            let constrained = self.matcher.is_some();
            let finish = if constrained { FinishReason::Complete } else { FinishReason::EndToken };
            return Ok(Some(finish));
        }
        self.tokens.push(token);
        let stopped = self.text.push(model.vocabulary().bytes(token).unwrap_or_default());
        if stopped.is_none() {
            self.text.show(false, sink);
        }
        Ok(stopped.map(FinishReason::Stop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Cancel;
    use crate::model::scripted::ScriptedModel;

    fn request(model: &ScriptedModel, text: &str) -> Result<Request> {
        Ok(Request::new(model.plain(text)?.tokens))
    }

    #[test]
    fn streams_what_it_returns_and_ends_with_the_model() -> Result<()> {
        let mut model = ScriptedModel::following("naïve 日本 🎉, done");
        let request = request(&model, "say")?.with(Settings::greedy());
        let mut shown = String::new();
        let outcome =
            Decoder::new(&mut model).stream(&request, &mut |text| shown.push_str(text))?;
        assert_eq!(outcome.text(), "naïve 日本 🎉, done");
        assert_eq!(shown, outcome.text());
        assert_eq!(outcome.finish, FinishReason::EndToken);
        assert_eq!(outcome.statistics.tokens, outcome.tokens.len());
        assert!(outcome.statistics.passes == outcome.tokens.len());
        Ok(())
    }

    #[test]
    fn ends_at_stop_texts_limits_and_the_context() -> Result<()> {
        let mut model = ScriptedModel::following("one two three four").with_context_len(40);
        let greedy = request(&model, "count")?.with(Settings::greedy());
        let stopped = Request { stop: vec!["x".into(), "o th".into()], ..greedy.clone() };
        let outcome = Decoder::new(&mut model).run(&stopped)?;
        assert_eq!((outcome.text().as_str(), outcome.finish), ("one tw", FinishReason::Stop(1)));
        for max_tokens in [0, 1, 5] {
            let outcome =
                Decoder::new(&mut model).run(&Request { max_tokens, ..greedy.clone() })?;
            assert_eq!(
                (outcome.tokens.len(), outcome.finish),
                (max_tokens, FinishReason::MaxTokens)
            );
        }
        let mut model = model.with_context_len(greedy.prompt.len() + 2);
        let outcome = Decoder::new(&mut model).run(&greedy)?;
        assert_eq!((outcome.tokens.len(), outcome.finish), (3, FinishReason::ContextFull));
        Ok(())
    }

    #[test]
    fn refuses_what_cannot_work() -> Result<()> {
        let mut model = ScriptedModel::noise(1).with_context_len(20);
        let good = request(&model, "go")?;
        let kind = |model: &mut ScriptedModel, request: &Request| {
            Decoder::new(model).run(request).map_err(|error| error.kind().clone()).err()
        };
        let empty = Request { prompt: Vec::new(), ..good.clone() };
        assert_eq!(kind(&mut model, &empty), Some(Kind::BadArgument));
        let long = Request { prompt: vec![65; 20], ..good.clone() };
        assert_eq!(kind(&mut model, &long), Some(Kind::TooLarge));
        let unknown = Request { prompt: vec![999_999], ..good.clone() };
        assert_eq!(kind(&mut model, &unknown), Some(Kind::BadArgument));
        let hot = good.clone().with(Settings::drawing(f64::NAN));
        assert_eq!(kind(&mut model, &hot), Some(Kind::BadArgument));
        let cancel = Cancel::default();
        cancel.cancel();
        let cancelled = Request { cancel: Some(cancel), ..good };
        assert_eq!(kind(&mut model, &cancelled), Some(Kind::Cancelled));
        Ok(())
    }

    #[test]
    fn a_model_that_misbehaves_is_an_error_that_names_the_position() -> Result<()> {
        let start = ScriptedModel::noise(1).plain("go")?.tokens.len();
        for bad in [f32::NAN, f32::INFINITY] {
            let vocabulary = crate::model::scripted::vocabulary();
            let mut model = ScriptedModel::new(vocabulary, move |tokens, row| {
                row[65] = if tokens.len() == start + 4 { bad } else { 9.0 };
            });
            let request = request(&model, "go")?;
            let Err(error) = Decoder::new(&mut model).run(&request) else { panic!("no error") };
            assert_eq!(*error.kind(), Kind::Model);
            assert!(error.message().contains("position 4"), "{error}");
        }
        Ok(())
    }

    #[test]
    fn what_was_kept_changes_nothing() -> Result<()> {
        let mut model = ScriptedModel::noise(7);
        let long = "a long prompt of many words, ".repeat(20);
        let base = request(&model, &long)?.with(Settings::drawing(1.0));
        let base = Request { max_tokens: 30, log_probs: Some(1), ..base };
        let answers: Vec<Outcome> = (0..3)
            .map(|index| {
                let mut fresh = ScriptedModel::noise(7);
                Decoder::new(&mut fresh).run(&Request { index, ..base.clone() })
            })
            .collect::<Result<_>>()?;
        assert_ne!(answers[0].tokens, answers[1].tokens);
        let mut decoder = Decoder::new(&mut model);
        for index in [2, 0, 0, 1] {
            let outcome = decoder.run(&Request { index, ..base.clone() })?;
            assert_eq!(outcome.tokens, answers[index as usize].tokens);
            assert_eq!(outcome.log_probs, answers[index as usize].log_probs);
            assert_eq!(outcome.log_probs.len(), outcome.tokens.len());
            let reused = outcome.statistics.reused_tokens;
            assert!(reused % CHUNK == 0 && (index == 2 || reused > 0));
        }
        Ok(())
    }
}
