//! A shortest string of an expression, always the same one.
//!
//! *Shortest* counts code points; of the shortest strings the one is meant that is first in the
//! order which the caller gives to code points. So the string is a function of the expression
//! alone, and it is *stable*: after its first code point, the rest is the string of what is left.
//!
//! Worked example: `b[xy]|ab?c|zz` with the alphabet's order. The strings `bx`, `by`, `ac`, `zz`
//! have two code points; `ac` is first. What is left after `a` is `b?c`, whose string is `c`.
//!
//! Cost: where lengths are known (no intersection, no complement) one table per code point; else a
//! search by breadth, over at most [`STATES`] states. A string of more than a caller's maximum is
//! not spelled, only counted.
use super::node::UNBOUNDED;
use super::{ExprId, Exprs, Transition};
use crate::error::Result;
use crate::limits::Fuel;
use hashbrown::HashMap;

/// Most states of one search.
const STATES: usize = 20_000;

/// What is known of the shortest string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shortest {
    /// It belongs to the start with this index and has these code points.
    Text(usize, Vec<u32>),
    /// It has this many code points, more than were wanted.
    Long(u64),
    /// It was not found within the limits, or there is none.
    Unknown,
}

/// The first code point of a run in the caller's order, with its rank.
pub type Pick<'a> = &'a dyn Fn(&Transition) -> (u32, u32);

impl Exprs {
    /// The shortest string of any of `starts`, ties to the earlier one. `pick` ranks the code
    /// points of a run: the one with the least pair (rank, code point), which it returns.
    ///
    /// # Errors
    /// When the fuel is used up.
    pub fn shortest(
        &mut self,
        starts: &[ExprId],
        pick: Pick<'_>,
        most: u64,
        fuel: &mut Fuel,
    ) -> Result<Shortest> {
        if starts.iter().any(|&start| self.info(start).boolean) {
            return self.shortest_by_breadth(starts, pick, fuel);
        }
        let least = (0..starts.len()).min_by_key(|&i| self.info(starts[i]).min);
        let Some(start) = least else { return Ok(Shortest::Unknown) };
        let mut expr = starts[start];
        let length = self.info(expr).min;
        if length > most {
            return Ok(Shortest::Long(length));
        }
        let mut points = Vec::new();
        for left in (0..length).rev() {
            let runs = self.transitions(expr, fuel)?.to_vec();
            let best = runs.iter().filter(|run| self.info(run.target).min == left);
            let Some(run) = best.min_by_key(|run| pick(run)) else { return Ok(Shortest::Unknown) };
            points.push(pick(run).1);
            expr = run.target;
        }
        Ok(Shortest::Text(start, points))
    }

    /// The same by breadth. States are found in the order of their strings.
    fn shortest_by_breadth(
        &mut self,
        starts: &[ExprId],
        pick: Pick<'_>,
        fuel: &mut Fuel,
    ) -> Result<Shortest> {
        // Each state with where it was found from, and by which code point.
        let mut found: Vec<(ExprId, usize, u32)> = Vec::new();
        let mut known: HashMap<ExprId, ()> = HashMap::new();
        for (i, &start) in starts.iter().enumerate() {
            if known.insert(start, ()).is_none() {
                found.push((start, i, 0));
            }
        }
        let first = found.len();
        let mut at = 0;
        while at < found.len() && found.len() <= STATES {
            let expr = found[at].0;
            if self.nullable(expr) {
                let mut points = Vec::new();
                let mut here = at;
                while here >= first {
                    points.push(found[here].2);
                    here = found[here].1;
                }
                points.reverse();
                return Ok(Shortest::Text(found[here].1, points));
            }
            let mut runs: Vec<(u32, u32, ExprId)> = self
                .transitions(expr, fuel)?
                .iter()
                .map(|run| (pick(run).0, pick(run).1, run.target))
                .collect();
            fuel.spend(1 + runs.len() as u64)?;
            runs.sort_unstable_by_key(|&(rank, point, _)| (rank, point));
            for (_, point, target) in runs {
                if known.insert(target, ()).is_none() {
                    found.push((target, at, point));
                }
            }
            at += 1;
        }
        Ok(Shortest::Unknown)
    }

