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
//! The walk follows both states at once and stops where they meet (states are interned, so meeting is
//! having equal ids): after `x`, what is left of *any string but `id`* is *any string*. Of the bytes at the
//! root only those are asked by which the two can part ([`States::departures`]): `i`, the quote and the backslash.
//!
//! Cost: one step per byte on the way to a quote inside tokens, as far as the states differ; 1 to
//! 10 µs. The table itself is a short list: what is accepted, or what is missing, whichever is less.

use super::set::TokenSet;
use super::tables::{BoundaryId, Shared, TableId, Tables, TokenTable};
use super::ways::Ways;
use crate::machine::state::ByteSet;
use crate::machine::{StateId, States};
use crate::vocab::{TokenId, Trie};

/// From how many live bytes on this way pays.
const WIDE: usize = 20;

/// Up to how many missing tokens a difference is short enough.
const FEW: usize = 64;

/// The ways to the quotes inside tokens.
pub fn quote_ways(trie: &Trie) -> Ways {
    Ways::new(trie, |byte, _| byte == b'"')
}

/// Of the nodes at which a token completes a string of the steady state `all`: those at which it does not
/// complete one of `state`, which allows less; ascending.
fn unclosed(tables: &Tables, states: &States, state: StateId, all: StateId) -> Vec<u32> {
    let mut found = Vec::new();
    let step = |state: StateId, byte| {
        if state.is_live() { states.step(state, byte) } else { state }
    };
    // By most bytes, of which there are most at the root, they do not part.
    let parting = if state.is_live() { states.departures(state) } else { ByteSet::ALL };
    let both = |(ours, theirs, parting): (_, _, ByteSet), byte| {
        let next = parting.contains(byte).then(|| (step(ours, byte), step(theirs, byte)));
        next.filter(|next| next.0 != next.1).map(|(ours, theirs)| (ours, theirs, ByteSet::ALL))
    };
    let accepts = |state: StateId| state.is_live() && states.get(state).accepts();
    tables.quote_ways().walk((state, all, parting), both, |node, (ours, theirs, _)| {
        if accepts(theirs) && !accepts(ours) {
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
    let unclosed = unclosed(caller, states, state, all);
    let (inside, shared) = share(caller, states, (whole, all), &unclosed);
    let exits = caller.get(whole).exits.first();
    let exits = exits.and_then(|&(_, exit)| remainder(level, (caller, states), exit, &unclosed));
    let exits = exits.map(|exit| (None, exit)).into_iter().collect();
    let inside = TokenSet::new(inside, caller.vocabulary().len());
    Some(TokenTable { inside, shared: Some(shared), exits, at_exits: None })
}

/// What is inside but for the tokens that end at the nodes `unclosed`, as a short list and a difference from
/// another table: from that of all strings, or from that of the tokens that do not close them.
fn share(
    tables: &Tables,
    states: &States,
    (whole, all): (TableId, StateId),
    unclosed: &[u32],
) -> (Vec<TokenId>, Shared) {
    let trie = tables.vocabulary().trie();
    let mut missing: Vec<TokenId> =
        unclosed.iter().flat_map(|&node| trie.tokens(node)).copied().collect();
    missing.sort_unstable();
    let whole = Shared { table: whole, without: missing.into_boxed_slice() };
    if whole.without.len() <= FEW {
        return (Vec::new(), whole);
    }
    let body = tables.table(states, BoundaryId::BODY, all);
    let mut accepted = tables.get(whole.table).inside.difference(&tables.get(body).inside);
    accepted.retain(|id| whole.without.binary_search(id).is_err());
    match accepted.len() < whole.without.len() {
        true => (accepted, Shared { table: body, without: Box::default() }),
        false => (Vec::new(), whole),
    }
}

/// What is left of a boundary without some nodes (ascending).
fn remainder(
    level: &Tables,
    (caller, states): (&Tables, &States),
    boundary: BoundaryId,
    without: &[u32],
) -> Option<BoundaryId> {
    let trie = caller.vocabulary().trie();
    let gone = |node: &u32| without.binary_search(node).is_ok();
    // What has no token below is in no boundary.
    if without.iter().all(|&node| trie.subtree_end(node) == node + 1) {
        return Some(boundary);
    }
    let left: Vec<u32> =
        caller.nodes(states, &boundary).iter().copied().filter(|node| !gone(node)).collect();
    (!left.is_empty()).then(|| level.intern_near(left, Some(boundary)))
}

/// The tokens that stay inside a string of the steady state `all` and do not close it.
pub fn body(tables: &Tables, states: &States, all: StateId) -> TokenTable {
    let whole = tables.get(tables.table(states, BoundaryId::ROOT, all));
    let closing = unclosed(tables, states, StateId::DEAD, all);
    let trie = tables.vocabulary().trie();
    let mut closing: Vec<TokenId> =
        closing.iter().flat_map(|&node| trie.tokens(node)).copied().collect();
    closing.sort_unstable();
    let inside = whole.inside.without(&closing);
    TokenTable { inside, shared: None, exits: Box::default(), at_exits: None }
}
