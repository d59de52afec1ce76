//! Masks of real schemas over real vocabularies, against what the bytes say.
//!
//! A token is allowed if and only if its bytes are. The masks come from token tables, the answers about bytes from another
//! constraint on the same schema that never makes a mask: they share the machine of states and stacks, which `masks.rs`
//! compares with a reference that shares nothing.
//!
//! Then eight threads replay everything on one constraint that knows nothing yet, each in another order, and once more
//! when it knows all: no mask may differ in a bit.
//!
//! `CONSTRAIN_CORPUS` names a file of cases (`{"schema": ...}` in each line, `.gz` or not), `CONSTRAIN_TOKENIZERS` a
//! folder with tokenizers; without them there is nothing to do. Minutes per vocabulary in a release build.

mod support;

use std::io::Read;
use std::path::Path;

use constrain::grammar::PropertyOrder;
use constrain::schema::{self, Options};
use constrain::{Constraint, Matcher, TokenId, Vocabulary};
use serde_json::Value;
use support::Random;

/// Schemas that are compared, evenly from the file.
const SCHEMAS: usize = 300;
/// Random documents per schema, and the tokens of each that are compared.
const WALKS: u64 = 2;
const STEPS: usize = 6;
/// Threads that replay.
const THREADS: usize = 8;

/// The tokens of a walk, and the mask before each of them.
type Recorded = (Vec<TokenId>, Vec<Vec<u32>>);

/// The schemas of the file, as far as they are to be compared.
fn schemas() -> Option<Vec<String>> {
    let Some(path) = std::env::var_os("CONSTRAIN_CORPUS") else {
        eprintln!("skipped: CONSTRAIN_CORPUS names no file of schemas");
        return None;
    };
    let bytes = std::fs::read(&path).unwrap();
    let mut text = String::new();
    if Path::new(&path).extension().is_some_and(|end| end == "gz") {
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    } else {
        text = String::from_utf8(bytes).unwrap();
    }
    let lines: Vec<&str> = text.lines().collect();
    assert!(!lines.is_empty(), "{path:?} is empty");
    let every = (lines.len() / SCHEMAS).max(1);
    let schema = |line: &&str| {
        let case: Value = serde_json::from_str(line).unwrap();
        case["schema"].to_string()
    };
    Some(lines.iter().step_by(every).take(SCHEMAS).map(schema).collect())
}

/// The tokens that may come next, by their bytes: those that begin alike are read once. `tokens` are in the order
/// of their bytes.
fn by_bytes(here: &Matcher, tokens: &[(&[u8], TokenId)]) -> Vec<u32> {
    let mut words = vec![0; here.constraint().vocabulary().len().div_ceil(32)];
    let mut set = |id: TokenId| words[id as usize / 32] |= 1 << (id % 32);
    // The matcher after each byte of the last token, as far as it lives.
    let mut path = vec![here.fork()];
    let mut last: &[u8] = &[];
    for &(bytes, id) in tokens {
        let shared = last.iter().zip(bytes).take_while(|(a, b)| a == b).count();
        last = bytes;
        // It begins like the last one beyond what lived.
        if shared >= path.len() {
            continue;
        }
        path.truncate(shared + 1);
        for &byte in &bytes[shared..] {
            let mut next = path[path.len() - 1].fork();
            if next.accept_bytes(&[byte]).is_err() {
                break;
            }
            path.push(next);
        }
        if path.len() > bytes.len() {
            set(id);
        }
    }
    if here.can_stop() {
        here.constraint().vocabulary().end_tokens().iter().for_each(|&id| set(id));
    }
    words
}

fn bitmask(matcher: &mut Matcher) -> Vec<u32> {
    let mut words = vec![u32::MAX; matcher.constraint().vocabulary().len().div_ceil(32)];
    matcher.fill_bitmask(&mut words).unwrap();
    words
}

/// A random token of a mask: half the time one that moves the document on.
fn pick(random: &mut Random, vocabulary: &Vocabulary, words: &[u32]) -> Option<TokenId> {
    let bit = |id: &TokenId| words[*id as usize / 32] >> (id % 32) & 1 == 1;
    let texts: Vec<(TokenId, &[u8])> = vocabulary.text_tokens().filter(|(id, _)| bit(id)).collect();
    let moves = |bytes: &[u8]| bytes.iter().any(|byte| b"\"{}[],:".contains(byte));
    let moving: Vec<_> = texts.iter().filter(|(_, bytes)| moves(bytes)).collect();
    match (random.below(2), moving.len()) {
        (0, 1..) => Some(moving[random.below(moving.len())].0),
        _ => (!texts.is_empty()).then(|| texts[random.below(texts.len())].0),
    }
}

/// Compares the masks of random documents with what the bytes say.
fn record(schema: &str, constraint: &Constraint, bytes: &Constraint) -> Vec<Recorded> {
    let vocabulary = constraint.vocabulary();
    let mut tokens: Vec<(&[u8], TokenId)> =
        vocabulary.text_tokens().map(|(id, bytes)| (bytes, id)).collect();
    tokens.sort_unstable();
    let walk = |seed: u64| {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 7);
        let (mut ours, mut theirs) = (constraint.matcher(), bytes.matcher());
        let (mut taken, mut masks) = (Vec::new(), Vec::new());
        for _ in 0..STEPS {
            let mask = bitmask(&mut ours);
            let differ =
                std::iter::zip(&mask, by_bytes(&theirs, &tokens)).position(|(a, b)| *a != b);
            let after = String::from_utf8_lossy(ours.text());
            assert!(
                differ.is_none(),
                "{schema}\nafter {after:?}: ids from {:?}",
                differ.map(|at| at * 32)
            );
            let Some(token) = pick(&mut random, vocabulary, &mask) else { break };
            ours.accept(token).unwrap();
            theirs.accept_bytes(vocabulary.bytes(token).unwrap()).unwrap();
            taken.push(token);
            masks.push(mask);
        }
        (taken, masks)
    };
    (0..WALKS).map(walk).collect()
}

/// Replays what was recorded, beginning with walk number `first`.
fn replay(constraint: &Constraint, recorded: &[Recorded], first: usize) {
    let mut matcher = constraint.matcher();
    for (tokens, masks) in recorded.iter().cycle().skip(first).take(recorded.len()) {
        matcher.reset();
        for (&token, mask) in tokens.iter().zip(masks) {
            assert!(bitmask(&mut matcher) == *mask, "after {:?}", matcher.text());
            matcher.accept(token).unwrap();
        }
    }
}

#[test]
fn masks_of_real_schemas_are_what_their_bytes_say() {
    let Some(schemas) = schemas() else { return };
    for (name, vocabulary) in support::real() {
        let mut compared = (0, 0);
        for schema in &schemas {
            let options = Options { property_order: PropertyOrder::Any, ..Options::default() };
            let Ok(grammar) = schema::compile(schema, &options) else { continue };
            let new = || Constraint::new(&grammar, &vocabulary).unwrap();
            let recorded = record(schema, &new(), &new());
            let together = new();
            for _ in ["cold", "warm"] {
                std::thread::scope(|scope| {
                    for thread in 0..THREADS {
                        let (together, recorded) = (&together, &recorded);
                        scope.spawn(move || replay(together, recorded, thread));
                    }
                });
            }
            compared.0 += 1;
            compared.1 += recorded.iter().map(|(_, masks)| masks.len()).sum::<usize>();
        }
        let (schemas, masks) = compared;
        println!(
            "{name}: {masks} masks of {schemas} schemas, each also {} times by threads",
            2 * THREADS
        );
        assert!(masks > 0);
    }
}
