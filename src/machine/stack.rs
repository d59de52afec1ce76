//! What comes after the current terminal: frames on hash-consed stacks.
//!
//! A stack is a set of nodes; a node is a frame and the stack below it. So a stack stands for many
//! lists of frames at once, those of all readings of an ambiguous beginning, as an automaton that
//! reads them from the top. It is kept minimal: nodes of one set have distinct frames, and equal
//! nodes and equal sets are stored once. So stacks that stand for the same lists have the same id.
//!
//! Worked example: inside the string of `{"a":["x`, the stack is
//! `Array(After, 1 item) -> Object(After, seen {a}) -> bottom`. Every later item of the same
//! (unbounded) array has that same id again: nothing grows with the output.
//!
//! And by hand for an ambiguous one, `S ::= "a" S S | "a"`: with `f` for *one more S*, the stack
//! after `aa` is `{bottom, f -> bottom}`, after `aaa` it is the union of `bottom`, `f -> bottom` and
//! `f -> f -> bottom`. Uniting merges equal frames, and what is below them, down to where it is the
//! same: `{bottom, f -> {bottom, f -> bottom}}`. After n letters there are n nodes, not 2^n lists.
//!
//! The arena belongs to one sequence: what a sequence learns about its own output dies with it,
//! and no lock is needed. Ids are never reused; whatever is below a node is older than it.
//!
//! Cost: a push is one look-up; a union is one look-up for each pair of stacks that was not united
//! before; many stacks are united by sorting their nodes.

use std::cmp::Ordering;

use hashbrown::HashMap;

use super::values::{AllowId, Import, ValueId};
use crate::expr::LiteralId;
use crate::grammar::NodeId;

/// A stack: a set of nodes of its [`Stacks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(u32);

/// Marks ids of sets with more than one node.
const SET: u32 = 1 << 31;

/// So many nodes of sets are read in one step of fuel.
const TOPS: usize = 16;

impl StackId {
    /// Nothing comes after.
    pub const BOTTOM: StackId = StackId(0);
}

/// Index of a [`Seen`] in its [`Stacks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeenId(pub(super) u32);

/// How far a container is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// After the opening bracket.
    Open,
    /// After an item or a value.
    After,
    /// After a comma.
    Next,
}

/// What to do when what is above it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// Go on with part `next` of a sequence.
    Seq {
        /// The node.
        node: NodeId,
        /// The part to start next.
        next: u32,
    },
    /// `count` items of a repetition are complete.
    Repeat {
        /// The node.
        node: NodeId,
        /// How many there are then.
        count: u64,
    },
    /// A separator is complete: one more item, then `count` of them.
    Separated {
        /// The node.
        node: NodeId,
        /// How many there are then.
        count: u64,
    },
    /// Go on with a node.
    Enter(NodeId),
    /// Go on with a node, of which only some values are allowed.
    EnterAs {
        /// The node.
        node: NodeId,
        /// The values.
        allow: AllowId,
    },
    /// Nothing to do; but whether what is above it is right depends on text that is not known.
    Doubt,
    /// Nothing to do; but in what is above it only so many tokens may begin.
    Within {
        /// One more than the tokens that are left; 0 if there were too many.
        room: u32,
    },
    /// An array with `count` items, of which so many count for each `contains`.
    /// With `unique` items, the values it has.
    Array {
        /// The node.
        node: NodeId,
        /// How far it is.
        phase: Phase,
        /// How many there are then.
        count: u64,
        /// How many count for each `contains`.
        contains: Tally,
        /// The keys or values so far.
        seen: SeenId,
    },
    /// An item of an array with unique items is complete; it started at this offset.
    UniqueItem {
        /// The node.
        node: NodeId,
        /// How many there are then.
        count: u64,
        /// How many count for each `contains`.
        contains: Tally,
        /// The keys or values so far.
        seen: SeenId,
        /// Where it started in the output.
        start: u32,
    },
    /// An object with the keys it has.
    Object {
        /// The node.
        node: NodeId,
        /// How far it is.
        phase: Phase,
        /// The keys or values so far.
        seen: SeenId,
    },
    /// A declared key is complete.
    Key {
        /// The node.
        node: NodeId,
        /// The keys or values so far.
        seen: SeenId,
    },
    /// An undeclared key of a class is complete; its text is the last string of the output.
    OtherKey {
        /// The node.
        node: NodeId,
        /// Index of the class.
        class: u32,
        /// The keys or values so far.
        seen: SeenId,
        /// Whether the key is one of a list: the literal that completed is the key.
        listed: bool,
    },
}

