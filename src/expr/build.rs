//! Constructors of classes, concatenations, repetitions and complements, with normalisation.
use super::ExprId;
use super::class::{self, Range};
use super::node::{Exprs, Life, Node, UNBOUNDED};

impl Exprs {
    /// One code point out of `ranges` (any order, may overlap; surrogates are dropped).
    pub fn class(&mut self, ranges: &[(char, char)]) -> ExprId {
        let mut ranges: Vec<Range> =
            ranges.iter().map(|&(first, last)| (u32::from(first), u32::from(last))).collect();
        class::normalise(&mut ranges);
        self.class_of(&ranges)
    }

    /// One code point out of normalised `ranges`.
    pub(super) fn class_of(&mut self, ranges: &[Range]) -> ExprId {
        if ranges.is_empty() {
            return ExprId::NEVER;
        }
        let class = self.classes.intern(ranges);
        self.add(Node::Class(class))
    }

    /// One after the other. Neighbouring whole literals become one literal.
    pub fn concat(&mut self, parts: &[ExprId]) -> ExprId {
        let mut joined: Vec<ExprId> = Vec::with_capacity(parts.len());
        let mut text = String::new();
        let mut i = 0;
        while let Some(&part) = parts.get(i) {
            let literals = parts[i..].iter().take_while(|&&p| self.whole_literal(p).is_some());
            let count = literals.count();
            if count < 2 {
                joined.push(part);
                i += 1;
                continue;
            }
            text.clear();
            for &part in &parts[i..i + count] {
                text.push_str(self.whole_literal(part).unwrap_or_default());
            }
            joined.push(self.literal(&text));
            i += count;
        }
        joined.iter().rev().fold(ExprId::EPSILON, |tail, &part| self.join(part, tail))
    }

    /// The text of a literal that nothing was taken off yet.
    fn whole_literal(&self, expr: ExprId) -> Option<&str> {
        match self.node(expr) {
            Node::Literal(id, 0) => Some(self.literal_text(id)),
            _ => None,
        }
    }

    /// `first` then `second`. What `first` is made of is put in front of `second` piece by piece;
    /// the results are kept, so that stepping through a long concatenation is linear.
    pub(super) fn join(&mut self, first: ExprId, second: ExprId) -> ExprId {
        if second == ExprId::EPSILON {
            return self.pair(first, second);
        }
        let mut spine = Vec::new();
        let mut rest = first;
        let mut out = loop {
            let Node::Concat(head, tail) = self.node(rest) else {
                break self.pair(rest, second);
            };
            if let Some(&known) = self.joined.get(&(rest, second)) {
                break known;
            }
            spine.push((rest, head));
            rest = tail;
        };
        while let Some((whole, head)) = spine.pop() {
            out = self.pair(head, out);
            self.joined.insert((whole, second), out);
        }
        out
    }

    /// `first` then `second`, where `first` is no concatenation (or `second` is empty).
    fn pair(&mut self, first: ExprId, mut second: ExprId) -> ExprId {
        if self.life(first) == Life::Dead || self.life(second) == Life::Dead {
            return ExprId::NEVER;
        }
        if self.is_empty_string(first) {
            return second;
        }
        let (head, tail) = loop {
            if self.is_empty_string(second) {
                return first;
            }
            let (head, tail) = match self.node(second) {
                Node::Concat(head, tail) => (head, tail),
                _ => (second, ExprId::EPSILON),
            };
            if first != ExprId::ANY || !self.nullable(head) {
                break (head, tail);
            }
            second = tail;
        };
        if head == ExprId::ANY && self.nullable(first) {
            return second;
        }
        match self.merge_counts(first, head) {
            Some(merged) if tail == ExprId::EPSILON => merged,
            Some(merged) => self.add(Node::Concat(merged, tail)),
            None => self.add(Node::Concat(first, second)),
        }
    }

    /// `X{a,b}X{c,d}` = `X{a+c,b+d}`.
    fn merge_counts(&mut self, first: ExprId, second: ExprId) -> Option<ExprId> {
        let (x, a, b) = self.counts(first);
        let (y, c, d) = self.counts(second);
        // `X{2}` then `X{2}{3}` has the item of one as the other: only equal items merge.
        if x != y {
            return None;
        }
        let max = if b == UNBOUNDED || d == UNBOUNDED { UNBOUNDED } else { b.checked_add(d)? };
        let min = a.checked_add(c)?;
        Some(self.repeat_counts(x, min, max))
    }

