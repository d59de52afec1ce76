//! Which languages are empty: exactly, or not within the fuel. Never a guess.
//!
//! An expression without intersection and complement is never empty, since the constructors take
//! `NEVER` out. For the others, in this order:
//!
//! 1. structure: a concatenation is empty if a half is, a union if all parts are;
//! 2. lengths: `X & .{m,n}` has a string iff `X` has a length from `m` to `n`. If `X` is a plain
//!    expression its lengths are known as a few progressions (`length.rs`), however large the counts;
//! 3. a search of the derivatives for one that is known not to be empty. The path to it is then known
//!    too; if there is none, all that was searched is empty. By breadth, but for pieces of a document: what
//!    may follow a piece is soon the rest of the document and nothing else, so following that one way to its
//!    end is cheap, and going along thousands of places at once is not;
//! 4. a search that gets long, and has a window of lengths: the states of `X` alone as a graph,
//!    and in it walks of exactly `m` steps, by squaring (`length.rs`).
use super::ExprId;
use super::node::{Exprs, Life, Node};
use crate::error::Result;
use crate::limits::Fuel;
use hashbrown::HashSet;
use std::collections::VecDeque;

/// States searched before an intersection with a window of lengths is decided by walks.
const SHORT_SEARCH: usize = 500;

impl Exprs {
    /// Whether the language is empty. Exact; a search for intersections and complements.
    ///
    /// # Errors
    /// When the fuel or the arena is used up.
    pub fn is_never(&mut self, expr: ExprId, fuel: &mut Fuel) -> Result<bool> {
        self.pay(fuel)?;
        self.check()?;
        let mut stack = vec![expr];
        while let Some(&top) = stack.last() {
            if self.life(top) != Life::Unknown {
                stack.pop();
                continue;
            }
            fuel.spend(1)?;
            match self.by_parts(top) {
                ByParts::Known(life) => self.set_life(top, life),
                ByParts::Ask(part) => stack.push(part),
                ByParts::Search => self.decide(top, fuel)?,
            }
        }
        self.check()?;
        Ok(self.life(expr) == Life::Dead)
    }

    /// What the parts of an expression say.
    fn by_parts(&self, expr: ExprId) -> ByParts {
        match self.node(expr) {
            Node::Concat(first, second) => match (self.life(first), self.life(second)) {
                (Life::Dead, _) | (_, Life::Dead) => ByParts::Known(Life::Dead),
                (Life::Unknown, _) => ByParts::Ask(first),
                (_, Life::Unknown) => ByParts::Ask(second),
                _ => ByParts::Known(Life::Live),
            },
            Node::Or(list) => {
                let parts = self.lists.get(list);
                if parts.iter().any(|&part| self.life(part) == Life::Live) {
                    return ByParts::Known(Life::Live);
                }
                match parts.iter().find(|&&part| self.life(part) == Life::Unknown) {
                    Some(&part) => ByParts::Ask(part),
                    None => ByParts::Known(Life::Dead),
                }
            }
            Node::And(list) => {
                let dead = self.lists.get(list).iter().any(|&part| self.life(part) == Life::Dead);
                if dead { ByParts::Known(Life::Dead) } else { ByParts::Search }
            }
            // Not nullable, else it would be known: at least one item is needed.
            Node::Repeat(item, ..) => match self.life(item) {
                Life::Unknown => ByParts::Ask(item),
                life => ByParts::Known(life),
            },
            _ => ByParts::Search,
        }
    }

    /// Finds out about an intersection or a complement.
    fn decide(&mut self, expr: ExprId, fuel: &mut Fuel) -> Result<()> {
        let window = self.window(expr);
        if let Some((rest, min, max)) = window
            && let Some(lengths) = self.length_set(rest, fuel)?
        {
            let life = if lengths.meets(min, max) { Life::Live } else { Life::Dead };
            self.set_life(expr, life);
            return Ok(());
        }
        let piece = self.is_piece(expr);
        let limit = if window.is_some() && !piece { SHORT_SEARCH } else { usize::MAX };
        if self.search(expr, limit, fuel)? {
            return Ok(());
        }
        if let Some((rest, min, max)) = window {
            let life = if self.has_walk(rest, min, max, fuel)? { Life::Live } else { Life::Dead };
            self.set_life(expr, life);
        }
        Ok(())
    }

    /// `X & C{m,n}` as `X & C*`, `m` and `n`.
    pub(super) fn window(&mut self, expr: ExprId) -> Option<(ExprId, u64, u64)> {
        let Node::And(list) = self.node(expr) else {
            return None;
        };
        let parts = self.lists.get(list).to_vec();
        let at = parts.iter().position(|&part| {
            let (item, min, max) = self.counts(part);
            matches!(self.node(item), Node::Class(_)) && (min, max) != (0, u64::MAX)
        })?;
        let (item, min, max) = self.counts(parts[at]);
        let mut rest = parts;
        rest[at] = self.repeat_counts(item, 0, u64::MAX);
        Some((self.all_of(&rest), min, max))
    }

    /// Whether one of the parts of an intersection is a piece of a document.
    fn is_piece(&self, expr: ExprId) -> bool {
        let Node::And(list) = self.node(expr) else { return false };
        self.lists.get(list).iter().any(|&part| matches!(self.node(part), Node::Span(..)))
    }

    /// Search for a live state; `false` if more than `limit` states are needed.
    fn search(&mut self, expr: ExprId, limit: usize, fuel: &mut Fuel) -> Result<bool> {
        let deep = self.is_piece(expr);
        let mut order: Vec<(ExprId, usize)> = vec![(expr, 0)];
        let mut seen: HashSet<ExprId> = HashSet::from_iter([expr]);
        let mut todo: VecDeque<usize> = VecDeque::from([0]);
        let mut visited = 0;
        while let Some(at) = if deep { todo.pop_back() } else { todo.pop_front() } {
            if visited >= limit {
                return Ok(false);
            }
            visited += 1;
            let state = order[at].0;
            self.ensure_table(state, fuel)?;
            fuel.spend(1 + self.table(state).len() as u64 / 4)?;
            for run in self.table(state) {
                match self.life(run.target) {
                    Life::Dead => {}
                    Life::Live => {
                        self.mark_path(&order, at);
                        return Ok(true);
                    }
                    Life::Unknown if seen.insert(run.target) => {
                        todo.push_back(order.len());
                        order.push((run.target, at));
                    }
                    Life::Unknown => {}
                }
            }
        }
        for (state, _) in order {
            self.set_life(state, Life::Dead);
        }
        Ok(true)
    }

    /// Marks a state and those that lead to it as live.
    fn mark_path(&mut self, order: &[(ExprId, usize)], mut at: usize) {
        loop {
            let (state, parent) = order[at];
            self.set_life(state, Life::Live);
            if at == 0 {
                return;
            }
            at = parent;
        }
    }
}

/// See [`Exprs::by_parts`].
enum ByParts {
    Known(Life),
    /// This part has to be known first.
    Ask(ExprId),
    Search,
}
