//! Small worlds, all of them: every text up to some length is accepted if and only if it should be.
//!
//! * Schemas: each keyword alone and the pairs that meet, in both orders of properties, through the masks of
//!   three vocabularies (single bytes; all strings of up to three bytes of the world; random pieces).
//!   The texts are made by a generator (`worlds/texts.rs`) and judged by the crate `jsonschema`.
//! * Grammars: all with two rules, two alternatives and two symbols, against sets of words (`worlds/words.rs`).
//! * Patterns: all up to some size, against sets of positions (`worlds/patterns.rs`).
//!
//! A slice is part of every test run; `CONSTRAIN_WORLDS=3/24` chooses another one, `all` means all:
//!
//! ```sh
//! CONSTRAIN_WORLDS=all cargo test --release --no-default-features --features cli --test worlds -- --nocapture
//! ```

#[path = "worlds/explore.rs"]
mod explore;
#[path = "worlds/patterns.rs"]
mod patterns;
#[path = "worlds/schemas.rs"]
mod schemas;
#[path = "worlds/strict.rs"]
mod strict;
mod support;
#[path = "worlds/texts.rs"]
mod texts;
#[path = "worlds/words.rs"]
mod words;

use constrain::grammar::PropertyOrder;
use constrain::schema::{Options, compile};
use constrain::{Constraint, Kind};
use explore::{Trie, Vocabularies};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use texts::World;

/// Which of many cases are looked at: those with `number % of == part`.
struct Slice {
    part: usize,
    of: usize,
}

impl Slice {
    /// What `CONSTRAIN_WORLDS` says; else the first of `of`.
    fn chosen(of: usize) -> Self {
        match std::env::var("CONSTRAIN_WORLDS") {
            Err(_) => Self { part: 0, of },
            Ok(all) if all == "all" => Self { part: 0, of: 1 },
            Ok(text) => {
                let (part, parts) = text.split_once('/').expect("all, or K/N");
                let parts: usize = parts.parse().expect("a number");
                Self { part: part.parse::<usize>().expect("a number") % parts, of: parts }
            }
        }
    }

    fn has(&self, number: usize) -> bool {
        number % self.of == self.part
    }

    fn is_all(&self) -> bool {
        self.of == 1
    }
}

/// The texts of a world that are I-JSON and can be judged, with their values.
struct Universe {
    texts: Vec<(String, Value)>,
    /// All texts of up to so many bytes are there.
    length: usize,
}

impl Universe {
    fn new(world: &World, most: usize) -> Self {
        let (texts, length) = world.texts(most);
        // An object with a key twice is none.
        let read = |text: String| Some((text.clone(), strict::read(&text)?));
        let texts = texts.into_iter().filter(|text| !is_beyond_f64(text));
        Self { texts: texts.filter_map(read).collect(), length }
    }
}

/// What bounds numbers.
const BOUNDS: &[&str] = &["inimum", "aximum", "multipleOf", "enum", "const"];

/// Whether a number in the text has an exponent after something else than one digit (not 0) and a point: such
/// spellings may be left out where there are bounds (docs/json-schema.md, narrowings).
fn has_narrowed_exponent(text: &str) -> bool {
    text.split_once('e').is_some_and(|(mantissa, _)| {
        let digits = mantissa.trim_start_matches('-').as_bytes();
        digits.len() < 3 || digits[0] == b'0' || digits[1] != b'.'
    })
}

/// Whether there is an exponent of three digits. The judge computes in `f64`, where `1e-500` is the integer 0.
fn is_beyond_f64(text: &str) -> bool {
    text.split_once('e').is_some_and(|(_, exponent)| {
        exponent.bytes().skip_while(|byte| b"+-0".contains(byte)).count() > 2
    })
}

/// The value without the order of members, and the bytes of the text without any order: what texts have in common
/// that differ in the order of members.
fn unordered(text: &str, value: &Value) -> (String, Vec<u8>) {
    let mut bytes = text.as_bytes().to_vec();
    bytes.sort_unstable();
    (strict::sorted(value).to_string(), bytes)
}

#[derive(Default)]
struct Counts {
    schemas: usize,
    refused: usize,
    empty: usize,
    texts: usize,
    members: usize,
    states: usize,
    tokens: usize,
}

