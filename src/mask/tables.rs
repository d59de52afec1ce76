//! Token tables: which tokens stay in a terminal, and where inside tokens it is complete.
//!
//! A [`BoundaryId`] names a set of trie nodes. One node is its own boundary, without a table:
//! the root is the boundary *before every token*. Larger sets are interned; the child of a set by
//! a byte is the set of the children, made once. So the set behaves like one node of a trie in
//! which tokens that share a remainder share a node, but only as much of it exists as was walked.
//!
//! Worked example: tokens `x`, `x"`, `x",`, `y"`, `y",`, `y"}`. Over the root, the body of a
//! string has `x` inside; a quote completes it, in tokens `x"` and `y"` too (they are inside:
//! they end right there), and the boundary is the set of nodes `{x", y"}`. Its child by `,` is
//! `{x",  y",}`, its child by `}` the single node `y"}`.
//!
//! Tables are made by the cheapest of several ways: literals by their texts ([`super::literals`]), pieces of
//! a document by its automaton ([`super::spans`]), strings by length ([`super::lengths`]), with their counts cut down ([`super::counted`]), or by their
//! closing quotes ([`super::closing`]), wide states by classes of bytes ([`super::wide`]), or by a walk of the
//! trie ([`super::walk`]). Cost of that walk: the nodes of the boundary's subtree that the state
//! keeps alive. Where a state loops on every byte below a node, the whole subtree is taken at once.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use hashbrown::HashMap;

use super::allowed::Mixtures;
use super::classes::ClassTrie;
use super::closing;
use super::counted;
use super::lengths::Lengths;
use super::literals;
use super::reach::{self, Edges};
use super::set::TokenSet;
use super::spans;
use super::walk::Walk;
use super::ways::Ways;
use super::wide::{self, WideWalk};
use crate::expr::LiteralId;
use crate::machine::concurrent::{Arena, ReadMap};
use crate::machine::{StateId, States};
use crate::vocab::{TokenId, Trie, Vocabulary};

/// A set of trie nodes: places inside tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BoundaryId(pub(super) u32);

/// Marks boundaries and tables of a constraint.
const LOCAL: u32 = 1 << 31;
/// Marks boundaries of more than one node.
const SET: u32 = 1 << 30;

impl BoundaryId {
    /// Before every token.
    pub const ROOT: BoundaryId = BoundaryId(Trie::ROOT);
    /// Before every token that does not close the string that it starts in.
    pub(super) const BODY: BoundaryId = BoundaryId(SET | (SET - 1));

    pub(crate) fn is_local(self) -> bool {
        self.0 & LOCAL != 0
    }

    /// The trie node, if it is one.
    pub(super) fn single(self) -> Option<u32> {
        (self.0 & SET == 0).then_some(self.0)
    }
}

/// The index of a token table, of a constraint or of its vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(u32);

impl TableId {
    /// Whether it belongs to a constraint (else to the vocabulary).
    pub(super) fn is_local(self) -> bool {
        self.0 & LOCAL != 0
    }
}

/// What a state does with the tokens behind a boundary.
#[derive(Debug)]
pub struct TokenTable {
    /// Tokens that end inside the terminal, or exactly where it is complete.
    pub inside: TokenSet,
    /// More of them, which another table has too.
    pub shared: Option<Shared>,
    /// Where tokens go on after the terminal is complete, by the literal that completed.
    pub exits: Box<[(Option<LiteralId>, BoundaryId)]>,
    /// The state in which the terminal is at all exits, if it is the same one and that of plain text.
    pub at_exits: Option<StateId>,
}

impl TokenTable {
    /// Whether no token ends inside.
    pub fn is_empty(&self) -> bool {
        self.inside.is_empty() && self.shared.is_none()
    }
}

/// Tokens that are inside another table, but for some.
#[derive(Debug)]
pub struct Shared {
    /// The other table.
    pub table: TableId,
    /// What is not shared, ascending.
    pub without: Box<[TokenId]>,
}

#[derive(Debug)]
struct Boundary {
    /// Listed when somebody asks, if it is where a state is complete.
    nodes: OnceLock<Box<[u32]>>,
    /// The nodes are those at which this state is complete that started at this boundary.
    reached: Option<(BoundaryId, StateId)>,
    /// Another boundary that has these nodes and a few more, whose children are known.
    larger: Option<BoundaryId>,
    children: OnceLock<Box<[(u8, BoundaryId)]>>,
}

