//! Which nodes may be empty, and which nodes begin with which others.
//!
//! Both are properties of the grammar alone, so that a closure ([`super::run`]) need not find them
//! out anew at every byte: where a node may be empty, what follows it is started at the same time
//! as the node itself, and nodes are started in an order in which all that begin with a node come
//! before it.
//!
//! By hand, for `S = A? B "x"`, `A = B "y"`, `B = "b"`: `A?` may be empty, so `S` begins with `A?`
//! or with `B`; `A` begins with `B`. The ranks are `S` 1, `A?` 2, `A` 3, `B` 4: when `B` is started,
//! it is known that both `"y"` and `"x"` may follow it.
//!
//! Ranks are an order of work, not a promise: where rules begin with each other in a cycle (the
//! front-ends make none), some rank is too low, and the closure starts that node again.

use crate::error::Result;
use crate::grammar::{Grammar, Node, NodeId, Terminal};
use crate::limits::Fuel;

use super::stack::Step;

/// See the module's documentation.
#[derive(Debug)]
pub struct Flow {
    empty: Vec<bool>,
    ranks: Vec<u32>,
}

impl Flow {
    /// Analyses a grammar. `margin`: whether the white space around a document may be missing.
    ///
    /// # Errors
    /// When the fuel is used up.
    pub fn new(grammar: &Grammar, margin: bool, fuel: &mut Fuel) -> Result<Self> {
        let mut flow = Self { empty: vec![false; grammar.len()], ranks: vec![0; grammar.len()] };
        flow.find_empty(grammar, margin, fuel)?;
        flow.find_ranks(grammar, fuel)?;
        Ok(flow)
    }

    /// Whether a node may be empty.
    #[inline]
    pub fn is_empty(&self, id: NodeId) -> bool {
        self.empty[id.index()]
    }

    /// Its place in the order of work: less than that of the nodes that it begins with.
    #[inline]
    pub fn rank(&self, id: NodeId) -> u32 {
        self.ranks[id.index()]
    }

    /// Whether what a frame stands for may be over: nothing of it has to follow.
    #[inline]
    pub fn can_end(&self, grammar: &Grammar, step: &Step) -> bool {
        let node = |id: &NodeId| grammar.node(*id);
        match step {
            Step::Seq { node: id, next } => match node(id) {
                Node::Seq(parts) => parts.iter().skip(*next as usize).all(|&id| self.is_empty(id)),
                _ => false,
            },
            Step::Repeat { node: id, count } => match node(id) {
                Node::Repeat { item, separator, min, .. } => {
                    count >= min || self.is_empty(*item) && self.none_or_empty(*separator)
                }
                _ => false,
            },
            Step::Separated { node: id, count } => match node(id) {
                Node::Repeat { item, separator, min, .. } => {
                    self.is_empty(*item) && (count + 1 >= *min || self.none_or_empty(*separator))
                }
                _ => false,
            },
            Step::Enter(id) | Step::EnterAs { node: id, .. } => self.is_empty(*id),
            Step::Doubt => true,
            Step::Within { room } => *room > 0,
            _ => false,
        }
    }

    /// Whether nothing need stand between two items.
    pub fn none_or_empty(&self, separator: Option<NodeId>) -> bool {
        separator.is_none_or(|separator| self.is_empty(separator))
    }

    /// The least fixpoint of one equation per node.
    fn find_empty(&mut self, grammar: &Grammar, margin: bool, fuel: &mut Fuel) -> Result<()> {
        let mut inner = Vec::new();
        for (id, node) in grammar.nodes() {
            match node {
                Node::Empty => self.empty[id.index()] = true,
                Node::Terminal(Terminal::Text(expr)) => {
                    self.empty[id.index()] = grammar.exprs.nullable(*expr);
                }
                Node::Terminal(Terminal::Margin) => self.empty[id.index()] = margin,
                Node::Seq(_)
                | Node::Alt(_)
                | Node::Rule(_)
                | Node::Within { .. }
                | Node::Repeat { .. } => inner.push(id),
                Node::Terminal(_) | Node::Never | Node::Array(_) | Node::Object(_) => {}
            }
        }
        loop {
            let mut changed = false;
            for &id in &inner {
                if self.empty[id.index()] {
                    continue;
                }
                fuel.spend(1)?;
                if self.made_of_empty(grammar.node(id), fuel)? {
                    self.empty[id.index()] = true;
                    changed = true;
                }
            }
            if !changed {
                return Ok(());
            }
            inner.reverse();
        }
    }

