//! JSON numbers out of a set, as a byte automaton.
//!
//! # Problem
//!
//! A schema says `{"type": "integer", "minimum": 0, "maximum": 150, "multipleOf": 5}`. After `12`, which
//! bytes may come? `0` and `5`; also `.`? No: 12 is not a multiple of 5 and no fraction makes it one.
//! Every byte that is allowed must lead to a value of the set, every value must be reachable, and the states
//! must be few, since masks are kept per state.
//!
//! # Spellings
//!
//! * Plain: an optional `-`, digits without a zero in front, an optional fraction with any zeros at
//!   its end: `5`, `5.0`, `-0`, `0.50`. Every value has one.
//! * With an exponent and one digit (not 0) before the point: `1.5e3`, `2E-01`.
//! * If neither bounds nor multiples are declared (being an integer or not does not count), every mantissa may
//!   have an exponent: `1200e-2`, `0e5`.
//! * Where the set says `whole`, neither a point nor an exponent nor `-0` (an integer needs none).
//! * Where the set says `float`, only those with an exponent.
//! * At most `max_digits` digits in all, the exponent's included. Declared bounds may need more; then the
//!   limit is raised so that they can be written.
//! * An end without a bound ends where the nearest f64 would be infinite, and numbers that are not 0 begin where it
//!   would be 0: with an exponent at 1e-307. What a bound leaves beyond these ends alone is not touched.
//!
//! # Method
//!
//! The values of each sign are an interval of magnitudes, of which multiples are asked or excluded ([`values`]).
//! Two automata read the digits side by side: [`plain`] numbers, and a mantissa that may get an exponent
//! ([`scientific`]). Each keeps what its future depends on and is dropped when it is dead. Walking
//! through `2.5e2` for the integers up to 255:
//!
//! ```text
//! 2    plain: one digit, ties with 255; may end    mantissa: ties with 255
//! 2.   plain: zeros may follow                     mantissa: a digit must follow
//! 2.5  dead (not an integer)                       mantissa: last digit at -1: exponents 1 to 2
//! e    exponents 1 to 2 remain, no mantissa is kept
//! 2    may end; `20` is too much: nothing may follow
//! ```
//!
//! # Invariants
//!
//! Every state that [`NumberMachine::step`] returns is live: some bytes lead from it to an accepted number. This
//! is arithmetic and exact, not a search.
//!
//! # Cost
//!
//! A step is some comparisons; with multiples a few operations on numbers of the size of the multiple. A remainder
//! is a number in the state: `multipleOf: 1000003` builds no table.

mod plain;
mod scientific;
mod values;

use crate::error::Result;
use crate::grammar::NumberSpec;
use plain::Plain;
use scientific::{Exponent, Mantissa};
use values::Values;

/// The automaton of one set of numbers, immutable.
#[derive(Debug, Clone)]
pub struct NumberMachine {
    values: Values,
    /// Whether a number can begin with `-`.
    minus: bool,
    /// Whether both signs have the same magnitudes, so that the state need not know the sign.
    symmetric: bool,
    /// Whether a point and an exponent are no spellings.
    whole: bool,
    /// Whether only those with an exponent are.
    float: bool,
}

/// Where in a number the automaton is. Small; states with the same future are mostly equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NumberState(State);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum State {
    Start,
    Minus,
    Digits { negative: bool, left: u32, plain: Option<Plain>, mantissa: Option<Mantissa> },
    Exponent(Exponent),
}

impl NumberMachine {
    /// The automaton of `spec`; `None` if no number satisfies it (within the digit limit).
    ///
    /// # Errors
    /// [`crate::error::Kind::TooLarge`] or [`crate::error::Kind::TooComplex`] if the multiples are too large or too
    /// many, [`crate::error::Kind::BadArgument`] if one is not positive.
    pub fn new(spec: &NumberSpec, max_digits: u32) -> Result<Option<Self>> {
        Self::with_digits(spec, values::digits_needed(spec, max_digits)?)
    }

