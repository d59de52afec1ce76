//! Derivatives: for each expression a table of runs of code points and what is left after them.
//!
//! A table is made out of the tables of the parts, never by trying code points. For `a|[a-c]x`
//! the parts have the runs `a: ε` and `a..c: x`; sweeping over both gives `a: ε|x` and `b..c: x`.
//! Tables are kept, all in one vector.
//!
//! First a table is *raw*: the target of a run may be an intersection or a complement that is
//! empty without looking it. [`Exprs::transitions`] then asks `empty.rs` and takes such runs out.
use super::class;
use super::intern::id;
use super::node::{Exprs, Life, Node, UNBOUNDED};
use super::{ExprId, Transition};
use crate::error::Result;
use crate::limits::Fuel;
use std::ops::Range;

/// Where the runs of an expression are in `Exprs::runs`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    start: u32,
    len: u32,
    /// No target is empty.
    live: bool,
}

impl Table {
    /// Not made yet.
    pub(super) const MISSING: Self = Self { start: u32::MAX, len: 0, live: false };
}

/// How the targets of several tables become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Any of the targets that are there.
    Or,
    /// All targets, if every table has one.
    And,
}

impl Exprs {
    /// All live code points with their derivatives: sorted, disjoint, adjacent runs with equal
    /// target merged; targets with an empty language are left out (exactly). Kept.
    ///
    /// # Errors
    /// When the fuel or the arena is used up.
    pub fn transitions(&mut self, expr: ExprId, fuel: &mut Fuel) -> Result<&[Transition]> {
        self.check()?;
        self.pay(fuel)?;
        self.ensure_table(expr, fuel)?;
        if !self.tables[expr.0 as usize].live {
            self.prune(expr, fuel)?;
        }
        Ok(self.table(expr))
    }

    /// Derivative by one code point; [`ExprId::NEVER`] when dead (exactly).
    ///
    /// # Errors
    /// When the fuel or the arena is used up.
    pub fn derive(&mut self, expr: ExprId, c: char, fuel: &mut Fuel) -> Result<ExprId> {
        Ok(find(self.transitions(expr, fuel)?, c))
    }

    /// Derivative by one code point, which may be empty without looking it.
    pub(super) fn derive_raw(&mut self, expr: ExprId, c: char, fuel: &mut Fuel) -> Result<ExprId> {
        fuel.spend(1)?;
        self.ensure_table(expr, fuel)?;
        Ok(find(self.table(expr), c))
    }

    /// The runs of a table that is there.
    pub(super) fn table(&self, expr: ExprId) -> &[Transition] {
        let Table { start, len, .. } = self.tables[expr.0 as usize];
        &self.runs[start as usize..(start + len) as usize]
    }

    fn has_table(&self, expr: ExprId) -> bool {
        self.tables[expr.0 as usize].start != u32::MAX
    }

    /// Takes the runs with an empty target out of a table.
    fn prune(&mut self, expr: ExprId, fuel: &mut Fuel) -> Result<()> {
        let Table { start, len, .. } = self.tables[expr.0 as usize];
        let mut kept = start as usize;
        if self.info(expr).boolean {
            for i in start as usize..(start + len) as usize {
                if self.life(self.runs[i].target) == Life::Unknown {
                    self.is_never(self.runs[i].target, fuel)?;
                }
            }
        }
        for i in start as usize..(start + len) as usize {
            let run = self.runs[i];
            if self.life(run.target) != Life::Dead {
                self.runs[kept] = run;
                kept += 1;
            }
        }
        self.tables[expr.0 as usize] = Table { start, len: id(kept) - start, live: true };
        Ok(())
    }

    /// Makes the raw table of `expr`, those of the parts it needs first.
    pub(super) fn ensure_table(&mut self, expr: ExprId, fuel: &mut Fuel) -> Result<()> {
        if self.has_table(expr) {
            return Ok(());
        }
        // What this pushes are parts, of which those that have parts push theirs, and so on.
        let mut stack = Vec::new();
        self.push_needed(expr, &mut stack);
        while let Some(&top) = stack.last() {
            let before = stack.len();
            if !self.has_table(top) {
                self.push_needed(top, &mut stack);
            }
            if stack.len() > before {
                // Also what ends an equation that comes to itself without reading anything.
                fuel.spend(1)?;
                continue;
            }
            stack.pop();
            if !self.has_table(top) {
                self.make_table(top, fuel)?;
            }
        }
        self.make_table(expr, fuel)
    }

