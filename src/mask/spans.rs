//! Tables of pieces of a document.
//!
//! A state of a document's automaton is as wide as the document is rich near its start, and as narrow as
//! one character soon after. The automaton walks the trie itself, by code points, so that of the
//! thousands of pieces that tokens spell none becomes a state of its own before it is reached.
//!
//! Worked example: the document `see Section 4` and the tokens `S`, `Sec`, `Set`, `tion`, `4"`. From the
//! start the automaton goes along `S`, `Sec` and `tion`; after `Se` it knows only `c`. At `4` the
//! piece may end, so the quote after it is an exit, and the token `4"` is inside. An escape may spell
//! any character: where a token goes on with `\`, the walk goes on behind the escapes of the edges, too.
//!
//! Cost: of the trie's children of a node and the document's edges of a state, whichever are fewer,
//! one look-up each, wherever a token and the document agree.

use super::escapes::Escapes;
use super::tables::{BoundaryId, Tables, TokenTable};
use super::walk::Walk;
use crate::expr::Span;
use crate::machine::state::Spelling;
use crate::machine::{StateId, States};
use crate::vocab::Trie;

/// The table of a state that is a piece of a document over one place in tokens; `None` for other states.
pub fn table(
    level: &Tables,
    caller: &Tables,
    states: &States,
    boundary: BoundaryId,
    state: StateId,
) -> Option<TokenTable> {
    let mut walk = Walk::new(caller, states);
    let (place, spelling, expr) = walk.open(boundary, state)?;
    if spelling != Spelling::Json {
        return None;
    }
    states.level_exprs(state, |exprs| {
        let span = exprs.as_span(expr)?;
        let mut pieces = Pieces { trie: caller.vocabulary().trie(), todo: Vec::new() };
        for &node in place.iter().flat_map(|place| caller.nodes(states, place)) {
            pieces.walk(node, span, &mut walk);
        }
        Some(())
    })?;
    Some(walk.finish(level))
}

/// A document beside the trie.
struct Pieces<'a> {
    trie: &'a Trie,
    /// Places in tokens, each with what is left of the piece that led there.
    todo: Vec<(u32, Span<'a>)>,
}

impl<'a> Pieces<'a> {
    fn walk(&mut self, node: u32, span: Span<'a>, walk: &mut Walk<'_>) {
        self.todo.push((node, span));
        while let Some((node, span)) = self.todo.pop() {
            let (edges, (bytes, _)) = (span.edges(), self.trie.children(node));
            // Every byte above 0x7F is a part of characters that only the document knows.
            let ascii = bytes.partition_point(|&byte| byte < 0x80);
            let plain = match ascii < bytes.len() {
                true => edges.partition_point(|edge| edge.0 < 0x80),
                false => edges.len(),
            };
            for &edge in &edges[plain..] {
                self.spell(node, edge, span, walk);
            }
            if plain * 4 >= ascii {
                self.merge(node, &edges[..plain], ascii, span, walk);
                continue;
            }
            for &edge in &edges[..plain] {
                self.spell(node, edge, span, walk);
            }
            if let Some(quote) = self.trie.child(node, b'"') {
                self.close(quote, span, walk);
            }
            self.escape(node, span, walk);
        }
    }

    /// Goes by each ASCII child of a node that is also an edge; both are ascending.
    fn merge(
        &mut self,
        node: u32,
        edges: &[(u32, u32)],
        ascii: usize,
        span: Span<'a>,
        walk: &mut Walk<'_>,
    ) {
        let mut rest = edges;
        let (bytes, children) = self.trie.children(node);
        for (&byte, &child) in bytes[..ascii].iter().zip(children) {
            match byte {
                b'"' => self.close(child, span, walk),
                b'\\' => self.escape(node, span, walk),
                0..b' ' => {}
                _ => {
                    let point = u32::from(byte);
                    let before = match rest.len() > 16 * ascii {
                        true => rest.partition_point(|edge| edge.0 < point),
                        false => rest.iter().take_while(|edge| edge.0 < point).count(),
                    };
                    rest = &rest[before..];
                    let edge = rest.first().filter(|edge| edge.0 == point);
                    if let Some(next) = edge.and_then(|&edge| span.follow(edge)) {
                        walk.inside.extend_from_slice(self.trie.tokens(child));
                        self.arrive(child, next);
                    }
                }
            }
        }
    }

    /// Follows the bytes of a character; tokens may end inside it.
    fn spell(&mut self, node: u32, edge: (u32, u32), span: Span<'a>, walk: &mut Walk<'_>) {
        let raw = |&c: &char| c >= ' ' && c != '"' && c != '\\';
        let Some(c) = char::from_u32(edge.0).filter(raw) else { return };
        let Some(next) = span.follow(edge) else { return };
        let mut node = node;
        for &byte in c.encode_utf8(&mut [0; 4]).as_bytes() {
            let Some(child) = self.trie.child(node, byte) else { return };
            node = child;
            walk.inside.extend_from_slice(self.trie.tokens(node));
        }
        self.arrive(node, next);
    }

    fn arrive(&mut self, node: u32, span: Span<'a>) {
        if self.goes_on(node) {
            self.todo.push((node, span));
        }
    }

    /// Walks by the escapes of the next character.
    fn escape(&mut self, node: u32, span: Span<'a>, walk: &mut Walk<'_>) {
        let follow = |&edge: &(u32, u32)| Some((char::from_u32(edge.0)?, span.follow(edge)?));
        let mut edges = span.edges().iter().filter_map(follow).peekable();
        if edges.peek().is_none() {
            return;
        }
        let Some(escapes) = Escapes::at(self.trie, node, walk) else { return };
        for (character, next) in edges {
            for node in escapes.spell(self.trie, character, walk) {
                self.arrive(node, next);
            }
        }
    }

    /// The quote at `quote` ends the piece, if it may end there.
    fn close(&self, quote: u32, span: Span<'a>, walk: &mut Walk<'_>) {
        if !span.accepts() {
            return;
        }
        walk.inside.extend_from_slice(self.trie.tokens(quote));
        if self.goes_on(quote) {
            walk.exits.push((None, quote));
        }
    }

    fn goes_on(&self, node: u32) -> bool {
        self.trie.subtree_end(node) > node + 1
    }
}
