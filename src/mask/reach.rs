//! Places inside tokens where a state is complete, found when somebody asks.
//!
//! An identifier, a word, a text up to the next tag: such a terminal is complete after each of its
//! bytes, at most places inside most tokens. But what follows it begins with few bytes, so nobody ever
//! looks at nearly all of these places: only at those before a `<`, say. So the boundary is kept as
//! the state that reaches it and where that started, and its children by one byte are found by looking
//! at the edges with that byte.
//!
//! Worked example: the state `[a-z]+` and the tokens `ab`, `a<`, `b<i`, `1<`. The boundary is `a`,
//! `ab`, `b`; nobody lists it. Its children by `<` are found at the three edges by `<`: those of `a<`
//! and `b<i` have a parent that the state reaches and is complete at, that of `1<` has not.
//!
//! Invariant: the same sets of nodes, in the same order, as a walk of the whole trie would list.
//! Cost: one step per byte on the ways to the edges by a byte; 1 to 500 µs for 128,256 tokens, where
//! listing all takes 5 to 20 ms.

use crate::machine::{StateId, States};
use crate::vocab::Trie;

/// The edges of a trie by their byte.
#[derive(Debug)]
pub struct Edges {
    /// The nodes that edges with a byte lead to, ascending.
    nodes: Vec<Vec<u32>>,
    /// The other end of each node's edge, and its byte.
    above: Vec<(u32, u8)>,
}

impl Edges {
    /// The edges of a trie.
    pub fn new(trie: &Trie) -> Self {
        let mut above = vec![(Trie::ROOT, 0); trie.len()];
        for node in 0..trie.len() as u32 {
            let (bytes, children) = trie.children(node);
            for (&byte, &child) in bytes.iter().zip(children) {
                above[child as usize] = (node, byte);
            }
        }
        let mut nodes = vec![Vec::new(); 256];
        for (node, &(_, byte)) in (0..).zip(&above).skip(1) {
            nodes[usize::from(byte)].push(node);
        }
        Self { nodes, above }
    }

    /// The nodes that edges with this byte lead to, ascending.
    pub fn by(&self, byte: u8) -> &[u32] {
        &self.nodes[usize::from(byte)]
    }

    /// The node above another one (not the root).
    pub fn parent(&self, node: u32) -> u32 {
        self.above[node as usize].0
    }

    /// The byte that leads to a node (not the root).
    pub fn byte(&self, node: u32) -> u8 {
        self.above[node as usize].1
    }

    /// The children by `byte` of the nodes at which `state`, started at the nodes `from` (ascending), is
    /// complete; ascending.
    pub fn children(
        &self,
        trie: &Trie,
        states: &States,
        (from, state): (&[u32], StateId),
        byte: u8,
    ) -> Vec<u32> {
        let is_start = |node: u32| from.binary_search(&node).is_ok();
        let mut found = Vec::new();
        // The way to the last parent, with the states at each node: those of all starts above.
        let mut path = vec![Way { node: Trie::ROOT, at: 0 }];
        let mut all: Vec<StateId> = Vec::new();
        let mut down = Vec::new();
        if is_start(Trie::ROOT) {
            all.push(state);
        }
        for &node in self.by(byte) {
            let parent = self.parent(node);
            let is_above = |top: u32| top <= parent && parent < trie.subtree_end(top);
            while let Some(way) = path.last().filter(|way| !is_above(way.node)) {
                all.truncate(way.at);
                path.pop();
            }
            let top = path.last().map_or(Trie::ROOT, |way| way.node);
            let mut at = parent;
            while at != top {
                down.push(at);
                at = self.parent(at);
            }
            while let Some(next) = down.pop() {
                let before = path.last().map_or(0, |way| way.at);
                let way = Way { node: next, at: all.len() };
                for i in before..way.at {
                    let state = states.step(all[i], self.above[next as usize].1);
                    if state.is_live() {
                        all.push(state);
                    }
                }
                if is_start(next) {
                    all.push(state);
                }
                path.push(way);
            }
            let here = path.last().map_or(0, |way| way.at);
            // A start is not complete before its first byte.
            let moved = all.len() - usize::from(is_start(parent));
            if all[here..moved].iter().any(|&state| states.get(state).accepts()) {
                found.push(node);
            }
        }
        found
    }
}

/// A node on a way, and where its states begin.
struct Way {
    node: u32,
    at: usize,
}

/// All nodes at which `state`, started at the nodes `from`, is complete and tokens go on; ascending.
pub fn nodes(trie: &Trie, states: &States, from: &[u32], state: StateId) -> Box<[u32]> {
    let mut found = Vec::new();
    for &start in from {
        let mut todo = vec![(start, state)];
        while let Some((node, state)) = todo.pop() {
            if node != start && states.get(state).accepts() {
                found.push(node);
            }
            // The last child first, so that the first one comes next: preorder.
            let (bytes, children) = trie.children(node);
            for (&byte, &child) in bytes.iter().zip(children).rev() {
                let next = states.step(state, byte);
                if next.is_live() && trie.subtree_end(child) > child + 1 {
                    todo.push((child, next));
                }
            }
        }
    }
    // Starts can be below others.
    found.sort_unstable();
    found.dedup();
    found.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::machine::states::Context;
    use crate::{
        Grammar,
        grammar::{Terminal, Whitespace},
    };

    #[test]
    fn children_are_those_of_the_listed_places() {
        let tokens = ["ab", "a<", "b<i", "1<", "ab<<", "1ab<", "<a<", "abab", "b"];
        let trie = Trie::new(tokens.iter().zip(0..).map(|(text, id)| (text.as_bytes(), id)));
        let edges = Edges::new(&trie);
        let mut grammar = Grammar::new(Limits::default());
        let letters = grammar.exprs.class(&[('a', 'b')]);
        let word = grammar.exprs.repeat(letters, 1, None);
        let universal = std::sync::Arc::new(States::universal(4));
        let states = States::local(universal, grammar.exprs);
        let context = Context { special: 0, digits: 9, whitespace: Whitespace::Compact };
        let start = states.start(&Terminal::Text(word), context).expect("it is small");
        let child = |node, byte| trie.child(node, byte).expect("it is there");
        let one = child(Trie::ROOT, b'1');
        let a = child(Trie::ROOT, b'a');
        for from in [vec![Trie::ROOT], vec![a], vec![a, one], vec![Trie::ROOT, one]] {
            let mut from = from;
            from.sort_unstable();
            let listed = nodes(&trie, &states, &from, start.state);
            for byte in [b'<', b'a', b'b', b'i'] {
                let mut expected: Vec<u32> =
                    listed.iter().filter_map(|&node| trie.child(node, byte)).collect();
                expected.sort_unstable();
                let found = edges.children(&trie, &states, (&from, start.state), byte);
                assert_eq!(found, expected, "from {from:?} by {byte}");
            }
        }
    }
}
