//! The vocabulary's trie seen through classes of bytes.
//!
//! Expressions rarely tell lower-case letters apart, or the digits, or the bytes inside UTF-8. So
//! tokens that look alike to most states share a node here: `cat` and `dog` are both *three
//! lower-case letters*. The 275,000 nodes of a trie of 128,256 tokens become 22,000, and all
//! words of one length one node.
//!
//! Worked example: tokens `at`, `be`, `b1`. Below the root is the node *letter* with the members
//! `a` and `b` (nodes of the trie); below it *letter letter* with the members `at` and `be` and
//! their tokens, and *letter digit* with the member `b1`.
//!
//! Invariants: nodes are in preorder, so a subtree is a range of ids and its tokens a range of
//! `tokens`; every node of the trie is a member of exactly one node. Members are sorted by their
//! last byte, so that those by one byte are a range.
//!
//! Cost: made once per vocabulary, with one visit per node of the trie.

use hashbrown::HashMap;

use crate::vocab::{TokenId, Trie};

/// Number of classes of bytes.
pub const CLASSES: usize = 51;

/// The class of a byte: letters by case, digits, every other ASCII character alone, the lead
/// bytes of UTF-8 by what may follow them, its continuation bytes in three groups.
fn class(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        b'\t' => 3,
        b'\n' => 4,
        b'\r' => 5,
        0x00..=0x1F | 0x7F => 6,
        b' '..=b'/' => 7 + (byte - b' '),
        b':'..=b'@' => 23 + (byte - b':'),
        b'['..=b'`' => 30 + (byte - b'['),
        b'{'..=b'~' => 36 + (byte - b'{'),
        0x80..=0x8F => 40,
        0x90..=0x9F => 41,
        0xA0..=0xBF => 42,
        0xC2..=0xDF => 43,
        0xE0 => 44,
        0xED => 45,
        0xE1..=0xEF => 46,
        0xF0 => 47,
        0xF1..=0xF3 => 48,
        0xF4 => 49,
        0xC0 | 0xC1 | 0xF5..=0xFF => 50,
    }
}

/// Sets of more tokens than this are kept as bitmasks too.
const DENSE: usize = 1_024;

/// Tokens grouped by the classes of their bytes.
#[derive(Debug)]
pub struct ClassTrie {
    nodes: Vec<ClassNode>,
    /// `(class, node)`, the children of a node being a range.
    children: Vec<(u8, u32)>,
    /// `(last byte, node of the trie)`, the members of a node being a range.
    members: Vec<(u8, u32)>,
    /// In preorder of the nodes.
    tokens: Vec<TokenId>,
    /// Bitmasks of the tokens at a node, and of those of its subtree, where they are many.
    at: HashMap<u32, Box<[u32]>>,
    below: HashMap<u32, Box<[u32]>>,
    /// The bytes of each class.
    bytes: [Vec<u8>; CLASSES],
}

#[derive(Debug, Clone, Default)]
struct ClassNode {
    /// One past its last child, member, token; they start where the node before ends.
    children: u32,
    members: u32,
    tokens: u32,
    subtree: u32,
    /// Bytes on edges below.
    bytes: [u64; 4],
}

impl ClassTrie {
    /// The root.
    pub const ROOT: u32 = 0;

    /// Groups the tokens of `trie`, of a vocabulary of `len` ids.
    pub fn new(trie: &Trie, len: usize) -> Self {
        let mut new = Self {
            nodes: Vec::new(),
            children: Vec::new(),
            members: Vec::new(),
            tokens: Vec::new(),
            at: HashMap::new(),
            below: HashMap::new(),
            bytes: std::array::from_fn(|wanted| {
                (0..=255).filter(|&byte| usize::from(class(byte)) == wanted).collect()
            }),
        };
        let edges = new.group(trie);
        new.link(&edges);
        new.condense(len);
        new
    }

    /// Makes the nodes in preorder with their members and tokens; returns parent and class of
    /// each.
    fn group(&mut self, trie: &Trie) -> Vec<(u32, u8)> {
        let mut edges = Vec::new();
        let mut todo = vec![((u32::MAX, 0), vec![(0u8, Trie::ROOT)])];
        let mut groups: [Vec<(u8, u32)>; CLASSES] = std::array::from_fn(|_| Vec::new());
        while let Some((edge, mut members)) = todo.pop() {
            members.sort_unstable();
            let id = self.nodes.len() as u32;
            edges.push(edge);
            let mut node = ClassNode::default();
            for &(_, member) in &members {
                self.tokens.extend_from_slice(trie.tokens(member));
                let below = trie.bytes_below(member);
                node.bytes.iter_mut().zip(below).for_each(|(own, below)| *own |= below);
                let (bytes, children) = trie.children(member);
                for (&byte, &child) in bytes.iter().zip(children) {
                    groups[usize::from(class(byte))].push((byte, child));
                }
            }
            self.members.append(&mut members);
            node.members = self.members.len() as u32;
            node.tokens = self.tokens.len() as u32;
            self.nodes.push(node);
            for (class, group) in groups.iter_mut().enumerate().rev() {
                if !group.is_empty() {
                    todo.push(((id, class as u8), std::mem::take(group)));
                }
            }
        }
        edges
    }

