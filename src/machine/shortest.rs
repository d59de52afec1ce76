//! The shortest text that completes a terminal from one of its states.
//!
//! It is the shortest in code points; among those, the one whose code points take the fewest bytes
//! and come first. The text is a function of the state, and *stable*: after any prefix of it, the
//! rest is the text of the state that the prefix leads to. What is computed from it (how many
//! tokens a terminal needs) therefore never goes up along it.
//!
//! Worked example: in a JSON string of `[a-z]{3}`, after `"x\u00`, the text is `61aa"`: the escape
//! is finished with the first letter that it can still spell, then the string.
//!
//! Numbers need no search: how many bytes suffice from a state is arithmetic
//! ([`NumberMachine::suffices`]), and each byte of the text is the first after which one byte less suffices.

use hashbrown::HashMap;

use super::number::{NumberMachine, NumberState};
use super::state::{Alphabet, Content, Spelling};
use super::states::{StateId, States};
use crate::error::Result;
use crate::expr::{ExprId, Shortest, Transition, View};
use crate::limits::Fuel;

/// Texts of more code points are counted, not spelled.
const SPELLED: u64 = 2_048;

/// Sets of at most so many literals are looked through for the longest.
const SPELLED_SETS: usize = 1_000;

/// Automata of at most so many expressions are explored for the longest rest.
const NEAR: usize = 256;

/// Fuel for one text.
const FUEL: u64 = 5_000_000;

/// The shortest text that completes a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Rest {
    /// These bytes; no byte if the terminal may end.
    Text(Vec<u8>),
    /// Too many code points to spell: so many.
    Long(u64),
    /// A special token.
    Special(u32),
    /// Not found within the limits.
    Unknown,
}

impl States {
    /// The shortest text that completes the terminal from a state.
    pub fn shortest(&self, id: StateId) -> Rest {
        let content = self.get(id).content();
        match content {
            Content::Done(_) => Rest::Text(Vec::new()),
            Content::Special(index) => Rest::Special(*index),
            content => self.level(id).with_alphabet(|alphabet| {
                let found = match content {
                    Content::Number { machine, state } => {
                        let machine = alphabet.numbers.get(*machine as usize);
                        Ok(machine.map_or(Rest::Unknown, |machine| number(machine, state)))
                    }
                    content => string(alphabet, content, &mut Fuel::new(FUEL)),
                };
                found.unwrap_or(Rest::Unknown)
            }),
        }
    }

    /// At least the number of bytes of [`States::shortest`] of any state that bytes lead to from
    /// this one; `None` if that is not known without looking at them. `known` remembers it for
    /// expressions, by level.
    pub fn longest_rest(
        &self,
        id: StateId,
        known: &mut HashMap<(bool, ExprId), Option<u64>>,
    ) -> Option<u64> {
        let (expr, spelling) = match *self.get(id).content() {
            Content::Done(_) | Content::Special(_) => return Some(1),
            Content::Number { .. } => return None,
            Content::Quote(expr)
            | Content::Escape(expr)
            | Content::Hex { expr, .. }
            | Content::HexTo { target: expr, .. }
            | Content::High { expr, .. }
            | Content::HighEscape { expr, .. } => (expr, Spelling::Json),
            Content::Between(spelling, expr)
            | Content::Utf8 { spelling, expr, .. }
            | Content::Utf8To { spelling, target: expr, .. } => (expr, spelling),
        };
        // Finishing a character takes at most `\uXXXX\uXXXX`, and then there is a quote; a character
        // takes at most `\uXXXX`.
        let (finish, character) = if spelling == Spelling::Json { (13, 6) } else { (3, 4) };
        let key = (id.is_local(), expr);
        if let Some(&most) = known.get(&key) {
            return most.map(|most| most + finish);
        }
        let most = self.level(id).with_alphabet(|alphabet| {
            let exprs = &mut alphabet.exprs;
            if let View::Repeat { item: ExprId::ANY_CHAR, min, .. } = exprs.view(expr) {
                return Some(min);
            }
            if let Some(left) = exprs.literals_left(expr).filter(|left| left.len() <= SPELLED_SETS)
            {
                return left.into_iter().map(|id| spelled_len(exprs.literal_text(id))).max();
            }
            if exprs.bars_literals(expr) {
                return Some(character);
            }
            if let Ok(Some((exprs, most))) = exprs.farthest(expr, NEAR, &mut Fuel::new(FUEL)) {
                let most = most.saturating_mul(character);
                known.extend(exprs.into_iter().map(|expr| ((key.0, expr), Some(most))));
                return Some(most);
            }
            Some(exprs.most_characters(expr)?.saturating_mul(character))
        });
        known.insert(key, most);
        most.map(|most| most + finish)
    }

