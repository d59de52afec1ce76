//! Extraction with scripted models.

use super::*;
use crate::decode::Decoder;
use crate::model::scripted::ScriptedModel;
use crate::model::{Model, Role};
use serde::Deserialize;
use serde_json::{Value, json};

const TICKET: &str = r#"{"type": "object", "properties": {
    "name": {"type": "string", "maxLength": 30},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "mood": {"enum": ["calm", "angry"]},
    "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2}},
    "required": ["name", "age", "mood", "tags"], "additionalProperties": false}"#;

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Ticket {
    name: String,
    age: u8,
    mood: String,
    tags: Vec<String>,
}

const ANSWER: &str = r#"{"name": "Ada", "age": 36, "mood": "calm", "tags": ["a"]}"#;

#[test]
fn a_typed_value_with_its_fields() -> Result<()> {
    let mut model = ScriptedModel::following(ANSWER);
    let extractor: Extractor<Ticket> =
        Extractor::of(model.vocabulary(), TICKET, Options::default())?;
    let found = extractor.extract(&mut Decoder::new(&mut model), "Ada is 36 and calm.")?;
    let tags = vec!["a".to_owned()];
    assert_eq!(found.value, Ticket { name: "Ada".into(), age: 36, mood: "calm".into(), tags });
    let pointers: Vec<&str> = found.fields.iter().map(|field| field.pointer.as_str()).collect();
    assert_eq!(pointers, ["", "/name", "/age", "/mood", "/tags", "/tags/0"]);
    let whole: Value = serde_json::from_str(&found.text).expect("a document");
    for field in &found.fields {
        assert_eq!(whole.pointer(&field.pointer), Some(&field.value));
        let own: Value = serde_json::from_str(&found.text[field.range.clone()]).expect("a value");
        assert_eq!(own, field.value);
        assert_eq!(field.sureness.is_some(), field.kind.is_scalar(), "{}", field.pointer);
    }
    assert_eq!(found.statistics.tokens, found.fields[0].tokens.len());
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
    Ok(())
}

