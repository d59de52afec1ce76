//! Sets of numbers: unions of intervals with multiples.
//!
//! A [`NumberSpec`] is a conjunction of bounds and (non-)multiples; a [`Numbers`] is a union of
//! them. "Integer" is "a multiple of 1", so `oneOf` of `multipleOf: 2` and `multipleOf: 3` comes
//! out as two specs: multiples of 2 and not of 3, multiples of 3 and not of 2.
//!
//! Emptiness is exact: the multiples are those of one least common multiple `m`; the first one in the
//! interval is found by division, and among the next ones the forbidden multiples leave one out of
//! `lcm / m` steps or none at all.

use super::extent::Extent;
use crate::error::{Error, Kind, Result};
use crate::grammar::NumberSpec;
use crate::grammar::decimal::Decimal;
use crate::limits::Fuel;
use num_bigint::{BigInt, Sign};
use std::rc::Rc;

/// A union of number sets.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Numbers {
    None,
    All,
    Some(Rc<[NumberSpec]>),
}

/// The most specs in one union.
const SPECS: usize = 20_000;

/// The widest span of decimal places that arithmetic spreads out.
const SPAN: i64 = 20_000;

impl Numbers {
    /// The union of these sets; those that are empty are left out.
    pub fn of(specs: Vec<NumberSpec>, fuel: &mut Fuel) -> Result<Self> {
        if specs.len() > SPECS {
            let what = Kind::TooComplex { what: "number sets", limit: SPECS as u64 };
            return Err(Error::new(
                what,
                format!("more than {SPECS} sets of numbers in one union"),
            ));
        }
        let mut out: Vec<NumberSpec> = Vec::with_capacity(specs.len());
        for spec in specs {
            fuel.spend(2)?;
            if is_empty(&spec, fuel)? {
                continue;
            }
            if spec == NumberSpec::default() {
                return Ok(Self::All);
            }
            if out.len() <= 64 {
                fuel.spend(out.len() as u64)?;
                if out.iter().any(|known| covers(known, &spec)) {
                    continue;
                }
                out.retain(|known| !covers(&spec, known));
            }
            out.push(spec);
        }
        let (whole, broken) = (
            NumberSpec { integer: true, ..NumberSpec::default() },
            NumberSpec { fractional: true, ..NumberSpec::default() },
        );
        if out.contains(&whole) && out.contains(&broken) {
            return Ok(Self::All);
        }
        Ok(if out.is_empty() { Self::None } else { Self::Some(out.into()) })
    }

    /// One number.
    pub fn point(value: Decimal) -> NumberSpec {
        let integer = value.is_integer();
        let bound = Some((value, false));
        NumberSpec { integer, min: bound.clone(), max: bound, ..NumberSpec::default() }
    }

    /// The specs of the union.
    pub fn specs(&self) -> Vec<NumberSpec> {
        match self {
            Self::None => Vec::new(),
            Self::All => vec![NumberSpec::default()],
            Self::Some(specs) => specs.to_vec(),
        }
    }

    pub fn and(&self, other: &Self, fuel: &mut Fuel) -> Result<Self> {
        match (self, other) {
            (Self::None, _) | (_, Self::None) => Ok(Self::None),
            (Self::All, set) | (set, Self::All) => Ok(set.clone()),
            (Self::Some(a), Self::Some(b)) if a == b => Ok(self.clone()),
            (Self::Some(a), Self::Some(b)) => {
                let mut out = Vec::new();
                for x in a.iter() {
                    for y in b.iter() {
                        fuel.spend(4)?;
                        let both = intersect(x, y);
                        if !bounds_clash(&both) {
                            out.push(both);
                        }
                    }
                }
                Self::of(out, fuel)
            }
        }
    }

    pub fn or(&self, other: &Self, fuel: &mut Fuel) -> Result<Self> {
        match (self, other) {
            (Self::None, set) | (set, Self::None) => Ok(set.clone()),
            (Self::All, _) | (_, Self::All) => Ok(Self::All),
            (Self::Some(a), Self::Some(b)) => {
                Self::of(a.iter().chain(b.iter()).cloned().collect(), fuel)
            }
        }
    }

