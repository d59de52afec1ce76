//! Configurations as values with ids: what one sequence learns, all others know.
//!
//! A configuration is a list of threads. [`Configs`] interns them, and keeps with each what it
//! allows and where tokens lead: pure functions of the configuration, computed at first use. So a
//! warm step reads two tables: the mask of an id, and the id after (id, token).
//!
//! Worked example: `{"a": 1}` and `{"a": 2}` are matched one after the other. The first sequence
//! makes a configuration per token. The second one meets the same ids up to the number, learns
//! the move by the token `2` (which leads to the configuration that `1` led to), and closes the
//! object without computing anything.
//!
//! **What depends on the output.** Two things do: the text of an undeclared key or of an item
//! that must be unique, when it is complete, and a mask for which tokens had to be tried. Such
//! steps say so ([`Sequence::consulted`]) and are computed each time; what they lead to is
//! interned again.
//!
//! **Bounded.** Configurations, stacks and moves are never dropped one by one. When they exceed
//! [`crate::Limits::cache_bytes`] the constraint starts afresh with empty tables, and each sequence takes its
//! configuration along at its next cold step ([`Configs::adopt`]). Nothing is ever wrong or
//! refused for lack of room.
//!
//! Invariants: ids are dense, and an id's threads stand on the stacks of the same [`Configs`];
//! readers of warm steps hold no lock, those who learn hold the only one.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hashbrown::HashMap;

use super::allowed::{Allowed, Mixtures, Parts};
use super::collect::{self, Followers};
use super::set::TokenSet;
use super::tables::Tables;
use crate::error::Result;
use crate::machine::concurrent::{Arena, ReadMap};
use crate::machine::stack::StackId;
use crate::machine::{Output, Program, Sequence, Thread};
use crate::vocab::TokenId;

/// A grammar over a vocabulary: what configurations are computed from.
#[derive(Debug)]
pub struct Basis {
    /// The grammar, made ready.
    pub program: Program,
    /// The token tables.
    pub tables: Tables,
    /// The sets of special tokens that the grammar names.
    pub specials: Vec<TokenSet>,
}

/// A configuration of its [`Configs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConfigId(u32);

impl ConfigId {
    /// Before the first byte.
    pub const START: ConfigId = ConfigId(0);
}

/// What is known of a configuration.
#[derive(Debug)]
pub struct Config {
    threads: Box<[Thread]>,
    /// In how many containers it is at most.
    depth: u8,
    allowed: OnceLock<Allowed>,
    /// Tokens that complete it, see `cost`.
    pub(crate) cost: OnceLock<u64>,
    /// Tokens with which any token may be taken, see `cost::narrow`.
    pub(crate) ample: OnceLock<u64>,
}

impl Config {
    /// Its threads; none once an end token was accepted.
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// In how many open containers the output is; the most if that can be seen in different ways.
    pub fn depth(&self) -> usize {
        self.depth.into()
    }

    /// Whether an end token was accepted.
    pub fn is_finished(&self) -> bool {
        self.threads.is_empty()
    }

    /// Whether the document may end here.
    pub fn can_stop(&self) -> bool {
        self.is_finished() || self.threads.contains(&Thread::END)
    }

    /// Whether nothing but an end token may follow.
    pub fn is_complete(&self) -> bool {
        self.threads.iter().all(|thread| *thread == Thread::END)
    }
}

/// The configurations of a constraint.
#[derive(Debug)]
pub struct Configs {
    arena: Arena<Config>,
    /// (configuration, token) to configuration.
    moves: ReadMap,
    cold: Mutex<Learner>,
    /// Bytes of masks and moves, about.
    bytes: AtomicUsize,
    full: AtomicBool,
    /// Bytes at which they are full.
    limit: usize,
}

/// What it takes to compute configurations.
#[derive(Debug)]
struct Learner {
    sequence: Sequence,
    followers: Followers,
    ids: HashMap<Box<[Thread]>, ConfigId>,
    parts: Parts,
    mixtures: Mixtures,
    from: Vec<Thread>,
    to: Vec<Thread>,
    memo: Memo,
}

/// How a completion begins: at most as many bytes as the longest token has.
#[derive(Debug, Clone)]
pub struct Lead {
    /// The bytes.
    pub text: Box<[u8]>,
    /// The tokens of the completion from each byte on, and from the end of `text` on.
    pub costs: Box<[u64]>,
    /// With how many tokens in all, what is put before it included, it keeps to the budgets of
    /// parts that are open.
    pub most: u64,
}

