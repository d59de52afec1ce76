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
//! A closure works in two turns. *Ending*: the stacks of all terminals that are complete are one
//! stack; frames of which nothing has to follow are ended by uniting the stack with what is below
//! them. *Starting*: what the frames on top go on with is started, callers before callees, so that
//! all that may come after a node is one stack before the node is started. However many readings
//! an ambiguous beginning has, each node is started once.
//!
//! By hand, after `a` of `S ::= A B`, `A ::= "a" A?`, `B ::= "a"? "b"`: the frame on top, *B of S*,
//! resumes `B` with the bottom after it; the rest of `A` starts `A?` with *B of S* after it. Both
//! start a terminal that begins with `a`, in different states: two threads.
//!
//! Invariants: no thread is dead; every thread can be completed (the program offers nothing that
//! cannot); threads with equal states are one thread, whose stack is the union.
//!
//! Cost of a step: one table look-up per thread, plus the closure where a terminal ends: linear in
//! the nodes that it starts.

use std::sync::Arc;

use hashbrown::HashMap;

use super::objects::Choice;
use super::program::Program;
use super::stack::{Frame, Phase, SeenId, StackId, Stacks, Step};
use super::states::{Excess, Punct, Start, StateId};
use super::unique::Unique;
use super::values::AllowId;
use crate::error::{Error, Kind, Result};
use crate::expr::LiteralId;
use crate::grammar::{Node, NodeId};

mod containers;
mod rules;
mod within;

pub use containers::Doubt;

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
    /// Stacks with all that they become by ending what may be over, see [`Sequence::ended`].
    ended: HashMap<StackId, StackId>,
    /// Stacks with what they are once a token has begun, see [`Sequence::tick`].
    ticked: HashMap<StackId, StackId>,
    /// Whether a closure was cut short since the last [`Sequence::check`].
    exhausted: bool,
    /// Terminals that are complete: what comes after them, and perhaps which literal they were.
    returns: Vec<(StackId, Option<LiteralId>)>,
    /// Nodes to start, by falling rank.
    pending: Vec<Entry>,
    /// Nodes that this closure has started, by rising rank.
    started: Vec<Entry>,
}

/// Most tasks of one closure. Grammars of any use need some hundreds; one that is ambiguous in
/// every way at every place could ask for any number.
const TASKS: usize = 100_000;

/// A node to start inside `depth` containers, of which only some values are allowed, with all that
/// may come after it.
#[derive(Debug, Clone, Copy)]
struct Entry {
    rank: u32,
    depth: u8,
    allow: AllowId,
    node: NodeId,
    stack: StackId,
}

impl Entry {
    fn key(&self) -> (u32, u8, u32) {
        (self.rank, self.depth, self.allow.raw())
    }
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

    /// In how many containers the deepest of `threads` is.
    pub fn depth(&self, threads: &[Thread]) -> u8 {
        let tops = threads.iter().flat_map(|thread| self.stacks.tops(thread.stack));
        tops.map(|(frame, _)| frame.depth).max().unwrap_or(0)
    }

    /// Bytes of memory, about.
    pub fn bytes(&self) -> usize {
        self.stacks.bytes()
            + self.unique.values.bytes()
            + self.choices.capacity() * 32
            + (self.ended.capacity() + self.ticked.capacity()) * 9
    }

    /// Steps of the last closure.
    #[cfg(test)]
    pub(super) fn steps(&self) -> usize {
        TASKS - self.stacks.fuel()
    }

    /// The configuration before the first byte.
    pub fn begin(&mut self, program: &Program, out: &mut Vec<Thread>) {
        self.clear(out);
        let (root, stack) = (program.grammar().root(), StackId::BOTTOM);
        self.open(program, (root, AllowId::ANY), stack, 0, out);
        if program.flow().is_empty(root) {
            self.returns.push((stack, None));
        }
        self.close(program, Output::Known(&[]), out);
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
        self.clear(out);
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
        self.clear(out);
        self.returns.push((stack, literal));
        self.close(program, output, out);
    }

