//! Vocabularies from files, with what the files beside them say.
//!
//! A tokenizer does not know which of its tokens end a turn of a chat model; the author of the model
//! says it in `generation_config.json` (`eos_token_id`) and `tokenizer_config.json` (`eos_token`).
//! Where these lie beside the file, their tokens end generation too.
use super::huggingface::json_error;
use super::{TokenId, Vocabulary, bad, tiktoken};
use crate::error::{Error, Kind, Result, quote};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Most bytes of a vocabulary file; the largest known ones have 34 MiB.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// What is read of `tokenizer_config.json`.
#[derive(Default, Deserialize)]
struct TokenizerConfig {
    #[serde(default)]
    eos_token: Option<Named>,
    #[serde(default)]
    added_tokens_decoder: BTreeMap<TokenId, Added>,
}

/// A token by its text alone or with attributes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Named {
    Text(String),
    Object { content: String },
}

#[derive(Deserialize)]
struct Added {
    content: String,
    #[serde(default)]
    special: bool,
}

/// What is read of `generation_config.json`.
#[derive(Default, Deserialize)]
struct GenerationConfig {
    #[serde(default)]
    eos_token_id: Option<OneOrMore>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(TokenId),
    More(Vec<TokenId>),
}

impl Vocabulary {
    /// Reads a `tokenizer.json` or a tiktoken rank file, whichever it is, or the `tokenizer.json` of
    /// a folder.
    ///
    /// `generation_config.json` and `tokenizer_config.json` in the same folder add end tokens, and
    /// the latter the special tokens of a rank file.
    ///
    /// # Errors
    /// [`Kind::Io`] if a file cannot be read, [`Kind::BadVocabulary`] if it cannot be used.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let joined = path.join("tokenizer.json");
        let path = if path.is_dir() { &joined } else { path };
        let bytes = read(path)?;
        let config: TokenizerConfig = beside(path, "tokenizer_config.json")?;
        let generation: GenerationConfig = beside(path, "generation_config.json")?;
        let end_ids = match generation.eos_token_id {
            Some(OneOrMore::One(id)) => vec![id],
            Some(OneOrMore::More(ids)) => ids,
            None => Vec::new(),
        };
        let end_names: Vec<String> = match config.eos_token {
            Some(Named::Text(name) | Named::Object { content: name }) => vec![name],
            None => Vec::new(),
        };
        if tiktoken::is_ranks(&bytes) {
            let added = config.added_tokens_decoder.iter().filter(|(_, added)| added.special);
            let specials: Vec<_> = added.map(|(&id, added)| (&*added.content, id)).collect();
            return tiktoken::load(&bytes, &specials, &end_ids, &end_names);
        }
        Self::from_tokenizer_json_with(&bytes, &end_ids, &end_names)
    }
}

/// Reads a regular file of bounded size.
fn read(path: &Path) -> Result<Vec<u8>> {
    let failed = |error: std::io::Error| {
        Error::new(Kind::Io, format!("cannot read {}: {error}", quote(&path.to_string_lossy())))
            .help("give the path of a tokenizer.json or a tiktoken rank file")
    };
    // Before opening: a FIFO without a writer would block.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(failed(std::io::Error::other("not a regular file")));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let shown = quote(&path.to_string_lossy());
        return Err(bad(format!("{shown} has more than {MAX_FILE_BYTES} bytes"))
            .help("check that the file is a tokenizer"));
    }
    Ok(bytes)
}