    /// Where literals of a set are, for a state inside one or several of them: the bytes that
    /// finish the character that is being spelled, the bytes of the literals read after that, and
    /// the literals left. `None` for other states.
    pub fn literals(&self, id: StateId) -> Option<Literals> {
        let (before, expr) = match *self.get(id).content() {
            Content::Quote(expr) => (b"\"".to_vec(), expr),
            Content::Between(Spelling::Json, expr) => (Vec::new(), expr),
            Content::Utf8To { spelling: Spelling::Json, target, .. }
            | Content::HexTo { target, .. } => {
                let Rest::Text(text) = self.shortest(id) else { return None };
                return self.literals_at(id, text, target);
            }
            _ => return None,
        };
        self.level(id).with_alphabet(|alphabet| {
            let left = alphabet.exprs.literals_left(expr)?;
            let offset = alphabet.exprs.literal_offset(expr)?;
            Some(Literals { before, offset: offset as usize, left })
        })
    }

    /// The same inside a character that leads to `target`; `text` completes one of the literals.
    fn literals_at(&self, id: StateId, text: Vec<u8>, target: ExprId) -> Option<Literals> {
        let left = match *self.get(id).content() {
            Content::Utf8To { left, .. } | Content::HexTo { left, .. } => usize::from(left),
            _ => return None,
        };
        let before = text.get(..left)?.to_vec();
        self.level(id).with_alphabet(|alphabet| {
            let offset = alphabet.exprs.literal_offset(target)? as usize;
            Some(Literals { before, offset, left: alphabet.exprs.literals_left(target)? })
        })
    }
}

/// See [`States::literals`].
#[derive(Debug, Clone)]
pub struct Literals {
    /// Finishes the character that is being spelled, or opens the string.
    pub before: Vec<u8>,
    /// Bytes of each literal that are read then.
    pub offset: usize,
    /// The literals that can still be completed.
    pub left: Vec<crate::expr::LiteralId>,
}

/// The text of a state of a string or a plain text.
fn string(alphabet: &mut Alphabet, content: &Content, fuel: &mut Fuel) -> Result<Rest> {
    let (spelling, starts) = starts(alphabet, content, fuel)?;
    let exprs: Vec<ExprId> = starts.iter().map(|start| start.expr).collect();
    let pick = |run: &Transition| best_point(run.first, run.last, spelling);
    let found = alphabet.exprs.shortest(&exprs, &pick, SPELLED, fuel)?;
    let (start, points) = match found {
        Shortest::Text(start, points) => (start, points),
        // One more before the opening quote, so that it counts too.
        Shortest::Long(length) => {
            let quote = matches!(content, Content::Quote(_));
            return Ok(Rest::Long(length + u64::from(quote)));
        }
        Shortest::Unknown => return Ok(Rest::Unknown),
    };
    let mut text = starts[start].before.clone();
    for point in points {
        spell(point, spelling, &mut text);
    }
    if spelling == Spelling::Json {
        text.push(b'"');
    }
    Ok(Rest::Text(text))
}

/// A way to finish the character that is being spelled.
struct Begin {
    before: Vec<u8>,
    expr: ExprId,
}

/// All ways to get between two characters, best first.
fn starts(
    alphabet: &mut Alphabet,
    content: &Content,
    fuel: &mut Fuel,
) -> Result<(Spelling, Vec<Begin>)> {
    let one = |spelling, before: &[u8], expr| {
        Ok((spelling, vec![Begin { before: before.to_vec(), expr }]))
    };
    let json = Spelling::Json;
    let (expr, spelling) = match *content {
        Content::Quote(expr) => return one(json, b"\"", expr),
        Content::Between(spelling, expr) => return one(spelling, b"", expr),
        Content::Utf8To { spelling, target, left } => {
            return one(spelling, &[0x80; 3][..usize::from(left).min(3)], target);
        }
        Content::HexTo { target, left } => {
            return one(json, &b"0000"[..usize::from(left).min(4)], target);
        }
        Content::Utf8 { spelling, expr, .. } => (expr, spelling),
        Content::Escape(expr)
        | Content::Hex { expr, .. }
        | Content::High { expr, .. }
        | Content::HighEscape { expr, .. } => (expr, json),
        Content::Done(_) | Content::Number { .. } | Content::Special(_) => {
            return Ok((json, Vec::new()));
        }
    };
    let mut ways: Vec<(usize, u32, Begin)> = Vec::new();
    for run in alphabet.exprs.transitions(expr, fuel)? {
        if let Some((point, before)) = finish(content, run) {
            ways.push((before.len(), point, Begin { before, expr: run.target }));
        }
    }
    ways.sort_by_key(|&(len, point, _)| (len, point));
    Ok((spelling, ways.into_iter().map(|(.., begin)| begin).collect()))
}

