//! The mask of a configuration, as the tables that make it up.
//!
//! For each thread: the table of its state over the whole vocabulary. Where the table has exits,
//! the threads that follow the terminal, with their tables over the exit's boundary; and so on.
//! Each level consumes at least one byte of the token, so the chain ends.
//!
//! Many ways through an ambiguous grammar lead to the same state over the same boundary. They are
//! visited once, with one stack for all: boundaries are visited by their first node, and as the
//! trie numbers nodes in preorder, an exit's first node comes after that of what it is an exit of.
//!
//! What follows a stack is memoised for the sequence ([`Followers`]), so that a warm mask is a
//! handful of look-ups.
//!
//! One case the tables cannot decide: a token that completes an undeclared key (or a unique item)
//! whose text is not known from the output so far, and goes on into another one, which must differ
//! from it. Where there are infinitely many keys the opening quote of the other key is no question
//! yet. What goes further (there is hardly such a token) is tried.

use hashbrown::HashMap;

use super::allowed::Parts;
use super::tables::{BoundaryId, Tables};
use crate::expr::LiteralId;
use crate::machine::stack::StackId;
use crate::machine::states::Excess;
use crate::machine::{Doubt, Output, Program, Sequence, StateId, States, Thread};
use crate::vocab::{TokenId, Vocabulary};

/// The threads after a stack, memoised.
#[derive(Debug, Clone, Default)]
pub struct Followers {
    index: HashMap<(StackId, Option<LiteralId>), (u32, u32)>,
    threads: Vec<Thread>,
    scratch: Vec<Thread>,
    todo: Vec<Visit>,
}

/// A state over a boundary, with what comes after it.
#[derive(Debug, Clone, Copy)]
struct Visit {
    /// The boundary's first node.
    first: u32,
    boundary: BoundaryId,
    state: StateId,
    stack: StackId,
}

impl Visit {
    fn key(&self) -> (u32, BoundaryId, StateId) {
        (self.first, self.boundary, self.state)
    }

    /// Adds it to a list by falling keys, or to the one of the same key.
    fn plan(self, todo: &mut Vec<Visit>, sequence: &mut Sequence) {
        match todo.binary_search_by(|other| self.key().cmp(&other.key())) {
            Ok(at) => todo[at].stack = sequence.unite(todo[at].stack, self.stack),
            Err(at) => todo.insert(at, self),
        }
    }
}

impl Followers {
    /// The threads that follow once the terminal on top of `stack` is complete.
    fn get(
        &mut self,
        sequence: &mut Sequence,
        program: &Program,
        stack: StackId,
        literal: Option<LiteralId>,
    ) -> std::ops::Range<usize> {
        if let Some(&(start, end)) = self.index.get(&(stack, literal)) {
            return start as usize..end as usize;
        }
        sequence.resume(program, stack, literal, Output::Unknown, &mut self.scratch);
        let start = self.threads.len();
        self.threads.append(&mut self.scratch);
        let range = start..self.threads.len();
        self.index.insert((stack, literal), (range.start as u32, range.end as u32));
        range
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.index.clear();
        self.threads.clear();
    }

    /// The threads that follow once the terminal on top of `stack` is complete.
    pub fn after(
        &mut self,
        sequence: &mut Sequence,
        program: &Program,
        stack: StackId,
        literal: Option<LiteralId>,
    ) -> &[Thread] {
        let range = self.get(sequence, program, stack, literal);
        &self.threads[range]
    }

    /// Bytes of memory, about.
    pub fn bytes(&self) -> usize {
        self.index.capacity() * 24 + self.threads.capacity() * size_of::<Thread>()
    }
}

