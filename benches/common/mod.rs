//! What the benchmarks share: a vocabulary, a schema, a document.
//!
//! The vocabulary is that of the tokenizer.json that `CONSTRAIN_TOKENIZER` names, else a made-up one
//! of the same size and shape: 128,000 tokens, all single bytes, words with and without a space.
#![allow(dead_code, reason = "each benchmark uses a part")]
use constrain::vocab::{Token, TokenId, Trie};
use constrain::{Constraint, Vocabulary, schema};

/// A schema with what occurs in real ones.
pub const SCHEMA: &str = r##"{
    "type": "object",
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "title": {"type": "string", "minLength": 1, "maxLength": 200},
        "status": {"enum": ["open", "in progress", "waiting", "closed"]},
        "priority": {"type": "integer", "minimum": 1, "maximum": 5},
        "created": {"type": "string", "format": "date-time"},
        "labels": {"type": "array", "items": {"type": "string", "pattern": "^[a-z][a-z0-9-]*$"}},
        "comments": {"type": "array", "items": {"$ref": "#/$defs/comment"}}
    },
    "required": ["id", "title", "status"],
    "additionalProperties": false,
    "$defs": {"comment": {
        "type": "object",
        "properties": {
            "author": {"type": "string"},
            "text": {"type": "string"},
            "replies": {"type": "array", "items": {"$ref": "#/$defs/comment"}}
        },
        "required": ["author", "text"]
    }}
}"##;

/// A document that is valid under [`SCHEMA`].
pub const DOCUMENT: &str = r#"{"id": "0a8ad7d2-4f43-4b8c-9d0e-0f5d3f2b1c6a", "title": "The printer on floor 3 is \"offline\"", "status": "in progress", "priority": 2, "created": "2024-05-17T09:30:00Z", "labels": ["hardware", "floor-3"], "comments": [{"author": "Ana", "text": "Power is fine.\nNetwork too.", "replies": [{"author": "Bo", "text": "On my way."}]}]}"#;

/// The tokens of the vocabulary and its end ids.
pub fn tokens() -> (Vec<Token>, Vec<TokenId>) {
    match std::env::var_os("CONSTRAIN_TOKENIZER") {
        Some(path) => {
            let vocabulary = Vocabulary::from_file(path).expect("a tokenizer");
            let ids = 0..vocabulary.len() as TokenId;
            let tokens = ids.filter_map(|id| vocabulary.token(id).cloned()).collect();
            (tokens, vocabulary.end_tokens().to_vec())
        }
        None => made_up(128_000),
    }
}

/// The vocabulary.
pub fn vocabulary() -> Vocabulary {
    let (tokens, end) = tokens();
    Vocabulary::new(tokens, end).expect("a vocabulary")
}

/// [`SCHEMA`] compiled for a vocabulary.
pub fn constraint(vocabulary: &Vocabulary) -> Constraint {
    let grammar = schema::compile(SCHEMA, &schema::Options::default()).expect("a schema");
    Constraint::new(&grammar, vocabulary).expect("a constraint")
}

/// The tokens of a text, each time the longest one.
pub fn encode(vocabulary: &Vocabulary, text: &str) -> Vec<TokenId> {
    let trie = vocabulary.trie();
    let mut rest = text.as_bytes();
    let mut tokens = Vec::new();
    while !rest.is_empty() {
        let (mut node, mut found) = (Trie::ROOT, None);
        for (at, &byte) in rest.iter().enumerate() {
            let Some(child) = trie.child(node, byte) else { break };
            node = child;
            found = trie.tokens(node).first().map(|&token| (token, at + 1)).or(found);
        }
        let (token, len) = found.expect("every byte is a token");
        tokens.push(token);
        rest = &rest[len..];
    }
    tokens
}

/// Single bytes, then words of syllables with what stands before and after words in real
/// vocabularies; the same ones every time.
fn made_up(count: usize) -> (Vec<Token>, Vec<TokenId>) {
    const BEFORE: [&str; 8] = ["", "", " ", " ", " ", " \"", "\"", "_"];
    const AFTER: [&str; 12] = ["", "", "", "", "", "s", "ing", "\"", "\",", "\":", "();\n", "."];
    const SYLLABLES: [&str; 16] = [
        "a", "in", "re", "th", "er", "on", "sta", "le", "com", "pro", "Ma", "tion", "é", "ок",
        "です", "20",
    ];
    let mut words: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    let mut seen: std::collections::HashSet<Vec<u8>> = words.iter().cloned().collect();
    let mut state = 1_u64;
    let mut below = |n: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    while words.len() < count - 1 {
        let mut word = BEFORE[below(8)].as_bytes().to_vec();
        for _ in 0..=below(4) {
            word.extend(SYLLABLES[below(16)].as_bytes());
        }
        word.extend(AFTER[below(12)].as_bytes());
        if seen.insert(word.clone()) {
            words.push(word);
        }
    }
    let mut tokens: Vec<Token> = words.into_iter().map(|word| Token::Text(word.into())).collect();
    tokens.push(Token::Special("<|im_end|>".into()));
    let end = tokens.len() as TokenId - 1;
    (tokens, vec![end])
}
