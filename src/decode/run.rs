//! The loop of one request on sequence 0.

use crate::decode::draft::{Draft, Drafter};
use crate::decode::output::{Guard, Output};
use crate::decode::step::Ready;
use crate::decode::track::{SEQUENCE, Track};
use crate::decode::{
    Contrastive, Decoder, FinishReason, Outcome, Request, Source, Statistics, Strategy,
    Verification, beam, contrast,
};
use crate::error::{Error, Kind, Result};
use crate::model::{Batch, Model, context_full};
use crate::observe::{Ended, Span, count_request};
use crate::vocab::{TokenId, Vocabulary};
use std::borrow::Cow;
use std::time::Instant;

impl<'m> Decoder<'m> {
    /// A decoder on `model`, whose sequences it takes over.
    pub fn new(model: &'m mut dyn Model) -> Self {
        Self { main: Track::new(model), assistant: None }
    }

    /// The same with a second model over the same vocabulary: the one that drafts for
    /// [`Source::Model`], the amateur of [`Strategy::Contrastive`].
    #[must_use]
    pub fn with_assistant(self, model: &'m mut dyn Model) -> Self {
        Self { assistant: Some(Track::new(model)), ..self }
    }

    /// The same with another number of tokens of the prompt that go through the model at a time: at
    /// least 1, at most what the model takes. Rounding may depend on it, and nothing else.
    #[must_use]
    pub fn with_chunk(mut self, tokens: usize) -> Self {
        self.main.chunk = tokens.clamp(1, self.main.model.max_batch());
        self
    }