    /// The expressions that strings lead to from `expr`, and the greatest of their shortest
    /// lengths; `None` if there are more than `most`.
    ///
    /// # Errors
    /// When the fuel is used up.
    pub fn farthest(
        &mut self,
        expr: ExprId,
        most: usize,
        fuel: &mut Fuel,
    ) -> Result<Option<(Vec<ExprId>, u64)>> {
        let mut states = vec![expr];
        let mut numbers: HashMap<ExprId, usize> = HashMap::from_iter([(expr, 0)]);
        let mut before: Vec<Vec<usize>> = vec![Vec::new()];
        let mut at = 0;
        while at < states.len() {
            let runs = self.transitions(states[at], fuel)?;
            fuel.spend(1 + runs.len() as u64)?;
            for run in runs {
                let number = *numbers.entry(run.target).or_insert_with(|| {
                    states.push(run.target);
                    before.push(Vec::new());
                    states.len() - 1
                });
                before[number].push(at);
            }
            if states.len() > most {
                return Ok(None);
            }
            at += 1;
        }
        // Backwards, from where a string may end.
        let ends = (0..states.len()).filter(|&i| self.nullable(states[i]));
        let mut layer: Vec<usize> = ends.collect();
        let mut known = vec![false; states.len()];
        layer.iter().for_each(|&i| known[i] = true);
        let mut length = 0;
        loop {
            let mut next: Vec<usize> = layer.iter().flat_map(|&i| before[i].clone()).collect();
            next.retain(|&i| !std::mem::replace(&mut known[i], true));
            if next.is_empty() {
                return Ok(Some((states, length)));
            }
            (layer, length) = (next, length + 1);
        }
    }

    /// Whether it is any string but some literals (or what is left of such an expression): then one
    /// more character always leads to one of its strings.
    pub fn bars_literals(&self, expr: ExprId) -> bool {
        matches!(self.node(expr), super::node::Node::Not(barred) if self.literals_left(barred).is_some())
    }

    /// The greatest length in code points, where it is known without a search and bounded.
    pub fn most_characters(&self, expr: ExprId) -> Option<u64> {
        let info = self.info(expr);
        (!info.boolean && info.max != UNBOUNDED).then_some(info.max)
    }

    /// How many bytes of the literals of a literal, or of a set of them, were read.
    pub fn literal_offset(&self, expr: ExprId) -> Option<u32> {
        match self.node(expr) {
            super::node::Node::Literal(_, offset) => Some(offset),
            super::node::Node::Set(set) => Some(set.depth),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(exprs: &mut Exprs, expr: ExprId) -> Option<String> {
        let pick = |run: &Transition| (0, run.first);
        match exprs.shortest(&[expr], &pick, 100, &mut Fuel::new(1_000_000)) {
            Ok(Shortest::Text(0, points)) => points.into_iter().map(char::from_u32).collect(),
            _ => None,
        }
    }

    #[test]
    fn the_first_of_the_shortest_with_and_without_complements() {
        let mut exprs = Exprs::new();
        let parts = ["bx", "by", "abc", "ac", "zz"].map(|text| exprs.literal(text));
        let choice = exprs.or(&parts);
        assert_eq!(text(&mut exprs, choice).as_deref(), Some("ac"));
        let ac = exprs.literal("ac");
        let not = exprs.not(ac);
        let rest = exprs.and(&[choice, not]);
        assert_eq!(text(&mut exprs, rest).as_deref(), Some("bx"));
        let letters = exprs.class(&[('k', 'p')]);
        let long = exprs.repeat(letters, 7, None);
        assert_eq!(text(&mut exprs, long).as_deref(), Some("kkkkkkk"));
        let pick = |run: &Transition| (0, run.first);
        // Of `k*` or `l` and seven more the farthest is after `l`.
        let [k, l] = ["k", "l"].map(|text| exprs.literal(text));
        let many = exprs.repeat(k, 0, None);
        let after = exprs.concat(&[l, long]);
        let either = exprs.or(&[many, after]);
        let far = exprs.farthest(either, 100, &mut Fuel::new(10_000));
        assert_eq!(far.map(|far| far.map(|far| far.1)), Ok(Some(7)));
        assert_eq!(exprs.farthest(either, 3, &mut Fuel::new(10_000)), Ok(None));
        let names = exprs.literals(&["ab", "abc", "abcd", "x"]);
        let others = exprs.not(names);
        assert!(exprs.bars_literals(others) && !exprs.bars_literals(names));
        let far = exprs.farthest(others, 100, &mut Fuel::new(10_000));
        assert_eq!(far.map(|far| far.map(|far| far.1)), Ok(Some(1)));
        let longer = exprs.repeat(letters, 101, None);
        let found = exprs.shortest(&[longer], &pick, 100, &mut Fuel::new(1_000));
        assert_eq!(found, Ok(Shortest::Long(101)));
    }
}
