//! Figures against their definitions, and warnings.

use super::*;
use crate::decode::{Decoder, Request};
use crate::error::Result;
use crate::extract::{Extraction, Extractor, Options};
use crate::grammar::Whitespace;
use crate::model::scripted::ScriptedModel;
use crate::model::{Batch, Model};
use crate::sample::Settings;
use crate::schema;

const SCHEMA: &str = r#"{"type": "object", "properties": {
    "kind": {"enum": ["billing", "other", null]},
    "size": {"type": "number", "minimum": 0, "maximum": 500},
    "text": {"type": "string", "maxLength": 5},
    "ok": {"type": "boolean"}},
    "required": ["kind", "size", "text", "ok"], "additionalProperties": false}"#;

/// The probability of every token at every step: by the model's own law, and among the allowed ones.
fn laws(
    model: &mut ScriptedModel,
    extractor: &Extractor,
    request: &Request,
    outcome: &Outcome,
) -> Result<Vec<(Vec<f64>, Vec<f64>)>> {
    let mut matcher = extractor.constraint().matcher_within(request.max_tokens as u64)?;
    let mut laws = Vec::new();
    for (i, &token) in outcome.tokens.iter().enumerate() {
        let said = [&request.prompt[..], &outcome.tokens[..i]].concat();
        model.truncate(0, 0)?;
        model.eval(&Batch::prompt(0, &said))?;
        let weights: Vec<f64> =
            model.logits(said.len() - 1)?.iter().map(|&logit| f64::from(logit).exp()).collect();
        let all: f64 = weights.iter().sum();
        let mask = matcher.mask()?;
        let allowed: f64 = mask.iter().map(|id| weights[id as usize]).sum();
        let within = |(id, weight)| if mask.contains(id) { weight / allowed } else { 0.0 };
        let constrained = (0..).zip(weights.iter().copied()).map(within).collect();
        laws.push((weights.iter().map(|weight| weight / all).collect(), constrained));
        matcher.accept(token)?;
    }
    Ok(laws)
}

/// A text without the white space between its values.
fn squeeze(text: &[u8]) -> Vec<u8> {
    let (mut inside, mut escaped) = (false, false);
    let mut out = Vec::new();
    for &byte in text {
        if inside || !byte.is_ascii_whitespace() {
            out.push(byte);
        }
        if byte == b'"' && !escaped {
            inside = !inside;
        }
        escaped = inside && byte == b'\\' && !escaped;
    }
    out
}

#[test]
fn figures_are_what_they_are_said_to_be() -> Result<()> {
    for seed in 0..24 {
        let mut model = ScriptedModel::noise(seed);
        let whitespace = [Whitespace::Compact, Whitespace::Flexible][seed as usize % 2];
        let options = Options {
            settings: Settings { seed, ..Settings::drawing(0.8) },
            schema: schema::Options { whitespace, ..schema::Options::default() },
            // All of them.
            log_probs: Some(model.vocabulary().len()),
            ..Options::default()
        };
        let extractor = Extractor::new(model.vocabulary(), SCHEMA, options)?;
        let request = extractor.request(&model, "a document")?;
        let outcome = Decoder::new(&mut model).run(&request)?;
        let found = extractor.read(&request, &outcome)?;
        let steps = Steps::new(extractor.constraint().vocabulary(), &outcome);
        let laws = laws(&mut model, &extractor, &request, &outcome)?;
        let text = |id: TokenId| {
            extractor.constraint().vocabulary().bytes(id).unwrap_or_default().to_vec()
        };
        for field in found.fields.iter().filter(|field| field.kind.is_scalar()) {
            let mut probability = 1.0;
            let mut kept = 1.0_f64;
            let number = field.kind == ValueKind::Number;
            // White space between values aside, as text: what was said up to the end of a token.
            let own = squeeze(found.text.as_bytes());
            let value = squeeze(&found.text.as_bytes()[..field.range.start]).len();
            let value = value..value + (field.range.end - field.range.start);
            for step in field.tokens.clone() {
                let (raw, constrained) = &laws[step];
                let said = |last: TokenId| {
                    let ids = outcome.tokens[..step].iter().copied().chain([last]);
                    squeeze(&ids.flat_map(text).collect::<Vec<u8>>())
                };
                let chosen = said(outcome.tokens[step]);
                let decided = chosen.len().min(value.end + usize::from(number));
                let (mut good, mut bad) = (0.0, 0.0);
                for (id, &chance) in (0..).zip(constrained) {
                    let other = if chance > 0.0 { said(id) } else { continue };
                    let shared = other.iter().zip(&own).take_while(|(a, b)| a == b).count();
                    let part = other.get(shared);
                    let longer = number && shared == value.end && part.is_some_and(continues);
                    // White space ends a number.
                    let inside = step > field.tokens.start && other.len() < value.end;
                    let ends = number && inside && text(id).trim_ascii().is_empty();
                    let verdict = match part {
                        _ if ends => Verdict::Against,
                        Some(_) if shared < value.start => Verdict::Neither,
                        Some(_) if shared < value.end || longer => Verdict::Against,
                        None if shared < decided => Verdict::Neither,
                        _ => Verdict::For,
                    };
                    let reach = steps.ends[step].min(field.range.end + usize::from(number));
                    let compared = steps.compare(step, id, field.range.start);
                    let number = number.then(|| steps.text(id));
                    let own = compared.verdict(&field.range, reach, number);
                    assert_eq!(own, verdict, "{:?} after {chosen:?}", text(id));
                    good += if verdict == Verdict::For { chance } else { 0.0 };
                    bad += if verdict == Verdict::Against { chance } else { 0.0 };
                }
                probability *= good / (good + bad);
                kept = kept.min(
                    (0..raw.len()).filter(|&id| constrained[id] > 0.0).map(|id| raw[id]).sum(),
                );
                if number && chosen.len() == value.end {
                    let (_, next) = &laws[step + 1];
                    let more = |id: &usize| text(*id as TokenId).first().is_some_and(continues);
                    probability *=
                        1.0 - (0..next.len()).filter(more).map(|id| next[id]).sum::<f64>();
                }
            }
            let sure = field.sureness.as_ref().expect("figures");
            let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
            assert!(close(sure.probability, probability), "{field:?}, not {probability}");
            assert!(close(sure.kept, kept), "{field:?}, not {kept}");
        }
    }
    Ok(())
}

