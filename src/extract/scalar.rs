//! A string, number or literal while it is written.
//!
//! By hand: the string `"a\u00e9"` is `a` after two bytes, still `a` until the last digit of the
//! escape, then `aé`. The number `12` is nothing until something else follows; `t` is `true`.

use crate::error::{Error, Kind, Result};
use crate::escape;
use crate::extract::ValueKind;
use serde_json::Value;

/// How far an escape in a string is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    No,
    /// After the backslash.
    Begun,
    /// Within `\uXXXX`: the digits so far, and how many are left.
    Digits(u16, u8),
}

/// A scalar or a key so far.
#[derive(Debug, Clone)]
pub(crate) enum Scalar {
    String {
        /// The text without escapes; its end may be part of a character.
        text: Vec<u8>,
        /// How much of it was reported.
        shown: usize,
        escape: Escaping,
    },
    Number(Vec<u8>),
    Literal {
        name: &'static str,
        len: usize,
    },
}

/// The escape that is open, and the first half of a surrogate pair before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Escaping {
    state: Escape,
    high: Option<u16>,
}

/// What a byte does to a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It goes on.
    More,
    /// It ends with this byte.
    Done,
    /// It ended before this byte.
    Before,
}

impl Scalar {
    /// By the first byte; `None` if no scalar begins with it.
    pub fn begin(byte: u8) -> Option<Self> {
        let literal = |name| Some(Scalar::Literal { name, len: 1 });
        match byte {
            b'"' => {
                let escape = Escaping { state: Escape::No, high: None };
                Some(Scalar::String { text: Vec::new(), shown: 0, escape })
            }
            b'-' | b'0'..=b'9' => Some(Scalar::Number(vec![byte])),
            b't' => literal("true"),
            b'f' => literal("false"),
            b'n' => literal("null"),
            _ => None,
        }
    }

    pub fn kind(&self) -> ValueKind {
        match self {
            Scalar::String { .. } => ValueKind::String,
            Scalar::Number(_) => ValueKind::Number,
            Scalar::Literal { name: "null", .. } => ValueKind::Null,
            Scalar::Literal { .. } => ValueKind::Boolean,
        }
    }

    pub fn push(&mut self, byte: u8) -> Result<Step> {
        match self {
            Scalar::String { text, escape, .. } => push_string(text, escape, byte),
            Scalar::Number(digits) => match byte {
                b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E' => {
                    digits.push(byte);
                    Ok(Step::More)
                }
                _ => Ok(Step::Before),
            },
            Scalar::Literal { name, len } => match name.as_bytes().get(*len) {
                Some(&expected) if expected == byte => {
                    *len += 1;
                    Ok(if *len == name.len() { Step::Done } else { Step::More })
                }
                _ => Err(bad("no literal goes on with this byte")),
            },
        }
    }

    /// Whether the end of the document is its end.
    pub fn ends_with_document(&self) -> bool {
        matches!(self, Scalar::Number(_))
    }

    /// The value as far as it is certain.
    pub fn partial(&self) -> Option<Value> {
        match self {
            Scalar::String { text, .. } => Some(Value::from(whole(text))),
            Scalar::Number(_) => None,
            Scalar::Literal { name, .. } => Some(literal(name)),
        }
    }

    /// The finished value.
    pub fn finish(self) -> Result<Value> {
        match self {
            Scalar::String { text, escape, .. } => {
                let text = match escape.high {
                    None => text,
                    Some(_) => return Err(bad("half a surrogate pair is no character")),
                };
                let text = String::from_utf8(text).map_err(|_| bad("the string is not UTF-8"))?;
                Ok(Value::String(text))
            }
            Scalar::Number(digits) => {
                serde_json::from_slice(&digits).map_err(|_| bad("this is not a number"))
            }
            Scalar::Literal { name, .. } => Ok(literal(name)),
        }
    }

    /// New text of a string since the last call, in whole characters.
    pub fn piece(&mut self) -> Option<String> {
        let Scalar::String { text, shown, .. } = self else { return None };
        let piece = whole(text.get(*shown..).unwrap_or_default());
        *shown += piece.len();
        (!piece.is_empty()).then(|| piece.to_owned())
    }
}

fn bad(message: &str) -> Error {
    Error::new(Kind::Syntax, message)
}

fn literal(name: &str) -> Value {
    match name {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => Value::Null,
    }
}

/// The beginning of `text` that is whole characters.
fn whole(text: &[u8]) -> &str {
    match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
    }
}

fn push_string(text: &mut Vec<u8>, escape: &mut Escaping, byte: u8) -> Result<Step> {
    match (escape.state, byte) {
        (Escape::No, b'\\') => escape.state = Escape::Begun,
        (Escape::No, 0..=0x1f) => return Err(bad("a control character must be escaped")),
        (Escape::No, _) if escape.high.is_some() => {
            return Err(bad("half a surrogate pair is no character"));
        }
        (Escape::No, b'"') => return Ok(Step::Done),
        (Escape::No, _) => text.push(byte),
        (Escape::Begun, b'u') => escape.state = Escape::Digits(0, 4),
        (Escape::Begun, _) => {
            let Some(named) = escape::meaning(byte) else {
                return Err(bad("there is no such escape"));
            };
            if escape.high.is_some() {
                return Err(bad("half a surrogate pair is no character"));
            }
            // They are all ASCII.
            text.push(named as u8);
            escape.state = Escape::No;
        }
        (Escape::Digits(digits, left), _) => {
            let digit = char::from(byte).to_digit(16).and_then(|digit| u16::try_from(digit).ok());
            let Some(digit) = digit else { return Err(bad("this is not a hexadecimal digit")) };
            let digits = digits << 4 | digit;
            escape.state = Escape::Digits(digits, left.saturating_sub(1));
            if left <= 1 {
                escape.state = Escape::No;
                push_unit(text, &mut escape.high, digits)?;
            }
        }
    }
    Ok(Step::More)
}

/// A UTF-16 unit that was spelled as `\uXXXX`.
fn push_unit(text: &mut Vec<u8>, high: &mut Option<u16>, unit: u16) -> Result<()> {
    let units: Vec<u16> = high.take().into_iter().chain([unit]).collect();
    match (String::from_utf16(&units), unit) {
        (Ok(decoded), _) => text.extend_from_slice(decoded.as_bytes()),
        (Err(_), 0xd800..=0xdbff) if units.len() == 1 => *high = Some(unit),
        (Err(_), _) => return Err(bad("half a surrogate pair is no character")),
    }
    Ok(())
}
