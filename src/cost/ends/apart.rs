//! The ends of a wide state by its difference from another one whose ends are known.
//!
//! A key that may be a declared one or any other is *any string* as soon as it can no longer be a declared one. So
//! both states walk the trie in step, and only as far as they are apart: states are interned, so where they meet they
//! have equal ids, and all that is below ends where it ends from the other one.
//!
//! By hand: the key `id` or any other, after the quote, with the tokens `x`, `i`, `in`, `id`. From *any string* all end in
//! its body. The two part at `i` and `id`, which end in *i was read* and *id was read*; at `in` they meet. So
//! the ends are `x`, `in` in the body, and the two.
//!
//! Cost: one pass over the sets of tokens of the other state, and a step per node of the trie at which the two differ.

use super::{Ends, Walk};
use crate::machine::{StateId, States};
use crate::mask::{BoundaryId, Tables, TokenSet};
use crate::vocab::TokenId;

/// Most characters are visible ASCII.
const USUAL: std::ops::RangeInclusive<u8> = b' '..=b'~';

/// Where two states do not meet in one part of so many of the trie, they seldom do.
const PART: u64 = 4;

/// The state that most bytes lead to from `state`, if it is another one and most lead from there to itself.
pub fn usual(states: &States, state: StateId) -> Option<StateId> {
    let usual = most(states, state).filter(|&usual| usual != state)?;
    (most(states, usual)? == usual && !states.get(usual).accepts()).then_some(usual)
}

/// The live state that most of the usual bytes lead to.
fn most(states: &States, state: StateId) -> Option<StateId> {
    let next = || USUAL.map(|byte| step(states, state, byte));
    // Boyer and Moore: the one candidate for a majority.
    let (mut candidate, mut lead) = (StateId::DEAD, 0);
    for next in next() {
        match lead {
            0 => (candidate, lead) = (next, 1),
            _ if next == candidate => lead += 1,
            _ => lead -= 1,
        }
    }
    let votes = next().filter(|&next| next == candidate).count();
    (candidate.is_live() && votes * 2 > USUAL.count()).then_some(candidate)
}

fn step(states: &States, state: StateId, byte: u8) -> StateId {
    if state.is_live() { states.step(state, byte) } else { state }
}

/// The ends of `state` over the root. Those of `usual` are `known`; `None` if the two are apart nearly everywhere.
pub fn ends(
    tables: &Tables,
    states: &States,
    (state, usual): (StateId, StateId),
    known: &Ends,
) -> Option<Ends> {
    let trie = tables.vocabulary().trie();
    let most = trie.len() as u64 / PART;
    let mut walk = Walk::new(tables, states);
    // The tokens that end where the two differ.
    let mut moved: Vec<TokenId> = Vec::new();
    let root = BoundaryId::ROOT;
    let mut todo: Vec<(u32, StateId, StateId)> =
        tables.nodes(states, &root).iter().map(|&node| (node, state, usual)).collect();
    while let Some((node, ours, theirs)) = todo.pop() {
        let (bytes, children) = trie.children(node);
        for (&byte, &child) in bytes.iter().zip(children) {
            let (ours, theirs) = (step(states, ours, byte), step(states, theirs, byte));
            if ours == theirs {
                continue;
            }
            walk.work += 1;
            if ours.is_live() && theirs.is_live() && states.get(ours).continues() {
                moved.extend_from_slice(trie.tokens(child));
                walk.end(child, ours);
                todo.push((child, ours, theirs));
                continue;
            }
            // They do not meet any more.
            moved.extend_from_slice(trie.subtree_tokens(child));
            walk.arrive(child, ours);
            walk.work();
        }
        if walk.work > most {
            return None;
        }
    }
    moved.sort_unstable();
    let mut groups: Vec<(StateId, TokenSet)> = Vec::new();
    for (state, tokens) in known.iter() {
        groups.push((*state, tokens.without(&moved)));
    }
    // What ends in a state that the other one ends in too is a group of its own.
    groups.extend(walk.sets());
    groups.retain(|(_, tokens)| !tokens.is_empty());
    Some(Ends::new(groups, walk.work))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::error::Result;
    use crate::expr::Exprs;
    use crate::vocab::{Token, Vocabulary};

    /// The tokens of each state.
    fn grouped(ends: &Ends) -> BTreeMap<StateId, Vec<TokenId>> {
        let mut groups: BTreeMap<StateId, Vec<TokenId>> = BTreeMap::new();
        for (state, tokens) in ends.iter() {
            groups.entry(*state).or_default().extend(tokens.ids());
        }
        groups.values_mut().for_each(|tokens| tokens.sort_unstable());
        groups
    }

    #[test]
    fn as_by_a_walk() -> Result<()> {
        let texts = [
            "i", "id", "in", "ids", "x", "id\"", "i\"", "x\"", "id\":", "\\u00", "\u{e9}", "ab\\",
            "key", "k",
        ];
        let mut tokens: Vec<Token> = (0..=255u8).map(|byte| Token::Text([byte].into())).collect();
        tokens.extend(texts.map(|text| Token::Text(text.as_bytes().into())));
        tokens.push(Token::Special("<end>".into()));
        let end = tokens.len() as u32 - 1;
        let vocabulary = Vocabulary::new(tokens, vec![end])?;
        let universal = std::sync::Arc::new(States::universal(vocabulary.trie().max_len()));
        let mut exprs = Exprs::new();
        let names = ["id", "key", "i\u{e9}"].map(|name| exprs.literal(name));
        let names = exprs.or(&names);
        let other = exprs.not(names);
        let states = States::local(universal.clone(), exprs);
        let tables = Tables::universal(vocabulary, &universal);
        let state = states.step(states.start_string(other)?.state, b'"');
        // Any string, which is left by nothing but escapes and quotes.
        let any = states.step(state, b'x');
        assert_eq!((usual(&states, state), usual(&states, any)), (Some(any), None));
        let known = Walk::new(&tables, &states).run(BoundaryId::ROOT, any);
        for text in ["", "i", "ke"] {
            let state = text.bytes().fold(state, |state, byte| states.step(state, byte));
            let found = ends(&tables, &states, (state, any), &known).expect("they soon meet");
            let walked = Walk::new(&tables, &states).run(BoundaryId::ROOT, state);
            assert_eq!(grouped(&found), grouped(&walked), "{text}");
            assert!(found.work < walked.work, "{text}");
        }
        // After a backslash hardly anything is as it was.
        let dead = ends(&tables, &states, (states.step(any, b'\\'), any), &known);
        assert!(dead.is_none());
        Ok(())
    }
}
