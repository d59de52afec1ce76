//! Tables of strings that are almost any string.
//!
//! The undeclared keys of an object are *any string but these names*; a pattern may exclude a
//! word. Such a state differs from *any string* on few tokens, but is as wide. So its table is
//! made from the universal one: both states walk the trie in step, and where they meet (states
//! are interned, so meeting is having equal ids) the rest is known to be equal.
//!
//! Worked example: *any string but `id`*, after the quote. By every byte but `i` and `\\` both
//! walks meet at once. By `i`, `d`, `"` ours dies: the token `id"` is taken out, and if tokens go
//! on after it, that place is taken out of the boundary.
//!
//! Invariant: the language of the state is part of *any string*, so there is only taking out.

use super::set::TokenSet;
use super::tables::{BoundaryId, Tables, TokenTable};
use super::walk::Walk;
use crate::machine::{StateId, States};
use crate::vocab::TokenId;

/// On how many bytes the two states must meet at once for this way to pay.
const ALIKE: usize = 64;

/// The table of `state` over the root, made from that of *any string*; `None` if that does not
/// pay, or if the state is something else.
pub fn table(
    level: &Tables,
    caller: &Tables,
    states: &States,
    state: StateId,
) -> Option<TokenTable> {
    let any = states.any_string_like(state)?;
    let inner = |id| if states.is_quote(id) { states.step(id, b'"') } else { id };
    let (ours, theirs) = (inner(state), inner(any));
    if state == any || !ours.is_live() || alike(states, ours, theirs) < ALIKE {
        return None;
    }
    let base = caller.get(caller.table(states, BoundaryId::ROOT, any));
    let lost = Lost::find(caller, states, state, any)?;
    let inside = lost.tokens_out_of(&base.inside, caller.vocabulary().len());
    let exits = base.exits.iter().filter_map(|&(literal, exit)| {
        if lost.exits.is_empty() {
            return Some((literal, exit));
        }
        let nodes = caller.nodes(&exit).iter().copied();
        let left: Vec<u32> = nodes.filter(|node| lost.exits.binary_search(node).is_err()).collect();
        (!left.is_empty()).then(|| (literal, level.intern_near(left, Some(exit))))
    });
    Some(TokenTable { inside, exits: exits.collect() })
}

/// On how many bytes two states lead to one live state.
fn alike(states: &States, a: StateId, b: StateId) -> usize {
    let bytes = states.bytes(a);
    let same = |byte| {
        let next = states.step(a, byte);
        next.is_live() && next == states.step(b, byte)
    };
    bytes.iter().filter(|&byte| same(byte)).count()
}

/// What *any string* has and the state has not.
struct Lost {
    tokens: Vec<TokenId>,
    exits: Vec<u32>,
}

impl Lost {
    /// Walks both; `None` if the state completes something that has to be told apart.
    fn find(caller: &Tables, states: &States, state: StateId, any: StateId) -> Option<Self> {
        let trie = caller.vocabulary().trie();
        let mut walk = Walk::new(caller, states);
        let mut todo = vec![(BoundaryId::ROOT.0, state, any)];
        while let Some((node, state, any)) = todo.pop() {
            let (bytes, children) = trie.children(node);
            for (&byte, &child) in bytes.iter().zip(children) {
                let (ours, theirs) = (states.step(state, byte), states.step(any, byte));
                if ours == theirs {
                    continue;
                }
                if !ours.is_live() {
                    walk.add(child, theirs);
                } else if states.get(ours).accepts() {
                    return None;
                } else {
                    todo.push((child, ours, theirs));
                }
            }
        }
        let mut exits: Vec<u32> = walk.exits.iter().map(|&(_, node)| node).collect();
        exits.sort_unstable();
        Some(Self { tokens: walk.inside, exits })
    }

    fn tokens_out_of(&self, all: &TokenSet, len: usize) -> TokenSet {
        match all {
            TokenSet::Dense(words) => {
                let mut words = words.clone();
                for &id in &self.tokens {
                    words[id as usize / 32] &= !(1 << (id % 32));
                }
                TokenSet::Dense(words)
            }
            TokenSet::Sparse(ids) => {
                let ids = ids.iter().copied().filter(|id| !self.tokens.contains(id));
                TokenSet::new(ids.collect(), len)
            }
        }
    }
}
