//! A bound for the cost of every configuration that a constraint can be in.
//!
//! With more tokens left than this, a budget is ample wherever the output is: one comparison, and nothing
//! has to be priced on the way. By hand: `{"a": string}` with `a` required owes at worst an escape and a
//! quote (13 bytes) and the brace inside the value, and besides the whole object once more for what an open
//! object may still owe. With 500 tokens left nobody looks.
//!
//! The bound of a node is what it can cost to complete it from anywhere inside, by one equation each:
//!
//! ```text
//! terminal    its farthest state            choice   the greatest         sequence   the greatest, and all prices
//! array, object   its own price, and the dearest item or member: key, an escape in it, value
//! ```
//!
//! It is there for what is plain: no recursion, no items or keys that are counted or must differ in other ways
//! than by their names, numbers without multiples, no budgets of parts, no indentation. For others it is [`NEVER`],
//! and each configuration is judged by itself, see `narrow`. Undeclared keys are told apart by their names,
//! and the more there are the longer is the next one: so it holds for outputs of fewer than [`FEW`] tokens.

use super::nodes::Nodes;
use super::{Costs, NEVER};
use crate::expr::ExprId;
use crate::grammar::decimal::Decimal;
use crate::grammar::{Node, NodeId, NumberSpec, ObjectSpec, Terminal};
use crate::machine::Program;

/// Steps of an output up to which the bound holds.
pub const FEW: usize = 256;

/// More than a comma, a colon and brackets.
const PUNCTUATION: u64 = 8;

/// More than what a key costs that is unlike [`FEW`] others.
const ANY_KEY: u64 = 32;

/// More than what completes a number without bounds.
const NUMBER: u64 = 16;

/// An escape to finish in a key.
const ESCAPE: u64 = 13;

impl Costs {
    /// At least the cost of any configuration, the end token not counted; [`NEVER`] if that is not known.
    pub(super) fn everywhere(&self, program: &Program, nodes: &Nodes) -> u64 {
        *self.everywhere.get_or_init(|| {
            if program.has_budgets() || program.is_pretty() {
                return NEVER;
            }
            let known = vec![None; program.grammar().len()];
            Bounds { costs: self, program, nodes, known }.of(program.grammar().root())
        })
    }
}

struct Bounds<'a> {
    costs: &'a Costs,
    program: &'a Program,
    nodes: &'a Nodes,
    known: Vec<Option<u64>>,
}

impl Bounds<'_> {
    /// The bound of a node, after those of its parts.
    fn of(&mut self, root: NodeId) -> u64 {
        let mut open = vec![false; self.known.len()];
        let mut todo = vec![root];
        while let Some(&id) = todo.last() {
            if self.known[id.index()].is_some() {
                todo.pop();
            } else if std::mem::replace(&mut open[id.index()], true) {
                self.known[id.index()] = Some(self.own(id));
                todo.pop();
            } else {
                for part in self.program.node(id).children() {
                    match (self.known[part.index()], open[part.index()]) {
                        (None, false) => todo.push(part),
                        // It is inside of itself.
                        (None, true) => return NEVER,
                        _ => {}
                    }
                }
            }
        }
        self.known[root.index()].unwrap_or(NEVER)
    }

    fn part(&self, id: NodeId) -> u64 {
        // What nothing matches is never entered.
        if !self.program.fits(id, 0) { 0 } else { self.known[id.index()].unwrap_or(NEVER) }
    }

    fn price(&self, id: NodeId) -> u64 {
        self.nodes.tokens(self.costs, self.program, id, 0)
    }

    /// The equation of a node.
    fn own(&self, id: NodeId) -> u64 {
        if !self.program.fits(id, 0) {
            return 0;
        }
        let greatest =
            |list: &[NodeId]| list.iter().map(|&part| self.part(part)).max().unwrap_or(0);
        match self.program.node(id) {
            Node::Never | Node::Empty => 0,
            Node::Within { .. } => NEVER,
            Node::Rule(target) => self.part(*target),
            Node::Alt(list) => greatest(list),
            Node::Seq(list) => self.price(id).saturating_add(greatest(list)),
            Node::Repeat { item, separator, .. } => {
                let separator = separator.map_or(0, |separator| self.part(separator));
                self.price(id).saturating_add(self.part(*item)).saturating_add(separator)
            }
            Node::Terminal(terminal) => self.terminal(id, terminal),
            Node::Array(spec) => {
                if spec.unique || spec.equal || !spec.contains.is_empty() {
                    return NEVER;
                }
                let items = spec.prefix.iter().flatten().chain(&spec.rest);
                let dearest = items.map(|class| self.part(class.node)).max().unwrap_or(0);
                self.price(id).saturating_add(dearest).saturating_add(PUNCTUATION)
            }
            Node::Object(spec) => self.object(id, spec),
        }
    }

    fn object(&self, id: NodeId, spec: &ObjectSpec) -> u64 {
        let required = spec.properties.iter().filter(|property| property.required).count() as u64;
        let plain = spec.min <= required
            && spec.dependent.is_empty()
            && spec.others.iter().all(|class| class.min == 0 && class.max.is_none());
        if !plain {
            return NEVER;
        }
        let declared = spec.properties.iter().map(|property| {
            let key = super::prices::spelled(&property.name).len() as u64;
            self.part(property.value).saturating_add(key)
        });
        let others = spec.others.iter().map(|class| {
            let free = self
                .program
                .states()
                .with_exprs(|exprs| class.keys == ExprId::ANY || exprs.bars_literals(class.keys));
            if free { self.part(class.value).saturating_add(ANY_KEY) } else { NEVER }
        });
        let dearest = declared.chain(others).max().unwrap_or(0);
        self.price(id).saturating_add(dearest).saturating_add(ESCAPE + PUNCTUATION)
    }

    fn terminal(&self, id: NodeId, terminal: &Terminal) -> u64 {
        match terminal {
            Terminal::Number(spec) => return number(spec),
            // White space around the document may end anywhere.
            Terminal::Margin => return 1,
            _ => {}
        }
        let start = self.program.start(id, terminal);
        self.price(id).max(self.costs.bound(self.program, start.state, start.excess))
    }
}

/// What completes a number: at most the digits of its bounds, and a few more.
fn number(spec: &NumberSpec) -> u64 {
    if !spec.multiple_of.is_empty() || !spec.not_multiple_of.is_empty() {
        return NEVER;
    }
    let digits = |bound: &Option<(Decimal, bool)>| match bound {
        Some((value, _)) => value.exponent.unsigned_abs().saturating_add(value.digits.len() as u64),
        None => 0,
    };
    NUMBER.saturating_add(digits(&spec.min)).saturating_add(digits(&spec.max))
}
