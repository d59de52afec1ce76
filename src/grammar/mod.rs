//! The one intermediate representation: what every front-end produces and the machine runs.
use crate::error::Place;
use crate::expr::{ExprId, Exprs};
use crate::limits::Limits;
use crate::regex::Format;

pub mod decimal;
mod print;
mod save;
use decimal::Decimal;

/// Index of a [`Node`] in its [`Grammar`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// Position among the nodes of the grammar.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A piece of a grammar.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// Nothing matches: an unsatisfiable branch.
    Never,
    /// The empty string.
    Empty,
    /// A maximal piece without recursion.
    Terminal(Terminal),
    /// One after the other.
    Seq(Vec<NodeId>),
    /// Any one of them.
    Alt(Vec<NodeId>),
    /// `min` to `max` times `item`, with `separator` between.
    Repeat {
        /// What is repeated.
        item: NodeId,
        /// What stands between two of them.
        separator: Option<NodeId>,
        /// Least number of items.
        min: u64,
        /// Greatest number of items.
        max: Option<u64>,
    },
    /// The same as another node: the way to write recursion. Reserved with
    /// [`Grammar::reserve`], filled with [`Grammar::define`].
    Rule(NodeId),
    /// `item`, in which at most so many tokens begin.
    Within {
        /// What is bounded.
        item: NodeId,
        /// Most tokens.
        tokens: u32,
    },
    /// A JSON array.
    Array(ArraySpec),
    /// A JSON object.
    Object(ObjectSpec),
}

impl Node {
    /// The nodes that it consists of, in the order of its text.
    pub fn children(&self) -> Vec<NodeId> {
        match self {
            Node::Never | Node::Empty | Node::Terminal(_) => Vec::new(),
            Node::Seq(parts) | Node::Alt(parts) => parts.clone(),
            Node::Rule(target) | Node::Within { item: target, .. } => vec![*target],
            Node::Repeat { item, separator, .. } => {
                std::iter::once(*item).chain(*separator).collect()
            }
            Node::Array(spec) => {
                spec.prefix.iter().flatten().chain(&spec.rest).map(|class| class.node).collect()
            }
            Node::Object(spec) => {
                let declared = spec.properties.iter().map(|property| property.value);
                declared.chain(spec.others.iter().map(|class| class.value)).collect()
            }
        }
    }
}

/// A language of byte strings without recursion.
#[derive(Debug, Clone, PartialEq)]
pub enum Terminal {
    /// Text whose code points match the expression, as UTF-8.
    Text(ExprId),
    /// A JSON string (with its quotes) whose decoded value matches the expression, in any spelling.
    String(ExprId),
    /// A JSON string of this format and nothing else: shared by all grammars of a vocabulary.
    Format(Format),
    /// A JSON number out of a set.
    Number(NumberSpec),
    /// White space around a whole JSON document.
    Margin,
    /// One special token, named by its text or id; never spelled as bytes.
    Special(SpecialSpec),
}

/// Special tokens a grammar may name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SpecialSpec {
    /// The token with this text, such as `<|im_end|>`.
    Named(String),
    /// The token with this id.
    Id(u32),
    /// Any token (special or not) but these.
    Not(Vec<SpecialSpec>),
}

/// A set of JSON numbers: an interval, intersected with multiples.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NumberSpec {
    /// Only numbers without a fractional part (`1.0` and `1e2` count).
    pub integer: bool,
    /// Lower bound, and whether it is exclusive.
    pub min: Option<(Decimal, bool)>,
    /// Upper bound, and whether it is exclusive.
    pub max: Option<(Decimal, bool)>,
    /// The value is a multiple of each of these (positive).
    pub multiple_of: Vec<Decimal>,
    /// The value is a multiple of none of these (positive).
    pub not_multiple_of: Vec<Decimal>,
    /// Only numbers with a fractional part (the complement of `integer`).
    pub fractional: bool,
    /// Only spellings without a point and an exponent (the integers of draft 4).
    pub whole: bool,
    /// Only spellings with an exponent.
    pub float: bool,
}

/// One way an item of an array can be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ItemClass {
    /// The item.
    pub node: NodeId,
    /// Bit i: it counts for `contains[i]`.
    pub counts: u32,
}

