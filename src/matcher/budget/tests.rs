//! Budgets against exhaustive search, and random outputs under them.

use std::collections::HashSet;

use super::*;
use crate::grammar::{Grammar, Node, PropertyOrder, Terminal, Whitespace};
use crate::schema::{self, Options};
use crate::vocab::{Token, Vocabulary};

/// Longer tokens of the small vocabulary: within terminals, across them, and misleading ones.
const LONG: &[&str] = &[
    "{\"",
    "\":",
    "\":\"",
    "\",\"",
    "\"}",
    "\"]",
    "[\"",
    "[1",
    "1,",
    ",1",
    "],[",
    "},{",
    "[]",
    "{}",
    "\"\"",
    "\"a\"",
    "\"a",
    "a\"",
    "ab",
    "abc",
    "\"abc\"",
    "true",
    "tru",
    "rue",
    "false",
    "null",
    "10",
    "100",
    "1000",
    "00",
    "    ",
    "  ",
    "aa",
    "aaaa",
    ":1",
    ":1}",
    "\"b\":",
    ",\"b\":1}",
    "é",
    "\\u00",
    "-1",
    ".5",
    "e1",
    "\"x\":",
    ":{\"",
    "}}",
    "]]",
    "[[",
    "bb\"}",
    "\n",
];

/// All bytes, the longer tokens, and two end tokens.
pub(super) fn vocabulary() -> Vocabulary {
    let mut tokens: Vec<Token> = (0..=255u8).map(|byte| Token::Text([byte].into())).collect();
    tokens.extend(LONG.iter().map(|text| Token::Text(text.as_bytes().into())));
    tokens.push(Token::Special("<end>".into()));
    tokens.push(Token::Special("<turn>".into()));
    let end = tokens.len() as TokenId - 2;
    Vocabulary::new(tokens, vec![end, end + 1]).unwrap_or_else(|error| panic!("{error}"))
}

const SCHEMAS: &[&str] = &[
    r#"{"const":1}"#,
    r#"{"enum":["abc","b",1000,true]}"#,
    r#"{"enum":["aaaa","bb",[1,1],{"a":1}]}"#,
    r#"{"type":"string"}"#,
    r#"{"type":"string","minLength":3}"#,
    r#"{"type":"string","minLength":9,"maxLength":12}"#,
    r#"{"type":"string","pattern":"^[ab]{3}$"}"#,
    r#"{"type":"string","pattern":"^(abc|x)+y$"}"#,
    r#"{"type":"string","enum":["é","bbb"]}"#,
    r#"{"type":"boolean"}"#,
    r#"{"type":"null"}"#,
    r#"{"type":"integer","minimum":100}"#,
    r#"{"type":"integer","minimum":12345,"multipleOf":5}"#,
    r#"{"type":"number","exclusiveMinimum":0.5,"maximum":0.75}"#,
    r#"{"type":"array","items":{"const":1}}"#,
    r#"{"type":"array","items":{"const":1},"minItems":3}"#,
    r#"{"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":2}"#,
    r#"{"type":"array","prefixItems":[{"const":1},{"type":"string"}],"minItems":2}"#,
    r#"{"type":"array","items":{"type":"array","items":{"const":1}},"minItems":2}"#,
    r#"{"type":"array","items":{"enum":[1,"a"]},"contains":{"const":"a"},"minItems":2}"#,
    r#"{"type":"array","items":{"enum":["a","abc",1]},"uniqueItems":true,"minItems":2}"#,
    r#"{"type":"object"}"#,
    r#"{"type":"object","properties":{"a":{"const":1}},"additionalProperties":false}"#,
    r#"{"type":"object","properties":{"a":{"const":1}},"required":["a"],"additionalProperties":false}"#,
    r#"{"type":"object","properties":{"a":{"const":1},"b":{"const":1}},"required":["a","b"],"additionalProperties":false}"#,
    r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"const":1}},"required":["b"],"additionalProperties":false}"#,
    r#"{"type":"object","properties":{"x":{"const":1},"b":{"const":1},"a":{"const":"abc"}},"minProperties":2,"additionalProperties":false}"#,
    r#"{"type":"object","properties":{"x":{"const":1},"b":{"const":1}},"dependentRequired":{"x":["b"]},"minProperties":1,"additionalProperties":false}"#,
    r#"{"type":"object","minProperties":1,"additionalProperties":{"const":1}}"#,
    r#"{"type":"object","minProperties":2,"maxProperties":2,"additionalProperties":{"const":1}}"#,
    r#"{"anyOf":[{"type":"object","properties":{"a":{"const":1}},"required":["a"],"additionalProperties":false},{"type":"array","items":{"const":1},"minItems":4}]}"#,
    r##"{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"v":{"const":1},"t":{"$ref":"#/$defs/t"}},"required":["v"],"additionalProperties":false}}}"##,
    r#"{"oneOf":[{"type":"integer"},{"type":"string","minLength":2}]}"#,
    r#"{"type":"string","format":"date"}"#,
];

