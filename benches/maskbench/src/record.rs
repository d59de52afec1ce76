//! One line of a result file.
use serde::{Deserialize, Serialize};

/// What an engine did with a case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The case.
    pub id: String,
    /// Why the engine refused the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_error: Option<String>,
    /// What the case expects, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<String>,
    /// Nanoseconds from the text of the schema to the first filled mask, or to the refusal.
    pub ttfm_ns: u64,
    /// Nanoseconds to fill the mask and to accept the token, for each accepted token of the tests.
    pub masks_ns: Vec<u64>,
    /// A verdict for each test.
    pub tests: Vec<Verdict>,
    /// What became of the random documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<Generated>,
}

/// Whether a text is valid, and whether it was accepted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What the case says.
    pub valid: bool,
    /// What the engine says.
    pub accepted: bool,
    /// The engine failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Random documents of one schema.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Generated {
    /// Documents that came to an end (or to a dead end) and were judged.
    pub n: usize,
    /// Those that are not valid.
    pub invalid: usize,
    /// Those for which no token was left before their end.
    pub dead_ends: usize,
    /// Those that were not complete within their budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_budget: Option<usize>,
}
