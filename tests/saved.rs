//! Compiled constraints as files: the same masks, and no harm from what is damaged or hostile.

mod support;

use constrain::saved::Saved;
use constrain::schema::{self, Options};
use constrain::syntax::Syntax;
use constrain::{Constraint, Document, Grammar, Kind, Limits, TokenId, Vocabulary};
use support::Random;

const SCHEMAS: &[&str] = &[
    "{}",
    r#"{"type":"object","properties":{"name":{"type":"string","pattern":"^[A-Z][a-z]+$"},"caf\u00e9":{"enum":["x","yes","\u00e9",1.5,null,{"a":[1]}]}},"required":["name"],"additionalProperties":{"type":"integer","minimum":-3,"exclusiveMaximum":2.5e3}}"#,
    r##"{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"v":{"type":"number","multipleOf":0.25},"kids":{"type":"array","items":{"$ref":"#/$defs/t"},"maxItems":3}},"required":["v"],"dependentRequired":{"kids":["v"]}}}}"##,
    r#"{"type":"array","prefixItems":[{"type":"string","format":"date"},true],"contains":{"const":7},"minContains":1,"maxContains":2,"minItems":1}"#,
    r#"{"type":"array","items":{"type":"string","maxLength":3},"uniqueItems":true,"maxItems":4}"#,
    r#"{"not":{"type":["string","object"]},"oneOf":[{"minimum":3},{"maximum":5},{"type":"null"}]}"#,
    r#"{"type":"object","patternProperties":{"^x":{"type":"boolean"},"[0-9]$":{"type":["boolean","null"]}},"minProperties":1,"maxProperties":3,"additionalProperties":false}"#,
    r#"{"type":["string","null"],"x-constrain":{"span":true},"not":{"enum":["or","not"]},"maxLength":12}"#,
    r#"{"type":"string","pattern":"^(?!.*(ab|ba)).*[0-9]{2,}$","minLength":3}"#,
    r#"{"type":"string","format":"idn-hostname"}"#,
    r#"{"type":"object","properties":{"a":{"type":"string","x-constrain":{"max_tokens":5}},"b":{"type":"integer"}},"required":["a"]}"#,
];

const GRAMMARS: &[(&str, Syntax)] = &[
    ("root ::= (\"a\" | [b-d]{2,5}) root? \"end\"", Syntax::Gbnf),
    ("start: pair (\",\" pair)*\npair: /[a-z]+/ \"=\" %json {\"type\": \"integer\"}", Syntax::Lark),
    ("[a-z]+(@[a-z]+)?", Syntax::Regex),
];

fn grammars() -> Vec<(String, Grammar)> {
    let document = Some(Document::new("to be, or not to be: \"that\" is\nthe question").unwrap());
    let options = Options { document, ..Options::default() };
    let schemas = SCHEMAS.iter().map(|schema| {
        let grammar = schema::compile(schema, &options);
        ((*schema).to_owned(), grammar.unwrap_or_else(|error| panic!("{schema}: {error}")))
    });
    let texts = GRAMMARS.iter().map(|(text, syntax)| {
        let grammar = Grammar::from_text(text, *syntax, &options);
        ((*text).to_owned(), grammar.unwrap_or_else(|error| panic!("{text}: {error}")))
    });
    schemas.chain(texts).collect()
}

/// Walks at random through both constraints, whose masks are to be the same on the way.
fn same(what: &str, ours: &Constraint, theirs: &Constraint, walks: u64) {
    let vocabulary = ours.vocabulary();
    for walk in 0..walks {
        let mut random = Random(walk * 77 + 3);
        let (mut one, mut other) = (ours.matcher(), theirs.matcher());
        for _ in 0..25 {
            let mask: Vec<TokenId> = one.mask().unwrap().iter().collect();
            let copied: Vec<TokenId> = other.mask().unwrap().iter().collect();
            assert_eq!(mask, copied, "{what} after {:?}", String::from_utf8_lossy(one.text()));
            let token = mask[random.below(mask.len())];
            if vocabulary.is_end(token) {
                break;
            }
            one.accept(token).unwrap();
            other.accept(token).unwrap();
        }
    }
}

