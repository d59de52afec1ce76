//! From the text of a token in a tokenizer file to the bytes that it stands for.
//!
//! Tokenizer files do not store bytes: they store text, and a *decoder* that says how to read it.
//! [`Spelling`] is what remains of such a decoder when each token is read for itself.
//!
//! # By hand
//!
//! | decoder | token in the file | bytes |
//! |---|---|---|
//! | byte level (GPT-2) | `Ġé` | 20 e9: each character of an alphabet of 256 is a byte |
//! | byte level | `日本` | the text itself: `日` is not in the alphabet |
//! | metaspace (SentencePiece) | `▁a` | 20 61: U+2581 is a space |
//! | byte fallback | `<0x0A>` | 0a |
//! | byte fallback | `<0xGG>`, `<0x-1>`, `<0x0a>` | the text itself |
//!
//! # Not done
//!
//! * What a decoder does to the ends of the whole text, such as the removal of one leading space,
//!   does not belong to a token and is left out: generation continues a prompt, it has no such end.
//! * Decoders that join tokens by rules of words (WordPiece, CTC, end-of-word suffixes) have no bytes
//!   for a token alone. They are refused.
use super::{MAX_TOKEN_BYTES, bad};
use crate::error::{Result, quote};
use serde_json::Value;
use std::borrow::Cow;

/// How the texts of a tokenizer file are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spelling {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// Replaces every occurrence of a text.
    Replace { from: String, to: String },
    /// Reads `<0xHH>` as that byte.
    ByteFallback,
    /// Reads each character of the byte alphabet as its byte.
    ByteLevel,
}

impl Spelling {
    /// Reads the `decoder` of a tokenizer file; `byte_fallback` is what its model says.
    pub(super) fn from_decoder(decoder: &Value, byte_fallback: bool) -> Result<Self> {
        let mut steps = Vec::new();
        // Once the texts are fused, decoders work on the whole output.
        let mut fused = false;
        // Sequences may nest: the parts still to read, the next one last.
        let mut parts = vec![decoder];
        while let Some(part) = parts.pop() {
            match part.get("type").and_then(Value::as_str) {
                Some("Sequence") => {
                    let inner = part.get("decoders").and_then(Value::as_array);
                    let inner =
                        inner.ok_or_else(|| bad("a decoder `Sequence` has no `decoders`"))?;
                    parts.extend(inner.iter().rev());
                }
                Some("Fuse") => fused = true,
                Some("Strip") if fused => {}
                Some("ByteLevel") => steps.push(Step::ByteLevel),
                Some("ByteFallback") => steps.push(Step::ByteFallback),
                Some("Metaspace") => steps.push(metaspace(part)),
                Some("Replace") => steps.push(replace(part)?),
                Some(other) => return Err(unsupported(other)),
                None => return Err(no_decoder()),
            }
        }
        if byte_fallback && !steps.contains(&Step::ByteFallback) {
            steps.push(Step::ByteFallback);
        }
        Ok(Self { steps })
    }

    /// The bytes of a token; `None` if there are more than [`MAX_TOKEN_BYTES`].
    pub(super) fn bytes(&self, text: &str) -> Option<Vec<u8>> {
        let mut text = Cow::Borrowed(text);
        for step in &self.steps {
            match step {
                Step::Replace { from, to } => {
                    if let Some(replaced) = replace_bounded(&text, from, to)? {
                        text = Cow::Owned(replaced);
                    }
                }
                Step::ByteFallback => {
                    if let Some(byte) = fallback_byte(text.as_bytes()) {
                        return Some(vec![byte]);
                    }
                }
                Step::ByteLevel => {
                    let bytes: Option<Vec<u8>> = text.chars().map(alphabet_byte).collect();
                    return Some(bytes.unwrap_or_else(|| text.as_bytes().to_vec()));
                }
            }
        }
        (text.len() <= MAX_TOKEN_BYTES).then(|| text.into_owned().into_bytes())
    }
}

fn unsupported(decoder: &str) -> crate::Error {
    bad(format!("the decoder {} has no bytes for a single token", quote(decoder)))
        .help("use a model with a byte-level or SentencePiece tokenizer")
}

fn no_decoder() -> crate::Error {
    bad("the file does not say how tokens are decoded")
        .help("use the complete tokenizer.json of the model, with its `decoder`")
}

fn metaspace(part: &Value) -> Step {
    // Older files call it `str_rep`.
    let mark = part.get("replacement").or_else(|| part.get("str_rep")).and_then(Value::as_str);
    let from = mark.filter(|mark| !mark.is_empty()).unwrap_or("\u{2581}").to_owned();
    Step::Replace { from, to: " ".to_owned() }
}

fn replace(part: &Value) -> Result<Step> {
    let from = part.get("pattern").and_then(|p| p.get("String")).and_then(Value::as_str);
    let to = part.get("content").and_then(Value::as_str);
    match (from, to) {
        (Some(from), Some(to)) if !from.is_empty() => {
            Ok(Step::Replace { from: from.to_owned(), to: to.to_owned() })
        }
        _ => Err(unsupported("Replace by a regular expression")),
    }
}

/// `text` with `from` replaced; inner `None` if it does not occur, outer `None` if it gets too long.
#[allow(clippy::option_option, reason = "the question mark needs the outer one")]
fn replace_bounded(text: &str, from: &str, to: &str) -> Option<Option<String>> {
    let count = text.matches(from).count();
    if count == 0 {
        return Some(None);
    }
    let grown = count.checked_mul(to.len())?;
    (grown <= 4 * MAX_TOKEN_BYTES).then(|| Some(text.replace(from, to)))
}

