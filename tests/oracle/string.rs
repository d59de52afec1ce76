//! JSON strings and plain text, character by character.

use super::{Frame, Oracle};
use constrain::expr::ExprId;

/// How far a character of a JSON string is written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lex {
    /// Raw: the first bytes of its UTF-8, or none.
    Raw(Vec<u8>),
    /// After a backslash.
    Escape,
    /// After `\u` and some hexadecimal digits; `high` is the first half of a surrogate pair.
    Hex {
        digits: String,
        high: Option<u32>,
    },
    /// After the first half of a surrogate pair, and after the backslash that must follow.
    High(u32),
    HighEscape(u32),
}

/// Of an undeclared key: its class and its text so far. Other strings are forgotten as they are read.
pub type Key = Option<(usize, String)>;

/// Where a byte leads.
pub enum Step {
    Inside(Frame),
    Closed(Key),
}

/// The frames of a string that begins with its quote.
pub fn opened(expr: ExprId, class: Option<usize>) -> [Frame; 2] {
    let key = class.map(|class| (class, String::new()));
    [Frame::Str { expr, lex: Lex::Raw(Vec::new()), key }, Frame::Bytes(b"\"".to_vec())]
}

impl Oracle {
    pub(super) fn step_string(
        &mut self,
        expr: ExprId,
        lex: Lex,
        key: Key,
        byte: u8,
    ) -> Option<Step> {
        let stay = |lex| Step::Inside(Frame::Str { expr, lex, key: key.clone() });
        match lex {
            Lex::Raw(partial) if partial.is_empty() && byte < 0x80 => match byte {
                b'"' => self.grammar.exprs.nullable(expr).then_some(Step::Closed(key)),
                b'\\' => self.is_live_in(expr, 0, 0x10FFFF).then(|| stay(Lex::Escape)),
                0..0x20 => None,
                _ => self.push_char(expr, key, char::from(byte)),
            },
            Lex::Raw(mut partial) => {
                partial.push(byte);
                match self.decode(expr, &partial)? {
                    Some(c) => self.push_char(expr, key, c),
                    None => Some(stay(Lex::Raw(partial))),
                }
            }
            Lex::Escape => {
                let c = match byte {
                    b'"' | b'\\' | b'/' => char::from(byte),
                    b'b' => '\u{8}',
                    b'f' => '\u{c}',
                    b'n' => '\n',
                    b'r' => '\r',
                    b't' => '\t',
                    b'u' => return Some(stay(Lex::Hex { digits: String::new(), high: None })),
                    _ => return None,
                };
                self.push_char(expr, key, c)
            }
            Lex::High(high) => (byte == b'\\').then(|| stay(Lex::HighEscape(high))),
            Lex::HighEscape(high) => {
                (byte == b'u').then(|| stay(Lex::Hex { digits: String::new(), high: Some(high) }))
            }
            Lex::Hex { mut digits, high } => {
                if !byte.is_ascii_hexdigit() {
                    return None;
                }
                digits.push(char::from(byte));
                self.step_hex(expr, digits, high, key)
            }
        }
    }

    fn step_hex(
        &mut self,
        expr: ExprId,
        digits: String,
        high: Option<u32>,
        key: Key,
    ) -> Option<Step> {
        let unit = u32::from_str_radix(&digits, 16).unwrap();
        let free = 16u32.pow(4 - digits.len() as u32);
        let (first, last) = (unit * free, unit * free + free - 1);
        let pair = |high: u32, low: u32| 0x10000 + (high - 0xD800) * 0x400 + (low - 0xDC00);
        let live = match high {
            Some(high) => {
                let (first, last) = (first.max(0xDC00), last.min(0xDFFF));
                first <= last && self.is_live_in(expr, pair(high, first), pair(high, last))
            }
            None => {
                let (high_first, high_last) = (first.max(0xD800), last.min(0xDBFF));
                // Expressions know no surrogates, so a range may go across them.
                self.is_live_in(expr, first, last)
                    || high_first <= high_last
                        && self.is_live_in(expr, pair(high_first, 0xDC00), pair(high_last, 0xDFFF))
            }
        };
        if !live {
            return None;
        }
        if digits.len() < 4 {
            let lex = Lex::Hex { digits, high };
            return Some(Step::Inside(Frame::Str { expr, lex, key }));
        }
        match (high, unit) {
            (None, 0xD800..=0xDBFF) => {
                let lex = Lex::High(unit);
                Some(Step::Inside(Frame::Str { expr, lex, key }))
            }
            (None, _) => self.push_char(expr, key, char::from_u32(unit)?),
            (Some(high), _) => self.push_char(expr, key, char::from_u32(pair(high, unit))?),
        }
    }

    fn push_char(&mut self, expr: ExprId, mut key: Key, c: char) -> Option<Step> {
        let expr = self.derive(expr, c)?;
        if let Some((_, text)) = &mut key {
            text.push(c);
        }
        Some(Step::Inside(Frame::Str { expr, lex: Lex::Raw(Vec::new()), key }))
    }

    pub(super) fn step_text(
        &mut self,
        expr: ExprId,
        mut partial: Vec<u8>,
        byte: u8,
    ) -> Option<Frame> {
        partial.push(byte);
        match self.decode(expr, &partial)? {
            Some(c) => Some(Frame::Text { expr: self.derive(expr, c)?, partial: Vec::new() }),
            None => Some(Frame::Text { expr, partial }),
        }
    }

    /// The character of these bytes; `Some(None)` if more bytes can make a live one; `None` if not.
    fn decode(&mut self, expr: ExprId, bytes: &[u8]) -> Option<Option<char>> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Some(text.chars().next()),
            Err(error) if error.error_len().is_some() => None,
            Err(_) => {
                let (length, mut value) = match bytes[0] {
                    lead @ 0xF0.. => (4, u32::from(lead & 0x07)),
                    lead @ 0xE0.. => (3, u32::from(lead & 0x0F)),
                    lead => (2, u32::from(lead & 0x1F)),
                };
                for byte in &bytes[1..] {
                    value = value << 6 | u32::from(byte & 0x3F);
                }
                let bits = 6 * (length - bytes.len());
                let least = [0, 0, 0x80, 0x800, 0x10000][length];
                let first = (value << bits).max(least);
                let last = ((value << bits) + (1 << bits) - 1).min(0x10FFFF);
                self.is_live_in(expr, first, last).then_some(None)
            }
        }
    }

    /// Whether some character of a range leads on.
    fn is_live_in(&mut self, expr: ExprId, first: u32, last: u32) -> bool {
        let transitions = self.grammar.exprs.transitions(expr, &mut self.fuel).unwrap();
        transitions.iter().any(|run| run.first <= last && first <= run.last)
    }

    fn derive(&mut self, expr: ExprId, c: char) -> Option<ExprId> {
        let next = self.grammar.exprs.derive(expr, c, &mut self.fuel).unwrap();
        (next != ExprId::NEVER).then_some(next)
    }
}
