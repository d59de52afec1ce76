//! The syntax tree of a regular expression: what every dialect is parsed into.
//!
//! The tree is an arena in which children come before their parents, so that passes are loops.
//! Assertions about the neighbourhood of a position are reduced to four primitives; for example
//! `\b` is `(?:<word><not word or end>|<not word or start><word>)`, made of a [`Node::Behind`] and
//! a [`Node::Ahead`] in each branch, and `^` is a `Behind` that holds at the start only.
//!
//! Captures, names and laziness do not change which strings match and are not represented.

use hashbrown::HashMap;
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

/// Index of a [`Node`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NodeId(u32);

impl NodeId {
    /// The position in tables that run parallel to the nodes.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index of a set of code points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ClassId(u32);

/// A regular expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// The empty string.
    Empty,
    /// One code point of the class.
    Class(ClassId),
    /// One after the other.
    Concat(Vec<NodeId>),
    /// Any one of them.
    Alt(Vec<NodeId>),
    /// `min` to `max` times `item`.
    Repeat {
        /// What is repeated.
        item: NodeId,
        /// Least count.
        min: u64,
        /// Greatest count.
        max: Option<u64>,
    },
    /// Nothing, where the code point before is in `class`, or where there is none if `start`.
    Behind {
        /// Allowed code points before.
        class: ClassId,
        /// Whether the start of the string is allowed.
        start: bool,
    },
    /// Nothing, where the code point after is in `class`, or where there is none if `end`.
    Ahead {
        /// Allowed code points after.
        class: ClassId,
        /// Whether the end of the string is allowed.
        end: bool,
    },
    /// Nothing, where `body` matches (or does not, if `negative`) from here on.
    LookAhead {
        /// What is looked for.
        body: NodeId,
        /// Whether it must not be there.
        negative: bool,
    },
    /// Nothing, where `body` matches (or does not, if `negative`) up to here.
    LookBehind {
        /// What is looked for.
        body: NodeId,
        /// Whether it must not be there.
        negative: bool,
    },
}

/// The arena of one expression.
#[derive(Debug, Default)]
pub(super) struct Ast {
    nodes: Vec<Node>,
    /// Whether the node holds no assertion.
    pure: Vec<bool>,
    classes: Vec<ClassUnicode>,
    class_ids: HashMap<Vec<(char, char)>, ClassId>,
}

impl Ast {
    /// The node behind an id.
    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// All ids, children before parents.
    pub(super) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// Whether the node holds no assertion, so that it is a plain set of strings.
    pub(super) fn is_pure(&self, id: NodeId) -> bool {
        self.pure[id.index()]
    }

    /// The code points of a class.
    pub(super) fn class(&self, id: ClassId) -> &ClassUnicode {
        &self.classes[id.0 as usize]
    }

    /// The only code point of the node, if it is such a class.
    pub(super) fn single(&self, id: NodeId) -> Option<char> {
        match self.node(id) {
            Node::Class(class) => match self.class(*class).ranges() {
                [only] if only.start() == only.end() => Some(only.start()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Interns a set of code points.
    pub(super) fn intern(&mut self, class: ClassUnicode) -> ClassId {
        let key = class.iter().map(|range| (range.start(), range.end())).collect();
        let next = ClassId(self.classes.len() as u32);
        let id = *self.class_ids.entry(key).or_insert(next);
        if id == next {
            self.classes.push(class);
        }
        id
    }

    /// A node; its children must be in the arena.
    pub(super) fn add(&mut self, node: Node) -> NodeId {
        let pure = match &node {
            Node::Empty | Node::Class(_) => true,
            Node::Concat(items) | Node::Alt(items) => items.iter().all(|item| self.is_pure(*item)),
            Node::Repeat { item, .. } => self.is_pure(*item),
            Node::Behind { .. }
            | Node::Ahead { .. }
            | Node::LookAhead { .. }
            | Node::LookBehind { .. } => false,
        };
        self.nodes.push(node);
        self.pure.push(pure);
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// A class node.
    pub(super) fn add_class(&mut self, class: ClassUnicode) -> NodeId {
        let class = self.intern(class);
        self.add(Node::Class(class))
    }

    /// `items` one after the other; one item stands for itself. Between assertions, items without
    /// any are one node, which is translated in one piece.
    pub(super) fn concat(&mut self, items: Vec<NodeId>) -> NodeId {
        let mut grouped = Vec::with_capacity(items.len());
        let joins = |a: &NodeId, b: &NodeId| self.is_pure(*a) && self.is_pure(*b);
        let runs: Vec<&[NodeId]> = items.chunk_by(joins).collect();
        for run in runs {
            match run {
                [only] => grouped.push(*only),
                _ => grouped.push(self.add(Node::Concat(run.to_vec()))),
            }
        }
        match grouped[..] {
            [] => self.add(Node::Empty),
            [only] => only,
            _ => self.add(Node::Concat(grouped)),
        }
    }

    /// Any of `items`, of which there is at least one; one item stands for itself.
    pub(super) fn alt(&mut self, items: Vec<NodeId>) -> NodeId {
        match items[..] {
            [only] => only,
            _ => self.add(Node::Alt(items)),
        }
    }

    /// See [`Node::Behind`].
    pub(super) fn behind(&mut self, class: ClassUnicode, start: bool) -> NodeId {
        let class = self.intern(class);
        self.add(Node::Behind { class, start })
    }

    /// See [`Node::Ahead`].
    pub(super) fn ahead(&mut self, class: ClassUnicode, end: bool) -> NodeId {
        let class = self.intern(class);
        self.add(Node::Ahead { class, end })
    }

    /// A position between a code point of `word` and something else (or not so, if `negative`).
    pub(super) fn boundary(&mut self, word: &ClassUnicode, negative: bool) -> NodeId {
        let mut other = word.clone();
        other.negate();
        let before = [self.behind(word.clone(), false), self.behind(other.clone(), true)];
        let after = [self.ahead(word.clone(), false), self.ahead(other, true)];
        let branches = [0, 1].map(|side| {
            let next = if negative { side } else { 1 - side };
            self.concat(vec![before[side], after[next]])
        });
        self.alt(branches.to_vec())
    }

    /// A look-behind; one that depends on the last code point only becomes a [`Node::Behind`].
    pub(super) fn look_behind(&mut self, body: NodeId, negative: bool) -> NodeId {
        let Some((mut class, mut start)) = self.last_position(body) else {
            return self.add(Node::LookBehind { body, negative });
        };
        if negative {
            class.negate();
            start = !start;
        }
        self.behind(class, start)
    }

    /// What must be before a position where `body` ends, if that is one code point or the start.
    fn last_position(&self, body: NodeId) -> Option<(ClassUnicode, bool)> {
        let branches = match self.node(body) {
            Node::Alt(items) => &items[..],
            _ => std::slice::from_ref(&body),
        };
        let mut found = (ClassUnicode::empty(), false);
        for branch in branches {
            match self.node(*branch) {
                Node::Class(class) => found.0.union(self.class(*class)),
                Node::Behind { class, start } => {
                    found.0.union(self.class(*class));
                    found.1 |= start;
                }
                _ => return None,
            }
        }
        Some(found)
    }
}

/// The set of these ranges.
pub(super) fn class_of(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|&(first, last)| ClassUnicodeRange::new(first, last)))
}
