//! Values that must differ: what a part of the output may still be if some values are barred.
//!
//! The items of an array with unique items are entered with the values of the earlier ones barred.
//! Scalars are barred in their terminals: strings by intersection with a complement, numbers by
//! splitting the interval at each value, words by leaving them out. So the exclusion is exact at
//! every byte: after `["ab","a` the closing quote is allowed, after `["ab","ab` it is not.
//!
//! A container is barred as a whole, by its parts. Its frame keeps the barred values that agree with
//! all parts so far. A part is entered twice: once as *none of the values that they have here*,
//! after which nothing is barred any more, and once as each of these values, after which those that
//! have it are left. Where no later part can make the difference, the second way is not offered,
//! so the last free choice decides, and there is no dead end.
//!
//! Worked example: items `{"kind": "a" | "b", "n": integer}` (both required, in that order), and
//! `{"kind":"a","n":1}` is there. After `{"kind":` the value is *not "a"* (then nothing is barred), or
//! `"a"` with that object barred; after `"a","n":` only the numbers but 1 are offered. If `n` were the
//! constant 1, `"a"` would not be offered.
//!
//! The opposite, an array of which some two items must be equal, is simpler: each item is one of those that
//! were there, after which nothing is asked any more, or another one if one more may follow.
//!
//! Three questions decide this, by recursion into the barred values (so at most as deep as they
//! are): can a node be [`Unique::other`] than these, can it be [`Unique::is`] this one, and the same for
//! an array or object that is under way.
//!
//! ```text
//! terminals   scalars      items   arrays      keys   objects
//! ```
//!
//! Cost: linear in the size of the barred values that agree with the prefix, except for objects all of whose
//! remaining keys have few values; those search, within a budget.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::arrays::ArrayView;
use super::program::Program;
use super::stack::{Seen, Tally};
use super::states::{STEP_FUEL, Start};
use super::values::{Allow, AllowId, Value, ValueId, Values};
use crate::expr::ExprId;
use crate::grammar::{ArraySpec, Node, NodeId, NumberSpec, Terminal};
use crate::limits::Fuel;

mod items;
mod keys;
mod terminals;

/// The values of unique items, and what is barred where.
#[derive(Debug, Clone, Default)]
pub struct Unique {
    /// The values.
    pub values: Values,
    /// Where terminals start if not everything is allowed.
    starts: HashMap<(NodeId, AllowId), Arc<[Start]>>,
    /// Questions left before the answer is "no".
    budget: u32,
    /// Whether the budget was used up.
    pub exhausted: bool,
}

/// Questions that one step may ask.
const BUDGET: u32 = 200_000;

/// How deep [`Unique::is_rich`] looks.
const RICH: u32 = 4;

/// One way to go on in a container whose values are restricted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// What the part may be.
    pub part: AllowId,
    /// What the container may be after it.
    pub whole: AllowId,
    /// The value of the part, where there is just one.
    pub value: Option<ValueId>,
}

/// An array that is under way.
#[derive(Debug, Clone, Copy)]
pub struct ArrayAt<'a> {
    /// The array.
    pub spec: &'a ArraySpec,
    /// Containers around its items.
    pub depth: u8,
    /// Items so far, as far as that matters to the array itself (see `arrays`).
    pub count: u64,
    /// How many of them count for each `contains`.
    pub tally: Tally,
    /// Items so far.
    pub position: u64,
}

impl<'a> ArrayAt<'a> {
    /// Before its first item.
    fn begin(spec: &'a ArraySpec, depth: u8) -> Self {
        Self { spec, depth, count: 0, tally: [0; 4], position: 0 }
    }

    /// After one more item, with these numbers.
    fn after(self, (count, tally): (u64, Tally)) -> Self {
        Self { count, tally, position: self.position + 1, ..self }
    }

    fn view(self, program: &'a Program) -> ArrayView<'a> {
        ArrayView::new(program, self.spec, self.depth, self.count, self.tally)
    }
}

impl Unique {
    /// To be called before a step.
    pub fn begin(&mut self) {
        self.budget = BUDGET;
    }

    fn spend(&mut self) -> bool {
        self.exhausted |= self.budget == 0;
        self.budget = self.budget.saturating_sub(1);
        !self.exhausted
    }

    /// The nodes behind rules and alternatives.
    fn alternatives(program: &Program, node: NodeId) -> Vec<NodeId> {
        let (mut found, mut todo, mut visited) = (Vec::new(), vec![node], HashSet::new());
        while let Some(node) = todo.pop() {
            if !visited.insert(node) {
                continue;
            }
            match program.node(node) {
                Node::Rule(target) | Node::Within { item: target, .. } => todo.push(*target),
                Node::Alt(parts) => todo.extend(parts),
                _ => found.push(node),
            }
        }
        found
    }

