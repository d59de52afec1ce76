//! How far the end of a string of an expression can be: bounds over all that can be read before.
//!
//! [`Exprs::reach`] follows the structure. Whatever was read, what is left of `a{3}(bc|d)` is what is left of one of
//! its pieces and all pieces after it; so the bound is the greatest of 3 + 1 (nothing read), 2 (`b` read) and 1.
//!
//! [`Exprs::reach_unlike`] is for strings that must differ from others, as keys and unique items do. It counts how
//! many strings of each length every state of the automaton leads to. By hand: after `x` in `x[0-9]*`, which has
//! 1 + 10 + 100 + 1,000 strings of at most three characters, three suffice if at most a thousand are taken. Taken strings are
//! no states: what an expression leaves out because of literals counts as taken too.
//!
//! Cost: one visit of each piece, at most [`VISITS`]; at most [`STATES`] states, each explored once.

use hashbrown::HashMap;

use super::node::{Exprs, Node, UNBOUNDED};
use super::{ExprId, class};
use crate::limits::Fuel;

/// Most pieces that are looked at.
const VISITS: u32 = 512;

/// Most states of an automaton.
const STATES: usize = 256;

/// Longest strings that are counted.
const LONGEST: u64 = 256;

/// Most literals of a set of which the characters are looked at.
const LITERALS: u32 = 1_024;

/// Fuel for one automaton.
const FUEL: u64 = 10_000;

/// How many other strings one may have to differ from.
pub const TAKEN: u64 = 4_096;

/// Characters that suffice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// From the start.
    pub whole: u64,
    /// Wherever the output is.
    pub rest: u64,
    /// Whether each of them can be one that takes one byte.
    pub plain: bool,
}

impl Reach {
    fn of(length: u64, plain: bool) -> Self {
        Self { whole: length, rest: length, plain }
    }
}

impl Exprs {
    /// At least the characters of the shortest string, and of the shortest rest of any string; `None` where
    /// complements, and intersections of strings without a greatest length, hide it. In `json` strings some characters need escapes.
    pub fn reach(&self, expr: ExprId, json: bool) -> Option<Reach> {
        self.reach_within(expr, json, &mut VISITS.clone())
    }

    fn reach_within(&self, expr: ExprId, json: bool, left: &mut u32) -> Option<Reach> {
        *left = left.checked_sub(1)?;
        let info = self.info(expr);
        Some(match self.node(expr) {
            Node::Never | Node::Epsilon => Reach::of(0, true),
            Node::Class(class) => Reach::of(1, has_plain(self.classes.get(class), json)),
            Node::Literal(id, _) => Reach::of(info.max, is_plain(self.literal_text(id), json)),
            Node::Set(set) => {
                let plain = set.hi - set.lo <= LITERALS
                    && self.kept(set).all(|index| {
                        is_plain(self.literal_text(self.set_literal(set.set, index)), json)
                    });
                Reach { whole: info.min, ..Reach::of(info.max, plain) }
            }
            Node::Concat(first, second) => {
                let (a, b) =
                    (self.reach_within(first, json, left)?, self.reach_within(second, json, left)?);
                Reach {
                    whole: a.whole.saturating_add(b.whole),
                    rest: a.rest.saturating_add(b.whole).max(b.rest),
                    plain: a.plain && b.plain,
                }
            }
            Node::Or(list) => {
                let mut all = Reach { whole: info.min, ..Reach::of(0, true) };
                for &part in self.lists.get(list) {
                    let part = self.reach_within(part, json, left)?;
                    all.rest = all.rest.max(part.rest);
                    all.plain &= part.plain;
                }
                all
            }
            Node::Repeat(item, min, _) => {
                let item = self.reach_within(item, json, left)?;
                let after = item.whole.saturating_mul(min.saturating_sub(1));
                let whole = item.whole.saturating_mul(min);
                let rest = item.rest.saturating_add(after).max(whole);
                Reach { whole, rest, plain: item.plain }
            }
            // Whatever was read of a string that is no longer, no more is left.
            Node::And(_) if info.max != UNBOUNDED => Reach::of(info.max, false),
            Node::And(_) | Node::Not(_) | Node::Later(..) | Node::Span(..) => return None,
        })
    }

