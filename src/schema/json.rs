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
//! Cost: reading is linear, one pass (`read.rs`); a member constant time; a pointer by its depth, and the
//! index in each array.

mod read;

use crate::error::{Error, Kind, Place, Result};
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
        read::document(self, text, start, limits.depth)?;
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

#[cfg(test)]
mod tests {
    use super::*;

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
