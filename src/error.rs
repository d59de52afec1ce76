//! Errors: what went wrong, where, and what to do about it.
//!
//! Every fallible function of the library returns [`Error`]. Its [`Kind`] is what a program
//! matches on; its [`Place`] says where in the input (a JSON pointer, or a line and a column);
//! its message and help are for people. Text quoted from the input is cut to 80 characters and
//! escaped by [`quote`], so that an error never injects terminal controls and never carries a
//! whole document. A whole error renders to at most about 1 KiB.

use std::fmt;

/// Result of the library's fallible functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of thing went wrong. New kinds may be added.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The input text is not well-formed (JSON, a keyword's value, options).
    Syntax,
    /// Nesting deeper than the limit.
    TooDeep,
    /// Input larger than the limit.
    TooLarge,
    /// A legal construct that this version does not enforce.
    Unsupported {
        /// The keyword or construct.
        keyword: String,
    },
    /// Nothing satisfies the schema or the grammar.
    Unsatisfiable,
    /// Compiling would exceed a budget of [`crate::limits::Limits`].
    TooComplex {
        /// Which budget.
        what: &'static str,
        /// Its value.
        limit: u64,
    },
    /// A reference that does not resolve.
    BadRef,
    /// A regular expression that does not parse.
    BadRegex,
    /// A text grammar that does not parse or refers to what does not exist.
    BadGrammar,
    /// A vocabulary that cannot be used.
    BadVocabulary,
    /// A saved constraint that is damaged, or of another version or vocabulary.
    BadArtefact,
    /// The token budget is below what the shortest document needs.
    BudgetTooSmall {
        /// The least number of tokens that suffices.
        min: u64,
    },
    /// A token or byte that the constraint does not allow; the state is unchanged.
    Rejected,
    /// No token is allowed although the document is not finished. Must be unreachable.
    DeadEnd,
    /// An argument outside its range.
    BadArgument,
    /// The model failed, or returned logits that cannot be used.
    Model,
    /// Too many requests wait already: try again later.
    Overloaded {
        /// How many may wait.
        limit: usize,
    },
    /// The caller cancelled the work.
    Cancelled,
    /// Reading or writing failed.
    Io,
}

/// Where in the input an error lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In a JSON document: the pointer (RFC 6901), and line and column (both from 1) if known.
    Pointer {
        /// JSON pointer, `""` for the whole document.
        pointer: String,
        /// Line and column of the value, counted from 1.
        line_column: Option<(u32, u32)>,
    },
    /// In a text: line and column, both from 1; columns count characters.
    Text {
        /// Line from 1.
        line: u32,
        /// Column from 1.
        column: u32,
    },
    /// At a byte offset of an output.
    Offset(usize),
}

/// An error of the library: a [`Kind`], a message, and where known a [`Place`] and a remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: Kind,
    message: String,
    place: Option<Place>,
    help: Option<String>,
}

impl Error {
    /// An error of `kind` with a message that is a clause without a final full stop.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), place: None, help: None }))
    }

    /// The same error at the given JSON pointer; an earlier place is kept.
    #[must_use]
    pub fn at_pointer(self, pointer: impl Into<String>) -> Self {
        self.at(Place::Pointer { pointer: pointer.into(), line_column: None })
    }

    /// The same error at a line and column (from 1); an earlier place is kept.
    #[must_use]
    pub fn at_line(self, line: u32, column: u32) -> Self {
        self.at(Place::Text { line, column })
    }

    /// The same error at `place`, unless it has one already: the innermost place is the best.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.0.place.get_or_insert(place);
        self
    }

    /// The same error with a remedy, a sentence such as "raise --max-tokens".
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> &Kind {
        &self.0.kind
    }

    /// The message alone.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Where it went wrong, if known.
    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    /// What to do about it, if known.
    pub fn remedy(&self) -> Option<&str> {
        self.0.help.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match &self.0.place {
            Some(Place::Pointer { pointer, line_column }) => {
                match pointer.as_str() {
                    "" => f.write_str(" (at the root")?,
                    pointer => write!(f, " (at {}", shortened(pointer))?,
                }
                if let Some((line, column)) = line_column {
                    write!(f, ", line {line}, column {column}")?;
                }
                f.write_str(")")?;
            }
            Some(Place::Text { line, column }) => write!(f, " (line {line}, column {column})")?,
            Some(Place::Offset(offset)) => write!(f, " (at byte {offset})")?,
            None => {}
        }
        match &self.0.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::new(Kind::Io, error.to_string())
    }
}

/// A pointer, escaped but for quotes; of a long one the beginning and the end.
fn shortened(pointer: &str) -> String {
    const MOST: usize = 80;
    let escaped = |c: char| match c {
        '\'' | '"' => c.to_string(),
        c => c.escape_debug().to_string(),
    };
    let mut chars = pointer.chars();
    let (mut begin, mut end) = (String::new(), Vec::new());
    while begin.len() < MOST {
        let Some(c) = chars.next() else { return begin };
        begin += &escaped(c);
    }
    let mut length = 0;
    while length < MOST {
        let Some(c) = chars.next_back() else { break };
        end.push(escaped(c));
        length += end.last().map_or(0, String::len);
    }
    let gap = if chars.next().is_some() { "…" } else { "" };
    end.reverse();
    format!("{begin}{gap}{}", end.concat())
}

/// `text` in double quotes, escaped, cut to 80 characters, or fewer if most must be escaped.
///
/// ```
/// assert_eq!(constrain::error::quote("a\n\u{1b}[2J"), r#""a\n\u{1b}[2J""#);
/// ```
pub fn quote(text: &str) -> String {
    let mut chars = text.chars();
    let mut out = String::from('"');
    for c in chars.by_ref().take(80) {
        if out.len() > 320 {
            return out + "…\"";
        }
        match c {
            '\'' => out.push(c),
            c => out.extend(c.escape_debug()),
        }
    }
    out.push_str(if chars.next().is_some() { "…\"" } else { "\"" });
    out
}
