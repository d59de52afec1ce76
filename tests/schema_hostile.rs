//! Schemas written to hurt: each is answered, correctly, on a thread with a stack of 512 KiB. What compiles is
//! also walked through on that stack: no mask is empty, no step fails.
//!
//! How long each answer takes is printed, and not judged, by
//!
//! ```sh
//! CONSTRAIN_TIMES=1 cargo test --release --no-default-features --features cli --test schema_hostile -- --nocapture
//! ```

mod support;

use constrain::limits::Cancel;
use constrain::schema::{Options, compile};
use constrain::{Constraint, Error, Grammar, Kind};

/// What must come of a schema.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Wanted {
    Ok,
    Syntax,
    TooDeep,
    TooLarge,
    Unsatisfiable,
    BadRef,
    /// An answer or [`Kind::TooComplex`]; never a hang.
    OkOrTooComplex,
    UnsatisfiableOrTooComplex,
}

fn compiled(schema: String) -> Result<Grammar, Error> {
    let run = move || {
        let name: String = schema.chars().take(60).collect();
        let start = std::time::Instant::now();
        let grammar = compile(&schema, &Options::default());
        if std::env::var_os("CONSTRAIN_TIMES").is_some() {
            let outcome =
                grammar.as_ref().map_or_else(|e| format!("{:?}", e.kind()), |_| "ok".into());
            eprintln!(
                "{:8.2} ms  {:>8} bytes  {outcome}  {name}",
                start.elapsed().as_secs_f64() * 1e3,
                schema.len()
            );
        }
        let grammar = grammar?;
        match Constraint::new(&grammar, &support::bytes()) {
            Ok(constraint) => walk(&constraint, &name),
            Err(error) => {
                assert!(
                    matches!(error.kind(), Kind::TooComplex { .. } | Kind::TooDeep),
                    "{name}: {error}"
                )
            }
        }
        Ok(grammar)
    };
    let thread = std::thread::Builder::new().stack_size(512 << 10).spawn(run).expect("a thread");
    thread.join().expect("no panic")
}

/// Writes random bytes out of the masks.
fn walk(constraint: &Constraint, name: &str) {
    let mut random = support::Random(7);
    for _ in 0..2 {
        let mut matcher = constraint.matcher();
        for _ in 0..80 {
            let allowed: Vec<u32> = matcher.mask().expect("a mask").iter().collect();
            assert!(!allowed.is_empty(), "{name}: dead end after {matcher:?}");
            if matcher.is_complete() {
                break;
            }
            let text: Vec<u32> = allowed.into_iter().filter(|&id| id < 256).collect();
            let Some(&token) = text.get(random.below(text.len().max(1))) else { break };
            matcher.accept(token).expect("an allowed token");
        }
    }
}

fn check(name: &str, schema: String, wanted: Wanted) {
    let outcome = compiled(schema);
    let kind = outcome.as_ref().err().map(|error| error.kind().clone());
    let complex = matches!(kind, Some(Kind::TooComplex { .. }));
    let right = match wanted {
        Wanted::Ok => kind.is_none(),
        Wanted::Syntax => kind == Some(Kind::Syntax),
        Wanted::TooDeep => kind == Some(Kind::TooDeep),
        Wanted::TooLarge => kind == Some(Kind::TooLarge),
        Wanted::Unsatisfiable => kind == Some(Kind::Unsatisfiable),
        Wanted::BadRef => kind == Some(Kind::BadRef),
        Wanted::OkOrTooComplex => kind.is_none() || complex,
        Wanted::UnsatisfiableOrTooComplex => kind == Some(Kind::Unsatisfiable) || complex,
    };
    assert!(right, "{name}: wanted {wanted:?}, got {:?}", outcome.err());
    if let Err(error) = outcome {
        let text = error.to_string();
        assert!(text.len() <= 1024, "{name}: {error}");
        assert!(!text.chars().any(char::is_control), "{name}: {text:?}");
    }
}

