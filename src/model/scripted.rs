//! A model without weights: its logits are a function of the tokens so far. For tests, examples
//! and teaching; it needs no file and answers at once, the same on every machine.
//!
//! ```
//! use constrain::model::{Batch, Model, scripted::ScriptedModel};
//! let mut model = ScriptedModel::following("[1, 2]");
//! let prompt = model.plain("two numbers")?;
//! model.eval(&Batch::prompt(0, &prompt.tokens))?;
//! let logits = model.logits(prompt.tokens.len() - 1)?;
//! let best = (0..).zip(logits).max_by(|a, b| a.1.total_cmp(b.1)).map(|(id, _)| id);
//! assert_eq!(best.and_then(|id| model.vocabulary().bytes(id)), Some(&b"["[..]));
//! # Ok::<(), constrain::Error>(())
//! ```

use crate::error::{Error, Kind, Result};
use crate::model::{Batch, Message, Model, Prompt, Sequence, check_batch, context_full};
use crate::sample::random::{Purpose, uniform};
use crate::vocab::{Token, TokenId, Vocabulary};
use std::collections::HashMap;

/// The law of a scripted model: fills a row, already at 0 and of the vocabulary's length, from the
/// tokens of a sequence.
pub type Law = Box<dyn Fn(&[TokenId], &mut [f32]) + Send>;

/// A model whose logits are a function of the tokens so far.
pub struct ScriptedModel {
    vocabulary: Vocabulary,
    law: Law,
    sequences: Vec<Vec<TokenId>>,
    context_len: usize,
    /// The rows of the last batch.
    rows: Vec<Option<Vec<f32>>>,
    /// Text tokens by their bytes, and the length of the longest.
    spelling: (HashMap<Vec<u8>, TokenId>, usize),
    /// How many heads guess ahead, and by which law.
    heads: (usize, Law),
}

impl ScriptedModel {
    /// A model over any vocabulary with any law.
    pub fn new(
        vocabulary: Vocabulary,
        law: impl Fn(&[TokenId], &mut [f32]) + Send + 'static,
    ) -> Self {
        let mut by_bytes = HashMap::new();
        for (id, bytes) in vocabulary.text_tokens() {
            by_bytes.entry(bytes.to_vec()).or_insert(id);
        }
        let longest = by_bytes.keys().map(Vec::len).max().unwrap_or(0);
        Self {
            vocabulary,
            law: Box::new(law),
            sequences: vec![Vec::new(); 8],
            context_len: 4096,
            rows: Vec::new(),
            spelling: (by_bytes, longest),
            heads: (0, Box::new(|_, _| ())),
        }
    }

    /// A model over [`vocabulary`] that wants to answer `target`. Where a constraint makes it say
    /// something else it goes on with what is left of the target, and at its end closes what is
    /// open.
    pub fn following(target: &str) -> Self {
        let (vocabulary, target) = (vocabulary(), target.as_bytes().to_vec());
        let own = vocabulary.clone();
        Self::new(vocabulary, move |tokens, row| follow(&own, &target, tokens, row))
    }

    /// A model over [`vocabulary`] with random likes: the same for the same seed and last two
    /// tokens.
    pub fn noise(seed: u64) -> Self {
        Self::noise_over(vocabulary(), seed)
    }

    /// As [`ScriptedModel::noise`], over another vocabulary.
    pub fn noise_over(vocabulary: Vocabulary, seed: u64) -> Self {
        Self::new(vocabulary, noise(seed))
    }

    /// The same model with another length of the context.
    #[must_use]
    pub fn with_context_len(self, context_len: usize) -> Self {
        Self { context_len, ..self }
    }

    /// The same model with another number of sequences.
    #[must_use]
    pub fn with_sequences(self, sequences: usize) -> Self {
        Self { sequences: vec![Vec::new(); sequences], ..self }
    }

    /// The same model with heads that guess the tokens after the next one (multi-token prediction),
    /// each by the best token of a law of their own.
    #[must_use]
    pub fn with_heads(
        self,
        count: usize,
        law: impl Fn(&[TokenId], &mut [f32]) + Send + 'static,
    ) -> Self {
        Self { heads: (count, Box::new(law)), ..self }
    }

    fn sequence(&mut self, sequence: Sequence) -> Result<&mut Vec<TokenId>> {
        let count = self.sequences.len();
        self.sequences.get_mut(sequence as usize).ok_or_else(|| {
            Error::new(Kind::BadArgument, format!("there is no sequence {sequence} of {count}"))
        })
    }
}

impl Model for ScriptedModel {
    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn name(&self) -> String {
        "scripted".to_owned()
    }

    fn context_len(&self) -> usize {
        self.context_len
    }

    fn max_sequences(&self) -> usize {
        self.sequences.len()
    }

    fn sequence_len(&self, sequence: Sequence) -> usize {
        self.sequences.get(sequence as usize).map_or(0, Vec::len)
    }

