//! Arrays and objects: what their frames lead to.
//!
//! A container is a frame that says how far it is. Its punctuation is a terminal of its own; an item
//! or a value is started with the frame of the container after it. By hand, after `{"a":1` for an
//! object with `a` and perhaps `b`: the frame says *after a value, with a*; it starts a closing
//! brace, and a comma behind which the frame says *next, with a*, which starts the key `b`.
//!
//! What an object has and what items that must differ were depends on the text of the output: such
//! steps say that they consulted it.

use std::sync::Arc;

use super::super::arrays::ArrayView;
use super::super::objects::Choice;
use super::super::program::Program;
use super::super::stack::{Frame, Phase, Seen, SeenId, StackId, Step, Tally};
use super::super::states::Punct;
use super::super::unique::{ArrayAt, Unique, Way};
use super::super::values::AllowId;
use super::{Output, Sequence, Thread};
use crate::expr::LiteralId;
use crate::grammar::{ItemClass, NodeId};

/// What is not known of a key or item that follows one whose text is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// Nothing.
    None,
    /// Some key may begin, but once it has begun it might be the same again.
    OfEqualKeys,
    /// There might be no other.
    OfAnyKey,
}

impl Sequence {
    /// The keys or values of a container that has none, and which values are allowed for it; `None`
    /// if none is.
    pub(super) fn nothing_seen(&mut self, allow: AllowId, is_array: bool) -> Option<SeenId> {
        if allow == AllowId::ANY {
            return Some(SeenId::NONE);
        }
        let allow = self.unique.container(allow, is_array)?;
        Some(self.stacks.seen(Seen { allow, ..Seen::default() }))
    }

    /// An item that must differ from others is complete.
    pub(super) fn resume_unique_item(
        &mut self,
        program: &Program,
        frame: Frame,
        below: StackId,
        output: Output<'_>,
        out: &mut Vec<Thread>,
    ) {
        let Step::UniqueItem { node, count, contains, seen, start } = frame.step else { return };
        let depth = frame.depth;
        self.consulted = true;
        let value = output.since(start).and_then(|text| self.unique.values.read(text));
        let before = self.stacks.keys(seen);
        // Whether two unknown items are equal cannot be known either.
        let doubtful = before.unknown && value.is_none();
        let mut after = before.with_value(value);
        after.unknown |= value.is_none();
        let seen = self.stacks.seen(after);
        let step = Step::Array { node, phase: Phase::After, count, contains, seen };
        let frame = Frame { step, depth };
        if doubtful {
            let resume = |sequence: &mut Self, out: &mut Vec<Thread>| {
                sequence.resume_array(program, frame, below, output, out);
            };
            return self.doubtful(program, output, out, resume);
        }
        self.resume_array(program, frame, below, output, out);
    }

    /// A declared key is complete.
    pub(super) fn resume_key(
        &mut self,
        program: &Program,
        frame: Frame,
        below: StackId,
        literal: Option<LiteralId>,
        out: &mut Vec<Thread>,
    ) {
        let Step::Key { node, seen } = frame.step else { return };
        let Some(table) = program.object_table(node) else { return };
        let Some(key) = literal.and_then(|name| table.property(name)) else { return };
        let seen = table.with_declared(self.stacks.keys(seen), key);
        let Some(spec) = program.object(node) else { return };
        let property = &spec.properties[key as usize];
        let known = (Some(property.name.as_str()), property.value);
        self.begin_value(program, (node, known), seen, frame.depth, below, out);
    }

    /// An undeclared key is complete.
    pub(super) fn resume_other_key(
        &mut self,
        program: &Program,
        frame: Frame,
        below: StackId,
        literal: Option<LiteralId>,
        output: Output<'_>,
        out: &mut Vec<Thread>,
    ) {
        let Step::OtherKey { node, class, seen, listed } = frame.step else { return };
        let (Some(table), Some(spec)) = (program.object_table(node), program.object(node)) else {
            return;
        };
        let key = match literal {
            Some(_) if listed => text_of(program, literal),
            _ => {
                self.consulted = true;
                let key = output.last_string();
                key.and_then(|key| serde_json::from_slice(key).ok())
            }
        };
        let id = intern(program, key.as_deref());
        let seen = table.with_other(spec, self.stacks.keys(seen), class, id);
        let known = (key.as_deref(), spec.others[class as usize].value);
        self.begin_value(program, (node, known), seen, frame.depth, below, out);
    }

