//! The drafts of JSON Schema, and where schemas stand inside schemas.

/// A draft of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Draft {
    /// Draft 4.
    Draft4,
    /// Draft 6.
    Draft6,
    /// Draft 7.
    Draft7,
    /// Draft 2019-09.
    Draft201909,
    /// Draft 2020-12.
    #[default]
    Draft202012,
}

impl Draft {
    /// The draft that a `$schema` names.
    pub fn named(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://"))?;
        Some(match rest.trim_end_matches('#') {
            "json-schema.org/draft-04/schema" => Self::Draft4,
            "json-schema.org/draft-06/schema" => Self::Draft6,
            "json-schema.org/draft-07/schema" => Self::Draft7,
            "json-schema.org/draft/2019-09/schema" => Self::Draft201909,
            "json-schema.org/draft/2020-12/schema" => Self::Draft202012,
            _ => return None,
        })
    }

    /// The keyword that gives a schema its identifier.
    pub(super) fn id_keyword(self) -> &'static str {
        if self == Self::Draft4 { "id" } else { "$id" }
    }

    /// Whether `$ref` makes its siblings void.
    pub(super) fn ref_alone(self) -> bool {
        self <= Self::Draft7
    }
}

/// What the value of a keyword holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// No schema.
    Nothing,
    /// One schema.
    One,
    /// A list of schemas.
    List,
    /// A schema, or a list of them.
    OneOrList,
    /// An object whose values are schemas.
    Map,
}

/// What the value of a keyword holds, in any draft.
pub(super) fn holds(keyword: &str) -> Holds {
    match keyword {
        "not"
        | "if"
        | "then"
        | "else"
        | "additionalProperties"
        | "contains"
        | "propertyNames"
        | "unevaluatedProperties"
        | "unevaluatedItems"
        | "additionalItems"
        | "contentSchema" => Holds::One,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Holds::List,
        "items" => Holds::OneOrList,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
        | "dependencies" => Holds::Map,
        _ => Holds::Nothing,
    }
}
