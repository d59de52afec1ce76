//! The mask of a configuration, as the tables that make it up.
//!
//! For each thread: the table of its state over the whole vocabulary. Where the table has exits,
//! the threads that follow the terminal, with their tables over the exit's boundary; and so on.
//! Each level consumes at least one byte of the token, so the chain ends.
//!
//! What follows a stack is memoised for the sequence ([`Followers`]), so that a warm mask is a
//! handful of look-ups.
//!
//! One case the tables cannot decide: a token that completes an undeclared key whose text is not
//! known from the output so far, and goes on into another key of the same object, which must
//! differ from it. Such tokens (there are hardly any) are tried one by one.

use hashbrown::HashMap;

use super::set::TokenSet;
use super::tables::{BoundaryId, TableId, Tables};
use crate::expr::LiteralId;
use crate::machine::stack::StackId;
use crate::machine::{Output, Program, Sequence, StateId, Thread};
use crate::vocab::TokenId;

/// What a configuration allows.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    /// Tables whose insides are allowed.
    pub tables: Vec<TableId>,
    /// Single tokens.
    pub tokens: Vec<TokenId>,
    /// Special tokens, by index.
    pub specials: Vec<u32>,
    /// Whether the document may end.
    pub end: bool,
}

/// The threads after a stack, memoised.
#[derive(Debug, Clone, Default)]
pub struct Followers {
    index: HashMap<(StackId, Option<LiteralId>), (u32, u32)>,
    threads: Vec<Thread>,
    scratch: Vec<Thread>,
    todo: Vec<(BoundaryId, StateId, StackId)>,
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

    /// Forgets everything (the stacks were renumbered).
    pub fn clear(&mut self) {
        self.index.clear();
        self.threads.clear();
    }
}

/// What the configuration `threads` allows. `text` is the output so far.
pub fn collect(
    tables: &Tables,
    program: &Program,
    sequence: &mut Sequence,
    followers: &mut Followers,
    threads: &[Thread],
    text: &[u8],
    allowed: &mut Allowed,
) {
    allowed.tables.clear();
    allowed.tokens.clear();
    allowed.specials.clear();
    allowed.end = false;
    let states = program.states();
    let mut todo = std::mem::take(&mut followers.todo);
    for thread in threads {
        if *thread == Thread::END {
            allowed.end = true;
        } else if let Some(special) = states.get(thread.state).special() {
            allowed.specials.push(special);
        } else {
            todo.push((BoundaryId::ROOT, thread.state, thread.stack));
        }
    }
    while let Some((boundary, state, stack)) = todo.pop() {
        if boundary != BoundaryId::ROOT && sequence.is_vague(stack) {
            let mut trial = Trial { program, sequence, threads, text };
            let tokens = tables.tokens_after(boundary).into_iter();
            allowed.tokens.extend(tokens.filter(|&token| {
                tables.vocabulary().bytes(token).is_some_and(|bytes| trial.allows(bytes))
            }));
            continue;
        }
        let id = tables.table(states, boundary, state);
        let table = tables.get(id);
        if !table.inside.is_empty() {
            allowed.tables.push(id);
        }
        for &(literal, exit) in &table.exits {
            for i in followers.get(sequence, program, stack, literal) {
                let thread = followers.threads[i];
                if thread.state.is_live() && states.get(thread.state).continues() {
                    todo.push((exit, thread.state, thread.stack));
                }
            }
        }
    }
    followers.todo = todo;
}

/// Trying tokens byte by byte.
struct Trial<'a> {
    program: &'a Program,
    sequence: &'a mut Sequence,
    threads: &'a [Thread],
    text: &'a [u8],
}

impl Trial<'_> {
    fn allows(&mut self, bytes: &[u8]) -> bool {
        let mut text = self.text.to_vec();
        let (mut from, mut to) = (self.threads.to_vec(), Vec::new());
        for &byte in bytes {
            text.push(byte);
            self.sequence.step(self.program, &from, byte, Output::Known(&text), &mut to);
            std::mem::swap(&mut from, &mut to);
        }
        !from.is_empty()
    }
}

/// Writes the union of `allowed` as a bitmask; `words` has one bit per id of the vocabulary, and
/// what is beyond is zeroed.
pub fn fill(tables: &Tables, specials: &[TokenSet], allowed: &Allowed, words: &mut [u32]) {
    let sets = || allowed.tables.iter().map(|&id| &tables.get(id).inside);
    let dense = sets().find_map(|set| match set {
        TokenSet::Dense(words) => Some(words),
        TokenSet::Sparse(_) => None,
    });
    match dense {
        Some(dense) => {
            words[..dense.len()].copy_from_slice(dense);
            words[dense.len()..].fill(0);
        }
        None => words.fill(0),
    }
    for set in sets() {
        match (set, dense) {
            (TokenSet::Dense(own), Some(first)) if std::ptr::eq(own, first) => {}
            (set, _) => set.add_to(words),
        }
    }
    for &special in &allowed.specials {
        specials[special as usize].add_to(words);
    }
    let mut add = |id: TokenId| words[id as usize / 32] |= 1 << (id % 32);
    allowed.tokens.iter().copied().for_each(&mut add);
    if allowed.end {
        tables.vocabulary().end_tokens().iter().copied().for_each(&mut add);
    }
}

/// Most tokens of a mask that is given as a list.
const SPARSE: usize = 2_048;

/// Writes the union of `allowed` as a list, ascending; `false` if it is too long for one.
pub fn list(
    tables: &Tables,
    specials: &[TokenSet],
    allowed: &Allowed,
    ids: &mut Vec<TokenId>,
) -> bool {
    ids.clear();
    let tables_sets = allowed.tables.iter().map(|&id| &tables.get(id).inside);
    let special_sets = allowed.specials.iter().map(|&special| &specials[special as usize]);
    for set in tables_sets.chain(special_sets) {
        match set {
            TokenSet::Sparse(own) if ids.len() + own.len() <= SPARSE => ids.extend_from_slice(own),
            _ => return false,
        }
    }
    ids.extend_from_slice(&allowed.tokens);
    if allowed.end {
        ids.extend_from_slice(tables.vocabulary().end_tokens());
    }
    ids.sort_unstable();
    ids.dedup();
    true
}