    /// The model.
    pub fn model(&self) -> &dyn Model {
        self.main.model
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
    /// vocabulary, or a strategy that the models cannot serve; [`Kind::TooLarge`] if the prompt does
    /// not fit the context; [`Kind::BudgetTooSmall`] if the constraint has no document of so few tokens;
    /// [`Kind::Model`] if the model fails; [`Kind::Cancelled`].
    pub fn stream(&mut self, request: &Request, sink: &mut dyn FnMut(&str)) -> Result<Outcome> {
        let span = Span::decode(request.prompt.len());
        let outcome = span.within(|| self.streamed(request, sink));
        observe(&span, outcome.as_ref().ok());
        outcome
    }

    fn streamed(&mut self, request: &Request, sink: &mut dyn FnMut(&str)) -> Result<Outcome> {
        let began = Instant::now();
        self.check(request)?;
        let mut output = Output::new(Cow::Borrowed(request))?;
        let model = &self.main.model;
        let mut guard = Guard::new(request, model.vocabulary(), model.context_len())?;
        output.statistics.reused_tokens = self.main.reuse(&request.prompt)?;
        if let Some(assistant) = &mut self.assistant {
            assistant.reuse(&request.prompt)?;
        }
        let finish = match &request.strategy {
            Strategy::Beam(beam) => beam::run(self, beam, &mut output, guard)?,
            _ => self.rounds((&mut output, &mut guard), sink)?,
        };
        output.text.show(true, sink);
        Ok(output.outcome(finish, began.elapsed()))
    }

    /// Chooses tokens until the output ends.
    fn rounds(
        &mut self,
        (output, guard): (&mut Output<'_>, &mut Guard),
        sink: &mut dyn FnMut(&str),
    ) -> Result<FinishReason> {
        let request = output.request.clone();
        let mut drafter = Drafter::new(&request)?;
        let mut pending = request.prompt[self.main.held.len()..].to_vec();
        loop {
            if let Some(finish) = output.finished(guard, self.main.model.context_len()) {
                return Ok(finish);
            }
            check_cancelled(&request)?;
            // The prompt takes passes of its own.
            let drafter = drafter.as_mut().filter(|_| !output.tokens.is_empty());
            let finish = match drafter {
                None => self.step(&pending, (output, guard), sink)?,
                Some(drafter) => self.round(drafter, &pending, (output, guard), sink)?,
            };
            match (finish, output.tokens.last()) {
                (Some(finish), _) => return Ok(finish),
                (None, Some(&last)) => pending = vec![last],
                (None, None) => return Err(Error::new(Kind::Model, "no token was chosen")),
            }
        }
    }

    /// Refuses what cannot work before the model does anything.
    pub(crate) fn check(&self, request: &Request) -> Result<()> {
        let model = &self.main.model;
        check(request, model.vocabulary(), model.context_len())?;
        self.check_strategy(&request.strategy)
    }

    /// Refuses a strategy that the models cannot serve.
    fn check_strategy(&self, strategy: &Strategy) -> Result<()> {
        let bad = |message: String| Error::new(Kind::BadArgument, message);
        if let Strategy::Contrastive(contrastive) = strategy {
            contrastive.check()?;
        }
        let model = &self.main.model;
        if let Strategy::Draft(drafts) = strategy
            && drafts.sources.contains(&Source::Heads)
            && model.heads() == 0
        {
            let message =
                format!("the model {} has no heads that predict several tokens", model.name());
            return Err(bad(message).help("draft by lookup, by the constraint or by a small model"));
        }
        if !strategy.needs_assistant() {
            return Ok(());
        }
        let Some(assistant) = &self.assistant else {
            return Err(bad("the strategy needs a second model, a smaller one".to_owned())
                .help("name one over the same vocabulary"));
        };
        match assistant.model.vocabulary().hash() == model.vocabulary().hash() {
            true => Ok(()),
            false => {
                let (small, large) = (assistant.model.name(), model.name());
                let message =
                    format!("the models {large} and {small} do not have the same vocabulary");
                Err(bad(message).help("take a smaller model of the same family"))
            }
        }
    }

    /// Computes `pending`, then chooses and takes the token after it.
    pub(crate) fn step(
        &mut self,
        pending: &[TokenId],
        (output, guard): (&mut Output<'_>, &mut Guard),
        sink: &mut dyn FnMut(&str),
    ) -> Result<Option<FinishReason>> {
        let mut ready = Ready::default();
        ready.look(output, guard)?;
        let clock = Instant::now();
        let token = match (ready.forced(output), &output.request.strategy) {
            (Some(token), _) => {
                self.main.feed(pending, false)?;
                output.statistics.time_model(clock.elapsed(), output.tokens.len());
                ready.force(output, token);
                token
            }
            (None, Strategy::Contrastive(contrastive)) => {
                let last = self.main.feed(pending, true)?;
                let scores = self.contrast(contrastive, &ready.mask(), (output, last))?;
                output.statistics.time_model(clock.elapsed(), output.tokens.len());
                ready.choose(output, (self.main.row(last)?, Some(&scores)), None)?
            }
            _ => {
                let last = self.main.feed(pending, true)?;
                output.statistics.time_model(clock.elapsed(), output.tokens.len());
                ready.choose(output, (self.main.row(last)?, None), None)?
            }
        };
        output.take(guard, token, (self.main.model.vocabulary(), sink))
    }

    /// The scores of a step whose logits are those of entry `last`.
    fn contrast(
        &mut self,
        contrastive: &Contrastive,
        mask: &crate::matcher::Mask<'_>,
        (output, last): (&Output<'_>, usize),
    ) -> Result<Vec<f32>> {
        let mut scores = Vec::new();
        let Some(assistant) = &mut self.assistant else { return Ok(scores) };
        let said = [output.request.prompt.as_slice(), &output.tokens].concat();
        let rows = (self.main.row(last)?, assistant.follow(&said)?);
        contrast::score(contrastive, mask, rows, &mut scores)?;
        Ok(scores)
    }

    /// Drafts and verifies; a plain step if there is nothing to draft.
    fn round(
        &mut self,
        drafter: &mut Drafter<'_>,
        pending: &[TokenId],
        (output, guard): (&mut Output<'_>, &mut Guard),
        sink: &mut dyn FnMut(&str),
    ) -> Result<Option<FinishReason>> {
        let clock = Instant::now();
        let draft = drafter.draft((&mut self.main, self.assistant.as_mut()), (output, guard))?;
        output.statistics.draft_time += clock.elapsed();
        if draft.tokens.is_empty() {
            return self.step(pending, (output, guard), sink);
        }
        let before = output.statistics.accepted_tokens;
        let rejection = drafter.verification() == Verification::Rejection;
        let finish = self.verify(pending, (&draft, rejection), (output, guard), sink)?;
        let right = output.statistics.accepted_tokens - before;
        drafter.learn(&draft, right, output.tokens.len());
        Ok(finish)
    }

    /// Computes `pending` and a draft in one pass, then chooses token after token for as long as the
    /// choice is what was drafted.
    fn verify(
        &mut self,
        pending: &[TokenId],
        (draft, rejection): (&Draft, bool),
        (output, guard): (&mut Output<'_>, &mut Guard),
        sink: &mut dyn FnMut(&str),
    ) -> Result<Option<FinishReason>> {
        let clock = Instant::now();
        let mut batch = Batch::new();
        let mut first = 0;
        for &token in pending {
            first = batch.push(token, SEQUENCE, true);
        }
        for &token in &draft.tokens {
            batch.push(token, SEQUENCE, true);
        }
        let main = &mut self.main;
        main.model.eval(&batch)?;
        main.held.extend_from_slice(pending);
        output.statistics.time_model(clock.elapsed(), output.tokens.len());
        output.statistics.drafted_tokens += draft.tokens.len();
        let (mut finish, mut ready) = (None, Ready::default());
        for place in 0..=draft.tokens.len() {
            finish = output.finished(guard, main.model.context_len());
            if finish.is_some() {
                break;
            }
            ready.look(output, guard)?;
            let drafted = draft.get(place);
            let rule = drafted.filter(|_| rejection);
            let token = ready.choose(output, (main.row(first + place)?, None), rule)?;
            let right = drafted.is_some_and(|(drafted, _)| drafted == token);
            output.statistics.accepted_tokens += usize::from(right);
            finish = output.take(guard, token, (main.model.vocabulary(), sink))?;
            if finish.is_some() || !right {
                break;
            }
            main.held.push(token);
        }
        main.model.truncate(SEQUENCE, main.held.len())?;
        Ok(finish)
    }

    /// Computes the prompt, all but for what is held, and returns the index of its last row.
    pub(crate) fn prefill(&mut self, output: &mut Output<'_>) -> Result<usize> {
        let clock = Instant::now();
        let held = self.main.held.len();
        let last = self.main.feed(&output.request.prompt[held..], true)?;
        output.statistics.time_model(clock.elapsed(), 0);
        Ok(last)
    }
}

/// Refuses a request that no model with this vocabulary and this length of context could serve.
pub(crate) fn check(request: &Request, vocabulary: &Vocabulary, context: usize) -> Result<()> {
    let bad = |message: &str| Err(Error::new(Kind::BadArgument, message));
    let prompt = request.prompt.len();
    if prompt == 0 {
        return bad("the prompt is empty");
    }
    if prompt >= context {
        return Err(context_full(prompt + 1, context));
    }
    if let Some(landing) = &request.soft_landing {
        landing.check()?;
        if matches!(request.strategy, Strategy::Beam(_) | Strategy::Contrastive(_)) {
            return bad("beams and contrastive decoding know no soft landing");
        }
    }
    let hash = vocabulary.hash();
    match request.constraint.as_ref().is_none_or(|c| c.vocabulary().hash() == hash) {
        true => Ok(()),
        false => bad("the constraint was compiled for another vocabulary than the model's"),
    }
}

/// Tells operators how a request ended.
pub(crate) fn observe(span: &Span, outcome: Option<&Outcome>) {
    let none = Statistics::default();
    let statistics = outcome.map_or(&none, |outcome| &outcome.statistics);
    let ended = Ended {
        finish: outcome.map_or("error", |outcome| outcome.finish.name()),
        prompt_tokens: statistics.prompt_tokens,
        tokens: statistics.tokens,
        mask_time: statistics.mask_time,
        total_time: statistics.total_time,
    };
    span.ended(&ended);
    count_request(&ended);
}

/// Fails once the request is cancelled.
pub(crate) fn check_cancelled(request: &Request) -> Result<()> {
    match request.cancel.as_ref().is_some_and(|cancel| cancel.is_cancelled()) {
        true => Err(Error::new(Kind::Cancelled, "the run was cancelled")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::track::CHUNK;
    use crate::limits::Cancel;
    use crate::model::scripted::ScriptedModel;
    use crate::sample::Settings;

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
        // The last pass gave the end token.
        assert_eq!(outcome.statistics.end_tokens, 1);
        assert_eq!(outcome.statistics.tokens_per_pass(), 1.0);
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
