//! Reading what the user names, and writing the result: files, `-`, standard output.
//!
//! `-` is standard input wherever a text is read, once: two inputs that are both `-` are refused, as the second would
//! be empty. No output is `-`: standard output carries the result alone.

use crate::report::{Failure, Source};
use constrain::error::quote;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Most bytes that a text input may have: more is a mistake, not a prompt.
const INPUT_BYTES_MAX: u64 = 64 << 20;

/// Whether a path stands for standard input.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// What an input is called in messages.
pub fn name(path: &Path) -> String {
    match is_stdin(path) {
        true => STDIN.to_string(),
        false => path.to_string_lossy().into_owned(),
    }
}

/// The text of a file, or of standard input for `-`.
pub fn read(path: &Path) -> Result<Source, Failure> {
    source(name(path), read_bytes(path)?)
}

/// The bytes of a file, or of standard input for `-`.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    if is_stdin(path) {
        return stdin();
    }
    let file = std::fs::File::open(path).map_err(|error| {
        let failure = Failure::io("read", path, &error);
        match error.kind() {
            ErrorKind::NotFound => failure.help("check the path; `-` reads standard input"),
            _ => failure,
        }
    })?;
    read_bounded(file, path, |error| Failure::io("read", path, &error))
}

/// What standard input is called in messages.
const STDIN: &str = "standard input";

/// All of standard input, which can be read once.
fn stdin() -> Result<Vec<u8>, Failure> {
    static IS_READ: AtomicBool = AtomicBool::new(false);
    if IS_READ.swap(true, Ordering::Relaxed) {
        return Err(Failure::new("two inputs are `-`, but standard input is only one text")
            .help("read all but one of them from files"));
    }
    let failed = |error| Failure::new(format!("cannot read standard input: {error}"));
    read_bounded(std::io::stdin(), Path::new("-"), failed)
}

fn read_bounded(
    from: impl Read,
    path: &Path,
    failed: impl FnOnce(std::io::Error) -> Failure,
) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    if let Err(error) = from.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes) {
        return Err(failed(error));
    }
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        let (name, limit) = (name(path), INPUT_BYTES_MAX >> 20);
        return Err(Failure::new(format!("{} is larger than {limit} MiB", quote(&name)))
            .help("give a smaller one"));
    }
    Ok(bytes)
}

fn source(name: String, bytes: Vec<u8>) -> Result<Source, Failure> {
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
    if is_stdin(path) {
        return Err(Failure::new("`-` names no file to write").help(
            "name a file (`./-` if that is its name); standard output carries the result alone",
        ));
    }
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
    let mut files = others.into_iter().filter(|other| !is_stdin(other));
    match files.find(|other| real_path(other) == real) {
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
