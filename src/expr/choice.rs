//! Constructors of unions and intersections, with normalisation.
//!
//! Two constructors of each: the public ones also do what costs more and needs doing once (words
//! become one set; a finite set is filtered by what it is intersected with). Derivatives use the
//! plain ones, [`Exprs::any_of`] and [`Exprs::all_of`].
use super::ExprId;
use super::class;
use super::node::{Exprs, Life, Node, UNBOUNDED};
use crate::limits::Fuel;

/// A finite set with more strings than this is not filtered when it is intersected.
const FILTER_LIMIT: u64 = 10_000;
/// Work that filtering may take.
const FILTER_FUEL: u64 = 400_000;
/// Steps of filtering that are one unit of fuel: mostly they look up what is known.
const STEPS_PER_UNIT: u64 = 4;

impl Exprs {
    /// Any of `parts`.
    pub fn or(&mut self, parts: &[ExprId]) -> ExprId {
        let mut flat = Vec::with_capacity(parts.len());
        for &part in parts {
            match self.node(part) {
                Node::Or(list) => flat.extend_from_slice(self.lists.get(list)),
                _ => flat.push(part),
            }
        }
        self.merge_literals(&mut flat);
        self.any_of(&flat)
    }

    /// All of `parts`; [`ExprId::ANY`] if there are none.
    ///
    /// A set of literals (up to 10,000) is filtered by the other parts, so that literals stay
    /// literals. Literals that complements exclude become one set, without those that the other
    /// parts exclude anyway.
    pub fn and(&mut self, parts: &[ExprId]) -> ExprId {
        let mut flat = Vec::with_capacity(parts.len());
        for &part in parts {
            match self.node(part) {
                Node::And(list) => flat.extend_from_slice(self.lists.get(list)),
                _ => flat.push(part),
            }
        }
        if let Some(at) = flat.iter().position(|&part| self.is_small_set(part)) {
            let set = flat.swap_remove(at);
            let rest = self.all_of(&flat);
            return match self.filtered_by(set, rest) {
                Some(left) => left,
                None => self.all_of(&[set, rest]),
            };
        }
        let mut excluded = Vec::new();
        let mut others = Vec::new();
        for part in flat {
            self.split_complement(part, &mut excluded, &mut others);
        }
        let others = self.all_of(&others);
        if excluded.is_empty() {
            return others;
        }
        let excluded = self.or(&excluded);
        let excluded = self.filtered_by(excluded, others).unwrap_or(excluded);
        let complement = self.not(excluded);
        self.all_of(&[others, complement])
    }

    /// Sorts a part of an intersection into sets of literals that it excludes, and the rest.
    fn split_complement(
        &mut self,
        part: ExprId,
        excluded: &mut Vec<ExprId>,
        others: &mut Vec<ExprId>,
    ) {
        let Node::Not(inner) = self.node(part) else {
            return others.push(part);
        };
        let inner = match self.node(inner) {
            Node::Or(list) => self.lists.get(list).to_vec(),
            _ => vec![inner],
        };
        let (sets, rest): (Vec<ExprId>, Vec<ExprId>) =
            inner.into_iter().partition(|&part| self.is_small_set(part));
        if sets.is_empty() {
            return others.push(part);
        }
        excluded.extend(sets);
        if !rest.is_empty() {
            let rest = self.any_of(&rest);
            others.push(self.not(rest));
        }
    }

    fn is_small_set(&self, expr: ExprId) -> bool {
        match self.node(expr) {
            Node::Literal(..) => true,
            Node::Set(set) => u64::from(set.hi - set.lo) <= FILTER_LIMIT,
            _ => false,
        }
    }

    /// The literals of `set` (a set, or a union of some) that match `other`, unless that takes
    /// too much work.
    fn filtered_by(&mut self, set: ExprId, other: ExprId) -> Option<ExprId> {
        if other == ExprId::ANY {
            return Some(set);
        }
        let depth = match self.node(set) {
            Node::Literal(_, offset) => offset,
            Node::Set(set) => set.depth,
            Node::Or(list) => {
                let mut parts = self.lists.get(list).to_vec();
                for part in &mut parts {
                    *part = self.filtered_by(*part, other)?;
                }
                return Some(self.any_of(&parts));
            }
            _ => return None,
        };
        let ids = self.literals_left(set)?;
        let fuel = &mut Fuel::new(FILTER_FUEL);
        let keep = self.matching(&ids, depth as usize, other, fuel);
        self.unpaid += fuel.spent() / STEPS_PER_UNIT;
        let keep = keep.ok()?;
        Some(match depth {
            // A set of its own, so that it is the same whichever way it came about.
            0 => self.literal_set(keep),
            _ => self.literals_filtered(set, &|id| keep.binary_search(&id).is_ok()),
        })
    }

