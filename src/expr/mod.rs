//! Hash-consed regular expressions over code points, with intersection and complement.
use crate::error::Result;
use crate::limits::Fuel;

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
    Repeat { item: ExprId, min: u64, max: Option<u64> },
    /// What is left of one literal: `text[offset..]`.
    Literal { id: LiteralId, offset: u32 },
    /// Anything else.
    Other,
}

/// The arena.
#[derive(Debug, Clone, Default)]
pub struct Exprs {}

#[allow(unused_variables)]
impl Exprs {
    pub fn new() -> Self { todo!() }
    /// One code point out of `ranges` (any order, may overlap; surrogates are dropped).
    pub fn class(&mut self, ranges: &[(char, char)]) -> ExprId { todo!() }
    pub fn literal(&mut self, text: &str) -> ExprId { todo!() }
    /// Exactly these strings (duplicates allowed). A leaf, not an `or`: 100,000 strings are fine.
    pub fn literals(&mut self, texts: &[&str]) -> ExprId { todo!() }
    pub fn concat(&mut self, parts: &[ExprId]) -> ExprId { todo!() }
    pub fn or(&mut self, parts: &[ExprId]) -> ExprId { todo!() }
    pub fn and(&mut self, parts: &[ExprId]) -> ExprId { todo!() }
    pub fn not(&mut self, expr: ExprId) -> ExprId { todo!() }
    pub fn repeat(&mut self, item: ExprId, min: u64, max: Option<u64>) -> ExprId { todo!() }
    /// Whether the empty string matches. O(1).
    pub fn nullable(&self, expr: ExprId) -> bool { todo!() }
    pub fn view(&self, expr: ExprId) -> View { todo!() }
    pub fn literal_text(&self, id: LiteralId) -> &str { todo!() }
    /// Interns a literal string; the same text has the same id in this arena.
    pub fn literal_id(&mut self, text: &str) -> LiteralId { todo!() }
    /// All live code points with their derivatives: sorted, disjoint, adjacent runs with equal
    /// target merged; targets with an empty language are left out (exact emptiness).  Memoised.
    pub fn transitions(&mut self, expr: ExprId, fuel: &mut Fuel) -> Result<&[Transition]> { todo!() }
    /// Derivative by one code point; `NEVER` when dead (exact).
    pub fn derive(&mut self, expr: ExprId, c: char, fuel: &mut Fuel) -> Result<ExprId> { todo!() }
    /// Whether the language is empty. Exact; a search with fuel for `and`/`not`.
    pub fn is_never(&mut self, expr: ExprId, fuel: &mut Fuel) -> Result<bool> { todo!() }
    /// Whether `text` matches.
    pub fn matches(&mut self, expr: ExprId, text: &str, fuel: &mut Fuel) -> Result<bool> { todo!() }
    /// All strings if there are at most `limit`, in order; None if more (or infinite).
    pub fn enumerate(&mut self, expr: ExprId, limit: usize, fuel: &mut Fuel) -> Result<Option<Vec<String>>> { todo!() }
    /// Least and greatest length in code points (None = unbounded); None for NEVER.
    pub fn lengths(&mut self, expr: ExprId, fuel: &mut Fuel) -> Result<Option<(u64, Option<u64>)>> { todo!() }
}
