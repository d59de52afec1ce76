//! Parser of ECMA-262 regular expressions.
//!
//! A pattern is read with the grammar of the `u` flag. If that refuses it, it is read again with
//! the leniencies of ECMA-262 Annex B, as engines without the flag do: `a{`, `]`, `\-` and
//! `[\w-.]` then stand for themselves. What is legal under `u` keeps that meaning in the second
//! reading too (`\u{1F600}`, `\p{L}`, astral characters as one): a pattern does not mean something
//! else because of a needless backslash elsewhere. Escaped letters that other engines read as
//! anchors or classes (`\A`, `\Z`, `\z`, …) are refused in both readings rather than taken as the
//! letter, since whoever wrote them meant something else.
//!
//! The parser keeps open groups on a stack of its own, at most [`DEPTH`] of them.

mod class;
mod escape;

use super::Flags;
use super::ast::{Ast, Node, NodeId, class_of};
use super::property;
use crate::error::{Error, Kind, Result, quote};
use crate::limits::Fuel;
use hashbrown::HashMap;
use regex_syntax::hir::ClassUnicode;

/// Groups that may be open at once.
pub(super) const DEPTH: usize = 250;

/// Greatest count in braces.
const COUNT_MAX: u64 = u32::MAX as u64;

/// Parses `pattern`; see the module for what is legal.
pub(super) fn parse(pattern: &str, flags: Flags, fuel: &mut Fuel) -> Result<(Ast, NodeId)> {
    let chars: Vec<char> = pattern.chars().collect();
    fuel.spend(chars.len() as u64)?;
    let groups = count_groups(&chars);
    let mut first_reading = Parser::new(&chars, flags, groups, false);
    match first_reading.disjunction(fuel) {
        Ok(root) => Ok((first_reading.ast, root)),
        Err(error) if *error.kind() == Kind::BadRegex => {
            let mut lenient = Parser::new(&chars, flags, groups, true);
            let root = lenient.disjunction(fuel)?;
            Ok((lenient.ast, root))
        }
        Err(error) => Err(error),
    }
}

/// Capturing groups of a pattern: how many, and whether some have names.
#[derive(Debug, Clone, Copy, Default)]
struct Groups {
    count: u64,
    named: bool,
}

fn count_groups(chars: &[char]) -> Groups {
    let mut groups = Groups::default();
    let mut in_class = false;
    let mut at = 0;
    while let Some(c) = chars.get(at) {
        let named = chars[at..].starts_with(&['(', '?', '<'])
            && !matches!(chars.get(at + 3), Some('=' | '!'));
        match c {
            '\\' => at += 1,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class && (named || chars.get(at + 1) != Some(&'?')) => {
                groups.count += 1;
                groups.named |= named;
            }
            _ => {}
        }
        at += 1;
    }
    groups
}

/// What an open parenthesis is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Plain,
    LookAhead { negative: bool },
    LookBehind { negative: bool },
}

/// A group that is open.
#[derive(Debug)]
struct Open {
    group: Group,
    /// Branches before the last `|`.
    branches: Vec<NodeId>,
    /// Terms of the current branch.
    terms: Vec<NodeId>,
    /// Flags to restore at the end.
    outer: Flags,
}

/// What was just read, as far as a quantifier may follow.
enum Term {
    Quantifiable(NodeId),
    Assertion(NodeId),
}

struct Parser<'a> {
    ast: Ast,
    chars: &'a [char],
    at: usize,
    flags: Flags,
    groups: Groups,
    lenient: bool,
    stack: Vec<Open>,
    /// Properties that were looked up.
    properties: HashMap<String, ClassUnicode>,
    /// Work done since fuel was last spent.
    work: u64,
}

impl<'a> Parser<'a> {
    fn new(chars: &'a [char], flags: Flags, groups: Groups, lenient: bool) -> Self {
        let bottom = Open { group: Group::Plain, branches: vec![], terms: vec![], outer: flags };
        Self {
            ast: Ast::default(),
            chars,
            at: 0,
            flags,
            groups,
            lenient,
            stack: vec![bottom],
            properties: HashMap::new(),
            work: 0,
        }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }

    fn eat_text(&mut self, text: &str) -> bool {
        let rest = self.chars.get(self.at..).unwrap_or_default();
        let len = text.chars().count();
        let found = rest.len() >= len && text.chars().eq(rest[..len].iter().copied());
        self.at += if found { len } else { 0 };
        found
    }

