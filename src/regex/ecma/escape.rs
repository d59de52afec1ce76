//! Escapes: `\d`, `\b`, `\p{L}`, `\u{1F600}`, …

use super::{Parser, Term};
use crate::error::{Error, Kind, Result, quote};
use crate::regex::ast::class_of;
use crate::regex::property::{self, PropertyError, complement};
use regex_syntax::hir::ClassUnicode;

/// What an escape stands for inside or outside of a class.
pub(super) enum Escaped {
    /// One code point, possibly a surrogate.
    Code(u32),
    /// A set of code points.
    Set(ClassUnicode),
}

/// Escaped letters that have a meaning in other engines: refused rather than taken literally.
const FOREIGN: &str = "AZzGhHKRXQEaepPN";

/// Fuel for looking up a property.
const PROPERTY_WORK: u64 = 1_000;

impl Parser<'_> {
    /// What follows a backslash outside of a class.
    pub(super) fn escape(&mut self) -> Result<Term> {
        match self.peek() {
            Some(c @ ('b' | 'B')) => {
                self.at += 1;
                let word = property::word(self.flags.ignore_case);
                return Ok(Term::Assertion(self.ast.boundary(&word, c == 'B')));
            }
            Some('1'..='9') => self.back_reference_by_number()?,
            Some('k') if self.groups.named || self.chars.get(self.at + 1) == Some(&'<') => {
                return Err(self.back_reference());
            }
            _ => {}
        }
        let class = match self.escaped(false)? {
            Escaped::Set(class) => class,
            Escaped::Code(code) => class_of_code(code),
        };
        self.work += class.ranges().len() as u64;
        let class = self.fold(class);
        Ok(Term::Quantifiable(self.ast.add_class(class)))
    }

    /// Refuses `\1` unless it is a legacy octal escape.
    fn back_reference_by_number(&mut self) -> Result<()> {
        let start = self.at;
        let number = self.number().unwrap_or(0);
        self.at = start;
        if number <= self.groups.count {
            return Err(self.back_reference());
        }
        self.only_lenient("a back-reference to a group that does not exist")
    }

    pub(super) fn back_reference(&self) -> Error {
        let keyword = "back-reference".to_owned();
        let message = "a back-reference in a regular expression is not supported";
        Error::new(Kind::Unsupported { keyword }, message)
            .help("write out the alternatives, for example (\"a*\"|'a*') for (['\"])a*\\1")
    }

    /// The escape after a backslash, other than an assertion or a back-reference.
    pub(super) fn escaped(&mut self, in_class: bool) -> Result<Escaped> {
        let Some(c) = self.peek() else {
            return Err(self.bad("a backslash at the end"));
        };
        self.at += 1;
        let fold = self.flags.ignore_case;
        let code = match c {
            'd' => return Ok(Escaped::Set(property::digit())),
            'D' => return Ok(Escaped::Set(complement(property::digit()))),
            'w' => return Ok(Escaped::Set(property::word(fold))),
            'W' => return Ok(Escaped::Set(complement(property::word(fold)))),
            's' => return Ok(Escaped::Set(property::space())),
            'S' => return Ok(Escaped::Set(complement(property::space()))),
            'p' | 'P' if self.peek() == Some('{') => return self.property(c == 'P'),
            'f' => 0x0c,
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 0x09,
            'v' => 0x0b,
            'b' if in_class => 0x08,
            'c' => return self.control(in_class),
            'x' => self.hex(2).map_or_else(|| self.identity(c), Ok)?,
            'u' => self.unicode().map_or_else(|| self.identity(c), Ok)?,
            '0'..='9' => self.octal(c)?,
            '^' | '$' | '\\' | '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|'
            | '/' => u32::from(c),
            '-' if in_class => u32::from(c),
            _ => self.identity(c)?,
        };
        Ok(Escaped::Code(code))
    }

    /// A character that needs no escape: legal in the second reading only.
    fn identity(&self, c: char) -> Result<u32> {
        let what = format!("the escape \\{}", c.escape_debug());
        if FOREIGN.contains(c) {
            let error = self.bad(&format!("{what} has no meaning in it"));
            return Err(match c {
                'A' => error.help("write ^"),
                'Z' | 'z' => error.help("write $"),
                _ => error,
            });
        }
        self.only_lenient(&format!("{what} is not needed"))?;
        Ok(u32::from(c))
    }

    /// `{name}` after `\p` or `\P`.
    fn property(&mut self, negated: bool) -> Result<Escaped> {
        self.at += 1;
        let start = self.at;
        while self.peek().is_some_and(|c| c != '}') {
            self.at += 1;
        }
        let name: String = self.chars[start..self.at].iter().collect();
        if !self.eat('}') {
            return Err(self.bad("a property name is not closed"));
        }
        match self.property_of(&name) {
            Ok(class) if negated => Ok(Escaped::Set(complement(class))),
            Ok(class) => Ok(Escaped::Set(class)),
            Err(PropertyError::Unknown) => {
                let why = format!("there is no Unicode property {}", quote(&name));
                Err(self.bad(&why).help(
                    "names are case-sensitive: \\p{Lu}, \\p{Letter}, \\p{Script=Greek}, \\p{Alphabetic}",
                ))
            }
            Err(PropertyError::NoTable) => {
                let message = format!("the Unicode property {} is not supported", quote(&name));
                Err(Error::new(Kind::Unsupported { keyword: "\\p".into() }, message))
            }
        }
    }

    /// [`property::property`], looked up once in a pattern.
    fn property_of(&mut self, name: &str) -> Result<ClassUnicode, PropertyError> {
        if let Some(class) = self.properties.get(name) {
            return Ok(class.clone());
        }
        let class = property::property(name)?;
        self.work += PROPERTY_WORK;
        self.properties.insert(name.to_owned(), class.clone());
        Ok(class)
    }

    /// A letter after `\c`.
    fn control(&mut self, in_class: bool) -> Result<Escaped> {
        let next = self.peek();
        let control = next.filter(|c| {
            c.is_ascii_alphabetic()
                || (self.lenient && in_class && (c.is_ascii_digit() || *c == '_'))
        });
        if let Some(c) = control {
            self.at += 1;
            return Ok(Escaped::Code(u32::from(c) % 32));
        }
        self.only_lenient("\\c without a letter")?;
        // The backslash stands for itself, and the `c` is read again.
        self.at -= 1;
        Ok(Escaped::Code(u32::from('\\')))
    }

    /// Exactly `len` hexadecimal digits; no move if they are not there.
    fn hex(&mut self, len: usize) -> Option<u32> {
        let digits = self.chars.get(self.at..self.at + len)?;
        let value = digits.iter().try_fold(0, |sum, c| Some(sum * 16 + c.to_digit(16)?))?;
        self.at += len;
        Some(value)
    }

    /// After `\u`: four digits, two times four digits of a surrogate pair, or digits in braces.
    fn unicode(&mut self) -> Option<u32> {
        if self.peek() == Some('{') {
            return self.unicode_in_braces();
        }
        let first = self.hex(4)?;
        let after_first = self.at;
        if (0xd800..0xdc00).contains(&first) && self.eat_text("\\u") {
            if let Some(second @ 0xdc00..0xe000) = self.hex(4) {
                return Some(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00));
            }
            self.at = after_first;
        }
        Some(first)
    }

    fn unicode_in_braces(&mut self) -> Option<u32> {
        let start = self.at;
        self.at += 1;
        let mut value = None;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) {
            value = Some(value.unwrap_or(0u32).saturating_mul(16).saturating_add(digit));
            self.at += 1;
        }
        let value = value.filter(|value| *value <= 0x0010_ffff && self.peek() == Some('}'));
        self.at = if value.is_some() { self.at + 1 } else { start };
        value
    }

    /// `\0`, or a legacy octal escape in the second reading.
    fn octal(&mut self, first: char) -> Result<u32> {
        let digits = self.peek().is_some_and(|c| c.is_ascii_digit());
        if first == '0' && !digits {
            return Ok(0);
        }
        self.only_lenient("a decimal escape")?;
        let Some(mut value) = first.to_digit(8) else {
            return Ok(u32::from(first));
        };
        let more = if value < 4 { 2 } else { 1 };
        for _ in 0..more {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else { break };
            value = value * 8 + digit;
            self.at += 1;
        }
        Ok(value)
    }
}

/// The set of one code point; empty for a surrogate, which no string holds.
pub(super) fn class_of_code(code: u32) -> ClassUnicode {
    match char::from_u32(code) {
        Some(c) => class_of(&[(c, c)]),
        None => ClassUnicode::empty(),
    }
}
