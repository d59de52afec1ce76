//! Tests against a matcher that knows no derivatives, of the normal forms, and of hostile input.
use super::*;
use crate::error::Kind;
use crate::limits::Fuel;
use proptest::prelude::*;
use std::collections::{HashMap, VecDeque};

/// An expression as a tree, for the slow matcher.
#[derive(Debug, Clone)]
enum Tree {
    Never,
    Empty,
    AnyChar,
    Class(Vec<char>),
    Literal(String),
    Literals(Vec<String>),
    Concat(Vec<Tree>),
    Or(Vec<Tree>),
    And(Vec<Tree>),
    Not(Box<Tree>),
    Repeat(Box<Tree>, u64, Option<u64>),
}

impl Tree {
    /// Bit `j`: `text[start..j]` matches.
    fn ends(&self, text: &[char], start: usize) -> u32 {
        let all = (1u32 << (text.len() + 1)) - (1 << start);
        let word = |word: &str| {
            let word: Vec<char> = word.chars().collect();
            if text[start..].starts_with(&word) { 1 << (start + word.len()) } else { 0 }
        };
        match self {
            Tree::Never => 0,
            Tree::Empty => 1 << start,
            Tree::AnyChar => u32::from(start < text.len()) << (start + 1),
            Tree::Class(chars) => match text.get(start) {
                Some(c) if chars.contains(c) => 1 << (start + 1),
                _ => 0,
            },
            Tree::Literal(text) => word(text),
            Tree::Literals(texts) => texts.iter().fold(0, |ends, text| ends | word(text)),
            Tree::Concat(parts) => {
                parts.iter().fold(1 << start, |from, part| part.ends_from(text, from))
            }
            Tree::Or(parts) => parts.iter().fold(0, |ends, part| ends | part.ends(text, start)),
            Tree::And(parts) => parts.iter().fold(all, |ends, part| ends & part.ends(text, start)),
            Tree::Not(part) => all & !part.ends(text, start),
            Tree::Repeat(part, min, max) => {
                let mut from = 1 << start;
                let mut ends = 0;
                // After as many rounds as there are code points nothing new comes, but for the
                // minimum: more rounds are needed to reach it.
                for round in 0..=max.unwrap_or(min + text.len() as u64 + 1) {
                    if round >= *min {
                        ends |= from;
                    }
                    from = part.ends_from(text, from);
                }
                ends
            }
        }
    }

    fn ends_from(&self, text: &[char], from: u32) -> u32 {
        (0..=text.len()).filter(|i| from >> i & 1 == 1).fold(0, |e, i| e | self.ends(text, i))
    }

    fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        self.ends(&text, 0) >> text.len() & 1 == 1
    }

    fn build(&self, exprs: &mut Exprs) -> ExprId {
        let all = |exprs: &mut Exprs, parts: &[Tree]| -> Vec<ExprId> {
            parts.iter().map(|part| part.build(exprs)).collect()
        };
        match self {
            Tree::Never => ExprId::NEVER,
            Tree::Empty => ExprId::EPSILON,
            Tree::AnyChar => ExprId::ANY_CHAR,
            Tree::Class(chars) => {
                let ranges: Vec<(char, char)> = chars.iter().map(|&c| (c, c)).collect();
                exprs.class(&ranges)
            }
            Tree::Literal(text) => exprs.literal(text),
            Tree::Literals(texts) => {
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                exprs.literals(&texts)
            }
            Tree::Concat(parts) => {
                let parts = all(exprs, parts);
                exprs.concat(&parts)
            }
            Tree::Or(parts) => {
                let parts = all(exprs, parts);
                exprs.or(&parts)
            }
            Tree::And(parts) => {
                let parts = all(exprs, parts);
                exprs.and(&parts)
            }
            Tree::Not(part) => {
                let part = part.build(exprs);
                exprs.not(part)
            }
            Tree::Repeat(part, min, max) => {
                let part = part.build(exprs);
                exprs.repeat(part, *min, *max)
            }
        }
    }
}

