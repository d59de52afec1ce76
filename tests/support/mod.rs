//! What the integration tests share: vocabularies, splitting text into tokens, small random numbers.

#![allow(dead_code)]

use constrain::TokenId;
use constrain::vocab::{Token, Vocabulary};
use std::path::{Path, PathBuf};

/// Tokens of two and more bytes that cross the borders of JSON and of grammars in many ways.
const PIECES: &[&str] = &[
    "ab", "abc", "\"a", "a\"", "\":", "\",\"", "\"}", "\"]", "[\"", "{\"", "\":\"", "\": \"", ", ",
    "},{", "]]", "[[", "12", "123", "00", "1,", "1]", "1}", "1.5", "e5", "e-", "-1", "0.", ".0",
    "\\u", "\\u0", "\\u00", "\\n", "\\\"", "\\ud8", "é", "é\"", "😀", "  ", "\n\n", "\n ", " \"",
    "true", "tru", "false,", "null}", "null", "[]", "{}", "[ ", "a\":", "b\":1", "\":1", "\":tr",
    "<t", "ol>", "..", "1.", "se", "le", "EN", "ND", "END", "yes", "no", ", p", "aa", "aaa", "((",
    "1+", "+2", "ed", "list", "2023-", "-02", "-2", "T", "::", "@b.",
];

/// Single bytes, the pieces, and one end token.
pub fn synthetic() -> Vocabulary {
    let mut tokens: Vec<Token> = (0..=255u8).map(|byte| Token::Text([byte].into())).collect();
    tokens.extend(PIECES.iter().map(|piece| Token::Text(piece.as_bytes().into())));
    with_end(tokens)
}

/// Single bytes, the pieces, some 40,000 words with and without what stands around words in JSON and in text, and one
/// end token: as many as it takes for masks to be made in the ways that are for large vocabularies.
pub fn large() -> Vocabulary {
    let mut random = Random(11);
    let mut words: std::collections::BTreeSet<String> =
        PIECES.iter().map(|piece| (*piece).to_owned()).collect();
    let (before, after) =
        ([" ", "\"", "_", " \"", "\n"], ["\"", "\",", "\":", "s", ".", ", ", "-1", ">"]);
    while words.len() < 40_000 {
        let letters = 1 + random.below(3) + random.below(4);
        let letter =
            |random: &mut Random| char::from(b"etaoinsrhldcumfpgwybvkxjqz"[random.below(26)]);
        let mut word: String = (0..letters).map(|_| letter(&mut random)).collect();
        match random.below(10) {
            0 => word = word.to_uppercase(),
            1 => word = random.below(100_000).to_string(),
            2 => word.insert(random.below(letters), '\u{e9}'),
            _ => {}
        }
        if random.below(2) == 0 {
            word.insert_str(0, before[random.below(before.len())]);
        }
        if random.below(4) == 0 {
            word.push_str(after[random.below(after.len())]);
        }
        words.insert(word);
    }
    let bytes = (0..=255u8).map(|byte| Token::Text([byte].into()));
    with_end(
        bytes.chain(words.into_iter().map(|word| Token::Text(word.into_bytes().into()))).collect(),
    )
}

/// Single bytes and one end token.
pub fn bytes() -> Vocabulary {
    with_end((0..=255u8).map(|byte| Token::Text([byte].into())).collect())
}

fn with_end(mut tokens: Vec<Token>) -> Vocabulary {
    tokens.push(Token::Special("<end>".into()));
    let end = tokens.len() as TokenId - 1;
    Vocabulary::new(tokens, vec![end]).unwrap()
}

/// The vocabularies of the folder `CONSTRAIN_TOKENIZERS`: each `tokenizer.json` below it, by its path.
pub fn real() -> Vec<(String, Vocabulary)> {
    let Some(folder) = std::env::var_os("CONSTRAIN_TOKENIZERS") else {
        eprintln!("skipped: CONSTRAIN_TOKENIZERS names no folder with tokenizer.json files");
        return Vec::new();
    };
    let mut found = Vec::new();
    collect(Path::new(&folder), &mut found);
    found.sort();
    assert!(!found.is_empty(), "no tokenizer.json below {folder:?}");
    let load = |path: PathBuf| (path.display().to_string(), Vocabulary::from_file(&path).unwrap());
    found.into_iter().map(load).collect()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.ends_with("tokenizer.json") {
            found.push(path);
        }
    }
}

/// A file of the shared test data: `CONSTRAIN_SHARED`, or `shared` beside the checkout.
pub fn shared(file: &str) -> Option<String> {
    let folder = match std::env::var_os("CONSTRAIN_SHARED") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
    };
    if !folder.is_dir() {
        eprintln!("skipped: no shared test data (CONSTRAIN_SHARED)");
        return None;
    }
    let path = folder.join(file);
    Some(
        std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display())),
    )
}

/// The grammars that come with llama.cpp's Rust crate, by name, where its sources are on this machine.
pub fn llama_grammars() -> Option<Vec<(String, String)>> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let entries = |path: PathBuf| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let is_crate = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("llama-cpp-2-"))
    };
    let sources = entries(home.join("registry/src")).into_iter().flat_map(entries);
    let Some(folder) = sources.filter(is_crate).max() else {
        eprintln!("skipped: the sources of llama-cpp-2 are not on this machine");
        return None;
    };
    let mut files = entries(folder.join("src/grammar"));
    files.retain(|path| path.extension().is_some_and(|extension| extension == "gbnf"));
    files.sort();
    let read = |path: PathBuf| {
        let name = path.file_stem()?.to_string_lossy().into_owned();
        Some((name, std::fs::read_to_string(path).unwrap()))
    };
    Some(files.into_iter().filter_map(read).collect())
}

/// Splits a text into tokens, the longest first.
pub struct Tokenizer {
    /// Bytes and id, sorted by bytes.
    sorted: Vec<(Vec<u8>, TokenId)>,
    longest: usize,
}

impl Tokenizer {
    pub fn new(vocabulary: &Vocabulary) -> Self {
        let mut sorted: Vec<(Vec<u8>, TokenId)> =
            vocabulary.text_tokens().map(|(id, bytes)| (bytes.to_vec(), id)).collect();
        sorted.sort();
        let longest = sorted.iter().map(|(bytes, _)| bytes.len()).max().unwrap_or(0);
        Self { sorted, longest }
    }

    pub fn split(&self, text: &[u8]) -> Vec<TokenId> {
        let mut ids = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let (length, id) = (1..=self.longest.min(text.len() - at))
                .rev()
                .find_map(|length| {
                    let piece = &text[at..at + length];
                    let found =
                        self.sorted.binary_search_by(|(bytes, _)| bytes.as_slice().cmp(piece));
                    Some((length, self.sorted[found.ok()?].1))
                })
                .expect("every byte is a token");
            ids.push(id);
            at += length;
        }
        ids
    }
}

/// A small generator of pseudo-random numbers.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
    }
}

/// A folder for the files of one test, removed with it.
pub struct Folder(PathBuf);

impl Folder {
    /// The folder of a test.
    pub fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("constrain-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    /// Writes a file in it, and says its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, content).expect("a file");
        path.to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