    fn made_of_empty(&self, node: &Node, fuel: &mut Fuel) -> Result<bool> {
        Ok(match node {
            Node::Rule(target) | Node::Within { item: target, .. } => self.is_empty(*target),
            Node::Seq(parts) => parts.iter().all(|&part| self.is_empty(part)),
            Node::Alt(parts) => {
                fuel.spend(parts.len() as u64)?;
                parts.iter().any(|&part| self.is_empty(part))
            }
            Node::Repeat { item, separator, min, max } => {
                let separated = *min < 2 || self.none_or_empty(*separator);
                max.is_none_or(|max| max >= *min)
                    && (*min == 0 || self.is_empty(*item) && separated)
            }
            _ => false,
        })
    }

    /// Numbers the nodes so that a node comes before those that it begins with.
    fn find_ranks(&mut self, grammar: &Grammar, fuel: &mut Fuel) -> Result<()> {
        let mut next = grammar.len() as u32;
        let mut seen = vec![false; grammar.len()];
        let mut open: Vec<(NodeId, usize)> = Vec::new();
        for (root, _) in grammar.nodes() {
            if !std::mem::replace(&mut seen[root.index()], true) {
                open.push((root, 0));
            }
            while let Some((id, child)) = open.last_mut() {
                let begin = self.begin(grammar.node(*id), *child);
                *child += 1;
                fuel.spend(1)?;
                match begin {
                    Some(begin) if !std::mem::replace(&mut seen[begin.index()], true) => {
                        open.push((begin, 0));
                    }
                    Some(_) => {}
                    None => {
                        self.ranks[id.index()] = next;
                        next -= 1;
                        open.pop();
                    }
                }
            }
        }
        Ok(())
    }

    /// The i-th of the nodes with which a node may begin; those before it may be empty.
    fn begin(&self, node: &Node, i: usize) -> Option<NodeId> {
        let after = |before: Option<&NodeId>| before.is_none_or(|&before| self.is_empty(before));
        match node {
            Node::Rule(target) | Node::Within { item: target, .. } => (i == 0).then_some(*target),
            Node::Alt(parts) => parts.get(i).copied(),
            Node::Seq(parts) => {
                let before = i.checked_sub(1).and_then(|before| parts.get(before));
                parts.get(i).copied().filter(|_| after(before))
            }
            Node::Repeat { item, separator, .. } => match i {
                0 => Some(*item),
                1 => separator.filter(|_| self.is_empty(*item)),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn who_begins_comes_first() {
        let mut grammar = Grammar::new(Limits::default());
        let text = |grammar: &mut Grammar, text: &str| {
            let expr = grammar.exprs.literal(text);
            grammar.add(Node::Terminal(Terminal::Text(expr)))
        };
        let [b, x, y] = ["b", "x", "y"].map(|letter| text(&mut grammar, letter));
        let rule = grammar.reserve();
        grammar.define(rule, b);
        let a = grammar.add(Node::Seq(vec![rule, y]));
        let empty = grammar.add(Node::Empty);
        let maybe = grammar.add(Node::Alt(vec![a, empty]));
        let s = grammar.add(Node::Seq(vec![maybe, rule, x]));
        let flow = Flow::new(&grammar, true, &mut Fuel::new(1_000)).unwrap();
        assert!(flow.is_empty(maybe) && !flow.is_empty(s) && !flow.is_empty(rule));
        let ranks = [s, maybe, a, rule, b].map(|id| flow.rank(id));
        assert!(ranks.is_sorted(), "{ranks:?}");
    }
}