fn nest(open: &str, close: &str, depth: usize) -> String {
    format!("{}{{}}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn nesting() {
    check("items x100", nest(r#"{"type":"array","items":"#, "}", 100), Wanted::Ok);
    check("items x1000", nest(r#"{"type":"array","items":"#, "}", 1000), Wanted::TooDeep);
    check("items x100000", nest(r#"{"items":"#, "}", 100_000), Wanted::TooDeep);
    for keyword in ["allOf", "anyOf"] {
        check(keyword, nest(&format!("{{\"{keyword}\":["), "]}", 60), Wanted::Ok);
        check(keyword, nest(&format!("{{\"{keyword}\":["), "]}", 10_000), Wanted::TooDeep);
    }
    check("not x60", nest(r#"{"not":"#, "}", 60), Wanted::Ok);
    check("not x61", nest(r#"{"not":"#, "}", 61), Wanted::Unsatisfiable);
    check("not x10000", nest(r#"{"not":"#, "}", 10_000), Wanted::TooDeep);
    check("unclosed", "[".repeat(1_000_000), Wanted::TooDeep);
    let deep = format!(r#"{{"enum":[{}{}]}}"#, "[".repeat(10_000), "]".repeat(10_000));
    check("deep value", deep, Wanted::TooDeep);
}

#[test]
fn reference_chains() {
    let chain = |link: &dyn Fn(usize) -> String, last: &str, count: usize| {
        let defs: String = (0..count).map(|i| format!("\"d{i}\":{},", link(i + 1))).collect();
        format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{defs}"d{count}":{last}}}}}"##)
    };
    let plain = |i: usize| format!(r##"{{"$ref":"#/$defs/d{i}"}}"##);
    check("chain", chain(&plain, r#"{"type":"null"}"#, 5000), Wanted::OkOrTooComplex);
    let sibling = |i: usize| format!(r##"{{"$ref":"#/$defs/d{i}","minLength":1}}"##);
    check(
        "chain with siblings",
        chain(&sibling, r#"{"type":"string"}"#, 1000),
        Wanted::OkOrTooComplex,
    );
    let objects = |i: usize| {
        format!(
            r##"{{"type":"object","properties":{{"n":{{"$ref":"#/$defs/d{i}"}}}},"required":["n"]}}"##
        )
    };
    check("objects", chain(&objects, r#"{"type":"null"}"#, 1000), Wanted::OkOrTooComplex);
}

#[test]
fn recursion_without_a_base_case() {
    for schema in [
        r##"{"$ref":"#"}"##,
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##,
        r##"{"allOf":[{"$ref":"#"},{"type":"string"}]}"##,
        r##"{"type":"object","properties":{"n":{"$ref":"#"}},"required":["n"]}"##,
        r##"{"type":"array","items":{"$ref":"#"},"minItems":1}"##,
        r##"{"type":"object","properties":{"n":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}},"required":["n"]}"##,
    ] {
        check(schema, schema.to_owned(), Wanted::Unsatisfiable);
    }
}

#[test]
fn growth() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let defs: String = (0..20)
            .map(|i| {
                let next = format!(r##"{{"$ref":"#/$defs/d{}"}}"##, i + 1);
                format!(r#""d{i}":{{"{keyword}":[{next},{next}]}},"#)
            })
            .collect();
        let schema =
            format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{defs}"d20":{{"type":"string"}}}}}}"##);
        let wanted = if keyword == "oneOf" { Wanted::Unsatisfiable } else { Wanted::Ok };
        check(keyword, schema, wanted);
    }
    let defs: String = (0..30)
        .map(|i| {
            let next = format!(r##"{{"$ref":"#/$defs/d{}"}}"##, i + 1);
            format!(r#""d{i}":{{"type":"object","properties":{{"a":{next},"b":{next},"c":{next}}},"required":["a","b","c"]}},"#)
        })
        .collect();
    let schema = format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{defs}"d30":{{"type":"null"}}}}}}"##);
    check("3^30 leaves", schema, Wanted::Ok);
    for arms in [10, 20] {
        let pairs: Vec<String> = (0..arms)
            .map(|i| format!(r#"{{"anyOf":[{{"type":"object","required":["a{i}"]}},{{"type":"object","required":["b{i}"]}}]}}"#))
            .collect();
        check(
            "allOf of anyOf",
            format!(r#"{{"allOf":[{}]}}"#, pairs.join(",")),
            Wanted::OkOrTooComplex,
        );
    }
    let mut one_of = r#"{"type":"object","required":["x"]}"#.to_owned();
    for i in 0..16 {
        one_of = format!(r#"{{"oneOf":[{one_of},{{"type":"object","required":["p{i}"]}}]}}"#);
    }
    check("nested oneOf", one_of, Wanted::OkOrTooComplex);
    let mut condition = r#"{"required":["x"]}"#.to_owned();
    for i in 0..20 {
        condition = format!(
            r#"{{"if":{condition},"then":{{"required":["t{i}"]}},"else":{{"not":{{"required":["e{i}"]}}}}}}"#
        );
    }
    check("nested if", condition, Wanted::OkOrTooComplex);
}

#[test]
fn sizes() {
    let strings: Vec<String> = (0..1_000_000).map(|i| format!("\"s{i}\"")).collect();
    check("a million strings", format!(r#"{{"enum":[{}]}}"#, strings.join(",")), Wanted::TooLarge);
    check("50,000 strings", format!(r#"{{"enum":[{}]}}"#, strings[..50_000].join(",")), Wanted::Ok);
    let names: Vec<String> =
        (0..10_000).map(|i| format!("\"p{i}\":{{\"type\":\"integer\"}}")).collect();
    check("10,000 properties", format!(r#"{{"properties":{{{}}}}}"#, names.join(",")), Wanted::Ok);
    let required: Vec<String> = (0..10_000).map(|i| format!("\"p{i}\"")).collect();
    let (names, required) = (names.join(","), required.join(","));
    let schema = format!(r#"{{"properties":{{{names}}},"required":[{required}]}}"#);
    check("10,000 required", schema, Wanted::Ok);
    let arms: Vec<String> = (0..2_000)
        .map(|i| {
            format!(
                r#"{{"type":"object","properties":{{"k{i}":{{"const":{i}}}}},"required":["k{i}"]}}"#
            )
        })
        .collect();
    check("2,000 objects", format!(r#"{{"anyOf":[{}]}}"#, arms.join(",")), Wanted::Ok);
    let patterns: Vec<String> =
        (0..20).map(|i| format!("\"a.{{{i}}}b\":{{\"minimum\":{i}}}")).collect();
    check(
        "patterns",
        format!(r#"{{"patternProperties":{{{}}}}}"#, patterns.join(",")),
        Wanted::OkOrTooComplex,
    );
    let patterns: Vec<String> = (0..30).map(|i| format!(r#"{{"pattern":"a.{{{i}}}b"}}"#)).collect();
    check(
        "allOf patterns",
        format!(r#"{{"allOf":[{}]}}"#, patterns.join(",")),
        Wanted::OkOrTooComplex,
    );
    check("a long name", format!(r#"{{"required":["{}"]}}"#, "x".repeat(500_000)), Wanted::Ok);
}

/// Patterns whose intersections and unions have a state for every set of places: those that compile walk, the others
/// run out of fuel.
#[test]
fn overlapping_patterns() {
    let keys = |count: usize, pattern: &dyn Fn(usize) -> String| {
        let minimum = |i| format!(r#""{}":{{"minimum":{i}}}"#, pattern(i));
        format!(r#"{{"patternProperties":{{{}}}}}"#, list(count, minimum))
    };
    let any_char = |i: usize| format!("a.{{{i}}}b");
    let two_letters = |i: usize| format!("[ab]*{}[ab]{{{i}}}c", ["a", "b"][i % 2]);
    let unicode = |i: usize| format!(r"\\w*\\p{{L}}.{{{i}}}\\p{{N}}");
    check("4 keys", keys(4, &any_char), Wanted::Ok);
    for (name, pattern) in [
        ("any character", &any_char as &dyn Fn(usize) -> String),
        ("two letters", &two_letters),
        ("letters and digits", &unicode),
    ] {
        check(name, keys(8, pattern), Wanted::OkOrTooComplex);
        for count in [6, 20, 60] {
            for keyword in ["allOf", "oneOf"] {
                let patterns = list(count, |i| format!(r#"{{"pattern":"{}"}}"#, pattern(i)));
                let schema = format!(r#"{{"{keyword}":[{patterns}]}}"#);
                let wanted = if count > 6 { Wanted::OkOrTooComplex } else { Wanted::Ok };
                check(name, schema, wanted);
            }
        }
    }
}

/// All of some, none of others, each in three ways: the pattern has thousands of states.
#[test]
fn a_product_of_negated_patterns() {
    let not_any = |patterns: [&str; 3]| {
        let patterns = patterns.map(|pattern| format!(r#"{{"pattern":"{pattern}"}}"#)).join(",");
        format!(r#"{{"not":{{"anyOf":[{patterns}]}}}}"#)
    };
    let not_all = |ways: [[&str; 3]; 3]| {
        format!(r#"{{"not":{{"allOf":[{}]}}}}"#, ways.map(not_any).join(","))
    };
    let parts = [
        not_all([["^....$", "ab1", "b12"], ["^....$", "bc1", "c12"], ["^....$", "ca1", "a12"]]),
        not_all([
            [r"^\\w*$", r"\\d\\d", "[ab]"],
            [r"^\\w*$", r"\\d\\d", "[bc]"],
            ["^-", "x", "[ca]"],
        ]),
        not_all([[r"^\\w+", "1.*2", "ac"], [r"^\\w+", "1.*2", "a2"], [r"^\\w+", "1.*2", "a1"]]),
    ];
    let schema = format!(
        r#"{{"type":"string","allOf":[{},{{"pattern":"[aA][12].*[zZ]"}}],"minLength":10,"maxLength":20}}"#,
        parts.join(",")
    );
    check("a product", schema, Wanted::Ok);
}

#[test]
fn unused_definitions_cost_nothing() {
    let bomb =
        (0..30).map(|i| format!(r#"{{"pattern":"a.{{{i}}}b"}}"#)).collect::<Vec<_>>().join(",");
    let defs: Vec<String> = (0..1_000).map(|i| format!(r#""d{i}":{{"allOf":[{bomb}]}}"#)).collect();
    check("unused", format!(r#"{{"$defs":{{{}}},"type":"null"}}"#, defs.join(",")), Wanted::Ok);
}

#[test]
fn combinations() {
    let many: Vec<String> = (0..200).map(|i| format!("\"^p{i}x\":{{\"minimum\":{i}}}")).collect();
    let schema = format!(r#"{{"patternProperties":{{{}}}}}"#, many.join(","));
    check("200 patterns", schema, Wanted::OkOrTooComplex);
    let mut nested = "{\"type\":\"null\"}".to_owned();
    for _ in 0..6 {
        nested = format!(r#"{{"type":"array","items":{nested},"maxItems":1000,"minItems":1}}"#);
    }
    check("6 arrays of 1000", nested, Wanted::Ok);
    let counted =
        r#"{"type":"string","pattern":"^(ab|c)*$","minLength":1000000,"maxLength":1000001}"#;
    check("a counted pattern", counted.to_owned(), Wanted::OkOrTooComplex);
    for keyword in ["not", "dependentSchemas", "if"] {
        let mut schema = r#"{"required":["x"]}"#.to_owned();
        for i in 0..20 {
            schema = match keyword {
                "not" => format!(r#"{{"not":{schema},"required":["n{i}"]}}"#),
                "if" => format!(r#"{{"if":{schema},"then":{{"required":["t{i}"]}}}}"#),
                _ => format!(r#"{{"dependentSchemas":{{"d{i}":{schema}}}}}"#),
            };
        }
        check(keyword, schema, Wanted::OkOrTooComplex);
    }
    let dynamic = r##"{"$id":"http://a.example/","$dynamicAnchor":"n","properties":{"a":{"$dynamicRef":"#n"}},
        "$defs":{"b":{"$id":"b","$dynamicAnchor":"n","allOf":[{"$dynamicRef":"#n"}]}}}"##;
    check("dynamic", dynamic.to_owned(), Wanted::Ok);
    let looped = r##"{"$dynamicAnchor":"n","allOf":[{"$dynamicRef":"#n"}]}"##;
    check("a dynamic loop", looped.to_owned(), Wanted::Unsatisfiable);
}

#[test]
fn unique_items() {
    let consts: Vec<String> = (0..60).map(|i| format!(r#""p{i}":{{"const":{i}}}"#)).collect();
    let wide = format!(
        r#"{{"type":"object","properties":{{{}}},"additionalProperties":false}}"#,
        consts.join(",")
    );
    let array = |items: &str| format!(r#"{{"type":"array","uniqueItems":true,"items":{items}}}"#);
    check("2^60 objects", array(&wide), Wanted::Ok);
    let mut deep = r#"{"type":"boolean"}"#.to_owned();
    for _ in 0..55 {
        deep = array(&deep);
    }
    check("55 unique arrays", deep, Wanted::Ok);
    let tree = r##"{"$ref":"#/$defs/t","$defs":{"t":{"type":"array","uniqueItems":true,"items":{"$ref":"#/$defs/t"}}}}"##;
    check("a tree of sets", tree.to_owned(), Wanted::Ok);
    let required: Vec<String> = (0..60).map(|i| format!("\"p{i}\"")).collect();
    let one = wide.replacen('{', &format!(r#"{{"required":[{}],"#, required.join(",")), 1);
    check("one object", array(&one), Wanted::Ok);
    let two = format!(r#"{{"type":"array","uniqueItems":true,"minItems":2,"items":{one}}}"#);
    check("two of one object", two, Wanted::Unsatisfiable);
}

#[test]
fn deep_values_are_compared_on_a_small_stack() {
    let run = || {
        let schema = r#"{"type":"array","uniqueItems":true}"#;
        let grammar = compile(schema, &Options::default()).expect("compiles");
        let constraint = Constraint::new(&grammar, &support::bytes()).expect("compiles");
        let nest = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let accepts = |text: &str| {
            let mut matcher = constraint.matcher();
            let whole = matcher.accept_bytes(text.as_bytes()).is_ok();
            whole && !matcher.mask().expect("a mask").is_empty() && matcher.can_stop()
        };
        assert!(accepts(&format!("[{},{},{}]", nest(127), nest(126), nest(125))));
        assert!(!accepts(&format!("[{},{}]", nest(127), nest(127))));
        assert!(!accepts(&format!("[{},1,{}]", nest(100), nest(100))));
    };
    let thread = std::thread::Builder::new().stack_size(512 << 10).spawn(run).expect("a thread");
    thread.join().expect("no panic");
}

#[test]
fn compiling_can_be_cancelled() {
    let cancel = Cancel::default();
    let options = Options { cancel: Some(cancel.clone()), ..Options::default() };
    assert!(compile("{}", &options).is_ok());
    cancel.cancel();
    assert_eq!(*compile("{}", &options).expect_err("cancelled").kind(), Kind::Cancelled);
}

#[test]
fn bounds() {
    let ok = [
        r#"{"type":"array","maxItems":1000000000000000000,"minItems":1000000000}"#,
        r#"{"type":"string","maxLength":1000000000000000000,"minLength":1000000000}"#,
        r#"{"type":"string","maxLength":1e400}"#,
        r#"{"type":"string","maxLength":3.0}"#,
        r#"{"type":"integer","minimum":-999999999999999999,"maximum":999999999999999998}"#,
        r#"{"type":"number","minimum":1e-9,"maximum":2e-9}"#,
        r#"{"type":"number","minimum":1e400}"#,
        r#"{"type":"number","multipleOf":1e-300}"#,
        r#"{"allOf":[{"multipleOf":7},{"multipleOf":11},{"multipleOf":13},{"multipleOf":1000003}]}"#,
        r#"{"properties":{"\u0000":true,"":true,"__proto__":true,"é":true,"e\u0301":true}}"#,
    ];
    for schema in ok {
        check(schema, schema.to_owned(), Wanted::Ok);
    }
    let syntax = [
        r#"{"maxLength":-1}"#,
        r#"{"maxLength":1.5}"#,
        r#"{"maxLength":"3"}"#,
        r#"{"maxLength":null}"#,
        r#"{"minimum":NaN}"#,
        r#"{"type":"strnig"}"#,
        r#"{"type":[]}"#,
        r#"{"const":"\ud800"}"#,
        r#"{"type":"integer","type":"string"}"#,
        r#"{"properties":{"a":{},"\u0061":{}}}"#,
        "\u{feff}{}",
        "{} {}",
        "",
        "42",
        r#"{"multipleOf":0}"#,
        r#"{"allOf":[]}"#,
        r#"{"required":"a"}"#,
    ];
    for schema in syntax {
        check(schema, schema.to_owned(), Wanted::Syntax);
    }
    let never = [
        r#"{"enum":[]}"#,
        r#"{"type":"integer","minimum":5,"maximum":4}"#,
        r#"{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":2}"#,
        r#"{"type":"string","minLength":2,"maxLength":1}"#,
        r#"{"type":"string","format":"date","maxLength":3}"#,
        r#"{"const":"a","enum":["b"]}"#,
        r#"{"type":"object","minProperties":1000000,"patternProperties":{"^[a-c]$":true},"additionalProperties":false}"#,
        r#"{"type":"object","patternProperties":{"^[a-c]$":{}},"additionalProperties":false,"minProperties":4}"#,
        r#"{"type":"array","items":{"type":"boolean"},"uniqueItems":true,"minItems":3}"#,
        r#"{"not":{}}"#,
        r#"{"type":"object","required":["a"],"properties":{"a":false}}"#,
        r#"{"type":"array","contains":{"type":"string"},"items":{"type":"integer"}}"#,
        r#"{"type":"object","propertyNames":{"maxLength":1},"required":["ab"]}"#,
    ];
    for schema in never {
        check(schema, schema.to_owned(), Wanted::Unsatisfiable);
    }
    let wide: Vec<String> = (0..64).map(|i| format!("\"v{i}\"")).collect();
    let schema = format!(
        r#"{{"type":"array","uniqueItems":true,"items":{{"enum":[{}]}},"minItems":65}}"#,
        wide.join(",")
    );
    check("65 of 64", schema, Wanted::UnsatisfiableOrTooComplex);
}

#[test]
fn references_to_nowhere() {
    for reference in [
        "http://127.0.0.1/",
        "file:///etc/passwd",
        "http://169.254.169.254/",
        "../../x",
        "#/a~2",
        "#/%zz",
        "#nowhere",
        "#/$defs/missing",
    ] {
        check(reference, format!(r#"{{"$ref":"{reference}"}}"#), Wanted::BadRef);
    }
    check("a long pointer", format!(r##"{{"$ref":"#{}"}}"##, "/a".repeat(400_000)), Wanted::BadRef);
    let twice = r#"{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}"#;
    check("an anchor twice", twice.to_owned(), Wanted::BadRef);
}

#[test]
fn errors_point_at_the_keyword() {
    let cases = [
        (
            "{\n  \"properties\": {\"a\": {\"minLength\": -1}}}",
            "/properties/a/minLength, line 2, column 37",
        ),
        (r#"{"items":{"pattern":"(a)\\1"}}"#, "at /items/pattern"),
        (r#"{"properties":{"a/b":{"type":"x"}}}"#, "at /properties/a~1b/type"),
        (
            r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b":false},"required":["b"]}},"required":["a"]}"#,
            "at /properties/a",
        ),
        (
            r#"{"uniqueItems":true,"prefixItems":[{"enum":[1,2]},{"enum":[2,3]},{"enum":[2,3]}],"minItems":3}"#,
            "at /uniqueItems",
        ),
    ];
    for (schema, wanted) in cases {
        let Err(error) = compiled(schema.to_owned()) else { panic!("{schema} compiles") };
        let error = error.to_string();
        assert!(error.contains(wanted), "{schema}: {error}");
    }
}

/// Errors quote little, and nothing of it moves a cursor.
#[test]
fn errors_do_not_give_away_much() {
    let secret = "swordfish".repeat(40);
    let cases = [
        format!(r#"{{"type":"integer","enum":["{secret}"]}}"#),
        format!(r#"{{"const":"{secret}","pattern":"^x"}}"#),
        format!(r#"{{"type":"{secret}"}}"#),
        format!(r#"{{"pattern":"({secret}"}}"#),
        format!(r##"{{"$ref":"#/$defs/{secret}"}}"##),
        format!(r#"{{"type":"object","required":["{secret}"],"properties":{{"{secret}":false}}}}"#),
        format!(r#"{{"{secret}":1,"{secret}":2}}"#),
        r#"{"type":"\u001b[2J"}"#.to_owned(),
        r#"{"properties":{"\u001b[2J\u202e":{"type":"x"}}}"#.to_owned(),
        format!(r#"{{"properties":{{"{}":{{"type":"x"}}}}}}"#, "\\u202e".repeat(100_000)),
        "{\"$ref\":\"\u{9b}31m\"}".to_owned(),
    ];
    for schema in cases {
        let Err(error) = compiled(schema.clone()) else { panic!("{schema} compiles") };
        let text = error.to_string();
        // Place and message may both name it, each cut short.
        assert!(text.matches("swordfish").count() <= 27, "{text}");
        assert!(text.len() <= 1024 && !text.chars().any(char::is_control), "{text:?}");
    }
}

/// Writes a schema of a size.
type Maker = fn(usize) -> String;

/// Inputs of a size whose work is linear in it; but for the alternatives, each of which is compared with all
/// others (at most 2,048 in one union).
const GROWING: &[(&str, Maker)] = &[
    ("enum", |n| format!(r#"{{"enum":[{}]}}"#, list(n, |i| format!("\"s{i}\"")))),
    ("enum with a long beginning", |n| {
        format!(r#"{{"enum":[{}]}}"#, list(n, |i| format!("\"{}{i}\"", "x".repeat(100))))
    }),
    ("properties", |n| {
        format!(r#"{{"properties":{{{}}}}}"#, list(n, |i| format!(r#""p{i}":{{"type":"null"}}"#)))
    }),
    ("required", |n| format!(r#"{{"required":[{}]}}"#, list(n, |i| format!("\"p{i}\"")))),
    ("objects by their keys", |n| {
        let arm = |i| {
            format!(
                r#"{{"type":"object","properties":{{"k{i}":{{"const":{i}}}}},"required":["k{i}"]}}"#
            )
        };
        format!(r#"{{"anyOf":[{}]}}"#, list(n, arm))
    }),
    ("references", |n| {
        let link = |i| format!(r##""d{i}":{{"$ref":"#/$defs/d{}"}}"##, i + 1);
        format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d{n}":true}}}}"##, list(n, link))
    }),
    ("objects in objects", |n| {
        let link =
            |i| format!(r##""d{i}":{{"properties":{{"n":{{"$ref":"#/$defs/d{}"}}}}}}"##, i + 1);
        format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d{n}":true}}}}"##, list(n, link))
    }),
    ("twice the next", |n| {
        let link = |i| {
            let next = format!(r##"{{"$ref":"#/$defs/d{}"}}"##, i + 1);
            format!(r#""d{i}":{{"type":"array","prefixItems":[{next},{next}]}}"#)
        };
        format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d{n}":true}}}}"##, list(n, link))
    }),
    ("tuples", |n| {
        format!(r#"{{"prefixItems":[{}]}}"#, list(n, |i| format!(r#"{{"const":{i}}}"#)))
    }),
    ("a long key", |n| format!(r#"{{"required":["{}"]}}"#, "x".repeat(100 * n))),
    ("a long pattern", |n| format!(r#"{{"pattern":"^{}$"}}"#, "[ab]c?".repeat(n / 2))),
    ("an alternation", |n| {
        format!(r#"{{"pattern":"^({})$"}}"#, list(n, |i| format!("w{i}")).replace(',', "|"))
    }),
    ("unused definitions", |n| {
        format!(
            r#"{{"$defs":{{{}}},"type":"null"}}"#,
            list(n, |i| format!(r#""d{i}":{{"pattern":"("}}"#))
        )
    }),
];

/// So many parts with commas between.
fn list(count: usize, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(",")
}

/// What is tried with so much fuel: to compile, and to make a constraint of it.
fn within(
    fuel: u64,
    schema: &str,
    vocabulary: &constrain::Vocabulary,
) -> Result<Constraint, Error> {
    let limits = constrain::Limits { fuel, ..Default::default() };
    let options = Options { limits, ..Options::default() };
    Constraint::new(&compile(schema, &options)?, vocabulary)
}

/// The least fuel that suffices, up to one part in a hundred.
fn least_fuel(schema: &str, vocabulary: &constrain::Vocabulary) -> u64 {
    let enough = |fuel| match within(fuel, schema, vocabulary) {
        Ok(_) => true,
        Err(error) if matches!(error.kind(), Kind::TooComplex { .. }) => false,
        Err(error) => panic!("{error}"),
    };
    let mut high = 16;
    while !enough(high) {
        high *= 2;
        assert!(high < 1 << 40, "no fuel suffices");
    }
    let mut low = high / 2;
    while high - low > high / 100 + 1 {
        let middle = low + (high - low) / 2;
        if enough(middle) { high = middle } else { low = middle }
    }
    high
}

/// Work is counted, so that how it grows can be measured without a clock.
#[test]
fn work_grows_with_the_size() {
    let vocabulary = support::bytes();
    for (name, make) in GROWING {
        let texts = [100, 200, 400, 800].map(make);
        let counts = texts.each_ref().map(|text| least_fuel(text, &vocabulary));
        let grown = |last: u64, first: u64| (last as f64 / first as f64).log2();
        // By the size of the text, which grows with the digits of its numbers, too.
        let bytes = grown(texts[3].len() as u64, texts[0].len() as u64);
        let exponent = grown(counts[3], counts[0]) / bytes;
        eprintln!("{name}: {counts:?}, exponent {exponent:.2}");
        let most = if *name == "objects by their keys" { 2.1 } else { 1.1 };
        assert!(exponent <= most, "{name}: {counts:?}, exponent {exponent:.2}");
    }
}

/// Work that ran out of fuel at any point is an error, and leaves nothing behind in the vocabulary.
#[test]
fn what_fails_midway_changes_nothing() {
    let schemas = [
        r#"{"type":"object","properties":{"a":{"type":"string","pattern":"^[a-c]+$"},"b":{"type":"integer","minimum":3}}}"#,
        r#"{"type":"array","items":{"enum":["x","yy",1.5,null]},"uniqueItems":true,"contains":{"const":"x"}}"#,
        r##"{"anyOf":[{"type":"null"},{"type":"array","items":{"$ref":"#"}}],"not":{"const":[]}}"##,
    ];
    for schema in schemas {
        let shared = support::bytes();
        let least = least_fuel(schema, &shared);
        for part in 0..100 {
            match within(least * part / 120, schema, &shared) {
                Ok(_) => panic!("{schema}: {part}/120 of the fuel suffices"),
                Err(error) => assert!(matches!(error.kind(), Kind::TooComplex { .. }), "{error}"),
            }
        }
        let after = within(2 * least, schema, &shared).expect("enough fuel");
        let fresh = within(2 * least, schema, &support::bytes()).expect("enough fuel");
        let (mut after, mut fresh) = (after.matcher(), fresh.matcher());
        let mut random = support::Random(3);
        for _ in 0..40 {
            let allowed: Vec<u32> = after.mask().expect("a mask").iter().collect();
            assert_eq!(
                allowed,
                fresh.mask().expect("a mask").iter().collect::<Vec<_>>(),
                "{schema}"
            );
            let token = allowed[random.below(allowed.len())];
            if after.accept(token).is_err() || after.is_complete() {
                break;
            }
            fresh.accept(token).expect("the other accepted it");
        }
    }
}
