//! The mask under a budget.
//!
//! It follows the same chain of tables as a mask without one (`mask::collect`), but takes from
//! each table only the groups of tokens ([`super::ends`]) after which what is left suffices.
//!
//! **Ample.** Nearly always the budget is so large that no token can be wrong. To know that without
//! looking at groups, each configuration has a number of tokens with which it is *ample*: two (the
//! token, and the end token) more than the worst cost one token later. That is bounded by the greatest sum,
//! along the chain, of what the states of a terminal can cost ([`Costs::bound`]; where that is not
//! known, the groups are looked at once) and what is owed below it. With so many tokens left, the mask is the same object as without a budget.
//!
//! By hand: `{"a":"x` with `a` a string: from the body of the string, tokens lead at worst into an
//! escape (13 bytes to finish), then the brace: worst 14. With 16 tokens left the mask is ample; with
//! fewer, tokens such as `\u` fall away; with 3 left only what closes the string remains. With fewer than
//! [`NEAR`] tokens left nobody asks whether they are ample.

use std::borrow::Cow;
use std::sync::Arc;

use hashbrown::HashSet;

use super::ends::Ends;
use super::everywhere::Room;
use super::plan::{self, Plan};
use super::prices::Pricer;
use super::{Costs, NEVER};
use crate::error::{Error, Kind, Result};
use crate::expr::LiteralId;
use crate::grammar::Node;
use crate::machine::{Doubt, Output, Program, Sequence, StateId, Thread};
use crate::mask::allowed::{Allowed, Parts};
use crate::mask::collect::{self, Followers};
use crate::mask::{Basis, BoundaryId, ConfigId, Configs, Memo, TableId, TokenSet, TokenTable};
use crate::vocab::TokenId;

/// A constraint's costs, and the configurations that are judged by them.
#[derive(Clone, Copy)]
pub struct Judge<'a> {
    /// The costs.
    pub costs: &'a Costs,
    /// The grammar over the vocabulary.
    pub basis: &'a Basis,
    /// The configurations.
    pub configs: &'a Configs,
}

