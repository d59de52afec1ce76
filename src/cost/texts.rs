//! The texts of completions, and the tokens that spell them across terminals.
//!
//! A completion of a stack is planned terminal by terminal, but spelled as one text: a token may
//! reach from one terminal into the next, as `":"` does. The tokens of a text can be counted from
//! its end: those from byte `i` on are one more than those from the end of the best token at `i`. So
//! a stack keeps the beginning of its text, as long as the longest token, with the count at each
//! byte ([`Lead`]); what is put on top of it is counted on from there, and the whole text is never
//! needed.
//!
//! By hand, with the tokens `":`, `1}` and bytes: the stack *value 1, then brace* has the text `1}`
//! with the counts 1, 1, 0. Inside the key `ab`, after `a`, the text is `b":` on top of that: 4 bytes
//! before the end nothing fits but `b`; `":` and `1}` follow: 3 tokens.
//!
//! What cannot be spelled in good time (thousands of items, special tokens, items that must differ)
//! is only counted, terminal by terminal; tokens do not reach into it.

use std::sync::Arc;

use super::near::{self, Near};
use super::nodes::{Nodes, Price};
use super::owed::{Item, Owed};
use super::{Costs, lock};
use crate::grammar::{Node, NodeId};
use crate::limits::Fuel;
use crate::machine::Program;
use crate::machine::shortest::Rest;
use crate::machine::states::{Excess, StateId};
use crate::mask::Lead;
use crate::vocab::Vocabulary;

/// Longest text of a node or a frame; longer ones are counted terminal by terminal.
const LONGEST: usize = 2_048;

/// Most pieces of a node or a frame.
const PIECES: usize = 512;

/// Fuel for planning one container.
const FUEL: u64 = 5_000_000;

/// A part of a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text, which tokens may spell together with its neighbours.
    Text(Vec<u8>),
    /// So many tokens.
    Tokens(u64),
}

/// A node inside so many containers.
type Place = (NodeId, u8);

/// Counts the fewest tokens of a text and what begins with a lead, from each byte of the text on.
pub type Spelling<'a> = &'a mut dyn FnMut(&[u8], &Lead) -> Vec<u64>;

/// The parts of a completion, neighbouring texts joined; `None` if it is too long to be spelled.
pub type Pieces = Option<Vec<Piece>>;

/// Appends to `pieces`; they are given up when they get too long.
pub fn append(pieces: &mut Pieces, more: &[Piece]) {
    let Some(list) = pieces else { return };
    for piece in more {
        match (list.last_mut(), piece) {
            (Some(Piece::Text(text)), Piece::Text(more)) => text.extend_from_slice(more),
            (Some(Piece::Tokens(tokens)), Piece::Tokens(more)) => {
                *tokens = tokens.saturating_add(*more);
            }
            _ => list.push(piece.clone()),
        }
    }
    let length = |piece: &Piece| if let Piece::Text(text) = piece { text.len() } else { 0 };
    if list.len() > PIECES || list.iter().map(length).sum::<usize>() > LONGEST {
        *pieces = None;
    }
}

/// `pieces` before what begins with `lead`, spelled by `spell`.
pub fn before(vocabulary: &Vocabulary, pieces: &[Piece], lead: &Lead, spell: Spelling<'_>) -> Lead {
    let longest = vocabulary.trie().max_len();
    let mut lead = lead.clone();
    for piece in pieces.iter().rev() {
        lead = match piece {
            Piece::Tokens(tokens) => {
                let costs = [lead.tokens().saturating_add(*tokens)].into();
                Lead { text: Box::default(), costs, most: lead.most }
            }
            Piece::Text(text) => {
                let costs = spell(text, &lead);
                let all = text.iter().chain(lead.text.iter());
                let begin: Box<[u8]> = all.take(longest).copied().collect();
                let costs = costs.iter().chain(&lead.costs).take(begin.len() + 1);
                Lead { text: begin, costs: costs.copied().collect(), most: lead.most }
            }
        };
    }
    lead
}

/// The tokens of `text` and what begins with `lead`, within the budgets of what is open there.
pub fn tokens(vocabulary: &Vocabulary, text: &[u8], lead: &Lead) -> u64 {
    lead.within(near::tokens(vocabulary, text, lead))
}

/// What follows a part of which one token less than `room` may still begin, if it can.
pub fn bounded(room: u32, lead: &Lead) -> Option<Lead> {
    let (left, rest) = (room.checked_sub(1)?, lead.within(lead.tokens()));
    let most = rest.checked_add(u64::from(left))?.min(lead.most);
    Some(Lead { text: Box::default(), costs: [rest].into(), most })
}

impl Costs {
    /// The text of a terminal from one of its states.
    pub(super) fn terminal_pieces(
        &self,
        program: &Program,
        state: StateId,
        excess: Excess,
    ) -> Piece {
        match &*self.rest(program, state) {
            Rest::Text(text) if excess.min == 0 => Piece::Text(text.clone()),
            _ => Piece::Tokens(self.terminal(program, state, excess)),
        }
    }

    /// The shortest text that completes a terminal from one of its states.
    pub(super) fn rest(&self, program: &Program, state: StateId) -> Arc<Rest> {
        let known = if state.is_local() { &self.rests } else { &*self.universal_rests };
        if let Some(rest) = lock(known).get(&state) {
            return Arc::clone(rest);
        }
        let rest = Arc::new(program.states().shortest(state));
        lock(known).insert(state, Arc::clone(&rest));
        rest
    }

