//! Reading an outcome: from the bytes and log-probabilities of an output to an [`Extraction`].

use crate::constraint::Constraint;
use crate::decode::{FinishReason, Outcome, Request};
use crate::error::{Error, Kind, Result};
use crate::expr::Place;
use crate::extract::extractor::cut;
use crate::extract::sure::Steps;
use crate::extract::{
    Answerer, Extraction, Extractor, FieldInfo, Span, Tracker, ValueKind, is_reasoning,
};
use crate::spans;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::borrow::Cow;

/// The data in an outcome.
pub(crate) fn extraction<T: DeserializeOwned>(
    extractor: &Extractor<T>,
    request: &Request,
    outcome: &Outcome,
) -> Result<Extraction<T>> {
    if !matches!(outcome.finish, FinishReason::Complete | FinishReason::Stop(_)) {
        return Err(cut(outcome));
    }
    let tracker = Tracker::of(&outcome.bytes)?;
    let text = String::from_utf8(outcome.bytes.clone())
        .map_err(|_| Error::new(Kind::Syntax, "the output is not UTF-8"))?;
    let steps = Steps::new(extractor.constraint().vocabulary(), outcome);
    let mut fields = fields(&tracker, &steps);
    place(&mut fields, request, extractor);
    let warnings = steps.warnings(&tracker);
    if extractor.options().schema.add_reasoning {
        let added = |field: &&mut FieldInfo| is_reasoning_at(&field.pointer, extractor);
        // What is thought aloud is not an answer that could be wrong.
        fields.iter_mut().filter(added).for_each(|field| field.sureness = None);
    }
    let (reasoning, document) = without_reasoning(&text, &tracker, extractor).unzip();
    let value = value_of(document.as_deref().unwrap_or(&text))?;
    Ok(Extraction {
        value,
        reasoning,
        text,
        fields,
        warnings,
        finish: outcome.finish,
        seed: request.settings.seed,
        statistics: outcome.statistics.clone(),
    })
}

/// The value of the type that a document stands for.
pub(crate) fn value_of<T: DeserializeOwned>(document: &str) -> Result<T> {
    let error = match serde_json::from_str(document) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    // JSON Schema counts `1.0` and `1e2` among the integers, serde does not.
    let plain = with_plain_integers(document).and_then(|plain| serde_json::from_str(&plain).ok());
    plain.ok_or_else(|| {
        Error::new(Kind::Syntax, format!("the answer is not a value of the type: {error}"))
            .help("make the schema no wider than the type")
    })
}

/// The same document with whole numbers written as such.
fn with_plain_integers(document: &str) -> Option<String> {
    let tracker = Tracker::of(document.as_bytes()).ok()?;
    let mut plain = String::new();
    let mut written = 0;
    for node in tracker.nodes().iter().filter(|node| node.kind == ValueKind::Number) {
        let range = node.range()?;
        if let Some(integer) = plain_integer(document.get(range.clone())?) {
            plain.push_str(document.get(written..range.start)?);
            plain.push_str(&integer);
            written = range.end;
        }
    }
    plain.push_str(document.get(written..)?);
    Some(plain)
}

/// A whole number with a point or an exponent, written without; `None` if it is not whole, or has more
/// digits than any integer type.
pub(crate) fn plain_integer(number: &str) -> Option<String> {
    const DIGITS_MAX: usize = 40;
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let exponent: i64 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let digits = [whole, fraction].concat();
    let significant = digits.trim_end_matches('0').len();
    if significant == 0 {
        return Some("0".to_owned());
    }
    let point = i64::try_from(whole.len()).ok()?.checked_add(exponent)?;
    let point = usize::try_from(point).ok().filter(|&point| point >= significant)?;
    let leading = digits.len() - digits.trim_start_matches('0').len();
    if point.saturating_sub(leading) > DIGITS_MAX {
        return None;
    }
    let digits = format!("{digits:0<point$}");
    Some(format!("{sign}{}", digits.get(leading..point)?))
}

