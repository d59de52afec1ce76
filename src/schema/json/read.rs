//! Reading a document into the arena, in one pass over its bytes, without recursion.
//!
//! The reader is strict: one value, no byte order mark, no duplicate keys (parsers disagree which
//! one counts), no lone surrogates (they are no text). Containers that are open have `end` 0; keys of an
//! object go into the table of keys once it has many, which is where duplicates are found.

use super::{At, FEW, Json, NOTED, Type, Value, line_column};
use crate::error::{Error, Kind, Place, Result, quote};
use crate::escape;

/// The most digits and signs of one number.
const NUMBER_BYTES: usize = 4096;

/// Reads `text`, which stands at `start` in the buffer of `json`, behind the values that are there.
///
/// # Errors
/// [`Kind::Syntax`], [`Kind::TooDeep`] and [`Kind::TooLarge`], with their place.
pub(super) fn document(json: &mut Json, text: &str, start: usize, depth: usize) -> Result<()> {
    let root = json.values.len() as At;
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0, start, parent: root, json };
    reader.document(depth).map_err(|fault| fault.at(text, root, json))
}

/// Why reading stopped: a message, and the byte offset or the value it is about.
struct Fault {
    kind: Kind,
    message: String,
    offset: usize,
    value: Option<At>,
}

impl Fault {
    fn at(self, text: &str, root: At, json: &mut Json) -> Error {
        // Containers that are still open end here, so that pointers can be found.
        let end = json.values.len() as At;
        for value in json.values.iter_mut().skip(root as usize).filter(|v| v.end == 0) {
            value.end = end;
        }
        let (line, column) = line_column(text, self.offset);
        let error = Error::new(self.kind, self.message);
        match self.value {
            Some(value) => error.at(Place::Pointer {
                pointer: json.pointer(value),
                line_column: Some((line, column)),
            }),
            None => error.at(Place::Text { line, column }),
        }
    }
}

struct Reader<'t, 'j> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    /// Where `text` starts in the arena's buffer.
    start: usize,
    /// What the next value stands in.
    parent: At,
    json: &'j mut Json,
}

/// What may come next.
#[derive(PartialEq)]
enum Expect {
    Value,
    ValueOrEnd,
    KeyOrEnd,
    Key,
    CommaOrEnd,
}

impl Reader<'_, '_> {
    fn fault<T>(&self, message: impl Into<String>) -> Result<T, Fault> {
        Err(Fault { kind: Kind::Syntax, message: message.into(), offset: self.at, value: None })
    }

    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn blank(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
    }

    fn push(&mut self, kind: Type, offset: usize, from: usize, to: usize) {
        let end = self.json.values.len() as At + 1;
        let end = if matches!(kind, Type::Array | Type::Object) { 0 } else { end };
        let (offset, from, to) = ((self.start + offset) as u32, from as u32, to as u32);
        self.json.values.push(Value { kind, offset, end, parent: self.parent, from, to });
    }

    fn document(&mut self, depth: usize) -> Result<(), Fault> {
        if self.text.starts_with('\u{feff}') {
            return self.fault("the text starts with a byte order mark, which JSON does not allow");
        }
        let mut open: Vec<At> = Vec::new();
        let mut expect = Expect::Value;
        loop {
            self.blank();
            let byte = self.peek();
            let next = self.json.values.len() as At;
            self.parent = match open.last() {
                None => next,
                // The value comes right after its key.
                Some(&at) if expect == Expect::Value && self.json.is_object(at) => next - 1,
                Some(&at) => at,
            };
            match (expect, byte) {
                (Expect::CommaOrEnd, b',') => {
                    self.at += 1;
                    let object = open.last().is_some_and(|&at| self.json.kind(at) == Type::Object);
                    expect = if object { Expect::Key } else { Expect::Value };
                    continue;
                }
                (Expect::CommaOrEnd | Expect::KeyOrEnd, b'}')
                | (Expect::CommaOrEnd | Expect::ValueOrEnd, b']') => {
                    self.close(&mut open, byte)?;
                }
                (Expect::CommaOrEnd, _) => {
                    return self.unexpected("',' or the end of the container");
                }
                (Expect::Key | Expect::KeyOrEnd, b'"') => {
                    self.string()?;
                    self.note_key(next);
                    self.blank();
                    if self.peek() != b':' {
                        return self.unexpected("':'");
                    }
                    self.at += 1;
                    expect = Expect::Value;
                    continue;
                }
                (Expect::Key | Expect::KeyOrEnd, _) => {
                    return self.unexpected("a key in double quotes");
                }
                (_, b'{' | b'[') => {
                    if open.len() >= depth {
                        return self.too_deep(depth);
                    }
                    open.push(self.json.values.len() as At);
                    let kind = if byte == b'{' { Type::Object } else { Type::Array };
                    self.push(kind, self.at, 0, 0);
                    self.at += 1;
                    expect = if byte == b'{' { Expect::KeyOrEnd } else { Expect::ValueOrEnd };
                    continue;
                }
                (_, _) => self.scalar(byte)?,
            }
            if open.is_empty() {
                break;
            }
            expect = Expect::CommaOrEnd;
        }
        self.blank();
        if self.at < self.bytes.len() {
            return self.unexpected("the end of the text");
        }
        Ok(())
    }

