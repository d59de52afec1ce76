//! Drafts: guesses at the next tokens that cost little, for one pass of the model to verify.
//!
//! By hand, *lookup*: the prompt says `order 4711 of Ada Lovelace`, the output so far ends in
//! `" of Ada"`; its last two tokens occurred in the prompt, so the draft is what followed there.
//! *Forced*: after `{"na` the constraint leaves only `me": `; the draft is how the tokenizer spells
//! that. Either way the automaton cuts the draft before the first token it does not allow.
//!
//! The length adapts: a draft that was right throughout doubles it, one that was not sets it to one
//! more than what was right. Wrong drafts cost passes that are slower for being longer.

use crate::decode::output::{Guard, Output};
use crate::decode::{Drafts, Strategy};
use crate::error::Result;
use crate::model::Model;
use crate::vocab::TokenId;

/// Makes drafts for one run.
pub(crate) struct Drafter {
    drafts: Option<Drafts>,
    /// Tokens to draft next time.
    len: usize,
}

impl Drafter {
    /// The drafter of a strategy; most have none.
    pub fn new(strategy: &Strategy) -> Self {
        match strategy {
            Strategy::Draft(drafts) => Self { drafts: Some(drafts.clone()), len: drafts.most },
            _ => Self { drafts: None, len: 0 },
        }
    }

    /// Guesses what comes next; nothing if there is nothing to go by.
    pub fn draft(
        &self,
        model: &dyn Model,
        output: &Output<'_>,
        guard: &Guard,
    ) -> Result<Vec<TokenId>> {
        let Some(drafts) = &self.drafts else { return Ok(Vec::new()) };
        let (prompt, tokens) = (&output.request.prompt, &output.tokens);
        // The pass must fit the context, and tokens after the last allowed one are of no use.
        let room = model.context_len().saturating_sub(prompt.len() + tokens.len() + 1);
        let left = output.request.max_tokens.saturating_sub(tokens.len() + 1);
        let most = self.len.min(room).min(left).min(model.max_batch() - 1);
        let mut guess = Vec::new();
        if drafts.forced {
            guess = forced(model, guard)?;
        }
        if drafts.lookup && guess.len() < most {
            let all = [prompt.as_slice(), tokens.as_slice(), guess.as_slice()].concat();
            guess.extend_from_slice(lookup(&all));
        }
        guess.truncate(most);
        cut(&mut guess, model, guard);
        Ok(guess)
    }

    /// Adapts the length to how much of the last draft was right. `chosen` counts the token after
    /// the draft too.
    pub fn learn(&mut self, drafted: usize, chosen: usize) {
        let most = self.drafts.as_ref().map_or(0, |drafts| drafts.most);
        self.len = match chosen > drafted {
            true => (self.len * 2).min(most),
            false => chosen.clamp(1, most.max(1)),
        };
    }
}

/// What followed the most recent earlier occurrence of the last few tokens, trying four of them
/// first and at least two.
fn lookup(tokens: &[TokenId]) -> &[TokenId] {
    for n in (2..=4).rev() {
        let Some(start) = tokens.len().checked_sub(n) else { continue };
        let (before, key) = (&tokens[..tokens.len() - 1], &tokens[start..]);
        let found = before.windows(n).rposition(|window| window == key);
        if let Some(at) = found {
            return &tokens[at + n..];
        }
    }
    &[]
}

/// What the constraint forces, as the tokenizer spells it.
fn forced(model: &dyn Model, guard: &Guard) -> Result<Vec<TokenId>> {
    let Guard::Constrained(matcher) = guard else { return Ok(Vec::new()) };
    let bytes = matcher.fork().forced_bytes();
    // Half a character has no spelling of its own.
    let whole = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    if whole.is_empty() { Ok(Vec::new()) } else { model.tokenize(whole, false) }
}

