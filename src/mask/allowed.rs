//! What a configuration allows, as an immutable value that is cheap to write out.
//!
//! Short sets are put into one list, which is sorted when somebody asks for a list; wide sets are
//! shared with the token tables and united when a bitmask is asked for. So the mask inside a string is
//! one copied bitmask and some bits set, and a mask of few tokens is the list itself.
//!
//! Worked example: inside a string that may go on, the table of *any string* is wide and shared;
//! the tokens that close the string and go on (`",`, `"}`) are in the list.
//!
//! Invariant: every id is below the vocabulary's length. Cost of [`Allowed::fill`]: one pass over
//! the bitmask per wide set (or to clear it), one bit per listed token.

use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;

use super::set::{TokenSet, bits};
use super::tables::{TableId, Tables};
use crate::vocab::TokenId;

/// Most tokens of a mask that is given as a list: writing that many bits takes longer than copying
/// the bitmask of a vocabulary.
const LISTED: usize = 1_024;

/// Most tokens that are listed beside a wide set in a mask that is kept; with more, both are united once.
const BESIDE: usize = 128;

/// The tokens that may come next.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    /// Ids, in any order, some perhaps twice.
    tokens: Box<[TokenId]>,
    /// Sets to be united with them.
    wide: Box<[Wide]>,
    /// If there are no wide sets and somebody asked: the ids, ascending.
    list: OnceLock<Box<[TokenId]>>,
}

/// A set too large for a list.
#[derive(Debug, Clone)]
enum Wide {
    /// The inside of a token table.
    Table(TableId),
    /// What a token table shares with another.
    Shared(TableId),
    /// A set of special tokens, by index.
    Special(u32),
    /// Bits of this configuration alone.
    Own(Box<[u32]>),
    /// Tokens of several tables, which configurations share, but a few.
    Mixture(Arc<[u32]>, Box<[TokenId]>),
}

/// Unions of tables. In grammars of text many configurations allow the tokens of the same few tables:
/// their union is made once. Many unions differ in a few tokens: then they share a bitmask, so that fewer of them go
/// through the caches of the processor.
#[derive(Debug, Clone, Default)]
pub struct Mixtures {
    known: HashMap<Vec<TableId>, Mixture>,
    /// The bitmasks, the latest last.
    bases: Vec<Arc<[u32]>>,
    /// Bytes of memory, about.
    bytes: usize,
}

/// A bitmask without a few tokens, and a few tokens beside it.
#[derive(Debug, Clone)]
struct Mixture {
    base: Arc<[u32]>,
    without: Box<[TokenId]>,
    more: Box<[TokenId]>,
}

impl Mixtures {
    /// Bytes of memory, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The tokens of all of `ids`.
    fn get(&mut self, tables: &Tables, ids: &mut Vec<TableId>) -> &Mixture {
        ids.sort_unstable();
        ids.dedup();
        let Self { known, bases, bytes } = self;
        known.entry_ref(&ids[..]).or_insert_with(|| {
            let mut parts = Parts { tables: ids.clone(), ..Parts::default() };
            let mut words = vec![0; tables.vocabulary().len().div_ceil(32)];
            parts.finish(tables, &[], None).fill(tables, &[], &mut words);
            let mixture = Mixture::near(bases, &words).unwrap_or_else(|| {
                let base: Arc<[u32]> = words.into();
                *bytes += base.len() * 4;
                bases.push(Arc::clone(&base));
                Mixture { base, without: Box::default(), more: Box::default() }
            });
            *bytes += (ids.len() + mixture.without.len() + mixture.more.len()) * 4 + 128;
            mixture
        })
    }
}

