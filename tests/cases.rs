//! The shared cases: each a schema with texts that must be accepted or rejected.
//!
//! Every text is tried byte by byte and token by token, and before each token the mask must say what
//! accepting then does.

mod support;

use constrain::grammar::{Grammar, PropertyOrder};
use constrain::{Constraint, Vocabulary, schema};
use serde::Deserialize;
use support::Tokenizer;

#[derive(Deserialize)]
struct Case {
    id: String,
    /// The text of the schema, cut out of the line before it is parsed: some nest deeper than
    /// the parser of the tests does.
    #[serde(skip)]
    schema: String,
    #[serde(default)]
    options: CaseOptions,
    /// `error`: compiling must fail.
    #[serde(default)]
    expect: String,
    tests: Vec<Text>,
}

#[derive(Deserialize, Default)]
struct CaseOptions {
    #[serde(default)]
    property_order: String,
}

#[derive(Deserialize)]
struct Text {
    text: String,
    valid: bool,
}

/// The line without its member `schema`, and that member's text.
fn cut_schema(line: &str) -> (String, String) {
    const KEY: &str = "\"schema\": ";
    let Some(start) = line.find(KEY) else { return (line.to_owned(), String::new()) };
    let text = &line[start + KEY.len()..];
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    let end = text
        .char_indices()
        .find(|&(_, c)| {
            match c {
                _ if escaped => escaped = false,
                '\\' if quoted => escaped = true,
                '"' => quoted = !quoted,
                '{' | '[' if !quoted => depth += 1,
                '}' | ']' if !quoted => depth -= 1,
                _ => {}
            }
            depth == 0 && !quoted && (c == ',' || c == '}' || c == ']')
        })
        .map(|(at, c)| if c == ',' { at } else { at + 1 })
        .expect("the schema ends");
    let rest = text[end..].trim_start_matches(", ");
    (format!("{}{rest}", &line[..start]), text[..end].to_owned())
}

fn compile_schema(case: &Case) -> constrain::Result<Grammar> {
    let property_order = match case.options.property_order.as_str() {
        "any" => PropertyOrder::Any,
        _ => PropertyOrder::Declared,
    };
    let options = schema::Options { property_order, ..schema::Options::default() };
    schema::compile(&case.schema, &options)
}

/// Whether a text is accepted byte by byte.
fn by_bytes(constraint: &Constraint, text: &str) -> bool {
    let mut matcher = constraint.matcher();
    text.bytes().all(|byte| matcher.accept_bytes(&[byte]).is_ok()) && matcher.can_stop()
}

/// Whether a text is accepted token by token, ended by the end token.
fn by_tokens(constraint: &Constraint, tokenizer: &Tokenizer, text: &str) -> bool {
    let mut matcher = constraint.matcher();
    let ids = tokenizer.split(text.as_bytes());
    let end = constraint.vocabulary().end_tokens()[0];
    ids.into_iter().chain([end]).all(|id| {
        let masked = matcher.mask().unwrap().contains(id);
        let accepted = matcher.accept(id).is_ok();
        assert_eq!(masked, accepted, "the mask and accept differ for token {id} of {text:?}");
        accepted
    })
}

/// What is wrong with a case, if anything.
fn judge(
    case: &Case,
    compiled: constrain::Result<Grammar>,
    vocabularies: &[(Vocabulary, Tokenizer)],
) -> Result<(), String> {
    let expected = case.expect.as_str();
    for (vocabulary, tokenizer) in vocabularies {
        let constraint = compiled.clone().and_then(|grammar| Constraint::new(&grammar, vocabulary));
        let constraint = match (constraint, expected) {
            (Err(_), "error") => continue,
            (Ok(_), "error") => return Err("compiles, but must not".into()),
            (Err(error), _) => return Err(format!("does not compile: {error}")),
            (Ok(constraint), _) => constraint,
        };
        for Text { text, valid } in &case.tests {
            let shown: String = text.chars().take(80).collect();
            let verdict = |accepted| if accepted { "accepts" } else { "rejects" };
            for (how, accepted) in [
                ("by bytes", by_bytes(&constraint, text)),
                ("by tokens", by_tokens(&constraint, tokenizer, text)),
            ] {
                if accepted != *valid {
                    return Err(format!("{} {shown:?} {how}", verdict(accepted)));
                }
            }
        }
    }
    Ok(())
}

fn run(file: &str, compile: impl Fn(&Case) -> constrain::Result<Grammar>) {
    let Some(text) = support::shared(&format!("cases/{file}")) else { return };
    let vocabularies = [support::bytes(), support::synthetic()].map(|vocabulary| {
        let tokenizer = Tokenizer::new(&vocabulary);
        (vocabulary, tokenizer)
    });
    let mut failures = Vec::new();
    let mut right = 0;
    for line in text.lines() {
        let (line, schema) = cut_schema(line);
        let case = Case { schema, ..serde_json::from_str(&line).unwrap() };
        match judge(&case, compile(&case), &vocabularies) {
            Ok(()) => right += 1,
            Err(wrong) => failures.push(format!("{}: {wrong}", case.id)),
        }
    }
    println!("{file}: {right} cases are right");
    assert!(right > 0, "{file} has no cases");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn schemas() {
    run("schema.jsonl", compile_schema);
}
