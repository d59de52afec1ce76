//! Interning: equal values get equal small ids, and live next to each other in one vector.
//!
//! Everything is plain vectors and tables of `u32`, so cloning an arena is a few `memcpy`s.
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hash};

/// An id from a vector index. Vectors here are bounded by the expression limit, far below
/// `u32::MAX`; saturating keeps an impossible overflow from wrapping into a wrong id.
pub(super) fn id(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Interned values of a fixed size.
#[derive(Debug, Clone)]
pub(super) struct Values<T> {
    values: Vec<T>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl<T> Default for Values<T> {
    fn default() -> Self {
        Self { values: Vec::new(), table: HashTable::new(), hasher: DefaultHashBuilder::default() }
    }
}

impl<T: Copy + Eq + Hash> Values<T> {
    /// The id of `value` if it was interned.
    pub(super) fn find(&self, value: T) -> Option<u32> {
        let hash = self.hasher.hash_one(value);
        self.table.find(hash, |&i| self.values[i as usize] == value).copied()
    }

    /// Adds a `value` that [`Values::find`] did not find.
    pub(super) fn insert(&mut self, value: T) -> u32 {
        let hash = self.hasher.hash_one(value);
        let new = id(self.values.len());
        self.values.push(value);
        let (values, hasher) = (&self.values, &self.hasher);
        self.table.insert_unique(hash, new, |&i| hasher.hash_one(values[i as usize]));
        new
    }

    pub(super) fn get(&self, id: u32) -> T {
        self.values[id as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }
}

/// Interned slices, all in one pool.
#[derive(Debug, Clone)]
pub(super) struct Slices<T> {
    pool: Vec<T>,
    /// Slice `i` is `pool[ends[i - 1]..ends[i]]`.
    ends: Vec<u32>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl<T> Default for Slices<T> {
    fn default() -> Self {
        Self {
            pool: Vec::new(),
            ends: Vec::new(),
            table: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

/// Slice `id` of `pool`, see [`Slices::ends`].
fn slice<'a, T>(pool: &'a [T], ends: &[u32], id: u32) -> &'a [T] {
    let end = ends[id as usize] as usize;
    let start = if id == 0 { 0 } else { ends[id as usize - 1] as usize };
    &pool[start..end]
}

impl<T: Copy + Eq + Hash> Slices<T> {
    /// The id of `items` if they were interned.
    pub(super) fn find(&self, items: &[T]) -> Option<u32> {
        let hash = self.hasher.hash_one(items);
        self.table.find(hash, |&i| slice(&self.pool, &self.ends, i) == items).copied()
    }

    /// The id of `items`, interned if new.
    pub(super) fn intern(&mut self, items: &[T]) -> u32 {
        if let Some(found) = self.find(items) {
            return found;
        }
        let hash = self.hasher.hash_one(items);
        let (pool, ends, hasher) = (&self.pool, &self.ends, &self.hasher);
        let new = id(self.ends.len());
        self.table.insert_unique(hash, new, |&i| hasher.hash_one(slice(pool, ends, i)));
        self.pool.extend_from_slice(items);
        self.ends.push(id(self.pool.len()));
        new
    }

    pub(super) fn get(&self, id: u32) -> &[T] {
        slice(&self.pool, &self.ends, id)
    }

    /// How many items all slices have together.
    pub(super) fn pool_len(&self) -> usize {
        self.pool.len()
    }
}

/// Interned strings, with their length in code points.
#[derive(Debug, Clone, Default)]
pub(super) struct Texts {
    pool: String,
    ends: Vec<usize>,
    chars: Vec<u32>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// Text `id` of `pool`.
fn text<'a>(pool: &'a str, ends: &[usize], id: u32) -> &'a str {
    let start = if id == 0 { 0 } else { ends[id as usize - 1] };
    &pool[start..ends[id as usize]]
}

impl Texts {
    /// The id of `value` if it was interned.
    pub(super) fn find(&self, value: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(value);
        self.table.find(hash, |&i| text(&self.pool, &self.ends, i) == value).copied()
    }

    /// Adds a `value` that [`Texts::find`] did not find.
    pub(super) fn insert(&mut self, value: &str) -> u32 {
        let hash = self.hasher.hash_one(value);
        let (pool, ends, hasher) = (&self.pool, &self.ends, &self.hasher);
        let new = id(self.ends.len());
        self.table.insert_unique(hash, new, |&i| hasher.hash_one(text(pool, ends, i)));
        self.pool.push_str(value);
        self.ends.push(self.pool.len());
        self.chars.push(id(value.chars().count()));
        new
    }

    pub(super) fn get(&self, id: u32) -> &str {
        text(&self.pool, &self.ends, id)
    }

    /// How many bytes all texts have together.
    pub(super) fn pool_len(&self) -> usize {
        self.pool.len()
    }

    /// Length of a text in code points.
    pub(super) fn chars(&self, id: u32) -> u32 {
        self.chars[id as usize]
    }
}
