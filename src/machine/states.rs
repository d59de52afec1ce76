//! The states of terminals: interned, with their byte transitions memoised.
//!
//! Two levels. The *universal* states (any string, strings bounded only in length, plain
//! numbers, punctuation with its white space, the formats) do not depend on a grammar: they live
//! in one [`States`] per vocabulary, shared by all constraints, and stay warm. All others belong
//! to the [`States`] of their constraint and die with it. The top bit of a [`StateId`] says which.
//!
//! **Counted strings.** `maxLength: 100000` must not be 100,000 states. A state keeps the bounds
//! only up to [`States::horizon`], one more than the longest token has bytes: within one token a
//! larger bound makes no difference. What exceeds it is a pair of numbers beside the state
//! ([`Excess`]); after each character the state is refilled from it ([`States::refill`]).
//! Example with horizon 3: `maxLength: 5` starts as the state *at most 3* with excess 2. One
//! character leads to *at most 2*; refilled: *at most 3*, excess 1.
//!
//! Invariants: equal contents have equal ids within a level; a content that the universal level
//! has is never stored locally; id 0 is [`StateId::DEAD`], which has no content; every stored
//! state is live. A memoised step is one load of a row of atomics, or, for a state that is only passed
//! through, of the one step that was asked for; everything else takes the level's lock.

mod counted;
mod start;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hashbrown::HashMap;

use super::concurrent::{Arena, ReadMap};
use super::number::NumberState;
use super::state::{self, Alphabet, ByteSet, Content, Spelling};
use crate::error::{Error, Result};
use crate::expr::{ExprId, Exprs, LiteralId};
use crate::grammar::{NumberSpec, Whitespace};
use crate::limits::Fuel;
use crate::regex::Format;
use counted::any_count;
pub use start::Punct;

/// A terminal state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(u32);

/// Marks ids of a constraint's own states.
const LOCAL: u32 = 1 << 31;

/// Fuel for one step of one state; compiling has its own.
pub(super) const STEP_FUEL: u64 = 5_000_000;

/// Fuel to find out whether a state is steady.
const STEADY_FUEL: u64 = 100_000;

impl StateId {
    /// No state: nothing can follow.
    pub const DEAD: StateId = StateId(0);

    /// Whether this is a live state.
    #[inline]
    pub fn is_live(self) -> bool {
        self.0 != 0
    }

    /// Whether it belongs to one constraint (else to the vocabulary).
    #[inline]
    pub fn is_local(self) -> bool {
        self.0 & LOCAL != 0
    }

    /// As a number, for keys of memo tables.
    #[inline]
    pub fn raw(self) -> u32 {
        self.0
    }
}

/// By how much the length bounds of a string exceed what its state knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Excess {
    /// Of the least length.
    pub min: u32,
    /// Of the greatest length.
    pub max: u32,
}

impl Excess {
    /// Nothing beyond the state.
    pub const NONE: Excess = Excess { min: 0, max: 0 };
}

/// Where a terminal starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// The first state; [`StateId::DEAD`] if the terminal matches nothing.
    pub state: StateId,
    /// Length bounds beyond it.
    pub excess: Excess,
}

impl Start {
    /// A start of nothing.
    pub const DEAD: Start = Start { state: StateId::DEAD, excess: Excess::NONE };
}

/// What else decides where a terminal starts.
#[derive(Debug, Clone, Copy)]
pub struct Context {
    /// Index of the special token, for [`Terminal::Special`](crate::grammar::Terminal::Special).
    pub special: u32,
    /// Most digits of a number.
    pub digits: u32,
    /// White space of the grammar.
    pub whitespace: Whitespace,
}

/// One interned state.
#[derive(Debug)]
pub struct State {
    content: Content,
    accepts: bool,
    continues: bool,
    /// Bounds of a counted string between two characters, for [`States::refill`].
    counted: Option<(u64, Option<u64>)>,
    /// See [`State::is_listed`].
    listed: bool,
    /// The first step that was asked for, before there is a row: the byte + 1, then the raw id. Most states are
    /// only passed through.
    first: AtomicU64,
    row: OnceLock<Row>,
    loops: OnceLock<ByteSet>,
    /// See [`States::for_tables`].
    twin: OnceLock<StateId>,
}

