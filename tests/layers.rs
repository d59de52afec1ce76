//! Data flows one way: a module imports only modules above it in the list of `src/lib.rs`.
//!
//! The test reads the sources as text: every `crate::name` outside comments and unit tests is an import.

use std::fs;
use std::path::{Path, PathBuf};

/// A source file, the module of the list it belongs to, and its lines of code.
struct Source {
    path: PathBuf,
    module: String,
    text: String,
}

impl Source {
    /// Lines of code with their numbers: no comments, no unit tests at the end of the file.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let code = self.text.lines().enumerate().map(|(i, line)| (i + 1, line.trim_start()));
        code.take_while(|(_, line)| !line.starts_with("#[cfg(test)]"))
            .filter(|(_, line)| !line.starts_with("//"))
    }

    /// Names that follow `prefix` on lines of code, such as `schema` for `crate::schema::compile`;
    /// also those in braces, as in `use crate::{schema, syntax};`.
    fn names_after(&self, prefix: &str) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (number, line) in self.code() {
            for (at, _) in line.match_indices(prefix) {
                let rest = &line[at + prefix.len()..];
                let names = match rest.strip_prefix('{') {
                    Some(list) => list.split('}').next().unwrap_or(list).split(',').collect(),
                    None => vec![rest],
                };
                for name in names {
                    let is_name = |c: char| c.is_alphanumeric() || c == '_';
                    let name = name.trim_start().split(|c| !is_name(c)).next().unwrap_or("");
                    found.push((number, name.to_owned()));
                }
            }
        }
        found
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("tests.rs")
        {
            found.push(path);
        }
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    files(&root, &mut paths);
    let module = |path: &Path| {
        let first = path.strip_prefix(&root).unwrap().iter().next().unwrap().to_string_lossy();
        first.trim_end_matches(".rs").to_owned()
    };
    paths
        .into_iter()
        .map(|path| Source {
            module: module(&path),
            text: fs::read_to_string(&path).unwrap(),
            path,
        })
        .collect()
}

/// The list of `src/lib.rs`, from the top to the bottom.
fn layers() -> Vec<String> {
    let lib = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    lib.lines()
        .filter_map(|line| {
            line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod ")?.strip_suffix(';')
        })
        .map(str::to_owned)
        .collect()
}

/// The nouns that `src/lib.rs` exports again: in its lines `pub use module::{...}`.
fn module_of_noun(noun: &str) -> Option<String> {
    let lib = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    lib.lines().find_map(|line| {
        let (module, names) = line.strip_prefix("pub use ")?.split_once("::")?;
        let mut names = names.trim_matches(['{', '}', ';']).split(',').map(str::trim);
        names.any(|name| name.trim_end_matches("};") == noun).then(|| module.to_owned())
    })
}

/// Modules that must not be seen although the list would allow it, by module.
const BLIND: &[(&str, &[&str])] = &[
    ("schema", &["syntax"]),
    ("syntax", &["schema"]),
    ("machine", &["vocab"]),
    ("sample", &["grammar", "machine", "mask", "constraint"]),
];

#[test]
fn modules_import_only_what_is_above_them() {
    let layers = layers();
    assert!(layers.len() > 10 && layers[0] == "error", "the list of src/lib.rs: {layers:?}");
    let mut wrong = Vec::new();
    for source in sources() {
        let Some(own) = layers.iter().position(|layer| *layer == source.module) else {
            assert!(
                source.module == "lib" || source.module == "bin",
                "{} is in no layer",
                source.path.display()
            );
            continue;
        };
        let blind = BLIND
            .iter()
            .find(|(module, _)| *module == source.module)
            .map_or(&[][..], |(_, blind)| *blind);
        for (line, name) in source.names_after("crate::") {
            let place =
                format!("{}:{line}: {} imports {name}", source.path.display(), source.module);
            let name = module_of_noun(&name).unwrap_or(name);
            match layers.iter().position(|layer| *layer == name) {
                Some(other) if other > own => wrong.push(format!("{place}, which is below it")),
                Some(_) if blind.contains(&name.as_str()) => {
                    wrong.push(format!("{place}, which it must not see"));
                }
                Some(_) => {}
                None => wrong.push(format!("{place}: name its module")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_loaders_and_the_program_touch_the_outside() {
    let mut wrong = Vec::new();
    for source in sources() {
        if matches!(source.module.as_str(), "bin" | "model" | "vocab") {
            continue;
        }
        for (line, name) in source.names_after("std::") {
            // An error may wrap one of the operating system's.
            let wraps = source.module == "error" && name == "io";
            let outside = ["fs", "io", "net", "env", "process"].contains(&name.as_str());
            if outside && !wraps {
                wrong.push(format!("{}:{line}: std::{name}", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_the_backend_knows_llama_cpp() {
    for source in sources().iter().filter(|source| source.module != "model") {
        for (line, code) in source.code() {
            assert!(!code.contains("llama_cpp_2"), "{}:{line}", source.path.display());
        }
    }
}

#[test]
fn the_program_sees_the_public_nouns_only() {
    let internal = ["expr", "machine", "mask"];
    for source in sources().iter().filter(|source| source.module == "bin") {
        for (line, name) in source.names_after("constrain::") {
            assert!(
                !internal.contains(&name.as_str()),
                "{}:{line}: constrain::{name}",
                source.path.display()
            );
        }
        assert!(!source.text.contains("#[path"), "{}", source.path.display());
    }
}

#[test]
fn every_file_says_what_it_is() {
    for source in sources() {
        assert!(source.text.starts_with("//!"), "{} opens without //!", source.path.display());
    }
}
