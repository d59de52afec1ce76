//! A grammar made ready to run: what is productive, how deep it nests, where terminals start.
//!
//! The *height* of a node is the least number of containers that a text of it nests: 0 for a
//! terminal, 1 + the tallest required part for an array or object, [`NEVER`] if nothing matches.
//! It is the least fixpoint of one equation per node and answers two questions with one number:
//! a node is productive if its height is finite, and entering a container at depth `d` can be
//! completed within the depth limit if `d + height` fits.
//!
//! Example: `T = {"v": string, "next": T | null}` with both required has height 1 (`next` may be
//! `null`); without `| null` its equation is `h = 1 + h`, whose least solution is [`NEVER`].
//!
//! Cost: passes over the nodes, alternately up and down, until nothing changes; two or three for
//! grammars of front-ends, which number children before parents. Terminals are checked for
//! emptiness here, so that errors come when compiling; their states are made when reached.

use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;

use super::flow::Flow;
use super::objects::ObjectTable;
use super::states::{Context, Punct, Start, StateId, States};
use crate::error::{Error, Kind, Result};
use crate::expr::{ExprId, Exprs};
use crate::grammar::{ArraySpec, Grammar, Node, NodeId, ObjectSpec, Terminal, Whitespace};
use crate::limits::{Fuel, Limits};

/// Height of a node that matches nothing.
pub const NEVER: u8 = u8::MAX;

/// A grammar ready to run over its terminal states. Immutable but for memoised starts.
#[derive(Debug)]
pub struct Program {
    grammar: Arc<Grammar>,
    heights: Vec<u8>,
    tallest: u8,
    flow: Flow,
    starts: Vec<OnceLock<Start>>,
    objects: Vec<OnceLock<Box<ObjectTable>>>,
    specials: HashMap<NodeId, u32>,
    budgets: bool,
    puncts: OnceLock<[StateId; PUNCTS.len()]>,
    states: States,
}

/// The punctuation that does not depend on the depth, for a direct table.
const PUNCTS: [Punct; 10] = [
    Punct::OpenArray,
    Punct::CloseEmptyArray,
    Punct::CloseArray,
    Punct::OpenObject,
    Punct::CloseEmptyObject,
    Punct::CloseObject,
    Punct::Comma,
    Punct::Colon,
    Punct::Margin,
    Punct::Indent,
];

impl Program {
    /// Analyses `grammar`. `specials` numbers the nodes that are special tokens.
    ///
    /// # Errors
    /// [`Kind::Unsatisfiable`] if nothing matches, [`Kind::TooDeep`] if everything that matches
    /// nests too deep, [`Kind::TooComplex`] when a budget is exceeded.
    pub fn new(
        grammar: Arc<Grammar>,
        universal: Arc<States>,
        specials: HashMap<NodeId, u32>,
        fuel: &mut Fuel,
    ) -> Result<Self> {
        let mut exprs = grammar.exprs.clone();
        let heights = heights(&grammar, &mut exprs, fuel)?;
        let nodes = grammar.len();
        let root = heights[grammar.root().index()];
        if root == NEVER {
            return Err(Error::new(Kind::Unsatisfiable, "nothing satisfies the grammar"));
        }
        if root > grammar.limits.output_depth {
            let limit = grammar.limits.output_depth;
            let message = format!("every document nests deeper than {limit} levels");
            return Err(Error::new(Kind::TooDeep, message).help("raise Limits::output_depth"));
        }
        let states = States::local(universal, exprs);
        let margin = states.punct(grammar.whitespace, Punct::Margin, 0);
        let flow = Flow::new(&grammar, states.get(margin).accepts(), fuel)?;
        let budgets = grammar.nodes().any(|(_, node)| matches!(node, Node::Within { .. }));
        let tallest = heights.iter().copied().filter(|&h| h != NEVER).max().unwrap_or(0);
        Ok(Self {
            grammar,
            heights,
            tallest,
            flow,
            starts: (0..nodes).map(|_| OnceLock::new()).collect(),
            objects: (0..nodes).map(|_| OnceLock::new()).collect(),
            specials,
            budgets,
            puncts: OnceLock::new(),
            states,
        })
    }

    /// The states of the terminals.
    pub fn states(&self) -> &States {
        &self.states
    }

    /// The grammar.
    pub fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    /// Budgets.
    pub fn limits(&self) -> &Limits {
        &self.grammar.limits
    }

