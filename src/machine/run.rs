//! Running a program: threads, their closure, and steps by one byte.
//!
//! A configuration is a list of [`Thread`]s: pairs of a terminal state and a stack. It is *closed
//! under completion*: where a terminal may end, the threads of what may follow are in the list
//! too, so a byte never has to look ahead. The end of the document is the thread [`Thread::END`].
//!
//! Worked example: after `[1` for an array of integers the threads are *digits of a number* (on
//! top of the array's frame) and, since the number may end here, *comma* and *closing bracket*.
//! Byte `2` keeps the first and kills the others; byte `,` kills all but *comma*, which may end
//! at once, so the thread *start of a number* joins it.
//!
//! Invariants: no thread is dead; every thread can be completed (the program offers nothing that
//! cannot); threads with equal states are one thread, whose stack is the union.
//!
//! Cost of a step: one table look-up per thread, plus the closure where a terminal ends.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::arrays::ArrayView;
use super::objects::Choice;
use super::program::Program;
use super::stack::{Frame, Phase, Seen, SeenId, StackId, Stacks, Step, Tally};
use super::states::{Excess, Punct, Start, StateId};
use super::unique::{ArrayAt, Unique, Way};
use super::values::AllowId;
use crate::error::{Error, Kind, Result};
use crate::expr::LiteralId;
use crate::grammar::{ItemClass, Node, NodeId};

/// A terminal state and what comes after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    /// The state of the terminal; dead only in [`Thread::END`].
    pub state: StateId,
    /// Length bounds beyond the state.
    pub excess: Excess,
    /// What comes after the terminal.
    pub stack: StackId,
}

impl Thread {
    /// The document may end here.
    pub const END: Thread =
        Thread { state: StateId::DEAD, excess: Excess::NONE, stack: StackId::BOTTOM };
}

/// What a step can know of the output.
#[derive(Debug, Clone, Copy)]
pub enum Output<'a> {
    /// All bytes of it, those of the step included.
    Known(&'a [u8]),
    /// Only that it goes on: a token is being tried.
    Unknown,
}

/// Offset of a key or an item whose start is not known.
const NOWHERE: u32 = u32::MAX;

impl<'a> Output<'a> {
    /// Where the output ends.
    fn offset(self) -> u32 {
        match self {
            Output::Known(text) => u32::try_from(text.len()).unwrap_or(NOWHERE),
            Output::Unknown => NOWHERE,
        }
    }

    /// The JSON string that the output ends with, with its quotes.
    fn last_string(self) -> Option<&'a [u8]> {
        let Output::Known(text) = self else { return None };
        let mut end = text.len().checked_sub(1)?;
        loop {
            end = text[..end].iter().rposition(|&byte| byte == b'"')?;
            let escapes = text[..end].iter().rev().take_while(|&&byte| byte == b'\\').count();
            if escapes % 2 == 0 {
                return Some(&text[end..]);
            }
        }
    }

    /// The output from `start` on.
    fn since(self, start: u32) -> Option<&'a [u8]> {
        match self {
            Output::Known(text) if start != NOWHERE => text.get(start as usize..),
            _ => None,
        }
    }
}

/// What one sequence has learnt: its stacks, and the choices of its objects.
#[derive(Debug, Clone, Default)]
pub struct Sequence {
    pub(crate) stacks: Stacks,
    /// The values of unique items.
    unique: Unique,
    choices: HashMap<(NodeId, SeenId, u8), Arc<Choice>>,
    /// Set when a step depended on more of the output than its last byte: on the text of a key
    /// or an item.
    pub(crate) consulted: bool,
    /// Whether a closure was cut short since the last [`Sequence::check`].
    exhausted: bool,
    work: Vec<Work>,
    visited: HashSet<(NodeId, StackId, u64)>,
}

/// Most tasks of one closure. Grammars of any use need some hundreds; one that is ambiguous in
/// every way at every place could ask for any number.
const TASKS: usize = 100_000;

/// A task of the closure.
#[derive(Debug, Clone, Copy)]
enum Work {
    /// Start a node, with this after it.
    Enter { node: NodeId, stack: StackId, depth: u8, allow: AllowId },
    /// Something is complete (perhaps a literal): go on with what is on the stack.
    Return { stack: StackId, literal: Option<LiteralId> },
}