    fn eval(&mut self, batch: &Batch) -> Result<()> {
        check_batch(self, batch)?;
        self.rows.clear();
        for entry in batch.entries() {
            let tokens = &mut self.sequences[entry.sequence as usize];
            tokens.push(entry.token);
            let row = entry.logits.then(|| {
                let mut row = vec![0.0; self.vocabulary.len()];
                (self.law)(tokens, &mut row);
                row
            });
            self.rows.push(row);
        }
        Ok(())
    }

    fn logits(&self, index: usize) -> Result<&[f32]> {
        self.rows.get(index).and_then(Option::as_deref).ok_or_else(|| {
            Error::new(Kind::BadArgument, format!("entry {index} did not ask for logits"))
        })
    }

    fn heads(&self) -> usize {
        self.heads.0
    }

    fn predict(&mut self, tokens: &[TokenId], most: usize) -> Result<Vec<TokenId>> {
        let (heads, law) = &self.heads;
        let mut all = tokens.to_vec();
        let mut row = vec![0.0; self.vocabulary.len()];
        for _ in 0..most.min(*heads) {
            row.fill(0.0);
            law(&all, &mut row);
            let best = (0..).zip(&row).max_by(|a: &(TokenId, _), b| a.1.total_cmp(b.1));
            all.extend(best.map(|(token, _)| token));
        }
        Ok(all.split_off(tokens.len()))
    }

    fn truncate(&mut self, sequence: Sequence, len: usize) -> Result<()> {
        self.sequence(sequence)?.truncate(len);
        Ok(())
    }

    fn copy(&mut self, from: Sequence, to: Sequence) -> Result<()> {
        let tokens = self.sequence(from)?.clone();
        *self.sequence(to)? = tokens;
        Ok(())
    }

    fn tokenize(&self, text: &str, special: bool) -> Result<Vec<TokenId>> {
        let (by_bytes, longest) = &self.spelling;
        if text.len() > self.context_len * longest {
            return Err(context_full(text.len() / longest.max(&1), self.context_len));
        }
        let mut rest = text.as_bytes();
        let mut tokens = Vec::new();
        while !rest.is_empty() {
            let names = self.vocabulary.specials().filter(|_| special);
            let name = names.filter(|(name, _)| rest.starts_with(name.as_bytes()));
            let named = name.max_by_key(|(name, _)| name.len()).map(|(name, id)| (name.len(), id));
            let spelled = || {
                let lens = (1..=rest.len().min(*longest)).rev();
                lens.into_iter().find_map(|n| by_bytes.get(&rest[..n]).map(|&id| (n, id)))
            };
            let Some((len, id)) = named.or_else(spelled) else {
                let message = format!("no token of the vocabulary spells the byte {}", rest[0]);
                return Err(Error::new(Kind::Model, message));
            };
            tokens.push(id);
            rest = &rest[len..];
        }
        Ok(tokens)
    }

    fn chat(&self, messages: &[Message]) -> Result<Prompt> {
        let mut prompt = Prompt { text: String::new(), tokens: Vec::new() };
        for message in messages {
            let name = format!("<|{}|>", message.role.name());
            prompt.tokens.extend(self.vocabulary.special(&name));
            prompt.tokens.extend(self.tokenize(&message.content, false)?);
            prompt.text.push_str(&name);
            prompt.text.push_str(&message.content);
        }
        prompt.tokens.extend(self.vocabulary.special(ANSWER));
        prompt.text.push_str(ANSWER);
        Ok(prompt)
    }

    fn plain(&self, text: &str) -> Result<Prompt> {
        let mut tokens = self.tokenize(text, false)?;
        tokens.extend(self.vocabulary.special(ANSWER));
        Ok(Prompt { text: text.to_owned(), tokens })
    }
}

/// Begins the answer.
const ANSWER: &str = "<|assistant|>";

/// Pieces beside the single bytes: enough for a choice of spellings, as real vocabularies offer.
const PIECES: &str = r#"{" ": ", " "} "}, "] "], ["] [{" }] }} }]} \n ":" "," "," true false null
true, false, true} false} the and of in er en on re th he an in st at ing ion tion ent all est 10 12
19 20 00 000 2024 2025 0.5 .5 99 name id type date text total items value price title email user
reason answer ok good bad yes no high low open e\u00 \" \\ é ü 日本 🎉"#;

