//! `--strategy fields`: which fields of a schema can be decoded side by side, and each one's schema.
//!
//! The fields of a closed object do not depend on each other unless a keyword says so. Each becomes a
//! schema of an object with that one property; definitions go with it. By hand,
//! `{"type": "object", "properties": {"a": {"type": "null"}, "b": true}, "required": ["a", "b"],
//! "additionalProperties": false}` becomes the same with `a` alone and the same with `b` alone.

use crate::compile::Form;
use crate::report::{Failure, Source};
use constrain::Grammar;
use constrain::error::quote;
use constrain::extract::is_reasoning;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A field with what it must satisfy.
pub struct Part {
    /// Its key.
    pub name: String,
    /// The schema of an object with this field alone.
    pub form: Form,
    /// That schema, compiled.
    pub grammar: Grammar,
}

/// The keywords beside which fields are independent.
const INDEPENDENT: [&str; 11] = [
    "$schema",
    "$id",
    "id",
    "$comment",
    "title",
    "description",
    "examples",
    "default",
    "$defs",
    "definitions",
    "type",
];

/// The fields in the order of the output.
///
/// # Errors
/// The constraint is not a closed object of independent fields.
pub fn split(form: &Form) -> Result<Vec<Part>, Failure> {
    let refused = |what: String| {
        Err(Failure::new(format!("the fields cannot be decoded side by side: {what}"))
            .help("take another strategy"))
    };
    if !form.is_schema() || form.options.add_reasoning {
        return refused("that needs a schema without an added reasoning field".to_string());
    }
    let text = &form.source.text;
    let Ok(root) = serde_json::from_str::<BTreeMap<String, &RawValue>>(text) else {
        return refused("the schema is not an object".to_string());
    };
    let get = |name: &str| root.get(name).map_or("", |value| value.get());
    if get("type") != "\"object\"" || get("additionalProperties") != "false" {
        return refused(
            "the schema needs \"type\": \"object\" and \"additionalProperties\": false".to_string(),
        );
    }
    let shared = |name: &&String| INDEPENDENT.contains(&name.as_str());
    let own = ["properties", "required", "additionalProperties"];
    if let Some(name) = root.keys().find(|name| !shared(name) && !own.contains(&name.as_str())) {
        return refused(format!("{} may speak of several of them", quote(name)));
    }
    let properties = serde_json::from_str::<BTreeMap<String, &RawValue>>(get("properties"));
    // The map keeps the order, the other one the texts.
    let order = serde_json::from_str::<Map<String, Value>>(get("properties"));
    let (Ok(properties), Ok(order)) = (properties, order) else {
        return refused("the schema has no properties".to_string());
    };
    let mut names: Vec<&String> = order.keys().collect();
    names.sort_by_key(|name| !is_reasoning(name, &form.options));
    let head: String = root
        .iter()
        .filter(|(name, _)| shared(name))
        .map(|(name, value)| format!("{}:{},", Value::from(name.as_str()), value.get()))
        .collect();
    names.into_iter().map(|name| part(form, &head, name, properties[name].get())).collect()
}

fn part(form: &Form, head: &str, name: &str, schema: &str) -> Result<Part, Failure> {
    let key = Value::from(name);
    let text = format!(
        "{{{head}\"properties\":{{{key}:{schema}}},\"required\":[{key}],\
         \"additionalProperties\":false}}"
    );
    let source = Source { name: format!("{}, property {key}", form.source.name), text };
    let form = Form { source, syntax: None, options: form.options.clone(), saved: None };
    let grammar = form.compile()?;
    Ok(Part { name: name.to_string(), form, grammar })
}

#[cfg(test)]
mod tests {
    use super::*;
    use constrain::schema::Options;

    fn names(schema: &str) -> Option<Vec<String>> {
        let source = Source { name: "s.json".into(), text: schema.into() };
        let form = Form { source, syntax: None, options: Options::default(), saved: None };
        let parts = split(&form).ok()?;
        Some(parts.into_iter().map(|part| part.name).collect())
    }

    #[test]
    fn closed_objects_are_split_and_others_refused() {
        let schema = r##"{"$defs": {"n": {"type": "integer"}}, "type": "object", "properties": {
            "z": {"$ref": "#/$defs/n"}, "a": true, "reasoning": {"type": "string"}},
            "required": ["z"], "additionalProperties": false}"##;
        assert_eq!(names(schema), Some(vec!["reasoning".into(), "z".into(), "a".into()]));
        for schema in [
            "true",
            r#"{"type": "object", "properties": {"a": true}}"#,
            r#"{"type": "object", "additionalProperties": false}"#,
            r#"{"type": "object", "properties": {"a": true}, "additionalProperties": false,
                "minProperties": 1}"#,
            r#"{"type": ["object"], "properties": {"a": true}, "additionalProperties": false}"#,
        ] {
            assert_eq!(names(schema), None, "{schema}");
        }
    }
}
