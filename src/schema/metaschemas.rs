//! The meta-schemas of the drafts: standard documents that a `$ref` may lead to without the caller
//! handing them over.

/// The documents by their URI, without scheme and fragment.
const DOCUMENTS: &[(&str, &str)] = &[
    ("draft-04/schema", include_str!("metaschemas/draft4.json")),
    ("draft-06/schema", include_str!("metaschemas/draft6.json")),
    ("draft-07/schema", include_str!("metaschemas/draft7.json")),
    ("draft/2019-09/schema", include_str!("metaschemas/draft2019-09/schema.json")),
    ("draft/2019-09/meta/core", include_str!("metaschemas/draft2019-09/meta/core.json")),
    (
        "draft/2019-09/meta/applicator",
        include_str!("metaschemas/draft2019-09/meta/applicator.json"),
    ),
    (
        "draft/2019-09/meta/validation",
        include_str!("metaschemas/draft2019-09/meta/validation.json"),
    ),
    ("draft/2019-09/meta/meta-data", include_str!("metaschemas/draft2019-09/meta/meta-data.json")),
    ("draft/2019-09/meta/format", include_str!("metaschemas/draft2019-09/meta/format.json")),
    ("draft/2019-09/meta/content", include_str!("metaschemas/draft2019-09/meta/content.json")),
    ("draft/2020-12/schema", include_str!("metaschemas/draft2020-12/schema.json")),
    ("draft/2020-12/meta/core", include_str!("metaschemas/draft2020-12/meta/core.json")),
    (
        "draft/2020-12/meta/applicator",
        include_str!("metaschemas/draft2020-12/meta/applicator.json"),
    ),
    (
        "draft/2020-12/meta/unevaluated",
        include_str!("metaschemas/draft2020-12/meta/unevaluated.json"),
    ),
    (
        "draft/2020-12/meta/validation",
        include_str!("metaschemas/draft2020-12/meta/validation.json"),
    ),
    ("draft/2020-12/meta/meta-data", include_str!("metaschemas/draft2020-12/meta/meta-data.json")),
    (
        "draft/2020-12/meta/format-annotation",
        include_str!("metaschemas/draft2020-12/meta/format-annotation.json"),
    ),
    (
        "draft/2020-12/meta/format-assertion",
        include_str!("metaschemas/draft2020-12/meta/format-assertion.json"),
    ),
    ("draft/2020-12/meta/content", include_str!("metaschemas/draft2020-12/meta/content.json")),
];

/// The standard document at a URI (without a fragment).
pub(super) fn document(uri: &str) -> Option<&'static str> {
    let rest = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://"))?;
    let path = rest.strip_prefix("json-schema.org/")?;
    DOCUMENTS.iter().find(|document| document.0 == path).map(|document| document.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each document is at the place that its identifier says.
    #[test]
    fn documents_are_where_they_say() {
        for (path, text) in DOCUMENTS {
            let json: serde_json::Value = serde_json::from_str(text).expect("JSON");
            let id = json.get("$id").or_else(|| json.get("id")).and_then(|id| id.as_str());
            let id = id.expect("an identifier").trim_end_matches('#');
            assert!(id.ends_with(path), "{id} is not at {path}");
            assert_eq!(document(id), Some(*text));
        }
        assert_eq!(document("http://json-schema.org/draft-03/schema"), None);
        assert_eq!(document("ftp://json-schema.org/draft-07/schema"), None);
    }
}
