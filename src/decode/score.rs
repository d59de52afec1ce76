//! Scoring texts that are given: how likely the model finds each of several continuations.
//!
//! The continuations share the tokens before them, and each other's beginnings. By hand, after a prompt
//! of 100 tokens, `"` `ca` `lm` and `"` `ca` `n`:
//!
//! ```text
//! 100 tokens            one pass; its last row scores `"`
//! "  ca                 one pass; its rows score `ca`, and both `lm` and `n`
//! ```
//!
//! What comes after the last token of a continuation is not computed.

use crate::decode::Decoder;
use crate::decode::track::{SEQUENCE, Track};
use crate::error::{Error, Kind, Result};
use crate::model::{Batch, context_full};
use crate::sample::logprob::raw_log_probs;
use crate::vocab::TokenId;

impl Decoder<'_> {
    /// The log-probability of each continuation after `before`: the sum over its tokens by the model's own
    /// law, without a mask.
    ///
    /// # Errors
    /// [`Kind::BadArgument`] if `before` is empty or a continuation is longer than a batch;
    /// [`Kind::TooLarge`] if they do not fit the context; [`Kind::Model`] if the model fails.
    pub fn score(
        &mut self,
        before: &[TokenId],
        continuations: &[Vec<TokenId>],
    ) -> Result<Vec<f64>> {
        self.check_lengths(before, continuations)?;
        let mut scores = vec![0.0; continuations.len()];
        let main = &mut self.main;
        main.reuse(before)?;
        let last = main.feed(&before[main.held.len()..], true)?;
        note(main, last, (0, &[]), continuations, &mut scores)?;
        let mut order: Vec<&[TokenId]> = continuations.iter().map(Vec::as_slice).collect();
        order.sort();
        order.dedup();
        let mut held: &[TokenId] = &[];
        for tokens in order {
            // The row after the last token would score what comes next.
            let needed = &tokens[..tokens.len().saturating_sub(1)];
            let shared = held.iter().zip(needed).take_while(|(a, b)| a == b).count();
            if shared == needed.len() {
                continue;
            }
            return_to(main, before, &needed[..shared])?;
            let mut batch = Batch::new();
            let rows: Vec<usize> =
                needed[shared..].iter().map(|&token| batch.push(token, SEQUENCE, true)).collect();
            main.model.eval(&batch)?;
            main.held.extend_from_slice(&needed[shared..]);
            for (len, row) in (shared + 1..).zip(rows) {
                note(main, row, (len, needed), continuations, &mut scores)?;
            }
            held = needed;
        }
        main.cut(before.len())?;
        Ok(scores)
    }

    fn check_lengths(&self, before: &[TokenId], continuations: &[Vec<TokenId>]) -> Result<()> {
        let longest = continuations.iter().map(Vec::len).max().unwrap_or(0);
        let (room, batch) = (self.main.model.context_len(), self.main.model.max_batch());
        if before.is_empty() {
            return Err(Error::new(Kind::BadArgument, "there is nothing before the continuations"));
        }
        if before.len() + longest > room {
            return Err(context_full(before.len() + longest, room));
        }
        if longest > batch {
            let message = format!("a continuation of {longest} tokens, of {batch} at most");
            return Err(Error::new(Kind::BadArgument, message));
        }
        Ok(())
    }
}

/// Brings the sequence back to `before` and `then`.
fn return_to(main: &mut Track<'_>, before: &[TokenId], then: &[TokenId]) -> Result<()> {
    let wanted = before.len() + then.len();
    let kept = if main.held.len() > wanted { main.cut(wanted)? } else { main.held.len() };
    // Only after a model that cannot go back is something missing.
    let missing: Vec<TokenId> = before.iter().chain(then).skip(kept).copied().collect();
    main.feed(&missing, false)?;
    Ok(())
}

/// Adds what a row says of the next token of every continuation that begins with the first `len` of
/// `said`.
fn note(
    main: &Track<'_>,
    row: usize,
    (len, said): (usize, &[TokenId]),
    continuations: &[Vec<TokenId>],
    scores: &mut [f64],
) -> Result<()> {
    let begins = |tokens: &&Vec<TokenId>| tokens.len() > len && tokens[..len] == said[..len];
    let next: Vec<TokenId> =
        continuations.iter().filter(begins).map(|tokens| tokens[len]).collect();
    let found = raw_log_probs(main.row(row)?, &next)?;
    let mut found = found.into_iter();
    for (tokens, score) in continuations.iter().zip(scores) {
        if begins(&tokens) {
            *score += found.next().unwrap_or(0.0);
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model::Model;
    use crate::model::scripted::ScriptedModel;
    use crate::sample::random::mix;

    /// The definition: everything computed afresh, one token after the other.
    pub(crate) fn apart(
        model: &mut ScriptedModel,
        before: &[TokenId],
        tokens: &[TokenId],
    ) -> Result<f64> {
        let mut score = 0.0;
        for (i, &token) in tokens.iter().enumerate() {
            model.truncate(0, 0)?;
            let said = [before, &tokens[..i]].concat();
            model.eval(&Batch::prompt(0, &said))?;
            let logits = model.logits(said.len() - 1)?;
            let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
            score += f64::from(logits[token as usize]) - sum.ln();
        }
        Ok(score)
    }

    #[test]
    fn equal_to_scoring_each_apart() -> Result<()> {
        for seed in 0..20 {
            let mut model = ScriptedModel::noise(seed);
            let before: Vec<TokenId> = (0..100 + seed as TokenId).map(|i| i % 70).collect();
            // Few different tokens, so that beginnings are shared, and some are equal.
            let token = |i: u64| (mix(seed * 1000 + i) % 3) as TokenId + 97;
            let continuations: Vec<Vec<TokenId>> =
                (0..12).map(|i| (0..mix(i) % 6).map(|j| token(i * 10 + j)).collect()).collect();
            let scores = Decoder::new(&mut model).score(&before, &continuations)?;
            for (tokens, score) in continuations.iter().zip(scores) {
                let expected = apart(&mut model, &before, tokens)?;
                assert!((score - expected).abs() < 1e-9, "{tokens:?}: {score}, not {expected}");
            }
        }
        Ok(())
    }

    #[test]
    fn the_next_request_is_not_disturbed() -> Result<()> {
        let request = |model: &ScriptedModel| -> Result<_> {
            let prompt = model.plain(&"a long prompt of many words, ".repeat(9))?.tokens;
            Ok(crate::decode::Request { max_tokens: 20, ..crate::decode::Request::new(prompt) })
        };
        let mut fresh = ScriptedModel::noise(3);
        let expected =
            request(&fresh).and_then(|request| Decoder::new(&mut fresh).run(&request))?;
        let mut model = ScriptedModel::noise(3);
        let request = request(&model)?;
        let mut decoder = Decoder::new(&mut model);
        decoder.run(&request)?;
        let before = [request.prompt.as_slice(), &expected.tokens[..5]].concat();
        decoder.score(&before, &[vec![97, 98, 99], vec![97, 98]])?;
        assert_eq!(decoder.run(&request)?.tokens, expected.tokens);
        assert!(decoder.score(&[], &[]).is_err());
        assert!(decoder.score(&before, &[vec![97; 9999]]).is_err());
        Ok(())
    }
}