    /// What may be empty, and what begins with what.
    #[inline]
    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    /// A node.
    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        self.grammar.node(id)
    }

    /// The array behind a node.
    pub fn array(&self, id: NodeId) -> Option<&ArraySpec> {
        match self.node(id) {
            Node::Array(spec) => Some(spec),
            _ => None,
        }
    }

    /// The object behind a node.
    pub fn object(&self, id: NodeId) -> Option<&ObjectSpec> {
        match self.node(id) {
            Node::Object(spec) => Some(spec),
            _ => None,
        }
    }

    /// The look-up tables of an object, made at the first visit.
    pub fn object_table(&self, id: NodeId) -> Option<&ObjectTable> {
        let spec = self.object(id)?;
        Some(self.objects[id.index()].get_or_init(|| Box::new(ObjectTable::new(self, spec))))
    }

    /// The height of a node, see the module's documentation.
    #[inline]
    pub fn height(&self, id: NodeId) -> u8 {
        self.heights[id.index()]
    }

    /// Whether a node can be completed inside `depth` containers.
    #[inline]
    pub fn fits(&self, id: NodeId, depth: u8) -> bool {
        let height = self.height(id);
        height != NEVER && depth.saturating_add(height) <= self.limits().output_depth
    }

    /// Whether every productive node can be completed inside `depth` containers.
    #[inline]
    pub fn all_fit(&self, depth: u8) -> bool {
        depth.saturating_add(self.tallest) <= self.limits().output_depth
    }

    /// Where a terminal node starts.
    pub fn start(&self, id: NodeId, terminal: &Terminal) -> Start {
        *self.starts[id.index()].get_or_init(|| {
            // Emptiness was decided when compiling, so that an error cannot come now; if one
            // did, the state would be dead and `States::trouble` would say why.
            self.states.start(terminal, self.context(id)).unwrap_or(Start::DEAD)
        })
    }

    /// What decides, besides the terminal, where a terminal node starts.
    pub fn context(&self, id: NodeId) -> Context {
        Context {
            special: self.specials.get(&id).copied().unwrap_or(0),
            digits: self.limits().number_digits,
            whitespace: self.grammar.whitespace,
        }
    }

    /// Whether some part has a budget of tokens of its own.
    #[inline]
    pub fn has_budgets(&self) -> bool {
        self.budgets
    }

    /// Whether the white space is exact and indented.
    pub fn is_pretty(&self) -> bool {
        matches!(self.grammar.whitespace, Whitespace::Pretty(_))
    }

    /// Where punctuation starts inside `depth` containers.
    pub fn punct(&self, punct: Punct, depth: u8) -> StateId {
        let whitespace = self.grammar.whitespace;
        if let Whitespace::Pretty(_) = whitespace {
            return self.states.punct(whitespace, punct, depth);
        }
        let table =
            self.puncts.get_or_init(|| PUNCTS.map(|punct| self.states.punct(whitespace, punct, 0)));
        table[punct as usize]
    }
}

/// The heights of all nodes.
fn heights(grammar: &Grammar, exprs: &mut Exprs, fuel: &mut Fuel) -> Result<Vec<u8>> {
    let mut heights = vec![NEVER; grammar.len()];
    for (id, node) in grammar.nodes() {
        fuel.spend(1)?;
        if let Node::Terminal(terminal) = node {
            heights[id.index()] = if is_empty(grammar, exprs, terminal, fuel)? { NEVER } else { 0 };
        }
    }
    let mut ids: Vec<NodeId> = grammar
        .nodes()
        .filter(|(_, node)| !matches!(node, Node::Terminal(_) | Node::Never))
        .map(|(id, _)| id)
        .collect();
    loop {
        let mut changed = false;
        for &id in &ids {
            let height = height(grammar.node(id), &heights, fuel)?;
            if height < heights[id.index()] {
                heights[id.index()] = height;
                changed = true;
            }
        }
        if !changed {
            return Ok(heights);
        }
        ids.reverse();
    }
}

/// Whether a terminal matches nothing.
fn is_empty(
    grammar: &Grammar,
    exprs: &mut Exprs,
    terminal: &Terminal,
    fuel: &mut Fuel,
) -> Result<bool> {
    match terminal {
        Terminal::Text(expr) | Terminal::String(expr) => exprs.is_never(*expr, fuel),
        Terminal::Number(spec) => {
            let plain = spec.min.is_none()
                && spec.max.is_none()
                && spec.multiple_of.is_empty()
                && spec.not_multiple_of.is_empty();
            let digits = grammar.limits.number_digits;
            Ok(!plain && super::number::NumberMachine::new(spec, digits)?.is_none())
        }
        Terminal::Format(_) | Terminal::Margin | Terminal::Special(_) => Ok(false),
    }
}

