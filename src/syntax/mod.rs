//! Text grammars, regular expressions and lists of choices, as grammars for the machine.
//!
//! Every syntax has its own parser and nothing else of its own: all of them make the same *rules*,
//! which are then checked, brought into a form that the machine can run, and written out.
//!
//! ```text
//! scan     a cursor with line and column            groups   brackets, without recursion
//! gbnf     w3c     iso     lark                     the parsers
//! rules    names, and items: texts, sequences, alternatives, repetitions
//!   check      what is undefined, out of reach, or derives nothing
//!   fold       pieces without recursion become one expression
//!   nonempty   rules lose the empty string, their mentions become optional
//!   left       left recursion becomes repetition
//!   lower      rules become nodes
//! ```
//!
//! By hand, `S ::= S S | S "x" | "a" | ""`:
//!
//! ```text
//! nonempty   S = S S? | S | S "x" | "x" | "a"   and the start is S?
//! left       S = X (S' | S' S')* with S' = X    X = ("x" | "a") "x"*
//! simpler    S = X+
//! fold       (("x" | "a") "x"*)*                one expression: no rule is left
//! ```
//!
//! A grammar is read as what it is on paper, a set of strings: there is no lexer that takes the
//! longest match and no order among alternatives, so `/a+/ "ab"` matches `aab`.
//!
//! Invariants: nothing recurses on input-shaped data; children of items are older than parents,
//! so that most passes are loops; groups nest to 250 levels; every pass is paid from the fuel.
//! Cost: linear in the size of the grammar, but for rules that are left-recursive by way of each
//! other, where it is the cube of their number at worst.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::error::{Error, Kind, Result, quote};
use crate::expr::{ExprId, Exprs};
use crate::grammar::{Grammar, Node, NodeId, Terminal};
use crate::limits::{Fuel, Limits};
use crate::regex::{self, Flags};

mod check;
mod fold;
mod gbnf;
mod groups;
mod iso;
mod lark;
mod left;
mod lower;
mod nonempty;
mod order;
mod rules;
mod scan;
#[cfg(test)]
mod tests;
mod w3c;

/// How a grammar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Syntax {
    /// The grammars of llama.cpp.
    Gbnf,
    /// The EBNF of ISO 14977: `list = item , { "," , item } ;`.
    Ebnf,
    /// The EBNF of the W3C's standards: `List ::= Item ("," Item)*`.
    W3c,
    /// The grammars of Lark: `list: item ("," item)*`.
    Lark,
    /// One regular expression, which matches from start to end.
    Regex,
    /// One string per line; empty lines say nothing.
    Choice,
}

/// Names and endings of files.
const NAMES: [(&str, Syntax); 6] = [
    ("gbnf", Syntax::Gbnf),
    ("ebnf", Syntax::Ebnf),
    ("w3c", Syntax::W3c),
    ("lark", Syntax::Lark),
    ("regex", Syntax::Regex),
    ("choice", Syntax::Choice),
];

impl Syntax {
    /// The syntax that the ending of a file's name says: that of the names of [`FromStr`].
    pub fn from_path(path: &Path) -> Option<Self> {
        path.extension()?.to_str()?.parse().ok()
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, syntax)| *syntax == self).map_or("", |(name, _)| name)
    }
}

impl fmt::Display for Syntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Syntax {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, syntax)| *syntax).ok_or_else(|| {
            Error::new(Kind::BadArgument, format!("there is no syntax {}", quote(name)))
                .help("use gbnf, ebnf, w3c, lark, regex or choice")
        })
    }
}

/// Adds the JSON texts of a schema, given as text, to a grammar: for schemas inside grammars.
pub type JsonNode<'a> = &'a dyn Fn(Grammar, &str) -> Result<(Grammar, NodeId)>;

