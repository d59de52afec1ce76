//! A copy of the project, with all mutants in it.

use crate::find::{Edit, Mutant, mutants};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The modules under test.
const ENGINE: [&str; 8] =
    ["expr", "grammar", "machine", "mask", "matcher", "schema", "cost", "constraint"];

/// The module that turns mutants on.
const SWITCH: &str = include_str!("../switch.rs");

struct File {
    /// From the root of the project.
    path: PathBuf,
    source: String,
    mutants: Vec<Mutant>,
}

/// Where the text of a mutant is in its file of the copy: line and column, both from 1, the end not included.
type Extent = ((usize, usize), (usize, usize));

/// See the [module](self).
pub struct Copy {
    folder: PathBuf,
    files: Vec<File>,
    /// File and place in it; the number of a mutant is its place here, from 1.
    all: Vec<(usize, usize)>,
    names: Vec<String>,
    /// Numbers of those that do not compile.
    refused: BTreeSet<usize>,
}

impl Copy {
    /// Reads the engine of a project and copies what is not the engine. In the folder may be an earlier copy: files that
    /// are as they should be stay, with their times.
    pub fn open(project: &str, folder: &str) -> Result<Self, Box<dyn Error>> {
        fs::create_dir_all(folder)?;
        let (project, folder) = (fs::canonicalize(project)?, fs::canonicalize(folder)?);
        let mut paths = Vec::new();
        list(&project, Path::new(""), &mut paths)?;
        let mut files = Vec::new();
        for path in paths {
            if in_engine(&path) {
                let source = fs::read_to_string(project.join(&path))?;
                let mutants =
                    mutants(&source).map_err(|error| format!("{}: {error}", path.display()))?;
                files.push(File { path, source, mutants });
            } else {
                let mut text = fs::read(project.join(&path))?;
                if path == Path::new("src/lib.rs") {
                    text.splice(..0, *b"#![allow(warnings)]\n");
                    text.extend(b"\nmod mutants;\n");
                }
                write_changed(&folder.join(path), &text)?;
            }
        }
        write_changed(&folder.join("src/mutants.rs"), SWITCH.as_bytes())?;
        let places = |file: usize| (0..files[file].mutants.len()).map(move |place| (file, place));
        let all = (0..files.len()).flat_map(places).collect();
        let names = names(&files);
        Ok(Self { folder, files, all, names, refused: BTreeSet::new() })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The numbers of all mutants.
    pub fn numbers(&self) -> std::ops::RangeInclusive<usize> {
        1..=self.all.len()
    }

    /// A mutant as `file:line:column function: what`, with `(2)` after it if another one has this name.
    pub fn name(&self, number: usize) -> &str {
        &self.names[number - 1]
    }

    /// Writes the copy, and takes out what does not compile, of which some may be known.
    pub fn settle(&mut self, refused: &[usize]) -> Result<Vec<usize>, Box<dyn Error>> {
        self.refused.extend(refused);
        loop {
            let extents = self.write()?;
            let wrong = self.errors()?;
            if wrong.is_empty() {
                return Ok(self.refused.iter().copied().collect());
            }
            let guilty: Vec<usize> =
                wrong.iter().flat_map(|error| self.guilty(error, &extents)).collect();
            if guilty.is_empty() {
                return Err(format!("errors that no mutant explains: {wrong:?}").into());
            }
            println!("{} errors, {} mutants taken out", wrong.len(), guilty.len());
            self.refused.extend(guilty);
        }
    }

    /// Those that an error is about: the innermost one around one of its spans, the main ones first; or all those on
    /// their lines.
    fn guilty(&self, spans: &[Span], extents: &[Option<Extent>]) -> Vec<usize> {
        let in_file = |number: &usize, span: &Span| {
            let (file, _) = self.all[number - 1];
            self.files[file].path == span.file
        };
        let around = |span: &Span| {
            let holds = |number: &usize| {
                in_file(number, span)
                    && extents[number - 1]
                        .is_some_and(|(start, end)| start <= span.start && span.end <= end)
            };
            self.numbers().rfind(holds)
        };
        if let Some(number) = spans.iter().find_map(around) {
            return vec![number];
        }
        let beside = |number: &usize| {
            let beside = |span: &Span| {
                in_file(number, span)
                    && extents[number - 1]
                        .is_some_and(|(start, end)| start.0 <= span.end.0 && span.start.0 <= end.0)
            };
            spans.iter().any(beside)
        };
        self.numbers().filter(beside).collect()
    }

    /// Writes the files of the engine; says where in them the mutants are.
    fn write(&self) -> Result<Vec<Option<Extent>>, Box<dyn Error>> {
        let mut extents = vec![None; self.all.len()];
        let mut first = 1;
        for file in &self.files {
            let numbers = first..first + file.mutants.len();
            first = numbers.end;
            let taken = numbers.zip(&file.mutants).filter(|at| !self.refused.contains(&at.0));
            let (text, found) = apply(&file.source, taken);
            write_changed(&self.folder.join(&file.path), text.as_bytes())?;
            found.into_iter().for_each(|(number, extent)| extents[number - 1] = Some(extent));
        }
        Ok(extents)
    }

    /// What the compiler says is wrong: the spans of each error, the main ones first.
    fn errors(&self) -> Result<Vec<Vec<Span>>, Box<dyn Error>> {
        let output = cargo(&self.folder).args(["check", "--lib"]).args(BUILD).output()?;
        let mut wrong = Vec::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let message: Value = serde_json::from_str(line)?;
            let message = &message["message"];
            let spans = message["spans"].as_array().filter(|_| message["level"] == "error");
            let (mut main, other): (Vec<&Value>, Vec<&Value>) =
                spans.into_iter().flatten().partition(|span| span["is_primary"] == true);
            main.extend(other);
            if !main.is_empty() {
                wrong.push(main.into_iter().map(Span::read).collect());
            }
        }
        if wrong.is_empty() && !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        Ok(wrong)
    }
}

