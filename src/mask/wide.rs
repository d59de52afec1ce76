//! Making the token table of a wide state, class by class of bytes instead of byte by byte.
//!
//! The state walks the [`ClassTrie`]. Where all bytes of a class lead to one state, one move
//! serves all members of a node. Where nearly all of them do, the move is made for all, and the members
//! by the other bytes are *corrected* afterwards: both states walk on in step, the one that was
//! assumed and the true one, until they meet (states are interned, so meeting is having equal
//! ids). Where bytes differ altogether, the members go their own way in the trie ([`Walk`]).
//!
//! Worked example: strings that contain `foo`. Before any `f` all letters but `f` lead from the
//! state to itself. So all words are taken by the class *letter*, and each place in a token
//! right after an `f` is corrected: by `o` the two states differ, by everything else they meet at
//! once.
//!
//! Where the state is complete at very many places (an identifier is at each letter), they are not listed
//! ([`super::reach`]).
//!
//! Invariants: corrections of inner places come before those of outer ones (they are made in
//! reverse order), since an outer one starts from what the inner ones have made right. A token
//! has one path, so nothing is set twice by different truths.
//!
//! Cost: some nanoseconds per node of the class trie that the state keeps alive, and per place
//! that is corrected; 10 to 300 µs for 128,256 tokens, where walking the trie takes 500 to 2,000.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::classes::{CLASSES, ClassTrie};
use super::set::TokenSet;
use super::tables::{BoundaryId, Tables, TokenTable};
use super::walk::{MANY, One, Walk};
use crate::expr::LiteralId;
use crate::machine::{StateId, States};
use crate::vocab::{TokenId, Trie};

/// From how many live bytes on a state is wide.
pub const WIDE: usize = 10;

/// From how many nodes below it on a node has very many tokens behind it.
const HEAVY: u32 = 4_096;

/// Where the bytes of a class lead.
#[derive(Debug, Clone, Copy)]
enum Move {
    /// All to this state, dead or alive.
    All(StateId),
    /// Nearly all to this live state.
    Most(StateId),
    /// To different states.
    Mixed,
}

/// A place where a state was assumed and another is true.
struct Correction {
    node: u32,
    assumed: StateId,
    truth: StateId,
}

/// A change to the exits.
enum Edit {
    Add(u32, Option<LiteralId>),
    Remove(u32),
    /// Of all nodes in a range.
    Cut(u32, u32),
}

/// What was found: tokens, and exits if they are not too many.
struct Found {
    words: Box<[u32]>,
    exits: Vec<(Option<LiteralId>, u32)>,
    many: bool,
    at_exits: One,
}

impl Found {
    fn table(self, level: &Tables, boundary: BoundaryId, state: StateId) -> TokenTable {
        let exits = match self.many {
            true => [(None, level.reached(boundary, state))].into(),
            false => level.exits(self.exits),
        };
        let inside = TokenSet::from_words(self.words);
        TokenTable { inside, shared: None, exits, at_exits: self.at_exits.get() }
    }
}

/// The making of one table over the root.
pub struct WideWalk<'a> {
    states: &'a States,
    trie: &'a Trie,
    classes: &'a ClassTrie,
    words: Box<[u32]>,
    exits: Vec<(Option<LiteralId>, u32)>,
    /// Whether exits are too many to be listed.
    many: bool,
    at_exits: One,
    edits: Vec<Edit>,
    todo: Vec<(u32, StateId)>,
    corrections: Vec<Correction>,
    /// Rows of moves, by state.
    rows: HashMap<StateId, u32>,
    moves: Vec<[Option<Move>; CLASSES]>,
    narrow: Walk<'a>,
}

impl<'a> WideWalk<'a> {
    /// Nothing walked yet; `tables` and `states` are the levels of the constraint.
    pub fn new(tables: &'a Tables, classes: &'a ClassTrie, states: &'a States) -> Self {
        Self {
            states,
            trie: tables.vocabulary().trie(),
            classes,
            words: vec![0; tables.vocabulary().len().div_ceil(32)].into_boxed_slice(),
            exits: Vec::new(),
            many: false,
            at_exits: One::default(),
            edits: Vec::new(),
            todo: Vec::new(),
            corrections: Vec::new(),
            rows: HashMap::new(),
            moves: Vec::new(),
            narrow: Walk::new(tables, states),
        }
    }

    /// The table of `state`; new boundaries are interned at `level`.
    pub fn run(self, level: &Tables, state: StateId) -> TokenTable {
        self.find(ClassTrie::ROOT, state).table(level, BoundaryId::ROOT, state)
    }

