//! A byte trie in flat arrays, nodes in preorder.
//!
//! The trie answers, for all tokens at once, "which tokens start with these bytes?". The tables of
//! the mask layer are made by walking it beside an automaton.
//!
//! # By hand
//!
//! The tokens `a` = 0, `ab` = 1, `c` = 2, and a second `ab` = 3 give four nodes. Preorder numbers a
//! node before everything below it, so a subtree is a range of ids, and the tokens below a node are
//! a range of the tokens in preorder:
//!
//! ```text
//!  node         0 (root)   1 `a`   2 `ab`   3 `c`
//!  children     a→1 c→3    b→2     -        -
//!  subtree end  4          3       3        4
//!  tokens at    -          0       1 3      2
//!  tokens in preorder:     0       1 3      2       below node 1, itself included: 0 1 3
//!  bytes below  a b c      b       -        -
//! ```
//!
//! # Invariants
//!
//! * The children of a node have ascending bytes and ascending ids; a child's id is larger than its
//!   parent's, and every id up to `subtree_end` is below the node.
//! * The tokens at one node are ascending.
//!
//! # Cost
//!
//! Sorting the tokens, then one pass over them; 21 bytes a node, 4 a token, and 32 for each
//! different set of bytes below a node (most nodes share one of a few thousand). The 275,000 nodes
//! of a vocabulary of 128,256 tokens take about 6 MB.
use super::TokenId;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::fmt;
use std::hash::BuildHasher;

/// Node of a [`Trie`]; the root is 0, ids are in preorder (a subtree is a range of ids).
pub type NodeId = u32;

/// A set of byte values: bit `b % 64` of word `b / 64`.
type ByteSet = [u64; 4];

/// The trie of all text tokens.
#[derive(Clone)]
pub struct Trie {
    /// Where the children of a node start in `child_bytes` and `child_ids`; one entry more.
    child_start: Vec<u32>,
    child_bytes: Vec<u8>,
    child_ids: Vec<NodeId>,
    /// The children of the root by byte; 0 where there is none (the root is no child).
    root: Box<[NodeId; 256]>,
    subtree_end: Vec<NodeId>,
    /// Where the tokens of a node start in `tokens`; one entry more.
    token_start: Vec<u32>,
    /// The tokens in the preorder of their nodes.
    tokens: Vec<TokenId>,
    /// Which of `byte_sets` is below a node.
    below: Vec<u32>,
    byte_sets: Vec<ByteSet>,
    max_len: usize,
}

impl Trie {
    /// The root.
    pub const ROOT: NodeId = 0;

