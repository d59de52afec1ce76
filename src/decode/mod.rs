//! Decoding: from a prompt, a model and a constraint to a finished output.
//!
//! ```text
//! prompt ─► eval ─► logits ─┐
//!            ▲              ├─► sampler ─► token ─► matcher.accept ─► text
//!            │   matcher ─► mask                         │
//!            └───────────────────────────────────────────┘
//! ```
//!
//! A [`Request`] says what is wanted, a [`Decoder`] runs it on a [`Model`](crate::model::Model), an [`Outcome`] is what
//! came out and why it ended. Without a constraint every token is allowed.
//!
//! # Example
//! ```
//! use constrain::decode::{Decoder, Request};
//! use constrain::model::{Model, scripted::ScriptedModel};
//!
//! let mut model = ScriptedModel::following("hello, world");
//! let prompt = model.plain("say hello: ")?;
//! let outcome = Decoder::new(&mut model).run(&Request::new(prompt.tokens))?;
//! assert_eq!(outcome.text(), "hello, world");
//! # Ok::<(), constrain::Error>(())
//! ```
//!
//! # Invariants
//! * Every token was allowed by the mask of its step: nothing is injected, not even what is
//!   forced, which is chosen under its mask of one like any other token (without reading logits).
//! * A draft decides nothing: with [`Verification::Match`] the output is that of plain sampling,
//!   with [`Verification::Rejection`] its law is.
//! * The number of a token, not the history of calls, keys its random number: the same request
//!   on the same model gives the same output, also for the third answer of several.
//! * The prompt goes through the model in chunks at fixed places, and what is kept from an earlier
//!   request ends at such a place: what was computed before changes no logit.
//! * There is always a maximum of tokens.

mod beam;
mod contrast;
mod draft;
mod fields;
mod landing;
pub(crate) mod output;
mod pace;
mod resume;
pub(crate) mod run;
pub(crate) mod score;
pub(crate) mod step;
mod strategy;
mod text;
pub(crate) mod track;
mod verify;
mod watch;

#[cfg(test)]
mod tests;

pub use fields::Field;
pub use landing::SoftLanding;
pub use strategy::{Beam, Contrastive, Drafts, Shortlist, Source, Strategy, Verification};
pub use watch::{StepView, Watch};

use crate::constraint::Constraint;
use crate::limits::Cancel;
use crate::sample::Settings;
use crate::sample::logprob::StepLogProbs;
use crate::vocab::TokenId;
use std::fmt;
use std::time::Duration;
use track::Track;

/// The maximum of tokens unless the request says otherwise.
pub const DEFAULT_MAX_TOKENS: usize = 512;

/// What is to be generated, and how.
#[derive(Clone)]
pub struct Request {
    /// The prompt as [`chat`](crate::model::Model::chat) or [`plain`](crate::model::Model::plain) made it.
    pub prompt: Vec<TokenId>,
    /// What the output must satisfy.
    pub constraint: Option<Constraint>,
    /// How tokens are chosen.
    pub settings: Settings,
    /// The algorithm around that.
    pub strategy: Strategy,
    /// Ends the output at the latest. Under a constraint the end token counts, and the document is
    /// complete by then; less than the shortest one takes is refused.
    pub max_tokens: usize,
    /// Announces the end of the budget to the model before the mask narrows; off if `None`. Under a
    /// constraint, with strategies that choose one token after the other.
    pub soft_landing: Option<SoftLanding>,
    /// Texts that end the output where they occur, not part of it. Under a constraint they end it
    /// only where what came before is a whole document: elsewhere they are text like any other.
    /// [`Constraint::check_stops`] refuses those that can occur elsewhere.
    pub stop: Vec<String>,
    /// Computes log-probabilities, with this many alternatives per token.
    pub log_probs: Option<usize>,
    /// Which of several answers of one seed this is.
    pub index: u64,
    /// Stops the run from another thread.
    pub cancel: Option<Cancel>,
    /// Is told of every step, with strategies that choose one token after the other.
    pub watch: Option<Watch>,
}

impl Request {
    /// Continues a prompt without a constraint, with the default settings.
    pub fn new(prompt: Vec<TokenId>) -> Self {
        Self {
            prompt,
            constraint: None,
            settings: Settings::default(),
            strategy: Strategy::Sample,
            max_tokens: DEFAULT_MAX_TOKENS,
            soft_landing: None,
            stop: Vec::new(),
            log_probs: None,
            index: 0,
            cancel: None,
            watch: None,
        }
    }

