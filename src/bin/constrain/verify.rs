//! The last check: other code than the engine parses and validates every finished document.
//!
//! The engine promises that what it lets through is valid. This module does not believe it: the
//! text is parsed by `serde_json` and validated by the crate `jsonschema`, formats included. A
//! document that fails is a bug of this program, is not printed, and exits with status 2.

use crate::compile::Form;
use crate::report::{Failure, Source};
use constrain::error::quote;
use jsonschema::json::SerdeJson;
use jsonschema::{Keyword, ValidationError, Validator};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// A schema as the independent validator understands it.
pub struct Verifier(Validator);

/// The keyword `x-constrain`: a string is a piece of this document.
struct PieceOf(Option<Arc<str>>);

impl<'i> Keyword<'i> for PieceOf {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        match Keyword::<SerdeJson>::is_valid(self, instance) {
            true => Ok(()),
            false => Err(ValidationError::custom("the text is not a piece of the document")),
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        let (Some(document), Value::String(text)) = (&self.0, instance) else { return true };
        !text.is_empty() && document.contains(text.as_str())
    }
}

/// What the independent validator says about a document that it rejects.
pub struct Complaint {
    /// What is wrong, in words.
    pub message: String,
    /// JSON pointer into the document.
    pub instance: String,
    /// JSON pointer into the schema.
    pub schema: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.instance.is_empty() { "the root" } else { &self.instance };
        write!(f, "{} (at {place}, schema {})", self.message, self.schema)
    }
}

impl Verifier {
    /// Compiles `schema`, for which values may be pieces of `document`.
    ///
    /// # Errors
    /// A schema that the validator cannot read: nothing could be verified under it.
    pub fn new(schema: &Source, document: Option<&str>) -> Result<Self, Failure> {
        let value: Value = serde_json::from_str(&schema.text)
            .map_err(|error| Failure::new(format!("{}: {error}", quote(&schema.name))))?;
        let mut options = jsonschema::options().should_validate_formats(true);
        if let Some(document) = document {
            let document: Arc<str> = document.into();
            options = options.with_keyword("x-constrain", move |_, own, _| {
                let document = (own["span"] == Value::Bool(true)).then(|| Arc::clone(&document));
                Ok(Box::new(PieceOf(document)))
            });
        }
        let validator = options.build(&value);
        validator.map(Self).map_err(|error| {
            let place = error.instance_path().to_string();
            Failure::new(format!(
                "the independent validator cannot read the schema at {}: {}",
                quote(&place),
                short(&error.to_string())
            ))
            .help("correct the schema there; without its second judge, nothing is generated")
        })
    }

    /// The judge of a form; a grammar has none but the engine.
    ///
    /// # Errors
    /// As [`Verifier::new`].
    pub fn of(form: &Form) -> Result<Option<Self>, Failure> {
        let document = form.options.document.as_ref().filter(|document| !document.is_unknown());
        let document = document.map(|document| document.text());
        form.is_schema().then(|| Self::new(&form.source, document)).transpose()
    }

    /// The first thing that is wrong with a document, if any.
    ///
    /// The engine computes numbers as they are written, the validator as they fit: what it says of a value with a
    /// number that it cannot hold is no evidence.
    pub fn complaint(&self, document: &Value) -> Option<Complaint> {
        self.complaints(document).next()
    }

    /// All that is wrong with a document.
    pub fn complaints<'a>(&'a self, document: &'a Value) -> impl Iterator<Item = Complaint> + 'a {
        let judged = |instance: &str| document.pointer(instance).is_none_or(is_held);
        self.0
            .iter_errors(document)
            .map(|error| Complaint {
                message: short(&error.to_string()),
                instance: error.instance_path().to_string(),
                schema: error.schema_path().to_string(),
            })
            .filter(move |complaint| {
                !is_of_numbers(&complaint.schema) || judged(&complaint.instance)
            })
    }

    /// Parses and validates a finished text.
    ///
    /// # Errors
    /// The text is not JSON or not valid: a bug, which the message says.
    pub fn verify(&self, text: &str) -> Result<Value, Failure> {
        self.judge(text).map_err(|what| {
            Failure::new(format!("the finished document failed its last check: {what}"))
                .help("this is a bug in constrain: please report it with the schema and the seed")
        })
    }

    /// Parses and validates a text of somebody else, which the engine accepts.
    ///
    /// # Errors
    /// The validator does not agree.
    pub fn confirm(&self, text: &str) -> Result<(), Failure> {
        self.judge(text).map(drop).map_err(|what| {
            Failure::new(format!(
                "the engine accepts the text, the independent validator does not: {what}"
            ))
            .help("one of them is wrong: please report it with the schema and the text")
        })
    }