    /// The automaton of the numbers of at most `max_digits` digits, however many the bounds have.
    fn with_digits(spec: &NumberSpec, max_digits: u32) -> Result<Option<Self>> {
        let Some(values) = Values::new(spec, max_digits.max(1))? else {
            return Ok(None);
        };
        let [positive, negative] = &values.sides;
        let symmetric = positive == negative;
        let mut machine =
            Self { values, minus: false, symmetric, whole: spec.whole, float: spec.float };
        machine.minus = (0..10).any(|digit| machine.first(true, digit).is_some());
        let live = machine.minus || (0..10).any(|digit| machine.first(false, digit).is_some());
        Ok(live.then_some(machine))
    }

    /// The state before the first byte.
    pub fn start(&self) -> NumberState {
        NumberState(State::Start)
    }

    /// The state after one more byte, `None` if no number goes on like this.
    pub fn step(&self, state: &NumberState, byte: u8) -> Option<NumberState> {
        let next = match (&state.0, byte) {
            (State::Start, b'-') => self.minus.then_some(State::Minus),
            (State::Start, b'0'..=b'9') => self.first(false, byte - b'0'),
            (State::Minus, b'0'..=b'9') => self.first(true, byte - b'0'),
            (State::Digits { negative, left, plain, mantissa }, _) => {
                self.step_digits((*negative, *left, plain.as_ref(), mantissa.as_ref()), byte)
            }
            (State::Exponent(exponent), _) => exponent.step(byte).map(State::Exponent),
            _ => None,
        };
        next.map(NumberState)
    }

    /// Whether the number may end here.
    pub fn accepts(&self, state: &NumberState) -> bool {
        match &state.0 {
            State::Start | State::Minus => false,
            State::Digits { negative, plain, .. } => {
                let side = self.values.sides[usize::from(*negative)].as_ref();
                std::iter::zip(plain, side).any(|(plain, side)| plain.accepts(&self.values, side))
            }
            State::Exponent(exponent) => exponent.accepts(),
        }
    }

    /// A state that does the same as `state` for the next `horizon` bytes: the same of them are live, and the
    /// same may end the number. The digit limit shows only near its end, so that nearly all states that
    /// differ in the digits left share one. For tables over tokens of at most so many bytes of a number.
    pub fn within(&self, state: &NumberState, horizon: u32) -> NumberState {
        let most = horizon.saturating_add(self.values.slack);
        NumberState(match &state.0 {
            State::Start => State::Start,
            State::Minus => State::Minus,
            State::Digits { negative, left, plain, mantissa } => State::Digits {
                negative: *negative,
                left: most.min(*left),
                plain: plain.clone(),
                mantissa: mantissa.as_ref().map(|mantissa| mantissa.within(&self.values, horizon)),
            },
            State::Exponent(exponent) => State::Exponent(exponent.with_left(most)),
        })
    }

    /// The least number of digits with which a number can be completed from `state`, and the state with no
    /// more of them left: then [`NumberMachine::step`] goes on only where that many suffice. `None` before the
    /// first digit.
    pub fn tightest(&self, state: &NumberState) -> Option<(u32, NumberState)> {
        match &state.0 {
            State::Start | State::Minus => None,
            State::Digits { negative, left, plain, mantissa } => {
                let (values, side) =
                    (&self.values, self.values.sides[usize::from(*negative)].as_ref()?);
                let plain = |left| plain.clone().filter(|plain| plain.is_live(values, side, left));
                let mantissa =
                    |left| mantissa.clone().filter(|mantissa| mantissa.is_live(values, side, left));
                let least = least(*left, |left| plain(left).is_some() || mantissa(left).is_some());
                let digits = self.digits(*negative, least, plain(least), mantissa(least))?;
                Some((least, NumberState(digits)))
            }
            State::Exponent(exponent) => {
                let least = least(exponent.left(), |left| exponent.with_left(left).is_live());
                Some((least, NumberState(State::Exponent(exponent.with_left(least)))))
            }
        }
    }

