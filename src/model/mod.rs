//! Language models: what decoding needs from one, and the ones that are built in.
//!
//! A [`Model`] turns token ids into rows of logits, and holds several *sequences* at a time, each
//! a list of tokens whose intermediate results it keeps. Every strategy is made of four verbs:
//!
//! ```text
//! eval(batch)             append tokens to sequences; ask for logits at any of the positions
//! logits(i)               the row of the i-th entry of that batch
//! truncate(sequence, n)   forget all but the first n tokens (a rejected draft, a new request)
//! copy(from, to)          `to` becomes a copy of `from` (a beam splits)
//! ```
//!
//! By hand: sequence 0 holds the 5 tokens of a prompt. `eval` of [a, b] on it with logits at both
//! gives the laws of position 6 (after a) and 7 (after b); if b turns out to be wrong,
//! `truncate(0, 6)` forgets it and the next `eval` goes on after a.
//!
//! # Invariants
//! A row has exactly `vocabulary().len()` logits. Positions are implied: an entry goes to the end
//! of its sequence, so no gap can arise. After an error of `eval` the caller truncates to a length
//! that it knows.

use crate::error::{Error, Kind, Result};
use crate::vocab::{TokenId, Vocabulary};

#[cfg(feature = "llama")]
pub mod llama;
pub mod scripted;

/// Number of a sequence, `0..Model::max_sequences()`.
pub type Sequence = u32;

/// One token to evaluate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The token.
    pub token: TokenId,
    /// The sequence to whose end it is appended.
    pub sequence: Sequence,
    /// Whether the logits after it are wanted: they cost time, so only where they are read.
    pub logits: bool,
}

/// Tokens that go through the model in one pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    entries: Vec<Entry>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// `tokens` at the end of `sequence`, with logits after the last one only.
    pub fn prompt(sequence: Sequence, tokens: &[TokenId]) -> Self {
        let mut batch = Self::new();
        for (i, &token) in tokens.iter().enumerate() {
            batch.push(token, sequence, i + 1 == tokens.len());
        }
        batch
    }

    /// Appends a token and returns its index for [`Model::logits`].
    pub fn push(&mut self, token: TokenId, sequence: Sequence, logits: bool) -> usize {
        self.entries.push(Entry { token, sequence, logits });
        self.entries.len() - 1
    }

    /// Removes all entries, keeping the memory.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// The entries in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is nothing to evaluate.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Who says a [`Message`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Standing instructions.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The name that chat templates use.
    pub fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said; never read as special tokens, whatever it spells.
    pub content: String,
}

impl Message {
    /// A turn of `role`.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into() }
    }
}

/// A prompt, as text for people and as tokens for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// What the model is told, with special tokens spelled out.
    pub text: String,
    /// The same as tokens, the token that begins a sequence included.
    pub tokens: Vec<TokenId>,
}

/// A language model with its sequences.
pub trait Model {
    /// The vocabulary; its length is the width of every row of logits.
    fn vocabulary(&self) -> &Vocabulary;

    /// A name for people.
    fn name(&self) -> String;

    /// Tokens that one sequence can hold.
    fn context_len(&self) -> usize;

    /// Number of sequences.
    fn max_sequences(&self) -> usize;

    /// Most entries of a batch.
    fn max_batch(&self) -> usize {
        512
    }

    /// Tokens in a sequence; 0 for a sequence that does not exist.
    fn sequence_len(&self, sequence: Sequence) -> usize;

    /// Appends the batch to its sequences.
    ///
    /// # Errors
    /// [`Kind::BadArgument`] for ids, sequences or lengths out of range, before anything is
    /// evaluated; [`Kind::Model`] if the model fails.
    fn eval(&mut self, batch: &Batch) -> Result<()>;

    /// The logits after entry `index` of the last batch.
    ///
    /// # Errors
    /// [`Kind::BadArgument`] if that entry did not ask for logits.
    fn logits(&self, index: usize) -> Result<&[f32]>;