/// The JSON file of this name in the same folder, or the default if there is none.
fn beside<T: DeserializeOwned + Default>(path: &Path, name: &str) -> Result<T> {
    let path = path.with_file_name(name);
    if !path.is_file() {
        return Ok(T::default());
    }
    serde_json::from_slice(&read(&path)?).map_err(|error| {
        let error = json_error(&error);
        let shown = quote(&path.to_string_lossy());
        bad(format!("{shown}: {}", error.message())).help("repair that file, or move it away")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const TOKENIZER: &str = r#"{
        "added_tokens": [{"id": 1, "content": "</s>", "special": true}],
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {"a": 0, "stop": 2, "x": 3}, "merges": []}}"#;

    /// A folder that is removed at the end of a test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let process = std::process::id();
            let path = std::env::temp_dir().join(format!("constrain-vocab-{process}-{name}"));
            std::fs::create_dir_all(&path).unwrap();
            for (name, text) in files {
                std::fs::write(path.join(name), text).unwrap();
            }
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_and_a_folder() {
        let folder = Folder::new("plain", &[("tokenizer.json", TOKENIZER)]);
        let by_file = Vocabulary::from_file(folder.0.join("tokenizer.json")).unwrap();
        let by_folder = Vocabulary::from_file(&folder.0).unwrap();
        assert_eq!(by_file.end_tokens(), [1]);
        assert_eq!(by_file.hash(), by_folder.hash());
    }

    #[test]
    fn files_beside_name_the_end() {
        let files = |config, generation| {
            [
                ("tokenizer.json", TOKENIZER),
                ("tokenizer_config.json", config),
                ("generation_config.json", generation),
            ]
        };
        let ends = |name, config, generation| {
            let folder = Folder::new(name, &files(config, generation));
            Vocabulary::from_file(&folder.0).map(|v| v.end_tokens().to_vec())
        };
        assert_eq!(
            ends("b1", r#"{"eos_token": "stop"}"#, r#"{"eos_token_id": 3}"#),
            Ok(vec![1, 2, 3])
        );
        let object = r#"{"eos_token": {"content": "x", "special": true}}"#;
        assert_eq!(ends("b2", object, r#"{"eos_token_id": [2, 3]}"#), Ok(vec![1, 2, 3]));
        let null = r#"{"eos_token": null}"#;
        assert_eq!(ends("b3", null, r#"{"eos_token_id": null}"#), Ok(vec![1]));
        // The end id has no token; the name has none; the file is damaged.
        for (name, config, generation) in [
            ("b4", "{}", r#"{"eos_token_id": 4}"#),
            ("b5", r#"{"eos_token": "y"}"#, "{}"),
            ("b6", "{", "{}"),
        ] {
            let error = ends(name, config, generation).unwrap_err();
            assert_eq!(error.kind(), &Kind::BadVocabulary, "{name}: {error}");
        }
    }

    #[test]
    fn a_rank_file_takes_its_special_tokens_from_beside() {
        let config = r#"{"added_tokens_decoder": {
            "1": {"content": "<|endoftext|>", "special": true},
            "2": {"content": "<|user|>", "special": true}}}"#;
        let files = [("x.tiktoken", "YQ== 0"), ("tokenizer_config.json", config)];
        let folder = Folder::new("ranks", &files);
        let vocabulary = Vocabulary::from_file(folder.0.join("x.tiktoken")).unwrap();
        assert_eq!(vocabulary.bytes(0), Some(&b"a"[..]));
        assert_eq!(vocabulary.special("<|user|>"), Some(2));
        assert_eq!(vocabulary.end_tokens(), [1]);
    }

    #[test]
    fn what_is_no_file() {
        let folder = Folder::new("none", &[("empty.json", "")]);
        let kind = |name: &str| {
            let error = Vocabulary::from_file(folder.0.join(name)).unwrap_err();
            assert!(error.remedy().is_some());
            error.kind().clone()
        };
        assert_eq!(kind("missing.json"), Kind::Io);
        // A folder without a tokenizer.json.
        assert_eq!(kind(""), Kind::Io);
        assert_eq!(kind("empty.json"), Kind::BadVocabulary);
        #[cfg(unix)]
        assert_eq!(Vocabulary::from_file("/dev/null").unwrap_err().kind(), &Kind::Io);
    }
}
