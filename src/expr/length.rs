//! Lengths as numbers: which lengths do the strings of an expression have?
//!
//! [`Lengths`] is a set of numbers as a few arithmetic progressions: `([a-z]{4})*=?` has the
//! lengths `0, 4, 8, ...` and `1, 5, 9, ...`. It is exact or not there at all: a set that needs more
//! than a handful of progressions is not followed.
use super::ExprId;
use super::node::{Exprs, Node, UNBOUNDED};
use crate::error::Result;
use crate::limits::Fuel;
use hashbrown::HashMap;

/// More progressions than this are not followed.
const MAX_PROGRESSIONS: usize = 24;

/// `first, first + step, ..., last`. `last` is exact, or [`UNBOUNDED`]. A single number has step 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Progression {
    first: u64,
    last: u64,
    step: u64,
}

/// A set of lengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lengths(Vec<Progression>);

impl Progression {
    fn new(first: u64, last: u64, step: u64) -> Self {
        Self { first, last, step: if first == last { 1 } else { step } }
    }

    fn is_single(self) -> bool {
        self.first == self.last
    }

    /// Whether it goes on for at least `width`.
    fn spans(self, width: u64) -> bool {
        self.last == UNBOUNDED || self.last - self.first >= width
    }

    /// All sums, if they are a progression.
    fn plus(self, other: Self) -> Option<Self> {
        let first = self.first.checked_add(other.first)?;
        let last = match (self.last, other.last) {
            (UNBOUNDED, _) | (_, UNBOUNDED) => UNBOUNDED,
            (a, b) => a.checked_add(b)?,
        };
        let (fine, coarse) = if self.step <= other.step { (self, other) } else { (other, self) };
        if fine.is_single() || coarse.is_single() {
            let step = if fine.is_single() { coarse.step } else { fine.step };
            return Some(Self::new(first, last, step));
        }
        // Copies of the finer one, shifted by the steps of the coarser one, must leave no gap.
        let dense = coarse.step.is_multiple_of(fine.step) && fine.spans(coarse.step - fine.step);
        dense.then(|| Self::new(first, last, fine.step))
    }

    /// `k` times, for a single `k`.
    fn times(self, k: u64) -> Option<Self> {
        let last =
            if self.last == UNBOUNDED && k > 0 { UNBOUNDED } else { self.last.checked_mul(k)? };
        Some(Self::new(self.first.checked_mul(k)?, last, self.step))
    }
}

impl Lengths {
    fn single(length: u64) -> Self {
        Self(vec![Progression::new(length, length, 1)])
    }

    /// Whether there is a length from `min` to `max`.
    pub(super) fn meets(&self, min: u64, max: u64) -> bool {
        self.first_from(min).is_some_and(|length| length <= max)
    }

    /// The least length from `min` on.
    pub(super) fn first_from(&self, min: u64) -> Option<u64> {
        let from = |p: &Progression| {
            let steps = min.saturating_sub(p.first).div_ceil(p.step);
            let length = p.first.checked_add(steps.checked_mul(p.step)?)?;
            (length <= p.last).then_some(length)
        };
        self.0.iter().filter_map(from).min()
    }

    /// The greatest length up to `max`.
    pub(super) fn last_to(&self, max: u64) -> Option<u64> {
        let to = |p: &Progression| {
            let room = max.min(p.last).checked_sub(p.first)?;
            Some(p.first + room / p.step * p.step)
        };
        self.0.iter().filter_map(to).max()
    }

    /// Sorts, and joins progressions that go on from each other.
    fn tidy(mut self) -> Option<Self> {
        self.0.sort_unstable();
        self.0.dedup();
        let mut out: Vec<Progression> = Vec::with_capacity(self.0.len());
        for next in self.0 {
            let joined = out.iter_mut().rev().find_map(|p| join(*p, next).map(|j| *p = j));
            if joined.is_none() {
                out.push(next);
            }
        }
        (out.len() <= MAX_PROGRESSIONS).then_some(Self(out))
    }

    fn or(mut self, other: &Self) -> Option<Self> {
        self.0.extend_from_slice(&other.0);
        self.tidy()
    }

    /// All sums of one of each.
    fn plus(&self, other: &Self) -> Option<Self> {
        let mut out = Vec::with_capacity(self.0.len() * other.0.len());
        for &a in &self.0 {
            for &b in &other.0 {
                out.push(a.plus(b)?);
            }
        }
        Self(out).tidy()
    }

    /// Sums of `min` to `max` of them.
    fn repeat(&self, min: u64, max: u64) -> Option<Self> {
        if let [one] = *self.0 {
            return repeat_one(one, min, max);
        }
        let least = self.power(min)?;
        if max == UNBOUNDED {
            let mut out = least;
            for &one in &self.0 {
                out = out.plus(&repeat_one(one, 0, UNBOUNDED)?)?;
            }
            return Some(out);
        }
        least.plus(&self.clone().or(&Self::single(0))?.power(max - min)?)
    }

