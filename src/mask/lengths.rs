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
        let vocabulary = caller.vocabulary();
        let trie = vocabulary.trie();
        let quote = states.start_string(ExprId::ANY).map(|start| start.state);
        let body = quote.map_or(StateId::DEAD, |quote| states.step(quote, b'"'));
        let (mut open, mut closed, mut exits) = (Vec::new(), Vec::new(), Vec::new());
        let mut todo = vec![(BoundaryId::ROOT.0, body, 0u32)];
        while let Some((node, state, chars)) = todo.pop() {
            let (bytes, children) = trie.children(node);
            for (&byte, &child) in bytes.iter().zip(children) {
                let next = states.step(state, byte);
                if !next.is_live() {
                    continue;
                }
                let tokens = trie.tokens(child).iter().copied();
                if states.get(next).accepts() {
                    closed.extend(tokens.map(|token| (chars, token)));
                    exits.extend((trie.subtree_end(child) > child + 1).then_some((chars, child)));
                    continue;
                }
                let begun = chars + u32::from(state == body);
                open.extend(tokens.map(|token| (begun, token)));
                todo.push((child, next, begun));
            }
        }
        exits.sort_unstable_by_key(|&(_, node)| node);
        Self { open: cumulative(open, vocabulary.len()), closed, exits }
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

/// Bitmasks of the tokens with at most 0, 1, 2, ... characters.
fn cumulative(tokens: Vec<(u32, TokenId)>, len: usize) -> Vec<Box<[u32]>> {
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
