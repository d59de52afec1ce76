//! The loop of a scheduler: rounds of one pass of the model each.

use crate::decode::track::{CHUNK, row};
use crate::error::{Error, Kind, Result};
use crate::model::{Batch, Model, Sequence};
use crate::observe::{Span, count_pass};
use crate::serve::client::Work;
use crate::serve::running::{Facts, Running};
use crate::serve::slots::{Slot, cut, prepare};
use crate::serve::{Options, Scheduler, Stats};
use std::time::Instant;

/// Below this many sequences, choosing takes less than starting a thread for it.
const SHARED_CHOICES: usize = 8;

impl Scheduler {
    /// Serves requests until the last client is gone and all are done, on all sequences of the model; returns
    /// what was counted.
    ///
    /// # Errors
    /// [`Kind::BadArgument`] if the model has no sequence. Failures of the model go to the
    /// requests that they concern.
    pub fn run(self, model: &mut dyn Model) -> Result<Stats> {
        let count = model.max_sequences();
        if count == 0 {
            return Err(Error::new(Kind::BadArgument, "the model has no sequences"));
        }
        let facts = Facts { vocabulary: model.vocabulary().clone(), context: model.context_len() };
        let slots: Vec<Slot> = (0..count).map(|_| Slot::default()).collect();
        let options = self.options.clone();
        let (stats, number, turn) = (Stats::default(), 0, 0);
        let mut rounds = Rounds { model, facts, slots, options, stats, number, turn };
        rounds.forget()?;
        while let Some(work) = self.shared.take(rounds.free(), rounds.is_busy()) {
            rounds.admit(work);
            if rounds.is_busy() {
                let clock = Instant::now();
                rounds.round();
                rounds.stats.busy_time += clock.elapsed();
            }
            self.shared.publish(&rounds.stats);
        }
        Ok(rounds.stats)
    }
}

/// What a round is made from.
struct Rounds<'m> {
    model: &'m mut dyn Model,
    facts: Facts,
    slots: Vec<Slot>,
    options: Options,
    stats: Stats,
    /// Requests so far.
    number: u64,
    /// Rounds so far: whose prompt is first.
    turn: usize,
}

/// The part that one sequence has in a pass.
struct Part<'s> {
    running: &'s mut Running,
    /// Tokens.
    count: usize,
    /// Index of its last entry.
    last: usize,
    held: usize,
}