fn tree(boolean: bool) -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        1 => Just(Tree::Never),
        1 => Just(Tree::Empty),
        2 => Just(Tree::AnyChar),
        6 => prop::sample::subsequence(vec!['a', 'b', 'c'], 1..=3).prop_map(Tree::Class),
        3 => "[abc]{0,3}".prop_map(Tree::Literal),
        3 => prop::collection::vec("[abc]{0,3}", 0..6).prop_map(Tree::Literals),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let part = || inner.clone().prop_map(Box::new);
        let plain = prop_oneof![
            4 => prop::collection::vec(inner.clone(), 0..4).prop_map(Tree::Concat),
            4 => prop::collection::vec(inner.clone(), 0..4).prop_map(Tree::Or),
            3 => (part(), 0u64..3, 0u64..4)
                .prop_map(|(part, min, more)| Tree::Repeat(part, min, Some(min + more))),
            3 => (part(), 0u64..3).prop_map(|(part, min)| Tree::Repeat(part, min, None)),
        ];
        if boolean {
            prop_oneof![
                3 => plain,
                1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Tree::And),
                1 => part().prop_map(Tree::Not),
            ]
            .boxed()
        } else {
            plain.boxed()
        }
    })
}

/// All strings of up to `length` of a, b, c and d, which stands for any other code point.
fn texts(length: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut from = 0;
    for _ in 0..length {
        let end = all.len();
        for i in from..end {
            for c in ['a', 'b', 'c', 'd'] {
                all.push(format!("{}{c}", all[i]));
            }
        }
        from = end;
    }
    all
}

/// Shortest string of an expression by its live transitions.
fn witness(exprs: &mut Exprs, expr: ExprId, fuel: &mut Fuel) -> Option<String> {
    let mut queue = VecDeque::from([(expr, String::new())]);
    let mut seen = std::collections::HashSet::from([expr]);
    while let Some((state, text)) = queue.pop_front() {
        if exprs.nullable(state) {
            return Some(text);
        }
        for run in exprs.transitions(state, fuel).unwrap().to_vec() {
            if seen.insert(run.target) {
                let c = char::from_u32(run.first.max(u32::from('a')).min(run.last)).unwrap();
                queue.push_back((run.target, format!("{text}{c}")));
            }
        }
    }
    None
}

fn fuel() -> Fuel {
    Fuel::new(20_000_000)
}