/// The byte of `<0xHH>` with upper-case digits.
pub(super) fn fallback_byte(text: &[u8]) -> Option<u8> {
    let [b'<', b'0', b'x', high, low, b'>'] = text else { return None };
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    };
    Some(digit(*high)? << 4 | digit(*low)?)
}

/// The byte for a character of the alphabet of byte-level tokenizers: printable characters of
/// Latin-1 stand for themselves, the other bytes in turn for the characters from U+0100 on.
fn alphabet_byte(c: char) -> Option<u8> {
    match u32::from(c) {
        code @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => u8::try_from(code).ok(),
        code @ 0x100..=0x120 => u8::try_from(code - 0x100).ok(),
        code @ 0x121..=0x142 => u8::try_from(code - 0x121 + 0x7f).ok(),
        0x143 => Some(0xad),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spelling(decoder: &Value) -> Spelling {
        Spelling::from_decoder(decoder, false).unwrap()
    }

    fn llama_2() -> Value {
        json!({"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})
    }

    #[test]
    fn the_alphabet_is_a_bijection_in_the_published_order() {
        // The published construction: printable bytes first, the others counted up from 256.
        let printable = |b: u32| matches!(b, 33..=126 | 161..=172 | 174..=255);
        let mut next = 256;
        for byte in 0..=255 {
            let code = if printable(byte) { byte } else { next };
            next += u32::from(!printable(byte));
            assert_eq!(char::from_u32(code).and_then(alphabet_byte).map(u32::from), Some(byte));
        }
        let mapped = (0..0x11_0000).filter_map(char::from_u32).filter_map(alphabet_byte).count();
        assert_eq!(mapped, 256);
    }

    #[test]
    fn byte_level() {
        let spelling = spelling(&json!({"type": "ByteLevel", "trim_offsets": true}));
        assert_eq!(spelling.bytes("Ġé").unwrap(), [0x20, 0xe9]);
        assert_eq!(spelling.bytes("ĊĠ").unwrap(), b"\n ");
        // Half a UTF-8 sequence; not in the alphabet; a mark of the other kind.
        assert_eq!(spelling.bytes("ðŁĺ").unwrap(), [0xf0, 0x9f, 0x98]);
        assert_eq!(spelling.bytes("日本").unwrap(), "日本".as_bytes());
        assert_eq!(spelling.bytes("▁a").unwrap(), "▁a".as_bytes());
        assert_eq!(spelling.bytes("<0x0A>").unwrap(), b"<0x0A>");
    }

    #[test]
    fn byte_fallback_and_metaspace() {
        let spelling = spelling(&llama_2());
        assert_eq!(spelling.bytes("▁▁a").unwrap(), b"  a");
        assert_eq!(spelling.bytes("<0x0A>").unwrap(), b"\n");
        assert_eq!(spelling.bytes("<0xFF>").unwrap(), [0xff]);
        for plain in ["<0x0a>", "<0x-1>", "<0x+1>", "<0xGG>", "<0x1>", "<0x111>", "0x11>", "Ġa"] {
            assert_eq!(spelling.bytes(plain).unwrap(), plain.as_bytes());
        }
    }

    #[test]
    fn byte_fallback_of_the_model_counts() {
        let metaspace =
            json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"});
        let with = Spelling::from_decoder(&metaspace, true).unwrap();
        assert_eq!(with.bytes("<0x20>").unwrap(), b" ");
        assert_eq!(with.bytes("▁").unwrap(), b" ");
        assert_eq!(spelling(&metaspace).bytes("<0x20>").unwrap(), b"<0x20>");
        assert_eq!(spelling(&json!({"type": "Metaspace"})).bytes("▁").unwrap(), b" ");
    }

    #[test]
    fn refused_decoders() {
        for decoder in [
            json!({"type": "WordPiece", "prefix": "##"}),
            json!({"type": "BPEDecoder", "suffix": "</w>"}),
            json!({"type": "CTC"}),
            json!({"type": "Replace", "pattern": {"Regex": "a"}, "content": ""}),
            json!({"type": "Replace", "pattern": {"String": ""}, "content": "a"}),
            // Before the texts are fused, this would strip each token.
            json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}),
            json!({"type": "Sequence"}),
            json!({"type": 7}),
            json!("ByteLevel"),
            Value::Null,
        ] {
            let error = Spelling::from_decoder(&decoder, false).unwrap_err();
            assert_eq!(error.kind(), &crate::Kind::BadVocabulary, "{decoder}");
        }
    }

    #[test]
    fn sequences_may_nest() {
        let mut decoder = llama_2();
        for _ in 0..60 {
            decoder = json!({"type": "Sequence", "decoders": [decoder]});
        }
        assert_eq!(spelling(&decoder), spelling(&llama_2()));
    }

    #[test]
    fn growing_replacements_are_bounded() {
        let grow = |from: &str, to: String| json!({"type": "Replace", "pattern": {"String": from}, "content": to});
        let steps: Vec<Value> = (0..64).map(|_| grow("a", "a".repeat(200))).collect();
        let spelling = spelling(&json!({"type": "Sequence", "decoders": steps}));
        assert_eq!(spelling.bytes("a"), None);
        assert_eq!(spelling.bytes("b").unwrap(), b"b");
    }
}