    /// Builds the trie of `(bytes, id)`; several ids may have the same bytes; bytes are not empty.
    ///
    /// All bytes together must be fewer than 2³² (a [`super::Vocabulary`] checks a lower limit).
    pub fn new<'a>(tokens: impl IntoIterator<Item = (&'a [u8], TokenId)>) -> Self {
        let tokens: Vec<_> = tokens.into_iter().collect();
        // The sort jumps between the tokens: side by side, their bytes stay in the cache.
        let bytes = tokens.iter().map(|(bytes, _)| *bytes).collect::<Vec<_>>().concat();
        let mut rest = &bytes[..];
        let mut sorted = Vec::with_capacity(tokens.len());
        for (bytes, id) in tokens {
            let (bytes, after) = rest.split_at(bytes.len());
            rest = after;
            sorted.push((prefix_key(bytes), bytes, id));
        }
        sorted.sort_unstable();
        let mut builder = Builder::with_capacity(sorted.len());
        for (_, bytes, id) in sorted {
            builder.push(bytes, id);
        }
        builder.finish()
    }

    /// Number of nodes, the root included.
    #[allow(clippy::len_without_is_empty, reason = "the root is always there")]
    pub fn len(&self) -> usize {
        self.subtree_end.len()
    }

    /// Bytes (ascending) and ids of the children of a node.
    #[inline]
    pub fn children(&self, node: NodeId) -> (&[u8], &[NodeId]) {
        let range =
            self.child_start[node as usize] as usize..self.child_start[node as usize + 1] as usize;
        (&self.child_bytes[range.clone()], &self.child_ids[range])
    }

    /// The child by a byte.
    #[inline]
    pub fn child(&self, node: NodeId, byte: u8) -> Option<NodeId> {
        if node == Self::ROOT {
            let child = self.root[byte as usize];
            return (child != 0).then_some(child);
        }
        let (bytes, ids) = self.children(node);
        let found = if bytes.len() <= 8 {
            bytes.iter().position(|&b| b == byte)
        } else {
            bytes.binary_search(&byte).ok()
        };
        found.map(|at| ids[at])
    }

    /// Tokens that end at a node, ascending.
    #[inline]
    pub fn tokens(&self, node: NodeId) -> &[TokenId] {
        &self.tokens[self.tokens_before(node)..self.tokens_before(node + 1)]
    }

    /// One past the last node of the subtree of `node`.
    #[inline]
    pub fn subtree_end(&self, node: NodeId) -> NodeId {
        self.subtree_end[node as usize]
    }

    /// Tokens of the subtree of `node`, those at `node` included, in preorder (a slice, O(1)).
    #[inline]
    pub fn subtree_tokens(&self, node: NodeId) -> &[TokenId] {
        &self.tokens[self.tokens_before(node)..self.tokens_before(self.subtree_end(node))]
    }

    /// Bytes that occur on edges strictly below `node`, as a 256-bit set.
    #[inline]
    pub fn bytes_below(&self, node: NodeId) -> &[u64; 4] {
        &self.byte_sets[self.below[node as usize] as usize]
    }

    /// Length of the longest token in bytes.
    pub fn max_len(&self) -> usize {
        self.max_len
    }

    /// Number of tokens.
    pub fn token_count(&self) -> usize {
        self.tokens.len()
    }

    /// How many tokens end at nodes before `node`: the index of its first one in `tokens`.
    #[inline]
    fn tokens_before(&self, node: NodeId) -> usize {
        self.token_start[node as usize] as usize
    }
}

impl fmt::Debug for Trie {
    /// Sizes only: the arrays have hundreds of thousands of entries.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trie")
            .field("nodes", &self.len())
            .field("tokens", &self.tokens.len())
            .field("max_len", &self.max_len)
            .finish_non_exhaustive()
    }
}

/// The first eight bytes as a number that orders as they do (shorter ones are filled with zeros,
/// so that equal keys still need the bytes): most comparisons of the sort end here.
fn prefix_key(bytes: &[u8]) -> u64 {
    let mut key = [0; 8];
    let len = bytes.len().min(8);
    key[..len].copy_from_slice(&bytes[..len]);
    u64::from_be_bytes(key)
}

/// The node at one depth of the path from the root to the newest node.
struct Open {
    node: NodeId,
    below: ByteSet,
}

/// Builds a [`Trie`] from sorted tokens: a new token closes the nodes of the last path that it does
/// not share, and opens the rest of its own.
struct Builder {
    trie: Trie,
    /// By which byte a node is reached, and from which node; the root has dummies.
    edges: Vec<(u8, NodeId)>,
    path: Vec<Open>,
    /// Bytes of the path: those of the last token.
    last: Vec<u8>,
    sets: SetIndex,
}

/// Finds the number of a set in `Trie::byte_sets`; the sets themselves are only there.
#[derive(Default)]
struct SetIndex {
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl SetIndex {
    /// The number of `set`, appended to `sets` if it is new.
    fn intern(&mut self, set: &ByteSet, sets: &mut Vec<ByteSet>) -> u32 {
        let hash_of = |set: &ByteSet| self.hasher.hash_one(set);
        let hash = hash_of(set);
        if let Some(&number) = self.numbers.find(hash, |&number| sets[number as usize] == *set) {
            return number;
        }
        let number = sets.len() as u32;
        sets.push(*set);
        self.numbers.insert_unique(hash, number, |&number| hash_of(&sets[number as usize]));
        number
    }
}

impl Builder {
    fn with_capacity(tokens: usize) -> Self {
        // Real vocabularies have about two nodes a token.
        let nodes = 2 * tokens + 1;
        let mut builder = Self {
            trie: Trie {
                child_start: Vec::new(),
                child_bytes: Vec::new(),
                child_ids: Vec::new(),
                root: Box::new([0; 256]),
                subtree_end: Vec::with_capacity(nodes),
                token_start: Vec::with_capacity(nodes + 1),
                tokens: Vec::with_capacity(tokens),
                below: Vec::with_capacity(nodes),
                byte_sets: vec![[0; 4]],
                max_len: 0,
            },
            edges: Vec::with_capacity(nodes),
            path: Vec::new(),
            last: Vec::new(),
            sets: SetIndex::default(),
        };
        builder.open(0, Trie::ROOT);
        builder
    }

