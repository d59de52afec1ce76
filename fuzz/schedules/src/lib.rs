//! The append-only tables of `src/machine/concurrent.rs` under every interleaving of a few threads, and every
//! order in which their stores may become visible: [loom](https://docs.rs/loom) runs each closure once per schedule.
//!
//! ```sh
//! RUSTFLAGS='--cfg loom' cargo test --release --manifest-path fuzz/schedules/Cargo.toml
//! ```
//!
//! The source is that of the engine; only what it imports from `std::sync` comes from [`sync`] here.
//! Bounds: one or two writers with one or two entries each, one or two readers; also where the entry is the
//! first of a new chunk or segment.
#![cfg(loom)]

pub mod sync;

#[allow(dead_code, missing_docs, reason = "each test uses a part of it")]
#[path = "../../../src/machine/concurrent.rs"]
mod concurrent;

#[cfg(test)]
mod tests {
    use crate::concurrent::{Arena, ReadMap};
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    /// What the engine has: values, where they are by key, and the lock of those who add some.
    #[derive(Default)]
    struct Tables {
        arena: Arena<u64>,
        map: ReadMap,
        lock: Mutex<()>,
    }

    impl Tables {
        /// So many entries that are there before anything runs side by side: the key `k` has the value `10 k`.
        fn with(entries: u64) -> Arc<Self> {
            let tables = Self::default();
            (0..entries).for_each(|key| tables.add(key));
            Arc::new(tables)
        }

        fn add(&self, key: u64) {
            let index = self.arena.push(10 * key);
            self.map.insert(key, index);
        }

        /// As the engine does it: looks without the lock, then with it, then adds.
        fn find_or_add(&self, key: u64) -> u32 {
            if let Some(index) = self.map.get(key) {
                return index;
            }
            let _guard = self.lock.lock().unwrap();
            if self.map.get(key).is_none() {
                self.add(key);
            }
            self.map.get(key).unwrap()
        }

        /// A key that is found has its value; whether it is found.
        fn is_whole(&self, key: u64) -> bool {
            let found = self.map.get(key);
            found.inspect(|&index| assert_eq!(self.arena.get(index), Some(&(10 * key)))).is_some()
        }
    }

    fn model(run: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        // Tables that are filled before count as branches, too.
        builder.max_branches = 100_000;
        builder.check(run);
    }

    #[test]
    fn an_entry_is_there_whole_or_not_at_all() {
        model(|| {
            let tables = Tables::with(0);
            let writer = {
                let tables = Arc::clone(&tables);
                thread::spawn(move || (0..2).for_each(|key| tables.add(key)))
            };
            let reader = {
                let tables = Arc::clone(&tables);
                thread::spawn(move || {
                    // Once the later one is there, so is the one before it.
                    if tables.is_whole(1) {
                        assert!(tables.is_whole(0));
                    }
                    let count = tables.arena.count();
                    assert!((0..count).all(|index| tables.arena.get(index).is_some()));
                })
            };
            assert!(!tables.is_whole(2));
            writer.join().unwrap();
            reader.join().unwrap();
            assert!(tables.is_whole(0) && tables.is_whole(1));
        });
    }

    #[test]
    fn two_that_miss_an_entry_add_it_once() {
        model(|| {
            let tables = Tables::with(0);
            let others: Vec<_> = (0..2)
                .map(|_| {
                    let tables = Arc::clone(&tables);
                    thread::spawn(move || tables.find_or_add(7))
                })
                .collect();
            let found = others.into_iter().map(|other| other.join().unwrap());
            assert!(found.eq([0, 0]));
            assert_eq!((tables.arena.count(), tables.map.count()), (1, 1));
        });
    }

    /// 32 keys fill the first segment of a map, 64 values the first chunk of an arena.
    #[test]
    fn old_entries_stay_while_tables_grow() {
        for full in [32, 64] {
            model(move || {
                let tables = Tables::with(full);
                let writer = {
                    let tables = Arc::clone(&tables);
                    thread::spawn(move || tables.add(full))
                };
                assert!(tables.is_whole(0) && tables.is_whole(full - 1));
                tables.is_whole(full);
                assert!(!tables.is_whole(full + 1));
                writer.join().unwrap();
                assert!(tables.is_whole(full));
            });
        }
    }
}