#[test]
fn an_added_reasoning_is_not_part_of_the_value() -> Result<()> {
    let answer = ANSWER.replacen('{', r#"{"reasoning": "so \"it\" is", "#, 1);
    let mut model = ScriptedModel::following(&answer);
    let schema = schema::Options { add_reasoning: true, ..schema::Options::default() };
    let options = Options { schema, ..Options::default() };
    let extractor: Extractor<Ticket> = Extractor::of(model.vocabulary(), TICKET, options)?;
    let found = extractor.extract(&mut Decoder::new(&mut model), "Ada")?;
    assert_eq!(found.reasoning.as_deref(), Some("so \"it\" is"));
    assert_eq!((found.value.age, found.fields[1].pointer.as_str()), (36, "/reasoning"));
    Ok(())
}

#[test]
fn examples_are_shown_and_checked() -> Result<()> {
    let model = ScriptedModel::following(ANSWER);
    let with = |answer: &str| {
        let examples = vec![Example::new("Ada, 36, calm", answer)];
        Extractor::new(model.vocabulary(), TICKET, Options { examples, ..Options::default() })
    };
    let messages = with(ANSWER)?.messages("Grace")?;
    let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User]);
    assert!(messages[0].content.starts_with("Answer with JSON of this form:\n{\n  \"name\""));
    assert!(messages[0].content.ends_with("Document:\nAda, 36, calm"));
    assert_eq!(messages[1].content, ANSWER);
    assert_eq!(messages[2].content, "Document:\nGrace");
    for (answer, place) in [(r#"{"name": "Ada", "age": 200}"#, true), (r#"{"name": "Ada""#, false)]
    {
        let error = with(answer).expect_err("a wrong answer");
        assert_eq!((error.kind(), error.place().is_some()), (&Kind::BadArgument, place));
    }
    Ok(())
}

#[test]
fn a_stream_tells_the_same_story() -> Result<()> {
    let mut model = ScriptedModel::following(ANSWER);
    let extractor = Extractor::new(model.vocabulary(), TICKET, Options::default())?;
    let mut finished = Vec::new();
    let mut partials = Vec::new();
    let found = extractor.stream(&mut Decoder::new(&mut model), "Ada", &mut |event, tracker| {
        if let Event::Finished { pointer, value } = event {
            finished.push((pointer.clone(), value.clone()));
        }
        partials.extend(tracker.partial());
    })?;
    assert_eq!(finished.len(), found.fields.len());
    for (pointer, value) in &finished {
        assert_eq!(found.field(pointer).map(|field| &field.value), Some(value));
    }
    assert!(partials.contains(&json!({"name": "Ada"})));
    assert_eq!(partials.last(), Some(&found.value));
    Ok(())
}

/// Whatever a model says: each partial value grows into the next one, and the last one is the value.
#[test]
fn no_partial_value_is_taken_back() -> Result<()> {
    use crate::extract::tracker::tests::grows_into;
    for seed in 0..40 {
        let mut model = ScriptedModel::noise(seed);
        let settings = Settings { seed, ..Settings::drawing(0.9) };
        let options = Options { settings, log_probs: None, ..Options::default() };
        let extractor = Extractor::new(model.vocabulary(), TICKET, options)?;
        let mut partials: Vec<Value> = Vec::new();
        let found = extractor.stream(&mut Decoder::new(&mut model), "Ada", &mut |_, tracker| {
            partials.extend(tracker.partial());
            let ahead = tracker.partial_before(b"").expect("the same");
            assert_eq!(ahead, tracker.partial());
        })?;
        for pair in partials.windows(2) {
            assert!(grows_into(&pair[0], &pair[1]), "{} then {}", pair[0], pair[1]);
        }
        assert_eq!(partials.last(), Some(&found.value));
        assert!(partials.iter().all(|partial| grows_into(partial, &found.value)));
    }
    Ok(())
}

#[test]
fn what_is_cut_is_an_error() -> Result<()> {
    let mut model = ScriptedModel::following(ANSWER);
    let extractor = Extractor::new(model.vocabulary(), TICKET, Options::default())?;
    let request = extractor.request(&model, "Ada")?;
    let mut outcome = Decoder::new(&mut model).run(&request)?;
    outcome.finish = crate::decode::FinishReason::MaxTokens;
    let error = extractor.read(&request, &outcome).expect_err("cut");
    assert_eq!(error.kind(), &Kind::TooLarge);
    let options = Options { max_tokens: 5, ..Options::default() };
    let error = Extractor::new(model.vocabulary(), TICKET, options).expect_err("too few");
    assert!(matches!(error.kind(), Kind::BudgetTooSmall { .. }), "{error}");
    Ok(())
}

/// An extractor goes to any thread.
#[test]
fn extractors_are_shared() {
    fn shared<T: Clone + Send + Sync>() {}
    shared::<Extractor<std::rc::Rc<()>>>();
}

const CITED: &str = r#"{"type": "object", "properties": {
    "who": {"type": "string", "x-constrain": {"span": true}, "maxLength": 30},
    "age": {"type": ["string", "null"], "x-constrain": {"span": true}, "pattern": "^[0-9]+$"}},
    "required": ["who", "age"], "additionalProperties": false}"#;

#[test]
fn values_are_pieces_of_the_document_at_hand() -> Result<()> {
    let text = "Lee, 31, met Zo\u{eb}, 31.";
    let mut model = ScriptedModel::following(r#"{"who": "Zo\u00eb", "age": "31"}"#);
    let example = Example::new("Kim, 40", r#"{"who": "Kim", "age": null}"#);
    let options = Options { examples: vec![example], ..Options::default() };
    let extractor = Extractor::new(model.vocabulary(), CITED, options)?;
    let found = extractor.extract(&mut Decoder::new(&mut model), text)?;
    let spans = |pointer| found.field(pointer).map(|field| field.spans.as_slice()).unwrap_or(&[]);
    assert_eq!(spans("/who"), [Span { range: 13..16, bytes: 13..17, best: true }]);
    let ages = [
        Span { range: 5..7, bytes: 5..7, best: false },
        Span { range: 18..20, bytes: 19..21, best: true },
    ];
    assert_eq!((spans("/age"), spans("")), (&ages[..], &[][..]));
    // The same model about another document says what is in that.
    let found = extractor.extract(&mut Decoder::new(&mut model), "nobody")?;
    assert!("nobody".contains(found.value["who"].as_str().unwrap_or("?")));
    assert_eq!(found.value["age"], Value::Null);
    // Examples are about their own documents.
    let example = Example::new("Kim, 40", r#"{"who": "Lee", "age": null}"#);
    let options = Options { examples: vec![example], ..Options::default() };
    let error = Extractor::new(model.vocabulary(), CITED, options).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), &Kind::BadArgument);
    Ok(())
}