    pub fn not(&self, fuel: &mut Fuel) -> Result<Self> {
        let mut out = Self::All;
        for spec in self.specs() {
            let outside = Self::of(complement(&spec), fuel)?;
            out = out.and(&outside, fuel)?;
        }
        Ok(out)
    }
}

/// Whether every number of `b` is, by its bounds and multiples one by one, in `a`.
fn covers(a: &NumberSpec, b: &NumberSpec) -> bool {
    let flags = (!a.float || b.float)
        && (!a.whole || b.whole)
        && (!a.integer || b.integer)
        && (!a.fractional || b.fractional);
    let low = match (&a.min, &b.min) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some((x, open)), Some((y, strict))) => x < y || (x == y && (!open || *strict)),
    };
    let high = match (&a.max, &b.max) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some((x, open)), Some((y, strict))) => x > y || (x == y && (!open || *strict)),
    };
    flags
        && low
        && high
        && a.multiple_of.iter().all(|m| b.multiple_of.contains(m))
        && a.not_multiple_of.iter().all(|m| b.not_multiple_of.contains(m))
}

fn intersect(a: &NumberSpec, b: &NumberSpec) -> NumberSpec {
    let mut out = a.clone();
    out.integer |= b.integer;
    out.fractional |= b.fractional;
    out.whole |= b.whole;
    out.float |= b.float;
    if let Some((value, open)) = &b.min {
        let keep = out
            .min
            .as_ref()
            .is_some_and(|(own, strict)| own > value || (own == value && (*strict || !open)));
        if !keep {
            out.min = b.min.clone();
        }
    }
    if let Some((value, open)) = &b.max {
        let keep = out
            .max
            .as_ref()
            .is_some_and(|(own, strict)| own < value || (own == value && (*strict || !open)));
        if !keep {
            out.max = b.max.clone();
        }
    }
    for (own, other) in
        [(&mut out.multiple_of, &b.multiple_of), (&mut out.not_multiple_of, &b.not_multiple_of)]
    {
        for value in other {
            if !own.contains(value) {
                own.push(value.clone());
            }
        }
    }
    out
}

/// The numbers outside a spec: outside by one of its conditions.
///
/// In draft 4 `1.0` is no integer. The complement of its integers leaves such spellings out (they say no
/// new value), and keeps the mark, so that a second complement gives the integers of draft 4 again.
fn complement(spec: &NumberSpec) -> Vec<NumberSpec> {
    let mut out = Vec::new();
    let any = NumberSpec::default;
    // A single number is a multiple of whatever it is: bounds alone say it.
    let point = matches!((&spec.min, &spec.max), (Some((a, false)), Some((b, false))) if a == b);
    if let Some((value, open)) = &spec.min {
        out.push(NumberSpec { max: Some((value.clone(), !open)), ..any() });
    }
    if let Some((value, open)) = &spec.max {
        out.push(NumberSpec { min: Some((value.clone(), !open)), ..any() });
    }
    if point {
        return out;
    }
    if spec.integer {
        out.push(NumberSpec { fractional: true, whole: spec.whole, ..any() });
    }
    if spec.fractional {
        out.push(NumberSpec { integer: true, whole: spec.whole, ..any() });
    }
    for value in &spec.multiple_of {
        out.push(NumberSpec { not_multiple_of: vec![value.clone()], ..any() });
    }
    for value in &spec.not_multiple_of {
        out.push(NumberSpec { multiple_of: vec![value.clone()], ..any() });
    }
    out
}

/// Splits off the numbers between a bound that is `written` with a point or an exponent and the nearest f64: those
/// may be spelled with an exponent only.
///
/// Many validators read `1e30` as an f64, 1000000000000000019884624838656, and compare it exactly with integers
/// that are written in plain digits. So after `"minimum": 1e30` the plain 10^30 would be too small
/// for them; `1e30` is not. Below 2^53 there is no integer between a bound and its f64.
pub(super) fn split_at_floats(spec: NumberSpec, written: [Option<&str>; 2]) -> Vec<NumberSpec> {
    let mut main = spec.clone();
    let mut gaps = Vec::new();
    let [low, high] = written.map(|text| text.and_then(nearest_float));
    if let (Some((exact, open)), Some(float)) = (&spec.min, low)
        && float > *exact
    {
        main.min = Some((float.clone(), *open));
        gaps.push(NumberSpec { max: Some((float, !open)), float: true, ..spec.clone() });
    }
    if let (Some((exact, open)), Some(float)) = (&spec.max, high)
        && float < *exact
    {
        main.max = Some((float.clone(), *open));
        gaps.push(NumberSpec { min: Some((float, !open)), float: true, ..spec.clone() });
    }
    gaps.insert(0, main);
    gaps
}