impl Lead {
    /// What is put before nothing: the end of the document.
    pub fn end() -> Self {
        Self { text: Box::default(), costs: [0].into(), most: u64::MAX }
    }

    /// The tokens of the completion, whatever the budgets. With something before it they may be
    /// fewer, as tokens reach across.
    pub fn tokens(&self) -> u64 {
        self.costs.first().copied().unwrap_or(u64::MAX)
    }

    /// So many tokens, if they keep to the budgets.
    pub fn within(&self, tokens: u64) -> u64 {
        if tokens <= self.most { tokens } else { u64::MAX }
    }
}

/// What the layer `cost` has found out about stacks and threads; it dies with them.
#[derive(Debug, Clone, Default)]
pub struct Memo {
    /// How completions of stacks begin; several for a stack that is several.
    pub stacks: HashMap<StackId, Arc<[Lead]>>,
    /// Costs of threads.
    pub threads: HashMap<Thread, u64>,
}

impl Memo {
    /// Bytes of memory, about.
    fn bytes(&self) -> usize {
        self.stacks.len() * 1_024 + self.threads.len() * 48
    }
}

/// Where a step of bytes led.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// To a configuration.
    At(ConfigId),
    /// Nowhere: the byte at this index is not allowed.
    Rejected(usize),
}

impl Configs {
    /// Those of a constraint whose sequences begin with these threads; full at `limit` bytes.
    pub fn new((sequence, threads): &(Sequence, Vec<Thread>), limit: usize) -> Self {
        let configs = Self {
            arena: Arena::default(),
            moves: ReadMap::default(),
            cold: Mutex::new(Learner {
                sequence: sequence.clone(),
                followers: Followers::default(),
                ids: HashMap::new(),
                parts: Parts::default(),
                mixtures: Mixtures::default(),
                from: Vec::new(),
                to: Vec::new(),
                memo: Memo::default(),
            }),
            bytes: AtomicUsize::new(0),
            full: AtomicBool::new(false),
            limit,
        };
        let start = configs.intern(&mut configs.learner(), threads);
        debug_assert_eq!(start, ConfigId::START);
        configs
    }

    /// Number of configurations.
    pub fn count(&self) -> u32 {
        self.arena.count()
    }

    /// Number of moves by a token that are known.
    pub fn moves(&self) -> u32 {
        self.moves.count()
    }

    /// Bytes of configurations, stacks, masks and moves, about.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes at which they are full.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether it is time to start afresh.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// What is known of a configuration.
    #[inline]
    pub fn get(&self, id: ConfigId) -> &Config {
        self.arena.get(id.0).expect("ids are given out with their configuration")
    }

    /// The mask of a configuration, if it is known.
    #[inline]
    pub fn known_mask(&self, id: ConfigId) -> Option<&Allowed> {
        self.get(id).allowed.get()
    }

    /// The configuration after a token, if it is known.
    #[inline]
    pub fn known_move(&self, from: ConfigId, token: TokenId) -> Option<ConfigId> {
        self.moves.get(move_key(from, token)).map(ConfigId)
    }

    /// Computes the mask of a configuration whose sequence has the output `text`; `None` if it is
    /// to be read from [`Configs::known_mask`], else a mask that holds for this output alone.
    ///
    /// # Errors
    /// [`crate::Kind::TooComplex`] if it cannot be computed within its budgets.
    #[cold]
    pub fn learn_mask(&self, basis: &Basis, id: ConfigId, text: &[u8]) -> Result<Option<Allowed>> {
        if self.known_mask(id).is_some() {
            return Ok(None);
        }
        let (allowed, depends) = self.collect(basis, id, text)?;
        if depends {
            return Ok(Some(allowed));
        }
        self.keep_mask(id, allowed);
        Ok(None)
    }

    /// The mask of a configuration without regard to budgets, and whether it depends on the output.
    ///
    /// # Errors
    /// As [`Configs::learn_mask`].
    pub fn collect(&self, basis: &Basis, id: ConfigId, text: &[u8]) -> Result<(Allowed, bool)> {
        let mut learner = self.learner();
        let threads = &self.get(id).threads;
        let Learner { sequence, followers, parts, mixtures, .. } = &mut *learner;
        let ground = (&basis.tables, &basis.program);
        let depends = collect::collect(ground, sequence, followers, threads, text, parts);
        // What holds for one output is written once.
        let mixtures = Some(mixtures).filter(|_| !depends);
        let allowed = parts.finish(&basis.tables, &basis.specials, mixtures);
        if let Err(error) = check(basis, sequence) {
            // What was remembered may be cut short, too.
            followers.clear();
            return Err(error);
        }
        Ok((allowed, depends))
    }

