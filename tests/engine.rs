//! The engine on hand-made grammars: masks against brute force, rollback against replay.

use constrain::expr::ExprId;
use constrain::grammar::{
    ArraySpec, Grammar, ItemClass, Node, NodeId, NumberSpec, ObjectSpec, OtherKeys, Property,
    PropertyOrder, Terminal,
};
use constrain::schema::{Options, compile};
use constrain::vocab::{Token, Vocabulary};
use constrain::{Constraint, Limits, Matcher};

/// Single bytes, and tokens that cross the borders of terminals in every way.
fn vocabulary() -> Vocabulary {
    let mut tokens: Vec<Token> = (0..=255u8).map(|byte| Token::Text([byte].into())).collect();
    let more = [
        "ab",
        "abc",
        "\"a",
        "a\"",
        "\":",
        "\",\"",
        "\"}",
        "\"]",
        "[\"",
        "{\"",
        "\":\"",
        "\": \"",
        ", ",
        "},{",
        "]]",
        "[[",
        "12",
        "123",
        "1,",
        "1]",
        "1}",
        "1.5",
        "e5",
        "\\u",
        "\\u00",
        "\\n",
        "\\\"",
        "é",
        "é\"",
        "😀",
        "  ",
        "\n\n",
        " \"",
        "true",
        "false,",
        "null}",
        "a\":1",
        "a\":1,\"",
        "\":1,\"a",
        "b\":1,\"b\":",
        "{\"a\":1}",
        "\"\":\"\",\"",
        "\":\"\",\"",
        "aaaa",
        "\"a\",",
        ",1",
        ",0",
        "[],[]",
        "{},{}",
        "1},{\"a\":1}",
        "true,true",
        "true,",
        "],[",
        "],[1",
        "\"},{\"a\":\"",
    ];
    tokens.extend(more.map(|text| Token::Text(text.as_bytes().into())));
    tokens.push(Token::Special("<end>".into()));
    let end = tokens.len() as u32 - 1;
    Vocabulary::new(tokens, vec![end]).unwrap()
}

/// Checks the mask against trying each token on a fork; returns the allowed tokens.
fn check_mask(matcher: &mut Matcher, vocabulary: &Vocabulary) -> Vec<u32> {
    let mut words = vec![u32::MAX; vocabulary.len().div_ceil(32) + 1];
    matcher.fill_bitmask(&mut words).unwrap();
    let all = 0..vocabulary.len() as u32;
    let listed: Vec<u32> = matcher.mask().unwrap().iter().collect();
    let bit = |id: &u32| words[*id as usize / 32] >> (id % 32) & 1 == 1;
    let by_bits: Vec<u32> = all.clone().filter(bit).collect();
    let tried: Vec<u32> = all.filter(|&id| matcher.fork().accept(id).is_ok()).collect();
    let text = String::from_utf8_lossy(matcher.text()).into_owned();
    let names = |ids: &[u32]| -> Vec<String> {
        let name = |&id| vocabulary.bytes(id).map(String::from_utf8_lossy);
        ids.iter().map(|id| format!("{id} {:?}", name(id))).collect()
    };
    assert_eq!(names(&listed), names(&by_bits), "list and bits differ after {text:?}");
    assert_eq!(names(&listed), names(&tried), "mask and trial differ after {text:?}");
    listed
}

/// A small generator of pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// Random walks through a grammar: masks are exact, there are no dead ends, and any mix of
/// rollbacks gives what a replay gives. Whole documents go to `judge`.
fn walk(grammar: &Grammar, walks: u64, judge: impl Fn(&[u8])) {
    let vocabulary = vocabulary();
    let constraint = Constraint::new(grammar, &vocabulary).unwrap();
    for seed in 0..walks {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1);
        let mut matcher = constraint.matcher();
        let mut taken: Vec<u32> = Vec::new();
        for _ in 0..60 {
            if matcher.can_stop() {
                judge(matcher.text());
            }
            if matcher.is_complete() {
                break;
            }
            let allowed = check_mask(&mut matcher, &vocabulary);
            assert!(!allowed.is_empty(), "dead end after {matcher:?}");
            if random.below(6) == 0 && !taken.is_empty() {
                let back = 1 + random.below(taken.len().min(4));
                matcher.rollback(back).unwrap();
                taken.truncate(taken.len() - back);
                let mut replay = constraint.matcher();
                taken.iter().for_each(|&token| replay.accept(token).unwrap());
                assert_eq!(matcher.text(), replay.text());
                let masks = [&mut matcher, &mut replay].map(|m| check_mask(m, &vocabulary));
                assert_eq!(masks[0], masks[1]);
                continue;
            }
            // Prefer long tokens: they cross borders.
            let token = (0..3).map(|_| allowed[random.below(allowed.len())]).max().unwrap();
            matcher.accept(token).unwrap();
            taken.push(token);
        }
    }
}

