//! Taking the reasoning out of a finished document, the rest left as it was written.

use constrain::grammar::Whitespace;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The document `text` without the first member of its root that `is_reasoning` names; `None` if
/// it has none, or is no object. Values keep their spelling; between the members of the root,
/// white space is as `style` has it.
pub fn strip(text: &str, is_reasoning: impl Fn(&str) -> bool, style: Whitespace) -> Option<String> {
    let Members(mut members) = serde_json::from_str(text).ok()?;
    let at = members.iter().position(|(name, _)| is_reasoning(name))?;
    members.remove(at);
    let (open, comma, colon, close) = match style {
        Whitespace::Compact => ("{", ",", ":", "}"),
        Whitespace::Pretty(_) => ("{\n  ", ",\n  ", ": ", "\n}"),
        Whitespace::Flexible => ("{", ", ", ": ", "}"),
    };
    if members.is_empty() {
        return Some("{}".to_string());
    }
    let members: Vec<String> = members
        .iter()
        .map(|(name, value)| format!("{}{colon}{}", serde_json::Value::from(name.as_str()), value))
        .collect();
    Some(format!("{open}{}{close}", members.join(comma)))
}

/// The members of an object in their order, values unparsed.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_keeps_its_order_and_spelling() {
        let text = r#" {"reasoning": "a, b", "z": 1.50, "a": "\u00e9", "x": {"reasoning": 1e2}} "#;
        let stripped = strip(text, |name| name == "reasoning", Whitespace::Flexible);
        let expected = r#"{"z": 1.50, "a": "\u00e9", "x": {"reasoning": 1e2}}"#;
        assert_eq!(stripped.as_deref(), Some(expected));
        let stripped = strip(r#"{"a":1,"b":[]}"#, |name| name == "b", Whitespace::Compact);
        assert_eq!(stripped.as_deref(), Some(r#"{"a":1}"#));
        let pretty = "{\n  \"a\": 1,\n  \"b\": [\n    2\n  ]\n}";
        let stripped = strip(pretty, |name| name == "a", Whitespace::Pretty(2));
        assert_eq!(stripped.as_deref(), Some("{\n  \"b\": [\n    2\n  ]\n}"));
        assert_eq!(strip(r#"{"a":1}"#, |_| true, Whitespace::Pretty(2)).as_deref(), Some("{}"));
    }

    #[test]
    fn where_there_is_none_nothing_is_stripped() {
        for text in [r#"{"a": 1}"#, "[1]", "3", "{"] {
            assert_eq!(strip(text, |name| name == "reasoning", Whitespace::Flexible), None);
        }
    }
}