    /// The document of a text, or what is wrong with it.
    fn judge(&self, text: &str) -> Result<Value, String> {
        let document = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match self.complaint(&document) {
            None => Ok(document),
            Some(Complaint { message, instance, schema }) => {
                let (instance, schema) = (quote(&instance), quote(&schema));
                Err(format!("{message} (document {instance}, schema {schema})"))
            }
        }
    }
}

/// Whether a keyword, named by the end of its place in the schema, can depend on the exact value of a number.
fn is_of_numbers(schema: &str) -> bool {
    const OTHERS: [&str; 9] = [
        "required",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
    ];
    let keyword = schema.rsplit('/').next().unwrap_or(schema);
    !OTHERS.contains(&keyword)
}

/// Whether the validator holds all numbers of a value as they were written, as far as that can be told from what it holds:
/// integers beyond 64 bits, large numbers with a fraction and tiny ones are rounded to 53 bits, or to 0.
fn is_held(value: &Value) -> bool {
    const EXACT: f64 = (1u64 << 53) as f64;
    match value {
        Value::Number(number) if number.is_f64() => {
            number.as_f64().is_some_and(|float| float.is_normal() && float.abs() < EXACT)
        }
        Value::Array(items) => items.iter().all(is_held),
        Value::Object(members) => members.values().all(is_held),
        _ => true,
    }
}

/// The message of the validator, which may quote a whole document, cut and escaped.
fn short(message: &str) -> String {
    let quoted = quote(message);
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.unwrap_or(&quoted).replace("\\\"", "\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verifier(schema: &str) -> Result<Verifier, Failure> {
        Verifier::new(&Source { name: "s.json".into(), text: schema.into() }, None)
    }

    #[test]
    fn wrong_documents_do_not_pass() {
        let schema = r#"{"properties": {"d": {"type": "string", "format": "date"}}}"#;
        let verifier = verifier(schema).expect("compiles");
        assert!(verifier.verify(r#"{"d": "2024-02-29"}"#).is_ok());
        for text in ["", "{", r#"{"d": 1}"#, r#"{"d": "2023-02-29"}"#, "{} {}"] {
            assert!(verifier.verify(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_piece_of_the_document_does_not_pass() {
        let text = r#"{"type": ["string", "null"], "x-constrain": {"span": true}}"#;
        let source = Source { name: "s.json".into(), text: text.into() };
        let verifier = Verifier::new(&source, Some("a b")).expect("compiles");
        for (document, valid) in
            [("null", true), (r#""a b""#, true), (r#""c""#, false), (r#""""#, false)]
        {
            assert_eq!(verifier.verify(document).is_ok(), valid, "{document}");
        }
    }

    /// 2^64 + 4 is a multiple of 5, and 1e-400 is above 0; what the validator holds is neither.
    #[test]
    fn numbers_that_the_validator_cannot_hold_are_left_to_the_engine() {
        let fives = verifier(r#"{"multipleOf": 5, "type": "integer"}"#).expect("compiles");
        assert!(fives.verify("18446744073709551620").is_ok());
        assert!(fives.verify("18446744073709551615").is_ok());
        assert!(fives.verify("18446744073709551614").is_err());
        assert!(fives.verify("7").is_err());
        let schema = r#"{"items": {"exclusiveMinimum": 0}, "maxItems": 2}"#;
        let verifier = verifier(schema).expect("compiles");
        assert!(verifier.verify("[1e-400]").is_ok());
        assert!(verifier.verify("[-1]").is_err());
        assert!(verifier.verify("[1e-400, 1e300, 1]").is_err());
    }

    #[test]
    fn a_complaint_keeps_its_quotes() {
        let verifier = verifier(r#"{"type": "integer"}"#).expect("compiles");
        let complaint = verifier.complaint(&serde_json::json!("x")).expect("a complaint");
        assert_eq!(complaint.message, r#""x" is not of type "integer""#);
    }

    #[test]
    fn a_complaint_names_both_places() {
        let verifier = verifier(r#"{"items": {"maximum": 3}}"#).expect("compiles");
        let complaint = verifier.complaint(&serde_json::json!([1, 9])).expect("a complaint");
        assert_eq!((&*complaint.instance, &*complaint.schema), ("/1", "/items/maximum"));
    }

    #[test]
    fn unreadable_schemas_are_refused() {
        for schema in ["{", r#"{"minLength": -1}"#, r#"{"pattern": "("}"#] {
            assert!(verifier(schema).is_err(), "{schema}");
        }
    }
}
