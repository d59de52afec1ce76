//! One line of an input file: a schema or a grammar, and texts that it must accept or reject.
use crate::PropertyOrder;
use anyhow::{Context, Result};
use constrain::syntax::Syntax;
use flate2::read::MultiGzDecoder;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// A case.
#[derive(Deserialize)]
pub struct Case {
    /// Names the case in the results.
    pub id: String,
    /// The schema as it is spelled in the file.
    #[serde(default, deserialize_with = "present")]
    pub schema: Option<Box<RawValue>>,
    /// A text grammar, with `syntax`.
    #[serde(default)]
    pub grammar: Option<String>,
    /// The syntax of `grammar`: gbnf, w3c, ebnf, lark, regex or choice.
    #[serde(default)]
    pub syntax: Option<String>,
    /// Options of the case.
    #[serde(default)]
    pub options: Options,
    /// `error`: the case must be refused when it is compiled.
    #[serde(default)]
    pub expect: Option<String>,
    /// Texts to accept or to reject.
    #[serde(default)]
    pub tests: Vec<Test>,
}

/// Options of a case; they count more than those of the command line.
#[derive(Default, Deserialize)]
pub struct Options {
    /// The order of an object's keys.
    #[serde(default)]
    pub property_order: Option<PropertyOrder>,
}

/// A text and whether it is valid.
#[derive(Deserialize)]
pub struct Test {
    /// A JSON value, to be spelled compactly; or
    #[serde(default, deserialize_with = "present")]
    pub data: Option<Box<RawValue>>,
    /// a raw text.
    #[serde(default)]
    pub text: Option<String>,
    /// Whether it must be accepted.
    pub valid: bool,
}

impl Test {
    /// The text to match.
    pub fn text(&self) -> String {
        match (&self.text, &self.data) {
            (Some(text), _) => text.clone(),
            (None, Some(data)) => compact(data.get()),
            (None, None) => String::new(),
        }
    }
}

/// A value that is there even if it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// The cases of a file: its lines that are not blank (a name in `.gz` is decompressed), or a grammar with the
/// texts in the `.cases.jsonl` beside it.
pub fn read_cases(path: &Path) -> Result<Vec<String>> {
    let Some(syntax) = Syntax::from_path(path) else { return read_lines(path) };
    let grammar =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let tests = read_lines(&path.with_extension("cases.jsonl"))?.join(",");
    let text = |value: &str| serde_json::to_string(value);
    let id = path.file_stem().unwrap_or_default().to_string_lossy();
    let (id, grammar, syntax) = (text(&id)?, text(&grammar)?, text(syntax.name())?);
    Ok(vec![format!(r#"{{"id":{id},"grammar":{grammar},"syntax":{syntax},"tests":[{tests}]}}"#)])
}

/// The lines of a file that are not blank; a name in `.gz` is decompressed.
pub fn read_lines(path: &Path) -> Result<Vec<String>> {
    let opened = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let gzip = path.extension().is_some_and(|extension| extension == "gz");
    let reader: Box<dyn Read> =
        if gzip { Box::new(MultiGzDecoder::new(opened)) } else { Box::new(opened) };
    let mut lines = Vec::new();
    for line in BufReader::new(reader).lines() {
        let line = line.with_context(|| format!("cannot read {}", path.display()))?;
        if !line.trim().is_empty() {
            lines.push(line);
        }
    }
    Ok(lines)
}

/// JSON text without white space between its tokens, strings in their shortest spelling. Numbers
/// keep the spelling of the file, which a parser would not.
fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(c) = rest.chars().next() {
        let len = if c == '"' { string_len(rest) } else { c.len_utf8() };
        let (piece, after) = rest.split_at(len);
        rest = after;
        if c == '"' {
            // A string that is no text (half a surrogate pair) stays as it is.
            match serde_json::from_str::<String>(piece).and_then(|s| serde_json::to_string(&s)) {
                Ok(spelled) => out.push_str(&spelled),
                Err(_) => out.push_str(piece),
            }
        } else if !c.is_ascii_whitespace() {
            out.push_str(piece);
        }
    }
    out
}

/// Length of the string at the start of a JSON text, quotes included.
fn string_len(json: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in json.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_keeps_keys_and_numbers() {
        let spelled = r#" { "b" : [ 1.0 , 1e400,-0 ], "a\u0062 \"": "\u00e9\n" , "z": "\ud800" } "#;
        let expected = r#"{"b":[1.0,1e400,-0],"ab \"":"é\n","z":"\ud800"}"#;
        assert_eq!(compact(spelled), expected);
    }

    #[test]
    fn a_case() {
        let line = r#"{"id": "x", "schema": {"b": 1, "a": 2}, "options": {"property_order": "any"},
            "tests": [{"data": null, "valid": true}, {"text": "a b", "valid": false}]}"#;
        let case: Case = serde_json::from_str(line).unwrap();
        assert_eq!(case.schema.map(|s| s.get().to_owned()).as_deref(), Some(r#"{"b": 1, "a": 2}"#));
        assert!(case.options.property_order == Some(PropertyOrder::Any));
        assert_eq!(case.tests.iter().map(Test::text).collect::<Vec<_>>(), ["null", "a b"]);
    }
}
