//! What a terminal state is, and how it moves by one byte.
//!
//! A [`Content`] says everything about the future of a terminal: which code points may follow
//! (an expression) and how far the current code point is spelled (a pending part). The lifting
//! from code points to bytes happens here and nowhere else: raw UTF-8, and inside JSON strings
//! the escapes.
//!
//! Worked example: the JSON string terminal of the expression `é+`. It starts as
//! `Quote(é+)`; byte `"` leads to `Body(é+)`. From there byte `C3` leads to
//! `Utf8 { base: U+00C0, left: 1 }`, where only `A9` is alive and leads to `Body(é*)`. Byte `\`
//! leads to `Escape(é+)`, `u` to `Hex { value: 0, digits: 0 }`, then `0`, `0`, `e`, `9` spell
//! the same code point. In `Body(é*)` byte `"` leads to `Done`.
//!
//! Invariant: every content that [`step`] returns is *live*: some bytes lead it to acceptance.
//! Expressions bring exact emptiness (their transitions list live targets only); a pending part
//! is alive if a code point it can still spell has a transition.
//!
//! Canonical form: when all code points that a pending part can spell lead to one target, only
//! the target and the number of bytes left are kept ([`Content::Utf8To`], [`Content::HexTo`]),
//! so that states meet again early and tables are shared.

use crate::error::Result;
use crate::escape;
use crate::expr::{ExprId, Exprs, LiteralId, Transition};
use crate::limits::Fuel;
use crate::machine::number::{NumberMachine, NumberState};

/// Whether code points are spelled as plain text or as in a JSON string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Spelling {
    /// Raw UTF-8.
    Text,
    /// Raw UTF-8 without control characters, `"` and `\`, or an escape.
    Json,
}

/// A terminal state: what may follow, and how far the current code point is spelled.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Content {
    /// Accepted, and nothing can follow. Knows which literal completed, if it was one.
    Done(Option<LiteralId>),
    /// Before the opening quote of a JSON string.
    Quote(ExprId),
    /// Between two code points.
    Between(Spelling, ExprId),
    /// Inside UTF-8: code points `base..base + 64^left`, from which `expr` decides.
    Utf8 {
        /// How code points are spelled.
        spelling: Spelling,
        /// What may follow, from this code point on.
        expr: ExprId,
        /// The first code point that can still be spelled, if `left` bytes were any.
        base: u32,
        /// Bytes or digits left of the code point.
        left: u8,
    },
    /// Inside UTF-8, `left` continuation bytes before `target`, whatever they are.
    Utf8To {
        /// How code points are spelled.
        spelling: Spelling,
        /// What may follow after this code point.
        target: ExprId,
        /// Bytes or digits left of the code point.
        left: u8,
    },
    /// After `\`.
    Escape(ExprId),
    /// After `\u` and `digits` hexadecimal digits with this value; after a high surrogate
    /// `high` is its 10 bits.
    Hex {
        /// What may follow, from this code point on.
        expr: ExprId,
        /// The 10 bits of the high surrogate.
        high: Option<u16>,
        /// The digits so far.
        value: u16,
        /// How many digits.
        digits: u8,
    },
    /// After `\u` and some digits, `left` digits before `target`, whatever they are.
    HexTo {
        /// What may follow after this code point.
        target: ExprId,
        /// Bytes or digits left of the code point.
        left: u8,
    },
    /// After the escape of a high surrogate: `\` must follow.
    High {
        /// What may follow, from this code point on.
        expr: ExprId,
        /// The 10 bits of the high surrogate.
        high: u16,
    },
    /// After the escape of a high surrogate and `\`: `u` must follow.
    HighEscape {
        /// What may follow, from this code point on.
        expr: ExprId,
        /// The 10 bits of the high surrogate.
        high: u16,
    },
    /// Inside a number.
    Number {
        /// Index of its automaton in the [`Alphabet`].
        machine: u32,
        /// The state of that automaton.
        state: NumberState,
    },
    /// A special token must follow.
    Special(u32),
}

/// What stepping needs besides the state: the expressions and the number automata.
#[derive(Debug, Default)]
pub struct Alphabet {
    /// The expressions of the states.
    pub exprs: Exprs,
    /// The automata of numbers.
    pub numbers: Vec<NumberMachine>,
}

impl Content {
    /// Whether the terminal may end here.
    pub fn accepts(&self, alphabet: &Alphabet) -> bool {
        match self {
            Content::Done(_) => true,
            Content::Between(Spelling::Text, expr) => alphabet.exprs.nullable(*expr),
            Content::Number { machine, state } => {
                alphabet.numbers[*machine as usize].accepts(state)
            }
            _ => false,
        }
    }

