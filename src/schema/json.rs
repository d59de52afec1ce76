//! A JSON reader that keeps what a schema compiler needs: places, exact numbers, key order.
//!
//! Documents are read into one flat arena in *preorder*: a container is followed by its children,
//! and every node knows the index behind its last descendant. `{"a":[1],"b":2}` becomes
//!
//! ```text
//! 0 object end 6 │ 1 "a" end 2 │ 2 array end 4 │ 3 1 end 4 │ 4 "b" end 5 │ 5 2 end 6
//! ```
//!
//! so siblings are found by following `end`, a subtree is a range of indices, and nothing is
//! recursive: neither reading, nor dropping, nor finding the JSON pointer of a node. A node also
//! knows what it stands in (a value its key, a key its object), which is how a pointer is found.
//!
//! The members of an object are scanned; the keys of those with more than [`FEW`] are in a table of
//! all objects, in which the reader looks for duplicates as well.
//!
//! The reader is strict: one value, no byte order mark, no duplicate keys (parsers disagree which
//! one counts), no lone surrogates (they are no text). Cost: linear, one pass; a member constant time; a
//! pointer by its depth, and the index in each array.

use crate::error::{Error, Kind, Place, Result, quote};
use crate::escape;
use crate::limits::Limits;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hash, Hasher};

/// Index of a value in a [`Json`] arena.
pub(super) type At = u32;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    False,
    True,
    Number,
    String,
    Array,
    Object,
}

impl Type {
    /// The type with an article, for messages.
    pub fn article(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::False | Self::True => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Value {
    kind: Type,
    /// Where the value starts in `buffer`.
    offset: u32,
    /// Index behind the last descendant.
    end: At,
    /// What it stands in: of a member the key, of a key its object, of a root itself.
    parent: At,
    /// Number or (decoded) string: its range in `buffer`.
    from: u32,
    to: u32,
}

/// The most digits and signs of one number.
const NUMBER_BYTES: usize = 4096;

/// Objects with more members than this have their keys in a table.
const FEW: usize = 8;

/// Keys of which the reader notes that they occur: most schemas have none of them, and then a compiler
/// need not look for what they would say.
const NOTED: [&str; 10] = [
    "$anchor",
    "$dynamicAnchor",
    "$id",
    "$recursiveAnchor",
    "$schema",
    "id",
    "if",
    "max_tokens",
    "not",
    "oneOf",
];

/// Documents, read.
#[derive(Debug, Default)]
pub(super) struct Json {
    values: Vec<Value>,
    /// The texts of the documents, and the strings that had escapes, decoded.
    buffer: String,
    /// Of each document: first value, and the range of its text in `buffer`.
    documents: Vec<(At, u32, u32)>,
    /// The keys of objects with many members, with what [`Json::hash_key`] says of them.
    keys: HashTable<(u64, At)>,
    /// Which of [`NOTED`] are keys somewhere.
    noted: [bool; NOTED.len()],
    hasher: DefaultHashBuilder,
}

impl Json {
    /// Reads a document and returns its root.
    pub fn read(&mut self, text: &str, limits: &Limits) -> Result<At> {
        if text.len() > limits.input_bytes || self.buffer.len() + 2 * text.len() > u32::MAX as usize
        {
            return Err(Error::new(
                Kind::TooLarge,
                format!(
                    "the text has {} bytes, more than the limit of {}",
                    text.len(),
                    limits.input_bytes
                ),
            )
            .help("raise Limits::input_bytes"));
        }
        let root = self.values.len() as At;
        let start = self.buffer.len();
        self.buffer.push_str(text);
        self.documents.push((root, start as u32, self.buffer.len() as u32));
        self.values.reserve(text.len() / 8 + 1);
        let bytes = text.as_bytes();
        let mut reader = Reader { text, bytes, at: 0, start, parent: root, json: self };
        reader.document(limits.depth).map_err(|fault| fault.at(text, root, self))?;
        Ok(root)
    }

    /// What value `at` is.
    pub fn kind(&self, at: At) -> Type {
        self.values.get(at as usize).map_or(Type::Null, |value| value.kind)
    }

    /// Index behind the last descendant of `at`.
    pub fn end(&self, at: At) -> At {
        self.values.get(at as usize).map_or(at + 1, |value| value.end)
    }

    /// The number of values in the arena.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The decoded text of a string, the exact text of a number.
    pub fn text(&self, at: At) -> &str {
        let range = self.values.get(at as usize).map_or(0..0, |v| v.from as usize..v.to as usize);
        self.buffer.get(range).unwrap_or("")
    }

    /// The string at `at`, if it is one.
    pub fn string(&self, at: At) -> Option<&str> {
        (self.kind(at) == Type::String).then(|| self.text(at))
    }

    /// The children of an array (none of any other value).
    pub fn items(&self, at: At) -> Children<'_> {
        let end = if self.kind(at) == Type::Array { self.end(at) } else { at + 1 };
        Children { json: self, at: at + 1, end }
    }

    /// The members of an object as (key, value) (none of any other value).
    pub fn members(&self, at: At) -> Members<'_> {
        let end = if self.kind(at) == Type::Object { self.end(at) } else { at + 1 };
        Members { json: self, at: at + 1, end }
    }

