//! Cuts texts into tokens, the same for every engine, and knows the bytes of tokens.
use anyhow::{Result, anyhow, ensure};
use llguidance::toktrie::{TokEnv, TokenId};
use toktrie_hf_tokenizers::ByteTokenizer;

/// The tokenizer of a model.
pub struct Tokens {
    /// What the peers take.
    pub env: TokEnv,
}

impl Tokens {
    /// Loads the text of a tokenizer.json.
    pub fn new(tokenizer_json: &[u8]) -> Result<Self> {
        let tokenizer = ByteTokenizer::from_json_bytes(tokenizer_json)?;
        Ok(Self { env: tokenizer.into_tok_env(None)? })
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.env.tok_trie().vocab_size()
    }

    /// The bytes of a token; none if it is special.
    pub fn bytes(&self, token: TokenId) -> &[u8] {
        let trie = self.env.tok_trie();
        if trie.is_special_token(token) { &[] } else { trie.token(token) }
    }

    /// Tokens of a text, as a model would see them. Where the tokenizer changes the text (Unicode
    /// normalisation) or reads special tokens in it: the longest token each time.
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>> {
        let tokens = self.env.tokenize_bytes(text.as_bytes());
        if self.spell(&tokens) == text.as_bytes() {
            return Ok(tokens);
        }
        let tokens = self.env.tok_trie().greedy_tokenize(text.as_bytes());
        ensure!(self.spell(&tokens) == text.as_bytes(), "the tokenizer cannot spell the text");
        Ok(tokens)
    }

    fn spell(&self, tokens: &[TokenId]) -> Vec<u8> {
        tokens.iter().flat_map(|&token| self.bytes(token)).copied().collect()
    }

    /// Compares the bytes of all text tokens with those that the library reads from the same file.
    pub fn check(&self, vocabulary: &constrain::Vocabulary) -> Result<()> {
        for (id, bytes) in vocabulary.text_tokens() {
            let theirs = self.bytes(id);
            // The peer counts some more tokens as special: those have no bytes there.
            if !theirs.is_empty() && theirs != bytes {
                return Err(anyhow!("token {id} is {theirs:?} for one library, {bytes:?} for us"));
            }
        }
        Ok(())
    }
}
