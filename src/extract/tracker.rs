//! Following a JSON document while it is written: which value each byte belongs to, what has
//! begun and what is finished, and the value so far.
//!
//! By hand, the bytes `{"a": [12, "x` one after the other:
//!
//! ```text
//! {            started ""            a partial value {}
//! "a":                               still {}, but the pointer is "/a" now
//! [            started "/a"          {"a": []}
//! 12           started "/a/0"        still {"a": []}: it may become 123
//! ,            finished "/a/0" = 12  {"a": [12]}
//! "x           started "/a/1", text  {"a": [12, "x"]}: more may follow in the string
//! ```
//!
//! # Invariants
//! Nothing is retracted. What [`Tracker::partial`] shows stays: members and items are only added,
//! and an unfinished string only grows; an unfinished number is not shown, `tr` is shown as `true`,
//! half an escape or half a character is not shown.
//!
//! The bytes are those of an output under a schema, so they begin a document. At the first byte
//! that no document has there it gives up, with an error.
//!
//! # Cost
//! Each byte is looked at once. A finished container is copied into its event, so a value is copied as often as
//! it is deep, and [`Tracker::partial`] copies what is there.

use crate::error::{Error, Kind, Place, Result};
use crate::extract::scalar::{Scalar, Step};
use serde_json::{Map, Value};
use std::ops::Range;

/// Deeper documents than constraints allow are refused.
const DEPTH_MAX: usize = 256;

/// What kind of value, as its first byte tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueKind {
    /// `{`
    Object,
    /// `[`
    Array,
    /// `"`
    String,
    /// A digit or a minus sign.
    Number,
    /// `true` or `false`.
    Boolean,
    /// `null`
    Null,
}

impl ValueKind {
    /// Whether it holds no other values.
    pub fn is_scalar(self) -> bool {
        !matches!(self, ValueKind::Object | ValueKind::Array)
    }
}

/// A value of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// JSON pointer, `""` for the whole document.
    pub pointer: String,
    /// What kind of value.
    pub kind: ValueKind,
    /// Where its key begins, of a member of an object: at the quote.
    pub key_start: Option<usize>,
    /// Its first byte.
    pub start: usize,
    /// Where it ends, if it is finished.
    pub end: Option<usize>,
    /// The number of the container it is in.
    pub parent: Option<usize>,
}

impl Node {
    /// Its bytes, if it is finished.
    pub fn range(&self) -> Option<Range<usize>> {
        self.end.map(|end| self.start..end)
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A value has begun.
    Started {
        /// JSON pointer.
        pointer: String,
        /// What kind of value.
        kind: ValueKind,
    },
    /// More of the text of a string, without escapes.
    Text {
        /// JSON pointer.
        pointer: String,
        /// Whole characters.
        piece: String,
    },
    /// A value is finished.
    Finished {
        /// JSON pointer.
        pointer: String,
        /// The value.
        value: Value,
    },
}

/// An open container.
#[derive(Debug, Clone)]
enum Container {
    Object { members: Map<String, Value>, key: String },
    Array { items: Vec<Value> },
}

#[derive(Debug, Clone)]
struct Frame {
    container: Container,
    /// The number of its node.
    node: usize,
    /// Length of its pointer.
    pointer_len: usize,
}

impl Frame {
    fn value(self) -> Value {
        match self.container {
            Container::Object { members, .. } => Value::Object(members),
            Container::Array { items } => Value::Array(items),
        }
    }

    /// Adds a member, at the last key, or an item.
    fn add(&mut self, value: Value) {
        match &mut self.container {
            Container::Object { members, key } => {
                members.insert(std::mem::take(key), value);
            }
            Container::Array { items } => items.push(value),
        }
    }
}

/// What may come between tokens of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    /// A value or `]`.
    ItemOrEnd,
    Key,
    /// A key or `}`.
    KeyOrEnd,
    Colon,
    /// `,` or the end of the container.
    CommaOrEnd,
    /// Nothing but white space.
    End,
}

/// Follows a document byte by byte.
#[derive(Debug, Clone)]
pub struct Tracker {
    expect: Expect,
    frames: Vec<Frame>,
    /// That of the value that is written, or comes next.
    pointer: String,
    /// The key or scalar that is written.
    scalar: Option<Scalar>,
    /// Whether that is a key.
    in_key: bool,
    key_start: Option<usize>,
    nodes: Vec<Node>,
    len: usize,
    value: Option<Value>,
    events: Vec<Event>,
}

