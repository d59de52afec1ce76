//! Saved constraints in a folder, for processes that come after this one.
//!
//! A file is named by the hash of its content (what it was made from: text, options, vocabulary, version of this library) and holds
//! all of that as its note. By hand: asked for content C, the file `3f9a...constraint` is read; its checksum is right, its note is C, so
//! the grammar in it is made ready. Were its note D (two contents with one hash, or a file that somebody renamed), or
//! its checksum wrong, C would be compiled, and the file written anew.
//!
//! # Invariants
//! * A file is believed only with a right checksum and all of the content in it, and is read like any
//!   [saved constraint](crate::saved). That its grammar is that of its note nothing proves: whoever may write into the folder
//!   can decide what is generated. It is for the user's own files.
//! * Nothing that goes wrong here is an error of whoever asks: the constraint is compiled, and there is a warning.
//! * A file appears when it is whole. The bound holds after every file that is written, but for that file.

use crate::constraint::Constraint;
use crate::error::{Error, Kind, Result, quote};
use crate::limits::Limits;
use crate::saved::Saved;
use crate::vocab::Vocabulary;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// How the names of its files end.
const ENDING: &str = "constraint";

/// Largest file that is read.
const FILE_MAX: u64 = 256 << 20;

/// Files that were begun by this process: each has a name of its own.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// A folder of saved constraints.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Most bytes of its files.
    limit: u64,
}

impl Folder {
    /// A folder, which is made if it is not there.
    ///
    /// # Errors
    /// [`Kind::Io`] if it cannot be.
    pub fn open(path: &Path, limit: u64) -> Result<Self> {
        fs::create_dir_all(path).map_err(|error| failed("make the folder", path, &error))?;
        Ok(Self { path: path.to_path_buf(), limit })
    }

    fn file(&self, note: &[u8]) -> PathBuf {
        let name = &blake3::hash(note).to_hex()[..40];
        self.path.join(name).with_extension(ENDING)
    }

    /// The constraint with this note, if it is there.
    ///
    /// # Errors
    /// Its file cannot be read, is damaged, or is something else.
    pub fn load(
        &self,
        note: &[u8],
        vocabulary: &Vocabulary,
        limits: &Limits,
    ) -> Result<Option<Constraint>> {
        let path = self.file(note);
        let of_file = |error: Error| {
            let name = path.file_name().unwrap_or_default();
            let message = format!("{}: {}", quote(&name.to_string_lossy()), error.message());
            Error::new(error.kind().clone(), message)
        };
        match fs::metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Ok(file) if file.len() > FILE_MAX => {
                return Err(of_file(Error::new(Kind::TooLarge, "the file is too large")));
            }
            _ => {}
        }
        let bytes = fs::read(&path).map_err(|error| failed("read", &path, &error))?;
        let saved = Saved::read(&bytes).map_err(of_file)?;
        if saved.note() != note {
            let message = "the file is of another constraint";
            return Err(of_file(Error::new(Kind::BadArtefact, message)));
        }
        saved.constraint(vocabulary, limits).map(Some).map_err(of_file)
    }

    /// Writes a constraint with its note, and removes the oldest files until the rest is within the bound.
    ///
    /// # Errors
    /// [`Kind::Io`] if that fails.
    pub fn save(&self, note: &[u8], constraint: &Constraint) -> Result<()> {
        let (path, bytes) = (self.file(note), constraint.save(note)?);
        let number = BEGUN.fetch_add(1, Ordering::Relaxed);
        let new = path.with_extension(format!("{}-{number}.new", std::process::id()));
        let written = fs::write(&new, bytes).and_then(|()| fs::rename(&new, &path));
        written.map_err(|error| {
            // What was begun is of no use to anybody.
            let _ = fs::remove_file(&new);
            failed("write", &path, &error)
        })?;
        self.trim(&path).map_err(|error| failed("make room in", &self.path, &error))
    }

    /// Removes the oldest files but one, until the rest is within the bound.
    fn trim(&self, kept: &Path) -> std::io::Result<()> {
        let mut files: Vec<(SystemTime, PathBuf, u64)> = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            // Another process may have removed it meanwhile.
            let Ok(file) = fs::metadata(&path) else { continue };
            if path.extension().is_some_and(|ending| ending == ENDING) {
                files.push((file.modified().unwrap_or(SystemTime::UNIX_EPOCH), path, file.len()));
            }
        }
        let mut bytes: u64 = files.iter().map(|file| file.2).sum();
        files.sort();
        for (_, path, len) in files.iter().filter(|(_, path, _)| path != kept) {
            if bytes <= self.limit {
                break;
            }
            match fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => bytes -= len,
            }
        }
        Ok(())
    }
}

fn failed(action: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::new(Kind::Io, format!("cannot {action} {}: {error}", quote(&path.to_string_lossy())))
}
