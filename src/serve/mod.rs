//! Many requests at once on one model: continuous batching.
//!
//! A [`Scheduler`] runs on the thread that owns the model. [`Client`]s, on any threads, submit
//! [`Request`](crate::decode::Request)s; each becomes a sequence of the model, joins the batch while others are
//! half-way through, and leaves it when it is done. One pass of the model gives every running sequence
//! its next token, which costs far less than one pass for each.
//!
//! ```text
//! clients ── submit ─► queue (bounded, first in first out) ─► a free sequence ─► prompt ─► tokens ─► ticket
//!
//! one round:   model    ████████ pass: one token each, some of the prompts ████████ ┐
//!              helpers  ██ masks of the next step, of all sequences ██              ├─► choose, accept, stream
//! ```
//!
//! By hand, two sequences: A has said `{"a": 1`, B is new with a prompt of 100 tokens. Round 1 computes A's `1` and
//! the first 64 tokens of B; meanwhile a helper finds what may follow `1`. Round 2: A's next token and the
//! other 36 of B, whose first mask is found meanwhile. From round 3 on both get a token per round.
//!
//! # Example
//! ```
//! use constrain::decode::Request;
//! use constrain::model::{Model, scripted::ScriptedModel};
//! use constrain::serve::{self, Options};
//!
//! let (client, scheduler) = serve::channel(Options::default());
//! // The model is made on the thread that runs it: it need not be `Send`.
//! let thread = std::thread::spawn(move || scheduler.run(&mut ScriptedModel::following("hello, world")));
//! let prompt = client.ask(|model| model.plain("say hello: "))??;
//! let tickets = [0, 1].map(|index| client.submit(Request { index, ..Request::new(prompt.tokens.clone()) }));
//! for ticket in tickets {
//!     assert_eq!(ticket?.wait()?.text(), "hello, world");
//! }
//! drop(client);
//! thread.join().expect("the thread")?;
//! # Ok::<(), constrain::Error>(())
//! ```
//!
//! # Invariants
//! * A request gets what a [`Decoder`](crate::decode::Decoder) would give it, token for token, whatever runs beside it: the
//!   steps are the same code, random numbers are keyed by the request alone. (A real model rounds
//!   differently in batches of different shapes, and a near tie may then fall the other way.)
//! * First in, first out: a request gets a sequence before every later one. Every sequence that has its prompt gets a
//!   token in every round; prompts share what a round has for them in turn.
//! * What is forced takes no pass of its own: a run of forced tokens goes through the model at once.
//! * A prompt that begins like one that the model holds, or is about to hold, begins with a copy of it.
//! * A ticket that is cancelled or dropped gives its sequence back within a round; a failure of one request is that
//!   request's alone, unless the model fails: then of those in the pass.
//! * When the scheduler ends, for whatever reason, no ticket waits for ever.
//!
//! # Cost
//! A round spawns up to [`Options::helpers`] threads (some 20 µs each) where masks are to be found; nothing else is
//! added to the model's pass. `docs/serving.md` has measurements.

mod cache;
mod client;
mod extracting;
mod rounds;
mod running;
mod slots;
mod store;

#[cfg(test)]
mod tests;

pub use cache::{CacheStats, ConstraintCache};
pub use client::{Client, Event, Handle, Scheduler, Ticket, channel};
pub use store::Store;

use std::time::Duration;

/// How requests share the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Requests that may wait for a sequence; more are refused with
    /// [`Kind::Overloaded`](crate::Kind::Overloaded).
    pub queue: usize,
    /// Tokens of prompts that one pass computes at most while others wait for their next token. More
    /// is better for how much is done in all, less for how evenly tokens come.
    pub prompt_tokens: usize,
    /// Threads that find masks while the model computes, and choose tokens after it. With 0 the model's
    /// thread does that too.
    pub helpers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { queue: 256, prompt_tokens: 256, helpers: 1 }
    }
}

/// Counts and times of a scheduler so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stats {
    /// Requests that have a sequence now.
    pub running: usize,
    /// Requests that wait for one.
    pub waiting: usize,
    /// Requests that ended with an outcome.
    pub finished: u64,
    /// Requests that ended with an error, those that were cancelled included.
    pub failed: u64,
    /// Tokens of all outputs.
    pub tokens: u64,
    /// Tokens of prompts that went through the model.
    pub prompt_tokens: u64,
    /// Tokens of prompts that were copied from other sequences, or still there.
    pub shared_tokens: u64,
    /// Passes of the model.
    pub passes: u64,
    /// Time of those passes.
    pub model_time: Duration,
    /// Time of everything: passes, masks that took longer than their pass, choosing, streaming. Waiting
    /// for requests does not count.
    pub busy_time: Duration,
}

impl Stats {
    /// The part of the busy time that was not the model's, 0 to 1.
    pub fn overhead(&self) -> f64 {
        let (model, busy) = (self.model_time.as_secs_f64(), self.busy_time.as_secs_f64());
        if busy > 0.0 { (1.0 - model / busy).max(0.0) } else { 0.0 }
    }
}
