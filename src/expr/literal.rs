//! Literals, and sets of literals as one leaf.
//!
//! A set is its strings in sorted order and nothing more: a state of it is the range of strings
//! that share the prefix read so far, and a derivative is a binary search for the end of the
//! strings that go on with the same code point. `{"id", "ids", "name"}` is `0..3` at depth 0;
//! after `i` it is `0..2` at depth 1; after `n` it is one string, from then on a
//! [`Literal`](super::View::Literal) that is the same in whatever set it came from.
//!
//! A filter takes strings out of a set. A filtered state holds only the bits of its own range, cut
//! to the first and last string left, and no filter at all if the range is whole: equal
//! remainders are equal states, however they came about.
use super::intern::id;
use super::node::{Exprs, Node, SetNode};
use super::{ExprId, LiteralId, Transition, View};
use std::sync::Arc;

/// Strings below this number are merged into one set by `or`.
const MERGE_LIMIT: usize = 1024;

impl Exprs {
    /// Exactly this string.
    pub fn literal(&mut self, text: &str) -> ExprId {
        let id = self.literal_id(text);
        self.literal_from(id, 0, u64::from(self.texts.chars(id.0)))
    }

    /// Exactly these strings (duplicates allowed). A leaf, not an `or`: 100,000 strings are fine.
    pub fn literals(&mut self, texts: &[&str]) -> ExprId {
        let ids = texts.iter().map(|text| self.literal_id(text)).collect();
        self.literal_set(ids)
    }

    /// Interns a literal string; the same text has the same id in this arena.
    pub fn literal_id(&mut self, text: &str) -> LiteralId {
        match self.texts.find(text) {
            Some(found) => LiteralId(found),
            None => LiteralId(Arc::make_mut(&mut self.texts).insert(text)),
        }
    }

    /// The text of a literal.
    pub fn literal_text(&self, id: LiteralId) -> &str {
        self.texts.get(id.0)
    }

    /// The literal that ends here: of a [`View::Literal`] at its end, and of a set of which one
    /// string ends here while others go on.
    pub fn completed_literal(&self, expr: ExprId) -> Option<LiteralId> {
        match self.node(expr) {
            Node::Literal(id, _) if self.nullable(expr) => Some(id),
            Node::Set(set) if self.nullable(expr) => Some(self.set_literal(set.set, set.lo)),
            _ => None,
        }
    }

    /// Whether an expression that nothing was read of is a literal or a set of them. Only then is
    /// [`Exprs::completed_literal`] all that was read: behind `[ab]+`, the literal of `[ab]+c` is `c`.
    pub fn is_literals(&self, expr: ExprId) -> bool {
        matches!(self.node(expr), Node::Literal(..) | Node::Set(..))
    }

    /// The literals left in a literal or a set, in order; `None` for other expressions.
    pub fn literals_left(&self, expr: ExprId) -> Option<Vec<LiteralId>> {
        match self.node(expr) {
            Node::Never => Some(Vec::new()),
            Node::Literal(id, _) => Some(vec![id]),
            Node::Set(set) => Some(self.kept(set).map(|i| self.set_literal(set.set, i)).collect()),
            _ => None,
        }
    }

    /// The literals left in a literal or a set, in the order of their texts, and how many bytes of
    /// each were read; `None` for other expressions and for nothing.
    pub fn literal_tails(&self, expr: ExprId) -> Option<(Vec<LiteralId>, usize)> {
        let offset = match self.node(expr) {
            Node::Literal(_, offset) => offset,
            Node::Set(set) => set.depth,
            _ => return None,
        };
        Some((self.literals_left(expr)?, offset as usize))
    }

