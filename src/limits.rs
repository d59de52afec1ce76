//! Every budget in one place, and the fuel that counted work spends.
//!
//! Work that depends on untrusted input never asks a clock: it spends [`Fuel`], so that the same
//! input gives the same answer on every machine. [`Cancel`] is the one way to stop from outside.

use crate::error::{Error, Kind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Budgets for compiling and running. The defaults refuse 10 of 7,978 real schemas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a schema, grammar or regex text.
    pub input_bytes: usize,
    /// Nesting of a schema or grammar.
    pub depth: usize,
    /// Properties of all objects of a schema together.
    pub properties: usize,
    /// Entries of all `enum`s together.
    pub enum_entries: usize,
    /// Bytes of one `pattern`.
    pub pattern_bytes: usize,
    /// Nodes of a compiled grammar.
    pub nodes: usize,
    /// Expressions (derivatives included) of one grammar.
    pub expressions: usize,
    /// Units of work to compile one grammar, and one more for each byte of its text if that is not a schema.
    pub fuel: u64,
    /// Nesting of the output.
    pub output_depth: u8,
    /// Digits of one number of the output.
    pub number_digits: u32,
    /// Bytes of what a constraint remembers of its sequences, about; beyond it, it starts afresh,
    /// which is slower for a while and never wrong.
    pub cache_bytes: usize,
    /// Bytes of a document that values are pieces of.
    pub document_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            input_bytes: 1 << 20,
            depth: 128,
            properties: 20_000,
            enum_entries: 200_000,
            pattern_bytes: 8 << 10,
            nodes: 400_000,
            expressions: 1_000_000,
            fuel: 1_000_000,
            output_depth: 128,
            number_digits: 64,
            cache_bytes: 64 << 20,
            document_bytes: 2 << 20,
        }
    }
}

impl Limits {
    /// Tighter budgets for a service that takes schemas from strangers.
    pub fn service() -> Self {
        Self { input_bytes: 256 << 10, ..Self::default() }
    }
}

/// A flag that stops work from another thread: clone it, keep one end, call [`Cancel::cancel`].
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks the work that holds a clone of this flag to stop with [`Kind::Cancelled`].
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`Cancel::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counted work: a `&mut Fuel` goes into every loop whose length depends on untrusted input.
#[derive(Debug, Clone)]
pub struct Fuel {
    left: u64,
    limit: u64,
    cancel: Option<Cancel>,
}

impl Fuel {
    /// `limit` units, one unit being about 50 ns of work.
    pub fn new(limit: u64) -> Self {
        Self { left: limit, limit, cancel: None }
    }

    /// The same fuel that also fails once `cancel` is raised.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Units spent so far.
    pub fn spent(&self) -> u64 {
        self.limit - self.left
    }

    /// Spends `units`.
    ///
    /// # Errors
    /// [`Kind::TooComplex`] when the fuel is used up, [`Kind::Cancelled`] when cancelled.
    #[inline]
    pub fn spend(&mut self, units: u64) -> Result<()> {
        if self.left < units {
            self.left = 0;
            return Err(self.exhausted());
        }
        self.left -= units;
        match &self.cancel {
            Some(cancel) if cancel.is_cancelled() => {
                Err(Error::new(Kind::Cancelled, "the work was cancelled"))
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn exhausted(&self) -> Error {
        Error::new(
            Kind::TooComplex { what: "fuel", limit: self.limit },
            format!("compiling needs more than {} units of work", self.limit),
        )
        .help("simplify the schema, or raise Limits::fuel")
    }
}
