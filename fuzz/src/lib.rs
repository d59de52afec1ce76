//! Bodies of the fuzz targets: each takes bytes, and panics if a promise is broken.
//!
//! The bytes are choices, not texts: from them a schema is built (or a text taken), and each step
//! of the generation picks an allowed token. So every input means something, and small changes of
//! the input are small changes of what happens.
//!
//! | body | oracle |
//! |---|---|
//! | [`no_invalid_json`] | what was drawn from the masks parses and is valid by the crate `jsonschema`; no mask is empty; a budget is kept |
//! | [`mask_vs_bytes`] | a token is in the mask if and only if its bytes can be accepted one by one |
//! | [`matcher_ops`] | after any accepts, rollbacks, forks and resets the mask is that of a fresh replay |
//! | [`schema_text`], [`grammar_text`] | a typed error or a grammar, never a panic |
//! | [`regex_vs_reference`] | our strings against `regress` (ECMA-262), and against `regex-automata` where both read the pattern |
//! | [`vocab_files`] | a typed error or a vocabulary, never a panic |
//! | [`saved_constraint`] | a damaged file is a typed error; with a checksum made right again, an error or a constraint that is written and read again with the same masks |
//!
//! The same bodies run on a stable toolchain over committed seeds and random bytes
//! (`tests/fuzz.rs`).

mod files;
mod schemas;
mod tokens;

use arbitrary::{Result as Drawn, Unstructured};
use constrain::grammar::PropertyOrder;
use constrain::schema::{self, Options};
use constrain::{Constraint, Grammar, Limits, Matcher, TokenId};
pub use files::{saved_constraint, vocab_files};
use tokens::vocabulary;

/// A body: bytes in, a panic if a promise is broken.
pub type Body = fn(&[u8]);

/// All bodies, by name.
pub const BODIES: &[(&str, Body)] = &[
    ("no_invalid_json", no_invalid_json),
    ("mask_vs_bytes", mask_vs_bytes),
    ("matcher_ops", matcher_ops),
    ("schema_text", schema_text),
    ("grammar_text", grammar_text),
    ("regex_vs_reference", regex_vs_reference),
    ("vocab_files", vocab_files),
    ("saved_constraint", saved_constraint),
];

/// Longest generation without a budget, in tokens.
const STEPS: usize = 200;
/// Budget of a generation, in tokens.
const BUDGET: u64 = 120;

/// Tight limits: a fuzzer should not spend its time on one input.
fn limits() -> Limits {
    Limits { fuel: 400_000, ..Limits::service() }
}

/// A random schema, as text and compiled; `None` if it is refused.
fn constraint(choices: &mut Unstructured<'_>) -> Drawn<Option<(serde_json::Value, Constraint)>> {
    let schema = schemas::schema(choices)?;
    let property_order =
        if choices.arbitrary()? { PropertyOrder::Any } else { PropertyOrder::Declared };
    let options = Options { property_order, limits: limits(), ..Options::default() };
    let Ok(grammar) = schema::compile(&schema.to_string(), &options) else { return Ok(None) };
    let Ok(constraint) = Constraint::new(&grammar, vocabulary()) else { return Ok(None) };
    Ok(Some((schema, constraint)))
}

