//! Ambiguity costs nothing more as a text grows: counted in steps of closures and in nodes.

use super::{Output, Sequence};
use crate::syntax::Syntax;
use crate::vocab::{Token, Vocabulary};
use crate::{Constraint, Grammar, schema};

/// Left recursion, empty rules, cycles, and several ways to read everything.
const AMBIGUOUS: &[&str] = &[
    "root ::= A\nA ::= D C\nB ::= C \"b\" A\nC ::= D\nD ::= \"\" | A B | \"a\" D",
    "root ::= root root | \"a\"",
    "root ::= root root root | root root | \"a\" | \"\"",
    "root ::= \"a\" root root | \"a\"",
    "root ::= \"a\" root? \"b\"? | root \"a\" root?",
    "root ::= \"a\" root \"a\" root | \"a\" root | \"a\"",
    "root ::= (\"a\" | \"aa\" | \"a\" root)*",
    "root ::= A | B\nA ::= B root | \"a\"\nB ::= root A | \"a\" | \"\"",
    "root ::= root \"a\" root | root root \"a\" | \"a\" root \"a\" | \"a\"?",
];

/// Most steps of one closure, whatever came before.
const STEPS: usize = 150;

/// Most new nodes of stacks per letter.
const NODES: usize = 60;

#[test]
fn ambiguity_does_not_grow_with_the_text() {
    let tokens = vec![Token::Text(b"a".as_slice().into()), Token::Special("<end>".into())];
    let vocabulary = Vocabulary::new(tokens, vec![1]).unwrap();
    for text in AMBIGUOUS {
        let grammar = Grammar::from_text(text, Syntax::Gbnf, &schema::Options::default()).unwrap();
        let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
        let program = &constraint.basis().program;
        let (mut sequence, mut from, mut to) = (Sequence::new(), Vec::new(), Vec::new());
        sequence.begin(program, &mut from);
        let (mut most, mut sizes) = (0, Vec::new());
        for _ in 0..2_000 {
            sequence.step(program, &from, b'a', Output::Unknown, &mut to);
            std::mem::swap(&mut from, &mut to);
            sequence.check().unwrap_or_else(|error| panic!("{error}: {text}"));
            assert!(!from.is_empty(), "{text}");
            most = most.max(sequence.steps());
            sizes.push(sequence.stacks.size());
        }
        let grown = (sizes[1_999] - sizes[99]) / 1_900;
        eprintln!("{most} steps, {grown} nodes per letter: {text}");
        assert!(most <= STEPS && grown <= NODES, "{most} steps, {grown} nodes: {text}");
    }
}
