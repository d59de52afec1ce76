//! Append-only tables that many threads read without a lock.
//!
//! Everything the engine learns (states, transitions, token tables) is a *function of its key*:
//! once known it never changes, so it needs no invalidation, only publication. Two structures
//! carry all of it:
//!
//! * [`Arena`]: values by consecutive index. A push publishes the value with one release store;
//!   a reader pays two acquire loads.
//! * [`ReadMap`]: `u64` keys to `u32` values, open addressing in segments that double. A reader
//!   probes without locks; writers are serialised by the caller's mutex.
//!
//! Worked example: a constraint's state 70 lives in chunk 1 of the arena (chunk 0 holds 64
//! slots, chunk 1 holds 128), slot 6. Its token table over the whole vocabulary is found under
//! the key `(root, 70)` of a [`ReadMap`], whose value is an index into an arena of tables.
//!
//! Invariant: writers hold the lock of the structure's owner; readers hold nothing. A reader may
//! miss an entry that is being inserted; it then takes the owner's lock and looks again.

// All interleavings of a few threads are tried on this file in fuzz/schedules.
#[cfg(loom)]
use super::sync::{AtomicU32, AtomicU64, OnceLock, Ordering};
#[cfg(not(loom))]
use std::sync::OnceLock;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Slots of the first chunk of an [`Arena`], as a power of two.
const FIRST_BITS: u32 = 6;

/// Values by consecutive index, readable without a lock while others push.
#[derive(Debug)]
pub struct Arena<T> {
    chunks: [OnceLock<Box<[OnceLock<T>]>>; 24],
    len: AtomicU32,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { chunks: std::array::from_fn(|_| OnceLock::new()), len: AtomicU32::new(0) }
    }
}

impl<T> Arena<T> {
    /// The chunk of an index, and the slot in it.
    #[inline]
    fn place(index: u32) -> (usize, usize) {
        let shifted = u64::from(index) + (1 << FIRST_BITS);
        let chunk = shifted.ilog2() - FIRST_BITS;
        (chunk as usize, (shifted - (1 << (chunk + FIRST_BITS))) as usize)
    }

    /// The value at an index, if it was pushed.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&T> {
        let (chunk, slot) = Self::place(index);
        self.chunks.get(chunk)?.get()?.get(slot)?.get()
    }

    /// Appends a value and returns its index. The caller holds the owner's lock.
    pub fn push(&self, value: T) -> u32 {
        let index = self.len.load(Ordering::Relaxed);
        let (chunk, slot) = Self::place(index);
        let slots = self.chunks[chunk].get_or_init(|| {
            (0..1usize << (chunk as u32 + FIRST_BITS)).map(|_| OnceLock::new()).collect()
        });
        let fresh = slots[slot].set(value).is_ok();
        debug_assert!(fresh, "two writers pushed at once");
        self.len.store(index + 1, Ordering::Release);
        index
    }

    /// Number of values.
    pub fn count(&self) -> u32 {
        self.len.load(Ordering::Acquire)
    }
}

/// `u64` keys to `u32` values; lookups take no lock.
#[derive(Debug)]
pub struct ReadMap {
    segments: [OnceLock<Box<[Slot]>>; 12],
    len: AtomicU32,
}

#[derive(Debug, Default)]
struct Slot {
    /// Key + 1; 0 while free. Stored last, with release.
    key: AtomicU64,
    value: AtomicU32,
}

impl Default for ReadMap {
    fn default() -> Self {
        Self { segments: std::array::from_fn(|_| OnceLock::new()), len: AtomicU32::new(0) }
    }
}

impl ReadMap {
    /// Slots of segment `i`: 64, 256, 1024, ...
    fn capacity(segment: usize) -> usize {
        64 << (2 * segment)
    }

    /// Where probing for `key` starts. Keys are pairs of dense ids in the two halves, so both halves
    /// must reach the bits that are used: multiply, fold, multiply, and take the highest ones.
    /// The engine gave out the ids itself: nobody can choose them to collide.
    #[inline]
    fn home(key: u64, capacity: usize) -> usize {
        let once = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let twice = (once ^ once >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        (twice >> (64 - capacity.trailing_zeros())) as usize
    }

    /// Number of keys.
    pub fn count(&self) -> u32 {
        self.len.load(Ordering::Relaxed)
    }

    /// The value under `key`.
    #[inline]
    pub fn get(&self, key: u64) -> Option<u32> {
        for segment in &self.segments {
            let slots = segment.get()?;
            let mut at = Self::home(key, slots.len());
            loop {
                match slots[at].key.load(Ordering::Acquire) {
                    0 => break,
                    found if found == key + 1 => {
                        return Some(slots[at].value.load(Ordering::Relaxed));
                    }
                    _ => at = (at + 1) & (slots.len() - 1),
                }
            }
        }
        None
    }

    /// Inserts a key that is not there yet. The caller holds the owner's lock.
    pub fn insert(&self, key: u64, value: u32) {
        let mut before = 0;
        let len = self.len.load(Ordering::Relaxed) as usize;
        for (i, segment) in self.segments.iter().enumerate() {
            // Half full at most, so that probing is short and always finds a free slot.
            before += Self::capacity(i) / 2;
            if len >= before && i + 1 < self.segments.len() {
                continue;
            }
            let slots =
                segment.get_or_init(|| (0..Self::capacity(i)).map(|_| Slot::default()).collect());
            let mut at = Self::home(key, slots.len());
            while slots[at].key.load(Ordering::Relaxed) != 0 {
                at = (at + 1) & (slots.len() - 1);
            }
            slots[at].value.store(value, Ordering::Relaxed);
            slots[at].key.store(key + 1, Ordering::Release);
            self.len.store(len as u32 + 1, Ordering::Relaxed);
            return;
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn arena_returns_what_was_pushed_across_chunks() {
        let arena = Arena::default();
        for i in 0..5_000u32 {
            assert_eq!(arena.push(i * 3), i);
        }
        assert!((0..5_000).all(|i| arena.get(i) == Some(&(i * 3))));
        assert_eq!(arena.get(5_000), None);
    }

    #[test]
    fn map_finds_every_key_and_nothing_else() {
        let map = ReadMap::default();
        for i in 0..20_000u64 {
            map.insert(i << 20 | 7, i as u32);
        }
        assert!((0..20_000u64).all(|i| map.get(i << 20 | 7) == Some(i as u32)));
        assert_eq!(map.get(8), None);
        assert_eq!(map.get(20_000 << 20 | 7), None);
    }

    #[test]
    fn pairs_of_ids_are_spread() {
        for (high, low) in
            [(1u64 << 32, 0), (1, 0), (1 << 32 | 1, 0), (1 << 32, 7 << 20), (1, 9 << 32)]
        {
            let homes: std::collections::HashSet<usize> =
                (0..512).map(|i| ReadMap::home(i * high + low, 1_024)).collect();
            // 512 balls in 1,024 bins at random fill some 400 of them.
            assert!(homes.len() > 350, "{} homes of {high:x} and {low:x}", homes.len());
        }
    }

    #[test]
    fn readers_see_only_whole_entries() {
        let (arena, map) = (Arena::<u64>::default(), ReadMap::default());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..10_000u64 {
                    let index = arena.push(i * i);
                    map.insert(i, index);
                }
            });
            for _ in 0..3 {
                scope.spawn(|| {
                    for i in 0..10_000u64 {
                        if let Some(index) = map.get(i) {
                            assert_eq!(arena.get(index), Some(&(i * i)));
                        }
                    }
                });
            }
        });
    }
}
