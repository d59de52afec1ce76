//! Files that were damaged: of vocabularies and of saved constraints.

use arbitrary::{Result as Drawn, Unstructured};
use constrain::saved::Saved;
use constrain::schema::{self, Options};
use constrain::syntax::Syntax;
use constrain::vocab::Vocabulary;
use constrain::{Constraint, Grammar, Kind, Limits, TokenId};
use std::sync::OnceLock;

use super::tokens::vocabulary;

/// Schemas whose grammars hold every kind of node, terminal and law of numbers.
const SCHEMAS: &[&str] = &[
    r#"{"type":"object","properties":{"name":{"type":"string","pattern":"^[A-Z][a-z]+$"},"é":{"enum":["x","é",1.5,null]}},"required":["name"],"additionalProperties":{"type":"integer","minimum":-3,"exclusiveMaximum":2.5e3}}"#,
    r##"{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"v":{"type":"number","multipleOf":0.25},"kids":{"type":"array","items":{"$ref":"#/$defs/t"},"maxItems":3}},"required":["v"],"dependentRequired":{"kids":["v"]}}}}"##,
    r#"{"type":"array","prefixItems":[{"type":"string","format":"date"},true],"contains":{"const":7},"maxContains":2,"minItems":1,"uniqueItems":true}"#,
    r#"{"type":"object","patternProperties":{"^x":{"type":"boolean"},"[0-9]$":{"type":["boolean","null"]}},"minProperties":1,"maxProperties":3,"additionalProperties":false}"#,
    r#"{"type":"string","pattern":"^(?!.*(ab|ba)).*[0-9]{2,}$","minLength":3}"#,
];

/// A grammar of text.
const GRAMMAR: &str = "root ::= (\"a\" | [b-d]{2,5}) root? \"end\"";

/// Bytes in front of what the checksum covers: name, version and the checksum.
const ENVELOPE: usize = 8 + 4 + 32;
/// Of what it covers, the hash of the vocabulary, with its length.
const HASH: usize = 1 + 32;

/// Saved constraints.
fn saved() -> &'static [(Constraint, Vec<u8>)] {
    static SAVED: OnceLock<Vec<(Constraint, Vec<u8>)>> = OnceLock::new();
    SAVED.get_or_init(|| {
        let options = Options::default();
        let schemas = SCHEMAS.iter().map(|schema| schema::compile(schema, &options));
        let text = Grammar::from_text(GRAMMAR, Syntax::Gbnf, &options);
        let grammars = schemas.chain([text]).map(|grammar| grammar.expect("a grammar"));
        grammars
            .map(|grammar| {
                let constraint = Constraint::new(&grammar, vocabulary()).expect("satisfiable");
                let bytes = constraint.save(b"").expect("a compiled grammar");
                (constraint, bytes)
            })
            .collect()
    })
}

/// The first byte says what is done: odd, a file's bytes are changed here and there; even, the rest is
/// all of a file behind the hash of its vocabulary. Its second bit: the checksum is made right again.
pub fn saved_constraint(data: &[u8]) {
    let _ = try_saved_constraint(&mut Unstructured::new(data));
}

fn try_saved_constraint(choices: &mut Unstructured<'_>) -> Drawn<()> {
    let how: u8 = choices.arbitrary()?;
    let (fresh, original) = &saved()[usize::from(how >> 2) % saved().len()];
    let mut bytes = original.clone();
    if how & 1 == 0 {
        bytes.truncate(ENVELOPE + HASH);
        bytes.extend_from_slice(choices.bytes(choices.len())?);
    } else {
        for _ in 0..choices.int_in_range(0..=3)? {
            let at = choices.int_in_range(0..=bytes.len() - 1)?;
            bytes[at] = choices.arbitrary()?;
        }
    }
    if how & 2 == 0 {
        let sum = blake3::hash(&bytes[ENVELOPE..]);
        bytes[ENVELOPE - 32..ENVELOPE].copy_from_slice(sum.as_bytes());
    }
    let limits = Limits { fuel: 400_000, expressions: 20_000, ..Limits::service() };
    let read = Saved::read(&bytes).and_then(|saved| saved.constraint(vocabulary(), &limits));
    if bytes == *original {
        return same(fresh, &read.expect("an undamaged file"), choices);
    }
    let loaded = match read {
        Ok(loaded) => loaded,
        Err(error) => {
            let expected = matches!(
                error.kind(),
                Kind::BadArtefact
                    | Kind::TooComplex { .. }
                    | Kind::TooDeep
                    | Kind::Unsatisfiable
                    | Kind::BadGrammar
            );
            assert!(expected, "{error:?}");
            return Ok(());
        }
    };
    assert_eq!(how & 2, 0, "the checksum finds accidents");
    // What it means may have changed; what is read is written again, and then means the same.
    let again = loaded.save(b"").expect("it was read");
    let again = Saved::read(&again).and_then(|saved| saved.constraint(vocabulary(), &limits));
    same(&loaded, &again.expect("it was written just now"), choices)
}

/// Draws tokens from the masks of both, which are the same on the way.
fn same(one: &Constraint, other: &Constraint, choices: &mut Unstructured<'_>) -> Drawn<()> {
    let (mut one, mut other) = (one.matcher(), other.matcher());
    for step in 0..12 {
        let (Ok(mine), Ok(theirs)) = (one.mask(), other.mask()) else { return Ok(()) };
        let mine: Vec<TokenId> = mine.iter().collect();
        assert_eq!(mine, theirs.iter().collect::<Vec<_>>(), "step {step}");
        assert!(mine.iter().all(|&token| (token as usize) < vocabulary().len()));
        let Some(&token) = mine.get(usize::from(choices.arbitrary::<u8>()?) % mine.len().max(1))
        else {
            return Ok(());
        };
        if vocabulary().is_end(token) {
            return Ok(());
        }
        one.accept(token).expect("a token of the mask");
        other.accept(token).expect("a token of the mask");
    }
    Ok(())
}

/// Arbitrary bytes as vocabulary files.
pub fn vocab_files(data: &[u8]) {
    let _ = Vocabulary::from_tokenizer_json(data);
    let _ = Vocabulary::from_tiktoken(data, &[], &[]);
}
