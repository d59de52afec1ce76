//! Tables of strings about which the end alone decides.
//!
//! *Contains `foo`*, *any string but these names*, *at least 3 letters*: such states are wide, and
//! differ only in where the string may be closed. They are [steady](States::steady): what may
//! follow inside the string is what may follow in *any string of these characters*, always. So
//! the tokens that do not close the string are shared with that one, and only the few hundred
//! places inside tokens at which a quote closes a string are asked one by one.
//!
//! Worked example: *any string but `id`*, after the quote, and the tokens `x`, `id`, `x"`, `id"`,
//! `id",`. The tokens `x` and `id` are shared with *any string*. Walking to the quotes, `x"` is
//! complete and `id"` is dead. So the table is that of *any string* without `id"`, and the place
//! `id"` is no exit.
//!
//! Cost: one step per byte on the way to a quote inside tokens (some 2,000), 10 µs. The table
//! itself is a short list: what is accepted, or what is missing, whichever is less.

use super::set::TokenSet;
use super::tables::{BoundaryId, Shared, Tables, TokenTable};
use super::ways::Ways;
use crate::machine::{StateId, States};
use crate::vocab::{TokenId, Trie};

/// From how many live bytes on this way pays.
const WIDE: usize = 20;

/// The ways to the quotes inside tokens.
pub fn quote_ways(trie: &Trie) -> Ways {
    Ways::new(trie, |byte, _| byte == b'"')
}

/// The nodes at which a token completes the string that `state` is in, ascending.
fn closing(tables: &Tables, states: &States, state: StateId) -> Vec<u32> {
    let mut found = Vec::new();
    let step = |state, byte| Some(states.step(state, byte)).filter(|next| next.is_live());
    tables.quote_ways().walk(state, step, |node, state| {
        if states.get(state).accepts() {
            found.push(node);
        }
    });
    found
}

/// The table of `state` over the root, if it is steady and this way pays.
pub fn table(
    level: &Tables,
    caller: &Tables,
    states: &States,
    state: StateId,
) -> Option<TokenTable> {
    if states.bytes(state).count() < WIDE {
        return None;
    }
    let all = states.steady(state).filter(|&all| all != state)?;
    let whole = caller.table(states, BoundaryId::ROOT, all);
    let closed = closing(caller, states, state);
    let (accepted, missing) = split(caller, states, all, &closed);
    let (inside, shared) = if accepted.len() < missing.len() {
        let table = caller.table(states, BoundaryId::BODY, all);
        (accepted, Shared { table, without: Box::default() })
    } else {
        (Vec::new(), Shared { table: whole, without: missing.into_boxed_slice() })
    };
    let trie = caller.vocabulary().trie();
    let goes_on = |&node: &u32| trie.subtree_end(node) > node + 1;
    let exits: Vec<u32> = closed.into_iter().filter(goes_on).collect();
    let larger = caller.get(whole).exits.first().map(|&(_, exit)| exit);
    let exits = if exits.is_empty() {
        Box::default()
    } else {
        [(None, level.intern_near(exits, larger))].into()
    };
    let inside = TokenSet::new(inside, caller.vocabulary().len());
    Some(TokenTable { inside, shared: Some(shared), exits })
}

/// Of the tokens that close a string of the state `all`: those that end at the nodes `closed`, and
/// the others; ascending.
fn split(
    tables: &Tables,
    states: &States,
    all: StateId,
    closed: &[u32],
) -> (Vec<TokenId>, Vec<TokenId>) {
    let trie = tables.vocabulary().trie();
    let (mut accepted, mut missing) = (Vec::new(), Vec::new());
    for node in closing(tables, states, all) {
        let side = if closed.binary_search(&node).is_ok() { &mut accepted } else { &mut missing };
        side.extend_from_slice(trie.tokens(node));
    }
    accepted.sort_unstable();
    missing.sort_unstable();
    (accepted, missing)
}

/// The tokens that stay inside a string of the steady state `all` and do not close it.
pub fn body(tables: &Tables, states: &States, all: StateId) -> TokenTable {
    let whole = tables.get(tables.table(states, BoundaryId::ROOT, all));
    let (_, closing) = split(tables, states, all, &[]);
    let inside = whole.inside.without(&closing);
    TokenTable { inside, shared: None, exits: Box::default() }
}
