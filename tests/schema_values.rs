//! The grammars of the JSON Schema front-end, compared with documents whose validity is known: real schemas
//! with valid and invalid documents, the official test suite, and keywords that meet.
//!
//! An older version of the suite comes with a package. The newest one and the real schemas are data files outside the repository (`CONSTRAIN_SHARED`, or `../shared`); without them these
//! tests say so and pass. `VERBOSE=1` prints every difference.

mod support;
mod values;

use constrain::grammar::PropertyOrder;
use constrain::schema::{Draft, Options, compile};
use constrain::{Constraint, Kind, Vocabulary};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use values::Language;

fn shared() -> Option<PathBuf> {
    let path = std::env::var_os("CONSTRAIN_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared")),
        PathBuf::from,
    );
    if !path.is_dir() {
        eprintln!("skipped: no data at {}", path.display());
        return None;
    }
    Some(path)
}

fn any_order() -> Options {
    Options { property_order: PropertyOrder::Any, ..Options::default() }
}

/// What came of many schemas.
struct Tally {
    /// Single bytes: for the engine, which must say the same as the grammar's values.
    vocabulary: Vocabulary,
    schemas: usize,
    right: usize,
    wrongly_accepted: Vec<String>,
    wrongly_rejected: Vec<String>,
    refused: BTreeMap<String, Vec<String>>,
}

impl Tally {
    fn new() -> Self {
        Self {
            vocabulary: support::bytes(),
            schemas: 0,
            right: 0,
            wrongly_accepted: Vec::new(),
            wrongly_rejected: Vec::new(),
            refused: BTreeMap::new(),
        }
    }

    fn judge(&mut self, id: &str, schema: &Value, tests: &[Value], options: &Options) {
        self.schemas += 1;
        let grammar = match compile(&schema.to_string(), options) {
            Ok(grammar) => grammar,
            Err(error) => {
                let unsatisfiable = *error.kind() == Kind::Unsatisfiable;
                if unsatisfiable && tests.iter().all(|test| test["valid"] == false) {
                    self.right += 1;
                } else {
                    let kind = format!("{:?}", error.kind());
                    self.refused.entry(kind).or_default().push(format!("{id}: {error}"));
                }
                return;
            }
        };
        let constraint = Constraint::new(&grammar, &self.vocabulary)
            .unwrap_or_else(|error| panic!("{id}: {error}"));
        let mut language = Language::new(grammar);
        let mut right = true;
        for test in tests {
            let (valid, accepted) = (test["valid"] == true, language.has(&test["data"]));
            let mut matcher = constraint.matcher();
            let bytes = test["data"].to_string();
            let written = matcher.accept_bytes(bytes.as_bytes()).is_ok() && matcher.can_stop();
            assert_eq!(written, accepted, "{id}: the engine on {bytes}");
            if valid != accepted {
                right = false;
                let list =
                    if accepted { &mut self.wrongly_accepted } else { &mut self.wrongly_rejected };
                let data = test["data"].to_string();
                list.push(format!("{id}: {}", data.chars().take(200).collect::<String>()));
            }
        }
        self.right += usize::from(right);
    }

    fn print(&self, title: &str) {
        let refused: usize = self.refused.values().map(Vec::len).sum();
        eprintln!(
            "{title}: {} of {} schemas right, {} refused, {} documents wrongly accepted, {} wrongly rejected",
            self.right,
            self.schemas,
            refused,
            self.wrongly_accepted.len(),
            self.wrongly_rejected.len(),
        );
        if std::env::var_os("VERBOSE").is_none() {
            return;
        }
        for (kind, list) in &self.refused {
            eprintln!("refused {kind}: {}", list.len());
            list.iter().for_each(|line| eprintln!("  R {line}"));
        }
        self.wrongly_accepted.iter().for_each(|line| eprintln!("  A {line}"));
        self.wrongly_rejected.iter().for_each(|line| eprintln!("  J {line}"));
    }
}

fn corpus(name: &str) -> Option<Tally> {
    let path = shared()?.join("maskbench").join(name);
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the corpus");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip");
    let mut tally = Tally::new();
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        let id = case["id"].as_str().unwrap_or_default();
        let tests = case["tests"].as_array().cloned().unwrap_or_default();
        tally.judge(id, &case["schema"], &tests, &any_order());
    }
    tally.print(name);
    Some(tally)
}

