//! Tables of states that count further than tokens are long.
//!
//! Of `[a-z]{0,200}` and `[a-z]{0,199}` no short token can tell which it is in. So short tokens
//! have one table for all such states: that of the state with its counts cut down
//! ([`States::clamped`]). The few tokens that are longer are asked one by one.
//!
//! Worked example, where short means two bytes: `[a-z]{0,5}` becomes `[a-z]*`. The tokens `a`,
//! `ab` and `a"` are shared with its table; of the long ones, `abcd` is inside both, and
//! `abcdef` is not inside ours.
//!
//! Invariant: the cut state allows more, never less. Cost: a step per byte of the tokens that are
//! long, of which most die at the first.

use super::tables::{BoundaryId, Shared, Tables, TokenTable};
use super::ways::Ways;
use crate::machine::{StateId, States};
use crate::vocab::{TokenId, Trie};

/// Tokens of up to this many bytes are short. (Nearly all longer ones are runs of one character.)
const SHORT: u16 = 32;

/// From how many live bytes on this way pays.
const WIDE: usize = 10;

/// The ways to the places inside tokens that are not short.
pub fn long_ways(trie: &Trie) -> Ways {
    Ways::new(trie, |_, depth| depth > SHORT)
}

/// The table of `state` over the root, if it counts and this way pays.
pub fn table(
    level: &Tables,
    caller: &Tables,
    states: &States,
    state: StateId,
) -> Option<TokenTable> {
    if states.bytes(state).count() < WIDE {
        return None;
    }
    let cut = states.clamped(state, u64::from(SHORT)).filter(|&cut| cut != state)?;
    let whole = caller.table(states, BoundaryId::ROOT, cut);
    let (lost, closed) = lost(caller, states, state, cut);
    let table = caller.get(whole);
    let exits = table.exits.iter().filter_map(|&(literal, exit)| {
        if caller.is_unlisted(exit) {
            return Some((literal, level.reached(BoundaryId::ROOT, state)));
        }
        let nodes = caller.nodes(states, &exit);
        if closed.iter().all(|node| nodes.binary_search(node).is_err()) {
            return Some((literal, exit));
        }
        let left = nodes.iter().copied().filter(|node| closed.binary_search(node).is_err());
        let left: Vec<u32> = left.collect();
        (!left.is_empty()).then(|| (literal, level.intern_near(left, Some(exit))))
    });
    let exits = exits.collect();
    // What the other table shares is shared with that one directly.
    let Some(shared) = &table.shared else {
        let shared = Shared { table: whole, without: lost.into_boxed_slice() };
        return Some(TokenTable {
            inside: super::TokenSet::default(),
            shared: Some(shared),
            exits,
            at_exits: None,
        });
    };
    let mut without = shared.without.to_vec();
    without.extend_from_slice(&lost);
    without.sort_unstable();
    without.dedup();
    let shared = Shared { table: shared.table, without: without.into_boxed_slice() };
    let inside = table.inside.without(&lost);
    Some(TokenTable { inside, shared: Some(shared), exits, at_exits: None })
}

/// The tokens that `cut` allows and `state` does not, ascending; the nodes at which `cut` is
/// complete and `state` is not.
fn lost(
    tables: &Tables,
    states: &States,
    state: StateId,
    cut: StateId,
) -> (Vec<TokenId>, Vec<u32>) {
    let trie = tables.vocabulary().trie();
    let (mut tokens, mut closed) = (Vec::new(), Vec::new());
    let step = |(ours, theirs): (StateId, StateId), byte| {
        let step = |state: StateId| if state.is_live() { states.step(state, byte) } else { state };
        let next = (step(ours), step(theirs));
        // Where they meet, and where nothing is allowed, nothing is lost.
        (next.0 != next.1 && next.1.is_live()).then_some(next)
    };
    tables.long_ways().walk((state, cut), step, |node, (ours, theirs)| {
        let accepts = |state: StateId| state.is_live() && states.get(state).accepts();
        if !ours.is_live() {
            tokens.extend_from_slice(trie.tokens(node));
        }
        if accepts(theirs) && !accepts(ours) {
            closed.push(node);
        }
    });
    tokens.sort_unstable();
    (tokens, closed)
}