/// The successors of a state: raw id + 1, or 0 while unknown.
#[derive(Debug)]
struct Row {
    bytes: ByteSet,
    next: Next,
    /// How many of its cells were asked for one by one.
    asked: AtomicU32,
}

/// Most states (the letters of a key, say) go on by two or three bytes.
#[derive(Debug)]
enum Next {
    /// By position in the list of bytes.
    Few(Box<[(u8, AtomicU32)]>),
    /// By byte.
    Many(Box<[AtomicU32; 256]>),
}

/// Up to how many bytes a row is a list.
const FEW: usize = 8;

/// After so many cells one by one the rest of a row is filled run by run: its state is being walked, not only
/// passed through.
const WALKED: u32 = 4;

impl Row {
    fn new(bytes: ByteSet) -> Self {
        let next = if bytes.count() <= FEW {
            Next::Few(bytes.iter().map(|byte| (byte, AtomicU32::new(0))).collect())
        } else {
            Next::Many(Box::new([const { AtomicU32::new(0) }; 256]))
        };
        Self { bytes, next, asked: AtomicU32::new(0) }
    }

    /// The cell of a byte that may lead on.
    #[inline]
    fn cell(&self, byte: u8) -> Option<&AtomicU32> {
        match &self.next {
            Next::Few(list) => list.iter().find(|(b, _)| *b == byte).map(|(_, cell)| cell),
            Next::Many(cells) => self.bytes.contains(byte).then(|| &cells[usize::from(byte)]),
        }
    }
}

impl State {
    /// Whether the terminal may end here.
    #[inline]
    pub fn accepts(&self) -> bool {
        self.accepts
    }

    /// Whether bytes may follow.
    #[inline]
    pub fn continues(&self) -> bool {
        self.continues
    }

    /// The literal that completed, for a state that accepts.
    #[inline]
    pub fn literal(&self) -> Option<LiteralId> {
        match self.content {
            Content::Done(literal) => literal,
            _ => None,
        }
    }

    /// The index of the special token that must follow.
    #[inline]
    pub fn special(&self) -> Option<u32> {
        match self.content {
            Content::Special(index) => Some(index),
            _ => None,
        }
    }

    /// The state after `byte`, if that is the first that was asked for.
    #[inline]
    fn passed(&self, byte: u8) -> Option<StateId> {
        let first = self.first.load(Ordering::Acquire);
        (first >> 32 == u64::from(byte) + 1).then_some(StateId(first as u32))
    }

    /// Whether this is between two characters of a JSON string.
    pub fn is_between(&self) -> bool {
        matches!(self.content, Content::Between(Spelling::Json, _))
    }

    /// Whether a JSON string begins that is one of a list.
    pub fn is_listed(&self) -> bool {
        self.listed
    }

    /// Whether this is in a JSON string.
    pub fn is_string(&self) -> bool {
        !matches!(
            self.content,
            Content::Number { .. }
                | Content::Special(_)
                | Content::Done(_)
                | Content::Between(Spelling::Text, _)
                | Content::Utf8 { spelling: Spelling::Text, .. }
                | Content::Utf8To { spelling: Spelling::Text, .. }
        )
    }

    /// Whether this is between two characters of plain text.
    pub fn is_text(&self) -> bool {
        matches!(self.content, Content::Between(Spelling::Text, _))
    }

    /// What follows, for diagnostics.
    pub fn content(&self) -> &Content {
        &self.content
    }
}

/// The states of one level.
#[derive(Debug)]
pub struct States {
    base: Option<Arc<States>>,
    horizon: u32,
    arena: Arena<State>,
    /// `(lo, hi)` of counted strings to their universal state, for refilling without a lock.
    counted: ReadMap,
    cold: Mutex<Cold>,
    trouble: OnceLock<Error>,
}

#[derive(Debug, Default)]
struct Cold {
    alphabet: Alphabet,
    ids: HashMap<Content, StateId>,
    numbers: HashMap<NumberSpec, Option<u32>>,
    texts: HashMap<(Whitespace, Punct, u8), StateId>,
    formats: HashMap<Format, ExprId>,
    /// See [`States::covers`].
    covers: HashMap<(StateId, StateId), bool>,
}

impl States {
    /// The universal states of a vocabulary whose longest token has `longest` bytes.
    pub fn universal(longest: usize) -> Self {
        Self::new(None, longest as u32 + 1, Exprs::new())
    }

