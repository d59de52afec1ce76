//! How the model is told what is wanted: an outline of a schema that is shorter than the schema.
//!
//! The schema
//!
//! ```text
//! {"type": "object", "required": ["level"], "properties": {
//!    "level": {"enum": ["info", "error"]},
//!    "tags": {"type": "array", "items": {"type": "string", "maxLength": 9}, "maxItems": 3}}}
//! ```
//!
//! becomes
//!
//! ```text
//! {
//!   "level": "info" | "error",
//!   "tags"?: [string] (up to 3)
//! }
//! ```
//!
//! The outline is a hint and nothing more: what may be generated is decided by the constraint. So
//! it may leave things out, and does, where they are deep, long or rare. Lengths and patterns of
//! strings are left out because small models imitate their characters; the reasoning comes first,
//! as it will in the document.

use crate::schema::{Options, REASONING_FIELDS};
use serde_json::{Map, Value};
use std::fmt::Write;

/// Deeper than this, and in a recursion, an outline says "..." and no more.
const DEPTH_MAX: usize = 8;
/// Longer than this, the outline is cut: a prompt has better uses for its tokens.
const BYTES_MAX: usize = 6000;
/// Values of an `enum` that are listed at most.
const VALUES_MAX: usize = 40;

/// The outline of a schema.
pub fn outline(schema: &Value, options: &Options) -> String {
    let mut outline = Outline { root: schema, options, out: String::new() };
    outline.schema(schema, 0);
    outline.out
}

/// Whether a property is the one in which the model reasons.
pub fn is_reasoning(name: &str, options: &Options) -> bool {
    match &options.reasoning_field {
        Some(field) => name == field,
        None if options.add_reasoning => name == REASONING_FIELDS[0],
        None => REASONING_FIELDS.contains(&name),
    }
}

struct Outline<'a> {
    root: &'a Value,
    options: &'a Options,
    out: String,
}