/// The best code point of `run` that the character being spelled can still be, and the bytes that
/// finish it.
fn finish(content: &Content, run: &Transition) -> Option<(u32, Vec<u8>)> {
    let within = |first: u32, last: u32| {
        let (first, last) = (run.first.max(first), run.last.min(last));
        (first <= last).then_some(first)
    };
    match *content {
        Content::Utf8 { base, left, .. } => {
            // A lead byte of zero bits spells from U+0800 (two bytes left) or U+10000 on.
            let least = match (base, left) {
                (0, 2) => 0x800,
                (0, 3) => 0x1_0000,
                _ => base,
            };
            let point = within(least, base + (1 << (6 * left)) - 1)?;
            let mut bytes = [0; 4];
            let text = char::from_u32(point)?.encode_utf8(&mut bytes).as_bytes();
            Some((point, text.get(text.len().checked_sub(usize::from(left))?..)?.to_vec()))
        }
        Content::Escape(_) => {
            let short = SHORT.iter().filter(|&&(point, _)| within(point, point).is_some());
            if let Some(&(point, byte)) = short.min() {
                return Some((point, vec![byte]));
            }
            let point = within(0, 0x10_FFFF)?;
            Some((point, escaped(point).get(1..)?.to_vec()))
        }
        Content::Hex { high: Some(high), value, digits, .. } => {
            let (first, last) = spelled_by(value, digits);
            let base = 0x1_0000 + (u32::from(high) << 10);
            let (first, last) = (first.max(0xDC00) - 0xDC00, last.min(0xDFFF).checked_sub(0xDC00)?);
            let point = within(base + first, base + last)?;
            let hex = format!("{:04x}", 0xDC00 + (point & 0x3FF));
            Some((point, hex.as_bytes().get(usize::from(digits)..)?.to_vec()))
        }
        Content::Hex { high: None, value, digits, .. } => {
            let (first, last) = spelled_by(value, digits);
            let low = within(first, last.min(0xD7FF));
            let plain = low.or_else(|| within(first.max(0xE000), last));
            // Else a pair, whose first half the digits can spell.
            let pair = || {
                let (first, last) = (first.max(0xD800), last.min(0xDBFF));
                let point = |high: u32| 0x1_0000 + ((high - 0xD800) << 10);
                (first <= last).then(|| within(point(first), point(last) + 0x3FF)).flatten()
            };
            let point = plain.or_else(pair)?;
            Some((point, escaped(point).get(2 + usize::from(digits)..)?.to_vec()))
        }
        Content::High { high, .. } | Content::HighEscape { high, .. } => {
            let base = 0x1_0000 + (u32::from(high) << 10);
            let point = within(base, base + 0x3FF)?;
            let skip = if matches!(content, Content::High { .. }) { 6 } else { 7 };
            Some((point, escaped(point).get(skip..)?.to_vec()))
        }
        _ => None,
    }
}

/// The code units that four digits can spell of which `digits` have this value.
fn spelled_by(value: u16, digits: u8) -> (u32, u32) {
    let left = 4 - u32::from(digits.min(4));
    let first = u32::from(value) << (4 * left);
    (first, first + (1 << (4 * left)) - 1)
}

/// Code points with an escape of one letter.
const SHORT: [(u32, u8); 8] = [
    (0x08, b'b'),
    (0x09, b't'),
    (0x0A, b'n'),
    (0x0C, b'f'),
    (0x0D, b'r'),
    (0x22, b'"'),
    (0x2F, b'/'),
    (0x5C, b'\\'),
];

