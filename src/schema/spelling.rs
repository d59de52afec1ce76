//! Names in a schema that say nothing where they stand: misspelled keywords, keywords of another draft, formats
//! that nobody knows, and what is void beside a `$ref`.
//!
//! Unknown keywords are annotations, as the standard says, so `{"requird": ["a"]}` requires nothing and is legal. An
//! unknown name that is one or two slips away from a keyword of the draft is told, unless its value cannot be one of
//! that keyword; a name that is near to nothing is somebody's annotation.
//!
//! By hand: `requird` needs one letter to be `required`, whose value is a list, as it is here: told. `example` needs
//! one letter to be `examples`, but is a keyword of OpenAPI: not told. `notes` with a text is no schema: not `not`.
//!
//! Cost: a pass over about fifty short names per unknown member of a schema, for a report that people read.

use super::draft::Draft;
use super::json::{At, Type};
use super::keywords::Keyword;
use super::lint::{Lint, Warning};
use super::normal::Compiler;
use super::report::says;
use crate::error::quote;
use crate::regex::Format;

/// What the value of a keyword looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Any,
    Schema,
    List,
    SchemaOrList,
    Map,
    Number,
    Text,
    TextOrList,
    Boolean,
}

impl Form {
    fn fits(self, kind: Type) -> bool {
        let boolean = matches!(kind, Type::True | Type::False);
        match self {
            Self::Any => true,
            Self::Schema => boolean || kind == Type::Object,
            Self::SchemaOrList => boolean || matches!(kind, Type::Object | Type::Array),
            Self::List => kind == Type::Array,
            Self::Map => kind == Type::Object,
            Self::Number => kind == Type::Number,
            Self::Text => kind == Type::String,
            Self::TextOrList => matches!(kind, Type::String | Type::Array),
            Self::Boolean => boolean,
        }
    }
}

/// The keywords that can be meant, with the form of their values.
const KNOWN: [(&str, Form); 52] = [
    ("type", Form::TextOrList),
    ("enum", Form::List),
    ("const", Form::Any),
    ("properties", Form::Map),
    ("required", Form::List),
    ("additionalProperties", Form::Schema),
    ("patternProperties", Form::Map),
    ("propertyNames", Form::Schema),
    ("minProperties", Form::Number),
    ("maxProperties", Form::Number),
    ("dependentRequired", Form::Map),
    ("dependentSchemas", Form::Map),
    ("dependencies", Form::Map),
    ("items", Form::SchemaOrList),
    ("prefixItems", Form::List),
    ("additionalItems", Form::Schema),
    ("minItems", Form::Number),
    ("maxItems", Form::Number),
    ("uniqueItems", Form::Boolean),
    ("contains", Form::Schema),
    ("minContains", Form::Number),
    ("maxContains", Form::Number),
    ("unevaluatedProperties", Form::Schema),
    ("unevaluatedItems", Form::Schema),
    ("minLength", Form::Number),
    ("maxLength", Form::Number),
    ("pattern", Form::Text),
    ("format", Form::Text),
    ("minimum", Form::Number),
    ("maximum", Form::Number),
    ("exclusiveMinimum", Form::Any),
    ("exclusiveMaximum", Form::Any),
    ("multipleOf", Form::Number),
    ("allOf", Form::List),
    ("anyOf", Form::List),
    ("oneOf", Form::List),
    ("not", Form::Schema),
    ("if", Form::Schema),
    ("then", Form::Schema),
    ("else", Form::Schema),
    ("$ref", Form::Text),
    ("$dynamicRef", Form::Text),
    ("$recursiveRef", Form::Text),
    ("$schema", Form::Text),
    ("$defs", Form::Map),
    ("definitions", Form::Map),
    ("$anchor", Form::Text),
    ("$dynamicAnchor", Form::Text),
    ("description", Form::Text),
    ("default", Form::Any),
    ("examples", Form::List),
    ("x-constrain", Form::Map),
];

/// Names near to a keyword that are annotations of OpenAPI or of generators of forms.
const OTHERS: [&str; 3] = ["example", "defaults", "formats"];

/// The newest drafts first.
const DRAFTS: [Draft; 5] =
    [Draft::Draft202012, Draft::Draft201909, Draft::Draft7, Draft::Draft6, Draft::Draft4];