    /// Makes ready for a closure.
    fn clear(&mut self, out: &mut Vec<Thread>) {
        out.clear();
        self.returns.clear();
        self.pending.clear();
        self.started.clear();
        self.stacks.refuel(TASKS);
        self.unique.begin();
    }

    /// Adds a thread, and the task of what follows if its terminal may end here.
    #[inline]
    fn arrive(&mut self, program: &Program, thread: Thread, out: &mut Vec<Thread>) {
        let state = program.states().get(thread.state);
        if state.accepts() {
            self.returns.push((thread.stack, state.literal()));
        }
        if state.continues() || state.special().is_some() {
            out.push(thread);
        }
    }

    /// Both stacks as one.
    pub fn unite(&mut self, a: StackId, b: StackId) -> StackId {
        self.stacks.refuel(TASKS);
        let both = self.stacks.unite(&[a, b]);
        self.exhausted |= !self.stacks.has_fuel();
        both
    }

    /// Works off the tasks and merges the threads.
    fn close(&mut self, program: &Program, output: Output<'_>, out: &mut Vec<Thread>) {
        self.work_off(program, output, out);
        self.merge(out);
        self.exhausted |= !self.stacks.has_fuel();
    }

    /// Works off the tasks: first what is complete, then what starts, callers before callees.
    fn work_off(&mut self, program: &Program, output: Output<'_>, out: &mut Vec<Thread>) {
        loop {
            self.finish(program, output, out);
            let Some(entry) = self.pending.pop() else { return };
            if !self.stacks.spend() {
                return;
            }
            // At the end, but for nodes that are started again.
            let at = self.started.partition_point(|started| started.key() < entry.key());
            self.started.insert(at, entry);
            self.enter(program, entry, out);
        }
    }

    /// Goes on behind the terminals that are complete: their stacks are one stack, so that each
    /// frame on top is resumed once. But what a key leads to depends on its text.
    fn finish(&mut self, program: &Program, output: Output<'_>, out: &mut Vec<Thread>) {
        let mut wholes = Vec::new();
        while let Some((mut stack, literal)) = self.returns.pop() {
            loop {
                let asking = self.stacks.tops(stack).find(|(frame, _)| asks(frame));
                let Some((frame, below)) = asking else {
                    wholes.push(stack);
                    break;
                };
                match frame.step {
                    Step::Doubt => self.returns.push((below, literal)),
                    _ => self.resume_frame(program, frame, below, literal, output, out),
                }
                match self.stacks.split(stack, frame) {
                    Some((Some(rest), _)) => stack = rest,
                    _ => break,
                }
            }
            if !self.returns.is_empty() {
                continue;
            }
            if wholes.is_empty() {
                continue;
            }
            let stack = self.stacks.unite(&wholes);
            wholes.clear();
            let stack = self.ended(program, stack);
            if self.stacks.has_bottom(stack) {
                out.push(Thread::END);
            }
            for i in 0..self.stacks.len(stack) {
                let Some((frame, below)) = self.stacks.top(stack, i) else { continue };
                self.resume_frame(program, frame, below, None, output, out);
            }
        }
    }

