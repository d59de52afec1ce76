//! What operators of a service see: spans (feature `tracing`) and metrics (feature `metrics`). Without the
//! features, nothing of this is compiled.
//!
//! | span | around | fields |
//! |---|---|---|
//! | `compile` | a constraint being compiled | |
//! | `decode` | a request on a `Decoder` | `prompt_tokens`, `tokens`, `finish` |
//! | `request` | a request on a `Scheduler`, from its sequence to its end | `prompt_tokens`, `tokens`, `finish` |
//! | `pass` | a pass of the model of a `Scheduler` | `entries` |
//!
//! | metric | kind | labels |
//! |---|---|---|
//! | `constrain_requests_total` | counter | `finish`: how a request ended, `error` if it did not |
//! | `constrain_prompt_tokens_total`, `constrain_tokens_total` | counter | |
//! | `constrain_request_seconds`, `constrain_mask_seconds` | histogram, per request | |
//! | `constrain_pass_seconds` | histogram, per pass of a `Scheduler` | |
//! | `constrain_running`, `constrain_waiting` | gauge of a `Scheduler` | |
//!
//! The names are part of the interface: they change with the version.

use std::time::Duration;

/// A part of the work.
pub(crate) struct Span {
    #[cfg(feature = "tracing")]
    span: tracing::Span,
}

impl Span {
    /// A constraint is compiled.
    pub fn compile() -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: tracing::debug_span!("compile"),
        }
    }

    /// A request runs alone.
    #[cfg_attr(not(feature = "tracing"), expect(unused_variables))]
    pub fn decode(prompt_tokens: usize) -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: tracing::info_span!(
                "decode",
                prompt_tokens,
                tokens = tracing::field::Empty,
                finish = tracing::field::Empty
            ),
        }
    }

    /// A request runs among others.
    #[cfg_attr(not(feature = "tracing"), expect(unused_variables))]
    pub fn request(prompt_tokens: usize) -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: tracing::info_span!(
                "request",
                prompt_tokens,
                tokens = tracing::field::Empty,
                finish = tracing::field::Empty
            ),
        }
    }

    /// The model computes.
    #[cfg_attr(not(feature = "tracing"), expect(unused_variables))]
    pub fn pass(entries: usize) -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: tracing::debug_span!("pass", entries),
        }
    }

    /// Does something within it.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        #[cfg(feature = "tracing")]
        let _entered = self.span.enter();
        work()
    }

    /// Notes how a request ended.
    #[cfg_attr(not(feature = "tracing"), expect(unused_variables))]
    pub fn ended(&self, ended: &Ended) {
        #[cfg(feature = "tracing")]
        {
            self.span.record("tokens", ended.tokens);
            self.span.record("finish", ended.finish);
        }
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "metrics"), expect(dead_code))]
pub(crate) struct Ended {
    /// The name of the reason, `error` for an error.
    pub finish: &'static str,
    pub prompt_tokens: usize,
    pub tokens: usize,
    pub mask_time: Duration,
    pub total_time: Duration,
}

/// Counts a request.
#[cfg_attr(not(feature = "metrics"), expect(unused_variables))]
pub(crate) fn count_request(ended: &Ended) {
    #[cfg(feature = "metrics")]
    {
        let Ended { finish, prompt_tokens, tokens, mask_time, total_time } = *ended;
        metrics::counter!("constrain_requests_total", "finish" => finish).increment(1);
        metrics::counter!("constrain_prompt_tokens_total").increment(prompt_tokens as u64);
        metrics::counter!("constrain_tokens_total").increment(tokens as u64);
        metrics::histogram!("constrain_request_seconds").record(total_time.as_secs_f64());
        metrics::histogram!("constrain_mask_seconds").record(mask_time.as_secs_f64());
    }
}

/// Counts a pass of a scheduler.
#[cfg_attr(not(feature = "metrics"), expect(unused_variables))]
pub(crate) fn count_pass(time: Duration) {
    #[cfg(feature = "metrics")]
    metrics::histogram!("constrain_pass_seconds").record(time.as_secs_f64());
}

/// Tells how much a scheduler has to do.
#[cfg_attr(not(feature = "metrics"), expect(unused_variables))]
pub(crate) fn gauge(running: usize, waiting: usize) {
    #[cfg(feature = "metrics")]
    {
        metrics::gauge!("constrain_running").set(running as f64);
        metrics::gauge!("constrain_waiting").set(waiting as f64);
    }
}