/// The tables of one level: of a vocabulary (universal states) or of a constraint.
#[derive(Debug)]
pub struct Tables {
    base: Option<Arc<Tables>>,
    vocabulary: Vocabulary,
    boundaries: Arena<Boundary>,
    tables: Arena<TokenTable>,
    /// (boundary, state) to table.
    index: ReadMap,
    cold: Mutex<HashMap<Box<[u32]>, BoundaryId>>,
    /// How many characters tokens have, for strings bounded in length.
    lengths: OnceLock<Lengths>,
    /// Of the universal level.
    classes: OnceLock<ClassTrie>,
    /// Of the universal level: to the quotes, and to what is far inside tokens.
    ways: OnceLock<[Ways; 2]>,
    /// Of the universal level.
    edges: OnceLock<Edges>,
    /// Of the universal level: unions of its tables.
    mixtures: Mutex<Mixtures>,
}

impl Tables {
    /// Tables of the universal `states` of a vocabulary.
    pub fn universal(vocabulary: Vocabulary, states: &States) -> Self {
        let tables = Self::new(None, vocabulary);
        // Now, so that no first visit of a state has to.
        tables.classes();
        tables.ways();
        tables.edges();
        tables.lengths.get_or_init(|| Lengths::new(&tables, states));
        tables
    }

    /// Tables of a constraint.
    pub fn local(base: Arc<Tables>) -> Self {
        let vocabulary = base.vocabulary.clone();
        Self::new(Some(base), vocabulary)
    }

    fn new(base: Option<Arc<Tables>>, vocabulary: Vocabulary) -> Self {
        Self {
            base,
            vocabulary,
            boundaries: Arena::default(),
            tables: Arena::default(),
            index: ReadMap::default(),
            cold: Mutex::default(),
            lengths: OnceLock::new(),
            classes: OnceLock::new(),
            ways: OnceLock::new(),
            edges: OnceLock::new(),
            mixtures: Mutex::default(),
        }
    }

    /// Number of tables of this level.
    pub fn count(&self) -> u32 {
        self.tables.count()
    }

