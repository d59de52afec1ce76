//! The output, which is the journal: what stands there is done, and nothing else is.
//!
//! Each row is one write of one line to the end of the file, so whatever ends the program leaves whole rows and
//! perhaps a torn last one, which the next run cuts off. A row has its document's key. By hand, a run of five documents is killed in the
//! third row; the next one finds `{..1..}\n{..2..}\n{..3`, cuts the file after the second line break, and does documents 3 to 5.
//!
//! A file has one writer: it is locked before it is looked at, and until the end. All readings go through the handle
//! that holds the lock, as on some systems no other may read a locked file.

use crate::report::Failure;
use constrain::error::quote;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// An output file that rows are added to.
pub struct Journal {
    path: PathBuf,
    /// With the lock.
    file: File,
    /// The file in whose place a copy came: whoever opened it before must find it locked, not write what nobody will see.
    #[expect(dead_code, reason = "it holds a lock")]
    replaced: Option<File>,
    /// The keys of its rows; whether they are values.
    done: HashMap<String, bool>,
}

impl Journal {
    /// Opens an output, or begins one; cuts off a torn row.
    ///
    /// # Errors
    /// It cannot be written, another process is writing it, or it is something else than an output.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let failure = |error| Failure::io("write", path, &error);
        // What has no end, like a device, cannot be read again.
        if path.metadata().is_ok_and(|old| !old.is_file()) {
            let error = std::io::Error::other("not a regular file, which could be continued");
            return Err(failure(error));
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(path).map_err(failure)?;
        lock(&file, path)?;
        Self::of(file, path)
    }

    /// What stands in a file that is locked.
    fn of(file: File, path: &Path) -> Result<Self, Failure> {
        let failure = |error| Failure::io("write", path, &error);
        let (mut done, mut whole) = (HashMap::new(), 0);
        for_each_line(&file, path, &mut |line| {
            let stranger = || stranger(path);
            if line.last() != Some(&b'\n') {
                return is_torn(line).then_some(()).ok_or_else(stranger);
            }
            let (key, is_value) = row(line).ok_or_else(stranger)?;
            whole += line.len() as u64;
            done.insert(key, is_value);
            Ok(())
        })?;
        file.set_len(whole).map_err(failure)?;
        Ok(Self { path: path.to_path_buf(), file, replaced: None, done })
    }

    /// The keys of the documents that have their rows.
    pub fn keys(&self) -> HashSet<String> {
        self.done.keys().cloned().collect()
    }

    /// Its rows that are values, and those that are errors.
    pub fn counts(&self) -> (usize, usize) {
        let values = self.done.values().filter(|is_value| **is_value).count();
        (values, self.done.len() - values)
    }

    /// Refuses an output with rows of other documents than these.
    pub fn check(&self, is_known: &dyn Fn(&str) -> bool) -> Result<(), Failure> {
        let strangers = self.done.keys().filter(|key| !is_known(key)).count();
        match strangers {
            0 => Ok(()),
            count => Err(Failure::new(format!(
                "{count} rows of {} are of other documents, another schema or other settings",
                quote(&self.path.to_string_lossy())
            ))
            .help("name another file with --output, or remove this one")),
        }
    }

    /// Removes the error rows, so that their documents are tried again: in a copy that takes the file's place.
    pub fn drop_errors(self) -> Result<Self, Failure> {
        let Self { path, file, .. } = self;
        let copy = copy(&path);
        let failure = |error| Failure::io("write", &copy, &error);
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true);
        let new = options.open(&copy).map_err(failure)?;
        lock(&new, &copy)?;
        new.set_len(0).map_err(failure)?;
        let mut out = BufWriter::new(&new);
        for_each_line(&file, &path, &mut |line| match row(line) {
            Some((_, true)) => out.write_all(line).map_err(failure),
            _ => Ok(()),
        })?;
        out.into_inner()
            .map_err(|error| failure(error.into_error()))?
            .sync_all()
            .map_err(failure)?;
        std::fs::rename(&copy, &path).map_err(failure)?;
        Ok(Self { replaced: Some(file), ..Self::of(new, &path)? })
    }

    /// Calls `f` with its rows.
    pub fn for_each_row(
        &self,
        f: &mut dyn FnMut(Value) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for_each_line(&self.file, &self.path, &mut |line| match serde_json::from_slice(line) {
            Ok(row) => f(row),
            Err(error) => Err(Failure::new(format!("a row of the output is not JSON: {error}"))),
        })
    }

    /// Adds the row of a document, without its line break.
    pub fn add(&mut self, key: &str, is_value: bool, mut row: String) -> Result<(), Failure> {
        row.push('\n');
        let written = self.file.write_all(row.as_bytes());
        written.map_err(|error| Failure::io("write", &self.path, &error))?;
        self.done.insert(key.to_owned(), is_value);
        Ok(())
    }
}

/// Locks an output, as long as it is open. Where files cannot be locked (some network file systems), it is written all
/// the same.
fn lock(file: &File, path: &Path) -> Result<(), Failure> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let name = quote(&path.to_string_lossy());
            Err(Failure::new(format!("another run of this program is writing {name}")).help(
                "wait for its end, or name another file with --output: to share the work, each of N processes takes \
                 --shard I/N and an output of its own",
            ))
        }
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// The failure for an output that somebody else wrote.
pub fn stranger(path: &Path) -> Failure {
    let name = quote(&path.to_string_lossy());
    Failure::new(format!("{name} holds something else than rows of this program"))
        .help("name another file with --output, or remove this one")
}

/// Where an output is written anew.
pub fn copy(path: &Path) -> PathBuf {
    let mut name = path.to_path_buf().into_os_string();
    name.push(".new");
    name.into()
}

/// Calls `f` with the lines of an output, with their line breaks.
fn for_each_line(
    file: &File,
    path: &Path,
    f: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let failure = |error| Failure::io("read", path, &error);
    let mut reader = BufReader::new(file);
    std::io::Seek::rewind(&mut reader).map_err(failure)?;
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).map_err(failure)? > 0 {
        f(&line)?;
        line.clear();
    }
    Ok(())
}

/// Whether a last line without its line break can be the beginning of a row, which may be cut off: somebody else's file of
/// one line must not be. Where a machine lost its power, zeros may stand for what was not written.
fn is_torn(line: &[u8]) -> bool {
    let begins = line.iter().zip(HEAD).all(|(byte, head)| byte == head);
    let is_whole = serde_json::from_slice::<Value>(line).is_ok();
    (begins && (!is_whole || row(line).is_some())) || line.iter().all(|&byte| byte == 0)
}

/// How a row begins.
const HEAD: &[u8] = b"{\"id\":";

/// The key of a row, and whether it is a value.
fn row(line: &[u8]) -> Option<(String, bool)> {
    let row: Value = serde_json::from_slice(line).ok()?;
    let key = row.get("key")?.as_str()?.to_owned();
    match (row.get("value"), row.get("error")) {
        (Some(_), None) => Some((key, true)),
        (None, Some(_)) => Some((key, false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_a_torn_row_is_cut_off() {
        for torn in ["{", "{\"id\":1,\"ke", "{\"id\":1,\"key\":\"k\",\"value\":1}", "\0\0"] {
            assert!(is_torn(torn.as_bytes()), "{torn}");
        }
        for stranger in
            ["hello", "[", "{\"a\":", "{\"id\":1,\"text\":\"a document\"}", "{ \"id\": 1"]
        {
            assert!(!is_torn(stranger.as_bytes()), "{stranger}");
        }
    }
}
