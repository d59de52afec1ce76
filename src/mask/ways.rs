//! The ways inside tokens to some places of interest.
//!
//! Some questions concern few places inside tokens: the quotes, the bytes beyond the 32nd. The
//! nodes on the way there are listed in preorder, so that a state walks to all of them with one
//! step per node, and skips what is below a node where it is done.
//!
//! Worked example: tokens `a`, `ab"`, `cd`; places of interest: quotes. The ways are `a`, `ab` and
//! `ab"`; a state that dies at `a` skips all three.

use crate::vocab::Trie;

/// Nodes of the trie that are, or are above, places of interest; in preorder.
#[derive(Debug)]
pub struct Ways {
    nodes: Vec<Way>,
}

#[derive(Debug)]
struct Way {
    node: u32,
    byte: u8,
    /// Whether it is a place of interest itself.
    wanted: bool,
    /// Number of bytes before it.
    depth: u16,
    /// One past its subtree in the list.
    end: u32,
}

impl Ways {
    /// The ways to the nodes for whose last byte and number of bytes `wanted` holds.
    pub fn new(trie: &Trie, wanted: impl Fn(u8, u16) -> bool) -> Self {
        let mut nodes: Vec<Way> = Vec::new();
        let mut parents: Vec<u32> = Vec::new();
        // The byte and the depth of every node, in preorder.
        let mut todo = vec![(Trie::ROOT, 0u8, 0u16, u32::MAX)];
        while let Some((node, byte, depth, parent)) = todo.pop() {
            let own = nodes.len() as u32;
            let wanted = depth > 0 && wanted(byte, depth);
            nodes.push(Way { node, byte, wanted, depth: depth.saturating_sub(1), end: own + 1 });
            parents.push(parent);
            // No token has 65,536 bytes (a vocabulary refuses them).
            if depth < u16::MAX {
                let (bytes, children) = trie.children(node);
                let below = bytes.iter().zip(children).rev();
                todo.extend(below.map(|(&byte, &child)| (child, byte, depth + 1, own)));
            }
        }
        let mut keep: Vec<bool> = nodes.iter().map(|way| way.wanted).collect();
        for at in (1..nodes.len()).rev() {
            keep[parents[at] as usize] |= keep[at];
        }
        let mut kept: Vec<Way> = nodes
            .into_iter()
            .zip(keep)
            .skip(1)
            .filter(|(_, keep)| *keep)
            .map(|(way, _)| way)
            .collect();
        let mut open: Vec<usize> = Vec::new();
        for at in 0..=kept.len() {
            let depth = kept.get(at).map_or(0, |way| usize::from(way.depth));
            for closed in open.drain(depth..) {
                kept[closed].end = at as u32;
            }
            open.push(at);
        }
        Self { nodes: kept }
    }

    /// Walks from `start` by `step`, which says `None` where there is nothing to see below; calls
    /// `found` with each place of interest and what it was reached with.
    pub fn walk<S: Copy>(
        &self,
        start: S,
        step: impl Fn(S, u8) -> Option<S>,
        mut found: impl FnMut(u32, S),
    ) {
        let (mut path, mut at) = (vec![start], 0);
        while let Some(way) = self.nodes.get(at) {
            path.truncate(usize::from(way.depth) + 1);
            at = match path.last().and_then(|&state| step(state, way.byte)) {
                Some(next) => {
                    if way.wanted {
                        found(way.node, next);
                    }
                    path.push(next);
                    at + 1
                }
                None => way.end as usize,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_to_the_places_and_nowhere_else() {
        let tokens: [&[u8]; 5] = [b"a", b"ab\"", b"cd", b"c\"d\"", b"\""];
        let trie = Trie::new(tokens.iter().zip(0..).map(|(bytes, id)| (*bytes, id)));
        let ways = Ways::new(&trie, |byte, _| byte == b'"');
        let mut reached = Vec::new();
        ways.walk(0, |steps, _| Some(steps + 1), |node, steps| reached.push((node, steps)));
        let of = |bytes: &[u8]| {
            bytes.iter().fold(Trie::ROOT, |node, &byte| trie.child(node, byte).unwrap())
        };
        let expected = [(of(b"\""), 1), (of(b"ab\""), 3), (of(b"c\""), 2), (of(b"c\"d\""), 4)];
        assert_eq!(reached, expected);

        let mut reached = Vec::new();
        let not_a = |(), byte| (byte != b'a').then_some(());
        ways.walk((), not_a, |node, ()| reached.push(node));
        assert_eq!(reached, [of(b"\""), of(b"c\""), of(b"c\"d\"")]);
    }
}