impl Sequence {
    /// A sequence that has seen nothing.
    pub fn new() -> Self {
        Self { stacks: Stacks::new(), ..Self::default() }
    }

    /// Whether everything since the last call was computed whole.
    ///
    /// # Errors
    /// [`Kind::TooComplex`] if a configuration needs more tasks than a closure may have; what was
    /// computed is then to be thrown away.
    pub fn check(&mut self) -> Result<()> {
        if !(std::mem::take(&mut self.exhausted) | std::mem::take(&mut self.unique.exhausted)) {
            return Ok(());
        }
        let kind = Kind::TooComplex { what: "tasks of one step", limit: TASKS as u64 };
        let message = format!("the grammar is so ambiguous here that a byte needs {TASKS} tasks");
        Err(Error::new(kind, message).help("write the rules so that they overlap less"))
    }

    /// The same threads as those of `other`, on the stacks of this sequence.
    pub fn import(&mut self, other: &Sequence, threads: &[Thread]) -> Vec<Thread> {
        let stacks: Vec<StackId> = threads.iter().map(|thread| thread.stack).collect();
        let mut values = self.unique.values.import(&other.unique.values);
        let stacks = self.stacks.import(&other.stacks, &stacks, &mut values);
        let mut ours: Vec<Thread> =
            threads.iter().zip(stacks).map(|(thread, stack)| Thread { stack, ..*thread }).collect();
        ours.sort_unstable();
        ours
    }

    /// Bytes of memory, about.
    pub fn bytes(&self) -> usize {
        self.stacks.bytes() + self.unique.values.bytes() + self.choices.capacity() * 32
    }

    /// The configuration before the first byte.
    pub fn begin(&mut self, program: &Program, out: &mut Vec<Thread>) {
        out.clear();
        let stack = StackId::BOTTOM;
        let (node, allow) = (program.grammar().root(), AllowId::ANY);
        self.work.push(Work::Enter { node, stack, depth: 0, allow });
        self.close(program, Output::Known(&[]), out);
        self.merge(out);
    }

    /// The configuration after one more byte; empty if the byte is not allowed. With a known
    /// output, its last byte is `byte`.
    pub fn step(
        &mut self,
        program: &Program,
        from: &[Thread],
        byte: u8,
        output: Output<'_>,
        out: &mut Vec<Thread>,
    ) {
        out.clear();
        let states = program.states();
        for thread in from {
            if !thread.state.is_live() {
                continue;
            }
            let state = states.step(thread.state, byte);
            if state.is_live() {
                let (state, excess) = states.refill(state, thread.excess);
                self.arrive(program, Thread { state, excess, stack: thread.stack }, out);
            }
        }
        self.close(program, output, out);
        self.merge(out);
    }

    /// The threads that follow once the terminal on top of `stack` is complete.
    pub fn resume(
        &mut self,
        program: &Program,
        stack: StackId,
        literal: Option<LiteralId>,
        output: Output<'_>,
        out: &mut Vec<Thread>,
    ) {
        out.clear();
        self.work.push(Work::Return { stack, literal });
        self.close(program, output, out);
        self.merge(out);
    }

    /// Adds a thread, and the task of what follows if its terminal may end here.
    #[inline]
    fn arrive(&mut self, program: &Program, thread: Thread, out: &mut Vec<Thread>) {
        let state = program.states().get(thread.state);
        if state.accepts() {
            self.work.push(Work::Return { stack: thread.stack, literal: state.literal() });
        }
        if state.continues() || state.special().is_some() {
            out.push(thread);
        }
    }

    /// Works off the tasks.
    fn close(&mut self, program: &Program, output: Output<'_>, out: &mut Vec<Thread>) {
        self.visited.clear();
        self.unique.begin();
        self.work_off(program, output, out);
    }

    fn work_off(&mut self, program: &Program, output: Output<'_>, out: &mut Vec<Thread>) {
        let mut left = TASKS;
        while let Some(work) = self.work.pop() {
            if left == 0 {
                self.exhausted = true;
                self.work.clear();
                return;
            }
            left -= 1;
            match work {
                Work::Enter { node, stack, depth, allow } => {
                    self.enter(program, (node, allow), stack, depth, out);
                }
                Work::Return { stack, literal } => {
                    if self.stacks.has_bottom(stack) {
                        out.push(Thread::END);
                    }
                    let tops: Vec<_> = self.stacks.tops(stack).collect();
                    left = left.saturating_sub(tops.len());
                    for (frame, below) in tops {
                        self.resume_frame(program, frame, below, literal, output, out);
                    }
                }
            }
        }
    }