impl Compiler<'_> {
    /// The names that say nothing among the members of the schema at `at`.
    pub(super) fn lint_spelling(&self, at: At, found: &mut Vec<Warning>) {
        let json = &self.json;
        let dialect = self.resources.dialect(at);
        let void = self.has_lone_ref(at);
        for (key, value) in json.members(at) {
            let name = json.text(key);
            if let Some(keyword) = Keyword::named(name, dialect.draft) {
                if !says(keyword, void) {
                    let draft = draft_name(dialect.draft);
                    let message =
                        format!("{} says nothing beside \"$ref\" in {draft}", quote(name));
                    let help = "put both into \"allOf\", or name draft 2020-12 with \"$schema\"";
                    found.push(self.warning(Lint::BesideRef, key, &message, help));
                } else if keyword == Keyword::Format && dialect.has(keyword) {
                    self.lint_format(at, value, found);
                }
            } else if let Some(draft) =
                DRAFTS.into_iter().find(|&d| Keyword::named(name, d).is_some())
            {
                let message = format!(
                    "{} is no keyword of {}, so it says nothing about the values",
                    quote(name),
                    draft_name(dialect.draft)
                );
                let help = format!(
                    "say it in the keywords of {}, or name {} with \"$schema\"",
                    draft_name(dialect.draft),
                    draft_name(draft)
                );
                found.push(self.warning(Lint::OtherDraft, key, &message, &help));
            } else if let Some(meant) = meant(name, json.kind(value), dialect.draft) {
                let message = format!("{} is no keyword and has no effect", quote(name));
                let help = format!("did you mean {}?", quote(meant));
                found.push(self.warning(Lint::MisspelledKeyword, key, &message, &help));
            }
        }
    }

    /// A format that nobody knows, at `value` in the schema at `at`.
    fn lint_format(&self, at: At, value: At, found: &mut Vec<Warning>) {
        let Some(name) = self.json.string(value) else { return };
        if !self.options.assert_formats || Format::named(name).is_some() || !self.has_strings(at) {
            return;
        }
        let message =
            format!("the format {} is not known, so it says nothing about the values", quote(name));
        let names = Format::all().map(Format::name);
        let help = match nearest(name, names) {
            Some(meant) => format!("did you mean {}?", quote(meant)),
            None => "say with \"pattern\" what the strings look like".to_owned(),
        };
        found.push(self.warning(Lint::UnknownFormat, value, &message, &help));
    }

    /// Whether the schema at `at` does not say that its values are no strings.
    fn has_strings(&self, at: At) -> bool {
        let json = &self.json;
        let Some(types) = json.member(at, "type") else { return true };
        json.string(types) == Some("string")
            || json.items(types).any(|item| json.string(item) == Some("string"))
    }
}

/// The keyword that an unknown name is likely to mean.
fn meant(name: &str, value: Type, draft: Draft) -> Option<&'static str> {
    if KNOWN.iter().any(|known| known.0 == name) || OTHERS.contains(&name) {
        return None;
    }
    let elsewhere =
        |known: &str| DRAFTS.iter().any(|&draft| Keyword::named(known, draft).is_some());
    let there = |known: &str| Keyword::named(known, draft).is_some() || !elsewhere(known);
    // Authors put a keyword out of force with a sign in front of it: `_format`, `$default`.
    let sign = name.chars().next().filter(|first| !first.is_alphabetic());
    let fitting = KNOWN.iter().filter(|(known, form)| {
        let signed = sign.is_none_or(|sign| known.starts_with(sign));
        // Three letters are near to too much.
        let long = known.len() > 3 || known.eq_ignore_ascii_case(name);
        form.fits(value) && there(known) && signed && long
    });
    nearest(name, fitting.map(|known| known.0))
}

/// The nearest of some names, if it is so near that it must be meant: the same letters in another case, one slip in
/// three letters or more, two in eight or more.
fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let near = known.filter_map(|known| {
        let slips = if known.eq_ignore_ascii_case(name) { 1 } else { slips(name, known) };
        let most = match known.len() {
            0..3 => 0,
            3..8 => 1,
            _ => 2,
        };
        (slips <= most || known.eq_ignore_ascii_case(name)).then_some((slips, known))
    });
    near.min_by_key(|near| near.0).map(|near| near.1)
}

