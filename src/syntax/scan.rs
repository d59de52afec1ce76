//! A cursor over the text of a grammar that knows its line and column.

use crate::error::{Error, Kind, Result, quote};

/// A place in the text: line and column from 1, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    pub line: u32,
    pub column: u32,
}

impl At {
    /// An error at this place.
    pub fn error(self, kind: Kind, message: impl Into<String>) -> Error {
        Error::new(kind, message).at_line(self.line, self.column)
    }

    /// The error of something that begins at this place and was read by others.
    pub fn wrap(self, what: &str, error: &Error) -> Error {
        let at = self.error(error.kind().clone(), format!("{what}: {}", error.message()));
        match error.remedy() {
            Some(help) => at.help(help),
            None => at,
        }
    }

    /// The grammar is wrong at this place.
    pub fn bad(self, message: impl Into<String>) -> Error {
        self.error(Kind::BadGrammar, message)
    }

    /// A construct at this place that is not enforced.
    pub fn unsupported(self, keyword: &str, message: impl Into<String>) -> Error {
        self.error(Kind::Unsupported { keyword: keyword.to_owned() }, message)
    }
}

/// What is left of a text. `Copy`: a copy looks ahead.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'t> {
    rest: &'t str,
    at: At,
}

impl<'t> Cursor<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { rest: text, at: At { line: 1, column: 1 } }
    }

    /// The place of the next character.
    pub fn at(&self) -> At {
        self.at
    }

    /// The text from here on.
    pub fn rest(&self) -> &'t str {
        self.rest
    }

    pub fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub fn bump(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let c = chars.next()?;
        self.rest = chars.as_str();
        if c == '\n' {
            self.at = At { line: self.at.line.saturating_add(1), column: 1 };
        } else {
            self.at.column = self.at.column.saturating_add(1);
        }
        Some(c)
    }

    /// Steps over `text` if it is next.
    pub fn eat(&mut self, text: &str) -> bool {
        let found = self.rest.starts_with(text);
        if found {
            self.skip(text.len());
        }
        found
    }

    /// Steps over `bytes` bytes, which end at a character.
    pub fn skip(&mut self, bytes: usize) {
        let end = self.rest.len().saturating_sub(bytes);
        while self.rest.len() > end && self.bump().is_some() {}
    }

    /// Steps over the characters for which `test` holds.
    pub fn take_while(&mut self, test: impl Fn(char) -> bool) -> &'t str {
        let length = self.rest.find(|c| !test(c)).unwrap_or(self.rest.len());
        let taken = self.rest.get(..length).unwrap_or_default();
        self.skip(length);
        taken
    }

    /// Steps over everything before `end`, and over `end`; `None` if it does not come.
    pub fn take_until(&mut self, end: &str) -> Option<&'t str> {
        let length = self.rest.find(end)?;
        let taken = self.rest.get(..length)?;
        self.skip(length + end.len());
        Some(taken)
    }

    /// The error that something else was expected here.
    pub fn expected(&self, what: &str) -> Error {
        let line = self.rest.lines().next().unwrap_or_default();
        let found = match self.rest {
            "" => "the end of the grammar".to_owned(),
            _ if line.is_empty() => "the end of the line".to_owned(),
            _ => quote(&line.chars().take(24).collect::<String>()),
        };
        self.at.bad(format!("expected {what}, found {found}"))
    }

    /// A decimal number that fits in 64 bits.
    pub fn number(&mut self) -> Result<u64> {
        let here = *self;
        let digits = self.take_while(|c| c.is_ascii_digit());
        if digits.is_empty() {
            return Err(here.expected("a number"));
        }
        let number = digits.parse();
        number.map_err(|_| here.at.bad(format!("{} is too large a number", quote(digits))))
    }

    /// The code point written by exactly `digits` hexadecimal digits.
    pub fn hex(&mut self, digits: usize) -> Result<char> {
        let here = *self;
        let text = self.rest.get(..digits).unwrap_or_default();
        if text.len() != digits || !text.bytes().all(|b| b.is_ascii_hexdigit()) || digits == 0 {
            return Err(here.expected(&format!("{digits} hexadecimal digits")));
        }
        self.skip(digits);
        let value = u32::from_str_radix(text, 16).ok();
        value
            .and_then(char::from_u32)
            .ok_or_else(|| here.at.bad(format!("{} is the number of no character", quote(text))))
    }

    /// What stands for a character after a backslash, which was read: `\n`, `\x41`, `\u00e9`,
    /// `\U0001F389`, or one of `plain`, which stands for itself.
    pub fn escape(&mut self, plain: &str) -> Result<char> {
        let here = *self;
        match self.bump() {
            Some('n') => Ok('\n'),
            Some('r') => Ok('\r'),
            Some('t') => Ok('\t'),
            Some('x') => self.hex(2),
            Some('u') => self.hex(4),
            Some('U') => self.hex(8),
            Some(c) if plain.contains(c) => Ok(c),
            _ => Err(here.expected("an escape such as \\n, \\x41 or \\u00e9")),
        }
    }
}