    /// Makes one thread of those with equal states, and sorts.
    fn merge(&mut self, out: &mut Vec<Thread>) {
        if out.len() < 2 {
            return;
        }
        out.sort_unstable();
        out.dedup();
        if out.windows(2).all(|w| (w[0].state, w[0].excess) != (w[1].state, w[1].excess)) {
            return;
        }
        let mut kept = 0;
        let mut at = 0;
        while at < out.len() {
            let first = out[at];
            let same = |t: &Thread| t.state == first.state && t.excess == first.excess;
            let end = at + out[at..].iter().take_while(|t| same(t)).count();
            let stacks: Vec<StackId> = out[at..end].iter().map(|t| t.stack).collect();
            out[kept] = Thread { stack: self.stacks.unite(&stacks), ..first };
            kept += 1;
            at = end;
        }
        out.truncate(kept);
    }

    /// Whether the closure was here already with the same rest: the same again, or an empty
    /// cycle.
    fn again(&mut self, node: NodeId, stack: StackId, count: u64) -> bool {
        !self.visited.insert((node, stack, count))
    }

    fn push(&mut self, step: Step, depth: u8, below: StackId) -> StackId {
        self.stacks.push(Frame { step, depth }, below)
    }

    fn begin_terminal(
        &mut self,
        program: &Program,
        start: Start,
        stack: StackId,
        out: &mut Vec<Thread>,
    ) {
        if start.state.is_live() {
            let thread = Thread { state: start.state, excess: start.excess, stack };
            self.arrive(program, thread, out);
        }
    }

    fn begin_punct(
        &mut self,
        program: &Program,
        punct: Punct,
        depth: u8,
        stack: StackId,
        out: &mut Vec<Thread>,
    ) {
        let state = program.punct(punct, depth);
        self.arrive(program, Thread { state, excess: Excess::NONE, stack }, out);
    }

    fn enter(
        &mut self,
        program: &Program,
        (node, allow): (NodeId, AllowId),
        stack: StackId,
        depth: u8,
        out: &mut Vec<Thread>,
    ) {
        if !program.fits(node, depth) {
            return;
        }
        match program.node(node) {
            Node::Never => {}
            Node::Empty => self.work.push(Work::Return { stack, literal: None }),
            Node::Terminal(terminal) if allow == AllowId::ANY => {
                self.begin_terminal(program, program.start(node, terminal), stack, out);
            }
            Node::Terminal(_) => {
                for &start in self.unique.starts(program, node, allow).iter() {
                    self.begin_terminal(program, start, stack, out);
                }
            }
            Node::Rule(target) => {
                if !self.again(node, stack, allow.raw().into()) {
                    self.work.push(Work::Enter { node: *target, stack, depth, allow });
                }
            }
            Node::Alt(parts) => {
                let tasks = parts.iter().map(|&node| Work::Enter { node, stack, depth, allow });
                self.work.extend(tasks);
            }
            Node::Seq(_) => self.sequence(program, node, 0, stack, depth),
            Node::Repeat { min, .. } => {
                if *min == 0 {
                    self.work.push(Work::Return { stack, literal: None });
                }
                self.item(program, node, 0, stack, depth);
            }
            Node::Array(_) => {
                let Some(seen) = self.nothing_seen(allow, true) else { return };
                let (phase, contains) = (Phase::Open, [0; 4]);
                let step = Step::Array { node, phase, count: 0, contains, seen };
                let stack = self.push(step, depth + 1, stack);
                self.begin_punct(program, Punct::OpenArray, depth, stack, out);
            }
            Node::Object(_) => {
                let Some(seen) = self.nothing_seen(allow, false) else { return };
                let step = Step::Object { node, phase: Phase::Open, seen };
                let stack = self.push(step, depth + 1, stack);
                self.begin_punct(program, Punct::OpenObject, depth, stack, out);
            }
        }
    }