#[test]
fn real_schemas_quick() {
    let Some(tally) = corpus("quick.jsonl.gz") else { return };
    assert!(tally.wrongly_accepted.is_empty(), "{:#?}", tally.wrongly_accepted);
    assert!(tally.right * 100 >= tally.schemas * 99, "{} of {}", tally.right, tally.schemas);
}

/// Takes a minute; run with `CONSTRAIN_SLOW=1`.
#[test]
fn real_schemas_all() {
    if std::env::var_os("CONSTRAIN_SLOW").is_none() {
        eprintln!("skipped: set CONSTRAIN_SLOW=1");
        return;
    }
    let Some(tally) = corpus("dev.jsonl.gz") else { return };
    assert!(tally.wrongly_accepted.is_empty(), "{:#?}", tally.wrongly_accepted);
    assert!(tally.right * 100 >= tally.schemas * 99, "{} of {}", tally.right, tally.schemas);
}

fn files(folder: &std::path::Path) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    out.sort();
    out
}

fn remotes(root: &std::path::Path) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(folder) = todo.pop() {
        for path in files(&folder) {
            if path.is_dir() {
                todo.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let rest =
                    path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
                out.insert(format!("http://localhost:1234/{rest}"), text);
            }
        }
    }
    out
}

/// Runs a folder of the official suite and checks that nothing is accepted wrongly; returns what came
/// of the required tests.
fn suite(root: &Path, folder: &str, draft: Draft, documents: &BTreeMap<String, String>) -> Tally {
    let folder = root.join(folder);
    let mut required = Tally::new();
    for part in ["", "optional/format"] {
        let mut tally = Tally::new();
        for path in files(&folder.join(part)).iter().filter(|path| path.is_file()) {
            let text = std::fs::read_to_string(path).expect("a file");
            let groups: Value = serde_json::from_str(&text).expect("JSON");
            let file = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            for group in groups.as_array().into_iter().flatten() {
                let title = format!("{draft:?}/{file}: {}", group["description"]);
                let mut options = any_order();
                options.documents = documents.clone();
                // Outside `optional/format` the suite takes formats for annotations.
                options.assert_formats = !part.is_empty();
                if group["schema"].get("$schema").is_none() {
                    options.draft = Some(draft);
                }
                let tests = group["tests"].as_array().cloned().unwrap_or_default();
                tally.judge(&title, &group["schema"], &tests, &options);
            }
        }
        tally.print(&format!("{draft:?}/{part}"));
        assert!(tally.schemas > 0, "no tests in {}", folder.display());
        assert!(tally.wrongly_accepted.is_empty(), "{:#?}", tally.wrongly_accepted);
        if part.is_empty() {
            required = tally;
        }
    }
    required
}

#[test]
fn official_suite() {
    let Some(shared) = shared() else { return };
    let root = shared.join("json-schema-test-suite");
    let documents = remotes(&root.join("remotes"));
    for (folder, draft) in
        [("draft4", Draft::Draft4), ("draft7", Draft::Draft7), ("draft2020-12", Draft::Draft202012)]
    {
        let tally = suite(&root, folder, draft, &documents);
        assert_eq!(tally.right, tally.schemas);
    }
}