    /// The states of a constraint whose terminals use `exprs`.
    pub fn local(base: Arc<States>, exprs: Exprs) -> Self {
        let horizon = base.horizon;
        Self::new(Some(base), horizon, exprs)
    }

    fn new(base: Option<Arc<States>>, horizon: u32, exprs: Exprs) -> Self {
        let alphabet = Alphabet { exprs, numbers: Vec::new() };
        Self {
            base,
            horizon,
            arena: Arena::default(),
            counted: ReadMap::default(),
            cold: Mutex::new(Cold { alphabet, ..Cold::default() }),
            trouble: OnceLock::new(),
        }
    }

    /// For a state between two characters of a JSON string that allows the same characters again
    /// and again: the state of all strings of those characters ([`Exprs::steady`]).
    pub fn steady(&self, id: StateId) -> Option<StateId> {
        let level = self.level(id);
        let Content::Between(Spelling::Json, expr) = level.get(id).content else { return None };
        let mut cold = level.lock();
        let mut fuel = Fuel::new(STEADY_FUEL);
        // An error is met again by whoever steps; here it means that nothing is known.
        let class = cold.alphabet.exprs.steady(expr, &mut fuel).ok()??;
        Some(level.intern(&mut cold, Content::Between(Spelling::Json, class)))
    }

    /// All bytes by which a state goes another way than its [`States::steady`] one, and perhaps some more.
    pub fn departures(&self, id: StateId) -> ByteSet {
        let level = self.level(id);
        let Content::Between(Spelling::Json, expr) = level.get(id).content else {
            return ByteSet::ALL;
        };
        let mut cold = level.lock();
        let exprs = &mut cold.alphabet.exprs;
        let mut fuel = Fuel::new(STEADY_FUEL);
        let class = exprs.steady(expr, &mut fuel).ok().flatten();
        let runs = class.and_then(|class| Some((class, exprs.transitions(expr, &mut fuel).ok()?)));
        runs.map_or(ByteSet::ALL, |(class, runs)| state::departures(runs, class))
    }

    /// For a state between two characters: the one that says the same up to `length` characters and
    /// counts no further ([`Exprs::clamp`]).
    pub fn clamped(&self, id: StateId, length: u64) -> Option<StateId> {
        let level = self.level(id);
        let Content::Between(spelling, expr) = level.get(id).content else { return None };
        let mut cold = level.lock();
        let clamped = cold.alphabet.exprs.clamp(expr, length);
        let mut fuel = Fuel::new(STEADY_FUEL);
        let content = Content::Between(spelling, clamped);
        let content = state::settled(&mut cold.alphabet, content, &mut fuel).ok()?;
        Some(level.intern(&mut cold, content))
    }

    /// Whether all texts that may follow `smaller` may follow `larger`, for states between two characters;
    /// `false` if that is not seen easily.
    pub fn covers(&self, larger: StateId, smaller: StateId) -> bool {
        if larger == smaller || larger.is_local() != smaller.is_local() {
            return larger == smaller;
        }
        let level = self.level(larger);
        let content = |id| match level.get(id).content {
            Content::Between(spelling, expr) => Some((spelling, expr)),
            _ => None,
        };
        let (Some((a, more)), Some((b, less))) = (content(larger), content(smaller)) else {
            return false;
        };
        let mut cold = level.lock();
        if let Some(&known) = cold.covers.get(&(larger, smaller)) {
            return known;
        }
        let exprs = &mut cold.alphabet.exprs;
        let beyond = exprs.not(more);
        let beyond = exprs.and(&[less, beyond]);
        let mut fuel = Fuel::new(STEADY_FUEL);
        let covers = a == b && exprs.is_never(beyond, &mut fuel).unwrap_or(false);
        cold.covers.insert((larger, smaller), covers);
        covers
    }

    /// Whether a state is before the opening quote of a string.
    pub fn is_quote(&self, id: StateId) -> bool {
        matches!(self.get(id).content, Content::Quote(_))
    }

    /// The least and greatest number of characters left, for a universal state between two
    /// characters of a string bounded only in length.
    pub fn length_bounds(&self, id: StateId) -> Option<(u64, Option<u64>)> {
        self.get(id).counted.filter(|_| !id.is_local())
    }