/// The f64 that a number stands for which is written with a point or an exponent, if that matters.
fn nearest_float(text: &str) -> Option<Decimal> {
    let float: f64 = text.parse().ok().filter(|_| text.contains(['.', 'e', 'E']))?;
    let large = float.is_finite() && float.abs() >= 9_007_199_254_740_992.0;
    Decimal::parse(&format!("{float:.0}")).ok().filter(|_| large)
}

/// Whether the bounds alone leave nothing.
fn bounds_clash(spec: &NumberSpec) -> bool {
    match (&spec.min, &spec.max) {
        (Some((low, a)), Some((high, b))) => low > high || (low == high && (*a || *b)),
        _ => false,
    }
}

/// Whether no number satisfies the spec. Exact.
pub(super) fn is_empty(spec: &NumberSpec, fuel: &mut Fuel) -> Result<bool> {
    if bounds_clash(spec) || (spec.integer && spec.fractional) || (spec.whole && spec.float) {
        return Ok(true);
    }
    if let (Some((low, _)), Some((high, _))) = (&spec.min, &spec.max)
        && low == high
    {
        return Ok(!contains(spec, low));
    }
    let one = Decimal::from(1);
    let mut unit: Option<Decimal> = spec.integer.then(|| one.clone());
    for value in &spec.multiple_of {
        unit = Some(match unit {
            Some(known) => known.lcm(value)?,
            None => value.clone(),
        });
    }
    // An interval of more than one point has numbers that are multiples of nothing in particular.
    let Some(unit) = unit else { return Ok(false) };
    let mut avoid: Vec<Decimal> = spec.not_multiple_of.clone();
    avoid.extend(spec.fractional.then_some(one));
    if avoid.iter().any(|value| unit.is_multiple_of(value)) {
        return Ok(true);
    }
    no_multiple_between(spec, &unit, &avoid, fuel)
}

/// Whether no multiple of `unit` lies in the bounds that is a multiple of none of `avoid`.
fn no_multiple_between(
    spec: &NumberSpec,
    unit: &Decimal,
    avoid: &[Decimal],
    fuel: &mut Fuel,
) -> Result<bool> {
    let (Some((low, low_open)), Some((high, high_open))) = (&spec.min, &spec.max) else {
        // Unbounded on one side: the unit itself repeats with the period of the lcm of all.
        return Ok(false);
    };
    let base = base([unit, low, high]);
    let (first, last) = multiples((low, *low_open), (high, *high_open), unit)?;
    let unit = scaled(unit, base)?;
    if first > last {
        return Ok(true);
    }
    // k is forbidden when k * unit is a multiple of some value; tried one by one, with fuel, which
    // ends soon: the forbidden k of one value have a period of at least 2.
    let mut k = first;
    while k <= last {
        fuel.spend(8 + avoid.len() as u64)?;
        let product = &k * &unit;
        let (sign, digits) = product.to_radix_be(10);
        let candidate = Decimal::new(sign == Sign::Minus, digits, base);
        if !avoid.iter().any(|value| candidate.is_multiple_of(value)) {
            return Ok(false);
        }
        k += 1;
    }
    Ok(true)
}

/// The exponent that makes integers of all of these.
fn base(values: [&Decimal; 3]) -> i64 {
    let exponents = values.iter().map(|d| if d.is_zero() { 0 } else { d.exponent });
    exponents.min().unwrap_or(0)
}

/// The first and the last `k` for which `k * unit` is between two bounds (each perhaps exclusive).
fn multiples(
    (low, low_open): (&Decimal, bool),
    (high, high_open): (&Decimal, bool),
    unit: &Decimal,
) -> Result<(BigInt, BigInt)> {
    let base = base([unit, low, high]);
    let (unit, low, high) = (scaled(unit, base)?, scaled(low, base)?, scaled(high, base)?);
    let (mut first, mut last) = (ceil_div(&low, &unit), floor_div(&high, &unit));
    if low_open && &first * &unit == low {
        first += 1;
    }
    if high_open && &last * &unit == high {
        last -= 1;
    }
    Ok((first, last))
}

