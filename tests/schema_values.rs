//! The grammars of the JSON Schema front-end, read as sets of values: no bytes, no tokens.
//!
//! A slow interpreter decides whether a value is in the language of a grammar, node by node. What it says is
//! compared with documents whose validity is known: real schemas with valid and invalid documents, and the
//! official test suite. Both are data files outside the repository (`CONSTRAIN_SHARED`, or `../shared`);
//! without them these tests say so and pass.

use constrain::Kind;
use constrain::expr::Exprs;
use constrain::grammar::decimal::Decimal;
use constrain::grammar::{
    ArraySpec, Grammar, Node, NodeId, NumberSpec, ObjectSpec, PropertyOrder, Terminal,
};
use constrain::limits::Fuel;
use constrain::schema::{Options, compile};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::path::PathBuf;

/// The language of a grammar, over values.
struct Language {
    grammar: Grammar,
    exprs: Exprs,
    fuel: Fuel,
}

impl Language {
    fn new(grammar: Grammar) -> Self {
        Self { exprs: grammar.exprs.clone(), grammar, fuel: Fuel::new(u64::MAX) }
    }

    fn has(&mut self, value: &Value) -> bool {
        self.node(self.grammar.root(), value)
    }

    fn node(&mut self, id: NodeId, value: &Value) -> bool {
        match self.grammar.node(id).clone() {
            Node::Never | Node::Empty => false,
            Node::Terminal(terminal) => self.terminal(&terminal, value),
            Node::Seq(parts) => {
                let margin = |id: &NodeId| {
                    matches!(self.grammar.node(*id), Node::Terminal(Terminal::Margin))
                };
                let parts: Vec<NodeId> = parts.into_iter().filter(|id| !margin(id)).collect();
                assert_eq!(parts.len(), 1, "a document is one value");
                self.node(parts[0], value)
            }
            Node::Alt(arms) => arms.iter().any(|&arm| self.node(arm, value)),
            Node::Rule(target) => self.node(target, value),
            Node::Array(spec) => value.as_array().is_some_and(|items| self.array(&spec, items)),
            Node::Object(spec) => {
                value.as_object().is_some_and(|members| self.object(&spec, members))
            }
            Node::Repeat { .. } => panic!("no schema makes a repetition"),
        }
    }

    fn terminal(&mut self, terminal: &Terminal, value: &Value) -> bool {
        let (expr, text) = match (terminal, value) {
            (Terminal::Text(expr), Value::Null | Value::Bool(_)) => (*expr, value.to_string()),
            (Terminal::String(expr), Value::String(text)) => (*expr, text.clone()),
            (Terminal::Format(format), Value::String(text)) => {
                (format.expr(&mut self.exprs), text.clone())
            }
            (Terminal::Number(spec), Value::Number(number)) => {
                let text = number.to_string();
                let spelled = !spec.whole || !text.contains(['.', 'e', 'E']);
                return spelled && in_spec(spec, &Decimal::parse(&text).expect("a number"));
            }
            _ => return false,
        };
        self.exprs.matches(expr, &text, &mut self.fuel).expect("fuel")
    }

    fn array(&mut self, spec: &ArraySpec, items: &[Value]) -> bool {
        let length = items.len() as u64;
        if length < spec.min || spec.max.is_some_and(|max| length > max) {
            return false;
        }
        if spec.unique
            && items.iter().enumerate().any(|(i, a)| items[..i].iter().any(|b| equal(a, b)))
        {
            return false;
        }
        let mut counts = HashSet::from([vec![0u64; spec.contains.len()]]);
        for (i, item) in items.iter().enumerate() {
            let classes = spec.prefix.get(i).unwrap_or(&spec.rest).clone();
            let mut next = HashSet::new();
            for class in classes {
                if self.node(class.node, item) {
                    for known in &counts {
                        let add = |(bit, count): (usize, &u64)| {
                            count + u64::from(class.counts >> bit & 1)
                        };
                        next.insert(known.iter().enumerate().map(add).collect::<Vec<u64>>());
                    }
                }
            }
            counts = next;
        }
        counts.iter().any(|counts| {
            counts
                .iter()
                .zip(&spec.contains)
                .all(|(n, (min, max))| n >= min && max.is_none_or(|max| *n <= max))
        })
    }

