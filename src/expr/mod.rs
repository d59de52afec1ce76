//! Hash-consed regular expressions over code points, with intersection and complement.
//!
//! An expression stands for a set of strings. It lives in an arena, [`Exprs`], and is named by an
//! [`ExprId`]; building the same expression twice gives the same id. Building normalises:
//! `or(a, b)` is `or(b, a)`, `(x*)*` is `x*`, `.*.*` is `.*`, `not(not(x))` is `x`.
//!
//! The one operation that everything else is made of is the *derivative*: what may follow after
//! a code point. By hand, for `e = ab|a{2,3}`:
//!
//! ```text
//! e after a   =  b | a{1,2}        derivative of each part
//! ... after a =  a{0,1}            b has none; a{1,2} loses one of each count
//! ... after a =  ε                 matches the empty string: "aaa" is in e
//! ```
//!
//! An expression is a state of an automaton, its derivatives are the next states, and equal states
//! have equal ids: [`Exprs::transitions`] makes the automaton as far as it is visited. An
//! intersection takes the derivatives of its parts together, a complement complements them, so
//! that both cost nothing to build. What they do cost: the result may be empty without looking so.
//! `transitions` leaves out what is empty, after an exact search (`empty.rs`).
//!
//! # Invariants
//!
//! * Children are older than parents; ids 0 to 3 are the constants of [`ExprId`].
//! * Lists of `or` and `and` are flat, sorted and without duplicates; `or` holds no empty string
//!   (`X{0,1}` does), at most one class; `and` holds at most one complement and at most one
//!   repetition of a class.
//! * An expression without `and` and `not` that is not [`ExprId::NEVER`] matches something.
//! * A literal that was matched to its end keeps its id and is not [`ExprId::EPSILON`], so that a
//!   reader of a set of keys learns which one it read.
//! * Nothing here recurses: expressions can be nested as deeply as derivatives make them.
//!
//! # Cost
//!
//! A table costs about 2 ns per part and run of code points, 0.3 µs for itself and for each expression that it makes,
//! and 80 ns per part of those, once; fuel is spent in this proportion. Counts are numbers: `X{0,1000000}`
//! is as small as `X*`. A set of literals is a range of a sorted list, not a tree.
//!
//! ```
//! use constrain::expr::{ExprId, Exprs};
//! use constrain::limits::Fuel;
//!
//! let mut exprs = Exprs::new();
//! let mut fuel = Fuel::new(10_000);
//! let digit = exprs.class(&[('0', '9')]);
//! let digits = exprs.repeat(digit, 1, None);
//! let short = exprs.repeat(ExprId::ANY_CHAR, 0, Some(3));
//! let zero = exprs.literal("000");
//! let other = exprs.not(zero);
//! let expr = exprs.and(&[digits, short, other]);
//! assert!(exprs.matches(expr, "007", &mut fuel)?);
//! assert!(!exprs.matches(expr, "000", &mut fuel)?);
//! assert_eq!(exprs.lengths(expr, &mut fuel)?, Some((1, Some(3))));
//! # Ok::<(), constrain::Error>(())
//! ```
mod build;
mod choice;
mod class;
mod document;
mod empty;
mod intern;
mod length;
mod literal;
mod node;
mod reach;
mod save;
mod shape;
mod shortest;
mod span;
mod steady;
mod suffix;
mod table;
#[cfg(test)]
mod tests;
mod walk;

pub use document::{Document, Place};
pub use node::Exprs;
pub use reach::{Reach, TAKEN};
pub use shape::Shape;
pub use shortest::Shortest;
pub use span::Span;

/// Index of an expression in its [`Exprs`]. Equal ids mean equal (normalised) expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub(crate) u32);

impl ExprId {
    /// The empty language (same id in every arena).
    pub const NEVER: ExprId = ExprId(0);
    /// The empty string only.
    pub const EPSILON: ExprId = ExprId(1);
    /// Any one code point.
    pub const ANY_CHAR: ExprId = ExprId(2);
    /// Any string.
    pub const ANY: ExprId = ExprId(3);
}

/// Index of a literal string, see [`Exprs::literal_id`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LiteralId(pub(crate) u32);

/// A run of code points that lead to the same, non-empty, derivative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// First code point (inclusive). Surrogates never occur.
    pub first: u32,
    /// Last code point (inclusive).
    pub last: u32,
    /// The derivative; its language is not empty.
    pub target: ExprId,
}

/// What an expression is at its root, for those who need to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum View {
    /// A counted repetition `item{min,max}`.
    Repeat {
        /// What is repeated.
        item: ExprId,
        /// Least count.
        min: u64,
        /// Greatest count.
        max: Option<u64>,
    },
    /// What is left of one literal: `text[offset..]`.
    Literal {
        /// Which literal.
        id: LiteralId,
        /// Bytes read so far.
        offset: u32,
    },
    /// Anything else.
    Other,
}

/// Expressions that an arena holds if it is not told otherwise.
const DEFAULT_LIMIT: usize = 1_000_000;

impl Default for Exprs {
    fn default() -> Self {
        Self::with_limit(DEFAULT_LIMIT)
    }
}

impl Exprs {
    /// An arena with the four constants of [`ExprId`].
    pub fn new() -> Self {
        Self::default()
    }
}
