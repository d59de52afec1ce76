//! Looking ahead: masks along drafts, and learning before it is needed.
//!
//! A draft is what someone guesses will come: a sequence of tokens, or a tree of them, that a model verifies in one
//! pass. The pass needs the masks of all its positions. They are found by walking the matcher through the draft
//! and back, which changes nothing: configurations are values.
//!
//! Worked example, `{"enum": ["yes", "no"]}` over single bytes, after `"`: of the tree `y`, `e` after `y`, `n`, `x` after
//! `n` the rows are the masks after `"`, `"y`, `"ye` and `"n`, and a row of zeros, since `x` is not allowed after `n`.

use std::collections::VecDeque;

use hashbrown::HashSet;

use super::Matcher;
use crate::constraint::Constraint;
use crate::error::{Error, Kind, Result};
use crate::vocab::TokenId;

/// Tokens of one configuration that are followed before the next one has its turn.
const TURN: usize = 64;

/// A guessed token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drafted {
    /// The token.
    pub token: TokenId,
    /// The index of the one before it in the draft; `None` right after the output so far.
    pub after: Option<usize>,
}

impl Drafted {
    /// A draft of one token after the other.
    pub fn sequence(tokens: &[TokenId]) -> Vec<Drafted> {
        let drafted = |(i, &token): (usize, &TokenId)| Drafted { token, after: i.checked_sub(1) };
        tokens.iter().enumerate().map(drafted).collect()
    }
}

/// What [`Constraint::precompute`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Precomputed {
    /// Configurations whose masks are known now.
    pub configurations: u64,
    /// Whether those are all that can be reached, with all moves between them.
    pub complete: bool,
}

impl Matcher {
    /// The masks along a draft, one row of `Vocabulary::len().div_ceil(32)` words after the other: first
    /// that of the output so far, then that after each token of the draft, zeros where it is not
    /// allowed. Says of each whether it is. The matcher stays where it is.
    ///
    /// ```
    /// # use constrain::{Constraint, matcher::Drafted, schema, vocab::{Token, Vocabulary}};
    /// # let mut tokens: Vec<Token> = (0..=255u8).map(|byte| Token::Text([byte].into())).collect();
    /// # tokens.push(Token::Special("<end>".into()));
    /// # let vocabulary = Vocabulary::new(tokens, vec![256])?;
    /// # let grammar = schema::compile(r#"{"enum": ["yes", "no"]}"#, &schema::Options::default())?;
    /// let mut matcher = Constraint::new(&grammar, &vocabulary)?.matcher();
    /// let draft = Drafted::sequence(&[b'"', b'y', b'x'].map(u32::from));
    /// let row = vocabulary.len().div_ceil(32);
    /// let mut words = vec![0; 4 * row];
    /// assert_eq!(matcher.fill_draft_bitmasks(&draft, &mut words)?, [true, true, false]);
    /// assert_eq!(words[2 * row + 3].count_ones(), 1); // `e` after `"y`
    /// assert!(matcher.is_empty());
    /// # Ok::<(), constrain::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Kind::BadArgument`] if the buffer is too short, or a token comes after one that is not before
    /// it in the list; as [`Matcher::mask`].
    pub fn fill_draft_bitmasks(
        &mut self,
        draft: &[Drafted],
        words: &mut [u32],
    ) -> Result<Vec<bool>> {
        let row = self.constraint().vocabulary().len().div_ceil(32).max(1);
        let needed = row.saturating_mul(draft.len() + 1);
        let Some(words) = words.get_mut(..needed) else {
            let message = format!("the masks need {needed} words, the buffer has {}", words.len());
            return Err(Error::new(Kind::BadArgument, message));
        };
        let later = |(i, drafted): &(usize, &Drafted)| drafted.after.is_some_and(|at| at >= *i);
        if draft.iter().enumerate().any(|drafted| later(&drafted)) {
            let message = "a token of a draft comes after one that is not before it in the list";
            return Err(Error::new(Kind::BadArgument, message));
        }
        let start = self.len();
        let result = self.along(draft, words, row);
        self.rollback(self.len() - start)?;
        result
    }

    fn along(&mut self, draft: &[Drafted], words: &mut [u32], row: usize) -> Result<Vec<bool>> {
        let mut rows = words.chunks_exact_mut(row);
        if let Some(first) = rows.next() {
            self.fill_bitmask(first)?;
        }
        let mut allowed = Vec::with_capacity(draft.len());
        // The tokens of the draft that the matcher has taken, by index.
        let mut path: Vec<usize> = Vec::new();
        for (drafted, words) in draft.iter().zip(rows) {
            words.fill(0);
            let before = drafted.after.is_none_or(|at| allowed[at]);
            let taken = before && {
                self.go_to(draft, drafted.after, &mut path)?;
                self.take(drafted.token)?
            };
            if taken {
                path.push(allowed.len());
                self.fill_bitmask(words)?;
            }
            allowed.push(taken);
        }
        Ok(allowed)
    }

    /// Goes to the token `at` of a draft, all before which are allowed.
    fn go_to(&mut self, draft: &[Drafted], at: Option<usize>, path: &mut Vec<usize>) -> Result<()> {
        let mut way = Vec::new();
        let mut here = at;
        while let Some(index) = here {
            // The path ascends, so what is on it is found.
            if path.binary_search(&index).is_ok() {
                break;
            }
            way.push(index);
            here = draft[index].after;
        }
        let kept = here.map_or(0, |index| path.partition_point(|&on| on <= index));
        self.rollback(path.len() - kept)?;
        path.truncate(kept);
        for &index in way.iter().rev() {
            self.accept(draft[index].token)?;
            path.push(index);
        }
        Ok(())
    }

    /// Takes a token if it is allowed.
    fn take(&mut self, token: TokenId) -> Result<bool> {
        match self.accept(token) {
            Ok(()) => Ok(true),
            Err(error) if *error.kind() == Kind::Rejected => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Constraint {
    /// Learns masks and moves before they are asked for, those that are reached by few tokens first, and
    /// of the tokens of a configuration those with low ids, which are the common ones. Computes at most
    /// `budget` masks and moves, and stops when half the room for what is learnt is taken
    /// ([`crate::Limits::cache_bytes`]).
    ///
    /// A mask that was never met takes microseconds; this is for those who want none of them while they
    /// serve.
    ///
    /// # Errors
    /// As [`Matcher::mask`].
    pub fn precompute(&self, budget: u64) -> Result<Precomputed> {
        let mut left = budget;
        let mut seen = HashSet::new();
        let mut todo = VecDeque::from([(self.matcher(), 0)]);
        while let Some((mut matcher, from)) = todo.pop_front() {
            let new = seen.insert(matcher.here());
            let tokens: Vec<TokenId> = matcher.mask()?.iter().collect();
            left = left.saturating_sub(new.into());
            for &token in tokens.iter().skip(from).take(TURN) {
                let full = matcher.configs.bytes() > matcher.configs.limit() / 2;
                if left == 0 || full {
                    return Ok(Precomputed { configurations: seen.len() as u64, complete: false });
                }
                left -= 1;
                matcher.accept(token)?;
                if !matcher.config().is_finished() && !seen.contains(&matcher.here()) {
                    seen.insert(matcher.here());
                    todo.push_back((matcher.fork(), 0));
                    matcher.mask()?;
                    left = left.saturating_sub(1);
                }
                matcher.rollback(1)?;
            }
            if tokens.len() > from + TURN {
                todo.push_back((matcher, from + TURN));
            }
        }
        Ok(Precomputed { configurations: seen.len() as u64, complete: true })
    }
}