    /// The whole pattern.
    fn disjunction(&mut self, fuel: &mut Fuel) -> Result<NodeId> {
        while let Some(c) = self.peek() {
            fuel.spend(1 + std::mem::take(&mut self.work))?;
            match c {
                '(' => self.open()?,
                ')' => self.close()?,
                '|' => {
                    self.at += 1;
                    self.end_branch();
                }
                _ => {
                    let term = self.term(c)?;
                    self.quantified(term)?;
                }
            }
        }
        self.end_branch();
        match self.stack.pop() {
            Some(open) if self.stack.is_empty() => Ok(self.ast.alt(open.branches)),
            _ => Err(self.bad("a group is not closed")),
        }
    }

    fn end_branch(&mut self) {
        if let Some(open) = self.stack.last_mut() {
            let terms = std::mem::take(&mut open.terms);
            let branch = self.ast.concat(terms);
            open.branches.push(branch);
        }
    }

    fn open(&mut self) -> Result<()> {
        if self.stack.len() > DEPTH {
            let text = format!("more than {DEPTH} nested groups in a regular expression");
            return Err(Error::new(Kind::TooDeep, text).help("nest fewer groups"));
        }
        self.at += 1;
        let outer = self.flags;
        let group = if self.eat('?') { self.group_kind()? } else { Group::Plain };
        self.stack.push(Open { group, branches: vec![], terms: vec![], outer });
        Ok(())
    }

    /// What follows `(?`.
    fn group_kind(&mut self) -> Result<Group> {
        for (text, group) in [
            (":", Group::Plain),
            ("=", Group::LookAhead { negative: false }),
            ("!", Group::LookAhead { negative: true }),
            ("<=", Group::LookBehind { negative: false }),
            ("<!", Group::LookBehind { negative: true }),
        ] {
            if self.eat_text(text) {
                return Ok(group);
            }
        }
        if self.eat('<') {
            self.group_name()?;
            return Ok(Group::Plain);
        }
        if ["P=", "P>", "R)"].iter().any(|text| self.eat_text(text)) {
            return Err(self.back_reference());
        }
        self.modifiers()?;
        Ok(Group::Plain)
    }

    /// The rest of `<name>`.
    fn group_name(&mut self) -> Result<()> {
        let start = self.at;
        while let Some(c) = self.peek() {
            let first = self.at == start;
            let in_name = c.is_alphabetic() || matches!(c, '$' | '_');
            if c == '>' && !first {
                self.at += 1;
                return Ok(());
            }
            if !in_name && (first || !c.is_alphanumeric()) {
                break;
            }
            self.at += 1;
        }
        Err(self.bad("a group name must be an identifier in angle brackets"))
    }

