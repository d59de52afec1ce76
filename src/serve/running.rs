//! One request on its way: the two halves of its steps, as a round calls them.
//!
//! [`Running::look`] works while the model computes `pending`: it finds what may follow, and as long as that is one
//! token it takes it at once. So after a pass either there are forced tokens to compute next, and its logits
//! are not read, or there is a choice, and [`Running::decide`] makes it.
//!
//! By hand, after `{"n`: the pass computes `n`; meanwhile `ame`, `":` and ` "` are found to be forced and the mask behind
//! them is found. The next pass computes these three at once, and the logits after the last decide.

use crate::decode::output::{Guard, Output};
use crate::decode::run::{check, check_cancelled, observe};
use crate::decode::step::Ready;
use crate::decode::{FinishReason, Strategy};
use crate::error::{Error, Kind, Result};
use crate::observe::Span;
use crate::serve::client::{Job, Line};
use crate::vocab::{TokenId, Vocabulary};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// Most forced tokens that are taken ahead of the model.
pub(super) const AHEAD: usize = 64;

/// What requests need to know of their model.
#[derive(Clone)]
pub(super) struct Facts {
    pub vocabulary: Vocabulary,
    pub context: usize,
}

/// A request that has a sequence.
pub(super) struct Running {
    line: Line,
    output: Output<'static>,
    /// Made by the first look: a budget may have to be planned.
    guard: Option<Guard>,
    ready: Ready,
    /// Whether `ready` is of the present step.
    is_ready: bool,
    /// What the model has not computed yet, the prompt first.
    pub pending: Vec<TokenId>,
    /// What was taken while the model computed.
    ahead: Vec<TokenId>,
    /// How it ended.
    end: Option<Result<FinishReason>>,
    began: Instant,
    span: Span,
    /// Whether its sequence is prepared for it.
    pub is_started: bool,
    /// Requests that came before it.
    pub number: u64,
}

impl Running {
    /// Begins a job, or tells it why not.
    pub fn new(job: Job, facts: &Facts, number: u64) -> Option<Self> {
        let Job { request, mut line } = job;
        let begin = || {
            check(&request, &facts.vocabulary, facts.context)?;
            if !matches!(request.strategy, Strategy::Sample | Strategy::Greedy) {
                let message = "the scheduler runs strategies that choose one token after the other";
                return Err(Error::new(Kind::BadArgument, message)
                    .help("sample or take the best token, or use a Decoder for this request"));
            }
            Output::new(Cow::Owned(request))
        };
        let output = match begin() {
            Ok(output) => output,
            Err(error) => {
                line.end(Err(error));
                return None;
            }
        };
        let span = Span::request(output.request.prompt.len());
        Some(Self {
            pending: output.request.prompt.clone(),
            line,
            output,
            guard: None,
            ready: Ready::default(),
            is_ready: false,
            ahead: Vec::new(),
            end: None,
            began: Instant::now(),
            span,
            is_started: false,
            number,
        })
    }

    /// The prompt.
    pub fn prompt(&self) -> &[TokenId] {
        &self.output.request.prompt
    }

    /// Whether its prompt is computed.
    pub fn is_decoding(&self) -> bool {
        self.is_started && !self.output.tokens.is_empty()
    }

    /// Notes that the first tokens of the prompt need not be computed.
    pub fn start(&mut self, kept: usize) {
        self.pending.drain(..kept);
        self.output.statistics.reused_tokens = kept;
        self.is_started = true;
    }

    /// Ends it if it was cancelled.
    pub fn heed(&mut self) {
        if self.line.is_cancelled() {
            self.end = Some(Err(Error::new(Kind::Cancelled, "the request was cancelled")));
        } else if let Err(error) = check_cancelled(&self.output.request) {
            self.end = Some(Err(error));
        }
    }

    /// Ends it with an error.
    pub fn fail(&mut self, error: Error) {
        self.end = Some(Err(error));
    }

    /// Whether [`Running::look`] has something to do while the model computes `count` of what is pending.
    pub fn is_to_look(&self, count: usize) -> bool {
        self.guard.is_none() || (count == self.pending.len() && !self.is_ready)
    }

    /// Finds what may follow after what is pending, if the model computes `count` tokens of that, which is all
    /// of it.
    pub fn look(&mut self, facts: &Facts, count: usize) {
        match self.looked(facts, count) {
            Ok(None) => {}
            Ok(Some(finish)) => self.end = Some(Ok(finish)),
            Err(error) => self.end = Some(Err(error)),
        }
    }

    fn looked(&mut self, facts: &Facts, count: usize) -> Result<Option<FinishReason>> {
        let Self { output, guard, ready, line, ahead, .. } = self;
        let guard = match guard {
            Some(guard) => guard,
            None => guard.insert(Guard::new(&output.request, &facts.vocabulary, facts.context)?),
        };
        if count < self.pending.len() {
            return Ok(None);
        }
        loop {
            if let Some(finish) = output.finished(guard, facts.context) {
                return Ok(Some(finish));
            }
            if !self.is_ready {
                ready.look(output, guard)?;
                self.is_ready = true;
            }
            let forced = ready.forced(output).filter(|_| ahead.len() < AHEAD);
            let Some(token) = forced else { return Ok(None) };
            self.is_ready = false;
            ready.force(output, token);
            let mut say = |text: &str| line.say(text);
            let finish = output.take(guard, token, (&facts.vocabulary, &mut say))?;
            if let Some(finish) = finish {
                return Ok(Some(finish));
            }
            ahead.push(token);
        }
    }

    /// Notes a pass that computed `count` tokens of what was pending; returns whether its last logits are to be read.
    pub fn passed(&mut self, count: usize, time: Duration) -> bool {
        let said = self.output.tokens.len() - self.ahead.len();
        self.output.statistics.time_model(time, said);
        self.pending.drain(..count);
        if self.pending.is_empty() {
            self.pending.append(&mut self.ahead);
        }
        self.pending.is_empty() && self.end.is_none()
    }

    /// Chooses the next token by the logits after what was pending.
    pub fn decide(&mut self, facts: &Facts, row: Result<&[f32]>) {
        match self.decided(facts, row) {
            Ok(None) => {}
            Ok(Some(finish)) => self.end = Some(Ok(finish)),
            Err(error) => self.end = Some(Err(error)),
        }
    }

    fn decided(&mut self, facts: &Facts, row: Result<&[f32]>) -> Result<Option<FinishReason>> {
        let Self { output, guard: Some(guard), ready, line, .. } = self else {
            return Err(Error::new(Kind::Model, "the model answered before it was asked"));
        };
        let token = ready.choose(output, (row?, None), None)?;
        self.is_ready = false;
        let mut say = |text: &str| line.say(text);
        let finish = output.take(guard, token, (&facts.vocabulary, &mut say))?;
        self.pending.push(token);
        Ok(finish)
    }

    /// Whether it has ended.
    pub fn is_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Tells its ticket how it ended; returns the tokens of its output, or nothing for an error.
    pub fn close(mut self) -> Option<usize> {
        match self.end? {
            Err(error) => {
                observe(&self.span, None);
                self.line.end(Err(error));
                None
            }
            Ok(finish) => {
                self.output.text.show(true, &mut |text| self.line.say(text));
                let outcome = self.output.outcome(finish, self.began.elapsed());
                observe(&self.span, Some(&outcome));
                let tokens = outcome.tokens.len();
                self.line.end(Ok(outcome));
                Some(tokens)
            }
        }
    }
}