/// The grammar that `text` describes. The start is the rule `root`, else `start`, else the first.
///
/// `json` makes the nodes of the schemas inside; [`Grammar::from_text`] passes the compiler of JSON
/// Schema, which this module does not know.
///
/// # Errors
/// [`Kind::BadGrammar`] or [`Kind::BadRegex`] for a text that does not parse or refers to what
/// does not exist; [`Kind::Unsatisfiable`] for rules that derive nothing; [`Kind::Unsupported`]
/// for what this version does not enforce; [`Kind::TooLarge`], [`Kind::TooDeep`],
/// [`Kind::TooComplex`] beyond the limits. With line and column wherever there is one.
pub fn compile(text: &str, syntax: Syntax, limits: &Limits, json: JsonNode<'_>) -> Result<Grammar> {
    Ok(compile_into(Grammar::new(limits.clone()), text, syntax, json)?.0)
}

/// Adds what a text describes to a grammar that may have other nodes, and makes it the root.
/// Budgets are those of the grammar.
///
/// # Errors
/// As [`compile`].
pub fn compile_into(
    grammar: Grammar,
    text: &str,
    syntax: Syntax,
    json: JsonNode<'_>,
) -> Result<(Grammar, NodeId)> {
    let limit = grammar.limits.input_bytes;
    if text.len() > limit {
        let message = format!("a grammar of {} bytes, more than the {limit} allowed", text.len());
        let error = Error::new(Kind::TooLarge, message);
        return Err(error.help("shorten it, or raise Limits::input_bytes"));
    }
    // Editors put a byte order mark in front of a text, which is no part of it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let grammar = match syntax {
        Syntax::Regex => single(grammar, |exprs, limits, fuel| {
            anchored(exprs, text, Flags::default(), limits, fuel)
        }),
        Syntax::Choice => single(grammar, |exprs, _, _| choices(exprs, text)),
        Syntax::Gbnf => gbnf::parse(text, grammar)?.finish(),
        Syntax::Ebnf => iso::parse(text, grammar)?.finish(),
        Syntax::W3c => w3c::parse(text, grammar)?.finish(),
        Syntax::Lark => lark::parse(text, grammar, json)?.finish(),
    }?;
    let root = grammar.root();
    Ok((grammar, root))
}

/// The grammar of one expression.
fn single(
    mut grammar: Grammar,
    make: impl FnOnce(&mut Exprs, &Limits, &mut Fuel) -> Result<ExprId>,
) -> Result<Grammar> {
    let mut fuel = Fuel::new(grammar.limits.fuel);
    let expr = make(&mut grammar.exprs, &grammar.limits, &mut fuel)?;
    if grammar.exprs.is_never(expr, &mut fuel)? {
        return Err(Error::new(Kind::Unsatisfiable, "no text matches the regular expression"));
    }
    let root = grammar.add(Node::Terminal(Terminal::Text(expr)));
    grammar.set_root(root);
    Ok(grammar)
}

/// Each line a string.
fn choices(exprs: &mut Exprs, text: &str) -> Result<ExprId> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return Err(Error::new(Kind::BadGrammar, "a list of choices without a choice")
            .at_line(1, 1)
            .help("write one choice per line"));
    }
    Ok(exprs.literals(&lines))
}

/// The strings that a regular expression matches from start to end. The syntax is that of the
/// crate `regex`; an expression with look-around, which that has not, is read as ECMA-262.
fn anchored(
    exprs: &mut Exprs,
    pattern: &str,
    flags: Flags,
    limits: &Limits,
    fuel: &mut Fuel,
) -> Result<ExprId> {
    let looks = ["(?=", "(?!", "(?<=", "(?<!"];
    if !looks.iter().any(|look| pattern.contains(look)) {
        return regex::whole_with(exprs, pattern, flags, limits, fuel);
    }
    if flags.extended {
        let keyword = "the flag x with look-around".to_owned();
        let message = "look-around cannot be combined with the flag x";
        return Err(Error::new(Kind::Unsupported { keyword }, message));
    }
    let set = [(flags.ignore_case, 'i'), (flags.dot_all, 's'), (flags.multi_line, 'm')];
    let letters: String = set.iter().filter(|(on, _)| *on).map(|(_, letter)| letter).collect();
    // The anchors stand outside the flags: `m` must not change them.
    regex::pattern(exprs, &format!("^(?{letters}:{pattern})$"), limits, fuel)
}
