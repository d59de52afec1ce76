//! Documents cut at every byte.

use super::*;
use proptest::prelude::*;
use serde_json::json;

/// Whether `partial` may become `whole` without a word being taken back.
pub(crate) fn grows_into(partial: &Value, whole: &Value) -> bool {
    match (partial, whole) {
        (Value::Object(a), Value::Object(b)) => {
            a.iter().all(|(key, a)| b.get(key).is_some_and(|b| grows_into(a, b)))
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() <= b.len() && a.iter().zip(b).all(|(a, b)| grows_into(a, b))
        }
        (Value::String(a), Value::String(b)) => b.starts_with(a),
        (a, b) => a == b,
    }
}

/// Writes a value with white space and escapes wherever `choice` says so.
fn spell(value: &Value, choice: &mut dyn FnMut() -> usize, out: &mut String) {
    let space = |choice: &mut dyn FnMut() -> usize, out: &mut String| {
        out.push_str(["", " ", "\n\t", ""][choice() % 4]);
    };
    space(choice, out);
    match value {
        Value::Object(members) => {
            out.push('{');
            for (i, (key, value)) in members.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                space(choice, out);
                spell(&Value::from(key.as_str()), choice, out);
                space(choice, out);
                out.push(':');
                spell(value, choice, out);
            }
            space(choice, out);
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                spell(item, choice, out);
                space(choice, out);
            }
            out.push(']');
        }
        Value::String(text) => {
            out.push('"');
            for c in text.chars() {
                let plain = c != '"' && c != '\\' && c >= ' ';
                if plain && !choice().is_multiple_of(3) {
                    out.push(c);
                } else {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
            }
            out.push('"');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn values() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1000..1000_i32).prop_map(|n| json!(f64::from(n) / 8.0)),
        "[a-c\"\\\\/~\u{e9}\u{1f389}\n]{0,6}".prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[a-d/~\u{e9}\"]{0,3}", inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Replays events: text pieces must add up to the strings, and everything that starts must finish.
fn check_events(events: &[Event], whole: &Value) {
    let mut texts: std::collections::HashMap<&str, String> = Default::default();
    let mut open: Vec<&str> = Vec::new();
    for event in events {
        match event {
            Event::Started { pointer, .. } => open.push(pointer),
            Event::Text { pointer, piece } => {
                assert_eq!(open.last(), Some(&pointer.as_str()));
                texts.entry(pointer).or_default().push_str(piece);
            }
            Event::Finished { pointer, value } => {
                assert_eq!(open.pop(), Some(pointer.as_str()));
                assert_eq!(whole.pointer(pointer), Some(value), "{pointer}");
                if let Value::String(text) = value {
                    assert_eq!(texts.remove(pointer.as_str()).unwrap_or_default(), *text);
                }
            }
        }
    }
    assert!(open.is_empty() && texts.is_empty());
}

proptest! {
    #[test]
    fn what_was_shown_is_never_taken_back(value in values(), seed in any::<u64>(), step in 1..5_usize) {
        let mut number = 0;
        let mut choice = || {
            number += 1;
            crate::sample::random::mix(seed.wrapping_add(number)) as usize
        };
        let mut text = String::new();
        spell(&value, &mut choice, &mut text);
        let mut tracker = Tracker::new();
        let mut events = Vec::new();
        let mut before = None;
        for bytes in text.as_bytes().chunks(step) {
            events.extend(tracker.push(bytes).expect("a document"));
            let partial = tracker.partial();
            if let Some(partial) = &partial {
                prop_assert!(grows_into(partial, &value), "{} of {}", partial, value);
            }
            if let (Some(before), partial) = (&before, &partial) {
                let grew = partial.as_ref().is_some_and(|partial| grows_into(before, partial));
                prop_assert!(grew, "{} was taken back", before);
            }
            before = partial;
        }
        events.extend(tracker.finish().expect("a document"));
        prop_assert_eq!(tracker.value(), Some(&value));
        prop_assert_eq!(tracker.partial(), Some(value.clone()));
        check_events(&events, &value);
        for node in tracker.nodes() {
            let range = node.range().expect("finished");
            let own: Value = serde_json::from_str(&text[range.clone()]).expect("a value");
            prop_assert_eq!(Some(&own), value.pointer(&node.pointer));
            let at = tracker.at(range.start).expect("a value");
            prop_assert_eq!(&tracker.nodes()[at].pointer, &node.pointer);
            if let Some(start) = node.key_start {
                prop_assert_eq!(&text[start..=start], "\"");
            }
        }
    }
}

/// Texts that are nearly JSON.
fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: [&str; 36] = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\"a\":",
        "\"a\"",
        "1",
        "0",
        "-",
        ".",
        "e",
        "+",
        "12.5e-3",
        "true",
        "false",
        "null",
        "tr",
        " ",
        "\n",
        "\\",
        "\\u00e9",
        "\\ud83c\\udf89",
        "\\ud83c",
        "\\n",
        "\\x",
        "\u{e9}",
        "\u{1f389}",
        "\u{1}",
        "{}",
        "[]",
        "[1,",
        "{\"b\":",
        "/",
    ];
    let piece = prop_oneof![
        20 => prop::sample::select(&PIECES[..]).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    /// Another reader of JSON takes the same texts, and finds the same values in them.
    #[test]
    fn agrees_with_an_independent_parser(text in nearly_json()) {
        let tracked = Tracker::of(&text).ok().and_then(|tracker| tracker.value().cloned());
        let parsed: Option<Value> = serde_json::from_slice(&text).ok();
        prop_assert_eq!(tracked, parsed, "{:?}", String::from_utf8_lossy(&text));
    }
}

#[test]
fn the_example_of_the_module() -> Result<()> {
    let mut tracker = Tracker::new();
    let steps = [
        ("{", json!({}), ""),
        ("\"a\":", json!({}), "/a"),
        (" [", json!({"a": []}), "/a"),
        ("12", json!({"a": []}), "/a/0"),
        (",", json!({"a": [12]}), "/a"),
        (" \"x", json!({"a": [12, "x"]}), "/a/1"),
    ];
    for (bytes, partial, pointer) in steps {
        tracker.push(bytes.as_bytes())?;
        assert_eq!((tracker.partial(), tracker.pointer()), (Some(partial), pointer));
    }
    assert_eq!(tracker.partial_before(b"yz\", t")?, Some(json!({"a": [12, "xyz", true]})));
    assert_eq!(tracker.at(1), Some(0));
    assert_eq!(tracker.at(7), Some(2));
    assert_eq!(tracker.at(99), None);
    Ok(())
}

#[test]
fn what_is_no_document_is_refused_where_it_stops_being_one() {
    for (text, at) in [
        ("{1", 1),
        ("[1 2", 3),
        ("[1,]", 3),
        ("\"\\x", 2),
        ("\"\\ud83da", 7),
        ("\"\\udc00\"", 6),
        ("trie", 2),
        ("{\"a\":1]", 6),
        ("1.2.3 ", 5),
        ("}", 0),
        ("[] []", 3),
    ] {
        let error = Tracker::new().push(text.as_bytes()).expect_err(text);
        assert_eq!(error.place(), Some(&Place::Offset(at)), "{text}: {error}");
    }
    for text in ["", "[", "\"a", "tru", "{\"a\""] {
        assert!(Tracker::of(text.as_bytes()).is_err(), "{text}");
    }
    let deep = Tracker::new().push("[".repeat(1000).as_bytes()).map_err(|e| e.kind().clone());
    assert_eq!(deep.map(|_| ()), Err(Kind::TooDeep));
}
