//! Masks against brute force: every token's bytes are tried with the reference matcher of `oracle`.

mod oracle;
mod support;

use constrain::decode::Decoder;
use constrain::extract::{self, Extractor};
use constrain::grammar::{Grammar, PropertyOrder};
use constrain::matcher::Drafted;
use constrain::model::Model;
use constrain::model::scripted::ScriptedModel;
use constrain::schema::{self, Options};
use constrain::vocab::Token;
use constrain::{Constraint, Document, Kind, Matcher, TokenId, Vocabulary};
use oracle::{Oracle, State};
use proptest::prelude::*;
use serde_json::Value;
use support::Random;

/// Schemas of which random states are compared. Those with undeclared keys come last: the reference
/// matcher is too slow for them with a large vocabulary.
const SCHEMAS: &[&str] = &[
    r#"{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0,"maximum":150}},"required":["name","age"],"additionalProperties":false}"#,
    r#"{"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"null"},"c":{"enum":["x","yes","\u00e9",1,null]}},"additionalProperties":false}"#,
    r#"{"type":"array","items":{"type":"number"},"minItems":1,"maxItems":4}"#,
    r#"{"type":"array","items":{"anyOf":[{"type":"string","maxLength":3},{"type":"integer"}]}}"#,
    r#"{"type":"string","pattern":"^[a-z]{2,4}-[0-9]+$"}"#,
    r#"{"type":"string","minLength":2,"maxLength":6}"#,
    r#"{"type":"string","format":"date-time"}"#,
    r#"{"type":"string","format":"email"}"#,
    r#"{"type":"object","properties":{"when":{"format":"date","type":"string"},"ip":{"type":"string","format":"ipv4"}},"required":["when"],"additionalProperties":false}"#,
    r#"{"enum":["red","green","blue",{"r":1},[1,2],1.5,"re\"d\\","re\nd"]}"#,
    r##"{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["v"],"additionalProperties":false}}}"##,
    r#"{"anyOf":[{"type":"object","properties":{"kind":{"const":"a"},"x":{"type":"integer"}},"required":["kind","x"],"additionalProperties":false},{"type":"object","properties":{"kind":{"const":"ab"},"y":{"type":"string"}},"required":["kind"],"additionalProperties":false}]}"#,
    r#"{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":"boolean"},"maxItems":5}"#,
    r#"{"type":"array","items":{"type":["integer","string"]},"contains":{"type":"string"},"minItems":2,"maxItems":4}"#,
    r#"{"type":"number","exclusiveMinimum":0.5,"maximum":99.5}"#,
    r#"{"type":"integer","multipleOf":5,"minimum":-20,"maximum":100}"#,
    r#"{"type":"object","properties":{"caf\u00e9":{"type":"integer"},"a\tb":{"const":1},"q\"":{"type":"null"}},"required":["caf\u00e9"],"additionalProperties":false}"#,
    r#"{"type":"object","properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},"minProperties":1,"maxProperties":2,"additionalProperties":false}"#,
    r#"{"type":"object","properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},"dependentRequired":{"a":["c"]},"additionalProperties":false}"#,
    r#"{"type":"string","not":{"enum":["a","abc","\u00e9"]},"maxLength":4}"#,
    r#"{"oneOf":[{"type":"integer"},{"type":"number","minimum":1}]}"#,
    r#"{"type":"string","pattern":"foo"}"#,
    r#"{"type":"string","pattern":"^[^/]+/[^/]+$"}"#,
    r#"{"type":"string","pattern":"^.*\\.(md|txt)$"}"#,
    r#"{"type":"string","pattern":"^[A-Za-z0-9_-]{1,40}$"}"#,
    r#"{"type":"string","pattern":"^[A-Za-z0-9 -]{3,70}:[0-9a-f]{8}$"}"#,
    r#"{"type":"string","pattern":"^(?!.*ab).*$"}"#,
    r#"{"type":"string","pattern":"^[a-df-z]+(e|[0-9]+)?$"}"#,
    r#"{"type":"string","pattern":"^[^\\s@]+@[^\\s@]+\\.[a-z]{2,}$"}"#,
    r#"{"enum":["the","then","there","\u00e9t\u00e9","a/b","a\"b","tab\t","back\\\\slash","0","1a",""]}"#,
];

