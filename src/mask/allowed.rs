//! What a configuration allows, as an immutable value that is cheap to write out.
//!
//! Short sets are united once, into one ascending list; wide sets are shared with the token
//! tables and united when a bitmask is asked for. So the mask inside a string is one copied
//! bitmask and some bits set, and a mask of few tokens is the list itself.
//!
//! Worked example: inside a string that may go on, the table of *any string* is wide and shared;
//! the tokens that close the string and go on (`",`, `"}`) are in the list.
//!
//! Invariant: every id is below the vocabulary's length. Cost of [`Allowed::fill`]: one pass over
//! the bitmask per wide set (or to clear it), one bit per listed token.

use super::set::TokenSet;
use super::tables::{TableId, Tables};
use crate::vocab::TokenId;

/// Most tokens of a mask that is given as a list.
const LISTED: usize = 2_048;

/// The tokens that may come next.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    /// Ids, ascending and distinct.
    tokens: Box<[TokenId]>,
    /// Sets to be united with them.
    wide: Box<[Wide]>,
}

/// A set too large for a list.
#[derive(Debug, Clone)]
enum Wide {
    /// The inside of a token table.
    Table(TableId),
    /// A set of special tokens, by index.
    Special(u32),
    /// Bits of this configuration alone.
    Own(Box<[u32]>),
}

/// An [`Allowed`] being collected.
#[derive(Debug, Clone, Default)]
pub struct Parts {
    /// Tables whose insides are allowed.
    pub tables: Vec<TableId>,
    /// Single tokens, in any order.
    pub tokens: Vec<TokenId>,
    /// Sets of special tokens, by index.
    pub specials: Vec<u32>,
    /// Bits of more tokens, one per id of the vocabulary; empty if there are none.
    pub words: Vec<u32>,
}

impl Parts {
    /// The union; what was collected is taken out.
    pub fn finish(&mut self, tables: &Tables, specials: &[TokenSet]) -> Allowed {
        let mut wide = Vec::new();
        if !self.words.is_empty() {
            wide.push(Wide::Own(std::mem::take(&mut self.words).into_boxed_slice()));
        }
        for id in self.tables.drain(..) {
            match &tables.get(id).inside {
                TokenSet::Sparse(ids) => self.tokens.extend_from_slice(ids),
                TokenSet::Dense(_) => wide.push(Wide::Table(id)),
            }
        }
        for index in self.specials.drain(..) {
            match &specials[index as usize] {
                TokenSet::Sparse(ids) => self.tokens.extend_from_slice(ids),
                TokenSet::Dense(_) => wide.push(Wide::Special(index)),
            }
        }
        self.tokens.sort_unstable();
        self.tokens.dedup();
        if self.tokens.len() > LISTED {
            let mut words = vec![0; tables.vocabulary().len().div_ceil(32)].into_boxed_slice();
            set_bits(&self.tokens, &mut words);
            wide.push(Wide::Own(words));
            self.tokens.clear();
        }
        let allowed =
            Allowed { tokens: self.tokens.as_slice().into(), wide: wide.into_boxed_slice() };
        self.tokens.clear();
        allowed
    }
}

impl Allowed {
    /// The ids, ascending, if they are few enough for a list.
    #[inline]
    pub fn list(&self) -> Option<&[TokenId]> {
        self.wide.is_empty().then_some(&self.tokens)
    }

    /// Writes one bit per id of the vocabulary; what is beyond is zeroed.
    pub fn fill(&self, tables: &Tables, specials: &[TokenSet], words: &mut [u32]) {
        let bits = |wide| match wide {
            &Wide::Table(id) => tables.get(id).inside.words(),
            &Wide::Special(index) => specials[index as usize].words(),
            Wide::Own(words) => words,
        };
        match self.wide.split_first() {
            None => words.fill(0),
            Some((first, rest)) => {
                let first = bits(first);
                words[..first.len()].copy_from_slice(first);
                words[first.len()..].fill(0);
                for set in rest {
                    words.iter_mut().zip(bits(set)).for_each(|(word, own)| *word |= own);
                }
            }
        }
        set_bits(&self.tokens, words);
    }

    /// Bytes of memory of its own.
    pub fn bytes(&self) -> usize {
        let own = |wide: &Wide| match wide {
            Wide::Own(words) => words.len() * 4,
            _ => 0,
        };
        let wide: usize = self.wide.iter().map(own).sum();
        self.tokens.len() * 4 + self.wide.len() * size_of::<Wide>() + wide
    }
}

fn set_bits(tokens: &[TokenId], words: &mut [u32]) {
    for &id in tokens {
        words[id as usize / 32] |= 1 << (id % 32);
    }
}
