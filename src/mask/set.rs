//! Sets of tokens, short ones as lists and long ones as bitmasks.

use crate::vocab::TokenId;

/// Up to how many tokens a set is a list: setting that many bits costs about as much as
/// copying the bitmask of a vocabulary.
const SPARSE: usize = 512;

/// An immutable set of tokens.
#[derive(Debug, Clone)]
pub enum TokenSet {
    /// The ids, in any order (sorting them would be most of the work of making a set), some perhaps twice.
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
    pub fn new(ids: Vec<TokenId>, len: usize) -> Self {
        if ids.len() <= SPARSE {
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
        let mut count = 0;
        // Mostly the first words tell.
        let few = words.iter().filter(|word| **word != 0).all(|word| {
            count += word.count_ones() as usize;
            count <= SPARSE
        });
        if !few {
            return TokenSet::Dense(words);
        }
        TokenSet::Sparse(list(words.iter().copied()).into_boxed_slice())
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

    /// The tokens of all of `sets`, in a vocabulary of `len` ids.
    pub fn union(sets: &[&TokenSet], len: usize) -> Self {
        if let [one] = sets {
            return (*one).clone();
        }
        let sparse = |set: &&TokenSet| match set {
            TokenSet::Sparse(ids) => Some(ids.len()),
            TokenSet::Dense(_) => None,
        };
        let listed: Option<Vec<usize>> = sets.iter().map(sparse).collect();
        if listed.is_some_and(|listed| listed.iter().sum::<usize>() <= SPARSE) {
            return TokenSet::Sparse(sets.iter().flat_map(|set| set.ids()).collect());
        }
        let mut words = vec![0; len.div_ceil(32)].into_boxed_slice();
        for set in sets {
            match set {
                TokenSet::Sparse(ids) => {
                    ids.iter().for_each(|&id| words[id as usize / 32] |= 1 << (id % 32))
                }
                TokenSet::Dense(own) => {
                    words.iter_mut().zip(own).for_each(|(word, own)| *word |= own)
                }
            }
        }
        TokenSet::from_words(words)
    }

    /// Whether there is nothing in it. (Dense sets are never empty.)
    pub fn is_empty(&self) -> bool {
        matches!(self, TokenSet::Sparse(ids) if ids.is_empty())
    }

    /// Whether a token is in it.
    pub fn contains(&self, id: TokenId) -> bool {
        match self {
            TokenSet::Sparse(ids) => ids.contains(&id),
            TokenSet::Dense(words) => {
                words.get(id as usize / 32).is_some_and(|word| word >> (id % 32) & 1 == 1)
            }
        }
    }

    /// The ids, in any order, some perhaps twice.
    pub fn ids(&self) -> Vec<TokenId> {
        match self {
            TokenSet::Sparse(ids) => ids.to_vec(),
            TokenSet::Dense(words) => list(words.iter().copied()),
        }
    }

    /// The ids that are not in `other`, as [`TokenSet::ids`].
    pub fn difference(&self, other: &TokenSet) -> Vec<TokenId> {
        match (self, other) {
            (TokenSet::Dense(own), TokenSet::Dense(other)) => {
                list(own.iter().zip(other).map(|(own, other)| own & !other))
            }
            _ => self.ids().into_iter().filter(|&id| !other.contains(id)).collect(),
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

/// The positions of the bits that are set, ascending.
fn list(words: impl Iterator<Item = u32>) -> Vec<TokenId> {
    let mut ids = Vec::new();
    // Most words of a short set are empty.
    words.enumerate().filter(|(_, word)| *word != 0).for_each(|(at, word)| {
        ids.extend(bits(at, word));
    });
    ids
}

/// The same of word number `at`.
pub(super) fn bits(at: usize, mut word: u32) -> impl Iterator<Item = TokenId> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| (at * 32) as TokenId + word.trailing_zeros());
        word &= word.wrapping_sub(1);
        bit
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unions() {
        let set = |ids: std::ops::Range<u32>| TokenSet::new(ids.collect(), 2_000);
        let wide = set(100..1_500);
        for sets in [
            vec![],
            vec![set(3..9)],
            vec![set(0..40), set(50..60), set(7..8)],
            vec![set(0..400), set(500..900)],
            vec![set(1_600..1_602), wide.clone(), set(0..3)],
            vec![wide],
        ] {
            let union = TokenSet::union(&sets.iter().collect::<Vec<_>>(), 2_000);
            let has = |id| sets.iter().any(|set| set.contains(id));
            assert!((0..2_000).all(|id| union.contains(id) == has(id)), "{sets:?}");
        }
    }
}
