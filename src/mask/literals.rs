//! Tables of literals: the keys of an object, the strings of an enum.
//!
//! The strings are sorted, so those with a common prefix are a range. Ranges walk the trie by the
//! bytes of the strings, without making a state per prefix: of the hundreds of prefixes of an
//! object's keys only those that are reached ever become states.
//!
//! Worked example: the keys `id` and `name`, after the quote, and the tokens `i`, `id`, `id":`, `n`,
//! `\u`. By `i` and `d` the range of `id` walks to the tokens `i` and `id`. There the string is
//! complete: the quote after it is an exit, at which `id":` goes on. An escape may spell any
//! character, so where a token goes on with `\`, the state of that prefix is made after all and
//! walks on.
//!
//! Cost: one look-up in the trie per byte that a token has too.

use super::tables::{BoundaryId, Tables, TokenTable};
use super::walk::Walk;
use crate::expr::{Exprs, LiteralId};
use crate::machine::state::{Content, Spelling};
use crate::machine::{StateId, States};
use crate::vocab::Trie;

/// The strings `lo..hi`, whose first `depth` bytes led to `node`.
#[derive(Debug, Clone, Copy)]
struct Place {
    node: u32,
    lo: usize,
    hi: usize,
    depth: usize,
}

/// The table of a state of literals over one place in tokens; `None` for other states.
pub fn table(
    level: &Tables,
    caller: &Tables,
    states: &States,
    boundary: BoundaryId,
    state: StateId,
) -> Option<TokenTable> {
    let mut node = boundary.single()?;
    let (spelling, expr, quote) = match *states.get(state).content() {
        Content::Between(spelling, expr) => (spelling, expr, false),
        Content::Quote(expr) => (Spelling::Json, expr, true),
        _ => return None,
    };
    let trie = caller.vocabulary().trie();
    let mut walk = Walk::new(caller, states);
    let escapes = states.level_exprs(state, |exprs| {
        let (ids, offset) = exprs.literal_tails(expr)?;
        if quote {
            let Some(inside) = trie.child(node, b'"') else { return Some((Vec::new(), offset)) };
            node = inside;
            walk.inside.extend_from_slice(trie.tokens(node));
        }
        let mut literals = Literals { exprs, trie, ids: &ids, spelling, escapes: Vec::new() };
        literals.walk(Place { node, lo: 0, hi: ids.len(), depth: offset }, &mut walk);
        let Literals { escapes, .. } = literals;
        let text = |place: Place| exprs.literal_text(ids[place.lo])[..place.depth].to_owned();
        let escapes = escapes.into_iter().map(|place| (place.node, text(place)));
        Some((escapes.collect::<Vec<_>>(), offset))
    });
    let (escapes, offset) = escapes?;
    let start = if quote { states.step(state, b'"') } else { state };
    for (node, text) in escapes {
        let prefix = text.as_bytes()[offset..].iter().chain(b"\\");
        let step = |state: StateId, &byte| {
            if state.is_live() { states.step(state, byte) } else { state }
        };
        let escape = prefix.fold(start, step);
        if let Some(child) = trie.child(node, b'\\') {
            walk.add(child, escape);
        }
    }
    Some(walk.finish(level))
}

/// Strings beside the trie.
struct Literals<'a> {
    exprs: &'a Exprs,
    trie: &'a Trie,
    /// In the order of their texts.
    ids: &'a [LiteralId],
    spelling: Spelling,
    /// Where a token goes on with a backslash.
    escapes: Vec<Place>,
}

impl<'a> Literals<'a> {
    fn byte(&self, id: LiteralId, at: usize) -> Option<u8> {
        self.exprs.literal_text(id).as_bytes().get(at).copied()
    }

    fn walk(&mut self, start: Place, walk: &mut Walk<'_>) {
        let mut todo = vec![start];
        while let Some(mut place) = todo.pop() {
            let depth = place.depth;
            if self.byte(self.ids[place.lo], depth).is_none() {
                self.complete(place, walk);
                place.lo += 1;
            }
            if place.lo == place.hi {
                continue;
            }
            let json = self.spelling == Spelling::Json;
            if json && self.trie.child(place.node, b'\\').is_some() && self.starts_here(place) {
                self.escapes.push(place);
            }
            while let Some(byte) =
                self.ids[place.lo..place.hi].first().and_then(|&id| self.byte(id, depth))
            {
                let same = |&id: &LiteralId| self.byte(id, depth) == Some(byte);
                let hi = place.lo + self.ids[place.lo..place.hi].partition_point(same);
                let raw = !json || !matches!(byte, b'"' | b'\\' | 0..=0x1F);
                if let Some(node) = self.trie.child(place.node, byte).filter(|_| raw) {
                    walk.inside.extend_from_slice(self.trie.tokens(node));
                    if self.goes_on(node) || !json {
                        todo.push(Place { node, lo: place.lo, hi, depth: depth + 1 });
                    }
                }
                place.lo = hi;
            }
        }
    }

    /// Whether a character of the strings starts here (escapes spell whole ones).
    fn starts_here(&self, place: Place) -> bool {
        self.exprs.literal_text(self.ids[place.lo]).is_char_boundary(place.depth)
    }

    /// The first string ends here.
    fn complete(&self, place: Place, walk: &mut Walk<'_>) {
        let (literal, node) = match self.spelling {
            Spelling::Text => (None, Some(place.node)),
            Spelling::Json => (Some(self.ids[place.lo]), self.trie.child(place.node, b'"')),
        };
        let Some(node) = node else { return };
        if self.spelling == Spelling::Json {
            walk.inside.extend_from_slice(self.trie.tokens(node));
        }
        if self.goes_on(node) {
            walk.exits.push((literal, node));
        }
    }

    fn goes_on(&self, node: u32) -> bool {
        self.trie.subtree_end(node) > node + 1
    }
}
