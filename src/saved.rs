//! Compiled constraints as files.
//!
//! A file holds the grammar that a schema or a text became (with the document that its values are pieces of),
//! the hash of the vocabulary that it was compiled for, and a note of the caller's. It does not hold what
//! sequences learn: token tables are made at their first visit, as ever.
//!
//! ```
//! # use constrain::{Constraint, Limits, schema, vocab::{Token, Vocabulary}};
//! # let mut tokens: Vec<Token> = (0..=255u8).map(|byte| Token::Text([byte].into())).collect();
//! # tokens.push(Token::Special("<end>".into()));
//! # let vocabulary = Vocabulary::new(tokens, vec![256])?;
//! use constrain::saved::Saved;
//!
//! let grammar = schema::compile(r#"{"enum": ["yes", "no"]}"#, &schema::Options::default())?;
//! let bytes = Constraint::new(&grammar, &vocabulary)?.save(b"my note")?;
//!
//! let saved = Saved::read(&bytes)?;
//! assert_eq!(saved.note(), b"my note");
//! let mut matcher = saved.constraint(&vocabulary, &Limits::default())?.matcher();
//! assert!(matcher.accept_bytes(br#""yes""#).is_ok());
//! # Ok::<(), constrain::Error>(())
//! ```
//!
//! # Invariants
//! * Whatever the bytes are, reading them is an error or gives a constraint that keeps what a constraint
//!   promises, within the reader's limits: the checksum finds accidents, the reader finds the rest.
//! * A constraint that was read gives the masks of the one that was written.

use std::sync::Arc;

use crate::codec::{Reader, Writer, damaged};
use crate::constraint::Constraint;
use crate::error::{Error, Kind, Result};
use crate::grammar::Grammar;
use crate::limits::Limits;
use crate::vocab::Vocabulary;

const MAGIC: &[u8; 8] = b"cstr-con";

/// Of this form of the file, and of what grammars mean.
const VERSION: u32 = 1;

/// A file with a compiled constraint. Only the envelope was looked at so far.
#[derive(Debug, Clone)]
pub struct Saved<'a> {
    vocabulary: [u8; 32],
    note: &'a [u8],
    grammar: &'a [u8],
}

impl Constraint {
    /// The constraint as bytes for a file, with a note for whoever reads it.
    ///
    /// # Errors
    /// None for grammars that were compiled from a schema or a text.
    pub fn save(&self, note: &[u8]) -> Result<Vec<u8>> {
        let mut grammar = Writer::default();
        self.basis().program.grammar().save(&mut grammar)?;
        let mut out = Writer::default();
        out.bytes(&self.vocabulary().hash());
        out.bytes(note);
        out.bytes(&grammar.into_bytes());
        Ok(out.seal(MAGIC, VERSION))
    }
}

impl<'a> Saved<'a> {
    /// Opens a file.
    ///
    /// # Errors
    /// [`Kind::BadArtefact`] if it is no such file, of another version, or damaged.
    pub fn read(bytes: &'a [u8]) -> Result<Self> {
        let mut from = Reader::open(bytes, MAGIC, VERSION)?;
        let vocabulary = from.bytes()?.try_into().map_err(|_| damaged("a hash has 32 bytes"))?;
        let (note, grammar) = (from.bytes()?, from.bytes()?);
        from.finish()?;
        Ok(Self { vocabulary, note, grammar })
    }

    /// The note that was written with it.
    pub fn note(&self) -> &'a [u8] {
        self.note
    }

    /// The hash of the vocabulary that it was compiled for: [`Vocabulary::hash`].
    pub fn vocabulary(&self) -> [u8; 32] {
        self.vocabulary
    }

    /// That it was compiled for this vocabulary.
    ///
    /// # Errors
    /// [`Kind::BadArtefact`] if not.
    pub fn check(&self, vocabulary: &Vocabulary) -> Result<()> {
        if self.vocabulary == vocabulary.hash() {
            return Ok(());
        }
        let message = "the constraint was compiled for another vocabulary";
        Err(Error::new(Kind::BadArtefact, message)
            .help("compile it for the tokenizer of this model"))
    }

    /// The grammar in it. What of the limits decides what matches (the depth of the output, the digits of
    /// a number) is as it was when it was compiled.
    ///
    /// # Errors
    /// [`Kind::BadArtefact`] if the bytes are no grammar; [`Kind::TooComplex`] beyond the limits.
    pub fn grammar(&self, limits: &Limits) -> Result<Grammar> {
        let mut from = Reader::new(self.grammar);
        let grammar = Grammar::load(&mut from, limits)?;
        from.finish()?;
        Ok(grammar)
    }

    /// The constraint.
    ///
    /// # Errors
    /// As [`Saved::check`], [`Saved::grammar`] and [`Constraint::new`].
    pub fn constraint(&self, vocabulary: &Vocabulary, limits: &Limits) -> Result<Constraint> {
        self.check(vocabulary)?;
        Constraint::compile(Arc::new(self.grammar(limits)?), vocabulary, None)
    }
}