/// The height of a node, given those of its parts so far.
fn height(node: &Node, heights: &[u8], fuel: &mut Fuel) -> Result<u8> {
    let of = |id: NodeId| heights[id.index()];
    let tallest = |ids: &[NodeId]| ids.iter().map(|&id| of(id)).max().unwrap_or(0);
    Ok(match node {
        Node::Never => NEVER,
        Node::Empty | Node::Terminal(_) => 0,
        Node::Rule(target) | Node::Within { item: target, .. } => of(*target),
        Node::Seq(parts) => {
            fuel.spend(parts.len() as u64)?;
            tallest(parts)
        }
        Node::Alt(parts) => {
            fuel.spend(parts.len() as u64)?;
            parts.iter().map(|&id| of(id)).min().unwrap_or(NEVER)
        }
        Node::Repeat { min: 0, .. } => 0,
        Node::Repeat { item, separator, min, max } => {
            let separator = separator.filter(|_| *min > 1).map_or(0, of);
            let never = max.is_some_and(|max| max < *min);
            if never { NEVER } else { of(*item).max(separator) }
        }
        Node::Array(spec) => {
            fuel.spend(1 + spec.prefix.len() as u64)?;
            array_height(spec, heights)
        }
        Node::Object(spec) => {
            fuel.spend(1 + spec.properties.len() as u64)?;
            object_height(spec, heights)
        }
    })
}

/// One more than a height; [`NEVER`] stays, and so does the last finite height.
fn above(height: u8) -> u8 {
    if height == NEVER { NEVER } else { (height + 1).min(NEVER - 1) }
}

/// The height of an array: of its required positions, and of what `contains` needs.
fn array_height(spec: &ArraySpec, heights: &[u8]) -> u8 {
    let lowest = |classes: &[crate::grammar::ItemClass], counted: u32| {
        classes
            .iter()
            .filter(|class| class.counts & counted == counted)
            .map(|class| heights[class.node.index()])
            .min()
            .unwrap_or(NEVER)
    };
    if spec.max.is_some_and(|max| max < spec.min) {
        return NEVER;
    }
    // Two equal items can always be those after the prefix.
    let pair = if spec.equal { spec.prefix.len() as u64 + 2 } else { 0 };
    let needed = usize::try_from(spec.min.max(pair)).unwrap_or(usize::MAX);
    let mut height = 0;
    for classes in spec.prefix.iter().take(needed) {
        height = height.max(lowest(classes, 0));
    }
    if needed > spec.prefix.len() {
        height = height.max(lowest(&spec.rest, 0));
    }
    for (i, &(min, _)) in spec.contains.iter().enumerate() {
        if min > 0 {
            let rest = lowest(&spec.rest, 1 << i);
            let prefix = spec.prefix.iter().map(|classes| lowest(classes, 1 << i)).min();
            height = height.max(rest.min(prefix.unwrap_or(NEVER)));
        }
    }
    above(height)
}

/// The height of an object: of its required properties, and of as many more as `min` needs.
fn object_height(spec: &ObjectSpec, heights: &[u8]) -> u8 {
    let mut height = 0;
    let mut required = 0;
    // Heights of what may also be there, and how many of each.
    let mut optional: Vec<(u8, u64)> = Vec::new();
    for property in &spec.properties {
        let own = heights[property.value.index()];
        if property.required {
            required += 1;
            height = height.max(own);
        } else {
            optional.push((own, 1));
        }
    }
    let mut unbounded = NEVER;
    for class in &spec.others {
        let own = if class.keys == ExprId::NEVER { NEVER } else { heights[class.value.index()] };
        if class.min > 0 {
            height = height.max(own);
            required += class.min;
        }
        // How many more keys of the class may come.
        match class.max {
            None => unbounded = unbounded.min(own),
            Some(max) => optional.push((own, max.saturating_sub(class.min))),
        }
    }
    if spec.max.is_some_and(|max| max < spec.min.max(required)) {
        return NEVER;
    }
    if spec.min > required {
        let mut missing = spec.min - required;
        optional.sort_unstable();
        let enough = optional.iter().find(|&&(_, count)| {
            missing = missing.saturating_sub(count);
            missing == 0
        });
        height = height.max(enough.map_or(NEVER, |own| own.0).min(unbounded));
    }
    above(height)
}