    /// Sums of exactly `count`, by squaring.
    fn power(&self, mut count: u64) -> Option<Self> {
        let mut square = self.clone();
        let mut out = Self::single(0);
        while count > 0 {
            if count & 1 == 1 {
                out = out.plus(&square)?;
            }
            count >>= 1;
            if count > 0 {
                square = square.plus(&square)?;
            }
        }
        Some(out)
    }
}

/// Two progressions as one, `a` beginning first.
fn join(a: Progression, b: Progression) -> Option<Progression> {
    let last = a.last.max(b.last);
    let step = match (a.is_single(), b.is_single()) {
        (true, true) => b.first - a.first,
        (true, false) => b.step,
        (false, _) => a.step,
    };
    let fits = |p: Progression| p.is_single() || p.step == step;
    let aligned = step > 0 && (b.first - a.first).is_multiple_of(step);
    let touches = a.last == UNBOUNDED || b.first <= a.last.saturating_add(step);
    (fits(a) && fits(b) && aligned && touches).then(|| Progression::new(a.first, last, step))
}

/// Sums of `min` to `max` numbers of one progression. Those of `k` go from `k first` to `k last`;
/// from some `k` on these blocks touch.
fn repeat_one(p: Progression, min: u64, max: u64) -> Option<Lengths> {
    if max == 0 {
        return Some(Lengths::single(0));
    }
    let top = if p.last == UNBOUNDED || (max == UNBOUNDED && p.last > 0) {
        UNBOUNDED
    } else {
        p.last.checked_mul(max.min(UNBOUNDED - 1))?
    };
    if p.first == 0 && p.last == 0 {
        return Some(Lengths::single(0));
    }
    if p.is_single() {
        let first = p.first.checked_mul(min)?;
        return Some(Lengths(vec![Progression::new(first, top, p.first)]));
    }
    let mut out = Vec::new();
    let mut k = min;
    while out.len() <= MAX_PROGRESSIONS {
        let block = p.times(k)?;
        if k == max {
            out.push(block);
            return Lengths(out).tidy();
        }
        let next = p.first.checked_mul(k + 1)?;
        let touches = block.last == UNBOUNDED || next <= block.last.saturating_add(p.step);
        let aligned = p.first.is_multiple_of(p.step);
        if aligned && touches && k > 0 {
            out.push(Progression::new(block.first, top, p.step));
            return Lengths(out).tidy();
        }
        out.push(block);
        k += 1;
    }
    None
}

impl Exprs {
    /// The lengths of the strings of a plain expression, if they are a few progressions.
    pub(super) fn length_set(&mut self, expr: ExprId, fuel: &mut Fuel) -> Result<Option<Lengths>> {
        let mut stack = vec![expr];
        while let Some(&top) = stack.last() {
            if self.length_sets.contains_key(&top) {
                stack.pop();
                continue;
            }
            fuel.spend(2)?;
            let before = stack.len();
            self.push_parts(top, &mut stack);
            if stack.len() == before {
                fuel.spend(20)?;
                let lengths = self.lengths_of(top);
                self.length_sets.insert(top, lengths);
                stack.pop();
            }
        }
        Ok(self.length_sets.get(&expr).cloned().flatten())
    }

    /// Pushes the parts of `expr` of which the lengths are not known.
    fn push_parts(&self, expr: ExprId, stack: &mut Vec<ExprId>) {
        let mut need = |part: ExprId| {
            if !self.length_sets.contains_key(&part) {
                stack.push(part);
            }
        };
        match self.node(expr) {
            Node::Concat(first, second) => {
                need(first);
                need(second);
            }
            Node::Repeat(item, ..) => need(item),
            Node::Or(list) => self.lists.get(list).iter().for_each(|&part| need(part)),
            _ => {}
        }
    }

    /// The lengths of an expression out of those of its parts.
    fn lengths_of(&self, expr: ExprId) -> Option<Lengths> {
        let known = |part: ExprId| self.length_sets.get(&part).and_then(Option::as_ref);
        match self.node(expr) {
            Node::Never => Some(Lengths(Vec::new())),
            Node::Epsilon => Some(Lengths::single(0)),
            Node::Class(_) => Some(Lengths::single(1)),
            Node::Literal(..) => Some(Lengths::single(self.info(expr).max)),
            Node::Set(set) => {
                let depth = self.depth_chars(expr, set);
                let chars =
                    self.kept(set).map(|i| self.texts.chars(self.set_literal(set.set, i).0));
                let mut chars: Vec<u64> = chars.map(|chars| u64::from(chars) - depth).collect();
                chars.sort_unstable();
                chars.dedup();
                Lengths(chars.iter().map(|&n| Progression::new(n, n, 1)).collect()).tidy()
            }
            Node::Span(..) => {
                let info = self.info(expr);
                Some(Lengths(vec![Progression::new(info.min, info.max, 1)]))
            }
            Node::Concat(first, second) => known(first)?.plus(known(second)?),
            Node::Repeat(item, min, max) => known(item)?.repeat(min, max),
            Node::Or(list) => {
                let mut out = Lengths(Vec::new());
                for &part in self.lists.get(list) {
                    out = out.or(known(part)?)?;
                }
                Some(out)
            }
            Node::And(_) | Node::Not(_) | Node::Later(..) => None,
        }
    }

