//! Numbers with an exponent: `1.25e3`.
//!
//! # Method
//!
//! For a mantissa that is written out, the exponents that make it a value of the set are an
//! interval: a greater exponent passes the lower bound and breaks the upper one, makes it a multiple of
//! every unit and at last a multiple of an excluded one. For integers up to 255, `2.5` allows 1 and 2
//! (25 and 250), `2.56` allows 2 at most by the bound and 2 at least as an integer, but 256 is too much, so it
//! is dead.
//!
//! So [`Mantissa`] keeps what decides that interval: how its digits compare to the digits of the bounds
//! (wherever their points are), the position of its last digit that is not 0 if units are powers of
//! ten, and all its digits if they are not. At the `e`, [`Exponent`] takes over with the interval alone.
//!
//! With bounds or units a mantissa has one digit before the point, and that is not 0. Without them any
//! mantissa is allowed (`1200e-2`, `0.00e7`); then `top`, the position of the first digit, matters too.
//!
//! # Invariants
//!
//! Every state that leaves this module is live within the digits that are left.

use super::values::{Bound, Reach, Residue, Side, Unit, Values};
use num_bigint::BigUint;
use num_integer::Integer;
use std::cmp::Ordering;

/// No bound on the exponent.
const UNBOUNDED: i64 = i64::MAX;

/// The state of a number that may yet get an exponent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Mantissa {
    /// Position of the first digit that is not 0; `None` while there is none.
    top: Option<i64>,
    /// Digits after the point (`Some(0)` right after it), clamped to where they stop to matter.
    frac: Option<u32>,
    lo: Ordering,
    hi: Ordering,
    /// Position of the last digit that is not 0, if units ask for it.
    low: i64,
    /// All digits as an integer, if units ask for them.
    digits: BigUint,
}

impl Mantissa {
    /// The state after the first digit, with `left` more digits allowed.
    pub(super) fn first(values: &Values, side: &Side, digit: u8, left: u32) -> Option<Self> {
        if digit == 0 && !values.free || side.hi.value.is_zero() {
            return None;
        }
        let zero = Self {
            top: None,
            frac: None,
            lo: Ordering::Equal,
            hi: Ordering::Equal,
            low: 0,
            digits: BigUint::ZERO,
        };
        zero.push(values, side, digit, 0).settle(values, side, left)
    }

    /// The state after one more digit.
    pub(super) fn digit(&self, values: &Values, side: &Side, digit: u8, left: u32) -> Option<Self> {
        let state = match self.frac {
            None if !values.free || self.top.is_none() => return None,
            None => self.push(values, side, digit, 0),
            Some(frac) => self.push(values, side, digit, frac + 1),
        };
        state.settle(values, side, left)
    }

    /// The state after the point.
    pub(super) fn point(&self, values: &Values, side: &Side, left: u32) -> Option<Self> {
        match self.frac {
            None => Self { frac: Some(0), ..self.clone() }.settle(values, side, left),
            Some(_) => None,
        }
    }

    /// The state after the `e`.
    pub(super) fn exponent(&self, values: &Values, side: &Side, left: u32) -> Option<Exponent> {
        if self.frac == Some(0) {
            return None;
        }
        let (lo, hi) = self.exponents(values, side)?;
        Exponent::Mark { lo, hi, left }.settle()
    }

    /// Adds a digit at position `-frac`.
    fn push(&self, values: &Values, side: &Side, digit: u8, frac: u32) -> Self {
        let in_frac = self.frac.is_some();
        let position = -i64::from(frac);
        let mut next = self.clone();
        next.frac = in_frac.then_some(frac);
        if !in_frac {
            // The digits so far move up.
            next.top = self.top.map(|top| top + 1);
            next.low += i64::from(self.top.is_some());
        }
        if digit != 0 {
            next.top.get_or_insert(position);
            next.low = position;
        }
        if let Some(top) = next.top {
            let index = top - position;
            let compare = |so_far: Ordering, bound: &Bound| {
                so_far.then_with(|| bound.cmp_digit(digit, index))
            };
            next.lo = compare(self.lo, &side.lo);
            next.hi = compare(self.hi, &side.hi);
        }
        if !values.has_units() {
            next.low = 0;
        }
        if values.units().any(|unit| !unit.is_power()) {
            next.digits = &self.digits * 10u8 + digit;
        }
        next
    }

    /// The canonical form of this state, `None` if it is dead.
    fn settle(mut self, values: &Values, side: &Side, left: u32) -> Option<Self> {
        if let Some(frac) = self.frac {
            self.frac = Some(frac.min(self.last_frac(values, side)));
        }
        self.is_live(values, side, left).then_some(self)
    }

