//! Vocabularies: what bytes each token stands for.
//!
//! A [`Vocabulary`] maps token ids to [`Token`]s and keeps what the engine reads again and again:
//! the [`Trie`] of the text tokens, the names of the special ones, the ids that end generation, the
//! byte values that no token spells alone, and a content hash.
//!
//! # By hand
//!
//! ```
//! use constrain::vocab::{Token, Vocabulary};
//! let text = |text: &str| Token::Text(text.as_bytes().into());
//! let tokens = vec![text("a"), text("ab"), text("a"), Token::Unused, Token::Special("<end>".into())];
//! let vocabulary = Vocabulary::new(tokens, vec![4])?.with_len(64)?;
//! assert_eq!(vocabulary.bytes(1), Some(&b"ab"[..]));
//! assert_eq!(vocabulary.special("<end>"), Some(4));
//! assert_eq!(vocabulary.trie().subtree_tokens(1), [0, 2, 1]); // `a` twice, then `ab`
//! assert_eq!(vocabulary.len(), 64); // ids 5 to 63 are padding
//! # Ok::<(), constrain::Error>(())
//! ```
//!
//! # Invariants
//!
//! * Text tokens have 1 to [`MAX_TOKEN_BYTES`] bytes. Any bytes: half a UTF-8 sequence is usual.
//! * A token that ends generation is never text, whatever its file says: it is allowed exactly where
//!   the document may end. Special and unused ids are not in the trie, so no text allows them.
//! * Memory is by the tokens present: padding costs nothing.
//!
//! # Cost
//!
//! One pass over the tokens beside the trie's sort; vocabularies are cloned by reference.

mod file;
mod huggingface;
mod pieces;
mod spelling;
mod table;
mod tiktoken;
pub mod trie;

use crate::error::{Error, Kind, Result};
use hashbrown::HashMap;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

pub use pieces::{Piece, PieceKind};
pub use trie::Trie;

/// Id of a token, `0..Vocabulary::len()`.
pub type TokenId = u32;

/// Most ids of a vocabulary, padding included; the largest known ones have 2¹⁸.
pub const MAX_IDS: usize = 1 << 24;

/// Most bytes of one text token; the longest known ones have a few hundred (runs of spaces).
pub const MAX_TOKEN_BYTES: usize = 64 << 10;

/// Most bytes of all text tokens together; the largest known vocabularies have 2 MiB.
pub const MAX_TEXT_BYTES: usize = 32 << 20;

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
    tables: Arc<Tables>,
    len: usize,
    end: Vec<TokenId>,
    hash: [u8; 32],
    derived: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// What does not depend on the padding; shared by the lengths of one vocabulary.
struct Tables {
    /// Without the unused ids at the end.
    tokens: Vec<Token>,
    trie: Trie,
    /// The lowest id of each name.
    specials: HashMap<Box<str>, TokenId>,
    missing_bytes: [u64; 4],
    /// The most opening brackets of a token.
    most_opened: usize,
    hash: blake3::Hash,
}

impl Vocabulary {
    /// A vocabulary of `tokens` (index = id) with the ids that end generation.
    ///
    /// A text token among `end` becomes a special token named by its text.
    ///
    /// # Errors
    /// [`Kind::BadVocabulary`] if there is no end token, an end id has no token, a text is empty or
    /// longer than [`MAX_TOKEN_BYTES`], or there is more than [`MAX_IDS`] or [`MAX_TEXT_BYTES`].
    pub fn new(mut tokens: Vec<Token>, end: Vec<TokenId>) -> Result<Self> {
        check_len(tokens.len())?;
        let end = check_end(&tokens, end)?;
        for &id in &end {
            if let Token::Text(bytes) = &tokens[id as usize] {
                tokens[id as usize] = Token::Special(String::from_utf8_lossy(bytes).into());
            }
        }
        check_texts(&tokens)?;
        let len = tokens.len();
        let used =
            tokens.iter().rposition(|token| *token != Token::Unused).map_or(0, |last| last + 1);
        tokens.truncate(used);
        Ok(Self::assemble(Arc::new(Tables::new(tokens)), len, end))
    }

