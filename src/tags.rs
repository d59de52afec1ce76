//! Text that switches to a constraint at a tag and back: tool calls, and a reasoning part in front.
//!
//! A [`Tag`] begins with a marker, goes on with a body (JSON by a schema, or a text of a grammar)
//! and ends with another marker. Markers are spelled as text, or they are special tokens. Around
//! tags there is free text, in which no tag begins by accident: where a marker is complete, its
//! body follows.
//!
//! By hand, for one tag from `<t>` to `</t>`: the output is pieces of free text, each up to and with
//! the first `<t>`, then a body and `</t>`; at the end a piece of free text without `<t>`. With
//! `any` for any text, a piece is the regular expression
//!
//! ```text
//! any <t>  but not  any <t> any+         so `<<t>` is one, and `<t>x<t>` is not
//! ```
//!
//! which is an automaton of four states: free text costs as little as a JSON string.
//!
//! ```
//! use constrain::schema::Options;
//! use constrain::tags::{Marker, Tag, Tags};
//!
//! let weather = r#"{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}"#;
//! let grammar = Tags::new()
//!     .reasoning(Marker::text("<think>"), Marker::text("</think>"), Some(4_000))
//!     .tag(Tag::json(Marker::text("<weather>"), weather, Marker::text("</weather>")))
//!     .at_least(1)
//!     .grammar(&Options::default())?;
//! # Ok::<(), constrain::Error>(())
//! ```

use crate::error::{Error, Kind, Result, quote};
use crate::expr::{ExprId, Exprs};
use crate::grammar::{Grammar, Node, NodeId, SpecialSpec, Terminal};
use crate::schema::{self, Options};
use crate::source;
use crate::syntax::Syntax;

/// Where a part begins or ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Marker {
    /// This text, in ordinary tokens.
    Text(String),
    /// The special token of this name, such as `<|tool_call|>`.
    Token(String),
}

impl Marker {
    /// A marker that is spelled as text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A marker that is a special token.
    pub fn token(name: impl Into<String>) -> Self {
        Self::Token(name.into())
    }
}

/// What stands between the markers of a tag.
#[derive(Debug, Clone)]
enum Body {
    Json(String),
    Text(String, Syntax),
}

/// A constrained part of an output.
#[derive(Debug, Clone)]
pub struct Tag {
    begin: Marker,
    body: Body,
    end: Marker,
}

impl Tag {
    /// A tag that holds JSON by a schema.
    pub fn json(begin: Marker, schema: impl Into<String>, end: Marker) -> Self {
        Self { begin, body: Body::Json(schema.into()), end }
    }

    /// A tag that holds a text of a grammar.
    pub fn text(begin: Marker, grammar: impl Into<String>, syntax: Syntax, end: Marker) -> Self {
        Self { begin, body: Body::Text(grammar.into(), syntax), end }
    }

    /// A tag that holds the call of one of several tools, given by name and by the schema of their
    /// arguments: `{"name": "...", "arguments": {...}}`.
    ///
    /// # Errors
    /// [`Kind::BadArgument`] if there is no tool; [`Kind::Syntax`] if a schema is not JSON.
    pub fn tools(begin: Marker, tools: &[(&str, &str)], end: Marker) -> Result<Self> {
        if tools.is_empty() {
            return Err(Error::new(Kind::BadArgument, "there is no tool to call"));
        }
        let mut calls = Vec::new();
        for (name, arguments) in tools {
            let arguments: serde_json::Value =
                serde_json::from_str(arguments).map_err(|error| {
                    let message = format!("the schema of the tool {}: {error}", quote(name));
                    Error::new(Kind::Syntax, message)
                })?;
            calls.push(serde_json::json!({
                "type": "object",
                "properties": {"name": {"const": name}, "arguments": arguments},
                "required": ["name", "arguments"],
                "additionalProperties": false,
            }));
        }
        Ok(Self::json(begin, serde_json::json!({"anyOf": calls}).to_string(), end))
    }
}

/// A reasoning part: its markers, and the most characters between them.
#[derive(Debug, Clone)]
struct Reasoning {
    begin: Marker,
    end: Marker,
    limit: Option<u64>,
    tokens: Option<u32>,
}

