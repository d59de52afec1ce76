//! The ends of strings bounded only in length, by how many characters tokens have.
//!
//! One walk per vocabulary counts the characters; the ends of a bounded string are then made of copied bitmasks and
//! filtered lists. By hand: with *2 to 5 characters left* the tokens of 2 to 5 characters end in the body, those of
//! one character where one is still missing.

use super::Ends;
use crate::machine::{StateId, States};
use crate::mask::{Tables, TokenSet, any_string, cumulative, walk_string};
use crate::vocab::TokenId;

/// Making a set of tokens out of others takes about as long as so many places of a trie.
const SETS: u64 = 64;

/// What tokens do to *any string*, by their number of characters.
#[derive(Debug)]
pub struct Characters {
    /// Bit masks of the tokens that end between two characters and have at most 0, 1, ... of them.
    whole: Vec<Box<[u32]>>,
    /// Tokens that end inside a character: with how many begun, and in which state of *any string*.
    partial: Vec<(StateId, u32, TokenId)>,
    /// Tokens that end with the closing quote, with how many characters before it.
    closed: Vec<(u32, TokenId)>,
    /// *Any string*, between two characters.
    body: StateId,
    done: StateId,
}

impl Characters {
    /// Walks the vocabulary beside *any string*.
    pub fn new(tables: &Tables, states: &States) -> Self {
        let trie = tables.vocabulary().trie();
        let body = any_string(states);
        let (mut whole, mut partial, mut closed) = (Vec::new(), Vec::new(), Vec::new());
        walk_string(tables, states, body, |node, state, characters| {
            let tokens = trie.tokens(node).iter().copied();
            if states.get(state).accepts() {
                closed.extend(tokens.map(|token| (characters, token)));
            } else if state == body {
                whole.extend(tokens.map(|token| (characters, token)));
            } else {
                partial.extend(tokens.map(|token| (state, characters, token)));
            }
        });
        partial.sort_unstable();
        let done = states.step(body, b'"');
        let whole = cumulative(whole, tables.vocabulary().len());
        Self { whole, partial, closed, body, done }
    }

    /// The ends of a string between two characters of which `min` to `max` are left.
    pub fn ends(
        &self,
        tables: &Tables,
        states: &States,
        state: StateId,
        (min, max): (u64, Option<u64>),
    ) -> Ends {
        let len = tables.vocabulary().len();
        let longest = self.whole.len() as u64 - 1;
        let most = max.unwrap_or(longest).min(longest);
        let fits = |n: u32| u64::from(n) >= min && max.is_none_or(|max| u64::from(n) <= max);
        let mut groups = Vec::new();
        // Once the least length is reached, all states cost a quote.
        if min <= most {
            groups.push((self.body, self.exactly(min, most)));
        }
        let mut short = state;
        for characters in 1..min.min(most + 1) {
            short = states.step(short, b' ');
            if !short.is_live() {
                break;
            }
            groups.push((short, self.exactly(characters, characters)));
        }
        for group in self.partial.chunk_by(|a, b| a.0 == b.0) {
            let tokens = group.iter().filter(|&&(_, n, _)| fits(n)).map(|&(.., id)| id);
            groups.push((group[0].0, TokenSet::new(tokens.collect(), len)));
        }
        let closed = self.closed.iter().filter(|&&(n, _)| fits(n)).map(|&(_, id)| id);
        groups.push((self.done, TokenSet::new(closed.collect(), len)));
        groups.retain(|(state, tokens)| state.is_live() && !tokens.is_empty());
        let work = groups.len() as u64 * SETS;
        Ends::new(groups, work)
    }

    /// The tokens of `from` to `to` whole characters.
    fn exactly(&self, from: u64, to: u64) -> TokenSet {
        let Some(upto) = self.whole.get(to as usize) else {
            return TokenSet::Sparse(Box::default());
        };
        let mut words = upto.clone();
        if let Some(fewer) = from.checked_sub(1).and_then(|n| self.whole.get(n as usize)) {
            for (word, fewer) in words.iter_mut().zip(fewer) {
                *word &= !fewer;
            }
        }
        TokenSet::from_words(words)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::error::Result;
    use crate::expr::{ExprId, Exprs};
    use crate::vocab::{Token, Vocabulary};

    /// Where a token ends.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    enum At {
        /// Between two characters, with so many missing.
        Missing(u64),
        Inside,
        Closed,
    }

    /// Tokens with how many characters they begin.
    const TOKENS: [(&[u8], u64, At); 14] = [
        (b"x", 1, At::Missing(0)),
        (b"\xc3\xa9", 1, At::Missing(0)),
        (b"\\n", 1, At::Missing(0)),
        (b"xy", 2, At::Missing(0)),
        (b"xyzxy", 5, At::Missing(0)),
        (b"\xc3", 1, At::Inside),
        (b"\\", 1, At::Inside),
        (b"x\\u00", 2, At::Inside),
        (b"xy\xc3", 3, At::Inside),
        (b"\"", 0, At::Closed),
        (b"x\"", 1, At::Closed),
        (b"xyz\"", 3, At::Closed),
        (b"\n", 0, At::Inside),
        (b"x\"}", 0, At::Inside),
    ];

    /// What the module says, for a string of `min` to `max` characters.
    fn expected(min: u64, max: Option<u64>) -> BTreeMap<&'static [u8], At> {
        // The last two are no parts of a string.
        let tokens = TOKENS[..12].iter().filter(|&&(_, n, _)| max.is_none_or(|max| n <= max));
        let ends = tokens.map(|&(bytes, n, at)| match at {
            At::Missing(_) => (bytes, At::Missing(min.saturating_sub(n))),
            at => (bytes, at),
        });
        ends.filter(|&(bytes, at)| {
            let n = TOKENS.iter().find(|token| token.0 == bytes).map_or(0, |token| token.1);
            matches!(at, At::Missing(_)) || n >= min
        })
        .collect()
    }

    #[test]
    fn tokens_end_where_their_characters_say() -> Result<()> {
        let mut tokens: Vec<Token> =
            TOKENS.iter().map(|token| Token::Text(token.0.into())).collect();
        tokens.push(Token::Special("<end>".into()));
        let vocabulary = Vocabulary::new(tokens, vec![TOKENS.len() as TokenId])?;
        let universal = Arc::new(States::universal(vocabulary.trie().max_len()));
        let tables = Tables::universal(vocabulary, &universal);
        let characters = Characters::new(&tables, &universal);
        let mut exprs = Exprs::new();
        // No bound beyond the longest token plays a part.
        for min in 0..7 {
            for max in (min.max(1)..7).map(Some).chain((min > 0).then_some(None)) {
                let text = exprs.repeat(ExprId::ANY_CHAR, min, max);
                let states = States::local(Arc::clone(&universal), exprs.clone());
                let start = states.step(states.start_string(text)?.state, b'"');
                assert_eq!(states.length_bounds(start), Some((min, max)));
                let mut found = BTreeMap::new();
                let ends = characters.ends(&tables, &states, start, (min, max));
                for (state, tokens) in ends.iter() {
                    let at = match states.length_bounds(*state) {
                        Some((least, _)) => At::Missing(least),
                        None if *state == characters.body => At::Missing(0),
                        None if states.get(*state).accepts() => At::Closed,
                        None => At::Inside,
                    };
                    for id in tokens.ids() {
                        assert!(found.insert(TOKENS[id as usize].0, at).is_none());
                    }
                }
                assert_eq!(found, expected(min, max), "{min} to {max:?}");
            }
        }
        Ok(())
    }
}