    /// A state that does the same for so few bytes that no limit of the exponent can be felt: an
    /// `e` and two digits, where every exponent below 100 is allowed.
    pub(super) fn within(&self, values: &Values, horizon: u32) -> Self {
        let far = |top: i64| (-100..=200).contains(&top);
        // A zero before the point takes no more digits, so it stays apart.
        let lone_zero = self.top.is_none() && self.frac.is_none();
        let felt = horizon > 3 || !values.free || values.has_units() || !self.top.is_none_or(far);
        if lone_zero || felt {
            return self.clone();
        }
        Self {
            top: Some(0),
            frac: self.frac.map(|frac| frac.min(1)),
            hi: Ordering::Less,
            ..self.clone()
        }
    }

    /// The digit after the point from which on the number of digits does not matter.
    fn last_frac(&self, values: &Values, side: &Side) -> u32 {
        let Some(top) = self.top else {
            return u32::MAX;
        };
        if values.has_units() {
            return u32::MAX;
        }
        let tie = |compared: Ordering, bound: &Bound| match compared {
            Ordering::Equal => bound.value.digits.len() as i64 - 1 - top,
            _ => 0,
        };
        tie(self.lo, &side.lo).max(tie(self.hi, &side.hi)).clamp(1, i64::from(u32::MAX)) as u32
    }

    /// The exponents that make a value of the set of exactly this mantissa: least and greatest.
    fn exponents(&self, values: &Values, side: &Side) -> Option<(i64, i64)> {
        let Some(top) = self.top else {
            let zero = values.excluded.is_empty() && side.lo.value.is_zero() && !side.lo.exclusive;
            return zero.then_some((-UNBOUNDED, UNBOUNDED));
        };
        let f = i64::from(self.frac.unwrap_or(0));
        let count = top + f + 1;
        let mut lo = side.least().map_or(-UNBOUNDED, |least| least - top);
        if !side.lo.value.is_zero() {
            let met = match self.lo {
                Ordering::Less => false,
                Ordering::Equal => side.lo.value.digits.len() as i64 <= count && !side.lo.exclusive,
                Ordering::Greater => true,
            };
            lo = side.lo.top() - top + i64::from(!met);
        }
        if side.hi.value.is_zero() {
            return None;
        }
        let met = match self.hi {
            Ordering::Less => true,
            Ordering::Equal => side.hi.value.digits.len() as i64 > count || !side.hi.exclusive,
            Ordering::Greater => false,
        };
        let mut hi = side.hi.top() - top - i64::from(!met);
        if let Some(unit) = &values.multiple {
            lo = lo.max(self.least_exponent(unit)?);
        }
        for unit in &values.excluded {
            if let Some(least) = self.least_exponent(unit) {
                hi = hi.min(least - 1);
            }
        }
        (lo <= hi).then_some((lo, hi))
    }

    /// The least exponent that makes this mantissa a multiple of a unit, if one does.
    fn least_exponent(&self, unit: &Unit) -> Option<i64> {
        let aligned = unit.exponent - self.low;
        if unit.is_power() {
            return Some(aligned);
        }
        // What of the unit's base is not in the digits must be made of tens.
        let digits =
            &self.digits / super::values::ten_to(self.low + i64::from(self.frac.unwrap_or(0)));
        let mut rest = &unit.base / unit.base.gcd(&digits);
        let mut tens = 0;
        while rest != BigUint::from(1u8) {
            let shared = rest.gcd(&BigUint::from(10u8));
            if shared == BigUint::from(1u8) {
                return None;
            }
            rest /= shared;
            tens += 1;
        }
        Some(aligned + tens)
    }

    /// Whether at most `left` more digits can complete it, those of the exponent counted.
    pub(super) fn is_live(&self, values: &Values, side: &Side, left: u32) -> bool {
        let pending = u32::from(self.frac == Some(0));
        if left <= pending {
            return false;
        }
        // As it is (with a zero after a bare point) ...
        let as_is = self.exponents(values, side);
        if as_is.is_some_and(|(lo, hi)| Exponent::Mark { lo, hi, left: left - pending }.is_live()) {
            return true;
        }
        // ... or with more digits. Where all spellings are allowed, only a zero that must not stay
        // one asks for them: a digit, and one for the exponent.
        if values.free {
            return self.top.is_none() && left >= 2;
        }
        self.candidates(values, side).any(|x| self.reach(values, side, x, left))
    }