impl Rounds<'_> {
    /// Empties all sequences: what they hold is not known.
    fn forget(&mut self) -> Result<()> {
        (0..self.slots.len()).try_for_each(|at| self.model.truncate(at as Sequence, 0))
    }

    fn free(&self) -> usize {
        self.slots.iter().filter(|slot| slot.running.is_none()).count()
    }

    fn is_busy(&self) -> bool {
        self.slots.iter().any(|slot| slot.running.is_some())
    }

    /// Answers questions, and gives jobs their sequences.
    fn admit(&mut self, work: Work) {
        for call in work.calls {
            call(self.model);
        }
        for job in work.jobs {
            match Running::new(job, &self.facts, self.number) {
                None => self.stats.failed += 1,
                running => {
                    let free = self.slots.iter_mut().find(|slot| slot.running.is_none());
                    if let Some(slot) = free {
                        slot.running = running;
                    }
                }
            }
            self.number += 1;
        }
        self.stats.running = self.slots.len() - self.free();
    }

    /// One pass, and the step of every sequence that it computed.
    fn round(&mut self) {
        for running in self.slots.iter_mut().filter_map(|slot| slot.running.as_mut()) {
            running.heed();
        }
        self.collect();
        self.start();
        let counts = self.share();
        if counts.iter().any(|&count| count > 0) {
            self.pass(&counts);
            self.stats.passes += 1;
        }
        self.turn = self.turn.wrapping_add(1);
        self.collect();
    }

    /// Prepares the sequences of new requests, the oldest first.
    fn start(&mut self) {
        let mut new: Vec<(u64, usize)> = Vec::new();
        for (at, slot) in self.slots.iter().enumerate() {
            new.extend(slot.running.iter().filter(|r| !r.is_started).map(|r| (r.number, at)));
        }
        new.sort_unstable();
        for (_, at) in new {
            match prepare(&mut self.slots, at, self.model) {
                Ok(kept) => self.stats.shared_tokens += kept.unwrap_or(0) as u64,
                Err(error) => {
                    if let Some(running) = &mut self.slots[at].running {
                        running.fail(error);
                    }
                }
            }
        }
    }

    /// How many tokens each sequence gets of this pass: first those that go on, then prompts, in turn.
    fn share(&self) -> Vec<usize> {
        let mut counts = vec![0; self.slots.len()];
        let mut room = self.model.max_batch().max(1);
        let (mut prompts, mut others) = (Vec::new(), Vec::new());
        for (at, slot) in self.slots.iter().enumerate() {
            match &slot.running {
                Some(running) if running.is_ended() || !running.is_started => {}
                Some(running) if running.is_decoding() => others.push(at),
                Some(running) => prompts.push((running.number, at)),
                None => {}
            }
        }
        let turn = self.turn % others.len().max(1);
        others.rotate_left(turn);
        let pending = |at: usize| self.slots[at].running.as_ref().map_or(0, |r| r.pending.len());
        for &at in &others {
            counts[at] = pending(at).min(room);
            room -= counts[at];
        }
        if !others.is_empty() {
            room = room.min(self.options.prompt_tokens.max(1));
        }
        prompts.sort_unstable();
        let turn = self.turn % prompts.len().max(1);
        prompts.rotate_left(turn);
        let mut is_more = true;
        while room > 0 && is_more {
            is_more = false;
            for &(_, at) in &prompts {
                let (done, left) =
                    (self.slots[at].held.len() + counts[at], pending(at) - counts[at]);
                let chunk = (CHUNK - done % CHUNK).min(left).min(room);
                counts[at] += chunk;
                room -= chunk;
                is_more |= chunk > 0;
            }
        }
        counts
    }

    /// Computes a pass, with the first halves of the next steps beside it, and then the second halves.
    fn pass(&mut self, counts: &[usize]) {
        let mut batch = Batch::new();
        let (mut parts, mut at) = (Vec::new(), 0);
        for (slot, &count) in self.slots.iter_mut().zip(counts) {
            let sequence = at as Sequence;
            at += 1;
            let Some(running) = slot.running.as_mut().filter(|_| count > 0) else { continue };
            let is_all = count == running.pending.len();
            let mut last = 0;
            for (i, &token) in running.pending[..count].iter().enumerate() {
                last = batch.push(token, sequence, is_all && i + 1 == count);
            }
            if !running.is_decoding() {
                self.stats.prompt_tokens += count as u64;
            }
            slot.held.extend_from_slice(&running.pending[..count]);
            parts.push(Part { held: slot.held.len(), running, count, last });
        }
        let (facts, helpers) = (&self.facts, self.options.helpers);
        let mut work: Vec<&mut Part<'_>> =
            parts.iter_mut().filter(|part| part.running.is_to_look(part.count)).collect();
        let look = |part: &mut &mut Part<'_>| part.running.look(facts, part.count);
        let model = &mut *self.model;
        let (result, time) = beside(&mut work, helpers, &look, || {
            let clock = Instant::now();
            (Span::pass(batch.len()).within(|| model.eval(&batch)), clock.elapsed())
        });
        self.stats.model_time += time;
        count_pass(time);
        if let Err(error) = result {
            return self.failed(counts, &error);
        }
        let model = &*self.model;
        let mut choices = Vec::new();
        for part in parts {
            if part.running.passed(part.count, time) {
                choices.push((part.running, row(model, part.last, part.held)));
            }
        }
        let choose = |choice: &mut (&mut Running, Result<&[f32]>)| {
            let row = std::mem::replace(&mut choice.1, Ok(&[]));
            choice.0.decide(facts, row);
        };
        let helpers = if choices.len() < SHARED_CHOICES { 0 } else { helpers };
        let share = choices.len() / (helpers + 1);
        let (mine, others) = choices.split_at_mut(share);
        beside(others, helpers, &choose, || mine.iter_mut().for_each(choose));
    }

    /// The model failed on a pass: who was in it ends, and their sequences hold nothing that is known.
    fn failed(&mut self, counts: &[usize], error: &Error) {
        for (at, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let slot = &mut self.slots[at];
            if let Some(running) = &mut slot.running {
                running.pending.drain(..count);
                running.fail(error.clone());
            }
            // If not even that works, the next request there will be told.
            let _ = cut(slot, at as Sequence, 0, self.model);
        }
    }

    /// Sends off who has ended.
    fn collect(&mut self) {
        for slot in &mut self.slots {
            let Some(running) = slot.running.take_if(|running| running.is_ended()) else {
                continue;
            };
            match running.close() {
                Some(tokens) => {
                    self.stats.finished += 1;
                    self.stats.tokens += tokens as u64;
                }
                None => self.stats.failed += 1,
            }
        }
        self.stats.running = self.slots.len() - self.free();
    }
}

/// Does `f` to all items on some threads while `own` runs on this one; with 0 threads, before it.
fn beside<T: Send, R>(
    items: &mut [T],
    threads: usize,
    f: &(impl Fn(&mut T) + Sync),
    own: impl FnOnce() -> R,
) -> R {
    if threads == 0 || items.is_empty() {
        items.iter_mut().for_each(f);
        return own();
    }
    let size = items.len().div_ceil(threads);
    std::thread::scope(|scope| {
        for part in items.chunks_mut(size) {
            scope.spawn(move || part.iter_mut().for_each(f));
        }
        own()
    })
}