    /// Pushes the parts without a table that the table of `expr` is made of.
    fn push_needed(&self, expr: ExprId, stack: &mut Vec<ExprId>) {
        let mut need = |part: ExprId| {
            if !self.has_table(part) {
                stack.push(part);
            }
        };
        match self.node(expr) {
            Node::Concat(first, second) => {
                need(first);
                if self.nullable(first) {
                    need(second);
                }
            }
            Node::Not(item) | Node::Repeat(item, ..) => need(item),
            Node::Later(number, _) => need(self.definitions[number as usize]),
            Node::Or(list) | Node::And(list) => {
                self.lists.get(list).iter().for_each(|&part| need(part));
            }
            _ => {}
        }
    }

    /// Makes a table out of those of the parts.
    fn make_table(&mut self, expr: ExprId, fuel: &mut Fuel) -> Result<()> {
        let (start, before, listed) = (self.runs.len(), self.len(), self.lists.pool_len());
        match self.node(expr) {
            Node::Never | Node::Epsilon => {}
            Node::Class(class) => {
                let target = ExprId::EPSILON;
                let ranges = self.classes.get(class).iter();
                self.runs.extend(ranges.map(|&(first, last)| Transition { first, last, target }));
            }
            Node::Literal(id, offset) => self.literal_runs(expr, id, offset),
            Node::Set(set) => {
                fuel.spend(u64::from(set.hi - set.lo))?;
                self.set_runs(expr, set);
            }
            Node::Span(document, state) => self.span_runs(document, state),
            Node::Repeat(item, min, max) => {
                let max = if max == UNBOUNDED { UNBOUNDED } else { max - 1 };
                let rest = self.repeat_counts(item, min.saturating_sub(1), max);
                self.then(item, rest, start, fuel)?;
            }
            Node::Concat(first, second) => {
                self.then(first, second, start, fuel)?;
                if self.nullable(first) {
                    let end = self.runs.len();
                    let tail = self.range(second);
                    self.merge((start..end, tail), Mode::Or, fuel)?;
                    self.runs.drain(start..end);
                }
            }
            Node::Not(item) => self.complement(item, start),
            Node::Later(number, _) => {
                let body = self.definitions[number as usize];
                self.runs.extend(self.table(body).to_vec());
            }
            Node::Or(list) => self.sweep_list(list, Mode::Or, start, fuel)?,
            Node::And(list) => self.sweep_list(list, Mode::And, start, fuel)?,
        }
        let len = self.runs.len() - start;
        // Most of the work is making the expressions of the targets, the longer lists of parts the more. The
        // weights are those of a fit to the times of hostile patterns.
        let (made, listed) = (self.len() - before, self.lists.pool_len() - listed);
        fuel.spend(8 + len as u64 / 4 + 7 * made as u64 + 2 * listed as u64)?;
        self.check()?;
        let live = !self.info(expr).boolean;
        self.tables[expr.0 as usize] = Table { start: id(start), len: id(len), live };
        Ok(())
    }

    /// Appends the table of `first` with `second` put after each target.
    fn then(&mut self, first: ExprId, second: ExprId, start: usize, fuel: &mut Fuel) -> Result<()> {
        let Table { start: from, len, .. } = self.tables[first.0 as usize];
        let mut last = (ExprId::NEVER, ExprId::NEVER);
        for i in from as usize..(from + len) as usize {
            let run = self.runs[i];
            if run.target != last.0 {
                fuel.spend(1)?;
                last = (run.target, self.join(run.target, second));
            }
            self.push_run(start, Transition { target: last.1, ..run });
        }
        Ok(())
    }

