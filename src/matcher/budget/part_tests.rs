//! Budgets of fields, rules and reasoning parts, under random outputs.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::tests::{Random, compact, vocabulary};
use super::*;
use crate::grammar::{Grammar, PropertyOrder, Whitespace};
use crate::schema::{self, Options};
use crate::syntax::Syntax;
use crate::tags::{Marker, Tag, Tags};

/// A schema of some type with a budget.
fn within(tokens: u32, schema: &str) -> String {
    let rest = schema.trim_start_matches('{');
    let comma = if rest == "}" { "" } else { "," };
    format!(r#"{{"x-constrain":{{"max_tokens":{tokens}}}{comma}{rest}"#)
}

/// An object with `a` of this schema, and `b`.
fn object(a: &str) -> String {
    format!(
        r#"{{"type":"object","properties":{{"a":{a},"b":{{"type":"string","maxLength":9}}}},"required":["a","b"],"additionalProperties":false}}"#
    )
}

/// The schemas of `a`, with budgets from the least that is accepted on.
fn fields() -> Vec<(u32, String)> {
    let schemas = [
        r#"{"type":"string"}"#,
        r#"{"type":"string","minLength":3}"#,
        r#"{"type":"string","pattern":"^(abc|x)+y$"}"#,
        r#"{"type":"integer"}"#,
        r#"{"enum":["aaaa","bb",[1,1],{"a":1},12345]}"#,
        r#"{"type":"array","items":{"type":"string"},"minItems":1}"#,
        r#"{"type":"object","additionalProperties":{"const":1},"minProperties":1}"#,
        r#"{"anyOf":[{"type":"null"},{"type":"array","items":{"type":"boolean"}}]}"#,
        "{}",
    ];
    let mut found = Vec::new();
    for schema in schemas {
        for tokens in 0..9 {
            let text = object(&within(tokens, schema));
            let grammar = compact(&text, PropertyOrder::Declared, Whitespace::Compact);
            match Constraint::new(&grammar, &vocabulary()) {
                Ok(_) => found.push((tokens, within(tokens, schema))),
                Err(error) => {
                    let kind = error.kind();
                    assert!(matches!(kind, Kind::BudgetTooSmall { min } if *min > tokens.into()));
                    let place = "/properties/a/x-constrain/max_tokens";
                    assert!(error.to_string().contains(place), "{error}");
                }
            }
        }
    }
    assert!(found.len() > 40, "{}", found.len());
    found
}

/// Where the tokens of a random output begin, and its text.
fn draw(matcher: &mut Matcher, random: &mut Random, name: &str) -> (Vec<usize>, String) {
    let mut starts = Vec::new();
    loop {
        let mask: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
        assert!(!mask.is_empty(), "{name}: stuck after {:?}", matcher.text());
        let token = mask[random.below(mask.len())];
        let start = matcher.text().len();
        matcher.accept(token).unwrap_or_else(|error| panic!("{name}: {error}"));
        if matcher.constraint().vocabulary().is_end(token) {
            return (starts, String::from_utf8(matcher.text().to_vec()).unwrap());
        }
        starts.push(start);
    }
}

/// How many tokens begin in the value of a key.
fn tokens_of(key: &str, text: &str, starts: &[usize]) -> usize {
    let object: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap();
    let value = object[key].get();
    let from = value.as_ptr() as usize - text.as_ptr() as usize;
    starts.iter().filter(|&&start| (from..from + value.len()).contains(&start)).count()
}

#[test]
fn no_more_tokens_begin_in_a_field_than_it_may_have() {
    let (vocabulary, mut random) = (vocabulary(), Random(5));
    let styles = [
        (PropertyOrder::Declared, Whitespace::Compact),
        (PropertyOrder::Any, Whitespace::Flexible),
        (PropertyOrder::Any, Whitespace::Pretty(2)),
    ];
    let mut full = 0;
    for (tokens, field) in fields() {
        let schema = object(&field);
        let judge = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
        for (order, whitespace) in styles {
            // Indentation takes tokens, too.
            let tokens = if whitespace == Whitespace::Pretty(2) { tokens + 8 } else { tokens };
            let schema = schema.replacen(
                &format!(r#""max_tokens":{}"#, field_tokens(&field)),
                &format!(r#""max_tokens":{tokens}"#),
                1,
            );
            let grammar = compact(&schema, order, whitespace);
            let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
            let min = constraint.min_tokens().unwrap();
            for budget in [None, Some(min), Some(min + 2), Some(min + 40)] {
                for _ in 0..4 {
                    let mut matcher = match budget {
                        None => constraint.matcher(),
                        Some(budget) => constraint.matcher_within(budget).unwrap(),
                    };
                    let (starts, text) = draw(&mut matcher, &mut random, &schema);
                    let used = tokens_of("a", &text, &starts);
                    assert!(used <= tokens as usize, "{schema}: {used} tokens in {text}");
                    assert!(budget.is_none_or(|budget| starts.len() < budget as usize));
                    assert!(judge.is_valid(&serde_json::from_str(&text).unwrap()), "{text}");
                    full += usize::from(used == tokens as usize);
                }
            }
        }
    }
    assert!(full > 200, "the budgets were used up only {full} times");
}

/// Of an item that is an array, only its end says which one it is, and with that what later items must differ from:
/// what a field has left may prove too little then, and gives way.
#[test]
fn what_the_mask_offers_is_taken_in_a_field_whose_items_differ() {
    let (vocabulary, mut random, mut over) = (vocabulary(), Random(11), 0);
    let item = r##"{"type":"array","items":{"$ref":"#/$defs/d"},"uniqueItems":true}"##;
    for tokens in 8..40 {
        let field = within(tokens, item);
        let schema = object(&field).replacen('{', &format!(r#"{{"$defs":{{"d":{item}}},"#), 1);
        let grammar = compact(&schema, PropertyOrder::Declared, Whitespace::Compact);
        let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
        for _ in 0..24 {
            let (starts, text) = draw(&mut constraint.matcher(), &mut random, &schema);
            over += u32::from(tokens_of("a", &text, &starts) > tokens as usize);
        }
    }
    assert!(over > 0, "no field was longer");
}

fn field_tokens(field: &str) -> &str {
    let rest = field.split_once(r#""max_tokens":"#).unwrap().1;
    &rest[..rest.find('}').unwrap()]
}

#[test]
fn an_ample_budget_changes_no_mask() {
    let (vocabulary, mut random) = (vocabulary(), Random(6));
    for (_, field) in fields() {
        let ample = field.replacen(field_tokens(&field), "4000", 1);
        let with = compact(&object(&ample), PropertyOrder::Any, Whitespace::Compact);
        let without = with.clone().without_budgets();
        let mut with = Constraint::new(&with, &vocabulary).unwrap().matcher();
        let mut without = Constraint::new(&without, &vocabulary).unwrap().matcher();
        for _ in 0..60 {
            let mask: Vec<TokenId> = without.mask().unwrap().iter().collect();
            assert_eq!(
                with.mask().unwrap().iter().collect::<Vec<_>>(),
                mask,
                "{ample} {without:?}"
            );
            let token = mask[random.below(mask.len())];
            with.accept(token).unwrap();
            without.accept(token).unwrap();
            if vocabulary.is_end(token) {
                break;
            }
        }
    }
}

#[test]
fn parts_are_the_same_after_rollback_and_in_a_replay() {
    let (vocabulary, mut random) = (vocabulary(), Random(7));
    for (_, field) in fields() {
        let grammar = compact(&object(&field), PropertyOrder::Any, Whitespace::Flexible);
        let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
        let mut matcher = constraint.matcher();
        for _ in 0..30 {
            if random.below(4) == 0 {
                matcher.rollback(random.below(matcher.len() + 1)).unwrap();
            }
            let mask: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
            let token = mask[random.below(mask.len())];
            for other in 0..vocabulary.len() as TokenId {
                let allowed = matcher.fork().accept(other).is_ok();
                assert_eq!(allowed, mask.contains(&other), "{field}: {matcher:?}, token {other}");
            }
            matcher.accept(token).unwrap();
            if vocabulary.is_end(token) {
                matcher.reset();
            }
            let fresh = Constraint::new(&grammar, &vocabulary).unwrap();
            let mut replayed = fresh.matcher();
            for token in matcher.steps.iter().filter_map(|step| step.token) {
                replayed.accept(token).unwrap();
            }
            assert_eq!(matcher.mask().unwrap(), replayed.mask().unwrap(), "{field}");
        }
    }
}

/// The longest runs of a letter that random outputs of a grammar have.
fn longest_run(grammar: &Grammar, letter: char, draws: usize) -> usize {
    let (constraint, mut random) = (Constraint::new(grammar, &vocabulary()).unwrap(), Random(8));
    let mut longest = 0;
    for _ in 0..draws {
        let (starts, text) = draw(&mut constraint.matcher(), &mut random, "");
        let run = |&at: &usize| text[at..].starts_with(letter);
        longest = longest.max(starts.iter().filter(|at| run(at)).count());
    }
    longest
}

#[test]
fn rules_and_reasoning_parts_have_budgets() {
    let lark = "start: thought \";\" thought?\nthought[max_tokens=3]: \"z\"+\n";
    let grammar = Grammar::from_text(lark, Syntax::Lark, &Options::default()).unwrap();
    assert_eq!(longest_run(&grammar, 'z', 200), 6);
    let tags = |tokens| {
        let tag = Tag::json(Marker::text("<"), r#"{"const":1}"#, Marker::text(">"));
        let tags = Tags::new().reasoning(Marker::text("("), Marker::text(")"), None);
        let tags = tags.tag(tag).at_least(1).only_tags();
        tags.reasoning_tokens(tokens).grammar(&Options::default()).unwrap()
    };
    let constraint = Constraint::new(&tags(5), &vocabulary()).unwrap();
    let mut random = Random(9);
    for _ in 0..100 {
        let (starts, text) = draw(&mut constraint.matcher(), &mut random, "tags");
        let end = text.find(')').unwrap();
        assert!(starts.iter().filter(|&&at| (1..=end).contains(&at)).count() <= 5, "{text:?}");
    }
    let options = Options { reasoning_tokens: Some(4), ..Options::default() };
    let schema = object(r#"{"type":"string"}"#).replace("\"b\"", "\"reasoning\"");
    let grammar = schema::compile(&schema, &options).unwrap();
    let constraint = Constraint::new(&grammar, &vocabulary()).unwrap();
    for _ in 0..50 {
        let (starts, text) = draw(&mut constraint.matcher(), &mut random, "reasoning");
        assert!(tokens_of("reasoning", &text, &starts) <= 4, "{text}");
    }
}

#[test]
fn what_cannot_have_a_budget_is_refused() {
    let refused = |schema: &str| schema::compile(schema, &Options::default()).unwrap_err();
    let error =
        refused(r#"{"anyOf":[{"type":"null"},{"type":"string","x-constrain":{"max_tokens":9}}]}"#);
    assert!(matches!(error.kind(), Kind::Unsupported { .. }), "{error}");
    assert!(error.to_string().contains("/anyOf/1/x-constrain/max_tokens"), "{error}");
    for value in ["-1", "1.5", "\"9\"", "null"] {
        let error = refused(&format!(r#"{{"x-constrain":{{"max_tokens":{value}}}}}"#));
        assert_eq!(*error.kind(), Kind::Syntax, "{error}");
    }
    assert_eq!(*refused(r#"{"x-constrain":true}"#).kind(), Kind::Syntax);
    let harmless = r#"{"x-constrain":{"note":1},"const":{"x-constrain":{"max_tokens":1}}}"#;
    assert!(schema::compile(harmless, &Options::default()).is_ok());
    let left = "start[max_tokens=9]: start \"x\" | \"y\"";
    let error = Grammar::from_text(left, Syntax::Lark, &Options::default()).unwrap_err();
    assert!(matches!(error.kind(), Kind::Unsupported { .. }), "{error}");
    let other = "start[priority=9]: \"y\"";
    assert!(Grammar::from_text(other, Syntax::Lark, &Options::default()).is_err());
}