    /// Where `bytes` lead, which are the end of `text`, the output with them.
    ///
    /// # Errors
    /// [`crate::Kind::TooComplex`] if it cannot be computed within its budgets.
    pub fn advance(
        &self,
        basis: &Basis,
        from: ConfigId,
        text: &[u8],
        bytes: usize,
    ) -> Result<Arrival> {
        self.look(basis, from, text, bytes).map(|(arrival, _)| arrival)
    }

    /// The same, and whether it depends on more of the output than the configuration and `bytes`.
    ///
    /// # Errors
    /// As [`Configs::advance`].
    pub fn look(
        &self,
        basis: &Basis,
        from: ConfigId,
        text: &[u8],
        bytes: usize,
    ) -> Result<(Arrival, bool)> {
        let mut learner = self.learner();
        let threads = learner.begin_token(basis, self.get(from));
        learner.sequence.consulted = false;
        let rejected = learner.walk(basis, &threads, text, bytes);
        check(basis, &mut learner.sequence)?;
        let depends = learner.sequence.consulted;
        let Some(at) = rejected else {
            let threads = std::mem::take(&mut learner.from);
            let id = self.intern(&mut learner, &threads);
            learner.from = threads;
            return Ok((Arrival::At(id), depends));
        };
        Ok((Arrival::Rejected(at), depends))
    }

    /// Where `token` leads, whose bytes (if it has any) are the last `bytes` of `text`; `None` if
    /// it is not allowed.
    ///
    /// # Errors
    /// [`crate::Kind::TooComplex`] if it cannot be computed within its budgets.
    #[cold]
    pub fn learn_move(
        &self,
        basis: &Basis,
        from: ConfigId,
        token: TokenId,
        text: &[u8],
        bytes: usize,
    ) -> Result<Option<ConfigId>> {
        let mut learner = self.learner();
        let threads = learner.begin_token(basis, self.get(from));
        learner.sequence.consulted = false;
        if bytes == 0 || learner.walk(basis, &threads, text, bytes).is_some() {
            learner.from.clear();
        }
        learner.special(basis, &threads, token, text);
        check(basis, &mut learner.sequence)?;
        if learner.from.is_empty() {
            return Ok(None);
        }
        let threads = std::mem::take(&mut learner.from);
        let id = self.intern(&mut learner, &threads);
        learner.from = threads;
        if !learner.sequence.consulted {
            self.link(&learner, from, token, id);
        }
        Ok(Some(id))
    }

    /// The configuration of a finished output, after an end token.
    pub fn finish(&self, from: ConfigId, token: TokenId) -> ConfigId {
        let mut learner = self.learner();
        let id = self.intern(&mut learner, &[]);
        self.link(&learner, from, token, id);
        id
    }

    /// Steps over bytes that are forced, without keeping anything: calls `next` with the threads
    /// for the next byte until it has none.
    ///
    /// # Errors
    /// [`crate::Kind::TooComplex`] if a step cannot be computed within its budgets.
    pub fn explore(
        &self,
        basis: &Basis,
        from: ConfigId,
        text: &mut Vec<u8>,
        mut next: impl FnMut(&[Thread]) -> Option<u8>,
    ) -> Result<()> {
        let mut learner = self.learner();
        let Learner { sequence, from: threads, to, .. } = &mut *learner;
        threads.clear();
        threads.extend_from_slice(&self.get(from).threads);
        while let Some(byte) = next(threads) {
            text.push(byte);
            sequence.step(&basis.program, threads, byte, Output::Known(text), to);
            std::mem::swap(threads, to);
        }
        check(basis, sequence)
    }

    /// The same configuration as `id` of `other`, here.
    pub fn adopt(&self, other: &Configs, id: ConfigId) -> ConfigId {
        let theirs = other.learner();
        let mut ours = self.learner();
        let threads = ours.sequence.import(&theirs.sequence, &other.get(id).threads);
        self.intern(&mut ours, &threads)
    }