    /// Appends the table of the complement of `item`: complements, and anything in the gaps.
    fn complement(&mut self, item: ExprId, start: usize) {
        let Table { start: from, len, .. } = self.tables[item.0 as usize];
        let mut next = 0;
        let mut known = (ExprId::NEVER, ExprId::ANY);
        for i in from as usize..(from + len) as usize {
            let Transition { first, last, target } = self.runs[i];
            self.push_gap(start, next, first);
            if target != known.0 {
                known = (target, self.not(target));
            }
            self.push_run(start, Transition { first, last, target: known.1 });
            next = last + 1;
        }
        self.push_gap(start, next, class::LAST + 1);
    }

    /// Appends [`ExprId::ANY`] for the scalar values from `next` to below `end`.
    fn push_gap(&mut self, start: usize, next: u32, end: u32) {
        for (first, last) in class::ALL {
            let (first, last) = (first.max(next), last.min(end.saturating_sub(1)));
            if first <= last && next < end {
                self.push_run(start, Transition { first, last, target: ExprId::ANY });
            }
        }
    }

    /// Appends a run to the table that began at `start`.
    fn push_run(&mut self, start: usize, run: Transition) {
        if self.life(run.target) == Life::Dead {
            return;
        }
        if self.runs.len() > start
            && let Some(previous) = self.runs.last_mut()
            && previous.target == run.target
            && previous.last + 1 == run.first
        {
            previous.last = run.last;
        } else {
            self.runs.push(run);
        }
    }

    /// Where the table of `expr` is.
    fn range(&self, expr: ExprId) -> Range<usize> {
        let Table { start, len, .. } = self.tables[expr.0 as usize];
        start as usize..(start + len) as usize
    }

    fn sweep_list(&mut self, list: u32, mode: Mode, start: usize, fuel: &mut Fuel) -> Result<()> {
        let parts = self.lists.get(list);
        if let [a, b] = *parts {
            return self.merge((self.range(a), self.range(b)), mode, fuel);
        }
        let count = parts.len();
        let mut cursors = Vec::with_capacity(count);
        for &part in parts {
            let mut rest = self.range(part);
            cursors.extend(self.next_run(&mut rest).map(|run| Cursor { run, rest }));
        }
        self.sweep(cursors, count, mode, start, fuel)
    }

    /// Appends the product of two tables: the common case of [`Exprs::sweep`], in one pass.
    fn merge(
        &mut self,
        (mut a, mut b): (Range<usize>, Range<usize>),
        mode: Mode,
        fuel: &mut Fuel,
    ) -> Result<()> {
        fuel.spend((a.len() + b.len()) as u64 / 8)?;
        let start = self.runs.len();
        let mut known = Recent::default();
        let (mut x, mut y) = (self.next_run(&mut a), self.next_run(&mut b));
        loop {
            let (p, q) = match (x, y) {
                (Some(p), Some(q)) => (p, q),
                (Some(one), None) | (None, Some(one)) if mode == Mode::Or => {
                    self.push_run(start, one);
                    (x, y) = (self.next_run(&mut a), self.next_run(&mut b));
                    continue;
                }
                _ => return Ok(()),
            };
            let first = p.first.max(q.first);
            if mode == Mode::Or && p.first != q.first {
                // The piece of the earlier one before the later one begins.
                let earlier = if p.first < q.first { p } else { q };
                let last = earlier.last.min(first - 1);
                self.push_run(start, Transition { last, ..earlier });
            }
            let last = p.last.min(q.last);
            if first <= last {
                let target = self.combine_two(p.target, q.target, mode, &mut known);
                self.push_run(start, Transition { first, last, target });
            }
            // What is left of each after the border; a run that ended makes room for the next.
            let border = if first <= last { last } else { first - 1 };
            x = if p.last <= border { self.next_run(&mut a) } else { after(p, border) };
            y = if q.last <= border { self.next_run(&mut b) } else { after(q, border) };
        }
    }

    fn next_run(&self, range: &mut Range<usize>) -> Option<Transition> {
        range.next().map(|i| self.runs[i])
    }

