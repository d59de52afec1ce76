//! A copy of the project, with a sample of mutants in it.

use crate::find::{Mutant, mutants};
use proc_macro2::LineColumn;
use serde_json::Value;
use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The modules under test.
const ENGINE: [&str; 8] =
    ["expr", "grammar", "machine", "mask", "matcher", "schema", "cost", "constraint"];

/// What turns a mutant on. The functions stand for operators.
const SWITCH: &str = r#"#![allow(dead_code, missing_docs)]
use std::sync::OnceLock;
pub(crate) fn on(number: u32) -> bool {
    static ACTIVE: OnceLock<u32> = OnceLock::new();
    *ACTIVE.get_or_init(|| std::env::var("MUTANT").ok().and_then(|n| n.parse().ok()).unwrap_or(0)) == number
}
pub(crate) fn lt<T: PartialOrd + ?Sized>(on: bool, a: &T, b: &T) -> bool { if on { a <= b } else { a < b } }
pub(crate) fn le<T: PartialOrd + ?Sized>(on: bool, a: &T, b: &T) -> bool { if on { a < b } else { a <= b } }
pub(crate) fn gt<T: PartialOrd + ?Sized>(on: bool, a: &T, b: &T) -> bool { if on { a >= b } else { a > b } }
pub(crate) fn ge<T: PartialOrd + ?Sized>(on: bool, a: &T, b: &T) -> bool { if on { a > b } else { a >= b } }
pub(crate) fn eq<T: PartialEq + ?Sized>(on: bool, a: &T, b: &T) -> bool { (a == b) ^ on }
pub(crate) fn ne<T: PartialEq + ?Sized>(on: bool, a: &T, b: &T) -> bool { (a != b) ^ on }
use std::ops::{Add, Sub};
pub(crate) fn add<T: Add<Output = T> + Sub<Output = T>>(on: bool, a: T, b: T) -> T { if on { a - b } else { a + b } }
pub(crate) fn sub<T: Add<Output = T> + Sub<Output = T>>(on: bool, a: T, b: T) -> T { if on { a + b } else { a - b } }
"#;

struct File {
    path: PathBuf,
    source: String,
    mutants: Vec<Mutant>,
}

/// See the [module](self).
pub struct Copy {
    folder: PathBuf,
    files: Vec<File>,
    /// File and place in it; the number of a mutant is its place here, from 1.
    chosen: Vec<(usize, usize)>,
    refused: BTreeSet<(usize, usize)>,
}

impl Copy {
    /// Reads the engine of a copy and finds what can be mutated.
    pub fn open(folder: &str) -> Result<Self, Box<dyn Error>> {
        let folder = fs::canonicalize(folder)?;
        let mut files = Vec::new();
        for module in ENGINE {
            let file = folder.join("src").join(format!("{module}.rs"));
            if file.exists() {
                files.push(read(&file)?);
            }
            read_all(&folder.join("src").join(module), &mut files)?;
        }
        fs::write(folder.join("src/mutants.rs"), SWITCH)?;
        let root = folder.join("src/lib.rs");
        let mut text = fs::read_to_string(&root)?;
        if !text.contains("mod mutants;") {
            text.push_str("\nmod mutants;\n");
            fs::write(root, text)?;
        }
        Ok(Self { folder, files, chosen: Vec::new(), refused: BTreeSet::new() })
    }