/// A vocabulary in which every text has a spelling: ids 0 to 255 are the single bytes, then come
/// some longer pieces, then the special tokens, of which `<|end|>` ends generation.
pub fn vocabulary() -> Vocabulary {
    let mut tokens: Vec<Token> = (0..=255_u8).map(|byte| Token::Text([byte].into())).collect();
    let mut pieces: Vec<Vec<u8>> =
        PIECES.split_whitespace().map(|p| p.as_bytes().to_vec()).collect();
    let spaced = ["the", "a", "of", "\"", "{", "[", "\n", "1", "is", "and", "name", "  ", "true"];
    pieces.extend(spaced.iter().map(|piece| format!(" {piece}").into_bytes()));
    pieces.extend(
        [&b"\": "[..], b"\", ", b"\": \"", b"{\n  \"", b",\n  \"", b"\xf0\x9f"].map(<[u8]>::to_vec),
    );
    pieces.retain(|piece| piece.len() > 1);
    pieces.sort();
    pieces.dedup();
    tokens.extend(pieces.into_iter().map(|piece| Token::Text(piece.into())));
    let specials = ["<|end|>", "<|system|>", "<|user|>", ANSWER];
    let end = tokens.len() as TokenId;
    tokens.extend(specials.map(|name| Token::Special(name.into())));
    match Vocabulary::new(tokens, vec![end]) {
        Ok(vocabulary) => vocabulary,
        Err(error) => unreachable!("the built-in vocabulary is sound: {error}"),
    }
}

/// The law of [`ScriptedModel::noise`].
pub fn noise(seed: u64) -> impl Fn(&[TokenId], &mut [f32]) + Send + 'static {
    move |tokens, row| {
        let last = tokens.iter().rev().take(2).fold(0, |key, &token| key << 32 | u64::from(token));
        for (id, logit) in (0..).zip(row) {
            // The sum of three uniform numbers is close to a bell.
            let draw = |i: u64| uniform(seed, last, id * 3 + i, Purpose::Draft);
            *logit = ((draw(0) + draw(1) + draw(2) - 1.5) * 6.0) as f32;
        }
    }
}

/// The law of [`ScriptedModel::following`]: prefers the longest token that continues the target.
fn follow(vocabulary: &Vocabulary, target: &[u8], tokens: &[TokenId], row: &mut [f32]) {
    let marker = vocabulary.special(ANSWER);
    let start = tokens.iter().rposition(|&token| Some(token) == marker).map_or(0, |at| at + 1);
    let answer = tokens[start..].iter().flat_map(|&id| vocabulary.bytes(id).unwrap_or_default());
    // What was said of the target so far, with anything between.
    let said = answer.fold(0, |said, byte| said + usize::from(target.get(said) == Some(byte)));
    let left = &target[said..];
    for (id, logit) in (0..).zip(row) {
        let taste = uniform(0, tokens.len() as u64, id, Purpose::Draft) as f32;
        let id = id as TokenId;
        *logit = match vocabulary.bytes(id) {
            Some(bytes) if left.starts_with(bytes) => 8.0 + bytes.len() as f32,
            Some([b'"' | b'}' | b']']) if left.is_empty() => 6.0 + taste,
            Some(_) => taste,
            None if vocabulary.is_end(id) && left.is_empty() => 12.0,
            None => -5.0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Role;

    #[test]
    fn tokenizes_everything_and_keeps_text_from_being_special() -> Result<()> {
        let model = ScriptedModel::noise(1);
        for text in ["", "{\"name\": \"é\"}", "日本 🎉 \u{0}", "<|end|>"] {
            let tokens = model.tokenize(text, false)?;
            let bytes = |id: &TokenId| model.vocabulary().bytes(*id).unwrap_or_default().to_vec();
            assert_eq!(tokens.iter().flat_map(bytes).collect::<Vec<u8>>(), text.as_bytes());
        }
        let end = model.vocabulary().end_tokens().to_vec();
        assert_eq!(model.tokenize("<|end|>", true)?, end);
        let chat = model.chat(&[Message::new(Role::User, "<|end|>")])?;
        assert!(!chat.tokens.contains(&end[0]));
        Ok(())
    }

    #[test]
    fn sequences_go_their_own_ways() -> Result<()> {
        let mut model = ScriptedModel::noise(3);
        model.eval(&Batch::prompt(0, &[1, 2, 3]))?;
        model.copy(0, 1)?;
        model.truncate(0, 2)?;
        let mut batch = Batch::new();
        let (a, b) = (batch.push(9, 0, true), batch.push(9, 1, true));
        model.eval(&batch)?;
        assert_ne!(model.logits(a)?, model.logits(b)?);
        model.truncate(1, 2)?;
        model.eval(&Batch::prompt(1, &[9]))?;
        let redone = model.logits(0)?.to_vec();
        model.truncate(0, 2)?;
        model.eval(&Batch::prompt(0, &[9]))?;
        assert_eq!(model.logits(0)?, redone);
        Ok(())
    }

    #[test]
    fn bad_batches_change_nothing() -> Result<()> {
        let mut model = ScriptedModel::noise(3).with_context_len(4).with_sequences(2);
        model.eval(&Batch::prompt(0, &[1, 2, 3]))?;
        for batch in
            [Batch::prompt(0, &[1, 2]), Batch::prompt(2, &[1]), Batch::prompt(1, &[1, 9999])]
        {
            assert!(model.eval(&batch).is_err());
            assert_eq!((model.sequence_len(0), model.sequence_len(1)), (3, 0));
        }
        assert!(model.logits(0).is_err() && model.logits(7).is_err());
        Ok(())
    }
}