impl Outline<'_> {
    /// The recursion is bounded by `DEPTH_MAX`, and the work by `BYTES_MAX`.
    fn schema(&mut self, schema: &Value, depth: usize) {
        let Some(schema) = schema.as_object() else { return self.push("any value") };
        if depth > DEPTH_MAX || self.out.len() > BYTES_MAX {
            return self.push("...");
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let target = target.strip_prefix('#').and_then(|path| self.root.pointer(path));
            return match target {
                Some(target) => self.schema(target, depth + 1),
                None => self.push("any value"),
            };
        }
        if let Some(value) = schema.get("const") {
            return self.push(&value.to_string());
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let shown: Vec<String> = values.iter().take(VALUES_MAX).map(Value::to_string).collect();
            return self.push(&shown.join(" | "));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = schema.get(keyword).and_then(Value::as_array) {
                return self.alternatives(branches, depth);
            }
        }
        if schema.contains_key("properties") {
            return self.object(schema, depth);
        }
        if let Some(first) = schema.get("allOf").and_then(|all| all.get(0)) {
            return self.schema(first, depth + 1);
        }
        match schema.get("type") {
            Some(Value::String(name)) => self.typed(name, schema, depth),
            Some(Value::Array(names)) => {
                for (i, name) in names.iter().filter_map(Value::as_str).enumerate() {
                    self.push(if i == 0 { "" } else { " | " });
                    self.typed(name, schema, depth);
                }
            }
            _ => self.push("any value"),
        }
    }

    fn typed(&mut self, name: &str, schema: &Map<String, Value>, depth: usize) {
        match name {
            "array" => self.array(schema, depth),
            "string" => {
                self.push(schema.get("format").and_then(Value::as_str).unwrap_or("string"));
            }
            "number" | "integer" => {
                self.push(name);
                self.range(schema, "minimum", "maximum");
            }
            name => self.push(name),
        }
    }

    fn alternatives(&mut self, branches: &[Value], depth: usize) {
        for (i, branch) in branches.iter().enumerate() {
            self.push(if i == 0 { "" } else { " | " });
            self.schema(branch, depth + 1);
        }
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return self.push("object");
        };
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            required.is_some_and(|names| names.iter().any(|other| other.as_str() == Some(name)))
        };
        let (mut members, others): (Vec<_>, Vec<_>) = properties
            .iter()
            .map(|(name, value)| (name.as_str(), value, is_required(name)))
            .partition(|(name, ..)| is_reasoning(name, self.options));
        let added = serde_json::json!({"type": "string"});
        if depth == 0 && self.options.add_reasoning && members.is_empty() {
            let name = self.options.reasoning_field.as_deref().unwrap_or(REASONING_FIELDS[0]);
            members.push((name, &added, true));
        }
        members.extend(others);
        let indent = "  ".repeat(depth + 1);
        self.push("{");
        for (i, (name, value, is_required)) in members.into_iter().enumerate() {
            self.push(if i == 0 { "\n" } else { ",\n" });
            self.push(&indent);
            self.push(&Value::from(name).to_string());
            self.push(if is_required { ": " } else { "?: " });
            self.schema(value, depth + 1);
            self.description(value);
        }
        self.push("\n");
        self.push(&"  ".repeat(depth));
        self.push("}");
    }

    fn array(&mut self, schema: &Map<String, Value>, depth: usize) {
        self.push("[");
        if let Some(prefix) = schema.get("prefixItems").and_then(Value::as_array) {
            for (i, item) in prefix.iter().enumerate() {
                self.push(if i == 0 { "" } else { ", " });
                self.schema(item, depth + 1);
            }
        } else if let Some(items) = schema.get("items") {
            self.schema(items, depth + 1);
        }
        self.push("]");
        self.range(schema, "minItems", "maxItems");
    }

    fn range(&mut self, schema: &Map<String, Value>, min: &str, max: &str) {
        let bound = |name| schema.get(name).filter(|bound| bound.is_number());
        let text = match (bound(min), bound(max)) {
            (Some(min), Some(max)) if min == max => format!(" ({min})"),
            (Some(min), Some(max)) => format!(" ({min} to {max})"),
            (Some(min), None) => format!(" (at least {min})"),
            (None, Some(max)) => format!(" (up to {max})"),
            (None, None) => return,
        };
        self.push(&text);
    }

    fn description(&mut self, schema: &Value) {
        if let Some(text) = schema.get("description").and_then(Value::as_str) {
            let text: String =
                text.chars().take(200).map(|c| if c == '\n' { ' ' } else { c }).collect();
            let _ = write!(self.out, " /* {text} */");
        }
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_example_of_the_module() {
        let schema = json!({"type": "object", "required": ["level"], "properties": {
            "level": {"enum": ["info", "error"]},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 9}, "maxItems": 3}}});
        let expected = "{\n  \"level\": \"info\" | \"error\",\n  \"tags\"?: [string] (up to 3)\n}";
        assert_eq!(outline(&schema, &Options::default()), expected);
    }

    #[test]
    fn references_unions_formats_and_descriptions_are_shown() {
        let schema = json!({"properties": {
            "due": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
            "size": {"$ref": "#/$defs/size", "description": "in mm"},
            "id": {"type": "string", "pattern": "^K[0-9]$"},
            "at": {"type": "array", "prefixItems": [{"type": "number", "minimum": 0}, true]}},
            "required": ["due", "size", "id", "at"],
            "$defs": {"size": {"type": ["integer", "null"]}}});
        let expected = "{\n  \"due\": date | null,\n  \"size\": integer | null /* in mm */,\n  \"id\": string,\n  \"at\": [number (at least 0), any value]\n}";
        assert_eq!(outline(&schema, &Options::default()), expected);
    }

    #[test]
    fn the_reasoning_comes_first() {
        let schema = json!({"properties": {"a": true, "rationale": {"type": "string"}}});
        let expected = "{\n  \"rationale\"?: string,\n  \"a\"?: any value\n}";
        assert_eq!(outline(&schema, &Options::default()), expected);
        let schema = json!({"properties": {"a": true}});
        let options = Options { add_reasoning: true, ..Options::default() };
        let expected = "{\n  \"reasoning\": string,\n  \"a\"?: any value\n}";
        assert_eq!(outline(&schema, &options), expected);
    }

    #[test]
    fn recursion_and_size_are_bounded() {
        let recursive = json!({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}});
        let text = outline(&recursive, &Options::default());
        assert!(text.contains("..."), "{text}");
        assert!(text.len() < 2 * BYTES_MAX, "{}", text.len());
        let of = |schema| outline(&schema, &Options::default());
        assert_eq!(of(json!({"$ref": "#"})), "...");
        assert_eq!(of(json!({"$ref": "http://elsewhere.example/"})), "any value");
    }
}
