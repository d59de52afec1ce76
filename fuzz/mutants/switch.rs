//! What turns a mutant on: `MUTANT` has its number. The functions stand for operators. In a copy of the project this is
//! `src/mutants.rs`.
//!
//! With `MUTANTS_REACHED` in place of `MUTANT`, the numbers of the mutants that would have made a difference in their
//! places are appended to the file that it names, and none is on.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::ops::{Add, Sub};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

const UNKNOWN: u32 = u32::MAX;
const RECORDING: u32 = u32::MAX - 1;
static ACTIVE: AtomicU32 = AtomicU32::new(UNKNOWN);

/// Whether a mutant is on.
#[inline(always)]
pub(crate) fn on(number: u32) -> bool {
    active(number, || true)
}

#[inline(always)]
fn active(number: u32, differs: impl FnOnce() -> bool) -> bool {
    let active = ACTIVE.load(Relaxed);
    if active < RECORDING { active == number } else { rarely(number, differs()) }
}

#[cold]
#[inline(never)]
fn rarely(number: u32, differs: bool) -> bool {
    if ACTIVE.load(Relaxed) == UNKNOWN {
        let number = std::env::var("MUTANT").ok().and_then(|number| number.parse().ok());
        let recording = std::env::var_os("MUTANTS_REACHED").is_some();
        ACTIVE.store(if recording { RECORDING } else { number.unwrap_or(0) }, Relaxed);
    }
    let active = ACTIVE.load(Relaxed);
    if active == RECORDING && differs {
        record(number);
    }
    active == number
}

/// Allocates nothing: there are tests that count allocations.
fn record(number: u32) {
    static SEEN: [AtomicU64; 256] = [const { AtomicU64::new(0) }; 256];
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    let (word, bit) = (&SEEN[number as usize / 64], 1 << (number % 64));
    if word.load(Relaxed) & bit != 0 || word.fetch_or(bit, Relaxed) & bit != 0 {
        return;
    }
    let open = |path| OpenOptions::new().append(true).create(true).open(path).ok();
    let file = FILE.get_or_init(|| std::env::var_os("MUTANTS_REACHED").and_then(open));
    let mut line = [0; 12];
    let mut rest = &mut line[..];
    // One write for a line: several processes may write.
    if let (Ok(()), Some(mut file)) = (writeln!(rest, "{number}"), file.as_ref()) {
        let length = 12 - rest.len();
        drop(file.write_all(&line[..length]));
    }
}

#[inline(always)]
pub(crate) fn lt<T: PartialOrd + ?Sized>(number: u32, a: &T, b: &T) -> bool {
    if active(number, || a == b) { a <= b } else { a < b }
}

#[inline(always)]
pub(crate) fn le<T: PartialOrd + ?Sized>(number: u32, a: &T, b: &T) -> bool {
    if active(number, || a == b) { a < b } else { a <= b }
}

#[inline(always)]
pub(crate) fn gt<T: PartialOrd + ?Sized>(number: u32, a: &T, b: &T) -> bool {
    if active(number, || a == b) { a >= b } else { a > b }
}

#[inline(always)]
pub(crate) fn ge<T: PartialOrd + ?Sized>(number: u32, a: &T, b: &T) -> bool {
    if active(number, || a == b) { a > b } else { a >= b }
}

#[inline(always)]
pub(crate) fn eq<T: PartialEq + ?Sized>(number: u32, a: &T, b: &T) -> bool {
    on(number) ^ (a == b)
}

#[inline(always)]
pub(crate) fn ne<T: PartialEq + ?Sized>(number: u32, a: &T, b: &T) -> bool {
    on(number) ^ (a != b)
}

#[inline(always)]
pub(crate) fn add<T: Add<Output = T> + Sub<Output = T>>(number: u32, a: T, b: T) -> T {
    if on(number) { a - b } else { a + b }
}

#[inline(always)]
pub(crate) fn sub<T: Add<Output = T> + Sub<Output = T>>(number: u32, a: T, b: T) -> T {
    if on(number) { a + b } else { a - b }
}