/// How many letters one must put in, take out, change or swap with the next one to make one word of another;
/// anything above 2 may stand for more.
fn slips(from: &str, to: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (from.chars().take(40).collect(), to.chars().collect());
    if a.len().abs_diff(b.len()) > 2 {
        return 3;
    }
    // Rows of the table of distances between the first letters of both; the last three are needed.
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut least =
                (rows[i - 1][j] + 1).min(row[j - 1] + 1).min(rows[i - 1][j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// What a draft is called in a sentence.
fn draft_name(draft: Draft) -> &'static str {
    match draft {
        Draft::Draft4 => "draft 4",
        Draft::Draft6 => "draft 6",
        Draft::Draft7 => "draft 7",
        Draft::Draft201909 => "draft 2019-09",
        Draft::Draft202012 => "draft 2020-12",
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Options, lint};
    use super::*;
    use crate::error::Place;

    /// Lint, pointer, line and column, and help of each warning about names.
    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str, (u32, u32), &str)]) {
        let warnings = lint(text, &Options::default()).unwrap();
        let found: Vec<_> = warnings
            .iter()
            .filter(|warning| {
                matches!(
                    warning.lint,
                    Lint::MisspelledKeyword
                        | Lint::OtherDraft
                        | Lint::UnknownFormat
                        | Lint::BesideRef
                )
            })
            .map(|warning| match &warning.place {
                Place::Pointer { pointer, line_column: Some(at) } => {
                    (warning.lint.name(), pointer.as_str(), *at, warning.help.as_str())
                }
                place => panic!("{place:?}"),
            })
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn misspelled_keywords_are_told_at_their_key() {
        let keyword = "misspelled-keyword";
        check(
            "{\"requird\": [\"a\"],\n \"aditionalProperties\": false, \"items\": {\"minLenght\": 3, \"Pattern\": \"a\"}}",
            &[
                (keyword, "/requird", (1, 2), "did you mean \"required\"?"),
                (keyword, "/aditionalProperties", (2, 2), "did you mean \"additionalProperties\"?"),
                (keyword, "/items/minLenght", (2, 42), "did you mean \"minLength\"?"),
                (keyword, "/items/Pattern", (2, 58), "did you mean \"pattern\"?"),
            ],
        );
        // A schema that is refused says it, too: it may be the reason.
        check(
            r#"{"type": "strnig", "tpye": "string", "onOf": [true]}"#,
            &[
                (keyword, "/tpye", (1, 20), "did you mean \"type\"?"),
                (keyword, "/onOf", (1, 38), "did you mean \"oneOf\"?"),
            ],
        );
    }

    #[test]
    fn annotations_and_what_is_no_schema_are_not_told() {
        for text in [
            r#"{"properties": {"requird": true, "minLenght": {}}, "required": ["requird"]}"#,
            r#"{"enum": [{"requird": 1}], "examples": [{"minLenght": 1}], "default": {"tpye": 1}}"#,
            r#"{"const": {"requird": 1}, "$defs": {"requird": true}}"#,
            r#"{"x-own": 1, "color": "red", "example": 1, "title": "", "propertyOrder": 3, "notes": "x"}"#,
            r##"{"_format": "date", "$default": 1, "#required": ["a"], "//enum": [1], "note": {}}"##,
            // No value of the keyword that it resembles.
            r#"{"requird": "soon", "maxLenght": "x"}"#,
            r##"{"$ref": "#/$defs/a", "$defs": {"a": true}, "$comment": "", "$id": "http://a/b"}"##,
        ] {
            check(text, &[]);
        }
    }

    #[test]
    fn keywords_of_another_draft_are_told() {
        let (old, new) = (
            r#"{"$schema": "http://json-schema.org/draft-04/schema#", "const": 1, "items": {"if": true}}"#,
            r##"{"$recursiveRef": "#"}"##,
        );
        let help = "say it in the keywords of draft 4, or name draft 2020-12 with \"$schema\"";
        check(
            old,
            &[
                ("other-draft", "/const", (1, 56), help),
                ("other-draft", "/items/if", (1, 78), help),
            ],
        );
        let help =
            "say it in the keywords of draft 2020-12, or name draft 2019-09 with \"$schema\"";
        check(new, &[("other-draft", "/$recursiveRef", (1, 2), help)]);
    }

    #[test]
    fn keywords_beside_a_lone_reference_are_told() {
        let text = r##"{"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": true},
            "items": {"$ref": "#/definitions/a", "title": "t", "maxLength": 3}}"##;
        let help = "put both into \"allOf\", or name draft 2020-12 with \"$schema\"";
        check(text, &[("beside-ref", "/items/maxLength", (2, 64), help)]);
        check(&text.replace("http://json-schema.org/draft-07/schema#", ""), &[]);
    }

    #[test]
    fn unknown_formats_are_told_with_the_nearest() {
        let format = "unknown-format";
        check(
            r#"{"properties": {"a": {"format": "datetime"}, "b": {"type": ["string"], "format": "phone"},
                "c": {"type": "integer", "format": "int32"}, "d": {"format": "uuid"}, "e": {"format": "url"}}}"#,
            &[
                (format, "/properties/a/format", (1, 33), "did you mean \"date-time\"?"),
                (
                    format,
                    "/properties/b/format",
                    (1, 82),
                    "say with \"pattern\" what the strings look like",
                ),
                (format, "/properties/e/format", (2, 103), "did you mean \"uri\"?"),
            ],
        );
        let options = Options { assert_formats: false, ..Options::default() };
        let warnings = lint(r#"{"format": "datetime"}"#, &options).unwrap();
        assert_eq!(warnings, []);
    }

    #[test]
    fn slips_are_letters_put_in_taken_out_changed_or_swapped() {
        for (from, to, slips_made) in [
            ("type", "type", 0),
            ("tpye", "type", 1),
            ("typ", "type", 1),
            ("minLenght", "minLength", 1),
            ("aditionalPropertys", "additionalProperties", 3),
            ("requred", "required", 1),
            ("", "if", 2),
        ] {
            assert_eq!(slips(from, to), slips_made, "{from} {to}");
        }
    }
}
