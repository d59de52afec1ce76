//! From sets to grammar nodes.
//!
//! Every set that is asked for gets a node, which is filled when its turn comes (a work list, no recursion);
//! a recursive schema is a cycle of nodes. A union has one alternative per kind: the literals, the strings as
//! one expression, each interval of numbers, each shape.
//!
//! `{"type":["string","null"],"minLength":1}` becomes `Alt[Text("null"), String(.{1,})]`.

use super::array::{ArrayShape, Contains};
use super::json::At;
use super::normal::{Compiler, FALSE, NULL, Parts, TRUE};
use super::number::Numbers;
use super::own::Tokens;
use super::sets::SetId;
use super::text::Text;
use crate::error::Result;
use crate::expr::ExprId;
use crate::grammar::{ArraySpec, ItemClass, Node, NodeId, NumberSpec, Terminal};

/// Sets and their nodes.
#[derive(Debug, Default)]
pub(super) struct Emitted {
    /// By set: the node plus one, 0 for none yet.
    nodes: Vec<u32>,
    todo: Vec<(SetId, NodeId)>,
    /// Terminals that many alternatives share: at most a few dozen.
    terminals: Vec<(Terminal, NodeId)>,
}

/// The most conditions on how many items of one array count, and the greatest such bound.
const CONDITIONS: usize = 4;
const COUNTED: usize = 60_000;

/// The most alternatives of one item.
const ITEM_CLASSES: usize = 256;

/// Finite languages up to this size are listed where it matters how many strings there are.
pub(super) const LISTED: usize = 256;

