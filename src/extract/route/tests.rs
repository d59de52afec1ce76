//! Models that are unsure of one field, and surer when they are asked for it alone.

use super::*;
use crate::extract::Options;
use crate::model::scripted::{ScriptedModel, vocabulary};
use crate::vocab::TokenId;
use serde_json::json;

const SCHEMA: &str = r#"{"type": "object", "properties": {
    "name": {"enum": ["Ada", "Grace"]}, "born": {"type": "integer", "minimum": 0},
    "mood": {"enum": ["calm", "angry"]}}, "required": ["name", "born", "mood"],
    "additionalProperties": false}"#;

/// Says `first`, but is torn between the digits of the year; asked again, it says `then` with more
/// certainty (`sharpness`).
fn model(first: &'static str, then: &'static str, sharpness: f32) -> ScriptedModel {
    let vocabulary = vocabulary();
    let own = vocabulary.clone();
    let answer = vocabulary.special("<|assistant|>");
    ScriptedModel::new(vocabulary, move |tokens, row| {
        let start = tokens.iter().rposition(|&t| Some(t) == answer).map_or(0, |at| at + 1);
        let bytes = |ids: &[TokenId]| -> Vec<u8> {
            ids.iter().flat_map(|&id| own.bytes(id).unwrap_or_default()).copied().collect()
        };
        let prompt = String::from_utf8_lossy(&bytes(&tokens[..start])).into_owned();
        let again = prompt.contains("Look again for");
        let (target, sharp) = if again { (then, sharpness) } else { (first, 1.0) };
        let said = bytes(&tokens[start..]);
        let said = String::from_utf8_lossy(&said);
        // What is left of the target after as much of it as was said.
        let left = target.strip_prefix(said.trim_end()).unwrap_or_default().trim_start();
        for (id, logit) in (0..).zip(row) {
            *logit =
                match own.bytes(id) {
                    Some([byte]) if left.as_bytes().first() == Some(byte) => {
                        if byte.is_ascii_digit() { 2.0 + sharp } else { 20.0 }
                    }
                    Some([byte]) if byte.is_ascii_digit() => 2.0,
                    None if own.is_end(id) && left.is_empty() => 20.0,
                    _ => -10.0,
                };
        }
    })
}

const FIRST: &str = r#"{"name":"Ada","born":1851,"mood":"calm"}"#;
const THEN: &str = r#"{"name":"Ada","born":1815,"mood":"calm"}"#;

#[test]
fn the_surer_answer_is_taken_and_the_others_are_kept() -> Result<()> {
    let mut small = model(FIRST, THEN, 3.0);
    let extractor = Extractor::new(&vocabulary(), SCHEMA, Options::default())?;
    let mut decoder = Decoder::new(&mut small);
    let mut found = extractor.extract(&mut decoder, "Ada, 1815")?;
    assert_eq!(found.text, FIRST);
    let weak: Vec<&str> = found.weak(0.5).map(|field| field.pointer.as_str()).collect();
    assert_eq!(weak, ["/born"]);
    let first = found.field("/born").and_then(|field| field.sureness.clone()).expect("figures");

    extractor.again(&mut decoder, "Ada, 1815", &mut found, (0.5, &Answerer::Alone))?;
    assert_eq!((found.text.as_str(), &found.value["born"]), (THEN, &json!(1815)));
    let born = found.field("/born").expect("a field");
    assert_eq!((&born.by, &found.text[born.range.clone()]), (&Answerer::Alone, "1815"));
    let sure = born.sureness.as_ref().expect("figures").probability;
    assert!(sure > first.probability, "{sure} after {first:?}");
    let earlier =
        Earlier { by: Answerer::Document, value: json!(1851), probability: first.probability };
    assert_eq!(born.earlier, [earlier]);
    assert_eq!(found.fields[0].value, found.value);
    let mood = found.field("/mood").expect("a field");
    assert_eq!((&found.text[mood.range.clone()], &mood.by), ("\"calm\"", &Answerer::Document));

    // A bigger model, over a vocabulary of its own, is surer still.
    let mut bigger = model(THEN, THEN, 9.0);
    let by = Answerer::Bigger("bigger".to_owned());
    let above = extractor.for_vocabulary(&vocabulary())?;
    let mut decoder = Decoder::new(&mut bigger);
    above.again(&mut decoder, "Ada, 1815", &mut found, (0.99, &by))?;
    let born = found.field("/born").expect("a field");
    assert_eq!((&born.by, born.earlier.len(), born.doubtful), (&by, 2, false));
    Ok(())
}

#[test]
fn a_less_sure_answer_is_noted_and_the_field_marked() -> Result<()> {
    let mut small = model(FIRST, THEN, 0.5);
    let extractor = Extractor::new(&vocabulary(), SCHEMA, Options::default())?;
    let mut decoder = Decoder::new(&mut small);
    let mut found = extractor.extract(&mut decoder, "Ada, 1815")?;
    extractor.again(&mut decoder, "Ada, 1815", &mut found, (0.5, &Answerer::Alone))?;
    assert_eq!(found.text, FIRST);
    let born = found.field("/born").expect("a field");
    assert_eq!((&born.by, born.doubtful), (&Answerer::Document, true));
    assert_eq!(born.earlier.iter().map(|e| &e.by).collect::<Vec<_>>(), [&Answerer::Alone]);
    assert!(!found.field("/name").expect("a field").doubtful);
    Ok(())
}

#[test]
fn without_room_for_a_question_the_first_answer_stays() -> Result<()> {
    let extractor = Extractor::new(&vocabulary(), SCHEMA, Options::default())?;
    let request = extractor.request(&model(FIRST, THEN, 3.0), "Ada, 1815")?;
    // Room for the answer, and not for what is known beside it.
    let room = request.prompt.len() + FIRST.len() + 10;
    let mut small = model(FIRST, THEN, 3.0).with_context_len(room);
    let mut decoder = Decoder::new(&mut small);
    let mut found = extractor.extract(&mut decoder, "Ada, 1815")?;
    extractor.again(&mut decoder, "Ada, 1815", &mut found, (0.5, &Answerer::Alone))?;
    assert_eq!(found.text, FIRST);
    assert!(found.field("/born").is_some_and(|born| born.doubtful && born.earlier.is_empty()));
    Ok(())
}

#[test]
fn scalars_end_where_they_end() {
    for (bytes, end) in [
        (" \"a\\\"b\", ", Some(7)),
        ("12,", Some(2)),
        ("12", None),
        (" true}", Some(5)),
        ("\"a", None),
        ("{", None),
        ("", None),
    ] {
        assert_eq!(scalar_end(bytes.as_bytes()), end, "{bytes}");
    }
    assert_eq!(
        without(r#"{"a/b": {"c": 1, "d": 2}}"#, "/a~1b/c").as_deref(),
        Some(r#"{"a/b":{"d":2}}"#)
    );
    assert_eq!(without(r#"{"a": [1, 2]}"#, "/a/1").as_deref(), Some(r#"{"a":[1,"?"]}"#));
}
