//! Where in the document the values of an answer stand, for `--json`.

use crate::compile::Form;
use constrain::extract::Tracker;
use constrain::spans::{is_span, locate};
use serde_json::{Map, Value, json};

/// For each value that is a piece of the document, by its JSON pointer in the answer `text`: its places,
/// `chars` and `bytes` from (inclusive) to (exclusive), the likeliest marked. `null` without a document.
pub fn json(form: &Form, text: &str) -> Value {
    let Some(document) = &form.options.document else { return Value::Null };
    let schema: Value = serde_json::from_str(&form.source.text).unwrap_or_default();
    let Ok(tracker) = Tracker::of(text.as_bytes()) else { return Value::Null };
    let answer = tracker.value().cloned().unwrap_or_default();
    let strings = tracker.nodes().iter().filter_map(|node| {
        let value = answer.pointer(&node.pointer)?.as_str()?;
        is_span(&schema, &node.pointer).then_some((node.pointer.as_str(), value))
    });
    let (pointers, values): (Vec<&str>, Vec<&str>) = strings.unzip();
    let mut found = Map::new();
    for (pointer, located) in pointers.into_iter().zip(locate(document, &values)) {
        let places = located.marked().map(|(place, likeliest)| {
            json!({
                "chars": [place.chars.start, place.chars.end],
                "bytes": [place.bytes.start, place.bytes.end],
                "likeliest": likeliest,
            })
        });
        found.insert(pointer.to_owned(), places.collect());
    }
    Value::Object(found)
}