fn text(grammar: &mut Grammar, text: &str) -> NodeId {
    let expr = grammar.exprs.literal(text);
    grammar.add(Node::Terminal(Terminal::Text(expr)))
}

fn item(node: NodeId) -> ItemClass {
    ItemClass { node, counts: 0 }
}

/// Any JSON value.
fn json(order: PropertyOrder) -> Grammar {
    let mut grammar = Grammar::new(Limits::default());
    let value = grammar.reserve();
    let string = grammar.add(Node::Terminal(Terminal::String(ExprId::ANY)));
    let number = grammar.add(Node::Terminal(Terminal::Number(NumberSpec::default())));
    let words = ["true", "false", "null"].map(|word| text(&mut grammar, word));
    let array = ArraySpec { rest: vec![item(value)], ..ArraySpec::default() };
    let array = grammar.add(Node::Array(array));
    let object = grammar.add(Node::Object(ObjectSpec {
        properties: Vec::new(),
        others: vec![OtherKeys { keys: ExprId::ANY, value, min: 0, max: None }],
        min: 0,
        max: None,
        order,
        dependent: Vec::new(),
    }));
    let alt = grammar.add(Node::Alt([&[string, number, array, object], &words[..]].concat()));
    grammar.define(value, alt);
    let margin = grammar.add(Node::Terminal(Terminal::Margin));
    let root = grammar.add(Node::Seq(vec![margin, value, margin]));
    grammar.set_root(root);
    grammar
}

#[test]
fn any_json() {
    walk(&json(PropertyOrder::Any), 40, |bytes| {
        serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
    });
}

