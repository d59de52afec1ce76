//! What set of values a number terminal stands for, and the one question asked of it: can this
//! prefix still become one of them?
//!
//! # The question
//!
//! A prefix fixes the digits of a number down to some position; what may follow fixes the digits
//! below it, down to position `-k` if the digit limit leaves `k` digits. So the values within reach
//! are `v + t * 10^-k` for the integers `t` of a range. Take the multiples of 7 in 100 to 150, the prefix `12`,
//! one more digit: `v` is 120, `t` is 0 to 9, and `120 + t` is divisible by 7 for `t = 6`: live. With `14`
//! the range ends where the bound does: 140 + 0..=9, live with 140 itself.
//!
//! # Method
//!
//! * The **bounds** cut the range of `t`. A prefix that differs from the digits of a bound is on one side
//!   of it for good; only a prefix *equal* to the first digits of the bound needs the rest of
//!   the bound, which is then the end of the range ([`Bound::tail`]).
//! * The **multiples** of `M = b * 10^q` ask `t * P + R = 0 (mod m)`, where `R` is the residue of `v`:
//!   a linear congruence, whose solutions are an arithmetic progression. So the work is a few operations on
//!   numbers of the size of `M`, and never a search.
//! * The **excluded** multiples (`not: {multipleOf: 2}`) strike members off that progression. Of `2^r`
//!   consecutive ones, `r` excluded units cannot strike all (Kanold's bound of Jacobsthal's function) unless
//!   they strike every one, so trying `2^r` of them decides.

use crate::error::{Error, Kind, Result};
use crate::grammar::NumberSpec;
use crate::grammar::decimal::Decimal;
use num_bigint::BigUint;
use num_integer::Integer;
use std::cmp::Ordering;

/// Excluded units of one terminal: `2^r` candidates are tried.
const MAX_EXCLUDED: usize = 8;

/// The least position of a first digit at which an f64 has all its digits.
const LEAST: i64 = -307;

/// A power of ten; `exponent` is at most a digit limit here.
pub(super) fn ten_to(exponent: i64) -> BigUint {
    BigUint::from(10u8).pow(u32::try_from(exponent).unwrap_or(0))
}

/// `10^exponent mod modulus`, for exponents of any size.
pub(super) fn ten_to_mod(exponent: i64, modulus: &BigUint) -> BigUint {
    let mut exponent = u64::try_from(exponent).unwrap_or(0);
    let Ok(small) = u64::try_from(modulus) else {
        return BigUint::from(10u8).modpow(&BigUint::from(exponent), modulus);
    };
    // Nearly all moduli are small: square and multiply in machine words.
    let modulus = u128::from(small);
    let (mut power, mut result) = (10 % modulus, 1 % modulus);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * power % modulus;
        }
        power = power * power % modulus;
        exponent >>= 1;
    }
    BigUint::from(result as u64)
}

/// A bound of a magnitude.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bound {
    pub(super) value: Decimal,
    pub(super) exclusive: bool,
}

impl Bound {
    /// Position of the first digit; below every position for zero.
    pub(super) fn top(&self) -> i64 {
        if self.value.is_zero() { i64::MIN } else { self.value.leading() }
    }

    /// Position of the last digit; above every position for zero.
    pub(super) fn low(&self) -> i64 {
        if self.value.is_zero() { i64::MAX } else { self.value.exponent }
    }

    /// How a digit at `index` (counted from the first digit) compares to the bound's.
    pub(super) fn cmp_digit(&self, digit: u8, index: i64) -> Ordering {
        let own = usize::try_from(index).ok().and_then(|i| self.value.digits.get(i).copied());
        digit.cmp(&own.unwrap_or(0))
    }

    /// The digits of `self / 10^shift` at the positions below `position` down to `-k`, as an integer, and
    /// whether nothing is left below.
    fn tail(&self, shift: i64, position: i64, k: i64) -> (BigUint, bool) {
        let digits: Vec<u8> =
            (-k..position).rev().map(|at| self.value.digit_at(at + shift)).collect();
        (
            BigUint::from_radix_be(&digits, 10).unwrap_or_default(),
            self.value.is_zero() || self.value.exponent - shift >= -k,
        )
    }

