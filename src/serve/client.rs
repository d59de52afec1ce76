//! The two ends of a scheduler: [`Client`]s put requests in, [`Ticket`]s give outcomes out.
//!
//! Everything that both ends share is one queue under one lock ([`Shared`]), held for a push or a pop. What
//! comes out goes to a sink per request: a channel, so that a slow reader holds nobody up, or whatever the
//! caller's own runtime waits for ([`Client::send`]).

use crate::decode::{Outcome, Request};
use crate::error::{Error, Kind, Result};
use crate::limits::Cancel;
use crate::model::Model;
use crate::observe::gauge;
use crate::serve::{Options, Stats};
use std::collections::VecDeque;
use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel as pipe};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A client, and the scheduler that serves it and its clones.
pub fn channel(options: Options) -> (Client, Scheduler) {
    let state = State { clients: 1, ..State::default() };
    let shared = Arc::new(Shared { state: Mutex::new(state), wake: Condvar::new() });
    let client = Client { shared: Arc::clone(&shared), limit: options.queue };
    (client, Scheduler { shared, options })
}

/// The end that runs: [`Scheduler::run`] serves requests on a model.
pub struct Scheduler {
    pub(super) shared: Arc<Shared>,
    pub(super) options: Options,
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        // Whoever waits learns from its broken channel that nothing will come.
        let mut state = self.shared.lock();
        state.closed = true;
        state.queue.clear();
        state.calls.clear();
    }
}

/// What the ends share.
pub(super) struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

/// Something to ask the model, on its thread.
pub(super) type Call = Box<dyn FnOnce(&dyn Model) + Send>;

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    calls: Vec<Call>,
    clients: usize,
    closed: bool,
    stats: Stats,
}

/// What there is to do.
pub(super) struct Work {
    pub calls: Vec<Call>,
    pub jobs: Vec<Job>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes calls, and jobs for `free` sequences; `None` when there will never be any. Waits for something
    /// to do, unless there `is_more` already.
    pub fn take(&self, free: usize, is_more: bool) -> Option<Work> {
        let mut state = self.lock();
        loop {
            let count = free.min(state.queue.len());
            if is_more || count > 0 || !state.calls.is_empty() {
                let jobs = state.queue.drain(..count).collect();
                return Some(Work { calls: std::mem::take(&mut state.calls), jobs });
            }
            if state.closed || state.clients == 0 {
                return None;
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Publishes what was counted.
    pub fn publish(&self, stats: &Stats) {
        let mut state = self.lock();
        state.stats = stats.clone();
        gauge(stats.running, state.queue.len());
    }
}

/// A request on its way in.
pub(super) struct Job {
    pub request: Request,
    pub line: Line,
}

/// The way out of a request, as its sequence sees it.
pub(super) struct Line {
    sink: Sink,
    cancel: Cancel,
}

/// Whoever is told what becomes of a request.
type Sink = Box<dyn FnMut(Event) + Send>;

impl Line {
    /// Whether the ticket was cancelled or dropped.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Sends a piece of text.
    pub fn say(&mut self, text: &str) {
        (self.sink)(Event::Text(text.to_owned()));
    }

    /// Sends the end.
    pub fn end(&mut self, result: Result<Outcome>) {
        (self.sink)(Event::End(Box::new(result)));
    }
}

/// What happens to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Its output goes on with this, which is certain.
    Text(String),
    /// It has ended; the last event.
    End(Box<Result<Outcome>>),
}

/// Cancels a request when it is dropped.
#[derive(Debug)]
pub struct Handle(Cancel);

impl Handle {
    /// Gives up: the outcome is [`Kind::Cancelled`], unless it is there already.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The end that asks: cheap to clone, for any thread.
///
/// When the last clone is gone, the scheduler finishes what was submitted and ends.
pub struct Client {
    shared: Arc<Shared>,
    limit: usize,
}

impl Clone for Client {
    fn clone(&self) -> Self {
        self.shared.lock().clients += 1;
        Self { shared: Arc::clone(&self.shared), limit: self.limit }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.lock().clients -= 1;
        self.shared.wake.notify_all();
    }
}

impl Client {
    /// Queues a request, and gives the ticket to wait with.
    ///
    /// # Errors
    /// [`Kind::Overloaded`] if as many requests wait as may; [`Kind::Cancelled`] if the scheduler has
    /// ended. What is wrong with the request itself, its ticket says.
    pub fn submit(&self, request: Request) -> Result<Ticket> {
        let (events, receiver) = pipe();
        let handle = self.send(request, move |event| {
            // Nobody may be there any more: then it was cancelled.
            let _ = events.send(event);
        })?;
        Ok(Ticket { events: receiver, handle, end: None })
    }

    /// Queues a request, and calls `sink` with what happens to it, on a thread of the scheduler: it must not block.
    /// For asynchronous code, which waits in its own way. If the scheduler breaks off, the sink is dropped
    /// without an end.
    ///
    /// # Errors
    /// As [`Client::submit`].
    pub fn send(
        &self,
        request: Request,
        sink: impl FnMut(Event) + Send + 'static,
    ) -> Result<Handle> {
        let mut state = self.shared.lock();
        if state.closed {
            return Err(ended());
        }
        if state.queue.len() >= self.limit {
            let limit = self.limit;
            let message = format!("{limit} requests are waiting already, which is the limit");
            return Err(Error::new(Kind::Overloaded { limit }, message)
                .help("try again later, or raise the limit of the queue"));
        }
        let cancel = Cancel::default();
        let line = Line { sink: Box::new(sink), cancel: cancel.clone() };
        state.queue.push_back(Job { request, line });
        drop(state);
        self.shared.wake.notify_all();
        Ok(Handle(cancel))
    }

    /// Asks the model something on its own thread, between two passes: how it spells a prompt, its vocabulary,
    /// its name.
    ///
    /// # Errors
    /// [`Kind::Cancelled`] if the scheduler has ended.
    pub fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn Model) -> T + Send + 'static,
    ) -> Result<T> {
        let (answer, receiver) = pipe();
        self.tell(move |model| {
            let _ = answer.send(question(model));
        })?;
        receiver.recv().map_err(|_| ended())
    }

    /// The same without waiting: `question` sends its answer itself. If the scheduler breaks off, it is dropped.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn tell(&self, question: impl FnOnce(&dyn Model) + Send + 'static) -> Result<()> {
        let mut state = self.shared.lock();
        if state.closed {
            return Err(ended());
        }
        state.calls.push(Box::new(question));
        drop(state);
        self.shared.wake.notify_all();
        Ok(())
    }

