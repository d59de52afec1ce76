//! Going on with an output that has begun, and stopping when the caller has what it wants.
//!
//! By hand: the output `{"a": 1, "b":` is given, and the caller wants the value of `b`. The matcher takes
//! the given bytes, the model their tokens, in the tokenizer's own spelling; tokens are chosen as in any
//! run until the caller says that ` 25,` holds the value.

use crate::decode::output::{Guard, Output};
use crate::decode::run::check_cancelled;
use crate::decode::{Decoder, FinishReason, Outcome, Request, Strategy};
use crate::error::{Error, Kind, Result};
use std::borrow::Cow;
use std::time::Instant;

impl Decoder<'_> {
    /// Goes on after `begun`, one token after the other, until `done` says so of the bytes that came since
    /// then, or the output ends. The outcome has what came since then alone; the budget is that of the
    /// whole output, of which `begun` takes one token.
    ///
    /// What was begun best ends before white space, which is often part of the token after it.
    ///
    /// # Errors
    /// As [`Decoder::stream`]; [`Kind::Rejected`] if the constraint does not allow what was begun;
    /// [`Kind::BadArgument`] for beams.
    pub fn resume(
        &mut self,
        request: &Request,
        begun: &[u8],
        done: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<Outcome> {
        let clock = Instant::now();
        if matches!(request.strategy, Strategy::Beam(_)) {
            let message = "beams do not go on with an output that has begun";
            return Err(Error::new(Kind::BadArgument, message).help("use another strategy for it"));
        }
        let model = &self.main.model;
        let text = std::str::from_utf8(begun)
            .map_err(|_| Error::new(Kind::BadArgument, "what was begun is not UTF-8"))?;
        let mut request = request.clone();
        request.prompt.extend(model.tokenize(text, false)?);
        self.check(&request)?;
        let mut output = Output::new(Cow::Borrowed(&request))?;
        let mut guard = Guard::new(&request, model.vocabulary(), model.context_len())?;
        guard.accept_bytes(begun)?;
        output.statistics.reused_tokens = self.main.reuse(&request.prompt)?;
        let mut pending = request.prompt[self.main.held.len()..].to_vec();
        let finish = loop {
            if let Some(finish) = output.finished(&guard, self.main.model.context_len()) {
                break finish;
            }
            check_cancelled(&request)?;
            let finish = self.step(&pending, (&mut output, &mut guard), &mut |_| ())?;
            if let Some(finish) = finish {
                break finish;
            }
            if done(output.text.bytes()) {
                break FinishReason::Complete;
            }
            pending.clear();
            pending.extend(output.tokens.last());
        };
        Ok(output.outcome(finish, clock.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;
    use crate::model::scripted::ScriptedModel;
    use crate::{Constraint, schema};

    #[test]
    fn goes_on_and_stops_when_told() -> Result<()> {
        let schema = r#"{"type": "object", "properties": {"a": {"type": "integer"},
            "b": {"type": "string"}}, "required": ["a", "b"], "additionalProperties": false}"#;
        let mut model = ScriptedModel::following("{\"a\": 1, \"b\": \"xyz\"}");
        let grammar = schema::compile(schema, &schema::Options::default())?;
        let constraint = Constraint::new(&grammar, model.vocabulary())?;
        let request = Request::new(model.plain("go")?.tokens).constrained(constraint);
        let mut decoder = Decoder::new(&mut model);
        let done = &mut |bytes: &[u8]| bytes.contains(&b'y');
        let outcome = decoder.resume(&request, br#"{"a": 1, "b":"#, done)?;
        assert!(outcome.text().contains("\"xy") && !outcome.text().contains('}'), "{outcome:?}");
        let outcome = decoder.resume(&request, br#"{"a": 1, "b":"#, &mut |_| false)?;
        assert_eq!(outcome.finish, FinishReason::Complete);
        assert!(outcome.text().trim().starts_with("\"xyz\""), "{outcome:?}");
        let refused = decoder.resume(&request, br#"{"b":"#, &mut |_| false);
        assert_eq!(refused.map_err(|error| error.kind().clone()), Err(Kind::Rejected));
        Ok(())
    }
}
