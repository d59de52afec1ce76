//! The state of one sequence under a constraint.
//!
//! A [`Matcher`] is a list of configurations, one id per accepted step. So rollback is
//! truncation, a fork is a copy, and any order of accept, rollback, fork and reset gives the masks
//! of a fresh replay: configurations are values that nothing changes.
//!
//! What configurations allow and where tokens lead is learnt once per constraint
//! ([`Configs`]); the matcher reads it. When the constraint starts afresh with empty tables, the
//! matcher takes its configuration along and forgets those before; a rollback to one of them
//! replays the output.

mod ahead;
mod budget;
mod stops;
mod tally;

use std::fmt;
use std::sync::Arc;

use crate::constraint::Constraint;
use crate::error::{Error, Kind, Place, Result, quote};
use crate::machine::{States, Thread};
use crate::mask::configs::Config;
use crate::mask::{Allowed, Arrival, ConfigId, Configs};
use crate::vocab::TokenId;
use budget::Budget;
use tally::Tally;

pub use ahead::{Drafted, Precomputed};
pub use stops::Inside;

/// The set of allowed tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mask<'a> {
    /// The allowed ids, ascending, without duplicates.
    Sparse(&'a [TokenId]),
    /// One bit per id, least significant bit first, `Vocabulary::len().div_ceil(32)` words.
    Dense(&'a [u32]),
}

impl Mask<'_> {
    /// Whether a token is allowed.
    pub fn contains(&self, token: TokenId) -> bool {
        match self {
            Mask::Sparse(ids) => ids.binary_search(&token).is_ok(),
            Mask::Dense(words) => {
                words.get(token as usize / 32).is_some_and(|word| word >> (token % 32) & 1 == 1)
            }
        }
    }

    /// Number of allowed tokens.
    pub fn count(&self) -> usize {
        match self {
            Mask::Sparse(ids) => ids.len(),
            Mask::Dense(words) => words.iter().map(|word| word.count_ones() as usize).sum(),
        }
    }

    /// Whether no token is allowed.
    pub fn is_empty(&self) -> bool {
        match self {
            Mask::Sparse(ids) => ids.is_empty(),
            Mask::Dense(words) => words.iter().all(|&word| word == 0),
        }
    }

    /// The allowed ids, ascending.
    pub fn iter(&self) -> impl Iterator<Item = TokenId> + '_ {
        let (ids, words): (&[TokenId], &[u32]) = match self {
            Mask::Sparse(ids) => (ids, &[]),
            Mask::Dense(words) => (&[], words),
        };
        let bits = words.iter().enumerate().flat_map(|(i, &word)| {
            let mut word = word;
            std::iter::from_fn(move || {
                (word != 0).then(|| {
                    let bit = word.trailing_zeros();
                    word &= word - 1;
                    i as TokenId * 32 + bit
                })
            })
        });
        ids.iter().copied().chain(bits)
    }
}

/// One accepted step.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// Where it led.
    config: ConfigId,
    /// Where the output ends after it.
    text: u32,
    /// The token, unless it was a step of bytes.
    token: Option<TokenId>,
}

/// One sequence under a constraint.
///
/// The output is finished when an end token was accepted; until then [`Matcher::mask`] is never
/// empty, and every token in it can be completed to a document that satisfies the constraint.
#[derive(Clone)]
pub struct Matcher {
    constraint: Constraint,
    configs: Arc<Configs>,
    /// The start, and the steps after it.
    steps: Vec<Step>,
    /// Steps before this one have configurations of tables that are gone.
    first: usize,
    text: Vec<u8>,
    /// A mask that holds for this output alone.
    own: Option<Allowed>,
    words: Vec<u32>,
    budget: Option<Budget>,
    /// What was found without computing it.
    tally: Tally,
}

/// Longest run of forced bytes that is reported at once.
const FORCED: usize = 4_096;

impl Matcher {
    pub(crate) fn new(constraint: Constraint) -> Self {
        let configs = constraint.configs();
        let tally = Tally::new(constraint.clone());
        let start = Step { config: ConfigId::START, text: 0, token: None };
        Self {
            constraint,
            configs,
            steps: vec![start],
            first: 0,
            text: Vec::new(),
            own: None,
            words: Vec::new(),
            budget: None,
            tally,
        }
    }

    /// The constraint.
    pub fn constraint(&self) -> &Constraint {
        &self.constraint
    }

    /// The bytes of the output so far.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Where it is.
    #[inline]
    fn here(&self) -> ConfigId {
        self.steps[self.steps.len() - 1].config
    }

    /// The configuration where it is.
    fn config(&self) -> &Config {
        self.configs.get(self.here())
    }

