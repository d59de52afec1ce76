//! Exact decimal numbers of any size, as JSON writes them.
//!
//! A [`Decimal`] is `sign * digits * 10^exponent` with the digits normalised: no zero in front, no
//! zero at the end. `1200`, `1.2e3` and `12.00e2` are all the digits `1 2` with exponent 2, so equal
//! values are equal structs, and hashing is hashing.
//!
//! # Invariants
//!
//! * `digits` holds values 0 to 9, the most significant first; its first and last are not 0.
//! * Zero has no digits, exponent 0 and no sign: `-0` is `0`.
//! * `|exponent|` stays below about [`MAX_EXPONENT`], so sums of a few exponents cannot overflow.
//!
//! # Cost
//!
//! Everything costs time and memory by the number of *digits* (at most [`MAX_DIGITS`] where text is
//! read), never by the magnitude: `1e400000000` is one digit and an exponent. Comparing looks at
//! the position of the leading digit first. Divisibility by `b * 10^q` splits `b` from the power of
//! ten: `a * 10^p` is a multiple exactly if `p >= q` and `b` divides `a * 10^(p - q)`, which is a
//! modular power (for `p < q` it cannot be, since `a` has no zero at its end).

use crate::error::{Error, Kind, Result, quote};
use num_bigint::BigUint;
use num_integer::Integer;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// Digits that a number may have where it is read from text.
pub const MAX_DIGITS: usize = 4096;

/// Greatest magnitude of the exponent of a number that is read from text.
pub const MAX_EXPONENT: i64 = 1_000_000_000_000;

/// An exact decimal number: `sign * digits * 10^exponent`, normalised (no trailing zero digits).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decimal {
    pub(crate) negative: bool,
    pub(crate) digits: Vec<u8>,
    pub(crate) exponent: i64,
}

impl Decimal {
    /// Reads a number in the grammar of JSON (RFC 8259): `-0.5`, `1e-300`, `6.02E+23`.
    ///
    /// ```
    /// use constrain::grammar::decimal::Decimal;
    /// assert_eq!(Decimal::parse("1.50e1")?, Decimal::from(15));
    /// assert!(Decimal::parse("01").is_err());
    /// # Ok::<(), constrain::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Kind::Syntax`] if `text` is not a JSON number, [`Kind::TooLarge`] above [`MAX_DIGITS`] digits or
    /// [`MAX_EXPONENT`].
    pub fn parse(text: &str) -> Result<Self> {
        let parts = Parts::split(text).ok_or_else(|| {
            Error::new(Kind::Syntax, format!("{} is not a JSON number", quote(text)))
        })?;
        let digits = || parts.int.bytes().chain(parts.frac.bytes()).map(|byte| byte - b'0');
        let leading = digits().take_while(|&digit| digit == 0).count();
        let significant: Vec<u8> = digits().skip(leading).collect();
        if significant.len() > MAX_DIGITS || parts.frac.len() as i64 > MAX_EXPONENT {
            return Err(too_large(format!("a number of more than {MAX_DIGITS} digits")));
        }
        if significant.iter().all(|&digit| digit == 0) {
            return Ok(Self::zero());
        }
        let written = parts.exponent_value().ok_or_else(|| {
            too_large(format!("the exponent of {} is beyond {MAX_EXPONENT}", quote(text)))
        })?;
        Ok(Self::new(parts.negative, significant, written - parts.frac.len() as i64))
    }

    /// The number of these digit values (most significant first) times `10^exponent`, normalised.
    pub(crate) fn new(negative: bool, mut digits: Vec<u8>, mut exponent: i64) -> Self {
        while digits.last() == Some(&0) {
            digits.pop();
            exponent += 1;
        }
        let leading = digits.iter().take_while(|&&digit| digit == 0).count();
        digits.drain(..leading);
        if digits.is_empty() {
            return Self::zero();
        }
        Self { negative, digits, exponent }
    }

    /// `value * 10^exponent`.
    pub(crate) fn from_big(negative: bool, value: &BigUint, exponent: i64) -> Self {
        Self::new(negative, value.to_radix_be(10), exponent)
    }

