//! Tables of pieces of a document.
//!
//! A state of a document's automaton is as wide as the document is rich near its start, and as narrow as
//! one character soon after. The automaton walks the trie itself, by code points, so that of the
//! thousands of pieces that tokens spell none becomes a state of its own before it is reached.
//!
//! Worked example: the document `see Section 4` and the tokens `S`, `Sec`, `Set`, `tion`, `4"`. From the
//! start the automaton goes along `S`, `Sec` and `tion`; after `Se` it knows only `c`. At `4` the
//! piece may end, so the quote after it is an exit, and the token `4"` is inside. As with literals,
//! an escape may spell any character: where a token goes on with `\`, the state of that piece is
//! made after all and walks on.
//!
//! Cost: of the trie's children of a node and the document's edges of a state, whichever are fewer,
//! one look-up each, wherever a token and the document agree.

use super::tables::{BoundaryId, Tables, TokenTable};
use super::walk::Walk;
use crate::expr::Span;
use crate::machine::state::{Content, Spelling};
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
    let mut node = boundary.single()?;
    let (expr, quote) = match *states.get(state).content() {
        Content::Between(Spelling::Json, expr) => (expr, false),
        Content::Quote(expr) => (expr, true),
        _ => return None,
    };
    let trie = caller.vocabulary().trie();
    let mut walk = Walk::new(caller, states);
    let escapes = states.level_exprs(state, |exprs| {
        let span = exprs.as_span(expr)?;
        if quote {
            let Some(inside) = trie.child(node, b'"') else { return Some(Vec::new()) };
            node = inside;
            walk.inside.extend_from_slice(trie.tokens(node));
        }
        let mut pieces =
            Pieces { trie, todo: Vec::new(), path: String::new(), escapes: Vec::new() };
        pieces.walk(node, span, &mut walk);
        Some(pieces.escapes)
    })?;
    let start = if quote { states.step(state, b'"') } else { state };
    for (node, text) in escapes {
        let prefix = text.as_bytes().iter().chain(b"\\");
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

/// A place in tokens that a piece led to.
struct Reached<'a> {
    node: u32,
    span: Span<'a>,
    /// Bytes of the path before its last character.
    before: usize,
    last: Option<char>,
}

/// A document beside the trie.
struct Pieces<'a> {
    trie: &'a Trie,
    todo: Vec<Reached<'a>>,
    /// The piece that led to where the walk is.
    path: String,
    /// Where a token goes on with a backslash, and the piece before it.
    escapes: Vec<(u32, String)>,
}

impl<'a> Pieces<'a> {
    fn walk(&mut self, node: u32, span: Span<'a>, walk: &mut Walk<'_>) {
        self.todo.push(Reached { node, span, before: 0, last: None });
        while let Some(Reached { node, span, before, last }) = self.todo.pop() {
            self.path.truncate(before);
            self.path.extend(last);
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
            if self.trie.child(node, b'\\').is_some() {
                self.escape(node, span);
            }
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
                b'\\' => self.escape(node, span),
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
                        self.arrive(child, next, byte.into());
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
        self.arrive(node, next, c);
    }

    fn arrive(&mut self, node: u32, span: Span<'a>, last: char) {
        if self.goes_on(node) {
            self.todo.push(Reached { node, span, before: self.path.len(), last: Some(last) });
        }
    }

    /// A token goes on with a backslash after `node`, which may spell any character.
    fn escape(&mut self, node: u32, span: Span<'a>) {
        if !span.edges().is_empty() {
            self.escapes.push((node, self.path.clone()));
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
