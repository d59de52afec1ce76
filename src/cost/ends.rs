//! In which states the tokens of a table end.
//!
//! A token table says which tokens stay inside a terminal; under a budget it matters in which state
//! they end, since the states cost differently. By hand: over the vocabulary `a`, `ab`, `b"`, a string
//! of at least two characters, none read yet, groups its tokens as *one more*: `a`; *none*: `ab`.
//!
//! A group is a state and the tokens that end in it, or in states that cost the same or less.
//! Groups are made once per state and boundary, by walking the trie. Over a large vocabulary wide states are not walked:
//!
//! * strings bounded only in length: what a token does to them depends on how many characters it has, which is
//!   found once per vocabulary ([`characters`]). They leave out tokens that end inside a character before the least
//!   length is reached (half a dozen tokens of a thousand): under a budget those are not offered;
//! * states that most characters lead from to one that they do not lead away from (a key that may be a declared one, to
//!   *any string*): only where they part from that one ([`apart`]).

mod apart;
mod characters;

use std::sync::{Arc, Mutex, OnceLock};

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::lock;
use crate::machine::shortest::Rest;
use crate::machine::{StateId, States};
use crate::mask::{BoundaryId, Tables, TokenSet};
use crate::vocab::TokenId;
use characters::Characters;

/// Groups of tokens, by the state in which they end.
#[derive(Debug)]
pub struct Ends {
    groups: Box<[(StateId, TokenSet)]>,
    alike: OnceLock<Box<[(StateId, TokenSet)]>>,
    /// Places of the trie that it took to find them, whoever did that first.
    pub work: u64,
}

/// What the cost of a state depends on, for states that no declared key goes through: the text that completes it,
/// whether it accepts and goes on, and whether it is between two characters of a string.
type Worth = (Arc<Rest>, bool, bool, bool);

impl Ends {
    fn new(groups: impl IntoIterator<Item = (StateId, TokenSet)>, work: u64) -> Self {
        let groups = groups.into_iter().collect();
        Self { groups, alike: OnceLock::new(), work }
    }

    /// The groups.
    pub fn iter(&self) -> impl Iterator<Item = &(StateId, TokenSet)> {
        self.groups.iter()
    }

    /// The same with one group for states that cost the same over any stack, once they are known. (After a comma any
    /// number of spaces leaves the same to be written.)
    pub fn by_cost(&self) -> &[(StateId, TokenSet)] {
        self.alike.get().unwrap_or(&self.groups)
    }

    /// Finds out which states cost the same; `rest` tells the shortest text that completes a state.
    pub fn group_by_cost(&self, states: &States, len: usize, rest: impl Fn(StateId) -> Arc<Rest>) {
        self.alike.get_or_init(|| {
            let mut known: HashMap<Worth, usize> = HashMap::new();
            let mut groups: Vec<(StateId, Vec<&TokenSet>)> = Vec::new();
            for (state, tokens) in &self.groups {
                let info = states.get(*state);
                if info.literal().is_some()
                    || info.special().is_some()
                    || state.is_local() && info.is_string()
                {
                    groups.push((*state, vec![tokens]));
                    continue;
                }
                let worth = (rest(*state), info.accepts(), info.continues(), info.is_between());
                match known.entry(worth) {
                    Entry::Occupied(at) => groups[*at.get()].1.push(tokens),
                    Entry::Vacant(at) => {
                        at.insert(groups.len());
                        groups.push((*state, vec![tokens]));
                    }
                }
            }
            groups.into_iter().map(|(state, sets)| (state, TokenSet::union(&sets, len))).collect()
        });
    }
}

/// Subtrees of fewer nodes are not worth asking whether they are taken whole.
const WORTH: u32 = 8;

/// Tries of at most so many nodes are walked, whatever the state.
const WALKED: usize = 1 << 14;

/// The ends of one level: of a vocabulary (universal states) or of a constraint.
#[derive(Debug, Default)]
pub struct EndTables {
    base: Option<Arc<EndTables>>,
    known: Mutex<HashMap<(BoundaryId, StateId), Arc<Ends>>>,
    characters: OnceLock<Characters>,
}

impl EndTables {
    /// Of a constraint, over those of its vocabulary.
    pub fn local(base: Arc<EndTables>) -> Self {
        Self { base: Some(base), ..Self::default() }
    }