impl Compiler<'_> {
    /// The schema that a node was made for.
    pub fn node_origin(&self, node: NodeId) -> Option<At> {
        let set = self.emitted.nodes.iter().position(|&id| id == node.0 + 1)?;
        self.origin(SetId(set as u32))
    }

    /// The node of a set, to be filled later.
    pub fn node(&mut self, set: SetId) -> NodeId {
        if set == SetId::NEVER {
            return NodeId(0);
        }
        let index = set.0 as usize;
        if self.emitted.nodes.len() <= index {
            self.emitted.nodes.resize(self.sets.len().max(index + 1), 0);
        }
        if self.emitted.nodes[index] == 0 {
            let id = self.grammar.reserve();
            self.emitted.nodes[index] = id.0 + 1;
            self.emitted.todo.push((set, id));
        }
        NodeId(self.emitted.nodes[index] - 1)
    }

    /// Fills all nodes that were asked for, and those that they ask for.
    pub fn fill_nodes(&mut self) -> Result<()> {
        while let Some((set, id)) = self.emitted.todo.pop() {
            let parts = self.parts(set)?;
            let node = self.parts_node(&parts).map_err(|error| self.located(error, set))?;
            self.grammar.nodes[id.0 as usize] = node;
            if let Some(tokens) = self.tokens(set)? {
                self.bound(id, tokens);
            }
            self.fuel.spend(4)?;
            self.check_count("grammar nodes", self.grammar.nodes.len(), self.options.limits.nodes)?;
        }
        Ok(())
    }

    /// Puts a budget around a node that is filled.
    pub fn bound(&mut self, id: NodeId, tokens: Tokens) {
        let inner = self.grammar.nodes[id.0 as usize].clone();
        let item = self.grammar.add(inner);
        self.grammar.nodes[id.0 as usize] = Node::Within { item, tokens: tokens.most };
        self.grammar.budgets.push((id, self.json.place(tokens.at)));
    }

    fn parts_node(&mut self, parts: &Parts) -> Result<Node> {
        let mut arms = Vec::new();
        if parts.literals != 0 {
            let words = [(NULL, "null"), (FALSE, "false"), (TRUE, "true")];
            let words = words.iter().filter(|word| parts.literals & word.0 != 0);
            let words: Vec<&str> = words.map(|word| word.1).collect();
            let expr = match words.as_slice() {
                [word] => self.grammar.exprs.literal(word),
                words => self.grammar.exprs.literals(words),
            };
            arms.push(Node::Terminal(Terminal::Text(expr)));
        }
        match &parts.text {
            Text::None => {}
            Text::All => arms.push(Node::Terminal(Terminal::String(ExprId::ANY))),
            Text::Format(format) => arms.push(Node::Terminal(Terminal::Format(*format))),
            text => {
                let expr = text.to_expr(&mut self.tools());
                if !self.grammar.exprs.is_never(expr, &mut self.fuel)? {
                    arms.push(Node::Terminal(Terminal::String(expr)));
                }
            }
        }
        match &parts.numbers {
            Numbers::None => {}
            Numbers::All => arms.push(Node::Terminal(Terminal::Number(NumberSpec::default()))),
            Numbers::Some(specs) => arms.extend(specs.iter().map(|spec| {
                let whole = spec.whole && !spec.fractional;
                Node::Terminal(Terminal::Number(NumberSpec { whole, ..spec.clone() }))
            })),
        }
        for shape in &parts.arrays {
            arms.extend(self.array_node(shape)?);
        }
        for shape in &parts.objects {
            self.object_nodes(shape, &mut arms)?;
        }
        Ok(match arms.len() {
            0 => Node::Never,
            1 => arms.swap_remove(0),
            _ => Node::Alt(arms.into_iter().map(|arm| self.arm(arm)).collect()),
        })
    }

    /// The node of one alternative; the common terminals have one node each.
    fn arm(&mut self, arm: Node) -> NodeId {
        let Node::Terminal(terminal) = &arm else { return self.grammar.add(arm) };
        let plain = match terminal {
            Terminal::Number(spec) => *spec == NumberSpec::default(),
            terminal => !matches!(terminal, Terminal::String(expr) if *expr != ExprId::ANY),
        };
        if !plain {
            return self.grammar.add(arm);
        }
        if let Some(known) = self.emitted.terminals.iter().find(|known| known.0 == *terminal) {
            return known.1;
        }
        let terminal = terminal.clone();
        let node = self.grammar.add(arm);
        self.emitted.terminals.push((terminal, node));
        node
    }

    fn array_node(&mut self, shape: &ArrayShape) -> Result<Option<Node>> {
        let mut shape = shape.clone();
        if shape.unique.is_some() && !self.settle_unique(&mut shape)? {
            return Ok(None);
        }
        if let Some(at) = shape.equal {
            self.settle_equal(&shape, at)?;
        }
        self.check_count("\"contains\" conditions on one array", shape.contains.len(), CONDITIONS)?;
        for contains in &shape.contains {
            let greatest = usize::try_from(contains.min.max(contains.max.unwrap_or(0)));
            self.check_count("items that count", greatest.unwrap_or(usize::MAX), COUNTED)?;
        }
        let mut spec = ArraySpec { min: shape.min, max: shape.max, ..ArraySpec::default() };
        (spec.unique, spec.equal) = (shape.unique.is_some(), shape.equal.is_some());
        spec.contains =
            shape.contains.iter().map(|contains| (contains.min, contains.max)).collect();
        // Positions up to where the last condition starts to count are written out.
        let written = shape.contains.iter().map(|contains| contains.from).max().unwrap_or(0);
        let written = written.max(shape.prefix.len());
        let written = shape
            .max
            .map_or(written, |max| written.min(usize::try_from(max).unwrap_or(usize::MAX)));
        for position in 0..written {
            let set = shape.item(position);
            spec.prefix.push(self.item_classes(set, position, &shape.contains)?);
        }
        let behind = shape.max.is_some_and(|max| max <= written as u64);
        if shape.rest != SetId::NEVER && !behind {
            spec.rest = self.item_classes(shape.rest, written, &shape.contains)?;
        }
        Ok(Some(Node::Array(spec)))
    }

    /// The ways the item at a position can be, by which conditions it counts for.
    fn item_classes(
        &mut self,
        set: SetId,
        position: usize,
        contains: &[Contains],
    ) -> Result<Vec<ItemClass>> {
        let mut classes = vec![(set, 0u32)];
        for (bit, condition) in contains.iter().enumerate().filter(|c| c.1.from <= position) {
            // Where only "at least" is asked, an item that counts may also go uncounted: cheaper than a
            // complement of objects.
            let exact = condition.max.is_some() || self.is_scalar(condition.set)?;
            let outside = if exact { self.sets.not(condition.set) } else { SetId::ANY };
            let mut split = Vec::with_capacity(2 * classes.len());
            for (set, counts) in classes {
                self.fuel.spend(4)?;
                for (half, counts) in [(condition.set, counts | 1 << bit), (outside, counts)] {
                    let half = self.sets.and(set, half);
                    if half != SetId::NEVER && !self.surely_empty(half)? {
                        split.push((half, counts));
                    }
                }
            }
            self.check_count("kinds of items", split.len(), ITEM_CLASSES)?;
            classes = split;
        }
        Ok(classes
            .into_iter()
            .map(|(set, counts)| ItemClass { node: self.node(set), counts })
            .collect())
    }

    /// Whether a set has no array and no object, or all of them.
    fn is_scalar(&mut self, set: SetId) -> Result<bool> {
        let parts = self.parts(set)?;
        Ok(parts.arrays.iter().all(|shape| shape.is_any())
            && parts.objects.iter().all(|shape| shape.is_any()))
    }

    /// The strings of an expression, if there are at most [`LISTED`].
    pub fn listed(&mut self, expr: ExprId) -> Result<Option<Vec<String>>> {
        let exprs = &mut self.grammar.exprs;
        match exprs.lengths(expr, &mut self.fuel)? {
            None => Ok(Some(Vec::new())),
            Some((_, None)) => Ok(None),
            Some((_, Some(longest))) if longest > 64 => Ok(None),
            Some(_) => exprs.enumerate(expr, LISTED, &mut self.fuel),
        }
    }
}