impl Step {
    /// The frame of what has a budget of so many tokens, at its start.
    pub fn within(tokens: u32) -> Self {
        Step::Within { room: tokens.saturating_add(1) }
    }
}

/// Up to four saturating counters.
pub type Tally = [u16; 4];

/// A [`Step`] inside containers nested `depth` deep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// What to do.
    pub step: Step,
    /// Number of containers around it.
    pub depth: u8,
}

/// The keys an object has so far, or the values of an array with unique items.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Seen {
    /// Declared properties, by index (only where their set matters, see `objects`).
    pub bits: Box<[u64]>,
    /// Where in the declared order the object is.
    pub cursor: u32,
    /// Number of keys.
    pub count: u64,
    /// Number of keys of each class of undeclared keys (only where a class has bounds).
    pub classes: Box<[u32]>,
    /// The undeclared keys, sorted.
    pub others: Box<[LiteralId]>,
    /// Whether an undeclared key is missing from `others`, or a value from `values`, since its
    /// text is not known.
    pub unknown: bool,
    /// The values of unique items, sorted.
    pub values: Box<[ValueId]>,
    /// Whether some two items are equal, where they must be.
    pub met: bool,
    /// What the whole container may be; values that are barred agree with all parts so far.
    pub allow: AllowId,
    /// Number of keys or items, where `allow` is not everything.
    pub parts: u64,
}

impl Seen {
    /// Adds an undeclared key; `None` if its text is not known.
    pub fn add_other(&mut self, text: Option<LiteralId>) {
        let Some(text) = text else {
            self.unknown = true;
            return;
        };
        let mut others = std::mem::take(&mut self.others).into_vec();
        if let Err(at) = others.binary_search(&text) {
            others.insert(at, text);
        }
        self.others = others.into_boxed_slice();
    }
}

impl Seen {
    /// With one value of an item more, if it is known.
    pub fn with_value(&self, value: Option<ValueId>) -> Self {
        let mut next = self.clone();
        let mut values = std::mem::take(&mut next.values).into_vec();
        if let Some(value) = value
            && let Err(at) = values.binary_search(&value)
        {
            values.insert(at, value);
        }
        next.values = values.into_boxed_slice();
        next
    }

    /// With another set of values that the container may be.
    pub fn allowing(self, allow: AllowId) -> Self {
        let parts = if allow == AllowId::ANY { 0 } else { self.parts };
        Self { allow, parts, ..self }
    }
}

/// A node of the DAG: a frame and what is below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    frame: Frame,
    below: StackId,
}

/// The stacks of one sequence.
#[derive(Debug, Clone, Default)]
pub struct Stacks {
    nodes: Vec<Node>,
    node_ids: HashMap<Node, u32>,
    sets: Vec<Box<[u32]>>,
    set_ids: HashMap<Box<[u32]>, u32>,
    unions: HashMap<(StackId, StackId), StackId>,
    /// Steps that unions may still take, see [`Stacks::refuel`].
    fuel: usize,
    seens: Vec<Seen>,
    seen_ids: HashMap<Seen, SeenId>,
    /// Bytes of sets, about.
    more: usize,
}

impl Stacks {
    /// Nothing on it.
    pub fn new() -> Self {
        let mut stacks = Self::default();
        stacks.seen(Seen::default());
        stacks
    }

