//! Random small schemas against all values of a small universe, judged by an independent validator: the grammar by its
//! values, the engine by what it accepts, and by what it lets be written.
//!
//! `CONSTRAIN_SEEDS=100000` tries so many schemas.

mod support;
mod values;

use constrain::grammar::PropertyOrder;
use constrain::schema::{Options, compile};
use constrain::{Constraint, Kind};
use serde_json::{Map, Value, json};
use values::Language;

/// A small generator of pseudo-random numbers (splitmix64): the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// Keys of the universe, and one that is never declared.
const KEYS: [&str; 3] = ["a", "b", "ab"];

/// A schema of random keywords, nested to `depth`.
fn schema(random: &mut Random, depth: usize) -> Value {
    if random.below(12) == 0 {
        return Value::Bool(random.below(3) > 0);
    }
    let mut out = Map::new();
    for _ in 0..1 + random.below(3) {
        let (key, value) = if depth == 0 || random.below(3) == 0 {
            leaf(random)
        } else {
            branch(random, depth - 1)
        };
        out.insert(key.to_owned(), value);
    }
    Value::Object(out)
}

fn leaf(random: &mut Random) -> (&'static str, Value) {
    let count = random.below(3);
    match random.below(20) {
        0 | 1 => (
            "type",
            json!(
                random.pick(&["object", "array", "string", "integer", "number", "boolean", "null"])
            ),
        ),
        2 => (
            "type",
            json!(random.pick(&[["object", "string"], ["array", "integer"], ["null", "object"]])),
        ),
        3 => (
            "enum",
            random.pick(&[
                json!([1, "a", null]),
                json!([{"a": 1}, [1], 0.5]),
                json!([true, "ab", 2]),
            ]),
        ),
        4 => (
            "const",
            random.pick(&[
                json!(1),
                json!({"a": 1, "b": "a"}),
                json!([1, "a"]),
                json!("a"),
                json!({}),
            ]),
        ),
        5 => ("required", random.pick(&[json!(["a"]), json!(["b", "a"]), json!(["ab"])])),
        6 => ("minProperties", json!(count)),
        7 => ("maxProperties", json!(count)),
        8 => ("minItems", json!(count)),
        9 => ("maxItems", json!(count)),
        10 => ("minLength", json!(count)),
        11 => ("maxLength", json!(count)),
        12 => ("pattern", json!(random.pick(&["^a", "b$", "^$", "a|b", "^[ab]{2}$"]))),
        13 => ("minimum", json!(random.pick(&[0.0, 1.0, 0.5]))),
        14 => ("exclusiveMaximum", json!(random.pick(&[2.0, 1.0]))),
        16 => ("uniqueItems", json!(true)),
        17 => (random.pick(&["minContains", "maxContains"]), json!(count)),
        15 => ("multipleOf", json!(random.pick(&[1.0, 2.0, 0.5]))),
        _ => (
            "dependentRequired",
            random.pick(&[json!({"a": ["b"]}), json!({"b": ["a"], "ab": ["a"]})]),
        ),
    }
}

fn branch(random: &mut Random, depth: usize) -> (&'static str, Value) {
    let one = schema(random, depth);
    let two = schema(random, depth);
    match random.below(19) {
        0 | 1 => ("properties", json!({random.pick(&KEYS): one, random.pick(&["a", "b"]): two})),
        2 => ("additionalProperties", one),
        3 => ("patternProperties", json!({random.pick(&["^a", "b$"]): one, "a": two})),
        4 => ("propertyNames", one),
        5 => ("items", one),
        6 => ("prefixItems", json!([one, two])),
        7 => ("contains", one),
        8 | 9 => ("allOf", json!([one, two])),
        10 | 11 => ("anyOf", json!([one, two])),
        12 | 13 => ("oneOf", json!([one, two])),
        14 => ("not", one),
        15 => ("if", one),
        16 => ("then", one),
        17 => ("dependentSchemas", json!({random.pick(&KEYS): one})),
        _ => (random.pick(&["else", "unevaluatedProperties", "unevaluatedItems"]), one),
    }
}

/// All values of a small world.
fn universe() -> Vec<Value> {
    let scalars = [
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(2),
        json!(0.5),
        json!(-1),
        json!(""),
        json!("a"),
        json!("ab"),
    ];
    let mut out = scalars.to_vec();
    let inner = [json!(1), json!("a"), json!(null), json!({"a": 1}), json!([1])];
    out.extend([json!([]), json!({})]);
    for x in &inner {
        out.push(json!([x]));
        for y in &inner {
            out.push(json!([x, y]));
            out.push(json!({"a": x, "b": y}));
            out.push(json!({"a": x, "zz": y}));
        }
        for key in KEYS {
            out.push(json!({ key: x }));
        }
        out.push(json!({"a": x, "b": 1, "ab": "a"}));
        out.push(json!({"b": x, "ab": 1, "zz": "a"}));
        out.push(json!([x, 1, "a"]));
    }
    out
}

