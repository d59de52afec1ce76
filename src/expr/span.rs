//! Pieces of a document as expressions.
//!
//! [`Node::Span`] is a state of the document's suffix automaton: what may follow a piece so that it
//! stays one. Its derivatives are the automaton's edges, it is never empty, and its lengths are all
//! numbers from none (but for the start, which wants a character) to the longest way to the end of the
//! document. So nothing about it has to be searched for.
//!
//! Worked example: the pieces of `abc`. After `b` the expression is the state of `b`, with one
//! transition, `c`. The intersection with `.{2,}` is not empty after `b`, since the lengths that are
//! left are 0 and 1; after `bc` it is the empty string, and after `c` nothing.
use super::node::{Exprs, Node, UNBOUNDED};
use super::suffix::{Automaton, State};
use super::{Document, ExprId, Transition};

/// A state of a document, as far as an expression is nothing but that and bounds of its length.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    automaton: &'a Automaton,
    state: State,
    min: u64,
    max: u64,
}

impl<'a> Span<'a> {
    /// Whether the piece may end here.
    #[inline]
    pub fn accepts(self) -> bool {
        self.min == 0 && self.state != Automaton::START
    }

    /// The code points that may follow if lengths allow it, ascending.
    #[inline]
    pub fn edges(self) -> &'a [(u32, u32)] {
        self.automaton.edges(self.state)
    }

    /// What is left after the code point of an edge.
    #[inline]
    pub fn follow(self, edge: (u32, u32)) -> Option<Self> {
        self.to(edge.1)
    }

    /// What is left after a code point.
    #[inline]
    pub fn step(self, point: u32) -> Option<Self> {
        self.to(self.automaton.step(self.state, point)?)
    }

    #[inline]
    fn to(self, state: State) -> Option<Self> {
        let (min, max) = (self.min.saturating_sub(1), self.max);
        let max = if max == UNBOUNDED { max } else { max.checked_sub(1)? };
        let enough = u64::from(self.automaton.longest(state)) >= min;
        enough.then_some(Self { state, min, max, ..self })
    }
}

impl Exprs {
    /// The pieces of a document that have at least one code point.
    pub fn span(&mut self, document: &Document) -> ExprId {
        if document.is_unknown() {
            return self.repeat(ExprId::ANY_CHAR, 1, None);
        }
        if document.text().is_empty() {
            return ExprId::NEVER;
        }
        let known = self.documents.iter().position(|known| known.same(document));
        let index = known.unwrap_or_else(|| {
            self.documents.push(document.clone());
            self.documents.len() - 1
        });
        self.span_from(super::intern::id(index), Automaton::START)
    }

    /// The document that expressions are pieces of; the first, should there be several.
    pub fn document(&self) -> Option<&Document> {
        self.documents.first()
    }

    /// What may follow in a document's automaton.
    fn span_from(&mut self, document: u32, state: State) -> ExprId {
        let max = self.documents[document as usize].automaton().longest(state);
        let min = u64::from(state == Automaton::START);
        self.add_leaf(Node::Span(document, state), min, max.into())
    }

