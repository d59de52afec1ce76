//! Budgets of parts: how many tokens may still begin in them.
//!
//! A part with a budget stands on the stack as a frame that counts ([`Step::Within`]). The machine
//! knows no tokens, so it is told when one begins ([`Sequence::tick`]): then all parts that are open
//! have one token less. A token belongs to the parts that are open when it begins; so `":"`, which
//! ends a key and begins its value, does not count for the value, and `"}`, which ends both value and
//! object, does.
//!
//! By hand: a value within 3 tokens, of the tokens `"ab`, `c`, `"}`. Its frame has room for 3, then 2,
//! 1 and 0 once the third has begun, which ends it. Had the third been `d`, the part would be open
//! with nothing left: the next token that begins in it overdraws it, and a part that is overdrawn cannot
//! end. The layer `cost` sees to it that no mask leads there.
//!
//! Counts are numbers in frames like all others: rollback, forks, ambiguity and sharing between
//! sequences need nothing more. Cost of a tick: one look-up for a stack that was met before.

use std::borrow::Cow;

use hashbrown::HashMap;

use super::super::program::Program;
use super::super::stack::{Frame, StackId, Stacks, Step};
use super::{Sequence, TASKS, Thread};

impl Sequence {
    /// The configuration `threads` when a token begins.
    pub fn tick<'t>(&mut self, program: &Program, threads: &'t [Thread]) -> Cow<'t, [Thread]> {
        if !program.has_budgets() {
            return Cow::Borrowed(threads);
        }
        self.stacks.refuel(TASKS);
        let mut ticked = threads.to_vec();
        for thread in ticked.iter_mut().filter(|thread| **thread != Thread::END) {
            thread.stack = after_tick(&mut self.stacks, &mut self.ticked, thread.stack);
        }
        self.exhausted |= !self.stacks.has_fuel();
        Cow::Owned(ticked)
    }

    /// The configuration `threads` without the budgets of the parts that are open: where no token
    /// keeps to them, they give way.
    pub fn lift<'t>(&mut self, threads: &[Thread]) -> Cow<'t, [Thread]> {
        self.stacks.refuel(TASKS);
        let (mut lifted, mut known) = (threads.to_vec(), HashMap::new());
        for thread in lifted.iter_mut().filter(|thread| **thread != Thread::END) {
            thread.stack = rewritten(&mut self.stacks, &mut known, thread.stack, |step| {
                Some(step).filter(|step| !matches!(step, Step::Within { .. }))
            });
        }
        self.exhausted |= !self.stacks.has_fuel();
        Cow::Owned(lifted)
    }
}

/// A stack with one token less in each of its budgets.
fn after_tick(
    stacks: &mut Stacks,
    known: &mut HashMap<StackId, StackId>,
    stack: StackId,
) -> StackId {
    rewritten(stacks, known, stack, |step| match step {
        Step::Within { room } => Some(Step::Within { room: room.saturating_sub(1) }),
        step => Some(step),
    })
}

/// A stack with other frames; without those for which there is none.
fn rewritten(
    stacks: &mut Stacks,
    known: &mut HashMap<StackId, StackId>,
    stack: StackId,
    new: impl Fn(Step) -> Option<Step>,
) -> StackId {
    // Stacks can be deep: a list of work instead of recursion.
    let mut todo = vec![stack];
    while let Some(&top) = todo.last() {
        let open = todo.len();
        let tops: Vec<(Frame, StackId)> = stacks.tops(top).collect();
        if !known.contains_key(&top) {
            todo.extend(tops.iter().map(|top| top.1).filter(|below| !known.contains_key(below)));
            if todo.len() > open {
                continue;
            }
            let mut all = if stacks.has_bottom(top) { vec![StackId::BOTTOM] } else { Vec::new() };
            for (frame, below) in tops {
                let below = known.get(&below).copied().unwrap_or(below);
                let step = new(frame.step);
                all.push(step.map_or(below, |step| stacks.push(Frame { step, ..frame }, below)));
            }
            let whole = stacks.unite(&all);
            known.insert(top, whole);
        }
        todo.pop();
    }
    known.get(&stack).copied().unwrap_or(stack)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::NodeId;

    #[test]
    fn every_open_budget_has_one_token_less() {
        let (mut stacks, mut known) = (Stacks::new(), HashMap::new());
        stacks.refuel(usize::MAX);
        let frame = |step| Frame { step, depth: 1 };
        let other = frame(Step::Enter(NodeId(3)));
        let mut two = |outer: u32, inner: u32| {
            let stack = stacks.push(frame(Step::Within { room: outer }), StackId::BOTTOM);
            let stack = stacks.push(other, stack);
            let inner = stacks.push(frame(Step::Within { room: inner }), stack);
            stacks.unite(&[inner, StackId::BOTTOM])
        };
        let (before, after, last) = (two(9, 2), two(8, 1), two(7, 0));
        assert_eq!(after_tick(&mut stacks, &mut known, before), after);
        assert_eq!(after_tick(&mut stacks, &mut known, after), last);
        assert_ne!(after_tick(&mut stacks, &mut known, last), last);
        let lift = |step| Some(step).filter(|step| !matches!(step, Step::Within { .. }));
        let open = stacks.push(other, StackId::BOTTOM);
        let both = stacks.unite(&[open, StackId::BOTTOM]);
        assert_eq!(rewritten(&mut stacks, &mut HashMap::new(), before, lift), both);
        let plain = stacks.push(other, StackId::BOTTOM);
        assert_eq!(after_tick(&mut stacks, &mut known, plain), plain);
    }
}
