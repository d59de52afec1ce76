//! Reading what the user names, and writing the result: files, `-`, standard output.

use crate::report::{Failure, Source};
use constrain::error::quote;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// Most bytes that a text input may have: more is a mistake, not a prompt.
const INPUT_BYTES_MAX: u64 = 64 << 20;

/// The text of a file, or of standard input for `-`.
pub fn read(path: &Path) -> Result<Source, Failure> {
    if path == Path::new("-") {
        return read_stdin();
    }
    let file = std::fs::File::open(path).map_err(|error| {
        let failure = Failure::io("read", path, &error);
        match error.kind() {
            ErrorKind::NotFound => failure.help("check the path; `-` reads standard input"),
            _ => failure,
        }
    })?;
    let bytes = read_bounded(file).map_err(|error| Failure::io("read", path, &error))?;
    source(path.to_string_lossy().into_owned(), bytes)
}

/// The bytes of a file.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error| Failure::io("read", path, &error);
    let bytes = read_bounded(std::fs::File::open(path).map_err(failed)?).map_err(failed)?;
    match bytes.len() as u64 > INPUT_BYTES_MAX {
        true => Err(Failure::new(format!("{} is too large", quote(&path.to_string_lossy())))),
        false => Ok(bytes),
    }
}

/// All of standard input.
pub fn read_stdin() -> Result<Source, Failure> {
    let bytes = read_bounded(std::io::stdin())
        .map_err(|error| Failure::new(format!("cannot read standard input: {error}")))?;
    source("standard input".to_string(), bytes)
}

fn read_bounded(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn source(name: String, bytes: Vec<u8>) -> Result<Source, Failure> {
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        let limit = INPUT_BYTES_MAX >> 20;
        return Err(Failure::new(format!("{} is larger than {limit} MiB", quote(&name)))
            .help("give a smaller text"));
    }
    match String::from_utf8(bytes) {
        // Editors on some systems put a byte order mark in front; it is no part of the text.
        Ok(text) => match text.strip_prefix('\u{feff}') {
            Some(rest) => Ok(Source { name, text: rest.to_string() }),
            None => Ok(Source { name, text }),
        },
        Err(error) => Err(Failure::new(format!(
            "{} is not UTF-8 text (byte {})",
            quote(&name),
            error.utf8_error().valid_up_to()
        ))
        .help("convert it, for example with `iconv -t UTF-8`")),
    }
}

/// The JSON value on a line of a file, or what is wrong with that line: its number is the file's, not the value's.
pub fn json_line(line: &[u8], number: u64) -> Result<serde_json::Value, String> {
    let text = std::str::from_utf8(line).map_err(|error| {
        format!("line {number} is not UTF-8 text (byte {})", error.valid_up_to())
    })?;
    serde_json::from_str(text).map_err(|error| {
        let said = error.to_string();
        let what = said.rsplit_once(" at line ").map_or(&*said, |(what, _)| what);
        format!("line {number} is not JSON: {what} at column {}", error.column())
    })
}

/// That a file can be written where it is to be written at the end: better to know before hours of work.
pub fn check_place_of(path: &Path) -> Result<(), Failure> {
    if path.is_dir() {
        return Err(Failure::io("write", path, &std::io::Error::from(ErrorKind::IsADirectory)));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.map(std::fs::metadata).transpose() {
        Ok(None) => Ok(()),
        Ok(Some(folder)) if folder.is_dir() => Ok(()),
        Ok(Some(_)) => {
            Err(Failure::io("write", path, &std::io::Error::from(ErrorKind::NotADirectory)))
        }
        Err(error) => Err(Failure::io("write", path, &error)),
    }
}

/// Refuses an output that is one of the files that are read, or another output: it would be lost.
pub fn keep_apart<'a>(
    output: &Path,
    others: impl IntoIterator<Item = &'a Path>,
) -> Result<(), Failure> {
    let real = real_path(output);
    match others.into_iter().find(|other| real_path(other) == real) {
        None => Ok(()),
        Some(other) => {
            let [output, other] = [output, other].map(|path| quote(&path.to_string_lossy()));
            let message = format!("writing {output} would overwrite {other}");
            Err(Failure::new(message).help("name another file for the output"))
        }
    }
}

/// A path without links and detours; the file need not be there yet.
pub fn real_path(path: &Path) -> PathBuf {
    let by_folder = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = std::fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
        Some(folder.join(path.file_name()?))
    };
    std::fs::canonicalize(path).ok().or_else(by_folder).unwrap_or_else(|| path.to_path_buf())
}

/// Writes to standard output and flushes it.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::BrokenPipe,
        _ => Failure::new(format!("cannot write to standard output: {error}")),
    })
}

/// Says something on standard error; a closed standard error is no reason to stop.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