    /// After a key: a colon, then its value, then the rest of the object.
    fn begin_value(
        &mut self,
        program: &Program,
        (node, (key, value)): (NodeId, (Option<&str>, NodeId)),
        seen: Seen,
        depth: u8,
        below: StackId,
        out: &mut Vec<Thread>,
    ) {
        if seen.allow == AllowId::ANY {
            let seen = self.stacks.seen(seen);
            let stack = self.push(Step::Object { node, phase: Phase::After, seen }, depth, below);
            let stack = self.push(Step::Enter(value), depth, stack);
            return self.begin_punct(program, Punct::Colon, depth, stack, out);
        }
        let seen = Seen { parts: seen.parts + 1, ..seen };
        // A key that is not known is in none of the barred objects: their keys are literals.
        let free = Way { part: AllowId::ANY, whole: AllowId::ANY, value: None };
        let ways = key.map_or(vec![free], |key| {
            self.unique.key_ways(program, (node, depth), (key, value), &seen, seen.allow)
        });
        for way in ways {
            let seen = self.stacks.seen(seen.clone().allowing(way.whole));
            let stack = self.push(Step::Object { node, phase: Phase::After, seen }, depth, below);
            let step = Step::EnterAs { node: value, allow: way.part };
            let stack = self.push(step, depth, stack);
            self.begin_punct(program, Punct::Colon, depth, stack, out);
        }
    }

    pub(super) fn resume_array(
        &mut self,
        program: &Program,
        frame: Frame,
        below: StackId,
        output: Output<'_>,
        out: &mut Vec<Thread>,
    ) {
        let Step::Array { node, phase, count, contains, seen } = frame.step else { return };
        let Some(spec) = program.array(node) else { return };
        let depth = frame.depth;
        let view = ArrayView::new(program, spec, depth, count, contains);
        let (allow, met) = (self.stacks.keys(seen).allow, self.stacks.keys(seen).met);
        let pending = spec.equal && !met;
        let plain = !spec.unique && !pending && allow == AllowId::ANY;
        let close = match phase {
            Phase::Open => Some(Punct::CloseEmptyArray),
            Phase::After => Some(Punct::CloseArray),
            Phase::Next => None,
        };
        let may_end = view.can_close() && !pending && (plain || self.may_end(seen));
        if let Some(close) = close.filter(|_| may_end) {
            self.begin_punct(program, close, depth, below, out);
        }
        // A comma after an item, exact white space before the first one, else nothing.
        let before = match phase {
            Phase::After => Some(Punct::Comma),
            Phase::Open if program.is_pretty() => Some(Punct::Indent),
            _ => None,
        };
        match before {
            None if plain => self.begin_items(program, frame, &view, below, out),
            None => self.begin_ways(program, frame, below, output, out),
            Some(before) => {
                let unknown = !plain && self.stacks.keys(seen).unknown;
                let any = if plain || (pending && unknown) {
                    view.any_item()
                } else {
                    !self.item_ways(program, frame).is_empty()
                };
                if !any {
                    return;
                }
                let step = Step::Array { node, phase: Phase::Next, count, contains, seen };
                let mut stack = self.push(step, depth, below);
                let rich = |(class, ..): (&ItemClass, u64, Tally)| {
                    Unique::is_rich(program, class.node, depth)
                };
                if unknown && (pending || !view.items().any(rich)) {
                    // The unknown item may have been the last one that there was, or the one to repeat.
                    stack = self.push(Step::Doubt, depth, stack);
                }
                self.begin_punct(program, before, depth, stack, out);
            }
        }
    }