/// A JSON array.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ArraySpec {
    /// Items by position: the alternatives for each. An item that counts for a condition without an
    /// upper bound may also go uncounted; for one with an upper bound the alternatives are disjoint.
    pub prefix: Vec<Vec<ItemClass>>,
    /// Items after the prefix; empty: none may follow.
    pub rest: Vec<ItemClass>,
    /// Least number of items.
    pub min: u64,
    /// Greatest number of items.
    pub max: Option<u64>,
    /// Bounds of how many items count for each `contains`: at most four, up to 60,000.
    pub contains: Vec<(u64, Option<u64>)>,
    /// No two items are equal.
    pub unique: bool,
    /// Some two items are equal. Then there are no `contains`, and at least two items may come
    /// after the prefix.
    pub equal: bool,
}

/// A declared property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property {
    /// Decoded name.
    pub name: String,
    /// Its value.
    pub value: NodeId,
    /// Whether it must be there.
    pub required: bool,
}

/// Keys that are not declared by name, and their value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherKeys {
    /// The decoded keys: disjoint from the declared names, and from the other classes unless this or
    /// the other has a least number (then a key belongs to any one of those it matches).
    pub keys: ExprId,
    /// Their value.
    pub value: NodeId,
    /// Least number of keys of this class.
    pub min: u64,
    /// Greatest number of keys of this class.
    pub max: Option<u64>,
}

/// A JSON object.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectSpec {
    /// Declared properties, in the order in which they come out.
    pub properties: Vec<Property>,
    /// Classes of undeclared keys.
    pub others: Vec<OtherKeys>,
    /// Least number of properties.
    pub min: u64,
    /// Greatest number of properties.
    pub max: Option<u64>,
    /// In which order keys may come.
    pub order: PropertyOrder,
    /// If property `.0` (an index) is there, property `.1` must be too.
    pub dependent: Vec<(u32, u32)>,
}

/// In which order the keys of an object may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PropertyOrder {
    /// Declared keys in their order, then the undeclared ones.
    #[default]
    Declared,
    /// Any order.
    Any,
}

/// White space between the tokens of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Whitespace {
    /// None.
    Compact,
    /// Exactly as `serde_json::to_string_pretty`, with this many spaces per level.
    Pretty(u8),
    /// Any legal white space, in bounded runs.
    #[default]
    Flexible,
}

/// A grammar: an arena of nodes and of the expressions they use.
#[derive(Debug, Clone)]
pub struct Grammar {
    /// Expressions of the terminals and keys.
    pub exprs: Exprs,
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: NodeId,
    /// Where the budgets of nodes are stated, as far as known.
    pub(crate) budgets: Vec<(NodeId, Place)>,
    /// White space of the JSON nodes.
    pub whitespace: Whitespace,
    /// Budgets.
    pub limits: Limits,
}

impl Grammar {
    /// An empty grammar whose root is [`Node::Never`].
    pub fn new(limits: Limits) -> Self {
        Self {
            exprs: Exprs::new(),
            nodes: vec![Node::Never],
            root: NodeId(0),
            budgets: Vec::new(),
            whitespace: Whitespace::default(),
            limits,
        }
    }
    /// Adds a node.
    pub fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }
    /// Reserves a node to be defined later (recursion).
    pub fn reserve(&mut self) -> NodeId {
        self.add(Node::Never)
    }
    /// Makes reserved node `id` the same as `target`.
    pub fn define(&mut self, id: NodeId, target: NodeId) {
        self.nodes[id.0 as usize] = Node::Rule(target);
    }
    /// The same grammar without budgets of parts: for texts that are read byte by byte.
    #[must_use]
    pub fn without_budgets(mut self) -> Self {
        for node in &mut self.nodes {
            if let Node::Within { item, .. } = *node {
                *node = Node::Rule(item);
            }
        }
        self.budgets.clear();
        self
    }

    /// The node behind an id.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }
    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }
    /// Whether there are no nodes: never, the start is one.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
    /// All nodes with their ids.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(i, node)| (NodeId(i as u32), node))
    }
    /// The start node.
    pub fn root(&self) -> NodeId {
        self.root
    }
    /// Sets the start node.
    pub fn set_root(&mut self, root: NodeId) {
        self.root = root;
    }
}