const OPEN_SCHEMAS: &[&str] = &[
    r#"{}"#,
    r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":{"type":"boolean"}}"#,
    r#"{"type":"object","patternProperties":{"^[a-c]$":{"type":"integer"}},"additionalProperties":false,"minProperties":2}"#,
    r#"{"type":"object","patternProperties":{"^x":{"const":1},"b$":{"type":"integer"}},"maxProperties":2}"#,
    r#"{"type":"object","propertyNames":{"pattern":"^a"},"minProperties":1,"additionalProperties":{"const":1}}"#,
];

/// Schemas of values that are pieces of a document.
const SPANS: &[&str] = &[
    r#"{"type":"string","x-constrain":{"span":true}}"#,
    r#"{"type":["string","null"],"x-constrain":{"span":true},"minLength":2,"maxLength":5}"#,
    r#"{"type":"string","x-constrain":{"span":true},"pattern":"^[^ ]+( [^ ]+)?$"}"#,
    r#"{"anyOf":[{"type":"string","x-constrain":{"span":true},"pattern":"[a\u00e9]$"},{"enum":["none","",null]}]}"#,
    r#"{"type":"string","not":{"x-constrain":{"span":true}},"maxLength":3}"#,
    r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/s"},"b":{"type":"array","items":{"$ref":"#/$defs/s"},"maxItems":3}},"required":["a"],"additionalProperties":false,"$defs":{"s":{"type":"string","x-constrain":{"span":true},"maxLength":9}}}"##,
];

/// A document of up to `most` characters in which pieces come again, with what JSON escapes.
fn document(random: &mut Random, most: usize) -> String {
    let words = [
        "a",
        "ab",
        "abc",
        "n",
        "no",
        "none",
        " ",
        " ",
        "\"",
        "\\",
        "\n",
        "/",
        "\u{e9}",
        "\u{e9}a",
        "\u{1f600}",
        "\u{1f601}",
        "\u{7}",
        "2023-02",
        "<tool>",
        ",",
        "b\"",
    ];
    let mut text = String::new();
    for _ in 0..1 + random.below(most) {
        text.push_str(words[random.below(words.len())]);
    }
    text
}

fn span_grammar(schema: &str, text: &str) -> Option<Grammar> {
    let document = Some(Document::new(text).unwrap());
    let options = Options { document, ..Options::default() };
    match schema::compile(schema, &options) {
        Ok(grammar) => Some(grammar),
        Err(error) if *error.kind() == Kind::Unsatisfiable => None,
        Err(error) => panic!("{schema}: {error}"),
    }
}

/// The strings of a value, but for those that need be no pieces.
fn pieces(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| pieces(item, found)),
        Value::Object(members) => members.values().for_each(|value| pieces(value, found)),
        _ => {}
    }
}

/// A document under the constraint, drawn from its masks; it is closed where it can be, in the end.
fn generate(constraint: &Constraint, random: &mut Random) -> Value {
    let vocabulary = constraint.vocabulary();
    let mut matcher = constraint.matcher();
    for step in 0.. {
        let mask = allowed(&mut matcher);
        assert!(!mask.is_empty(), "a dead end after {:?}", String::from_utf8_lossy(matcher.text()));
        let ends = mask.iter().copied().filter(|&id| vocabulary.bytes(id).is_none());
        let quotes = mask.iter().copied().filter(|&id| vocabulary.bytes(id) == Some(b"\""));
        let close = ends.chain(quotes).next().filter(|_| step > 40 || random.below(4) == 0);
        let token = close.unwrap_or_else(|| mask[random.below(mask.len())]);
        if vocabulary.is_end(token) {
            break;
        }
        matcher.accept(token).unwrap();
    }
    serde_json::from_slice(matcher.text()).unwrap()
}

