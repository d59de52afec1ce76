//! The escapes of characters of a JSON string, beside the trie.
//!
//! Any character may be spelled as an escape: all as `\u` and four digits of either case (beyond U+FFFF as
//! two of those), some as a short one. Strings whose next characters are known walk the trie by these
//! spellings, without a state per spelling.
//!
//! Worked example: the next character is `é`, and the tokens `\`, `\u`, `\u00` go on from here. All three
//! are inside; the nodes after the whole escape `\u00e9` are where the walk goes on, if there are any.
//!
//! Cost: one look-up per character where no token goes on after `\u`, else some per digit.

use super::walk::Walk;
use crate::escape;
use crate::vocab::Trie;

/// Where tokens go on with a backslash.
pub struct Escapes {
    backslash: u32,
    /// After `\u`, if tokens go on there.
    numeric: Option<u32>,
}

impl Escapes {
    /// Those at a node, if a token goes on with a backslash there and some character may come: then
    /// tokens that end after `\` or `\u` are inside.
    pub fn at(trie: &Trie, node: u32, walk: &mut Walk<'_>) -> Option<Self> {
        let backslash = trie.child(node, b'\\')?;
        walk.inside.extend_from_slice(trie.tokens(backslash));
        let numeric = trie.child(backslash, b'u');
        walk.inside.extend(numeric.iter().flat_map(|&node| trie.tokens(node)));
        let numeric = numeric.filter(|&node| trie.subtree_end(node) > node + 1);
        Some(Self { backslash, numeric })
    }

    /// The nodes after the escapes of a character; tokens that end inside one, or with it, are inside.
    pub fn spell(&self, trie: &Trie, of: char, walk: &mut Walk<'_>) -> Vec<u32> {
        let mut nodes = self.numeric.map_or(Vec::new(), |node| numeric(trie, node, of, walk));
        if let Some(node) = escape::name(of).and_then(|byte| trie.child(self.backslash, byte)) {
            walk.inside.extend_from_slice(trie.tokens(node));
            nodes.push(node);
        }
        nodes
    }
}

/// Walks from `node`, after `\u`, by the digits of a character's numeric escape in either case (by both
/// escapes of a surrogate pair), taking the tokens on the way; returns the nodes at its end.
fn numeric(trie: &Trie, node: u32, of: char, walk: &mut Walk<'_>) -> Vec<u32> {
    let mut units = [0; 2];
    let mut nodes = vec![node];
    for (at, unit) in of.encode_utf16(&mut units).iter().enumerate() {
        if at > 0 {
            step(trie, &mut nodes, b"\\", walk);
            step(trie, &mut nodes, b"u", walk);
        }
        for shift in [12, 8, 4, 0] {
            match (unit >> shift & 0xF) as u8 {
                digit @ 0..=9 => step(trie, &mut nodes, &[b'0' + digit], walk),
                digit => step(trie, &mut nodes, &[b'a' - 10 + digit, b'A' - 10 + digit], walk),
            }
        }
    }
    nodes
}

/// Takes nodes to their children by some bytes, with the tokens that end there.
fn step(trie: &Trie, nodes: &mut Vec<u32>, bytes: &[u8], walk: &mut Walk<'_>) {
    let before = nodes.len();
    for at in 0..before {
        let node = nodes[at];
        for child in bytes.iter().filter_map(|&byte| trie.child(node, byte)) {
            walk.inside.extend_from_slice(trie.tokens(child));
            nodes.push(child);
        }
    }
    nodes.drain(..before);
}