    /// The strings of a literal or a set of literals for which `keep` holds. States that are left
    /// with the same strings are equal. Alternatives of an `or` are filtered each; what is no
    /// literal stays.
    pub fn literals_filtered(&mut self, expr: ExprId, keep: &dyn Fn(LiteralId) -> bool) -> ExprId {
        match self.node(expr) {
            Node::Literal(id, _) if !keep(id) => ExprId::NEVER,
            Node::Set(set) => {
                let depth_chars = self.depth_chars(expr, set);
                let kept: Vec<u32> =
                    self.kept(set).filter(|&i| keep(self.set_literal(set.set, i))).collect();
                self.set_of(set, set.depth, depth_chars, &kept)
            }
            Node::Or(list) => {
                let parts = self.lists.get(list).to_vec();
                let parts: Vec<ExprId> = parts
                    .into_iter()
                    .map(|part| match self.node(part) {
                        Node::Literal(..) | Node::Set(_) => self.literals_filtered(part, keep),
                        _ => part,
                    })
                    .collect();
                self.any_of(&parts)
            }
            _ => expr,
        }
    }

    /// What is left of literal `id` from byte `offset`: `chars` code points.
    pub(super) fn literal_from(&mut self, id: LiteralId, offset: u32, chars: u64) -> ExprId {
        self.add_leaf(Node::Literal(id, offset), chars, chars)
    }

    /// The set of these literals.
    pub(super) fn literal_set(&mut self, mut ids: Vec<LiteralId>) -> ExprId {
        ids.sort_by(|&a, &b| self.literal_text(a).cmp(self.literal_text(b)));
        ids.dedup();
        match *ids {
            [] => ExprId::NEVER,
            [id] => self.literal_from(id, 0, u64::from(self.texts.chars(id.0))),
            _ => {
                let (min, max) = self.chars_of(ids.iter().copied());
                let set = match self.sets.find(&ids) {
                    Some(found) => found,
                    None => Arc::make_mut(&mut self.sets).intern(&ids),
                };
                let node = SetNode { set, lo: 0, hi: id(ids.len()), depth: 0, filter: 0 };
                self.add_leaf(Node::Set(node), min, max)
            }
        }
    }

    /// Merges whole literals and whole sets of at most [`MERGE_LIMIT`] strings in `parts` into one
    /// set each of both kinds, so that an alternation of words is a leaf.
    pub(super) fn merge_literals(&mut self, parts: &mut Vec<ExprId>) {
        let mut ids = Vec::new();
        let mut merged = 0;
        for &part in parts.iter() {
            if self.push_whole(part, &mut ids) {
                merged += 1;
            }
        }
        if merged < 2 {
            return;
        }
        let mut scratch = Vec::new();
        let set = self.literal_set(ids);
        parts.retain(|&part| !self.push_whole(part, &mut scratch));
        parts.push(set);
    }

    /// Adds the strings of a mergeable literal or set to `ids`.
    fn push_whole(&self, part: ExprId, ids: &mut Vec<LiteralId>) -> bool {
        match self.node(part) {
            Node::Literal(id, 0) => ids.push(id),
            Node::Set(SetNode { set, lo: 0, hi, depth: 0, filter: 0 })
                if hi as usize == self.sets.get(set).len() && hi as usize <= MERGE_LIMIT =>
            {
                ids.extend_from_slice(self.sets.get(set));
            }
            _ => return false,
        }
        true
    }

    /// String `index` of a set.
    pub(super) fn set_literal(&self, set: u32, index: u32) -> LiteralId {
        self.sets.get(set)[index as usize]
    }

    /// Positions of the strings that are left.
    pub(super) fn kept(&self, set: SetNode) -> impl Iterator<Item = u32> {
        let words = self.filters.get(set.filter);
        let base = set.lo / 64;
        (set.lo..set.hi).filter(move |&i| {
            words.get((i / 64 - base) as usize).is_none_or(|word| word >> (i % 64) & 1 == 1)
        })
    }

    /// Least and greatest length of literals in code points.
    fn chars_of(&self, ids: impl Iterator<Item = LiteralId>) -> (u64, u64) {
        ids.fold((u64::MAX, 0), |(min, max), id| {
            let chars = u64::from(self.texts.chars(id.0));
            (min.min(chars), max.max(chars))
        })
    }

    /// How many code points the strings of a set state share: the longest string's length less
    /// what is left of it.
    pub(super) fn depth_chars(&self, expr: ExprId, set: SetNode) -> u64 {
        if set.depth == 0 {
            return 0;
        }
        self.chars_of(self.kept(set).map(|i| self.set_literal(set.set, i))).1 - self.info(expr).max
    }

