//! What a configuration allows, as an immutable value that is cheap to write out.
//!
//! Short sets are put into one list, which is sorted when somebody asks for a list; wide sets are
//! shared with the token tables and united when a bitmask is asked for. So the mask inside a string is
//! one copied bitmask and some bits set, and a mask of few tokens is the list itself.
//!
//! Worked example: inside a string that may go on, the table of *any string* is wide and shared;
//! the tokens that close the string and go on (`",`, `"}`) are in the list. Where there are several wide
//! sets, or a long list, their union is made once for all masks of the same tables (`Mixtures`): in the vocabulary if all
//! that counts is the vocabulary's, else in the constraint.
//!
//! Invariant: every id is below the vocabulary's length. Cost of [`Allowed::fill`]: one pass over
//! the bitmask per wide set (or to clear it), one word for each in which a union differs from the bitmask that it
//! shares, one bit per listed token.

use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;

use super::set::TokenSet;
use super::tables::{TableId, Tables};
use crate::vocab::TokenId;

/// Most tokens of a mask that is given as a list: writing that many bits takes longer than copying
/// the bitmask of a vocabulary.
const LISTED: usize = 1_024;

/// Most tokens that are listed beside a wide set in a mask that is kept; with more, both are united once.
const BESIDE: usize = 128;

/// In how many words a union may differ from another's bitmask that it shares.
const OTHERS: usize = 128;

/// Bytes of unions of a vocabulary at which no more are added.
const UNIVERSAL: usize = 4 << 20;

/// How many bitmasks are tried.
const TRIED: usize = 8;

/// The tokens that may come next.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    /// Ids, in any order, some perhaps twice.
    tokens: Box<[TokenId]>,
    /// A union to be united with them.
    mixture: Option<Arc<Mixture>>,
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
}

/// Unions of tables. In grammars of text many configurations allow the tokens of the same few tables:
/// their union is made once. Many unions differ in a few hundred tokens: then they share a bitmask, so that fewer of
/// them go through the caches of the processor.
#[derive(Debug, Clone, Default)]
pub struct Mixtures {
    known: HashMap<Vec<TableId>, Arc<Mixture>>,
    /// The bitmasks, the latest last.
    bases: Vec<Arc<[u32]>>,
    /// The union being made.
    words: Vec<u32>,
    /// Bytes of memory, about.
    bytes: usize,
}

/// A bitmask of which a few words are others.
#[derive(Debug)]
struct Mixture {
    base: Arc<[u32]>,
    /// Indices, ascending, and words.
    others: Box<[(u32, u32)]>,
}

impl Mixtures {
    /// Bytes of memory, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the union of `ids` is known, or there is room for it below `limit` bytes.
    fn has_room(&self, ids: &[TableId], limit: usize) -> bool {
        self.bytes < limit || self.known.contains_key(ids)
    }

    /// The tokens of all of `ids`, which ascend.
    fn get(&mut self, tables: &Tables, ids: &[TableId]) -> Arc<Mixture> {
        let Self { known, bases, words, bytes } = self;
        let made = || {
            let mut parts = Parts { tables: ids.to_vec(), ..Parts::default() };
            words.resize(tables.vocabulary().len().div_ceil(32), 0);
            parts.finish(tables, &[], None).fill(tables, &[], words);
            let mixture = Mixture::near(bases, words).unwrap_or_else(|| {
                let base: Arc<[u32]> = words.as_slice().into();
                *bytes += base.len() * 4;
                bases.push(Arc::clone(&base));
                Mixture { base, others: Box::default() }
            });
            *bytes += ids.len() * 4 + mixture.others.len() * 8 + 128;
            Arc::new(mixture)
        };
        Arc::clone(known.entry_ref(ids).or_insert_with(made))
    }
}

impl Mixture {
    /// A set as the nearest of the latest bitmasks, if it differs from it in few words.
    fn near(bases: &[Arc<[u32]>], words: &[u32]) -> Option<Self> {
        let (mut nearest, mut others, mut tried) = (None, Vec::new(), Vec::new());
        for base in bases.iter().rev().take(TRIED) {
            let most = nearest.map_or(OTHERS + 1, |_| others.len());
            if differ(words, base, most, &mut tried) {
                nearest = Some(base);
                std::mem::swap(&mut others, &mut tried);
            }
        }
        Some(Self { base: Arc::clone(nearest?), others: others.into_boxed_slice() })
    }

    /// Makes `words` this set.
    fn fill(&self, words: &mut [u32]) {
        words[..self.base.len()].copy_from_slice(&self.base);
        words[self.base.len()..].fill(0);
        for &(at, word) in &self.others {
            words[at as usize] = word;
        }
    }
}