/// Free text with tags in it.
#[derive(Debug, Clone, Default)]
pub struct Tags {
    tags: Vec<Tag>,
    reasoning: Option<Reasoning>,
    min: u64,
    max: Option<u64>,
    /// Most characters of each piece of free text.
    limit: Option<u64>,
    only_tags: bool,
}

impl Tags {
    /// Free text without tags.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more kind of tag.
    #[must_use]
    pub fn tag(mut self, tag: Tag) -> Self {
        self.tags.push(tag);
        self
    }

    /// The output begins with a reasoning part of at most so many characters, after which white
    /// space may follow.
    #[must_use]
    pub fn reasoning(mut self, begin: Marker, end: Marker, limit: Option<u64>) -> Self {
        self.reasoning = Some(Reasoning { begin, end, limit, tokens: None });
        self
    }

    /// At most so many tokens begin in the reasoning part, the marker that ends it included. Without
    /// such a part this says nothing.
    #[must_use]
    pub fn reasoning_tokens(mut self, tokens: u32) -> Self {
        if let Some(part) = &mut self.reasoning {
            part.tokens = Some(tokens);
        }
        self
    }

    /// Least number of tags.
    #[must_use]
    pub fn at_least(mut self, count: u64) -> Self {
        self.min = count;
        self
    }

    /// Greatest number of tags.
    #[must_use]
    pub fn at_most(mut self, count: u64) -> Self {
        self.max = Some(count);
        self
    }

    /// Most characters of each piece of free text, markers not counted.
    #[must_use]
    pub fn text_limit(mut self, characters: u64) -> Self {
        self.limit = Some(characters);
        self
    }

    /// No free text but white space between tags.
    #[must_use]
    pub fn only_tags(mut self) -> Self {
        self.only_tags = true;
        self
    }

    /// The grammar of such outputs. The options are for the schemas of tags.
    ///
    /// # Errors
    /// [`Kind::BadArgument`] for a marker without text, a marker that occurs in another tag's first
    /// marker (that tag could never begin), or more tags at least than at most; what compiling the
    /// bodies says.
    pub fn grammar(&self, options: &Options) -> Result<Grammar> {
        self.check()?;
        let mut grammar = Grammar::new(options.limits.clone());
        grammar.whitespace = options.whitespace;
        let free = Free::new(&mut grammar.exprs, self);
        let mut items = Vec::new();
        for tag in &self.tags {
            let body;
            (grammar, body) = match &tag.body {
                Body::Json(schema) => schema::compile_into(grammar, schema, options)?,
                Body::Text(text, syntax) => source::text_into(grammar, text, *syntax, options)?,
            };
            let mut parts = free.up_to(&mut grammar, &tag.begin);
            parts.push(body);
            parts.push(marker(&mut grammar, &tag.end));
            items.push(grammar.add(Node::Seq(parts)));
        }
        let mut whole = Vec::new();
        if let Some(Reasoning { begin, end, limit, tokens }) = &self.reasoning {
            whole.push(marker(&mut grammar, begin));
            let ends = [end.clone()];
            let free = Free::of(&mut grammar.exprs, &ends, *limit);
            let part = free.up_to(&mut grammar, end);
            match *tokens {
                None => whole.extend(part),
                Some(tokens) => {
                    let item = grammar.add(Node::Seq(part));
                    whole.push(grammar.add(Node::Within { item, tokens }));
                }
            }
            whole.push(white_space(&mut grammar));
        }
        let item = grammar.add(Node::Alt(items));
        let (min, max) = (self.min, self.max);
        whole.push(grammar.add(Node::Repeat { item, separator: None, min, max }));
        whole.push(text(&mut grammar, free.without));
        let root = grammar.add(Node::Seq(whole));
        grammar.set_root(root);
        Ok(grammar)
    }