    /// Zero.
    pub fn zero() -> Self {
        Self { negative: false, digits: Vec::new(), exponent: 0 }
    }

    /// Whether this is zero.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Whether this is below zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// Whether this has no fractional part (`1.0` and `1e2` have none).
    pub fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// The number with the opposite sign.
    #[must_use]
    pub fn negate(&self) -> Self {
        Self { negative: !self.negative && !self.is_zero(), ..self.clone() }
    }

    /// The number without its sign.
    #[must_use]
    pub fn abs(&self) -> Self {
        Self { negative: false, ..self.clone() }
    }

    /// The greatest integer that is not above this.
    #[must_use]
    pub fn floor(&self) -> Self {
        if self.is_integer() {
            return self.clone();
        }
        let whole = self.leading() + 1;
        let kept = usize::try_from(whole).unwrap_or(0).min(self.digits.len());
        let truncated = Self::new(self.negative, self.digits[..kept].to_vec(), 0);
        if self.negative { truncated.abs().add_one().negate() } else { truncated }
    }

    /// The least integer that is not below this.
    #[must_use]
    pub fn ceil(&self) -> Self {
        self.negate().floor().negate()
    }

    /// Whether this is an integer times `unit`. Zero is a multiple of everything; only zero is a
    /// multiple of zero. Signs do not matter.
    pub fn is_multiple_of(&self, unit: &Self) -> bool {
        if self.is_zero() || unit.is_zero() {
            return self.is_zero();
        }
        let Ok(shift) = u64::try_from(self.exponent - unit.exponent) else {
            return false;
        };
        let divisor = unit.magnitude();
        let power = BigUint::from(10u8).modpow(&BigUint::from(shift), &divisor);
        self.magnitude() % &divisor * power % &divisor == BigUint::ZERO
    }

    /// The least positive number that is a multiple of both (zero if one of them is zero).
    ///
    /// With `a * 10^p = a' * 2^s * 5^t` (`a'` prime to ten) it is the `lcm` of the `a'`, times the greater
    /// power of 2 and of 5; so nothing grows with `p`.
    ///
    /// # Errors
    /// [`Kind::TooLarge`] if the result has more than [`MAX_DIGITS`] digits.
    pub fn lcm(&self, other: &Self) -> Result<Self> {
        if self.is_zero() || other.is_zero() {
            return Ok(Self::zero());
        }
        let (a, a_twos, a_fives) = self.factors();
        let (b, b_twos, b_fives) = other.factors();
        let (twos, fives) = (a_twos.max(b_twos), a_fives.max(b_fives));
        let tens = twos.min(fives);
        let rest = |count: i64, base: u8| BigUint::from(base).pow((count - tens) as u32);
        let value = a.lcm(&b) * rest(twos, 2) * rest(fives, 5);
        let result = Self::from_big(false, &value, tens);
        if result.digits.len() > MAX_DIGITS {
            return Err(too_large(format!(
                "the least common multiple has more than {MAX_DIGITS} digits"
            )));
        }
        Ok(result)
    }

    /// Whether the nearest f64 is finite: `|x| < 2^1024 - 2^970`, half a step above the greatest f64.
    pub fn is_finite_f64(&self) -> bool {
        self.abs() < Self::f64_limit()
    }

    /// The least positive number whose nearest f64 is infinite, `2^1024 - 2^970`.
    pub(crate) fn f64_limit() -> Self {
        let one = BigUint::from(1u8);
        Self::from_big(false, &((&one << 1024u32) - (one << 970u32)), 0)
    }

    /// Position of the first digit: 0 for units, 2 for hundreds, -1 for tenths. 0 for zero.
    pub(crate) fn leading(&self) -> i64 {
        match self.digits.len() {
            0 => 0,
            count => self.exponent + count as i64 - 1,
        }
    }

    /// The digit at a position, see [`Decimal::leading`].
    pub(crate) fn digit_at(&self, position: i64) -> u8 {
        usize::try_from(self.leading() - position)
            .ok()
            .and_then(|index| self.digits.get(index).copied())
            .unwrap_or(0)
    }

