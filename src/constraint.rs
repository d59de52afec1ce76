//! A compiled constraint: a grammar over a vocabulary, immutable, shared by threads.
use crate::error::Result;
use crate::grammar::Grammar;
use crate::matcher::Matcher;
use crate::vocab::Vocabulary;

/// Grammar x vocabulary. `Send + Sync`, cheap to clone.
#[derive(Clone)]
pub struct Constraint {}

#[allow(unused_variables)]
impl Constraint {
    /// Compiles `grammar` for `vocabulary`. Errors come now, never while generating.
    pub fn new(grammar: &Grammar, vocabulary: &Vocabulary) -> Result<Self> { todo!() }
    /// A matcher at the start.
    pub fn matcher(&self) -> Matcher { todo!() }
    /// The vocabulary.
    pub fn vocabulary(&self) -> &Vocabulary { todo!() }
}