    /// Whether bytes may follow.
    pub fn continues(&self) -> bool {
        !matches!(self, Content::Done(_) | Content::Special(_))
    }
}

/// A set of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// Every byte.
    pub const ALL: ByteSet = ByteSet([u64::MAX; 4]);

    /// Adds the bytes `first..=last`.
    pub fn add(&mut self, first: u8, last: u8) {
        for byte in first..=last {
            self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
        }
    }

    /// Whether `byte` is in the set.
    #[inline]
    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    /// Whether every byte of `words` is in the set.
    #[inline]
    pub fn contains_all(&self, words: &[u64; 4]) -> bool {
        (0..4).all(|i| words[i] & !self.0[i] == 0)
    }

    /// The bytes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u8> + '_ {
        (0..4u8).flat_map(|word| {
            let mut bits = self.0[usize::from(word)];
            std::iter::from_fn(move || {
                (bits != 0).then(|| {
                    let bit = bits.trailing_zeros() as u8;
                    bits &= bits - 1;
                    word << 6 | bit
                })
            })
        })
    }

    /// Number of bytes.
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// The bytes that may lead on from `content`: all live ones, and perhaps some dead ones.
pub fn candidates(alphabet: &mut Alphabet, content: &Content, fuel: &mut Fuel) -> Result<ByteSet> {
    let mut bytes = ByteSet::default();
    let mut add = |text: &[u8]| text.iter().for_each(|&byte| bytes.add(byte, byte));
    match *content {
        Content::Done(_) | Content::Special(_) => {}
        Content::Quote(_) => add(b"\""),
        Content::Between(spelling, expr) => {
            let nullable = alphabet.exprs.nullable(expr);
            let runs = alphabet.exprs.transitions(expr, fuel)?;
            for run in runs {
                first_bytes(run, spelling, &mut bytes);
            }
            if spelling == Spelling::Json {
                if nullable {
                    bytes.add(b'"', b'"');
                }
                if !runs.is_empty() {
                    bytes.add(b'\\', b'\\');
                }
            }
        }
        Content::Utf8 { .. } | Content::Utf8To { .. } => bytes.add(0x80, 0xBF),
        Content::Escape(_) => add(b"\"\\/bfnrtu"),
        Content::Hex { .. } | Content::HexTo { .. } => add(b"0123456789abcdefABCDEF"),
        Content::High { .. } => add(b"\\"),
        Content::HighEscape { .. } => add(b"u"),
        Content::Number { .. } => add(b"0123456789+-.eE"),
    }
    Ok(bytes)
}

/// The bytes between two characters of a JSON string that may lead elsewhere than to `usual`, with `runs` as the
/// ways of its characters: what begins those that do, the closing quote, and escapes.
pub fn departures(runs: &[Transition], usual: ExprId) -> ByteSet {
    let mut bytes = ByteSet::default();
    bytes.add(b'"', b'"');
    bytes.add(b'\\', b'\\');
    for run in runs.iter().filter(|run| run.target != usual) {
        first_bytes(run, Spelling::Json, &mut bytes);
    }
    bytes
}

/// Adds the bytes with which the code points of `run` can start.
fn first_bytes(run: &Transition, spelling: Spelling, bytes: &mut ByteSet) {
    let lead = |point: u32| match point {
        0..=0x7F => point as u8,
        0x80..=0x7FF => 0xC0 | (point >> 6) as u8,
        0x800..=0xFFFF => 0xE0 | (point >> 12) as u8,
        _ => 0xF0 | (point >> 18) as u8,
    };
    // Raw in a JSON string: no control characters, no quote, no backslash. From U+0080 on the
    // lead bytes start at C2.
    let ranges: &[(u32, u32)] = match spelling {
        Spelling::Text => &[(0, 0x7F), (0x80, 0x10_FFFF)],
        Spelling::Json => &[(0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7F), (0x80, 0x10_FFFF)],
    };
    for &(first, last) in ranges {
        let (first, last) = (run.first.max(first), run.last.min(last));
        if first <= last {
            bytes.add(lead(first), lead(last));
        }
    }
}

/// The live content after `byte`, if there is one.
pub fn step(
    alphabet: &mut Alphabet,
    content: &Content,
    byte: u8,
    fuel: &mut Fuel,
) -> Result<Option<Content>> {
    match step_raw(alphabet, content, byte, fuel)? {
        Some(next) => settled(alphabet, next, fuel).map(Some),
        None => Ok(None),
    }
}

