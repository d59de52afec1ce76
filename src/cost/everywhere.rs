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
//! array, object   its own price, all that may become required, and the dearest item or member: key, an escape in it, value
//! ```
//!
//! Where containers nest without end the equations have no solution. Then each open container is counted for
//! itself: the bound is that of the root, and for each container that is open, or that one token may open, the dearest of
//! all (where parts that are containers count nothing). By hand: with tokens that open at most one container, a tree
//! `{"left": tree, "right": tree}` inside 20 objects owes at most 22 times what one of them does: as the root, 20 that are
//! open, one more.
//!
//! It is there for what is plain: no recursion but through containers, no items or keys that are counted or must differ in
//! other ways than by their names, numbers without multiples, no budgets of parts, no indentation. For others
//! there is none, and each configuration is judged by itself, see `narrow`. Undeclared keys are told apart by
//! their names; however many there are, one character more makes another name.

use super::nodes::Nodes;
use super::{Costs, NEVER};
use crate::expr::ExprId;
use crate::grammar::decimal::Decimal;
use crate::grammar::{Node, NodeId, NumberSpec, ObjectSpec, Terminal};
use crate::machine::Program;

/// More than a comma, a colon and brackets.
const PUNCTUATION: u64 = 8;

/// More than what a key costs that is unlike others: quotes, an escape to finish, and one character.
const ANY_KEY: u64 = 32;

/// More than what completes a number without bounds.
const NUMBER: u64 = 16;

/// Most members of which there must be some number.
const MEMBERS: u64 = 256;

/// An escape to finish in a key.
const ESCAPE: u64 = 13;

/// With how many tokens left nothing can be wrong with any token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// For the root, and the containers that one token may open; [`NEVER`] if no number is known.
    base: u64,
    /// For each container that is open.
    level: u64,
}

impl Room {
    /// Nothing is known.
    const UNKNOWN: Room = Room { base: NEVER, level: 0 };

    /// The tokens that suffice inside `depth` containers, the end token not counted; [`NEVER`] if that is not known.
    #[inline]
    pub fn tokens(&self, depth: usize) -> u64 {
        self.base.saturating_add(self.level.saturating_mul(depth as u64))
    }
}

impl Costs {
    /// At least the cost of any configuration, the end token not counted.
    pub(super) fn everywhere(&self, program: &Program, nodes: &Nodes) -> Room {
        *self.everywhere.get_or_init(|| {
            if program.has_budgets() || program.is_pretty() {
                return Room::UNKNOWN;
            }
            let root = program.grammar().root();
            let mut bounds = Bounds::new(self, program, nodes, false);
            let mut room = Room { base: bounds.of(root), level: 0 };
            if room.base == NEVER && bounds.recurs {
                bounds = Bounds::new(self, program, nodes, true);
                room.base = bounds.of(root);
                room.level = bounds.level();
                // Those that one token more may open.
                let opened = room.level.saturating_mul(self.vocabulary.most_opened() as u64);
                room.base = room.base.saturating_add(opened);
            }
            room
        })
    }
}

struct Bounds<'a> {
    costs: &'a Costs,
    program: &'a Program,
    nodes: &'a Nodes,
    known: Vec<Option<u64>>,
    /// Whether containers count nothing as parts of others.
    apart: bool,
    /// Whether a node was met inside of itself.
    recurs: bool,
}

impl<'a> Bounds<'a> {
    fn new(costs: &'a Costs, program: &'a Program, nodes: &'a Nodes, apart: bool) -> Self {
        let known = vec![None; program.grammar().len()];
        Self { costs, program, nodes, known, apart, recurs: false }
    }

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
                        _ if self.apart && self.is_container(part) => {}
                        (None, false) => todo.push(part),
                        // It is inside of itself.
                        (None, true) => {
                            self.recurs = true;
                            return NEVER;
                        }
                        _ => {}
                    }
                }
            }
        }
        self.known[root.index()].unwrap_or(NEVER)
    }

    fn is_container(&self, id: NodeId) -> bool {
        matches!(self.program.node(id), Node::Array(_) | Node::Object(_))
    }

    /// The greatest bound of a container.
    fn level(&mut self) -> u64 {
        let nodes = self.program.grammar().nodes().map(|(id, _)| id);
        let containers: Vec<NodeId> = nodes.filter(|&id| self.is_container(id)).collect();
        containers.into_iter().map(|id| self.of(id)).max().unwrap_or(0)
    }

    fn part(&self, id: NodeId) -> u64 {
        // What nothing matches is never entered.
        if !self.program.fits(id, 0) || self.apart && self.is_container(id) {
            return 0;
        }
        self.known[id.index()].unwrap_or(NEVER)
    }

    /// The most that a whole node costs, at whatever depth it fits; it must fit somewhere.
    fn price(&self, id: NodeId) -> u64 {
        let deepest = self.program.limits().output_depth - self.program.height(id);
        let at = |depth| self.nodes.tokens(self.costs, self.program, id, depth);
        at(0).max(at(deepest))
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
        let plain = spec.min <= MEMBERS
            && spec.others.iter().all(|class| class.min == 0 && class.max.is_none());
        if !plain {
            return NEVER;
        }
        let declared = spec
            .properties
            .iter()
            .map(|property| (super::prices::spelled(&property.name).len() as u64, property.value));
        let others = spec.others.iter().map(|class| {
            let free = self
                .program
                .states()
                .with_exprs(|exprs| class.keys == ExprId::ANY || exprs.bars_literals(class.keys));
            (if free { ANY_KEY } else { NEVER }, class.value)
        });
        let (mut dearest, mut whole) = (0, 0);
        for (key, value) in declared.clone().chain(others) {
            dearest = self.part(value).saturating_add(key).max(dearest);
            whole = self.member(key, value).max(whole);
        }
        // Those that others ask for, and those of which there must be some number.
        let mut asked: Vec<u32> = spec.dependent.iter().map(|&(_, target)| target).collect();
        asked.sort_unstable();
        asked.dedup();
        let more = declared.enumerate().filter(|&(i, _)| asked.binary_search(&(i as u32)).is_ok());
        let more = more.map(|(_, (key, value))| self.member(key, value));
        let required = spec.properties.iter().filter(|property| property.required).count() as u64;
        let counted = whole.saturating_mul(spec.min.saturating_sub(required));
        let own = self.price(id).saturating_add(dearest).saturating_add(counted);
        more.fold(own, u64::saturating_add).saturating_add(ESCAPE + PUNCTUATION)
    }

    /// The most that a whole member costs, with a comma, if its value can be written.
    fn member(&self, key: u64, value: NodeId) -> u64 {
        if !self.program.fits(value, 0) {
            return 0;
        }
        self.price(value).saturating_add(key).saturating_add(PUNCTUATION)
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
