//! Schemas that are legal but will hurt: what a model tends to do wrong under them although nothing is invalid.
//!
//! A model writes one token after the other and cannot take anything back. So a string without a maximum may go
//! on until the tokens run out, and whatever is required behind it never comes; an open object invites
//! keys that nobody asked for; an answer that comes before the reasoning is a guess with an excuse. None of this
//! is an error: it is told, with its place, and the author decides.
//!
//! `{"properties":{"note":{"type":"string"},"id":{"type":"integer"}},"required":["id"]}` gets two warnings: `id` is
//! required after the unbounded `note`, and the object is open.

use super::Options;
use super::emit_object::REASONING_FIELDS;
use super::json::{At, Type};
use super::keywords::{Keyword, Keywords};
use super::normal::{Compiler, Parts};
use super::sets::SetId;
use super::text::Text;
use crate::error::{Place, Result, quote};
use crate::grammar::PropertyOrder;

/// Something in a schema that will hurt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What it is.
    pub lint: Lint,
    /// Where it stands.
    pub place: Place,
    /// What it does, a clause without a final full stop.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

/// What warnings are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Lint {
    /// A required property comes after a string without a maximum.
    RequiredAfterUnbounded,
    /// A string has no `maxLength`.
    UnboundedString,
    /// An array has no `maxItems`.
    UnboundedArray,
    /// An object with declared properties takes others as well.
    OpenObject,
    /// No string matches a `pattern` with what stands beside it.
    NoMatch,
    /// A property in which the model reasons comes after others.
    AnswerFirst,
    /// An unknown keyword that is nearly one of the draft.
    MisspelledKeyword,
    /// A keyword that the draft does not have, but another one does.
    OtherDraft,
    /// A `format` that is not known.
    UnknownFormat,
    /// A keyword beside a `$ref` that makes it void.
    BesideRef,
}

impl Lint {
    /// Its name: `unbounded-string`, for example.
    pub fn name(self) -> &'static str {
        match self {
            Self::RequiredAfterUnbounded => "required-after-unbounded",
            Self::UnboundedString => "unbounded-string",
            Self::UnboundedArray => "unbounded-array",
            Self::OpenObject => "open-object",
            Self::NoMatch => "no-match",
            Self::AnswerFirst => "answer-first",
            Self::MisspelledKeyword => "misspelled-keyword",
            Self::OtherDraft => "other-draft",
            Self::UnknownFormat => "unknown-format",
            Self::BesideRef => "beside-ref",
        }
    }
}

/// Names that sound like reasoning besides [`REASONING_FIELDS`], which come first by themselves.
const LIKE_REASONING: [&str; 7] =
    ["reason", "reasons", "justification", "thought", "thoughts", "chain_of_thought", "steps"];

/// What of a schema will hurt, in the order of the text; of a schema that cannot be compiled only the names in it
/// that say nothing.
///
/// # Errors
/// The text is no JSON.
pub fn lint(text: &str, options: &Options) -> Result<Vec<Warning>> {
    let mut compiler = Compiler::new(text, options)?;
    let mut places = compiler.schema_places();
    places.sort_unstable();
    let mut found = Vec::new();
    let mut compiles = true;
    for at in places {
        compiler.lint_spelling(at, &mut found);
        // Why it cannot be compiled is said elsewhere.
        compiles = compiles && compiler.lint_schema(at, &mut found).is_ok();
    }
    Ok(found)
}