    /// Any of `parts`, without the merging of literals.
    pub(super) fn any_of(&mut self, parts: &[ExprId]) -> ExprId {
        match *parts {
            [] => return ExprId::NEVER,
            [one] => return if self.life(one) == Life::Dead { ExprId::NEVER } else { one },
            _ => {}
        }
        let mut flat = Vec::with_capacity(parts.len());
        let mut ranges = Vec::new();
        let (mut optional, mut nested) = (false, false);
        for &part in parts {
            let (mut part, mut node) = (part, self.node(part));
            if let Node::Repeat(item, 0, 1) = node {
                optional = true;
                (part, node) = (item, self.node(item));
            }
            match node {
                _ if self.life(part) == Life::Dead => {}
                _ if part == ExprId::ANY => return ExprId::ANY,
                Node::Epsilon => optional = true,
                Node::Class(class) => ranges.push(class),
                Node::Or(list) => {
                    nested = true;
                    flat.extend_from_slice(self.lists.get(list));
                }
                _ => flat.push(part),
            }
        }
        if nested {
            flat.retain(|&part| match self.node(part) {
                Node::Class(class) => {
                    ranges.push(class);
                    false
                }
                _ => true,
            });
        }
        flat.extend(self.class_union(&ranges));
        // Sorting and comparing them, here and by who asks for the union.
        self.unpaid += flat.len() as u64;
        // The stable sort, which merges sorted runs: most of the parts come in lists.
        flat.sort();
        flat.dedup();
        let kinds = self.kinds(&flat);
        if kinds.counted {
            self.merge_repeats(&mut flat);
        }
        if kinds.window {
            self.drop_covered(&mut flat);
        }
        if flat.contains(&ExprId::ANY) || kinds.complement && self.has_complement(&flat) {
            return ExprId::ANY;
        }
        let any = match *flat {
            [] => return if optional { ExprId::EPSILON } else { ExprId::NEVER },
            [one] => one,
            _ => {
                let list = self.lists.intern(&flat);
                self.add(Node::Or(list))
            }
        };
        if optional { self.repeat_counts(any, 0, 1) } else { any }
    }

    /// What there is to look for in the parts of a union.
    fn kinds(&self, parts: &[ExprId]) -> Kinds {
        let mut kinds = Kinds::default();
        for &part in parts {
            match self.node(part) {
                Node::Class(_) => kinds.window |= part == ExprId::ANY_CHAR,
                Node::Repeat(item, ..) => {
                    kinds.counted = true;
                    kinds.window |= item == ExprId::ANY_CHAR;
                }
                Node::Concat(head, _) => {
                    kinds.counted = kinds.counted || matches!(self.node(head), Node::Repeat(..));
                }
                Node::Not(_) => kinds.complement = true,
                _ => {}
            }
        }
        kinds
    }

    /// One class for all of these.
    fn class_union(&mut self, classes: &[u32]) -> Option<ExprId> {
        match *classes {
            [] => None,
            [one] => Some(self.add(Node::Class(one))),
            _ => {
                let mut ranges: Vec<class::Range> =
                    classes.iter().flat_map(|&c| self.classes.get(c).iter().copied()).collect();
                class::normalise(&mut ranges);
                Some(self.class_of(&ranges))
            }
        }
    }