#[test]
fn tokens_of_a_value_have_its_bytes() -> Result<()> {
    for seed in 0..10 {
        let mut model = ScriptedModel::noise(seed);
        let extractor = Extractor::new(model.vocabulary(), SCHEMA, Options::default())?;
        let request = extractor.request(&model, "a document")?;
        let outcome = Decoder::new(&mut model).run(&request)?;
        let steps = Steps::new(model.vocabulary(), &outcome);
        for field in extractor.read(&request, &outcome)?.fields {
            for step in 0..outcome.tokens.len() {
                let (start, end) = (steps.start(step), steps.ends[step]);
                let has = start < field.range.end && end > field.range.start;
                assert_eq!(field.tokens.contains(&step), has, "{} {step}", field.pointer);
            }
        }
    }
    Ok(())
}

fn answered(schema: &str, wish: &str) -> Result<Extraction<serde_json::Value>> {
    let mut model = ScriptedModel::following(wish);
    let extractor = Extractor::new(model.vocabulary(), schema, Options::default())?;
    extractor.extract(&mut Decoder::new(&mut model), "a document")
}

#[test]
fn warns_where_the_schema_stood_in_the_way() -> Result<()> {
    let object = |of: &str| {
        format!(
            r#"{{"type": "object", "properties": {{"a": {of}}}, "required": ["a"], "additionalProperties": false}}"#
        )
    };
    let list = object(r#"{"type": "array", "items": {"enum": ["x", "y"]}, "maxItems": 2}"#);
    for (schema, wish, pointer, kind, wanted) in [
        (
            object(r#"{"enum": ["billing", "other"]}"#),
            r#"{"a": "login"}"#,
            "/a",
            WarningKind::FavouriteForbidden,
            "l",
        ),
        (list.clone(), r#"{"a": ["x", "y", "x"]}"#, "/a", WarningKind::ListClosed, ", "),
        (
            object(r#"{"type": "string", "maxLength": 3}"#),
            r#"{"a": "long text"}"#,
            "/a",
            WarningKind::StringClosed,
            "g",
        ),
    ] {
        let found = answered(&schema, wish)?;
        let [warning] = &found.warnings[..] else { panic!("{wish}: {:?}", found.warnings) };
        assert_eq!((warning.pointer.as_str(), warning.kind), (pointer, kind));
        assert_eq!(warning.wanted, wanted);
        assert!(warning.probability > 0.5);
    }
    assert_eq!(answered(&list, r#"{"a": ["x", "y"]}"#)?.warnings, []);
    Ok(())
}

#[test]
fn alternatives_say_how_it_could_have_begun() -> Result<()> {
    let schema = r#"{"type": "object", "properties": {"a": {"enum": ["xa", "xb", "y"]}},
        "required": ["a"], "additionalProperties": false}"#;
    let mut model = ScriptedModel::noise(2);
    let options = Options { log_probs: Some(400), ..Options::default() };
    let extractor = Extractor::new(model.vocabulary(), schema, options)?;
    let found = extractor.extract(&mut Decoder::new(&mut model), "a document")?;
    let sure = found.fields[1].sureness.as_ref().expect("figures");
    assert!(!sure.alternatives.is_empty() && sure.alternatives.len() <= ALTERNATIVES);
    for other in &sure.alternatives {
        // Each begins a value that the schema allows, and another one than was said.
        let own = &found.text[found.fields[1].range.clone()];
        assert!(!own.starts_with(&other.begins), "{other:?}");
        let mut matcher = extractor.constraint().matcher();
        matcher.accept_bytes(format!("{{\"a\":{}", other.begins).as_bytes())?;
    }
    assert!(sure.alternatives.is_sorted_by(|a, b| a.probability >= b.probability));
    Ok(())
}
