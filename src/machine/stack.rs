//! What comes after the current terminal: frames on hash-consed stacks.
//!
//! A stack is a set of nodes; a node is a frame and the stack below it. So stacks form a DAG in
//! which equal stacks have equal ids, and an ambiguous prefix keeps one id for many stacks.
//!
//! Worked example: inside the string of `{"a":["x`, the stack is
//! `Array(After, 1 item) -> Object(After, seen {a}) -> bottom`. Every later item of the same
//! (unbounded) array has that same id again: nothing grows with the output.
//!
//! The arena belongs to one sequence: what a sequence learns about its own output dies with it,
//! and no lock is needed. Invariants: nodes of one set have distinct frames (nodes with equal
//! frames are merged by uniting what is below them); ids below the bottom are never reused.

use hashbrown::HashMap;

use super::values::{AllowId, Import, ValueId};
use crate::expr::LiteralId;
use crate::grammar::NodeId;

/// A stack: a set of nodes of its [`Stacks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(u32);

/// Marks ids of sets with more than one node.
const SET: u32 = 1 << 31;

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
    },
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
        let one = [stack.0];
        let many = (stack.0 & SET != 0).then(|| &self.sets[(stack.0 & !SET) as usize][..]);
        let len = many.map_or(1, <[u32]>::len);
        (0..len).filter_map(move |i| {
            let id = many.map_or(one[0], |many| many[i]);
            id.checked_sub(1).map(|index| {
                let node = self.nodes[index as usize];
                (node.frame, node.below)
            })
        })
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

    /// All of `stacks` as one. Where top frames are equal, what is below them is united (one
    /// level: deeper levels follow when they come to the top). `stacks` is not empty.
    pub fn unite(&mut self, stacks: &[StackId]) -> StackId {
        if stacks.iter().all(|&stack| stack == stacks[0]) {
            return stacks[0];
        }
        let mut ids: Vec<u32> = stacks.iter().flat_map(|&stack| self.ids(stack)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.sort_by_key(|&id| id.checked_sub(1).map(|index| self.nodes[index as usize].frame));
        let frame = |stacks: &Self, id: u32| {
            id.checked_sub(1).map(|index| stacks.nodes[index as usize].frame)
        };
        let mut merged = Vec::with_capacity(ids.len());
        let mut rest = &ids[..];
        while let Some(&first) = rest.first() {
            let top = frame(self, first);
            let same = rest.iter().take_while(|&&id| frame(self, id) == top).count();
            match (top, same) {
                (Some(top), 2..) => {
                    let below = rest[..same]
                        .iter()
                        .flat_map(|&id| self.ids(self.nodes[id as usize - 1].below))
                        .collect();
                    let below = self.set(below);
                    merged.push(self.push(top, below).0);
                }
                _ => merged.push(first),
            }
            rest = &rest[same..];
        }
        self.set(merged)
    }

    fn set(&mut self, mut ids: Vec<u32>) -> StackId {
        ids.sort_unstable();
        ids.dedup();
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
                    self.set(ids.map(|id| ours[&StackId(id)].0).collect())
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
            | Step::Doubt => {}
        }
        frame
    }

    /// Bytes of memory, about.
    pub fn bytes(&self) -> usize {
        (self.nodes.len() + self.node_ids.capacity()) * size_of::<Node>() + self.more
    }

    /// The set of keys behind an id.
    pub fn keys(&self, id: SeenId) -> &Seen {
        &self.seens[id.0 as usize]
    }
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
        let a = stacks.push(frame(1), StackId::BOTTOM);
        let b = stacks.push(frame(2), StackId::BOTTOM);
        let (over_a, over_b) = (stacks.push(frame(3), a), stacks.push(frame(3), b));
        let both = stacks.unite(&[over_a, over_b]);
        let tops: Vec<_> = stacks.tops(both).collect();
        assert_eq!(tops.len(), 1);
        assert_eq!(stacks.tops(tops[0].1).count(), 2);
        assert!(stacks.has_bottom(StackId::BOTTOM) && !stacks.has_bottom(both));
    }
}
