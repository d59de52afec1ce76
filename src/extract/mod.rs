//! Extraction: from a document in prose to a value of a type, with how sure each field is.
//!
//! An [`Extractor`] is made once from a schema (or, with the feature `schemars`, from a Rust type) and
//! a vocabulary; it is immutable, `Send + Sync`, and cheap to clone. Its three steps are separate, so
//! that a scheduler can run the middle one itself:
//!
//! ```text
//! document ─► request ─► Decoder (or a scheduler) ─► outcome ─► read ─► Extraction
//!             prompt,                                            value, fields by JSON pointer,
//!             constraint                                         how sure, warnings
//! ```
//!
//! # Example
//! ```
//! use constrain::decode::Decoder;
//! use constrain::extract::{Extractor, Options};
//! use constrain::model::{Model, scripted::ScriptedModel};
//!
//! let schema = r#"{"type": "object", "properties": {"name": {"type": "string"},
//!     "born": {"type": ["integer", "null"]}}, "required": ["name", "born"],
//!     "additionalProperties": false}"#;
//! let mut model = ScriptedModel::following(r#"{"name": "Ada", "born": 1815}"#);
//! let extractor = Extractor::new(model.vocabulary(), schema, Options::default())?;
//! let found = extractor.extract(&mut Decoder::new(&mut model), "Ada, born in 1815, ...")?;
//! assert_eq!(found.value["born"], 1815);
//! assert_eq!(found.field("/name").map(|field| &field.value), Some(&"Ada".into()));
//! # Ok::<(), constrain::Error>(())
//! ```
//!
//! # Invariants
//! * An [`Extraction`] is of a whole document: what was cut is an error, never half a value.
//! * [`Extractor::read`] is a pure function of the outcome: no model, no clock.
//! * Prompts of one extractor differ only from the document on, so that models and schedulers can
//!   share what comes before it.

mod choices;
mod extraction;
mod extractor;
mod long;
mod merge;
mod outline;
mod prompt;
mod read;
mod route;
mod scalar;
mod sure;
#[cfg(feature = "templates")]
mod template;
mod tracker;
#[cfg(feature = "schemars")]
mod typed;

pub use extraction::{
    Alternative, Choice, Extraction, FieldInfo, Span, Sureness, Warning, WarningKind,
};
pub use extractor::Extractor;
pub use long::{Chunk, chunks};
pub use merge::{Merged, Origin, merge};
pub use outline::{is_reasoning, outline};
pub use prompt::Form;
pub use route::{Answerer, Earlier};
#[cfg(feature = "templates")]
pub use template::Template;
pub use tracker::{Event, Node, Tracker, ValueKind};
#[cfg(feature = "schemars")]
pub use typed::schema_of;

use crate::decode::Strategy;
use crate::error::{Error, Kind, Result};
use crate::sample::{Preset, Settings};
use crate::schema;
use serde::Serialize;

/// What is asked unless the options say otherwise.
const INSTRUCTION: &str = "Extract the data from this document.";

/// Alternatives that are looked at per token: enough to see what a number could have gone on with.
const LOG_PROBS: usize = 12;

/// A document with the right answer, shown to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The document.
    pub text: String,
    /// Its answer, as the model would write it: keys in the order of the schema, the reasoning first.
    pub answer: String,
}

impl Example {
    /// A document with its answer.
    pub fn new(text: impl Into<String>, answer: impl Into<String>) -> Self {
        Self { text: text.into(), answer: answer.into() }
    }

    /// A document with a value as its answer.
    ///
    /// # Errors
    /// [`Kind::BadArgument`] if the value cannot be written as JSON.
    pub fn of(text: impl Into<String>, answer: &impl Serialize) -> Result<Self> {
        let answer = serde_json::to_string(answer).map_err(|error| {
            Error::new(Kind::BadArgument, format!("the answer of an example: {error}"))
        })?;
        Ok(Self::new(text, answer))
    }
}

/// How to ask, and how to decode.
#[derive(Debug, Clone)]
pub struct Options {
    /// How the schema is read. With `add_reasoning`, a reasoning field is added; it is not part of the
    /// value, but of [`Extraction::reasoning`].
    pub schema: schema::Options,
    /// What the model is asked.
    pub instruction: String,
    /// Standing instructions, in a turn of their own; none by default.
    pub system: Option<String>,
    /// Documents with their right answers. Each answer is checked against the schema.
    pub examples: Vec<Example>,
    /// How the model is told which form is wanted.
    pub form: Form,
    /// The user's turn, by a template in place of the usual one.
    #[cfg(feature = "templates")]
    pub template: Option<Template>,
    /// How tokens are chosen; by default the best one at each step.
    pub settings: Settings,
    /// The algorithm around that.
    pub strategy: Strategy,
    /// Most tokens of the answer: it is complete by then.
    pub max_tokens: usize,
    /// Alternatives per token that are looked at to tell how sure a field is; `None` for no figures,
    /// which saves reading the logits where one token is forced.
    pub log_probs: Option<usize>,
    /// For fields with few possible values (an `enum`, a boolean, a small range), the distribution over
    /// all of them, which takes some passes of the model more. Needs `log_probs`, and a decoder:
    /// [`Extractor::extract`] and [`Extractor::stream`] compute it, after [`Extractor::read`] it is
    /// [`Extractor::weigh`] that does.
    pub distributions: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            schema: schema::Options::default(),
            instruction: INSTRUCTION.to_owned(),
            system: None,
            examples: Vec::new(),
            form: Form::default(),
            #[cfg(feature = "templates")]
            template: None,
            settings: Preset::Extraction.settings(),
            strategy: Strategy::Sample,
            max_tokens: Preset::Extraction.max_tokens(),
            log_probs: Some(LOG_PROBS),
            distributions: false,
        }
    }
}

#[cfg(test)]
mod tests;
