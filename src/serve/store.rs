//! Where saved constraints are kept between processes.
//!
//! A cache writes nothing itself: it hands named bytes to a [`Store`] and asks for them again. The program keeps a folder of files; a
//! service may have a database.
//!
//! The name is the hash of the content (what a constraint was made from: text, options, vocabulary, version of this library), and the
//! bytes hold all of that as their note. By hand: asked for content C, the store is asked for `3f9a...`; the checksum of
//! the bytes is right, their note is C, so the grammar in them is made ready. Were the note D (two contents with one hash), or the
//! checksum wrong, C would be compiled, and stored anew.
//!
//! # Invariant
//! Bytes are believed only with a right checksum and all of the content in them, and are read like any
//! [saved constraint](crate::saved). That their grammar is that of their note nothing proves: whoever may write into the store
//! can decide what is generated.

use crate::constraint::Constraint;
use crate::error::{Error, Kind, Result, quote};
use crate::limits::Limits;
use crate::saved::Saved;
use crate::vocab::Vocabulary;

/// Bytes by name, kept for processes that come after this one. Names are forty hexadecimal digits.
///
/// # Errors
/// Whatever goes wrong is a warning of the cache ([`crate::serve::ConstraintCache::take_warnings`]): constraints are
/// compiled instead.
pub trait Store: Send + Sync {
    /// What was saved under a name last, if it is still there.
    ///
    /// # Errors
    /// It is there and cannot be read.
    fn load(&self, name: &str) -> Result<Option<Vec<u8>>>;

    /// Keeps bytes under a name, in place of what was there.
    ///
    /// # Errors
    /// They cannot be kept.
    fn save(&self, name: &str, bytes: &[u8]) -> Result<()>;
}

/// The name of what is made from a content.
fn name(note: &[u8]) -> String {
    blake3::hash(note).to_hex()[..40].to_owned()
}

/// The constraint with this note, if it is there.
///
/// # Errors
/// It cannot be read, is damaged, or is something else.
pub(super) fn load(
    store: &dyn Store,
    note: &[u8],
    vocabulary: &Vocabulary,
    limits: &Limits,
) -> Result<Option<Constraint>> {
    let name = name(note);
    let Some(bytes) = store.load(&name)? else { return Ok(None) };
    let of_name = |error: Error| {
        let message = format!("{}: {}", quote(&name), error.message());
        Error::new(error.kind().clone(), message)
    };
    let saved = Saved::read(&bytes).map_err(of_name)?;
    if saved.note() != note {
        let message = "this is another constraint";
        return Err(of_name(Error::new(Kind::BadArtefact, message)));
    }
    saved.constraint(vocabulary, limits).map(Some).map_err(of_name)
}

/// Stores a constraint with its note.
///
/// # Errors
/// It cannot be saved.
pub(super) fn save(store: &dyn Store, note: &[u8], constraint: &Constraint) -> Result<()> {
    store.save(&name(note), &constraint.save(note)?)
}