    /// The same for strings of the expression that are none of at most [`TAKEN`] others, by its automaton; `None` if
    /// that is large.
    pub fn reach_unlike(&mut self, expr: ExprId) -> Option<Reach> {
        let info = self.info(expr);
        if self.literals_left(expr).is_some() {
            return self.reach(expr, true).map(|reach| Reach { whole: reach.rest, ..reach });
        }
        if !info.boolean && info.max != UNBOUNDED {
            return Some(Reach::of(info.max, false));
        }
        let mut taken = TAKEN;
        let expr = self.with_literals(expr, &mut taken);
        if let Node::Repeat(ExprId::ANY_CHAR, min, UNBOUNDED) = self.node(expr) {
            // One character more makes more strings than could be taken.
            return Some(Reach::of(min.saturating_add(1), false));
        }
        let graph = self.graph_of(expr)?;
        let longest = longest(&graph);
        let mut layer: Vec<u64> = graph.iter().map(|state| u64::from(state.accepts)).collect();
        let mut sums = layer.clone();
        for length in 0..=LONGEST {
            let suffices = |state: usize| sums[state] > taken || longest[state] <= length;
            if (0..graph.len()).all(suffices) {
                return Some(Reach::of(length, false));
            }
            layer = graph.iter().map(|state| state.strings(&layer)).collect();
            sums.iter_mut().zip(&layer).for_each(|(sum, n)| *sum = sum.saturating_add(*n));
        }
        None
    }

    /// An expression with the literals that it leaves out, which are added to `taken`.
    fn with_literals(&mut self, expr: ExprId, taken: &mut u64) -> ExprId {
        match self.node(expr) {
            Node::Not(barred) => {
                let parts = match self.node(barred) {
                    Node::Or(list) => self.lists.get(list).to_vec(),
                    _ => vec![barred],
                };
                let mut kept = parts;
                kept.retain(|&part| match self.literals_left(part) {
                    Some(literals) => {
                        *taken += literals.len() as u64;
                        false
                    }
                    None => true,
                });
                let barred = self.or(&kept);
                self.not(barred)
            }
            Node::And(list) => {
                let parts = self.lists.get(list).to_vec();
                let parts: Vec<ExprId> =
                    parts.into_iter().map(|part| self.with_literals(part, taken)).collect();
                self.and(&parts)
            }
            _ => expr,
        }
    }

    /// The automaton of an expression, if it is small.
    fn graph_of(&mut self, expr: ExprId) -> Option<Vec<State>> {
        let (mut exprs, mut graph) = (vec![expr], Vec::new());
        let mut numbers: HashMap<ExprId, usize> = HashMap::from_iter([(expr, 0)]);
        let mut fuel = Fuel::new(FUEL);
        while let Some(&expr) = exprs.get(graph.len()) {
            let accepts = self.nullable(expr);
            let runs = self.transitions(expr, &mut fuel).ok()?;
            fuel.spend(1 + runs.len() as u64).ok()?;
            let next = runs.iter().map(|run| {
                let number = *numbers.entry(run.target).or_insert(exprs.len());
                if number == exprs.len() {
                    exprs.push(run.target);
                }
                (number, u64::from(run.last - run.first) + 1)
            });
            graph.push(State { accepts, next: next.collect() });
            if exprs.len() > STATES {
                return None;
            }
        }
        Some(graph)
    }
}

/// A state of an automaton.
struct State {
    accepts: bool,
    /// The states that follow, with how many code points lead to each.
    next: Vec<(usize, u64)>,
}