#[test]
fn values_that_are_pieces_of_the_document_and_their_masks() {
    let vocabulary = support::synthetic();
    let mut random = Random(11);
    let mut checked = 0;
    for round in 0..200 {
        let text = document(&mut random, 60);
        for (i, schema) in SPANS.iter().enumerate() {
            let Some(grammar) = span_grammar(schema, &text) else { continue };
            if round < 40 {
                compare(&grammar, &vocabulary, 2, 12, &format!("{schema} of {text:?}"));
            }
            let value = generate(&Constraint::new(&grammar, &vocabulary).unwrap(), &mut random);
            let mut found = Vec::new();
            pieces(&value, &mut found);
            for piece in found {
                let free = i == 3 && (piece == "none" || piece.is_empty());
                let is_piece = !piece.is_empty() && text.contains(&piece);
                // The fifth schema is the complement.
                assert!(free || (i == 4) != is_piece, "{piece:?} of {text:?}");
                let places = Document::new(&text).unwrap().occurrences(&piece);
                assert!(free || i == 4 || !places.is_empty());
                for place in places {
                    let chars: String =
                        text.chars().skip(place.chars.start).take(place.chars.len()).collect();
                    assert_eq!((&*chars, &text[place.bytes]), (&*piece, &*piece));
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 1_000, "{checked}");
}

/// The extractor's own way, on realistic tasks: whatever a model says, a value that is to be a piece stands where its
/// places say.
#[test]
fn values_of_the_tasks_stand_where_they_say() {
    let tasks = [
        "cv",
        "invoice",
        "log_line",
        "medical_note",
        "meeting_minutes",
        "product_review",
        "receipt",
        "support_ticket",
    ];
    let (mut values, mut places) = (0, 0);
    for task in tasks {
        let file = |name: &str| support::shared(&format!("tasks/{task}/{name}"));
        let (Some(schema), Some(input)) = (file("schema.json"), file("input.txt")) else { return };
        let chars: Vec<char> = input.chars().collect();
        for seed in 0..6 {
            let mut model = ScriptedModel::noise(seed).with_context_len(1 << 16);
            let options = extract::Options { max_tokens: 3_000, ..extract::Options::default() };
            let extractor = Extractor::new(model.vocabulary(), &schema, options).unwrap();
            let found = extractor.extract(&mut Decoder::new(&mut model), &input).unwrap();
            for field in found.fields.iter().filter(|field| !field.spans.is_empty()) {
                let value = field.value.as_str().expect("a piece is a string");
                assert_eq!(field.spans.iter().filter(|span| span.best).count(), 1, "{task}");
                for span in &field.spans {
                    let piece: String = chars[span.range.clone()].iter().collect();
                    assert_eq!((&*piece, &input[span.bytes.clone()]), (value, value), "{task}");
                    places += 1;
                }
                values += 1;
            }
        }
    }
    assert!(values > 100 && places >= values, "{values} values in {places} places");
}

#[test]
fn masks_of_pieces_equal_brute_force_for_real_vocabularies() {
    for (name, vocabulary) in support::real() {
        let mut random = Random(5);
        for schema in SPANS {
            let text = document(&mut random, 200);
            let Some(grammar) = span_grammar(schema, &text) else { continue };
            compare(&grammar, &vocabulary, 2, 8, &format!("{name}: {schema} of {text:?}"));
        }
    }
}

#[test]
fn a_piece_needs_a_document() {
    let schema = r#"{"properties":{"a":{"type":"string","x-constrain":{"span":true}}}}"#;
    let error = schema::compile(schema, &Options::default()).unwrap_err();
    assert_eq!(error.kind(), &Kind::BadArgument);
    assert!(error.to_string().contains("/properties/a/x-constrain/span"), "{error}");
    // Nothing is a piece of nothing; `null` may stand beside it.
    assert!(span_grammar(SPANS[0], "").is_none() && span_grammar(SPANS[1], "").is_some());
    let wrong = schema::compile(r#"{"x-constrain":{"span":1}}"#, &Options::default()).unwrap_err();
    assert_eq!(wrong.kind(), &Kind::Syntax);
    for unbound in [r#"{"x-constrain":{"span":false}}"#, r#"{"type":"integer","x-constrain":{}}"#] {
        assert!(schema::compile(unbound, &Options::default()).is_ok());
    }
}

fn grammar(schema: &str, order: PropertyOrder) -> Grammar {
    let options = Options { property_order: order, ..Options::default() };
    schema::compile(schema, &options).unwrap_or_else(|error| panic!("{schema}: {error}"))
}

/// All text tokens, sorted by their bytes, so that common beginnings are read once.
fn sorted(vocabulary: &Vocabulary) -> Vec<(Vec<u8>, TokenId)> {
    let mut tokens: Vec<(Vec<u8>, TokenId)> =
        vocabulary.text_tokens().map(|(id, bytes)| (bytes.to_vec(), id)).collect();
    tokens.sort();
    tokens
}

/// The allowed tokens by trying each.
fn brute_force(
    oracle: &mut Oracle,
    state: State,
    tokens: &[(Vec<u8>, TokenId)],
    end: &[TokenId],
) -> Vec<TokenId> {
    let mut allowed = Vec::new();
    // `states[i]`: after `i` bytes of the last token; `None` from the first dead byte on.
    let mut states = vec![Some(state)];
    let mut last: &[u8] = &[];
    for (bytes, id) in tokens {
        let shared = std::iter::zip(last, bytes).take_while(|(a, b)| a == b).count();
        states.truncate(shared + 1);
        for &byte in &bytes[states.len() - 1..] {
            let next = states.last().copied().flatten().and_then(|state| oracle.step(state, byte));
            states.push(next);
        }
        if states.last().copied().flatten().is_some() {
            allowed.push(*id);
        }
        last = bytes;
    }
    if oracle.is_complete(state) {
        allowed.extend(end);
    }
    allowed.sort_unstable();
    allowed
}

fn describe(vocabulary: &Vocabulary, ids: &[TokenId]) -> Vec<String> {
    let name = |&id: &TokenId| match vocabulary.bytes(id) {
        Some(bytes) => format!("{id} {:?}", String::from_utf8_lossy(bytes)),
        None => format!("{id} (end)"),
    };
    ids.iter().take(20).map(name).collect()
}

/// Walks at random through a grammar and compares the mask of every state on the way.
fn compare(grammar: &Grammar, vocabulary: &Vocabulary, walks: u64, steps: usize, what: &str) {
    let constraint = Constraint::new(grammar, vocabulary).unwrap();
    let tokens = sorted(vocabulary);
    let mut oracle = Oracle::new(grammar);
    for walk in 0..walks {
        let mut random = Random(walk.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 7);
        let mut matcher = constraint.matcher();
        let mut state = oracle.start().expect("the grammar is not empty");
        let mut text = Vec::new();
        for _ in 0..steps {
            let expected = brute_force(&mut oracle, state, &tokens, vocabulary.end_tokens());
            let mask: Vec<TokenId> = matcher.mask().unwrap().iter().collect();
            let only = |a: &[TokenId], b: &[TokenId]| -> Vec<TokenId> {
                a.iter().filter(|id| b.binary_search(id).is_err()).copied().collect()
            };
            let (wrong, missing) = (only(&mask, &expected), only(&expected, &mask));
            assert!(
                wrong.is_empty() && missing.is_empty(),
                "{what}\nafter {:?}\nwrongly allowed: {:?}\nmissing: {:?}",
                String::from_utf8_lossy(&text),
                describe(vocabulary, &wrong),
                describe(vocabulary, &missing),
            );
            assert!(!expected.is_empty(), "{what}: a dead end after {text:?}");
            let Some(bytes) = pick(&mut random, vocabulary, &mask) else { break };
            let (id, bytes) = bytes;
            matcher.accept(id).unwrap();
            state = oracle.read(state, bytes).expect("the mask allowed it");
            text.extend_from_slice(bytes);
        }
    }
}

/// A token of the mask: half the time one that moves the document on.
fn pick<'a>(
    random: &mut Random,
    vocabulary: &'a Vocabulary,
    mask: &[TokenId],
) -> Option<(TokenId, &'a [u8])> {
    let texts: Vec<(TokenId, &[u8])> =
        mask.iter().filter_map(|&id| Some((id, vocabulary.bytes(id)?))).collect();
    let moves = |bytes: &[u8]| bytes.iter().any(|byte| b"\"{}[],:".contains(byte));
    let moving: Vec<(TokenId, &[u8])> =
        texts.iter().copied().filter(|(_, bytes)| moves(bytes)).collect();
    let from = if !moving.is_empty() && random.below(2) == 0 { moving } else { texts };
    (!from.is_empty()).then(|| from[random.below(from.len())])
}

/// Every `of`th schema, beginning with that at `first`.
fn compare_every(first: usize, of: usize) {
    let vocabulary = support::synthetic();
    for schema in SCHEMAS.iter().chain(OPEN_SCHEMAS).skip(first).step_by(of) {
        for order in [PropertyOrder::Declared, PropertyOrder::Any] {
            compare(&grammar(schema, order), &vocabulary, 4, 20, schema);
        }
    }
}

/// All schemas, in tests that run beside each other.
mod masks_equal_brute_force {
    macro_rules! parts {
        ($($name:ident $first:literal)*) => {
            $(#[test] fn $name() { super::compare_every($first, 6) })*
        };
    }

    parts!(one 0 two 1 three 2 four 3 five 4 six 5);
}

/// Tokens beyond the 32 bytes up to which counts are told apart for all tokens at once.
#[test]
fn masks_of_long_tokens_equal_brute_force() {
    let mut tokens: Vec<Token> = (0..=255u8).map(|byte| Token::Text([byte].into())).collect();
    for length in [2, 31, 32, 33, 34, 40, 48, 64] {
        for (begin, end) in [("", ""), ("", "\""), ("", "-"), ("\"", ""), ("\"", "\"")] {
            let text = [begin, &"a".repeat(length), end].concat();
            tokens.push(Token::Text(text.as_bytes().into()));
        }
    }
    tokens.push(Token::Special("<end>".into()));
    let end = tokens.len() as TokenId - 1;
    let vocabulary = Vocabulary::new(tokens, vec![end]).unwrap();
    for schema in [
        r#"{"type":"string","pattern":"^[a-z]{0,60}$"}"#,
        r#"{"type":"string","pattern":"^[a-z]{40,80}$"}"#,
        r#"{"type":"string","pattern":"^[a-z-]{33,66}$"}"#,
        r#"{"type":"string","maxLength":50}"#,
        r#"{"type":"string","minLength":35,"maxLength":70}"#,
        r#"{"type":"string","minLength":70}"#,
    ] {
        compare(&grammar(schema, PropertyOrder::Declared), &vocabulary, 6, 12, schema);
    }
}

#[test]
fn masks_equal_brute_force_for_a_large_vocabulary() {
    let vocabulary = support::large();
    let wide = |schema: &&&str| {
        ["{\"type\":\"string\"", "{\"enum\""].iter().any(|s| schema.starts_with(s))
    };
    for schema in SCHEMAS.iter().filter(wide) {
        compare(&grammar(schema, PropertyOrder::Declared), &vocabulary, 1, 5, schema);
    }
}

#[test]
fn masks_equal_brute_force_for_real_vocabularies() {
    for (name, vocabulary) in support::real() {
        for schema in SCHEMAS {
            let what = format!("{name}: {schema}");
            compare(&grammar(schema, PropertyOrder::Declared), &vocabulary, 2, 8, &what);
        }
    }
}

/// What a user may do with a matcher. Numbers are reduced to what is possible.
#[derive(Debug, Clone)]
enum Act {
    Accept(usize),
    AcceptEnd,
    Rollback(usize),
    /// Goes on with a fork; the original takes another token and is dropped.
    Fork(usize),
    Reset,
    /// Tries what is not allowed, which must change nothing.
    Reject,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => any::<usize>().prop_map(Act::Accept),
        1 => Just(Act::AcceptEnd),
        3 => any::<usize>().prop_map(Act::Rollback),
        2 => any::<usize>().prop_map(Act::Fork),
        1 => Just(Act::Reset),
        2 => Just(Act::Reject),
    ]
}

fn allowed(matcher: &mut Matcher) -> Vec<TokenId> {
    matcher.mask().unwrap().iter().collect()
}

/// One act on a matcher; `taken` is what it accepted so far.
fn perform(act: Act, matcher: &mut Matcher, taken: &mut Vec<TokenId>, vocabulary: &Vocabulary) {
    let mask = allowed(matcher);
    let texts: Vec<TokenId> =
        mask.iter().copied().filter(|&id| vocabulary.bytes(id).is_some()).collect();
    match act {
        Act::Accept(n) if !texts.is_empty() => {
            let id = texts[n % texts.len()];
            matcher.accept(id).unwrap();
            taken.push(id);
        }
        Act::AcceptEnd if matcher.can_stop() => {
            let end = vocabulary.end_tokens()[0];
            if taken.last() == Some(&end) {
                assert!(matcher.accept(end).is_err(), "the output has ended");
                return;
            }
            matcher.accept(end).unwrap();
            taken.push(end);
        }
        Act::Rollback(n) if !taken.is_empty() => {
            let back = n % taken.len() + 1;
            matcher.rollback(back).unwrap();
            taken.truncate(taken.len() - back);
        }
        Act::Fork(n) => {
            let fork = matcher.fork();
            if !texts.is_empty() {
                matcher.accept(texts[n % texts.len()]).unwrap();
            }
            *matcher = fork;
        }
        Act::Reset => {
            matcher.reset();
            taken.clear();
        }
        Act::Reject => {
            let all = 0..vocabulary.len() as TokenId + 2;
            if let Some(id) = all.into_iter().find(|id| mask.binary_search(id).is_err()) {
                assert!(matcher.accept(id).is_err());
            }
            assert!(matcher.rollback(taken.len() + 1).is_err());
        }
        _ => {}
    }
}

#[test]
fn many_masks_at_once_equal_one_by_one() {
    let vocabulary = support::synthetic();
    let row = vocabulary.len().div_ceil(32);
    for (i, schema) in SCHEMAS.iter().chain(OPEN_SCHEMAS).enumerate() {
        let constraint =
            Constraint::new(&grammar(schema, PropertyOrder::Any), &vocabulary).unwrap();
        let mut random = Random(2 * i as u64 + 1);
        let mut matchers = vec![constraint.matcher(); 23];
        for _ in 0..12 {
            let mut words = vec![0; 23 * row];
            constraint.fill_bitmasks(&mut matchers, &mut words, 8).unwrap();
            // A constraint that nobody shares says the same.
            let alone = Constraint::new(&grammar(schema, PropertyOrder::Any), &vocabulary).unwrap();
            for (matcher, words) in matchers.iter_mut().zip(words.chunks(row)) {
                let mut replay = alone.matcher();
                replay.accept_bytes(matcher.text()).unwrap();
                let mut expected = vec![0; row];
                replay.fill_bitmask(&mut expected).unwrap();
                assert_eq!(
                    words,
                    expected,
                    "{schema}: {:?}",
                    String::from_utf8_lossy(replay.text())
                );
                let allowed = allowed(matcher);
                let token = allowed[random.below(allowed.len())];
                if !vocabulary.is_end(token) {
                    matcher.accept(token).unwrap();
                }
            }
        }
    }
    let other = Constraint::new(&grammar("{}", PropertyOrder::Any), &vocabulary).unwrap();
    let mut words = vec![0; row];
    assert!(other.fill_bitmasks(&mut [other.matcher()], &mut words[1..], 1).is_err());
    let stranger = other.matcher();
    let constraint = Constraint::new(&grammar("{}", PropertyOrder::Any), &vocabulary).unwrap();
    assert!(constraint.fill_bitmasks(&mut [stranger], &mut words, 1).is_err());
}

#[test]
fn masks_along_drafts_are_those_of_replays() {
    let vocabulary = support::synthetic();
    let row = vocabulary.len().div_ceil(32);
    for (i, schema) in SCHEMAS.iter().chain(OPEN_SCHEMAS).enumerate() {
        let grammar = grammar(schema, PropertyOrder::Declared);
        let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
        let alone = Constraint::new(&grammar, &vocabulary).unwrap();
        let mut random = Random(3 * i as u64 + 1);
        let mut matcher = constraint.matcher();
        for _ in 0..6 {
            // A tree of tokens that may come next, and of some that may not.
            let (mut draft, mut ends): (Vec<Drafted>, Vec<Matcher>) = (Vec::new(), Vec::new());
            for n in 0..12usize {
                let after = n.checked_sub(1).map(|last| random.below(last + 1));
                let mut from = after.map_or_else(|| matcher.fork(), |at: usize| ends[at].fork());
                let mask = allowed(&mut from);
                let token = match random.below(4) {
                    0 => random.below(vocabulary.len()) as TokenId,
                    _ => mask[random.below(mask.len())],
                };
                let _ = from.accept(token);
                draft.push(Drafted { token, after });
                ends.push(from);
            }
            let before = (matcher.len(), matcher.text().to_vec());
            let mut words = vec![u32::MAX; 13 * row];
            let known = matcher.fill_draft_bitmasks(&draft, &mut words).unwrap();
            assert_eq!((matcher.len(), matcher.text().to_vec()), before);
            for (n, words) in words.chunks(row).enumerate() {
                let mut replay = alone.matcher();
                replay.accept_bytes(matcher.text()).unwrap();
                let mut way = Vec::new();
                let mut here = n.checked_sub(1);
                while let Some(at) = here {
                    way.push(draft[at].token);
                    here = draft[at].after;
                }
                let taken = way.iter().rev().all(|&token| replay.accept(token).is_ok());
                let mut expected = vec![0; row];
                if taken {
                    replay.fill_bitmask(&mut expected).unwrap();
                }
                assert_eq!(words, expected, "{schema} {draft:?} {n}");
                assert!(n == 0 || known[n - 1] == taken);
            }
            let mask = allowed(&mut matcher);
            let token = mask[random.below(mask.len())];
            if vocabulary.is_end(token) {
                break;
            }
            matcher.accept(token).unwrap();
        }
        let wrong = [Drafted { token: 0, after: Some(0) }];
        assert!(matcher.fill_draft_bitmasks(&wrong, &mut vec![0; 2 * row]).is_err());
        assert!(matcher.fill_draft_bitmasks(&[], &mut []).is_err());
    }
}

#[test]
fn what_was_computed_ahead_is_found() {
    let vocabulary = support::synthetic();
    let schema = r#"{"type":"object","properties":{"a":{"enum":["x","yes"]},"b":{"type":"boolean"}},"required":["a"],"additionalProperties":false}"#;
    let mut grammar = grammar(schema, PropertyOrder::Declared);
    grammar.whitespace = constrain::grammar::Whitespace::Compact;
    let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
    let some = constraint.precompute(20).unwrap();
    assert!(!some.complete && some.configurations > 1);
    let all = constraint.precompute(100_000).unwrap();
    assert!(all.complete && all.configurations > some.configurations);
    let before = constraint.stats();
    let other = Constraint::new(&grammar, &vocabulary).unwrap();
    for walk in 0..50 {
        let mut random = Random(walk + 1);
        let (mut matcher, mut replay) = (constraint.matcher(), other.matcher());
        loop {
            let mask = allowed(&mut matcher);
            assert_eq!(mask, allowed(&mut replay));
            let token = mask[random.below(mask.len())];
            matcher.accept(token).unwrap();
            replay.accept(token).unwrap();
            if vocabulary.is_end(token) {
                break;
            }
        }
    }
    let after = constraint.stats();
    assert_eq!((after.mask_misses, after.move_misses), (before.mask_misses, before.move_misses));
    assert!(after.mask_hits >= before.mask_hits + 100);
    let met = other.stats();
    assert!(met.mask_misses > 0 && met.mask_hits > met.mask_misses, "{met:?}");
}

#[test]
fn a_full_cache_is_forgotten_and_nothing_changes() {
    let vocabulary = support::synthetic();
    let mut grammar = grammar(r#"{"type":"array","items":{"type":"integer"}}"#, PropertyOrder::Any);
    let plain = Constraint::new(&grammar, &vocabulary).unwrap();
    grammar.limits.cache_bytes = 1;
    let small = Constraint::new(&grammar, &vocabulary).unwrap();
    let (mut matcher, mut replay) = (small.matcher(), plain.matcher());
    let text = format!("[{}", "17,-3,".repeat(20));
    for byte in text.bytes() {
        matcher.accept(byte.into()).unwrap();
        replay.accept(byte.into()).unwrap();
        assert_eq!(allowed(&mut matcher), allowed(&mut replay));
    }
    assert!(small.stats().configurations < plain.stats().configurations);
    for _ in 0..30 {
        matcher.rollback(3).unwrap();
        replay.rollback(3).unwrap();
        assert_eq!(matcher.text(), replay.text());
        assert_eq!(allowed(&mut matcher), allowed(&mut replay));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_acts_equal_a_fresh_replay(
        schema in 0..SCHEMAS.len() + OPEN_SCHEMAS.len(),
        any_order in any::<bool>(),
        small_cache in any::<bool>(),
        acts in proptest::collection::vec(act(), 1..40),
    ) {
        let schema = SCHEMAS.iter().chain(OPEN_SCHEMAS).nth(schema).unwrap();
        let order = if any_order { PropertyOrder::Any } else { PropertyOrder::Declared };
        let vocabulary = support::synthetic();
        let mut grammar = grammar(schema, order);
        let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
        if small_cache {
            // Every few steps the constraint forgets all it has learnt.
            grammar.limits.cache_bytes = 3_000;
        }
        let mut matcher = Constraint::new(&grammar, &vocabulary).unwrap().matcher();
        let mut taken = Vec::new();
        for act in acts {
            perform(act, &mut matcher, &mut taken, &vocabulary);
            let mut replay = constraint.matcher();
            for &id in &taken {
                replay.accept(id).unwrap();
            }
            prop_assert_eq!(matcher.len(), taken.len());
            prop_assert_eq!(allowed(&mut matcher), allowed(&mut replay), "{} {:?}", schema, taken);
            prop_assert_eq!(matcher.can_stop(), replay.can_stop());
            prop_assert_eq!(matcher.is_complete(), replay.is_complete());
            prop_assert_eq!(matcher.forced_bytes(), replay.forced_bytes());
        }
    }
}

/// Grammars of text whose terminals may end nearly everywhere, with texts that they accept.
const TEXTS: &[(&str, &str)] = &[
    (
        "start: (TEXT | element)*\nelement: \"<\" NAME \">\" (TEXT | element)* \"</\" NAME \">\"\n\
         TEXT: /[^<&]+/\nNAME: /[a-z]+/\n",
        "hello, world <b>bold text</b> more",
    ),
    ("start: (WORD | SPACE)+\nWORD: /[a-z]+/\nSPACE: /[ \\n]+/\n", "hello world  some more"),
    (
        "start: NAME (\".\" NAME)* \"=\" VALUE\nNAME: /[a-z_]\\w{0,40}/\nVALUE: /.{1,90}x/\n",
        "a_b.cd=1 2x",
    ),
    (
        "start: (\" \" WORD)+ | WORD* \"!\"\nWORD: /[a-z]{1,99}/ & ~STOP\nSTOP: \"the\" | \"a\"\n",
        " hello them again",
    ),
];

/// Compares the mask after a text with what the matcher says to the bytes of each token.
fn compare_bytes(constraint: &Constraint, text: &[u8]) {
    let vocabulary = constraint.vocabulary();
    let mut matcher = constraint.matcher();
    matcher.accept_bytes(text).unwrap();
    let mask: Vec<TokenId> = allowed(&mut matcher);
    for (id, bytes) in vocabulary.text_tokens() {
        let accepted = matcher.accept_bytes(bytes).is_ok();
        if accepted {
            matcher.rollback(1).unwrap();
        }
        let (token, text) = (String::from_utf8_lossy(bytes), String::from_utf8_lossy(text));
        assert_eq!(mask.binary_search(&id).is_ok(), accepted, "{token:?} after {text:?}");
    }
}

/// Compares masks after beginnings of the texts.
fn compare_texts(vocabulary: &Vocabulary) {
    use constrain::syntax::Syntax;
    for (grammar, text) in TEXTS {
        let grammar = Grammar::from_text(grammar, Syntax::Lark, &Options::default()).unwrap();
        let constraint = Constraint::new(&grammar, vocabulary).unwrap();
        for end in [0, 1, 4, 7, text.len()] {
            compare_bytes(&constraint, &text.as_bytes()[..end]);
        }
    }
}

#[test]
fn masks_of_texts_equal_bytes_for_a_large_vocabulary() {
    compare_texts(&support::large());
}

#[test]
fn masks_of_texts_equal_bytes_for_real_vocabularies() {
    for (name, vocabulary) in support::real() {
        println!("{name}");
        compare_texts(&vocabulary);
    }
}