    /// The value of a key of an object.
    pub fn member(&self, at: At, key: &str) -> Option<At> {
        let mut members = self.members(at);
        let first = members.by_ref().take(FEW).find(|&(name, _)| self.text(name) == key);
        if let Some((_, value)) = first {
            return Some(value);
        }
        members.next()?;
        self.find_key(at, key, self.hash_key(at, key)).map(|name| name + 1)
    }

    /// Whether one of these keys, all of them [`NOTED`], occurs in the documents.
    pub fn has_any(&self, keys: &[&str]) -> bool {
        debug_assert!(keys.iter().all(|key| NOTED.contains(key)));
        NOTED.iter().zip(self.noted).any(|(key, occurs)| occurs && keys.contains(key))
    }

    fn hash_key(&self, object: At, key: &str) -> u64 {
        self.hasher.hash_one((object, key))
    }

    /// A key of an object with many members.
    fn find_key(&self, object: At, key: &str, hash: u64) -> Option<At> {
        let equal = |&(_, at): &(u64, At)| self.parent(at) == object && self.text(at) == key;
        self.keys.find(hash, equal).map(|&(_, at)| at)
    }

    /// What a value stands in, see [`Value`].
    fn parent(&self, at: At) -> At {
        self.values.get(at as usize).map_or(at, |value| value.parent)
    }

    /// Whether two values have the same text, white space and escapes apart.
    pub fn same(&self, a: At, b: At) -> bool {
        let range = |at: At| at as usize..self.end(at) as usize;
        let (Some(x), Some(y)) = (self.values.get(range(a)), self.values.get(range(b))) else {
            return false;
        };
        x.len() == y.len()
            && (a..self.end(a)).zip(b..self.end(b)).all(|(p, q)| {
                self.kind(p) == self.kind(q)
                    && self.end(p) - a == self.end(q) - b
                    && self.text(p) == self.text(q)
            })
    }

    /// A hash of what [`Json::same`] compares.
    pub fn hash(&self, at: At) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        for value in at..self.end(at) {
            (self.kind(value) as u8, self.end(value) - at, self.text(value)).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Whether a value is an object.
    pub fn is_object(&self, at: At) -> bool {
        self.kind(at) == Type::Object
    }

    /// The JSON pointer of `at` in its document. A key has that of its value.
    pub fn pointer(&self, at: At) -> String {
        let mut tokens = Vec::new();
        let (mut here, mut above) = (at, self.parent(at));
        while here != above {
            match self.kind(above) {
                Type::Object => tokens.push(self.text(here).replace('~', "~0").replace('/', "~1")),
                Type::Array => {
                    let index = self.items(above).take_while(|&item| item != here).count();
                    tokens.push(index.to_string());
                }
                // The key of a value.
                _ => {}
            }
            (here, above) = (above, self.parent(above));
        }
        tokens.iter().rev().flat_map(|token| ["/", token]).collect()
    }

    /// Pointer, line and column of `at`.
    pub fn place(&self, at: At) -> Place {
        let offset = self.values.get(at as usize).map_or(0, |v| v.offset);
        let document = self.documents.iter().rev().find(|d| d.0 <= at);
        let text = document.and_then(|d| self.buffer.get(d.1 as usize..d.2 as usize)).unwrap_or("");
        let start = document.map_or(0, |d| d.1);
        let (line, column) = line_column(text, (offset - start.min(offset)) as usize);
        Place::Pointer { pointer: self.pointer(at), line_column: Some((line, column)) }
    }
}

/// Line and column of a byte offset, both from 1, columns in characters.
fn line_column(text: &str, offset: usize) -> (u32, u32) {
    let before = text.get(..offset.min(text.len())).unwrap_or(text);
    let line = before.bytes().filter(|&b| b == b'\n').count() as u32 + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() as u32 + 1;
    (line, column)
}

/// See [`Json::items`].
pub(super) struct Children<'j> {
    json: &'j Json,
    at: At,
    end: At,
}

impl Iterator for Children<'_> {
    type Item = At;
    fn next(&mut self) -> Option<At> {
        if self.at >= self.end {
            return None;
        }
        let item = self.at;
        self.at = self.json.end(item);
        Some(item)
    }
}

/// See [`Json::members`].
pub(super) struct Members<'j> {
    json: &'j Json,
    at: At,
    end: At,
}

