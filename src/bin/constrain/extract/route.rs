//! `--escalate-below`: weak fields are asked for again before the row of their document is written.
//!
//! By hand, `--escalate-below 0.8 --escalate-model big.gguf`: of `{"name": "Ada", "born": 1851}` the year has 0.41. The same model
//! is asked for it alone, and says 1815 with 0.67; so is the bigger one, which says 1815 with 0.95. The row has 1815, and
//! in its `fields`:
//!
//! ```text
//! "/born": {"p": 0.95, "by": "big.gguf", "earlier": [{"by": "document", "value": 1851, "p": 0.41},
//!                                                    {"by": "alone", "value": 1815, "p": 0.67}]}
//! ```
//!
//! The models that are asked again have a sequence of their own: the batch goes on meanwhile.

use crate::ask::{Again, Ask};
use crate::report::Failure;
use constrain::decode::Decoder;
use constrain::extract::{Answerer, Earlier, Extraction, Extractor, FieldInfo};
use constrain::model::Model;
use serde_json::Value;

/// Asks again for what is weak.
pub struct Router<'m> {
    below: f64,
    same: Box<dyn Model + 'm>,
    bigger: Option<Bigger<'m>>,
}

/// A bigger model, over its own vocabulary.
struct Bigger<'m> {
    name: Answerer,
    model: Box<dyn Model + 'm>,
    extractor: Extractor,
}

impl<'m> Router<'m> {
    /// Whoever asks `again` what `ask` asked.
    ///
    /// # Errors
    /// The schema cannot be compiled for the vocabulary of the bigger model.
    pub fn new(again: Again<'m>, ask: &Ask) -> Result<Self, Failure> {
        let Again { below, same, bigger } = again;
        let bigger = bigger
            .map(|(name, model)| {
                let extractor = ask.extractor(model.vocabulary())?;
                Ok::<_, Failure>(Bigger { name: Answerer::Bigger(name), model, extractor })
            })
            .transpose()?;
        Ok(Self { below, same, bigger })
    }

    /// Asks again for the weak fields of a document: the same model, then the bigger one for what is still weak.
    ///
    /// # Errors
    /// As [`Extractor::again`].
    pub fn route(
        &mut self,
        extractor: &Extractor,
        document: &str,
        found: &mut Extraction<Value>,
    ) -> constrain::Result<()> {
        let below = self.below;
        let is_weak = |found: &Extraction<Value>| found.weak(below).next().is_some();
        if is_weak(found) {
            let mut decoder = Decoder::new(&mut *self.same);
            extractor.again(&mut decoder, document, found, (below, &Answerer::Alone))?;
        }
        if let Some(Bigger { name, model, extractor }) = &mut self.bigger
            && is_weak(found)
        {
            extractor.again(&mut Decoder::new(&mut **model), document, found, (below, name))?;
        }
        Ok(())
    }
}

/// Who gave a value that was asked for again, and why that one.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// Who gave it, if it is not the first answer.
    pub by: Option<String>,
    /// Who else answered what, and how probable it was.
    pub earlier: Vec<(String, Value, f64)>,
    /// Whether it is less probable than it should be.
    pub doubtful: bool,
}

impl Told {
    /// What there is to tell of a field; nothing if it was not asked for again.
    pub fn of(field: &FieldInfo) -> Option<Self> {
        let FieldInfo { by, earlier, doubtful, .. } = field;
        let is_first = *by == Answerer::Document;
        let by = (!is_first).then(|| name(by));
        let told =
            |Earlier { by, value, probability }: &Earlier| (name(by), value.clone(), *probability);
        let earlier: Vec<_> = earlier.iter().map(told).collect();
        let is_asked = by.is_some() || !earlier.is_empty() || *doubtful;
        is_asked.then_some(Self { by, earlier, doubtful: *doubtful })
    }
}

/// What a row calls whoever answered.
fn name(by: &Answerer) -> String {
    match by {
        Answerer::Document => "document".to_owned(),
        Answerer::Alone => "alone".to_owned(),
        Answerer::Bigger(name) => name.clone(),
    }
}
