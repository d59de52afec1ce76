//! The cost of every node of a grammar: the least solution of one equation per node.
//!
//! ```text
//! terminal   its shortest text        sequence   the sum           choice   the least
//! repetition the items it must have   array, object   brackets, and what they owe when empty
//! ```
//!
//! With each cost goes a *height*: how many containers the completion that it counts nests. If it
//! does not fit the depth limit where it is used, the *flat* cost is: the same equations, solved
//! over the completions of least height, which fit wherever the grammar offers the node.
//!
//! Exact indentation takes more tokens the deeper it is. So a [`Price`] counts lines apart, and
//! what a line costs is known once the depth is.
//!
//! Invariant: the price of a node is at least what its equation gives for the prices of its parts.
//! That is all that consistency needs; it also holds where an addition saturates.

use std::sync::OnceLock;

use super::owed::Owed;
use super::{Costs, NEVER};
use crate::error::Result;
use crate::grammar::{Node, NodeId};
use crate::limits::Fuel;
use crate::machine::Program;
use crate::machine::program::NEVER as NO_HEIGHT;
use crate::machine::states::{Excess, Punct};

/// Tokens, and lines of exact indentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// Tokens that do not depend on the depth; [`NEVER`] if there is no completion.
    pub tokens: u64,
    /// Line breaks with their indentation.
    pub lines: u64,
}

impl Price {
    /// Nothing.
    pub const NOTHING: Price = Price { tokens: 0, lines: 0 };
    /// No completion.
    pub const NEVER: Price = Price { tokens: NEVER, lines: 0 };

    /// So many tokens.
    pub fn tokens(tokens: u64) -> Self {
        Self { tokens, lines: 0 }
    }

    /// Both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            lines: self.lines.saturating_add(other.lines),
        }
    }

    /// So many times.
    pub fn times(self, n: u64) -> Self {
        Self { tokens: self.tokens.saturating_mul(n), lines: self.lines.saturating_mul(n) }
    }

    /// For comparing prices before the depth is known.
    fn rank(self) -> u64 {
        self.tokens.saturating_add(self.lines.saturating_mul(2))
    }
}

/// One solution of the equations.
#[derive(Debug)]
struct Table {
    prices: Vec<Price>,
    heights: Vec<u8>,
    /// Which part a choice takes. Set when a price falls, so that following it comes to an end.
    choices: Vec<u32>,
}

/// The prices of all nodes.
#[derive(Debug)]
pub struct Nodes {
    least: Table,
    flat: OnceLock<Table>,
    /// The most that a line costs inside at most so many containers; empty without indentation.
    lines: Vec<u64>,
}

/// What the equations know of the parts.
struct Parts<'a> {
    table: &'a Table,
    /// Parts that nest deeper do not count.
    cap: u8,
}

impl Parts<'_> {
    fn get(&self, id: NodeId) -> (Price, u8) {
        let height = self.table.heights[id.index()];
        if height > self.cap {
            return (Price::NEVER, NO_HEIGHT);
        }
        (self.table.prices[id.index()], height)
    }
}

impl Nodes {
    /// Solves the equations.
    pub fn new(costs: &Costs, program: &Program) -> Result<Self> {
        let mut fuel = Fuel::new(program.limits().fuel);
        let least = solve(costs, program, &mut fuel, &|_| NO_HEIGHT - 1)?;
        let mut lines = Vec::new();
        if program.is_pretty() {
            let breaks =
                [Punct::Comma, Punct::CloseArray, Punct::CloseObject, Punct::Indent, Punct::Colon];
            let mut most = 0;
            for depth in 0..=program.limits().output_depth {
                for punct in breaks {
                    let state = program.punct(punct, depth);
                    most = most.max(costs.terminal(program, state, Excess::NONE));
                }
                lines.push(most);
            }
        }
        Ok(Self { least, flat: OnceLock::new(), lines })
    }

    /// The tokens of a node inside `depth` containers.
    pub fn tokens(&self, costs: &Costs, program: &Program, id: NodeId, depth: u8) -> u64 {
        let limit = program.limits().output_depth;
        let (price, height) = (self.least.prices[id.index()], self.least.heights[id.index()]);
        if price.tokens != NEVER && depth.saturating_add(height) <= limit {
            return self.at(price, depth.saturating_add(height));
        }
        if !program.fits(id, depth) {
            return NEVER;
        }
        let flat = self.flat.get_or_init(|| {
            let cap = |id| program.height(id);
            // The second solution has fewer choices than the first, which there was fuel for.
            solve(costs, program, &mut Fuel::new(u64::MAX), &cap)
                .unwrap_or_else(|_| Table::unknown(program))
        });
        self.at(flat.prices[id.index()], limit)
    }