    fn assemble(tables: Arc<Tables>, len: usize, end: Vec<TokenId>) -> Self {
        let hash = hash_all(&tables.hash, len, &end);
        Self(Arc::new(Inner { tables, len, end, hash, derived: OnceLock::new() }))
    }

    /// The same vocabulary with unused ids up to `len` ids in all: models often pad their logits.
    ///
    /// # Errors
    /// [`Kind::BadVocabulary`] if `len` is above [`MAX_IDS`] or would cut tokens off.
    pub fn with_len(&self, len: usize) -> Result<Self> {
        check_len(len)?;
        let used = self.0.tables.tokens.len();
        if len < used {
            let message = format!("the vocabulary has {used} tokens, the model only {len} logits");
            return Err(bad(message).help("use the tokenizer that belongs to the model"));
        }
        Ok(Self::assemble(Arc::clone(&self.0.tables), len, self.0.end.clone()))
    }

    /// Number of ids, padding included: the width of a row of logits and of a mask.
    #[allow(clippy::len_without_is_empty, reason = "there is at least one end token")]
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// The token behind an id; `None` for ids from `len()` on.
    pub fn token(&self, id: TokenId) -> Option<&Token> {
        let padding = ((id as usize) < self.0.len).then_some(&Token::Unused);
        self.0.tables.tokens.get(id as usize).or(padding)
    }

