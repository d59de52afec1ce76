//! ECMA-262 patterns and plain regexes -> expressions. (Interface.)
use crate::error::Result;
use crate::expr::{ExprId, Exprs};
use crate::limits::{Fuel, Limits};

pub mod format;
pub use format::Format;

/// The strings in which an ECMA-262 `pattern` (with the `u` flag) finds a match: search semantics.
#[allow(unused_variables)]
pub fn pattern(exprs: &mut Exprs, pattern: &str, limits: &Limits, fuel: &mut Fuel) -> Result<ExprId> { todo!() }

/// The strings that a plain regex (syntax of the crate regex) matches as a whole.
#[allow(unused_variables)]
pub fn whole(exprs: &mut Exprs, pattern: &str, limits: &Limits, fuel: &mut Fuel) -> Result<ExprId> { todo!() }