impl Judge<'_> {
    /// The tokens that complete a configuration, the end token counted; 0 if it is finished.
    ///
    /// # Errors
    /// [`crate::Kind::TooComplex`] if the grammar is too large for its limits.
    #[inline]
    pub fn cost(&self, id: ConfigId) -> Result<u64> {
        let config = self.configs.get(id);
        if let Some(&cost) = config.cost.get() {
            return Ok(cost);
        }
        if config.is_finished() {
            return Ok(0);
        }
        let cost = self.study(|narrow| narrow.cost(config.threads()))?.saturating_add(1);
        Ok(*config.cost.get_or_init(|| cost))
    }

    /// With how many tokens left any token of the mask may be taken.
    ///
    /// # Errors
    /// As [`Judge::cost`].
    #[inline]
    pub fn ample(&self, id: ConfigId) -> Result<u64> {
        let config = self.configs.get(id);
        if let Some(&ample) = config.ample.get() {
            return Ok(ample);
        }
        let worst = self.study(|narrow| narrow.worst(config.threads()))?;
        Ok(*config.ample.get_or_init(|| worst.saturating_add(2)))
    }

    /// With how many tokens left any token may be taken, wherever the output is; see [`Room`].
    pub fn room(&self) -> Room {
        self.costs.everywhere(&self.basis.program, None)
    }

    /// The same with fewer tokens, after all nodes are priced.
    ///
    /// # Errors
    /// As [`Judge::cost`].
    pub fn closer_room(&self) -> Result<Room> {
        let (program, room) = (&self.basis.program, self.room());
        if !room.is_known() {
            return Ok(room);
        }
        Ok(self.costs.everywhere(program, Some(self.costs.nodes(program)?)))
    }

    /// A whole document in few tokens that `accepts` says is one.
    ///
    /// # Errors
    /// As [`Judge::cost`].
    pub fn plan(&self, accepts: &dyn Fn(&[TokenId]) -> bool) -> Result<Option<Plan>> {
        plan::search(self, self.configs.get(ConfigId::START).threads(), accepts)
    }

    /// The tokens after which `left - 1` tokens suffice. `text` is the output so far.
    ///
    /// # Errors
    /// As [`Judge::cost`].
    pub fn narrow(&self, id: ConfigId, text: &[u8], left: u64) -> Result<Parts> {
        let threads = self.configs.get(id).threads();
        self.study(|narrow| Ok(narrow.narrow(threads, text, left)?.0))
    }

    /// The mask of a configuration that keeps to the budgets of parts: `None` if it is to be read
    /// from [`Configs::known_mask`], else a mask that holds for this output alone.
    ///
    /// # Errors
    /// As [`Judge::cost`].
    pub fn learn_mask(&self, id: ConfigId, text: &[u8]) -> Result<Option<Allowed>> {
        if self.configs.known_mask(id).is_some() {
            return Ok(None);
        }
        let threads = self.configs.get(id).threads();
        let (mut parts, tried) = self.study(|narrow| narrow.narrow(threads, text, NEVER))?;
        let allowed = parts.finish(&self.basis.tables, &self.basis.specials, None);
        if tried {
            return Ok(Some(allowed));
        }
        self.configs.keep_mask(id, allowed);
        Ok(None)
    }

    /// Whether a part that has a budget can be completed within it, for every part of the grammar.
    ///
    /// # Errors
    /// [`crate::Kind::BudgetTooSmall`] with the budget that would do; as [`Judge::cost`].
    pub fn check_parts(&self) -> Result<()> {
        let (costs, program) = (self.costs, &self.basis.program);
        let nodes = costs.nodes(program)?;
        for (id, node) in program.grammar().nodes() {
            let Node::Within { item, tokens } = node else { continue };
            if !program.fits(*item, 0) {
                continue;
            }
            let min = costs.tokens_alone(program, nodes, id);
            if min > u64::from(*tokens) {
                let error = part_too_small(*tokens, min);
                let stated = program.grammar().budgets.iter().find(|(node, _)| *node == id);
                return Err(stated.map_or(error.clone(), |(_, place)| error.at(place.clone())));
            }
        }
        Ok(())
    }

    /// The same where that is nothing: with as few tokens more as help.
    ///
    /// What is owed for items that must differ from earlier containers is an estimate. Should it
    /// prove too low, the budget gives way: a document that is a little longer is better than one
    /// that never ends.
    ///
    /// # Errors
    /// As [`Judge::cost`].
    pub fn give_way(&self, id: ConfigId, text: &[u8], left: u64) -> Result<Parts> {
        let threads = self.configs.get(id).threads();
        self.study(|narrow| {
            let mut enough = left;
            loop {
                let (parts, _) = narrow.narrow(threads, text, enough)?;
                if !parts.is_empty() || enough > left.saturating_add(FARTHEST) {
                    return Ok(parts);
                }
                enough += 1 + (enough - left) / 4;
            }
        })
    }

    /// The cost after each token, the end token counted; [`NEVER`] for tokens that are not allowed.
    /// `text` is the output so far.
    ///
    /// # Errors
    /// As [`Judge::cost`].
    pub fn costs_after(&self, id: ConfigId, text: &[u8]) -> Result<Vec<u64>> {
        let threads = self.configs.get(id).threads();
        self.study(|narrow| narrow.costs_after(threads, text))
    }

    pub(super) fn study<T>(&self, work: impl FnOnce(&mut Narrow<'_>) -> Result<T>) -> Result<T> {
        let nodes = self.costs.nodes(&self.basis.program)?;
        self.configs.study(|sequence, followers, memo| {
            let (costs, basis) = (self.costs, self.basis);
            let result = work(&mut Narrow { costs, basis, nodes, sequence, followers, memo })?;
            sequence.check()?;
            basis.program.states().trouble()?;
            Ok(result)
        })
    }
}

#[cold]
fn part_too_small(tokens: u32, min: u64) -> Error {
    let kind = Kind::BudgetTooSmall { min };
    if min == NEVER {
        let message = format!("no value within the {tokens} tokens of a field can be planned");
        return Error::new(kind, message).help("lower the least counts and lengths of the field");
    }
    let message = format!("a field may have {tokens} tokens, but its shortest value takes {min}");
    Error::new(kind, message).help(format!("allow it at least {min} tokens"))
}

/// Most tokens by which an estimate is corrected.
const FARTHEST: u64 = 100_000;

