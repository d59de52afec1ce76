//! The transformations on random grammars: what items derive before and after, computed by the
//! definition, and that no left recursion is left.

use std::collections::BTreeSet;

use super::rules::{Item, ItemId, Rules};
use super::{check, fold, gbnf, left, nonempty};
use crate::Limits;
use crate::error::{Kind, Result};
use crate::grammar::Grammar;
use crate::limits::Fuel;
use crate::syntax::Syntax;

fn compile(text: &str, syntax: Syntax) -> Result<Grammar> {
    super::compile(text, syntax, &Limits::default(), &|_, _| panic!("no test has a schema"))
}

type Strings = BTreeSet<String>;

/// Longest strings that are compared.
const LENGTH: usize = 5;

fn letters() -> Vec<String> {
    let mut out = vec![String::new()];
    let mut from = 0;
    for _ in 0..LENGTH {
        let to = out.len();
        for i in from..to {
            out.extend(["a", "b"].map(|letter| format!("{}{letter}", out[i])));
        }
        from = to;
    }
    out
}

fn join(a: &Strings, b: &Strings) -> Strings {
    let all = a.iter().flat_map(|a| b.iter().map(move |b| format!("{a}{b}")));
    all.filter(|text| text.len() <= LENGTH).collect()
}

/// The strings of the start: the least solution of the rules as equations.
fn strings(rules: &mut Rules) -> Strings {
    let candidates = letters();
    let mut roots: Vec<ItemId> = (0..rules.rules.len()).map(|rule| rules.body(rule)).collect();
    roots.push(rules.start);
    let items = rules.below(&roots, |_| false).unwrap();
    let mut sets: Vec<Strings> = vec![Strings::new(); rules.len()];
    for &id in &items {
        if let Item::Text(expr) = *rules.item(id) {
            let mut fuel = Fuel::new(1_000_000);
            let exprs = &mut rules.grammar.exprs;
            let is_in = |text: &&String| exprs.matches(expr, text, &mut fuel).unwrap();
            sets[id.index()] = candidates.iter().filter(is_in).cloned().collect();
        }
    }
    loop {
        let mut changed = false;
        for &id in &items {
            let empty = Strings::from([String::new()]);
            let made = match rules.item(id) {
                Item::Rule(rule) => sets[rules.body(*rule).index()].clone(),
                Item::Seq(parts) => {
                    parts.iter().fold(empty, |all, part| join(&all, &sets[part.index()]))
                }
                Item::Alt(parts) => {
                    parts.iter().flat_map(|part| sets[part.index()].iter().cloned()).collect()
                }
                Item::Repeat(item, min, max) => {
                    let mut all = Strings::new();
                    let mut power = empty;
                    for count in 0..=max.unwrap_or(*min + LENGTH as u64) {
                        if count >= *min {
                            all.extend(power.iter().cloned());
                        }
                        power = join(&power, &sets[item.index()]);
                    }
                    all
                }
                _ => continue,
            };
            changed |= made.len() > sets[id.index()].len();
            sets[id.index()] = made;
        }
        if !changed {
            return sets.swap_remove(rules.start.index());
        }
    }
}

/// A grammar of up to four rules with groups and repetitions over two letters.
fn random_text(seed: &mut u64) -> String {
    let mut below = |n: u64| {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) % n
    };
    let count = 1 + below(4);
    let mut text = String::new();
    for rule in 0..count {
        let name = if rule == 0 { "root".to_owned() } else { format!("r{rule}") };
        text += &format!("{name} ::= ");
        for alternative in 0..1 + below(3) {
            text += if alternative > 0 { " | " } else { "" };
            let length = below(4);
            text += if length == 0 { "\"\"" } else { "" };
            for _ in 0..length {
                let symbol = match below(6) {
                    0 => "\"a\"".to_owned(),
                    1 => "\"b\"".to_owned(),
                    2 => "(\"a\" | root)".to_owned(),
                    _ => match below(count) {
                        0 => "root".to_owned(),
                        rule => format!("r{rule}"),
                    },
                };
                let repeat = ["", "", "", "", "?", "*", "+", "{2}"][below(8) as usize];
                text += &format!("{symbol}{repeat} ");
            }
        }
        text.push('\n');
    }
    text
}