pub(super) fn compact(schema: &str, order: PropertyOrder, whitespace: Whitespace) -> Grammar {
    let options = Options { property_order: order, whitespace, ..Options::default() };
    schema::compile(schema, &options).unwrap_or_else(|error| panic!("{schema}: {error}"))
}

/// The least number of tokens, by trying every token everywhere.
fn exhaustive(constraint: &Constraint) -> u64 {
    let mut layer = vec![constraint.matcher()];
    let mut known = HashSet::new();
    for tokens in 1.. {
        assert!(!layer.is_empty(), "no document");
        if layer.iter().any(Matcher::can_stop) {
            return tokens;
        }
        let mut next = Vec::new();
        for mut matcher in layer {
            let allowed: Vec<TokenId> = matcher.mask().map(|mask| mask.iter().collect()).unwrap();
            for token in allowed {
                let mut after = matcher.fork();
                after.accept(token).unwrap();
                // What depends on the text of keys is known by the text.
                if known.insert((after.here(), after.text().last().copied() == Some(b'"'))) {
                    next.push(after);
                }
            }
        }
        layer = next;
    }
    unreachable!()
}

#[test]
fn the_minimum_is_the_least_there_is() {
    let vocabulary = vocabulary();
    for schema in SCHEMAS {
        let grammar = compact(schema, PropertyOrder::Declared, Whitespace::Compact);
        let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
        let (min, least) = (constraint.min_tokens().unwrap(), exhaustive(&constraint));
        assert_eq!(min, least, "{schema}");
        let error = constraint.matcher_within(min - 1).err().map(|error| error.kind().clone());
        assert_eq!(error, Some(Kind::BudgetTooSmall { min }), "{schema}");
    }
}

/// A pattern with many states that nearly all tokens go through: the search gives up being exhaustive before all of
/// them have a table.
#[test]
fn the_search_for_the_minimum_ends_early() {
    let letters: Vec<char> = ('a'..='z').chain('0'..='9').collect();
    let mut words = vec![String::new()];
    for length in 1..=3 {
        let of_length = |word: &&String| word.chars().count() == length - 1;
        let shorter: Vec<String> = words.iter().filter(of_length).cloned().collect();
        let longer = |word: String| letters.iter().map(move |c| format!("{word}{c}"));
        words.extend(shorter.into_iter().flat_map(longer));
    }
    let texts = words.iter().skip(1).map(String::as_str).chain(["\""]);
    let mut tokens: Vec<Token> = texts.map(|text| Token::Text(text.as_bytes().into())).collect();
    tokens.push(Token::Special("<end>".into()));
    let end = tokens.len() as TokenId - 1;
    let vocabulary = Vocabulary::new(tokens, vec![end]).unwrap();
    // The states are the places in the last 12 letters at which there was an `a`.
    let schema = r#"{"type":"string","pattern":"^[a-z0-9]*a[a-z0-9]{12}$"}"#;
    let grammar = compact(schema, PropertyOrder::Declared, Whitespace::Compact);
    let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
    let min = constraint.min_tokens().unwrap();
    assert!((8..=16).contains(&min), "{min}");
    assert!(!constraint.min_tokens_is_exact().unwrap());
    // Each of the tables is of some 48,000 places: it is their work that ends the search.
    let tables = constraint.stats().tables;
    assert!(tables <= 40, "{tables} tables");
    let mut matcher = constraint.matcher_within(min).unwrap();
    while !matcher.is_complete() {
        let token = matcher.mask().unwrap().iter().next().unwrap();
        matcher.accept(token).unwrap();
    }
}

