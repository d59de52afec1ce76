//! What schemas and grammars that other engines find hard cost, and whether a step costs the same after
//! 20,000 tokens.
//!
//! Two tables: for each case the first visit of every configuration on the way of a text, and the same text
//! once more; for long outputs the mean step of the first and the last thousand tokens, and the memory of what
//! was learnt. A step is a mask and the acceptance of a token.
mod common;

use constrain::grammar::PropertyOrder;
use constrain::schema::{self, Options};
use constrain::syntax::Syntax;
use constrain::{Constraint, Grammar, TokenId, Vocabulary};
use serde_json::{Value, json};
use std::time::Instant;

/// A schema or a grammar, and a text that it accepts.
struct Case {
    name: &'static str,
    grammar: Grammar,
    text: String,
}

/// A schema whose properties may come in any order.
fn of_schema(name: &'static str, schema: &Value, value: &Value) -> Case {
    let options = Options { property_order: PropertyOrder::Any, ..Options::default() };
    let grammar = schema::compile(&schema.to_string(), &options).expect("a schema");
    Case { name, grammar, text: value.to_string() }
}

fn of_text(name: &'static str, syntax: Syntax, grammar: &str, text: String) -> Case {
    let grammar = Grammar::from_text(grammar, syntax, &Options::default()).expect("a grammar");
    Case { name, grammar, text }
}

/// An object schema with these properties.
fn object(properties: impl Iterator<Item = (String, Value)>, required: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> = properties.collect();
    json!({"type": "object", "properties": properties, "required": required,
           "additionalProperties": false})
}

fn cliffs() -> Vec<Case> {
    let texts = |n: usize| (0..n).map(|i| format!("{}-{i:05}", ["red", "green", "blue"][i % 3]));
    let optional = |n| object((0..n).map(|i| (format!("key{i}"), json!({"type": "string"}))), &[]);
    let tagged = |n: usize| {
        let arm = |i: usize| {
            let kind = json!({"const": format!("kind-{i}")});
            let fields = [("kind".to_owned(), kind), (format!("f{i}"), json!({"type": "number"}))];
            object(fields.into_iter(), &["kind"])
        };
        json!({"anyOf": (0..n).map(arm).collect::<Vec<_>>()})
    };
    let functions = |n: usize| {
        let arm = |i: usize| {
            let arguments =
                object([(format!("arg{i}"), json!({"type": "string"}))].into_iter(), &[]);
            let name = json!({"const": format!("{}_{i}", ["get", "set", "list", "find"][i % 4])});
            object(
                [("name".to_owned(), name), ("arguments".to_owned(), arguments)].into_iter(),
                &["name", "arguments"],
            )
        };
        json!({"anyOf": (0..n).map(arm).collect::<Vec<_>>()})
    };
    let pattern = |pattern: &str| json!({"type": "string", "pattern": pattern});
    let words = "lorem ipsum dolor sit amet ".repeat(40);
    vec![
        of_schema(
            "1,000 optional properties",
            &optional(1_000),
            &json!({"key999": "x", "key500": "y", "key0": "z", "key501": "x", "key1": ""}),
        ),
        of_schema(
            "maxLength 100,000",
            &json!({"maxLength": 100_000, "type": "string"}),
            &json!(words),
        ),
        of_schema(
            "maxItems 30,000",
            &json!({"type": "array", "items": {"type": "integer"}, "maxItems": 30_000}),
            &json!((0..500).collect::<Vec<_>>()),
        ),
        of_schema(
            "enum of 10,000 strings",
            &json!({"enum": texts(10_000).collect::<Vec<_>>()}),
            &json!("green-05002-".trim_end_matches('-')),
        ),
        of_schema("pattern foo", &pattern("foo"), &json!(format!("{words}foo{words}"))),
        of_schema(
            "pattern ^[^/]+/[^/]+$",
            &pattern("^[^/]+/[^/]+$"),
            &json!("some text/and more of it"),
        ),
        of_schema(
            "e-mail pattern",
            &pattern(r"^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$"),
            &json!("ada.lovelace@example.co.uk"),
        ),
        of_schema(
            "100 objects with a discriminator",
            &tagged(100),
            &json!({"kind": "kind-57", "f57": 1.5}),
        ),
        of_schema(
            "400 functions to choose from",
            &functions(400),
            &json!({"name": "find_123", "arguments": {"arg123": "some text"}}),
        ),
        of_text(
            "text up to a marker",
            Syntax::Lark,
            "start: %until \"<end>\"\n",
            format!("{words}<en> and <end"),
        ),
    ]
}

