//! Heads that predict several tokens (multi-token prediction), through llama.cpp.
//!
//! Some files hold, beside the model, a layer or two that were trained to guess the tokens after the next
//! one from the model's own hidden states. llama.cpp runs them in a context of their own, which follows
//! the model's: each batch that the model has computed is shown to it ([`Heads::follow`]), and from the last
//! token on it guesses ([`Heads::guess`]). Guesses are verified like all others, so that wrong ones cost
//! time alone.
//!
//! By hand: the model has computed `a b`, then `c` is chosen. The heads have followed `a b`; asked after
//! `a b c` they guess `d e`. The model computes `c d e`; say `d` is right, `e` is not. The caller cuts
//! both contexts back to `a b c d`, and the heads are told that they go on from the second row of that batch.
//!
//! The binding serves sequence 0 alone, so a model with heads has one sequence.

use crate::error::{Error, Kind, Result};
use crate::model::llama::{id_of, token_of};
use crate::vocab::TokenId;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel as Weights;
use llama_cpp_2::speculative::{MtpSpeculative, MtpSpeculativeParams};

/// Most tokens that are guessed at a time: a head that guesses from its own guesses is soon wrong.
pub(super) const MOST: usize = 4;

/// The number of layers of a file that predict several tokens.
pub(super) fn layers(weights: &Weights) -> usize {
    let value = |key: &str| weights.meta_val_str(key).ok();
    let family = value("general.architecture").unwrap_or_default();
    let layers = value(&format!("{family}.nextn_predict_layers"));
    layers.and_then(|layers| layers.parse().ok()).unwrap_or(0)
}

/// A model's context and that of its heads.
pub(super) struct Heads<'w> {
    contexts: MtpSpeculative<'w>,
    /// Where the last batch began in the sequence.
    batch: usize,
    /// Guesses that were not judged yet.
    guessed: usize,
}

impl<'w> Heads<'w> {
    /// Puts both contexts together.
    pub fn new(model: LlamaContext<'w>, heads: LlamaContext<'w>) -> Result<Self> {
        let params = MtpSpeculativeParams { n_max: MOST as i32, ..MtpSpeculativeParams::default() };
        let contexts = MtpSpeculative::new(model, heads, params).map_err(failed)?;
        Ok(Self { contexts, batch: 0, guessed: 0 })
    }

    /// The model's context.
    pub fn model(&self) -> &LlamaContext<'w> {
        self.contexts.target_context()
    }

    /// The model's context.
    pub fn model_mut(&mut self) -> &mut LlamaContext<'w> {
        self.contexts.target_context_mut()
    }

    /// Shows the heads a batch that the model has computed, which began at `start`.
    pub fn follow(&mut self, batch: &LlamaBatch<'_>, start: usize) -> Result<()> {
        self.contexts.process(batch).map_err(failed)?;
        self.batch = start;
        Ok(())
    }

    /// What comes after `tokens`, of which the contexts hold all but the last.
    pub fn guess(&mut self, tokens: &[TokenId]) -> Result<Vec<TokenId>> {
        let Some((&last, before)) = tokens.split_last() else { return Ok(Vec::new()) };
        self.judged(before.len())?;
        let before: Vec<_> = before.iter().map(|&token| token_of(token)).collect();
        let held = i32::try_from(before.len()).unwrap_or(i32::MAX);
        let guess = self.contexts.draft(held, token_of(last), &before).map_err(failed)?;
        self.guessed = guess.len();
        // What the heads have computed for their guesses is computed again from the model's states.
        self.cut(before.len())?;
        Ok(guess.into_iter().map(id_of).collect())
    }

    /// Forgets all but the first `len` tokens; the model's context is the caller's to cut.
    pub fn cut(&mut self, len: usize) -> Result<()> {
        let from = u32::try_from(len).ok().filter(|&from| from > 0);
        match self.contexts.draft_context_mut().clear_kv_cache_seq(Some(0), from, None) {
            Ok(true) => Ok(()),
            _ => Err(Error::new(Kind::Model, format!("the heads cannot go back to {len} tokens"))),
        }
    }

    /// Tells the heads which row of the last batch they go on from, now that `held` tokens are held.
    fn judged(&mut self, held: usize) -> Result<()> {
        let guessed = std::mem::take(&mut self.guessed);
        if guessed == 0 {
            return Ok(());
        }
        let right = held.saturating_sub(self.batch + 1).min(guessed);
        self.contexts.accept(u16::try_from(right).unwrap_or(u16::MAX)).map_err(failed)
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::new(Kind::Model, format!("llama.cpp: {error}"))
        .help("draft by lookup, by the constraint or by a small model")
}
