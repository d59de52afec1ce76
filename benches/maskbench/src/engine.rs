//! What an engine must do, so that all of them are measured by the same code.
//!
//! An [`Engine`] compiles a case; a [`Compiled`] case starts sequences; a [`Sequence`] fills masks
//! and takes tokens. An engine keeps between cases only what belongs to the vocabulary.
mod constrain;
mod llguidance;
#[cfg(feature = "xgrammar")]
mod xgrammar;

use crate::tokens::Tokens;
use crate::{EngineName, PropertyOrder};
use anyhow::Result;

/// How many tokens a document may have, the end token counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// So many.
    Tokens(u64),
    /// So many more than the least.
    More(u64),
    /// So many times the least, rounded up.
    Times(f64),
}

impl Budget {
    /// The budget for a schema whose shortest document takes `min` tokens.
    pub fn tokens(self, min: u64) -> u64 {
        match self {
            Budget::Tokens(tokens) => tokens,
            Budget::More(more) => min.saturating_add(more),
            Budget::Times(factor) => (min as f64 * factor).ceil() as u64,
        }
    }
}

impl std::str::FromStr for Budget {
    type Err = String;

    /// `min`, `min+K`, `xF` or a number.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let bad = || format!("{text:?} is none of min, min+K, xF and a number");
        if text == "min" {
            return Ok(Budget::More(0));
        }
        if let Some(more) = text.strip_prefix("min+") {
            return more.parse().map(Budget::More).map_err(|_| bad());
        }
        match text.strip_prefix('x') {
            None => text.parse().map(Budget::Tokens).map_err(|_| bad()),
            Some(factor) => {
                let factor = factor.parse().ok().filter(|factor| (1.0..=1e6).contains(factor));
                factor.map(Budget::Times).ok_or_else(bad)
            }
        }
    }
}

/// What to compile.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// The text of a JSON Schema.
    Schema(&'a str),
    /// A grammar and the name of its syntax.
    Grammar(&'a str, &'a str),
}

/// An engine with a vocabulary.
pub trait Engine {
    /// Compiles a case, from its text.
    fn compile(&self, source: Source<'_>, order: PropertyOrder) -> Result<Box<dyn Compiled + '_>>;
}

/// A compiled case.
pub trait Compiled {
    /// A sequence at its start.
    fn start(&mut self) -> Result<Box<dyn Sequence>>;
    /// A sequence that is complete within a budget of tokens, and that budget; `None` if the engine
    /// knows no budgets or this one is too small.
    fn start_within(&mut self, _budget: Budget) -> Result<Option<(Box<dyn Sequence>, u64)>> {
        Ok(None)
    }
}

/// The state of one sequence.
pub trait Sequence {
    /// Fills the whole bitmask: one bit for each token, least significant first.
    fn fill(&mut self, mask: &mut [u32]) -> Result<()>;
    /// Takes a token that the mask allows.
    fn accept(&mut self, token: u32) -> Result<()>;
    /// Whether the text so far is complete.
    fn can_stop(&mut self) -> Result<bool>;
}

/// The engine of that name.
pub fn new(name: EngineName, json: &[u8], tokens: &Tokens) -> Result<Box<dyn Engine>> {
    Ok(match name {
        EngineName::Constrain => Box::new(constrain::Ours::new(json, tokens)?),
        EngineName::Llguidance => Box::new(llguidance::Llguidance::new(tokens)?),
        #[cfg(feature = "xgrammar")]
        EngineName::Xgrammar => Box::new(xgrammar::Xgrammar::new(json, tokens)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets() {
        let tokens = |text: &str| text.parse::<Budget>().map(|budget| budget.tokens(7));
        assert_eq!(["min", "min+3", "x1.5", "256"].map(tokens), [7, 10, 11, 256].map(Ok));
        assert!(["", "max", "min-1", "x0.5", "xy", "-1"].iter().all(|text| tokens(text).is_err()));
    }
}