/// Makes `others` the words of a set, by their indices, that another one of the same vocabulary does not have;
/// says whether they are fewer than `most`.
fn differ(words: &[u32], base: &[u32], most: usize, others: &mut Vec<(u32, u32)>) -> bool {
    /// Most blocks are equal; or the sets are far from each other, and the first blocks tell.
    const BLOCK: usize = 16;
    others.clear();
    let blocks = words.chunks(BLOCK).zip(base.chunks(BLOCK)).zip((0..).step_by(BLOCK));
    for ((words, base), start) in blocks.filter(|((words, base), _)| words != base) {
        let pairs = words.iter().zip(base).zip(start..);
        let unequal = pairs.filter(|((word, base), _)| word != base);
        others.extend(unequal.map(|((&word, _), at)| (at, word)));
        if others.len() >= most {
            return false;
        }
    }
    others.len() < most
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
        let (mut wide, mut mixture): (Vec<Wide>, _) = (Vec::new(), None);
        let loose = self.tokens.len();
        let mut ids = std::mem::take(&mut self.tables);
        for &id in &ids {
            self.add_table(tables, id, &mut wide);
        }
        if let Some(mixtures) = mixtures.filter(|_| self.is_long(loose, &wide)) {
            wide.clear();
            self.tokens.truncate(loose);
            mixture = Some(self.unite_tables(tables, &mut ids, mixtures, &mut wide));
        }
        ids.clear();
        self.tables = ids;
        if !self.words.is_empty() {
            wide.push(Wide::Own(std::mem::take(&mut self.words).into_boxed_slice()));
        }
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
        let allowed = Allowed { tokens, mixture, wide, list: OnceLock::new() };
        self.tokens.clear();
        allowed
    }

    /// Whether so much was added to `loose` tokens that it is better united once.
    fn is_long(&self, loose: usize, wide: &[Wide]) -> bool {
        // Beside a wide set no list is asked for: then writing the bits is all that counts.
        let most = if wide.is_empty() { LISTED } else { BESIDE };
        wide.len() > 1 || self.tokens.len() - loose > most
    }

    /// Several tables as one union; what is not in it is added. The universal ones come together under any grammar:
    /// their union is the vocabulary's, if the others are little beside it.
    fn unite_tables(
        &mut self,
        tables: &Tables,
        ids: &mut Vec<TableId>,
        own: &mut Mixtures,
        wide: &mut Vec<Wide>,
    ) -> Arc<Mixture> {
        ids.sort_unstable();
        ids.dedup();
        let loose = self.tokens.len();
        let (universal, local) = ids.split_at(ids.partition_point(|id| !id.is_local()));
        local.iter().for_each(|&id| self.add_table(tables, id, wide));
        if !universal.is_empty() && wide.is_empty() && self.tokens.len() - loose <= BESIDE {
            let mut mixtures = tables.universal_mixtures();
            if mixtures.has_room(universal, UNIVERSAL) {
                return mixtures.get(tables, universal);
            }
        }
        wide.clear();
        self.tokens.truncate(loose);
        own.get(tables, ids)
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
        self.tokens.is_empty() && self.mixture.is_none() && self.wide.is_empty()
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
        let listed = self.mixture.is_none() && self.wide.is_empty();
        listed.then(|| &**self.list.get_or_init(sorted))
    }

    /// Writes one bit per id of the vocabulary; what is beyond is zeroed.
    pub fn fill(&self, tables: &Tables, specials: &[TokenSet], words: &mut [u32]) {
        self.mixture.iter().for_each(|mixture| mixture.fill(words));
        if !unite_all(&self.wide, (tables, specials), words, self.mixture.is_some()) {
            words.fill(0);
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
        // Twice, for the list.
        self.tokens.len() * 8 + self.wide.len() * size_of::<Wide>() + wide
    }
}

/// Makes `words` the union of some sets, of which they hold one already if `begun`; says whether there are any.
fn unite_all(
    wide: &[Wide],
    (tables, specials): (&Tables, &[TokenSet]),
    words: &mut [u32],
    begun: bool,
) -> bool {
    let mut first = !begun;
    for wide in wide {
        let (bits, without): (&[u32], &[TokenId]) = match wide {
            &Wide::Table(id) => (tables.get(id).inside.words(), &[]),
            &Wide::Shared(id) => match &tables.get(id).shared {
                Some(shared) => (tables.get(shared.table).inside.words(), &shared.without),
                None => (&[], &[]),
            },
            &Wide::Special(index) => (specials[index as usize].words(), &[]),
            Wide::Own(words) => (words, &[]),
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
    fn a_mixture_near_another_is_that_one_but_for_a_few_words() {
        let far: Vec<u32> = (0..4_000).map(|i| i ^ 0xff00).collect();
        let bases: Vec<Arc<[u32]>> = vec![vec![7; 4_000].into(), far.into()];
        let near = |words: &[u32]| {
            let found = Mixture::near(&bases, words)?;
            let at = bases.iter().position(|base| Arc::ptr_eq(base, &found.base))?;
            let mut filled = vec![1; words.len() + 2];
            found.fill(&mut filled);
            assert_eq!((&filled[..words.len()], &filled[words.len()..]), (words, &[0, 0][..]));
            Some((at, found.others.to_vec()))
        };
        assert_eq!(near(&bases[0]), Some((0, vec![])));
        let mut words = bases[1].to_vec();
        (words[0], words[3_999]) = (1, 2);
        assert_eq!(near(&words), Some((1, vec![(0, 1), (3_999, 2)])));
        // As many as may be others, and one more.
        words = bases[0].to_vec();
        words[100..100 + OTHERS].fill(0);
        assert_eq!(near(&words).map(|(at, others)| (at, others.len())), Some((0, OTHERS)));
        words[0] = 0;
        assert_eq!(near(&words), None);
    }

    #[test]
    fn the_nearest_of_several_bitmasks_is_shared() {
        let with = |others: std::ops::Range<usize>| {
            let mut words = vec![u32::MAX; 64];
            words[others].fill(0);
            words
        };
        let bases: Vec<Arc<[u32]>> = [0..3, 0..9, 0..6].map(|range| with(range).into()).into();
        let found = Mixture::near(&bases, &with(0..10)).map(|found| found.others.to_vec());
        assert_eq!(found, Some(vec![(9, 0)]));
    }
}