    /// `X{a,b}T|X{c,d}T` = `X{min,max}T` where the counts touch: else `.{0,9}x.{0,9}` and its like
    /// give a part for each count.
    fn merge_repeats(&mut self, flat: &mut Vec<ExprId>) {
        let mut counted: Vec<(ExprId, ExprId, u64, u64)> = Vec::with_capacity(flat.len() + 1);
        for &part in flat.iter() {
            counted.extend(self.counted_head(part));
        }
        // `X` is `X{1,1}` beside another repetition of it.
        let items = counted.iter().filter(|c| c.1 == ExprId::EPSILON).map(|c| c.0);
        let bare: Vec<ExprId> = items.filter(|item| flat.binary_search(item).is_ok()).collect();
        counted.extend(bare.iter().map(|&item| (item, ExprId::EPSILON, 1, 1)));
        if counted.len() < 2 {
            return;
        }
        counted.sort_unstable();
        counted.dedup();
        let touch = |a: &(ExprId, ExprId, u64, u64), b: &(ExprId, ExprId, u64, u64)| {
            (a.0, a.1) == (b.0, b.1) && b.2 <= a.3.saturating_add(1)
        };
        if !counted.windows(2).any(|pair| touch(&pair[0], &pair[1])) {
            return;
        }
        let mut merged: Vec<(ExprId, ExprId, u64, u64)> = Vec::with_capacity(counted.len());
        for next in counted.iter().copied() {
            match merged.last_mut() {
                Some(last) if touch(last, &next) => last.3 = last.3.max(next.3),
                _ => merged.push(next),
            }
        }
        flat.retain(|&part| self.counted_head(part).is_none());
        flat.retain(|part| !bare.contains(part));
        for (item, tail, min, max) in merged {
            let head = self.repeat_counts(item, min, max);
            let whole = self.join(head, tail);
            flat.push(whole);
        }
        flat.sort_unstable();
        flat.dedup();
    }

    /// `X{a,b}T` as `(X, T, a, b)`.
    fn counted_head(&self, part: ExprId) -> Option<(ExprId, ExprId, u64, u64)> {
        let (head, tail) = match self.node(part) {
            Node::Concat(head, tail) => (head, tail),
            _ => (part, ExprId::EPSILON),
        };
        match self.node(head) {
            Node::Repeat(item, min, max) => Some((item, tail, min, max)),
            _ => None,
        }
    }

    /// Drops what a part `.{m,n}` covers by its lengths.
    fn drop_covered(&mut self, flat: &mut Vec<ExprId>) {
        for i in 0..flat.len() {
            let Some(&window) = flat.get(i) else { return };
            if let (ExprId::ANY_CHAR, min, max) = self.counts(window) {
                flat.retain(|&part| {
                    let info = self.info(part);
                    part == window || info.min < min || info.max > max
                });
            }
        }
    }

    /// Whether sorted `parts` hold an expression and its complement.
    fn has_complement(&self, parts: &[ExprId]) -> bool {
        parts.iter().any(|&part| match self.node(part) {
            Node::Not(inner) => parts.binary_search(&inner).is_ok(),
            _ => false,
        })
    }

    /// All of `parts`, without filtering of literals.
    pub(super) fn all_of(&mut self, parts: &[ExprId]) -> ExprId {
        match *parts {
            [] => return ExprId::ANY,
            [one] => return one,
            _ => {}
        }
        if parts.iter().any(|&part| self.life(part) == Life::Dead) {
            return ExprId::NEVER;
        }
        let mut all = std::mem::take(&mut self.conjunction);
        for &part in parts {
            match self.node(part) {
                Node::And(list) => {
                    for i in 0..self.lists.get(list).len() {
                        self.conjoin(&mut all, self.lists.get(list)[i]);
                    }
                }
                _ => self.conjoin(&mut all, part),
            }
        }
        let result = self.finish_and(&mut all);
        all.clear();
        self.conjunction = all;
        result
    }

    /// Sorts one part, which is no `And`, into a conjunction.
    fn conjoin(&mut self, all: &mut Conjunction, part: ExprId) {
        if self.is_empty_string(part) {
            all.empty_string = Some(all.empty_string.map_or(part, |other| other.max(part)));
            return;
        }
        if let Node::Not(inner) = self.node(part) {
            all.nots.push(inner);
            return;
        }
        let (item, min, max) = self.counts(part);
        let Node::Class(class) = self.node(item) else {
            all.others.push(part);
            return;
        };
        all.min = all.min.max(min);
        all.max = all.max.min(max);
        if item == ExprId::ANY_CHAR {
            return;
        }
        all.class = Some(match all.class {
            None => class,
            Some(other) => {
                let both = class::intersect(self.classes.get(other), self.classes.get(class));
                self.classes.intern(&both)
            }
        });
    }