    /// Whether at most `bytes` more bytes can complete it, of which at most `left` are digits.
    pub(super) fn suffices(&self, values: &Values, side: &Side, left: u32, bytes: u32) -> bool {
        let as_is = self.exponents(values, side);
        [false, true].into_iter().any(|negative| {
            // The `e`, and a `-`.
            let Some(bytes) = bytes.checked_sub(1 + u32::from(negative)) else { return false };
            let digits = |marks: u32| Some(left.min(bytes.checked_sub(marks)?));
            // As it is (with a zero after a bare point) ...
            let pending = u32::from(self.frac == Some(0));
            let fits = |digits: u32| {
                let digits = digits.checked_sub(pending)?;
                let (lo, hi) = as_is?;
                let (lo, hi) = if negative { (-hi, -lo) } else { (lo, hi) };
                Some(Exponent::signed(lo, hi, digits).is_live())
            };
            if digits(0).and_then(fits) == Some(true) {
                return true;
            }
            // ... or with more digits, see `is_live`, before which there is a point.
            digits(u32::from(self.frac.is_none())).is_some_and(|digits| match values.free {
                true => self.top.is_none() && digits >= 2 && !negative,
                false => self
                    .candidates(values, side)
                    .any(|x| (x < 0) == negative && self.reach(values, side, x, digits)),
            })
        })
    }

    /// Exponents of which one works if any does; also among those below zero, and among the others.
    ///
    /// Without excluded units, more is better for divisibility, so only the greatest exponents count: the one
    /// at which the upper bound bites, the next, and the greatest of each number of digits; and the
    /// one at which the lower bound bites. Excluded units work the other way, so then all exponents
    /// are tried between the one where all values are below every unit and the one from which on
    /// tens divide everything.
    fn candidates(&self, values: &Values, side: &Side) -> impl Iterator<Item = i64> + use<> {
        let most = side.hi.top();
        let least = side.least().unwrap_or(side.lo.top());
        let small = values.units().map(|unit| unit.exponent - 2).min().unwrap_or(most).min(most);
        let large = values
            .units()
            .map(|unit| unit.exponent + 5 * unit.base_digits() + i64::from(values.max_digits))
            .max();
        let scan = match (values.excluded.is_empty(), large) {
            (false, Some(large)) => small.max(least)..=large.min(most),
            _ => small..=small,
        };
        let lengths = (0..14).flat_map(|length| {
            let power = 10i64.pow(length);
            [power - 1, -power]
        });
        let bites = if side.lo.value.is_zero() { small.max(least) } else { least };
        [most, most - 1, bites]
            .into_iter()
            .chain(lengths)
            .chain(scan)
            .filter(move |x| (least..=most).contains(x))
    }

    /// Whether a value lies within reach of the exponent `x`, see [`Reach`].
    fn reach(&self, values: &Values, side: &Side, x: i64, left: u32) -> bool {
        let f = i64::from(self.frac.unwrap_or(0));
        let exponent_digits = i64::from(x.unsigned_abs().checked_ilog10().unwrap_or(0)) + 1;
        let k = f + i64::from(left) - exponent_digits;
        if k < f.max(i64::from(self.frac == Some(0))) {
            return false;
        }
        let against = |bound: &Bound, compared: Ordering| x.cmp(&bound.top()).then(compared);
        let (lo, hi) = (against(&side.lo, self.lo), against(&side.hi, self.hi));
        if lo == Ordering::Less || hi == Ordering::Greater {
            return false;
        }
        let multiple = match &values.multiple {
            None => None,
            Some(unit) => match self.residue(unit, x, f) {
                None => return false,
                residue => residue,
            },
        };
        if let Some(unit) = values.multiple.as_ref().filter(|_| values.excluded.is_empty())
            && lo == Ordering::Greater
            && hi == Ordering::Less
            && unit.coprime
            && k.min(x - unit.exponent) - f >= unit.enough
        {
            // So many digits are free that a multiple must be among them.
            return true;
        }
        Reach {
            side,
            lo,
            hi,
            position: -f,
            k,
            shift: x,
            multiple,
            excluded: values.excluded.iter().filter_map(|unit| self.residue(unit, x, f)).collect(),
        }
        .has_value()
    }

    /// The residue of this mantissa of `f` digits after the point modulo `unit / 10^x`; `None` if no number
    /// that begins with it is a multiple.
    fn residue<'a>(&self, unit: &'a Unit, x: i64, f: i64) -> Option<Residue<'a>> {
        let grain = unit.exponent - x;
        // A mantissa is below ten, and its last digit must not lie below the grain.
        if grain > 0 || self.low < grain {
            return None;
        }
        let value = if unit.is_power() {
            BigUint::ZERO
        } else if -grain >= f {
            &self.digits * super::values::ten_to_mod(-grain - f, &unit.base) % &unit.base
        } else {
            &self.digits / super::values::ten_to(f + grain) % &unit.base
        };
        Some(Residue { value, grain, modulus: &unit.base })
    }
}