/// A place that the compiler speaks of.
#[derive(Debug)]
struct Span {
    file: PathBuf,
    start: (usize, usize),
    end: (usize, usize),
}

impl Span {
    fn read(span: &Value) -> Self {
        let number = |name: &str| span[name].as_u64().unwrap_or(0) as usize;
        Self {
            file: span["file_name"].as_str().unwrap_or_default().into(),
            start: (number("line_start"), number("column_start")),
            end: (number("line_end"), number("column_end")),
        }
    }
}

/// How everything is built: debug assertions stay, and optimised tests take half the time.
pub const BUILD: [&str; 14] = [
    "--no-default-features",
    "--features=cli",
    "--message-format=json",
    "--locked",
    "--config=profile.dev.debug=0",
    "--config=profile.test.debug=0",
    "--config=profile.dev.package.constrain.opt-level=2",
    "--config=profile.test.package.constrain.opt-level=2",
    "--config=profile.dev.package.constrain.codegen-units=4",
    "--config=profile.test.package.constrain.codegen-units=4",
    "--config=profile.dev.package.constrain.debug=0",
    "--config=profile.test.package.constrain.debug=0",
    "--config=profile.dev.incremental=false",
    "--config=profile.test.incremental=false",
];

/// Cargo in a folder, quiet.
pub fn cargo(folder: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(folder).stdin(Stdio::null());
    command
}

/// What the mutants are called, in their order.
fn names(files: &[File]) -> Vec<String> {
    let mut known: HashMap<String, usize> = HashMap::new();
    let mutants = files.iter().flat_map(|file| file.mutants.iter().map(move |it| (file, it)));
    let names = mutants.map(|(file, mutant)| {
        let (line, column) = (mutant.place.line, mutant.place.column + 1);
        let name = format!("{}:{line}:{column} {}", file.path.display(), mutant.what);
        let count = known.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 { name } else { format!("{name} ({count})") }
    });
    names.collect()
}

/// Whether a file is one of the engine's, and not for tests.
fn in_engine(path: &Path) -> bool {
    let in_module = |module: &str| {
        let folder = Path::new("src").join(module);
        path.starts_with(&folder) || path == folder.with_extension("rs")
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".rs")
        && !name.ends_with("tests.rs")
        && ENGINE.iter().any(|module| in_module(module))
}

