//! JSON values that an output has, and sets of them: what unique items are compared by.
//!
//! Values are interned: equal values have equal ids, however they are spelled. Numbers compare as
//! exact decimals, strings by what they decode to, objects without the order of their keys. So
//! `{"a":1,"b":[]}` and `{"b":[ ],"\u0061":1.0}` are one id, and comparing is comparing numbers.
//!
//! An [`AllowId`] says which values a part of the output may have: any, any but some, or one. It
//! is an id so that frames and memo tables stay small.
//!
//! The arena belongs to what the sequences of a constraint have learnt, and grows with the values of unique items
//! until that starts afresh. Reading a
//! value is one pass with an explicit stack; it costs time by the length of the text.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::grammar::decimal::Decimal;

/// An interned value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(u32);

/// A JSON value whose parts are interned.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value {
    /// `null`, `false` or `true`, as it is spelled.
    Word(Box<str>),
    /// A number.
    Number(Decimal),
    /// A string, decoded.
    String(Box<str>),
    /// An array.
    Array(Box<[ValueId]>),
    /// An object: its members, sorted by key.
    Object(Box<[(Box<str>, ValueId)]>),
}

impl Value {
    /// The item at a position, if this is an array that has it.
    pub fn item(&self, position: u64) -> Option<ValueId> {
        let Value::Array(items) = self else { return None };
        items.get(usize::try_from(position).ok()?).copied()
    }

    /// The value of a key, if this is an object that has it.
    pub fn member(&self, key: &str) -> Option<ValueId> {
        let Value::Object(members) = self else { return None };
        let at = members.binary_search_by(|member| (*member.0).cmp(key)).ok()?;
        members.get(at).map(|member| member.1)
    }

    /// Bytes of memory behind it.
    fn bytes(&self) -> usize {
        match self {
            Value::Word(text) | Value::String(text) => text.len(),
            Value::Number(number) => number.digits.len(),
            Value::Array(items) => size_of_val(&**items),
            Value::Object(members) => {
                members.iter().map(|member| size_of_val(member) + member.0.len()).sum()
            }
        }
    }

    /// The number of items or members of a container.
    pub fn len(&self) -> u64 {
        match self {
            Value::Array(items) => items.len() as u64,
            Value::Object(members) => members.len() as u64,
            _ => 0,
        }
    }
}

/// Which values a part may have: an id of an [`Allow`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct AllowId(u32);

impl AllowId {
    /// Every value.
    pub const ANY: AllowId = AllowId(0);

    /// As a number, for keys of memo tables.
    pub fn raw(self) -> u32 {
        self.0
    }
}

/// Which values a part may have.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Allow {
    /// Every value.
    Any,
    /// Every value but these (sorted, not empty).
    Not(Arc<[ValueId]>),
    /// This one.
    Only(ValueId),
}

/// All values and sets that some sequences share.
#[derive(Debug, Clone, Default)]
pub struct Values {
    values: Vec<Arc<Value>>,
    ids: HashMap<Arc<Value>, ValueId>,
    /// By [`AllowId`] less one.
    allows: Vec<Allow>,
    allow_ids: HashMap<Allow, AllowId>,
    bytes: usize,
}

/// A container that is being read.
enum Open {
    Array(Vec<ValueId>),
    Object { members: Vec<(Box<str>, ValueId)>, key: Option<Box<str>> },
}

impl Values {
    /// The value behind an id.
    pub fn get(&self, id: ValueId) -> &Value {
        &self.values[id.0 as usize]
    }

    /// The id of a value.
    fn intern(&mut self, value: Value) -> ValueId {
        if let Some(&id) = self.ids.get(&value) {
            return id;
        }
        self.bytes += 2 * size_of::<Value>() + value.bytes();
        let (id, value) = (ValueId(self.values.len() as u32), Arc::new(value));
        self.values.push(Arc::clone(&value));
        self.ids.insert(value, id);
        id
    }

    /// What an id allows.
    pub fn allow(&self, id: AllowId) -> Allow {
        let index = (id.0 as usize).checked_sub(1);
        index.and_then(|index| self.allows.get(index)).cloned().unwrap_or(Allow::Any)
    }

