//! A byte trie in flat arrays, nodes in preorder.
//!
//! (Interface; the vocabulary author completes it.)
use super::TokenId;

/// Node of a [`Trie`]; the root is 0, ids are in preorder (a subtree is a range of ids).
pub type NodeId = u32;

/// The trie of all text tokens.
#[derive(Debug, Clone)]
pub struct Trie {}

#[allow(unused_variables)]
impl Trie {
    /// The root.
    pub const ROOT: NodeId = 0;
    /// Builds the trie of `(bytes, id)`; several ids may have the same bytes; bytes are not empty.
    pub fn new<'a>(tokens: impl IntoIterator<Item = (&'a [u8], TokenId)>) -> Self { todo!() }
    /// Number of nodes, the root included.
    pub fn len(&self) -> usize { todo!() }
    /// Bytes (ascending) and ids of the children of a node.
    pub fn children(&self, node: NodeId) -> (&[u8], &[NodeId]) { todo!() }
    /// The child by a byte.
    pub fn child(&self, node: NodeId, byte: u8) -> Option<NodeId> { todo!() }
    /// Tokens that end at a node.
    pub fn tokens(&self, node: NodeId) -> &[TokenId] { todo!() }
    /// One past the last node of the subtree of `node`.
    pub fn subtree_end(&self, node: NodeId) -> NodeId { todo!() }
    /// Tokens of the subtree of `node`, those at `node` included, in preorder (a slice, O(1)).
    pub fn subtree_tokens(&self, node: NodeId) -> &[TokenId] { todo!() }
    /// Bytes that occur on edges strictly below `node`, as a 256-bit set.
    pub fn bytes_below(&self, node: NodeId) -> &[u64; 4] { todo!() }
    /// Length of the longest token in bytes.
    pub fn max_len(&self) -> usize { todo!() }
}