    fn check(&self) -> Result<()> {
        let bad = |message: String| Err(Error::new(Kind::BadArgument, message));
        let begins = || self.tags.iter().map(|tag| &tag.begin);
        let reasoning = self.reasoning.iter().flat_map(|part| [&part.begin, &part.end]);
        let all = begins().chain(self.tags.iter().map(|tag| &tag.end)).chain(reasoning);
        if all
            .clone()
            .any(|marker| matches!(marker, Marker::Text(t) | Marker::Token(t) if t.is_empty()))
        {
            return bad("a marker without text".to_owned());
        }
        if self.max.is_some_and(|max| max < self.min) {
            return bad(format!("at least {} tags, but fewer at most", self.min));
        }
        for (i, own) in begins().enumerate() {
            for (j, other) in begins().enumerate() {
                if let (Marker::Text(own), Marker::Text(other)) = (own, other)
                    && i != j
                    && own != other
                    && own.contains(&**other)
                {
                    let (own, other) = (quote(own), quote(other));
                    return bad(format!("{own} never begins a tag, since {other} is in it"));
                }
            }
        }
        Ok(())
    }
}

/// Free text, in which certain markers do not occur.
struct Free {
    /// Ends where one of these is complete.
    markers: Vec<String>,
    /// A piece without any of them.
    without: ExprId,
    /// What the marker of a piece may follow.
    before: ExprId,
}

impl Free {
    /// The free text around tags.
    fn new(exprs: &mut Exprs, tags: &Tags) -> Self {
        let begins: Vec<Marker> = tags.tags.iter().map(|tag| tag.begin.clone()).collect();
        if !tags.only_tags {
            return Self::of(exprs, &begins, tags.limit);
        }
        let space = spaces(exprs);
        Self { markers: Vec::new(), without: space, before: space }
    }

    /// Text without these markers, of at most so many characters.
    fn of(exprs: &mut Exprs, markers: &[Marker], limit: Option<u64>) -> Self {
        let texts = markers.iter().filter_map(|marker| match marker {
            Marker::Text(text) => Some(text.clone()),
            Marker::Token(_) => None,
        });
        let markers: Vec<String> = texts.collect();
        let before = exprs.repeat(ExprId::ANY_CHAR, 0, limit);
        let occurs = any_of(exprs, &markers, ExprId::ANY);
        let none = exprs.not(occurs);
        let without = exprs.and(&[before, none]);
        Self { markers, without, before }
    }

    /// A piece of text up to and with the first marker, which is this one.
    fn up_to(&self, grammar: &mut Grammar, marker: &Marker) -> Vec<NodeId> {
        match marker {
            Marker::Token(_) => {
                vec![text(grammar, self.without), self::marker(grammar, marker)]
            }
            Marker::Text(own) => {
                let exprs = &mut grammar.exprs;
                let own = exprs.literal(own);
                let ends = exprs.concat(&[self.before, own]);
                let more = exprs.repeat(ExprId::ANY_CHAR, 1, None);
                let goes_on = any_of(exprs, &self.markers, more);
                let whole = exprs.not(goes_on);
                let piece = exprs.and(&[ends, whole]);
                vec![text(grammar, piece)]
            }
        }
    }
}

/// Any text, one of the markers, and then `rest`.
fn any_of(exprs: &mut Exprs, markers: &[String], rest: ExprId) -> ExprId {
    let texts: Vec<&str> = markers.iter().map(String::as_str).collect();
    let some = if texts.is_empty() { ExprId::NEVER } else { exprs.literals(&texts) };
    exprs.concat(&[ExprId::ANY, some, rest])
}

fn text(grammar: &mut Grammar, expr: ExprId) -> NodeId {
    grammar.add(Node::Terminal(Terminal::Text(expr)))
}

fn marker(grammar: &mut Grammar, marker: &Marker) -> NodeId {
    match marker {
        Marker::Text(own) => {
            let own = grammar.exprs.literal(own);
            text(grammar, own)
        }
        Marker::Token(name) => {
            let spec = SpecialSpec::Named(name.clone());
            grammar.add(Node::Terminal(Terminal::Special(spec)))
        }
    }
}

/// A little white space.
fn spaces(exprs: &mut Exprs) -> ExprId {
    let space = exprs.class(&[(' ', ' '), ('\n', '\n')]);
    exprs.repeat(space, 0, Some(8))
}

fn white_space(grammar: &mut Grammar) -> NodeId {
    let spaces = spaces(&mut grammar.exprs);
    text(grammar, spaces)
}