/// The state of the exponent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Exponent {
    /// After the `e`: the exponents that are allowed.
    Mark { lo: i64, hi: i64, left: u32 },
    /// After the sign or some digits: `value` is written, `lo` to `hi` are allowed.
    Digits { value: i64, lo: i64, hi: i64, left: u32, written: bool },
    /// Any digits, the number may end: nothing can go wrong any more.
    Any { left: u32 },
}

impl Exponent {
    /// The state after one more byte.
    pub(super) fn step(&self, byte: u8) -> Option<Self> {
        let next = match (self, byte) {
            (&Self::Mark { lo, hi, left }, b'-') => Self::signed(-hi, -lo, left),
            (&Self::Mark { lo, hi, left }, b'+') => Self::signed(lo, hi, left),
            (&Self::Mark { lo, hi, left }, b'0'..=b'9') => {
                return Self::signed(lo, hi, left).step(byte);
            }
            (&Self::Digits { value, lo, hi, left, .. }, b'0'..=b'9') => Self::Digits {
                value: value.saturating_mul(10).saturating_add(i64::from(byte - b'0')),
                lo,
                hi,
                left: left.checked_sub(1)?,
                written: true,
            },
            (&Self::Any { left }, b'0'..=b'9') => Self::Any { left: left.checked_sub(1)? },
            _ => return None,
        };
        next.settle()
    }

    /// Whether the number may end here.
    pub(super) fn accepts(&self) -> bool {
        match *self {
            Self::Mark { .. } => false,
            Self::Digits { value, lo, hi, written, .. } => written && (lo..=hi).contains(&value),
            Self::Any { .. } => true,
        }
    }

    /// The same state with at most this many digits left.
    pub(super) fn with_left(&self, most: u32) -> Self {
        let mut state = self.clone();
        match &mut state {
            Self::Mark { left, .. } | Self::Digits { left, .. } | Self::Any { left } => {
                *left = most.min(*left)
            }
        }
        state
    }

    fn signed(lo: i64, hi: i64, left: u32) -> Self {
        Self::Digits { value: 0, lo: lo.max(0), hi, left, written: false }
    }

    /// How many digits it may still have.
    pub(super) fn left(&self) -> u32 {
        match *self {
            Self::Mark { left, .. } | Self::Digits { left, .. } | Self::Any { left } => left,
        }
    }

    /// Whether at most the digits that are left can complete it.
    pub(super) fn is_live(&self) -> bool {
        match *self {
            Self::Mark { lo, hi, left } => {
                Self::signed(lo, hi, left).is_live() || Self::signed(-hi, -lo, left).is_live()
            }
            Self::Digits { left, .. } => {
                self.accepts() || (1..=left).any(|more| self.fits(more).is_some())
            }
            Self::Any { .. } => true,
        }
    }

    /// Whether at most `bytes` more bytes can complete it.
    pub(super) fn suffices(&self, bytes: u32) -> bool {
        match *self {
            Self::Mark { lo, hi, left } => {
                Self::signed(lo, hi, left.min(bytes)).is_live()
                    || bytes > 0 && Self::signed(-hi, -lo, left.min(bytes - 1)).is_live()
            }
            Self::Digits { .. } | Self::Any { .. } => self.with_left(bytes).is_live(),
        }
    }

    /// For a state of digits: whether some (`Some`) or all (`Some(true)`) of the numbers with `more` digits
    /// are allowed.
    fn fits(&self, more: u32) -> Option<bool> {
        let Self::Digits { value, lo, hi, .. } = *self else {
            return Some(true);
        };
        let power = 10i64.checked_pow(more).unwrap_or(UNBOUNDED);
        let first = value.saturating_mul(power);
        let last = first.saturating_add(power - 1);
        (first <= hi && last >= lo && lo <= hi).then_some(first >= lo && last <= hi)
    }

    /// The canonical form of this state, `None` if it is dead.
    fn settle(self) -> Option<Self> {
        if !self.is_live() {
            return None;
        }
        match self {
            Self::Digits { left, .. } if self.accepts() => {
                // How many digits may follow at all, and whether any of them may.
                let more = (1..=left).take_while(|&more| self.fits(more).is_some()).count() as u32;
                let all = (1..=more).all(|more| self.fits(more) == Some(true));
                Some(if all { Self::Any { left: more } } else { self })
            }
            _ => Some(self),
        }
    }
}