/// What the configuration `threads` allows; no threads are a finished output, which only an end
/// token may follow. `text` is the output so far. Says whether the answer depends on it.
pub fn collect(
    (tables, program): (&Tables, &Program),
    sequence: &mut Sequence,
    followers: &mut Followers,
    threads: &[Thread],
    text: &[u8],
    allowed: &mut Parts,
) -> bool {
    let states = program.states();
    let mut todo = std::mem::take(&mut followers.todo);
    let mut tried = false;
    if threads.is_empty() || threads.contains(&Thread::END) {
        allowed.tokens.extend_from_slice(tables.vocabulary().end_tokens());
    }
    for thread in threads {
        if *thread == Thread::END {
            continue;
        }
        if let Some(special) = states.get(thread.state).special() {
            allowed.specials.push(special);
        } else {
            let Thread { state, stack, .. } = *thread;
            let visit = Visit { first: 0, boundary: BoundaryId::ROOT, state, stack };
            visit.plan(&mut todo, sequence);
        }
    }
    while let Some(Visit { boundary, state, stack, .. }) = todo.pop() {
        let doubt = match boundary {
            BoundaryId::ROOT => Doubt::None,
            _ => sequence.doubt(program, stack),
        };
        if doubt != Doubt::None {
            let tokens = if doubt == Doubt::OfEqualKeys && states.is_quote(state) {
                let quote = tables.child(states, boundary, b'"');
                allowed
                    .tokens
                    .extend(quote.iter().flat_map(|&quote| tables.tokens_at(states, quote)));
                quote.map_or(Vec::new(), |quote| tables.tokens_after(states, quote))
            } else {
                let table = tables.get(tables.table(states, boundary, state));
                let mut tokens = table.inside.ids();
                table
                    .exits
                    .iter()
                    .for_each(|exit| tokens.extend(tables.tokens_after(states, exit.1)));
                tokens
            };
            tried |= !tokens.is_empty();
            let mut trial = Trial { program, sequence, threads, text };
            trial.run(tables.vocabulary(), &tokens, &mut allowed.tokens);
            continue;
        }
        let id = tables.table(states, boundary, state);
        let table = tables.get(id);
        if !table.is_empty() {
            allowed.tables.push(id);
        }
        for &(literal, exit) in &table.exits {
            let first = tables.first(exit);
            for i in followers.get(sequence, program, stack, literal) {
                let thread = followers.threads[i];
                let from = (table.at_exits, stack);
                let Thread { state, stack, .. } = thread;
                if state.is_live()
                    && states.get(state).continues()
                    && !says_nothing_new(states, from, &thread)
                {
                    Visit { first, boundary: exit, state, stack }.plan(&mut todo, sequence);
                }
            }
        }
    }
    followers.todo = todo;
    tried
}

/// Whether a thread that follows a terminal allows only what going on in the terminal allows. `from` is the
/// state in which the terminal was complete, and its stack.
///
/// Worked example: texts and tags by turns, `([a-z]+ | tag)*`, after `a`. The text may go on (`[a-z]*`) or another
/// one may start (`[a-z]+`), with the same stack. All that the second can say the first can, too; so the
/// places at which a text could end and another start, which are nearly all there are, are not looked at.
pub fn says_nothing_new(
    states: &States,
    (at_exits, stack): (Option<StateId>, StackId),
    thread: &Thread,
) -> bool {
    thread.stack == stack
        && thread.excess == Excess::NONE
        && at_exits.is_some_and(|state| states.covers(state, thread.state))
}

/// Trying tokens byte by byte.
struct Trial<'a> {
    program: &'a Program,
    sequence: &'a mut Sequence,
    threads: &'a [Thread],
    text: &'a [u8],
}

impl Trial<'_> {
    /// Adds those of `tokens` that are allowed to `allowed`. What tokens have in common is
    /// stepped over once: they are tried in the order of their bytes.
    fn run(&mut self, vocabulary: &Vocabulary, tokens: &[TokenId], allowed: &mut Vec<TokenId>) {
        let mut sorted: Vec<(&[u8], TokenId)> =
            tokens.iter().filter_map(|&id| Some((vocabulary.bytes(id)?, id))).collect();
        sorted.sort_unstable();
        let mut text = self.text.to_vec();
        // The threads after each byte of the last token, as far as it was allowed.
        let mut path = vec![self.threads.to_vec()];
        for (bytes, id) in sorted {
            let said = &text[self.text.len()..];
            let common = said.iter().zip(bytes).take_while(|(a, b)| a == b).count();
            path.truncate(common + 1);
            text.truncate(self.text.len() + common);
            for &byte in &bytes[common..] {
                let (Some(from), mut to) = (path.last(), Vec::new()) else { break };
                if from.is_empty() {
                    break;
                }
                text.push(byte);
                self.sequence.step(self.program, from, byte, Output::Known(&text), &mut to);
                path.push(to);
            }
            let whole = text.len() - self.text.len() == bytes.len();
            if whole && path.last().is_some_and(|threads| !threads.is_empty()) {
                allowed.push(id);
            }
        }
    }
}
