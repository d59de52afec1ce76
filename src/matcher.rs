//! The state of one sequence under a constraint.
//!
//! A [`Matcher`] is a list of configurations, one per accepted step, over an arena of stacks. So
//! rollback is truncation, a fork is a copy, and any order of accept, rollback, fork and reset
//! gives the masks of a fresh replay: configurations are values that nothing changes.

use std::fmt;

use crate::constraint::Constraint;
use crate::error::{Error, Kind, Place, Result, quote};
use crate::machine::{Output, Sequence, Thread};
use crate::mask::collect::{self, Allowed, Followers};
use crate::vocab::TokenId;

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

/// One accepted step: where the configuration and the output after it end.
#[derive(Debug, Clone, Copy)]
struct Step {
    threads: u32,
    text: u32,
}

/// One sequence under a constraint.
///
/// The output is finished when an end token was accepted; until then [`Matcher::mask`] is never
/// empty, and every token in it can be completed to a document that satisfies the constraint.
#[derive(Clone)]
pub struct Matcher {
    constraint: Constraint,
    sequence: Sequence,
    followers: Followers,
    /// The configurations after each step, one after the other.
    threads: Vec<Thread>,
    steps: Vec<Step>,
    text: Vec<u8>,
    scratch: [Vec<Thread>; 2],
    allowed: Allowed,
    ids: Vec<TokenId>,
    words: Vec<u32>,
}

/// Longest run of forced bytes that is reported at once.
const FORCED: usize = 4_096;