    /// Bytes of a text token; `None` for special and unused ids.
    #[inline]
    pub fn bytes(&self, id: TokenId) -> Option<&[u8]> {
        match self.0.tables.tokens.get(id as usize) {
            Some(Token::Text(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// Ids and bytes of the text tokens, ascending by id.
    pub fn text_tokens(&self) -> impl Iterator<Item = (TokenId, &[u8])> {
        texts(&self.0.tables.tokens)
    }

    /// Ids that end generation, sorted; at least one.
    pub fn end_tokens(&self) -> &[TokenId] {
        &self.0.end
    }

    /// Whether an id ends generation.
    pub fn is_end(&self, id: TokenId) -> bool {
        self.0.end.binary_search(&id).is_ok()
    }

    /// Whether an id is a special token; those that end generation are.
    pub fn is_special(&self, id: TokenId) -> bool {
        matches!(self.token(id), Some(Token::Special(_)))
    }

    /// The special token with this name; the lowest id if there are several.
    pub fn special(&self, name: &str) -> Option<TokenId> {
        self.0.tables.specials.get(name).copied()
    }

    /// Names and ids of the special tokens, ascending by id.
    pub fn specials(&self) -> impl Iterator<Item = (&str, TokenId)> {
        self.0.tables.tokens.iter().zip(0..).filter_map(|(token, id)| match token {
            Token::Special(name) => Some((&**name, id)),
            _ => None,
        })
    }

    /// The most brackets `[` and `{` of a text token: so many containers a token can open.
    pub fn most_opened(&self) -> usize {
        self.0.tables.most_opened
    }

    /// Byte values that no text token spells alone, as a 256-bit set. They may occur within longer
    /// tokens; those that occur anywhere are `trie().bytes_below(Trie::ROOT)`.
    pub fn missing_bytes(&self) -> &[u64; 4] {
        &self.0.tables.missing_bytes
    }

    /// Hash of the tokens, the end ids and the length; equal for equal vocabularies only.
    pub fn hash(&self) -> [u8; 32] {
        self.0.hash
    }

    /// The trie of the text tokens.
    pub fn trie(&self) -> &Trie {
        &self.0.tables.trie
    }

    /// The same vocabulary without what was derived from it, so that what is derived can hold it.
    pub(crate) fn shallow(&self) -> Self {
        let Inner { tables, len, end, hash, .. } = &*self.0;
        let (tables, end) = (Arc::clone(tables), end.clone());
        Self(Arc::new(Inner { tables, len: *len, end, hash: *hash, derived: OnceLock::new() }))
    }

    /// Tables that a later layer derives once per vocabulary.
    pub(crate) fn derived<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let any = self.0.derived.get_or_init(|| Arc::new(make()));
        Arc::clone(any).downcast().unwrap_or_else(|_| unreachable!("one derived type"))
    }
}

impl fmt::Debug for Vocabulary {
    /// Sizes only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vocabulary")
            .field("len", &self.0.len)
            .field("end", &self.0.end)
            .field("specials", &self.0.tables.specials.len())
            .field("trie", &self.0.tables.trie)
            .finish_non_exhaustive()
    }
}

impl Tables {
    fn new(tokens: Vec<Token>) -> Self {
        let mut specials = HashMap::new();
        let named = tokens.iter().zip(0..).filter_map(|(token, id)| match token {
            Token::Special(name) => Some((name.clone(), id)),
            _ => None,
        });
        for (name, id) in named {
            specials.entry(name).or_insert(id);
        }
        let trie = Trie::new(texts(&tokens).map(|(id, bytes)| (bytes, id)));
        let mut missing_bytes = [u64::MAX; 4];
        let (bytes, nodes) = trie.children(Trie::ROOT);
        for (&byte, &node) in bytes.iter().zip(nodes) {
            if !trie.tokens(node).is_empty() {
                missing_bytes[byte as usize / 64] &= !(1 << (byte % 64));
            }
        }
        let opened = |bytes: &[u8]| bytes.iter().filter(|byte| b"[{".contains(byte)).count();
        let most_opened = texts(&tokens).map(|(_, bytes)| opened(bytes)).max().unwrap_or(0);
        let hash = hash_tokens(&tokens);
        Self { tokens, trie, specials, missing_bytes, most_opened, hash }
    }
}

/// Ids and bytes of the text tokens.
fn texts(tokens: &[Token]) -> impl Iterator<Item = (TokenId, &[u8])> {
    tokens.iter().zip(0..).filter_map(|(token, id)| match token {
        Token::Text(bytes) => Some((id, &**bytes)),
        _ => None,
    })
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(Kind::BadVocabulary, message)
}

fn check_len(len: usize) -> Result<()> {
    if len > MAX_IDS {
        let message = format!("a vocabulary of {len} ids is above the limit of {MAX_IDS}");
        return Err(bad(message).help("check that the file is a tokenizer"));
    }
    Ok(())
}

/// The end ids sorted, if there are some and all have tokens.
fn check_end(tokens: &[Token], mut end: Vec<TokenId>) -> Result<Vec<TokenId>> {
    end.sort_unstable();
    end.dedup();
    if end.is_empty() {
        return Err(bad("no token ends generation")
            .help("name the end-of-generation tokens of the model, such as `</s>`"));
    }
    for &id in &end {
        if matches!(tokens.get(id as usize), None | Some(Token::Unused)) {
            let message = format!("the end token {id} is not one of the {} tokens", tokens.len());
            return Err(bad(message).help("take the end ids from the model's own configuration"));
        }
    }
    Ok(end)
}

fn check_texts(tokens: &[Token]) -> Result<()> {
    let mut total = 0;
    for (id, bytes) in texts(tokens) {
        if bytes.is_empty() {
            return Err(bad(format!("token {id} is empty")).help("mark it as unused"));
        }
        if bytes.len() > MAX_TOKEN_BYTES {
            let len = bytes.len();
            let message =
                format!("token {id} has {len} bytes, above the limit of {MAX_TOKEN_BYTES}");
            return Err(bad(message).help("check that the file is a tokenizer"));
        }
        total += bytes.len();
    }
    if total > MAX_TEXT_BYTES {
        let message = format!("the tokens have {total} bytes, above the limit of {MAX_TEXT_BYTES}");
        return Err(bad(message).help("check that the file is a tokenizer"));
    }
    Ok(())
}

/// Hash of a list of tokens: a tag, a length and the bytes for each, so that no two lists agree.
fn hash_tokens(tokens: &[Token]) -> blake3::Hash {
    const CHUNK: usize = 64 << 10;
    let mut hasher = blake3::Hasher::new_derive_key("constrain vocabulary tokens, version 1");
    let mut buffer = Vec::with_capacity(CHUNK + MAX_TOKEN_BYTES);
    for token in tokens {
        let (tag, bytes): (u8, &[u8]) = match token {
            Token::Text(bytes) => (0, bytes),
            Token::Special(name) => (1, name.as_bytes()),
            Token::Unused => (2, &[]),
        };
        buffer.push(tag);
        buffer.extend((bytes.len() as u64).to_le_bytes());
        buffer.extend(bytes);
        if buffer.len() >= CHUNK {
            hasher.update(&buffer);
            buffer.clear();
        }
    }
    hasher.update(&buffer);
    hasher.finalize()
}

fn hash_all(tokens: &blake3::Hash, len: usize, end: &[TokenId]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("constrain vocabulary, version 1");
    hasher.update(tokens.as_bytes());
    hasher.update(&(len as u64).to_le_bytes());
    for id in end {
        hasher.update(&id.to_le_bytes());
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Token {
        Token::Text(bytes.into())
    }

    fn special(name: &str) -> Token {
        Token::Special(name.into())
    }

    fn toy() -> Vocabulary {
        let tokens = vec![text(b"a"), special("<s>"), text(b"a"), Token::Unused, special("</s>")];
        Vocabulary::new(tokens, vec![4]).unwrap()
    }

    fn message(tokens: Vec<Token>, end: Vec<TokenId>) -> String {
        let error = Vocabulary::new(tokens, end).unwrap_err();
        assert_eq!(error.kind(), &Kind::BadVocabulary);
        assert!(error.remedy().is_some(), "{error}");
        error.to_string()
    }

    #[test]
    fn tokens_by_id() {
        let toy = toy();
        assert_eq!(toy.len(), 5);
        assert_eq!(toy.bytes(2), Some(&b"a"[..]));
        assert_eq!([1, 3, 4, 5].map(|id| toy.bytes(id)), [None; 4]);
        assert_eq!(toy.token(3), Some(&Token::Unused));
        assert_eq!(toy.token(5), None);
        assert_eq!(toy.token(u32::MAX), None);
        assert_eq!(toy.text_tokens().collect::<Vec<_>>(), [(0, &b"a"[..]), (2, b"a")]);
    }

    #[test]
    fn specials_and_ends() {
        let tokens = vec![special("x"), special("x"), text(b"y"), text(b"z")];
        let vocabulary = Vocabulary::new(tokens, vec![2, 1, 2]).unwrap();
        assert_eq!(vocabulary.end_tokens(), [1, 2]);
        assert_eq!(vocabulary.special("x"), Some(0));
        // A text token that ends generation is no longer text.
        assert_eq!(vocabulary.token(2), Some(&special("y")));
        assert_eq!(vocabulary.trie().subtree_tokens(Trie::ROOT), [3]);
        assert!(vocabulary.is_special(2) && !vocabulary.is_special(3) && !vocabulary.is_special(9));
        assert!(vocabulary.is_end(1) && !vocabulary.is_end(0) && !vocabulary.is_end(9));
        assert_eq!(vocabulary.specials().collect::<Vec<_>>(), [("x", 0), ("x", 1), ("y", 2)]);
        assert_eq!(vocabulary.special("z"), None);
    }

    #[test]
    fn missing_bytes_are_those_without_a_token_of_their_own() {
        let mut tokens: Vec<Token> = (0..=255).filter(|&b| b != 200).map(|b| text(&[b])).collect();
        tokens.extend([text(&[200, 1]), special("</s>")]);
        let vocabulary = Vocabulary::new(tokens, vec![256]).unwrap();
        assert_eq!(*vocabulary.missing_bytes(), [0, 0, 0, 1 << (200 - 192)]);
        assert_eq!(*vocabulary.trie().bytes_below(Trie::ROOT), [u64::MAX; 4]);
    }

    #[test]
    fn refused() {
        let end = || special("</s>");
        assert!(message(vec![text(b"a")], vec![]).contains("no token ends generation"));
        assert!(message(vec![end()], vec![1]).contains("end token 1"));
        assert!(message(vec![end()], vec![u32::MAX]).contains("end token 4294967295"));
        assert!(message(vec![end(), Token::Unused], vec![1]).contains("end token 1"));
        assert!(message(vec![end(), text(b"")], vec![0]).contains("token 1 is empty"));
        let long = text(&vec![b'a'; MAX_TOKEN_BYTES + 1]);
        assert!(message(vec![end(), long.clone()], vec![0]).contains("65537 bytes"));
        // The longest token, often enough to be too much in all.
        let longest = text(&vec![b'a'; MAX_TOKEN_BYTES]);
        let mut many = vec![longest; MAX_TEXT_BYTES / MAX_TOKEN_BYTES];
        many.push(end());
        assert!(Vocabulary::new(many.clone(), vec![512]).is_ok());
        many.push(text(b"a"));
        assert!(message(many, vec![512]).contains("above the limit of 33554432"));
    }

    #[test]
    fn padding() {
        let toy = toy();
        let padded = toy.with_len(MAX_IDS).unwrap();
        assert_eq!(padded.len(), MAX_IDS);
        assert_eq!(padded.token(5), Some(&Token::Unused));
        assert_eq!(padded.token(MAX_IDS as TokenId), None);
        assert_eq!(padded.bytes(5), None);
        assert_ne!(padded.hash(), toy.hash());
        // Unused ids at the end are padding, however they came about.
        let tokens = (0..7).map(|id| toy.token(id).unwrap_or(&Token::Unused).clone()).collect();
        let direct = Vocabulary::new(tokens, vec![4]).unwrap();
        assert_eq!(direct.hash(), toy.with_len(7).unwrap().hash());
        assert_eq!(direct.with_len(5).unwrap().hash(), toy.hash());
        assert_eq!(toy.with_len(4).unwrap_err().kind(), &Kind::BadVocabulary);
        assert_eq!(toy.with_len(MAX_IDS + 1).unwrap_err().kind(), &Kind::BadVocabulary);
    }

    #[test]
    fn the_hash_tells_vocabularies_apart() {
        let make = |tokens: Vec<Token>, end| Vocabulary::new(tokens, end).unwrap().hash();
        let base = make(vec![special("e"), special("f"), text(b"ab"), text(b"c")], vec![0]);
        let others = [
            make(vec![special("e"), special("f"), text(b"ab"), text(b"c")], vec![1]),
            make(vec![special("e"), special("f"), text(b"ab"), text(b"c")], vec![0, 1]),
            make(vec![special("e"), special("f"), text(b"a"), text(b"bc")], vec![0]),
            make(vec![special("e"), special("f"), special("ab"), text(b"c")], vec![0]),
            make(vec![special("e"), special("f"), text(b"c"), text(b"ab")], vec![0]),
        ];
        assert!(others.iter().all(|other| *other != base));
        let again = make(vec![special("e"), special("f"), text(b"ab"), text(b"c")], vec![0]);
        assert_eq!(base, again);
    }

    #[test]
    fn derived_tables_are_made_once() {
        let toy = toy();
        assert_eq!(*toy.derived(|| 1_u8), 1);
        assert_eq!(*toy.clone().derived(|| 2_u8), 1);
        assert_eq!(*toy.with_len(6).unwrap().derived(|| 3_u8), 3);
    }

    #[test]
    fn debug_prints_sizes() {
        let shown = format!("{:?}", toy().with_len(100).unwrap());
        assert_eq!(
            shown,
            "Vocabulary { len: 100, end: [4], specials: 2, \
             trie: Trie { nodes: 2, tokens: 2, max_len: 1, .. }, .. }"
        );
    }
}