    /// Whether a string of `expr` has a length from `min` to `max`: its states as a graph, the
    /// states after exactly `min` steps, and from these the least number of steps to an end.
    pub(super) fn has_walk(
        &mut self,
        expr: ExprId,
        min: u64,
        max: u64,
        fuel: &mut Fuel,
    ) -> Result<bool> {
        let (graph, ends) = self.graph(expr, fuel)?;
        let mut reached = walk_exactly(&graph, min, fuel)?;
        let mut left = max.saturating_sub(min);
        let mut visited = reached.clone();
        loop {
            if reached.iter().zip(&ends).any(|(&here, &end)| here && end) {
                return Ok(true);
            }
            if left == 0 || !reached.contains(&true) {
                return Ok(false);
            }
            left -= 1;
            let mut next = step(&graph, &reached, fuel)?;
            for (new, old) in next.iter_mut().zip(&mut visited) {
                *new &= !*old;
                *old |= *new;
            }
            reached = next;
        }
    }

    /// The states of `expr`: successors of each, and which are ends. State 0 is `expr`.
    fn graph(&mut self, expr: ExprId, fuel: &mut Fuel) -> Result<(Vec<Vec<usize>>, Vec<bool>)> {
        let mut states = vec![expr];
        let mut numbers: HashMap<ExprId, usize> = HashMap::from_iter([(expr, 0)]);
        let mut graph: Vec<Vec<usize>> = Vec::new();
        while let Some(&state) = states.get(graph.len()) {
            self.ensure_table(state, fuel)?;
            fuel.spend(1 + self.table(state).len() as u64)?;
            let mut next: Vec<usize> = Vec::new();
            for run in self.table(state) {
                let number = *numbers.entry(run.target).or_insert_with(|| {
                    states.push(run.target);
                    states.len() - 1
                });
                next.push(number);
            }
            next.sort_unstable();
            next.dedup();
            graph.push(next);
        }
        let ends = states.iter().map(|&state| self.nullable(state)).collect();
        Ok((graph, ends))
    }
}

/// The states that one more step reaches.
fn step(graph: &[Vec<usize>], from: &[bool], fuel: &mut Fuel) -> Result<Vec<bool>> {
    let mut next = vec![false; graph.len()];
    for (targets, _) in graph.iter().zip(from).filter(|&(_, &here)| here) {
        fuel.spend(1 + targets.len() as u64 / 8)?;
        for &target in targets {
            next[target] = true;
        }
    }
    Ok(next)
}

/// The states that exactly `steps` steps reach from state 0. Steps one by one while they are
/// few; else by the binary digits of `steps`, squaring the matrix of the graph.
fn walk_exactly(graph: &[Vec<usize>], steps: u64, fuel: &mut Fuel) -> Result<Vec<bool>> {
    let states = graph.len();
    let mut reached = vec![false; states];
    reached[0] = true;
    let matrix_work = (states as u64).pow(2).saturating_mul(states as u64 / 64 + 1);
    if steps.saturating_mul(states as u64) <= matrix_work {
        for _ in 0..steps {
            reached = step(graph, &reached, fuel)?;
        }
        return Ok(reached);
    }
    let words = states.div_ceil(64);
    let mut matrix: Vec<Vec<u64>> = vec![vec![0; words]; states];
    for (row, targets) in matrix.iter_mut().zip(graph) {
        for &target in targets {
            row[target / 64] |= 1 << (target % 64);
        }
    }
    let mut left = steps;
    while left > 0 {
        if left & 1 == 1 {
            let row = product_row(&reached, &matrix, words);
            reached = (0..states).map(|i| row[i / 64] >> (i % 64) & 1 == 1).collect();
        }
        left >>= 1;
        if left > 0 {
            fuel.spend(matrix_work / 16 + 1)?;
            matrix = (0..states)
                .map(|i| {
                    let row: Vec<bool> =
                        (0..states).map(|j| matrix[i][j / 64] >> (j % 64) & 1 == 1).collect();
                    product_row(&row, &matrix, words)
                })
                .collect();
        }
    }
    Ok(reached)
}

/// The union of the rows of `matrix` picked by `row`.
fn product_row(row: &[bool], matrix: &[Vec<u64>], words: usize) -> Vec<u64> {
    let mut out = vec![0; words];
    for (picked, _) in matrix.iter().zip(row).filter(|&(_, &here)| here) {
        for (word, bits) in out.iter_mut().zip(picked) {
            *word |= bits;
        }
    }
    out
}