/// Sorted, disjoint, joined, no surrogate, no dead target.
fn check_table(exprs: &mut Exprs, expr: ExprId) -> Result<Vec<Transition>, TestCaseError> {
    let runs = exprs.transitions(expr, &mut fuel()).unwrap().to_vec();
    for run in &runs {
        prop_assert!(run.first <= run.last && run.last <= 0x10_FFFF);
        prop_assert!(run.last < 0xD800 || run.first > 0xDFFF);
        prop_assert!(witness(exprs, run.target, &mut fuel()).is_some());
    }
    for pair in runs.windows(2) {
        prop_assert!(pair[0].last < pair[1].first);
        prop_assert!(pair[0].last + 1 < pair[1].first || pair[0].target != pair[1].target);
    }
    Ok(runs)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        rng_seed: prop::test_runner::RngSeed::Fixed(0x5eed),
        ..ProptestConfig::default()
    })]

    #[test]
    fn agrees_with_the_slow_matcher(tree in tree(true)) {
        let mut exprs = Exprs::new();
        let fuel = &mut fuel();
        let expr = tree.build(&mut exprs);
        let mut any = false;
        for text in texts(5) {
            let expected = tree.matches(&text);
            any |= expected;
            prop_assert_eq!(exprs.matches(expr, &text, fuel).unwrap(), expected, "{:?}", text);
        }
        let never = exprs.is_never(expr, fuel).unwrap();
        prop_assert!(!(never && any));
        match witness(&mut exprs, expr, fuel) {
            Some(text) => prop_assert!(!never && (text.chars().count() > 12 || tree.matches(&text))),
            None => prop_assert!(never),
        }
    }

    #[test]
    fn transitions_are_exact(tree in tree(true)) {
        let mut exprs = Exprs::new();
        let expr = tree.build(&mut exprs);
        check_table(&mut exprs, expr)?;
        // The state after a prefix is NEVER iff nothing goes on from the prefix.
        for text in texts(3) {
            let mut state = expr;
            for c in text.chars() {
                state = exprs.derive(state, c, &mut fuel()).unwrap();
            }
            prop_assert_eq!(exprs.nullable(state), tree.matches(&text));
            match witness(&mut exprs, state, &mut fuel()) {
                Some(rest) => {
                    let whole = format!("{text}{rest}");
                    prop_assert!(whole.len() > 12 || tree.matches(&whole));
                }
                None if text.is_empty() => {
                    prop_assert!(exprs.is_never(state, &mut fuel()).unwrap());
                }
                None => prop_assert_eq!(state, ExprId::NEVER),
            }
        }
    }

    #[test]
    fn lengths_and_lists_are_exact(tree in tree(true)) {
        let mut exprs = Exprs::new();
        let expr = tree.build(&mut exprs);
        let fuel = &mut fuel();
        let texts: Vec<String> = texts(5).into_iter().filter(|t| tree.matches(t)).collect();
        let lengths = exprs.lengths(expr, fuel).unwrap();
        let listed = exprs.enumerate(expr, 3000, fuel).unwrap();
        match lengths {
            None => prop_assert!(texts.is_empty() && listed == Some(Vec::new())),
            Some((min, max)) => {
                let found = texts.iter().map(|t| t.len() as u64);
                prop_assert!(found.clone().min().unwrap_or(6) == min.min(6));
                if max.is_none_or(|max| max > 5) {
                    prop_assert!(listed.is_none() || listed.iter().flatten().any(|t| t.len() > 5));
                } else {
                    prop_assert_eq!(found.max(), max);
                }
                if let Some(listed) = &listed {
                    prop_assert_eq!(listed.iter().map(|t| t.chars().count() as u64).max(), max);
                }
            }
        }
        if let Some(listed) = listed {
            prop_assert!(listed.windows(2).all(|pair| pair[0] < pair[1]));
            let short: Vec<&String> =
                listed.iter().filter(|t| t.len() <= 5 && t.chars().all(|c| c <= 'd')).collect();
            let mut texts: Vec<&String> = texts.iter().collect();
            texts.sort();
            let short: Vec<&String> = short.into_iter().filter(|t| t.chars().all(|c| c >= 'a')).collect();
            prop_assert_eq!(short, texts);
        }
    }

    #[test]
    fn clamping_keeps_short_strings_and_prefixes(tree in tree(false), length in 0u64..4) {
        let mut exprs = Exprs::new();
        let expr = tree.build(&mut exprs);
        let clamped = exprs.clamp(expr, length);
        for text in texts(length as usize) {
            let (mut a, mut b) = (expr, clamped);
            for c in text.chars() {
                a = exprs.derive(a, c, &mut fuel()).unwrap();
                b = exprs.derive(b, c, &mut fuel()).unwrap();
            }
            prop_assert_eq!(a == ExprId::NEVER, b == ExprId::NEVER, "prefix {:?}", text);
            prop_assert_eq!(exprs.nullable(a), exprs.nullable(b), "string {:?}", text);
        }
    }

    #[test]
    fn windows_of_lengths_are_exact(tree in tree(false), min in 0u64..9, more in 0u64..4) {
        let mut exprs = Exprs::new();
        let expr = tree.build(&mut exprs);
        let window = exprs.repeat(ExprId::ANY_CHAR, min, Some(min + more));
        let both = exprs.and(&[expr, window]);
        let fuel = &mut fuel();
        // All three ways, and the search that knows nothing of lengths, agree.
        let expected = witness(&mut exprs, both, fuel).is_some();
        prop_assert_eq!(exprs.is_never(both, fuel).unwrap(), !expected);
        prop_assert_eq!(exprs.has_walk(expr, min, min + more, fuel).unwrap(), expected);
        if let Some(lengths) = exprs.length_set(expr, fuel).unwrap() {
            prop_assert_eq!(lengths.meets(min, min + more), expected);
        }
    }
}

fn arena() -> (Exprs, [ExprId; 3]) {
    let mut exprs = Exprs::new();
    let letters = ['a', 'b', 'c'].map(|c| exprs.class(&[(c, c)]));
    (exprs, letters)
}

#[test]
fn constants_have_their_ids() {
    let mut exprs = Exprs::new();
    assert_eq!(exprs.class(&[('\0', char::MAX)]), ExprId::ANY_CHAR);
    assert_eq!(exprs.class(&[]), ExprId::NEVER);
    assert_eq!(exprs.concat(&[]), ExprId::EPSILON);
    assert_eq!(exprs.or(&[]), ExprId::NEVER);
    assert_eq!(exprs.and(&[]), ExprId::ANY);
    assert_eq!(exprs.repeat(ExprId::ANY_CHAR, 0, None), ExprId::ANY);
    assert_eq!(exprs.literals(&[]), ExprId::NEVER);
    assert_eq!(exprs.len(), 4);
}

#[test]
fn classes_are_normalised() {
    let mut exprs = Exprs::new();
    let class = exprs.class(&[('x', 'z'), ('a', 'c'), ('b', 'f'), ('g', 'g')]);
    let same = exprs.class(&[('a', 'g'), ('x', 'z')]);
    assert_eq!(class, same);
    let around = exprs.class(&[('\u{D000}', '\u{F000}')]);
    let runs = exprs.transitions(around, &mut fuel()).unwrap();
    let runs: Vec<(u32, u32)> = runs.iter().map(|run| (run.first, run.last)).collect();
    assert_eq!(runs, [(0xD000, 0xD7FF), (0xE000, 0xF000)]);
}