    /// Where the tokens behind `boundary` end that stay in the terminal from `state`.
    pub fn get(
        &self,
        tables: &Tables,
        states: &States,
        boundary: BoundaryId,
        state: StateId,
    ) -> Arc<Ends> {
        let local = boundary.is_local() || state.is_local();
        let level = self.base.as_deref().filter(|_| !local).unwrap_or(self);
        if let Some(ends) = lock(&level.known).get(&(boundary, state)) {
            return Arc::clone(ends);
        }
        let wide = boundary == BoundaryId::ROOT && tables.vocabulary().trie().len() > WALKED;
        let ends = match states.length_bounds(state).filter(|_| wide) {
            Some(bounds) => {
                let shared = self.base.as_deref().unwrap_or(self);
                let characters = shared.characters.get_or_init(|| Characters::new(tables, states));
                characters.ends(tables, states, state, bounds)
            }
            None => match wide.then(|| self.usual(tables, states, state)).flatten() {
                Some((usual, known)) => apart::ends(tables, states, (state, usual), &known)
                    .unwrap_or_else(|| Walk::new(tables, states).run(boundary, state)),
                None => Walk::new(tables, states).run(boundary, state),
            },
        };
        let ends = Arc::new(ends);
        lock(&level.known).insert((boundary, state), Arc::clone(&ends));
        ends
    }

    /// The state that most bytes lead to from `state`, if it is another one and they lead from there to itself; with
    /// its ends.
    fn usual(
        &self,
        tables: &Tables,
        states: &States,
        state: StateId,
    ) -> Option<(StateId, Arc<Ends>)> {
        let usual = apart::usual(states, state)?;
        Some((usual, self.get(tables, states, BoundaryId::ROOT, usual)))
    }
}

/// The making of the ends of one table.
struct Walk<'a> {
    tables: &'a Tables,
    states: &'a States,
    groups: HashMap<StateId, Vec<TokenId>>,
    todo: Vec<(u32, StateId)>,
    work: u64,
}

impl<'a> Walk<'a> {
    fn new(tables: &'a Tables, states: &'a States) -> Self {
        Self { tables, states, groups: HashMap::new(), todo: Vec::new(), work: 0 }
    }

    /// The ends of `state` behind a boundary.
    fn run(mut self, boundary: BoundaryId, state: StateId) -> Ends {
        let nodes = self.tables.nodes(self.states, &boundary).iter();
        self.todo.extend(nodes.map(|&node| (node, state)));
        self.work();
        let work = self.work;
        Ends::new(self.sets(), work)
    }

    /// The tokens found, by state.
    fn sets(&mut self) -> impl Iterator<Item = (StateId, TokenSet)> {
        let len = self.tables.vocabulary().len();
        let groups = std::mem::take(&mut self.groups).into_iter();
        groups.map(move |(state, tokens)| (state, TokenSet::new(tokens, len)))
    }

    /// Goes on from all places that are to be visited.
    fn work(&mut self) {
        let trie = self.tables.vocabulary().trie();
        while let Some((node, state)) = self.todo.pop() {
            let live = self.states.bytes(state);
            let (bytes, children) = trie.children(node);
            for (&byte, &child) in bytes.iter().zip(children) {
                if live.contains(byte) {
                    self.work += 1;
                    self.arrive(child, self.states.step(state, byte));
                }
            }
        }
    }

    /// Adds the tokens that end at a node in `state`.
    fn end(&mut self, node: u32, state: StateId) {
        let tokens = self.tables.vocabulary().trie().tokens(node);
        if !tokens.is_empty() {
            self.groups.entry(state).or_default().extend_from_slice(tokens);
        }
    }

    /// Adds what ends at a node that `state` has reached, and plans what is below.
    fn arrive(&mut self, node: u32, state: StateId) {
        if !state.is_live() {
            return;
        }
        let (trie, states) = (self.tables.vocabulary().trie(), self.states);
        let below = trie.subtree_end(node) - node - 1;
        let continues = states.get(state).continues();
        if continues
            && below >= WORTH
            && !states.get(state).accepts()
            && states.loops(state).contains_all(trie.bytes_below(node))
        {
            self.groups.entry(state).or_default().extend_from_slice(trie.subtree_tokens(node));
            return;
        }
        self.end(node, state);
        if below > 0 && continues {
            self.todo.push((node, state));
        }
    }
}
