//! Compiled schemas as files in a folder, for processes that come after this one.
//!
//! By hand, room for 10 MB: two files of 4 MB each are there, a third of 3 MB is written; the oldest goes.
//!
//! # Invariants
//! * A file appears when it is whole: it is written under another name first.
//! * The bound holds after every file that is written, but for that file.
//! * What a file says is checked by whoever reads it, see [`constrain::serve::Store`].

use constrain::serve::Store;
use constrain::{Error, Kind, Result};
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

/// A folder of compiled schemas.
#[derive(Debug)]
pub struct Folder {
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

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name).with_extension(ENDING)
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

impl Store for Folder {
    fn load(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = self.file(name);
        match fs::metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Ok(file) if file.len() > FILE_MAX => {
                let message = format!("{} is too large to be read", path.display());
                return Err(Error::new(Kind::TooLarge, message));
            }
            _ => {}
        }
        fs::read(&path).map(Some).map_err(|error| failed("read", &path, &error))
    }

    fn save(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.file(name);
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
}

fn failed(action: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::new(Kind::Io, format!("cannot {action} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_holds_what_it_may() -> Result<()> {
        let path = std::env::temp_dir().join(format!("constrain-folder-{}", std::process::id()));
        let folder = Folder::open(&path, 1)?;
        for name in ["a", "b", "c"] {
            assert!(folder.load(name)?.is_none());
            folder.save(name, name.as_bytes())?;
            assert_eq!(
                fs::read_dir(&path).map_err(|error| failed("list", &path, &error))?.count(),
                1
            );
            assert_eq!(folder.load(name)?.as_deref(), Some(name.as_bytes()));
        }
        // A folder that cannot be made is an error, and so is one that cannot be written later.
        assert!(Folder::open(&path.join("c.constraint/x"), 1).is_err());
        fs::remove_dir_all(&path).map_err(|error| failed("remove", &path, &error))?;
        assert!(folder.save("d", b"d").is_err());
        Ok(())
    }
}
