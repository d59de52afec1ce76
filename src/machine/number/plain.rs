//! Numbers without an exponent: `-12.50`.
//!
//! # Method
//!
//! What matters of the digits so far is how they compare to the first digits of the two bounds, and
//! their residue modulo the units. With 150 as the upper bound, `1` is a tie, `14` is less, `16` is greater: it
//! may end here, but not grow to three digits. A comparison that cannot matter any more takes the value
//! that means "decided" ([`Ordering::Greater`] for the lower, [`Ordering::Less`] for the upper bound), so that
//! states with the same future are equal: for 0 to 150, `20` and `99` are one state.
//!
//! # Invariants
//!
//! Every state that leaves this module is live within the digits that are left. After the point, the
//! comparison with the lower bound is greater or a tie, that with the upper bound less or a tie.

use super::values::{Bound, Reach, Residue, Side, Unit, Values};
use num_bigint::BigUint;
use std::cmp::Ordering;

/// How far the number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// The digit 0 before the point.
    Zero,
    /// This many digits before the point, the first of which is not 0.
    Int(u32),
    /// This many digits after the point; 0 right after it, where one must follow. Clamped to where
    /// more of them stop to matter.
    Frac(u32),
}

/// The state of a plain number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Plain {
    place: Place,
    lo: Ordering,
    hi: Ordering,
    multiple: BigUint,
    /// `None`: no multiple of this unit begins with these digits.
    excluded: Vec<Option<BigUint>>,
}

impl Plain {
    /// The state after the first digit, with `left` more digits allowed.
    pub(super) fn first(values: &Values, side: &Side, digit: u8, left: u32) -> Option<Self> {
        let zero = Self {
            place: Place::Zero,
            lo: Ordering::Equal,
            hi: Ordering::Equal,
            multiple: BigUint::ZERO,
            excluded: vec![Some(BigUint::ZERO); values.excluded.len()],
        };
        let state = match digit {
            // The comparisons start after the point: what lies before it is 0.
            0 => {
                let against =
                    |bound: &Bound| if bound.top() < 0 { Ordering::Equal } else { Ordering::Less };
                Self { lo: against(&side.lo), hi: against(&side.hi), ..zero }
            }
            _ => zero.push_int(values, side, digit, 0),
        };
        state.settle(values, side, left)
    }

    /// The state after one more digit.
    pub(super) fn digit(&self, values: &Values, side: &Side, digit: u8, left: u32) -> Option<Self> {
        let state = match self.place {
            Place::Zero => return None,
            Place::Int(count) => self.push_int(values, side, digit, count),
            Place::Frac(count) => self.push_frac(values, side, digit, count + 1)?,
        };
        state.settle(values, side, left)
    }

    /// The state after the point.
    pub(super) fn point(&self, values: &Values, side: &Side, left: u32) -> Option<Self> {
        let (lo, hi) = match self.place {
            Place::Zero => (self.lo, self.hi),
            Place::Int(count) => self.against(side, count),
            Place::Frac(_) => return None,
        };
        Self { place: Place::Frac(0), lo, hi, ..self.clone() }.settle(values, side, left)
    }

    /// Whether the number may end here.
    pub(super) fn accepts(&self, values: &Values, side: &Side) -> bool {
        let (f, (lo, hi)) = match self.place {
            Place::Zero => (0, (self.lo, self.hi)),
            Place::Int(count) => (0, self.against(side, count)),
            Place::Frac(0) => return false,
            Place::Frac(count) => (i64::from(count), (self.lo, self.hi)),
        };
        let above = match lo {
            Ordering::Less => false,
            Ordering::Equal => side.lo.met_from_above(f),
            Ordering::Greater => true,
        };
        let below = match hi {
            Ordering::Less => true,
            Ordering::Equal => side.hi.met_from_below(f),
            Ordering::Greater => false,
        };
        above
            && below
            && (values.multiple.is_none() || self.multiple == BigUint::ZERO)
            && self.excluded.iter().all(|residue| residue.as_ref() != Some(&BigUint::ZERO))
    }

    fn push_int(&self, values: &Values, side: &Side, digit: u8, count: u32) -> Self {
        let compare = |so_far: Ordering, bound: &Bound| {
            so_far.then_with(|| bound.cmp_digit(digit, i64::from(count)))
        };
        let push = |unit: &Unit, residue: &BigUint| unit.push_int(residue, digit);
        Self {
            place: Place::Int(count + 1),
            lo: compare(self.lo, &side.lo),
            hi: compare(self.hi, &side.hi),
            multiple: values.multiple.as_ref().map_or(BigUint::ZERO, |u| push(u, &self.multiple)),
            excluded: std::iter::zip(&values.excluded, &self.excluded)
                .map(|(unit, residue)| residue.as_ref().map(|residue| push(unit, residue)))
                .collect(),
        }
    }

    fn push_frac(&self, values: &Values, side: &Side, digit: u8, count: u32) -> Option<Self> {
        let f = i64::from(count);
        let compare = |so_far: Ordering, bound: &Bound| {
            so_far.then_with(|| digit.cmp(&bound.value.digit_at(-f)))
        };
        let multiple = match &values.multiple {
            None => BigUint::ZERO,
            Some(unit) => unit.push_frac(&self.multiple, digit, f)?,
        };
        Some(Self {
            place: Place::Frac(count),
            lo: compare(self.lo, &side.lo),
            hi: compare(self.hi, &side.hi),
            multiple,
            excluded: std::iter::zip(&values.excluded, &self.excluded)
                .map(|(unit, residue)| unit.push_frac(residue.as_ref()?, digit, f))
                .collect(),
        })
    }