    /// Number of tokens after the next one that heads of the model's own can predict (multi-token
    /// prediction); 0 without such heads.
    fn heads(&self) -> usize {
        0
    }

    /// What those heads expect after `tokens`, the best first guess at each place, at most `most` of
    /// them. Sequence 0 holds all of `tokens` but the last one.
    ///
    /// # Errors
    /// [`Kind::Model`] if there are no heads or they fail.
    fn predict(&mut self, tokens: &[TokenId], most: usize) -> Result<Vec<TokenId>> {
        let _ = (tokens, most);
        Err(Error::new(Kind::Model, lacks_heads(&self.name())))
    }

    /// Forgets all but the first `len` tokens of a sequence.
    ///
    /// # Errors
    /// [`Kind::Model`] if the model cannot go back that far, as recurrent ones cannot.
    fn truncate(&mut self, sequence: Sequence, len: usize) -> Result<()>;

    /// Makes `to` a copy of `from`.
    ///
    /// # Errors
    /// [`Kind::BadArgument`] for a sequence that does not exist.
    fn copy(&mut self, from: Sequence, to: Sequence) -> Result<()>;

    /// The tokens of `text`, nothing put before them. With `special` the names of special tokens
    /// in it stand for those tokens, which is never right for text from outside.
    ///
    /// # Errors
    /// [`Kind::TooLarge`] if the text cannot fit the context, [`Kind::Model`] if it has no spelling.
    fn tokenize(&self, text: &str, special: bool) -> Result<Vec<TokenId>>;

    /// The prompt of a conversation in the model's own chat format, up to where its answer begins.
    ///
    /// # Errors
    /// As [`Model::tokenize`], and [`Kind::Model`] if the format cannot express the conversation.
    fn chat(&self, messages: &[Message]) -> Result<Prompt>;

    /// The prompt of plain text to be continued.
    ///
    /// # Errors
    /// As [`Model::tokenize`].
    fn plain(&self, text: &str) -> Result<Prompt> {
        Ok(Prompt { text: text.to_owned(), tokens: self.tokenize(text, false)? })
    }
}

/// What is said of a model without heads.
pub(crate) fn lacks_heads(name: &str) -> String {
    format!("the model {name} has no heads that predict several tokens")
}

/// Checks what every `eval` demands: known sequences, known ids, room in the context.
///
/// # Errors
/// [`Kind::BadArgument`] naming the entry, or the numbers if the context is too short.
pub fn check_batch(model: &dyn Model, batch: &Batch) -> Result<()> {
    let bad = |message: String| Error::new(Kind::BadArgument, message);
    let (width, sequences) = (model.vocabulary().len(), model.max_sequences());
    if batch.len() > model.max_batch() {
        let (len, most) = (batch.len(), model.max_batch());
        return Err(bad(format!("a batch of {len} entries, of {most} at most")));
    }
    let mut added = vec![0_usize; sequences];
    for (i, entry) in batch.entries().iter().enumerate() {
        if entry.token as usize >= width {
            let token = entry.token;
            return Err(bad(format!(
                "entry {i} is token {token} of a vocabulary of {width} tokens"
            )));
        }
        match added.get_mut(entry.sequence as usize) {
            Some(count) => *count += 1,
            None => {
                let sequence = entry.sequence;
                return Err(bad(format!("entry {i} names sequence {sequence} of {sequences}")));
            }
        }
    }
    for (sequence, &added) in (0..).zip(&added) {
        let (held, room) = (model.sequence_len(sequence), model.context_len());
        if added > 0 && held + added > room {
            return Err(context_full(held + added, room));
        }
    }
    Ok(())
}

/// The error for `needed` tokens in a context of `room`.
pub(crate) fn context_full(needed: usize, room: usize) -> Error {
    Error::new(Kind::TooLarge, format!("{needed} tokens do not fit a context of {room}"))
        .help("shorten the prompt, lower the maximum of tokens, or enlarge the context")
}
