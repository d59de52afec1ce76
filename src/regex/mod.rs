//! Regular expressions as sets of strings: the patterns of JSON Schema, plain regexes, formats.
//!
//! A pattern goes through two steps: a parser ([`pattern`]: ECMA-262; [`whole`]: the syntax of the
//! crate `regex`) makes a syntax tree, and `compile.rs` makes an expression of it. By hand:
//!
//! ```text
//! ^a|b$     tree    alt(concat(behind(start), a), concat(b, ahead(end)))
//!           set     or(a·ANY, ANY·b)
//! ```
//!
//! All of it is exact: the expression matches the strings that an engine for ECMA-262 with the
//! flag `u` finds a match in, no more and no fewer. What cannot be expressed (back-references, a
//! few look-behinds) is refused by name. Case is ignored by simple case folding, as ECMA-262 does:
//! `(?i:k)` matches `K` and the Kelvin sign, `(?i:ß)` does not match `ss`.
//!
//! Invariants: no recursion on the nesting of the pattern beyond 250 levels; every loop over the
//! input is paid from the fuel.

use crate::error::{Error, Kind, Result};
use crate::expr::{ExprId, Exprs};
use crate::limits::{Fuel, Limits};

mod ast;
mod compile;
mod ecma;
pub mod format;
mod plain;
mod property;
#[cfg(test)]
mod tests;

pub use format::Format;

/// How a regular expression is read; nothing is set by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// `i`: letters match in either case.
    pub ignore_case: bool,
    /// `s`: a dot matches line breaks too.
    pub dot_all: bool,
    /// `m`: `^` and `$` match at line breaks too.
    pub multi_line: bool,
    /// `x`: white space and comments in the expression are ignored (plain regexes only).
    pub extended: bool,
}

/// The strings in which an ECMA-262 `pattern` (with the `u` flag) finds a match.
///
/// A match may be anywhere, so `foo` stands for all strings that contain it. A pattern which is
/// legal only without the `u` flag is read by the rules of ECMA-262 Annex B.
///
/// # Errors
/// [`Kind::BadRegex`] with the position, [`Kind::Unsupported`] for a back-reference,
/// [`Kind::TooLarge`], [`Kind::TooDeep`] and [`Kind::TooComplex`] beyond the limits.
pub fn pattern(
    exprs: &mut Exprs,
    pattern: &str,
    limits: &Limits,
    fuel: &mut Fuel,
) -> Result<ExprId> {
    check_size(pattern, limits)?;
    let (ast, root) = ecma::parse(pattern, Flags::default(), fuel)?;
    compile::search(exprs, &ast, root, fuel)
}

/// The strings that a plain regex (syntax of the crate `regex`) matches from start to end.
///
/// # Errors
/// As [`pattern`].
pub fn whole(exprs: &mut Exprs, pattern: &str, limits: &Limits, fuel: &mut Fuel) -> Result<ExprId> {
    whole_with(exprs, pattern, Flags::default(), limits, fuel)
}

/// [`whole`] with flags.
///
/// # Errors
/// As [`pattern`].
pub fn whole_with(
    exprs: &mut Exprs,
    pattern: &str,
    flags: Flags,
    limits: &Limits,
    fuel: &mut Fuel,
) -> Result<ExprId> {
    check_size(pattern, limits)?;
    let (ast, root) = plain::parse(pattern, flags, fuel)?;
    compile::whole(exprs, &ast, root, fuel)
}

fn check_size(pattern: &str, limits: &Limits) -> Result<()> {
    if pattern.len() <= limits.pattern_bytes {
        return Ok(());
    }
    let (size, limit) = (pattern.len(), limits.pattern_bytes);
    let message = format!("a regular expression of {size} bytes, more than the {limit} allowed");
    Err(Error::new(Kind::TooLarge, message).help("shorten it, or raise Limits::pattern_bytes"))
}
