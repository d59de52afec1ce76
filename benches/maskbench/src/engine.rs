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