/// A small deterministic generator.
pub(super) struct Random(pub u64);

impl Random {
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// Grammars that are no schemas: repetitions, with what stands between their items.
const TEXTS: &[&str] = &[
    r#"root ::= ("ab" | "c1"){2,4} "x""#,
    r#"root ::= "[" ("1," | "true"){3,} [a-c]{2,5} "]""#,
    r#"root ::= "(" (root | "aaaa" [0-9]){2,3} ")" | "-1""#,
    r#"root ::= ("a" ("b" | root)){1,2} "c"?"#,
];

/// Three to five letters or nested lists, between commas.
fn separated() -> Grammar {
    let mut grammar = Grammar::new(crate::Limits::default());
    let text = |grammar: &mut Grammar, text: &str| {
        let expr = grammar.exprs.literal(text);
        grammar.add(Node::Terminal(Terminal::Text(expr)))
    };
    let [open, close, comma, one, two] =
        ["[[", "]", " ,", "a", "null"].map(|it| text(&mut grammar, it));
    let list = grammar.reserve();
    let item = grammar.add(Node::Alt(vec![one, two, list]));
    let items = Node::Repeat { item, separator: Some(comma), min: 3, max: Some(5) };
    let items = grammar.add(items);
    let body = grammar.add(Node::Seq(vec![open, items, close]));
    grammar.define(list, body);
    grammar.set_root(list);
    grammar
}

/// Those grammars, with the texts or names.
fn texts(vocabulary: &Vocabulary) -> impl Iterator<Item = (String, Constraint)> {
    let grammars = TEXTS.iter().map(|text| {
        let grammar = Grammar::from_text(text, crate::syntax::Syntax::Gbnf, &Options::default());
        ((*text).to_owned(), grammar.unwrap_or_else(|error| panic!("{text}: {error}")))
    });
    let all = grammars.chain([("separated".to_owned(), separated())]);
    all.map(|(name, grammar)| (name, Constraint::new(&grammar, vocabulary).unwrap()))
}

/// All grammars, in both orders, with and without white space.
fn constraints(vocabulary: &Vocabulary) -> Vec<(String, Constraint)> {
    let styles = [
        (PropertyOrder::Declared, Whitespace::Compact),
        (PropertyOrder::Any, Whitespace::Flexible),
        (PropertyOrder::Any, Whitespace::Pretty(2)),
    ];
    let each = SCHEMAS.iter().flat_map(|schema| styles.map(|style| (schema, style)));
    each.map(|(schema, (order, whitespace))| {
        let grammar = compact(schema, order, whitespace);
        let constraint = Constraint::new(&grammar, vocabulary).unwrap();
        (format!("{schema} {order:?} {whitespace:?}"), constraint)
    })
    .chain(texts(vocabulary))
    .collect()
}

fn budgets(min: u64) -> [u64; 6] {
    [min, min + 1, min + 2, min + 3, (min * 3).div_ceil(2), 60.max(min)]
}

#[test]
fn every_output_is_complete_within_its_budget() {
    let vocabulary = vocabulary();
    let mut random = Random(1);
    let mut bounded = 0;
    for (name, constraint) in constraints(&vocabulary) {
        let min = constraint.min_tokens().unwrap();
        for budget in budgets(min) {
            for _ in 0..4 {
                let mut matcher = constraint.matcher_within(budget).unwrap();
                let mut free = constraint.matcher();
                let mut tokens = 0;
                loop {
                    let all: HashSet<TokenId> = free.mask().unwrap().iter().collect();
                    let ample = matcher.judge().ample(matcher.here()).unwrap();
                    let depth = matcher.config().depth();
                    let room = matcher.judge().room().tokens(depth, matcher.text().len());
                    let cost = matcher.tokens_to_finish().unwrap();
                    // The end token is not in it.
                    assert!(cost <= room.saturating_add(1), "{name}: {cost} {room} {matcher:?}");
                    bounded += u32::from(room < 1_000);
                    let left = matcher.tokens_left().unwrap();
                    let mask: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
                    assert!(!mask.is_empty(), "{name}, budget {budget}: {matcher:?} is stuck");
                    assert!(mask.iter().all(|token| all.contains(token)), "{name}: {matcher:?}");
                    assert!(ample > left || mask.len() == all.len(), "{name}: {matcher:?}");
                    let token = mask[random.below(mask.len())];
                    matcher.accept(token).unwrap_or_else(|error| panic!("{name}: {error}"));
                    free.accept(token).unwrap();
                    tokens += 1;
                    if vocabulary.is_end(token) {
                        break;
                    }
                }
                assert!(tokens <= budget, "{name}: {tokens} tokens of {budget}");
            }
        }
    }
    assert!(bounded > 2_000, "a bound for the whole output is known in {bounded} places only");
}

/// What is owed for containers that must differ is an estimate.
#[test]
fn where_an_estimate_proves_too_low_the_budget_gives_way() {
    let (vocabulary, mut random) = (vocabulary(), Random(5));
    let (mut longer, mut refused) = (0, 0);
    for items in [
        r#"{"type":"array","items":{"enum":[1,"abcabc"]},"maxItems":1}"#,
        r#"{"type":"array","items":{"enum":[1,2]},"minItems":1,"maxItems":2}"#,
        r#"{"type":"array","prefixItems":[{"enum":[1,"abc","aaaa"]},{"enum":["x",1]}],"minItems":2,"maxItems":2}"#,
        r#"{"type":"object","properties":{"a":{"enum":[1,"abc"]},"b":{"const":1}},"additionalProperties":false}"#,
    ] {
        let schema =
            format!(r#"{{"type":"array","items":{items},"uniqueItems":true,"minItems":3}}"#);
        let grammar = compact(&schema, PropertyOrder::Any, Whitespace::Flexible);
        let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
        let min = constraint.min_tokens().unwrap();
        for budget in budgets(min).into_iter().flat_map(|budget| [budget; 10]) {
            let mut matcher = constraint.matcher_within(budget).unwrap();
            let mut tokens = 0;
            loop {
                let mask: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
                assert!(!mask.is_empty(), "{schema}, budget {budget}: {matcher:?} is stuck");
                // Near the end all tokens are tried.
                let tried = if tokens + 2 < budget { 0 } else { vocabulary.len() as TokenId };
                for other in 0..tried {
                    let accepted = matcher.fork().accept(other).is_ok();
                    assert_eq!(accepted, mask.contains(&other), "{schema}: {matcher:?} {other}");
                    refused += u32::from(!accepted);
                }
                let token = mask[random.below(mask.len())];
                matcher.accept(token).unwrap();
                tokens += 1;
                assert!(tokens < 500, "{schema}: {matcher:?} does not end");
                if vocabulary.is_end(token) {
                    break;
                }
            }
            longer += u32::from(tokens > budget);
        }
    }
    assert!(longer > 0 && refused > 0, "{longer} outputs were longer, {refused} tokens refused");
}

/// Of an item that is an array, only its end says which one it is, and with that what later items must differ from.
#[test]
fn what_the_mask_offers_is_taken_where_an_item_shows_at_its_end_what_it_is() {
    let vocabulary = vocabulary();
    let mut random = Random(29);
    let schema = r##"{"$ref":"#/$defs/d","$defs":{"d":{"type":"array","items":{"$ref":"#/$defs/d"},"uniqueItems":true}}}"##;
    let constraint =
        Constraint::new(&compact(schema, PropertyOrder::Any, Whitespace::Compact), &vocabulary)
            .unwrap();
    for budget in (24..64).flat_map(|budget| [budget; 12]) {
        let mut matcher = constraint.matcher_within(budget).unwrap();
        for _ in 0..500 {
            let mask: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
            assert!(!mask.is_empty(), "budget {budget}: {matcher:?} is stuck");
            for &token in &mask {
                assert!(
                    matcher.fork().accept(token).is_ok(),
                    "budget {budget}: {matcher:?} {token}"
                );
            }
            let token = mask[random.below(mask.len())];
            matcher.accept(token).unwrap();
            if vocabulary.is_end(token) {
                break;
            }
        }
        assert!(matcher.config().is_finished(), "budget {budget}: {matcher:?} does not end");
    }
}

/// More of what a bound for the whole output has to know.
const MORE: &[&str] = &[
    r#"{"type":"object","patternProperties":{"^x-":{"const":1}},"additionalProperties":false}"#,
    r#"{"type":"object","properties":{"abc":{"const":1}},"patternProperties":{"^[ab]+$":{"type":"boolean"}}}"#,
    r#"{"type":"object","propertyNames":{"pattern":"^[a-c]{1,9}$"},"additionalProperties":{"const":1}}"#,
    r#"{"type":"array","items":{"type":"string","pattern":"^[a-z]+$"},"uniqueItems":true}"#,
    r#"{"type":"array","items":{"type":["integer","string","null"]},"uniqueItems":true,"minItems":3}"#,
    r#"{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},"uniqueItems":true,"minItems":1}"#,
    r#"{"type":"array","prefixItems":[{"const":1}],"contains":{"enum":["a","abc"]},"minContains":3}"#,
    r#"{"type":"array","items":{"enum":[1,"a","ab"]},"contains":{"const":"a"},"maxContains":2,"minItems":3}"#,
    r#"{"type":"string","format":"date-time"}"#,
    r#"{"type":"string","pattern":"^[a-z]+$","maxLength":9}"#,
    r#"{"type":"string","pattern":"a","not":{"pattern":"b"}}"#,
    r#"{"type":"string","minLength":90}"#,
    r#"{"type":"number","multipleOf":0.37,"not":{"multipleOf":5}}"#,
    r#"{"enum":["a \\ \" b","\n\n","€€€",{"a":["x",null]}]}"#,
    r##"{"$ref":"#/$defs/t","$defs":{"t":{"anyOf":[{"type":"null"},{"type":"object","properties":{"l":{"$ref":"#/$defs/t"},"r":{"$ref":"#/$defs/t"},"tag":{"enum":["ab","abc"]}},"required":["l","r","tag"],"additionalProperties":false}]}}}"##,
    r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/t"},"b":{"type":"string","minLength":9}},"required":["a","b"],"$defs":{"t":{"type":"array","items":{"$ref":"#/$defs/t"}}}}"##,
    r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{"type":"string"},"c":{"type":"integer","minimum":1000}},"required":["b","c"]},"minItems":2}},"required":["a"]}"#,
];