    /// An expression that is a piece of a document, with bounds of its length or without, and
    /// nothing else.
    pub fn as_span(&self, expr: ExprId) -> Option<Span<'_>> {
        let of = |part: ExprId, min, max| match self.node(part) {
            Node::Span(document, state) => {
                let automaton = self.documents[document as usize].automaton();
                Some(Span { automaton, state, min, max })
            }
            _ => None,
        };
        match self.node(expr) {
            Node::Span(..) => of(expr, 0, UNBOUNDED),
            Node::And(list) => {
                let &[a, b] = self.lists.get(list) else { return None };
                let bounds = |part: ExprId| match self.counts(part) {
                    (ExprId::ANY_CHAR, min, max) => Some((min, max)),
                    _ => None,
                };
                match (bounds(a), bounds(b)) {
                    (Some((min, max)), None) => of(b, min, max),
                    (None, Some((min, max))) => of(a, min, max),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Appends the runs of a state of a document: one for each code point that may follow.
    pub(super) fn span_runs(&mut self, document: u32, state: State) {
        let automaton = self.documents[document as usize].automaton();
        let edges = automaton.edges(state).to_vec();
        for (point, target) in edges {
            let target = self.span_from(document, target);
            self.runs.push(Transition { first: point, last: point, target });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Fuel;

    const TEXT: &str = "Total: 17.50 EUR, paid 2024-05-17.\nNo. 5 \u{e9}\u{1f600}\"x\\";

    fn holds(build: impl Fn(&mut Exprs, ExprId) -> ExprId, texts: &[(&str, bool)]) {
        let mut exprs = Exprs::new();
        let document = Document::new(TEXT).unwrap();
        let span = exprs.span(&document);
        let expr = build(&mut exprs, span);
        let fuel = &mut Fuel::new(1_000_000);
        for &(text, expected) in texts {
            assert_eq!(exprs.matches(expr, text, fuel).unwrap(), expected, "{text:?}");
        }
        // What is alive can be completed: each live derivative has a string.
        let any = !exprs.is_never(expr, fuel).unwrap();
        assert_eq!(any, texts.iter().any(|text| text.1));
    }

    #[test]
    fn pieces_and_what_they_are_intersected_with() {
        holds(|_, span| span, &[("17.50", true), ("", false), ("17,50", false), (TEXT, true)]);
        holds(
            |exprs, span| {
                let lengths = exprs.repeat(ExprId::ANY_CHAR, 2, Some(4));
                exprs.and(&[span, lengths])
            },
            &[("EUR", true), ("E", false), ("Total", false), ("\u{e9}\u{1f600}", true)],
        );
        holds(
            |exprs, span| {
                let digits = exprs.class(&[('0', '9')]);
                let (four, two) =
                    (exprs.repeat(digits, 4, Some(4)), exprs.repeat(digits, 2, Some(2)));
                let dash = exprs.literal("-");
                let date = exprs.concat(&[four, dash, two, dash, two]);
                exprs.and(&[span, date])
            },
            &[("2024-05-17", true), ("2024-05-18", false), ("2024", false)],
        );
        holds(
            |exprs, span| {
                let words = exprs.literals(&["EUR", "USD"]);
                exprs.and(&[span, words])
            },
            &[("EUR", true), ("USD", false), ("paid", false)],
        );
        holds(
            |exprs, span| {
                let lengths = exprs.repeat(ExprId::ANY_CHAR, 500, None);
                exprs.and(&[span, lengths])
            },
            &[(TEXT, false), ("EUR", false)],
        );
        holds(|exprs, span| exprs.not(span), &[("USD", true), ("EUR", false), ("", true)]);
    }

    #[test]
    fn lengths_are_known_without_a_search() {
        let mut exprs = Exprs::new();
        let document = Document::new(&"ab".repeat(10_000)).unwrap();
        let span = exprs.span(&document);
        let window = exprs.repeat(ExprId::ANY_CHAR, 19_990, Some(30_000));
        let both = exprs.and(&[span, window]);
        let fuel = &mut Fuel::new(100);
        assert_eq!(exprs.lengths(both, fuel).unwrap(), Some((19_990, Some(20_000))));
        assert_eq!(exprs.span(&Document::new("").unwrap()), ExprId::NEVER);
        // The same text is the same expression.
        assert_eq!(exprs.span(&Document::new(&"ab".repeat(10_000)).unwrap()), span);
    }

    #[test]
    fn a_match_is_found_by_going_along_one_piece() {
        let mut exprs = Exprs::new();
        let text: String =
            (0..3_000).map(|i| format!("Sentence number {i} says that nothing is new. ")).collect();
        let document = Document::new(&text).unwrap();
        let span = exprs.span(&document);
        let (upper, dot) = (exprs.class(&[('A', 'Z')]), exprs.literal("."));
        let inside = exprs.class(&[('\0', '-'), ('/', '\u{10ffff}')]);
        let inside = exprs.repeat(inside, 25, None);
        let sentence = exprs.concat(&[upper, inside, dot]);
        let both = exprs.and(&[span, sentence]);
        assert!(!exprs.is_never(both, &mut Fuel::new(5_000)).unwrap());
        // What is nowhere is found to be so, in the end.
        let question = exprs.literal("?");
        let question = exprs.concat(&[upper, ExprId::ANY, question]);
        let none = exprs.and(&[span, question]);
        assert!(exprs.is_never(none, &mut Fuel::new(20_000_000)).unwrap());
    }

    #[test]
    fn the_view_steps_as_the_expression_does() {
        let mut exprs = Exprs::new();
        let document = Document::new("abcabd").unwrap();
        let span = exprs.span(&document);
        let window = exprs.repeat(ExprId::ANY_CHAR, 3, Some(4));
        let both = exprs.and(&[span, window]);
        let fuel = &mut Fuel::new(10_000);
        let mut todo = vec![both];
        while let Some(expr) = todo.pop() {
            let runs = exprs.transitions(expr, fuel).unwrap().to_vec();
            // Where nothing is left but lengths, it is no span any more.
            let Some(view) = exprs.as_span(expr) else { continue };
            let edges = view.edges().iter().filter(|edge| view.follow(**edge).is_some());
            let points: Vec<u32> = edges.map(|edge| edge.0).collect();
            assert_eq!(points, runs.iter().map(|run| run.first).collect::<Vec<_>>());
            assert_eq!(view.accepts(), exprs.nullable(expr));
            todo.extend(runs.iter().map(|run| run.target));
        }
    }
}