    /// What `state` does with the tokens behind a node of the class trie.
    fn find(mut self, node: u32, state: StateId) -> Found {
        self.todo.push((node, state));
        while let Some((node, state)) = self.todo.pop() {
            self.visit(node, state);
        }
        for &id in &self.narrow.inside {
            set(&mut self.words, id, true);
        }
        self.exits.append(&mut self.narrow.exits);
        self.many |= self.narrow.many;
        self.at_exits.unite(self.narrow.at_exits);
        for correction in std::mem::take(&mut self.corrections).into_iter().rev() {
            self.correct(&correction);
        }
        if !self.many {
            self.edit();
        }
        let Self { words, exits, many, at_exits, .. } = self;
        Found { words, exits, many, at_exits }
    }

    fn visit(&mut self, node: u32, state: StateId) {
        let row = *self.rows.entry(state).or_insert_with(|| {
            self.moves.push([None; CLASSES]);
            self.moves.len() as u32 - 1
        });
        for &(class, child) in self.classes.children(node) {
            let known = self.moves[row as usize][usize::from(class)];
            let next = known.unwrap_or_else(|| {
                let next = self.class_move(state, class);
                self.moves[row as usize][usize::from(class)] = Some(next);
                next
            });
            match next {
                Move::All(next) => self.arrive(child, next),
                Move::Most(next) => {
                    self.arrive(child, next);
                    for run in self.classes.members(child).chunk_by(|a, b| a.0 == b.0) {
                        let truth = self.states.step(state, run[0].0);
                        if truth != next {
                            let correction =
                                |&(_, node): &(u8, u32)| Correction { node, assumed: next, truth };
                            self.corrections.extend(run.iter().map(correction));
                        }
                    }
                }
                Move::Mixed => {
                    let live = self.states.bytes(state);
                    for run in self.classes.members(child).chunk_by(|a, b| a.0 == b.0) {
                        if live.contains(run[0].0) {
                            let next = self.states.step(state, run[0].0);
                            run.iter().for_each(|&(_, node)| self.narrow.add(node, next));
                        }
                    }
                }
            }
        }
    }

    fn arrive(&mut self, node: u32, state: StateId) {
        if !state.is_live() {
            return;
        }
        let info = self.states.get(state);
        if !info.accepts() && self.states.loops(state).contains_all(self.classes.bytes_below(node))
        {
            self.classes.add_subtree(node, &mut self.words);
            return;
        }
        self.classes.add_tokens(node, &mut self.words);
        if info.accepts() {
            self.at_exits.see(state, info);
        }
        if info.accepts() && !self.many {
            for &(_, member) in self.classes.members(node) {
                if self.goes_on(member) {
                    self.exits.push((info.literal(), member));
                }
            }
            // Strings of JSON end at quotes only, and say which literal they were.
            self.many = self.exits.len() > MANY && info.is_text();
        }
        if info.continues() {
            self.todo.push((node, state));
        }
    }

    /// Whether a token goes on after a node of the trie.
    fn goes_on(&self, node: u32) -> bool {
        self.trie.subtree_end(node) > node + 1
    }

    fn class_move(&self, state: StateId, class: u8) -> Move {
        let live = self.states.bytes(state);
        let step = |&byte: &u8| {
            if live.contains(byte) { self.states.step(state, byte) } else { StateId::DEAD }
        };
        let bytes = self.classes.bytes_of(class);
        // Boyer and Moore: the one candidate for a majority.
        let (mut candidate, mut lead) = (StateId::DEAD, 0);
        for next in bytes.iter().map(step) {
            match lead {
                0 => (candidate, lead) = (next, 1),
                _ if next == candidate => lead += 1,
                _ => lead -= 1,
            }
        }
        let votes = bytes.iter().map(step).filter(|&next| next == candidate).count();
        match bytes.len() {
            all if votes == all => Move::All(candidate),
            all if votes * 5 >= all * 4 && candidate.is_live() => Move::Most(candidate),
            _ => Move::Mixed,
        }
    }

    /// Makes right what is at and below a node of the trie.
    fn correct(&mut self, correction: &Correction) {
        let mut todo = vec![(correction.node, correction.assumed, correction.truth)];
        while let Some((node, assumed, truth)) = todo.pop() {
            if self.settle_subtree(node, truth) {
                continue;
            }
            if assumed.is_live() != truth.is_live() {
                for &id in self.trie.tokens(node) {
                    set(&mut self.words, id, truth.is_live());
                }
            }
            self.edit_exit(node, assumed, truth);
            let (bytes, children) = self.trie.children(node);
            for (&byte, &child) in bytes.iter().zip(children) {
                let (assumed, truth) = (self.step(assumed, byte), self.step(truth, byte));
                if assumed != truth {
                    todo.push((child, assumed, truth));
                }
            }
        }
    }

