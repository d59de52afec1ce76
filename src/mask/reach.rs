//! Places inside tokens where a state is complete, found when somebody asks.
//!
//! An identifier, a word, a text up to the next tag: such a terminal is complete after each of its
//! bytes, at most places inside most tokens. But what follows it begins with few bytes, so nobody ever
//! looks at nearly all of these places: only at those before a `<`, say. So the boundary is kept as
//! the state that reaches it from the root, and its children by one byte are found by looking at the
//! edges with that byte.
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

    /// The children by `byte` of the nodes below the root at which `state` is complete, ascending.
    pub fn children(&self, trie: &Trie, states: &States, state: StateId, byte: u8) -> Vec<u32> {
        let mut found = Vec::new();
        // The way to the last parent, with the state at each node.
        let mut path = vec![(Trie::ROOT, state)];
        let mut down = Vec::new();
        for &node in self.by(byte) {
            let parent = self.parent(node);
            if parent == Trie::ROOT {
                continue;
            }
            let is_above = |top: u32| top <= parent && parent < trie.subtree_end(top);
            while path.last().is_some_and(|&(top, _)| !is_above(top)) {
                path.pop();
            }
            let (top, mut state) = path.last().copied().unwrap_or((Trie::ROOT, state));
            let mut at = parent;
            while at != top {
                down.push(at);
                at = self.parent(at);
            }
            while let Some(next) = down.pop() {
                let byte = self.above[next as usize].1;
                state = if state.is_live() { states.step(state, byte) } else { state };
                path.push((next, state));
            }
            if state.is_live() && states.get(state).accepts() {
                found.push(node);
            }
        }
        found
    }
}

/// All nodes below the root at which `state` is complete and tokens go on, ascending.
pub fn nodes(trie: &Trie, states: &States, state: StateId) -> Box<[u32]> {
    let mut found = Vec::new();
    let mut todo = vec![(Trie::ROOT, state)];
    while let Some((node, state)) = todo.pop() {
        if node != Trie::ROOT && states.get(state).accepts() {
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
    found.into_boxed_slice()
}