#[test]
fn what_was_saved_gives_the_same_masks() {
    let vocabulary = support::synthetic();
    for (what, grammar) in grammars() {
        let constraint = Constraint::new(&grammar, &vocabulary).unwrap();
        let bytes = constraint.save(what.as_bytes()).unwrap();
        let saved = Saved::read(&bytes).unwrap();
        assert_eq!(saved.note(), what.as_bytes());
        let loaded = saved.constraint(&vocabulary, &Limits::default()).unwrap();
        same(&what, &constraint, &loaded, 12);
        assert_eq!(loaded.document().is_some(), what.contains("span"), "{what}");
        // What was read is written as it was read.
        assert_eq!(loaded.save(what.as_bytes()).unwrap(), bytes, "{what}");
    }
}

#[test]
fn foreign_and_damaged_files_are_typed_errors() {
    let vocabulary = support::synthetic();
    let (_, grammar) = grammars().swap_remove(1);
    let bytes = Constraint::new(&grammar, &vocabulary).unwrap().save(b"").unwrap();
    let kind = |bytes: &[u8], vocabulary: &Vocabulary, limits: &Limits| {
        let error = Saved::read(bytes).and_then(|saved| saved.constraint(vocabulary, limits));
        error.map_or_else(|error| Some(error.kind().clone()), |_| None)
    };
    let limits = Limits::default();
    assert_eq!(kind(&bytes, &support::bytes(), &limits), Some(Kind::BadArtefact));
    assert_eq!(kind(b"{}", &vocabulary, &limits), Some(Kind::BadArtefact));
    for at in 0..bytes.len() {
        assert_eq!(kind(&bytes[..at], &vocabulary, &limits), Some(Kind::BadArtefact));
        let mut wrong = bytes.clone();
        wrong[at] ^= 0x10;
        assert_eq!(kind(&wrong, &vocabulary, &limits), Some(Kind::BadArtefact));
    }
    for limits in [
        Limits { nodes: 2, ..Limits::default() },
        Limits { properties: 1, ..Limits::default() },
        Limits { fuel: 10, ..Limits::default() },
        Limits { output_depth: 3, ..Limits::default() },
        Limits { number_digits: 3, ..Limits::default() },
    ] {
        assert!(
            matches!(kind(&bytes, &vocabulary, &limits), Some(Kind::TooComplex { .. })),
            "{limits:?}"
        );
    }
}

/// The same file with another payload, and a checksum that is right.
fn resealed(bytes: &[u8], payload: &[u8]) -> Vec<u8> {
    [&bytes[..12], blake3::hash(payload).as_bytes(), payload].concat()
}

#[test]
fn hostile_files_do_no_harm() {
    let vocabulary = support::bytes();
    let limits = Limits { fuel: 400_000, expressions: 20_000, ..Limits::default() };
    let (mut refused, mut usable) = (0, 0);
    for (i, (_, grammar)) in grammars().into_iter().enumerate() {
        let bytes = Constraint::new(&grammar, &vocabulary).unwrap().save(b"").unwrap();
        let mut random = Random(i as u64 * 99 + 1);
        // In front of the grammar are the hash, the note and a length.
        let start = 33 + 1 + 2;
        let rounds =
            std::env::var("CONSTRAIN_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(600);
        for _ in 0..if i == 9 { 20 } else { rounds } {
            let mut payload = bytes[44..].to_vec();
            for _ in 0..1 + random.below(3) {
                let at = start + random.below(payload.len() - start);
                payload[at] = match random.below(3) {
                    0 => random.below(16) as u8,
                    1 => payload[at].wrapping_add(1),
                    _ => random.below(256) as u8,
                };
            }
            let wrong = resealed(&bytes, &payload);
            let loaded =
                Saved::read(&wrong).and_then(|saved| saved.constraint(&vocabulary, &limits));
            let Ok(loaded) = loaded else {
                refused += 1;
                continue;
            };
            usable += 1;
            let mut matcher = loaded.matcher();
            for _ in 0..12 {
                let Ok(mask) = matcher.mask() else { break };
                let tokens: Vec<TokenId> = mask.iter().collect();
                let Some(&token) = tokens.get(random.below(tokens.len().max(1))) else { break };
                if vocabulary.is_end(token) || matcher.accept(token).is_err() {
                    break;
                }
            }
        }
    }
    assert!(refused > 100 && usable > 100, "{refused} refused, {usable} usable");
}