#[test]
fn undeclared_keys_do_not_repeat() {
    let vocabulary = vocabulary();
    let constraint = Constraint::new(&json(PropertyOrder::Any), &vocabulary).unwrap();
    let accepts = |text: &str| constraint.matcher().accept_bytes(text.as_bytes()).is_ok();
    assert!(accepts(r#"{"a":1,"b":2}"#));
    assert!(accepts(r#"{"a":1,"ab":2}"#));
    assert!(!accepts(r#"{"a":1,"a":2}"#));
    assert!(!accepts(r#"{"a":1,"\u0061":2}"#));
    assert!(accepts(r#"{"a":{"a":1}}"#));
    assert!(!accepts(r#"{"":1,"":2}"#));
    for start in [r#"{"a":1,"#, r#"{"a":1,""#, r#"{"a":1,"a"#, r#"{"a":1,"ab":2,"a"#, "{\"b", "{"] {
        let mut matcher = constraint.matcher();
        matcher.accept_bytes(start.as_bytes()).unwrap();
        check_mask(&mut matcher, &vocabulary);
    }
}

/// The literal at the end of such a pattern is not the key, nor is one of its words, if others than words match.
#[test]
fn keys_of_patterns_do_not_repeat() {
    let patterns =
        ["a+b", "[ab]b", "a{2,}b", "b?ab", "a*", "ab", "ab|b", "a+b|b", ".*b", "(a|bb)+a?"];
    let letters = |len: u32| (0..1u32 << len).map(move |bits| (len, bits));
    let keys: Vec<String> = (0..=4)
        .flat_map(letters)
        .map(|(len, bits)| (0..len).map(|i| ['a', 'b'][(bits >> i & 1) as usize]).collect())
        .collect();
    let repeats = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).replace("\\u0061", "a").replace("\\u0062", "b");
        let mut keys: Vec<&str> = text.split('"').skip(1).step_by(2).collect();
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        keys.len() < count
    };
    for (pattern, order) in patterns.iter().flat_map(|pattern| {
        [PropertyOrder::Any, PropertyOrder::Declared].map(|order| (pattern, order))
    }) {
        for rest in ["", r#","additionalProperties":{"const":2}"#, r#","minProperties":2"#] {
            let closed =
                if rest.contains("additional") { "" } else { r#","additionalProperties":false"# };
            let schema = format!(
                r#"{{"type":"object","patternProperties":{{"^({pattern})$":{{"const":1}}}}{closed}{rest}}}"#
            );
            let options = Options { property_order: order, ..Options::default() };
            let Ok(grammar) = compile(&schema, &options) else {
                assert!(*pattern == "ab" && rest.contains("min"), "{schema}");
                continue;
            };
            let constraint = Constraint::new(&grammar, &vocabulary()).unwrap();
            let accepts = |text: &str| constraint.matcher().accept_bytes(text.as_bytes()).is_ok();
            let matching: Vec<&String> =
                keys.iter().filter(|key| accepts(&format!(r#"{{"{key}":1"#))).collect();
            assert!(!matching.is_empty(), "{schema}");
            // A few keys are declared ones and may have an order.
            let both = |a: &str, b: &str| accepts(&format!(r#"{{"{a}":1,"{b}":1"#));
            for (a, b) in matching.iter().flat_map(|a| matching.iter().map(move |b| (a, b))) {
                assert_eq!(both(a, b) || both(b, a), a != b, "{a} {b} {schema}");
            }
            walk(&grammar, 6, |bytes| assert!(!repeats(bytes), "{bytes:?} {schema}"));
        }
    }
}

fn person(order: PropertyOrder, min: u64, max: Option<u64>) -> Grammar {
    let mut grammar = Grammar::new(Limits::default());
    let string = grammar.exprs.repeat(ExprId::ANY_CHAR, 1, Some(3));
    let string = grammar.add(Node::Terminal(Terminal::String(string)));
    let number = grammar.add(Node::Terminal(Terminal::Number(NumberSpec::default())));
    let list = ArraySpec { rest: vec![item(string)], min: 1, max: Some(2), ..ArraySpec::default() };
    let list = grammar.add(Node::Array(list));
    let property = |name: &str, value, required| Property { name: name.into(), value, required };
    let declared = grammar.exprs.literals(&["a", "ab", "abc", "é"]);
    let others = grammar.exprs.not(declared);
    let root = grammar.add(Node::Object(ObjectSpec {
        properties: vec![
            property("a", string, false),
            property("ab", number, true),
            property("abc", list, true),
            property("é", string, false),
        ],
        others: vec![OtherKeys { keys: others, value: number, min: 0, max: None }],
        min,
        max,
        order,
        dependent: vec![(0, 3)],
    }));
    grammar.set_root(root);
    grammar
}

#[test]
fn objects_of_every_kind() {
    for order in [PropertyOrder::Any, PropertyOrder::Declared] {
        for (min, max) in [(0, None), (3, Some(4)), (5, None), (0, Some(2))] {
            walk(&person(order, min, max), 12, |bytes| {
                let value: serde_json::Value = serde_json::from_slice(bytes).unwrap();
                let object = value.as_object().unwrap();
                assert!(object.contains_key("ab") && object.contains_key("abc"));
                assert!(!object.contains_key("a") || object.contains_key("é"));
                assert!(object.len() as u64 >= min);
                assert!(max.is_none_or(|max| object.len() as u64 <= max));
            });
        }
    }
}

#[test]
fn counted_strings_beyond_the_horizon() {
    let mut grammar = Grammar::new(Limits::default());
    let expr = grammar.exprs.repeat(ExprId::ANY_CHAR, 300, Some(1_000));
    let root = grammar.add(Node::Terminal(Terminal::String(expr)));
    grammar.set_root(root);
    let constraint = Constraint::new(&grammar, &vocabulary()).unwrap();
    for (len, ok) in [(299, false), (300, true), (1_000, true), (1_001, false)] {
        let text = format!("\"{}\"", "é".repeat(len));
        let accepted = constraint.matcher().accept_bytes(text.as_bytes()).is_ok();
        assert_eq!(accepted, ok, "{len}");
    }
    assert!(constraint.stats().states < 10, "{:?}", constraint.stats());
}

#[test]
fn ambiguous_text_stays_flat() {
    // S = "a" S* : every split of a run of a's.
    let mut grammar = Grammar::new(Limits::default());
    let s = grammar.reserve();
    let a = text(&mut grammar, "a");
    let more = grammar.add(Node::Repeat { item: s, separator: None, min: 0, max: None });
    let body = grammar.add(Node::Seq(vec![a, more]));
    grammar.define(s, body);
    grammar.set_root(s);
    walk(&grammar, 5, |_| {});
    let constraint = Constraint::new(&grammar, &vocabulary()).unwrap();
    let mut matcher = constraint.matcher();
    for _ in 0..2_000 {
        matcher.accept_bytes(b"a").unwrap();
    }
    assert!(matcher.can_stop());
}

#[test]
fn nested_repeats_and_separators() {
    let mut grammar = Grammar::new(Limits::default());
    let (a, comma) = (text(&mut grammar, "ab"), text(&mut grammar, ", "));
    let list = grammar.add(Node::Repeat { item: a, separator: Some(comma), min: 2, max: Some(3) });
    let (open, close) = (text(&mut grammar, "["), text(&mut grammar, "]"));
    let root = grammar.add(Node::Seq(vec![open, list, close]));
    grammar.set_root(root);
    let constraint = Constraint::new(&grammar, &vocabulary()).unwrap();
    let cases =
        [("[ab, ab]", true), ("[ab, ab, ab]", true), ("[ab]", false), ("[ab, ab, ab, ab]", false)];
    for (text, ok) in cases {
        let mut matcher = constraint.matcher();
        let accepted = matcher.accept_bytes(text.as_bytes()).is_ok() && matcher.can_stop();
        assert_eq!(accepted, ok, "{text}");
    }
    walk(&grammar, 5, |_| {});
}

#[test]
fn unique_items_differ_in_value() {
    let mut grammar = Grammar::new(Limits::default());
    let string = grammar.add(Node::Terminal(Terminal::String(ExprId::ANY)));
    let number = grammar.add(Node::Terminal(Terminal::Number(NumberSpec::default())));
    let null = text(&mut grammar, "null");
    let any = grammar.add(Node::Alt(vec![string, number, null]));
    let list = ArraySpec { rest: vec![item(any)], unique: true, ..ArraySpec::default() };
    let root = grammar.add(Node::Array(list));
    grammar.set_root(root);
    let constraint = Constraint::new(&grammar, &vocabulary()).unwrap();
    let cases = [
        (r#"["a","ab","b"]"#, true),
        (r#"["a","\u0061"]"#, false),
        ("[1,1.0]", false),
        ("[1,12,123]", true),
        ("[12,1,12]", false),
        (r#"[null,"null",1]"#, true),
        ("[null,null]", false),
        ("[-0,0]", false),
        ("[1e2,100]", false),
    ];
    for (text, ok) in cases {
        let mut matcher = constraint.matcher();
        let accepted = matcher.accept_bytes(text.as_bytes()).is_ok() && matcher.can_stop();
        assert_eq!(accepted, ok, "{text}");
    }
    walk(&grammar, 10, |bytes| {
        let items: Vec<serde_json::Value> = serde_json::from_slice(bytes).unwrap();
        for (i, item) in items.iter().enumerate() {
            assert!(!items[..i].contains(item), "{items:?}");
        }
    });
}

/// Items with few and with many values, in schemas that say `uniqueItems`.
const UNIQUE: &[&str] = &[
    r#"{"items":{"type":"boolean"}}"#,
    r#"{"items":{"type":["boolean","null"]},"minItems":2}"#,
    r#"{"items":{"type":"object","properties":{"a":{"enum":["x","y"]},"b":{"enum":[1,2]}},
        "required":["a","b"],"additionalProperties":false}}"#,
    r#"{"items":{"type":"object","properties":{"a":{"type":"boolean"},"b":{"const":1}},
        "additionalProperties":false},"minItems":1}"#,
    r#"{"items":{"type":"object","properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},
        "minProperties":1,"maxProperties":2,"additionalProperties":false}}"#,
    r#"{"items":{"type":"object","properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},
        "dependentRequired":{"a":["c"]},"additionalProperties":false}}"#,
    r#"{"items":{"type":"object","patternProperties":{"^[ab]$":{"enum":[1,2]}},
        "additionalProperties":false,"maxProperties":1}}"#,
    r#"{"items":{"type":"object","properties":{"a":{"enum":[1,2]}},"additionalProperties":{"const":1}}}"#,
    r#"{"items":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}"#,
    r#"{"items":{"type":"array","items":{"type":"boolean"},"maxItems":2}}"#,
    r#"{"items":{"type":"array","items":{"enum":[1,2]},"uniqueItems":true}}"#,
    r#"{"items":{"type":"array","prefixItems":[{"const":1},{"type":"boolean"}],"items":{"const":2},"maxItems":4}}"#,
    r#"{"items":{"type":"array","items":{"enum":[1,2]},"contains":{"const":2},"maxItems":2}}"#,
    r#"{"items":{"enum":[{"a":1},{"a":1,"b":[]},[],[1],{"b":[]},null,"x",{}]}}"#,
    r#"{"items":{"anyOf":[{"enum":[{"a":1},[2]]},{"type":"object","properties":{"a":{"enum":[1,2]}},
        "required":["a"],"additionalProperties":false}]}}"#,
    r#"{"prefixItems":[{"type":"boolean"},{"type":"boolean"}]}"#,
    r#"{"prefixItems":[{"enum":[1,2]},{"enum":[1,2,3]},{"type":"boolean"}],"items":{"enum":[1,[]]},"minItems":3}"#,
    r#"{"items":{"enum":[1,2,{"a":1}]},"contains":{"enum":[2,{"a":1}]},"minContains":2}"#,
    r#"{"items":{"type":"integer","minimum":0,"maximum":2}}"#,
    r#"{"items":{"type":"array","items":{"type":"array","items":{"type":"boolean"},"maxItems":1},"maxItems":1}}"#,
    r#"{}"#,
];

/// Schemas that ask for two equal items.
const EQUAL: &[&str] = &[
    r#"{"type":"array","not":{"uniqueItems":true}}"#,
    r#"{"type":"array","items":{"type":"boolean"},"maxItems":2,"not":{"uniqueItems":true}}"#,
    r#"{"type":"array","items":{"enum":[1,[],{"a":1},"x"]},"maxItems":3,"not":{"uniqueItems":true}}"#,
    r#"{"type":"array","prefixItems":[{"enum":[1,2]}],"items":{"enum":[2,{"b":1}]},"not":{"uniqueItems":true},"maxItems":3}"#,
    r#"{"type":"array","items":{"type":"string"},"maxItems":2,"not":{"uniqueItems":true}}"#,
    r#"{"type":"array","items":{"type":["integer","object"]},"oneOf":[{"uniqueItems":true},{"minItems":3}]}"#,
];

/// Where a `contains` may need a late place, the places before it must have enough values to differ: else a
/// document could begin that has no end.
#[test]
fn values_that_need_themselves_without_end_are_not_counted() {
    let compiled = |array: &str| {
        let text = format!(
            r##"{{"type": "array", "uniqueItems": true, {array}, "items": {{"anyOf": [{{"const": "a"}}, {{"$ref": "#/$defs/never"}}]}},
                "$defs": {{"never": {{"type": "array", "items": {{"type": "boolean"}}, "contains": {{"$ref": "#/$defs/never"}}}}}}}}"##
        );
        compile(&text, &Options::default())
    };
    // Found by fuzzing: the second item was looked for among values that there are not.
    for array in [r#""minItems": 2"#, r#""minItems": 0"#] {
        let error = compiled(array).unwrap_err();
        assert!(error.to_string().contains("uniqueItems"), "{error}");
    }
    assert!(compiled(r#""maxItems": 1"#).is_ok());
}

#[test]
fn places_that_contains_may_need_are_counted() {
    let compiled = |items: &str| {
        let text = format!(
            r#"{{"type": "array", "uniqueItems": true, "contains": {{"const": "a"}}, {items}}}"#
        );
        compile(&text, &Options::default())
    };
    // Three places for two values before the first that can be an `a`.
    let late = compiled(r#""prefixItems": [{"const": "b"}, {"const": 1}, {"const": 1}]"#);
    assert!(late.unwrap_err().to_string().contains("uniqueItems"));
    // Two values for two places; the first place meets it; the array may not be so long.
    for items in [
        r#""prefixItems": [{"enum": [1, 2]}, {"enum": [1, 2]}]"#,
        r#""prefixItems": [{"const": "a"}, {"const": 1}, {"const": 1}]"#,
        r#""prefixItems": [{"enum": ["a", "b"]}, {"const": 1}, {"const": 1}], "maxItems": 2"#,
        r#""items": {"enum": ["a", "b"]}"#,
    ] {
        let grammar = compiled(items).unwrap_or_else(|error| panic!("{items}: {error}"));
        let constraint = Constraint::new(&grammar, &vocabulary()).unwrap();
        for seed in 0..20 {
            let mut matcher = constraint.matcher();
            let mut draw = seed;
            while !matcher.is_complete() && matcher.text().len() < 400 {
                let ids = check_mask(&mut matcher, &vocabulary());
                assert!(!ids.is_empty(), "{items}: a dead end");
                draw = (draw * 31 + 7) % 1_009;
                matcher.accept(ids[draw % ids.len()]).unwrap();
            }
        }
    }
}

/// All arrays of up to three values of a small universe, judged by an independent validator; and walks.
/// Every `of`th schema, beginning with that at `first`.
fn check_unique_and_equal(first: usize, of: usize) {
    let universe: Vec<serde_json::Value> = serde_json::from_str(
        r#"[true, false, null, 1, 2, "x", {}, {"a": 1}, {"a": 2}, {"b": 1}, {"a": "x", "b": 1},
            {"a": "x", "b": 2}, {"b": 2, "a": "y"}, {"a": 1, "b": 2}, {"a": true}, {"a": false, "b": 1},
            {"a": 1, "c": 3}, {"a": 1, "b": []}, {"b": []}, [], [1], [2], [2, 1], [1, 2], [1, true],
            [1, false, 2, 2], [true], [true, false], [[]], [[true]], {"a": "y"}, {"c": 3, "a": 1}]"#,
    )
    .unwrap();
    let unique = UNIQUE.iter().map(|schema| {
        let mut schema: serde_json::Value = serde_json::from_str(schema).unwrap();
        schema["uniqueItems"] = true.into();
        schema["type"] = "array".into();
        schema
    });
    let equal = EQUAL.iter().map(|schema| serde_json::from_str(schema).unwrap());
    for schema in unique.chain(equal).skip(first).step_by(of) {
        let validator = jsonschema::validator_for(&schema).unwrap();
        for order in [PropertyOrder::Any, PropertyOrder::Declared] {
            let options = Options { property_order: order, ..Options::default() };
            let grammar = compile(&schema.to_string(), &options)
                .unwrap_or_else(|error| panic!("{schema}: {error}"));
            let constraint = Constraint::new(&grammar, &vocabulary()).unwrap();
            let accepts = |value: &serde_json::Value| {
                let mut matcher = constraint.matcher();
                matcher.accept_bytes(value.to_string().as_bytes()).is_ok() && matcher.can_stop()
            };
            let single = |value: &&serde_json::Value| {
                validator.is_valid(&vec![(*value).clone(); 1].into())
                    || schema.get("minItems").is_some()
                    || schema.get("contains").is_some()
                    || schema.get("prefixItems").is_some()
                    || schema.get("uniqueItems").is_none()
            };
            let values: Vec<&serde_json::Value> = universe.iter().filter(single).collect();
            for a in &values {
                for b in &values {
                    let pair = serde_json::json!([a, b]);
                    let (valid, accepted) = (validator.is_valid(&pair), accepts(&pair));
                    let exact = order == PropertyOrder::Any;
                    assert!(valid == accepted || (valid && !exact), "{schema}\n{order:?} {pair}");
                    if !accepted
                        && schema.get("uniqueItems").is_some()
                        && schema.get("minItems").is_none()
                    {
                        continue;
                    }
                    for c in &values {
                        let triple = serde_json::json!([a, b, c]);
                        let (valid, accepted) = (validator.is_valid(&triple), accepts(&triple));
                        assert!(
                            valid == accepted || (valid && !exact),
                            "{schema}\n{order:?} {triple}"
                        );
                    }
                }
            }
            walk(&grammar, 4, |bytes| {
                let document = serde_json::from_slice(bytes).unwrap();
                assert!(validator.is_valid(&document), "{schema}\n{document}");
            });
        }
    }
}

/// All schemas, in tests that run beside each other.
mod unique_and_equal_items_of_any_kind {
    macro_rules! parts {
        ($($name:ident $first:literal)*) => {
            $(#[test] fn $name() { super::check_unique_and_equal($first, 8) })*
        };
    }

    parts!(one 0 two 1 three 2 four 3 five 4 six 5 seven 6 eight 7);
}

/// `A = D C`, `B = C "b" A`, `C = D`, `D = "" | A B | "a" D` without its empty strings: every split
/// of a text into parts is possible, at every depth.
#[test]
fn hopelessly_ambiguous_grammars_end_in_an_error() {
    let mut grammar = Grammar::new(Limits::default());
    let (a, b) = (text(&mut grammar, "a"), text(&mut grammar, "b"));
    let parts: Vec<NodeId> = (0..12).map(|_| grammar.reserve()).collect();
    for (i, &part) in parts.iter().enumerate() {
        let others = parts.iter().enumerate().filter(|(j, _)| *j != i);
        let mut ways = vec![a];
        for (_, &other) in others {
            let first = grammar.add(Node::Seq(vec![a, other, part]));
            let second = grammar.add(Node::Seq(vec![b, part, other]));
            ways.extend([first, second]);
        }
        let body = grammar.add(Node::Alt(ways));
        grammar.define(part, body);
    }
    grammar.set_root(parts[0]);
    let constraint = Constraint::new(&grammar, &vocabulary()).unwrap();
    let mut matcher = constraint.matcher();
    for _ in 0..40 {
        let before = matcher.text().to_vec();
        if let Err(error) = matcher.accept_bytes(b"a") {
            assert!(matches!(error.kind(), constrain::Kind::TooComplex { .. }), "{error}");
            assert_eq!(matcher.text(), before);
            return;
        }
    }
}

/// What a walk sees: its text, and a digest of its masks.
fn trace(constraint: &Constraint, seed: u64) -> (Vec<u8>, u64) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1);
    let mut matcher = constraint.matcher();
    let mut digest = seed;
    for _ in 0..30 {
        let allowed: Vec<u32> = matcher.mask().unwrap().iter().collect();
        for &id in &allowed {
            digest = (digest ^ u64::from(id)).wrapping_mul(0x0100_0000_01B3);
        }
        if random.below(8) == 0 {
            matcher.rollback(matcher.len().min(2)).unwrap();
            continue;
        }
        matcher.accept(allowed[random.below(allowed.len())]).unwrap();
        if matcher.is_complete() {
            break;
        }
    }
    (matcher.text().to_vec(), digest)
}

/// One constraint, eight threads, a thousand sequences: each sees what it would see alone. With a small cache the
/// constraint starts afresh again and again meanwhile.
#[test]
fn threads_share_a_constraint() {
    let vocabulary = vocabulary();
    for cache_bytes in [Limits::default().cache_bytes, 20_000] {
        for order in [PropertyOrder::Any, PropertyOrder::Declared] {
            let schema = r#"{"type":"object","properties":{"a":{"type":"string","pattern":"^[a-f]+$"},"ab":{"type":"array",
                "items":{"type":["integer","boolean","string"]},"uniqueItems":true}},"minProperties":1}"#;
            let limits = Limits { cache_bytes, ..Limits::default() };
            let options = Options { property_order: order, limits, ..Options::default() };
            let grammar = compile(schema, &options).unwrap();
            let alone = Constraint::new(&grammar, &vocabulary).unwrap();
            let expected: Vec<_> = (0..1_000).map(|seed| trace(&alone, seed)).collect();
            let shared = Constraint::new(&grammar, &vocabulary).unwrap();
            let found: Vec<_> = std::thread::scope(|scope| {
                let start = |thread: u64| {
                    let shared = &shared;
                    // Each goes through them from another end.
                    scope.spawn(move || {
                        let seeds = (0..125).map(|i| (i * 37 % 125) * 8 + thread);
                        seeds.map(|seed| (seed, trace(shared, seed))).collect::<Vec<_>>()
                    })
                };
                let threads: Vec<_> = (0..8).map(start).collect();
                threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(found.len(), 1_000);
            for (seed, found) in found {
                assert_eq!(found, expected[seed as usize], "sequence {seed}, {order:?}");
            }
        }
    }
}

/// The bytes that the mask of a vocabulary of bytes has.
fn bytes_allowed(matcher: &mut Matcher) -> Vec<u8> {
    matcher.mask().unwrap().iter().filter_map(|id| u8::try_from(id).ok()).collect()
}

/// Every byte after every beginning of a character, in text and in a JSON string, as the standard library has it.
#[test]
fn every_beginning_of_every_character() {
    let vocabulary = vocabulary();
    for (open, plain) in [("", true), ("\"", false)] {
        let mut grammar = Grammar::new(Limits::default());
        let terminal = match plain {
            true => Terminal::Text(ExprId::ANY_CHAR),
            false => Terminal::String(ExprId::ANY_CHAR),
        };
        let root = grammar.add(Node::Terminal(terminal));
        grammar.set_root(root);
        let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
        let mut beginnings = 0;
        let mut work: Vec<Vec<u8>> = vec![Vec::new()];
        while let Some(begun) = work.pop() {
            let mut matcher = constraint.matcher();
            matcher.accept_bytes(open.as_bytes()).unwrap();
            matcher.accept_bytes(&begun).unwrap();
            let allowed = bytes_allowed(&mut matcher);
            beginnings += 1;
            for byte in 0..=255u8 {
                let longer = [&begun[..], &[byte]].concat();
                let (whole, viable) = match std::str::from_utf8(&longer) {
                    Ok(_) => (true, plain || (byte >= b' ' && byte != b'"')),
                    // No error but the end.
                    Err(error) => (false, error.error_len().is_none()),
                };
                assert_eq!(allowed.contains(&byte), viable, "{longer:?} in {constraint:?}");
                if viable && !whole {
                    work.push(longer);
                }
            }
        }
        // None, the 51 lead bytes, and what three and four bytes go on with.
        let (three, four) = (16 * 64 - 32 - 32, 5 * 64 - 16 - 48);
        assert_eq!(beginnings, 1 + 51 + three + four + four * 64);
    }
}

/// Every escape of four digits, alone and in pairs, as a JSON parser reads it.
#[test]
fn every_escape() {
    let schema = r#"{"type":"string","minLength":1,"maxLength":1}"#;
    let grammar = compile(schema, &Options::default()).unwrap();
    let constraint = Constraint::new(&grammar, &vocabulary()).unwrap();
    let check = |text: &str| {
        let mut matcher = constraint.matcher();
        let accepted = matcher.accept_bytes(text.as_bytes()).is_ok() && matcher.can_stop();
        let one = serde_json::from_str::<String>(text).is_ok_and(|text| text.chars().count() == 1);
        assert_eq!(accepted, one, "{text}");
    };
    for code in 0..=0xFFFFu32 {
        check(&format!("\"\\u{code:04x}\""));
        if code % 7 == 0 {
            check(&format!("\"\\u{code:04X}\""));
        }
    }
    for high in (0xD700..0xE100).step_by(3) {
        for low in [0x20, 0xD7FF, 0xD800, 0xDBFF, 0xDC00, 0xDD5A, 0xDFFF, 0xE000] {
            check(&format!("\"\\u{high:04x}\\u{low:04x}\""));
        }
    }
    for byte in 0..=127u8 {
        check(&format!("\"\\{}\"", char::from(byte)));
    }
}

/// Vocabularies of every size modulo 32: no bit beyond the last id, in the last word or after it.
#[test]
fn masks_end_with_the_vocabulary() {
    let grammar = compile("{}", &Options::default()).unwrap();
    for more in 0..70 {
        let mut tokens: Vec<Token> = (0..=255u8).map(|byte| Token::Text([byte].into())).collect();
        tokens.push(Token::Special("<end>".into()));
        tokens.extend((0..more).map(|i| Token::Text("1".repeat(2 + i).into_bytes().into())));
        let vocabulary = Vocabulary::new(tokens, vec![256]).unwrap();
        let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
        for text in ["", "\"", "1", "[", "{"] {
            let mut matcher = constraint.matcher();
            matcher.accept_bytes(text.as_bytes()).unwrap();
            let listed: Vec<u32> = matcher.mask().unwrap().iter().collect();
            let mut words = vec![u32::MAX; 13];
            matcher.fill_bitmask(&mut words).unwrap();
            let bits = (0..13 * 32).filter(|id| words[*id as usize / 32] >> (id % 32) & 1 == 1);
            assert_eq!(bits.collect::<Vec<u32>>(), listed, "{more} more after {text:?}");
            assert!(listed.iter().all(|&id| (id as usize) < vocabulary.len()));
        }
    }
}
