//! Random grammars: masks against brute force with the reference matcher, and no dead ends.
//!
//! Small pieces over a small alphabet meet in all ways: nullable repetitions, alternatives with common
//! beginnings, separators that items can contain, recursion behind a byte.

mod oracle;
mod support;

use constrain::grammar::{Grammar, Node, NodeId, Terminal};
use constrain::vocab::{Token, Vocabulary};
use constrain::{Constraint, Limits, TokenId};
use oracle::Oracle;
use proptest::prelude::*;
use support::Random;

/// A grammar as a tree.
#[derive(Debug, Clone)]
enum Tree {
    Literal(String),
    /// Any of `ab`, so many times.
    Letters(u64, Option<u64>),
    /// A JSON string of at most so many characters.
    Quoted(u64),
    Empty,
    Never,
    Seq(Vec<Tree>),
    Alt(Vec<Tree>),
    Repeat(Box<Tree>, Option<Box<Tree>>, u64, Option<u64>),
    /// A byte, then the whole grammar again or nothing.
    Again(char),
}

fn tree() -> impl Strategy<Value = Tree> {
    let most = |min: u64| proptest::option::of(min..min + 3);
    let leaf = prop_oneof![
        4 => "[abé\"]{1,3}".prop_map(Tree::Literal),
        2 => (0u64..3).prop_flat_map(move |min| most(min).prop_map(move |max| Tree::Letters(min, max))),
        1 => (0u64..3).prop_map(Tree::Quoted),
        1 => Just(Tree::Empty),
        1 => Just(Tree::Never),
        1 => prop_oneof![Just('a'), Just('(')].prop_map(Tree::Again),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let item = (inner.clone(), proptest::option::of(inner.clone()), 0u64..3);
        prop_oneof![
            3 => proptest::collection::vec(inner.clone(), 1..4).prop_map(Tree::Seq),
            3 => proptest::collection::vec(inner, 1..4).prop_map(Tree::Alt),
            2 => item.prop_flat_map(move |(item, separator, min)| {
                let (item, separator) = (Box::new(item), separator.map(Box::new));
                most(min).prop_map(move |max| Tree::Repeat(item.clone(), separator.clone(), min, max))
            }),
        ]
    })
}

fn build(grammar: &mut Grammar, tree: &Tree, root: NodeId) -> NodeId {
    let text = |expr| Node::Terminal(Terminal::Text(expr));
    let node = match tree {
        Tree::Literal(literal) => text(grammar.exprs.literal(literal)),
        Tree::Letters(min, max) => {
            let letter = grammar.exprs.class(&[('a', 'b')]);
            text(grammar.exprs.repeat(letter, *min, *max))
        }
        Tree::Quoted(max) => {
            let any = constrain::expr::ExprId::ANY_CHAR;
            Node::Terminal(Terminal::String(grammar.exprs.repeat(any, 0, Some(*max))))
        }
        Tree::Empty => Node::Empty,
        Tree::Never => Node::Never,
        Tree::Seq(parts) => {
            Node::Seq(parts.iter().map(|part| build(grammar, part, root)).collect())
        }
        Tree::Alt(parts) => {
            Node::Alt(parts.iter().map(|part| build(grammar, part, root)).collect())
        }
        Tree::Repeat(item, separator, min, max) => {
            let item = build(grammar, item, root);
            let separator = separator.as_ref().map(|separator| build(grammar, separator, root));
            Node::Repeat { item, separator, min: *min, max: *max }
        }
        Tree::Again(byte) => {
            let byte = text(grammar.exprs.literal(&byte.to_string()));
            let byte = grammar.add(byte);
            let empty = grammar.add(Node::Empty);
            let rest = grammar.add(Node::Alt(vec![root, empty]));
            Node::Seq(vec![byte, rest])
        }
    };
    grammar.add(node)
}

fn vocabulary() -> Vocabulary {
    let pieces = [
        "a", "b", "é", "\"", "(", "\\", "u", "0", "ab", "ba", "aa", "a\"", "\"a", "\"\"", "é\"",
        "aab", "b(", "((", "\\u", "00",
    ];
    let mut tokens: Vec<Token> =
        pieces.iter().map(|piece| Token::Text(piece.as_bytes().into())).collect();
    tokens.extend([&b"\xC3"[..], b"\xA9", b"\xA9a"].map(|bytes| Token::Text(bytes.into())));
    tokens.push(Token::Special("<end>".into()));
    let end = tokens.len() as TokenId - 1;
    Vocabulary::new(tokens, vec![end]).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn masks_of_random_grammars(tree in tree(), seed in any::<u64>()) {
        let mut grammar = Grammar::new(Limits::default());
        let root = grammar.reserve();
        let top = build(&mut grammar, &tree, root);
        grammar.define(root, top);
        grammar.set_root(root);
        let vocabulary = vocabulary();
        let mut oracle = Oracle::new(&grammar);
        let constraint = Constraint::new(&grammar, &vocabulary);
        let Some(start) = oracle.start() else {
            prop_assert!(constraint.is_err(), "nothing matches, but it compiles");
            return Ok(());
        };
        let constraint = constraint.unwrap();
        let mut random = Random(seed | 1);
        for _ in 0..3 {
            let (mut matcher, mut state, mut text) = (constraint.matcher(), start, Vec::new());
            for _ in 0..12 {
                let mut expected: Vec<TokenId> = vocabulary
                    .text_tokens()
                    .filter(|(_, bytes)| oracle.read(state, bytes).is_some())
                    .map(|(id, _)| id)
                    .collect();
                if oracle.is_complete(state) {
                    expected.extend(vocabulary.end_tokens());
                }
                expected.sort_unstable();
                if oracle.gave_up() {
                    return Ok(());
                }
                let mask: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
                prop_assert_eq!(&mask, &expected, "after {:?}", String::from_utf8_lossy(&text));
                prop_assert_eq!(matcher.can_stop(), oracle.is_complete(state));
                let texts: Vec<TokenId> =
                    mask.into_iter().filter(|&id| vocabulary.bytes(id).is_some()).collect();
                if texts.is_empty() {
                    break;
                }
                let id = texts[random.below(texts.len())];
                let bytes = vocabulary.bytes(id).unwrap();
                matcher.accept(id).unwrap();
                state = oracle.read(state, bytes).unwrap();
                text.extend_from_slice(bytes);
            }
        }
    }
}