/// What it takes to judge a configuration.
pub(super) struct Narrow<'a> {
    pub costs: &'a Costs,
    pub basis: &'a Basis,
    pub nodes: &'a super::nodes::Nodes,
    pub sequence: &'a mut Sequence,
    pub followers: &'a mut Followers,
    pub memo: &'a mut Memo,
}

/// The places that a token can be in: terminals that begin inside it, each visited once.
#[derive(Default)]
pub(super) struct Chain {
    todo: Vec<(BoundaryId, Thread)>,
    /// All that were ever in it; looked through in order while they are few.
    visited: Vec<(BoundaryId, Thread)>,
    known: HashSet<(BoundaryId, Thread)>,
}

/// With fewer tokens left than these, what is in a table is looked at at once: strings may need as
/// many bytes to end, so that bounds would seldom help.
pub const NEAR: u64 = 18;

/// Up to how many places are looked through in order.
const FEW: usize = 16;

impl Chain {
    fn push(&mut self, boundary: BoundaryId, thread: Thread) {
        let place = (boundary, thread);
        if self.visited.len() < FEW {
            if self.visited.contains(&place) {
                return;
            }
            self.visited.push(place);
        } else {
            if self.visited.contains(&place) || !self.known.insert(place) {
                return;
            }
        }
        self.todo.push(place);
    }

    pub fn pop(&mut self) -> Option<(BoundaryId, Thread)> {
        self.todo.pop()
    }
}