    /// Whether at most `bytes` more bytes can complete a number from `state`.
    ///
    /// Besides digits these are at most a point, an `e` and a sign on either side. So it is arithmetic too: each of the
    /// few ways to have some of them, with all other bytes for digits.
    pub fn suffices(&self, state: &NumberState, bytes: u32) -> bool {
        let after = |byte: u8, bytes: u32| {
            self.step(state, byte).is_some_and(|next| self.suffices(&next, bytes))
        };
        match (&state.0, bytes.checked_sub(1)) {
            (State::Start, Some(bytes)) => {
                (b'0'..=b'9').chain([b'-']).any(|byte| after(byte, bytes))
            }
            (State::Minus, Some(bytes)) => (b'0'..=b'9').any(|byte| after(byte, bytes)),
            (State::Start | State::Minus, None) => false,
            (State::Digits { negative, left, plain, mantissa }, less) => {
                let (values, left) = (&self.values, *left);
                let Some(side) = values.sides[usize::from(*negative)].as_ref() else {
                    return false;
                };
                let plain = plain.as_ref().is_some_and(|plain| {
                    plain.is_live_without_point(values, side, left.min(bytes))
                        || less.is_some_and(|less| plain.is_live(values, side, left.min(less)))
                });
                plain
                    || mantissa
                        .as_ref()
                        .is_some_and(|mantissa| mantissa.suffices(values, side, left, bytes))
            }
            (State::Exponent(exponent), _) => exponent.suffices(bytes),
        }
    }

    fn first(&self, negative: bool, digit: u8) -> Option<State> {
        if self.whole && negative && digit == 0 {
            // Parsers read `-0` as a floating-point number.
            return None;
        }
        let side = self.values.sides[usize::from(negative)].as_ref()?;
        let left = self.values.max_digits - 1;
        let mantissa = Mantissa::first(&self.values, side, digit, left).filter(|_| !self.whole);
        let plain = Plain::first(&self.values, side, digit, left).filter(|_| !self.float);
        self.digits(negative, left, plain, mantissa)
    }

    fn step_digits(
        &self,
        (negative, left, plain, mantissa): (bool, u32, Option<&Plain>, Option<&Mantissa>),
        byte: u8,
    ) -> Option<State> {
        let values = &self.values;
        let side = values.sides[usize::from(negative)].as_ref()?;
        match byte {
            b'0'..=b'9' => {
                let (digit, left) = (byte - b'0', left.checked_sub(1)?);
                let plain = plain.and_then(|plain| plain.digit(values, side, digit, left));
                let mantissa =
                    mantissa.and_then(|mantissa| mantissa.digit(values, side, digit, left));
                self.digits(negative, left, plain, mantissa)
            }
            b'.' if !self.whole => {
                let plain = plain.and_then(|plain| plain.point(values, side, left));
                let mantissa = mantissa.and_then(|mantissa| mantissa.point(values, side, left));
                self.digits(negative, left, plain, mantissa)
            }
            b'e' | b'E' => mantissa?.exponent(values, side, left).map(State::Exponent),
            _ => None,
        }
    }

    fn digits(
        &self,
        negative: bool,
        left: u32,
        plain: Option<Plain>,
        mantissa: Option<Mantissa>,
    ) -> Option<State> {
        let negative = negative && !self.symmetric;
        (plain.is_some() || mantissa.is_some()).then_some(State::Digits {
            negative,
            left,
            plain,
            mantissa,
        })
    }
}

/// The least number up to `most` for which `holds`, which holds for all larger ones and for `most`.
fn least(most: u32, holds: impl Fn(u32) -> bool) -> u32 {
    // Nearly always it is small.
    let mut step = 1;
    let (mut low, mut high) = (0, 0);
    while high < most && !holds(high) {
        low = high + 1;
        high = most.min(high.saturating_add(step));
        step = step.saturating_mul(2);
    }
    while low < high {
        let middle = low + (high - low) / 2;
        match holds(middle) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    high
}

#[cfg(test)]
mod tests;