/// The canonical form of a content: text that can only end is one state for all of them.
pub fn settled(alphabet: &mut Alphabet, content: Content, fuel: &mut Fuel) -> Result<Content> {
    Ok(match content {
        Content::Between(Spelling::Text, expr)
            if alphabet.exprs.nullable(expr)
                && alphabet.exprs.transitions(expr, fuel)?.is_empty() =>
        {
            Content::Done(None)
        }
        content => content,
    })
}

/// The bytes with which code points of `run`, and no others, can start, each with the number of
/// bytes after it. Raw spelling only.
pub fn whole_leads(run: &Transition, spelling: Spelling) -> impl Iterator<Item = (u8, u8)> {
    let (first, last) = (run.first, run.last);
    let json = spelling == Spelling::Json;
    let raw = move |byte: &u8| !json || !matches!(byte, b'"' | b'\\' | 0..=0x1F);
    let ascii = (first.min(0x80)..=last.min(0x7F)).map(|point| (point as u8, 0));
    let ascii = ascii.filter(move |(byte, _)| raw(byte));
    // E0 and F0 cannot spell all that they seem to; ED would spell surrogates.
    let longer = [(0xC2u8, 0xDFu8, 1u8), (0xE1, 0xEF, 2), (0xF1, 0xF3, 3)];
    let longer = longer.into_iter().filter(move |_| last > 0x7F).flat_map(|(from, to, left)| {
        (from..=to).filter(|&byte| byte != 0xED).map(move |byte| (byte, left))
    });
    let inside = move |&(byte, left): &(u8, u8)| {
        let (bits, mask) = (6 * u32::from(left), [0, 0x1F, 0x0F, 0x07][usize::from(left)]);
        let low = u32::from(byte & mask) << bits;
        first <= low && low + (1 << bits) - 1 <= last
    };
    ascii.chain(longer.filter(inside))
}

fn step_raw(
    alphabet: &mut Alphabet,
    content: &Content,
    byte: u8,
    fuel: &mut Fuel,
) -> Result<Option<Content>> {
    let exprs = &mut alphabet.exprs;
    Ok(match *content {
        Content::Done(_) | Content::Special(_) => None,
        Content::Quote(expr) => (byte == b'"').then_some(Content::Between(Spelling::Json, expr)),
        Content::Between(Spelling::Json, expr) if byte == b'"' => {
            exprs.nullable(expr).then(|| Content::Done(exprs.completed_literal(expr)))
        }
        Content::Between(Spelling::Json, expr) if byte == b'\\' => {
            let any = !exprs.transitions(expr, fuel)?.is_empty();
            any.then_some(Content::Escape(expr))
        }
        Content::Between(Spelling::Json, _) if byte < 0x20 => None,
        Content::Between(spelling, expr) => {
            let (base, left) = match byte {
                0x00..=0x7F => (u32::from(byte), 0),
                0xC2..=0xDF => (u32::from(byte & 0x1F) << 6, 1),
                0xE0..=0xEF => (u32::from(byte & 0x0F) << 12, 2),
                0xF0..=0xF4 => (u32::from(byte & 0x07) << 18, 3),
                _ => return Ok(None),
            };
            utf8(exprs.transitions(expr, fuel)?, spelling, expr, base, left)
        }
        Content::Utf8 { spelling, expr, base, left } => {
            if byte & 0xC0 != 0x80 {
                return Ok(None);
            }
            let next = base + (u32::from(byte & 0x3F) << (6 * (left - 1)));
            // Longer than needed: U+0800 is the least of three bytes, U+10000 of four.
            if base == 0 && next < (if left == 2 { 0x800 } else { 0x1_0000 }) {
                return Ok(None);
            }
            utf8(exprs.transitions(expr, fuel)?, spelling, expr, next, left - 1)
        }
        Content::Utf8To { spelling, target, left } => (byte & 0xC0 == 0x80).then_some(match left {
            1 => Content::Between(spelling, target),
            _ => Content::Utf8To { spelling, target, left: left - 1 },
        }),
        Content::Escape(expr) => escape(exprs, expr, byte, fuel)?,
        Content::High { expr, high } => {
            (byte == b'\\').then_some(Content::HighEscape { expr, high })
        }
        Content::HighEscape { expr, high } => {
            (byte == b'u').then_some(Content::Hex { expr, high: Some(high), value: 0, digits: 0 })
        }
        Content::Hex { expr, high, value, digits } => match (byte as char).to_digit(16) {
            Some(digit) => {
                let value = value << 4 | digit as u16;
                hex(exprs.transitions(expr, fuel)?, expr, high, value, digits + 1)
            }
            None => None,
        },
        Content::HexTo { target, left } => byte.is_ascii_hexdigit().then_some(match left {
            1 => Content::Between(Spelling::Json, target),
            _ => Content::HexTo { target, left: left - 1 },
        }),
        Content::Number { machine, ref state } => alphabet.numbers[machine as usize]
            .step(state, byte)
            .map(|state| Content::Number { machine, state }),
    })
}

