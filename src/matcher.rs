//! The state of one sequence under a constraint.
use crate::error::Result;
use crate::vocab::TokenId;

/// The set of allowed tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mask<'a> {
    /// The allowed ids, ascending, without duplicates.
    Sparse(&'a [TokenId]),
    /// One bit per id, least significant bit first, `len.div_ceil(32)` words.
    Dense(&'a [u32]),
}

impl Mask<'_> {
    /// Whether a token is allowed.
    pub fn contains(&self, token: TokenId) -> bool {
        match self {
            Mask::Sparse(ids) => ids.binary_search(&token).is_ok(),
            Mask::Dense(words) => words.get(token as usize / 32).is_some_and(|w| w >> (token % 32) & 1 == 1),
        }
    }
    /// Number of allowed tokens.
    pub fn count(&self) -> usize {
        match self {
            Mask::Sparse(ids) => ids.len(),
            Mask::Dense(words) => words.iter().map(|w| w.count_ones() as usize).sum(),
        }
    }
}

/// One sequence: small, forks by copying.
#[derive(Clone)]
pub struct Matcher {}

#[allow(unused_variables)]
impl Matcher {
    /// The tokens allowed next (end tokens exactly where the document may end).
    pub fn mask(&mut self) -> Result<Mask<'_>> { todo!() }
    /// The same as a bitmask of `Vocabulary::len().div_ceil(32)` words; extra words are zeroed.
    pub fn fill_bitmask(&mut self, words: &mut [u32]) -> Result<()> { todo!() }
    /// Advances by one token (end tokens included). On `Rejected` the state is unchanged.
    pub fn accept(&mut self, token: TokenId) -> Result<()> { todo!() }
    /// Advances by bytes, as one step for `rollback`. On `Rejected { Place::Offset }` unchanged.
    pub fn accept_bytes(&mut self, bytes: &[u8]) -> Result<()> { todo!() }
    /// Undoes the last `n` accepted steps.
    pub fn rollback(&mut self, n: usize) -> Result<()> { todo!() }
    /// A copy that goes its own way.
    pub fn fork(&self) -> Matcher { self.clone() }
    /// Back to the start.
    pub fn reset(&mut self) { todo!() }
    /// Whether an end token was accepted, or nothing but an end token may follow.
    pub fn is_complete(&self) -> bool { todo!() }
    /// Whether the output so far is a whole document.
    pub fn can_stop(&self) -> bool { todo!() }
    /// Steps accepted so far.
    pub fn len(&self) -> usize { todo!() }
    /// The longest run of bytes that must come next (empty if there is a choice or at the end).
    pub fn forced_bytes(&mut self) -> Vec<u8> { todo!() }
}