/// `value / 10^base` as an integer.
fn scaled(value: &Decimal, base: i64) -> Result<BigInt> {
    let shift = if value.is_zero() { 0 } else { value.exponent - base };
    if shift > SPAN {
        let what = Kind::TooComplex { what: "decimal places", limit: SPAN as u64 };
        return Err(Error::new(
            what,
            "the bounds and multiples of a number lie too far apart to compare",
        ));
    }
    let sign = if value.is_negative() { Sign::Minus } else { Sign::Plus };
    let magnitude = BigInt::from_biguint(sign, value.magnitude());
    Ok(magnitude * BigInt::from(10u8).pow(shift as u32))
}

fn floor_div(a: &BigInt, b: &BigInt) -> BigInt {
    let (quotient, rest) = (a / b, a % b);
    if rest.sign() == Sign::Minus { quotient - 1 } else { quotient }
}

fn ceil_div(a: &BigInt, b: &BigInt) -> BigInt {
    let (quotient, rest) = (a / b, a % b);
    if rest.sign() == Sign::Plus { quotient + 1 } else { quotient }
}

/// Whether `value` is in the set.
pub(super) fn contains(spec: &NumberSpec, value: &Decimal) -> bool {
    let above = spec.min.as_ref().is_none_or(|(low, open)| value > low || (!open && value == low));
    let below =
        spec.max.as_ref().is_none_or(|(high, open)| value < high || (!open && value == high));
    above
        && below
        && (!spec.integer || value.is_integer())
        && (!spec.fractional || !value.is_integer())
        && spec.multiple_of.iter().all(|unit| value.is_multiple_of(unit))
        && !spec.not_multiple_of.iter().any(|unit| value.is_multiple_of(unit))
}

/// How many numbers there are.
pub(super) fn extent(spec: &NumberSpec) -> Result<Extent> {
    let (Some((low, low_open)), Some((high, high_open))) = (&spec.min, &spec.max) else {
        return Ok(Extent::exactly(u64::MAX));
    };
    if low == high {
        return Ok(Extent::exactly(u64::from(contains(spec, low))));
    }
    let mut unit: Option<Decimal> = spec.integer.then(|| Decimal::from(1));
    for value in &spec.multiple_of {
        unit = Some(match unit {
            Some(known) => known.lcm(value)?,
            None => value.clone(),
        });
    }
    let Some(unit) = unit else { return Ok(Extent::exactly(u64::MAX)) };
    if spec.fractional || !spec.not_multiple_of.is_empty() {
        return Ok(Extent::at_least(1));
    }
    let (first, last) = multiples((low, *low_open), (high, *high_open), &unit)?;
    let count = (last - first + 1u8).to_biguint().unwrap_or_default();
    Ok(Extent::exactly(u64::try_from(count).unwrap_or(u64::MAX - 1)))
}

