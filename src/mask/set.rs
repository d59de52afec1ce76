//! Sets of tokens, short ones as lists and long ones as bitmasks.

use crate::vocab::TokenId;

/// Up to how many tokens a set is a list: setting that many bits costs about as much as
/// copying the bitmask of a vocabulary.
const SPARSE: usize = 512;

/// An immutable set of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenSet {
    /// The ids, ascending.
    Sparse(Box<[TokenId]>),
    /// One bit per id, least significant bit first.
    Dense(Box<[u32]>),
}

impl Default for TokenSet {
    fn default() -> Self {
        TokenSet::Sparse(Box::default())
    }
}

impl TokenSet {
    /// The set of `ids` (any order, duplicates allowed) in a vocabulary of `len` ids.
    pub fn new(mut ids: Vec<TokenId>, len: usize) -> Self {
        if ids.len() <= SPARSE {
            ids.sort_unstable();
            ids.dedup();
            return TokenSet::Sparse(ids.into_boxed_slice());
        }
        let mut words = vec![0; len.div_ceil(32)].into_boxed_slice();
        for id in ids {
            words[id as usize / 32] |= 1 << (id % 32);
        }
        TokenSet::Dense(words)
    }

    /// The set with these bits, as a list if they are few.
    pub fn from_words(words: Box<[u32]>) -> Self {
        let count: usize = words.iter().map(|word| word.count_ones() as usize).sum();
        if count > SPARSE {
            return TokenSet::Dense(words);
        }
        let bits = |&word: &u32| (0..32).filter(move |bit| word >> bit & 1 == 1);
        let ids = words.iter().zip(0..).flat_map(|(word, i)| bits(word).map(move |b| i * 32 + b));
        TokenSet::Sparse(ids.collect())
    }

    /// The set without `ids`, which are ascending.
    pub fn without(&self, ids: &[TokenId]) -> Self {
        match self {
            TokenSet::Sparse(own) => {
                let left = own.iter().copied().filter(|id| ids.binary_search(id).is_err());
                TokenSet::Sparse(left.collect())
            }
            TokenSet::Dense(words) => {
                let mut words = words.clone();
                ids.iter().for_each(|&id| words[id as usize / 32] &= !(1 << (id % 32)));
                TokenSet::from_words(words)
            }
        }
    }

    /// Whether there is nothing in it. (Dense sets are never empty.)
    pub fn is_empty(&self) -> bool {
        matches!(self, TokenSet::Sparse(ids) if ids.is_empty())
    }

    /// Whether a token is in it.
    pub fn contains(&self, id: TokenId) -> bool {
        match self {
            TokenSet::Sparse(ids) => ids.binary_search(&id).is_ok(),
            TokenSet::Dense(words) => {
                words.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1)
            }
        }
    }

    /// The ids, ascending.
    pub fn ids(&self) -> Vec<TokenId> {
        match self {
            TokenSet::Sparse(ids) => ids.to_vec(),
            TokenSet::Dense(words) => {
                let all = 0..words.len() as TokenId * 32;
                all.filter(|&id| self.contains(id)).collect()
            }
        }
    }

    /// The bits of a set that is not a list; of one that is, none.
    pub fn words(&self) -> &[u32] {
        match self {
            TokenSet::Sparse(_) => &[],
            TokenSet::Dense(words) => words,
        }
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        match self {
            TokenSet::Sparse(ids) => ids.len() * 4,
            TokenSet::Dense(words) => words.len() * 4,
        }
    }
}