    /// Number of states of this level.
    pub fn count(&self) -> u32 {
        self.arena.count()
    }

    /// One more than the longest token has bytes.
    pub fn horizon(&self) -> u32 {
        self.horizon
    }

    /// The first error that a step met. Steps themselves only say [`StateId::DEAD`] then, so
    /// that the warm path carries no errors; whoever steps asks afterwards.
    pub fn trouble(&self) -> Result<()> {
        let base = self.base.as_ref().and_then(|base| base.trouble.get());
        match self.trouble.get().or(base) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// The state behind an id that this level or its base gave out.
    #[inline]
    pub fn get(&self, id: StateId) -> &State {
        let index = (id.0 & !LOCAL) - 1;
        self.level(id).arena.get(index).expect("ids are given out with their state")
    }

    /// The state after `byte`; [`StateId::DEAD`] if there is none.
    #[inline]
    pub fn step(&self, id: StateId, byte: u8) -> StateId {
        let state = self.get(id);
        if let Some(row) = state.row.get() {
            match row.cell(byte).map(|cell| cell.load(Ordering::Acquire)) {
                Some(0) => {}
                Some(known) => return StateId(known - 1),
                None => return StateId::DEAD,
            }
        } else if !state.continues {
            return StateId::DEAD;
        } else if let Some(known) = state.passed(byte) {
            return known;
        }
        self.step_cold(id, byte)
    }

    /// The bytes that may lead on from a state: all live ones, and perhaps some dead ones.
    pub fn bytes(&self, id: StateId) -> ByteSet {
        if let Some(row) = self.get(id).row.get() {
            return row.bytes;
        }
        match &self.base {
            Some(base) if !id.is_local() => base.bytes(id),
            _ => self.row(&mut self.lock(), self.get(id)).map_or(ByteSet::default(), |r| r.bytes),
        }
    }

    /// A state that does the same as this one within any one token: the digits left of a number
    /// matter only near their end, so nearly all its states share the tables of a few.
    #[inline]
    pub fn for_tables(&self, id: StateId) -> StateId {
        match &self.get(id).content {
            Content::Number { machine, state } => {
                *self.get(id).twin.get_or_init(|| self.level(id).number_within(*machine, state))
            }
            _ => id,
        }
    }

    fn number_within(&self, machine: u32, state: &NumberState) -> StateId {
        let mut cold = self.lock();
        let state = cold.alphabet.numbers[machine as usize].within(state, self.horizon);
        self.intern(&mut cold, Content::Number { machine, state })
    }

    /// The level that a state belongs to.
    pub(super) fn level(&self, id: StateId) -> &States {
        match &self.base {
            Some(base) if !id.is_local() => base,
            _ => self,
        }
    }

    /// The bytes that lead from a state to itself.
    pub fn loops(&self, id: StateId) -> &ByteSet {
        self.get(id).loops.get_or_init(|| {
            let mut loops = ByteSet::default();
            for byte in self.bytes(id).iter() {
                if self.step(id, byte) == id {
                    loops.add(byte, byte);
                }
            }
            loops
        })
    }

    /// The row of a state of this level, made if it is not there; `None` after an error.
    fn row<'a>(&self, cold: &mut Cold, state: &'a State) -> Option<&'a Row> {
        if let Some(row) = state.row.get() {
            return Some(row);
        }
        let mut fuel = Fuel::new(STEP_FUEL);
        match state::candidates(&mut cold.alphabet, &state.content, &mut fuel) {
            Ok(bytes) => Some(state.row.get_or_init(|| Row::new(bytes))),
            Err(error) => {
                let _ = self.trouble.set(error);
                None
            }
        }
    }

    /// Fills the cells of a wide state between two characters run by run: most of its bytes lead
    /// to a few states. What is left is filled when it is asked for.
    fn fill(&self, cold: &mut Cold, cells: &[AtomicU32; 256], spelling: Spelling, expr: ExprId) {
        let mut fuel = Fuel::new(STEP_FUEL);
        let runs = cold.alphabet.exprs.transitions(expr, &mut fuel).map(<[_]>::to_vec);
        let Ok(runs) = runs else { return };
        for run in runs {
            let mut known = [None; 4];
            for (byte, left) in state::whole_leads(&run, spelling) {
                let cell = &cells[usize::from(byte)];
                let id = *known[usize::from(left)].get_or_insert_with(|| {
                    let content = match left {
                        0 => Content::Between(spelling, run.target),
                        left => Content::Utf8To { spelling, target: run.target, left },
                    };
                    let content = state::settled(&mut cold.alphabet, content, &mut fuel);
                    content.map_or(StateId::DEAD, |content| self.intern(cold, content))
                });
                if id.is_live() {
                    cell.store(id.0 + 1, Ordering::Release);
                }
            }
        }
    }

    #[cold]
    fn step_cold(&self, id: StateId, byte: u8) -> StateId {
        match &self.base {
            Some(base) if !id.is_local() => return base.step_cold(id, byte),
            _ => {}
        }
        let state = self.get(id);
        let mut cold = self.lock();
        if state.row.get().is_none() && state.first.load(Ordering::Relaxed) == 0 {
            let next = self.derive(&mut cold, state, byte);
            if next.is_live() {
                let first = (u64::from(byte) + 1) << 32 | u64::from(next.0);
                state.first.store(first, Ordering::Release);
            }
            return next;
        }
        let Some(row) = self.row(&mut cold, state) else { return StateId::DEAD };
        let Some(cell) = row.cell(byte) else { return StateId::DEAD };
        if row.asked.fetch_add(1, Ordering::Relaxed) == WALKED
            && let (Next::Many(cells), &Content::Between(spelling, expr)) =
                (&row.next, &state.content)
        {
            self.fill(&mut cold, cells, spelling, expr);
        }
        let next = self.derive(&mut cold, state, byte);
        cell.store(next.0 + 1, Ordering::Release);
        next
    }

    /// The state after `byte`; [`StateId::DEAD`] if there is none, or after an error.
    fn derive(&self, cold: &mut Cold, state: &State, byte: u8) -> StateId {
        let mut fuel = Fuel::new(STEP_FUEL);
        match state::step(&mut cold.alphabet, &state.content, byte, &mut fuel) {
            Ok(Some(content)) => self.intern(cold, content),
            Ok(None) => StateId::DEAD,
            Err(error) => {
                let _ = self.trouble.set(error);
                StateId::DEAD
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Cold> {
        // A panic elsewhere cannot leave the tables half-written: pushes are the last step.
        self.cold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on the alphabet of this level.
    pub(super) fn with_alphabet<T>(&self, work: impl FnOnce(&mut Alphabet) -> T) -> T {
        work(&mut self.lock().alphabet)
    }

    /// Runs `use_exprs` on the expressions of this level.
    pub fn with_exprs<T>(&self, use_exprs: impl FnOnce(&mut Exprs) -> T) -> T {
        use_exprs(&mut self.lock().alphabet.exprs)
    }

    /// Runs `use_exprs` on the expressions of the level of a state.
    pub fn level_exprs<T>(&self, id: StateId, use_exprs: impl FnOnce(&Exprs) -> T) -> T {
        use_exprs(&self.level(id).lock().alphabet.exprs)
    }

    /// The id of a content, shared with the universal level where it is universal.
    fn intern(&self, cold: &mut Cold, content: Content) -> StateId {
        if let Some(&id) = cold.ids.get(&content) {
            return id;
        }
        let id = match &self.base {
            Some(base) => match self.universal_content(&cold.alphabet.exprs, &content) {
                Some((min, max, content)) => base.intern_universal(min, max, content),
                None => self.push(cold, &content, LOCAL),
            },
            None => self.push(cold, &content, 0),
        };
        cold.ids.insert(content, id);
        id
    }

    fn push(&self, cold: &Cold, content: &Content, level: u32) -> StateId {
        let counted = match content {
            Content::Between(Spelling::Json, expr) => any_count(&cold.alphabet.exprs, *expr),
            _ => None,
        };
        let index = self.arena.push(State {
            content: content.clone(),
            accepts: content.accepts(&cold.alphabet),
            continues: content.continues(),
            counted,
            listed: matches!(content, Content::Quote(expr) if cold.alphabet.exprs.is_literals(*expr)),
            first: AtomicU64::new(0),
            row: OnceLock::new(),
            loops: OnceLock::new(),
            twin: OnceLock::new(),
        });
        StateId((index + 1) | level)
    }
}
