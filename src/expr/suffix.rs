//! The suffix automaton of a text: the least automaton that reads exactly the pieces of it.
//!
//! A state stands for all pieces that end at the same places of the text, so that the same may
//! follow them. Every state is alive and every state accepts: the beginning of a piece is a piece.
//!
//! Worked example, `abcbc`: state 0 is before anything. `a`, `ab`, `abc` occur once and lead along
//! a chain. `bc` ends at 3 and 5, `c` as well: one state. After `b` only `c` may follow, after
//! `c` only `b`; after `abc` also only `b`, and yet that is another state, since `abcb` goes on
//! with `c` alone and the second `bc` with nothing.
//!
//! The text is read once, from left to right (Blumer and others, 1985). Each code point adds
//! one state, and perhaps the *clone* of one that stood for pieces that now end at different places.
//!
//! Invariants: no edge leads to state 0; at most two states and three edges per code point.
//! Cost: about 0.15 µs and 35 bytes per code point, three times as many while it is built.

/// A state of an [`Automaton`]; 0 is the start.
pub type State = u32;

/// The suffix automaton of a text.
///
/// States are numbered by their distance from the start, and edges lie in the order of their states:
/// what is near the start, where many pieces begin, is together in memory.
#[derive(Debug)]
pub struct Automaton {
    nodes: Box<[Node]>,
    /// Code point and target, by state, ascending.
    edges: Box<[(u32, State)]>,
}

/// What is known of a state.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// One past its last edge; they start where those of the state before end.
    edges: u32,
    /// How many code points may follow at most.
    longest: u32,
}

impl Automaton {
    /// Before the first code point.
    pub const START: State = 0;

    /// The automaton of the pieces of `text`.
    pub fn new(text: &str) -> Self {
        let mut builder = Builder {
            nodes: Vec::with_capacity(2 * text.len()),
            edges: Vec::with_capacity(text.len()),
            length: 0,
        };
        builder.push(Open { link: 0, length: 0, end: 0, edge: NONE });
        let mut last = Self::START;
        for c in text.chars() {
            last = builder.extend(last, u32::from(c));
        }
        builder.finish()
    }

    /// The code points with which pieces go on, ascending, and where they lead.
    #[inline]
    pub fn edges(&self, state: State) -> &[(u32, State)] {
        let end = |state: usize| self.nodes.get(state).map_or(0, |node| node.edges as usize);
        let first = (state as usize).checked_sub(1).map_or(0, end);
        self.edges.get(first..end(state as usize)).unwrap_or_default()
    }

    /// The state after a code point, if the piece goes on with it somewhere.
    #[inline]
    pub fn step(&self, state: State, point: u32) -> Option<State> {
        let edges = self.edges(state);
        let at = edges.partition_point(|&(own, _)| own < point);
        edges.get(at).filter(|&&(own, _)| own == point).map(|&(_, target)| target)
    }

    /// How many code points may follow at most.
    #[inline]
    pub fn longest(&self, state: State) -> u32 {
        self.nodes.get(state as usize).map_or(0, |node| node.longest)
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.edges)
    }
}

/// A state that may get more edges. Most have one, which is kept here.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// The state of the longest pieces that end at more places.
    link: State,
    /// Code points of the longest piece.
    length: u32,
    /// Where the first occurrence ends.
    end: u32,
    edge: Edge,
}

/// An edge, in the list of those of its state.
#[derive(Debug, Clone, Copy)]
struct Edge {
    point: u32,
    /// 0: there is none.
    target: State,
    /// Index of the next edge plus one, 0 for none.
    next: u32,
}

/// No edge.
const NONE: Edge = Edge { point: 0, target: 0, next: 0 };

/// An automaton of as much of the text as was read.
struct Builder {
    nodes: Vec<Open>,
    edges: Vec<Edge>,
    /// Code points read.
    length: u32,
}

impl Builder {
    /// Reads one more code point of the text; `last` is the state of all that was read.
    fn extend(&mut self, last: State, point: u32) -> State {
        self.length += 1;
        let new = self.push(Open { link: 0, length: self.length, end: self.length, edge: NONE });
        let mut at = last;
        let shared = loop {
            if let Some(target) = self.edges(at).find(|edge| edge.point == point) {
                break target.target;
            }
            self.add_edge(at, point, new);
            if at == Automaton::START {
                return new;
            }
            at = self.nodes[at as usize].link;
        };
        let longest = self.nodes[at as usize].length + 1;
        if self.nodes[shared as usize].length == longest {
            self.nodes[new as usize].link = shared;
            return new;
        }
        // The shorter pieces of `shared` now also end here: they get a state of their own.
        let clone = self.clone_of(shared, longest);
        self.nodes[shared as usize].link = clone;
        self.nodes[new as usize].link = clone;
        while self.redirect(at, point, shared, clone) && at != Automaton::START {
            at = self.nodes[at as usize].link;
        }
        new
    }

    fn push(&mut self, node: Open) -> State {
        self.nodes.push(node);
        // Texts are bounded far below `u32::MAX` bytes (`Document`).
        (self.nodes.len() - 1) as State
    }