    /// The digits as an integer, without sign and exponent.
    pub(crate) fn magnitude(&self) -> BigUint {
        BigUint::from_radix_be(&self.digits, 10).unwrap_or_default()
    }

    /// This times `10^by`.
    #[must_use]
    pub(crate) fn shifted(&self, by: i64) -> Self {
        if self.is_zero() {
            return Self::zero();
        }
        Self { exponent: self.exponent + by, ..self.clone() }
    }

    /// `(a, s, t)` with the magnitude equal to `a * 2^s * 5^t`, `a` prime to ten. Not for zero.
    fn factors(&self) -> (BigUint, i64, i64) {
        let mut rest = self.magnitude();
        let twos = rest.trailing_zeros().unwrap_or(0);
        rest >>= twos;
        let five = BigUint::from(5u8);
        let mut fives = 0;
        loop {
            let (quotient, remainder) = rest.div_rem(&five);
            if remainder != BigUint::ZERO || rest == BigUint::ZERO {
                break;
            }
            rest = quotient;
            fives += 1;
        }
        (rest, twos as i64 + self.exponent, fives + self.exponent)
    }

    /// This plus one, for an integer that is not negative and whose digits are all written
    /// (exponent by exponent below [`MAX_DIGITS`]): what [`Decimal::floor`] needs.
    fn add_one(&self) -> Self {
        let mut digits = self.digits.clone();
        digits.resize(digits.len() + self.exponent as usize, 0);
        let nines = digits.iter().rev().take_while(|&&digit| digit == 9).count();
        digits.truncate(digits.len() - nines);
        match digits.last_mut() {
            Some(last) => *last += 1,
            None => digits.push(1),
        }
        Self::new(false, digits, nines as i64)
    }

    /// Orders the magnitudes.
    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            // Without zeros at the end, the longer of two numbers that share a prefix is greater.
            (false, false) => {
                self.leading().cmp(&other.leading()).then_with(|| self.digits.cmp(&other.digits))
            }
        }
    }
}

fn too_large(message: String) -> Error {
    Error::new(Kind::TooLarge, message).help("write a number with fewer digits")
}

/// A JSON number, cut at its marks.
struct Parts<'a> {
    negative: bool,
    int: &'a str,
    frac: &'a str,
    exponent_negative: bool,
    exponent: &'a str,
}

impl<'a> Parts<'a> {
    /// `None` if `text` is not a JSON number.
    fn split(text: &'a str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (text, None),
        };
        let (int, frac) = match mantissa.split_once('.') {
            Some((int, frac)) => (int, Some(frac)),
            None => (mantissa, None),
        };
        let (exponent_negative, exponent) = match exponent {
            Some(text) if text.starts_with(['+', '-']) => (text.starts_with('-'), Some(&text[1..])),
            other => (false, other),
        };
        let is_digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let legal = is_digits(int)
            && (int.len() == 1 || !int.starts_with('0'))
            && frac.is_none_or(is_digits)
            && exponent.is_none_or(is_digits);
        legal.then_some(Self {
            negative,
            int,
            frac: frac.unwrap_or(""),
            exponent_negative,
            exponent: exponent.unwrap_or("0"),
        })
    }

    /// The exponent as written; `None` beyond [`MAX_EXPONENT`].
    fn exponent_value(&self) -> Option<i64> {
        let digits = self.exponent.trim_start_matches('0');
        let value = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        (value <= MAX_EXPONENT).then_some(if self.exponent_negative { -value } else { value })
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Self::from_big(value < 0, &BigUint::from(value.unsigned_abs()), 0)
    }
}

