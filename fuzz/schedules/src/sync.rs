//! What the tables import from `std::sync`, for loom to watch.

pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// A cell that is set once. Loom has none: the value is kept by the one of `std`, and whether it may be seen is a
/// flag that loom watches, stored with release and loaded with acquire, as `std` documents it.
#[derive(Debug)]
pub struct OnceLock<T> {
    value: std::sync::OnceLock<T>,
    set: AtomicBool,
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self { value: std::sync::OnceLock::new(), set: AtomicBool::new(false) }
    }
}

impl<T> OnceLock<T> {
    /// An empty cell.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value, if its setting is visible.
    pub fn get(&self) -> Option<&T> {
        self.set.load(Ordering::Acquire).then(|| self.value.get()).flatten()
    }

    /// Sets the value of an empty cell.
    pub fn set(&self, value: T) -> Result<(), T> {
        self.value.set(value)?;
        self.set.store(true, Ordering::Release);
        Ok(())
    }

    /// The value, made if there is none. Two that make one at once would wait for each other: here they hold a lock.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        let value = self.value.get_or_init(make);
        self.set.store(true, Ordering::Release);
        value
    }
}