    fn clone_of(&mut self, state: State, length: u32) -> State {
        let node = self.nodes[state as usize];
        let clone = self.push(Open { length, edge: Edge { next: 0, ..node.edge }, ..node });
        let mut next = node.edge.next;
        while next != 0 {
            let edge = self.edges[next as usize - 1];
            self.add_edge(clone, edge.point, edge.target);
            next = edge.next;
        }
        clone
    }

    fn add_edge(&mut self, state: State, point: u32, target: State) {
        let own = &mut self.nodes[state as usize].edge;
        if own.target == 0 {
            *own = Edge { point, target, next: 0 };
            return;
        }
        let next = std::mem::replace(&mut own.next, self.edges.len() as u32 + 1);
        self.edges.push(Edge { point, target, next });
    }

    /// Leads the edge by `point` to `to` if it leads to `from`.
    fn redirect(&mut self, state: State, point: u32, from: State, to: State) -> bool {
        let mut edge = &mut self.nodes[state as usize].edge;
        while edge.point != point || edge.target == 0 {
            match edge.next {
                0 => return false,
                next => edge = &mut self.edges[next as usize - 1],
            }
        }
        let found = edge.target == from;
        if found {
            edge.target = to;
        }
        found
    }

    /// The edges of a state, in no order.
    fn edges(&self, state: State) -> impl Iterator<Item = Edge> + '_ {
        let first = self.nodes[state as usize].edge;
        let mut next = (first.target != 0).then_some(first);
        std::iter::from_fn(move || {
            let edge = next?;
            next = (edge.next as usize).checked_sub(1).map(|at| self.edges[at]);
            Some(edge)
        })
    }

    /// The whole, in a breadth-first order.
    fn finish(self) -> Automaton {
        // New numbers by old ones; 0 until there is one (the start keeps its own).
        let mut numbers: Vec<State> = vec![0; self.nodes.len()];
        let mut order: Vec<State> = Vec::with_capacity(self.nodes.len());
        order.push(Automaton::START);
        let mut nodes = Vec::with_capacity(self.nodes.len());
        let mut edges = Vec::with_capacity(self.nodes.len() + self.edges.len());
        let mut own: Vec<(u32, State)> = Vec::new();
        while let Some(&state) = order.get(nodes.len()) {
            own.clear();
            own.extend(self.edges(state).map(|edge| (edge.point, edge.target)));
            own.sort_unstable();
            for &(point, target) in &own {
                let number = &mut numbers[target as usize];
                if *number == 0 {
                    *number = order.len() as State;
                    order.push(target);
                }
                edges.push((point, *number));
            }
            let longest = self.length - self.nodes[state as usize].end;
            nodes.push(Node { edges: edges.len() as u32, longest });
        }
        Automaton { nodes: nodes.into(), edges: edges.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn pieces(text: &[char]) -> BTreeSet<Vec<char>> {
        let ends = |from: usize| (from + 1..=text.len()).map(move |to| (from, to));
        (0..text.len()).flat_map(ends).map(|(from, to)| text[from..to].to_vec()).collect()
    }

    /// All that the automaton reads, with what it says of the state that was reached.
    fn read(automaton: &Automaton) -> Vec<(Vec<char>, State)> {
        let (mut found, mut todo) = (Vec::new(), vec![(Vec::new(), Automaton::START)]);
        while let Some((text, state)) = todo.pop() {
            for &(point, target) in automaton.edges(state) {
                assert_eq!(automaton.step(state, point), Some(target));
                let mut longer = text.clone();
                longer.extend(char::from_u32(point));
                found.push((longer.clone(), target));
                todo.push((longer, target));
            }
        }
        found
    }

    #[test]
    fn reads_the_pieces_and_nothing_else() {
        let mut seed = 7u64;
        for round in 0..300 {
            let letters = ['a', 'b', 'é', '😀'];
            let text: Vec<char> = (0..round % 23)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    letters[(seed >> 33) as usize % (2 + round % 3)]
                })
                .collect();
            let automaton = Automaton::new(&text.iter().collect::<String>());
            let found = read(&automaton);
            let texts: BTreeSet<Vec<char>> = found.iter().map(|found| found.0.clone()).collect();
            assert_eq!(texts, pieces(&text), "{text:?}");
            assert_eq!(found.len(), texts.len(), "one path each");
            assert!(automaton.nodes.len() <= 2 * text.len() + 1);
            for (piece, state) in found {
                let first = text.windows(piece.len()).position(|window| window == piece);
                let end = first.map_or(0, |first| first + piece.len());
                assert_eq!(automaton.longest(state) as usize, text.len() - end, "{piece:?}");
            }
        }
    }

    #[test]
    fn pieces_that_end_at_the_same_places_share_a_state() {
        let automaton = Automaton::new("abcbc");
        let state = |text: &str| {
            let step = |state, c| automaton.step(state, u32::from(c));
            text.chars().try_fold(Automaton::START, step)
        };
        assert_eq!(state("bc"), state("c"));
        assert_ne!(state("abc"), state("bc"));
        assert_eq!(state("ba"), None);
        assert_eq!(automaton.edges(state("cbc").unwrap()), []);
    }
}