impl FromStr for Decimal {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.cmp_magnitude(other),
            (true, true) => other.cmp_magnitude(self),
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Decimal {
    /// A JSON number that reads back as the same value: plain where that is short
    /// (`1200`, `0.00015`), else with an exponent (`1.5e-9`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        if self.negative {
            f.write_str("-")?;
        }
        let digits: String = self.digits.iter().map(|&digit| char::from(b'0' + digit)).collect();
        match self.leading() {
            leading @ 0..21 => {
                let point = leading as usize + 1;
                match digits.get(point..) {
                    None | Some("") => write!(f, "{digits:0<point$}"),
                    Some(frac) => write!(f, "{}.{frac}", &digits[..point]),
                }
            }
            leading @ -6..0 => {
                write!(f, "0.{:0>zeros$}{digits}", "", zeros = (-1 - leading) as usize)
            }
            leading => {
                let (first, rest) = digits.split_at(1);
                let point = if rest.is_empty() { "" } else { "." };
                write!(f, "{first}{point}{rest}e{leading}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn parses_the_json_grammar_only() {
        for text in [
            "", "-", "01", "-01", "+1", ".5", "1.", "1e", "1e+", "1.e1", "0x1", "NaN", "1 ",
            "1e1.5", "1e1e1", "٣",
        ] {
            assert_eq!(Decimal::parse(text).unwrap_err().kind(), &Kind::Syntax, "{text:?}");
        }
        for (a, b) in [
            ("0", "-0.000e5"),
            ("100", "1e2"),
            ("1.50", "15E-1"),
            ("-0.001", "-1e-003"),
            ("0e99999999999999999999", "0"),
        ] {
            assert_eq!(decimal(a), decimal(b), "{a} {b}");
        }
    }

    #[test]
    fn refuses_what_is_too_long() {
        let digits = "7".repeat(MAX_DIGITS);
        assert!(Decimal::parse(&digits).is_ok());
        assert!(Decimal::parse(&format!("0.{}{digits}", "0".repeat(9000))).is_ok());
        for text in
            [format!("{digits}1"), "1e1000000000001".into(), "1e99999999999999999999".into()]
        {
            assert_eq!(Decimal::parse(&text).unwrap_err().kind(), &Kind::TooLarge);
        }
    }

    #[test]
    fn orders_by_value_whatever_the_magnitude() {
        let sorted = [
            "-1e400000000",
            "-2",
            "-1.5",
            "-1e-400000000",
            "0",
            "1e-400000000",
            "0.1",
            "0.11",
            "9",
            "10",
            "1e400000000",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(decimal(a).cmp(&decimal(b)), i.cmp(&j), "{a} {b}");
            }
        }
    }

    #[test]
    fn floor_and_ceil() {
        for (text, floor, ceil) in [
            ("1.5", "1", "2"),
            ("-1.5", "-2", "-1"),
            ("0.2", "0", "1"),
            ("-0.2", "-1", "0"),
            ("99.9", "99", "100"),
            ("-99.9", "-100", "-99"),
            ("-109.5", "-110", "-109"),
            ("1e400000000", "1e400000000", "1e400000000"),
            ("-1e-400000000", "-1", "0"),
            ("7", "7", "7"),
            ("-20.5", "-21", "-20"),
            ("-1000.5", "-1001", "-1000"),
        ] {
            assert_eq!(
                (decimal(text).floor(), decimal(text).ceil()),
                (decimal(floor), decimal(ceil)),
                "{text}"
            );
        }
    }

    #[test]
    fn multiples_without_allocating_by_magnitude() {
        for (value, unit, expected) in [
            ("1e400000000", "1e-400000000", true),
            ("1e400000000", "7", false),
            ("7e400000000", "7", true),
            ("0", "5", true),
            ("5", "0", false),
            ("0.75", "0.25", true),
            ("0.3", "0.25", false),
            ("-0.75", "0.25", true),
            ("1.1", "1", false),
            ("1e2", "8", false),
            ("1e3", "8", true),
            ("0.0075", "0.0001", true),
        ] {
            assert_eq!(decimal(value).is_multiple_of(&decimal(unit)), expected, "{value} {unit}");
        }
        for (a, b, expected) in [
            ("6", "4", "12"),
            ("0.25", "0.1", "0.5"),
            ("1e300000000", "7", "7e300000000"),
            ("-3", "2", "6"),
            ("0", "2", "0"),
        ] {
            assert_eq!(decimal(a).lcm(&decimal(b)).unwrap(), decimal(expected), "{a} {b}");
        }
        let prime = decimal(&format!("1{}7", "0".repeat(2000)));
        assert!(prime.lcm(&decimal(&format!("1{}9", "0".repeat(2500)))).is_err());
    }

    #[test]
    fn finite_means_what_the_parser_of_f64_says() {
        for text in [
            "1.7976931348623157e308",
            "1.7976931348623158e308",
            "1.79769313486231580793e308",
            "1.7976931348623159e308",
            "1e308",
            "1e309",
            "-1e309",
            "1e-9999",
        ] {
            assert_eq!(
                decimal(text).is_finite_f64(),
                text.parse::<f64>().unwrap().is_finite(),
                "{text}"
            );
        }
    }

    #[test]
    fn displays_short_and_exact() {
        for (text, shown) in [
            ("1200", "1200"),
            ("-1.20", "-1.2"),
            ("0.00015", "0.00015"),
            ("15e-10", "1.5e-9"),
            ("1e30", "1e30"),
            ("-0", "0"),
            ("1e20", "100000000000000000000"),
        ] {
            assert_eq!(decimal(text).to_string(), shown);
        }
    }

    /// All numbers of up to two digits around the point, in pairs, against integers.
    #[test]
    fn small_numbers_are_those_of_arithmetic() {
        let numbers: Vec<(i64, Decimal)> = (-2..=2)
            .flat_map(|exponent| (-60..=60i64).map(move |digits| (digits, exponent)))
            .map(|(digits, exponent)| {
                let scaled = digits * 10i64.pow((exponent + 2) as u32);
                (scaled, Decimal::parse(&format!("{digits}e{exponent}")).unwrap())
            })
            .collect();
        for (x, dx) in &numbers {
            assert_eq!(dx.floor(), Decimal::from(x.div_euclid(100)), "floor of {dx}");
            assert_eq!(dx.ceil(), Decimal::from(-(-x).div_euclid(100)), "ceil of {dx}");
            assert_eq!(dx.is_integer(), x % 100 == 0, "{dx}");
            assert_eq!(dx.negate().cmp(dx), (-x).cmp(x), "{dx}");
            for (y, dy) in &numbers {
                assert_eq!(dx.cmp(dy), x.cmp(y), "{dx} and {dy}");
                assert_eq!(dx == dy, x == y, "{dx} and {dy}");
                let multiple = if *y == 0 { *x == 0 } else { x % y == 0 };
                assert_eq!(dx.is_multiple_of(dy), multiple, "{dx} of {dy}");
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_integers(a in -100_000i64..100_000, b in -100_000i64..100_000, p in 0u32..5, q in 0u32..5) {
            // a/10^p and b/10^q over the common denominator 10^5.
            let scaled = |value: i64, power: u32| value * 10i64.pow(5 - power);
            let (x, y) = (scaled(a, p), scaled(b, q));
            let (dx, dy) = (Decimal::from(a).shifted(-i64::from(p)), Decimal::from(b).shifted(-i64::from(q)));
            prop_assert_eq!(dx.cmp(&dy), x.cmp(&y));
            prop_assert_eq!(dx.is_multiple_of(&dy), if y == 0 { x == 0 } else { x % y == 0 });
            prop_assert_eq!(dx.lcm(&dy).unwrap(), Decimal::from_big(false, &BigUint::from(x.unsigned_abs().lcm(&y.unsigned_abs())), -5));
            prop_assert_eq!(dx.floor(), Decimal::from(x.div_euclid(100_000)));
            prop_assert_eq!(dx.is_integer(), x % 100_000 == 0);
            prop_assert_eq!(Decimal::parse(&dx.to_string()).unwrap(), dx);
        }

        #[test]
        fn display_round_trips(text in "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,12})?([eE][+-]?[0-9]{1,4})?") {
            let value = decimal(&text);
            prop_assert_eq!(decimal(&value.to_string()), value);
        }
    }
}