/// Cuts a draft before the first token that is not allowed, or that ends the output.
fn cut(draft: &mut Vec<TokenId>, model: &dyn Model, guard: &Guard) {
    let mut ahead = match guard {
        Guard::Constrained(_) => Some(guard.clone()),
        Guard::Free(_) => None,
    };
    let allowed = draft.iter().take_while(|&&token| {
        let ends = model.vocabulary().is_end(token);
        !ends && ahead.as_mut().is_none_or(|guard| guard.accept(token).is_ok())
    });
    let allowed = allowed.count();
    draft.truncate(allowed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraint::Constraint;
    use crate::decode::{Decoder, FinishReason, Request};
    use crate::model::scripted::ScriptedModel;
    use crate::sample::Settings;

    #[test]
    fn lookup_prefers_long_and_recent() {
        assert_eq!(lookup(&[1, 2, 3, 9, 9, 2, 3]), [9, 9, 2, 3]);
        assert_eq!(lookup(&[1, 2, 7, 1, 2, 8, 1, 2]), [8, 1, 2]);
        assert_eq!(lookup(&[5, 1, 2, 7, 6, 1, 2, 8, 5, 1, 2]), [7, 6, 1, 2, 8, 5, 1, 2]);
        assert_eq!(lookup(&[4, 4, 4]), [4]);
        assert!(lookup(&[1, 2, 3]).is_empty() && lookup(&[1]).is_empty() && lookup(&[]).is_empty());
    }

    /// Drafts of every kind and length give the output of plain sampling.
    #[test]
    fn drafts_change_nothing_but_the_number_of_passes() -> Result<()> {
        let schema = r#"{"type": "object", "properties": {"title": {"type": "string", "maxLength": 12},
            "tags": {"type": "array", "items": {"enum": ["alpha", "beta"]}, "maxItems": 3}},
            "required": ["title", "tags"], "additionalProperties": false}"#;
        let grammar = crate::schema::compile(schema, &crate::schema::Options::default())?;
        let (mut drafted, mut accepted) = (0, 0);
        for seed in 0..40 {
            let mut model = ScriptedModel::noise(seed % 4);
            let constraint = Constraint::new(&grammar, model.vocabulary())?;
            let prompt = model.plain("the title and the tags, the title and the tags")?.tokens;
            let mut plain = Request::new(prompt).with(Settings { seed, ..Settings::drawing(0.7) });
            plain.max_tokens = [7, 60][seed as usize % 2];
            plain.log_probs = Some(0);
            match seed % 3 {
                0 => plain.stop = vec!["the".into(), "a".into()],
                _ => plain.constraint = Some(constraint),
            }
            let expected = Decoder::new(&mut model).run(&plain)?;
            for (lookup, forced) in [(true, false), (false, true), (true, true)] {
                for most in [1, 3, 15] {
                    let strategy = Strategy::Draft(Drafts { lookup, forced, most });
                    let request = Request { strategy, ..plain.clone() };
                    let outcome = Decoder::new(&mut model).run(&request)?;
                    assert_eq!(
                        outcome.tokens,
                        expected.tokens,
                        "seed {seed}, {request_of:?}",
                        request_of = request.strategy
                    );
                    assert_eq!(
                        (&outcome.bytes, outcome.finish),
                        (&expected.bytes, expected.finish)
                    );
                    assert_eq!(outcome.log_probs, expected.log_probs);
                    let counts = outcome.statistics;
                    assert!(counts.passes <= expected.statistics.passes);
                    drafted += counts.drafted_tokens;
                    accepted += counts.accepted_tokens;
                }
            }
        }
        assert!(drafted > accepted && accepted > 0, "{accepted} of {drafted}: nothing was tested");
        Ok(())
    }

    #[test]
    fn a_quotation_takes_few_passes() -> Result<()> {
        let text = "order 4711 of Ada Lovelace, shipped on 12 May to Old Street 99";
        let mut model = ScriptedModel::following(text);
        let prompt = model.plain(text)?.tokens;
        let plain = Request::new(prompt).with(Settings::greedy());
        let expected = Decoder::new(&mut model).run(&plain)?;
        let request = Request { strategy: Strategy::Draft(Drafts::default()), ..plain };
        let outcome = Decoder::new(&mut model).run(&request)?;
        assert_eq!((outcome.text().as_str(), outcome.finish), (text, FinishReason::EndToken));
        let (with, without) = (outcome.statistics.passes, expected.statistics.passes);
        assert!(with * 3 < without, "{with} passes instead of {without}");
        Ok(())
    }
}