impl Iterator for Members<'_> {
    type Item = (At, At);
    fn next(&mut self) -> Option<(At, At)> {
        if self.at >= self.end {
            return None;
        }
        let key = self.at;
        self.at = self.json.end(key + 1);
        Some((key, key + 1))
    }
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

    fn read(text: &str) -> Result<Json> {
        let mut json = Json::default();
        json.read(text, &Limits::default())?;
        Ok(json)
    }

    #[test]
    fn keeps_order_places_and_exact_numbers() {
        let json =
            read("{\"b\": [1.50, {\"x/~\": \"\\u0061\\ud83d\\ude00\"}],\n \"a\": 1e400}").unwrap();
        let keys: Vec<&str> = json.members(0).map(|(key, _)| json.text(key)).collect();
        assert_eq!(keys, ["b", "a"]);
        let items: Vec<At> = json.items(json.member(0, "b").unwrap()).collect();
        assert_eq!(json.text(items[0]), "1.50");
        let inner = json.member(items[1], "x/~").unwrap();
        assert_eq!(json.text(inner), "a\u{1f600}");
        assert_eq!(json.pointer(inner), "/b/1/x~1~0");
        let a = json.member(0, "a").unwrap();
        assert_eq!(json.text(a), "1e400");
        assert_eq!(
            json.place(a),
            Place::Pointer { pointer: "/a".into(), line_column: Some((2, 7)) }
        );
    }

    /// Objects on both sides of what is scanned, two with the same keys.
    #[test]
    fn members_of_small_and_large_objects() {
        for count in [0, 1, FEW - 1, FEW, FEW + 1, FEW + 2, 1000] {
            let object = |value: usize| {
                let members: Vec<String> =
                    (0..count).map(|n| format!("\"k{n}\": [{value}, {n}]")).collect();
                format!("{{{}}}", members.join(", "))
            };
            let json = read(&format!("[{}, {}]", object(1), object(2))).unwrap();
            for (index, object) in json.items(0).enumerate() {
                for n in 0..count {
                    let value = json.member(object, &format!("k{n}")).unwrap();
                    let items: Vec<&str> = json.items(value).map(|at| json.text(at)).collect();
                    assert_eq!(items, [(index + 1).to_string(), n.to_string()]);
                    let last = json.items(value).last().unwrap();
                    assert_eq!(json.pointer(last), format!("/{index}/k{n}/1"));
                    assert_eq!(json.pointer(value - 1), format!("/{index}/k{n}"));
                }
                assert_eq!(json.member(object, &format!("k{count}")), None);
            }
            if count > 0 {
                let twice = object(1).replace('}', &format!(", \"k{}\": 0}}", count / 2));
                let error = read(&twice).unwrap_err();
                assert!(error.to_string().contains("duplicate key"), "{error}");
            }
        }
    }

    #[test]
    fn agrees_with_another_parser_on_what_is_json() {
        let texts = [
            "",
            " ",
            "42",
            "-0",
            "01",
            "1.",
            ".5",
            "1e",
            "1e+5",
            "-",
            "nul",
            "null ",
            "[1,]",
            "[,1]",
            "{\"a\":}",
            "{\"a\" 1}",
            "{a:1}",
            "{}",
            "[]",
            "[[]",
            "]",
            "{]",
            "[}",
            "\"\u{1}\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "1 2",
            "tru",
            "{\"a\":1,}",
            "\"abc",
            "\u{feff}1",
            "[1 2]",
            "{\"a\":1 \"b\":2}",
            "\"\\ud800\"",
            "\"\\udc00\\ud800\"",
            "\"\\ud83d\\ude00\"",
            "[null,true,false]",
            "{,}",
            "\"\t\"",
            "+1",
            "NaN",
            "Infinity",
            "0x1",
            "1.5E-3",
        ];
        for text in texts {
            let other: std::result::Result<serde_json::Value, _> = serde_json::from_str(text);
            assert_eq!(read(text).is_ok(), other.is_ok(), "{text:?}");
        }
    }

    #[test]
    fn duplicate_keys_are_refused_with_their_place() {
        let many: String = (0..20).map(|i| format!("\"k{i}\":0,")).collect();
        for text in
            ["{\"x\":{\"a\":1,\"\\u0061\":2}}".to_owned(), format!("{{\"x\":{{{many}\"k3\":1}}}}")]
        {
            let error = read(&text).unwrap_err();
            assert_eq!(*error.kind(), Kind::Syntax);
            assert!(error.to_string().contains("duplicate key"), "{error}");
            assert!(error.to_string().contains("at /x/"), "{error}");
        }
    }

    #[test]
    fn depth_is_limited_without_recursion() {
        let error = read(&"[".repeat(1_000_000)).unwrap_err();
        assert_eq!(*error.kind(), Kind::TooDeep);
        let Some(Place::Pointer { pointer, .. }) = error.place() else { panic!("{error:?}") };
        assert_eq!(pointer.matches('/').count(), 128);
        assert!(read(&format!("{}{}", "[".repeat(128), "]".repeat(128))).is_ok());
    }
}
