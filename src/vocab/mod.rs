//! Vocabularies: what bytes each token stands for.
//!
//! (Interface; the vocabulary author completes it.)
use crate::error::Result;
use std::any::Any;
use std::sync::{Arc, OnceLock};

pub mod trie;
pub use trie::Trie;

/// Id of a token, `0..Vocabulary::len()`.
pub type TokenId = u32;

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// Ordinary text: these bytes (never empty).
    Text(Box<[u8]>),
    /// A special (control) token with this name, such as `<|im_end|>`; never matched as text.
    Special(Box<str>),
    /// An id without a token (padding, holes, empty text); never allowed.
    Unused,
}

/// An immutable vocabulary; cloning is cheap.
#[derive(Clone)]
pub struct Vocabulary(Arc<Inner>);

struct Inner {
    tokens: Vec<Token>,
    end: Vec<TokenId>,
    trie: Trie,
    hash: [u8; 32],
    derived: OnceLock<Arc<dyn Any + Send + Sync>>,
}

#[allow(unused_variables)]
impl Vocabulary {
    /// A vocabulary of `tokens` (index = id) with the ids that end generation.
    pub fn new(tokens: Vec<Token>, end: Vec<TokenId>) -> Result<Self> { todo!() }
    /// Number of ids, padding included: the width of a row of logits and of a mask.
    pub fn len(&self) -> usize { self.0.tokens.len() }
    /// The token behind an id.
    pub fn token(&self, id: TokenId) -> Option<&Token> { self.0.tokens.get(id as usize) }
    /// Bytes of a text token; `None` for special and unused ids.
    pub fn bytes(&self, id: TokenId) -> Option<&[u8]> { todo!() }
    /// Ids that end generation, sorted.
    pub fn end_tokens(&self) -> &[TokenId] { &self.0.end }
    /// The special token with this text.
    pub fn special(&self, name: &str) -> Option<TokenId> { todo!() }
    /// Content hash.
    pub fn hash(&self) -> [u8; 32] { self.0.hash }
    /// The trie of the text tokens.
    pub fn trie(&self) -> &Trie { &self.0.trie }
    /// Tables that a later layer derives once per vocabulary.
    pub(crate) fn derived<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let any = self.0.derived.get_or_init(|| Arc::new(make()));
        Arc::clone(any).downcast().unwrap_or_else(|_| unreachable!("one derived type"))
    }
}