    /// Whether the value that is equal to the first digits of this lower bound, down to position `-f`,
    /// satisfies it.
    pub(super) fn met_from_above(&self, f: i64) -> bool {
        self.low() >= -f && !self.exclusive
    }

    /// The same for an upper bound.
    pub(super) fn met_from_below(&self, f: i64) -> bool {
        self.low() < -f || !self.exclusive
    }
}

/// The magnitudes of the values of one sign.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Side {
    pub(super) lo: Bound,
    pub(super) hi: Bound,
}

impl Side {
    fn new(lo: Bound, hi: Bound) -> Option<Self> {
        let nonempty = match lo.value.cmp(&hi.value) {
            Ordering::Less => true,
            Ordering::Equal => !lo.exclusive && !hi.exclusive,
            Ordering::Greater => false,
        };
        nonempty.then_some(Self { lo, hi })
    }

    /// Position of the least first digit with an exponent, where the nearest f64 is not 0 though the number
    /// is not; `None` if no such limit is needed, since a bound keeps the numbers away from 0, or wanted, since one keeps
    /// all of them this small.
    pub(super) fn least(&self) -> Option<i64> {
        (self.lo.value.is_zero() && self.hi.top() > LEAST).then_some(LEAST)
    }
}

/// `base * 10^exponent`, of which values must (or must not) be multiples.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) base: BigUint,
    pub(super) exponent: i64,
    /// For plain spellings: residues count in units of `10^grain`, modulo `modulus`.
    pub(super) grain: i64,
    pub(super) modulus: BigUint,
    /// `10^-grain mod modulus`: what one integer is worth.
    one: BigUint,
    /// This many free digits down to the grain always contain a multiple.
    pub(super) enough: i64,
    /// Whether the base has no factor in common with ten.
    pub(super) coprime: bool,
}

impl Unit {
    /// A positive unit. A unit above every plain number is replaced by `10^(digits + 1)` in the plain
    /// arithmetic: none but zero is a multiple of either.
    fn new(value: &Decimal, max_digits: i64) -> Self {
        let (base, exponent) = (value.magnitude(), value.exponent);
        let grain = exponent.min(0);
        let modulus = match exponent > max_digits {
            true => ten_to(max_digits + 1),
            false => &base * ten_to(exponent - grain),
        };
        let one = ten_to_mod(-grain, &modulus);
        let enough = modulus.bits() as i64 * 302 / 1000 + 1;
        let coprime = base.gcd(&BigUint::from(10u8)) == BigUint::from(1u8);
        Self { base, exponent, grain, modulus, one, enough, coprime }
    }

    /// Whether this is a power of ten.
    pub(super) fn is_power(&self) -> bool {
        self.base == BigUint::from(1u8)
    }

    /// At least the number of digits of the base.
    pub(super) fn base_digits(&self) -> i64 {
        (self.base.bits() / 3) as i64 + 1
    }

    /// The residue after one more digit before the point.
    pub(super) fn push_int(&self, residue: &BigUint, digit: u8) -> BigUint {
        if self.modulus == BigUint::from(1u8) {
            return BigUint::ZERO;
        }
        (residue * 10u8 + &self.one * digit) % &self.modulus
    }

    /// The residue after a digit at position `-f`, `None` if no multiple has this digit there.
    pub(super) fn push_frac(&self, residue: &BigUint, digit: u8, f: i64) -> Option<BigUint> {
        if digit == 0 {
            return Some(residue.clone());
        }
        if -f < self.grain {
            return None;
        }
        Some((residue + ten_to_mod(-f - self.grain, &self.modulus) * digit) % &self.modulus)
    }

    /// The residue times `10^by`.
    pub(super) fn scale(&self, residue: &BigUint, by: i64) -> BigUint {
        if *residue == BigUint::ZERO {
            return BigUint::ZERO;
        }
        residue * ten_to_mod(by, &self.modulus) % &self.modulus
    }
}