    /// The state of `parent`'s set in which the strings at `kept` (ascending) are left, without
    /// their first `depth` bytes, which are `depth_chars` code points.
    fn set_of(&mut self, parent: SetNode, depth: u32, depth_chars: u64, kept: &[u32]) -> ExprId {
        let (&[first, ..], &[.., last]) = (kept, kept) else {
            return ExprId::NEVER;
        };
        if first == last {
            let id = self.set_literal(parent.set, first);
            return self.literal_from(id, depth, u64::from(self.texts.chars(id.0)) - depth_chars);
        }
        let filter = if kept.len() == (last - first) as usize + 1 {
            0
        } else {
            let base = first / 64;
            let mut words = vec![0u64; (last / 64 - base) as usize + 1];
            for &i in kept {
                words[(i / 64 - base) as usize] |= 1 << (i % 64);
            }
            self.filters.intern(&words)
        };
        let node = SetNode { lo: first, hi: last + 1, depth, filter, ..parent };
        let literals = kept.iter().map(|&i| self.set_literal(parent.set, i));
        let (min, max) = self.chars_of(literals);
        self.add_leaf(Node::Set(node), min - depth_chars, max - depth_chars)
    }

    /// Appends the runs of a literal: one, or none at its end.
    pub(super) fn literal_runs(&mut self, expr: ExprId, id: LiteralId, offset: u32) {
        let rest = self.literal_text(id).get(offset as usize..).unwrap_or_default();
        if let Some(c) = rest.chars().next() {
            let left = self.info(expr).max - 1;
            let target = self.literal_from(id, offset + c.len_utf8() as u32, left);
            self.runs.push(Transition { first: c.into(), last: c.into(), target });
        }
    }

    /// The code point with which all strings of a set go on.
    fn common_char(&self, expr: ExprId, set: SetNode) -> Option<char> {
        let first = self.set_char(set, set.lo)?;
        (!self.nullable(expr) && self.set_char(set, set.hi - 1) == Some(first)).then_some(first)
    }

    /// Appends the runs of a set: one for each code point with which strings go on.
    pub(super) fn set_runs(&mut self, expr: ExprId, set: SetNode) {
        if let Some(c) = self.common_char(expr, set) {
            let node = SetNode { depth: set.depth + c.len_utf8() as u32, ..set };
            let info = self.info(expr);
            let target = self.add_leaf(Node::Set(node), info.min - 1, info.max - 1);
            self.runs.push(Transition { first: c.into(), last: c.into(), target });
            return;
        }
        let depth_chars = self.depth_chars(expr, set);
        let kept: Vec<u32> = self.kept(set).collect();
        let mut rest = &kept[usize::from(self.nullable(expr))..];
        while let [first, ..] = rest {
            let Some(c) = self.set_char(set, *first) else {
                return;
            };
            let group = gallop(rest, |&i| self.set_char(set, i) == Some(c));
            let depth = set.depth + c.len_utf8() as u32;
            let target = self.set_of(set, depth, depth_chars + 1, &rest[..group]);
            self.runs.push(Transition { first: c.into(), last: c.into(), target });
            rest = &rest[group..];
        }
    }

    /// The code point at the depth of `set` of its string `index`.
    fn set_char(&self, set: SetNode, index: u32) -> Option<char> {
        let text = self.literal_text(self.set_literal(set.set, index));
        text.get(set.depth as usize..)?.chars().next()
    }

    /// What an expression is at its root.
    pub fn view(&self, expr: ExprId) -> View {
        match self.node(expr) {
            Node::Repeat(item, min, max) => {
                View::Repeat { item, min, max: (max != u64::MAX).then_some(max) }
            }
            Node::Literal(id, offset) => View::Literal { id, offset },
            _ => View::Other,
        }
    }
}

/// Length of the prefix of `items` for which `test` holds (it holds for a prefix, and for the
/// first item): doubling steps, then a binary search.
fn gallop<T>(items: &[T], test: impl Fn(&T) -> bool) -> usize {
    let mut high = 1;
    while high < items.len() && test(&items[high]) {
        high *= 2;
    }
    let low = high / 2;
    low + items[low..high.min(items.len())].partition_point(test)
}
