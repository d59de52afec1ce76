//! `--trace FILE`: one line of JSON per token, to see why an output is what it is.
//!
//! By hand, the token `"` after `{"name": ` under a schema that wants a string there:
//!
//! ```json
//! {"answer":0,"step":3,"at":"/name","token":1,"text":"\"","allowed":12,"forced":false,"kept":0.93,"mask_us":1.2,
//!  "model_us":15210.0,"before":[{"text":"\"","p":0.91}, ...],"after":[{"text":"\"","p":0.98}, ...]}
//! ```
//!
//! `at` is the place in the document where the token begins, as a JSON pointer; `kept` what the mask left of the model's law;
//! `before` and `after` the likeliest tokens before and after the mask. Where one token is forced, the logits are not
//! read, and these three are null.

use crate::report::Failure;
use constrain::decode::{StepView, Watch};
use constrain::extract::Tracker;
use constrain::sample::Step;
use constrain::sample::logprob::{LogProb, log_probs};
use constrain::{TokenId, Vocabulary};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Candidates that are listed.
const LISTED: usize = 5;

/// A trace on its way into a file.
#[derive(Clone)]
pub struct Trace(Arc<Mutex<State>>);

struct State {
    path: PathBuf,
    out: BufWriter<File>,
    vocabulary: Vocabulary,
    /// Answers so far.
    answers: usize,
    /// Where in the document it is; nothing if that is no JSON.
    tracker: Option<Tracker>,
    failed: Option<std::io::Error>,
}

impl Trace {
    /// Begins a trace of outputs, which are JSON documents or not.
    pub fn new(path: &Path, vocabulary: &Vocabulary) -> Result<Self, Failure> {
        let file = File::create(path).map_err(|error| Failure::io("write", path, &error))?;
        Ok(Self(Arc::new(Mutex::new(State {
            path: path.to_path_buf(),
            out: BufWriter::new(file),
            vocabulary: vocabulary.clone(),
            answers: 0,
            tracker: None,
            failed: None,
        }))))
    }

    /// What a request needs to be traced.
    pub fn watch(&self, is_json: bool) -> Watch {
        let trace = self.clone();
        Watch::new(move |step| trace.lock().note(step, is_json))
    }

    /// Ends the trace.
    pub fn finish(&self) -> Result<(), Failure> {
        let mut state = self.lock();
        let failed = state.failed.take().map_or_else(|| state.out.flush(), Err);
        failed.map_err(|error| Failure::io("write", &state.path, &error))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn note(&mut self, step: &StepView<'_>, is_json: bool) {
        if step.before.is_empty() {
            self.answers += 1;
            self.tracker = is_json.then(Tracker::new);
        }
        let line = self.line(step);
        if let Err(error) = writeln!(self.out, "{line}") {
            self.failed.get_or_insert(error);
        }
        let bytes = self.vocabulary.bytes(step.token).unwrap_or_default();
        if self.tracker.as_mut().is_some_and(|tracker| tracker.push(bytes).is_err()) {
            self.tracker = None;
        }
    }

    fn line(&self, step: &StepView<'_>) -> Value {
        let allowed = step.mask.count();
        let mut line = json!({
            "answer": self.answers.saturating_sub(1),
            "step": step.before.len(),
            "at": self.tracker.as_ref().map(Tracker::pointer),
            "token": step.token,
            "text": self.text(step.token),
            "allowed": allowed,
            "forced": allowed == 1,
            "kept": null,
            "mask_us": micros(step.mask_time),
            "model_us": micros(step.model_time),
            "before": null,
            "after": null,
        });
        let Some(logits) = step.logits else { return line };
        let position = step.before.len() as u64;
        let all = Step { logits, mask: None, history: step.before, position };
        let masked = Step { mask: Some(step.mask), ..all };
        // Logits that are no numbers are the sampler's to report.
        if let (Ok(before), Ok(after)) =
            (log_probs(&all, step.token, LISTED), log_probs(&masked, step.token, LISTED))
        {
            line["kept"] = json!(after.mask_mass);
            line["before"] = self.list(&before.alternatives);
            line["after"] = self.list(&after.alternatives);
        }
        line
    }

    fn list(&self, tokens: &[LogProb]) -> Value {
        let item = |of: &LogProb| json!({"token": of.token, "text": self.text(of.token), "p": of.constrained.exp()});
        tokens.iter().map(item).collect()
    }

    /// What a token says; nothing if it ends the output.
    fn text(&self, token: TokenId) -> String {
        String::from_utf8_lossy(self.vocabulary.bytes(token).unwrap_or_default()).into_owned()
    }
}

fn micros(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1e7).round() / 10.0
}
