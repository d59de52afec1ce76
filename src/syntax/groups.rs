//! Brackets, alternatives and operators of all syntaxes, with a list of what is open.
//!
//! A parser reads one token after the other and tells [`Groups`]: an item, an operator, a bracket.
//! That makes parsers loops. By hand, for `a ("b" | c)*`:
//!
//! ```text
//! push a      open [a]
//! open        open [a] [ ]
//! push "b"    open [a] ["b"]
//! next        open [a] [ | ]        one alternative is done
//! push c      open [a] [ | c]
//! close       open [a ("b" | c)]    one item again, to which the star applies
//! ```

use super::rules::{ItemId, Rules, Set};
use super::scan::At;
use crate::error::{Kind, Result};

/// How deep groups nest.
const DEPTH: usize = 250;

/// An operator in front of or between items of a sequence. It takes the item at its index after
/// the repetitions that follow it, so it is applied when the sequence is done.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mark {
    /// The item before without the item.
    Except,
    /// Everything but the item.
    Not,
    /// So many of the item.
    Times(u64),
    /// Text up to and with the first place where the item ends.
    Until,
    /// Text in which the item does not occur.
    Without,
}

/// A bracket that is open.
#[derive(Debug)]
struct Group {
    /// Which bracket, as the parser calls it.
    kind: &'static str,
    at: At,
    /// Alternatives that are done.
    alternatives: Vec<ItemId>,
    /// Parts of the intersection that are done.
    conjuncts: Vec<ItemId>,
    sequence: Vec<ItemId>,
    marks: Vec<(usize, Mark, At)>,
}

impl Group {
    fn new(kind: &'static str, at: At) -> Self {
        Self {
            kind,
            at,
            alternatives: Vec::new(),
            conjuncts: Vec::new(),
            sequence: Vec::new(),
            marks: Vec::new(),
        }
    }
}

/// A closed group: its bracket, and what is in it.
pub(super) struct Closed {
    pub kind: &'static str,
    pub item: ItemId,
}

/// The groups that are open; the first is the rule itself.
#[derive(Debug)]
pub(super) struct Groups {
    open: Vec<Group>,
    top: Group,
}

impl Groups {
    pub fn new(at: At) -> Self {
        Self { open: Vec::new(), top: Group::new("", at) }
    }

    /// Number of open brackets.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// The innermost open bracket.
    pub fn kind(&self) -> &'static str {
        self.top.kind
    }

    /// Whether an operator waits for the item that it takes.
    pub fn waits(&self) -> bool {
        self.top.marks.last().is_some_and(|mark| mark.0 == self.top.sequence.len())
    }

    pub fn open(&mut self, kind: &'static str, at: At) -> Result<()> {
        if self.open.len() >= DEPTH {
            let message = format!("groups nest deeper than {DEPTH} levels");
            return Err(at.error(Kind::TooDeep, message).help("make rules of the inner groups"));
        }
        self.open.push(std::mem::replace(&mut self.top, Group::new(kind, at)));
        Ok(())
    }

    pub fn push(&mut self, item: ItemId) {
        self.top.sequence.push(item);
    }

    /// The item that an operator behind it takes.
    pub fn last(&mut self) -> Option<&mut ItemId> {
        if self.waits() {
            return None;
        }
        self.top.sequence.last_mut()
    }

    pub fn mark(&mut self, mark: Mark, at: At) {
        self.top.marks.push((self.top.sequence.len(), mark, at));
    }

    /// Ends a part of an intersection; another follows.
    pub fn conjunct(&mut self, rules: &mut Rules) -> Result<()> {
        let item = self.sequence(rules)?;
        self.top.conjuncts.push(item);
        Ok(())
    }

    /// Ends an alternative; another follows.
    pub fn alternative(&mut self, rules: &mut Rules) -> Result<()> {
        let at = self.top.at;
        self.conjunct(rules)?;
        let parts = std::mem::take(&mut self.top.conjuncts);
        let item = match *parts {
            [only] => only,
            _ => rules.set(Set::And, parts, at),
        };
        self.top.alternatives.push(item);
        Ok(())
    }

    /// Closes the innermost group; `None` if no bracket is open.
    pub fn close(&mut self, rules: &mut Rules) -> Result<Option<Closed>> {
        let Some(below) = self.open.pop() else { return Ok(None) };
        self.alternative(rules)?;
        let group = std::mem::replace(&mut self.top, below);
        let item = rules.alt(group.alternatives);
        Ok(Some(Closed { kind: group.kind, item }))
    }

    /// The whole rule.
    pub fn finish(mut self, rules: &mut Rules) -> Result<ItemId> {
        if !self.open.is_empty() {
            return Err(self.top.at.bad("this bracket is never closed"));
        }
        self.alternative(rules)?;
        Ok(rules.alt(self.top.alternatives))
    }

    /// The sequence read so far, with its operators applied.
    fn sequence(&mut self, rules: &mut Rules) -> Result<ItemId> {
        let mut sequence = std::mem::take(&mut self.top.sequence);
        let marks = std::mem::take(&mut self.top.marks);
        // Operators in front bind tighter than exceptions, the nearest tightest.
        for &(index, mark, at) in marks.iter().rev() {
            let Some(item) = sequence.get_mut(index) else {
                return Err(at.bad("nothing follows this operator"));
            };
            match mark {
                Mark::Except => {}
                Mark::Not => *item = rules.set(Set::Not, vec![*item], at),
                Mark::Times(n) => *item = rules.repeat(*item, n, Some(n)),
                Mark::Until => *item = rules.until(*item, at),
                Mark::Without => *item = rules.without(*item, at),
            }
        }
        let mut gone = vec![false; sequence.len()];
        for &(index, mark, at) in &marks {
            if let Mark::Except = mark {
                let before = (0..index).rev().find(|&i| !gone[i]);
                let Some(before) = before else {
                    return Err(at.bad("nothing stands before this operator"));
                };
                sequence[before] =
                    rules.set(Set::Except, vec![sequence[before], sequence[index]], at);
                gone[index] = true;
            }
        }
        let mut gone = gone.into_iter();
        sequence.retain(|_| !gone.next().unwrap_or(false));
        Ok(rules.seq(sequence))
    }
}