/// What is known of a prefix modulo a unit: `v = residue * 10^grain (mod modulus * 10^grain)`.
pub(super) struct Residue<'a> {
    pub(super) value: BigUint,
    pub(super) grain: i64,
    pub(super) modulus: &'a BigUint,
}

impl Residue<'_> {
    /// Whether `v + t * 10^-k` is a multiple.
    fn divides(&self, t: &BigUint, k: i64) -> bool {
        let zoom = -self.grain - k;
        let scaled = if zoom >= 0 {
            t * ten_to_mod(zoom, self.modulus)
        } else {
            let (quotient, rest) = t.div_rem(&ten_to(-zoom));
            if rest != BigUint::ZERO {
                return false;
            }
            quotient
        };
        (scaled + &self.value) % self.modulus == BigUint::ZERO
    }

    /// The `t` from `from` on for which `v + t * 10^-k` is a multiple: the first, and the step.
    fn progression(&self, from: BigUint, k: i64) -> Option<(BigUint, BigUint)> {
        if -self.grain == k {
            let wanted = (self.modulus - &self.value) % self.modulus;
            let ahead = (wanted + self.modulus - &from % self.modulus) % self.modulus;
            return Some((from + ahead, self.modulus.clone()));
        }
        let factor = ten_to_mod(-self.grain - k, self.modulus);
        let shared =
            if factor == BigUint::ZERO { self.modulus.clone() } else { factor.gcd(self.modulus) };
        let (wanted, rest) = ((self.modulus - &self.value) % self.modulus).div_rem(&shared);
        if rest != BigUint::ZERO {
            return None;
        }
        let step = self.modulus / &shared;
        if step == BigUint::from(1u8) {
            return Some((from, step));
        }
        let inverse = (factor / &shared).modinv(&step)?;
        let first = wanted * inverse % &step;
        let ahead = (&first + &step - &from % &step) % &step;
        Some((from + ahead, step))
    }
}

/// A prefix whose digits are fixed down to `position` (exclusive): see the module.
pub(super) struct Reach<'a> {
    pub(super) side: &'a Side,
    /// How the prefix compares to the first digits of the bounds.
    pub(super) lo: Ordering,
    pub(super) hi: Ordering,
    /// The digits at positions below this are free ...
    pub(super) position: i64,
    /// ... down to `-k`.
    pub(super) k: i64,
    /// The value is the number times `10^shift`.
    pub(super) shift: i64,
    pub(super) multiple: Option<Residue<'a>>,
    pub(super) excluded: Vec<Residue<'a>>,
}

impl Reach<'_> {
    /// Whether some value of the set is within reach.
    pub(super) fn has_value(self) -> bool {
        if self.lo == Ordering::Less || self.hi == Ordering::Greater {
            return false;
        }
        // Digits below the grain of the multiples are zeros.
        let grain = self.multiple.as_ref().map_or(self.k, |residue| -residue.grain);
        let k = self.k.min(grain).max(-self.position);
        let Some((first, last)) = self.range(k) else {
            return false;
        };
        let (first, step) = match &self.multiple {
            None => (first, BigUint::from(1u8)),
            // No digit is left: `t` is 0.
            Some(residue) if k > grain => {
                if residue.value != BigUint::ZERO {
                    return false;
                }
                (first, BigUint::from(1u8))
            }
            Some(residue) => match residue.progression(first, k) {
                Some(progression) => progression,
                None => return false,
            },
        };
        let mut t = first;
        for _ in 0..1u32 << self.excluded.len() {
            if t > last {
                return false;
            }
            if !self.excluded.iter().any(|residue| residue.divides(&t, k)) {
                return true;
            }
            t += &step;
        }
        false
    }

    /// First and last `t` that the bounds allow.
    fn range(&self, k: i64) -> Option<(BigUint, BigUint)> {
        let mut first = BigUint::ZERO;
        if self.lo == Ordering::Equal {
            let (floor, exact) = self.side.lo.tail(self.shift, self.position, k);
            first = floor + u8::from(!exact || self.side.lo.exclusive);
        }
        let mut end = ten_to(self.position + k);
        if self.hi == Ordering::Equal {
            let (floor, exact) = self.side.hi.tail(self.shift, self.position, k);
            end = floor + u8::from(!(exact && self.side.hi.exclusive));
        }
        (first < end).then(|| (first, end - 1u8))
    }
}

