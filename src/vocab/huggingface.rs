//! The vocabulary of a Hugging Face `tokenizer.json`.
//!
//! The constraint needs to know which bytes each id stands for, and nothing else of a tokenizer: so
//! this loader reads `model.vocab`, `decoder` and `added_tokens`, and skips the rest unread. That is
//! why it does not use a tokenizer library: normalizers, pre-tokenizers (which hold regular
//! expressions) and the table of merges cost most of the loading time, and in a hostile file they
//! are what can nest, cycle or explode.
//!
//! # By hand
//!
//! ```
//! let file = r#"{
//!     "added_tokens": [{"id": 3, "content": "<|im_end|>", "special": true}],
//!     "decoder": {"type": "ByteLevel"},
//!     "model": {"type": "BPE", "vocab": {"a": 0, "Ġ": 1, "Ġa": 2}, "merges": ["Ġ a"]}
//! }"#;
//! let vocabulary = constrain::Vocabulary::from_tokenizer_json(file.as_bytes())?;
//! assert_eq!(vocabulary.bytes(2), Some(&b" a"[..]));
//! assert_eq!(vocabulary.end_tokens(), [3]);
//! # Ok::<(), constrain::Error>(())
//! ```
//!
//! # Which tokens are what
//!
//! * Added tokens are special if they say so, else text, as their file says: `<think>` is text.
//! * The unknown token is special: it stands for what cannot be spelled.
//! * Special tokens with well-known names end generation; the files beside it, or the caller, name
//!   others (see [`Vocabulary::from_file`]).
//! * WordPiece, word-level models and pieces with a continuation prefix or a word suffix have no
//!   bytes for a single token; they are refused.
use super::spelling::Spelling;
use super::table::TokenTable;
use super::{TokenId, Vocabulary, bad};
use crate::error::{Error, Result, quote};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// What is read of the file.
#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    model: Model<'a>,
    #[serde(default)]
    decoder: serde_json::Value,
    #[serde(default, borrow)]
    added_tokens: Vec<AddedToken<'a>>,
}

#[derive(Deserialize)]
struct Model<'a> {
    #[serde(default, borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    vocab: Pieces<'a>,
    #[serde(default)]
    merges: Option<IgnoredAny>,
    #[serde(default)]
    byte_fallback: Option<bool>,
    #[serde(default, borrow)]
    unk_token: Option<Cow<'a, str>>,
    #[serde(default)]
    unk_id: Option<TokenId>,
    #[serde(default, borrow)]
    continuing_subword_prefix: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    end_of_word_suffix: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct AddedToken<'a> {
    id: TokenId,
    #[serde(borrow)]
    content: Cow<'a, str>,
    #[serde(default)]
    special: bool,
}

/// The tokens of a model: a map from text to id (BPE), or a list of texts with scores (Unigram).
enum Pieces<'a> {
    Map(Vec<(Text<'a>, TokenId)>),
    List(Vec<(Text<'a>, IgnoredAny)>),
}

/// A text, borrowed from the file where it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Pieces<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PiecesVisitor)
    }
}

struct PiecesVisitor;

impl<'de> Visitor<'de> for PiecesVisitor {
    type Value = Pieces<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map from tokens to ids, or a list of tokens with scores")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pieces = Vec::new();
        while let Some(piece) = map.next_entry()? {
            pieces.push(piece);
        }
        Ok(Pieces::Map(pieces))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut pieces = Vec::new();
        while let Some(piece) = seq.next_element()? {
            pieces.push(piece);
        }
        Ok(Pieces::List(pieces))
    }
}

impl Vocabulary {
    /// Reads the text of a `tokenizer.json`.
    ///
    /// # Errors
    /// [`crate::Kind::BadVocabulary`] if it is no such file, has no known end token, or is of a kind
    /// without bytes for a single token (WordPiece, word level).
    pub fn from_tokenizer_json(json: &[u8]) -> Result<Self> {
        Self::from_tokenizer_json_with(json, &[], &[])
    }

