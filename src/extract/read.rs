//! Reading an outcome: from the bytes and log-probabilities of an output to an [`Extraction`].

use crate::decode::{FinishReason, Outcome, Request};
use crate::error::{Error, Kind, Result};
use crate::extract::extractor::cut;
use crate::extract::sure::Steps;
use crate::extract::{Extraction, Extractor, FieldInfo, Tracker, is_reasoning};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The data in an outcome.
pub(crate) fn extraction<T: DeserializeOwned>(
    extractor: &Extractor<T>,
    request: &Request,
    outcome: Outcome,
) -> Result<Extraction<T>> {
    if !matches!(outcome.finish, FinishReason::Complete | FinishReason::Stop(_)) {
        return Err(cut(&outcome));
    }
    let tracker = Tracker::of(&outcome.bytes)?;
    let text = String::from_utf8(outcome.bytes.clone())
        .map_err(|_| Error::new(Kind::Syntax, "the output is not UTF-8"))?;
    let steps = Steps::new(extractor.constraint().vocabulary(), &outcome);
    let fields = fields(&tracker, &steps);
    let warnings = steps.warnings(&tracker);
    let added = extractor.options().schema.add_reasoning;
    let reasoning = added.then(|| without_reasoning(&text, &tracker, extractor)).flatten();
    let (reasoning, document) = match &reasoning {
        Some((reasoning, rest)) => (Some(reasoning.clone()), rest.as_str()),
        None => (None, text.as_str()),
    };
    let value = serde_json::from_str(document).map_err(|error| {
        Error::new(Kind::Syntax, format!("the answer is not a value of the type: {error}"))
            .help("make the schema no wider than the type")
    })?;
    Ok(Extraction {
        value,
        reasoning,
        text,
        fields,
        warnings,
        finish: outcome.finish,
        seed: request.settings.seed,
        statistics: outcome.statistics,
    })
}

/// What is known about each value.
fn fields(tracker: &Tracker, steps: &Steps<'_>) -> Vec<FieldInfo> {
    let null = Value::Null;
    let root = tracker.value().unwrap_or(&null);
    let finished = tracker.nodes().iter().filter_map(|node| Some((node, node.range()?)));
    finished
        .map(|(node, range)| FieldInfo {
            pointer: node.pointer.clone(),
            kind: node.kind,
            value: root.pointer(&node.pointer).cloned().unwrap_or_default(),
            tokens: steps.of(&range),
            sureness: steps.sureness(node),
            spans: Vec::new(),
            range,
        })
        .collect()
}

/// The reasoning that was added, and the document without it: it is the first member of the root.
fn without_reasoning<T>(
    text: &str,
    tracker: &Tracker,
    extractor: &Extractor<T>,
) -> Option<(String, String)> {
    let options = &extractor.options().schema;
    let members = || tracker.nodes().iter().filter(|node| node.parent == Some(0));
    let named = |pointer: &str| {
        let name = pointer.strip_prefix('/').unwrap_or_default();
        is_reasoning(&name.replace("~1", "/").replace("~0", "~"), options)
    };
    let reasoning = members().next().filter(|node| named(&node.pointer))?;
    let value = tracker.value()?.pointer(&reasoning.pointer)?;
    let said = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let start = reasoning.key_start?;
    let end = members().nth(1).and_then(|node| node.key_start).or(reasoning.end)?;
    Some((said, format!("{}{}", text.get(..start)?, text.get(end..)?)))
}
