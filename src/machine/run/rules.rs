//! Sequences and repetitions: what their frames lead to.
//!
//! Where a part may be empty, what follows it is started at the same time as the part, and the last
//! part of a sequence is a tail call. By hand, for `S = A? B "x"` on an empty stack: `A?` is started
//! with *the rest from B* after it, `B` with *the rest from "x"*; `"x"` is not, as `B` is not empty.

use super::super::program::Program;
use super::super::stack::{Frame, StackId, Step};
use super::super::values::AllowId;
use super::{Sequence, Thread};
use crate::grammar::{Node, NodeId};

impl Sequence {
    /// Starts part `next` of a sequence, and those behind parts that may be empty. The last part
    /// is a tail call: it pushes nothing.
    pub(super) fn sequence(
        &mut self,
        program: &Program,
        node: NodeId,
        next: u32,
        stack: StackId,
        depth: u8,
        out: &mut Vec<Thread>,
    ) {
        let Node::Seq(parts) = program.node(node) else { return };
        let mut next = next;
        while let Some(&part) = parts.get(next as usize) {
            next += 1;
            let last = next as usize == parts.len();
            let above =
                if last { stack } else { self.push(Step::Seq { node, next }, depth, stack) };
            self.open(program, (part, AllowId::ANY), above, depth, out);
            if !program.flow().is_empty(part) {
                return;
            }
        }
    }

    /// Starts one more item of a repetition that has `count`, and what may follow an empty item.
    pub(super) fn item(
        &mut self,
        program: &Program,
        node: NodeId,
        count: u64,
        stack: StackId,
        depth: u8,
        out: &mut Vec<Thread>,
    ) {
        let Node::Repeat { item, min, max, .. } = *program.node(node) else { return };
        if max.is_some_and(|max| count >= max) {
            return;
        }
        // Without an upper bound only the distance to the lower one matters.
        let next = if max.is_none() { (count + 1).min(min) } else { count + 1 };
        let above = self.push_loop(program, Step::Repeat { node, count: next }, depth, stack);
        self.open(program, (item, AllowId::ANY), above, depth, out);
        if program.flow().is_empty(item) {
            self.separator(program, node, next, stack, depth, out);
        }
    }

    /// Starts the separator after `count` items of a repetition, if one may come.
    fn separator(
        &mut self,
        program: &Program,
        node: NodeId,
        count: u64,
        stack: StackId,
        depth: u8,
        out: &mut Vec<Thread>,
    ) {
        let Node::Repeat { separator: Some(separator), max, .. } = *program.node(node) else {
            return;
        };
        if max.is_none_or(|max| count < max) {
            let above = self.push(Step::Separated { node, count }, depth, stack);
            self.open(program, (separator, AllowId::ANY), above, depth, out);
        }
    }

    /// What may follow `count` items of a repetition, but for its end.
    pub(super) fn after_item(
        &mut self,
        program: &Program,
        node: NodeId,
        count: u64,
        stack: StackId,
        depth: u8,
        out: &mut Vec<Thread>,
    ) {
        let Node::Repeat { separator, .. } = *program.node(node) else { return };
        self.separator(program, node, count, stack, depth, out);
        if program.flow().none_or_empty(separator) {
            self.item(program, node, count, stack, depth, out);
        }
    }

    /// Pushes the frame of a repetition. If as many items may follow as one likes, the same frame
    /// below it says nothing new: `x*` in `x*` is `x*`. This is what keeps ambiguous loops flat.
    fn push_loop(
        &mut self,
        program: &Program,
        step: Step,
        depth: u8,
        mut stack: StackId,
    ) -> StackId {
        let Step::Repeat { node, count } = step else { return self.push(step, depth, stack) };
        let frame = Frame { step, depth };
        if let Node::Repeat { min, max: None, .. } = program.node(node)
            && count >= *min
            && let Some((rest, below)) = self.stacks.split(stack, frame)
        {
            stack = rest.map_or(below, |rest| self.stacks.unite(&[rest, below]));
        }
        self.stacks.push(frame, stack)
    }
}
