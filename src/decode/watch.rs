//! Watching a run step by step: for traces, and for finding out why an output is what it is.
//!
//! ```
//! use constrain::decode::{Decoder, Request, Watch};
//! use constrain::model::{Model, scripted::ScriptedModel};
//! use std::sync::{Arc, Mutex};
//!
//! let mut model = ScriptedModel::following("yes");
//! let seen = Arc::new(Mutex::new(Vec::new()));
//! let note = Arc::clone(&seen);
//! let watch = Watch::new(move |step| note.lock().expect("no panic").push(step.token));
//! let request = Request { watch: Some(watch), ..Request::new(model.plain("well?")?.tokens) };
//! let outcome = Decoder::new(&mut model).run(&request)?;
//! // The end is a step too.
//! assert_eq!(seen.lock().expect("no panic")[..outcome.tokens.len()], outcome.tokens);
//! # Ok::<(), constrain::Error>(())
//! ```

use crate::matcher::Mask;
use crate::vocab::TokenId;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Who is told of every step of a request; it must not take long. A clone is the same watch.
#[derive(Clone)]
pub struct Watch(Arc<dyn Fn(&StepView<'_>) + Send + Sync>);

/// A token that was chosen, before it is taken.
#[derive(Debug, Clone, Copy)]
pub struct StepView<'a> {
    /// The tokens before it.
    pub before: &'a [TokenId],
    /// The token.
    pub token: TokenId,
    /// The tokens that were allowed.
    pub mask: Mask<'a>,
    /// The logits, unless they were not read, since one token was allowed.
    pub logits: Option<&'a [f32]>,
    /// Time for the mask.
    pub mask_time: Duration,
    /// Time of the model since the step before.
    pub model_time: Duration,
}

impl Watch {
    /// Calls `watch` with every step, on the thread that takes it.
    pub fn new(watch: impl Fn(&StepView<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(watch))
    }

    pub(crate) fn see(&self, step: &StepView<'_>) {
        (self.0)(step);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}