impl Compiler<'_> {
    /// Whether strings of these parts have no end of their own: any text, without a greatest length.
    fn is_unbounded(&mut self, parts: &Parts) -> Result<bool> {
        Ok(match &parts.text {
            Text::All | Text::Not(_) => true,
            Text::None | Text::Some(_) | Text::Format(_) => false,
            Text::Expr(expr) => {
                let expr = *expr;
                matches!(self.grammar.exprs.lengths(expr, &mut self.fuel)?, Some((_, None)))
            }
        })
    }

    fn lint_schema(&mut self, at: At, found: &mut Vec<Warning>) -> Result<()> {
        let keywords = self.keywords(at);
        if keywords.is_empty() || keywords.only_ref().is_some() {
            return Ok(());
        }
        let set = self.schema_set(at, 0)?;
        let parts = self.parts(set)?;
        if let Some(place) = keywords.get(Keyword::Pattern) {
            self.lint_pattern(place, &keywords, found)?;
        }
        if let Some(place) = keywords.get(Keyword::Type) {
            let names: Vec<At> = match self.json.kind(place) {
                Type::Array => self.json.items(place).collect(),
                _ => vec![place],
            };
            let says = |name: &str| names.iter().any(|&at| self.json.string(at) == Some(name));
            let ends = self.own_tokens(&keywords)?.is_some();
            // A piece of the document is no longer than the document.
            let span = keywords.get(Keyword::Span).is_some();
            let (string, array) = (says("string") && !ends && !span, says("array") && !ends);
            if string && self.is_unbounded(&parts)? {
                found.push(self.warning(
                    Lint::UnboundedString,
                    place,
                    "a string without a maximum may go on until the tokens run out",
                    "add \"maxLength\"",
                ));
            }
            let endless = |max: Option<u64>, rest: SetId| max.is_none() && rest != SetId::NEVER;
            if array && parts.arrays.iter().any(|shape| endless(shape.max, shape.rest)) {
                found.push(self.warning(
                    Lint::UnboundedArray,
                    place,
                    "an array without a maximum may go on until the tokens run out",
                    "add \"maxItems\"",
                ));
            }
        }
        if let Some(map) = keywords.get(Keyword::Properties) {
            let open = |rest: SetId| rest == SetId::ANY;
            if parts.objects.iter().any(|shape| open(shape.rest) && shape.max.is_none()) {
                found.push(self.warning(
                    Lint::OpenObject,
                    map,
                    "properties that are not declared may be added, with any values",
                    "add \"additionalProperties\": false",
                ));
            }
            self.lint_order(&keywords, map, found)?;
        }
        Ok(())
    }

    fn lint_pattern(
        &mut self,
        place: At,
        keywords: &Keywords,
        found: &mut Vec<Warning>,
    ) -> Result<()> {
        let text = self.text(keywords)?;
        let expr = text.to_expr(&mut self.tools());
        if self.grammar.exprs.is_never(expr, &mut self.fuel)? {
            let message = format!(
                "no string matches {} and what stands beside it",
                quote(self.json.text(place))
            );
            let help =
                "correct the pattern, the lengths or the format, or forbid the value with false";
            found.push(self.warning(Lint::NoMatch, place, &message, help));
        }
        Ok(())
    }

    /// What the order of the declared properties does.
    fn lint_order(&mut self, keywords: &Keywords, map: At, found: &mut Vec<Warning>) -> Result<()> {
        let declared = self.options.property_order == PropertyOrder::Declared;
        let first = |name: &str| match &self.options.reasoning_field {
            Some(field) => field == name,
            None => REASONING_FIELDS.contains(&name),
        };
        let mut members: Vec<(At, At)> = self.json.members(map).collect();
        if declared {
            // The reasoning field comes first.
            members.sort_by_key(|member| !first(self.json.text(member.0)));
        }
        let required: Vec<At> =
            keywords.get(Keyword::Required).map_or(Vec::new(), |at| self.json.items(at).collect());
        let mut unbounded: Option<At> = None;
        let mut told = false;
        for (position, (key, schema)) in members.into_iter().enumerate() {
            let name = self.json.text(key).to_owned();
            let needed = required.iter().any(|&at| self.json.string(at) == Some(&name));
            if let Some(before) = unbounded.filter(|_| declared && needed && !told) {
                let message = format!(
                    "the required {} comes after a string without a maximum, which may take all tokens",
                    quote(&name)
                );
                let help = "add \"maxLength\" to this string, or declare it last";
                found.push(self.warning(Lint::RequiredAfterUnbounded, before, &message, help));
                told = true;
            }
            let reasons = LIKE_REASONING.contains(&name.as_str()) || first(&name);
            if reasons && position > 0 && !(declared && first(&name)) {
                let message = format!("{} may come after what it should lead to", quote(&name));
                let help = if declared {
                    "declare it first, or name it with --reasoning-field"
                } else {
                    "use --property-order declared, in which the reasoning comes first"
                };
                found.push(self.warning(Lint::AnswerFirst, schema, &message, help));
            }
            if unbounded.is_none() && self.is_string(schema)? {
                unbounded = Some(schema);
            }
        }
        Ok(())
    }

    /// Whether a schema allows little but strings that have no end of their own.
    fn is_string(&mut self, schema: At) -> Result<bool> {
        let set = self.schema_set(schema, 0)?;
        if set == SetId::ANY {
            return Ok(false);
        }
        let parts = self.parts(set)?;
        Ok(parts.objects.is_empty() && parts.arrays.is_empty() && self.is_unbounded(&parts)?)
    }

    pub(super) fn warning(&self, lint: Lint, at: At, message: &str, help: &str) -> Warning {
        Warning {
            lint,
            place: self.json.place(at),
            message: message.to_owned(),
            help: help.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, options: &Options) -> Vec<(&'static str, String)> {
        let pointer = |warning: &Warning| match &warning.place {
            Place::Pointer { pointer, line_column: Some(_) } => pointer.clone(),
            place => panic!("{place:?}"),
        };
        let warnings = lint(text, options).unwrap();
        warnings.iter().map(|warning| (warning.lint.name(), pointer(warning))).collect()
    }

    #[test]
    fn what_will_hurt_is_told_with_its_place() {
        let text = r##"{"type": "object", "properties": {
            "note": {"$ref": "#/$defs/text"}, "id": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 3}},
            "code": {"type": "string", "pattern": "^a+$", "maxLength": 0}},
            "required": ["id"], "$defs": {"text": {"type": ["string", "null"]}}}"##;
        assert_eq!(
            found(text, &Options::default()),
            [
                ("open-object", "/properties".to_owned()),
                ("required-after-unbounded", "/properties/note".to_owned()),
                ("unbounded-array", "/properties/tags/type".to_owned()),
                ("no-match", "/properties/code/pattern".to_owned()),
                ("unbounded-string", "/$defs/text/type".to_owned()),
            ]
        );
        let any = Options { property_order: PropertyOrder::Any, ..Options::default() };
        assert!(found(text, &any).iter().all(|warning| warning.0 != "required-after-unbounded"));
    }

    #[test]
    fn the_answer_should_not_come_first() {
        let text = r#"{"properties": {"answer": {"enum": [1, 2]}, "reasoning": {"maxLength": 9,
            "type": "string"}, "reason": {"type": "null"}}, "additionalProperties": false}"#;
        // The reasoning is moved to the front; what only sounds like it stays where it is.
        let only = [("answer-first", "/properties/reason".to_owned())];
        assert_eq!(found(text, &Options::default()), only);
        let named = Options { reasoning_field: Some("reason".into()), ..Options::default() };
        assert_eq!(found(text, &named), []);
        let any = Options { property_order: PropertyOrder::Any, ..Options::default() };
        assert_eq!(found(text, &any).len(), 2);
    }

    #[test]
    fn closed_and_bounded_schemas_have_no_warnings() {
        for text in [
            r#"{"type": "object", "properties": {"a": {"type": "string", "maxLength": 5},
                "b": {"type": "array", "items": true, "maxItems": 2}, "c": {"type": "string", "format": "date"},
                "d": {"enum": ["x"]}, "e": {"type": "string", "pattern": "^[ab]{2}$"}},
                "required": ["a", "b", "c", "d", "e"], "additionalProperties": false}"#,
            r#"{"type": "integer"}"#,
            "true",
            // What does not compile has an error instead.
            r#"{"type": "strnig", "properties": {"a": {"type": "string"}}}"#,
        ] {
            assert_eq!(found(text, &Options::default()), [], "{text}");
        }
        assert!(lint("{", &Options::default()).is_err());
    }
}