/// The target of one code point.
fn target(runs: &[Transition], point: u32) -> Option<ExprId> {
    let at = runs.partition_point(|run| run.last < point);
    runs.get(at).filter(|run| run.first <= point).map(|run| run.target)
}

/// What is known of the code points `first..=last`.
enum Reach {
    /// All dead.
    Dead,
    /// All lead to one target.
    Uniform(ExprId),
    /// Anything else.
    Mixed,
}

fn reach(runs: &[Transition], first: u32, last: u32) -> Reach {
    let at = runs.partition_point(|run| run.last < first);
    match runs.get(at) {
        Some(run) if run.first <= first && run.last >= last => Reach::Uniform(run.target),
        Some(run) if run.first <= last => Reach::Mixed,
        _ => Reach::Dead,
    }
}

/// The content once `base..base + 64^left` are the code points that can still be spelled.
fn utf8(
    runs: &[Transition],
    spelling: Spelling,
    expr: ExprId,
    base: u32,
    left: u8,
) -> Option<Content> {
    if left == 0 {
        return target(runs, base).map(|target| Content::Between(spelling, target));
    }
    // A lead byte of zero bits can only spell from U+0800 (two bytes left) or U+10000 on.
    let least = match (base, left) {
        (0, 2) => 0x800,
        (0, 3) => 0x1_0000,
        _ => base,
    };
    match reach(runs, least, base + (1 << (6 * left)) - 1) {
        Reach::Dead => None,
        Reach::Uniform(target) if least == base => Some(Content::Utf8To { spelling, target, left }),
        _ => Some(Content::Utf8 { spelling, expr, base, left }),
    }
}

/// The content after `\` and `byte`.
fn escape(exprs: &mut Exprs, expr: ExprId, byte: u8, fuel: &mut Fuel) -> Result<Option<Content>> {
    if byte == b'u' {
        return Ok(Some(Content::Hex { expr, high: None, value: 0, digits: 0 }));
    }
    let Some(point) = escape::meaning(byte) else { return Ok(None) };
    let target = target(exprs.transitions(expr, fuel)?, u32::from(point));
    Ok(target.map(|target| Content::Between(Spelling::Json, target)))
}

/// The content after `\u` and `digits` digits; surrogates come only as pairs.
fn hex(
    runs: &[Transition],
    expr: ExprId,
    high: Option<u16>,
    value: u16,
    digits: u8,
) -> Option<Content> {
    let left = 4 - digits;
    let first = u32::from(value) << (4 * left);
    let last = first + (1 << (4 * left)) - 1;
    let unfinished = Content::Hex { expr, high, value, digits };
    if let Some(high) = high {
        // The low surrogates that the digits can still spell.
        let (first, last) = (first.max(0xDC00), last.min(0xDFFF));
        if first > last {
            return None;
        }
        let point = |low: u32| 0x1_0000 + (u32::from(high) << 10) + (low - 0xDC00);
        if left == 0 {
            return target(runs, point(first)).map(|to| Content::Between(Spelling::Json, to));
        }
        let alive = !matches!(reach(runs, point(first), point(last)), Reach::Dead);
        return alive.then_some(unfinished);
    }
    if left == 0 && (0xD800..=0xDBFF).contains(&first) {
        let high = (first - 0xD800) as u16;
        return (!dead_surrogates(runs, first, first)).then_some(Content::High { expr, high });
    }
    if left == 0 {
        return target(runs, first).map(|to| Content::Between(Spelling::Json, to));
    }
    match reach(runs, first, last) {
        Reach::Uniform(target) => Some(Content::HexTo { target, left }),
        Reach::Mixed => Some(unfinished),
        Reach::Dead => (!dead_surrogates(runs, first, last)).then_some(unfinished),
    }
}

/// Whether no pair that starts with a high surrogate of `first..=last` spells a live code point.
fn dead_surrogates(runs: &[Transition], first: u32, last: u32) -> bool {
    let (first, last) = (first.max(0xD800), last.min(0xDBFF));
    if first > last {
        return true;
    }
    let point = |high: u32| 0x1_0000 + ((high - 0xD800) << 10);
    matches!(reach(runs, point(first), point(last) + 0x3FF), Reach::Dead)
}