/// Walks at random: no cost may be above the bounds for the whole output. Says whether a bound is known, and whether the
/// one from what is known of nodes is closer.
fn check_bounds(name: &str, constraint: &Constraint, random: &mut Random) -> (bool, bool) {
    let room = constraint.matcher().judge().room();
    let closer = constraint.matcher().judge().closer_room().unwrap();
    assert!(closer.tokens(9, 0) <= room.tokens(9, 0), "{name}");
    for _ in 0..8 {
        let mut matcher = constraint.matcher();
        for _ in 0..80 {
            let cost = matcher.tokens_to_finish().unwrap();
            let (depth, output) = (matcher.config().depth(), matcher.text().len());
            for room in [room, closer] {
                let most = room.tokens(depth, output).saturating_add(1);
                assert!(cost <= most, "{name}: {cost} {room:?} {matcher:?}");
            }
            let mask: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
            let token = mask[random.below(mask.len())];
            matcher.accept(token).unwrap();
            if constraint.vocabulary().is_end(token) {
                break;
            }
        }
    }
    (room.tokens(0, 0) < 3_000, closer != room)
}

#[test]
fn no_cost_is_above_the_bounds_for_the_whole_output() {
    let (vocabulary, mut random) = (vocabulary(), Random(10));
    let (mut known, mut close) = (0, 0);
    let orders = [PropertyOrder::Declared, PropertyOrder::Any];
    let schemas = SCHEMAS.iter().chain(MORE).flat_map(|schema| orders.map(|order| (schema, order)));
    let schemas = schemas.map(|(schema, order)| {
        let grammar = compact(schema, order, Whitespace::Flexible);
        ((*schema).to_owned(), Constraint::new(&grammar, &vocabulary).unwrap())
    });
    for (name, constraint) in schemas.chain(texts(&vocabulary)) {
        let found = check_bounds(&name, &constraint, &mut random);
        known += u32::from(found.0);
        close += u32::from(found.1);
    }
    let all = 2 * (SCHEMAS.len() + MORE.len()) as u32;
    assert!(known > all - 8 && close > 30, "bounds are known for {known} of {all}, {close} closer");
}