    /// `frame` on top of `below`.
    pub fn push(&mut self, frame: Frame, below: StackId) -> StackId {
        let node = Node { frame, below };
        let nodes = &mut self.nodes;
        let id = *self.node_ids.entry(node).or_insert_with(|| {
            nodes.push(node);
            nodes.len() as u32
        });
        StackId(id)
    }

    /// The top frames, each with what is below it.
    pub fn tops(&self, stack: StackId) -> impl Iterator<Item = (Frame, StackId)> + use<'_> {
        (0..self.len(stack)).filter_map(move |i| self.top(stack, i))
    }

    /// Number of its nodes, the bottom included.
    pub fn len(&self, stack: StackId) -> usize {
        if stack.0 & SET == 0 { 1 } else { self.sets[(stack.0 & !SET) as usize].len() }
    }

    /// The i-th of its nodes: the frame, and what is below it; `None` for the bottom.
    pub fn top(&self, stack: StackId, i: usize) -> Option<(Frame, StackId)> {
        let id = match stack.0 & SET {
            0 => stack.0,
            _ => *self.sets[(stack.0 & !SET) as usize].get(i)?,
        };
        let node = self.nodes[id.checked_sub(1)? as usize];
        Some((node.frame, node.below))
    }

    /// Whether one of the stacks is empty.
    pub fn has_bottom(&self, stack: StackId) -> bool {
        stack == StackId::BOTTOM || self.ids(stack).contains(&0)
    }

    fn ids(&self, stack: StackId) -> Vec<u32> {
        match stack.0 & SET {
            0 => vec![stack.0],
            _ => self.sets[(stack.0 & !SET) as usize].to_vec(),
        }
    }

    /// Sets how many steps unions and others may take from now on. When they are used up, unions
    /// are wrong, and [`Stacks::has_fuel`] says so.
    pub fn refuel(&mut self, steps: usize) {
        self.fuel = steps;
    }

    /// Takes one step; `false` if there is none left.
    pub fn spend(&mut self) -> bool {
        self.fuel = self.fuel.saturating_sub(1);
        self.has_fuel()
    }

    /// Spends what it takes to read these stacks.
    fn spend_on(&mut self, stacks: &[StackId]) -> bool {
        let tops: usize = stacks.iter().map(|&stack| self.len(stack)).sum();
        self.fuel = self.fuel.saturating_sub(1 + tops / TOPS);
        self.has_fuel()
    }

    #[cfg(test)]
    pub(super) fn fuel(&self) -> usize {
        self.fuel
    }

    /// Nodes and sets so far.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.nodes.len() + self.sets.len()
    }

    /// Whether all unions since [`Stacks::refuel`] are right.
    pub fn has_fuel(&self) -> bool {
        self.fuel > 0
    }

    /// All of `stacks` as one. `stacks` is not empty.
    ///
    /// Many at once are sorted together: one after the other, each would be merged with all before it.
    pub fn unite(&mut self, stacks: &[StackId]) -> StackId {
        match *stacks {
            [] => StackId::BOTTOM,
            [one] => one,
            [a, b] => self.union(a, b),
            _ => {
                let mut ids: Vec<u32> = stacks.iter().flat_map(|&stack| self.ids(stack)).collect();
                ids.sort_unstable();
                ids.dedup();
                ids.sort_by_key(|&id| self.frame(id));
                let (mut nodes, mut left) = (Vec::with_capacity(ids.len()), &ids[..]);
                while let [first, rest @ ..] = left {
                    let same = |id: &&u32| self.frame(**id) == self.frame(*first);
                    let (equal, others) = rest.split_at(rest.iter().take_while(same).count());
                    // Nodes with equal frames become one.
                    let equal = std::iter::once(first).chain(equal);
                    nodes.push(self.union_of(equal.map(|&id| StackId(id)).collect()).0);
                    left = others;
                }
                self.set(nodes)
            }
        }
    }

    /// All of `stacks` (at least one) as one, in pairs, and pairs of pairs: each is merged with few others.
    fn union_of(&mut self, mut stacks: Vec<StackId>) -> StackId {
        while stacks.len() > 1 {
            stacks = stacks
                .chunks(2)
                .map(|pair| match *pair {
                    [a, b] => self.union(a, b),
                    _ => pair[0],
                })
                .collect();
        }
        stacks.first().copied().unwrap_or(StackId::BOTTOM)
    }

    /// Both stacks as one: where frames are equal, what is below them is united first.
    fn union(&mut self, a: StackId, b: StackId) -> StackId {
        let mut work = vec![(a, b)];
        while let Some(&(a, b)) = work.last() {
            if self.united(a, b).is_none() {
                if !self.spend_on(&[a, b]) {
                    return a;
                }
                let open = work.len();
                for (x, y) in self.common(a, b) {
                    if self.united(x, y).is_none() {
                        work.push((x, y));
                    }
                }
                if work.len() > open {
                    continue;
                }
                let union = self.join(a, b);
                self.unions.insert(ordered(a, b), union);
            }
            work.pop();
        }
        self.united(a, b).unwrap_or(a)
    }

    /// The union of two stacks, if it is known.
    fn united(&self, a: StackId, b: StackId) -> Option<StackId> {
        if a == b { Some(a) } else { self.unions.get(&ordered(a, b)).copied() }
    }

    /// What is below the frames that two stacks have in common.
    fn common(&self, a: StackId, b: StackId) -> Vec<(StackId, StackId)> {
        let (a, b) = (self.ids(a), self.ids(b));
        let (mut i, mut j) = (0, 0);
        let mut out = Vec::new();
        while let (Some(&x), Some(&y)) = (a.get(i), b.get(j)) {
            let order = self.frame(x).cmp(&self.frame(y));
            if order.is_eq() && x != y {
                out.push((self.below(x), self.below(y)));
            }
            i += usize::from(order.is_le());
            j += usize::from(order.is_ge());
        }
        out
    }

    /// Both stacks as one, where what is below their common frames is united already.
    fn join(&mut self, a: StackId, b: StackId) -> StackId {
        let (a, b) = (self.ids(a), self.ids(b));
        let (mut i, mut j) = (0, 0);
        let mut out = Vec::with_capacity(a.len() + b.len());
        loop {
            let (x, y) = (a.get(i).copied(), b.get(j).copied());
            let (id, order) = match (x, y) {
                (Some(x), Some(y)) => {
                    let order = self.frame(x).cmp(&self.frame(y));
                    let id = if order.is_le() { x } else { y };
                    (if order.is_eq() && x != y { self.meet(x, y) } else { id }, order)
                }
                (Some(x), None) => (x, Ordering::Less),
                (None, Some(y)) => (y, Ordering::Greater),
                (None, None) => return self.set(out),
            };
            out.push(id);
            i += usize::from(order.is_le());
            j += usize::from(order.is_ge());
        }
    }

    /// The node of two with the same frame.
    fn meet(&mut self, x: u32, y: u32) -> u32 {
        let below = self.united(self.below(x), self.below(y)).unwrap_or(self.below(x));
        match self.frame(x) {
            Some(frame) => self.push(frame, below).0,
            None => x,
        }
    }

    /// The frame of a node; the bottom has none.
    fn frame(&self, id: u32) -> Option<Frame> {
        id.checked_sub(1).map(|index| self.nodes[index as usize].frame)
    }

    /// What is below a node.
    fn below(&self, id: u32) -> StackId {
        id.checked_sub(1).map_or(StackId::BOTTOM, |index| self.nodes[index as usize].below)
    }

    /// A stack without the node of `frame`, and what is below that; `None` if it has no such node.
    pub fn split(&mut self, stack: StackId, frame: Frame) -> Option<(Option<StackId>, StackId)> {
        if self.tops(stack).all(|(top, _)| top != frame) {
            return None;
        }
        let mut ids = self.ids(stack);
        let at = ids.iter().position(|&id| self.frame(id) == Some(frame))?;
        let below = self.below(ids.remove(at));
        let rest = if ids.is_empty() { None } else { Some(self.set(ids)) };
        Some((rest, below))
    }

    /// The stack of nodes, sorted by their frames, which are distinct.
    fn set(&mut self, ids: Vec<u32>) -> StackId {
        if let [one] = ids[..] {
            return StackId(one);
        }
        let ids = ids.into_boxed_slice();
        if let Some(&id) = self.set_ids.get(&ids) {
            return StackId(id | SET);
        }
        let id = self.sets.len() as u32;
        self.more += 2 * (size_of_val(&*ids) + 24);
        self.sets.push(ids.clone());
        self.set_ids.insert(ids, id);
        StackId(id | SET)
    }

    /// The id of a set of keys.
    pub fn seen(&mut self, seen: Seen) -> SeenId {
        if let Some(&id) = self.seen_ids.get(&seen) {
            return id;
        }
        let id = SeenId(self.seens.len() as u32);
        let lists =
            size_of_val(&*seen.bits) + size_of_val(&*seen.classes) + size_of_val(&*seen.values);
        self.more += 2 * (size_of::<Seen>() + lists + size_of_val(&*seen.others));
        self.seens.push(seen.clone());
        self.seen_ids.insert(seen, id);
        id
    }

    /// The same stacks as `wanted` of `other`, here; `values` finds the values of theirs here.
    pub fn import(
        &mut self,
        other: &Stacks,
        wanted: &[StackId],
        values: &mut Import<'_>,
    ) -> Vec<StackId> {
        let mut ours: HashMap<StackId, StackId> = HashMap::new();
        ours.insert(StackId::BOTTOM, StackId::BOTTOM);
        let mut todo = wanted.to_vec();
        while let Some(&stack) = todo.last() {
            let before = todo.len();
            if !ours.contains_key(&stack) {
                let below = other.ids(stack).into_iter().map(|id| match stack.0 & SET {
                    0 => other.nodes[id as usize - 1].below,
                    _ => StackId(id),
                });
                todo.extend(below.filter(|below| !ours.contains_key(below)));
            }
            if todo.len() > before {
                continue;
            }
            todo.pop();
            if ours.contains_key(&stack) {
                continue;
            }
            let copy = match stack.0 & SET {
                0 => {
                    let Node { frame, below } = other.nodes[stack.0 as usize - 1];
                    let frame = self.import_frame(other, frame, values);
                    self.push(frame, ours[&below])
                }
                _ => {
                    let ids = other.ids(stack).into_iter();
                    let mut ids: Vec<u32> = ids.map(|id| ours[&StackId(id)].0).collect();
                    // Sets of keys, which frames hold, have other numbers here.
                    ids.sort_unstable_by_key(|&id| self.frame(id));
                    self.set(ids)
                }
            };
            ours.insert(stack, copy);
        }
        wanted.iter().map(|stack| ours[stack]).collect()
    }

    /// A frame of `other` with its set of keys here.
    fn import_frame(&mut self, other: &Stacks, mut frame: Frame, values: &mut Import<'_>) -> Frame {
        match &mut frame.step {
            Step::Array { seen, .. }
            | Step::UniqueItem { seen, .. }
            | Step::Object { seen, .. }
            | Step::Key { seen, .. }
            | Step::OtherKey { seen, .. } => {
                let mut keys = other.keys(*seen).clone();
                keys.allow = values.allow(keys.allow);
                keys.values = values.values(&keys.values).into();
                *seen = self.seen(keys);
            }
            Step::EnterAs { allow, .. } => *allow = values.allow(*allow),
            Step::Seq { .. }
            | Step::Repeat { .. }
            | Step::Separated { .. }
            | Step::Enter(_)
            | Step::Within { .. }
            | Step::Doubt => {}
        }
        frame
    }

    /// Bytes of memory, about.
    pub fn bytes(&self) -> usize {
        let unions = self.unions.capacity() * size_of::<[StackId; 3]>();
        (self.nodes.len() + self.node_ids.capacity()) * size_of::<Node>() + unions + self.more
    }

    /// The set of keys behind an id.
    pub fn keys(&self, id: SeenId) -> &Seen {
        &self.seens[id.0 as usize]
    }
}

