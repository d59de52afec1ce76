//! The automaton against a definition by value: with few digits all texts can be tried.

use super::*;
use crate::grammar::decimal::Decimal;
use proptest::prelude::*;
use std::collections::HashSet;

fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

/// `int frac >=0 >0 <=1 <1 *5 !2`: integers, fractional numbers, bounds, multiples of, not multiples of.
fn spec(text: &str) -> NumberSpec {
    let mut spec = NumberSpec::default();
    for word in text.split_whitespace() {
        match word.split_at(1) {
            _ if word == "int" => spec.integer = true,
            _ if word == "frac" => spec.fractional = true,
            _ if word == "whole" => spec.whole = true,
            _ if word == "float" => spec.float = true,
            (">", rest) => match rest.strip_prefix('=') {
                Some(rest) => spec.min = Some((decimal(rest), false)),
                None => spec.min = Some((decimal(rest), true)),
            },
            ("<", rest) => match rest.strip_prefix('=') {
                Some(rest) => spec.max = Some((decimal(rest), false)),
                None => spec.max = Some((decimal(rest), true)),
            },
            ("*", rest) => spec.multiple_of.push(decimal(rest)),
            ("!", rest) => spec.not_multiple_of.push(decimal(rest)),
            _ => panic!("{word}"),
        }
    }
    spec
}

/// Whether a text is a value of the set, in a spelling that the module documents. By value.
fn naive_accepts(spec: &NumberSpec, max_digits: usize, text: &str) -> bool {
    let Ok(value) = Decimal::parse(text) else {
        return false;
    };
    let free = NumberSpec { integer: false, fractional: false, float: false, ..spec.clone() };
    let free = free == NumberSpec::default();
    if text.bytes().filter(u8::is_ascii_digit).count() > max_digits {
        return false;
    }
    if let Some((mantissa, _)) = text.to_ascii_lowercase().split_once('e') {
        let mantissa = mantissa.trim_start_matches('-');
        let int = mantissa.split('.').next().unwrap();
        if !free && (int.len() != 1 || int == "0") {
            return false;
        }
    }
    let above =
        |(bound, exclusive): &(Decimal, bool)| value > *bound || value == *bound && !exclusive;
    let below =
        |(bound, exclusive): &(Decimal, bool)| value < *bound || value == *bound && !exclusive;
    if spec.whole && (text == "-0" || text.contains(['.', 'e', 'E'])) {
        return false;
    }
    if spec.float && !text.contains(['e', 'E']) {
        return false;
    }
    // With an exponent nothing is written that f64 takes for 0.
    let (near, far) = match value.is_negative() {
        false => (&spec.min, &spec.max),
        true => (&spec.max, &spec.min),
    };
    let reaches_zero = near
        .as_ref()
        .is_none_or(|(bound, _)| bound.is_zero() || bound.is_negative() != value.is_negative());
    let only_small = far.as_ref().is_some_and(|(bound, _)| bound.leading() <= -307);
    let tiny = !value.is_zero() && value.leading() < -307 && text.contains(['e', 'E']);
    if tiny && reaches_zero && !only_small {
        return false;
    }
    // The tests have no declared bounds beyond f64, except where both are declared.
    (spec.min.as_ref().map_or_else(|| !value.is_negative() || value.is_finite_f64(), above))
        && (spec.max.as_ref().map_or_else(|| value.is_negative() || value.is_finite_f64(), below))
        && (!spec.integer && !spec.whole || value.is_integer())
        && (!spec.fractional || !value.is_integer())
        && spec.multiple_of.iter().all(|unit| value.is_multiple_of(unit))
        && !spec.not_multiple_of.iter().any(|unit| value.is_multiple_of(unit))
}

/// How far a JSON number is written: the grammar of RFC 8259 as a table.
#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Start,
    Minus,
    Zero,
    Int,
    Point,
    Frac,
    E,
    Sign,
    Exponent,
}