/// Schemas in which one place costs more than all the others: `DEAR` is a text of which each byte is a token.
const DEAR: &[&str] = &[
    r#"{"type":"object","minProperties":1,"additionalProperties":DEAR}"#,
    r#"{"type":"object","minProperties":2,"propertyNames":DEAR,"additionalProperties":{"const":1}}"#,
    r#"{"type":"object","patternProperties":{"^[q-t]{200}$":DEAR},"additionalProperties":false,"minProperties":1}"#,
    r#"{"type":"object","properties":{"a":{"const":1},"b":DEAR},"dependentRequired":{"a":["b"]},"additionalProperties":false}"#,
    r#"{"type":"object","properties":{"a":{"const":1},"b":DEAR},"required":["a"],"additionalProperties":false}"#,
    r#"{"type":"object","properties":{"a":{"const":1},"b":DEAR,"c":DEAR},"minProperties":2,"additionalProperties":false}"#,
    r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b":DEAR,"c":{"const":1}},"required":["b","c"]}},"required":["a"]}"#,
    r#"{"type":"object","properties":{"a":{"anyOf":[{"const":1},{"type":"array","items":DEAR,"minItems":1}]}},"required":["a"],"additionalProperties":false}"#,
    r#"{"type":"array","items":DEAR,"minItems":2}"#,
    r#"{"type":"array","items":DEAR}"#,
    r#"{"type":"array","prefixItems":[{"const":1},DEAR,{"const":2}],"minItems":3}"#,
    r#"{"type":"array","items":{"anyOf":[{"const":1},{"type":"array","items":DEAR,"minItems":1}]}}"#,
    r#"{"type":"array","items":{"anyOf":[DEAR,{"const":1}]},"uniqueItems":true,"minItems":2}"#,
    r#"{"type":"array","items":{"anyOf":[DEAR,{"const":1}]},"contains":DEAR,"minContains":2}"#,
    r#"{"type":"array","prefixItems":[{"const":1}],"contains":DEAR}"#,
    r#"{"anyOf":[{"const":1},DEAR]}"#,
    r#"{"type":"string","pattern":"^([q-t]{300}|[q-t]{2}|a)$"}"#,
    r##"{"$ref":"#/$defs/t","$defs":{"t":{"type":"array","items":{"anyOf":[{"$ref":"#/$defs/t"},DEAR]}}}}"##,
];