    /// Adds a token that is not less than the last one.
    fn push(&mut self, bytes: &[u8], id: TokenId) {
        let shared = self.last.iter().zip(bytes).take_while(|(a, b)| a == b).count();
        self.close_below(shared);
        self.last.truncate(shared);
        for &byte in &bytes[shared..] {
            let parent = self.path[self.path.len() - 1].node;
            self.open(byte, parent);
            self.last.push(byte);
        }
        self.trie.tokens.push(id);
        self.trie.max_len = self.trie.max_len.max(bytes.len());
    }

    /// Appends a node; `token_start` may be set now because tokens come in preorder.
    fn open(&mut self, byte: u8, parent: NodeId) {
        let trie = &mut self.trie;
        let node = trie.subtree_end.len() as NodeId;
        trie.subtree_end.push(node + 1);
        trie.token_start.push(trie.tokens.len() as u32);
        trie.below.push(0);
        self.edges.push((byte, parent));
        self.path.push(Open { node, below: [0; 4] });
    }

    /// Closes the open nodes deeper than `depth`: their subtrees are complete.
    fn close_below(&mut self, depth: usize) {
        while self.path.len() > depth + 1 {
            let Some(open) = self.path.pop() else { return };
            self.close(&open);
            let (byte, _) = self.edges[open.node as usize];
            if let Some(parent) = self.path.last_mut() {
                for (to, from) in parent.below.iter_mut().zip(open.below) {
                    *to |= from;
                }
                parent.below[byte as usize / 64] |= 1 << (byte % 64);
            }
        }
    }

    fn close(&mut self, open: &Open) {
        let trie = &mut self.trie;
        trie.subtree_end[open.node as usize] = trie.subtree_end.len() as NodeId;
        // Leaves, more than half of the nodes, keep set 0, the empty one.
        if open.below != [0; 4] {
            trie.below[open.node as usize] = self.sets.intern(&open.below, &mut trie.byte_sets);
        }
    }