    /// The keys or values of a container that has none, and which values are allowed for it; `None`
    /// if none is.
    fn nothing_seen(&mut self, allow: AllowId, is_array: bool) -> Option<SeenId> {
        if allow == AllowId::ANY {
            return Some(SeenId::NONE);
        }
        let allow = self.unique.container(allow, is_array)?;
        Some(self.stacks.seen(Seen { allow, ..Seen::default() }))
    }

    /// Starts part `next` of a sequence. The last part is a tail call: it pushes nothing.
    fn sequence(&mut self, program: &Program, node: NodeId, next: u32, stack: StackId, depth: u8) {
        let Node::Seq(parts) = program.node(node) else { return };
        match parts.get(next as usize) {
            None => self.work.push(Work::Return { stack, literal: None }),
            Some(&part) => {
                let last = next as usize + 1 == parts.len();
                let step = Step::Seq { node, next: next + 1 };
                let stack = if last { stack } else { self.push(step, depth, stack) };
                self.work.push(Work::Enter { node: part, stack, depth, allow: AllowId::ANY });
            }
        }
    }

    /// Starts one more item of a repetition that has `count`.
    fn item(&mut self, program: &Program, node: NodeId, count: u64, stack: StackId, depth: u8) {
        let Node::Repeat { item, min, max, .. } = *program.node(node) else { return };
        if max.is_some_and(|max| count >= max) {
            return;
        }
        // Without an upper bound only the distance to the lower one matters.
        let next = if max.is_none() { (count + 1).min(min) } else { count + 1 };
        let step = Step::Repeat { node, count: next };
        let stack = self.push_loop(step, depth, stack);
        self.work.push(Work::Enter { node: item, stack, depth, allow: AllowId::ANY });
    }

    /// Pushes the frame of a repetition, unless it is on top already and one more of it says
    /// nothing new: `x* x*` is `x*`. This is what keeps ambiguous loops flat.
    fn push_loop(&mut self, step: Step, depth: u8, stack: StackId) -> StackId {
        let frame = Frame { step, depth };
        let mut tops = self.stacks.tops(stack);
        let idempotent = matches!(step, Step::Repeat { count: 0, .. });
        let same = tops.next().is_some_and(|(top, _)| top == frame) && tops.next().is_none();
        drop(tops);
        if idempotent && same && !self.stacks.has_bottom(stack) {
            return stack;
        }
        self.stacks.push(frame, stack)
    }

