//! Formats of short, closed grammars: UUIDs, JSON pointers, regular expressions.

use super::regex;
use crate::expr::{ExprId, Exprs};
use std::fmt::Write;

pub(super) const UUID: &str =
    "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}";

pub(super) const JSON_POINTER: &str = "(?s:/(?:[^~/]|~[01])*)*";

/// Groups of a regular expression that may be open at once.
const REGEX_DEPTH: usize = 4;

pub(super) fn relative_json_pointer(exprs: &mut Exprs) -> ExprId {
    regex(exprs, &format!("(?:0|[1-9][0-9]*)(?:#|{JSON_POINTER})"))
}

/// Regular expressions that are legal in ECMA-262 with the flag `u` and without.
///
/// ```text
/// regex(0)  = branches of terms without groups
/// regex(n)  = branches of terms, or of groups around regex(n - 1)
/// ```
///
/// Look-around holds no look-around and is in no group: a state then need not know in which order
/// groups and look-arounds are open.
pub(super) fn regex_format(exprs: &mut Exprs) -> ExprId {
    let quantifier = regex(exprs, &format!(r"(?:(?:[*+?]|\{{{}\}})\??)?", counts()));
    let assertion = regex(exprs, r"[$^]|\\[Bb]");
    let atom = regex(exprs, &atom());
    let group = exprs.literals(&["(", "(?:"]);
    let look_around = exprs.literals(&["(?=", "(?!", "(?<=", "(?<!"]);
    let (close, bar) = (exprs.literal(")"), exprs.literal("|"));
    let atom = exprs.concat(&[atom, quantifier]);
    let flat = exprs.or(&[assertion, atom]);
    let mut term = flat;
    let mut inner = ExprId::NEVER;
    for _ in 0..REGEX_DEPTH {
        inner = branches(exprs, term, bar);
        let group = exprs.concat(&[group, inner, close, quantifier]);
        term = exprs.or(&[flat, group]);
    }
    let look_around = exprs.concat(&[look_around, inner, close]);
    let term = exprs.or(&[term, look_around]);
    branches(exprs, term, bar)
}

/// Any number of branches of any number of terms.
fn branches(exprs: &mut Exprs, term: ExprId, bar: ExprId) -> ExprId {
    let branch = exprs.or(&[term, bar]);
    exprs.repeat(branch, 0, None)
}

/// One code point: itself, escaped, or a class.
fn atom() -> String {
    let escape =
        r"\\(?:[dDwWsSfnrtv]|[$^\\.*+?()\[\]{}|/]|c[A-Za-z]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})";
    let item = format!(r"(?s:[^\\\]\-^\[]|{escape})");
    let class = format!(r"\[\^?-?(?:{item}|{})*-?\]", ranges());
    format!(r"(?s:[^$^\\.*+?()\[\]{{}}|]|\.|{escape}|{class})")
}

/// Ranges of a class between ASCII digits or letters in their order, such as `a-f`.
fn ranges() -> String {
    let mut out = String::from("(?:");
    for (first, last) in [('0', '9'), ('A', 'Z'), ('a', 'z')] {
        for start in first..=last {
            let _ = write!(out, "{start}-[{start}-{last}]|");
        }
    }
    out.pop();
    out + ")"
}

/// What is in braces: `n`, `n,` and `n,m` where m has more digits than n, or one digit not below.
fn counts() -> String {
    let mut out = String::from("[0-9]{1,3},?|[0-9],[1-9][0-9]{1,2}|[1-9][0-9],[1-9][0-9]{2}");
    for start in 0..=9 {
        let _ = write!(out, "|{start},[{start}-9]");
    }
    format!("(?:{out})")
}