    /// How many mutants there are.
    pub fn len(&self) -> usize {
        self.files.iter().map(|file| file.mutants.len()).sum()
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Draws `count` mutants that do not overlap. Their order is drawn too: any beginning of a run is a fair sample.
    pub fn draw(&mut self, count: usize, seed: u64) {
        let mut all: Vec<(usize, usize)> = (0..self.files.len())
            .flat_map(|file| (0..self.files[file].mutants.len()).map(move |place| (file, place)))
            .collect();
        let mut random = seed;
        while self.chosen.len() < count && !all.is_empty() {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            let next = all.swap_remove(((random >> 33) as usize) % all.len());
            let range = |(file, place): (usize, usize)| {
                let edits = &self.files[file].mutants[place].edits;
                (edits.iter().map(|edit| edit.0).min(), edits.iter().map(|edit| edit.0).max())
            };
            let (first, last) = range(next);
            let overlaps = |&other: &(usize, usize)| {
                other.0 == next.0 && range(other).0 <= last && range(other).1 >= first
            };
            if !self.chosen.iter().any(overlaps) {
                self.chosen.push(next);
            }
        }
    }

    /// The mutants that are in the copy with their numbers, as `file:line function: what`.
    pub fn drawn(&self) -> Vec<(usize, String)> {
        let viable = self.chosen.iter().enumerate().filter(|(_, at)| !self.refused.contains(at));
        viable
            .map(|(index, &(file, place))| {
                let (file, mutant) = (&self.files[file], &self.files[file].mutants[place]);
                let path = file.path.strip_prefix(&self.folder).unwrap_or(&file.path);
                (index + 1, format!("{}:{} {}", path.display(), mutant.line, mutant.what))
            })
            .collect()
    }

    /// Writes the copy, and takes out what does not compile; says how many that are.
    pub fn settle(&mut self) -> Result<usize, Box<dyn Error>> {
        loop {
            self.write()?;
            let wrong = self.errors()?;
            if wrong.is_empty() {
                return Ok(self.refused.len());
            }
            let before = self.refused.len();
            for &(file, place) in &self.chosen {
                let mutant = &self.files[file].mutants[place];
                let lines = mutant.edits.iter().map(|edit| edit.0.line);
                let (first, last) = (lines.clone().min(), lines.max());
                let path = &self.files[file].path;
                let hit = |at: &(PathBuf, usize)| {
                    &at.0 == path && first <= Some(at.1) && Some(at.1) <= last
                };
                if wrong.iter().any(hit) {
                    self.refused.insert((file, place));
                }
            }
            if self.refused.len() == before {
                return Err(format!("errors that no mutant explains: {wrong:?}").into());
            }
        }
    }

    fn write(&self) -> Result<(), Box<dyn Error>> {
        for (number, file) in self.files.iter().enumerate() {
            let mut edits: Vec<(LineColumn, String)> = Vec::new();
            for (index, at) in self.chosen.iter().enumerate() {
                if at.0 == number && !self.refused.contains(at) {
                    let switch = format!("crate::mutants::on({})", index + 1);
                    let mutant = &file.mutants[at.1];
                    edits.extend(
                        mutant
                            .edits
                            .iter()
                            .map(|(place, text)| (*place, text.replace("{}", &switch))),
                    );
                }
            }
            let text = apply(&file.source, edits);
            if fs::read_to_string(&file.path)? != text {
                fs::write(&file.path, text)?;
            }
        }
        Ok(())
    }

    /// Files and lines of the errors of the compiler.
    fn errors(&self) -> Result<Vec<(PathBuf, usize)>, Box<dyn Error>> {
        let output = cargo(&self.folder).args(["check", "--lib"]).args(BUILD).output()?;
        let mut wrong = Vec::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let message: Value = serde_json::from_str(line)?;
            if message["message"]["level"] != "error" {
                continue;
            }
            for span in message["message"]["spans"].as_array().into_iter().flatten() {
                let name = span["file_name"].as_str().unwrap_or_default();
                let lines = span["line_start"].as_u64().unwrap_or(0)
                    ..=span["line_end"].as_u64().unwrap_or(0);
                wrong.extend(lines.map(|line| (self.folder.join(name), line as usize)));
            }
        }
        if wrong.is_empty() && !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        Ok(wrong)
    }
}

/// How everything is built.
pub const BUILD: [&str; 4] =
    ["--no-default-features", "--features=cli", "--message-format=json", "--locked"];

/// Cargo in a folder, quiet.
pub fn cargo(folder: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(folder).stdin(Stdio::null());
    command
}

fn read(path: &Path) -> Result<File, Box<dyn Error>> {
    let source = fs::read_to_string(path)?;
    let mutants = mutants(&source).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(File { path: path.to_owned(), source, mutants })
}

/// Reads the files of a folder and of those in it, but for tests.
fn read_all(folder: &Path, files: &mut Vec<File>) -> Result<(), Box<dyn Error>> {
    if !folder.is_dir() {
        return Ok(());
    }
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_, std::io::Error>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            read_all(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
            files.push(read(&path)?);
        }
    }
    Ok(())
}

/// The source with texts put in, the later places first.
fn apply(source: &str, mut edits: Vec<(LineColumn, String)>) -> String {
    edits.sort_by_key(|edit| edit.0);
    let mut lines: Vec<String> = source.split('\n').map(str::to_owned).collect();
    for (place, text) in edits.into_iter().rev() {
        let line = &mut lines[place.line - 1];
        let at = line.char_indices().nth(place.column).map_or(line.len(), |(at, _)| at);
        line.insert_str(at, &text);
    }
    lines.join("\n")
}