impl Phase {
    fn next(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Phase::Start, b'-') => Phase::Minus,
            (Phase::Start | Phase::Minus, b'0') => Phase::Zero,
            (Phase::Start | Phase::Minus, b'1'..=b'9') | (Phase::Int, b'0'..=b'9') => Phase::Int,
            (Phase::Zero | Phase::Int, b'.') => Phase::Point,
            (Phase::Point | Phase::Frac, b'0'..=b'9') => Phase::Frac,
            (Phase::Zero | Phase::Int | Phase::Frac, b'e' | b'E') => Phase::E,
            (Phase::E, b'+' | b'-') => Phase::Sign,
            (Phase::E | Phase::Sign | Phase::Exponent, b'0'..=b'9') => Phase::Exponent,
            _ => return None,
        })
    }
}

/// Walks all beginnings of numbers; at each the automaton must be alive exactly if the definition
/// accepts some text below it, accept exactly if the definition does, and know how many more bytes the
/// shortest such text has.
struct Walk<'a> {
    spec: &'a NumberSpec,
    machine: Option<&'a NumberMachine>,
    digits: &'a str,
    max_digits: usize,
    /// Whether `digits` are all digits, so that no completion is missed.
    all: bool,
    states: HashSet<NumberState>,
}

impl Walk<'_> {
    /// The fewest bytes that make `text` a number of the set, if any do.
    fn visit(
        &mut self,
        text: &mut String,
        phase: Phase,
        left: usize,
        state: Option<NumberState>,
    ) -> Option<u32> {
        let whole = matches!(phase, Phase::Zero | Phase::Int | Phase::Frac | Phase::Exponent);
        let expected = whole && naive_accepts(self.spec, self.max_digits, text);
        let machine = self.machine;
        let accepts =
            std::iter::zip(machine, &state).any(|(machine, state)| machine.accepts(state));
        assert_eq!(accepts, expected, "{:?} accepts {text:?}", self.spec);
        let mut fewest = expected.then_some(0);
        for next in self.digits.chars().chain(".-+eE".chars()) {
            let next_state = std::iter::zip(machine, &state)
                .find_map(|(machine, state)| machine.step(state, next as u8));
            text.push(next);
            let left = left.checked_sub(usize::from(next.is_ascii_digit()));
            match (phase.next(next as u8), left) {
                (Some(phase), Some(left)) => {
                    let after = self.visit(text, phase, left, next_state).map(|bytes| bytes + 1);
                    fewest = fewest.into_iter().chain(after).min();
                }
                _ => assert_eq!(next_state, None, "{:?} lives after {text:?}", self.spec),
            }
            text.pop();
        }
        assert!(state.is_some() >= fewest.is_some(), "{:?} is dead after {text:?}", self.spec);
        if self.all {
            let live = fewest.is_some();
            assert_eq!(state.is_some(), live, "{:?} lives after {text:?}: {state:?}", self.spec);
        }
        for (machine, state) in std::iter::zip(machine, &state) {
            let Some(fewest) = fewest else { continue };
            let enough = machine.suffices(state, fewest);
            assert!(enough, "{:?}: {fewest} bytes are enough after {text:?}", self.spec);
            let less = self.all && (0..fewest).any(|bytes| machine.suffices(state, bytes));
            assert!(!less, "{:?}: {fewest} bytes are needed after {text:?}", self.spec);
        }
        self.states.extend(state);
        fewest
    }
}

/// Compares automaton and definition over all texts; the number of states.
fn check(spec: &NumberSpec, digits: &str, max_digits: usize) -> usize {
    let machine = NumberMachine::with_digits(spec, max_digits as u32).unwrap();
    let start = machine.as_ref().map(NumberMachine::start);
    let machine = machine.as_ref();
    let mut walk =
        Walk { spec, machine, digits, max_digits, all: digits.len() == 10, states: HashSet::new() };
    walk.visit(&mut String::new(), Phase::Start, max_digits, start);
    walk.states.len()
}