    /// Goes on with the frame on top of a stack.
    fn resume_frame(
        &mut self,
        program: &Program,
        frame: Frame,
        below: StackId,
        literal: Option<LiteralId>,
        output: Output<'_>,
        out: &mut Vec<Thread>,
    ) {
        let depth = frame.depth;
        match frame.step {
            Step::Seq { node, next } => self.sequence(program, node, next, below, depth),
            Step::Enter(node) => {
                let allow = AllowId::ANY;
                self.work.push(Work::Enter { node, stack: below, depth, allow });
            }
            Step::EnterAs { node, allow } => {
                self.work.push(Work::Enter { node, stack: below, depth, allow });
            }
            Step::Doubt => self.work.push(Work::Return { stack: below, literal }),
            Step::Repeat { node, count } => self.resume_repeat(program, node, count, below, depth),
            Step::Separated { node, count } => self.item(program, node, count, below, depth),
            Step::Array { .. } => self.resume_array(program, frame, below, output, out),
            Step::UniqueItem { node, count, contains, seen, start } => {
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
            Step::Object { node, phase, seen } => {
                self.resume_object(program, (node, phase, seen), depth, below, out);
            }
            Step::Key { node, seen } => {
                let Some(table) = program.object_table(node) else { return };
                let Some(key) = literal.and_then(|name| table.property(name)) else { return };
                let seen = table.with_declared(self.stacks.keys(seen), key);
                let Some(spec) = program.object(node) else { return };
                let property = &spec.properties[key as usize];
                let known = (Some(property.name.as_str()), property.value);
                self.begin_value(program, (node, known), seen, depth, below, out);
            }
            Step::OtherKey { node, class, seen } => {
                let (Some(table), Some(spec)) = (program.object_table(node), program.object(node))
                else {
                    return;
                };
                let key = match literal {
                    Some(_) => text_of(program, literal),
                    None => {
                        self.consulted = true;
                        let key = output.last_string();
                        key.and_then(|key| serde_json::from_slice(key).ok())
                    }
                };
                let id = intern(program, key.as_deref());
                let seen = table.with_other(spec, self.stacks.keys(seen), class, id);
                let known = (key.as_deref(), spec.others[class as usize].value);
                self.begin_value(program, (node, known), seen, depth, below, out);
            }
        }
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

    fn resume_repeat(
        &mut self,
        program: &Program,
        node: NodeId,
        count: u64,
        below: StackId,
        depth: u8,
    ) {
        let Node::Repeat { separator, min, max, .. } = *program.node(node) else { return };
        if self.again(node, below, count) {
            return;
        }
        if count >= min {
            self.work.push(Work::Return { stack: below, literal: None });
        }
        match separator {
            Some(separator) if max.is_none_or(|max| count < max) => {
                let stack = self.push(Step::Separated { node, count }, depth, below);
                let allow = AllowId::ANY;
                self.work.push(Work::Enter { node: separator, stack, depth, allow });
            }
            Some(_) => {}
            None => self.item(program, node, count, below, depth),
        }
    }

    fn resume_array(
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
        let plain = !spec.unique && self.stacks.keys(seen).allow == AllowId::ANY;
        let close = match phase {
            Phase::Open => Some(Punct::CloseEmptyArray),
            Phase::After => Some(Punct::CloseArray),
            Phase::Next => None,
        };
        if let Some(close) = close.filter(|_| view.can_close() && (plain || self.may_end(seen))) {
            self.begin_punct(program, close, depth, below, out);
        }
        // A comma after an item, exact white space before the first one, else nothing.
        let before = match phase {
            Phase::After => Some(Punct::Comma),
            Phase::Open if program.is_pretty() => Some(Punct::Indent),
            _ => None,
        };
        match before {
            None if plain => self.begin_items(frame, &view, below),
            None => self.begin_ways(program, frame, below, output, out),
            Some(before) => {
                let any = if plain {
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
                if !plain && self.stacks.keys(seen).unknown && !view.items().any(rich) {
                    // The unknown item may have been the last one that there was.
                    stack = self.push(Step::Doubt, depth, stack);
                }
                self.begin_punct(program, before, depth, stack, out);
            }
        }
    }

    /// Starts the next item of an array all of whose values are allowed.
    fn begin_items(&mut self, frame: Frame, view: &ArrayView<'_>, below: StackId) {
        let Step::Array { node, seen, .. } = frame.step else { return };
        let depth = frame.depth;
        for (&ItemClass { node: item, .. }, count, contains) in view.items() {
            let step = Step::Array { node, phase: Phase::After, count, contains, seen };
            let stack = self.push(step, depth, below);
            self.work.push(Work::Enter { node: item, stack, depth, allow: AllowId::ANY });
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
            if spec.unique && way.value.is_some() {
                after = after.with_value(way.value);
            }
            let seen = self.stacks.seen(after);
            self.consulted |= spec.unique && way.value.is_none();
            let step = if spec.unique && way.value.is_none() {
                Step::UniqueItem { node, count, contains, seen, start }
            } else {
                Step::Array { node, phase: Phase::After, count, contains, seen }
            };
            let stack = self.push(step, depth, below);
            let work = Work::Enter { node: item, stack, depth, allow: way.part };
            if unknown && !Unique::is_endless(program, item) {
                let enter = |sequence: &mut Self, _: &mut Vec<Thread>| sequence.work.push(work);
                self.doubtful(program, output, out, enter);
            } else {
                self.work.push(work);
            }
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
        let (outer, first) = (std::mem::take(&mut self.work), out.len());
        begin(self, out);
        self.work_off(program, output, out);
        self.work = outer;
        for thread in out.iter_mut().skip(first).filter(|thread| **thread != Thread::END) {
            let frame = Frame { step: Step::Doubt, depth: 0 };
            thread.stack = self.stacks.push(frame, thread.stack);
        }
    }

    fn resume_object(
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
            let stack = self.push(Step::OtherKey { node, class, seen }, depth, below);
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

    /// Whether it depends on text that is not known what may follow.
    pub fn is_vague(&self, stack: StackId) -> bool {
        self.stacks.tops(stack).any(|(frame, _)| match frame.step {
            Step::Key { seen, .. } | Step::OtherKey { seen, .. } => self.stacks.keys(seen).unknown,
            Step::Doubt => true,
            _ => false,
        })
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
