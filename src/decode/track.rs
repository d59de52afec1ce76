//! A model and what sequence 0 of it holds.
//!
//! Tokens go through the model in chunks that end at fixed places, and what an earlier request left
//! is kept up to such a place only. By hand, chunks of 64: a prompt of 150 tokens is computed as
//! 64 + 64 + 22; the next prompt shares 140 tokens with it, so 128 are kept, and the rest begins at
//! 128 as it would have without the first. So what was computed before changes no logit.

use crate::error::{Error, Kind, Result};
use crate::model::{Batch, Model};
use crate::vocab::TokenId;

/// The sequence that requests run on.
pub(crate) const SEQUENCE: u32 = 0;

/// Tokens of a prompt that go through the model at a time, unless set otherwise.
pub(crate) const CHUNK: usize = 64;

/// A model whose sequence 0 holds known tokens.
pub(crate) struct Track<'m> {
    pub model: &'m mut dyn Model,
    /// What the sequence holds.
    pub held: Vec<TokenId>,
    /// How much of that is a prompt that went through the model in whole chunks.
    prompt_len: usize,
    /// Tokens of a prompt that go through the model at a time.
    pub chunk: usize,
}

impl<'m> Track<'m> {
    pub fn new(model: &'m mut dyn Model) -> Self {
        Self { model, held: Vec::new(), prompt_len: 0, chunk: CHUNK }
    }

    /// Cuts the sequence down to what it shares with `prompt`, in whole chunks of an earlier
    /// prompt, so that the rest is computed in the same chunks as without it. At least one token
    /// is left to compute.
    pub fn reuse(&mut self, prompt: &[TokenId]) -> Result<usize> {
        let earlier = self.held.iter().take(self.prompt_len);
        let shared = earlier.zip(prompt).take_while(|(a, b)| a == b).count();
        let kept = shared.min(prompt.len().saturating_sub(1)) / self.chunk * self.chunk;
        let kept = self.cut(kept)?;
        self.prompt_len = prompt.len();
        Ok(kept)
    }

    /// Forgets all but the first `len` tokens, or all where the model cannot go back to the middle
    /// of a sequence (recurrent models); returns what is left.
    pub fn cut(&mut self, len: usize) -> Result<usize> {
        let mut kept = len;
        if self.model.truncate(SEQUENCE, kept).is_err() {
            kept = 0;
            self.model.truncate(SEQUENCE, kept)?;
        }
        self.held.truncate(kept);
        Ok(kept)
    }

    /// Appends tokens to the sequence, in chunks at fixed places; returns the index of the last,
    /// whose logits are there if they are wanted.
    pub fn feed(&mut self, tokens: &[TokenId], logits: bool) -> Result<usize> {
        let mut rest = tokens;
        let mut last = 0;
        while !rest.is_empty() {
            let room = self.chunk - self.held.len() % self.chunk;
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

    /// Brings the sequence to exactly `tokens`, keeping what it shares with them, and returns the
    /// logits after the last one.
    pub fn follow(&mut self, tokens: &[TokenId]) -> Result<&[f32]> {
        let shared = self.held.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        let shared = shared.min(tokens.len().saturating_sub(1));
        let kept = if shared < self.held.len() { self.cut(shared)? } else { shared };
        let last = self.feed(&tokens[kept..], true)?;
        self.row(last)
    }

    /// The logits of an entry of the last batch, as many as the vocabulary has tokens.
    pub fn row(&self, index: usize) -> Result<&[f32]> {
        row(self.model, index, self.held.len())
    }
}

/// The logits of an entry of the last batch, as many as the vocabulary has tokens; the sequence has
/// `held` tokens.
pub(crate) fn row(model: &dyn Model, index: usize, held: usize) -> Result<&[f32]> {
    let row = model.logits(index)?;
    let width = model.vocabulary().len();
    match row.len() == width {
        true => Ok(row),
        false => {
            let len = row.len();
            let message = format!(
                "the model gave {len} logits for a vocabulary of {width} tokens, after {held} tokens"
            );
            Err(Error::new(Kind::Model, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::scripted::ScriptedModel;

    #[test]
    fn following_equals_computing_afresh() -> Result<()> {
        let mut model = ScriptedModel::noise(5);
        let mut track = Track::new(&mut model);
        let long: Vec<TokenId> = (0..150).map(|i| i % 90).collect();
        let other = [&long[..100], &[7, 7, 7]].concat();
        for tokens in [&long[..80], &long, &other, &other, &long[..3], &long] {
            let found = track.follow(tokens)?.to_vec();
            let mut fresh = ScriptedModel::noise(5);
            assert_eq!(found, Track::new(&mut fresh).follow(tokens)?);
            assert_eq!(track.held, tokens);
            assert_eq!(track.model.sequence_len(SEQUENCE), tokens.len());
        }
        Ok(())
    }
}