#[test]
fn bounds_hold_what_is_dear_wherever_it_stands() {
    let (vocabulary, mut random) = (vocabulary(), Random(11));
    for schema in DEAR {
        let schema = schema.replace("DEAR", r#"{"type":"string","pattern":"^[q-t]{300}$"}"#);
        for order in [PropertyOrder::Declared, PropertyOrder::Any] {
            let grammar = compact(&schema, order, Whitespace::Compact);
            let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
            check_bounds(&schema, &constraint, &mut random);
        }
    }
}

#[test]
fn one_key_more_costs_no_more_than_the_first() {
    let grammar = compact(r#"{"type":"object"}"#, PropertyOrder::Any, Whitespace::Compact);
    let constraint = Constraint::new(&grammar, &vocabulary()).unwrap();
    let mut matcher = constraint.matcher_within(100_000).unwrap();
    matcher.accept_bytes(b"{").unwrap();
    let letters = || (b'a'..=b'z').map(char::from);
    // All keys of one and of two letters: the shortest ones are taken.
    let short = letters().map(String::from);
    let keys = short.chain(letters().flat_map(|a| letters().map(move |b| format!("{a}{b}"))));
    for key in keys {
        matcher.accept_bytes(format!("\"{key}\":1,").as_bytes()).unwrap();
    }
    for byte in b"\"a\\u00" {
        matcher.accept_bytes(&[*byte]).unwrap();
        let room = matcher.judge().room().tokens(matcher.config().depth(), matcher.text().len());
        let cost = matcher.tokens_to_finish().unwrap();
        assert!(cost <= room + 1 && room < 1_000, "{cost} {room}");
    }
}

#[test]
fn what_is_not_in_the_mask_is_rejected() {
    let vocabulary = vocabulary();
    let mut random = Random(2);
    for (name, constraint) in constraints(&vocabulary) {
        let min = constraint.min_tokens().unwrap();
        let mut matcher = constraint.matcher_within(min + 1).unwrap();
        loop {
            let mask: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
            for token in 0..vocabulary.len() as TokenId {
                let (mut fork, text) = (matcher.fork(), matcher.text().to_vec());
                let allowed = fork.accept(token).is_ok();
                assert_eq!(allowed, mask.contains(&token), "{name}: {matcher:?}, token {token}");
                assert!(allowed || fork.text() == text);
            }
            let token = mask[random.below(mask.len())];
            matcher.accept(token).unwrap();
            if vocabulary.is_end(token) {
                break;
            }
        }
    }
}

#[test]
fn rollback_forks_and_reset_change_nothing() {
    let vocabulary = vocabulary();
    let mut random = Random(3);
    for (name, constraint) in constraints(&vocabulary) {
        let min = constraint.min_tokens().unwrap();
        for budget in [min, min + 2, min + 30] {
            let mut matcher = constraint.matcher_within(budget).unwrap();
            for _ in 0..40 {
                match random.below(8) {
                    0 => matcher.rollback(random.below(matcher.len() + 1)).unwrap(),
                    1 => matcher = matcher.fork(),
                    2 if random.below(3) == 0 => matcher.reset(),
                    _ => {
                        let mask: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
                        if matcher.config().is_finished() {
                            matcher.reset();
                            continue;
                        }
                        matcher.accept(mask[random.below(mask.len())]).unwrap();
                    }
                }
                let mut replayed = constraint.matcher_within(budget).unwrap();
                for token in matcher.steps.iter().filter_map(|step| step.token) {
                    replayed.accept(token).unwrap();
                }
                assert_eq!(matcher.tokens_left(), replayed.tokens_left());
                assert_eq!(matcher.mask().unwrap(), replayed.mask().unwrap(), "{name}");
            }
        }
    }
}

#[test]
fn bytes_take_one_token_and_must_leave_enough() {
    let grammar = compact(r#"{"enum":["yes","no"]}"#, PropertyOrder::Declared, Whitespace::Compact);
    let constraint = Constraint::new(&grammar, &vocabulary()).unwrap();
    let mut matcher = constraint.matcher_within(5).unwrap();
    matcher.accept_bytes(b"\"y").unwrap();
    assert_eq!(matcher.tokens_left(), Some(4));
    let mut matcher = constraint.matcher_within(5).unwrap();
    for byte in [b'"', b'n'] {
        matcher.accept(byte.into()).unwrap();
    }
    assert!(matcher.accept_bytes(b"").is_err(), "an empty step would take the last spare token");
    assert_eq!((matcher.tokens_left(), matcher.text()), (Some(3), &b"\"n"[..]));
}
