//! Tables of literals: the keys of an object, the strings of an enum.
//!
//! The strings are sorted, so those with a common prefix are a range. Ranges walk the trie by the
//! bytes of the strings, without making a state per prefix: of the hundreds of prefixes of an
//! object's keys only those that are reached ever become states.
//!
//! Worked example: the keys `id` and `name`, after the quote, and the tokens `i`, `id`, `id":`, `n`,
//! `\u`. By `i` and `d` the range of `id` walks to the tokens `i` and `id`. There the string is
//! complete: the quote after it is an exit, at which `id":` goes on. An escape may spell any
//! character, so where a token goes on with `\`, the ways to spell the next character are walked
//! beside it: `\u`, and below it the digits `0069` and `006e`.
//!
//! Cost: one look-up in the trie per byte that a token has too.

use super::escapes::Escapes;
use super::tables::{BoundaryId, Tables, TokenTable};
use super::walk::Walk;
use crate::expr::LiteralId;
use crate::machine::state::Spelling;
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

/// The table of a state of literals over a few places in tokens; `None` for other states.
pub fn table(
    level: &Tables,
    caller: &Tables,
    states: &States,
    boundary: BoundaryId,
    state: StateId,
) -> Option<TokenTable> {
    let mut walk = Walk::new(caller, states);
    let (place, spelling, expr) = walk.open(boundary, state)?;
    states.level_exprs(state, |exprs| {
        let (ids, depth) = exprs.literal_tails(expr)?;
        let trie = caller.vocabulary().trie();
        let texts = ids.iter().map(|&id| (exprs.literal_text(id), id)).collect();
        let mut literals = Literals { trie, texts, spelling, todo: Vec::new() };
        for &node in place.iter().flat_map(|place| caller.nodes(states, place)) {
            literals.walk(Place { node, lo: 0, hi: ids.len(), depth }, &mut walk);
        }
        Some(())
    })?;
    Some(walk.finish(level))
}

/// Strings beside the trie.
struct Literals<'a> {
    trie: &'a Trie,
    /// In order.
    texts: Vec<(&'a str, LiteralId)>,
    spelling: Spelling,
    todo: Vec<Place>,
}

impl<'a> Literals<'a> {
    /// The next byte of the first of the strings at a place.
    fn byte(&self, place: Place) -> Option<u8> {
        self.texts[place.lo].0.as_bytes().get(place.depth).copied()
    }

    fn walk(&mut self, start: Place, walk: &mut Walk<'_>) {
        self.todo.push(start);
        while let Some(mut place) = self.todo.pop() {
            let depth = place.depth;
            if self.byte(place).is_none() {
                self.complete(place, walk);
                place.lo += 1;
            }
            if place.lo == place.hi {
                continue;
            }
            let json = self.spelling == Spelling::Json;
            if json && self.starts_here(place) {
                self.escapes(place, walk);
            }
            while place.lo < place.hi
                && let Some(byte) = self.byte(place)
            {
                let hi = self.group(place, |text| text.as_bytes().get(depth) == Some(&byte));
                let raw = !json || !matches!(byte, b'"' | b'\\' | 0..=0x1F);
                if let Some(node) = self.trie.child(place.node, byte).filter(|_| raw) {
                    walk.inside.extend_from_slice(self.trie.tokens(node));
                    if self.goes_on(node) || !json {
                        self.todo.push(Place { node, lo: place.lo, hi, depth: depth + 1 });
                    }
                }
                place.lo = hi;
            }
        }
    }

    /// One past the last of the strings at a place for which `same` holds, as it does for the first
    /// ones.
    fn group(&self, place: Place, same: impl Fn(&str) -> bool) -> usize {
        let strings = &self.texts[place.lo..place.hi];
        match strings.last() {
            // All of them, mostly.
            Some((last, _)) if same(last) => place.hi,
            _ => place.lo + strings.partition_point(|(text, _)| same(text)),
        }
    }

    /// Walks by the escapes of the next character.
    fn escapes(&mut self, mut place: Place, walk: &mut Walk<'_>) {
        let Some(escapes) = Escapes::at(self.trie, place.node, walk) else { return };
        while place.lo < place.hi {
            let rest = self.texts[place.lo].0.get(place.depth..);
            let Some(next) = rest.and_then(|rest| rest.chars().next()) else { return };
            let same =
                |text: &str| text.get(place.depth..).is_some_and(|rest| rest.starts_with(next));
            let hi = self.group(place, same);
            let after = |node| Place { node, hi, depth: place.depth + next.len_utf8(), ..place };
            self.todo.extend(escapes.spell(self.trie, next, walk).into_iter().map(after));
            place.lo = hi;
        }
    }

    /// Whether a character of the strings starts here (escapes spell whole ones).
    fn starts_here(&self, place: Place) -> bool {
        self.texts[place.lo].0.is_char_boundary(place.depth)
    }

    /// The first string ends here.
    fn complete(&self, place: Place, walk: &mut Walk<'_>) {
        let (literal, node) = match self.spelling {
            Spelling::Text => (None, Some(place.node)),
            Spelling::Json => (Some(self.texts[place.lo].1), self.trie.child(place.node, b'"')),
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