    /// A stack united with what is below the frames on top that may be over, with what is then
    /// below those, and so on.
    fn ended(&mut self, program: &Program, stack: StackId) -> StackId {
        let can_end = |frame: &Frame| program.flow().can_end(program.grammar(), &frame.step);
        if !self.stacks.tops(stack).any(|(frame, _)| can_end(&frame)) {
            return stack;
        }
        let mut work = vec![stack];
        while let Some(&stack) = work.last() {
            let open = work.len();
            let mut all = vec![stack];
            if !self.ended.contains_key(&stack) {
                for (_, below) in self.stacks.tops(stack).filter(|(frame, _)| can_end(frame)) {
                    match self.ended.get(&below) {
                        Some(&ended) => all.push(ended),
                        None => work.push(below),
                    }
                }
                if work.len() > open {
                    continue;
                }
                let whole = self.stacks.unite(&all);
                if !self.stacks.has_fuel() {
                    return whole;
                }
                self.ended.insert(stack, whole);
            }
            work.pop();
        }
        self.ended.get(&stack).copied().unwrap_or(stack)
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

    /// Plans to start a node, with `stack` after it; what starts at once is started. If the node
    /// may be empty, the caller goes on with what follows it, too.
    fn open(
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
            Node::Never | Node::Empty => {}
            Node::Terminal(terminal) if allow == AllowId::ANY => {
                start_terminal(program, program.start(node, terminal), stack, out);
            }
            Node::Terminal(_) => {
                for &start in self.unique.starts(program, node, allow).iter() {
                    start_terminal(program, start, stack, out);
                }
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
            Node::Rule(_)
            | Node::Within { .. }
            | Node::Alt(_)
            | Node::Seq(_)
            | Node::Repeat { .. } => {
                let rank = program.flow().rank(node);
                self.plan(Entry { rank, depth, allow, node, stack });
            }
        }
    }

    /// Adds an entry; of the same node there is one, whose stack is the union.
    fn plan(&mut self, mut entry: Entry) {
        if self.started.last().is_some_and(|last| entry.key() <= last.key()) {
            // The node was perhaps started already: again if something new may come after it.
            if let Ok(at) = self.started.binary_search_by_key(&entry.key(), Entry::key) {
                let before = self.started[at].stack;
                entry.stack = self.stacks.unite(&[before, entry.stack]);
                if entry.stack == before {
                    return;
                }
                self.started.remove(at);
            }
        }
        let at = self.pending.binary_search_by(|other| entry.key().cmp(&other.key()));
        match at {
            Ok(at) => {
                let both = [self.pending[at].stack, entry.stack];
                self.pending[at].stack = self.stacks.unite(&both);
            }
            Err(at) => self.pending.insert(at, entry),
        }
    }

    /// Starts a node: all of its texts but the empty one.
    fn enter(&mut self, program: &Program, entry: Entry, out: &mut Vec<Thread>) {
        let Entry { node, allow, stack, depth, .. } = entry;
        match program.node(node) {
            Node::Rule(target) => self.open(program, (*target, allow), stack, depth, out),
            &Node::Within { item, tokens } => {
                let stack = self.push(Step::within(tokens), depth, stack);
                self.open(program, (item, allow), stack, depth, out);
            }
            Node::Alt(parts) => {
                for &part in parts {
                    self.open(program, (part, allow), stack, depth, out);
                }
            }
            Node::Seq(_) => self.sequence(program, node, 0, stack, depth, out),
            Node::Repeat { .. } => self.item(program, node, 0, stack, depth, out),
            _ => {}
        }
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
            Step::Seq { node, next } => self.sequence(program, node, next, below, depth, out),
            Step::Enter(node) => self.open(program, (node, AllowId::ANY), below, depth, out),
            Step::EnterAs { node, allow } => self.open(program, (node, allow), below, depth, out),
            Step::Doubt => self.returns.push((below, literal)),
            // It was ended, if it may be: then what is below it is on top, too.
            Step::Within { .. } => {}
            Step::Repeat { node, count } => {
                self.after_item(program, node, count, below, depth, out);
            }
            Step::Separated { node, count } => self.item(program, node, count, below, depth, out),
            Step::Array { .. } => self.resume_array(program, frame, below, output, out),
            Step::UniqueItem { .. } => self.resume_unique_item(program, frame, below, output, out),
            Step::Object { node, phase, seen } => {
                self.resume_object(program, (node, phase, seen), depth, below, out);
            }
            Step::Key { .. } => self.resume_key(program, frame, below, literal, out),
            Step::OtherKey { .. } => {
                self.resume_other_key(program, frame, below, literal, output, out);
            }
        }
    }
}

/// Whether a frame asks which literal was on top of it.
fn asks(frame: &Frame) -> bool {
    matches!(frame.step, Step::Key { .. } | Step::OtherKey { .. } | Step::Doubt)
}

/// Adds the thread of a terminal, if it matches more than the empty text.
fn start_terminal(program: &Program, start: Start, stack: StackId, out: &mut Vec<Thread>) {
    let Start { state, excess } = start;
    if state.is_live() {
        let content = program.states().get(state);
        if content.continues() || content.special().is_some() {
            out.push(Thread { state, excess, stack });
        }
    }
}