    /// Starts the next item of an array all of whose values are allowed.
    fn begin_items(
        &mut self,
        program: &Program,
        frame: Frame,
        view: &ArrayView<'_>,
        below: StackId,
        out: &mut Vec<Thread>,
    ) {
        let Step::Array { node, seen, .. } = frame.step else { return };
        let depth = frame.depth;
        for (&ItemClass { node: item, .. }, count, contains) in view.items() {
            let step = Step::Array { node, phase: Phase::After, count, contains, seen };
            let stack = self.push(step, depth, below);
            self.begin_item(program, (item, AllowId::ANY), stack, depth, out);
        }
    }

    /// Starts the next item of an array of which not every value is allowed.
    fn begin_ways(
        &mut self,
        program: &Program,
        frame: Frame,
        below: StackId,
        output: Output<'_>,
        out: &mut Vec<Thread>,
    ) {
        let Step::Array { node, seen, .. } = frame.step else { return };
        let Some(spec) = program.array(node) else { return };
        let (depth, start) = (frame.depth, output.offset());
        for (item, (count, contains), way) in self.item_ways(program, frame) {
            let before = self.stacks.keys(seen);
            let unknown = before.unknown;
            let mut after = before.clone().allowing(way.whole);
            after.parts += u64::from(way.whole != AllowId::ANY);
            if spec.equal && way.value.is_some() {
                after = Seen { met: true, ..Seen::default() };
            } else if spec.unique && way.value.is_some() {
                after = after.with_value(way.value);
            }
            let recorded = (spec.unique || spec.equal) && way.value.is_none();
            let seen = self.stacks.seen(after);
            self.consulted |= recorded;
            let step = if recorded {
                Step::UniqueItem { node, count, contains, seen, start }
            } else {
                Step::Array { node, phase: Phase::After, count, contains, seen }
            };
            let stack = self.push(step, depth, below);
            let begin = |sequence: &mut Self, out: &mut Vec<Thread>| {
                sequence.begin_item(program, (item, way.part), stack, depth, out);
            };
            if unknown && (spec.equal || !Unique::is_endless(program, item)) {
                self.doubtful(program, output, out, begin);
            } else {
                begin(self, out);
            }
        }
    }

    /// Starts an item, or goes on behind it if it may be empty.
    fn begin_item(
        &mut self,
        program: &Program,
        (item, allow): (NodeId, AllowId),
        stack: StackId,
        depth: u8,
        out: &mut Vec<Thread>,
    ) {
        self.open(program, (item, allow), stack, depth, out);
        if program.flow().is_empty(item) {
            self.returns.push((stack, None));
        }
    }

    /// The ways in which the next item of an array can be.
    fn item_ways(&mut self, program: &Program, frame: Frame) -> Vec<(NodeId, (u64, Tally), Way)> {
        let mut found = Vec::new();
        let Step::Array { node, count, contains, seen, .. } = frame.step else { return found };
        let Some(spec) = program.array(node) else { return found };
        let (depth, seen) = (frame.depth, self.stacks.keys(seen));
        let at = ArrayAt { spec, depth, count, tally: contains, position: seen.parts };
        let view = ArrayView::new(program, spec, depth, count, contains);
        for (class, count, tally) in view.items() {
            let (item, then) = (class.node, (count, tally));
            if spec.equal && seen.unknown {
                // Also what is equal to the item that is not known.
                let any = Way { part: AllowId::ANY, whole: AllowId::ANY, value: None };
                found.push((item, then, any));
                continue;
            }
            let ways = self.unique.item_ways(program, at, (item, then), &seen.values, seen.allow);
            found.extend(ways.into_iter().map(|way| (item, then, way)));
        }
        found
    }

    /// Whether a container may end as far as its values go.
    fn may_end(&self, seen: SeenId) -> bool {
        let seen = self.stacks.keys(seen);
        self.unique.may_end(seen.allow, seen.parts)
    }

    /// Does `begin` and what follows from it, and marks all its threads: whether they are right depends
    /// on text that is not known.
    fn doubtful(
        &mut self,
        program: &Program,
        output: Output<'_>,
        out: &mut Vec<Thread>,
        begin: impl FnOnce(&mut Self, &mut Vec<Thread>),
    ) {
        let outer = (
            std::mem::take(&mut self.returns),
            std::mem::take(&mut self.pending),
            std::mem::take(&mut self.started),
        );
        let first = out.len();
        begin(self, out);
        self.work_off(program, output, out);
        (self.returns, self.pending, self.started) = outer;
        for thread in out.iter_mut().skip(first).filter(|thread| **thread != Thread::END) {
            let frame = Frame { step: Step::Doubt, depth: 0 };
            thread.stack = self.stacks.push(frame, thread.stack);
        }
    }

