//! Strings bounded in length: one set of states for all bounds, and what exceeds it in two numbers beside them.
//!
//! The example is at the head of `states.rs`. The states are those of the universal level; a constraint asks it
//! for the same content about *so many of any character*, which is one expression there.

use super::{Excess, StateId, States};
use crate::expr::{ExprId, Exprs, View};
use crate::machine::state::{Content, Spelling};

impl States {
    /// If `content` is a string bounded only in length, within the horizon: its bounds, and how
    /// to write it with another expression.
    pub(super) fn universal_content<'a>(
        &self,
        exprs: &Exprs,
        content: &'a Content,
    ) -> Option<(u64, Option<u64>, impl Fn(ExprId) -> Content + 'a)> {
        let expr = match *content {
            Content::Quote(expr)
            | Content::Between(Spelling::Json, expr)
            | Content::Utf8 { spelling: Spelling::Json, expr, .. }
            | Content::Utf8To { spelling: Spelling::Json, target: expr, .. }
            | Content::Escape(expr)
            | Content::Hex { expr, .. }
            | Content::HexTo { target: expr, .. }
            | Content::High { expr, .. }
            | Content::HighEscape { expr, .. } => expr,
            Content::Done(None) => ExprId::ANY,
            _ => return None,
        };
        let (min, max) = any_count(exprs, expr)?;
        let horizon = u64::from(self.horizon);
        (min <= horizon && max.is_none_or(|max| max <= horizon))
            .then(|| (min, max, rename(content)))
    }

    /// Interns a string content bounded only in length. Called on the universal level.
    pub(super) fn intern_universal(
        &self,
        min: u64,
        max: Option<u64>,
        content: impl Fn(ExprId) -> Content,
    ) -> StateId {
        let mut cold = self.lock();
        let expr = cold.alphabet.exprs.repeat(ExprId::ANY_CHAR, min, max);
        self.intern(&mut cold, content(expr))
    }

    /// Moves what `excess` holds into a counted string that is between two characters.
    #[inline]
    pub fn refill(&self, id: StateId, excess: Excess) -> (StateId, Excess) {
        if excess == Excess::NONE {
            return (id, excess);
        }
        self.refill_cold(id, excess)
    }

    fn refill_cold(&self, id: StateId, excess: Excess) -> (StateId, Excess) {
        let Some((min, max)) = self.get(id).counted else {
            return (id, excess);
        };
        let room = |bound: u64| u64::from(self.horizon).saturating_sub(bound) as u32;
        let add_min = excess.min.min(room(min));
        let add_max = max.map_or(0, |max| excess.max.min(room(max)));
        if add_min == 0 && add_max == 0 {
            return (id, excess);
        }
        let min = min + u64::from(add_min);
        let max = max.map(|max| max + u64::from(add_max));
        let excess = Excess { min: excess.min - add_min, max: excess.max - add_max };
        (self.base.as_deref().unwrap_or(self).counted(min, max), excess)
    }

    /// The state of a counted string between two characters. Called on the universal level.
    fn counted(&self, min: u64, max: Option<u64>) -> StateId {
        let key = min << 32 | max.map_or(u64::from(u32::MAX), |max| max);
        if let Some(raw) = self.counted.get(key) {
            return StateId(raw);
        }
        let mut cold = self.lock();
        let expr = cold.alphabet.exprs.repeat(ExprId::ANY_CHAR, min, max);
        let id = self.intern(&mut cold, Content::Between(Spelling::Json, expr));
        if self.counted.get(key).is_none() {
            self.counted.insert(key, id.0);
        }
        id
    }
}

/// Bounds of the length, if `expr` bounds nothing else. Counts of one and none are written without
/// a repetition.
pub(super) fn any_count(exprs: &Exprs, expr: ExprId) -> Option<(u64, Option<u64>)> {
    match exprs.view(expr) {
        View::Repeat { item: ExprId::ANY_CHAR, min, max } => Some((min, max)),
        _ if expr == ExprId::ANY_CHAR => Some((1, Some(1))),
        _ if expr == ExprId::EPSILON => Some((0, Some(0))),
        _ => None,
    }
}

/// The same content about another expression.
fn rename(content: &Content) -> impl Fn(ExprId) -> Content + '_ {
    move |new| match *content {
        Content::Quote(_) => Content::Quote(new),
        Content::Between(spelling, _) => Content::Between(spelling, new),
        Content::Utf8 { spelling, base, left, .. } => {
            Content::Utf8 { spelling, expr: new, base, left }
        }
        Content::Utf8To { spelling, left, .. } => Content::Utf8To { spelling, target: new, left },
        Content::Escape(_) => Content::Escape(new),
        Content::Hex { high, value, digits, .. } => Content::Hex { expr: new, high, value, digits },
        Content::HexTo { left, .. } => Content::HexTo { target: new, left },
        Content::High { high, .. } => Content::High { expr: new, high },
        Content::HighEscape { high, .. } => Content::HighEscape { expr: new, high },
        ref other => other.clone(),
    }
}
