//! A small vocabulary whose tokens cross the borders of JSON in many ways.

use constrain::TokenId;
use constrain::vocab::{Token, Vocabulary};
use std::sync::OnceLock;

const PIECES: &[&str] = &[
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
    "00",
    "1,",
    "1]",
    "1}",
    "1.5",
    "e5",
    "-1",
    "0.",
    "\\u",
    "\\u00",
    "\\n",
    "\\\"",
    "\\ud8",
    "é",
    "é\"",
    "😀",
    "  ",
    "\n ",
    " \"",
    "true",
    "tru",
    "false,",
    "null}",
    "[]",
    "{}",
    "a\":",
    "b\":1",
    "\":1",
    "\":\"\",\"",
    "2020-",
    "-02",
    "foo",
    "x",
];

/// Single bytes, some pieces, one end token.
pub fn vocabulary() -> &'static Vocabulary {
    static VOCABULARY: OnceLock<Vocabulary> = OnceLock::new();
    VOCABULARY.get_or_init(|| {
        let mut tokens: Vec<Token> = (0..=255u8).map(|byte| Token::Text([byte].into())).collect();
        tokens.extend(PIECES.iter().map(|piece| Token::Text(piece.as_bytes().into())));
        let end = tokens.len() as TokenId;
        tokens.push(Token::Special("<end>".into()));
        Vocabulary::new(tokens, vec![end]).expect("a list of tokens with one end")
    })
}