    fn finish_and(&mut self, all: &mut Conjunction) -> ExprId {
        all.others.sort_unstable();
        all.others.dedup();
        all.nots.sort_unstable();
        all.nots.dedup();
        if all.nots.iter().any(|inner| all.others.binary_search(inner).is_ok()) {
            return ExprId::NEVER;
        }
        let excluded = self.any_of(&all.nots);
        let complement = self.not(excluded);
        match self.node(complement) {
            Node::Not(_) => all.others.push(complement),
            _ if complement == ExprId::ANY => {}
            _ => {
                // The union of what is excluded became a plain expression: take it in as one.
                all.nots.clear();
                if self.life(complement) == Life::Dead {
                    return ExprId::NEVER;
                }
                let mut again = std::mem::take(&mut all.others);
                again.push(complement);
                again.extend(self.class_part(all));
                again.extend(all.empty_string);
                return self.all_of(&again);
            }
        }
        self.close_and(all)
    }

    /// The parts of a conjunction that are repetitions of classes, as one.
    fn class_part(&mut self, all: &Conjunction) -> Option<ExprId> {
        let item = match all.class {
            None => ExprId::ANY_CHAR,
            Some(class) if self.classes.get(class).is_empty() => ExprId::NEVER,
            Some(class) => self.add(Node::Class(class)),
        };
        let part = self.repeat_counts(item, all.min, all.max);
        (part != ExprId::ANY).then_some(part)
    }

    /// The last step: lengths. `others` holds at most one `Not`, by now.
    fn close_and(&mut self, all: &mut Conjunction) -> ExprId {
        let (mut least, mut most) = (0, UNBOUNDED);
        for &part in &all.others {
            let info = self.info(part);
            least = least.max(info.min);
            most = most.min(info.max);
        }
        if least > all.max || most < all.min || all.min > all.max {
            return ExprId::NEVER;
        }
        // Bounds that the other parts keep anyway say nothing: dropping them makes states equal.
        if !all.others.is_empty() {
            all.min = if least >= all.min { 0 } else { all.min };
            all.max = if most <= all.max { UNBOUNDED } else { all.max };
        }
        let counted = self.class_part(all);
        let empty = match counted {
            Some(part) if self.is_empty_string(part) => Some(part),
            Some(ExprId::NEVER) => return ExprId::NEVER,
            _ => None,
        };
        if let Some(empty) = all.empty_string.or(empty) {
            let nullable = all.min == 0 && all.others.iter().all(|&part| self.nullable(part));
            return if nullable { empty } else { ExprId::NEVER };
        }
        let parts = &mut all.others;
        parts.extend(counted);
        parts.sort_unstable();
        match **parts {
            [] => ExprId::ANY,
            [one] => one,
            _ => {
                let list = self.lists.intern(parts);
                let and = self.add(Node::And(list));
                let info = self.info(and);
                if info.min > info.max { ExprId::NEVER } else { and }
            }
        }
    }
}

/// What the parts of a union have among them.
#[derive(Default)]
struct Kinds {
    /// A repetition, perhaps with something after it.
    counted: bool,
    /// A repetition of any character.
    window: bool,
    complement: bool,
}

/// The parts of an intersection by kind.
#[derive(Debug, Clone)]
pub(super) struct Conjunction {
    /// A part that matches only the empty string.
    empty_string: Option<ExprId>,
    /// What the complements exclude.
    nots: Vec<ExprId>,
    /// Repetitions of classes: the intersection of the classes (`None`: any), and of the counts.
    class: Option<u32>,
    min: u64,
    max: u64,
    others: Vec<ExprId>,
}

impl Default for Conjunction {
    fn default() -> Self {
        let (min, max) = (0, UNBOUNDED);
        Self { empty_string: None, nots: Vec::new(), class: None, min, max, others: Vec::new() }
    }
}

impl Conjunction {
    /// Makes it that of no parts; its room stays for the next.
    fn clear(&mut self) {
        self.nots.clear();
        self.others.clear();
        let (nots, others) = (std::mem::take(&mut self.nots), std::mem::take(&mut self.others));
        *self = Self { nots, others, ..Self::default() };
    }
}