impl Narrow<'_> {
    fn program(&self) -> &Program {
        &self.basis.program
    }

    /// Threads when a token begins.
    pub fn ticked<'t>(&mut self, threads: &'t [Thread]) -> Cow<'t, [Thread]> {
        self.sequence.tick(&self.basis.program, threads)
    }

    /// The cost of a thread.
    pub fn thread(&mut self, thread: Thread) -> u64 {
        let program = &self.basis.program;
        let stacks = &mut self.sequence.stacks;
        let (costs, nodes, memo) = (self.costs, self.nodes, &mut *self.memo);
        Pricer { costs, program, nodes, memo, stacks }.thread(thread)
    }

    /// The cost of a configuration.
    fn cost(&mut self, threads: &[Thread]) -> Result<u64> {
        Ok(threads.iter().map(|&thread| self.thread(thread)).min().unwrap_or(NEVER))
    }

    /// The cost once the terminal of `at` is complete.
    fn after(&mut self, at: Thread, literal: Option<LiteralId>) -> u64 {
        let program = &self.basis.program;
        let followers = self.followers.after(self.sequence, program, at.stack, literal);
        let stacks = &mut self.sequence.stacks;
        let (costs, nodes, memo) = (self.costs, self.nodes, &mut *self.memo);
        let mut pricer = Pricer { costs, program, nodes, memo, stacks };
        followers.iter().map(|&thread| pricer.thread(thread)).min().unwrap_or(NEVER)
    }

    /// The threads that follow once the terminal of `at` is complete.
    pub fn followers_of(&mut self, at: Thread, literal: Option<LiteralId>) -> Vec<Thread> {
        self.followers.after(self.sequence, &self.basis.program, at.stack, literal).to_vec()
    }

    /// Whether tables cannot decide what follows inside tokens.
    pub fn in_doubt(&self, at: Thread) -> bool {
        self.sequence.doubt(self.program(), at.stack) != Doubt::None
    }

    /// At least the cost where any token inside the terminal of `at` ends.
    fn bound(&mut self, at: Thread) -> u64 {
        let program = &self.basis.program;
        let stacks = &mut self.sequence.stacks;
        let (costs, nodes, memo) = (self.costs, self.nodes, &mut *self.memo);
        Pricer { costs, program, nodes, memo, stacks }.bound(at)
    }

    /// At least the cost of any configuration one token later.
    fn worst(&mut self, threads: &[Thread]) -> Result<u64> {
        let threads = &self.ticked(threads);
        // What a part has no budget for is not in the mask without one of the whole either.
        let parts = self.program().has_budgets();
        let counts = |cost: &u64| !parts || *cost != NEVER;
        let mut worst = 0;
        let mut todo = self.begin(threads, &mut |narrow, thread, _| {
            worst = worst.max(Some(narrow.after(thread, None)).filter(counts).unwrap_or(0));
        });
        while let Some((boundary, at)) = todo.pop() {
            if worst == NEVER {
                return Ok(NEVER);
            }
            let tables = &self.basis.tables;
            let table = tables.get(tables.table(self.program().states(), boundary, at.state));
            if !table.is_empty() {
                let doubt = boundary != BoundaryId::ROOT && self.in_doubt(at);
                worst = worst.max(match self.bound(at) {
                    NEVER if doubt => return Ok(NEVER),
                    NEVER => self.worst_end(boundary, at, &counts),
                    // A key that is not known may be one more that cannot come.
                    bound => bound.saturating_add(2 * u64::from(doubt)),
                });
            }
            self.follow(at, table, &mut todo);
        }
        Ok(worst)
    }

    /// The greatest cost where a token inside the terminal of `at` ends.
    fn worst_end(
        &mut self,
        boundary: BoundaryId,
        at: Thread,
        counts: &dyn Fn(&u64) -> bool,
    ) -> u64 {
        let ends = self.ends(boundary, at);
        ends.by_cost()
            .iter()
            .map(|&(state, _)| self.end_cost(at, state))
            .filter(counts)
            .max()
            .unwrap_or(0)
    }

    /// Where the chains of tables begin; `special` is told of the threads that are special tokens.
    pub fn begin(
        &mut self,
        threads: &[Thread],
        special: &mut dyn FnMut(&mut Self, Thread, u32),
    ) -> Chain {
        let mut todo = Chain::default();
        for &thread in threads.iter().filter(|&&thread| thread != Thread::END) {
            match self.program().states().get(thread.state).special() {
                Some(index) => special(self, thread, index),
                None => todo.push(BoundaryId::ROOT, thread),
            }
        }
        todo
    }

    /// Adds the threads at which tokens go on after a terminal.
    pub fn follow(&mut self, at: Thread, table: &TokenTable, todo: &mut Chain) {
        let (program, states) = (&self.basis.program, self.basis.program.states());
        let from = (table.at_exits, at.stack);
        for &(literal, exit) in &table.exits {
            let followers = self.followers.after(self.sequence, program, at.stack, literal);
            for &next in followers {
                // No plan starts again what it may leave: of what says nothing new none is missed.
                if next.state.is_live()
                    && states.get(next.state).continues()
                    && !collect::says_nothing_new(states, from, &next)
                {
                    todo.push(exit, next);
                }
            }
        }
    }

    /// The mask, and whether it depends on the output.
    fn narrow(&mut self, threads: &[Thread], text: &[u8], left: u64) -> Result<(Parts, bool)> {
        let threads = &self.ticked(threads);
        let tables = &self.basis.tables;
        let mut out = Parts::default();
        let mut tried = false;
        if threads.contains(&Thread::END) && left > 0 {
            out.tokens.extend_from_slice(tables.vocabulary().end_tokens());
        }
        // Without the token itself and the end token.
        let Some(most) = left.checked_sub(2) else { return Ok((out, tried)) };
        let mut todo = self.begin(threads, &mut |narrow, thread, index| {
            if narrow.after(thread, None) <= most {
                out.specials.push(index);
            }
        });
        while let Some((boundary, at)) = todo.pop() {
            if boundary != BoundaryId::ROOT && self.in_doubt(at) {
                tried = true;
                for (token, cost) in self.tried((boundary, at), threads, text)? {
                    if cost <= most {
                        out.tokens.push(token);
                    }
                }
                continue;
            }
            let id = tables.table(self.program().states(), boundary, at.state);
            self.take(boundary, at, id, most, &mut out);
            self.follow(at, tables.get(id), &mut todo);
        }
        Ok((out, tried))
    }

    fn costs_after(&mut self, threads: &[Thread], text: &[u8]) -> Result<Vec<u64>> {
        let threads = &self.ticked(threads);
        let tables = &self.basis.tables;
        let mut costs = vec![NEVER; tables.vocabulary().len()];
        let mut lower = |ids: &mut dyn Iterator<Item = TokenId>, cost: u64| {
            for id in ids {
                if let Some(known) = costs.get_mut(id as usize) {
                    *known = cost.min(*known);
                }
            }
        };
        if threads.contains(&Thread::END) {
            lower(&mut tables.vocabulary().end_tokens().iter().copied(), 0);
        }
        let mut todo = self.begin(threads, &mut |narrow, thread, index| {
            let cost = narrow.after(thread, None).saturating_add(1);
            lower(&mut narrow.basis.specials[index as usize].ids().into_iter(), cost);
        });
        while let Some((boundary, at)) = todo.pop() {
            let states = self.basis.program.states();
            let table = tables.get(tables.table(states, boundary, at.state));
            if boundary != BoundaryId::ROOT && self.in_doubt(at) {
                for (token, cost) in self.tried((boundary, at), threads, text)? {
                    lower(&mut std::iter::once(token), cost.saturating_add(1));
                }
                continue;
            }
            for (state, tokens) in self.ends(boundary, at).by_cost() {
                let cost = self.end_cost(at, *state).saturating_add(1);
                lower(&mut tokens.ids().into_iter(), cost);
            }
            self.follow(at, table, &mut todo);
        }
        Ok(costs)
    }

    /// Where the tokens of one table end.
    fn ends(&self, boundary: BoundaryId, at: Thread) -> Arc<Ends> {
        let (tables, program) = (&self.basis.tables, self.program());
        let ends = self.costs.ends.get(tables, program.states(), boundary, at.state);
        let len = tables.vocabulary().len();
        ends.group_by_cost(program.states(), len, |state| self.costs.rest(program, state));
        ends
    }

    /// Adds the tokens of one table.
    fn take(&mut self, boundary: BoundaryId, at: Thread, id: TableId, most: u64, out: &mut Parts) {
        let tables = &self.basis.tables;
        if tables.get(id).is_empty() {
            return;
        }
        if most >= NEAR && self.bound(at) <= most {
            out.tables.push(id);
            return;
        }
        for (state, tokens) in self.ends(boundary, at).by_cost() {
            if self.end_cost(at, *state) > most {
                continue;
            }
            match tokens {
                TokenSet::Sparse(ids) => out.tokens.extend_from_slice(ids),
                TokenSet::Dense(words) => {
                    out.words.resize(words.len(), 0);
                    out.words.iter_mut().zip(words).for_each(|(word, own)| *word |= own);
                }
            }
        }
    }

    /// The cost where a token ends in `state`, over the stack of `at`.
    fn end_cost(&mut self, at: Thread, state: StateId) -> u64 {
        let info = self.program().states().get(state);
        let (goes_on, accepts) = (info.continues() || info.special().is_some(), info.accepts());
        let literal = info.literal();
        let mut cost = NEVER;
        if goes_on {
            let (state, excess) = self.program().states().refill(state, at.excess);
            cost = self.thread(Thread { state, excess, stack: at.stack });
        }
        if accepts {
            cost = cost.min(self.after(at, literal));
        }
        cost
    }

    /// The tokens at a place where tables cannot decide, and the cost after each: they are tried byte by byte. What
    /// tokens have in common is stepped over once: they are tried in the order of their bytes.
    fn tried(
        &mut self,
        (boundary, at): (BoundaryId, Thread),
        threads: &[Thread],
        text: &[u8],
    ) -> Result<Vec<(TokenId, u64)>> {
        let (tables, program) = (&self.basis.tables, &self.basis.program);
        let (states, vocabulary) = (program.states(), tables.vocabulary());
        let table = tables.get(tables.table(states, boundary, at.state));
        let mut tokens = table.inside.ids();
        table.exits.iter().for_each(|exit| tokens.extend(tables.tokens_after(states, exit.1)));
        let mut sorted: Vec<(&[u8], TokenId)> =
            tokens.iter().filter_map(|&id| Some((vocabulary.bytes(id)?, id))).collect();
        sorted.sort_unstable();
        let (start, mut text) = (text.len(), text.to_vec());
        // The threads after each byte of the last token.
        let mut path = vec![threads.to_vec()];
        let mut costs = Vec::new();
        for (bytes, id) in sorted {
            let common = text[start..].iter().zip(bytes).take_while(|(a, b)| a == b).count();
            path.truncate(common + 1);
            text.truncate(start + common);
            for &byte in &bytes[common..] {
                let (Some(from), mut to) = (path.last(), Vec::new()) else { break };
                text.push(byte);
                self.sequence.step(program, from, byte, Output::Known(&text), &mut to);
                path.push(to);
            }
            let last = path.last().map_or(&[][..], |threads| threads);
            costs.push((id, self.cost(last)?));
        }
        Ok(costs)
    }
}
