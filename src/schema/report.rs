//! What becomes of each keyword of a schema.

use super::Options;
use super::draft::{Draft, Holds, holds};
use super::json::{At, Json, Type};
use super::keywords::Keyword;
use super::normal::Compiler;
use crate::error::{Error, Place, Result};

/// What becomes of one keyword.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// It is enforced exactly.
    Enforced,
    /// It says nothing about validity: an annotation, or beside a `$ref` that stands alone in its draft.
    Annotation,
    /// The schema is refused because of it.
    Refused(Error),
}

/// One keyword of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// JSON pointer of the keyword.
    pub pointer: String,
    /// The keyword.
    pub keyword: String,
    /// What becomes of it.
    pub status: Status,
}

/// What becomes of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The draft of the root.
    pub draft: Draft,
    /// All keywords, in the order of the text.
    pub entries: Vec<Entry>,
    /// Why the schema as a whole is refused, if it is.
    pub error: Option<Error>,
}

/// Lists the keywords of a schema: which are enforced, which are annotations, which one it is refused for.
///
/// # Errors
/// The text is no JSON.
pub fn report(text: &str, options: &Options) -> Result<Report> {
    let compiler = Compiler::new(text, options)?;
    let error = super::compile(text, options).err();
    let (json, resources) = (&compiler.json, &compiler.resources);
    let schemas = compiler.schema_places();
    let mut found: Vec<(At, At, bool)> = Vec::new();
    for &at in &schemas {
        let void = compiler.has_lone_ref(at);
        found.extend(json.members(at).map(|(key, value)| (key, value, void)));
    }
    found.sort_unstable();
    let mut entries = Vec::with_capacity(found.len());
    let blamed = match error.as_ref().and_then(Error::place) {
        Some(Place::Pointer { pointer, .. }) => Some(pointer.as_str()),
        _ => None,
    };
    for (key, value, void) in found {
        let keyword = json.text(key).to_owned();
        let pointer = json.pointer(value);
        let dialect = resources.dialect(key);
        let known = Keyword::named(&keyword, dialect.draft);
        let known = known.is_some_and(|keyword| dialect.has(keyword) && says(keyword, void));
        let status = match &error {
            Some(error) if blamed == Some(pointer.as_str()) => Status::Refused(error.clone()),
            Some(error)
                if keyword == "x-constrain" && blamed.is_some_and(|b| below(b, &pointer)) =>
            {
                Status::Refused(error.clone())
            }
            _ if keyword == "format" && !asserted(json, value, options) => Status::Annotation,
            _ if known || is_own(json, &keyword, value) => Status::Enforced,
            _ => Status::Annotation,
        };
        entries.push(Entry { pointer, keyword, status });
    }
    Ok(Report { draft: resources.dialect(0).draft, entries, error })
}

/// Whether a keyword says anything in a schema in which all but `$ref` is `void`.
pub(super) fn says(keyword: Keyword, void: bool) -> bool {
    !void || keyword == Keyword::Ref
}

impl Compiler<'_> {
    /// Whether the schema at `at` has a `$ref` that makes all other keywords void, as it does up to draft 7.
    pub(super) fn has_lone_ref(&self, at: At) -> bool {
        let alone = self.resources.dialect(at).draft.ref_alone();
        alone && self.json.member(at, "$ref").is_some()
    }

    /// The schemas of the text that are objects, wherever they stand.
    pub fn schema_places(&self) -> Vec<At> {
        let json = &self.json;
        let (mut found, mut todo) = (Vec::new(), vec![0]);
        while let Some(at) = todo.pop() {
            found.push(at);
            for (key, value) in json.members(at) {
                todo.extend(schemas_in(json, holds(json.text(key)), value));
            }
        }
        found
    }
}

/// Whether a JSON pointer leads to something inside of what another one leads to.
fn below(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
}

fn asserted(json: &Json, value: At, options: &Options) -> bool {
    let known = json.string(value).and_then(crate::regex::Format::named);
    options.assert_formats && known.is_some()
}

/// Whether it is this library's own keyword, and constrains.
fn is_own(json: &Json, keyword: &str, value: At) -> bool {
    let span = || json.member(value, "span").is_some_and(|span| json.kind(span) == Type::True);
    keyword == "x-constrain" && (span() || json.member(value, "max_tokens").is_some())
}

/// The schemas in the value of a keyword.
fn schemas_in(json: &Json, holds: Holds, value: At) -> Vec<At> {
    match holds {
        Holds::Nothing => Vec::new(),
        Holds::One | Holds::OneOrList if json.is_object(value) => vec![value],
        Holds::Map => {
            json.members(value).map(|member| member.1).filter(|&at| json.is_object(at)).collect()
        }
        _ => json.items(value).filter(|&at| json.is_object(at)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_becomes_of_each_keyword() {
        let text = r#"{
            "$schema": "http://json-schema.org/draft-07/schema#",
            "title": "t",
            "properties": {"title": {"type": "string", "pattern": "(a)\\1", "format": "date"}},
            "x-own": 1,
            "x-constrain": {"span": true},
            "items": {"x-constrain": {"span": false}},
            "contains": {"x-constrain": {"max_tokens": 9}},
            "unevaluatedItems": false,
            "format": "unheard-of"
        }"#;
        let document = Some(crate::expr::Document::unknown());
        let report = report(text, &Options { document, ..Options::default() }).unwrap();
        assert_eq!(report.draft, Draft::Draft7);
        let status = |pointer: &str| {
            let entry = report.entries.iter().find(|entry| entry.pointer == pointer);
            entry.map(|entry| entry.status.clone())
        };
        assert_eq!(status("/title"), Some(Status::Annotation));
        assert_eq!(status("/properties"), Some(Status::Enforced));
        assert_eq!(status("/properties/title/format"), Some(Status::Enforced));
        assert!(matches!(status("/properties/title/pattern"), Some(Status::Refused(_))));
        assert_eq!(status("/x-own"), Some(Status::Annotation));
        assert_eq!(status("/x-constrain"), Some(Status::Enforced));
        assert_eq!(status("/items/x-constrain"), Some(Status::Annotation));
        assert_eq!(status("/contains/x-constrain"), Some(Status::Enforced));
        assert_eq!(status("/unevaluatedItems"), Some(Status::Annotation));
        assert_eq!(status("/format"), Some(Status::Annotation));
        assert_eq!(status("/properties/title"), None);
    }

    #[test]
    fn beside_a_lone_reference_nothing_is_enforced() {
        let text = |draft: &str| {
            format!(
                r##"{{"$schema": "{draft}", "$ref": "#/definitions/a", "maxLength": 3, "definitions": {{"a": {{}}}}}}"##
            )
        };
        for (draft, status) in [
            ("http://json-schema.org/draft-07/schema#", Status::Annotation),
            ("https://json-schema.org/draft/2020-12/schema", Status::Enforced),
        ] {
            let report = report(&text(draft), &Options::default()).unwrap();
            let of = |pointer: &str| {
                report.entries.iter().find(|entry| entry.pointer == pointer).unwrap().status.clone()
            };
            assert_eq!((of("/$ref"), of("/maxLength")), (Status::Enforced, status));
        }
    }

    #[test]
    fn formats_may_be_annotations() {
        let text = r#"{"format": "date"}"#;
        for (assert_formats, status) in [(true, Status::Enforced), (false, Status::Annotation)] {
            let report = report(text, &Options { assert_formats, ..Options::default() }).unwrap();
            assert_eq!(report.entries[0].status, status);
        }
    }
}
