//! What `$schema` says: a draft, and which of its vocabularies are in force.
//!
//! `$schema` names a draft's meta-schema, or a meta-schema of one's own, which has a `$schema` in turn and,
//! since draft 2019-09, may list its vocabularies: `{"$schema": "https://json-schema.org/draft/2020-12/schema",
//! "$vocabulary": {"https://json-schema.org/draft/2020-12/vocab/applicator": true}}` makes annotations of
//! `minimum` and `format`. A vocabulary that is required and not known is an error, as the standard wants.

use super::Options;
use super::draft::Draft;
use super::keywords::Keyword;
use super::uri;
use crate::error::{Error, Kind, Result, quote};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A draft, and the vocabularies that do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Dialect {
    pub draft: Draft,
    /// One bit per [`Vocabulary`].
    off: u8,
}

/// The vocabularies whose keywords constrain. The core vocabulary cannot be left out.
#[derive(Debug, Clone, Copy)]
enum Vocabulary {
    Applicator,
    Unevaluated,
    Validation,
    Format,
}

/// The part of a meta-schema that matters.
#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "$schema")]
    schema: Option<String>,
    #[serde(rename = "$vocabulary")]
    vocabulary: Option<BTreeMap<String, bool>>,
}

/// Meta-schemas of meta-schemas.
const HOPS: usize = 8;

impl Dialect {
    /// All of a draft.
    pub fn of(draft: Draft) -> Self {
        Self { draft, off: 0 }
    }

    /// What the URI of a `$schema` stands for; `None` if nobody knows.
    pub fn named(uri: &str, options: &Options) -> Result<Option<Self>> {
        let (mut uri, mut off) = (uri.to_owned(), None);
        for _ in 0..HOPS {
            if let Some(draft) = Draft::named(&uri) {
                return Ok(Some(Self { draft, off: off.unwrap_or(0) }));
            }
            let place = uri::without_fragment(&uri).0;
            let document = options.documents.iter();
            let document = document.map(|(uri, text)| (uri::without_fragment(uri).0, text));
            let Some(text) = document.filter(|known| known.0 == place).map(|known| known.1).next()
            else {
                return Ok(None);
            };
            let Ok(meta) = serde_json::from_str::<Meta>(text) else { return Ok(None) };
            if let (None, Some(list)) = (off, &meta.vocabulary) {
                off = Some(missing(list)?);
            }
            let Some(next) = meta.schema else { return Ok(None) };
            uri = next;
        }
        Ok(None)
    }

    /// Whether a keyword of the draft is in force.
    pub fn has(self, keyword: Keyword) -> bool {
        self.off == 0 || vocabulary(keyword).is_none_or(|of| self.off >> of as u8 & 1 == 0)
    }
}

/// The vocabularies that a list leaves out, as bits.
fn missing(list: &BTreeMap<String, bool>) -> Result<u8> {
    let mut off = 0b1111;
    for (uri, &required) in list {
        let known = uri.strip_prefix("https://json-schema.org/draft/2019-09/vocab/");
        let known =
            known.or_else(|| uri.strip_prefix("https://json-schema.org/draft/2020-12/vocab/"));
        let here: &[Vocabulary] = match known {
            // The keywords about what is not evaluated were applicators in draft 2019-09.
            Some("applicator") if uri.contains("2019") => {
                &[Vocabulary::Applicator, Vocabulary::Unevaluated]
            }
            Some("applicator") => &[Vocabulary::Applicator],
            Some("unevaluated") => &[Vocabulary::Unevaluated],
            Some("validation") => &[Vocabulary::Validation],
            Some("format" | "format-annotation" | "format-assertion") => &[Vocabulary::Format],
            Some("core" | "meta-data" | "content") => &[],
            _ if !required => &[],
            _ => {
                let kind = Kind::Unsupported { keyword: "$vocabulary".to_owned() };
                let message = format!("the meta-schema requires the vocabulary {}", quote(uri));
                return Err(Error::new(kind, message)
                    .help("mark the vocabulary as optional (false), or remove \"$schema\""));
            }
        };
        here.iter().for_each(|&vocabulary| off &= !(1 << vocabulary as u8));
    }
    Ok(off)
}

/// The vocabulary of a keyword; `None` for those of the core.
fn vocabulary(keyword: Keyword) -> Option<Vocabulary> {
    Some(match keyword {
        Keyword::Ref | Keyword::DynamicRef | Keyword::RecursiveRef => return None,
        Keyword::Properties
        | Keyword::AdditionalProperties
        | Keyword::PatternProperties
        | Keyword::PropertyNames
        | Keyword::DependentSchemas
        | Keyword::Dependencies
        | Keyword::Items
        | Keyword::PrefixItems
        | Keyword::AdditionalItems
        | Keyword::Contains
        | Keyword::AllOf
        | Keyword::AnyOf
        | Keyword::OneOf
        | Keyword::Not
        | Keyword::If
        | Keyword::Then
        | Keyword::Else => Vocabulary::Applicator,
        Keyword::UnevaluatedProperties | Keyword::UnevaluatedItems => Vocabulary::Unevaluated,
        Keyword::Format => Vocabulary::Format,
        _ => Vocabulary::Validation,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_schemas_of_ones_own_choose_vocabularies() {
        let mut options = Options::default();
        let own = r#"{"$schema": "https://json-schema.org/draft/2020-12/schema", "$vocabulary": {
            "https://json-schema.org/draft/2020-12/vocab/core": true, "http://a.example/x": false,
            "https://json-schema.org/draft/2020-12/vocab/applicator": true}}"#;
        options.documents.insert("http://a.example/own".into(), own.into());
        let above = r#"{"$schema": "http://a.example/own#"}"#;
        options.documents.insert("http://a.example/above".into(), above.into());
        let dialect = Dialect::named("http://a.example/own#", &options).unwrap().unwrap();
        assert_eq!(dialect.draft, Draft::Draft202012);
        assert!(dialect.has(Keyword::Properties) && dialect.has(Keyword::Ref));
        assert!(!dialect.has(Keyword::Minimum) && !dialect.has(Keyword::Format));
        // A meta-schema that lists nothing is ruled by the one above it.
        assert_eq!(Dialect::named("http://a.example/above", &options).unwrap(), Some(dialect));
        assert_eq!(Dialect::named("http://a.example/none", &options).unwrap(), None);
        options.documents.insert("http://a.example/own".into(), own.replace("false", "true"));
        let error = Dialect::named("http://a.example/own", &options).unwrap_err();
        assert_eq!(*error.kind(), Kind::Unsupported { keyword: "$vocabulary".into() });
    }

    #[test]
    fn meta_schemas_that_name_each_other_end() {
        let mut options = Options::default();
        for (own, other) in [("a", "b"), ("b", "a")] {
            let text = format!(r#"{{"$schema": "http://a.example/{other}"}}"#);
            options.documents.insert(format!("http://a.example/{own}"), text);
        }
        assert_eq!(Dialect::named("http://a.example/a", &options).unwrap(), None);
    }
}