/// What is known about each value.
fn fields(tracker: &Tracker, steps: &Steps<'_>) -> Vec<FieldInfo> {
    let null = Value::Null;
    let root = tracker.value().unwrap_or(&null);
    let finished = tracker.nodes().iter().filter_map(|node| Some((node, node.range()?)));
    finished
        .map(|(node, range)| FieldInfo {
            pointer: node.pointer.clone(),
            kind: node.kind,
            value: root.pointer(&node.pointer).cloned().unwrap_or_default(),
            tokens: steps.of(&range),
            sureness: steps.sureness(node),
            spans: Vec::new(),
            by: Answerer::Document,
            earlier: Vec::new(),
            doubtful: false,
            range,
        })
        .collect()
}

/// Finds the values that are pieces of the document in it, if the request is about one.
pub(crate) fn place<T>(fields: &mut [FieldInfo], request: &Request, extractor: &Extractor<T>) {
    let constraint = request.constraint.as_ref();
    let Some(document) = constraint.and_then(Constraint::document) else { return };
    let read = || serde_json::from_str(extractor.schema()).unwrap_or_default();
    let schema = extractor.grounded().map_or_else(|| Cow::Owned(read()), Cow::Borrowed);
    let is_piece =
        |field: &&mut FieldInfo| field.value.is_string() && spans::is_span(&schema, &field.pointer);
    let mut pieces: Vec<&mut FieldInfo> = fields.iter_mut().filter(is_piece).collect();
    let values: Vec<&str> = pieces.iter().filter_map(|field| field.value.as_str()).collect();
    let located = spans::locate(document, &values);
    for (field, located) in pieces.iter_mut().zip(located) {
        let span = |(place, best): (&Place, bool)| {
            let Place { chars, bytes } = place.clone();
            Span { range: chars, bytes, best }
        };
        field.spans = located.marked().map(span).collect();
    }
}

/// Whether a pointer is that of the reasoning in the root.
fn is_reasoning_at<T>(pointer: &str, extractor: &Extractor<T>) -> bool {
    let name = pointer.strip_prefix('/').unwrap_or_default();
    is_reasoning(&name.replace("~1", "/").replace("~0", "~"), &extractor.options().schema)
}

/// The reasoning, if one was added, and the document without it: it is the first member of the root.
pub(crate) fn without_reasoning<T>(
    text: &str,
    tracker: &Tracker,
    extractor: &Extractor<T>,
) -> Option<(String, String)> {
    if !extractor.options().schema.add_reasoning {
        return None;
    }
    let members = || tracker.nodes().iter().filter(|node| node.parent == Some(0));
    let reasoning = members().next().filter(|node| is_reasoning_at(&node.pointer, extractor))?;
    let value = tracker.value()?.pointer(&reasoning.pointer)?;
    let said = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let start = reasoning.key_start?;
    let end = members().nth(1).and_then(|node| node.key_start).or(reasoning.end)?;
    Some((said, format!("{}{}", text.get(..start)?, text.get(end..)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_a_plain_spelling() {
        for (number, plain) in [
            ("1.0", Some("1")),
            ("-12e1", Some("-120")),
            ("1.50e1", Some("15")),
            ("0.0e7", Some("0")),
            ("1200e-2", Some("12")),
            ("1.5810420256006e+19", Some("15810420256006000000")),
            ("0.05e2", Some("5")),
            ("1.5", None),
            ("12e-1", None),
            ("1e99999999999999999999", None),
            ("1e50", None),
        ] {
            assert_eq!(plain_integer(number).as_deref(), plain, "{number}");
        }
        let plain = with_plain_integers(r#"{"a": [1.0, 2.5], "1.0": "1.0"}"#);
        assert_eq!(plain.as_deref(), Some(r#"{"a": [1, 2.5], "1.0": "1.0"}"#));
    }
}