    /// The same with further end tokens, by id and by the text that the file has for them.
    ///
    /// # Errors
    /// As [`Vocabulary::from_tokenizer_json`], or if one of the end tokens does not exist.
    pub fn from_tokenizer_json_with(
        json: &[u8],
        end_ids: &[TokenId],
        end_names: &[String],
    ) -> Result<Self> {
        let file: File<'_> = serde_json::from_slice(json).map_err(|e| json_error(&e))?;
        check_model(&file.model)?;
        let spelling =
            Spelling::from_decoder(&file.decoder, file.model.byte_fallback == Some(true))?;
        let mut table = TokenTable::default();
        for (id, text) in file.model.vocab.iter() {
            table.text(id, text, spelling.bytes(text))?;
        }
        check_ids(&table)?;
        for (id, text) in unknown_tokens(&file.model) {
            table.special(id, text);
        }
        for added in &file.added_tokens {
            if added.special {
                table.special(added.id, &added.content);
            } else {
                table.text(added.id, &added.content, spelling.bytes(&added.content))?;
            }
        }
        table.build(end_ids, end_names)
    }
}

impl Pieces<'_> {
    fn iter(&self) -> impl Iterator<Item = (TokenId, &str)> {
        let (map, list) = match self {
            Self::Map(map) => (&map[..], &[][..]),
            Self::List(list) => (&[][..], &list[..]),
        };
        let map = map.iter().map(|(text, id)| (*id, &*text.0));
        map.chain((0..).zip(list).map(|(id, (text, _))| (id, &*text.0)))
    }
}

fn check_model(model: &Model<'_>) -> Result<()> {
    let kind = match (model.kind.as_deref(), &model.vocab) {
        (Some(kind), _) => kind,
        // Old files do not name the model.
        (None, Pieces::List(_)) => "Unigram",
        (None, Pieces::Map(_)) if model.merges.is_some() => "BPE",
        (None, Pieces::Map(_)) => "WordPiece",
    };
    let affix = |affix: &Option<Cow<'_, str>>| affix.as_ref().is_some_and(|a| !a.is_empty());
    let whole_words = affix(&model.continuing_subword_prefix) || affix(&model.end_of_word_suffix);
    match (kind, &model.vocab) {
        ("BPE", Pieces::Map(_)) if !whole_words => Ok(()),
        ("Unigram", Pieces::List(_)) => Ok(()),
        _ => Err(bad(format!("a model of the kind {} has no bytes for a token", quote(kind)))
            .help("use a model with a byte-level BPE or SentencePiece tokenizer")),
    }
}

/// Two tokens of the model with one id: one of them would be lost.
fn check_ids(table: &TokenTable<'_>) -> Result<()> {
    let mut ids: Vec<TokenId> = table.names().map(|(_, id)| id).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(bad(format!("two tokens have the id {}", pair[0]))
            .help("the file is damaged: fetch it again")),
        None => Ok(()),
    }
}

/// The unknown token of the model, if it is one of its tokens.
fn unknown_tokens<'a>(model: &'a Model<'_>) -> impl Iterator<Item = (TokenId, &'a str)> {
    let is_unknown = move |&(id, text): &(TokenId, &str)| {
        model.unk_id == Some(id) || model.unk_token.as_deref() == Some(text)
    };
    model.vocab.iter().filter(is_unknown)
}