    /// An expression as item, least and greatest count.
    pub(super) fn counts(&self, expr: ExprId) -> (ExprId, u64, u64) {
        match self.node(expr) {
            Node::Repeat(item, min, max) => (item, min, max),
            _ => (expr, 1, 1),
        }
    }

    /// `item`, `min` to `max` times; the empty language if `max < min`.
    pub fn repeat(&mut self, item: ExprId, min: u64, max: Option<u64>) -> ExprId {
        self.repeat_counts(item, min, max.unwrap_or(UNBOUNDED))
    }

    pub(super) fn repeat_counts(&mut self, item: ExprId, min: u64, max: u64) -> ExprId {
        if max < min {
            return ExprId::NEVER;
        }
        if max == 0 || self.is_empty_string(item) {
            return ExprId::EPSILON;
        }
        if self.life(item) == Life::Dead {
            return if min == 0 { ExprId::EPSILON } else { ExprId::NEVER };
        }
        let min = if self.nullable(item) { 0 } else { min };
        if max == 1 && (min == 1 || self.nullable(item)) {
            return item;
        }
        if let Node::Repeat(inner, a, b) = self.node(item)
            && let Some((min, max)) = nested_counts((a, b), (min, max))
        {
            return self.add(Node::Repeat(inner, min, max));
        }
        self.add(Node::Repeat(item, min, max))
    }

    /// A name for an expression that is yet to be made, so that it can occur in itself: see
    /// [`Exprs::define`]. `nullable` is whether it will match the empty string.
    ///
    /// By hand, the strings of `a` and `b` in which no `b` follows an `a`, as an equation instead
    /// of `b*a*`: `X = () | bX | (aX & not(ab.*))`.
    pub fn reserve(&mut self, nullable: bool) -> ExprId {
        let number = u32::try_from(self.definitions.len()).unwrap_or(u32::MAX);
        self.definitions.push(ExprId::NEVER);
        self.add(Node::Later(number, nullable))
    }

    /// Makes a reserved expression the same as `body`.
    ///
    /// Where `body` comes to a reserved expression again, itself or by way of others, at least
    /// one code point must have been read: then the equation has one solution.
    pub fn define(&mut self, reserved: ExprId, body: ExprId) {
        if let Node::Later(number, nullable) = self.node(reserved) {
            debug_assert_eq!(nullable, self.nullable(body));
            self.definitions[number as usize] = body;
        }
    }

    /// Everything but `expr`.
    pub fn not(&mut self, expr: ExprId) -> ExprId {
        if self.life(expr) == Life::Dead {
            return ExprId::ANY;
        }
        if self.is_empty_string(expr) {
            return self.repeat(ExprId::ANY_CHAR, 1, None);
        }
        if let Node::Not(inner) = self.node(expr) {
            return inner;
        }
        let (ExprId::ANY_CHAR, min, max) = self.counts(expr) else {
            return self.add(Node::Not(expr));
        };
        let shorter = match min.checked_sub(1) {
            Some(below) => self.repeat(ExprId::ANY_CHAR, 0, Some(below)),
            None => ExprId::NEVER,
        };
        let longer = match max.checked_add(1) {
            Some(above) => self.repeat(ExprId::ANY_CHAR, above, None),
            None => ExprId::NEVER,
        };
        self.or(&[shorter, longer])
    }
}

/// `X{a,b}{c,d}` as one repetition, if its counts have no gap: `k` items give `ka` to `kb`, and
/// the blocks of `k` and `k + 1` touch for every `k` if they do for the least one.
fn nested_counts((a, b): (u64, u64), (c, d): (u64, u64)) -> Option<(u64, u64)> {
    let multiply = |x: u64, y: u64| match (x, y) {
        (0, _) | (_, 0) => Some(0),
        (UNBOUNDED, _) | (_, UNBOUNDED) => Some(UNBOUNDED),
        _ => x.checked_mul(y).filter(|&product| product != UNBOUNDED),
    };
    let (min, max) = (multiply(c, a)?, multiply(d, b)?);
    let touch = c == d || multiply(c, b)?.saturating_add(1) >= multiply(c + 1, a)?;
    touch.then_some((min, max))
}