/// A pair in one order.
fn ordered(a: StackId, b: StackId) -> (StackId, StackId) {
    if a <= b { (a, b) } else { (b, a) }
}

impl SeenId {
    /// No keys.
    pub const NONE: SeenId = SeenId(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(next: u32) -> Frame {
        Frame { step: Step::Seq { node: NodeId(1), next }, depth: 0 }
    }

    #[test]
    fn equal_stacks_have_equal_ids() {
        let mut stacks = Stacks::new();
        stacks.refuel(usize::MAX);
        let a = stacks.push(frame(1), StackId::BOTTOM);
        let b = stacks.push(frame(1), StackId::BOTTOM);
        assert_eq!(a, b);
        let left = stacks.push(frame(2), a);
        let right = stacks.push(frame(3), a);
        let one = stacks.unite(&[left, right]);
        let two = stacks.unite(&[right, left]);
        assert_eq!(one, two);
        assert_eq!(stacks.unite(&[one, left]), one);
    }

    #[test]
    fn equal_frames_merge_what_is_below() {
        let mut stacks = Stacks::new();
        stacks.refuel(usize::MAX);
        let a = stacks.push(frame(1), StackId::BOTTOM);
        let b = stacks.push(frame(2), StackId::BOTTOM);
        let (over_a, over_b) = (stacks.push(frame(3), a), stacks.push(frame(3), b));
        let both = stacks.unite(&[over_a, over_b]);
        let tops: Vec<_> = stacks.tops(both).collect();
        assert_eq!(tops.len(), 1);
        assert_eq!(stacks.tops(tops[0].1).count(), 2);
        assert!(stacks.has_bottom(StackId::BOTTOM) && !stacks.has_bottom(both));
    }

    /// The lists of frames that a stack stands for.
    fn lists(stacks: &Stacks, stack: StackId) -> Vec<Vec<Frame>> {
        let mut out = Vec::new();
        let mut work = vec![(stack, Vec::new())];
        while let Some((stack, list)) = work.pop() {
            if stacks.has_bottom(stack) {
                out.push(list.clone());
            }
            for (frame, below) in stacks.tops(stack) {
                work.push((below, [&list[..], &[frame]].concat()));
            }
        }
        out.sort();
        out
    }

    #[test]
    fn stacks_of_the_same_lists_are_the_same() {
        let mut stacks = Stacks::new();
        stacks.refuel(usize::MAX);
        let mut seed = 7u32;
        let mut below = |n: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % n
        };
        let mut known = vec![(StackId::BOTTOM, lists(&stacks, StackId::BOTTOM))];
        for _ in 0..400 {
            let some: Vec<_> =
                (0..2 + below(4)).map(|_| &known[below(known.len() as u32) as usize]).collect();
            let (made, expected) = if below(2) == 0 {
                let (frame, (stack, below)) = (frame(below(3)), some[0]);
                let push = |list: &Vec<Frame>| [&[frame][..], list].concat();
                (stacks.push(frame, *stack), below.iter().map(push).collect())
            } else {
                let ids: Vec<StackId> = some.iter().map(|(id, _)| *id).collect();
                (stacks.unite(&ids), some.iter().flat_map(|(_, lists)| lists.clone()).collect())
            };
            let mut expected: Vec<Vec<Frame>> = expected;
            expected.sort();
            expected.dedup();
            assert_eq!(lists(&stacks, made), expected);
            let same = known.iter().find(|(_, lists)| *lists == expected);
            assert!(same.is_none_or(|(id, _)| *id == made), "two ids for {expected:?}");
            if expected.len() < 200 {
                known.push((made, expected));
            }
        }
    }
}