    /// Before something is learnt: goes on with fresh tables if the present ones are full.
    fn renew(&mut self) {
        if self.configs.is_full() {
            let fresh = self.constraint.configs_after(&self.configs);
            let config = fresh.adopt(&self.configs, self.here());
            self.first = self.steps.len() - 1;
            self.steps[self.first].config = config;
            self.configs = fresh;
        }
    }

    /// The tokens allowed next: end tokens exactly where the document may end, special tokens
    /// exactly where a grammar names them.
    ///
    /// # Errors
    /// [`Kind::TooComplex`] if a state cannot be computed within its fuel.
    pub fn mask(&mut self) -> Result<Mask<'_>> {
        self.learn_mask()?;
        let allowed = self.allowed();
        // Not `self.words`: what is allowed borrows the other fields.
        if allowed.list().is_none() {
            let mut words = std::mem::take(&mut self.words);
            let basis = self.constraint.basis();
            words.resize(basis.tables.vocabulary().len().div_ceil(32), 0);
            self.allowed().fill(&basis.tables, &basis.specials, &mut words);
            self.words = words;
            return Ok(Mask::Dense(&self.words));
        }
        Ok(Mask::Sparse(self.allowed().list().unwrap_or_default()))
    }

    /// The same as [`Matcher::mask`], as one bit per id, least significant bit first, in the
    /// caller's buffer. Words beyond the vocabulary are zeroed.
    ///
    /// # Errors
    /// [`Kind::BadArgument`] if the buffer has fewer than `len.div_ceil(32)` words; as
    /// [`Matcher::mask`].
    pub fn fill_bitmask(&mut self, words: &mut [u32]) -> Result<()> {
        let needed = self.constraint.vocabulary().len().div_ceil(32);
        if words.len() < needed {
            let message = format!("a mask needs {needed} words, the buffer has {}", words.len());
            return Err(Error::new(Kind::BadArgument, message));
        }
        self.learn_mask()?;
        let basis = self.constraint.basis();
        self.allowed().fill(&basis.tables, &basis.specials, words);
        Ok(())
    }

    /// Makes sure that [`Matcher::allowed`] has an answer.
    #[inline]
    fn learn_mask(&mut self) -> Result<()> {
        self.own = None;
        if self.budget.is_some() {
            self.own = self.narrowed()?;
            if self.own.is_some() {
                return Ok(());
            }
        }
        if self.configs.known_mask(self.here()).is_some() {
            self.tally.masks += 1;
        } else {
            self.tally.missed_mask();
            self.renew();
            let basis = self.constraint.basis();
            self.own = match basis.program.has_budgets() {
                true => self.judge().learn_mask(self.here(), &self.text)?,
                false => self.configs.learn_mask(basis, self.here(), &self.text)?,
            };
        }
        if self.constraint.basis().program.has_budgets() && self.allowed().is_empty() {
            self.own = Some(self.without_parts()?);
        }
        Ok(())
    }

    fn allowed(&self) -> &Allowed {
        let known = || self.configs.known_mask(self.here());
        self.own.as_ref().or_else(known).expect("learnt just before")
    }

    /// Advances by one token, end tokens included.
    ///
    /// # Errors
    /// [`Kind::Rejected`] if the token is not allowed, or not with what is left of the budget; the state is unchanged then.
    pub fn accept(&mut self, token: TokenId) -> Result<()> {
        self.learn_parts()?;
        if let Some(next) = self.configs.known_move(self.here(), token) {
            self.tally.moves += 1;
            if self.budget.is_some() || self.constraint.basis().program.has_budgets() {
                self.afford(Some(token), Ok(Some(next)))?;
            }
            let bytes = self.constraint.vocabulary().bytes(token).unwrap_or_default();
            self.text.extend_from_slice(bytes);
            self.push(next, Some(token));
            return Ok(());
        }
        self.accept_cold(token)
    }

    #[cold]
    fn accept_cold(&mut self, token: TokenId) -> Result<()> {
        self.tally.missed_move();
        self.renew();
        let before = self.text.len();
        if self.config().is_finished() {
            let message = "the output is finished, no token may follow";
            return Err(Error::new(Kind::Rejected, message).at(Place::Offset(before)));
        }
        let vocabulary = self.constraint.vocabulary();
        if vocabulary.is_end(token) && self.can_stop() {
            let end = self.configs.finish(self.here(), token);
            self.afford(Some(token), Ok(Some(end)))?;
            self.push(end, Some(token));
            return Ok(());
        }
        let bytes = vocabulary.bytes(token).unwrap_or_default();
        self.text.extend_from_slice(bytes);
        let (basis, here) = (self.constraint.basis(), self.here());
        let next = self.configs.learn_move(basis, here, token, &self.text, bytes.len());
        let next = self.afford(Some(token), next);
        if let Ok(Some(next)) = next {
            self.push(next, Some(token));
            return Ok(());
        }
        self.text.truncate(before);
        next?;
        Err(self.rejected(token).at(Place::Offset(before)))
    }

    #[cold]
    fn rejected(&self, token: TokenId) -> Error {
        let vocabulary = self.constraint.vocabulary();
        let what = match vocabulary.bytes(token) {
            Some(bytes) => quote(&String::from_utf8_lossy(bytes)),
            None if vocabulary.is_end(token) => "that ends the output".to_owned(),
            None => "without text".to_owned(),
        };
        Error::new(Kind::Rejected, format!("token {token} {what} is not allowed here"))
    }

    /// Advances by bytes, as one step for [`Matcher::rollback`]; of a budget it takes one token.
    ///
    /// # Errors
    /// [`Kind::Rejected`] with the offset of the first byte that is not allowed (in the output);
    /// the state is unchanged then.
    pub fn accept_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.renew();
        self.learn_parts()?;
        let before = self.text.len();
        self.text.extend_from_slice(bytes);
        let basis = self.constraint.basis();
        let next = match self.configs.advance(basis, self.here(), &self.text, bytes.len()) {
            Ok(Arrival::At(config)) => self.afford(None, Ok(Some(config))),
            Ok(Arrival::Rejected(at)) => {
                let message = format!("byte {} is not allowed here", show_byte(bytes[at]));
                Err(Error::new(Kind::Rejected, message).at(Place::Offset(before + at)))
            }
            Err(error) => Err(error),
        };
        match next {
            Ok(Some(config)) => self.push(config, None),
            Ok(None) => {}
            Err(error) => {
                self.text.truncate(before);
                return Err(error);
            }
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, config: ConfigId, token: Option<TokenId>) {
        if let Some(budget) = &mut self.budget {
            budget.follow(self.steps.len() - 1, token);
        }
        self.steps.push(Step { config, text: self.text.len() as u32, token });
    }

    /// Undoes the last `n` accepted steps.
    ///
    /// # Errors
    /// [`Kind::BadArgument`] if fewer were accepted; the state is unchanged then.
    pub fn rollback(&mut self, n: usize) -> Result<()> {
        if n > self.len() {
            let message = format!("cannot roll back {n} steps, only {} were accepted", self.len());
            return Err(Error::new(Kind::BadArgument, message));
        }
        let last = self.steps.len() - 1 - n;
        if last < self.first {
            let replayed = self.replay(last)?;
            *self = replayed;
            return Ok(());
        }
        self.steps.truncate(last + 1);
        if let Some(budget) = &mut self.budget {
            budget.cut(last);
        }
        self.text.truncate(self.steps[last].text as usize);
        Ok(())
    }

    /// The first `n` steps anew, on the present tables.
    #[cold]
    fn replay(&self, n: usize) -> Result<Matcher> {
        let mut fresh = self.at_start();
        for pair in self.steps[..=n].windows(2) {
            match pair[1].token {
                Some(token) => fresh.accept(token)?,
                None => {
                    let (start, end) = (pair[0].text as usize, pair[1].text as usize);
                    fresh.accept_bytes(&self.text[start..end])?;
                }
            }
        }
        Ok(fresh)
    }

    /// A copy that goes its own way.
    pub fn fork(&self) -> Matcher {
        self.clone()
    }

    /// Back to the start.
    pub fn reset(&mut self) {
        *self = self.at_start();
    }

    /// A matcher with the same constraint and budget, at the start.
    fn at_start(&self) -> Matcher {
        let budget = self.budget.as_ref().map(Budget::fresh);
        Self { budget, ..Self::new(self.constraint.clone()) }
    }

    /// Whether an end token was accepted, or nothing but an end token may follow.
    pub fn is_complete(&self) -> bool {
        self.config().is_complete()
    }

    /// Whether the output so far is a whole document.
    pub fn can_stop(&self) -> bool {
        self.config().can_stop()
    }

    /// Steps accepted so far.
    pub fn len(&self) -> usize {
        self.steps.len() - 1
    }

    /// Whether no step was accepted yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that may come next, ascending. Where it depends on earlier output whether one may (the
    /// last byte of an item that must be unique), [`Matcher::accept_bytes`] knows.
    pub(crate) fn next_bytes(&self) -> Vec<u8> {
        let states = self.constraint.basis().program.states();
        let mut live = [false; 256];
        for thread in self.config().threads() {
            if *thread == Thread::END || states.get(thread.state).special().is_some() {
                continue;
            }
            for byte in states.bytes(thread.state).iter() {
                live[usize::from(byte)] |= states.step(thread.state, byte).is_live();
            }
        }
        (0..=255).filter(|&byte: &u8| live[usize::from(byte)]).collect()
    }

    /// The longest run of bytes that must come next, not counting that the characters of a JSON
    /// string could also be spelled as escapes. Empty if there is a choice, or at the end.
    pub fn forced_bytes(&mut self) -> Vec<u8> {
        self.renew();
        let (states, before) = (self.constraint.basis().program.states(), self.text.len());
        let mut text = self.text.clone();
        let mut left = FORCED;
        let explored =
            self.configs.explore(self.constraint.basis(), self.here(), &mut text, |threads| {
                left = left.checked_sub(1)?;
                only_byte(states, threads)
            });
        // What cannot be computed is not known to be forced.
        if explored.is_err() {
            return Vec::new();
        }
        text.split_off(before)
    }
}