    pub(super) fn resume_object(
        &mut self,
        program: &Program,
        (node, phase, seen): (NodeId, Phase, SeenId),
        depth: u8,
        below: StackId,
        out: &mut Vec<Thread>,
    ) {
        let Some(choice) = self.choice(program, node, seen, depth) else { return };
        if phase == Phase::Open && choice.can_close {
            self.begin_punct(program, Punct::CloseEmptyObject, depth, below, out);
        }
        if phase == Phase::After {
            if choice.can_close {
                self.begin_punct(program, Punct::CloseObject, depth, below, out);
            }
            if choice.any_key() {
                let step = Step::Object { node, phase: Phase::Next, seen };
                let stack = self.push(step, depth, below);
                self.begin_punct(program, Punct::Comma, depth, stack, out);
            }
            return;
        }
        if phase == Phase::Open && program.is_pretty() && choice.any_key() {
            let stack = self.push(Step::Object { node, phase: Phase::Next, seen }, depth, below);
            self.begin_punct(program, Punct::Indent, depth, stack, out);
            return;
        }
        if choice.declared.state.is_live() {
            let stack = self.push(Step::Key { node, seen }, depth, below);
            self.begin_terminal(program, choice.declared, stack, out);
        }
        for &(class, key) in &choice.others {
            let listed = program.states().get(key.state).is_listed();
            let stack = self.push(Step::OtherKey { node, class, seen, listed }, depth, below);
            self.begin_terminal(program, key, stack, out);
        }
    }

    fn choice(
        &mut self,
        program: &Program,
        node: NodeId,
        seen: SeenId,
        depth: u8,
    ) -> Option<Arc<Choice>> {
        // The depth matters only near its limit.
        let near = if program.all_fit(depth) { 0 } else { depth };
        if let Some(choice) = self.choices.get(&(node, seen, near)) {
            return Some(Arc::clone(choice));
        }
        let table = program.object_table(node)?;
        let keys = self.stacks.keys(seen);
        let choice = if keys.allow == AllowId::ANY {
            table.choice(program, node, keys, depth)
        } else {
            Arc::new(self.unique.choice(program, (node, depth), keys))
        };
        self.choices.insert((node, seen, near), Arc::clone(&choice));
        Some(choice)
    }

    /// Whether it depends on text that is not known what may follow: on that of a unique item, or
    /// of an undeclared key of the object whose next undeclared key is on top.
    pub fn doubt(&self, program: &Program, stack: StackId) -> Doubt {
        let mut doubt = Doubt::None;
        for (frame, _) in self.stacks.tops(stack) {
            let (node, seen, other) = match frame.step {
                Step::Doubt => return Doubt::OfAnyKey,
                Step::Key { node, seen } => (node, self.stacks.keys(seen), false),
                Step::OtherKey { node, seen, .. } => (node, self.stacks.keys(seen), true),
                _ => continue,
            };
            let barred = seen.allow != AllowId::ANY;
            // A declared key differs from every undeclared one.
            if !seen.unknown || !(other || barred) {
                continue;
            }
            let endless = program
                .object_table(node)
                .zip(program.object(node))
                .is_some_and(|(table, spec)| table.is_endless(program, spec));
            doubt =
                doubt.max(if endless && !barred { Doubt::OfEqualKeys } else { Doubt::OfAnyKey });
        }
        doubt
    }
}

/// The id of a text of the output, if the text is known.
fn intern(program: &Program, text: Option<&str>) -> Option<LiteralId> {
    text.map(|text| program.states().with_exprs(|exprs| exprs.literal_id(text)))
}

/// The text of a literal.
fn text_of(program: &Program, literal: Option<LiteralId>) -> Option<String> {
    literal.map(|id| program.states().with_exprs(|exprs| exprs.literal_text(id).to_owned()))
}
