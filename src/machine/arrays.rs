//! Which items an array may have next, and whether it may end.
//!
//! An array is a frame with numbers: how many items it has, and how many of them count for each
//! `contains`. Numbers that no longer matter are clamped, so that the frames of a long array are
//! one frame.
//!
//! Worked example: `{"contains": {"const": 1}, "minContains": 2, "maxItems": 3}`. The items are
//! of two classes, *one* (counts) and *not one*. After `[0` two slots are left and two must
//! count: only *one* is offered. An item is offered only if the array can be completed after it
//! (no dead ends).
//!
//! Cost: linear in the length of `prefixItems`, constant where it is empty.

use super::program::Program;
use super::stack::Tally;
use crate::grammar::{ArraySpec, ItemClass};

/// An array in one situation.
pub struct ArrayView<'a> {
    program: &'a Program,
    spec: &'a ArraySpec,
    depth: u8,
    count: u64,
    tally: Tally,
}

impl<'a> ArrayView<'a> {
    /// An array that has `count` items, inside `depth` containers (itself counted).
    pub fn new(
        program: &'a Program,
        spec: &'a ArraySpec,
        depth: u8,
        count: u64,
        tally: Tally,
    ) -> Self {
        Self { program, spec, depth, count, tally }
    }

    /// Whether it may end here.
    pub fn can_close(&self) -> bool {
        self.count >= self.spec.min
            && self.spec.max.is_none_or(|max| self.count <= max)
            && self.spec.contains.iter().zip(self.tally).all(|(&(min, max), counted)| {
                let counted = u64::from(counted);
                counted >= min && max.is_none_or(|max| counted <= max)
            })
    }

    /// The classes of which the next item may be, with the situation after it.
    pub fn items(&self) -> impl Iterator<Item = (&'a ItemClass, u64, Tally)> {
        let room = self.spec.max.is_none_or(|max| self.count < max);
        let classes = if room { classes_at(self.spec, self.count) } else { &[] };
        classes.iter().filter_map(|class| {
            if !self.program.fits(class.node, self.depth) {
                return None;
            }
            let tally = self.counted(class);
            self.completes_after(tally).then(|| (class, self.clamped(), tally))
        })
    }

    /// Whether any item may come.
    pub fn any_item(&self) -> bool {
        self.items().next().is_some()
    }

    /// The count after one more item, clamped to what still makes a difference.
    fn clamped(&self) -> u64 {
        let matters = self.spec.min.max(self.spec.prefix.len() as u64);
        let next = self.count + 1;
        if self.spec.max.is_none() { next.min(matters) } else { next }
    }

    fn counted(&self, class: &ItemClass) -> Tally {
        let mut tally = self.tally;
        for (i, &(min, max)) in self.spec.contains.iter().enumerate().take(tally.len()) {
            if class.counts >> i & 1 == 1 {
                let most = max.map_or(min, |max| max + 1);
                tally[i] = tally[i].saturating_add(1).min(u16::try_from(most).unwrap_or(u16::MAX));
            }
        }
        tally
    }

    /// Whether the array can be completed after one more item that leads to `tally`.
    fn completes_after(&self, tally: Tally) -> bool {
        self.spec.contains.iter().zip(tally).enumerate().all(|(i, (&(min, max), counted))| {
            let counted = u64::from(counted);
            let (least, most) = self.still_counting(1 << i);
            counted.saturating_add(most) >= min
                && max.is_none_or(|max| counted.saturating_add(least) <= max)
        })
    }

    /// How many of the items after the next one must and can count for `bit`.
    fn still_counting(&self, bit: u32) -> (u64, u64) {
        let (spec, next) = (self.spec, self.count + 1);
        let prefix = spec.prefix.len() as u64;
        let end = spec.max.unwrap_or(u64::MAX);
        let (mut least, mut most) = (0, 0u64);
        let mut open = true;
        for at in next..prefix.min(end) {
            let (some, all) = self.counting(classes_at(spec, at), bit);
            open &= all.is_some();
            if !open {
                break;
            }
            most += u64::from(some);
            least += u64::from(at < spec.min && all == Some(true));
        }
        let from = prefix.max(next);
        let (some, all) = self.counting(&spec.rest, bit);
        if open && all.is_some() && end > from {
            most = most.saturating_add(if some { end - from } else { 0 });
            let forced = spec.min.saturating_sub(from);
            least += if all == Some(true) { forced } else { 0 };
        }
        (least, most)
    }

    /// Whether some of the classes counts, and whether all do (`None`: no class is possible).
    fn counting(&self, classes: &[ItemClass], bit: u32) -> (bool, Option<bool>) {
        let mut possible = classes.iter().filter(|c| self.program.fits(c.node, self.depth));
        let Some(first) = possible.next() else {
            return (false, None);
        };
        let counts = |class: &ItemClass| class.counts & bit != 0;
        let (mut some, mut all) = (counts(first), counts(first));
        for class in possible {
            some |= counts(class);
            all &= counts(class);
        }
        (some, Some(all))
    }
}

/// The classes of the item at a position.
fn classes_at(spec: &ArraySpec, at: u64) -> &[ItemClass] {
    usize::try_from(at)
        .ok()
        .and_then(|at| spec.prefix.get(at))
        .map_or(&spec.rest[..], |classes| &classes[..])
}
