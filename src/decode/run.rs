//! The loop of one request on sequence 0.

use crate::decode::draft::Drafter;
use crate::decode::output::{Guard, Output};
use crate::decode::{Decoder, FinishReason, Outcome, Request, Strategy, beam};
use crate::error::{Error, Kind, Result};
use crate::model::{Batch, Model, context_full};
use crate::vocab::TokenId;
use std::time::Instant;

/// The sequence that requests run on.
const SEQUENCE: u32 = 0;

/// Tokens of the prompt that go through the model at a time, always at multiples of this place.
const CHUNK: usize = 64;

impl<'m> Decoder<'m> {
    /// A decoder on `model`, whose sequences it takes over.
    pub fn new(model: &'m mut dyn Model) -> Self {
        Self { model, held: Vec::new(), prompt_len: 0 }
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
        let mut output = Output::new(request)?;
        let mut guard = Guard::new(request, self.model.vocabulary());
        let kept = self.reuse(&request.prompt)?;
        output.statistics.reused_tokens = kept;
        let finish = match &request.strategy {
            Strategy::Beam(beam) => beam::run(self, beam, &mut output, guard)?,
            strategy => self.rounds(strategy, (&mut output, &mut guard), sink)?,
        };
        output.text.show(true, sink);
        output.statistics.tokens = output.tokens.len();
        output.statistics.total_time = began.elapsed();
        Ok(Outcome {
            bytes: output.text.into_bytes(),
            tokens: output.tokens,
            finish,
            log_probs: output.log_probs,
            statistics: output.statistics,
        })
    }

    /// Chooses tokens until the output ends.
    fn rounds(
        &mut self,
        strategy: &Strategy,
        (output, guard): (&mut Output<'_>, &mut Guard),
        sink: &mut dyn FnMut(&str),
    ) -> Result<FinishReason> {
        let request = output.request;
        let mut drafter = Drafter::new(strategy);
        let mut pending = request.prompt[self.held.len()..].to_vec();
        loop {
            if let Some(finish) = output.finished(guard, self.model.context_len()) {
                return Ok(finish);
            }
            check_cancelled(request)?;
            let draft = match output.tokens.is_empty() {
                true => Vec::new(),
                false => drafter.draft(self.model, output, guard)?,
            };
            let finish = match draft.is_empty() {
                true => self.step(&pending, (output, guard), sink)?,
                false => {
                    let before = output.tokens.len();
                    let finish = self.verify(&pending, &draft, (output, guard), sink)?;
                    drafter.learn(draft.len(), output.tokens.len() - before);
                    finish
                }
            };
            match (finish, output.tokens.last()) {
                (Some(finish), _) => return Ok(finish),
                (None, Some(&last)) => pending = vec![last],
                (None, None) => return Err(Error::new(Kind::Model, "no token was chosen")),
            }
        }
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

    /// Cuts the sequence down to what it shares with `prompt`, in whole chunks of an earlier
    /// prompt, so that the rest is computed in the same chunks as without it. At least one token
    /// is left to compute.
    fn reuse(&mut self, prompt: &[TokenId]) -> Result<usize> {
        let earlier = self.held.iter().take(self.prompt_len);
        let shared = earlier.zip(prompt).take_while(|(a, b)| a == b).count();
        let mut kept = shared.min(prompt.len() - 1) / CHUNK * CHUNK;
        if self.model.truncate(SEQUENCE, kept).is_err() {
            // A recurrent model cannot go back to the middle of a sequence.
            kept = 0;
            self.model.truncate(SEQUENCE, kept)?;
        }
        self.held.truncate(kept);
        self.prompt_len = prompt.len();
        Ok(kept)
    }

    /// Computes `pending`, then chooses and takes the token after it.
    fn step(
        &mut self,
        pending: &[TokenId],
        (output, guard): (&mut Output<'_>, &mut Guard),
        sink: &mut dyn FnMut(&str),
    ) -> Result<Option<FinishReason>> {
        let clock = Instant::now();
        let mask = guard.mask()?;
        output.statistics.mask_time += clock.elapsed();
        let forced = (mask.count() == 1).then(|| mask.iter().next()).flatten();
        let clock = Instant::now();
        let token = match forced {
            // Where one token is allowed its logits change nothing, and the model can skip them.
            Some(token) if output.request.log_probs.is_none() => {
                self.feed(pending, false)?;
                output.statistics.time_model(clock.elapsed(), output.tokens.len());
                token
            }
            _ => {
                let last = self.feed(pending, true)?;
                output.statistics.time_model(clock.elapsed(), output.tokens.len());
                output.choose(mask, self.row(last)?)?
            }
        };
        output.statistics.forced_tokens += usize::from(forced.is_some());
        output.take(guard, token, (self.model.vocabulary(), sink))
    }

    /// Computes `pending` and a draft in one pass, then chooses token after token exactly as without
    /// the draft, for as long as the choice is what was drafted.
    fn verify(
        &mut self,
        pending: &[TokenId],
        draft: &[TokenId],
        (output, guard): (&mut Output<'_>, &mut Guard),
        sink: &mut dyn FnMut(&str),
    ) -> Result<Option<FinishReason>> {
        let clock = Instant::now();
        let mut batch = Batch::new();
        let mut first = 0;
        for &token in pending {
            first = batch.push(token, SEQUENCE, true);
        }
        for &token in draft {
            batch.push(token, SEQUENCE, true);
        }
        self.model.eval(&batch)?;
        self.held.extend_from_slice(pending);
        output.statistics.time_model(clock.elapsed(), output.tokens.len());
        output.statistics.drafted_tokens += draft.len();
        let mut finish = None;
        for place in 0..=draft.len() {
            finish = output.finished(guard, self.model.context_len());
            if finish.is_some() {
                break;
            }
            let clock = Instant::now();
            let mask = guard.mask()?;
            output.statistics.mask_time += clock.elapsed();
            output.statistics.forced_tokens += usize::from(mask.count() == 1);
            let token = output.choose(mask, self.row(first + place)?)?;
            finish = output.take(guard, token, (self.model.vocabulary(), sink))?;
            if finish.is_some() || draft.get(place) != Some(&token) {
                break;
            }
            output.statistics.accepted_tokens += 1;
            self.held.push(token);
        }
        self.model.truncate(SEQUENCE, self.held.len())?;
        Ok(finish)
    }

    /// Computes the prompt, all but for what is held, and returns the index of its last row.
    pub(crate) fn prefill(&mut self, output: &mut Output<'_>) -> Result<usize> {
        let clock = Instant::now();
        let last = self.feed(&output.request.prompt[self.held.len()..], true)?;
        output.statistics.time_model(clock.elapsed(), 0);
        Ok(last)
    }

    /// Appends tokens to the sequence, in chunks at fixed places; returns the index of the last,
    /// whose logits are there if they are wanted.
    fn feed(&mut self, tokens: &[TokenId], logits: bool) -> Result<usize> {
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
        Ok(last)
    }

    /// The logits of an entry of the last batch, as many as the vocabulary has tokens.
    pub(crate) fn row(&self, index: usize) -> Result<&[f32]> {
        let row = self.model.logits(index)?;
        let width = self.model.vocabulary().len();
        match row.len() == width {
            true => Ok(row),
            false => {
                let (len, held) = (row.len(), self.held.len());
                let message = format!(
                    "the model gave {len} logits for a vocabulary of {width} tokens, after {held} tokens"
                );
                Err(Error::new(Kind::Model, message))
            }
        }
    }
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