/// The one byte that can follow a configuration.
fn only_byte(states: &States, threads: &[Thread]) -> Option<u8> {
    let mut only = None;
    for thread in threads {
        if *thread == Thread::END || states.get(thread.state).special().is_some() {
            return None;
        }
        let bytes = states.bytes(thread.state);
        let live = bytes.iter().filter(|&byte| states.step(thread.state, byte).is_live());
        let mut live: Vec<u8> = live.collect();
        if live.len() == 2 && states.get(thread.state).is_between() {
            live.retain(|&byte| byte != b'\\');
        }
        match (live[..].first(), only) {
            (Some(&byte), None) if live.len() == 1 => only = Some(byte),
            (Some(&byte), Some(same)) if live.len() == 1 && byte == same => {}
            (None, _) => {}
            _ => return None,
        }
    }
    only
}

impl Constraint {
    /// A matcher at the start of the output.
    pub fn matcher(&self) -> Matcher {
        Matcher::new(self.clone())
    }

    /// The masks of many matchers of this constraint, one row of `Vocabulary::len().div_ceil(32)` words
    /// after the other in the caller's buffer, computed by up to `threads` threads. What was met
    /// before is read without a lock, so threads do not wait for one another.
    ///
    /// ```
    /// # use constrain::{Constraint, schema, vocab::{Token, Vocabulary}};
    /// # let mut tokens: Vec<Token> = (0..=255u8).map(|byte| Token::Text([byte].into())).collect();
    /// # tokens.push(Token::Special("<end>".into()));
    /// # let vocabulary = Vocabulary::new(tokens, vec![256])?;
    /// # let grammar = schema::compile(r#"{"enum": ["yes", "no"]}"#, &schema::Options::default())?;
    /// let constraint = Constraint::new(&grammar, &vocabulary)?;
    /// let mut matchers = vec![constraint.matcher(); 3];
    /// matchers[1].accept(u32::from(b'"'))?;
    /// let mut words = vec![0; 3 * 257usize.div_ceil(32)];
    /// constraint.fill_bitmasks(&mut matchers, &mut words, 2)?;
    /// # Ok::<(), constrain::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Kind::BadArgument`] if the buffer is too short or a matcher is of another constraint; as
    /// [`Matcher::mask`].
    pub fn fill_bitmasks(
        &self,
        matchers: &mut [Matcher],
        words: &mut [u32],
        threads: usize,
    ) -> Result<()> {
        let row = self.vocabulary().len().div_ceil(32).max(1);
        if words.len() / row < matchers.len() {
            let needed = matchers.len().saturating_mul(row);
            let message = format!("the masks need {needed} words, the buffer has {}", words.len());
            return Err(Error::new(Kind::BadArgument, message));
        }
        if matchers.iter().any(|matcher| !matcher.constraint.is_same(self)) {
            let message = "one of the matchers belongs to another constraint";
            return Err(Error::new(Kind::BadArgument, message));
        }
        let share = matchers.len().div_ceil(threads.max(1)).max(1);
        let fill = |matchers: &mut [Matcher], words: &mut [u32]| {
            let mut rows = matchers.iter_mut().zip(words.chunks_mut(row));
            rows.try_for_each(|(matcher, words)| matcher.fill_bitmask(words))
        };
        if matchers.len() <= share {
            return fill(matchers, words);
        }
        std::thread::scope(|scope| {
            let shares = matchers.chunks_mut(share).zip(words.chunks_mut(share * row));
            let threads: Vec<_> = shares
                .map(|(matchers, words)| scope.spawn(move || fill(matchers, words)))
                .collect();
            threads.into_iter().try_for_each(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher")
            .field("steps", &self.len())
            .field("bytes", &self.text.len())
            .field("threads", &self.config().threads().len())
            .field("can_stop", &self.can_stop())
            .finish_non_exhaustive()
    }
}

/// A byte for an error message.
fn show_byte(byte: u8) -> String {
    match byte {
        0x20..=0x7E => quote(&char::from(byte).to_string()),
        _ => format!("0x{byte:02X}"),
    }
}
