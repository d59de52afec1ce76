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

/// Where an interned value is, and its hash, so that a growing table neither looks at the values again nor
/// compares those that differ.
#[derive(Debug, Clone, Copy)]
struct Entry {
    hash: u32,
    id: u32,
}

impl Entry {
    /// The hash for the table, which takes bits from both ends of it.
    fn spread(hash: u32) -> u64 {
        u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// The entry of an equal value, if there is one.
    fn find(table: &HashTable<Self>, hash: u32, equal: impl Fn(u32) -> bool) -> Option<u32> {
        let same = |entry: &Self| entry.hash == hash && equal(entry.id);
        table.find(Self::spread(hash), same).map(|entry| entry.id)
    }

    fn insert(self, table: &mut HashTable<Self>) {
        table.insert_unique(Self::spread(self.hash), self, |entry| Self::spread(entry.hash));
    }
}

/// Interned values of a fixed size.
#[derive(Debug, Clone)]
pub(super) struct Values<T> {
    values: Vec<T>,
    table: HashTable<Entry>,
    hasher: DefaultHashBuilder,
}

impl<T> Default for Values<T> {
    fn default() -> Self {
        Self { values: Vec::new(), table: HashTable::new(), hasher: DefaultHashBuilder::default() }
    }
}

impl<T: Copy + Eq + Hash> Values<T> {
    /// The hash of `value`, for the other methods.
    pub(super) fn hash(&self, value: &T) -> u32 {
        self.hasher.hash_one(value) as u32
    }

    /// The id of `value` if it was interned.
    pub(super) fn find(&self, value: &T, hash: u32) -> Option<u32> {
        Entry::find(&self.table, hash, |id| self.values[id as usize] == *value)
    }

    /// Adds a `value` that [`Values::find`] did not find.
    pub(super) fn insert(&mut self, value: T, hash: u32) -> u32 {
        let new = id(self.values.len());
        self.values.push(value);
        Entry { hash, id: new }.insert(&mut self.table);
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
    table: HashTable<Entry>,
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
        self.find_hashed(items, self.hasher.hash_one(items) as u32)
    }

    fn find_hashed(&self, items: &[T], hash: u32) -> Option<u32> {
        Entry::find(&self.table, hash, |id| self.get(id) == items)
    }

    /// The id of `items`, interned if new.
    pub(super) fn intern(&mut self, items: &[T]) -> u32 {
        let hash = self.hasher.hash_one(items) as u32;
        if let Some(found) = self.find_hashed(items, hash) {
            return found;
        }
        let new = id(self.ends.len());
        Entry { hash, id: new }.insert(&mut self.table);
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