/// An error of the JSON parser; its message may quote the file at any length.
pub(super) fn json_error(error: &serde_json::Error) -> Error {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(&*text, |(message, _)| message);
    let cut: String = text.chars().take(120).flat_map(char::escape_debug).collect();
    let line = u32::try_from(error.line()).unwrap_or(u32::MAX);
    let column = u32::try_from(error.column()).unwrap_or(u32::MAX);
    bad(format!("not a tokenizer file: {cut}"))
        .at_line(line, column)
        .help("use the tokenizer.json of the model")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::vocab::Token;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn load(file: &Value) -> Result<Vocabulary> {
        Vocabulary::from_tokenizer_json(file.to_string().as_bytes())
    }

    fn refusal(json: &[u8]) -> String {
        let error = Vocabulary::from_tokenizer_json(json).unwrap_err();
        assert_eq!(error.kind(), &Kind::BadVocabulary);
        let shown = error.to_string();
        assert!(error.remedy().is_some() && shown.len() <= 1024, "{shown}");
        shown
    }

    fn byte_level() -> Value {
        json!({
            "added_tokens": [
                {"id": 4, "content": "<|im_end|>", "special": true},
                {"id": 5, "content": "<think>", "special": false},
                {"id": 7, "content": "two words", "special": false}
            ],
            "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": {"a": 0, "Ġa": 1, "\"},{\"": 2, "ðŁ": 3}, "merges": []}
        })
    }

    /// SentencePiece as BPE: byte fallback, an unknown token, added tokens that are also pieces.
    fn sentence_piece() -> Value {
        json!({
            "added_tokens": [
                {"id": 1, "content": "</s>", "special": true},
                {"id": 3, "content": "▁▁", "special": false}
            ],
            "decoder": {"type": "Sequence", "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"}, {"type": "Fuse"}]},
            "model": {
                "type": "BPE", "byte_fallback": true, "unk_token": "<unk>", "merges": [],
                "continuing_subword_prefix": "", "end_of_word_suffix": null,
                "vocab": {"<unk>": 0, "</s>": 1, "<0x0A>": 2, "▁▁": 3, "▁a": 4, "": 5, "<0xGG>": 6}
            }
        })
    }

    #[test]
    fn a_byte_level_tokenizer() {
        let vocabulary = load(&byte_level()).unwrap();
        assert_eq!(vocabulary.len(), 8);
        let bytes: Vec<_> = vocabulary.text_tokens().collect();
        let expected: [(TokenId, &[u8]); 6] = [
            (0, b"a"),
            (1, b" a"),
            (2, b"\"},{\""),
            (3, b"\xf0\x9f"),
            (5, b"<think>"),
            (7, b"two words"),
        ];
        assert_eq!(bytes, expected);
        assert_eq!(vocabulary.token(6), Some(&Token::Unused));
        assert_eq!(vocabulary.end_tokens(), [4]);
        assert_eq!(vocabulary.special("<think>"), None);
    }

    #[test]
    fn a_sentence_piece_tokenizer() {
        let vocabulary = load(&sentence_piece()).unwrap();
        let bytes: Vec<_> = vocabulary.text_tokens().collect();
        let expected: [(TokenId, &[u8]); 4] = [(2, b"\n"), (3, b"  "), (4, b" a"), (6, b"<0xGG>")];
        assert_eq!(bytes, expected);
        assert_eq!(vocabulary.special("<unk>"), Some(0));
        assert_eq!(vocabulary.token(5), Some(&Token::Unused));
    }

    #[test]
    fn a_unigram_tokenizer() {
        let mut file = sentence_piece();
        file["model"] = json!({
            "unk_id": 0, "byte_fallback": true,
            "vocab": [["<unk>", 0.0], ["</s>", 0], ["<0x0A>", -1e9], ["▁▁", null], ["▁a", "?"]]
        });
        let vocabulary = load(&file).unwrap();
        let bytes: Vec<_> = vocabulary.text_tokens().collect();
        assert_eq!(bytes, [(2, &b"\n"[..]), (3, b"  "), (4, b" a")]);
        assert!(vocabulary.is_special(0));
    }

    #[test]
    fn further_ends() {
        let json = byte_level().to_string();
        let load = |ids: &[TokenId], names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            let loaded = Vocabulary::from_tokenizer_json_with(json.as_bytes(), ids, &names);
            loaded.map(|v| v.end_tokens().to_vec())
        };
        assert_eq!(load(&[0], &["<think>", "Ġa"]), Ok(vec![0, 1, 4, 5]));
        assert_eq!(load(&[6], &[]).unwrap_err().kind(), &Kind::BadVocabulary);
        assert_eq!(load(&[], &["<x>"]).unwrap_err().kind(), &Kind::BadVocabulary);
    }

    #[test]
    fn models_without_bytes_are_refused() {
        let with = |key: &str, value: Value| {
            let mut file = byte_level();
            file["model"][key] = value;
            refusal(file.to_string().as_bytes())
        };
        assert!(with("type", json!("WordPiece")).contains("\"WordPiece\""));
        assert!(with("type", json!("WordLevel")).contains("\"WordLevel\""));
        assert!(with("type", json!("Unigram")).contains("\"Unigram\""));
        assert!(with("vocab", json!([])).contains("\"BPE\""));
        assert!(with("continuing_subword_prefix", json!("##")).contains("\"BPE\""));
        assert!(with("end_of_word_suffix", json!("</w>")).contains("\"BPE\""));
        let mut file = byte_level();
        file["model"] = json!({"vocab": {"a": 0}});
        assert!(refusal(file.to_string().as_bytes()).contains("\"WordPiece\""));
        file["model"] = json!({"vocab": {"a": 0}, "merges": ["x"]});
        assert!(load(&file).is_ok());
    }

    #[test]
    fn damaged_files_are_refused() {
        assert!(refusal(b"").contains("line 1"));
        assert!(refusal(b"[]").contains("not a tokenizer file"));
        assert!(refusal(b"{\"model\": {\"vocab\": {\"a\": NaN}}}").contains("line 1, column 2"));
        assert!(refusal(b"{\"model\": {\"vocab\": {\"\xff\": 1}}}").contains("line 1"));
        let vocab = |vocab: Value| {
            let mut file = byte_level();
            file["model"]["vocab"] = vocab;
            refusal(file.to_string().as_bytes())
        };
        vocab(json!({"a": -1}));
        vocab(json!({"a": 4_294_967_296_u64}));
        vocab(json!({"a": "b"}));
        vocab(json!("a".repeat(100_000)));
        assert!(vocab(json!({"a": 4_294_967_295_u32})).contains("ids up to 4294967295"));
        assert!(vocab(json!({"a": 9, "b": 9})).contains("two tokens have the id 9"));
        assert!(vocab(json!({"a".repeat(70_000): 0})).contains("token 0 is longer"));
        let mut file = byte_level();
        file["added_tokens"] = json!([{"id": 4, "content": "<x>", "special": true}]);
        assert!(refusal(file.to_string().as_bytes()).contains("no token ends generation"));
    }

    #[test]
    fn what_is_not_needed_is_not_read() {
        let mut file = byte_level();
        file["pre_tokenizer"] = json!({"type": "Split", "pattern": {"Regex": "((a+)+)+("}});
        file["model"]["merges"] = json!([["a", "a"], 7, {"cyclic": "a a"}]);
        assert!(load(&file).is_ok());
        // Nested far deeper than any parser by recursion could go.
        let deep = format!("{}{}", "[".repeat(1 << 20), "]".repeat(1 << 20));
        let json = file.to_string().replacen('{', &format!("{{\"normalizer\": {deep}, "), 1);
        let small_stack = std::thread::Builder::new().stack_size(512 << 10);
        let loaded =
            small_stack.spawn(move || Vocabulary::from_tokenizer_json(json.as_bytes()).map(drop));
        assert_eq!(loaded.unwrap().join().unwrap(), Ok(()));
    }

    #[test]
    fn a_deep_decoder_is_refused() {
        let decoder = format!(
            "{}null{}",
            r#"{"type": "Sequence", "decoders": ["#.repeat(9999),
            "]}".repeat(9999)
        );
        let json = byte_level().to_string().replace(r#"{"type":"ByteLevel"}"#, &decoder);
        let small_stack = std::thread::Builder::new().stack_size(512 << 10);
        let shown = small_stack.spawn(move || refusal(json.as_bytes())).unwrap().join().unwrap();
        assert!(shown.contains("recursion limit"), "{shown}");
    }

    #[test]
    fn long_texts_are_not_expanded_without_bound() {
        let mut file = sentence_piece();
        file["decoder"]["decoders"][0]["content"] = json!("x".repeat(60_000));
        let vocab: serde_json::Map<String, Value> =
            (0..1000).map(|id| (format!("▁{id}"), json!(id))).collect();
        file["model"]["vocab"] = vocab.into();
        assert!(refusal(file.to_string().as_bytes()).contains("more than 33554432 bytes"));
    }

    proptest! {
        /// Any damage to a good file gives a vocabulary or an error, never a panic.
        #[test]
        fn damage_never_panics(
            at in any::<prop::sample::Index>(), byte in any::<u8>(), keep in any::<prop::sample::Index>(),
        ) {
            for file in [byte_level(), sentence_piece()] {
                let mut json = file.to_string().into_bytes();
                let at = at.index(json.len());
                json[at] = byte;
                let _ = Vocabulary::from_tokenizer_json(&json);
                json.truncate(keep.index(json.len()));
                let _ = Vocabulary::from_tokenizer_json(&json);
            }
        }
    }
}