    /// Whether `node`, inside `depth` containers, can be a value that is not barred.
    pub fn other(
        &mut self,
        program: &Program,
        node: NodeId,
        depth: u8,
        barred: &[ValueId],
    ) -> bool {
        if !self.spend() || !program.fits(node, depth) {
            return false;
        }
        if barred.is_empty() {
            return true;
        }
        let allow = self.values.all_but(barred.to_vec());
        Self::alternatives(program, node).into_iter().any(|node| match program.node(node) {
            _ if !program.fits(node, depth) => false,
            Node::Terminal(_) => !self.starts(program, node, allow).is_empty(),
            Node::Array(spec) => {
                let barred = self.arrays(barred);
                self.array_other(program, ArrayAt::begin(spec, depth + 1), Vec::new(), barred)
            }
            Node::Object(_) => {
                let barred = self.objects(barred);
                self.object_other(program, (node, depth + 1), Seen::default(), barred)
            }
            // Nothing else stands in items.
            _ => true,
        })
    }

    /// Whether `node`, inside `depth` containers, can be this value.
    pub fn is(&mut self, program: &Program, node: NodeId, depth: u8, value: ValueId) -> bool {
        if !self.spend() {
            return false;
        }
        let allow = self.values.only(value);
        Self::alternatives(program, node).into_iter().any(|node| match program.node(node) {
            _ if !program.fits(node, depth) => false,
            Node::Terminal(_) => !self.starts(program, node, allow).is_empty(),
            Node::Array(spec) => {
                matches!(self.values.get(value), Value::Array(_))
                    && self.array_is(program, ArrayAt::begin(spec, depth + 1), &[], value)
            }
            Node::Object(_) => {
                matches!(self.values.get(value), Value::Object(_))
                    && self.object_is(program, (node, depth + 1), Seen::default(), value)
            }
            _ => false,
        })
    }

    /// The arrays among some values.
    fn arrays(&self, values: &[ValueId]) -> Vec<ValueId> {
        let array = |value: &ValueId| matches!(self.values.get(*value), Value::Array(_));
        values.iter().copied().filter(array).collect()
    }

    /// The objects among some values.
    fn objects(&self, values: &[ValueId]) -> Vec<ValueId> {
        let object = |value: &ValueId| matches!(self.values.get(*value), Value::Object(_));
        values.iter().copied().filter(object).collect()
    }

    /// What an array or object may be whose node may be `allow`; `None` if it can be nothing.
    pub fn container(&mut self, allow: AllowId, is_array: bool) -> Option<AllowId> {
        match self.values.allow(allow) {
            Allow::Any => Some(allow),
            Allow::Not(barred) => {
                let kept = if is_array { self.arrays(&barred) } else { self.objects(&barred) };
                Some(self.values.all_but(kept))
            }
            Allow::Only(value) => {
                let kept = if is_array { self.arrays(&[value]) } else { self.objects(&[value]) };
                (!kept.is_empty()).then_some(allow)
            }
        }
    }

    /// Whether a container of `length` parts, which agree with what is allowed or barred, may end.
    pub fn may_end(&self, allow: AllowId, length: u64) -> bool {
        let ends = |value: ValueId| self.values.get(value).len() == length;
        match self.values.allow(allow) {
            Allow::Any => true,
            Allow::Not(barred) => !barred.iter().any(|&value| ends(value)),
            Allow::Only(value) => ends(value),
        }
    }

    /// The values that barred containers have at one place, each with the containers that have it.
    fn by_part(
        &self,
        barred: &[ValueId],
        part: impl Fn(&Value) -> Option<ValueId>,
    ) -> Vec<(ValueId, Vec<ValueId>)> {
        let mut groups: Vec<(ValueId, Vec<ValueId>)> = Vec::new();
        for &whole in barred {
            let Some(value) = part(self.values.get(whole)) else { continue };
            match groups.iter_mut().find(|group| group.0 == value) {
                Some(group) => group.1.push(whole),
                None => groups.push((value, vec![whole])),
            }
        }
        groups
    }

    /// Whether a node surely has infinitely many values, whatever prefix of one is written. In doubt, no.
    pub fn is_endless(program: &Program, node: NodeId) -> bool {
        Self::alternatives(program, node)
            .into_iter()
            .all(|node| matches!(program.node(node), Node::Terminal(Terminal::String(ExprId::ANY))))
    }

    /// Whether a node surely has infinitely many values. In doubt, no.
    pub fn is_rich(program: &Program, node: NodeId, depth: u8) -> bool {
        Self::rich(program, node, depth, RICH)
    }

    /// The recursion is bounded by `left`.
    fn rich(program: &Program, node: NodeId, depth: u8, left: u32) -> bool {
        let Some(left) = left.checked_sub(1) else { return false };
        Self::alternatives(program, node).into_iter().any(|node| match program.node(node) {
            _ if !program.fits(node, depth) => false,
            Node::Terminal(Terminal::String(expr)) => {
                *expr == ExprId::ANY
                    || program.states().with_exprs(|exprs| {
                        let lengths = exprs.lengths(*expr, &mut Fuel::new(STEP_FUEL));
                        matches!(lengths, Ok(Some((_, None))))
                    })
            }
            Node::Terminal(Terminal::Number(spec)) => {
                *spec == NumberSpec { integer: spec.integer, ..NumberSpec::default() }
            }
            Node::Array(spec) => {
                let more = spec.rest.iter().any(|class| program.fits(class.node, depth + 1));
                spec.max.is_none() && !spec.unique && spec.contains.is_empty() && more
            }
            Node::Object(spec) => {
                let rich = |node| Self::rich(program, node, depth + 1, left);
                spec.properties.iter().any(|property| property.required && rich(property.value))
            }
            _ => false,
        })
    }
}