#[test]
fn unions_and_intersections_are_normalised() {
    let (mut e, [a, b, c]) = arena();
    let ab = e.class(&[('a', 'b')]);
    let bc = e.class(&[('b', 'c')]);
    assert_eq!(e.or(&[b, a]), ab);
    assert_eq!(e.and(&[ab, bc]), b);
    assert_eq!(e.and(&[a, c]), ExprId::NEVER);
    let x = e.concat(&[a, b]);
    let y = e.concat(&[b, c]);
    let xy = e.or(&[x, y]);
    assert_eq!(e.or(&[y, ExprId::NEVER, x, xy]), xy);
    assert_eq!(e.or(&[x, ExprId::ANY]), ExprId::ANY);
    assert_eq!(e.and(&[x, ExprId::ANY]), x);
    assert_eq!(e.and(&[x, ExprId::NEVER]), ExprId::NEVER);
    let optional = e.or(&[x, ExprId::EPSILON]);
    assert_eq!(optional, e.repeat(x, 0, Some(1)));
    assert_eq!(e.and(&[optional, ExprId::EPSILON]), ExprId::EPSILON);
    assert_eq!(e.and(&[x, ExprId::EPSILON]), ExprId::NEVER);
    let not_x = e.not(x);
    assert_eq!(e.or(&[x, not_x]), ExprId::ANY);
    assert_eq!(e.and(&[x, not_x]), ExprId::NEVER);
    let not_y = e.not(y);
    let neither = e.and(&[not_x, not_y]);
    assert_eq!(neither, e.not(xy));
}

#[test]
fn complements_are_normalised() {
    let (mut e, [a, b, _]) = arena();
    assert_eq!(e.not(ExprId::NEVER), ExprId::ANY);
    assert_eq!(e.not(ExprId::ANY), ExprId::NEVER);
    let some = e.repeat(ExprId::ANY_CHAR, 1, None);
    assert_eq!(e.not(ExprId::EPSILON), some);
    assert_eq!(e.not(some), ExprId::EPSILON);
    let x = e.concat(&[a, b]);
    let not = e.not(x);
    assert_eq!(e.not(not), x);
    let window = e.repeat(ExprId::ANY_CHAR, 2, Some(3));
    let outside = e.not(window);
    for (length, out) in [(1, true), (2, false), (3, false), (4, true)] {
        assert_eq!(e.matches(outside, &"x".repeat(length), &mut fuel()).unwrap(), out);
    }
}

#[test]
fn complements_hold_the_first_and_the_last_characters() {
    let (mut e, [a, ..]) = arena();
    let not = e.not(a);
    for c in ['\0', '`', 'b', '\u{d7ff}', '\u{e000}', '\u{10fffe}', char::MAX] {
        assert!(e.matches(not, &c.to_string(), &mut fuel()).unwrap(), "{c:?}");
    }
    assert!(!e.matches(not, "a", &mut fuel()).unwrap());
}

/// What several complements exclude together may be a window of lengths.
#[test]
fn complements_of_parts_that_make_a_whole() {
    let (mut e, [a, b, _]) = arena();
    let others = e.class(&[('\0', '`'), ('b', char::MAX)]);
    let (not_a, not_others) = (e.not(a), e.not(others));
    let no_char = e.not(ExprId::ANY_CHAR);
    assert_eq!(e.and(&[not_a, not_others]), no_char);
    let some = e.repeat(a, 1, None);
    for part in [ExprId::ANY, a, b, some, no_char] {
        let left = e.and(&[part, not_a, not_others]);
        for text in texts(3) {
            let expected =
                text.chars().count() != 1 && e.matches(part, &text, &mut fuel()).unwrap();
            assert_eq!(e.matches(left, &text, &mut fuel()).unwrap(), expected, "{text}");
        }
    }
}

