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
//! Cost: linear in the size of the barred values that agree with the prefix, except for objects all of whose
//! remaining keys have few values; those search, within a budget.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::arrays::ArrayView;
use super::objects::{Choice, Key, Keys};
use super::program::Program;
use super::stack::{Seen, Tally};
use super::states::{STEP_FUEL, Start};
use super::values::{Allow, AllowId, Value, ValueId, Values};
use crate::expr::ExprId;
use crate::grammar::decimal::Decimal;
use crate::grammar::{ArraySpec, Node, NodeId, NumberSpec, ObjectSpec, Terminal};
use crate::limits::Fuel;

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

    // ------------------------------------------------------------------ nodes

    /// The nodes behind rules and alternatives.
    fn alternatives(program: &Program, node: NodeId) -> Vec<NodeId> {
        let (mut found, mut todo, mut visited) = (Vec::new(), vec![node], HashSet::new());
        while let Some(node) = todo.pop() {
            if !visited.insert(node) {
                continue;
            }
            match program.node(node) {
                Node::Rule(target) => todo.push(*target),
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

    // -------------------------------------------------------------- terminals

    /// Where a terminal node can start if only some values are allowed.
    pub fn starts(&mut self, program: &Program, node: NodeId, allow: AllowId) -> Arc<[Start]> {
        if let Some(known) = self.starts.get(&(node, allow)) {
            return Arc::clone(known);
        }
        let Node::Terminal(terminal) = program.node(node) else { return Arc::default() };
        let mut starts = match self.values.allow(allow) {
            Allow::Any => vec![program.start(node, terminal)],
            Allow::Not(barred) => self.starts_but(program, node, terminal, &barred),
            Allow::Only(value) => vec![self.start_of(program, node, terminal, value)],
        };
        starts.retain(|start| start.state.is_live());
        let starts: Arc<[Start]> = starts.into();
        self.starts.insert((node, allow), Arc::clone(&starts));
        starts
    }

    fn starts_but(
        &self,
        program: &Program,
        node: NodeId,
        terminal: &Terminal,
        barred: &[ValueId],
    ) -> Vec<Start> {
        let mut texts: Vec<&str> = Vec::new();
        let mut numbers: Vec<&Decimal> = Vec::new();
        for &value in barred {
            match (self.values.get(value), terminal) {
                (Value::String(text), Terminal::String(_) | Terminal::Format(_))
                | (Value::Word(text), Terminal::Text(_)) => texts.push(text),
                (Value::Number(number), Terminal::Number(_)) => numbers.push(number),
                _ => {}
            }
        }
        if texts.is_empty() && numbers.is_empty() {
            return vec![program.start(node, terminal)];
        }
        if let Terminal::Number(spec) = terminal {
            numbers.sort();
            let parts = split(spec, &numbers).into_iter().map(Terminal::Number);
            return parts.map(|part| start(program, node, &part)).collect();
        }
        let without = |expr: ExprId| {
            program.states().with_exprs(|exprs| {
                let barred = exprs.literals(&texts);
                let free = exprs.not(barred);
                exprs.and(&[expr, free])
            })
        };
        let terminal = match terminal {
            Terminal::Text(expr) => Terminal::Text(without(*expr)),
            Terminal::Format(format) => {
                Terminal::String(without(program.states().with_exprs(|exprs| format.expr(exprs))))
            }
            Terminal::String(expr) => Terminal::String(without(*expr)),
            other => other.clone(),
        };
        vec![start(program, node, &terminal)]
    }

    fn start_of(
        &self,
        program: &Program,
        node: NodeId,
        terminal: &Terminal,
        value: ValueId,
    ) -> Start {
        let literal = |text: &str, expr: ExprId| {
            program.states().with_exprs(|exprs| {
                let inside = exprs.matches(expr, text, &mut Fuel::new(STEP_FUEL));
                if inside.unwrap_or(false) { exprs.literal(text) } else { ExprId::NEVER }
            })
        };
        let terminal = match (self.values.get(value), terminal) {
            (Value::Word(text), Terminal::Text(expr)) => Terminal::Text(literal(text, *expr)),
            (Value::String(text), Terminal::String(expr)) => Terminal::String(literal(text, *expr)),
            (Value::String(text), Terminal::Format(format)) => {
                let expr = program.states().with_exprs(|exprs| format.expr(exprs));
                Terminal::String(literal(text, expr))
            }
            (Value::Number(number), Terminal::Number(spec)) if within(spec, number) => {
                let bound = Some((number.clone(), false));
                Terminal::Number(NumberSpec { min: bound.clone(), max: bound, ..spec.clone() })
            }
            _ => return Start::DEAD,
        };
        start(program, node, &terminal)
    }

    // ----------------------------------------------------------------- arrays

    /// The ways in which the next item of an array can be `item`, after which the array has the
    /// numbers `then`. The item must differ from `taken`; `allow` says what the whole array may be.
    pub fn item_ways(
        &mut self,
        program: &Program,
        at: ArrayAt<'_>,
        (item, then): (NodeId, (u64, Tally)),
        taken: &[ValueId],
        allow: AllowId,
    ) -> Vec<Way> {
        let mut ways = Vec::new();
        match self.values.allow(allow) {
            // Front-ends see to it that such arrays stand where everything is allowed.
            _ if at.spec.equal => return self.equal_ways(program, at, item, taken),
            Allow::Any => {
                if self.other(program, item, at.depth, taken) {
                    let part = self.values.all_but(taken.to_vec());
                    ways.push(Way { part, whole: AllowId::ANY, value: None });
                }
            }
            Allow::Only(whole) => {
                let value = self.values.get(whole).item(at.position);
                let Some(value) = value.filter(|value| !taken.contains(value)) else { return ways };
                let taken = with(taken, value, at.spec.unique);
                if self.is(program, item, at.depth, value)
                    && self.array_is(program, at.after(then), &taken, whole)
                {
                    let part = self.values.only(value);
                    ways.push(Way { part, whole: allow, value: Some(value) });
                }
            }
            Allow::Not(barred) => {
                let groups = self.by_part(&barred, |whole| whole.item(at.position));
                let mut bars: Vec<ValueId> = groups.iter().map(|group| group.0).collect();
                bars.extend_from_slice(taken);
                if self.other(program, item, at.depth, &bars) {
                    let part = self.values.all_but(bars);
                    ways.push(Way { part, whole: AllowId::ANY, value: None });
                }
                for (value, barred) in groups {
                    let left = with(taken, value, at.spec.unique);
                    if !taken.contains(&value)
                        && self.is(program, item, at.depth, value)
                        && self.array_other(program, at.after(then), left, barred.clone())
                    {
                        let (part, whole) = (self.values.only(value), self.values.all_but(barred));
                        ways.push(Way { part, whole, value: Some(value) });
                    }
                }
            }
        }
        ways
    }

    /// The ways in which the next item can be `item` in an array of which some two items must be equal
    /// and none are so far: as one of those that were there, or as another if one more may follow,
    /// which can then be equal to it.
    fn equal_ways(
        &mut self,
        program: &Program,
        at: ArrayAt<'_>,
        item: NodeId,
        taken: &[ValueId],
    ) -> Vec<Way> {
        let mut ways = Vec::new();
        for &value in taken {
            if self.is(program, item, at.depth, value) {
                let part = self.values.only(value);
                ways.push(Way { part, whole: AllowId::ANY, value: Some(value) });
            }
        }
        let last = at.spec.max.is_some_and(|max| at.count + 1 >= max);
        if !last && self.other(program, item, at.depth, taken) {
            let part = self.values.all_but(taken.to_vec());
            ways.push(Way { part, whole: AllowId::ANY, value: None });
        }
        ways
    }

    /// Whether an array under way, whose items are `taken`, can become another than those barred; these
    /// agree with it so far.
    fn array_other(
        &mut self,
        program: &Program,
        at: ArrayAt<'_>,
        taken: Vec<ValueId>,
        barred: Vec<ValueId>,
    ) -> bool {
        let mut todo = vec![(at, taken, barred)];
        while let Some((at, taken, barred)) = todo.pop() {
            if barred.is_empty() {
                return true;
            }
            let view = at.view(program);
            let ended = barred.iter().any(|&value| self.values.get(value).len() == at.position);
            if !self.spend() || (view.can_close() && !ended) {
                return !self.exhausted;
            }
            let groups = self.by_part(&barred, |whole| whole.item(at.position));
            let mut bars: Vec<ValueId> = groups.iter().map(|group| group.0).collect();
            bars.extend_from_slice(&taken);
            for (class, count, tally) in view.items() {
                if self.other(program, class.node, at.depth, &bars) {
                    return true;
                }
                for (value, barred) in &groups {
                    if !taken.contains(value) && self.is(program, class.node, at.depth, *value) {
                        let taken = with(&taken, *value, at.spec.unique);
                        todo.push((at.after((count, tally)), taken, barred.clone()));
                    }
                }
            }
        }
        false
    }

    /// Whether an array under way can become this one, which agrees with it so far.
    fn array_is(
        &mut self,
        program: &Program,
        at: ArrayAt<'_>,
        taken: &[ValueId],
        whole: ValueId,
    ) -> bool {
        let Value::Array(items) = self.values.get(whole) else { return false };
        let items = items.clone();
        let rest = items.get(usize::try_from(at.position).unwrap_or(usize::MAX)..).unwrap_or(&[]);
        let distinct: HashSet<ValueId> = taken.iter().chain(rest).copied().collect();
        if at.spec.unique && distinct.len() < taken.len() + rest.len() {
            return false;
        }
        let mut states = HashSet::from([(at.count, at.tally)]);
        for &value in rest {
            let mut next = HashSet::new();
            for (count, tally) in states {
                let here = ArrayAt { count, tally, ..at };
                for (class, count, tally) in here.view(program).items() {
                    if self.is(program, class.node, at.depth, value) {
                        next.insert((count, tally));
                    }
                }
            }
            states = next;
        }
        states
            .into_iter()
            .any(|(count, tally)| ArrayAt { count, tally, ..at }.view(program).can_close())
    }

    // ---------------------------------------------------------------- objects

    /// The ways in which a key of an object can have its value, `value`; with the key the object
    /// has `seen`. `allow` says what the whole object may be.
    pub fn key_ways(
        &mut self,
        program: &Program,
        (node, depth): (NodeId, u8),
        (key, value): (&str, NodeId),
        seen: &Seen,
        allow: AllowId,
    ) -> Vec<Way> {
        let free = Way { part: AllowId::ANY, whole: AllowId::ANY, value: None };
        let mut ways = Vec::new();
        match self.values.allow(allow) {
            Allow::Any => ways.push(free),
            Allow::Only(whole) => {
                let Some(known) = self.values.get(whole).member(key) else { return ways };
                let part = self.values.only(known);
                if self.is(program, value, depth, known)
                    && self.object_is(program, (node, depth), seen.clone(), whole)
                {
                    ways.push(Way { part, whole: allow, value: Some(known) });
                }
            }
            Allow::Not(barred) => {
                let groups = self.by_part(&barred, |whole| whole.member(key));
                let bars: Vec<ValueId> = groups.iter().map(|group| group.0).collect();
                if self.other(program, value, depth, &bars) {
                    ways.push(Way { part: self.values.all_but(bars), ..free });
                }
                for (known, barred) in groups {
                    if self.is(program, value, depth, known)
                        && self.object_other(program, (node, depth), seen.clone(), barred.clone())
                    {
                        let (part, whole) = (self.values.only(known), self.values.all_but(barred));
                        ways.push(Way { part, whole, value: Some(known) });
                    }
                }
            }
        }
        ways
    }

    /// Whether an object under way can become another than those barred; these agree with
    /// it so far.
    fn object_other(
        &mut self,
        program: &Program,
        (node, depth): (NodeId, u8),
        seen: Seen,
        barred: Vec<ValueId>,
    ) -> bool {
        let (Some(table), Some(spec)) = (program.object_table(node), program.object(node)) else {
            return false;
        };
        let mut visited = HashSet::new();
        let mut todo = vec![(seen, barred)];
        while let Some((seen, barred)) = todo.pop() {
            if barred.is_empty() {
                return true;
            }
            if !visited.insert((seen.clone(), barred.clone())) {
                continue;
            }
            let keys = table.keys(program, spec, &seen, depth);
            let ended = barred.iter().any(|&value| self.values.get(value).len() == seen.parts);
            if !self.spend() || (keys.can_close && !ended) {
                return !self.exhausted;
            }
            let names = self.names(&barred);
            for &class in &keys.classes {
                if table.other_keys(program, spec, class, &seen, &names).state.is_live() {
                    return true;
                }
            }
            let next = self.known_keys(program, (spec, &keys), &names);
            for (key, name, value) in next {
                let groups = self.by_part(&barred, |whole| whole.member(&name));
                let bars: Vec<ValueId> = groups.iter().map(|group| group.0).collect();
                if self.other(program, value, depth, &bars) {
                    return true;
                }
                if keys.owed.is_some_and(|owed| key != Key::Declared(owed)) {
                    // Another key must come anyway, so it may as well come first.
                    continue;
                }
                let after = table.after(program, spec, &seen, key, &name);
                for (known, barred) in groups {
                    if self.is(program, value, depth, known) {
                        todo.push((after.clone(), barred));
                    }
                }
            }
        }
        false
    }

    /// Whether an object under way can become this one, which agrees with it so far.
    fn object_is(
        &mut self,
        program: &Program,
        (node, depth): (NodeId, u8),
        seen: Seen,
        whole: ValueId,
    ) -> bool {
        let (Some(table), Some(spec)) = (program.object_table(node), program.object(node)) else {
            return false;
        };
        let Value::Object(members) = self.values.get(whole) else { return false };
        let (mut left, length) = (members.to_vec(), members.len() as u64);
        // In declared order, and undeclared keys last: where the order is free, this one will do.
        let place = |key: &str| table.declared(program, key).unwrap_or(u32::MAX);
        left.sort_by_key(|member| place(&member.0));
        let mut states = vec![seen];
        for (name, value) in left {
            let mut next: Vec<Seen> = Vec::new();
            for seen in states {
                if !self.spend() {
                    return false;
                }
                if table.has(program, &seen, &name) {
                    next.push(seen);
                    continue;
                }
                let keys = table.keys(program, spec, &seen, depth);
                for (key, name, node) in
                    self.known_keys(program, (spec, &keys), std::slice::from_ref(&name))
                {
                    if self.is(program, node, depth, value) {
                        let after = table.after(program, spec, &seen, key, &name);
                        if !next.contains(&after) {
                            next.push(after);
                        }
                    }
                }
            }
            states = next;
        }
        states
            .into_iter()
            .any(|seen| seen.parts == length && table.keys(program, spec, &seen, depth).can_close)
    }

    /// The keys of some objects, each once.
    fn names(&self, objects: &[ValueId]) -> Vec<Box<str>> {
        let mut names: Vec<Box<str>> = Vec::new();
        for &object in objects {
            if let Value::Object(members) = self.values.get(object) {
                names.extend(members.iter().map(|member| member.0.clone()));
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The keys that may come next and are known by name, with their values: the declared ones, and
    /// those of `names` that are in a class.
    fn known_keys(
        &self,
        program: &Program,
        (spec, keys): (&ObjectSpec, &Keys),
        names: &[Box<str>],
    ) -> Vec<(Key, Box<str>, NodeId)> {
        let mut found = Vec::new();
        for &key in &keys.declared {
            let property = &spec.properties[key as usize];
            found.push((Key::Declared(key), property.name.as_str().into(), property.value));
        }
        for &class in &keys.classes {
            let other = &spec.others[class as usize];
            for name in names {
                let inside = program.states().with_exprs(|exprs| {
                    exprs.matches(other.keys, name, &mut Fuel::new(STEP_FUEL)).unwrap_or(false)
                });
                if inside {
                    found.push((Key::Other(class), name.clone(), other.value));
                }
            }
        }
        found
    }

    /// What may come next in an object that has `seen` and may not be everything: as
    /// [`ObjectTable::choice`], without the keys that lead nowhere. The keys of barred objects
    /// are terminals of their own, so that they are known when they are complete.
    pub fn choice(
        &mut self,
        program: &Program,
        (node, depth): (NodeId, u8),
        seen: &Seen,
    ) -> Choice {
        let nothing = Choice { declared: Start::DEAD, others: Box::default(), can_close: false };
        let (Some(table), Some(spec)) = (program.object_table(node), program.object(node)) else {
            return nothing;
        };
        let keys = table.keys(program, spec, seen, depth);
        let can_close = keys.can_close && self.may_end(seen.allow, seen.parts);
        let (names, open) = match self.values.allow(seen.allow) {
            Allow::Any => (Vec::new(), true),
            Allow::Not(barred) => (self.names(&barred), true),
            Allow::Only(whole) => (self.names(&[whole]), false),
        };
        let names: Vec<Box<str>> =
            names.into_iter().filter(|name| !table.has(program, seen, name)).collect();
        let mut declared = Vec::new();
        let mut literals: Vec<(u32, Vec<Box<str>>)> = Vec::new();
        for (key, name, value) in self.known_keys(program, (spec, &keys), &names) {
            let after = table.after(program, spec, seen, key, &name);
            if self.key_ways(program, (node, depth), (&name, value), &after, seen.allow).is_empty()
            {
                continue;
            }
            match key {
                Key::Declared(key) => declared.push(key),
                Key::Other(class) => match literals.iter_mut().find(|known| known.0 == class) {
                    Some(known) => known.1.push(name),
                    None => literals.push((class, vec![name])),
                },
            }
        }
        let mut others = Vec::new();
        for &class in keys.classes.iter().filter(|_| open) {
            others.push((class, table.other_keys(program, spec, class, seen, &names)));
        }
        for (class, names) in literals {
            let texts: Vec<&str> = names.iter().map(|name| &**name).collect();
            let expr = program.states().with_exprs(|exprs| exprs.literals(&texts));
            others.push((class, program.states().start_string(expr).unwrap_or(Start::DEAD)));
        }
        others.retain(|other| other.1.state.is_live());
        Choice {
            declared: table.declared_start(program, spec, &declared),
            others: others.into(),
            can_close,
        }
    }
}

/// Some values and one more, where they must differ.
fn with(taken: &[ValueId], value: ValueId, unique: bool) -> Vec<ValueId> {
    let mut taken = taken.to_vec();
    taken.extend(unique.then_some(value));
    taken
}

/// Where a terminal starts that stands for part of a node.
fn start(program: &Program, node: NodeId, terminal: &Terminal) -> Start {
    program.states().start(terminal, program.context(node)).unwrap_or(Start::DEAD)
}

/// Whether a number is within the bounds of `spec`.
fn within(spec: &NumberSpec, value: &Decimal) -> bool {
    let above = |(min, open): &(Decimal, bool)| value > min || (value == min && !open);
    let below = |(max, open): &(Decimal, bool)| value < max || (value == max && !open);
    spec.min.as_ref().is_none_or(above) && spec.max.as_ref().is_none_or(below)
}

/// The intervals of `spec` between numbers (ascending).
fn split(spec: &NumberSpec, numbers: &[&Decimal]) -> Vec<NumberSpec> {
    let mut rest = spec.clone();
    let mut parts = Vec::new();
    for &value in numbers.iter().filter(|value| within(spec, value)) {
        let bound = Some((value.clone(), true));
        parts.push(NumberSpec { max: bound.clone(), ..rest.clone() });
        rest.min = bound;
    }
    parts.push(rest);
    parts
}