    /// How a number of `count` digits before the point compares to the bounds, this being its first
    /// digits.
    fn against(&self, side: &Side, count: u32) -> (Ordering, Ordering) {
        let top = i64::from(count) - 1;
        (top.cmp(&side.lo.top()).then(self.lo), top.cmp(&side.hi.top()).then(self.hi))
    }

    /// The canonical form of this state, `None` if it is dead.
    fn settle(mut self, values: &Values, side: &Side, left: u32) -> Option<Self> {
        match self.place {
            Place::Zero => {}
            Place::Int(count) => {
                // A bound that is passed, or out of reach, is decided.
                let top = i64::from(count) - 1;
                let passed = top > side.lo.top();
                let unreachable = top + i64::from(left) < side.hi.top();
                if passed {
                    self.lo = Ordering::Greater;
                }
                if unreachable {
                    self.hi = Ordering::Less;
                }
                if passed && unreachable {
                    // All such lengths are alike; the least one stands for them.
                    self.place = Place::Int(side.lo.top().saturating_add(2).max(1) as u32);
                }
            }
            Place::Frac(count) => {
                if self.lo == Ordering::Equal && side.lo.met_from_above(i64::from(count)) {
                    self.lo = Ordering::Greater;
                }
                self.place = Place::Frac(count.min(self.last_frac(values, side)));
            }
        }
        self.is_live(values, side, left).then_some(self)
    }

    /// The digit after the point from which on all digits are alike for this state.
    fn last_frac(&self, values: &Values, side: &Side) -> u32 {
        let tie = |compared: Ordering, bound: &Bound| match compared {
            Ordering::Equal => bound.low().saturating_neg(),
            _ => 0,
        };
        let excluded = std::iter::zip(&values.excluded, &self.excluded)
            .filter(|(_, residue)| residue.is_some())
            .map(|(unit, _)| -unit.grain);
        let last = excluded
            .chain(values.multiple.as_ref().map(|unit| -unit.grain))
            .chain([tie(self.lo, &side.lo), tie(self.hi, &side.hi)])
            .max();
        last.unwrap_or(0).clamp(1, i64::from(u32::MAX)) as u32
    }

    /// Whether at most `left` more digits can complete it.
    pub(super) fn is_live(&self, values: &Values, side: &Side, left: u32) -> bool {
        if self.accepts(values, side) {
            return true;
        }
        let left = i64::from(left);
        // Between the bounds, and with so many digits free that a multiple must be among them.
        let plenty = |(lo, hi): (Ordering, Ordering), more: i64| {
            let between = lo == Ordering::Greater && hi == Ordering::Less && left > 0;
            between
                && values.excluded.is_empty()
                && match &values.multiple {
                    None => true,
                    Some(unit) => left - more >= -unit.grain && more - unit.grain >= unit.enough,
                }
        };
        match self.place {
            Place::Zero => {
                let bounds = (self.lo, self.hi);
                plenty(bounds, 0) || left > 0 && self.reach(values, side, bounds, 0, 0, left)
            }
            Place::Frac(count) => {
                let (bounds, f) = ((self.lo, self.hi), i64::from(count));
                let free = values.multiple.is_none() && plenty(bounds, 0);
                free || left > 0 && self.reach(values, side, bounds, -f, 0, f + left)
            }
            Place::Int(count) => {
                let against = |more: i64| self.against(side, count + more as u32);
                (0..=left).any(|more| plenty(against(more), more))
                    || (0..=left).any(|more| {
                        self.reach(values, side, against(more), more, more, left - more)
                    })
            }
        }
    }

    /// Whether at most `left` more digits can complete it without another byte: no point is written any more.
    pub(super) fn is_live_without_point(&self, values: &Values, side: &Side, left: u32) -> bool {
        match self.place {
            _ if self.accepts(values, side) => true,
            Place::Zero => false,
            Place::Frac(_) => self.is_live(values, side, left),
            Place::Int(count) => (1..=left).any(|more| {
                let (bounds, more) = (self.against(side, count + more), i64::from(more));
                self.reach(values, side, bounds, more, more, 0)
            }),
        }
    }

    /// Whether a value lies within reach with `more` digits before the point to come, see [`Reach`].
    fn reach(
        &self,
        values: &Values,
        side: &Side,
        (lo, hi): (Ordering, Ordering),
        position: i64,
        more: i64,
        k: i64,
    ) -> bool {
        if lo == Ordering::Less || hi == Ordering::Greater {
            return false;
        }
        fn residue<'a>(unit: &'a Unit, residue: &BigUint, more: i64) -> Residue<'a> {
            Residue { value: unit.scale(residue, more), grain: unit.grain, modulus: &unit.modulus }
        }
        Reach {
            side,
            lo,
            hi,
            position,
            k,
            shift: 0,
            multiple: values.multiple.as_ref().map(|unit| residue(unit, &self.multiple, more)),
            excluded: std::iter::zip(&values.excluded, &self.excluded)
                .filter_map(|(unit, value)| Some(residue(unit, value.as_ref()?, more)))
                .collect(),
        }
        .has_value()
    }
}