    /// Keeps a mask of a configuration.
    pub(crate) fn keep_mask(&self, id: ConfigId, allowed: Allowed) {
        let learner = self.learner();
        self.grow(&learner, allowed.bytes() + size_of::<Allowed>());
        let _ = self.get(id).allowed.set(allowed);
    }

    /// Gives `work` what configurations are computed with, and counts what it remembers.
    pub(crate) fn study<T>(
        &self,
        work: impl FnOnce(&mut Sequence, &mut Followers, &mut Memo) -> T,
    ) -> T {
        let mut learner = self.learner();
        let Learner { sequence, followers, memo, .. } = &mut *learner;
        let before = memo.bytes();
        let result = work(sequence, followers, memo);
        let after = memo.bytes();
        self.grow(&learner, after - before);
        result
    }

    fn learner(&self) -> MutexGuard<'_, Learner> {
        self.cold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn intern(&self, learner: &mut Learner, threads: &[Thread]) -> ConfigId {
        if let Some(&id) = learner.ids.get(threads) {
            return id;
        }
        let threads: Box<[Thread]> = threads.into();
        let config = Config {
            threads: threads.clone(),
            depth: learner.sequence.depth(&threads),
            allowed: OnceLock::new(),
            cost: OnceLock::new(),
            ample: OnceLock::new(),
        };
        let id = ConfigId(self.arena.push(config));
        self.grow(learner, 2 * size_of_val(&*threads) + size_of::<Config>());
        learner.ids.insert(threads, id);
        id
    }

    fn link(&self, learner: &Learner, from: ConfigId, token: TokenId, to: ConfigId) {
        let key = move_key(from, token);
        if self.moves.get(key).is_none() {
            self.moves.insert(key, to.0);
            // A slot has 16 bytes, and half of them are used.
            self.grow(learner, 32);
        }
    }

    fn grow(&self, learner: &Learner, bytes: usize) {
        let own = self.bytes.load(Ordering::Relaxed) + bytes;
        self.bytes.store(own, Ordering::Relaxed);
        let Learner { sequence, followers, mixtures, .. } = learner;
        if own + sequence.bytes() + followers.bytes() + mixtures.bytes() > self.limit {
            self.full.store(true, Ordering::Relaxed);
        }
    }
}

impl Learner {
    /// The threads of a configuration when a token begins. Where no token keeps to the budgets of
    /// parts, which the mask says, those give way.
    fn begin_token<'t>(&mut self, basis: &Basis, config: &'t Config) -> Cow<'t, [Thread]> {
        let stuck = || config.allowed.get().is_some_and(Allowed::is_empty);
        if basis.program.has_budgets() && stuck() {
            return self.sequence.lift(&config.threads);
        }
        self.sequence.tick(&basis.program, &config.threads)
    }

    /// Walks from `threads` by the last `bytes` of `text` into `self.from`; returns the index in
    /// those of the first byte that is not allowed.
    fn walk(
        &mut self,
        basis: &Basis,
        threads: &[Thread],
        text: &[u8],
        bytes: usize,
    ) -> Option<usize> {
        self.from.clear();
        self.from.extend_from_slice(threads);
        let start = text.len() - bytes;
        for at in start..text.len() {
            let output = Output::Known(&text[..=at]);
            self.sequence.step(&basis.program, &self.from, text[at], output, &mut self.to);
            std::mem::swap(&mut self.from, &mut self.to);
            if self.from.is_empty() {
                return Some(at - start);
            }
        }
        None
    }

    /// Adds the threads after a special token to `self.from`.
    fn special(&mut self, basis: &Basis, threads: &[Thread], token: TokenId, text: &[u8]) {
        for thread in threads.iter().filter(|thread| thread.state.is_live()) {
            let Some(special) = basis.program.states().get(thread.state).special() else {
                continue;
            };
            if basis.specials[special as usize].contains(token) {
                let output = Output::Known(text);
                let stack = thread.stack;
                self.sequence.resume(&basis.program, stack, None, output, &mut self.to);
                self.from.append(&mut self.to);
            }
        }
    }
}

fn move_key(from: ConfigId, token: TokenId) -> u64 {
    u64::from(from.0) << 32 | u64::from(token)
}

/// Whether everything since the last check was computed whole.
fn check(basis: &Basis, sequence: &mut Sequence) -> Result<()> {
    sequence.check()?;
    basis.program.states().trouble()
}
