//! Numbers by value: a text is tried as it is, and with everything of up to four characters behind it.

use super::Oracle;
use constrain::grammar::decimal::Decimal;
use constrain::grammar::{Node, NodeId, NumberSpec, Terminal};

/// Endings that are tried first.
const LIKELY: &[&str] =
    &["", "0", "1", "5", "9", ".0", ".5", "0.5", "00", "50", "000", "e1", "e0", "e2", "e-1", ".01"];

impl Oracle {
    pub(super) fn number_is_complete(&self, node: NodeId, text: &str) -> bool {
        accepts(self.number_spec(node), text)
    }

    pub(super) fn number_is_viable(&mut self, node: NodeId, text: &str) -> bool {
        if let Some(&known) = self.numbers.get(&(node, text.to_owned())) {
            return known;
        }
        let spec = self.number_spec(node);
        let viable = LIKELY.iter().any(|ending| accepts(spec, &format!("{text}{ending}")))
            || Phase::after(text).is_some_and(|phase| search(spec, &mut text.to_owned(), phase, 4));
        self.numbers.insert((node, text.to_owned()), viable);
        viable
    }

    fn number_spec(&self, node: NodeId) -> &NumberSpec {
        match self.grammar.node(node) {
            Node::Terminal(Terminal::Number(spec)) => spec,
            other => panic!("{other:?} is no number"),
        }
    }
}

fn search(spec: &NumberSpec, text: &mut String, phase: Phase, depth: u32) -> bool {
    if accepts(spec, text) {
        return true;
    }
    depth > 0
        && b"0123456789.e+-".iter().any(|&byte| {
            let Some(phase) = phase.next(byte) else { return false };
            text.push(char::from(byte));
            let found = search(spec, text, phase, depth - 1);
            text.pop();
            found
        })
}

/// Whether a text spells a number of the set: plainly, or with an exponent and one digit before the
/// point (any mantissa if nothing is declared but whether it is an integer).
fn accepts(spec: &NumberSpec, text: &str) -> bool {
    let Ok(value) = Decimal::parse(text) else {
        return false;
    };
    let exponent = text.contains(['e', 'E']);
    if (spec.whole && (exponent || text.contains('.'))) || (spec.float && !exponent) {
        return false;
    }
    let free =
        NumberSpec { integer: false, fractional: false, ..spec.clone() } == NumberSpec::default();
    if let Some((mantissa, _)) = text.split_once(['e', 'E'])
        && !free
    {
        let int = mantissa.trim_start_matches('-').split('.').next().unwrap_or("");
        if int.len() != 1 || int == "0" {
            return false;
        }
    }
    // With an exponent nothing is written that an f64 takes for 0, unless a bound leaves nothing else.
    let between = |low: &str, high: &str, value: &Decimal| {
        *value > Decimal::parse(low).unwrap() && *value < Decimal::parse(high).unwrap()
    };
    let positive = value > Decimal::from(0);
    let (near, far) = if positive { (&spec.min, &spec.max) } else { (&spec.max, &spec.min) };
    let reaches_zero = near
        .as_ref()
        .is_none_or(|(bound, _)| bound.is_zero() || (*bound > Decimal::from(0)) != positive);
    let only_small = far.as_ref().is_some_and(|(bound, _)| between("-1e-306", "1e-306", bound));
    let tiny = exponent && !value.is_zero() && between("-1e-307", "1e-307", &value);
    if tiny && reaches_zero && !only_small {
        return false;
    }
    let inside = |bound: &(Decimal, bool), order| {
        value.cmp(&bound.0) == order || value == bound.0 && !bound.1
    };
    text.bytes().filter(u8::is_ascii_digit).count() <= 64
        && (value.is_finite_f64() || spec.min.is_some() && spec.max.is_some())
        && spec.min.as_ref().is_none_or(|bound| inside(bound, std::cmp::Ordering::Greater))
        && spec.max.as_ref().is_none_or(|bound| inside(bound, std::cmp::Ordering::Less))
        && (!spec.integer || value.is_integer())
        && (!spec.fractional || !value.is_integer())
        && spec.multiple_of.iter().all(|unit| value.is_multiple_of(unit))
        && !spec.not_multiple_of.iter().any(|unit| value.is_multiple_of(unit))
}

/// How far a JSON number is written.
#[derive(Clone, Copy)]
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
    fn after(text: &str) -> Option<Self> {
        text.bytes().try_fold(Phase::Start, Phase::next)
    }

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