/// The compiled set.
#[derive(Debug, Clone)]
pub(super) struct Values {
    /// Not negative, negative.
    pub(super) sides: [Option<Side>; 2],
    pub(super) multiple: Option<Unit>,
    pub(super) excluded: Vec<Unit>,
    /// Without bounds and multiples: every spelling is allowed.
    pub(super) free: bool,
    /// Digits that a text may have.
    pub(super) max_digits: u32,
    /// Digits that suffice to complete any prefix that can be completed at all.
    pub(super) slack: u32,
}

impl Values {
    /// `None` if the set is seen to be empty (what is not seen here, the machine finds at its start).
    pub(super) fn new(spec: &NumberSpec, max_digits: u32) -> Result<Option<Self>> {
        let Some((multiple, excluded)) = units(spec)? else {
            return Ok(None);
        };
        let (lo, hi) = interval(spec);
        let slack = slack(spec, multiple.iter().chain(&excluded));
        let unit = |value: &Decimal| Unit::new(value, i64::from(max_digits));
        Ok(Some(Self {
            sides: sides(&lo, &hi),
            multiple: multiple.as_ref().map(unit),
            excluded: excluded.iter().map(unit).collect(),
            free: spec.min.is_none()
                && spec.max.is_none()
                && spec.multiple_of.is_empty()
                && spec.not_multiple_of.is_empty(),
            max_digits,
            slack,
        }))
    }

    /// The multiple and the excluded units.
    pub(super) fn units(&self) -> impl Iterator<Item = &Unit> + Clone {
        self.multiple.iter().chain(&self.excluded)
    }

    /// Whether values are more than an interval.
    pub(super) fn has_units(&self) -> bool {
        self.multiple.is_some() || !self.excluded.is_empty()
    }
}

/// The one unit that values are multiples of, and those they are not; `None` if they contradict.
#[allow(clippy::type_complexity)]
fn units(spec: &NumberSpec) -> Result<Option<(Option<Decimal>, Vec<Decimal>)>> {
    let one = Decimal::from(1);
    let mut multiple: Option<Decimal> = None;
    for unit in spec.multiple_of.iter().chain((spec.integer || spec.whole).then_some(&one)) {
        multiple = Some(match multiple {
            None => positive(unit)?,
            Some(multiple) => multiple.lcm(&positive(unit)?)?,
        });
    }
    let mut excluded: Vec<Decimal> = Vec::new();
    for unit in spec.not_multiple_of.iter().chain(spec.fractional.then_some(&one)) {
        let unit = positive(unit)?;
        if multiple.as_ref().is_some_and(|multiple| multiple.is_multiple_of(&unit)) {
            return Ok(None);
        }
        if !excluded.iter().any(|other| unit.is_multiple_of(other)) {
            excluded.retain(|other| !other.is_multiple_of(&unit));
            excluded.push(unit);
        }
    }
    if excluded.len() > MAX_EXCLUDED {
        let kind = Kind::TooComplex { what: "excluded multiples", limit: MAX_EXCLUDED as u64 };
        return Err(Error::new(
            kind,
            format!("a number excludes multiples of {} values", excluded.len()),
        )
        .help("exclude fewer values of multipleOf"));
    }
    Ok(Some((multiple, excluded)))
}

fn positive(unit: &Decimal) -> Result<Decimal> {
    if unit.is_zero() || unit.is_negative() {
        return Err(Error::new(Kind::BadArgument, format!("multiples of {unit} are asked for"))
            .help("use a multipleOf above zero"));
    }
    Ok(unit.clone())
}