    /// The completion of a node inside `depth` containers; `None` if it is to be counted only.
    pub(super) fn node_pieces(
        &self,
        program: &Program,
        nodes: &Nodes,
        id: NodeId,
        depth: u8,
    ) -> Option<Arc<Pieces>> {
        if !nodes.fits(program, id, depth) {
            return None;
        }
        // Without indentation the depth changes nothing.
        let place = |depth| if program.is_pretty() { depth } else { 0 };
        let key = (id, place(depth));
        if let Some(pieces) = lock(&self.texts).get(&key) {
            return Some(Arc::clone(pieces));
        }
        // Grammars nest deeply: a list of work instead of recursion.
        let mut todo: Vec<(Place, Option<Vec<Item>>)> = vec![(key, None)];
        while let Some((key, items)) = todo.pop() {
            if lock(&self.texts).contains_key(&key) {
                continue;
            }
            let items = match items {
                Some(items) => items,
                None => {
                    let items = self.items(program, nodes, key);
                    let missing: Vec<_> = {
                        let texts = lock(&self.texts);
                        let values = items.iter().flatten().filter_map(|item| match item {
                            Item::Value(id, depth) => Some((*id, place(*depth))),
                            _ => None,
                        });
                        values.filter(|key| !texts.contains_key(key)).collect()
                    };
                    match items {
                        Some(items) => {
                            todo.push((key, Some(items)));
                            todo.extend(missing.into_iter().map(|key| (key, None)));
                        }
                        None => {
                            lock(&self.texts).insert(key, Arc::new(None));
                        }
                    }
                    continue;
                }
            };
            let pieces = self.assemble(program, &items, &|id, depth| {
                lock(&self.texts).get(&(id, place(depth))).cloned()
            });
            lock(&self.texts).insert(key, Arc::new(pieces));
        }
        lock(&self.texts).get(&key).cloned()
    }

    /// The pieces of what a plan lists; `value` gives those of nodes.
    pub(super) fn assemble(
        &self,
        program: &Program,
        items: &[Item],
        value: &dyn Fn(NodeId, u8) -> Option<Arc<Pieces>>,
    ) -> Pieces {
        let mut pieces: Pieces = Some(Vec::new());
        for item in items {
            match item {
                Item::State(state, excess) => {
                    let piece = self.terminal_pieces(program, *state, *excess);
                    append(&mut pieces, &[piece]);
                }
                Item::Text(text) => append(&mut pieces, &[Piece::Text(text.clone())]),
                Item::Tokens(tokens) => append(&mut pieces, &[Piece::Tokens(*tokens)]),
                Item::Value(id, depth) => match value(*id, *depth).as_deref() {
                    Some(Some(own)) => append(&mut pieces, own),
                    _ => pieces = None,
                },
            }
            pieces.as_ref()?;
        }
        pieces
    }

    /// What the completion of a node consists of; `None` if that is too much.
    fn items(
        &self,
        program: &Program,
        nodes: &Nodes,
        (id, depth): (NodeId, u8),
    ) -> Option<Vec<Item>> {
        Some(match program.node(id) {
            Node::Never => return None,
            Node::Empty => Vec::new(),
            Node::Terminal(terminal) => {
                let start = program.start(id, terminal);
                vec![Item::State(start.state, start.excess)]
            }
            Node::Rule(target) => vec![Item::Value(*target, depth)],
            // No token reaches across the ends of what has a budget of its own.
            Node::Within { item, .. } => {
                vec![Item::Tokens(0), Item::Value(*item, depth), Item::Tokens(0)]
            }
            Node::Seq(parts) if parts.len() <= PIECES => {
                parts.iter().map(|&part| Item::Value(part, depth)).collect()
            }
            Node::Alt(parts) => {
                let choice = nodes.choice(id);
                vec![Item::Value(*parts.get(choice)?, depth)]
            }
            Node::Repeat { item, separator, min, .. } if *min <= PIECES as u64 => {
                let mut items = Vec::new();
                for i in 0..*min {
                    items.extend(separator.filter(|_| i > 0).map(|node| Item::Value(node, depth)));
                    items.push(Item::Value(*item, depth));
                }
                items
            }
            Node::Seq(_) | Node::Repeat { .. } => return None,
            Node::Array(_) | Node::Object(_) => {
                let inside = depth.saturating_add(1);
                let value = |id, _: u8| (nodes.price(id), 0);
                let mut owed = Owed::new(self, program, &value).placed().recording();
                owed.whole(id, inside, &mut Fuel::new(FUEL)).ok()?;
                owed.recorded()?
            }
        })
    }

    /// The tokens of a node by itself, the end token not counted.
    pub(super) fn tokens_alone(&self, program: &Program, nodes: &Nodes, id: NodeId) -> u64 {
        match self.node_pieces(program, nodes, id, 0).as_deref() {
            Some(Some(pieces)) => {
                let spell = &mut |text: &[u8], lead: &Lead| {
                    Near::default().spell(&self.vocabulary, text, lead, false)
                };
                before(&self.vocabulary, pieces, &Lead::end(), spell).tokens()
            }
            _ => nodes.tokens(self, program, id, 0),
        }
    }

    /// The pieces of an open container, as `plan` lists them.
    pub(super) fn container_pieces(
        &self,
        program: &Program,
        nodes: &Nodes,
        plan: impl FnOnce(&mut Owed<'_>) -> crate::error::Result<(Price, u8)>,
    ) -> Pieces {
        let value = |id, depth| (Price::tokens(nodes.tokens(self, program, id, depth)), 0);
        let mut owed = Owed::new(self, program, &value).placed().recording();
        plan(&mut owed).ok()?;
        let items = owed.recorded()?;
        self.assemble(program, &items, &|id, depth| self.node_pieces(program, nodes, id, depth))
    }
}
