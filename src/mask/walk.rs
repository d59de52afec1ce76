//! Making a token table by walking the tokens behind a boundary beside a state.
//!
//! The walk keeps pairs of a boundary and a state, and goes on only where the state lives. It
//! visits the bytes that the state allows or the children that the boundary has, whichever are
//! fewer. Where a state loops on every byte below a node, the subtree is taken whole.

use super::set::TokenSet;
use super::tables::{BoundaryId, Tables, TokenTable};
use crate::expr::{ExprId, LiteralId};
use crate::machine::state::{Content, Spelling};
use crate::machine::states::State;
use crate::machine::{StateId, States};
use crate::vocab::{TokenId, Trie};

/// The making of one table.
pub struct Walk<'a> {
    tables: &'a Tables,
    states: &'a States,
    trie: &'a Trie,
    /// Tokens found inside.
    pub inside: Vec<TokenId>,
    /// Nodes at which the terminal is complete and tokens go on, with the literal.
    pub exits: Vec<(Option<LiteralId>, u32)>,
    /// Whether exits are too many to be listed; then no more are added.
    pub many: bool,
    /// The states of plain text at exits.
    pub at_exits: One,
    todo: Vec<(BoundaryId, StateId)>,
}

/// Up to how many live bytes a boundary that nobody has listed is asked for its children one by one.
const FEW: usize = 24;

/// Up to how many nodes of a boundary are walked one by one beside the characters of a string.
const SHORT: usize = 64;

/// More exits than this are not listed.
pub const MANY: usize = 8_192;

/// Subtrees of fewer nodes are not worth asking whether they are taken whole.
const WORTH: u32 = 8;

/// Whether some states are all the same.
#[derive(Debug, Clone, Copy, Default)]
pub struct One {
    state: Option<StateId>,
    others: bool,
}

impl One {
    /// Adds a state.
    pub fn see(&mut self, state: StateId, info: &State) {
        self.others |= !info.is_text() || self.state.is_some_and(|one| one != state);
        self.state = Some(state);
    }

    /// Adds the states of another.
    pub fn unite(&mut self, other: One) {
        self.others |= other.others
            || other.state.is_some_and(|state| self.state.is_some_and(|own| own != state));
        self.state = self.state.or(other.state);
    }

    /// The only state, if it is one of plain text.
    pub fn get(&self) -> Option<StateId> {
        self.state.filter(|_| !self.others)
    }
}

impl<'a> Walk<'a> {
    /// Nothing walked yet; `tables` and `states` are the levels of the constraint.
    pub fn new(tables: &'a Tables, states: &'a States) -> Self {
        Self {
            tables,
            states,
            trie: tables.vocabulary().trie(),
            inside: Vec::new(),
            exits: Vec::new(),
            many: false,
            at_exits: One::default(),
            todo: Vec::new(),
        }
    }

    /// The table; new boundaries are interned at `level`.
    pub fn run(mut self, level: &Tables, boundary: BoundaryId, state: StateId) -> TokenTable {
        self.start(boundary, state);
        if self.many {
            let inside = TokenSet::new(self.inside, self.tables.vocabulary().len());
            let exits = [(None, level.reached(boundary, state))].into();
            return TokenTable { inside, shared: None, exits, at_exits: self.at_exits.get() };
        }
        self.finish(level)
    }

    /// Where the walk by the characters of a string starts, for a state between two of them or before the
    /// opening quote (then tokens that end with it are inside), with their spelling and what they
    /// are; `None` for other states, and where the places are too many to be walked one by one.
    pub fn open(
        &mut self,
        boundary: BoundaryId,
        state: StateId,
    ) -> Option<(Option<BoundaryId>, Spelling, ExprId)> {
        let (tables, states) = (self.tables, self.states);
        match *states.get(state).content() {
            Content::Between(spelling, expr) => {
                let set = spelling == Spelling::Json && self.is_short(boundary);
                (set || boundary.single().is_some()).then_some((Some(boundary), spelling, expr))
            }
            Content::Quote(expr) if boundary != BoundaryId::BODY => {
                let quote = tables.child(states, boundary, b'"');
                for node in quote.iter().flat_map(|quote| tables.nodes(states, quote)) {
                    self.inside.extend_from_slice(self.trie.tokens(*node));
                }
                let short = quote.is_none_or(|quote| self.is_short(quote));
                short.then_some((quote, Spelling::Json, expr))
            }
            _ => None,
        }
    }