    fn step(&self, state: StateId, byte: u8) -> StateId {
        if state.is_live() { self.states.step(state, byte) } else { state }
    }

    /// Whether everything at and below a node has one answer, which is then written.
    fn settle_subtree(&mut self, node: u32, truth: StateId) -> bool {
        let whole = !truth.is_live()
            || (!self.states.get(truth).accepts()
                && self.states.loops(truth).contains_all(self.trie.bytes_below(node)));
        if whole {
            for &id in self.trie.subtree_tokens(node) {
                set(&mut self.words, id, truth.is_live());
            }
            self.edits.push(Edit::Cut(node, self.trie.subtree_end(node)));
        }
        whole
    }

    fn edit_exit(&mut self, node: u32, assumed: StateId, truth: StateId) {
        if !self.goes_on(node) {
            return;
        }
        let accepts = |state: StateId| state.is_live() && self.states.get(state).accepts();
        if accepts(truth) {
            self.at_exits.see(truth, self.states.get(truth));
            self.edits.push(Edit::Add(node, self.states.get(truth).literal()));
        } else if accepts(assumed) {
            self.edits.push(Edit::Remove(node));
        }
    }

    /// Applies the edits in their order. A node has one exit, since it has one path.
    fn edit(&mut self) {
        if self.edits.is_empty() {
            return;
        }
        let exits = self.exits.drain(..).map(|(literal, node)| (node, literal));
        let mut exits: BTreeMap<u32, Option<LiteralId>> = exits.collect();
        for edit in self.edits.drain(..) {
            match edit {
                Edit::Add(node, literal) => {
                    exits.insert(node, literal);
                }
                Edit::Remove(node) => {
                    exits.remove(&node);
                }
                Edit::Cut(from, to) => {
                    while let Some((&node, _)) = exits.range(from..to).next() {
                        exits.remove(&node);
                    }
                }
            }
        }
        self.exits.extend(exits.into_iter().map(|(node, literal)| (literal, node)));
    }
}

fn set(words: &mut [u32], id: TokenId, to: bool) {
    let (word, bit) = (&mut words[id as usize / 32], 1 << (id % 32));
    if to { *word |= bit } else { *word &= !bit }
}

/// Whether this way pays for a state over the root: it is wide, or gets wide after a byte with which very
/// many tokens begin.
pub fn pays(tables: &Tables, states: &States, state: StateId) -> bool {
    let live = states.bytes(state);
    let trie = tables.vocabulary().trie();
    let begins_many = |byte: &u8| {
        let child = trie.child(Trie::ROOT, *byte);
        child.is_some_and(|child| trie.subtree_end(child) - child > HEAVY)
    };
    let gets_wide = |byte: u8| {
        let next = states.step(state, byte);
        next.is_live() && states.bytes(next).count() >= WIDE
    };
    live.count() >= WIDE || live.iter().filter(begins_many).any(gets_wide)
}

/// The table of a wide state over a boundary of several nodes, some of which have very many tokens behind
/// them (a space has): those are walked class by class, the others together. `None` if there are none.
pub fn over(
    level: &Tables,
    caller: &Tables,
    states: &States,
    boundary: BoundaryId,
    state: StateId,
) -> Option<TokenTable> {
    if states.bytes(state).count() < WIDE {
        return None;
    }
    let trie = caller.vocabulary().trie();
    let is_heavy = |node: u32| trie.subtree_end(node) - node > HEAVY;
    let (heavy, rest): (Vec<u32>, Vec<u32>) =
        caller.nodes(states, &boundary).iter().partition(|&&node| is_heavy(node));
    let classes: Vec<u32> =
        heavy.iter().map(|&node| caller.class_node(node)).collect::<Option<_>>()?;
    if classes.is_empty() {
        return None;
    }
    let mut walk = Walk::new(caller, states);
    if !rest.is_empty() {
        walk.start(level.intern(rest), state);
    }
    let words = vec![0; caller.vocabulary().len().div_ceil(32)].into_boxed_slice();
    let mut found = Found { words, exits: walk.exits, many: walk.many, at_exits: walk.at_exits };
    for id in walk.inside {
        set(&mut found.words, id, true);
    }
    for node in classes {
        let other = WideWalk::new(caller, caller.classes(), states).find(node, state);
        found.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
        found.exits.extend(other.exits);
        found.at_exits.unite(other.at_exits);
        found.many |= other.many || found.exits.len() > MANY && states.get(state).is_text();
    }
    Some(found.table(level, boundary, state))
}