#[test]
fn schemas_accept_what_is_valid_and_nothing_else() {
    let slice = Slice::chosen(40);
    let most = std::env::var("CONSTRAIN_WORLD_TEXTS").ok().and_then(|n| n.parse().ok());
    let most = most.unwrap_or(if slice.is_all() { 40_000 } else { 4_000 });
    let cases = schemas::cases();
    assert!(cases.len() >= 300, "{}", cases.len());
    let mut universes: BTreeMap<World, (Universe, Vocabularies)> = BTreeMap::new();
    let mut counts = Counts::default();
    for (_, case) in cases.iter().enumerate().filter(|(i, _)| slice.has(*i)) {
        let (universe, vocabularies) = universes
            .entry(case.world)
            .or_insert_with(|| (Universe::new(&case.world, most), Vocabularies::new(&case.world)));
        let validator = jsonschema::validator_for(&case.schema).expect("a schema");
        let schema = case.schema.to_string();
        let narrowed = BOUNDS.iter().any(|keyword| schema.contains(keyword));
        let valid: Vec<&(String, Value)> =
            universe.texts.iter().filter(|(_, value)| validator.is_valid(value)).collect();
        let narrowed = |text: &str| narrowed && has_narrowed_exponent(text);
        counts.schemas += 1;
        for order in [PropertyOrder::Any, PropertyOrder::Declared] {
            let name = format!("{} in {order:?} order", case.schema);
            let options = Options { property_order: order, ..Options::default() };
            let grammar = match compile(&case.schema.to_string(), &options) {
                Ok(grammar) => grammar,
                Err(error) if *error.kind() == Kind::Unsatisfiable => {
                    assert!(valid.is_empty(), "{name}: {error}, but {:?}", valid[0].0);
                    counts.empty += 1;
                    continue;
                }
                Err(error) => {
                    let fair =
                        matches!(error.kind(), Kind::TooComplex { .. } | Kind::Unsupported { .. });
                    assert!(fair, "{name}: {error}");
                    eprintln!("refused: {name}: {error}");
                    counts.refused += 1;
                    continue;
                }
            };
            let constrain = |vocabulary| {
                Constraint::new(&grammar, vocabulary)
                    .unwrap_or_else(|error| panic!("{name}: {error}"))
            };
            let trie =
                Trie::new(&constrain(&vocabularies.bytes), case.world, universe.length, &name);
            compare(&name, order, universe, &valid, &trie.accepted(), &narrowed);
            counts.texts += universe.texts.len();
            counts.members += valid.len();
            counts.states += trie.len();
            for vocabulary in [&vocabularies.short, &vocabularies.random] {
                counts.tokens += trie.check(&constrain(vocabulary), case.world, &name);
                counts.states += trie.len();
            }
        }
    }
    eprintln!(
        "{} schemas ({} times empty, {} times refused): {} texts, {} of them valid; {} states, {} tokens compared",
        counts.schemas,
        counts.empty,
        counts.refused,
        counts.texts,
        counts.members,
        counts.states,
        counts.tokens
    );
    for (world, (universe, _)) in &universes {
        eprintln!("{} texts of up to {} bytes: {world:?}", universe.texts.len(), universe.length);
    }
}

/// What was accepted is valid. What is valid was accepted, but for what is narrowed; where the order of members is fixed, in one order.
fn compare(
    name: &str,
    order: PropertyOrder,
    universe: &Universe,
    valid: &[&(String, Value)],
    accepted: &BTreeSet<String>,
    narrowed: &dyn Fn(&str) -> bool,
) {
    let texts: HashSet<&str> = valid.iter().map(|(text, _)| text.as_str()).collect();
    let mut judged = accepted.iter().filter(|text| !is_beyond_f64(text));
    if let Some(wrong) = judged.find(|text| !texts.contains(text.as_str())) {
        panic!("{name}: {wrong:?} is accepted, but it is not valid");
    }
    if order == PropertyOrder::Any {
        let missing = texts.iter().filter(|text| !accepted.contains(**text) && !narrowed(text));
        if let Some(missing) = missing.min_by_key(|text| (text.len(), **text)) {
            panic!("{name}: {missing:?} is valid, but it is not accepted");
        }
        return;
    }
    let taken = universe.texts.iter().filter(|(text, _)| accepted.contains(text));
    let taken: HashSet<_> = taken.map(|(text, value)| unordered(text, value)).collect();
    for (text, value) in valid.iter().filter(|(text, _)| !narrowed(text)) {
        let known = accepted.contains(text) || taken.contains(&unordered(text, value));
        assert!(known, "{name}: {text:?} is valid, but it is not accepted in any order");
    }
}