#[test]
fn repetitions_are_normalised() {
    let (mut e, [a, b, _]) = arena();
    let star = e.repeat(a, 0, None);
    assert_eq!(e.repeat(star, 0, None), star);
    assert_eq!(e.repeat(star, 3, Some(7)), star);
    assert_eq!(e.concat(&[star, star]), star);
    assert_eq!(e.repeat(a, 1, Some(1)), a);
    assert_eq!(e.repeat(a, 0, Some(0)), ExprId::EPSILON);
    assert_eq!(e.repeat(a, 2, Some(1)), ExprId::NEVER);
    assert_eq!(e.repeat(ExprId::NEVER, 0, None), ExprId::EPSILON);
    assert_eq!(e.repeat(ExprId::NEVER, 1, None), ExprId::NEVER);
    assert_eq!(e.repeat(ExprId::EPSILON, 5, None), ExprId::EPSILON);
    let (two, three, five) =
        (e.repeat(a, 2, Some(2)), e.repeat(a, 3, Some(4)), e.repeat(a, 5, Some(6)));
    assert_eq!(e.concat(&[two, three]), five);
    assert_eq!(e.concat(&[a, a]), two);
    let plus = e.repeat(a, 1, None);
    assert_eq!(e.concat(&[a, star]), plus);
    assert_eq!(e.concat(&[star, a]), plus);
    assert_eq!(e.repeat(plus, 0, None), star);
    let optional = e.repeat(a, 0, Some(1));
    assert_eq!(e.repeat(optional, 0, None), star);
    let many = e.repeat(optional, 10_000, Some(10_000));
    assert_eq!(many, e.repeat(a, 0, Some(10_000)));
    let x = e.concat(&[a, b]);
    let pairs = e.repeat(x, 2, Some(2));
    assert_ne!(e.repeat(pairs, 1, None), e.repeat(x, 2, None));
    assert_eq!(e.concat(&[star, ExprId::ANY]), ExprId::ANY);
    assert_eq!(e.concat(&[ExprId::ANY, star, optional]), ExprId::ANY);
    let near = e.repeat(a, 1, Some(3));
    let far = e.repeat(a, 4, Some(9));
    assert_eq!(e.or(&[near, far]), e.repeat(a, 1, Some(9)));
    let (near, far) = (e.concat(&[near, b]), e.concat(&[far, b]));
    let both = e.repeat(a, 1, Some(9));
    assert_eq!(e.or(&[near, far]), e.concat(&[both, b]));
}

#[test]
fn lengths_decide_intersections() {
    let (mut e, [a, b, _]) = arena();
    let x = e.concat(&[a, b, a]);
    let window = e.repeat(ExprId::ANY_CHAR, 4, Some(9));
    assert_eq!(e.and(&[x, window]), ExprId::NEVER);
    let window = e.repeat(ExprId::ANY_CHAR, 2, Some(9));
    assert_eq!(e.and(&[x, window]), x);
    let ab = e.class(&[('a', 'b')]);
    let (many, few) = (e.repeat(ab, 2, Some(8)), e.repeat(b, 0, Some(5)));
    assert_eq!(e.and(&[many, few]), e.repeat(b, 2, Some(5)));
}

/// Steps through `text` and returns what is left.
fn after(e: &mut Exprs, expr: ExprId, text: &str) -> ExprId {
    text.chars().fold(expr, |state, c| e.derive(state, c, &mut fuel()).unwrap())
}

#[test]
fn a_set_narrows_to_the_literal() {
    let mut e = Exprs::new();
    let set = e.literals(&["name", "id", "ids", "id"]);
    let other = e.literals(&["name", "nap"]);
    let name = e.literal_id("name");
    assert_eq!(after(&mut e, set, "na"), after(&mut e, other, "nam").min(after(&mut e, set, "na")));
    assert_eq!(e.view(after(&mut e.clone(), set, "n")), View::Literal { id: name, offset: 1 });
    assert_eq!(after(&mut e, set, "nam"), after(&mut e, other, "nam"));
    let end = after(&mut e, set, "name");
    assert_eq!(e.view(end), View::Literal { id: name, offset: 4 });
    assert!(e.nullable(end) && end != ExprId::EPSILON);
    assert_eq!(e.completed_literal(end), Some(name));
    let id = after(&mut e, set, "id");
    assert!(e.nullable(id));
    assert_eq!(e.completed_literal(id), Some(e.literal_id("id")));
    assert_eq!(after(&mut e, set, "x"), ExprId::NEVER);
    let one = e.literals(&["name"]);
    assert_eq!(one, e.literal("name"));
}

