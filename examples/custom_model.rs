//! How do I use a model that this crate does not know?
//!
//! By the four verbs of the trait `Model`. This one has no weights: it counts how often each byte
//! followed each other in the text it saw. `cargo run --example custom_model --no-default-features`

use constrain::decode::{Decoder, Request};
use constrain::model::{Batch, Message, Model, Prompt, Sequence, check_batch};
use constrain::sample::Settings;
use constrain::vocab::{Token, TokenId, Vocabulary};
use constrain::{Constraint, Error, Kind, Result, schema};

/// One token per byte and one that ends.
const END: TokenId = 256;

/// Predicts a byte from the byte before it.
struct Bigrams {
    vocabulary: Vocabulary,
    counts: Vec<[f32; 256]>,
    sequence: Vec<TokenId>,
    rows: Vec<Option<Vec<f32>>>,
}

impl Bigrams {
    fn learn(text: &str) -> Result<Self> {
        let bytes = (0..=255_u8).map(|byte| Token::Text([byte].into()));
        let tokens = bytes.chain([Token::Special("<end>".into())]).collect();
        let mut counts = vec![[0.0; 256]; 256];
        for pair in text.as_bytes().windows(2) {
            counts[usize::from(pair[0])][usize::from(pair[1])] += 1.0;
        }
        let vocabulary = Vocabulary::new(tokens, vec![END])?;
        Ok(Self { vocabulary, counts, sequence: Vec::new(), rows: Vec::new() })
    }

    /// Logits after a token: the logarithm of one more than the count.
    fn row(&self, last: TokenId) -> Vec<f32> {
        let counts = self.counts.get(last as usize).unwrap_or(&[0.0; 256]);
        counts.iter().map(|count| (count + 0.01).ln()).chain([0.0]).collect()
    }
}

impl Model for Bigrams {
    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn name(&self) -> String {
        "bigrams".to_owned()
    }

    fn context_len(&self) -> usize {
        4096
    }

    fn max_sequences(&self) -> usize {
        1
    }

    fn sequence_len(&self, _: Sequence) -> usize {
        self.sequence.len()
    }

    fn eval(&mut self, batch: &Batch) -> Result<()> {
        check_batch(self, batch)?;
        self.rows.clear();
        for entry in batch.entries() {
            self.sequence.push(entry.token);
            let row = entry.logits.then(|| self.row(entry.token));
            self.rows.push(row);
        }
        Ok(())
    }

    fn logits(&self, index: usize) -> Result<&[f32]> {
        let row = self.rows.get(index).and_then(Option::as_deref);
        row.ok_or_else(|| Error::new(Kind::BadArgument, "these logits were not asked for"))
    }

    fn truncate(&mut self, _: Sequence, len: usize) -> Result<()> {
        self.sequence.truncate(len);
        Ok(())
    }

    fn copy(&mut self, _: Sequence, _: Sequence) -> Result<()> {
        Ok(())
    }

    fn tokenize(&self, text: &str, _: bool) -> Result<Vec<TokenId>> {
        Ok(text.bytes().map(TokenId::from).collect())
    }

    fn chat(&self, messages: &[Message]) -> Result<Prompt> {
        let text: String = messages.iter().map(|message| message.content.as_str()).collect();
        self.plain(&text)
    }
}

fn main() -> Result<()> {
    let text = "the model sat on the mat and the mask sat on the model and that was that";
    let mut model = Bigrams::learn(text)?;
    let schema = r#"{"type": "array", "minItems": 3, "maxItems": 3, "items": {
        "type": "string", "pattern": "^[a-z]{3,8}$"}}"#;
    let grammar = schema::compile(schema, &schema::Options::default())?;
    let constraint = Constraint::new(&grammar, model.vocabulary())?;
    let prompt = model.plain("words: ")?;
    let mut decoder = Decoder::new(&mut model);
    for seed in 0..3 {
        let settings = Settings { seed, ..Settings::drawing(0.8) };
        let request =
            Request::new(prompt.tokens.clone()).constrained(constraint.clone()).with(settings);
        println!("{}", decoder.run(&request)?.text());
    }
    Ok(())
}