const SPECS: &[&str] = &[
    "whole",
    "whole >=-15 <=5",
    "whole *5",
    "whole frac",
    "float >=12",
    "float >5 <=250 int",
    "float *5 <40",
    "",
    "int",
    "frac",
    ">=0",
    ">0",
    "<0",
    "<=0",
    ">=0 <=0",
    ">0 <0",
    ">=0 <=100",
    ">0 <100",
    "int >=0 <=15",
    "int >=0 <=100",
    "int >=-15 <=5",
    "int >0 <1",
    ">=0.5 <=0.5",
    ">0.5",
    ">0.5 <0.6",
    ">0.59 <0.6",
    "<=-0.5",
    ">=1e3",
    ">1e3 <1.1e3",
    ">=0.01 <=0.02",
    ">=-1e-2",
    ">=1e-9 <=2e-9",
    ">=15 <=16",
    "frac >=15 <=16",
    "frac >15 <=15.1",
    "int >15 <16",
    ">=1.5e2 <=1.5e2",
    ">=9.9 <10",
    ">=99 <=101",
    "int >=99 <=101",
    ">=-5 <=-0.1",
    ">=1e5 <=2e8",
    ">=1e-8 <=2e-5",
    "*5",
    "int *5",
    "*0.25",
    "*0.5 >=0 <=1",
    "*0.1",
    "*0.01 >=0 <=1",
    "*3",
    "*7 >=15",
    "*15 >0",
    "*1e-300",
    "*1e300",
    "*12 >0 <100",
    "*2.5",
    "*2.5 >=9 <11",
    "*0.15",
    "*1e2",
    "*50 <=-10",
    "*6 *4",
    "*0.2 *0.3 <9 >0",
    "*11 >=1e3",
    "*125",
    "*0.125 >0",
    "int !2",
    "int !2 !3 >=0 <=20",
    "!1",
    "frac !0.5",
    "!5",
    "!0.1",
    "!0.5 *0.1",
    "*0.5 !1",
    "*5 !10 >=0 <=100",
    "!1e-300",
    "!1e300",
    "int !1",
    "!0.3 >=0 <=1",
    "*0.2 !0.3",
    "!7 >=5 <=9",
    "int !2 >=4 <=4",
    "int !2 >3 <6",
    "!0.15 >=0.1 <=0.2",
    "!12",
    "*3 !2 !5 >0 <40",
    ">=1e307",
    ">=0 *1e-400000000",
    "<=-1e307 int",
    ">=1e400000000 <=2e400000000",
    ">=1e-400000000 <=2e-400000000",
    ">=1e5 <=1e400000000 *7",
];

#[test]
fn all_texts_of_three_digits() {
    for text in SPECS {
        check(&spec(text), "0123456789", 3);
    }
}

#[test]
fn all_texts_of_four_or_five_digits_of_some_sets() {
    for text in [
        "int >=0 <=150",
        ">=-0.05 <=0.15",
        "*0.25 >=0 <=9",
        "int !3 !2 >=100 <=115",
        "*17 >=0 <=1000",
    ] {
        check(&spec(text), "0123456789", 4);
    }
    for text in SPECS {
        check(&spec(text), "15", 5);
    }
}

/// States met while reading texts of up to four digits, as masks over tokens of three bytes see them.
fn states_within(text: &str) -> usize {
    let machine = machine(text);
    let mut found = HashSet::from([machine.start()]);
    let mut open: Vec<(usize, NumberState)> = vec![(0, machine.start())];
    while let Some((digits, state)) = open.pop() {
        for byte in b"0123456789.-+eE" {
            let digits = digits + usize::from(byte.is_ascii_digit());
            if let Some(next) = machine.step(&state, *byte)
                && digits <= 4
            {
                found.insert(machine.within(&next, 3));
                open.push((digits, next));
            }
        }
    }
    found.len()
}