/// The code point of a range that takes the fewest bytes, and of those the first; with the bytes.
fn best_point(first: u32, last: u32, spelling: Spelling) -> (u32, u32) {
    // Ranges of code points that take equally many bytes, fewest first.
    const TEXT: [(u32, u32, u32); 4] =
        [(1, 0, 0x7F), (2, 0x80, 0x7FF), (3, 0x800, 0xFFFF), (4, 0x1_0000, 0x10_FFFF)];
    const JSON: [(u32, u32, u32); 13] = [
        (1, 0x20, 0x21),
        (1, 0x23, 0x5B),
        (1, 0x5D, 0x7F),
        (2, 0x08, 0x0A),
        (2, 0x0C, 0x0D),
        (2, 0x22, 0x22),
        (2, 0x5C, 0x5C),
        (2, 0x80, 0x7FF),
        (3, 0x800, 0xFFFF),
        (4, 0x1_0000, 0x10_FFFF),
        (6, 0x00, 0x07),
        (6, 0x0B, 0x0B),
        (6, 0x0E, 0x1F),
    ];
    let ranges: &[(u32, u32, u32)] = if spelling == Spelling::Json { &JSON } else { &TEXT };
    let inside = ranges.iter().filter(|&&(_, low, high)| first.max(low) <= last.min(high));
    inside.map(|&(bytes, low, _)| (bytes, first.max(low))).min().unwrap_or((u32::MAX, first))
}

/// Appends the bytes of a code point.
fn spell(point: u32, spelling: Spelling, text: &mut Vec<u8>) {
    let short = SHORT.iter().find(|&&(short, _)| short == point && short != 0x2F);
    match (spelling, short) {
        (Spelling::Json, Some(&(_, letter))) => text.extend([b'\\', letter]),
        (Spelling::Json, None) if point < 0x20 => text.extend(escaped(point)),
        _ => {
            let mut bytes = [0; 4];
            let c = char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER);
            text.extend_from_slice(c.encode_utf8(&mut bytes).as_bytes());
        }
    }
}

/// A code point as `\uXXXX`, twice if it needs a pair.
fn escaped(point: u32) -> Vec<u8> {
    match point.checked_sub(0x1_0000) {
        None => format!("\\u{point:04x}").into_bytes(),
        Some(rest) => format!("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF))
            .into_bytes(),
    }
}

/// The text that completes a number: the fewest digits, if nothing but digits is needed, else the first of
/// the fewest bytes, in the order of [`BYTES`].
///
/// Any completion has at least the fewest digits that suffice, so one that has nothing else is a shortest, and the
/// first of those.
fn number(machine: &NumberMachine, state: &NumberState) -> Rest {
    let Some(fewest) = fewest_digits(machine, state) else { return Rest::Unknown };
    let digits = fewest.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits == fewest.len() {
        return Rest::Text(fewest);
    }
    let suffices = |state: &NumberState, bytes: usize| {
        machine.suffices(state, u32::try_from(bytes).unwrap_or(u32::MAX))
    };
    let mut left = (digits..fewest.len()).find(|&n| suffices(state, n)).unwrap_or(fewest.len());
    let mut text = Vec::with_capacity(left);
    let mut here = state.clone();
    while !machine.accepts(&here) {
        left = left.saturating_sub(1);
        let fits = |&byte: &u8| {
            machine.step(&here, byte).filter(|next| suffices(next, left)).map(|next| (byte, next))
        };
        let Some((byte, next)) = BYTES.iter().find_map(fits) else { return Rest::Unknown };
        text.push(byte);
        here = next;
    }
    Rest::Text(text)
}

/// A text with the fewest digits that completes a number: at each place a digit after which the others
/// suffice, else another byte.
fn fewest_digits(machine: &NumberMachine, state: &NumberState) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut here = state.clone();
    // Before the first digit: the one after which the fewest are needed, perhaps after a sign.
    let mut tight = machine.tightest(&here);
    while tight.is_none() {
        let first = |&byte: &u8| Some((byte, machine.step(&here, byte)?));
        let (byte, next) =
            BYTES.iter().filter_map(first).min_by_key(|(_, next)| digits_after(machine, next))?;
        text.push(byte);
        tight = machine.tightest(&next);
        here = next;
    }
    let (_, mut here) = tight?;
    while !machine.accepts(&here) {
        let (byte, next) =
            BYTES.iter().find_map(|&byte| Some((byte, machine.step(&here, byte)?)))?;
        text.push(byte);
        here = next;
    }
    Some(text)
}

/// The fewest digits that complete a number from a state after its first byte.
fn digits_after(machine: &NumberMachine, state: &NumberState) -> u32 {
    let fewest = |state: &NumberState| Some(machine.tightest(state)?.0);
    let after_sign = || {
        let digits = (b'0'..=b'9').filter_map(|byte| fewest(&machine.step(state, byte)?));
        digits.min().map_or(u32::MAX, |digits| digits.saturating_add(1))
    };
    fewest(state).unwrap_or_else(after_sign)
}

