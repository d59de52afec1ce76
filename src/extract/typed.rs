//! Schemas of Rust types, as extraction wants them.
//!
//! `schemars` describes what a type can be read from. For asking a model that is too loose in four ways,
//! which [`schema_of`] tightens. By hand, for `struct Person { name: String, born: Option<i16> }`:
//!
//! ```text
//! schemars                                         here
//! "required": ["name"]                             "required": ["name", "born"]
//! (other keys allowed)                             "additionalProperties": false
//! "type": ["integer", "null"], "format": "int16"   the same with "minimum", "maximum"
//! ```
//!
//! * A field that may be `null` is required: "not stated" is then an answer, in place of a key that is
//!   left out by oversight or lack of tokens.
//! * Objects are closed: there is no field to put another key in. An object that is put together from
//!   several schemas (a tag beside a `$ref`) stays open.
//! * Integers have the bounds of their type: what the schema allows, the type can hold.
//! * Titles go: the model is told names, and they cost tokens where the schema is shown.
//!
//! Whoever wants something else writes the schema and takes [`Extractor::of`].

use crate::error::{Error, Kind, Result};
use crate::extract::{Extractor, Options};
use crate::vocab::Vocabulary;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::HashSet;

impl<T: DeserializeOwned + JsonSchema> Extractor<T> {
    /// An extractor of values of a type, by the [schema](schema_of) of that type.
    ///
    /// # Errors
    /// As [`Extractor::of`].
    pub fn typed(vocabulary: &Vocabulary, options: Options) -> Result<Self> {
        Self::of(vocabulary, &schema_of::<T>()?, options)
    }
}

/// The schema of a type: nullable fields required, objects closed, integers bounded.
///
/// # Errors
/// [`Kind::Syntax`] if the type's description is no JSON.
pub fn schema_of<T: JsonSchema>() -> Result<String> {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let composed = composed(&schema);
    let mut open = vec![(String::from("#"), &mut schema)];
    while let Some((place, value)) = open.pop() {
        if let Value::Object(object) = value {
            if !composed.contains(&place) {
                tighten(object);
            }
            // Names of properties and values of `enum` are not keywords.
            let children = object.iter_mut().filter(|(key, _)| {
                !["enum", "const", "default", "examples"].contains(&key.as_str())
            });
            open.extend(children.map(|(key, value)| (format!("{place}/{key}"), value)));
        } else if let Value::Array(items) = value {
            open.extend(items.iter_mut().map(|item| (format!("{place}/-"), item)));
        }
    }
    serde_json::to_string(&schema)
        .map_err(|error| Error::new(Kind::Syntax, format!("the schema of the type: {error}")))
}

