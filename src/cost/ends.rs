//! In which states the tokens of a table end.
//!
//! A token table says which tokens stay inside a terminal; under a budget it matters in which state
//! they end, since the states cost differently. By hand: over the vocabulary `a`, `ab`, `b"`, a string
//! of at least two characters, none read yet, groups its tokens as *one more*: `a`; *none*: `ab`.
//!
//! A group is a state and the tokens that end in it, or in states that cost the same or less.
//! Groups are made by walking the trie, once per state and boundary. Over a large vocabulary
//! strings bounded only in length are not walked: what a token does to them depends on how many characters it has, which is
//! found once per vocabulary. They leave out tokens that end inside a character before the least
//! length is reached (half a dozen tokens of a thousand): under a budget those are not offered.

use std::sync::{Arc, Mutex, OnceLock};

use hashbrown::HashMap;

use super::lock;
use crate::expr::ExprId;
use crate::machine::{StateId, States};
use crate::mask::{BoundaryId, Tables, TokenSet};
use crate::vocab::TokenId;

/// Groups of tokens, by the state in which they end.
#[derive(Debug)]
pub struct Ends {
    groups: Box<[(StateId, TokenSet)]>,
    /// Places of the trie that it took to find them, whoever did that first.
    pub work: u64,
}

impl Ends {
    /// The groups.
    pub fn iter(&self) -> impl Iterator<Item = &(StateId, TokenSet)> {
        self.groups.iter()
    }
}

/// Subtrees of fewer nodes are not worth asking whether they are taken whole.
const WORTH: u32 = 8;

/// Making a set of tokens out of others takes about as long as so many places of a trie.
const SETS: u64 = 64;

/// Tries of at most so many nodes are walked, whatever the state.
const WALKED: usize = 1 << 14;

/// The ends of one level: of a vocabulary (universal states) or of a constraint.
#[derive(Debug, Default)]
pub struct EndTables {
    base: Option<Arc<EndTables>>,
    known: Mutex<HashMap<(BoundaryId, StateId), Arc<Ends>>>,
    characters: OnceLock<Characters>,
}

impl EndTables {
    /// Of a constraint, over those of its vocabulary.
    pub fn local(base: Arc<EndTables>) -> Self {
        Self { base: Some(base), ..Self::default() }
    }

    /// Where the tokens behind `boundary` end that stay in the terminal from `state`.
    pub fn get(
        &self,
        tables: &Tables,
        states: &States,
        boundary: BoundaryId,
        state: StateId,
    ) -> Arc<Ends> {
        let local = boundary.is_local() || state.is_local();
        let level = self.base.as_deref().filter(|_| !local).unwrap_or(self);
        if let Some(ends) = lock(&level.known).get(&(boundary, state)) {
            return Arc::clone(ends);
        }
        let wide = boundary == BoundaryId::ROOT && tables.vocabulary().trie().len() > WALKED;
        let ends = match states.length_bounds(state).filter(|_| wide) {
            Some(bounds) => {
                let shared = self.base.as_deref().unwrap_or(self);
                let characters = shared.characters.get_or_init(|| Characters::new(tables, states));
                characters.ends(tables, states, state, bounds)
            }
            None => walk(tables, states, boundary, state),
        };
        let ends = Arc::new(ends);
        lock(&level.known).insert((boundary, state), Arc::clone(&ends));
        ends
    }
}

/// Walks the tokens behind a boundary beside a state.
fn walk(tables: &Tables, states: &States, boundary: BoundaryId, state: StateId) -> Ends {
    let trie = tables.vocabulary().trie();
    let mut groups: HashMap<StateId, Vec<TokenId>> = HashMap::new();
    let mut work = 0;
    let mut todo: Vec<(u32, StateId)> =
        tables.nodes(states, &boundary).iter().map(|&node| (node, state)).collect();
    while let Some((node, state)) = todo.pop() {
        let live = states.bytes(state);
        let (bytes, children) = trie.children(node);
        for (&byte, &child) in bytes.iter().zip(children) {
            if !live.contains(byte) {
                continue;
            }
            work += 1;
            let next = states.step(state, byte);
            if !next.is_live() {
                continue;
            }
            let below = trie.subtree_end(child) - child - 1;
            let continues = states.get(next).continues();
            if continues
                && below >= WORTH
                && !states.get(next).accepts()
                && states.loops(next).contains_all(trie.bytes_below(child))
            {
                groups.entry(next).or_default().extend_from_slice(trie.subtree_tokens(child));
                continue;
            }
            let tokens = trie.tokens(child);
            if !tokens.is_empty() {
                groups.entry(next).or_default().extend_from_slice(tokens);
            }
            if below > 0 && continues {
                todo.push((child, next));
            }
        }
    }
    let len = tables.vocabulary().len();
    let groups =
        groups.into_iter().map(|(state, tokens)| (state, TokenSet::new(tokens, len))).collect();
    Ends { groups, work }
}

/// What tokens do to *any string*, by their number of characters.
#[derive(Debug)]
struct Characters {
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
    fn new(tables: &Tables, states: &States) -> Self {
        let trie = tables.vocabulary().trie();
        let quote = states.start_string(ExprId::ANY).map_or(StateId::DEAD, |start| start.state);
        let body = if quote.is_live() { states.step(quote, b'"') } else { StateId::DEAD };
        let (mut whole, mut partial, mut closed) = (Vec::new(), Vec::new(), Vec::new());
        let mut todo = vec![(0, body, 0)];
        while let Some((node, state, characters)) = todo.pop() {
            let (bytes, children) = trie.children(node);
            for (&byte, &child) in bytes.iter().zip(children) {
                let next = states.step(state, byte);
                if !next.is_live() {
                    continue;
                }
                let tokens = trie.tokens(child).iter().copied();
                if states.get(next).accepts() {
                    closed.extend(tokens.map(|token| (characters, token)));
                    continue;
                }
                let begun = characters + u32::from(state == body);
                match next == body {
                    true => whole.extend(tokens.map(|token| (begun, token))),
                    false => partial.extend(tokens.map(|token| (next, begun, token))),
                }
                todo.push((child, next, begun));
            }
        }
        partial.sort_unstable();
        let done = states.step(body, b'"');
        let whole = cumulative(whole, tables.vocabulary().len());
        Self { whole, partial, closed, body, done }
    }

    /// The ends of a string between two characters of which `min` to `max` are left.
    fn ends(
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
        Ends { groups: groups.into(), work }
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

/// Bit masks of the tokens with at most 0, 1, 2, ... characters.
fn cumulative(mut tokens: Vec<(u32, TokenId)>, len: usize) -> Vec<Box<[u32]>> {
    tokens.sort_unstable();
    let most = tokens.last().map_or(0, |&(n, _)| n);
    let mut words = vec![0u32; len.div_ceil(32)].into_boxed_slice();
    let mut rest = &tokens[..];
    let masks = (0..=most).map(|n| {
        let here = rest.partition_point(|&(other, _)| other <= n);
        for &(_, id) in &rest[..here] {
            words[id as usize / 32] |= 1 << (id % 32);
        }
        rest = &rest[here..];
        words.clone()
    });
    masks.collect()
}