    /// Bytes of the token sets of this level.
    pub fn bytes(&self) -> usize {
        (0..self.tables.count())
            .filter_map(|i| self.tables.get(i))
            .map(|table| table.inside.bytes() + table.exits.len() * 8 + 64)
            .sum()
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The table behind an id.
    #[inline]
    pub fn get(&self, id: TableId) -> &TokenTable {
        let level = match &self.base {
            Some(base) if id.0 & LOCAL == 0 => base,
            _ => self,
        };
        level.tables.get(id.0 & !LOCAL).expect("ids are given out with their table")
    }

    /// The token table of `state` over `boundary`. `states` is the level of the constraint.
    #[inline]
    pub fn table(&self, states: &States, boundary: BoundaryId, state: StateId) -> TableId {
        let state = states.for_tables(state);
        let local = boundary.is_local() || state.is_local();
        let (level, bit) = match &self.base {
            Some(base) if !local => (&**base, 0),
            Some(_) => (self, LOCAL),
            None => (self, 0),
        };
        let key = u64::from(boundary.0) << 32 | u64::from(state.raw());
        match level.index.get(key) {
            Some(index) => TableId(index | bit),
            None => TableId(level.make(self, states, boundary, state, key) | bit),
        }
    }

    #[cold]
    fn make(
        &self,
        caller: &Tables,
        states: &States,
        boundary: BoundaryId,
        state: StateId,
        key: u64,
    ) -> u32 {
        let table = self.compute(caller, states, boundary, state);
        let _writer = self.lock();
        if let Some(index) = self.index.get(key) {
            return index;
        }
        let index = self.tables.push(table);
        self.index.insert(key, index);
        index
    }

    /// The table, by the cheapest way.
    fn compute(
        &self,
        caller: &Tables,
        states: &States,
        boundary: BoundaryId,
        state: StateId,
    ) -> TokenTable {
        if let Some(table) = literals::table(self, caller, states, boundary, state) {
            return table;
        }
        if let Some(table) = spans::table(self, caller, states, boundary, state) {
            return table;
        }
        if boundary == BoundaryId::ROOT {
            if let Some((min, max)) = states.length_bounds(state) {
                let lengths = self.lengths.get_or_init(|| Lengths::new(caller, states));
                return lengths.table(self, min, max);
            }
            if let Some(table) = counted::table(self, caller, states, state) {
                return table;
            }
            if let Some(table) = closing::table(self, caller, states, state) {
                return table;
            }
        }
        if boundary == BoundaryId::BODY {
            return closing::body(caller, states, state);
        }
        if boundary == BoundaryId::ROOT {
            if wide::pays(caller, states, state) {
                return WideWalk::new(caller, caller.classes(), states).run(self, state);
            }
        } else if let Some(table) = wide::over(self, caller, states, boundary, state) {
            return table;
        }
        Walk::new(caller, states).run(self, boundary, state)
    }

    /// The node of the class trie that a node of the trie has for itself.
    pub(super) fn class_node(&self, node: u32) -> Option<u32> {
        let (edges, classes) = (self.edges(), self.classes());
        let (mut path, mut at) = (Vec::new(), node);
        while at != Trie::ROOT {
            path.push(edges.byte(at));
            at = edges.parent(at);
        }
        let found =
            path.iter().rev().try_fold(ClassTrie::ROOT, |at, &byte| classes.child(at, byte));
        found.filter(|&found| classes.members(found).len() == 1)
    }

    /// The vocabulary through classes of bytes.
    pub(super) fn classes(&self) -> &ClassTrie {
        match &self.base {
            Some(base) => base.classes(),
            None => self
                .classes
                .get_or_init(|| ClassTrie::new(self.vocabulary.trie(), self.vocabulary.len())),
        }
    }

    fn ways(&self) -> &[Ways; 2] {
        match &self.base {
            Some(base) => base.ways(),
            None => self.ways.get_or_init(|| {
                let trie = self.vocabulary.trie();
                [closing::quote_ways(trie), counted::long_ways(trie)]
            }),
        }
    }

    fn edges(&self) -> &Edges {
        match &self.base {
            Some(base) => base.edges(),
            None => self.edges.get_or_init(|| Edges::new(self.vocabulary.trie())),
        }
    }

    /// Unions of tables of the universal level.
    pub(super) fn universal_mixtures(&self) -> MutexGuard<'_, Mixtures> {
        let level = self.base.as_deref().unwrap_or(self);
        level.mixtures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The ways to the quotes inside tokens.
    pub(super) fn quote_ways(&self) -> &Ways {
        &self.ways()[0]
    }

    /// The ways to what is far inside tokens.
    pub(super) fn long_ways(&self) -> &Ways {
        &self.ways()[1]
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<[u32]>, BoundaryId>> {
        self.cold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn boundary(&self, id: BoundaryId) -> &Boundary {
        let index = id.0 & !(LOCAL | SET);
        self.level(id).boundaries.get(index).expect("ids are given out with their boundary")
    }

    /// The nodes of a boundary, ascending.
    pub fn nodes<'a>(&'a self, states: &States, id: &'a BoundaryId) -> &'a [u32] {
        if id.single().is_some() {
            return std::slice::from_ref(&id.0);
        }
        let boundary = self.boundary(*id);
        boundary.nodes.get_or_init(|| {
            let list = |(from, state)| {
                reach::nodes(self.vocabulary.trie(), states, self.nodes(states, &from), state)
            };
            boundary.reached.map(list).unwrap_or_default()
        })
    }

    /// At most the first node of a boundary, and more than the first one of the boundary from which
    /// it was reached.
    pub fn first(&self, id: BoundaryId) -> u32 {
        match id.single() {
            Some(node) => node,
            None => {
                let boundary = self.boundary(id);
                match boundary.reached {
                    Some((from, _)) => self.first(from) + 1,
                    None => {
                        let nodes = boundary.nodes.get();
                        nodes.and_then(|nodes| nodes.first()).copied().unwrap_or_default()
                    }
                }
            }
        }
    }

    /// The boundary of all places at which `state` is complete that started at `from`, one of which belongs
    /// to this level.
    pub(super) fn reached(&self, from: BoundaryId, state: StateId) -> BoundaryId {
        self.add(Boundary {
            nodes: OnceLock::new(),
            reached: Some((from, state)),
            larger: None,
            children: OnceLock::new(),
        })
    }

    fn add(&self, boundary: Boundary) -> BoundaryId {
        let level = if self.base.is_some() { LOCAL } else { 0 };
        BoundaryId(self.boundaries.push(boundary) | SET | level)
    }

    /// The boundary of `nodes` (sorted, distinct, not empty).
    pub(super) fn intern(&self, nodes: Vec<u32>) -> BoundaryId {
        self.intern_near(nodes, None)
    }

    /// The boundary of `nodes`, all of which are in `larger`.
    pub(super) fn intern_near(&self, nodes: Vec<u32>, larger: Option<BoundaryId>) -> BoundaryId {
        if let [one] = nodes[..] {
            return BoundaryId(one);
        }
        if let Some(base) = &self.base
            && let Some(&id) = base.lock().get(&nodes[..])
        {
            return id;
        }
        let mut ids = self.lock();
        if let Some(&id) = ids.get(&nodes[..]) {
            return id;
        }
        let nodes = nodes.into_boxed_slice();
        let known = OnceLock::from(nodes.clone());
        let children = OnceLock::new();
        let id = self.add(Boundary { nodes: known, reached: None, larger, children });
        ids.insert(nodes, id);
        id
    }

    /// The child of a boundary by a byte.
    pub(super) fn child(&self, states: &States, id: BoundaryId, byte: u8) -> Option<BoundaryId> {
        if let Some(node) = id.single() {
            return self.vocabulary.trie().child(node, byte).map(BoundaryId);
        }
        let boundary = self.boundary(id);
        if let (None, Some((from, state)), None) =
            (boundary.nodes.get(), boundary.reached, boundary.children.get())
        {
            let (trie, from) = (self.vocabulary.trie(), self.nodes(states, &from));
            let nodes = self.edges().children(trie, states, (from, state), byte);
            return (!nodes.is_empty()).then(|| self.level(id).intern(nodes));
        }
        self.children(states, id).iter().find(|(b, _)| *b == byte).map(|&(_, child)| child)
    }

    /// Whether the children of a boundary are better asked for one by one, if they are few.
    pub(super) fn is_unlisted(&self, id: BoundaryId) -> bool {
        id.single().is_none() && {
            let boundary = self.boundary(id);
            boundary.reached.is_some() && boundary.nodes.get().is_none()
        }
    }

    /// The level that a boundary belongs to.
    fn level(&self, id: BoundaryId) -> &Tables {
        match &self.base {
            Some(base) if !id.is_local() => base,
            _ => self,
        }
    }

    /// The children of a boundary of several nodes, by byte.
    pub(super) fn children(&self, states: &States, id: BoundaryId) -> &[(u8, BoundaryId)] {
        let level = self.level(id);
        let boundary = self.boundary(id);
        boundary.children.get_or_init(|| match boundary.larger {
            Some(larger) => level.children_within(self, states, boundary, larger),
            None => {
                let trie = self.vocabulary.trie();
                let mut edges: Vec<(u8, u32)> = Vec::new();
                for &node in self.nodes(states, &id) {
                    let (bytes, ids) = trie.children(node);
                    edges.extend(bytes.iter().copied().zip(ids.iter().copied()));
                }
                edges.sort_unstable();
                let groups = edges.chunk_by(|a, b| a.0 == b.0);
                groups.map(|group| (group[0].0, level.intern(seconds(group)))).collect()
            }
        })
    }

    /// The children of `boundary` from those of `larger`: only children of the nodes that are
    /// missing differ.
    fn children_within(
        &self,
        caller: &Tables,
        states: &States,
        boundary: &Boundary,
        larger: BoundaryId,
    ) -> Box<[(u8, BoundaryId)]> {
        let trie = self.vocabulary.trie();
        let own = boundary.nodes.get().map_or(&[][..], |nodes| nodes);
        let nodes = caller.nodes(states, &larger).iter();
        let missing = nodes.filter(|node| own.binary_search(node).is_err());
        let mut gone: Vec<(u8, u32)> = Vec::new();
        for &node in missing {
            let (bytes, ids) = trie.children(node);
            gone.extend(bytes.iter().copied().zip(ids.iter().copied()));
        }
        let children = caller.children(states, larger).iter();
        children
            .filter_map(|&(byte, child)| {
                if gone.iter().all(|&(other, _)| other != byte) {
                    return Some((byte, child));
                }
                let left = caller.nodes(states, &child).iter().copied();
                let left: Vec<u32> = left.filter(|&node| !gone.contains(&(byte, node))).collect();
                (!left.is_empty()).then(|| (byte, self.intern_near(left, Some(child))))
            })
            .collect()
    }

    /// The tokens that end at a boundary.
    pub fn tokens_at(&self, states: &States, id: BoundaryId) -> Vec<TokenId> {
        let trie = self.vocabulary.trie();
        self.nodes(states, &id).iter().flat_map(|&node| trie.tokens(node)).copied().collect()
    }

    /// Nodes at which a terminal is complete, with the literal, as exits: one boundary per literal.
    pub(super) fn exits(
        &self,
        mut nodes: Vec<(Option<LiteralId>, u32)>,
    ) -> Box<[(Option<LiteralId>, BoundaryId)]> {
        nodes.sort_unstable();
        nodes.dedup();
        let groups = nodes.chunk_by(|a, b| a.0 == b.0);
        groups.map(|group| (group[0].0, self.intern(seconds(group)))).collect()
    }

    /// All tokens that go on after a boundary.
    pub fn tokens_after(&self, states: &States, id: BoundaryId) -> Vec<TokenId> {
        let trie = self.vocabulary.trie();
        let mut tokens = Vec::new();
        for &node in self.nodes(states, &id) {
            let here = trie.tokens(node).len();
            tokens.extend_from_slice(&trie.subtree_tokens(node)[here..]);
        }
        tokens
    }
}

/// The second parts of some pairs.
fn seconds<A>(pairs: &[(A, u32)]) -> Vec<u32> {
    pairs.iter().map(|&(_, second)| second).collect()
}