#[test]
fn typical_numbers_have_few_states() {
    for (text, most) in
        [("", 60), (">=0", 60), ("int", 300), ("int >=0 <=100", 60), ("int >=0 <=150", 60)]
    {
        let states = states_within(text);
        assert!(states <= most, "{text}: {states} states");
    }
}

#[test]
fn states_within_a_horizon_do_the_same() {
    fn same(machine: &NumberMachine, a: &NumberState, b: &NumberState, depth: u32) {
        assert_eq!(machine.accepts(a), machine.accepts(b), "{a:?} {b:?}");
        for byte in b"09.-e".iter().filter(|_| depth > 0) {
            match (machine.step(a, *byte), machine.step(b, *byte)) {
                (Some(a), Some(b)) => same(machine, &a, &b, depth - 1),
                (a, b) => assert_eq!(a, b),
            }
        }
    }
    let nines = "9".repeat(60);
    for text in SPECS.iter().step_by(3) {
        let Some(machine) = NumberMachine::new(&spec(text), 64).unwrap() else { continue };
        for text in [
            "",
            "-",
            "0",
            "1",
            "12",
            "123456789",
            "0.00",
            "0.000000000000001",
            "15.5",
            "1.5",
            "1.0",
            "9e",
            "1e1",
            "1e-",
            &nines,
            &format!("0.{nines}"),
            &format!("{nines}.00"),
        ] {
            let state =
                text.bytes().try_fold(machine.start(), |state, byte| machine.step(&state, byte));
            for horizon in [1, 3, 4] {
                if let Some(state) = &state {
                    same(&machine, state, &machine.within(state, horizon), horizon);
                }
            }
        }
    }
}

fn machine(text: &str) -> NumberMachine {
    NumberMachine::new(&spec(text), 64).unwrap().unwrap()
}

fn accepts(machine: &NumberMachine, text: &str) -> bool {
    text.bytes()
        .try_fold(machine.start(), |state, byte| machine.step(&state, byte))
        .is_some_and(|state| machine.accepts(&state))
}

#[test]
fn free_numbers_end_where_f64_does() {
    let free = machine("");
    for text in [
        "1.7976931348623157e308",
        "17976931348623158079e289",
        "0.000017e313",
        "1e-307",
        "0.0001e-303",
        "0e99999",
        "0.000e+7",
        "0e-99999",
        "-1200E-02",
    ] {
        assert!(accepts(&free, text), "{text}");
    }
    for text in [
        "1e309",
        "1.7976931348623159e308",
        "17976931348623159e292",
        "0.0000181e313",
        "-1e400",
        "1e-308",
        "1e-99999",
        "-0.001e-305",
        "00",
        "-",
        "1e",
        "1.e1",
        ".5",
    ] {
        assert!(!accepts(&free, text), "{text}");
    }
    let (most, more) = ("9".repeat(64), "9".repeat(65));
    assert!(accepts(&free, &most) && !accepts(&free, &more));
    assert!(
        accepts(&free, &format!("0.{}", "0".repeat(63)))
            && !accepts(&free, &format!("0.{}", "0".repeat(64)))
    );
    assert!(
        accepts(&free, &format!("{}e1", "9".repeat(63))) && !accepts(&free, &format!("{most}e1"))
    );
}

#[test]
fn bounds_raise_the_digit_limit() {
    let digits = "7".repeat(100);
    let value = machine(&format!(">={digits} <={digits}"));
    assert!(accepts(&value, &digits) && accepts(&value, &format!("{digits}.0")));
    assert!(!accepts(&value, &"7".repeat(99)));
    assert!(accepts(&machine(">=1e400000000 <=1e400000000"), "1e400000000"));
    assert!(accepts(&machine(">1e400000000"), "5e400000000"));
    assert!(accepts(&machine("<-1e400"), "-5e400"));
    let between = machine(&format!(">0.{digits} <0.{digits}1"));
    assert!(accepts(&between, &format!("0.{digits}01")));
    assert!(accepts(&machine("*1e100"), &format!("1{}", "0".repeat(100))));
}

