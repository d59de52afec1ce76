//! The documents of a batch: the lines of a JSON Lines file, or the files of a folder.
//!
//! They are read one at a time, twice: once to know their keys, once to do them. A document is known by its
//! *key*: a hash of its id, its text and everything else that its value depends on. Equal documents are told apart by how
//! many came before.

use crate::input;
use crate::report::Failure;
use constrain::error::quote;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Longest line or file.
const BYTES_MAX: u64 = 64 << 20;

/// A document.
#[derive(Debug, Clone, PartialEq)]
pub struct Doc {
    /// As the input has it; of a bad row the number of its line.
    pub id: Value,
    /// Its text, or what is wrong with its row.
    pub text: Result<String, String>,
    /// By which its row of the output is known.
    pub key: String,
    /// The line of its row; none for a file.
    pub line: Option<u64>,
}

/// Where documents are, and what their parts are called.
#[derive(Debug, Clone)]
pub struct Docs {
    pub input: PathBuf,
    /// The text of the input in place of its file: standard input can be read once only.
    pub held: Option<Vec<u8>>,
    pub id_field: String,
    pub text_field: String,
    /// Which part of them, of how many: from 0.
    pub shard: (u64, u64),
    /// What their values depend on beside them.
    pub fingerprint: String,
    /// Files that are none, though they are in the folder: what the program writes.
    pub apart: Vec<PathBuf>,
}

/// A row as it was read.
struct Row {
    id: Value,
    text: Result<String, String>,
    line: Option<u64>,
}

impl Docs {
    /// The documents in their order.
    ///
    /// # Errors
    /// The input cannot be read at all; what is wrong with one document is that document's.
    pub fn open(&self) -> Result<Box<dyn Iterator<Item = Result<Doc, Failure>> + '_>, Failure> {
        let rows: Box<dyn Iterator<Item = Result<Row, Failure>> + '_> = match self.is_folder() {
            true => Box::new(self.files()?.into_iter().map(|path| Ok(self.file(&path)))),
            false => Box::new(self.lines()?),
        };
        let mut seen: HashMap<blake3::Hash, u64> = HashMap::new();
        let docs = rows.map(move |row| {
            let Row { id, text, line } = row?;
            let mut hasher = blake3::Hasher::new();
            let said = text.as_ref().map_or_else(String::as_str, String::as_str);
            for part in [&self.fingerprint, &id.to_string(), said] {
                hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
            }
            let before = seen.entry(hasher.finalize()).or_default();
            hasher.update(&before.to_le_bytes());
            *before += 1;
            let key = hasher.finalize().to_hex()[..32].to_owned();
            Ok(Doc { id, text, key, line })
        });
        Ok(Box::new(docs.filter(|doc| doc.as_ref().map_or(true, |doc| self.is_mine(doc)))))
    }

    /// Whether a document belongs to the shard.
    fn is_mine(&self, doc: &Doc) -> bool {
        let (index, count) = self.shard;
        let number = u64::from_str_radix(doc.key.get(..15).unwrap_or_default(), 16);
        number.unwrap_or(0) % count.max(1) == index
    }

    /// Whether the documents are the files of a folder.
    pub fn is_folder(&self) -> bool {
        self.held.is_none() && self.input.is_dir()
    }

    fn files(&self) -> Result<BTreeSet<PathBuf>, Failure> {
        let mut files = files(&self.input)?;
        let apart: Vec<PathBuf> = self.apart.iter().map(|path| input::real_path(path)).collect();
        if !apart.is_empty() {
            files.retain(|path| !apart.contains(&input::real_path(path)));
        }
        Ok(files)
    }

    fn lines(&self) -> Result<impl Iterator<Item = Result<Row, Failure>> + '_, Failure> {
        let failure = |error| Failure::io("read", &self.input, &error);
        let mut reader: Box<dyn BufRead> = match &self.held {
            Some(text) => Box::new(&text[..]),
            None => Box::new(BufReader::new(File::open(&self.input).map_err(failure)?)),
        };
        let mut number = 0_u64;
        Ok(std::iter::from_fn(move || {
            loop {
                let mut line = Vec::new();
                number += 1;
                match read_line(&mut reader, &mut line) {
                    Ok(None) => return None,
                    Ok(Some(true)) if line.trim_ascii().is_empty() => {}
                    Ok(Some(true)) => return Some(Ok(self.line(&line, number))),
                    Ok(Some(false)) => {
                        let text =
                            Err(format!("line {number} is longer than {} MiB", BYTES_MAX >> 20));
                        return Some(Ok(Row {
                            id: format!("line {number}").into(),
                            text,
                            line: Some(number),
                        }));
                    }
                    Err(error) => return Some(Err(failure(error))),
                }
            }
        }))
    }

    /// The row of a line.
    fn line(&self, line: &[u8], number: u64) -> Row {
        // A byte order mark is no part of the text.
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let row: Value = match input::json_line(line, number) {
            Ok(row) => row,
            Err(problem) => {
                let id = format!("line {number}").into();
                return Row { id, text: Err(problem), line: Some(number) };
            }
        };
        let id = row.get(&self.id_field).cloned();
        let name = quote(&self.text_field);
        let text = match row.get(&self.text_field) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(format!("line {number}: {name} is not a string")),
            None => Err(format!("line {number} has no {name}")),
        };
        let id = id.unwrap_or_else(|| format!("line {number}").into());
        Row { id, text, line: Some(number) }
    }

    /// The row of a file, named by its path in the folder.
    fn file(&self, path: &Path) -> Row {
        let name = path.strip_prefix(&self.input).unwrap_or(path);
        let parts: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
        let read = || {
            let mut bytes = Vec::new();
            File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let text = match read() {
            Ok(bytes) if bytes.len() as u64 > BYTES_MAX => {
                Err(format!("the file is larger than {} MiB", BYTES_MAX >> 20))
            }
            Ok(bytes) => String::from_utf8(bytes)
                .map(|text| text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
                .map_err(|error| format!("the file is not UTF-8 text: {}", error.utf8_error())),
            Err(error) => Err(std::io::Error::to_string(&error)),
        };
        Row { id: parts.join("/").into(), text, line: None }
    }
}

/// Reads a line, and says whether it was short enough; `None` at the end.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<Option<bool>> {
    let mut is_short = true;
    loop {
        line.clear();
        let read = reader.by_ref().take(BYTES_MAX).read_until(b'\n', line)? as u64;
        if read < BYTES_MAX || line.ends_with(b"\n") {
            return Ok((read > 0 || !is_short).then_some(is_short));
        }
        is_short = false;
    }
}

/// All files below a folder, hidden ones left out, in order.
fn files(folder: &Path) -> Result<BTreeSet<PathBuf>, Failure> {
    let (mut files, mut open) = (BTreeSet::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = open.pop() {
        let failure = |error| Failure::io("read the folder", &folder, &error);
        for entry in std::fs::read_dir(&folder).map_err(failure)? {
            let entry = entry.map_err(failure)?;
            // Not through links: they may lead in circles.
            let kind = entry.file_type().map_err(failure)?;
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            match kind.is_dir() {
                true => open.push(entry.path()),
                false => files.extend(kind.is_file().then(|| entry.path())),
            }
        }
    }
    Ok(files)
}