/// An allowed token; `None` if the mask cannot be computed within its budget.
fn draw(
    choices: &mut Unstructured<'_>,
    schema: &serde_json::Value,
    matcher: &mut Matcher,
) -> Drawn<Option<TokenId>> {
    let Ok(mask) = matcher.mask() else { return Ok(None) };
    let allowed: Vec<TokenId> = mask.iter().collect();
    let left = matcher.tokens_left();
    let text = shown(matcher.text());
    assert!(
        !allowed.is_empty(),
        "{schema}: nothing is allowed after {text:?}, {left:?} tokens left"
    );
    // The order of the ids has no meaning: take turns, so that short inputs reach all of them.
    let turn = usize::from(choices.arbitrary::<u8>().unwrap_or(7)) * 31 + matcher.len() * 7;
    Ok(Some(allowed[turn % allowed.len()]))
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Draws documents from the masks of a random schema: all that end are valid.
pub fn no_invalid_json(data: &[u8]) {
    let _ = try_no_invalid_json(&mut Unstructured::new(data));
}

fn try_no_invalid_json(choices: &mut Unstructured<'_>) -> Drawn<()> {
    let Some((schema, constraint)) = constraint(choices)? else { return Ok(()) };
    let Ok(validator) = jsonschema::validator_for(&schema) else { return Ok(()) };
    let within = constraint.min_tokens().is_ok_and(|least| least <= BUDGET);
    let mut matcher = match within {
        true => constraint.matcher_within(BUDGET).expect("the budget is above the minimum"),
        false => constraint.matcher(),
    };
    for _ in 0..STEPS {
        let Some(token) = draw(choices, &schema, &mut matcher)? else { return Ok(()) };
        if matcher.accept(token).is_err() {
            panic!("{schema}: token {token} is in the mask after {:?}", shown(matcher.text()));
        }
        if constraint.vocabulary().is_end(token) {
            let text = shown(matcher.text());
            let value: serde_json::Value =
                serde_json::from_str(&text).unwrap_or_else(|e| panic!("{schema}: {text:?}: {e}"));
            // The reference computes in `f64`: what has more digits than it holds, or an exponent
            // beyond its range, it judges wrongly.
            if longest_number(&text) <= 15 && !has_long_exponent(&text) {
                assert!(validator.is_valid(&value), "{schema}: invalid {text}");
            }
            return Ok(());
        }
    }
    // Where items must differ, what is owed is an estimate, and the budget may give way.
    let exact = within && !schema.to_string().contains("uniqueItems");
    assert!(!exact, "{schema}: not complete within {BUDGET} tokens: {:?}", shown(matcher.text()));
    Ok(())
}

/// The most digits of a number in a text, those of its exponent included.
fn longest_number(text: &str) -> usize {
    let runs = text.split(|c: char| !matches!(c, '0'..='9' | '.' | 'e' | 'E' | '+' | '-'));
    runs.map(|run| run.bytes().filter(u8::is_ascii_digit).count()).max().unwrap_or(0)
}

/// Whether some exponent (or what looks like one) has two digits or more.
fn has_long_exponent(text: &str) -> bool {
    text.split(['e', 'E']).skip(1).any(|rest| {
        let digits = rest.trim_start_matches(['+', '-']);
        digits.bytes().take_while(u8::is_ascii_digit).count() > 1
    })
}

/// Each token of the vocabulary is allowed if and only if its bytes are.
pub fn mask_vs_bytes(data: &[u8]) {
    let _ = try_mask_vs_bytes(&mut Unstructured::new(data));
}

fn try_mask_vs_bytes(choices: &mut Unstructured<'_>) -> Drawn<()> {
    let Some((schema, constraint)) = constraint(choices)? else { return Ok(()) };
    let mut matcher = constraint.matcher();
    for _ in 0..choices.int_in_range(0..=25)? {
        let Some(token) = draw(choices, &schema, &mut matcher)? else { return Ok(()) };
        if constraint.vocabulary().is_end(token) {
            break;
        }
        matcher.accept(token).expect("a token of the mask");
    }
    let Ok(mask) = matcher.mask() else { return Ok(()) };
    let allowed: Vec<TokenId> = mask.iter().collect();
    for (token, bytes) in constraint.vocabulary().text_tokens() {
        let possible = matcher.fork().accept_bytes(bytes).is_ok();
        let masked = allowed.binary_search(&token).is_ok();
        let after = shown(matcher.text());
        assert_eq!(masked, possible, "{schema}: {:?} after {after:?}", shown(bytes));
    }
    let end = constraint.vocabulary().end_tokens()[0];
    assert_eq!(allowed.contains(&end), matcher.can_stop(), "{schema}: the end");
    Ok(())
}

/// Random operations against a replay of what they amount to.
pub fn matcher_ops(data: &[u8]) {
    let _ = try_matcher_ops(&mut Unstructured::new(data));
}

fn try_matcher_ops(choices: &mut Unstructured<'_>) -> Drawn<()> {
    let Some((schema, constraint)) = constraint(choices)? else { return Ok(()) };
    let mut matcher = constraint.matcher();
    let mut accepted: Vec<TokenId> = Vec::new();
    for _ in 0..choices.int_in_range(1..=40)? {
        match choices.int_in_range(0..=9)? {
            0 => {
                let n = choices.int_in_range(0..=accepted.len())?;
                matcher.rollback(n).expect("as many were accepted");
                accepted.truncate(accepted.len() - n);
            }
            1 => matcher = matcher.fork(),
            2 => {
                matcher.reset();
                accepted.clear();
            }
            3 => {
                let wild = choices.int_in_range(0..=vocabulary().len() as TokenId - 1)?;
                if matcher.fork().accept(wild).is_ok() {
                    matcher.accept(wild).expect("a fork accepted it");
                    accepted.push(wild);
                }
            }
            _ => {
                let Some(token) = draw(choices, &schema, &mut matcher)? else { return Ok(()) };
                matcher.accept(token).expect("a token of the mask");
                accepted.push(token);
            }
        }
        if accepted.last().is_some_and(|&token| vocabulary().is_end(token)) {
            matcher.rollback(1).expect("one was accepted");
            accepted.pop();
        }
    }
    let mut replay = constraint.matcher();
    accepted.iter().for_each(|&token| replay.accept(token).expect("it was accepted before"));
    let words = vocabulary().len().div_ceil(32);
    let (mut ours, mut fresh) = (vec![0; words], vec![0; words]);
    if matcher.fill_bitmask(&mut ours).is_ok() && replay.fill_bitmask(&mut fresh).is_ok() {
        assert_eq!(ours, fresh, "{schema}: after {:?}", shown(replay.text()));
    }
    assert_eq!(matcher.text(), replay.text(), "{schema}");
    Ok(())
}

/// Arbitrary text as a schema.
pub fn schema_text(data: &[u8]) {
    let options = Options { limits: limits(), ..Options::default() };
    if let Ok(grammar) = schema::compile(&String::from_utf8_lossy(data), &options)
        && let Ok(constraint) = Constraint::new(&grammar, vocabulary())
    {
        let _ = constraint.matcher().mask();
    }
}

/// Arbitrary text as a grammar: the first byte says in which syntax.
pub fn grammar_text(data: &[u8]) {
    use constrain::syntax::Syntax;
    let syntaxes = [Syntax::Gbnf, Syntax::W3c, Syntax::Ebnf, Syntax::Lark, Syntax::Regex];
    let Some((first, text)) = data.split_first() else { return };
    let syntax = syntaxes[usize::from(*first) % syntaxes.len()];
    let options = Options { limits: limits(), ..Options::default() };
    if let Ok(grammar) = Grammar::from_text(&String::from_utf8_lossy(text), syntax, &options)
        && let Ok(constraint) = Constraint::new(&grammar, vocabulary())
    {
        let _ = constraint.matcher().mask();
    }
}

/// A pattern and strings: our answer against other engines.
pub fn regex_vs_reference(data: &[u8]) {
    let _ = try_regex_vs_reference(&mut Unstructured::new(data));
}

fn try_regex_vs_reference(choices: &mut Unstructured<'_>) -> Drawn<()> {
    let pattern = schemas::pattern(choices)?;
    let schema = serde_json::json!({"type": "string", "pattern": pattern}).to_string();
    let options = Options { limits: limits(), ..Options::default() };
    let Ok(reference) = regress::Regex::with_flags(&pattern, "u") else { return Ok(()) };
    let second = regex_automata::meta::Regex::new(&pattern).ok();
    let Ok(grammar) = schema::compile(&schema, &options) else { return Ok(()) };
    let Ok(constraint) = Constraint::new(&grammar, vocabulary()) else { return Ok(()) };
    for _ in 0..8 {
        let text: String = (0..choices.int_in_range(0..=8)?)
            .map(|_| {
                choices.choose(&['a', 'b', 'c', 'B', '0', '1', '-', '_', '.', ' ', 'é']).copied()
            })
            .collect::<Drawn<_>>()?;
        let mut matcher = constraint.matcher();
        let json = serde_json::Value::from(text.as_str()).to_string();
        let ours = matcher.accept_bytes(json.as_bytes()).is_ok() && matcher.can_stop();
        assert_eq!(ours, reference.find(&text).is_some(), "{pattern:?} on {text:?} (regress)");
        if let Some(second) = &second {
            assert_eq!(ours, second.is_match(&text), "{pattern:?} on {text:?} (regex-automata)");
        }
    }
    Ok(())
}