    /// Whether the completion that is counted for a node fits inside `depth` containers.
    pub fn fits(&self, program: &Program, id: NodeId, depth: u8) -> bool {
        let (price, height) = (self.least.prices[id.index()], self.least.heights[id.index()]);
        price.tokens != NEVER && depth.saturating_add(height) <= program.limits().output_depth
    }

    /// The price of a node where the depth is no matter.
    pub fn price(&self, id: NodeId) -> Price {
        self.least.prices[id.index()]
    }

    /// The part that a choice takes.
    pub fn choice(&self, id: NodeId) -> usize {
        self.least.choices[id.index()] as usize
    }

    /// Tokens of a price down to a depth.
    fn at(&self, price: Price, deepest: u8) -> u64 {
        let line = self.lines.get(usize::from(deepest)).or(self.lines.last()).copied();
        price.tokens.saturating_add(price.lines.saturating_mul(line.unwrap_or(0)))
    }
}

impl Table {
    fn unknown(program: &Program) -> Self {
        let nodes = program.grammar().len();
        Self {
            prices: vec![Price::NEVER; nodes],
            heights: vec![NO_HEIGHT; nodes],
            choices: vec![0; nodes],
        }
    }
}

/// The least solution with completions of at most the height `cap` for each node.
fn solve(
    costs: &Costs,
    program: &Program,
    fuel: &mut Fuel,
    cap: &dyn Fn(NodeId) -> u8,
) -> Result<Table> {
    let mut table = Table::unknown(program);
    let mut ids: Vec<NodeId> = program
        .grammar()
        .nodes()
        .map(|(id, _)| id)
        .filter(|&id| program.height(id) != NO_HEIGHT)
        .collect();
    loop {
        let mut changed = false;
        for &id in &ids {
            let (price, height, choice) = equation(costs, program, &table, id, cap(id), fuel)?;
            if price.rank() < table.prices[id.index()].rank() {
                table.prices[id.index()] = price;
                table.heights[id.index()] = height;
                table.choices[id.index()] = choice;
                changed = true;
            }
        }
        if !changed {
            return Ok(table);
        }
        ids.reverse();
    }
}

/// The price and the height of a node, given those of its parts so far, and the part that a choice
/// takes.
fn equation(
    costs: &Costs,
    program: &Program,
    table: &Table,
    id: NodeId,
    cap: u8,
    fuel: &mut Fuel,
) -> Result<(Price, u8, u32)> {
    let parts = Parts { table, cap };
    let mut choice = 0;
    fuel.spend(1)?;
    let (price, height) = match program.node(id) {
        Node::Never => (Price::NEVER, NO_HEIGHT),
        Node::Empty => (Price::NOTHING, 0),
        Node::Terminal(terminal) => {
            let start = program.start(id, terminal);
            if !start.state.is_live() {
                return Ok((Price::NEVER, NO_HEIGHT, 0));
            }
            (Price::tokens(costs.terminal(program, start.state, start.excess)), 0)
        }
        Node::Rule(target) | Node::Within { item: target, .. } => parts.get(*target),
        Node::Seq(list) => {
            fuel.spend(list.len() as u64)?;
            let sum = |(price, height): (Price, u8), &part: &NodeId| {
                let (own, own_height) = parts.get(part);
                (price.plus(own), height.max(own_height))
            };
            list.iter().fold((Price::NOTHING, 0), sum)
        }
        Node::Alt(list) => {
            fuel.spend(list.len() as u64)?;
            let prices = list.iter().map(|&part| parts.get(part));
            let least = prices.zip(0..).min_by_key(|((price, _), _)| price.rank());
            let (least, at) = least.unwrap_or(((Price::NEVER, NO_HEIGHT), 0));
            choice = at;
            least
        }
        Node::Repeat { min: 0, .. } => (Price::NOTHING, 0),
        Node::Repeat { item, separator, min, .. } => {
            let (item, height) = parts.get(*item);
            let (separator, other) = match separator.filter(|_| *min > 1) {
                Some(separator) => parts.get(separator),
                None => (Price::NOTHING, 0),
            };
            (item.times(*min).plus(separator.times(*min - 1)), height.max(other))
        }
        Node::Array(_) | Node::Object(_) => {
            // What is inside nests one level less.
            let parts = Parts { table, cap: cap.saturating_sub(1) };
            let depth = program.limits().output_depth.saturating_sub(parts.cap);
            let value = |id, _: u8| parts.get(id);
            let mut owed = Owed::new(costs, program, &value);
            let (price, height) = owed.whole(id, depth, fuel)?;
            (price, if height == NO_HEIGHT { NO_HEIGHT } else { (height + 1).min(NO_HEIGHT - 1) })
        }
    };
    Ok((price, height, choice))
}