/// The shortest way to an accepted text by always taking the last live byte of `order`.
fn finish(machine: &NumberMachine, mut state: NumberState, order: &[u8]) -> Option<String> {
    let mut text = String::new();
    while !machine.accepts(&state) {
        let (byte, next) =
            order.iter().rev().find_map(|&byte| Some((byte, machine.step(&state, byte)?)))?;
        text.push(byte as char);
        state = next;
    }
    Some(text)
}

#[test]
fn large_units_are_numbers_not_tables() {
    let primes: String = [7, 11, 13, 17, 19, 23, 29, 31].map(|p| format!("*{p} ")).concat();
    for text in [
        primes.as_str(),
        "int *1000003",
        "*1e-300",
        "int *3000000000",
        "*1000003 >=1 <=1e12",
        "*0.0000007",
    ] {
        let (machine, spec) = (machine(text), spec(text));
        for order in [
            &b".0123456789"[..],
            &b"9876543210"[..],
            &b"-5"[..],
            &b"e1234567890"[..],
            &b".1234567809"[..],
        ] {
            let mut text = String::new();
            let mut state = machine.start();
            for at in 0.. {
                let byte = order
                    .iter()
                    .cycle()
                    .skip(at)
                    .take(order.len())
                    .find(|byte| machine.step(&state, **byte).is_some());
                match byte {
                    Some(&byte) if at < 20 => {
                        state = machine.step(&state, byte).unwrap();
                        text.push(byte as char);
                    }
                    _ => break,
                }
            }
            text += &finish(&machine, state, b"9876543210.e").expect(&text);
            assert!(naive_accepts(&spec, 64, &text), "{spec:?} {text}");
        }
    }
    assert!(accepts(&machine(&primes), "6685349671") && !accepts(&machine(&primes), "6685349672"));
}

#[test]
fn contradictions_are_found() {
    for text in [
        ">1 <1",
        "int >0 <1",
        "int *7 >0 <7",
        "*2 !2",
        "*6 !2",
        "int frac",
        ">0.5 <=0.5",
        "int !1",
        ">=5 <=4",
        "frac >=1 <=1",
    ] {
        assert!(NumberMachine::new(&spec(text), 64).unwrap().is_none(), "{text}");
    }
    for text in ["*0", "!0", "*-1"] {
        assert!(NumberMachine::new(&spec(text), 64).is_err(), "{text}");
    }
    let many: String =
        (0..9).map(|i| format!("!{} ", [2, 3, 5, 7, 11, 13, 17, 19, 23][i])).collect();
    assert!(NumberMachine::new(&spec(&many), 64).is_err());
}

fn small_decimal() -> impl Strategy<Value = Decimal> {
    (-250i64..250, -2i64..2).prop_map(|(value, exponent)| Decimal::from(value).shifted(exponent))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn all_texts_of_random_sets(
        kind in 0..5u8,
        min in proptest::option::of((small_decimal(), any::<bool>())),
        max in proptest::option::of((small_decimal(), any::<bool>())),
        units in proptest::collection::vec(small_decimal(), 0..2),
        not in proptest::collection::vec(small_decimal(), 0..3),
    ) {
        let positive =
            |list: Vec<Decimal>| list.into_iter().map(|u| u.abs()).filter(|u| !u.is_zero()).collect();
        let spec = NumberSpec {
            integer: kind == 1,
            fractional: kind == 2,
            whole: kind == 3,
            float: kind == 4,
            min,
            max,
            multiple_of: positive(units),
            not_multiple_of: positive(not),
        };
        check(&spec, "0123456789", 3);
    }
}
