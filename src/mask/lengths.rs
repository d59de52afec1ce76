//! Tables of strings bounded only in length.
//!
//! *At most 17 characters* is another state after each character, and as wide as *any string*.
//! What its table needs is how many characters of the string each token spells. That is found
//! by one walk per vocabulary; then a table is a copied bitmask and a filtered list.
//!
//! Worked example: token `ab"}` closes the string after two characters. It is allowed for *0 to
//! 17*, not for *3 to 17*, and the place after its quote is in the boundary of the former alone.

use super::set::TokenSet;
use super::tables::{BoundaryId, Tables, TokenTable};
use crate::expr::ExprId;
use crate::machine::{StateId, States};
use crate::vocab::TokenId;

/// How many characters of a string tokens spell.
#[derive(Debug)]
pub struct Lengths {
    /// By number of characters begun: tokens that stay in the string and begin at most so many.
    open: Vec<Box<[u32]>>,
    /// Tokens that end with the quote, by number of characters before it.
    closed: Vec<(u32, TokenId)>,
    /// Places after the quote inside tokens, by number of characters before it.
    exits: Vec<(u32, u32)>,
}

impl Lengths {
    /// Walks the trie beside *any string*, counting.
    pub fn new(caller: &Tables, states: &States) -> Self {
        let trie = caller.vocabulary().trie();
        let (mut open, mut closed, mut exits) = (Vec::new(), Vec::new(), Vec::new());
        walk_string(caller, states, any_string(states), |node, state, chars| {
            let tokens = trie.tokens(node).iter().map(|&token| (chars, token));
            if states.get(state).accepts() {
                closed.extend(tokens);
                exits.extend((trie.subtree_end(node) > node + 1).then_some((chars, node)));
            } else {
                open.extend(tokens);
            }
        });
        exits.sort_unstable_by_key(|&(_, node)| node);
        Self { open: cumulative(open, caller.vocabulary().len()), closed, exits }
    }

    /// The table of a string, between two characters, of which `min` to `max` are left.
    pub fn table(&self, level: &Tables, min: u64, max: Option<u64>) -> TokenTable {
        let fits =
            |chars: u32| u64::from(chars) >= min && max.is_none_or(|max| u64::from(chars) <= max);
        let most = self.open.len() - 1;
        let at = max.map_or(most, |max| usize::try_from(max).unwrap_or(most).min(most));
        let mut words = self.open[at].clone();
        for &(_, id) in self.closed.iter().filter(|(chars, _)| fits(*chars)) {
            words[id as usize / 32] |= 1 << (id % 32);
        }
        let nodes: Vec<u32> =
            self.exits.iter().filter(|(chars, _)| fits(*chars)).map(|&(_, node)| node).collect();
        let exits = (!nodes.is_empty()).then(|| (None, level.intern(nodes)));
        TokenTable {
            inside: TokenSet::from_words(words),
            shared: None,
            exits: exits.into_iter().collect(),
            at_exits: None,
        }
    }
}

/// The state of *any string* between two characters.
pub fn any_string(states: &States) -> StateId {
    let quote = states.start_string(ExprId::ANY).map(|start| start.state);
    quote.map_or(StateId::DEAD, |quote| states.step(quote, b'"'))
}

/// Walks the trie beside a string from `body`, between two characters, to its quote: `visit` gets each node at which
/// it is alive, the state there, and how many characters were begun.
pub fn walk_string(
    tables: &Tables,
    states: &States,
    body: StateId,
    mut visit: impl FnMut(u32, StateId, u32),
) {
    let trie = tables.vocabulary().trie();
    let mut todo = vec![(BoundaryId::ROOT.0, body, 0u32)];
    while let Some((node, state, chars)) = todo.pop() {
        let (bytes, children) = trie.children(node);
        for (&byte, &child) in bytes.iter().zip(children) {
            let next = states.step(state, byte);
            if !next.is_live() {
                continue;
            }
            if states.get(next).accepts() {
                visit(child, next, chars);
                continue;
            }
            let begun = chars + u32::from(state == body);
            visit(child, next, begun);
            todo.push((child, next, begun));
        }
    }
}

/// Bitmasks of the tokens with at most 0, 1, 2, ... characters.
pub fn cumulative(tokens: Vec<(u32, TokenId)>, len: usize) -> Vec<Box<[u32]>> {
    let most = tokens.iter().map(|&(chars, _)| chars).max().unwrap_or(0);
    let mut by_length: Vec<Vec<TokenId>> = vec![Vec::new(); most as usize + 1];
    for (chars, id) in tokens {
        by_length[chars as usize].push(id);
    }
    let mut words = vec![0u32; len.div_ceil(32)].into_boxed_slice();
    let fill = |ids: Vec<TokenId>| {
        for id in ids {
            words[id as usize / 32] |= 1 << (id % 32);
        }
        words.clone()
    };
    by_length.into_iter().map(fill).collect()
}