impl Matcher {
    pub(crate) fn new(constraint: Constraint) -> Self {
        let (sequence, threads) = constraint.start().clone();
        let start = Step { threads: threads.len() as u32, text: 0 };
        Self {
            constraint,
            sequence,
            followers: Followers::default(),
            threads,
            steps: vec![start],
            text: Vec::new(),
            scratch: [Vec::new(), Vec::new()],
            allowed: Allowed::default(),
            ids: Vec::new(),
            words: Vec::new(),
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

    /// The configuration now.
    fn current(&self) -> &[Thread] {
        let end = self.threads.len();
        let start = match self.steps.len() {
            0 | 1 => 0,
            n => self.steps[n - 2].threads as usize,
        };
        &self.threads[start.min(end)..]
    }

    /// The tokens allowed next: end tokens exactly where the document may end, special tokens
    /// exactly where a grammar names them.
    ///
    /// # Errors
    /// [`Kind::TooComplex`] if a state cannot be computed within its fuel.
    pub fn mask(&mut self) -> Result<Mask<'_>> {
        self.collect()?;
        let (tables, specials) = (self.constraint.tables(), self.constraint.specials());
        if collect::list(tables, specials, &self.allowed, &mut self.ids) {
            return Ok(Mask::Sparse(&self.ids));
        }
        self.words.resize(tables.vocabulary().len().div_ceil(32), 0);
        collect::fill(tables, specials, &self.allowed, &mut self.words);
        Ok(Mask::Dense(&self.words))
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
        self.collect()?;
        let (tables, specials) = (self.constraint.tables(), self.constraint.specials());
        collect::fill(tables, specials, &self.allowed, words);
        Ok(())
    }

    fn collect(&mut self) -> Result<()> {
        let end = self.threads.len();
        let start = end - self.current().len();
        collect::collect(
            self.constraint.tables(),
            self.constraint.program(),
            &mut self.sequence,
            &mut self.followers,
            &self.threads[start..],
            &self.text,
            &mut self.allowed,
        );
        if self.is_finished() {
            self.allowed.end = true;
        }
        self.sequence.check()?;
        self.constraint.program().states().trouble()
    }

    /// Advances by one token, end tokens included.
    ///
    /// # Errors
    /// [`Kind::Rejected`] if the token is not allowed; the state is unchanged then.
    pub fn accept(&mut self, token: TokenId) -> Result<()> {
        let vocabulary = self.constraint.vocabulary().clone();
        if self.is_finished() {
            let message = "the output is finished, no token may follow";
            return Err(Error::new(Kind::Rejected, message).at(Place::Offset(self.text.len())));
        }
        if vocabulary.is_end(token) && self.can_stop() {
            self.push(&[]);
            return Ok(());
        }
        let before = self.text.len();
        let mut out = match vocabulary.bytes(token) {
            Some(bytes) => self.advance(bytes).unwrap_or_default(),
            None => Vec::new(),
        };
        out.extend(self.specials_after(token));
        let whole = self.sequence.check();
        if out.is_empty() || whole.is_err() {
            self.text.truncate(before);
            whole?;
            self.constraint.program().states().trouble()?;
            return Err(self.rejected(token).at(Place::Offset(before)));
        }
        self.push(&out);
        self.scratch[0] = out;
        Ok(())
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

    /// Advances by bytes, as one step for [`Matcher::rollback`].
    ///
    /// # Errors
    /// [`Kind::Rejected`] with the offset of the first byte that is not allowed (in the output);
    /// the state is unchanged then.
    pub fn accept_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let before = self.text.len();
        let after = self.advance(bytes);
        if let Err(error) = self.sequence.check() {
            self.text.truncate(before);
            return Err(error);
        }
        match after {
            Ok(out) => {
                self.push(&out);
                self.scratch[0] = out;
                Ok(())
            }
            Err(at) => {
                self.text.truncate(before);
                self.constraint.program().states().trouble()?;
                let byte = bytes[at - before];
                let message = format!("byte {} is not allowed here", show_byte(byte));
                Err(Error::new(Kind::Rejected, message).at(Place::Offset(at)))
            }
        }
    }

    /// The configuration after `bytes`, which are appended to the text; else the offset of the
    /// first byte that is not allowed (the text then ends with it).
    fn advance(&mut self, bytes: &[u8]) -> Result<Vec<Thread>, usize> {
        let [mut from, mut to] = std::mem::take(&mut self.scratch);
        from.clear();
        from.extend_from_slice(self.current());
        for &byte in bytes {
            self.text.push(byte);
            let output = Output::Known(&self.text);
            self.sequence.step(self.constraint.program(), &from, byte, output, &mut to);
            std::mem::swap(&mut from, &mut to);
            if from.is_empty() {
                break;
            }
        }
        self.scratch[1] = to;
        if from.is_empty() {
            return Err(self.text.len().saturating_sub(1));
        }
        Ok(from)
    }

    /// The threads after a special token.
    fn specials_after(&mut self, token: TokenId) -> Vec<Thread> {
        let (mut out, mut next) = (Vec::new(), Vec::new());
        for thread in self.current().to_vec() {
            let program = self.constraint.program();
            if !thread.state.is_live() {
                continue;
            }
            let Some(special) = program.states().get(thread.state).special() else { continue };
            if self.constraint.specials()[special as usize].contains(token) {
                let output = Output::Known(&self.text);
                self.sequence.resume(program, thread.stack, None, output, &mut next);
                out.append(&mut next);
            }
        }
        out
    }

    fn push(&mut self, threads: &[Thread]) {
        self.threads.extend_from_slice(threads);
        let (threads, text) = (self.threads.len() as u32, self.text.len() as u32);
        self.steps.push(Step { threads, text });
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
        self.steps.truncate(self.steps.len() - n);
        let last = self.steps[self.steps.len() - 1];
        self.threads.truncate(last.threads as usize);
        self.text.truncate(last.text as usize);
        Ok(())
    }

    /// A copy that goes its own way.
    pub fn fork(&self) -> Matcher {
        self.clone()
    }

    /// Back to the start.
    pub fn reset(&mut self) {
        *self = Self::new(self.constraint.clone());
    }

    /// Whether an end token was accepted.
    fn is_finished(&self) -> bool {
        self.current().is_empty()
    }

    /// Whether an end token was accepted, or nothing but an end token may follow.
    pub fn is_complete(&self) -> bool {
        self.current().iter().all(|thread| *thread == Thread::END)
    }

    /// Whether the output so far is a whole document.
    pub fn can_stop(&self) -> bool {
        self.is_finished() || self.current().contains(&Thread::END)
    }

    /// Steps accepted so far.
    pub fn len(&self) -> usize {
        self.steps.len() - 1
    }

    /// Whether no step was accepted yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The longest run of bytes that must come next, not counting that the characters of a JSON
    /// string could also be spelled as escapes. Empty if there is a choice, or at the end.
    pub fn forced_bytes(&mut self) -> Vec<u8> {
        let mut forced = Vec::new();
        let mut text = self.text.clone();
        let (mut from, mut to) = (self.current().to_vec(), Vec::new());
        while forced.len() < FORCED {
            let Some(byte) = self.only_byte(&from) else { break };
            text.push(byte);
            let output = Output::Known(&text);
            self.sequence.step(self.constraint.program(), &from, byte, output, &mut to);
            std::mem::swap(&mut from, &mut to);
            if from.is_empty() || self.sequence.check().is_err() {
                break;
            }
            forced.push(byte);
        }
        forced
    }

    /// The one byte that can follow a configuration.
    fn only_byte(&self, threads: &[Thread]) -> Option<u8> {
        let states = self.constraint.program().states();
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
}

impl Constraint {
    /// A matcher at the start of the output.
    pub fn matcher(&self) -> Matcher {
        Matcher::new(self.clone())
    }
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher")
            .field("steps", &self.len())
            .field("bytes", &self.text.len())
            .field("threads", &self.current().len())
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