    fn intern_allow(&mut self, allow: Allow) -> AllowId {
        let next = AllowId(self.allows.len() as u32 + 1);
        let id = *self.allow_ids.entry(allow.clone()).or_insert(next);
        if id == next {
            self.bytes += 3 * size_of::<Allow>();
            if let Allow::Not(values) = &allow {
                self.bytes += size_of_val(&**values);
            }
            self.allows.push(allow);
        }
        id
    }

    /// All values but these.
    pub fn all_but(&mut self, mut values: Vec<ValueId>) -> AllowId {
        values.sort_unstable();
        values.dedup();
        if values.is_empty() { AllowId::ANY } else { self.intern_allow(Allow::Not(values.into())) }
    }

    /// This value alone.
    pub fn only(&mut self, value: ValueId) -> AllowId {
        self.intern_allow(Allow::Only(value))
    }

    /// Reads a text that the machine has accepted as JSON, white space around it included;
    /// `None` if it is no JSON after all.
    pub fn read(&mut self, text: &[u8]) -> Option<ValueId> {
        let mut rest = std::str::from_utf8(text).ok()?.trim_matches(BLANKS);
        let mut open: Vec<Open> = Vec::new();
        loop {
            let first = rest.bytes().next()?;
            let (mut done, used) = match first {
                b'[' | b'{' => {
                    open.push(match first {
                        b'[' => Open::Array(Vec::new()),
                        _ => Open::Object { members: Vec::new(), key: None },
                    });
                    (None, 1)
                }
                b']' | b'}' => (Some(self.close(open.pop()?)), 1),
                b',' | b':' => (None, 1),
                b'"' => {
                    let end = string_end(rest)?;
                    let text: Box<str> =
                        serde_json::from_str::<String>(rest.get(..end)?).ok()?.into();
                    match open.last_mut() {
                        Some(Open::Object { key: key @ None, .. }) => {
                            *key = Some(text);
                            (None, end)
                        }
                        _ => (Some(self.intern(Value::String(text))), end),
                    }
                }
                _ => {
                    let end = rest.find(|c| ",]}".contains(c) || BLANKS.contains(&c));
                    let end = end.unwrap_or(rest.len());
                    let scalar = rest.get(..end)?;
                    let value = match first {
                        b't' | b'f' | b'n' => Value::Word(scalar.into()),
                        _ => Value::Number(Decimal::parse(scalar).ok()?),
                    };
                    (Some(self.intern(value)), end)
                }
            };
            rest = rest.get(used..)?.trim_start_matches(BLANKS);
            let Some(value) = done.take() else { continue };
            match open.last_mut() {
                None => return rest.is_empty().then_some(value),
                Some(Open::Array(items)) => items.push(value),
                Some(Open::Object { members, key }) => members.push((key.take()?, value)),
            }
        }
    }

    /// What finds values of `other` here.
    pub fn import<'a>(&'a mut self, other: &'a Values) -> Import<'a> {
        Import { ours: self, theirs: other, known: HashMap::new() }
    }

    /// Bytes of memory, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn close(&mut self, open: Open) -> ValueId {
        self.intern(match open {
            Open::Array(items) => Value::Array(items.into()),
            Open::Object { mut members, .. } => {
                members.sort_unstable();
                Value::Object(members.into())
            }
        })
    }
}

/// Finds the values of one arena in another, where they are added if they are new.
pub struct Import<'a> {
    ours: &'a mut Values,
    theirs: &'a Values,
    known: HashMap<ValueId, ValueId>,
}