/// What is referred to from beside other properties: closed, it would forbid those.
fn composed(schema: &Value) -> HashSet<String> {
    let mut found = HashSet::new();
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(object) => {
                let target = object.get("$ref").and_then(Value::as_str);
                if object.contains_key("properties") {
                    found.extend(target.map(str::to_owned));
                }
                open.extend(object.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    found
}

/// The keywords that put an object together from several schemas.
const COMPOSING: [&str; 6] =
    ["$ref", "allOf", "anyOf", "oneOf", "additionalProperties", "unevaluatedProperties"];

fn tighten(schema: &mut Map<String, Value>) {
    schema.retain(|key, value| key != "title" || !value.is_string());
    if let Some((min, max)) = schema.get("format").and_then(Value::as_str).and_then(bounds) {
        schema.entry("minimum").or_insert(min);
        schema.entry("maximum").or_insert(max);
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    let nullable = properties.iter().filter(|(_, schema)| is_nullable(schema));
    let nullable: Vec<Value> = nullable.map(|(name, _)| Value::from(name.as_str())).collect();
    if let Value::Array(required) = schema.entry("required").or_insert(json!([])) {
        let missing = nullable.into_iter().filter(|name| !required.contains(name));
        required.extend(missing.collect::<Vec<Value>>());
    }
    if !COMPOSING.iter().any(|key| schema.contains_key(*key)) {
        schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
}

/// Whether `null` is one of the values, as `schemars` says it of an `Option`.
fn is_nullable(schema: &Value) -> bool {
    let null = Value::from("null");
    let is_null = |schema: &Value| schema.get("type") == Some(&null);
    let types = schema.get("type").and_then(Value::as_array);
    let branches = schema.get("anyOf").and_then(Value::as_array);
    types.is_some_and(|types| types.contains(&null))
        || branches.is_some_and(|branches| branches.iter().any(is_null))
        || is_null(schema)
}

/// The least and the largest value of an integer type, by its format.
fn bounds(format: &str) -> Option<(Value, Value)> {
    Some(match format {
        "int8" => (json!(i8::MIN), json!(i8::MAX)),
        "int16" => (json!(i16::MIN), json!(i16::MAX)),
        "int32" => (json!(i32::MIN), json!(i32::MAX)),
        "int64" | "int" => (json!(i64::MIN), json!(i64::MAX)),
        "uint8" => (json!(0), json!(u8::MAX)),
        "uint16" => (json!(0), json!(u16::MAX)),
        "uint32" => (json!(0), json!(u32::MAX)),
        "uint64" | "uint" => (json!(0), json!(u64::MAX)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Decoder;
    use crate::model::Model;
    use crate::model::scripted::ScriptedModel;
    use crate::sample::Settings;
    use serde::Deserialize;

    /// A receipt.
    #[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Receipt {
        /// The shop.
        #[schemars(length(max = 12))]
        shop: String,
        #[schemars(length(max = 2))]
        lines: Vec<Line>,
        paid: Option<Payment>,
        #[serde(default)]
        #[schemars(length(max = 3))]
        note: String,
    }

    #[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
    struct Line {
        cents: i16,
        count: u64,
        kind: Kind,
    }

    #[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Food,
        Other,
    }

    #[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
    #[serde(tag = "by", rename_all = "lowercase")]
    enum Payment {
        Cash,
        Card(Card),
        Voucher { code: Option<char> },
    }

    #[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
    struct Card {
        digits: u8,
    }

    #[test]
    fn what_may_be_null_is_required_and_objects_are_closed() -> Result<()> {
        let schema: Value = serde_json::from_str(&schema_of::<Receipt>()?).expect("JSON");
        assert_eq!(schema["required"], json!(["shop", "lines", "paid"]));
        assert_eq!(schema["additionalProperties"], json!(false));
        let line = &schema["$defs"]["Line"];
        assert_eq!(line["properties"]["cents"]["minimum"], json!(i16::MIN));
        assert_eq!(line["properties"]["count"]["maximum"], json!(u64::MAX));
        assert_eq!(line["additionalProperties"], json!(false));
        let card = &schema["$defs"]["Card"];
        assert_eq!(card.get("additionalProperties"), None, "a tag stands beside it");
        Ok(())
    }

    /// Whatever a model says under the schema of a type is a value of the type.
    #[test]
    fn every_answer_is_a_value_of_the_type() -> Result<()> {
        let vocabulary = crate::model::scripted::vocabulary();
        let settings = Settings::drawing(0.7);
        let options = Options { settings, log_probs: None, max_tokens: 300, ..Options::default() };
        let extractor: Extractor<Receipt> = Extractor::typed(&vocabulary, options)?;
        let mut payments = 0;
        for seed in 0..60 {
            let mut model = ScriptedModel::noise(seed);
            assert_eq!(model.vocabulary().hash(), vocabulary.hash());
            let found = extractor.extract(&mut Decoder::new(&mut model), "2 rolls")?;
            payments += usize::from(found.value.paid.is_some());
            assert!(found.value.shop.chars().count() <= 12 && found.value.lines.len() <= 2);
        }
        assert!(payments > 5, "{payments} with a payment");
        Ok(())
    }
}