    fn combine_two(&mut self, a: ExprId, b: ExprId, mode: Mode, known: &mut Recent) -> ExprId {
        if let Some(&(_, _, result)) = known.0.iter().find(|k| k.0 == a && k.1 == b) {
            return result;
        }
        let result = match mode {
            Mode::Or => self.any_of(&[a, b]),
            Mode::And => self.all_of(&[a, b]),
        };
        known.0.rotate_right(1);
        known.0[0] = (a, b, result);
        result
    }

    /// Appends the product of `count` tables, with cursors on those that are not empty. A sweep over all code
    /// points, from border to border: between two of them the set of runs that are open stays the same.
    fn sweep(
        &mut self,
        mut cursors: Vec<Cursor>,
        count: usize,
        mode: Mode,
        start: usize,
        fuel: &mut Fuel,
    ) -> Result<()> {
        let mut combined = Combined::default();
        let (mut at, mut steps) = (0, 0);
        while !cursors.is_empty() && (mode == Mode::Or || cursors.len() == count) {
            // The border is where the next run ends or begins.
            let mut border = u32::MAX;
            combined.key.clear();
            for Cursor { run, .. } in &cursors {
                if run.first <= at {
                    combined.key.push(run.target);
                    border = border.min(run.last);
                } else {
                    border = border.min(run.first - 1);
                }
            }
            let open = combined.key.len();
            steps += 8 + (cursors.len() + open) as u64;
            fuel.spend(steps / 16)?;
            steps %= 16;
            if open == count || mode == Mode::Or && open > 0 {
                let target = self.combine(mode, &mut combined);
                self.push_run(start, Transition { first: at, last: border, target });
            }
            // Runs that end at the border make room for the next of their tables.
            cursors.retain_mut(|cursor| {
                if cursor.run.last > border {
                    return true;
                }
                self.next_run(&mut cursor.rest).map(|run| cursor.run = run).is_some()
            });
            at = border + 1;
        }
        Ok(())
    }

    /// The union or intersection of the targets of the runs that are open, which are the key.
    fn combine(&mut self, mode: Mode, known: &mut Combined) -> ExprId {
        if let [one] = *known.key {
            return one;
        }
        if let Some(result) = known.find() {
            return result;
        }
        let result = match mode {
            Mode::Or => self.any_of(&known.key),
            Mode::And => self.all_of(&known.key),
        };
        known.keep(result);
        result
    }
}

/// A table that is swept over.
struct Cursor {
    /// The run that is open, or is the next to be.
    run: Transition,
    /// The runs after it.
    rest: Range<usize>,
}

/// What is left of a run after `border`.
fn after(run: Transition, border: u32) -> Option<Transition> {
    Some(Transition { first: run.first.max(border + 1), ..run })
}

/// The last few combinations of two targets. No target is `NEVER`, with which it begins.
struct Recent([(ExprId, ExprId, ExprId); 4]);

impl Default for Recent {
    fn default() -> Self {
        Self([(ExprId::NEVER, ExprId::NEVER, ExprId::NEVER); 4])
    }
}

/// The first few combinations of a sweep: large classes alternate between two or three.
#[derive(Default)]
struct Combined {
    key: Vec<ExprId>,
    /// Keys, one after the other.
    keys: Vec<ExprId>,
    /// Where each of them ends, and what it became.
    recent: Vec<(usize, ExprId)>,
}

impl Combined {
    const SIZE: usize = 8;

    /// What the key became before.
    fn find(&self) -> Option<ExprId> {
        let mut start = 0;
        for &(end, result) in &self.recent {
            if self.keys[start..end] == self.key[..] {
                return Some(result);
            }
            start = end;
        }
        None
    }

    /// Keeps what the key became, while there is room.
    fn keep(&mut self, result: ExprId) {
        if self.recent.len() < Self::SIZE {
            self.keys.extend_from_slice(&self.key);
            self.recent.push((self.keys.len(), result));
        }
    }
}

/// The target of the run that holds `c`.
fn find(table: &[Transition], c: char) -> ExprId {
    let c = u32::from(c);
    let at = table.partition_point(|run| run.last < c);
    table.get(at).filter(|run| run.first <= c).map_or(ExprId::NEVER, |run| run.target)
}