    /// The rest of `(?i:`, `(?s-m:` and the like.
    fn modifiers(&mut self) -> Result<()> {
        let start = self.at;
        let mut on = true;
        let mut seen = Vec::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            let flag = match c {
                ':' if !seen.is_empty() => return Ok(()),
                '-' if on => {
                    on = false;
                    continue;
                }
                'i' => &mut self.flags.ignore_case,
                's' => &mut self.flags.dot_all,
                'm' => &mut self.flags.multi_line,
                _ => break,
            };
            if seen.contains(&c) {
                break;
            }
            *flag = on;
            seen.push(c);
        }
        self.at = start;
        Err(self.bad("unknown kind of group").help(
            "ECMA-262 has (?:…), (?=…), (?!…), (?<=…), (?<!…), (?<name>…) and (?i:…); \
             neither (?P<name>…) nor (?i) without a colon",
        ))
    }

    fn close(&mut self) -> Result<()> {
        if self.stack.len() < 2 {
            return Err(self.bad("unmatched `)`"));
        }
        self.at += 1;
        self.end_branch();
        let Some(open) = self.stack.pop() else { return Err(self.bad("unmatched `)`")) };
        self.flags = open.outer;
        let body = self.ast.alt(open.branches);
        let term = match open.group {
            Group::Plain => Term::Quantifiable(body),
            Group::LookAhead { negative } => {
                let look = self.ast.add(Node::LookAhead { body, negative });
                if self.lenient { Term::Quantifiable(look) } else { Term::Assertion(look) }
            }
            Group::LookBehind { negative } => Term::Assertion(self.ast.look_behind(body, negative)),
        };
        self.quantified(term)
    }

    /// A term other than a group, which starts with `c`.
    fn term(&mut self, c: char) -> Result<Term> {
        self.at += 1;
        let class = match c {
            '^' | '$' => return Ok(Term::Assertion(self.anchor(c))),
            '\\' => return self.escape(),
            '[' => self.class()?,
            '.' if self.flags.dot_all => property::complement(ClassUnicode::empty()),
            '.' => property::complement(property::line_terminator()),
            '*' | '+' | '?' => {
                self.at -= 1;
                return Err(self.bad("nothing to repeat"));
            }
            '{' => {
                self.at -= 1;
                if self.braces()?.is_some() {
                    return Err(self.bad("nothing to repeat"));
                }
                self.at += 1;
                self.only_lenient("a lone `{`")?;
                self.fold(class_of(&[(c, c)]))
            }
            ']' | '}' => {
                self.only_lenient("a lone bracket")?;
                self.fold(class_of(&[(c, c)]))
            }
            _ => self.fold(class_of(&[(c, c)])),
        };
        Ok(Term::Quantifiable(self.ast.add_class(class)))
    }

    fn anchor(&mut self, c: char) -> NodeId {
        let lines = match self.flags.multi_line {
            true => property::line_terminator(),
            false => ClassUnicode::empty(),
        };
        match c {
            '^' => self.ast.behind(lines, true),
            _ => self.ast.ahead(lines, true),
        }
    }

    /// The class closed under simple case folding if case is ignored.
    fn fold(&self, mut class: ClassUnicode) -> ClassUnicode {
        if self.flags.ignore_case {
            class.case_fold_simple();
        }
        class
    }

    /// Adds a term with the quantifier that follows.
    fn quantified(&mut self, term: Term) -> Result<()> {
        let start = self.at;
        let counts = match self.peek() {
            Some('*') => Some((0, None)),
            Some('+') => Some((1, None)),
            Some('?') => Some((0, Some(1))),
            Some('{') => self.braces()?,
            _ => None,
        };
        let node = match (term, counts) {
            (Term::Quantifiable(item), Some((min, max))) => {
                self.at += usize::from(self.at == start);
                self.eat('?');
                self.ast.add(Node::Repeat { item, min, max })
            }
            (Term::Assertion(_), Some(_)) => {
                self.at = start;
                return Err(self.bad("an assertion cannot be repeated"));
            }
            (Term::Quantifiable(node) | Term::Assertion(node), None) => node,
        };
        if let Some(open) = self.stack.last_mut() {
            open.terms.push(node);
        }
        Ok(())
    }

    /// `{n}`, `{n,}` or `{n,m}`; `None` and no move if it is none of them.
    fn braces(&mut self) -> Result<Option<(u64, Option<u64>)>> {
        let start = self.at;
        self.at += 1;
        let min = self.number();
        let max = match (self.eat(','), min) {
            (true, _) => self.number(),
            (false, min) => min,
        };
        let open_end = self.chars.get(self.at.saturating_sub(1)) == Some(&',');
        let (Some(min), true) = (min, self.eat('}')) else {
            self.at = start;
            return Ok(None);
        };
        let max = if open_end { None } else { max };
        if min > COUNT_MAX || max.is_some_and(|max| max > COUNT_MAX) {
            return Err(self.bad("a count in braces is too large"));
        }
        if max.is_some_and(|max| max < min) {
            return Err(self.bad("the counts in braces are out of order"));
        }
        Ok(Some((min, max)))
    }

    /// Decimal digits; saturates.
    fn number(&mut self) -> Option<u64> {
        let mut value: Option<u64> = None;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            let shifted = value.unwrap_or(0).saturating_mul(10);
            value = Some(shifted.saturating_add(u64::from(digit)));
            self.at += 1;
        }
        value
    }

    /// An error in the first reading.
    fn only_lenient(&self, what: &str) -> Result<()> {
        if self.lenient { Ok(()) } else { Err(self.bad(what)) }
    }

    fn bad(&self, why: &str) -> Error {
        let at = self.at.min(self.chars.len());
        let rest: String = self.chars[at..].iter().take(81).collect();
        let place = match rest.is_empty() {
            true => "at its end".to_owned(),
            false => format!("at character {}, before {}", at + 1, quote(&rest)),
        };
        let message = format!("not a regular expression of ECMA-262: {why}, {place}");
        Error::new(Kind::BadRegex, message)
    }
}