/// The folder of a package that the tests depend on (`cargo metadata` fetches it if it is missing).
fn package(name: &str) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let metadata = std::process::Command::new(cargo)
        .args(["metadata", "--format-version=1", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&metadata.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let found = packages.iter().find(|package| package["name"] == name).expect("the package");
    let manifest = found["manifest_path"].as_str().expect("a path");
    Path::new(manifest).parent().expect("a folder").to_path_buf()
}

/// The suite of 2020, which a package on crates.io contains: older, but with drafts 6 and 2019-09.
#[test]
fn published_suite() {
    let root = package("json_schema_test_suite").join("path/to/JSON-Schema-Test-Suite/repository");
    let documents = remotes(&root.join("remotes"));
    for (folder, draft) in [
        ("draft4", Draft::Draft4),
        ("draft6", Draft::Draft6),
        ("draft7", Draft::Draft7),
        ("draft2019-09", Draft::Draft201909),
    ] {
        let tally = suite(&root.join("tests"), folder, draft, &documents);
        assert_eq!(tally.right, tally.schemas);
    }
}

#[test]
fn small_cases() {
    let Some(shared) = shared() else { return };
    let text = std::fs::read_to_string(shared.join("cases/schema.jsonl")).expect("the cases");
    for line in text.lines() {
        // Nested deeper than this parser goes: left to the tests of hostile schemas.
        let Ok(case) = serde_json::from_str::<Value>(line) else { continue };
        let outcome = compile(&case["schema"].to_string(), &any_order());
        if case["expect"] == "error" {
            assert!(outcome.is_err(), "{} compiles", case["id"]);
            continue;
        }
        let mut language = match outcome {
            Ok(grammar) => Language::new(grammar),
            Err(error) => panic!("{}: {error}", case["id"]),
        };
        let tests = case["tests"].as_array().into_iter().flatten();
        for test in tests.filter(|test| test["valid"] == true) {
            let text = test["text"].as_str().map(str::to_owned);
            let text = text.unwrap_or_else(|| test["data"].to_string());
            // Numbers beyond f64 and 64 bits are exact only as text: left to the tests of bytes.
            let Ok(value) = serde_json::from_str::<Value>(&text) else { continue };
            assert!(language.has(&value), "{} rejects {text}", case["id"]);
        }
    }
}

/// Keywords that say two things about one value, on values at the bounds of both, judged by an independent validator.
#[test]
fn keywords_that_meet() {
    let numbers = json!([0, 0.5, 1, 1.5, 2, 2.5, 3]);
    let arrays =
        json!([[], [1], [1, 1], [1, "s", 1], ["s"], ["s", 1], [1, 1, 1], [1, 2], [2, 1], {}, 1]);
    for (schema, values) in [
        (json!({"type": "number", "minimum": 1, "exclusiveMinimum": 1}), &numbers),
        (json!({"type": "number", "minimum": 2, "exclusiveMinimum": 1}), &numbers),
        (json!({"type": "number", "minimum": 1, "exclusiveMinimum": 2}), &numbers),
        (json!({"type": "number", "maximum": 1, "exclusiveMaximum": 1}), &numbers),
        (json!({"type": "number", "maximum": 1, "exclusiveMaximum": 2}), &numbers),
        (json!({"type": "number", "maximum": 2, "exclusiveMaximum": 1}), &numbers),
        (json!({"not": {"contains": {"type": "integer"}, "minContains": 2}}), &arrays),
        (
            json!({"not": {"contains": {"type": "integer"}, "minContains": 2, "maxContains": 2}}),
            &arrays,
        ),
        (
            json!({"not": {"contains": {"type": "integer"}, "minContains": 0, "maxContains": 1}}),
            &arrays,
        ),
        (json!({"contains": false, "minContains": 0, "maxContains": 1}), &arrays),
        (
            json!({"contains": {"const": 1}, "minContains": 2, "maxContains": 2, "maxItems": 2}),
            &arrays,
        ),
        (
            json!({"contains": {"const": 1}, "minContains": 2, "minItems": 3, "maxItems": 3}),
            &arrays,
        ),
        (
            json!({"items": {"enum": [1, 2]}, "uniqueItems": true, "contains": {"const": 1}}),
            &arrays,
        ),
        (json!({"items": {"enum": [1, 2]}, "uniqueItems": true, "minItems": 2}), &arrays),
    ] {
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let grammar = compile(&schema.to_string(), &any_order()).expect("compiles");
        let mut language = Language::new(grammar);
        for value in values.as_array().into_iter().flatten() {
            assert_eq!(language.has(value), validator.is_valid(value), "{schema}\non {value}");
        }
    }
    let twice = json!({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": true,
        "contains": {"const": 1}, "minContains": 2});
    let error = compile(&twice.to_string(), &any_order()).expect_err("nothing is valid");
    assert_eq!(*error.kind(), Kind::Unsatisfiable);
}