impl State {
    /// How many strings there are of one character more than those of `layer`, which says how many for each state.
    fn strings(&self, layer: &[u64]) -> u64 {
        let each = self.next.iter().map(|&(state, width)| layer[state].saturating_mul(width));
        each.fold(0, u64::saturating_add)
    }
}

/// The length of the longest string of each state that has finitely many; [`UNBOUNDED`] for others.
fn longest(graph: &[State]) -> Vec<u64> {
    let mut longest = vec![UNBOUNDED; graph.len()];
    loop {
        let mut changed = false;
        for (at, state) in graph.iter().enumerate() {
            let next = state.next.iter().map(|&(next, _)| longest[next].saturating_add(1));
            let own = next.max().unwrap_or(0);
            changed |= own < longest[at];
            longest[at] = own;
        }
        if !changed {
            return longest;
        }
    }
}

/// The characters that take one byte.
const PLAIN: [class::Range; 3] = [(0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7F)];

fn is_plain(text: &str, json: bool) -> bool {
    let escaped = |byte: u8| byte < 0x20 || matches!(byte, b'"' | b'\\');
    text.is_ascii() && !(json && text.bytes().any(escaped))
}

fn has_plain(ranges: &[class::Range], json: bool) -> bool {
    let meets = |&(first, last): &class::Range| {
        ranges.iter().any(|range| range.0 <= last && first <= range.1)
    };
    if json { PLAIN.iter().any(meets) } else { meets(&(0, 0x7F)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::regex;

    fn rest(pattern: &str) -> Option<(u64, u64)> {
        let mut exprs = Exprs::new();
        let mut fuel = Fuel::new(1_000_000);
        let expr = regex::pattern(&mut exprs, pattern, &Limits::default(), &mut fuel).ok()?;
        let structure = exprs.reach(expr, true);
        let unlike = exprs.reach_unlike(expr)?;
        // Neither is below what a search finds.
        let far = exprs.farthest(expr, 10_000, &mut fuel).ok()??.1;
        assert!(structure.is_none_or(|reach| reach.rest >= far), "{pattern}: {far} {structure:?}");
        assert!(unlike.rest >= far, "{pattern}: {far} {unlike:?}");
        Some((structure.map_or(0, |reach| reach.rest), unlike.rest))
    }

    #[test]
    fn what_is_left_is_bounded_by_the_structure_and_by_counting() {
        assert_eq!(rest("^a{3}(bc|d)$"), Some((4, 5)));
        assert_eq!(rest("^(ab){2,5}$"), Some((4, 10)));
        assert_eq!(rest("^(abc|x)+y$").map(|rest| rest.0), Some(4));
        // Four digits make 10,000 strings; three do not make enough.
        assert_eq!(rest("^x[0-9]*$"), Some((1, 5)));
        // Of a single letter each length makes one.
        assert_eq!(rest("^a*$"), None);
        assert_eq!(rest("^x-"), Some((2, 3)));
        assert_eq!(rest("^(?!x-)[a-z]+$").map(|rest| rest.0), Some(0));
        // An intersection with a greatest length.
        assert_eq!(rest("^(?!x-)[a-z]{2,6}$").map(|rest| rest.0), Some(6));
        for pattern in ["^(a|b|c{9})$", "^[ab]+(cd|e{7})[0-9]{2}$", "b", "^(\\n|é)+$", "^$|^.{3}"]
        {
            rest(pattern);
        }
    }

    #[test]
    fn literals_that_are_left_out_are_no_states() {
        let mut exprs = Exprs::new();
        let names: Vec<String> = (0..500).map(|i| format!("a rather long name {i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (names, [x, any]) = (exprs.literals(&names), [exprs.literal("x-"), ExprId::ANY]);
        let with_x = exprs.concat(&[x, any]);
        let barred = exprs.or(&[names, with_x]);
        let others = exprs.not(barred);
        assert_eq!(exprs.reach_unlike(others), Some(Reach::of(1, false)));
        assert_eq!(exprs.reach_unlike(names).map(|reach| reach.rest), Some(22));
    }
}