/// The bytes of numbers, digits first.
const BYTES: &[u8] = b"0123456789-.eE+";

/// The bytes of a JSON string in its shortest spelling, quotes included.
fn spelled_len(text: &str) -> u64 {
    let byte = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0C => 2,
        0..=0x1F => 6,
        _ => 1,
    };
    2 + text.bytes().map(byte).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Exprs;
    use crate::grammar::{NumberSpec, Terminal, Whitespace};
    use crate::machine::states::Context;
    use crate::regex::Format;
    use hashbrown::HashSet;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::sync::Arc;

    /// Most states of a search for a number by breadth.
    const NUMBERS: usize = 1_000;

    /// States of strings of all kinds, numbers and punctuation.
    fn starts() -> (States, Vec<StateId>) {
        let mut exprs = Exprs::new();
        let class = |exprs: &mut Exprs, a, b| exprs.class(&[(a, b)]);
        let letters = class(&mut exprs, 'a', 'z');
        let wide = class(&mut exprs, '\u{80}', '\u{10ffff}');
        let control = class(&mut exprs, '\0', '\u{1f}');
        let emoji = class(&mut exprs, '\u{1f600}', '\u{1f64f}');
        let word = exprs.repeat(letters, 3, None);
        let any = exprs.repeat(ExprId::ANY_CHAR, 2, Some(5));
        let names = exprs.literals(&["id", "ids", "na\u{e9}me", "a\"b", "\n"]);
        let other = exprs.not(names);
        let odd = exprs.concat(&[wide, control, emoji, letters]);
        let strings = [word, any, names, other, odd, ExprId::ANY].map(Terminal::String);
        let integer = NumberSpec { integer: true, ..NumberSpec::default() };
        let bounded = NumberSpec {
            min: "123".parse().ok().map(|min| (min, true)),
            multiple_of: "7".parse().into_iter().collect(),
            ..NumberSpec::default()
        };
        let numbers = [integer, bounded].map(Terminal::Number);
        let rest = [Terminal::Text(odd), Terminal::Margin];
        let universal = Arc::new(States::universal(8));
        let states = States::local(universal, exprs);
        let context = Context { special: 0, digits: 64, whitespace: Whitespace::Flexible };
        let terminals = strings.iter().chain(&numbers).chain(&rest);
        let ids = terminals.filter_map(|t| states.start(t, context).ok()).map(|s| s.state);
        let ids = ids.collect();
        (states, ids)
    }

    /// Numbers of many kinds: with multiples, multiples that are left out, bounds of either sign, fractions.
    fn numbers() -> Vec<NumberMachine> {
        let texts = |texts: &[&str]| texts.iter().filter_map(|text| text.parse().ok()).collect();
        let bound = |text: &str| text.parse().ok().map(|bound| (bound, true));
        let spec = NumberSpec::default;
        let specs = [
            spec(),
            NumberSpec { integer: true, multiple_of: texts(&["97"]), ..spec() },
            NumberSpec { multiple_of: texts(&["0.25"]), min: bound("12.3"), ..spec() },
            NumberSpec {
                multiple_of: texts(&["6"]),
                not_multiple_of: texts(&["4", "9"]),
                ..spec()
            },
            NumberSpec { max: bound("-0.031"), min: bound("-205"), ..spec() },
            NumberSpec { integer: true, max: bound("-1234"), whole: true, ..spec() },
            NumberSpec { float: true, min: bound("7"), ..spec() },
            NumberSpec { fractional: true, not_multiple_of: texts(&["0.15"]), ..spec() },
            NumberSpec { min: bound("1e-300"), max: bound("2.5e-299"), ..spec() },
            NumberSpec { multiple_of: texts(&["12e20"]), min: bound("5e24"), ..spec() },
            NumberSpec {
                float: true,
                multiple_of: texts(&["1000003"]),
                max: bound("-1"),
                ..spec()
            },
        ];
        let machine = |spec: &NumberSpec| NumberMachine::new(spec, 12).ok().flatten();
        specs.iter().filter_map(machine).collect()
    }

    /// The shortest text that completes a number, the first in the order of [`BYTES`], by breadth: all texts are
    /// tried; `None` if those are many.
    fn number_by_breadth(machine: &NumberMachine, state: &NumberState) -> Option<Vec<u8>> {
        let mut found: Vec<(NumberState, usize, u8)> = vec![(state.clone(), 0, 0)];
        let mut known: HashSet<NumberState> = HashSet::from_iter([state.clone()]);
        let mut todo = VecDeque::from([0]);
        while let Some(at) = todo.pop_front() {
            if machine.accepts(&found[at].0) {
                let mut text = Vec::new();
                let mut here = at;
                while here != 0 {
                    text.push(found[here].2);
                    here = found[here].1;
                }
                text.reverse();
                return Some(text);
            }
            if found.len() > NUMBERS {
                break;
            }
            for &byte in BYTES {
                let next = machine.step(&found[at].0, byte);
                if let Some(next) = next.filter(|next| known.insert(next.clone())) {
                    todo.push_back(found.len());
                    found.push((next, at, byte));
                }
            }
        }
        None
    }

    /// From wherever the characters of a format lead, no text that completes it is longer than it says.
    #[test]
    fn no_rest_of_a_format_is_longer_than_it_says() {
        let fuel = || Fuel::new(100_000_000);
        for format in Format::ALL {
            let mut exprs = Exprs::with_limit(1_000_000);
            let start = format.expr(&mut exprs);
            let far = exprs.farthest(start, 10_000, &mut fuel());
            let Ok(Some((states, _))) = far else { panic!("{format:?}: {far:?}") };
            let pick = |run: &Transition| best_point(run.first, run.last, Spelling::Json);
            let mut longest = 0;
            for state in states {
                let found = exprs.shortest(&[state], &pick, SPELLED, &mut fuel());
                let Ok(Shortest::Text(_, points)) = found else { panic!("{format:?}: {found:?}") };
                let mut text = Vec::new();
                points.into_iter().for_each(|point| spell(point, Spelling::Json, &mut text));
                longest = longest.max(text.len() as u64);
            }
            assert_eq!(longest, format.longest_rest(), "{format:?}");
        }
    }

    proptest! {
        /// No text that completes a number is shorter than the one that is found by arithmetic, and of those that are
        /// as short it is the first.
        #[test]
        fn numbers_are_completed_by_the_fewest_bytes(
            picks in prop::collection::vec(any::<prop::sample::Index>(), 0..6)
        ) {
            let machines = numbers();
            prop_assert_eq!(machines.len(), 11);
            for machine in machines {
                let mut state = machine.start();
                for pick in &picks {
                    let next = |&byte: &u8| machine.step(&state, byte);
                    let live: Vec<NumberState> = BYTES.iter().filter_map(next).collect();
                    if live.is_empty() {
                        break;
                    }
                    state = live[pick.index(live.len())].clone();
                }
                let Rest::Text(text) = number(&machine, &state) else {
                    panic!("{state:?} has no text");
                };
                let end = text.iter().try_fold(state.clone(), |at, &byte| machine.step(&at, byte));
                prop_assert!(end.is_some_and(|end| machine.accepts(&end)));
                if let Some(shortest) = number_by_breadth(&machine, &state) {
                    prop_assert_eq!(&text, &shortest);
                }
                // What is planned stays planned.
                let mut here = state;
                for (i, &byte) in text.iter().enumerate() {
                    prop_assert_eq!(number(&machine, &here), Rest::Text(text[i..].to_vec()));
                    here = machine.step(&here, byte).expect("was stepped before");
                }
            }
        }

        /// From wherever live bytes lead, the text completes the terminal, and after each of its
        /// bytes the rest is the text of the state.
        #[test]
        fn texts_complete_and_are_stable(
            picks in prop::collection::vec(any::<prop::sample::Index>(), 0..12)
        ) {
            let (states, starts) = starts();
            for start in starts {
                let mut state = start;
                for pick in &picks {
                    let bytes = states.bytes(state);
                    let live: Vec<u8> =
                        bytes.iter().filter(|&b| states.step(state, b).is_live()).collect();
                    if live.is_empty() {
                        break;
                    }
                    state = states.step(state, live[pick.index(live.len())]);
                }
                let Rest::Text(text) = states.shortest(state) else {
                    panic!("{:?} has no text", states.get(state).content());
                };
                for (i, &byte) in text.iter().enumerate() {
                    let Rest::Text(rest) = states.shortest(state) else { panic!("no text") };
                    prop_assert_eq!(&rest, &text[i..]);
                    state = states.step(state, byte);
                    prop_assert!(state.is_live());
                }
                prop_assert!(states.get(state).accepts());
            }
        }
    }
}
