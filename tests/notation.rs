//! Grammars written down, as GBNF, as drawings and as files: each kind of node comes back meaning the same, or is refused
//! by its name. And grammars that name tokens, which the vocabulary has or has not.

mod support;

use constrain::grammar::{Grammar, Node, NodeId, PropertyOrder, SpecialSpec, Terminal, Whitespace};
use constrain::limits::Cancel;
use constrain::matcher::Drafted;
use constrain::saved::Saved;
use constrain::schema::{self, Options};
use constrain::syntax::Syntax;
use constrain::vocab::{Token, Vocabulary};
use constrain::{Constraint, Kind, Limits, Matcher, TokenId};
use std::sync::Arc;
use support::Random;

/// Single bytes, `<|call|>`, `<|end|>`, and `<|stop|>`, which ends.
fn vocabulary() -> Vocabulary {
    let mut tokens: Vec<Token> = (0..=255u8).map(|byte| Token::Text([byte].into())).collect();
    let names = ["<|call|>", "<|end|>", "<|stop|>"];
    tokens.extend(names.map(|name| Token::Special(name.into())));
    Vocabulary::new(tokens, vec![258]).unwrap()
}

fn gbnf(text: &str) -> Grammar {
    Grammar::from_text(text, Syntax::Gbnf, &Options::default())
        .unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

fn compiled(schema: &str) -> Grammar {
    let options = Options { property_order: PropertyOrder::Any, ..Options::default() };
    schema::compile(schema, &options).unwrap()
}

fn rooted(build: impl FnOnce(&mut Grammar) -> NodeId) -> Grammar {
    let mut grammar = Grammar::new(Limits::default());
    let root = build(&mut grammar);
    grammar.set_root(root);
    grammar
}

fn text(grammar: &mut Grammar, text: &str) -> NodeId {
    let expr = grammar.exprs.literal(text);
    grammar.add(Node::Terminal(Terminal::Text(expr)))
}

fn special(spec: SpecialSpec) -> Grammar {
    rooted(|grammar| grammar.add(Node::Terminal(Terminal::Special(spec))))
}

fn named(name: &str) -> SpecialSpec {
    SpecialSpec::Named(name.to_owned())
}

fn accepts(constraint: &Constraint, text: &str) -> bool {
    let mut matcher = constraint.matcher();
    matcher.accept_bytes(text.as_bytes()).is_ok() && matcher.can_stop()
}

fn allowed(matcher: &mut Matcher) -> Vec<TokenId> {
    matcher.mask().unwrap().iter().collect()
}

/// Walks at random through both constraints, whose masks are to be the same on the way.
fn same(ours: &Constraint, theirs: &Constraint) {
    for walk in 0..6 {
        let mut random = Random(walk * 77 + 3);
        let (mut one, mut other) = (ours.matcher(), theirs.matcher());
        for _ in 0..25 {
            let mask = allowed(&mut one);
            assert_eq!(mask, allowed(&mut other), "after {one:?}");
            let token = mask[random.below(mask.len())];
            if ours.vocabulary().is_end(token) {
                break;
            }
            one.accept(token).unwrap();
            other.accept(token).unwrap();
        }
    }
}

/// `<ab,ab,...>` with so many items.
fn list(min: u64, max: Option<u64>) -> Grammar {
    rooted(|grammar| {
        let (item, comma) = (text(grammar, "ab"), text(grammar, ","));
        let items = grammar.add(Node::Repeat { item, separator: Some(comma), min, max });
        let (open, close) = (text(grammar, "<"), text(grammar, ">"));
        grammar.add(Node::Seq(vec![open, items, close]))
    })
}

#[test]
fn repetitions_with_separators_mean_the_same_as_gbnf() {
    let vocabulary = support::synthetic();
    let counts = [(0, None), (1, None), (2, None), (0, Some(0)), (0, Some(1)), (1, Some(1))];
    for (min, max) in counts.into_iter().chain([(2, Some(2)), (0, Some(3)), (2, Some(4))]) {
        let grammar = list(min, max);
        let printed = grammar.to_gbnf().unwrap();
        let ours = Constraint::new(&grammar, &vocabulary).unwrap();
        let theirs = Constraint::new(&gbnf(&printed), &vocabulary).unwrap();
        for count in 0..6 {
            let text = format!("<{}>", vec!["ab"; count].join(","));
            let right = min <= count as u64 && max.is_none_or(|max| count as u64 <= max);
            assert_eq!(accepts(&ours, &text), right, "{min} to {max:?}: {text}");
            assert_eq!(accepts(&theirs, &text), right, "{text}:\n{printed}");
        }
        for text in ["<,ab>", "<ab,>", "<abab>", "<ab,,ab>"] {
            assert!(!accepts(&ours, text) && !accepts(&theirs, text), "{text}:\n{printed}");
        }
    }
}

#[test]
fn repetitions_mean_the_same_as_they_were_written() {
    for text in ["root ::= \"a\"{2,} [b-d]{1,3}", "root ::= (\"x\" | \"\")+ \"y\"?"] {
        let printed = gbnf(text).to_gbnf().unwrap();
        let (ours, theirs) = (gbnf(text), gbnf(&printed));
        let vocabulary = support::bytes();
        let ours = Constraint::new(&ours, &vocabulary).unwrap();
        same(&ours, &Constraint::new(&theirs, &vocabulary).unwrap());
    }
}

#[test]
fn tokens_mean_the_same_as_gbnf() {
    let vocabulary = vocabulary();
    let texts = [
        "root ::= \"a\" <|call|> <[257]> \"b\"",
        "root ::= (!<|call|>)+ <|call|>",
        "root ::= !<[97]> <|end|>?",
    ];
    for text in texts {
        let printed = gbnf(text).to_gbnf().unwrap();
        let ours = Constraint::new(&gbnf(text), &vocabulary).unwrap();
        same(&ours, &Constraint::new(&gbnf(&printed), &vocabulary).unwrap());
    }
    let first =
        |text: &str| allowed(&mut Constraint::new(&gbnf(text), &vocabulary).unwrap().matcher());
    assert_eq!(first("root ::= <[257]> | <|call|>"), [256, 257]);
    assert!(!first(texts[1]).contains(&256) && first(texts[1]).contains(&97));
    assert!(!first(texts[2]).contains(&97) && first(texts[2]).contains(&98));
}

#[test]
fn what_gbnf_cannot_say_is_refused_by_name() {
    let limited = "start: part\npart[max_tokens=5]: /[a-z]+/\n";
    let limited = Grammar::from_text(limited, Syntax::Lark, &Options::default()).unwrap();
    assert!(limited.clone().without_budgets().to_gbnf().unwrap().contains("[a-z]"));
    let two = SpecialSpec::Not(vec![named("<|call|>"), named("<|end|>")]);
    for (grammar, what) in [
        (limited, "a budget of tokens"),
        (compiled("{}"), "JSON by a schema"),
        (special(named("call")), "\"call\""),
        (special(two), "several tokens"),
    ] {
        let error = grammar.to_gbnf().unwrap_err();
        assert!(matches!(error.kind(), Kind::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn drawings_have_all_nodes_and_edges() {
    let schema = r#"{"type":"object","properties":{
        "a":{"type":"string","maxLength":3},"b":{"type":"integer","minimum":1},
        "c":{"type":"array","items":{"type":"string","format":"date"}},
        "d":{"type":"string","x-constrain":{"max_tokens":5}}}}"#;
    let several = rooted(|grammar| {
        let (a, b) = (text(grammar, "a\\\""), text(grammar, "b"));
        let some = grammar.add(Node::Repeat { item: a, separator: Some(b), min: 0, max: Some(3) });
        let more = grammar.add(Node::Repeat { item: b, separator: None, min: 1, max: None });
        let (never, empty) = (grammar.add(Node::Never), grammar.add(Node::Empty));
        let rule = grammar.add(Node::Rule(some));
        grammar.add(Node::Alt(vec![rule, more, never, empty]))
    });
    let cases: [(Grammar, &[&str]); 5] = [
        (
            compiled(schema),
            &["object", "array", "number", "white space", "within 5 tokens", "Date", "string "],
        ),
        (several, &["choice", "0 to 3", "at least 1", "nothing", "empty", "rule"]),
        (gbnf("root ::= \"a\" <|call|> !<[97]>"), &["sequence", "<|call|>", "!<[97]>"]),
        (special(named("call")), &["token"]),
        (list(2, None), &["sequence", "at least 2"]),
    ];
    for (grammar, labels) in cases {
        let drawing = grammar.to_dot();
        for label in labels {
            assert!(drawing.contains(&format!("[label=\"{label}")), "{label}:\n{drawing}");
        }
        assert!(drawing.starts_with("digraph grammar {") && drawing.ends_with("}\n"));
        // An edge for each child, between nodes that are there.
        for line in drawing.lines().filter(|line| line.contains(" -> ")) {
            for end in line.trim().trim_end_matches(';').split(" -> ") {
                assert!(drawing.contains(&format!("  {end} [label=")), "{line}:\n{drawing}");
            }
        }
    }
}

#[test]
fn files_keep_tokens_separators_and_white_space() {
    let vocabulary = vocabulary();
    let schema = r#"{"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"null"}},
        "dependentRequired":{"a":["b"]},"additionalProperties":false}"#;
    let written = |whitespace| {
        let options =
            Options { whitespace, property_order: PropertyOrder::Any, ..Options::default() };
        schema::compile(schema, &options).unwrap()
    };
    let not = SpecialSpec::Not(vec![named("<|call|>"), SpecialSpec::Id(97)]);
    let grammars = [
        gbnf("root ::= \"a\" <|call|> <[257]> (!<|call|>)*"),
        special(not),
        list(0, Some(3)),
        list(2, None),
        written(Whitespace::Compact),
        written(Whitespace::Pretty(2)),
        written(Whitespace::Flexible),
    ];
    for grammar in grammars {
        let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
        let bytes = constraint.save(b"").unwrap();
        let read = Saved::read(&bytes).unwrap();
        let loaded = read.constraint(&vocabulary, &Limits::default()).unwrap();
        same(&constraint, &loaded);
        assert_eq!(loaded.save(b"").unwrap(), bytes);
    }
}

#[test]
fn all_tokens_but_one_are_all_that_do_not_end() {
    let vocabulary = vocabulary();
    for (grammar, but) in [("root ::= !<[97]> \"x\"", 97), ("root ::= !<|call|> \"x\"", 256)] {
        let constraint = Constraint::new(&gbnf(grammar), &vocabulary).unwrap();
        let expected: Vec<TokenId> = (0..258).filter(|&id| id != but).collect();
        assert_eq!(allowed(&mut constraint.matcher()), expected, "{grammar}");
    }
}

#[test]
fn tokens_that_are_not_there_are_refused() {
    let vocabulary = vocabulary();
    for (spec, what) in [
        (SpecialSpec::Id(259), "259"),
        (named("<|tool|>"), "<|tool|>"),
        (SpecialSpec::Not(vec![named("<|tool|>")]), "<|tool|>"),
        (SpecialSpec::Not(vec![SpecialSpec::Not(vec![named("<|call|>")])]), "double negation"),
    ] {
        let error = Constraint::new(&special(spec), &vocabulary).unwrap_err();
        assert_eq!(*error.kind(), Kind::BadGrammar, "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn compiling_a_constraint_can_be_cancelled() {
    let (grammar, vocabulary) = (Arc::new(compiled("{}")), support::bytes());
    let cancel = Cancel::default();
    let compile = || Constraint::compile(grammar.clone(), &vocabulary, Some(cancel.clone()));
    assert!(compile().is_ok());
    cancel.cancel();
    assert_eq!(*compile().unwrap_err().kind(), Kind::Cancelled);
}

#[test]
fn a_matcher_says_where_it_is_and_refuses_short_buffers() {
    let grammar = compiled(r#"{"enum":["abc","abd"]}"#);
    let constraint = Constraint::new(&grammar, &support::bytes()).unwrap();
    let mut matcher = constraint.matcher();
    assert!(matcher.is_empty() && format!("{constraint:?}").contains("Constraint"));
    matcher.accept_bytes(b"\"ab").unwrap();
    assert!(!matcher.is_empty());
    let shown = format!("{matcher:?}");
    assert!(shown.contains("steps: 1") && shown.contains("bytes: 3"), "{shown}");

    let row = constraint.vocabulary().len().div_ceil(32);
    let error = matcher.fill_bitmask(&mut vec![0; row - 1]).unwrap_err();
    assert_eq!(*error.kind(), Kind::BadArgument, "{error}");
    let mut words = vec![u32::MAX; row + 1];
    matcher.fill_bitmask(&mut words).unwrap();
    let set: Vec<TokenId> = (0..words.len() as u32 * 32)
        .filter(|id| words[*id as usize / 32] >> (id % 32) & 1 == 1)
        .collect();
    assert_eq!(set, allowed(&mut matcher));

    // One thread or several: the same masks.
    let mut matchers = [matcher.fork(), constraint.matcher(), matcher.fork()];
    let (mut one, mut many) = (vec![0; 3 * row], vec![0; 3 * row]);
    constraint.fill_bitmasks(&mut matchers, &mut one, 1).unwrap();
    constraint.fill_bitmasks(&mut matchers, &mut many, 4).unwrap();
    assert_eq!(one, many);
    assert_eq!(one[..row], words[..row]);
}

#[test]
fn a_draft_in_sequence_is_one_token_after_the_other() {
    let grammar = compiled(r#"{"enum":["abc","abd"]}"#);
    let constraint = Constraint::new(&grammar, &support::bytes()).unwrap();
    let row = constraint.vocabulary().len().div_ceil(32);
    let tokens = [b'"', b'a', b'b', b'x', b'c'].map(TokenId::from);
    let draft = Drafted::sequence(&tokens);
    let mut words = vec![0; row * (tokens.len() + 1)];
    let mut matcher = constraint.matcher();
    let taken = matcher.fill_draft_bitmasks(&draft, &mut words).unwrap();
    assert_eq!(taken, [true, true, true, false, false]);
    for (n, words) in words.chunks(row).enumerate() {
        let mut expected = vec![0; row];
        if tokens[..n].iter().all(|&token| matcher.accept(token).is_ok()) {
            matcher.fill_bitmask(&mut expected).unwrap();
        }
        assert_eq!(words, expected, "after {n} tokens");
        matcher.reset();
    }
}

#[test]
fn steps_of_bytes_are_replayed_when_the_cache_starts_afresh() {
    let mut grammar = compiled(r#"{"type":"array","items":{"type":"integer"}}"#);
    let vocabulary = support::synthetic();
    let whole = Constraint::new(&grammar, &vocabulary).unwrap();
    grammar.limits.cache_bytes = 3_000;
    let mut matcher = Constraint::new(&grammar, &vocabulary).unwrap().matcher();
    let steps: Vec<String> = (10..60).map(|n| format!("{n},")).collect();
    matcher.accept_bytes(b"[").unwrap();
    for step in &steps {
        matcher.accept_bytes(step.as_bytes()).unwrap();
        allowed(&mut matcher);
    }
    for left in (0..=steps.len()).rev().step_by(7) {
        matcher.rollback(matcher.len() - 1 - left).unwrap();
        let text = format!("[{}", steps[..left].concat());
        assert_eq!(matcher.text(), text.as_bytes());
        let mut fresh = whole.matcher();
        fresh.accept_bytes(text.as_bytes()).unwrap();
        assert_eq!(allowed(&mut matcher), allowed(&mut fresh), "{text}");
    }
}

#[test]
fn what_cannot_be_planned_has_no_budget() {
    let vocabulary = support::synthetic();
    let constraint =
        Constraint::new(&compiled(r#"{"type":"object","minProperties":400}"#), &vocabulary)
            .unwrap();
    let error = constraint.matcher_within(1_000_000).unwrap_err();
    assert_eq!(*error.kind(), Kind::BudgetTooSmall { min: u64::MAX }, "{error}");
    assert!(error.to_string().contains("can be planned"), "{error}");
}
