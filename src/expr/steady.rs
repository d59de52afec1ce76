//! Expressions in which everything that is allowed once stays allowed.
//!
//! An expression is *steady* over a class of code points if after any of them, again exactly
//! those may follow: its prefixes are all the strings over the class. What it matches is decided
//! at the end alone. Most wide expressions of schemas are: *contains `foo`*, *any string but
//! these names*, *a path that ends in `.md`*.
//!
//! Worked example: `[a-z]*\.md` over `a`-`z` and `.` is not steady: after `.m` a `d` may follow,
//! but so may what starts anew. `.*\.md` is: after `.m` everything may follow.
//!
//! Method: two rules that need no search (a part of a union, or the start of a concatenation,
//! that allows everything keeps allowing everything; what is left out of it, if it is finite,
//! never ends it), else a walk of the derivatives, which must all list the same code points.

use hashbrown::HashSet;

use super::class::{self, Range};
use super::node::{Node, UNBOUNDED};
use super::{ExprId, Exprs};
use crate::error::Result;
use crate::limits::Fuel;

/// Most derivatives that are looked at.
const STATES: usize = 64;

/// Most parts that the rules look at.
const PARTS: usize = 64;

impl Exprs {
    /// The expression of all strings over the class that `expr` is steady over; `None` if it is
    /// not, or if that is not seen within a few steps.
    ///
    /// # Errors
    /// When the fuel or the arena is used up.
    pub fn steady(&mut self, expr: ExprId, fuel: &mut Fuel) -> Result<Option<ExprId>> {
        if self.is_open(expr) {
            return Ok(Some(ExprId::ANY));
        }
        let class = self.first(expr, fuel)?;
        let mut seen: HashSet<ExprId> = HashSet::from_iter([expr]);
        let mut todo = vec![expr];
        while let Some(state) = todo.pop() {
            if state != expr && self.first(state, fuel)? != class {
                return Ok(None);
            }
            for at in 0..self.table(state).len() {
                let target = self.table(state)[at].target;
                if seen.insert(target) {
                    todo.push(target);
                }
            }
            fuel.spend(1)?;
            if seen.len() > STATES {
                return Ok(None);
            }
        }
        if class.is_empty() {
            return Ok(None);
        }
        let id = self.classes.intern(&class);
        let class = self.add(Node::Class(id));
        Ok(Some(self.repeat(class, 0, None)))
    }

    /// The code points that may come first.
    fn first(&mut self, expr: ExprId, fuel: &mut Fuel) -> Result<Vec<Range>> {
        let runs = self.transitions(expr, fuel)?;
        let mut ranges: Vec<Range> = runs.iter().map(|run| (run.first, run.last)).collect();
        class::normalise(&mut ranges);
        Ok(ranges)
    }

    /// Whether two rules say that every string can be continued to a match (`false`: they do not say).
    pub fn is_open(&self, expr: ExprId) -> bool {
        let (mut todo, mut left) = (vec![expr], PARTS);
        while let Some(expr) = todo.pop() {
            match left.checked_sub(1) {
                Some(fewer) => left = fewer,
                None => return false,
            }
            match self.node(expr) {
                Node::Repeat(ExprId::ANY_CHAR, _, UNBOUNDED) => return true,
                Node::Not(inner) if self.info(inner).max != UNBOUNDED => return true,
                Node::Concat(first, _) => todo.push(first),
                // One is enough.
                Node::Or(list) => todo.extend(self.lists.get(list)),
                Node::And(list) => {
                    let is_cofinite = |part: &&ExprId| {
                        matches!(self.node(**part), Node::Not(inner)
                            if self.info(inner).max != UNBOUNDED)
                    };
                    let mut others = self.lists.get(list).iter().filter(|part| !is_cofinite(part));
                    match (others.next(), others.next()) {
                        (None, _) => return true,
                        (Some(&only), None) => todo.push(only),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(build: impl FnOnce(&mut Exprs) -> ExprId) -> (Option<ExprId>, Exprs) {
        let mut exprs = Exprs::new();
        let expr = build(&mut exprs);
        let class = exprs.steady(expr, &mut Fuel::new(100_000)).unwrap();
        (class, exprs)
    }

    #[test]
    fn searches_and_exclusions_keep_everything() {
        let (class, _) = steady(|exprs| {
            let foo = exprs.literal("foo");
            exprs.concat(&[ExprId::ANY, foo, ExprId::ANY])
        });
        assert_eq!(class, Some(ExprId::ANY));
        let (class, _) = steady(|exprs| {
            let names = exprs.literals(&["id", "name"]);
            exprs.not(names)
        });
        assert_eq!(class, Some(ExprId::ANY));
    }

    #[test]
    fn a_class_is_kept_where_the_end_alone_decides() {
        let (class, mut exprs) = steady(|exprs| {
            let letter = exprs.class(&[('a', 'z')]);
            exprs.repeat(letter, 2, None)
        });
        let letter = exprs.class(&[('a', 'z')]);
        assert_eq!(class, Some(exprs.repeat(letter, 0, None)));
    }

    #[test]
    fn what_ends_or_changes_is_not_steady() {
        let counted = steady(|exprs| {
            let letter = exprs.class(&[('a', 'z')]);
            exprs.repeat(letter, 0, Some(5))
        });
        let other_start = steady(|exprs| {
            let (upper, lower) = (exprs.class(&[('A', 'Z')]), exprs.class(&[('a', 'z')]));
            let rest = exprs.repeat(lower, 0, None);
            exprs.concat(&[upper, rest])
        });
        // Not even without limits: `~(.*ab.*)` may not go on after `a` with `b`.
        let without = steady(|exprs| {
            let ab = exprs.literal("ab");
            let search = exprs.concat(&[ExprId::ANY, ab, ExprId::ANY]);
            exprs.not(search)
        });
        assert!(counted.0.is_none() && other_start.0.is_none() && without.0.is_none());
    }
}