    fn unexpected<T>(&self, wanted: &str) -> Result<T, Fault> {
        match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(c) => self.fault(format!("expected {wanted}, found {}", quote(&c.to_string()))),
            None => self.fault(format!("expected {wanted}, found the end of the text")),
        }
    }

    fn too_deep<T>(&mut self, depth: usize) -> Result<T, Fault> {
        let value = self.json.values.len() as At;
        self.push(Type::Null, self.at, 0, 0);
        let message = format!("the text is nested deeper than {depth} levels");
        Err(Fault { kind: Kind::TooDeep, message, offset: self.at, value: Some(value) })
    }

    fn close(&mut self, open: &mut Vec<At>, byte: u8) -> Result<(), Fault> {
        let wanted = if byte == b'}' { Type::Object } else { Type::Array };
        let Some(&at) = open.last().filter(|&&at| self.json.kind(at) == wanted) else {
            return self.unexpected("the end of the container that is open");
        };
        open.pop();
        self.at += 1;
        let end = self.json.values.len() as At;
        if let Some(value) = self.json.values.get_mut(at as usize) {
            value.end = end;
        }
        if wanted == Type::Object { self.no_duplicates(at) } else { Ok(()) }
    }

    /// Refuses two equal keys in one object, and notes the keys of one with many.
    fn no_duplicates(&mut self, object: At) -> Result<(), Fault> {
        if self.json.members(object).nth(FEW).is_some() {
            let mut next = object + 1;
            while next < self.json.end(object) {
                let hash = self.json.hash_key(object, self.json.text(next));
                if self.json.find_key(object, self.json.text(next), hash).is_some() {
                    return self.duplicate(next);
                }
                self.json.keys.insert_unique(hash, (hash, next), |entry| entry.0);
                next = self.json.end(next + 1);
            }
            return Ok(());
        }
        let json = &*self.json;
        for (key, _) in json.members(object) {
            let mut earlier = json.members(object).take_while(|other| other.0 < key);
            if earlier.any(|other| json.text(other.0) == json.text(key)) {
                return self.duplicate(key);
            }
        }
        Ok(())
    }

    fn duplicate<T>(&self, key: At) -> Result<T, Fault> {
        let offset = self.json.values.get(key as usize).map_or(0, |v| v.offset as usize);
        let message = format!("duplicate key {}", quote(self.json.text(key)));
        let (kind, offset) = (Kind::Syntax, offset - self.start);
        Err(Fault { kind, message, offset, value: Some(key + 1) })
    }

    /// Remembers that a key occurs.
    fn note_key(&mut self, key: At) {
        let name = self.json.text(key);
        if let Some(index) = NOTED.iter().position(|noted| *noted == name) {
            self.json.noted[index] = true;
        }
    }

    fn scalar(&mut self, byte: u8) -> Result<(), Fault> {
        match byte {
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            _ => {
                let words = [("null", Type::Null), ("false", Type::False), ("true", Type::True)];
                let rest = self.text.get(self.at..).unwrap_or("");
                let Some((word, kind)) = words.into_iter().find(|(word, _)| rest.starts_with(word))
                else {
                    return self.unexpected("a value");
                };
                self.push(kind, self.at, 0, 0);
                self.at += word.len();
                Ok(())
            }
        }
    }

    fn digits(&mut self) -> Result<(), Fault> {
        if !self.peek().is_ascii_digit() {
            return self.unexpected("a digit");
        }
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        let from = self.at;
        if self.peek() == b'-' {
            self.at += 1;
        }
        if self.peek() == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            self.digits()?;
        }
        if self.at - from > NUMBER_BYTES {
            let message = format!("a number of more than {NUMBER_BYTES} characters");
            return Err(Fault { kind: Kind::TooLarge, message, offset: from, value: None });
        }
        self.push(Type::Number, from, self.start + from, self.start + self.at);
        Ok(())
    }

    fn string(&mut self) -> Result<(), Fault> {
        let offset = self.at;
        self.at += 1;
        let mut run = self.at;
        let decoded = self.json.buffer.len();
        let mut escaped = false;
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.json.buffer.push_str(self.text.get(run..self.at).unwrap_or(""));
                    self.escape()?;
                    run = self.at;
                }
                Some(0..=0x1f) => {
                    return self.fault("a control character in a string must be escaped");
                }
                Some(_) => self.at += plain(self.bytes.get(self.at..).unwrap_or(&[])),
                None => return self.unexpected("the end of a string"),
            }
        }
        let (mut from, mut to) = (self.start + run, self.start + self.at);
        if escaped {
            self.json.buffer.push_str(self.text.get(run..self.at).unwrap_or(""));
            (from, to) = (decoded, self.json.buffer.len());
        }
        self.push(Type::String, offset, from, to);
        self.at += 1;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Fault> {
        self.at += 1;
        if self.peek() == b'u' {
            return self.unicode();
        }
        let Some(c) = escape::meaning(self.peek()) else {
            return self.unexpected("an escape: one of \" \\ / b f n r t u");
        };
        self.json.buffer.push(c);
        self.at += 1;
        Ok(())
    }

    fn unicode(&mut self) -> Result<(), Fault> {
        let mut code = self.hex()?;
        if (0xd800..0xdc00).contains(&code)
            && self.text.get(self.at..).is_some_and(|rest| rest.starts_with("\\u"))
        {
            self.at += 1;
            let low = self.hex()?;
            if (0xdc00..0xe000).contains(&low) {
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            }
        }
        match char::from_u32(code) {
            Some(c) => {
                self.json.buffer.push(c);
                Ok(())
            }
            None => self.fault("a lone surrogate is no text"),
        }
    }

    /// Four hexadecimal digits behind the `u` at the cursor.
    fn hex(&mut self) -> Result<u32, Fault> {
        self.at += 1;
        let mut code = 0;
        for _ in 0..4 {
            let Some(digit) = (self.peek() as char).to_digit(16) else {
                return self.unexpected("a hexadecimal digit");
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}

/// How many bytes there are before the first that is a quote, a backslash or a control character: the only
/// ones that mean something in a string.
fn plain(bytes: &[u8]) -> usize {
    const EACH: u64 = u64::MAX / 255;
    let (words, rest) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The high bit of each byte that is below `least`, of which the lowest is exact: see "Bit Twiddling
        // Hacks" (Anderson), "Determine if a word has a byte less than n".
        let below = |word: u64, least: u64| word.wrapping_sub(EACH * least) & !word & (EACH << 7);
        let quote = below(word ^ (EACH * u64::from(b'"')), 1);
        let backslash = below(word ^ (EACH * u64::from(b'\\')), 1);
        let found = below(word, 0x20) | quote | backslash;
        if found != 0 {
            return number * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let marked = |&byte: &u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    bytes.len() - rest.len() + rest.iter().position(marked).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte at every place of a text of every length around eight, before and after others.
    #[test]
    fn what_means_something_in_a_string_is_found() {
        for len in 0..20 {
            for at in 0..len {
                for byte in 0..=255u8 {
                    let mut text = vec![b'x'; len];
                    text[at] = byte;
                    let marked = byte < 0x20 || byte == b'"' || byte == b'\\';
                    assert_eq!(plain(&text), if marked { at } else { len }, "{byte} at {at}");
                    if at + 1 < len {
                        text[len - 1] = b'"';
                        let expected = if marked { at } else { len - 1 };
                        assert_eq!(plain(&text), expected, "{byte} at {at}, then a quote");
                    }
                }
            }
        }
    }
}