#[test]
fn filtered_sets_with_the_same_rest_are_equal() {
    let mut e = Exprs::new();
    let texts: Vec<String> = (0..300).map(|i| format!("k{i:03}é")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let set = e.literals(&texts);
    let name = |e: &Exprs, id: LiteralId| e.literal_text(id).to_owned();
    let names = e.clone();
    let keep = |f: &dyn Fn(&str) -> bool, e: &mut Exprs| {
        e.literals_filtered(set, &|id| f(&name(&names, id)))
    };
    assert_eq!(keep(&|_| true, &mut e), set);
    assert_eq!(keep(&|_| false, &mut e), ExprId::NEVER);
    let one = keep(&|t| t == "k123é", &mut e);
    assert_eq!(one, e.literal("k123é"));
    let even = keep(&|t| t.as_bytes()[3] % 2 == 0, &mut e);
    let some = keep(&|t| t.as_bytes()[3] % 2 == 0 && t.starts_with("k1"), &mut e);
    let twice = e.literals_filtered(even, &|id| names.literal_text(id).starts_with("k1"));
    assert_eq!(twice, some);
    assert_eq!(after(&mut e, even, "k1"), after(&mut e, some, "k1"));
    assert_eq!(after(&mut e, even, "k11"), after(&mut e, some, "k11"));
    let left = after(&mut e, even, "k11");
    assert_eq!(e.literals_left(left).unwrap().len(), 5);
    assert_eq!(e.lengths(left, &mut fuel()).unwrap(), Some((2, Some(2))));
    assert!(e.matches(even, "k110é", &mut fuel()).unwrap());
    assert!(!e.matches(even, "k111é", &mut fuel()).unwrap());
    // A prefix below which nothing is filtered out is the unfiltered state.
    let tens = keep(&|t| t.as_bytes()[2] != b'5', &mut e);
    assert_eq!(after(&mut e, tens, "k23"), after(&mut e, set, "k23"));
    assert_eq!(after(&mut e, tens, "k25"), ExprId::NEVER);
}

#[test]
fn words_become_one_set_and_finite_sets_are_filtered() {
    let (mut e, [a, b, _]) = arena();
    let words = ["aa", "ab", "cab"];
    let parts = words.map(|word| e.literal(word));
    let set = e.literals(&words);
    assert_eq!(e.or(&parts), set);
    let ab = e.or(&[a, b]);
    let abs = e.repeat(ab, 0, None);
    assert_eq!(e.and(&[set, abs]), e.literals(&["aa", "ab"]));
    let (cab, aa) = (parts[2], parts[0]);
    let not = e.not(aa);
    assert_eq!(e.and(&[set, not]), e.literals(&["ab", "cab"]));
    let not = e.not(cab);
    assert_eq!(e.and(&[not, abs]), abs, "what is not in the rest need not be excluded");
}

#[test]
fn excluded_literals_become_one_set() {
    let (mut e, [a, ..]) = arena();
    let tail = e.repeat(ExprId::ANY_CHAR, 0, None);
    let starts = e.concat(&[a, tail]);
    let nots: Vec<ExprId> = (0..3000)
        .map(|i| {
            let word = e.literal(&format!("a{i}"));
            e.not(word)
        })
        .collect();
    let mut parts = nots.clone();
    parts.push(starts);
    let before = e.len();
    let all = e.and(&parts);
    assert!(e.len() - before < 20_000 && e.check().is_ok());
    assert!(e.matches(all, "a3000", &mut fuel()).unwrap());
    assert!(!e.matches(all, "a2999", &mut fuel()).unwrap());
    // One by one, as an object that reads its keys.
    let known = e.literals(&["ab", "ac"]);
    let unknown = e.not(known);
    let keys = e.and(&[starts, unknown]);
    let seen = e.literals(&["ax", "b"]);
    let unseen = e.not(seen);
    let left = e.and(&[keys, unseen]);
    let all = e.literals(&["ab", "ac", "ax"]);
    let not = e.not(all);
    assert_eq!(left, e.and(&[starts, not]));
}

#[test]
fn arenas_can_be_shared() {
    fn shared<T: Clone + Send + Sync>() {}
    shared::<Exprs>();
}

#[test]
fn leaving_excluded_literals_gives_any() {
    let mut e = Exprs::new();
    let keys = e.literals(&["name", "id"]);
    let other = e.not(keys);
    let other = e.and(&[ExprId::ANY, other]);
    assert_eq!(after(&mut e, other, "x"), ExprId::ANY);
    assert_eq!(after(&mut e, other, "nb"), ExprId::ANY);
    assert_eq!(after(&mut e, other, "ids"), ExprId::ANY);
    let id = after(&mut e, other, "id");
    assert!(!e.nullable(id) && id != ExprId::NEVER);
}

#[test]
fn emptiness_with_large_counts() {
    let (mut e, [a, b, c]) = arena();
    let ab = e.or(&[a, b]);
    let many = e.repeat(ab, 0, None);
    let word = e.concat(&[many, c]);
    for (min, max, runs) in [
        (0, Some(1_000_000), 2),
        (1_000_000, None, 1),
        (1_000_000, Some(1_000_000), 1),
        (0, Some(0), 0),
    ] {
        let window = e.repeat(ExprId::ANY_CHAR, min, max);
        let both = e.and(&[word, window]);
        let spent = &mut Fuel::new(2_000);
        assert_eq!(e.is_never(both, spent).unwrap(), runs == 0, "{min} {max:?}");
        assert_eq!(e.transitions(both, spent).unwrap().len(), runs, "{min} {max:?}");
    }
    // Lengths 4k and 4k + 1.
    let four = e.repeat(ExprId::ANY_CHAR, 4, Some(4));
    let fours = e.repeat(four, 0, None);
    let last = e.repeat(c, 0, Some(1));
    let blocks = e.concat(&[fours, last]);
    for (min, max, empty) in
        [(1_000_002, 1_000_003, true), (1_000_001, 1_000_001, false), (1_000_002, 1_000_004, false)]
    {
        let window = e.repeat(ExprId::ANY_CHAR, min, Some(max));
        let both = e.and(&[blocks, window]);
        assert_eq!(e.is_never(both, &mut fuel()).unwrap(), empty, "{min} {max:?}");
    }
    // Lengths 6i + 10j with an intersection inside: the graph decides.
    let (six, ten) = (e.repeat(ab, 6, Some(6)), e.repeat(ab, 10, Some(10)));
    let both = e.or(&[six, ten]);
    let sums = e.repeat(both, 0, None);
    let (pair, start) = (e.repeat(ExprId::ANY_CHAR, 2, Some(2)), e.concat(&[many, a]));
    let pairs = e.repeat(pair, 0, None);
    let sums = e.and(&[sums, pairs, start]);
    for (length, empty) in [(100_001, true), (100_002, false), (14, true)] {
        let window = e.repeat(ExprId::ANY_CHAR, length, Some(length));
        let both = e.and(&[sums, window]);
        assert_eq!(e.is_never(both, &mut fuel()).unwrap(), empty, "{length}");
    }
}

#[test]
fn hostile_counts_stay_numbers() {
    let (mut e, [a, b, _]) = arena();
    // (a{1000}){1000}
    let inner = e.repeat(a, 1000, Some(1000));
    let outer = e.repeat(inner, 1000, Some(1000));
    assert_eq!(outer, e.repeat(a, 1_000_000, Some(1_000_000)));
    let nested = (0..7).fold(a, |item, _| e.repeat(item, 10, Some(10)));
    assert_eq!(e.lengths(nested, &mut fuel()).unwrap(), Some((10_000_000, Some(10_000_000))));
    let x = e.concat(&[a, b]);
    let huge = (0..7).fold(x, |item, _| e.repeat(item, 1 << 40, Some(1 << 41)));
    let transitions = e.transitions(huge, &mut fuel()).unwrap();
    assert_eq!(transitions.len(), 1);
    // (){4294967295}, (|a)*
    assert_eq!(e.repeat(ExprId::EPSILON, 4_294_967_295, Some(4_294_967_295)), ExprId::EPSILON);
    let optional = e.or(&[ExprId::EPSILON, a]);
    assert_eq!(e.repeat(optional, 0, None), e.repeat(a, 0, None));
}

#[test]
fn hostile_ambiguity_is_lazy() {
    let (mut e, [a, b, _]) = arena();
    let ab = e.or(&[a, b]);
    let many = e.repeat(ab, 0, None);
    for tail in [13, 25] {
        let tail = e.repeat(ab, tail, Some(tail));
        let expr = e.concat(&[many, a, tail]);
        let text: String = (0..200).map(|i| if i % 3 == 0 { 'a' } else { 'b' }).collect();
        let before = e.len();
        let state = after(&mut e, expr, &text);
        assert_ne!(state, ExprId::NEVER);
        assert!(e.len() - before < 3_000, "{}", e.len() - before);
    }
    // .*a.{30}b
    let tail = e.repeat(ExprId::ANY_CHAR, 30, Some(30));
    let expr = e.concat(&[ExprId::ANY, a, tail, b]);
    let text = format!("{}{}b", "a".repeat(50), "x".repeat(30));
    assert!(e.matches(expr, &text, &mut fuel()).unwrap());
}

#[test]
fn hostile_alternations_and_stars() {
    let (mut e, [a, _, c]) = arena();
    // .* x 500 then c
    let mut parts = vec![ExprId::ANY; 500];
    parts.push(c);
    assert_eq!(e.concat(&parts), e.concat(&[ExprId::ANY, c]));
    // a|aa|...|a^999
    let words: Vec<String> = (1..1000).map(|n| "a".repeat(n)).collect();
    let words: Vec<ExprId> = words.iter().map(|word| e.literal(word)).collect();
    let any = e.or(&words);
    let spent = &mut Fuel::new(2_000_000);
    assert!(e.matches(any, &"a".repeat(999), spent).unwrap());
    assert!(!e.matches(any, &"a".repeat(1000), spent).unwrap());
    // Complements of .*x.* for 20 letters
    let parts: Vec<ExprId> = ('a'..='t')
        .map(|letter| {
            let letter = e.class(&[(letter, letter)]);
            let has = e.concat(&[ExprId::ANY, letter, ExprId::ANY]);
            e.not(has)
        })
        .collect();
    let none = e.and(&parts);
    let spent = &mut Fuel::new(10_000);
    assert_eq!(e.transitions(none, spent).unwrap().len(), 3);
    assert!(e.matches(none, "xyz", spent).unwrap() && !e.matches(none, "xyza", spent).unwrap());
    // Deep nesting neither by building nor by walking uses the stack.
    let mut deep = a;
    for i in 0..20_000u32 {
        let other = e.class(&[(char::from_u32(0x4E00 + i % 999).unwrap(), 'a')]);
        deep = if i % 2 == 0 { e.or(&[deep, other]) } else { e.concat(&[deep, c]) };
    }
    let work = move || {
        let mut e = e;
        let fuel = &mut Fuel::new(1_000_000_000);
        let copy = e.clone();
        let not = e.not(deep);
        let both = e.and(&[deep, not]);
        e.is_never(both, fuel).unwrap();
        e.transitions(deep, fuel).unwrap();
        e.display(deep, 1000);
        e.clamp(deep, 30);
        format!("{copy:?}").len()
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(work).unwrap();
    assert!(thread.join().is_ok());
}

#[test]
fn a_large_set_is_a_leaf() {
    let mut e = Exprs::new();
    let texts: Vec<String> = (0..100_000).map(|i| format!("value-{i}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let set = e.literals(&texts);
    assert_eq!(e.len(), 5);
    assert!(e.matches(set, "value-99999", &mut fuel()).unwrap());
    assert!(!e.matches(set, "value-100000", &mut fuel()).unwrap());
    assert_eq!(e.enumerate(set, 99_999, &mut Fuel::new(1_000_000_000)).unwrap(), None);
    assert_eq!(e.lengths(set, &mut fuel()).unwrap(), Some((7, Some(11))));
}

#[test]
fn limits_are_errors_that_stay() {
    let mut e = Exprs::with_limit(100);
    let a = e.class(&[('a', 'a')]);
    let many = e.repeat(a, 200, Some(200));
    let error = e.matches(many, &"a".repeat(200), &mut fuel()).unwrap_err();
    assert!(matches!(error.kind(), Kind::TooComplex { what: "expressions", limit: 100 }));
    assert!(e.check().is_err() && e.is_never(a, &mut fuel()).is_err());
    e.set_limit(1000);
    assert!(e.matches(many, &"a".repeat(200), &mut fuel()).unwrap());
    let (mut e, [a, b, _]) = arena();
    let (many, tail) = (e.repeat(a, 0, None), e.repeat(b, 9, Some(9)));
    let expr = e.concat(&[many, tail]);
    let error = e.matches(expr, &"a".repeat(200), &mut Fuel::new(100)).unwrap_err();
    assert!(matches!(error.kind(), Kind::TooComplex { what: "fuel", .. }));
}

#[test]
fn the_same_calls_give_the_same_ids() {
    let run = || {
        let (mut e, [a, b, c]) = arena();
        let words = e.literals(&["abc", "bca", "cab"]);
        let (ab, not) = (e.concat(&[a, b]), e.not(words));
        let star = e.repeat(ab, 0, None);
        let both = e.and(&[star, not]);
        let all = e.or(&[both, words, c]);
        let mut found: HashMap<ExprId, Vec<Transition>> = HashMap::new();
        let mut work = vec![all];
        while let Some(state) = work.pop() {
            found.entry(state).or_insert_with(|| {
                let runs = e.transitions(state, &mut fuel()).unwrap().to_vec();
                work.extend(runs.iter().map(|run| run.target));
                runs
            });
        }
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_by_key(|(state, _)| *state);
        found
    };
    assert_eq!(run(), run());
}