/// The value of an integer of few digits.
pub(super) fn small(value: &Decimal) -> Option<i64> {
    if value.is_zero() {
        return Some(0);
    }
    let power = u32::try_from(value.exponent)
        .ok()
        .filter(|&power| power + value.digits.len() as u32 <= 17)?;
    let magnitude = i64::try_from(value.magnitude()).ok()? * 10i64.pow(power);
    Some(if value.is_negative() { -magnitude } else { magnitude })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimal(tenths: i64) -> Decimal {
        Decimal::parse(&format!("{tenths}e-1")).unwrap()
    }

    fn spec() -> impl Strategy<Value = NumberSpec> {
        let bound = || proptest::option::of((-40i64..40, any::<bool>()));
        let units = || proptest::collection::vec(1i64..30, 0..2);
        (any::<bool>(), bound(), bound(), units(), units(), 0..4).prop_map(
            |(integer, min, max, of, not, fractional)| NumberSpec {
                integer,
                min: min.map(|(v, open)| (decimal(v), open)),
                max: max.map(|(v, open)| (decimal(v), open)),
                multiple_of: of.into_iter().map(decimal).collect(),
                not_multiple_of: not.into_iter().map(decimal).collect(),
                fractional: fractional == 0,
                whole: false,
                float: false,
            },
        )
    }

    fn union() -> impl Strategy<Value = Vec<NumberSpec>> {
        proptest::collection::vec(spec(), 0..3)
    }

    fn holds(specs: &[NumberSpec], value: &Decimal) -> bool {
        specs.iter().any(|spec| contains(spec, value))
    }

    proptest! {
        /// Union, intersection and complement agree with their meaning on a fine grid.
        #[test]
        fn algebra_is_pointwise(a in union(), b in union()) {
            let fuel = &mut Fuel::new(10_000_000);
            let (x, y) = (Numbers::of(a.clone(), fuel).unwrap(), Numbers::of(b.clone(), fuel).unwrap());
            let and = x.and(&y, fuel).unwrap().specs();
            let or = x.or(&y, fuel).unwrap().specs();
            let not = x.not(fuel).unwrap().specs();
            for hundredths in -1000i64..1000 {
                let value = Decimal::parse(&format!("{hundredths}e-2")).unwrap();
                let (in_a, in_b) = (holds(&a, &value), holds(&b, &value));
                prop_assert_eq!(holds(&and, &value), in_a && in_b);
                prop_assert_eq!(holds(&or, &value), in_a || in_b);
                prop_assert_eq!(holds(&not, &value), !in_a);
            }
        }

        /// A bounded spec counts as empty exactly if a grid that is fine enough has no member.
        #[test]
        fn emptiness_is_exact(spec in spec()) {
            prop_assume!(spec.min.is_some() && spec.max.is_some());
            let found = (-500i64..500).any(|hundredths| {
                contains(&spec, &Decimal::parse(&format!("{hundredths}e-2")).unwrap())
            });
            prop_assert_eq!(is_empty(&spec, &mut Fuel::new(1_000_000)).unwrap(), !found);
        }
    }

    #[test]
    fn plain_integers_keep_to_the_float_of_a_bound() {
        let text = |t: &str| Decimal::parse(t).unwrap();
        let below = |n: &str| NumberSpec { max: Some((text(n), false)), ..NumberSpec::default() };
        let above = |n: &str| NumberSpec { min: Some((text(n), false)), ..NumberSpec::default() };
        let parts = split_at_floats(above("1e30"), [Some("1e30"), None]);
        assert_eq!(parts[0], above("1000000000000000019884624838656"));
        assert_eq!(parts[1].max, Some((text("1000000000000000019884624838656"), true)));
        assert!(parts[1].float && parts[1].min == above("1e30").min);
        let parts = split_at_floats(below("1e23"), [None, Some("1e23")]);
        assert_eq!(parts[0], below("99999999999999991611392"));
        // Exact already, written as an integer, or too small to matter.
        assert_eq!(split_at_floats(below("1e30"), [None, Some("1e30")]), [below("1e30")]);
        assert_eq!(
            split_at_floats(above("1e30"), [Some(&text("1e30").to_string()), None]).len(),
            2
        );
        let plain = "1000000000000000000000000000000";
        assert_eq!(split_at_floats(above("1e30"), [Some(plain), None]), [above("1e30")]);
        assert_eq!(split_at_floats(above("0.1"), [Some("0.1"), None]), [above("0.1")]);
    }

    #[test]
    fn huge_and_tiny_units() {
        let text = |t: &str| Decimal::parse(t).unwrap();
        let fuel = &mut Fuel::new(1000);
        let tiny = NumberSpec {
            multiple_of: vec![text("1e-300")],
            min: Some((text("0"), true)),
            max: Some((text("1e-300"), true)),
            ..NumberSpec::default()
        };
        assert!(is_empty(&tiny, fuel).unwrap());
        let prime = NumberSpec {
            multiple_of: vec![text("1000003"), text("7")],
            min: Some((text("1"), false)),
            max: Some((text("7000020"), false)),
            ..NumberSpec::default()
        };
        assert!(is_empty(&prime, fuel).unwrap());
        assert!(
            !is_empty(&NumberSpec { max: Some((text("7000021"), false)), ..prime }, fuel).unwrap()
        );
    }
}