/// The files of a project without what is built and what git keeps, in order.
fn list(project: &Path, folder: &Path, paths: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(project.join(folder))? {
        entries.push(entry?);
    }
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let path = folder.join(&name);
        if name == ".git" || name == "target" {
            continue;
        } else if entry.file_type()?.is_dir() {
            list(project, &path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

/// Writes a file if it has another content.
fn write_changed(path: &Path, content: &[u8]) -> std::io::Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, content)
}

/// The source with mutants put in, and where they are.
fn apply<'a>(
    source: &str,
    mutants: impl Iterator<Item = (usize, &'a Mutant)>,
) -> (String, Vec<(usize, Extent)>) {
    let mut edits: Vec<(usize, &Edit)> = mutants
        .flat_map(|(number, mutant)| mutant.edits.iter().map(move |edit| (number, edit)))
        .collect();
    // At one place the inner ones close first, then outer ones open first.
    edits.sort_by_key(|(number, edit)| {
        let order = if edit.opens { *number } else { usize::MAX - number };
        (edit.place, edit.opens, order)
    });
    let mut edits = edits.into_iter().peekable();
    let mut extents: Vec<(usize, Extent)> = Vec::new();
    let mut lines = Vec::new();
    for (line, text) in source.split('\n').enumerate() {
        let (mut out, mut length) = (String::new(), 0);
        let here = text.chars().map(Some).chain([None]);
        for (column, letter) in here.enumerate() {
            while let Some((number, edit)) = edits
                .next_if(|(_, edit)| (edit.place.line, edit.place.column) == (line + 1, column))
            {
                let start = (line + 1, length + 1);
                let text = edit.text.replace("{}", &number.to_string());
                length += text.chars().count();
                out.push_str(&text);
                let end = (line + 1, length + 1);
                match extents.iter_mut().find(|extent| extent.0 == number) {
                    Some((_, extent)) => extent.1 = end,
                    None => extents.push((number, (start, end))),
                }
            }
            length += usize::from(letter.is_some());
            out.extend(letter);
        }
        lines.push(out);
    }
    (lines.join("\n"), extents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutants_stand_in_each_other() -> syn::Result<()> {
        let source = "fn f(a: u8) -> bool {\n    a + 1 < 2 && a != 3\n}";
        let found = mutants(source)?;
        let (text, extents) = apply(source, (1..).zip(&found));
        let lines: Vec<&str> = text.lines().collect();
        let switch = |number| format!("crate::mutants::on({number})");
        let returns = |number, value| format!(" if {} {{ return {value}; }}", switch(number));
        assert_eq!(
            lines[0],
            format!("fn f(a: u8) -> bool {{{}{}", returns(1, "true"), returns(2, "false"))
        );
        let sum = "crate::mutants::add(5, (a), ( /* + */ 1))";
        let less = format!("crate::mutants::lt(4, &({sum}), &( /* < */ 2))");
        let other = "crate::mutants::ne(6, &(a), &( /* != */ 3))";
        assert_eq!(lines[1], format!("    (({less}) || {}) && {other}", switch(3)));
        let (_, (start, end)) = extents.into_iter().find(|it| it.0 == 5).unwrap_or_default();
        assert_eq!(&lines[1][start.1 - 1..end.1 - 1], sum);
        Ok(())
    }

    #[test]
    fn an_error_is_that_of_the_innermost_mutant() -> Result<(), Box<dyn Error>> {
        let source = "fn f(a: u8) -> bool {\n    a + 1 < 2\n}";
        let path = PathBuf::from("src/expr.rs");
        let mutants = mutants(source)?;
        let (_, found) = apply(source, (1..).zip(&mutants));
        let mut extents = vec![None; mutants.len()];
        found.into_iter().for_each(|(number, extent)| extents[number - 1] = Some(extent));
        let copy = Copy {
            folder: PathBuf::new(),
            all: (0..mutants.len()).map(|place| (0, place)).collect(),
            names: Vec::new(),
            files: vec![File { path: path.clone(), source: source.to_owned(), mutants }],
            refused: BTreeSet::new(),
        };
        let span = |start, end| Span { file: path.clone(), start: (2, start), end: (2, end) };
        let ((_, sum), (_, end)) = extents[3].ok_or("the sum")?;
        assert_eq!(copy.guilty(&[span(sum, end)], &extents), [4]);
        assert_eq!(copy.guilty(&[span(sum - 1, end)], &extents), [3]);
        // The return is in no mutant: those on the line are taken out.
        assert_eq!(copy.guilty(&[span(1, 2)], &extents), [3, 4]);
        Ok(())
    }
}
