//! Choices read from automata, and their distribution against the definition.

use super::*;
use crate::decode::score::tests::apart;
use crate::error::Result;
use crate::extract::{Extractor, Options};
use crate::model::scripted::{ScriptedModel, vocabulary};
use crate::sample::Settings;
use crate::schema;
use serde_json::json;

fn found(schema: &Value) -> Result<Option<Vec<Value>>> {
    let document = json!({"type": "object", "properties": {"a": schema}, "required": ["a"],
        "additionalProperties": false});
    let grammar = schema::compile(&document.to_string(), &schema::Options::default())?;
    let constraint = Constraint::new(&grammar, &vocabulary())?;
    let mut matcher = constraint.matcher();
    matcher.accept_bytes(b"{\"a\":")?;
    let texts = values(&matcher);
    let parsed = |texts: Vec<String>| {
        let mut values: Vec<Value> =
            texts.iter().map(|text| serde_json::from_str(text).expect("a value")).collect();
        values.sort_by_key(Value::to_string);
        values
    };
    Ok(texts.map(parsed))
}

#[test]
fn few_values_are_found_whatever_keyword_says_so() -> Result<()> {
    for (schema, expected) in [
        (json!({"enum": ["no", "not yet", null, 3]}), json!([null, 3, "no", "not yet"])),
        (json!({"type": "boolean"}), json!([true, false])),
        (json!({"const": "é\"\n\u{1}\\/"}), json!(["é\"\n\u{1}\\/"])),
        (json!({"type": "integer", "minimum": -1, "maximum": 2}), json!([-1, 0, 1, 2])),
        (json!({"enum": [1, 10, 1.5]}), json!([1, 10, 1.5])),
        (
            json!({"anyOf": [{"pattern": "^[ab]c?$", "type": "string"}, {"type": "null"}]}),
            json!(["a", "b", "ac", "bc", null]),
        ),
    ] {
        let mut expected = expected.as_array().cloned().unwrap_or_default();
        expected.sort_by_key(Value::to_string);
        assert_eq!(found(&schema)?, Some(expected), "{schema}");
    }
    Ok(())
}

#[test]
fn many_values_are_no_choice() -> Result<()> {
    for schema in [
        json!({"type": "string"}),
        json!({"type": "string", "format": "date"}),
        json!({"type": "integer"}),
        json!({"type": "number", "minimum": 0, "maximum": 1}),
        json!({"enum": ["a", {"b": 1}]}),
        json!({"type": "integer", "minimum": 1, "maximum": 100}),
    ] {
        assert_eq!(found(&schema)?, None, "{schema}");
    }
    let many: Vec<String> = (0..60).map(|i| format!("value number {i}")).collect();
    assert_eq!(found(&json!({"enum": many}))?.map(|values| values.len()), Some(60));
    Ok(())
}

const SCHEMA: &str = r#"{"type": "object", "properties": {
    "ok": {"type": "boolean"},
    "rating": {"type": "integer", "minimum": 8, "maximum": 12},
    "kind": {"enum": ["reason", "email", "user", "other \"x\"", null]},
    "many": {"type": "string", "maxLength": 3}},
    "required": ["ok", "rating", "kind", "many"], "additionalProperties": false}"#;

#[test]
fn the_distribution_is_that_of_scoring_each_choice_apart() -> Result<()> {
    let mut checked = 0;
    for seed in 0..12 {
        let mut model = ScriptedModel::noise(seed);
        let settings = Settings { seed, ..Settings::drawing(0.8) };
        let options = Options { settings, distributions: true, ..Options::default() };
        let extractor = Extractor::new(model.vocabulary(), SCHEMA, options)?;
        let request = extractor.request(&model, "a document")?;
        let mut decoder = Decoder::new(&mut model);
        let outcome = decoder.run(&request)?;
        let found = extractor.extract(&mut decoder, "a document")?;
        assert_eq!(found.text.as_bytes(), outcome.bytes);
        for field in found.fields.iter().filter(|field| field.kind.is_scalar()) {
            let sureness = field.sureness.as_ref().expect("figures");
            let few = field.pointer != "/many";
            assert_eq!(sureness.choices.is_empty(), !few, "{}", field.pointer);
            if !few {
                continue;
            }
            let total: f64 = sureness.choices.iter().map(|choice| choice.probability).sum();
            assert!((total - 1.0).abs() < 1e-9);
            // The token after a number belongs to it: 1 may go on as 10.
            let mut tokens = field.tokens.clone();
            tokens.end += usize::from(field.pointer == "/rating");
            let bytes_of = |ids: &[TokenId]| -> Vec<u8> {
                let vocabulary = extractor.constraint().vocabulary();
                ids.iter()
                    .flat_map(|&id| vocabulary.bytes(id).unwrap_or_default())
                    .copied()
                    .collect()
            };
            let start = bytes_of(&outcome.tokens[..tokens.start]).len();
            let end = bytes_of(&outcome.tokens[..tokens.end]).len();
            let before = [&request.prompt[..], &outcome.tokens[..tokens.start]].concat();
            let mut scores = Vec::new();
            for choice in &sureness.choices {
                let text = format!(
                    "{}{}{}",
                    &found.text[start..field.range.start],
                    choice.value,
                    &found.text[field.range.end..end]
                );
                let spelled = ScriptedModel::noise(seed).tokenize(&text, false)?;
                scores.push(apart(&mut ScriptedModel::noise(seed), &before, &spelled)?);
            }
            let sum: f64 = scores.iter().map(|score| score.exp()).sum();
            for (choice, score) in sureness.choices.iter().zip(&scores) {
                let (got, expected) = (choice.probability, score.exp() / sum);
                assert!((got - expected).abs() < 1e-9, "{choice:?}: {got}, not {expected}");
                checked += 1;
            }
            let own = sureness.choices.iter().find(|choice| is_same(&choice.value, &field.value));
            assert_eq!(own.map(|own| own.probability), Some(sureness.probability));
        }
    }
    assert!(checked >= 12 * 12, "{checked}");
    Ok(())
}

#[test]
fn a_cancelled_request_is_not_weighed() -> Result<()> {
    let mut model = ScriptedModel::noise(1);
    let extractor = Extractor::new(model.vocabulary(), SCHEMA, Options::default())?;
    let cancel = crate::limits::Cancel::default();
    let request = extractor.request(&model, "a document")?;
    let request = Request { cancel: Some(cancel.clone()), ..request };
    let mut decoder = Decoder::new(&mut model);
    let outcome = decoder.run(&request)?;
    let mut found = extractor.read(&request, &outcome)?;
    cancel.cancel();
    let weighed = extractor.weigh(&mut decoder, (&request, &outcome), &mut found);
    assert_eq!(weighed.map_err(|error| error.kind().clone()), Err(crate::Kind::Cancelled));
    Ok(())
}