    fn finish(mut self) -> Trie {
        self.close_below(0);
        if let Some(root) = self.path.pop() {
            self.close(&root);
        }
        let mut trie = self.trie;
        trie.token_start.push(trie.tokens.len() as u32);
        fill_children(&mut trie, &self.edges);
        trie
    }
}

/// Groups the edges by parent. Within a group, the order of ids is also that of bytes.
fn fill_children(trie: &mut Trie, edges: &[(u8, NodeId)]) {
    let mut start = vec![0; edges.len() + 1];
    for &(_, parent) in &edges[1..] {
        start[parent as usize + 1] += 1;
    }
    for node in 1..start.len() {
        start[node] += start[node - 1];
    }
    let mut next = start.clone();
    trie.child_bytes = vec![0; edges.len() - 1];
    trie.child_ids = vec![0; edges.len() - 1];
    for (node, &(byte, parent)) in edges.iter().enumerate().skip(1) {
        let at = &mut next[parent as usize];
        trie.child_bytes[*at as usize] = byte;
        trie.child_ids[*at as usize] = node as NodeId;
        *at += 1;
        if parent == Trie::ROOT {
            trie.root[byte as usize] = node as NodeId;
        }
    }
    trie.child_start = start;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// Every prefix of every token, in the order of bytes, which is preorder; with its tokens.
    fn naive(tokens: &[Vec<u8>]) -> BTreeMap<Vec<u8>, Vec<TokenId>> {
        let mut nodes = BTreeMap::from([(Vec::new(), Vec::new())]);
        for (id, bytes) in tokens.iter().enumerate() {
            for len in 1..=bytes.len() {
                nodes.entry(bytes[..len].to_vec()).or_default();
            }
            nodes.entry(bytes.clone()).or_default().push(id as TokenId);
        }
        nodes
    }

    fn build(tokens: &[Vec<u8>]) -> Trie {
        Trie::new(tokens.iter().enumerate().map(|(id, bytes)| (&bytes[..], id as TokenId)))
    }

    /// Compares everything the trie says about each node with the naive map.
    fn check(tokens: &[Vec<u8>]) {
        let (trie, nodes) = (build(tokens), naive(tokens));
        assert_eq!(trie.len(), nodes.len());
        assert_eq!(trie.token_count(), tokens.len());
        assert_eq!(trie.max_len(), tokens.iter().map(Vec::len).max().unwrap_or(0));
        let paths: Vec<&Vec<u8>> = nodes.keys().collect();
        for (id, (path, here)) in nodes.iter().enumerate() {
            let node = id as NodeId;
            let below: Vec<(usize, &&Vec<u8>)> =
                paths.iter().enumerate().filter(|(_, p)| p.starts_with(path)).collect();
            assert_eq!(trie.tokens(node), here);
            assert_eq!(trie.subtree_end(node) as usize, below[below.len() - 1].0 + 1);
            let tokens: Vec<TokenId> = below.iter().flat_map(|(_, p)| nodes[**p].clone()).collect();
            assert_eq!(trie.subtree_tokens(node), tokens);
            let (bytes, ids): (Vec<u8>, Vec<NodeId>) = below
                .iter()
                .filter(|(_, p)| p.len() == path.len() + 1)
                .map(|&(id, p)| (p[path.len()], id as NodeId))
                .unzip();
            assert_eq!(trie.children(node), (&bytes[..], &ids[..]));
            for byte in 0..=255 {
                let expected = bytes.iter().position(|&b| b == byte).map(|at| ids[at]);
                assert_eq!(trie.child(node, byte), expected);
            }
            let expected: BTreeSet<u8> =
                below.iter().flat_map(|(_, p)| p[path.len()..].to_vec()).collect();
            let set = trie.bytes_below(node);
            let found: BTreeSet<u8> =
                (0..=255).filter(|&b: &u8| set[b as usize / 64] >> (b % 64) & 1 == 1).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn the_example_of_the_module_docs() {
        let tokens = [b"a".to_vec(), b"ab".to_vec(), b"c".to_vec(), b"ab".to_vec()];
        check(&tokens);
        let trie = build(&tokens);
        assert_eq!(trie.len(), 4);
        assert_eq!(trie.subtree_tokens(1), [0, 1, 3]);
        assert_eq!(trie.tokens(2), [1, 3]);
    }

    #[test]
    fn no_tokens() {
        check(&[]);
    }

    #[test]
    fn wide_and_long() {
        check(&(0..=255).map(|b| vec![b]).collect::<Vec<_>>());
        check(&(0..=255).map(|b| vec![7, b, 0]).collect::<Vec<_>>());
        check(&[vec![0; 300], vec![0; 299], vec![0], vec![0; 9], vec![0; 8]]);
    }

    #[test]
    fn a_long_chain_is_not_recursive() {
        let small_stack = std::thread::Builder::new().stack_size(256 << 10);
        let built = small_stack.spawn(|| {
            let token: Vec<u8> = (0..64 << 10).map(|i| (i % 251) as u8).collect();
            let trie = Trie::new([(&token[..], 0), (&token[..9], 1)]).clone();
            format!("{trie:?}")
        });
        let shown = built.ok().and_then(|t| t.join().ok());
        assert_eq!(shown.as_deref(), Some("Trie { nodes: 65537, tokens: 2, max_len: 65536, .. }"));
    }

    proptest! {
        /// Few letters and short tokens, so that prefixes are shared and bytes repeat; the zero
        /// byte, because the sort keys are filled with it.
        #[test]
        fn agrees_with_the_naive_map(
            tokens in prop::collection::vec(prop::collection::vec(
                prop::sample::select(&[0, 1, b'a', 0x80, 0xff][..]), 1..12), 0..60)
        ) {
            check(&tokens);
        }

        #[test]
        fn agrees_with_the_naive_map_on_any_bytes(
            tokens in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..4), 0..80)
        ) {
            check(&tokens);
        }
    }
}