/// Writes documents at random; those that end are valid, and no step is stuck.
fn write(constraint: &Constraint, seed: u64, mut judge: impl FnMut(&str)) {
    let mut random = support::Random(seed * 2 + 1);
    for _ in 0..2 {
        let mut matcher = constraint.matcher();
        for step in 0..150 {
            if matcher.can_stop() && (step > 40 || random.below(3) == 0) {
                judge(std::str::from_utf8(matcher.text()).expect("UTF-8"));
                break;
            }
            let end = constraint.vocabulary().end_tokens();
            let allowed: Vec<u32> =
                matcher.mask().expect("a mask").iter().filter(|id| !end.contains(id)).collect();
            if allowed.is_empty() {
                assert!(matcher.can_stop(), "dead end after {matcher:?} {:?}", matcher.text());
                judge(std::str::from_utf8(matcher.text()).expect("UTF-8"));
                break;
            }
            // What closes something, often, so that documents end.
            let closing = |id: &&u32| {
                let bytes = constraint.vocabulary().bytes(**id).unwrap_or_default();
                matches!(bytes.first(), Some(b'"' | b']' | b'}' | b'0'..=b'9'))
            };
            let closing: Vec<u32> = allowed.iter().filter(closing).copied().collect();
            let list = if closing.is_empty() || random.below(3) == 0 { &allowed } else { &closing };
            matcher.accept(list[random.below(list.len())]).expect("an allowed token");
        }
    }
}

#[test]
fn random_schemas_mean_what_a_validator_says() {
    let universe = universe();
    let vocabulary = support::synthetic();
    let seeds = std::env::var("CONSTRAIN_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    let seeds: u64 = seeds.unwrap_or(4000);
    let options = Options { property_order: PropertyOrder::Any, ..Options::default() };
    let (mut compiled, mut refused, mut empty) = (0, 0, 0);
    for seed in 0..seeds {
        let schema = schema(&mut Random(seed), 1 + seed as usize % 3);
        let validator = jsonschema::draft202012::new(&schema).expect("a schema");
        match compile(&schema.to_string(), &options) {
            Ok(grammar) => {
                compiled += 1;
                let constraint = Constraint::new(&grammar, &vocabulary)
                    .unwrap_or_else(|error| panic!("seed {seed}: {schema}\n{error}"));
                let mut language = Language::new(grammar);
                for value in &universe {
                    let valid = validator.is_valid(value);
                    assert_eq!(language.has(value), valid, "seed {seed}: {schema}\non {value}");
                    if seed % 4 == 0 {
                        let mut matcher = constraint.matcher();
                        let text = value.to_string();
                        let accepted = matcher.accept_bytes(text.as_bytes()).is_ok();
                        let accepted = accepted && matcher.can_stop();
                        assert_eq!(
                            accepted, valid,
                            "the engine, seed {seed}: {schema}\non {value}"
                        );
                    }
                }
                if seed % 4 == 0 {
                    write(&constraint, seed, |text| {
                        // Beyond f64 the validator cannot tell.
                        let Ok(document) = serde_json::from_str(text) else { return };
                        let digits = text.bytes().filter(u8::is_ascii_digit).count();
                        let exact = digits < 15 && !text.contains(['e', 'E']);
                        let valid = validator.is_valid(&document);
                        assert!(valid || !exact, "seed {seed}: {schema}\nwrote {text}");
                    });
                }
            }
            Err(error) if *error.kind() == Kind::Unsatisfiable => {
                empty += 1;
                for value in &universe {
                    assert!(
                        !validator.is_valid(value),
                        "seed {seed}: {schema}\nis satisfied by {value}"
                    );
                }
            }
            Err(error) => {
                refused += 1;
                let fair =
                    matches!(error.kind(), Kind::TooComplex { .. } | Kind::Unsupported { .. });
                assert!(fair, "seed {seed}: {schema}\n{error}");
            }
        }
    }
    eprintln!("{compiled} schemas compiled, {empty} empty, {refused} refused");
    assert!(
        compiled * 4 > seeds * 3 && refused * 100 < seeds,
        "{compiled} compiled, {refused} refused"
    );
}