    /// Fills in children and subtrees.
    fn link(&mut self, edges: &[(u32, u8)]) {
        let len = self.nodes.len();
        let mut counts = vec![0u32; len + 1];
        for &(parent, _) in &edges[1..] {
            counts[parent as usize + 1] += 1;
        }
        for i in 0..len {
            counts[i + 1] += counts[i];
            self.nodes[i].children = counts[i + 1];
            self.nodes[i].subtree = i as u32 + 1;
        }
        self.children = vec![(0, 0); len - 1];
        for (id, &(parent, class)) in edges.iter().enumerate().skip(1) {
            let at = &mut counts[parent as usize];
            self.children[*at as usize] = (class, id as u32);
            *at += 1;
        }
        for id in (1..len).rev() {
            let (end, parent) = (self.nodes[id].subtree, edges[id].0 as usize);
            self.nodes[parent].subtree = self.nodes[parent].subtree.max(end);
        }
    }

    fn condense(&mut self, len: usize) {
        let bits = |tokens: &[TokenId]| {
            let mut words = vec![0u32; len.div_ceil(32)].into_boxed_slice();
            tokens.iter().for_each(|&id| words[id as usize / 32] |= 1 << (id % 32));
            words
        };
        for node in 0..self.nodes.len() as u32 {
            if self.tokens(node).len() > DENSE {
                self.at.insert(node, bits(self.tokens(node)));
            }
            if self.subtree_tokens(node).len() > DENSE {
                self.below.insert(node, bits(self.subtree_tokens(node)));
            }
        }
    }

    /// Where what belongs to a node starts.
    fn start(&self, node: u32, field: impl Fn(&ClassNode) -> u32) -> usize {
        node.checked_sub(1).map_or(0, |before| field(&self.nodes[before as usize]) as usize)
    }

    /// The bytes of a class.
    pub fn bytes_of(&self, class: u8) -> &[u8] {
        &self.bytes[usize::from(class)]
    }

    /// Classes and ids of the children of a node.
    pub fn children(&self, node: u32) -> &[(u8, u32)] {
        let end = self.nodes[node as usize].children as usize;
        &self.children[self.start(node, |node| node.children)..end]
    }

    /// The child of a node by the class of a byte.
    pub fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let wanted = class(byte);
        let children = self.children(node);
        children.iter().find(|&&(class, _)| class == wanted).map(|&(_, child)| child)
    }

    /// The members of a node, each with its last byte, sorted.
    pub fn members(&self, node: u32) -> &[(u8, u32)] {
        let end = self.nodes[node as usize].members as usize;
        &self.members[self.start(node, |node| node.members)..end]
    }

    fn tokens(&self, node: u32) -> &[TokenId] {
        let end = self.nodes[node as usize].tokens as usize;
        &self.tokens[self.start(node, |node| node.tokens)..end]
    }

    fn subtree_tokens(&self, node: u32) -> &[TokenId] {
        let last = self.nodes[node as usize].subtree - 1;
        let end = self.nodes[last as usize].tokens as usize;
        &self.tokens[self.start(node, |node| node.tokens)..end]
    }

    /// Bytes that occur below a node.
    pub fn bytes_below(&self, node: u32) -> &[u64; 4] {
        &self.nodes[node as usize].bytes
    }

    /// Adds the tokens that end at the members of a node.
    pub fn add_tokens(&self, node: u32, words: &mut [u32]) {
        add(self.at.get(&node).map(|words| &**words), self.tokens(node), words);
    }

    /// Adds the tokens that end at or below the members of a node.
    pub fn add_subtree(&self, node: u32, words: &mut [u32]) {
        add(self.below.get(&node).map(|words| &**words), self.subtree_tokens(node), words);
    }
}

fn add(dense: Option<&[u32]>, tokens: &[TokenId], words: &mut [u32]) {
    match dense {
        Some(dense) => words.iter_mut().zip(dense).for_each(|(word, own)| *word |= own),
        None => tokens.iter().for_each(|&id| words[id as usize / 32] |= 1 << (id % 32)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_of_the_trie_is_in_one_class_node() {
        let tokens: Vec<Vec<u8>> = ["at", "be", "b1", "be", "é", "à", "a\"b", "A", "Zz9"]
            .iter()
            .map(|text| text.as_bytes().to_vec())
            .collect();
        let trie = Trie::new(tokens.iter().zip(0..).map(|(bytes, id)| (&bytes[..], id)));
        let classes = ClassTrie::new(&trie, tokens.len());
        let mut seen: Vec<u32> =
            (0..classes.nodes.len() as u32).flat_map(|n| classes.members(n)).map(|m| m.1).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..trie.len() as u32).collect::<Vec<_>>());

        let letter = classes.children(ClassTrie::ROOT)[0].1;
        let (words, mut below) = (&mut [0], [0]);
        classes.add_tokens(letter, words);
        classes.add_subtree(letter, &mut below);
        assert_eq!((words[0], below[0]), (0, 0b100_1111), "at be b1 be, and a\"b below");
    }

    #[test]
    fn classes_are_few_and_all_there() {
        let mut classes: Vec<u8> = (0..=255).map(class).collect();
        classes.sort_unstable();
        classes.dedup();
        assert_eq!(classes, (0..CLASSES as u8).collect::<Vec<_>>());
    }
}