/// The bounds, and where one is missing, that of the numbers that are finite in f64. If the other
/// bound lies beyond those: the next power of ten, so that the interval stays finite.
fn interval(spec: &NumberSpec) -> (Bound, Bound) {
    let bound = |(value, exclusive): &(Decimal, bool)| Bound {
        value: value.clone(),
        exclusive: *exclusive,
    };
    let default = |other: Option<Decimal>| match other {
        Some(other) if !other.is_negative() && !other.is_finite_f64() => {
            let value = Decimal::from(1).shifted(other.leading() + 1);
            Bound { value, exclusive: false }
        }
        _ => Bound { value: Decimal::f64_limit(), exclusive: true },
    };
    let value = |bound: &Option<(Decimal, bool)>| bound.as_ref().map(|(value, _)| value.clone());
    let lo = spec.min.as_ref().map(bound).unwrap_or_else(|| {
        let bound = default(value(&spec.max).map(|value| value.negate()));
        Bound { value: bound.value.negate(), ..bound }
    });
    let hi = spec.max.as_ref().map(bound).unwrap_or_else(|| default(value(&spec.min)));
    (lo, hi)
}

/// An interval as magnitudes by sign. `-0` is the same value as `0`.
fn sides(lo: &Bound, hi: &Bound) -> [Option<Side>; 2] {
    let zero = || Bound { value: Decimal::zero(), exclusive: false };
    let side = |lo: &Bound, hi: &Bound| {
        if hi.value.is_negative() {
            return None;
        }
        Side::new(if lo.value.is_negative() { zero() } else { lo.clone() }, hi.clone())
    };
    let negate = |bound: &Bound| Bound { value: bound.value.negate(), ..*bound };
    [side(lo, hi), side(&negate(hi), &negate(lo))]
}

/// The digit limit, raised if that is needed to write some number near the bounds, or the least multiple.
pub(super) fn digits_needed(spec: &NumberSpec, limit: u32) -> Result<u32> {
    let multiple = units(spec)?.and_then(|(multiple, _)| multiple);
    let bounds = [&spec.min, &spec.max].into_iter().flatten().map(|(value, _)| value);
    let low = bounds.clone().map(|n| n.exponent).min().unwrap_or(0).min(0);
    let numbers = || bounds.clone().chain(&multiple).filter(|n| !n.is_zero());
    let top = numbers().map(|n| n.leading()).max().unwrap_or(0).max(0);
    // Plain: one digit more on either side leaves room between exclusive bounds.
    let plain = top - low + 3;
    if plain <= PLAIN_DIGITS {
        return Ok(limit.max(plain as u32));
    }
    // With an exponent: the digits of the longest number, one more, and the exponent's.
    let longest = numbers().map(|n| n.digits.len()).max().unwrap_or(0);
    Ok(limit.max(longest as u32 + 1 + EXPONENT_DIGITS))
}

/// See [`Values::slack`]: the digits between the first and the last position of all declared numbers, twice
/// (to leave a bound, then to meet the units), and an exponent.
fn slack<'a>(spec: &'a NumberSpec, units: impl Iterator<Item = &'a Decimal>) -> u32 {
    let bounds = [&spec.min, &spec.max].into_iter().flatten().map(|(value, _)| value);
    let numbers: Vec<&Decimal> = bounds.chain(units).collect();
    let top = numbers.iter().map(|n| n.leading()).max().unwrap_or(0).max(0);
    let low = numbers.iter().map(|n| n.exponent).min().unwrap_or(0).min(0);
    u32::try_from(2 * (top - low + 2)).unwrap_or(u32::MAX / 2).min(u32::MAX / 2) + EXPONENT_DIGITS
}

/// Declared numbers of up to this many digits may be written plainly whatever the limit: enough for the
/// range of f64.
const PLAIN_DIGITS: i64 = 700;

/// Digits of the greatest exponent ([`crate::grammar::decimal::MAX_EXPONENT`], plus the digits).
const EXPONENT_DIGITS: u32 = 13;