fn long(n: usize) -> Vec<Case> {
    let pairs: Vec<Value> = (0..n / 4).map(|i| json!([i % 10, [i % 7]])).collect();
    let items = json!({"type": "array", "items": {"anyOf": [{"type": "integer"}, {"$ref": "#"}]}});
    vec![
        of_schema("nested arrays", &items, &json!(pairs)),
        of_schema(
            "one long string",
            &json!({"type": "string"}),
            &json!("lorem ipsum ".repeat(n / 2)),
        ),
        of_text(
            "an ambiguous grammar",
            Syntax::Gbnf,
            "root ::= root root | [ab] | \"ab\"\n",
            "abaab".repeat(n),
        ),
    ]
}

/// Microseconds of each step over `tokens`.
fn steps(constraint: &Constraint, tokens: &[TokenId], mask: &mut [u32]) -> Vec<f64> {
    let mut matcher = constraint.matcher();
    let mut step = |&token: &TokenId| {
        let start = Instant::now();
        matcher.fill_bitmask(mask).expect("a mask");
        matcher.accept(token).expect("an allowed token");
        start.elapsed().as_secs_f64() * 1e6
    };
    tokens.iter().map(&mut step).collect()
}

/// The value that so large a part of some values is below.
fn quantile(values: &[f64], part: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[((values.len() as f64 * part) as usize).min(values.len() - 1)]
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn table(vocabulary: &Vocabulary, mask: &mut [u32]) {
    println!(
        "{:34} {:>7}  first: {:>7} {:>8}   again: {:>6} {:>6} {:>6}",
        "µs a step", "tokens", "p50", "max", "p50", "p99", "max"
    );
    for Case { name, grammar, text } in cliffs() {
        let constraint = Constraint::new(&grammar, vocabulary).expect("a constraint");
        let tokens = common::encode(vocabulary, &text);
        let first = steps(&constraint, &tokens, mask);
        let again = steps(&constraint, &tokens, mask);
        let [a, b] = [0.5, 1.0].map(|part| quantile(&first, part));
        let [c, d, e] = [0.5, 0.99, 1.0].map(|part| quantile(&again, part));
        println!(
            "{name:34} {:>7}         {a:>7.1} {b:>8.1}          {c:>6.1} {d:>6.1} {e:>6.1}",
            tokens.len()
        );
    }
}

fn flat(vocabulary: &Vocabulary, mask: &mut [u32]) {
    println!(
        "\n{:34} {:>7} {:>16} {:>16} {:>14}",
        "µs a step, mean", "tokens", "first thousand", "last thousand", "learnt, bytes"
    );
    for Case { name, grammar, text } in long(40_000) {
        let constraint = Constraint::new(&grammar, vocabulary).expect("a constraint");
        let mut tokens = common::encode(vocabulary, &text);
        tokens.truncate(20_000);
        // What a cut text ends with is a beginning of a document, too.
        let steps = steps(&constraint, &tokens, mask);
        let (first, last) = (&steps[..1_000], &steps[steps.len() - 1_000..]);
        let learnt = constraint.stats().configuration_bytes;
        println!(
            "{name:34} {:>7} {:>16.2} {:>16.2} {learnt:>14}",
            tokens.len(),
            mean(first),
            mean(last)
        );
    }
}

fn main() {
    let vocabulary = common::vocabulary();
    let mut mask = vec![0; vocabulary.len().div_ceil(32)];
    table(&vocabulary, &mut mask);
    flat(&vocabulary, &mut mask);
}
