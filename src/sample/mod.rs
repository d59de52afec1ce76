//! Sampling: from a row of logits, a mask and [`Settings`] to one token.
//!
//! # The order of operations
//! The stages are fixed ([`Stage`]), because they do not commute:
//!
//! ```text
//! logits ─ mask ─ penalties ─ temperature ─ top-k ─ top-p ─ min-p ─ renormalise ─ draw ─► token
//! ```
//!
//! The mask is first: a token outside it does not exist for the stages after it, so that top-k
//! never spends its places on it. Penalties act on the raw logits: after the division their
//! strength would depend on the temperature. Top-p sees the tempered law, keeps up to *and
//! including* the token that crosses p, and so never keeps nothing.
//!
//! By hand, temperature 1, top-p 0.9, logits 2 1 0 and a mask that forbids the second: the
//! allowed law is (0.881, 0.119); the sum before the third token, 0.881, is below 0.9, so it
//! stays too. A uniform number of 0.5 draws the first token, one of 0.9 the third.
//!
//! # Invariants
//! * The same seed, stream and position draw the same number ([`random`]), and weights are
//!   integers with exact sums (`weight`): same logits, same token, on every machine and
//!   whether the mask came sparse or dense.
//! * Forbidden logits are never read; where one token is allowed, none is.
//! * Logits that are not numbers, infinite, or all minus infinity are errors that name the position.
//!
//! # Cost
//! A sparse mask costs what its tokens cost. A dense one costs a pass of comparisons over the row
//! and, where a filter or a draw needs the total weight, a pass of approximate exponentials; exact
//! ones are taken only of tokens near the best one, first within 10 units of the scaled logits, and
//! of more only if the rest could still change the outcome: its weight is known within bounds, and
//! filter and draw are decided when both ends of the interval agree. The vocabulary is never sorted.
//! `benches/sample` measures it.

mod filter;
mod gather;
pub mod logprob;
mod penalty;
pub mod random;
mod rest;
mod settings;
pub mod trace;
mod weight;

pub use settings::{Penalties, Preset, Settings};

use crate::error::Result;
use crate::matcher::Mask;
use crate::vocab::TokenId;
use gather::Row;
use random::Purpose;
use rest::Bounds;
use weight::Candidate;

/// The stages, in the order in which they act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The constraint's mask.
    Mask,
    /// Frequency, presence and repetition penalties.
    Penalties,
    /// The temperature; at 0 it takes all but the best token.
    Temperature,
    /// The k most likely.
    TopK,
    /// The nucleus.
    TopP,
    /// The floor relative to the best.
    MinP,
    /// Renormalise and draw.
    Draw,
}

impl Stage {
    /// Its name, as the settings spell it.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Mask => "mask",
            Stage::Penalties => "penalties",
            Stage::Temperature => "temperature",
            Stage::TopK => "top-k",
            Stage::TopP => "top-p",
            Stage::MinP => "min-p",
            Stage::Draw => "draw",
        }
    }
}

/// What one choice depends on.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// One logit per token of the vocabulary.
    pub logits: &'a [f32],
    /// The allowed tokens; `None` allows all.
    pub mask: Option<Mask<'a>>,
    /// The output so far, for the penalties.
    pub history: &'a [TokenId],
    /// How many tokens were chosen before this one: the key of its random number.
    pub position: u64,
}

/// Checked settings, the stream of random numbers, and scratch memory.
#[derive(Debug, Clone)]
pub struct Sampler {
    settings: Settings,
    stream: u64,
    scratch: Scratch,
}

/// Memory that steps share.
#[derive(Debug, Clone, Default)]
struct Scratch {
    /// The row with penalties, when there are any.
    penalised: Vec<f32>,
    /// Of a dense row.
    bounds: Bounds,
    candidates: Vec<Candidate>,
}

impl Sampler {
    /// A sampler for one answer; `stream` tells several answers of one seed apart.
    ///
    /// # Errors
    /// [`crate::Kind::BadArgument`] for settings out of range.
    pub fn new(settings: Settings, stream: u64) -> Result<Self> {
        settings.check()?;
        Ok(Self { settings, stream, scratch: Scratch::default() })
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Which of several answers this is.
    pub fn stream(&self) -> u64 {
        self.stream
    }

    /// Chooses a token.
    ///
    /// # Errors
    /// [`crate::Kind::Model`] for logits that cannot be used, naming the position;
    /// [`crate::Kind::DeadEnd`] for an empty mask.
    pub fn sample(&mut self, step: &Step<'_>) -> Result<TokenId> {
        let draw = random::bits(self.settings.seed, self.stream, step.position, Purpose::Draw);
        self.sample_with(step, draw)
    }

    /// Chooses the token on which a given random number of 53 bits falls.
    pub(crate) fn sample_with(&mut self, step: &Step<'_>, draw: u64) -> Result<TokenId> {
        if let Some(token) = only(step)? {
            return Ok(token);
        }
        let Scratch { penalised, bounds, candidates } = &mut self.scratch;
        let row = penalty::apply(&self.settings.penalties, step, penalised)?;
        let peak = row.peak(bounds)?;
        if self.settings.is_greedy() {
            return Ok(peak.token);
        }
        let mut flat = false;
        for reach in filter::REACHES {
            if flat && !reach.is_everything() {
                continue;
            }
            let rest = filter::collect(&row, &peak, (&self.settings, reach), bounds, candidates);
            flat = rest.is_none();
            let drawn = rest
                .and_then(|rest| filter::narrow(&self.settings, candidates, rest))
                .and_then(|rest| filter::pick(candidates, rest, draw));
            if let Some(token) = drawn {
                return Ok(token);
            }
        }
        Err(row.error("no token could be drawn".to_owned()))
    }

    /// The law the next token is drawn from: the tokens that every stage keeps, most likely first,
    /// with their probabilities.
    ///
    /// # Errors
    /// As [`Sampler::sample`].
    pub fn law(&mut self, step: &Step<'_>) -> Result<Vec<(TokenId, f64)>> {
        if let Some(token) = only(step)? {
            return Ok(vec![(token, 1.0)]);
        }
        let Scratch { penalised, bounds, candidates } = &mut self.scratch;
        let row = penalty::apply(&self.settings.penalties, step, penalised)?;
        let peak = row.peak(bounds)?;
        if self.settings.is_greedy() {
            return Ok(vec![(peak.token, 1.0)]);
        }
        let all = (&self.settings, filter::EVERYTHING);
        filter::collect(&row, &peak, all, bounds, candidates)
            .and_then(|rest| filter::narrow(&self.settings, candidates, rest));
        weight::sort(candidates);
        let sum = weight::total(candidates) as f64;
        let kept = candidates.iter().take_while(|c| c.weight > 0);
        Ok(kept.map(|c| (c.token(), c.weight as f64 / sum)).collect())
    }
}

/// The token, where the mask leaves only one: no logit is read and no penalty applied.
fn only(step: &Step<'_>) -> Result<Option<TokenId>> {
    Ok(Row::new(step.logits, step.mask, step.position)?.only())
}

#[cfg(test)]
mod tests;