impl Mixture {
    /// A set as one of the latest bitmasks, if it differs from one in a few tokens only.
    fn near(bases: &[Arc<[u32]>], words: &[u32]) -> Option<Self> {
        /// How many are tried; mostly the first words tell that one is not near.
        const TRIED: usize = 16;
        let near = |base: &Arc<[u32]>| {
            let (mut without, mut more) = (Vec::new(), Vec::new());
            for (at, (&word, &base)) in words.iter().zip(base.iter()).enumerate() {
                if word != base {
                    without.extend(bits(at, base & !word));
                    more.extend(bits(at, word & !base));
                    if without.len() + more.len() > BESIDE {
                        return None;
                    }
                }
            }
            let (without, more) = (without.into_boxed_slice(), more.into_boxed_slice());
            Some(Self { base: Arc::clone(base), without, more })
        };
        bases.iter().rev().take(TRIED).find_map(near)
    }
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
    /// Whether nothing was collected.
    pub fn is_empty(&self) -> bool {
        let Self { tables, tokens, specials, words } = self;
        tables.is_empty() && tokens.is_empty() && specials.is_empty() && words.is_empty()
    }

    /// The union; what was collected is taken out. With `mixtures`, for a mask that is kept: several wide sets
    /// and long lists are united now, and not each time that it is written.
    pub fn finish(
        &mut self,
        tables: &Tables,
        specials: &[TokenSet],
        mixtures: Option<&mut Mixtures>,
    ) -> Allowed {
        let mut wide: Vec<Wide> = Vec::new();
        if !self.words.is_empty() {
            wide.push(Wide::Own(std::mem::take(&mut self.words).into_boxed_slice()));
        }
        let loose = self.tokens.len();
        let mut ids = std::mem::take(&mut self.tables);
        for &id in &ids {
            self.add_table(tables, id, &mut wide);
        }
        let listed = self.tokens.len() - loose;
        // Beside a wide set no list is asked for: then writing the bits is all that counts.
        let most = if wide.is_empty() { LISTED } else { BESIDE };
        if let Some(mixtures) = mixtures.filter(|_| wide.len() > 1 || listed > most) {
            self.tokens.truncate(loose);
            let mixture = mixtures.get(tables, &mut ids);
            wide = vec![Wide::Mixture(Arc::clone(&mixture.base), mixture.without.clone())];
            self.tokens.extend_from_slice(&mixture.more);
        }
        ids.clear();
        self.tables = ids;
        for index in self.specials.drain(..) {
            match &specials[index as usize] {
                TokenSet::Sparse(ids) => self.tokens.extend_from_slice(ids),
                TokenSet::Dense(_) => wide.push(Wide::Special(index)),
            }
        }
        if self.tokens.len() > LISTED {
            let mut words = vec![0; tables.vocabulary().len().div_ceil(32)].into_boxed_slice();
            set_bits(&self.tokens, &mut words);
            wide.push(Wide::Own(words));
            self.tokens.clear();
        }
        let (tokens, wide) = (self.tokens.as_slice().into(), wide.into_boxed_slice());
        let allowed = Allowed { tokens, wide, list: OnceLock::new() };
        self.tokens.clear();
        allowed
    }

    fn add_table(&mut self, tables: &Tables, id: TableId, wide: &mut Vec<Wide>) {
        let table = tables.get(id);
        match &table.inside {
            TokenSet::Sparse(ids) => self.tokens.extend_from_slice(ids),
            TokenSet::Dense(_) => wide.push(Wide::Table(id)),
        }
        let Some(shared) = &table.shared else { return };
        match &tables.get(shared.table).inside {
            TokenSet::Sparse(ids) => {
                let ids = ids.iter().filter(|id| shared.without.binary_search(id).is_err());
                self.tokens.extend(ids);
            }
            TokenSet::Dense(_) if !shared.without.is_empty() => wide.push(Wide::Shared(id)),
            // Many states share one table: once is enough.
            TokenSet::Dense(_) => {
                let same = |other: &Wide| matches!(other, Wide::Table(id) if *id == shared.table);
                if !wide.iter().any(same) {
                    wide.push(Wide::Table(shared.table));
                }
            }
        }
    }
}