impl Import<'_> {
    /// The same set.
    pub fn allow(&mut self, id: AllowId) -> AllowId {
        match self.theirs.allow(id) {
            Allow::Any => AllowId::ANY,
            Allow::Not(values) => {
                let values = self.values(&values);
                self.ours.all_but(values)
            }
            Allow::Only(value) => {
                let value = self.value(value);
                self.ours.only(value)
            }
        }
    }

    /// The same values, sorted.
    pub fn values(&mut self, ids: &[ValueId]) -> Vec<ValueId> {
        let mut ids: Vec<ValueId> = ids.iter().map(|&id| self.value(id)).collect();
        ids.sort_unstable();
        ids
    }

    fn value(&mut self, wanted: ValueId) -> ValueId {
        let mut todo = vec![wanted];
        while let Some(&id) = todo.last() {
            let value = self.theirs.get(id);
            let parts: Vec<ValueId> = match value {
                Value::Array(items) => items.to_vec(),
                Value::Object(members) => members.iter().map(|member| member.1).collect(),
                _ => Vec::new(),
            };
            let missing = parts.into_iter().filter(|part| !self.known.contains_key(part));
            let before = todo.len();
            todo.extend(missing);
            if todo.len() > before {
                continue;
            }
            todo.pop();
            let here = |part: &ValueId| self.known.get(part).copied().unwrap_or(*part);
            let copy = match value {
                Value::Array(items) => Value::Array(items.iter().map(here).collect()),
                Value::Object(members) => {
                    let members = members.iter().map(|(key, part)| (key.clone(), here(part)));
                    Value::Object(members.collect())
                }
                other => other.clone(),
            };
            let copy = self.ours.intern(copy);
            self.known.insert(id, copy);
        }
        self.known.get(&wanted).copied().unwrap_or(wanted)
    }
}

const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// One past the closing quote of the string at the start of `text`.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_equal_ids_however_they_are_spelled() {
        let mut values = Values::default();
        let mut read = |text: &str| values.read(text.as_bytes()).expect("JSON");
        for (a, b) in [
            ("1", " 1.0\n"),
            ("0", "-0"),
            ("\"a\\\\\\\"\"", "\"\\u0061\\\\\\u0022\""),
            (r#"{"a":1,"b":[]}"#, r#" { "b" : [ ] , "\u0061" : 10e-1 } "#),
            ("[[1,2],{\"x\":null}]", "[ [1 , 2] ,{\"x\": null}]"),
        ] {
            assert_eq!(read(a), read(b), "{a} and {b}");
        }
        for (a, b) in [
            ("1", "1.5"),
            ("[1,2]", "[2,1]"),
            ("\"1\"", "1"),
            ("\"null\"", "null"),
            ("{}", "[]"),
            (r#"{"a":1}"#, r#"{"a":2}"#),
            (r#"{"a":1}"#, r#"{"a":1,"b":1}"#),
            ("[[]]", "[]"),
        ] {
            assert_ne!(read(a), read(b), "{a} and {b}");
        }
        let id = read(r#"{"b":[true,false],"a":"x"}"#);
        let list = values.get(id).member("b").expect("a member");
        assert_eq!(values.get(id).member("c"), None);
        let item = values.get(list).item(1).expect("an item");
        assert_eq!(values.get(item), &Value::Word("false".into()));
        assert_eq!((values.get(id).len(), values.get(list).item(2)), (2, None));
    }

    #[test]
    fn what_is_no_json_is_no_value() {
        let mut values = Values::default();
        for text in ["", " ", "[", "{\"a\"", "\"a", "1 2", "[1]]", "{1:2}", "\u{e9}"] {
            assert_eq!(values.read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(values.read(&[0xff]), None);
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        assert!(values.read(deep.as_bytes()).is_some());
    }

    #[test]
    fn sets_are_interned() {
        let mut values = Values::default();
        let a = values.read(b"1").expect("JSON");
        let b = values.read(b"2").expect("JSON");
        assert_eq!(values.all_but(vec![a, b, a]), values.all_but(vec![b, a]));
        assert_eq!(values.all_but(Vec::new()), AllowId::ANY);
        assert_ne!(values.only(a), values.only(b));
        let only = values.only(a);
        assert_eq!(values.allow(only), Allow::Only(a));
        assert_eq!(values.allow(AllowId::ANY), Allow::Any);
        let mut other = Values::default();
        let text: &[u8] = br#"[{"b":[1],"a":2},[]]"#;
        let theirs = other.read(text).expect("JSON");
        let set = other.all_but(vec![theirs]);
        let set = values.import(&other).allow(set);
        let ours = values.read(text).expect("JSON");
        assert_eq!(values.allow(set), Allow::Not([ours].into()));
    }
}