    /// The same request under a constraint.
    #[must_use]
    pub fn constrained(self, constraint: Constraint) -> Self {
        Self { constraint: Some(constraint), ..self }
    }

    /// The same request with other settings.
    #[must_use]
    pub fn with(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }
}

/// Why an output ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// The document is whole: the output satisfies the constraint.
    Complete,
    /// The model ended it (without a constraint).
    EndToken,
    /// The maximum of tokens was reached.
    MaxTokens,
    /// The context of the model is full.
    ContextFull,
    /// The stop text with this index occurred.
    Stop(usize),
}

impl FinishReason {
    /// Its name: `complete`, `end`, `max_tokens`, `context_full` or `stop`.
    pub fn name(self) -> &'static str {
        match self {
            FinishReason::Complete => "complete",
            FinishReason::EndToken => "end",
            FinishReason::MaxTokens => "max_tokens",
            FinishReason::ContextFull => "context_full",
            FinishReason::Stop(_) => "stop",
        }
    }

    /// Whether the output was cut before its own end.
    pub fn is_truncated(self) -> bool {
        matches!(self, FinishReason::MaxTokens | FinishReason::ContextFull)
    }
}

impl fmt::Display for FinishReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What came out.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The output.
    pub bytes: Vec<u8>,
    /// Its tokens, without an end token. A stop text may have cut the bytes inside the last ones.
    pub tokens: Vec<TokenId>,
    /// Why it ended.
    pub finish: FinishReason,
    /// Log-probabilities of the tokens, and of the end token if one was drawn; empty if not asked.
    pub log_probs: Vec<StepLogProbs>,
    /// Counts and times.
    pub statistics: Statistics,
}

impl Outcome {
    /// The output as text; bytes that are not UTF-8, which only an output without a constraint or
    /// a truncated one can have, become U+FFFD.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The mean raw log-probability of the tokens, if it was asked for: low means unsure.
    pub fn mean_log_prob(&self) -> Option<f64> {
        let sum: f64 = self.log_probs.iter().map(|step| step.chosen.raw).sum();
        (!self.log_probs.is_empty()).then(|| sum / self.log_probs.len() as f64)
    }
}

/// Counts and times of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statistics {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Of these, tokens that an earlier request had left in the model.
    pub reused_tokens: usize,
    /// Tokens of the output.
    pub tokens: usize,
    /// End tokens that were chosen: steps like the others, though none of `tokens`.
    pub end_tokens: usize,
    /// Of the tokens of the output, those that were the only one allowed.
    pub forced_tokens: usize,
    /// Tokens that were drafted.
    pub drafted_tokens: usize,
    /// Of these, tokens that were chosen.
    pub accepted_tokens: usize,
    /// Passes of the model after the prompt.
    pub passes: usize,
    /// Time for the prompt.
    pub prompt_time: Duration,
    /// Time of the model after the prompt.
    pub model_time: Duration,
    /// Time for masks and for accepting tokens.
    pub mask_time: Duration,
    /// Time for choosing tokens.
    pub sample_time: Duration,
    /// Time for drafting.
    pub draft_time: Duration,
    /// All together.
    pub total_time: Duration,
}

impl Statistics {
    /// Counts a pass of the model, the prompt's if no token came yet.
    pub(crate) fn time_model(&mut self, time: Duration, tokens: usize) {
        match tokens {
            0 => self.prompt_time += time,
            _ => {
                self.model_time += time;
                self.passes += 1;
            }
        }
    }

    /// Tokens per second of output, the prompt not counted.
    pub fn tokens_per_second(&self) -> f64 {
        let seconds = self.total_time.saturating_sub(self.prompt_time).as_secs_f64();
        if seconds > 0.0 { self.tokens as f64 / seconds } else { 0.0 }
    }

    /// Tokens, that of the end included, per pass of the model after the prompt: 1, and more with drafts.
    pub fn tokens_per_pass(&self) -> f64 {
        // The pass of the prompt gives the first token.
        (self.tokens + self.end_tokens).saturating_sub(1) as f64 / self.passes.max(1) as f64
    }

    /// Mean time per mask.
    pub fn mask_time_per_token(&self) -> Duration {
        self.mask_time / u32::try_from(self.tokens.max(1)).unwrap_or(u32::MAX)
    }
}

/// Runs requests on a model, one after the other.
pub struct Decoder<'m> {
    /// The model that decides.
    main: Track<'m>,
    /// A second model, for the strategies that need one.
    assistant: Option<Track<'m>>,
}