impl Allowed {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.wide.is_empty()
    }

    /// The ids, ascending, if they are few enough for a list.
    #[inline]
    pub fn list(&self) -> Option<&[TokenId]> {
        let sorted = || {
            let mut tokens = self.tokens.to_vec();
            tokens.sort_unstable();
            tokens.dedup();
            tokens.into_boxed_slice()
        };
        self.wide.is_empty().then(|| &**self.list.get_or_init(sorted))
    }

    /// Writes one bit per id of the vocabulary; what is beyond is zeroed.
    pub fn fill(&self, tables: &Tables, specials: &[TokenSet], words: &mut [u32]) {
        if !unite_all(&self.wide, tables, specials, words) {
            words.fill(0);
        }
        set_bits(&self.tokens, words);
    }

    /// Bytes of memory of its own.
    pub fn bytes(&self) -> usize {
        let own = |wide: &Wide| match wide {
            Wide::Own(words) => words.len() * 4,
            Wide::Mixture(_, without) => without.len() * 4,
            _ => 0,
        };
        let wide: usize = self.wide.iter().map(own).sum();
        // Twice, for the list.
        self.tokens.len() * 8 + self.wide.len() * size_of::<Wide>() + wide
    }
}

/// Makes `words` the union of some sets; says whether there are any.
fn unite_all(wide: &[Wide], tables: &Tables, specials: &[TokenSet], words: &mut [u32]) -> bool {
    let mut first = true;
    for wide in wide {
        let (bits, without): (&[u32], &[TokenId]) = match wide {
            &Wide::Table(id) => (tables.get(id).inside.words(), &[]),
            &Wide::Shared(id) => match &tables.get(id).shared {
                Some(shared) => (tables.get(shared.table).inside.words(), &shared.without),
                None => (&[], &[]),
            },
            &Wide::Special(index) => (specials[index as usize].words(), &[]),
            Wide::Own(words) => (words, &[]),
            Wide::Mixture(words, without) => (words, without),
        };
        match std::mem::take(&mut first) {
            true => copy(bits, without, words),
            false => unite(bits, without, words),
        }
    }
    !first
}

/// Makes `words` the set `bits` without some tokens.
fn copy(bits: &[u32], without: &[TokenId], words: &mut [u32]) {
    words[..bits.len()].copy_from_slice(bits);
    words[bits.len()..].fill(0);
    for &id in without {
        words[id as usize / 32] &= !(1 << (id % 32));
    }
}

/// Adds the set `bits` without some tokens to `words`.
fn unite(bits: &[u32], without: &[TokenId], words: &mut [u32]) {
    let bit = |id: TokenId| (id as usize / 32, 1u32 << (id % 32));
    // Those that were there stay there.
    let absent = without.iter().map(|&id| bit(id)).filter(|&(word, bit)| words[word] & bit == 0);
    let absent: Vec<(usize, u32)> = absent.collect();
    words.iter_mut().zip(bits).for_each(|(word, own)| *word |= own);
    for (word, bit) in absent {
        words[word] &= !bit;
    }
}

fn set_bits(tokens: &[TokenId], words: &mut [u32]) {
    for &id in tokens {
        words[id as usize / 32] |= 1 << (id % 32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mixture_near_another_is_that_one_but_for_a_few_tokens() {
        let bases: Vec<Arc<[u32]>> =
            vec![[0xffff_ff00; 8].to_vec().into(), vec![0b1011, 0, 0, 0, 0, 0, 0, 1].into()];
        let near = |words: &[u32]| {
            let found = Mixture::near(&bases, words)?;
            let at = bases.iter().position(|base| Arc::ptr_eq(base, &found.base))?;
            Some((at, found.without.to_vec(), found.more.to_vec()))
        };
        assert_eq!(near(&bases[1]), Some((1, vec![], vec![])));
        let words = [0b1110, 0, 0, 1 << 31, 0, 0, 0, 0];
        assert_eq!(near(&words), Some((1, vec![0, 224], vec![2, 127])));
        let mut words = bases[0].to_vec();
        words[7] = u32::MAX;
        assert_eq!(near(&words), Some((0, vec![], (224..232).collect())));
        // As many as may stand beside it, and one more; the first is no nearer.
        let with = |last: u32| [u32::MAX, u32::MAX, u32::MAX, u32::MAX, last, 0, 0, 1];
        assert_eq!(near(&with(0b111)).map(|(at, _, more)| (at, more.len())), Some((1, BESIDE)));
        assert!(near(&with(0b1111)).is_none());
    }
}