impl Default for Tracker {
    fn default() -> Self {
        Self::new()
    }
}

impl Tracker {
    /// Before the first byte.
    pub fn new() -> Self {
        Self {
            expect: Expect::Value,
            frames: Vec::new(),
            pointer: String::new(),
            scalar: None,
            in_key: false,
            key_start: None,
            nodes: Vec::new(),
            len: 0,
            value: None,
            events: Vec::new(),
        }
    }

    /// A finished document.
    ///
    /// # Errors
    /// [`Kind::Syntax`] or [`Kind::TooDeep`] if it is none, with the offset.
    pub fn of(document: &[u8]) -> Result<Self> {
        let mut tracker = Self::new();
        tracker.push(document)?;
        tracker.finish()?;
        Ok(tracker)
    }

    /// Goes on with more bytes, and says what happened in them.
    ///
    /// # Errors
    /// [`Kind::Syntax`] or [`Kind::TooDeep`] with the offset of the byte that no document has there.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>> {
        for &byte in bytes {
            self.byte(byte)?;
            self.len += 1;
        }
        self.show();
        Ok(std::mem::take(&mut self.events))
    }

    /// The document ends here: only now a number at its root is finished.
    ///
    /// # Errors
    /// [`Kind::Syntax`] if it is not complete.
    pub fn finish(&mut self) -> Result<Vec<Event>> {
        if self.frames.is_empty() && self.scalar.as_ref().is_some_and(Scalar::ends_with_document) {
            self.end_scalar()?;
        }
        match self.expect {
            Expect::End => Ok(std::mem::take(&mut self.events)),
            _ => Err(self.error("the document is not complete")),
        }
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there was no byte yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// JSON pointer of the value that is being written or comes next; between the members of a
    /// container, that of the container.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// The values that have begun, in the order in which they began.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The number of the innermost value that a byte of the document is part of.
    pub fn at(&self, byte: usize) -> Option<usize> {
        let mut at = self.nodes.partition_point(|node| node.start <= byte).checked_sub(1);
        while let Some(node) = at.and_then(|at| self.nodes.get(at)) {
            if byte < self.len && node.end.is_none_or(|end| byte < end) {
                return at;
            }
            at = node.parent;
        }
        None
    }

    /// Whether the document is whole; a number at its root never is before [`Tracker::finish`].
    pub fn is_complete(&self) -> bool {
        self.expect == Expect::End
    }

    /// The document, if it is whole.
    pub fn value(&self) -> Option<&Value> {
        self.value.as_ref()
    }

    /// As much of the value as is certain, `None` before anything is.
    pub fn partial(&self) -> Option<Value> {
        if self.value.is_some() {
            return self.value.clone();
        }
        let scalar = self.scalar.as_ref().filter(|_| !self.in_key);
        let mut inner = scalar.and_then(Scalar::partial);
        for frame in self.frames.iter().rev() {
            let mut frame = frame.clone();
            inner.take().into_iter().for_each(|value| frame.add(value));
            inner = Some(frame.value());
        }
        inner
    }

    /// The same if it is known that these bytes come next, as
    /// [`forced_bytes`](crate::Matcher::forced_bytes) tells: more is certain then.
    ///
    /// # Errors
    /// As [`Tracker::push`].
    pub fn partial_before(&self, forced: &[u8]) -> Result<Option<Value>> {
        let mut ahead = self.clone();
        ahead.push(forced)?;
        Ok(ahead.partial())
    }

    fn error(&self, what: &str) -> Error {
        Error::new(Kind::Syntax, what).at(Place::Offset(self.len))
    }

    fn byte(&mut self, byte: u8) -> Result<()> {
        if let Some(scalar) = &mut self.scalar {
            let at = Place::Offset(self.len);
            match scalar.push(byte).map_err(|error| error.at(at))? {
                // It ends before this byte, as only a number does.
                Step::Before => self.end_scalar()?,
                Step::More => return Ok(()),
                Step::Done => {
                    self.len += 1;
                    let ended = self.end_scalar();
                    self.len -= 1;
                    return ended;
                }
            }
        }
        match (self.expect, byte) {
            (_, b' ' | b'\t' | b'\n' | b'\r') => Ok(()),
            (Expect::Value | Expect::ItemOrEnd, b'{' | b'[') => self.open(byte == b'{'),
            (Expect::ItemOrEnd | Expect::CommaOrEnd, b']')
            | (Expect::KeyOrEnd | Expect::CommaOrEnd, b'}') => self.close(byte == b'}'),
            (Expect::Value | Expect::ItemOrEnd, _) => self.begin_scalar(byte),
            (Expect::Key | Expect::KeyOrEnd, b'"') => {
                self.key_start = Some(self.len);
                self.in_key = true;
                self.scalar = Scalar::begin(byte);
                Ok(())
            }
            (Expect::Colon, b':') => {
                self.expect = Expect::Value;
                Ok(())
            }
            (Expect::CommaOrEnd, b',') => {
                let object = matches!(
                    self.frames.last(),
                    Some(Frame { container: Container::Object { .. }, .. })
                );
                self.expect = if object { Expect::Key } else { Expect::Value };
                Ok(())
            }
            _ => Err(self.error("no JSON document goes on with this byte")),
        }
    }

    /// A value begins: its node, its pointer, its event.
    fn begin(&mut self, kind: ValueKind) -> usize {
        if let Some(Frame { container: Container::Array { items }, .. }) = self.frames.last() {
            self.pointer.push_str(&format!("/{}", items.len()));
        }
        self.nodes.push(Node {
            pointer: self.pointer.clone(),
            kind,
            key_start: self.key_start.take(),
            start: self.len,
            end: None,
            parent: self.frames.last().map(|frame| frame.node),
        });
        self.events.push(Event::Started { pointer: self.pointer.clone(), kind });
        self.nodes.len() - 1
    }

    fn open(&mut self, object: bool) -> Result<()> {
        if self.frames.len() >= DEPTH_MAX {
            let message = format!("the document is nested deeper than {DEPTH_MAX}");
            return Err(Error::new(Kind::TooDeep, message).at(Place::Offset(self.len)));
        }
        let (kind, container, expect) = match object {
            true => {
                let container = Container::Object { members: Map::new(), key: String::new() };
                (ValueKind::Object, container, Expect::KeyOrEnd)
            }
            false => (ValueKind::Array, Container::Array { items: Vec::new() }, Expect::ItemOrEnd),
        };
        let node = self.begin(kind);
        self.frames.push(Frame { container, node, pointer_len: self.pointer.len() });
        self.expect = expect;
        Ok(())
    }

    fn close(&mut self, object: bool) -> Result<()> {
        let fits = |frame: &Frame| matches!(frame.container, Container::Object { .. }) == object;
        match self.frames.pop_if(|frame| fits(frame)) {
            None => Err(self.error("this bracket closes nothing")),
            Some(frame) => {
                let node = frame.node;
                self.end(node, self.len + 1, frame.value());
                Ok(())
            }
        }
    }

    fn begin_scalar(&mut self, byte: u8) -> Result<()> {
        let scalar = Scalar::begin(byte);
        let Some(scalar) = scalar else { return Err(self.error("no value begins like this")) };
        self.begin(scalar.kind());
        self.scalar = Some(scalar);
        Ok(())
    }

    /// The key or scalar ends before `self.len`.
    fn end_scalar(&mut self) -> Result<()> {
        self.show();
        let Some(scalar) = self.scalar.take() else { return Ok(()) };
        let value = scalar.finish().map_err(|error| error.at(Place::Offset(self.len)))?;
        if !self.in_key {
            // Scalars have no nodes in them: the last one is theirs.
            self.end(self.nodes.len().saturating_sub(1), self.len, value);
            return Ok(());
        }
        self.in_key = false;
        self.expect = Expect::Colon;
        if let (Some(Frame { container: Container::Object { key, .. }, .. }), Value::String(name)) =
            (self.frames.last_mut(), value)
        {
            self.pointer.push('/');
            self.pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            *key = name;
        }
        Ok(())
    }

    /// A value is finished.
    fn end(&mut self, node: usize, end: usize, value: Value) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.end = Some(end);
        }
        self.events.push(Event::Finished { pointer: self.pointer.clone(), value: value.clone() });
        match self.frames.last_mut() {
            None => {
                self.value = Some(value);
                self.expect = Expect::End;
            }
            Some(frame) => {
                frame.add(value);
                self.pointer.truncate(frame.pointer_len);
                self.expect = Expect::CommaOrEnd;
            }
        }
    }

    /// Reports new text of a string.
    fn show(&mut self) {
        let scalar = self.scalar.as_mut().filter(|_| !self.in_key);
        if let Some(piece) = scalar.and_then(Scalar::piece) {
            self.events.push(Event::Text { pointer: self.pointer.clone(), piece });
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
