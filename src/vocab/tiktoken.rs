//! Vocabularies in tiktoken's rank files: a line for each token, its bytes in base64 and its id.
//!
//! # By hand
//!
//! ```
//! let ranks = b"YQ== 0\nIGE= 1\n"; // `a` and ` a`
//! let specials = [("<|endoftext|>", 2)];
//! let vocabulary = constrain::Vocabulary::from_tiktoken(ranks, &specials, &[])?;
//! assert_eq!(vocabulary.bytes(1), Some(&b" a"[..]));
//! assert_eq!(vocabulary.end_tokens(), [2]);
//! # Ok::<(), constrain::Error>(())
//! ```
//!
//! Such files have no special tokens; they are in the code that comes with a model.
use super::table::TokenTable;
use super::{MAX_TOKEN_BYTES, TokenId, Vocabulary, bad};
use crate::error::{Error, Result};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

impl Vocabulary {
    /// Reads a rank file. `specials` are the special tokens; those of well-known names end
    /// generation, and those whose names are in `end`.
    ///
    /// # Errors
    /// [`crate::Kind::BadVocabulary`] with the line that is wrong, or if no token ends generation.
    pub fn from_tiktoken(
        ranks: &[u8],
        specials: &[(&str, TokenId)],
        end: &[String],
    ) -> Result<Self> {
        load(ranks, specials, &[], end)
    }
}

/// The same with end tokens by id, too.
pub(super) fn load(
    ranks: &[u8],
    specials: &[(&str, TokenId)],
    end_ids: &[TokenId],
    end_names: &[String],
) -> Result<Vocabulary> {
    let mut table = TokenTable::default();
    for (line, number) in ranks.split(|&byte| byte == b'\n').zip(1..) {
        let line = line.trim_ascii_end();
        if !line.is_empty() {
            let (bytes, id) = parse_line(line).ok_or_else(|| line_error(number))?;
            table.text(id, "", Some(bytes)).map_err(|error| error.at_line(number, 1))?;
        }
    }
    for &(name, id) in specials {
        table.special(id, name);
    }
    table.build(end_ids, end_names)
}

/// Whether a file looks like a rank file: its first line is one.
pub(super) fn is_ranks(file: &[u8]) -> bool {
    let line = file.split(|&byte| byte == b'\n').next().unwrap_or_default();
    parse_line(line.trim_ascii_end()).is_some()
}

fn parse_line(line: &[u8]) -> Option<(Vec<u8>, TokenId)> {
    let space = line.iter().position(|&byte| byte == b' ')?;
    let (bytes, id) = (&line[..space], &line[space + 1..]);
    // Base64 has four characters for three bytes.
    if bytes.len() > MAX_TOKEN_BYTES / 3 * 4 + 8 {
        return None;
    }
    let id = std::str::from_utf8(id).ok()?.parse().ok()?;
    Some((BASE64_STANDARD.decode(bytes).ok()?, id))
}

fn line_error(number: u32) -> Error {
    bad("a line is not a token in base64, a space and an id")
        .at_line(number, 1)
        .help("use a rank file of tiktoken, or a tokenizer.json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::Token;

    const SPECIALS: &[(&str, TokenId)] = &[("<|endoftext|>", 5), ("<|fim_prefix|>", 4)];

    #[test]
    fn tokens_and_specials() {
        // `!`, an invalid UTF-8 byte, an empty token, carriage returns, no final line feed.
        let file = b"IQ== 0\r\n/w== 2\r\n\r\n 3\nISE= 1";
        let vocabulary = Vocabulary::from_tiktoken(file, SPECIALS, &[]).unwrap();
        assert_eq!(vocabulary.len(), 6);
        assert_eq!(vocabulary.bytes(1), Some(&b"!!"[..]));
        assert_eq!(vocabulary.bytes(2), Some(&[0xff][..]));
        assert_eq!(vocabulary.token(3), Some(&Token::Unused));
        assert_eq!(vocabulary.special("<|fim_prefix|>"), Some(4));
        assert_eq!(vocabulary.end_tokens(), [5]);
    }

    #[test]
    fn ends_can_be_named() {
        let end = ["<|fim_prefix|>".to_owned()];
        let vocabulary = Vocabulary::from_tiktoken(b"IQ== 0", SPECIALS, &end).unwrap();
        assert_eq!(vocabulary.end_tokens(), [4, 5]);
        assert!(Vocabulary::from_tiktoken(b"IQ== 0", &[("<x>", 1)], &[]).is_err());
    }

    #[test]
    fn a_wrong_line_is_named() {
        for line in ["IQ==", "IQ== x", "IQ== -1", "IQ== 4294967296", "I? 1", "IQ==  1", "\u{ff} 1"]
        {
            let file = format!("IQ== 0\n{line}\nIQ== 7");
            let error = Vocabulary::from_tiktoken(file.as_bytes(), SPECIALS, &[]).unwrap_err();
            assert!(error.to_string().contains("(line 2, column 1)"), "{line}: {error}");
        }
        let long = format!("{} 1", "AAAA".repeat(MAX_TOKEN_BYTES));
        assert!(Vocabulary::from_tiktoken(long.as_bytes(), SPECIALS, &[]).is_err());
    }

    #[test]
    fn recognised() {
        assert!(is_ranks(b"IQ== 0\nIg== 1"));
        assert!(!is_ranks(b"{\"model\": 0}"));
        assert!(!is_ranks(b""));
    }
}
