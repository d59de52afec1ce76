//! What an extraction gives: the value, and what is known about each of its fields.

use crate::decode::{FinishReason, Statistics};
use crate::extract::{Answerer, Earlier, ValueKind};
use serde_json::Value;
use std::ops::Range;

/// The data of one document.
#[derive(Debug, Clone, PartialEq)]
pub struct Extraction<T> {
    /// The value.
    pub value: T,
    /// The same as it was written, with the reasoning.
    pub text: String,
    /// What the model wrote into the reasoning field that was added for it.
    pub reasoning: Option<String>,
    /// Every value in the document, containers before what they hold, in the order of the text.
    pub fields: Vec<FieldInfo>,
    /// What the model would have said if the schema had let it.
    pub warnings: Vec<Warning>,
    /// Why it ended.
    pub finish: FinishReason,
    /// The seed of its random numbers.
    pub seed: u64,
    /// Counts and times of the answer, without what was asked about it afterwards.
    pub statistics: Statistics,
}

impl<T> Extraction<T> {
    /// The field at a JSON pointer.
    pub fn field(&self, pointer: &str) -> Option<&FieldInfo> {
        self.fields.iter().find(|field| field.pointer == pointer)
    }

    /// The least sure field, of those with a figure.
    pub fn weakest(&self) -> Option<&FieldInfo> {
        let sure = |field: &FieldInfo| field.sureness.as_ref().map(|sure| sure.probability);
        let with_figures = self.fields.iter().filter(|field| field.sureness.is_some());
        with_figures.min_by(|a, b| sure(a).unwrap_or(1.0).total_cmp(&sure(b).unwrap_or(1.0)))
    }

    /// The same with another value.
    pub fn map<U>(self, value: impl FnOnce(T) -> U) -> Extraction<U> {
        Extraction {
            value: value(self.value),
            text: self.text,
            reasoning: self.reasoning,
            fields: self.fields,
            warnings: self.warnings,
            finish: self.finish,
            seed: self.seed,
            statistics: self.statistics,
        }
    }
}

/// What is known about one value of the document.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldInfo {
    /// Its JSON pointer in [`Extraction::text`].
    pub pointer: String,
    /// What kind of value.
    pub kind: ValueKind,
    /// The value.
    pub value: Value,
    /// Where it stands in [`Extraction::text`], in bytes.
    pub range: Range<usize>,
    /// The tokens that have a byte of it; none if the value was not in the first answer.
    pub tokens: Range<usize>,
    /// How sure the model is, of a value that holds no others; `None` without log-probabilities.
    pub sureness: Option<Sureness>,
    /// Where it stands in the document that it was extracted from, if its schema says that it is a
    /// piece of that.
    pub spans: Vec<Span>,
    /// Who gave the value.
    pub by: Answerer,
    /// Answers that were less sure.
    pub earlier: Vec<Earlier>,
    /// Whether it is marked as less sure than it should be.
    pub doubtful: bool,
}

/// A place in the document that was extracted from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Characters (code points), counted from 0.
    pub range: Range<usize>,
    /// The same in bytes of UTF-8.
    pub bytes: Range<usize>,
    /// Whether it is the likeliest of several.
    pub best: bool,
}

/// How sure the model is of a value. A signal for routing, not calibrated: 0.9 does not mean that nine
/// of ten are right.
#[derive(Debug, Clone, PartialEq)]
pub struct Sureness {
    /// Probability of the value among those that the schema allows: the product over its tokens.
    /// Keys, punctuation, white space and forced tokens do not count. Other spellings of the same
    /// value are not added. With `choices`, its probability among those.
    pub probability: f64,
    /// The same as a geometric mean over the tokens that were not forced: a long text is hardly ever
    /// probable as a whole.
    pub per_token: f64,
    /// The least probability that the model gave to all allowed tokens together at a step inside the
    /// value. Near 1 the model agrees with the schema, near 0 it wanted to say something else.
    pub kept: f64,
    /// The likeliest other ways the value could have gone, the best first.
    pub alternatives: Vec<Alternative>,
    /// Every value the field could have, the most probable first, if there are few and the options ask for
    /// [`distributions`](crate::extract::Options::distributions); empty otherwise.
    pub choices: Vec<Choice>,
}

/// One of few values that a field could have.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The value.
    pub value: Value,
    /// Its probability among the choices.
    pub probability: f64,
    /// Its log-probability by the model's own law, which the schema does not bend: that of its tokens in the
    /// place of the value. Low figures throughout mean that the model wanted none of them.
    pub log_prob: f64,
}

/// Another way that a value could have gone.
#[derive(Debug, Clone, PartialEq)]
pub struct Alternative {
    /// How it begins, as JSON text.
    pub begins: String,
    /// Probability of this beginning among what the schema allows.
    pub probability: f64,
}

/// Something that the model would have said if the schema had let it.
#[derive(Debug, Clone, PartialEq)]
pub struct Warning {
    /// JSON pointer of the value.
    pub pointer: String,
    /// What happened.
    pub kind: WarningKind,
    /// How the model would have gone on.
    pub wanted: String,
    /// How likely the model found that.
    pub probability: f64,
}

/// What a [`Warning`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// The model's favourite is not a value that the schema allows here, such as one of an `enum`.
    FavouriteForbidden,
    /// The list had to end, and the model wanted to go on.
    ListClosed,
    /// The string had to end, and the model wanted to go on.
    StringClosed,
}