#[test]
fn transformations_keep_what_random_grammars_derive() {
    let limits = Limits::default();
    let mut seed = 1;
    let mut compared = 0;
    for _ in 0..300 {
        let text = random_text(&mut seed);
        let mut rules = gbnf::parse(&text, Grammar::new(limits.clone())).unwrap();
        check::defined(&mut rules).unwrap();
        let before = strings(&mut rules);
        fold::fold(&mut rules).unwrap();
        if let Err(error) = check::productive(&mut rules) {
            assert_eq!(*error.kind(), Kind::Unsatisfiable, "{text}");
            continue;
        }
        assert_eq!(strings(&mut rules), before, "folding changes\n{text}");
        nonempty::remove(&mut rules).unwrap();
        assert_eq!(strings(&mut rules), before, "losing the empty string changes\n{text}");
        left::remove(&mut rules).unwrap();
        assert_eq!(strings(&mut rules), before, "removing left recursion changes\n{text}");
        assert!(!left::is_left_recursive(&mut rules).unwrap(), "left recursion is left in\n{text}");
        fold::fold(&mut rules).unwrap();
        assert_eq!(strings(&mut rules), before, "folding again changes\n{text}");
        compared += 1;
    }
    assert!(compared > 100, "too few grammars are left: {compared}");
}

#[test]
fn ambiguous_lists_are_one_expression() {
    for text in ["root ::= root root | \"a\"", "root ::= root root root | root root | \"a\" | \"\""]
    {
        let grammar = compile(text, Syntax::Gbnf).unwrap();
        assert!(
            matches!(grammar.node(grammar.root()), crate::grammar::Node::Terminal(_)),
            "{text}"
        );
    }
}

#[test]
fn errors_say_where() {
    let cases = [
        ("root ::= foo", "line 1, column 10"),
        ("root ::= \"a\" root", "line 1, column 1"),
        ("root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1"),
        ("root ::= \"a\n", "line 1, column 12"),
        ("root ::= (\"a\"", "line 1, column 10"),
        ("root ::= \"a\")", "line 1, column 13"),
        ("root ::= [z-a]", "line 1, column 11"),
        ("root ::= \"\\ud800\"", "line 1, column 13"),
        ("root ::= \"a\"{3,2}", "line 1, column 14"),
        ("# nothing", "line 1, column 1"),
    ];
    for (text, place) in cases {
        let error = compile(text, Syntax::Gbnf).unwrap_err().to_string();
        assert!(error.contains(place), "{text}: {error}");
    }
}

#[test]
fn deep_groups_are_refused() {
    for depth in [1_000, 100_000] {
        let text = format!("root ::= {}\"a\"{}", "(".repeat(depth), ")".repeat(depth));
        let error = compile(&text, Syntax::Gbnf).unwrap_err();
        assert_eq!(*error.kind(), Kind::TooDeep);
    }
    let text = format!("root ::= {}\"a\"{}", "(".repeat(250), ")".repeat(250));
    compile(&text, Syntax::Gbnf).unwrap();
}

#[test]
fn hostile_grammars_end() {
    let chain: String = (0..20_000).map(|i| format!("r{i} ::= r{}\n", i + 1)).collect();
    let chain = format!("{chain}r20000 ::= \"a\"\n");
    let doubled: String = (0..40).map(|i| format!("r{i} ::= r{} r{}\n", i + 1, i + 1)).collect();
    let doubled_empty = format!("{doubled}r40 ::= \"a\"?\n");
    let doubled = format!("{doubled}r40 ::= \"a\"\n");
    let cycle: String =
        (0..300).map(|i| format!("r{i} ::= r{} | \"a\"\n", (i + 1) % 300)).collect();
    let words: Vec<String> = (0..20_000).map(|i| format!("\"w{i}\"")).collect();
    let words = format!("root ::= {}", words.join(" | "));
    for text in [chain, doubled, doubled_empty, cycle, words] {
        let name: String = text.chars().take(40).collect();
        compile(&text, Syntax::Gbnf).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    for text in
        ["root ::= \"a\"{1000000}", "root ::= (\"ab\"{1000}){1000}", "root ::= ((\"a\"*)*)*"]
    {
        compile(text, Syntax::Gbnf).unwrap();
    }
}

#[test]
fn errors_of_other_syntaxes_say_where() {
    let cases = [
        (Syntax::Lark, "start: A\nA: b\nb: \"x\"", "line 2, column 4"),
        (Syntax::Lark, "start: /(/", "line 1, column 8"),
        (Syntax::Lark, "start: \"a\")", "line 1, column 11"),
        (Syntax::Lark, "%import files.X", "line 1, column 1"),
        (Syntax::Lark, "start: %json {\"type\":", "line 1, column 14"),
        (Syntax::Ebnf, "a = \"x\" b ;", "line 1, column 9"),
        (Syntax::Ebnf, "a = ( \"x\" ] ;", "line 1, column 11"),
        (Syntax::Ebnf, "a = ? x ? ;", "line 1, column 5"),
        (Syntax::W3c, "A ::= 'x", "line 1, column 7"),
        (Syntax::W3c, "A ::= B - 'x'\nB ::= 'x' | '(' B ')'", "line 1, column 9"),
    ];
    for (syntax, text, place) in cases {
        let error = compile(text, syntax).unwrap_err().to_string();
        assert!(error.contains(place), "{text}: {error}");
    }
}
