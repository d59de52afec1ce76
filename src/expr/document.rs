//! The document that values are taken from, and where in it they stand.
//!
//! A [`Document`] is a text with its suffix automaton ([`super::suffix`]), made once and shared by clones.
//! [`Exprs::span`](super::Exprs::span) turns it into an expression: all pieces of the text that
//! have a character. From there on it is an expression like any other: it can be intersected with a
//! pattern, bounded in length, united with a list of words, spelled with escapes.
//!
//! ```
//! use constrain::expr::Document;
//!
//! let document = Document::new("Zoë met Zoë.")?;
//! let places = document.occurrences("Zoë");
//! assert_eq!(places.len(), 2);
//! assert_eq!((places[1].chars.clone(), places[1].bytes.clone()), (8..11, 9..13));
//! assert!(document.occurrences("Zoe").is_empty());
//! # Ok::<(), constrain::Error>(())
//! ```
use super::suffix::Automaton;
use crate::error::{Error, Kind, Result};
use crate::limits::Limits;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A text that values are taken from. Cloning it copies one pointer.
#[derive(Clone)]
pub struct Document(Arc<Inner>);

struct Inner {
    text: Box<str>,
    automaton: Automaton,
    /// Whether it stands for any text.
    unknown: bool,
}

/// Where a piece of a [`Document`] stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// In code points.
    pub chars: Range<usize>,
    /// In bytes of UTF-8.
    pub bytes: Range<usize>,
}

impl Document {
    /// The document of this text, within the default limit of [`Limits::document_bytes`].
    ///
    /// # Errors
    /// [`Kind::TooLarge`] for a longer text.
    pub fn new(text: &str) -> Result<Self> {
        Self::within(text, &Limits::default())
    }

    /// The same within other limits.
    ///
    /// # Errors
    /// [`Kind::TooLarge`] for a text of more than [`Limits::document_bytes`].
    pub fn within(text: &str, limits: &Limits) -> Result<Self> {
        // State numbers have 31 bits, whatever the limits say.
        let limit = limits.document_bytes.min(1 << 30);
        if text.len() > limit {
            let message = format!("the document has {} bytes, more than {limit}", text.len());
            return Err(Error::new(Kind::TooLarge, message)
                .help("split the document, or raise Limits::document_bytes"));
        }
        Ok(Self::of(text, false))
    }

    /// A document that is not known yet: any string with a character is a piece of it. So a schema can
    /// be checked, and compiled for a look at it, before there is a document.
    pub fn unknown() -> Self {
        Self::of("", true)
    }

    fn of(text: &str, unknown: bool) -> Self {
        Self(Arc::new(Inner { text: text.into(), automaton: Automaton::new(text), unknown }))
    }

    /// Whether it stands for any text.
    pub fn is_unknown(&self) -> bool {
        self.0.unknown
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Bytes of memory, about.
    pub fn bytes(&self) -> usize {
        self.0.text.len() + self.0.automaton.bytes()
    }

    pub(super) fn automaton(&self) -> &Automaton {
        &self.0.automaton
    }

    /// Whether both are the same text.
    pub(super) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || self.0.unknown == other.0.unknown && self.0.text == other.0.text
    }

    /// All places at which `piece` stands, in order; they may overlap. The empty piece stands nowhere.
    pub fn occurrences(&self, piece: &str) -> Vec<Place> {
        let Some(first) = piece.chars().next() else { return Vec::new() };
        let text = self.text();
        let length = piece.chars().count();
        let mut places = Vec::new();
        // Code points before the byte up to which was counted.
        let (mut counted, mut chars) = (0, 0);
        let mut from = 0;
        while let Some(found) = text.get(from..).and_then(|rest| rest.find(piece)) {
            let start = from + found;
            chars += text.get(counted..start).map_or(0, |between| between.chars().count());
            counted = start;
            let bytes = start..start + piece.len();
            places.push(Place { chars: chars..chars + length, bytes });
            from = start + first.len_utf8();
        }
        places
    }
}

impl fmt::Debug for Document {
    /// With the whole text: what is equal when it is printed is equal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_unknown() {
            true => f.write_str("Document::unknown()"),
            false => f.debug_tuple("Document").field(&self.text()).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_overlap_and_are_counted_in_both_ways() {
        let document = Document::new("ééé").unwrap();
        let places = document.occurrences("éé");
        let place = |chars, bytes| Place { chars, bytes };
        assert_eq!(places, [place(0..2, 0..4), place(1..3, 2..6)]);
        assert_eq!(document.occurrences(""), []);
        assert_eq!(Document::new("").unwrap().occurrences("a"), []);
    }

    #[test]
    fn long_documents_are_refused() {
        let limits = Limits { document_bytes: 3, ..Limits::default() };
        assert!(Document::within("abc", &limits).is_ok());
        let error = Document::within("abcd", &limits).unwrap_err();
        assert_eq!(error.kind(), &Kind::TooLarge);
    }
}