    /// Refuses further requests of all clients; those that were submitted are still served.
    pub fn close(&self) {
        self.shared.lock().closed = true;
        self.shared.wake.notify_all();
    }

    /// What was counted up to the last round.
    pub fn stats(&self) -> Stats {
        let state = self.shared.lock();
        Stats { waiting: state.queue.len(), ..state.stats.clone() }
    }
}

pub(super) fn ended() -> Error {
    Error::new(Kind::Cancelled, "the scheduler has ended")
        .help("its thread says why; start another one")
}

/// The end of one request: iterate over its pieces of text, or wait for its outcome. Dropping it
/// cancels the request.
pub struct Ticket {
    events: Receiver<Event>,
    handle: Handle,
    end: Option<Result<Outcome>>,
}

impl Ticket {
    /// Gives up: the outcome is [`Kind::Cancelled`], unless it is there already.
    pub fn cancel(&self) {
        self.handle.cancel();
    }

    /// Waits for the outcome.
    ///
    /// # Errors
    /// As [`Decoder::stream`](crate::decode::Decoder::stream); [`Kind::BadArgument`] for a strategy other than
    /// one token after the other; [`Kind::Cancelled`] if it was cancelled or the scheduler has ended.
    pub fn wait(mut self) -> Result<Outcome> {
        while self.next().is_some() {}
        self.end.take().unwrap_or_else(|| Err(ended()))
    }

    /// Waits for the outcome for a while: `None` if it was not there by then. Pieces of text that
    /// come meanwhile are skipped; the outcome has all of them.
    pub fn wait_for(&mut self, time: Duration) -> Option<Result<Outcome>> {
        let deadline = std::time::Instant::now() + time;
        while self.end.is_none() {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            match self.events.recv_timeout(left) {
                Ok(Event::Text(_)) => {}
                Ok(Event::End(end)) => self.end = Some(*end),
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => self.end = Some(Err(ended())),
            }
        }
        self.end.clone()
    }
}

impl Iterator for Ticket {
    type Item = String;

    /// Waits for the next piece of text, as soon as it is certain; `None` when the output has ended.
    fn next(&mut self) -> Option<String> {
        if self.end.is_some() {
            return None;
        }
        match self.events.recv() {
            Ok(Event::Text(text)) => Some(text),
            Ok(Event::End(end)) => {
                self.end = Some(*end);
                None
            }
            Err(_) => {
                self.end = Some(Err(ended()));
                None
            }
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("ended", &self.end.is_some()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