    fn object(&mut self, spec: &ObjectSpec, members: &serde_json::Map<String, Value>) -> bool {
        let count = members.len() as u64;
        if count < spec.min || spec.max.is_some_and(|max| count > max) {
            return false;
        }
        let there = |i: u32| members.contains_key(&spec.properties[i as usize].name);
        if spec.properties.iter().any(|p| p.required && !members.contains_key(&p.name))
            || spec.dependent.iter().any(|&(a, b)| there(a) && !there(b))
        {
            return false;
        }
        let mut counts = HashSet::from([vec![0u64; spec.others.len()]]);
        for (key, value) in members {
            if let Some(property) = spec.properties.iter().find(|p| p.name == *key) {
                if !self.node(property.value, value) {
                    return false;
                }
                for other in &spec.others {
                    let same = self.exprs.matches(other.keys, key, &mut self.fuel).expect("fuel");
                    assert!(!same, "{key:?} is declared and also in a class");
                }
                continue;
            }
            let mut next = HashSet::new();
            for (i, other) in spec.others.iter().enumerate() {
                if self.exprs.matches(other.keys, key, &mut self.fuel).expect("fuel")
                    && self.node(other.value, value)
                {
                    for known in &counts {
                        let mut known = known.clone();
                        known[i] += 1;
                        next.insert(known);
                    }
                }
            }
            counts = next;
        }
        counts.iter().any(|counts| {
            counts
                .iter()
                .zip(&spec.others)
                .all(|(n, other)| *n >= other.min && other.max.is_none_or(|max| *n <= max))
        })
    }
}

fn in_spec(spec: &NumberSpec, value: &Decimal) -> bool {
    spec.min.as_ref().is_none_or(|(low, open)| value > low || (!open && value == low))
        && spec.max.as_ref().is_none_or(|(high, open)| value < high || (!open && value == high))
        && (!spec.integer || value.is_integer())
        && (!spec.fractional || !value.is_integer())
        && spec.multiple_of.iter().all(|unit| value.is_multiple_of(unit))
        && !spec.not_multiple_of.iter().any(|unit| value.is_multiple_of(unit))
}

/// Equal as JSON Schema says: numbers by value.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let read = |n: &serde_json::Number| Decimal::parse(&n.to_string()).expect("a number");
            read(a) == read(b)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        (a, b) => a == b,
    }
}

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
#[derive(Default)]
struct Tally {
    schemas: usize,
    right: usize,
    wrongly_accepted: Vec<String>,
    wrongly_rejected: Vec<String>,
    refused: BTreeMap<String, Vec<String>>,
}

impl Tally {
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
        let mut language = Language::new(grammar);
        let mut right = true;
        for test in tests {
            let (valid, accepted) = (test["valid"] == true, language.has(&test["data"]));
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
    let mut tally = Tally::default();
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

#[test]
#[ignore = "takes a minute; run with --ignored"]
fn real_schemas_all() {
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

#[test]
fn official_suite() {
    let Some(shared) = shared() else { return };
    let root = shared.join("json-schema-test-suite");
    let documents = remotes(&root.join("remotes"));
    for (draft, id) in [
        ("draft4", constrain::schema::Draft::Draft4),
        ("draft7", constrain::schema::Draft::Draft7),
        ("draft2020-12", constrain::schema::Draft::Draft202012),
    ] {
        let mut tally = Tally::default();
        let folders = [root.join(draft), root.join(draft).join("optional/format")];
        for path in folders
            .iter()
            .flat_map(|folder| files(folder))
            .filter(|path| path.extension().is_some())
        {
            let text = std::fs::read_to_string(&path).expect("a file");
            let groups: Value = serde_json::from_str(&text).expect("JSON");
            let optional = path.components().any(|part| part.as_os_str() == "format");
            let file = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            for group in groups.as_array().into_iter().flatten() {
                let title = format!("{draft}/{file}: {}", group["description"]);
                let mut options = any_order();
                options.documents = documents.clone();
                // Outside `optional/format` the suite takes formats for annotations.
                options.assert_formats = optional;
                if group["schema"].get("$schema").is_none() {
                    options.draft = Some(id);
                }
                let tests = group["tests"].as_array().cloned().unwrap_or_default();
                tally.judge(&title, &group["schema"], &tests, &options);
            }
        }
        tally.print(draft);
    }
}
