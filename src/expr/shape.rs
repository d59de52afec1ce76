//! What an expression is made of, for those who write it down in another notation.

use super::node::{Exprs, Node, UNBOUNDED};
use super::{ExprId, LiteralId};

/// An expression taken apart by one level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// No string.
    Never,
    /// The empty string.
    Empty,
    /// One code point out of these ranges.
    Class(Vec<(u32, u32)>),
    /// Any of these strings.
    Literals(Vec<String>),
    /// One after the other.
    Seq(ExprId, ExprId),
    /// Any of them.
    Or(Vec<ExprId>),
    /// So many of it.
    Repeat(ExprId, u64, Option<u64>),
    /// An intersection, a complement, an equation or a piece of a document: see [`Exprs::transitions`].
    Automaton,
}

impl Exprs {
    /// What an expression is made of.
    pub fn shape(&self, expr: ExprId) -> Shape {
        match self.node(expr) {
            Node::Never => Shape::Never,
            Node::Epsilon => Shape::Empty,
            Node::Class(class) => Shape::Class(self.classes.get(class).to_vec()),
            Node::Concat(first, second) => Shape::Seq(first, second),
            Node::Or(parts) => Shape::Or(self.lists.get(parts).to_vec()),
            Node::Repeat(item, min, max) => {
                Shape::Repeat(item, min, (max != UNBOUNDED).then_some(max))
            }
            Node::Literal(id, offset) => Shape::Literals(vec![self.rest_of(id, offset)]),
            Node::Set(set) => {
                let ids = self.kept(set).map(|index| self.set_literal(set.set, index));
                Shape::Literals(ids.map(|id| self.rest_of(id, set.depth)).collect())
            }
            Node::And(_) | Node::Not(_) | Node::Later(..) | Node::Span(..) => Shape::Automaton,
        }
    }

    fn rest_of(&self, id: LiteralId, offset: u32) -> String {
        self.literal_text(id).get(offset as usize..).unwrap_or_default().to_owned()
    }
}