    /// Whether the nodes of a boundary are known and not too many to be walked one by one.
    fn is_short(&self, boundary: BoundaryId) -> bool {
        boundary != BoundaryId::BODY
            && !self.tables.is_unlisted(boundary)
            && self.tables.nodes(self.states, &boundary).len() <= SHORT
    }

    /// Adds what is behind a boundary.
    pub fn start(&mut self, boundary: BoundaryId, state: StateId) {
        self.todo.push((boundary, state));
        self.work();
    }

    /// The table of what was found; new boundaries are interned at `level`.
    pub fn finish(self, level: &Tables) -> TokenTable {
        let inside = TokenSet::new(self.inside, self.tables.vocabulary().len());
        let at_exits = self.at_exits.get();
        TokenTable { inside, shared: None, exits: level.exits(self.exits), at_exits }
    }

    /// Adds what is at and below a node that `state` has reached.
    pub fn add(&mut self, node: u32, state: StateId) {
        self.arrive(node, state);
        self.work();
    }

    fn work(&mut self) {
        while let Some((boundary, state)) = self.todo.pop() {
            match boundary.single() {
                Some(node) => self.visit_node(node, state),
                None => self.visit_set(boundary, state),
            }
        }
    }

    fn visit_node(&mut self, node: u32, state: StateId) {
        let (bytes, ids) = self.trie.children(node);
        let live = self.states.bytes(state);
        if live.count() < bytes.len() {
            for byte in live.iter() {
                if let Some(child) = self.trie.child(node, byte) {
                    self.arrive(child, self.states.step(state, byte));
                }
            }
        } else {
            for (&byte, &child) in bytes.iter().zip(ids) {
                if live.contains(byte) {
                    self.arrive(child, self.states.step(state, byte));
                }
            }
        }
    }

    fn arrive(&mut self, node: u32, state: StateId) {
        if !state.is_live() {
            return;
        }
        let (info, trie) = (self.states.get(state), self.trie);
        let below = trie.subtree_end(node) - node - 1;
        if below >= WORTH
            && !info.accepts()
            && self.states.loops(state).contains_all(trie.bytes_below(node))
        {
            self.inside.extend_from_slice(trie.subtree_tokens(node));
            return;
        }
        self.inside.extend_from_slice(trie.tokens(node));
        if below == 0 {
            return;
        }
        if info.accepts() {
            self.exit((state, info), node);
        }
        if info.continues() {
            self.todo.push((BoundaryId(node), state));
        }
    }

    fn exit(&mut self, (state, info): (StateId, &State), node: u32) {
        self.at_exits.see(state, info);
        if self.many {
            return;
        }
        self.exits.push((info.literal(), node));
        // Strings of JSON end at quotes only, and say which literal they were.
        self.many = self.exits.len() > MANY && info.is_text();
    }

    fn visit_set(&mut self, boundary: BoundaryId, state: StateId) {
        let (tables, states) = (self.tables, self.states);
        let live = states.bytes(state);
        if live.count() <= FEW && tables.is_unlisted(boundary) {
            for byte in live.iter() {
                if let Some(child) = tables.child(states, boundary, byte) {
                    self.arrive_set(child, states.step(state, byte));
                }
            }
            return;
        }
        for &(byte, child) in tables.children(states, boundary) {
            if live.contains(byte) {
                self.arrive_set(child, states.step(state, byte));
            }
        }
    }

    fn arrive_set(&mut self, boundary: BoundaryId, state: StateId) {
        if let Some(node) = boundary.single() {
            self.arrive(node, state);
            return;
        }
        if !state.is_live() {
            return;
        }
        let info = self.states.get(state);
        for &node in self.tables.nodes(self.states, &boundary) {
            self.inside.extend_from_slice(self.trie.tokens(node));
            if info.accepts() && self.trie.subtree_end(node) > node + 1 {
                self.exit((state, info), node);
            }
        }
        if info.continues() {
            self.todo.push((boundary, state));
        }
    }
}
