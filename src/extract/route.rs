//! Weak fields are asked for again: alone, then from a bigger model; what stays weak is marked.
//!
//! By hand, with a threshold of 0.8:
//!
//! ```text
//! the document                  {"name": "Ada", "born": 1851, "mood": "calm"}     born 0.41, others 0.9
//! again alone                   prompt: the document, the known {"name": "Ada", "mood": "calm"}, and
//!                               which field is wanted; the output begins with {"name": "Ada", "born":
//!                               1815 (0.67)     surer, so it is taken; 1851 is kept as an earlier answer
//! a bigger model, the same way  1815 (0.95)     surer, so it is taken
//! ```
//!
//! The other fields are forced: the matcher takes their bytes, so that the new value fits them, and the
//! whole is checked against the constraint before it is taken. A new answer that is less sure than the one
//! before it is not taken, and noted all the same. Figures of two models are compared as they are: they are
//! signals, not calibrated.

use crate::decode::{Decoder, Outcome, Request, Strategy};
use crate::error::{Kind, Result};
use crate::extract::read::{place, value_of, without_reasoning};
use crate::extract::scalar::{Scalar, Step};
use crate::extract::sure::Steps;
use crate::extract::{Extraction, Extractor, FieldInfo, Sureness, Tracker};
use crate::model::Message;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Who gave a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answerer {
    /// The model that wrote the document, in one go with the others.
    Document,
    /// The same model, asked for this field alone.
    Alone,
    /// A bigger model of this name, asked for this field alone.
    Bigger(String),
}

/// An answer to a field that another one replaced, or that was not taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Earlier {
    /// Who gave it.
    pub by: Answerer,
    /// The value.
    pub value: Value,
    /// How probable that one found it.
    pub probability: f64,
}

impl<T> Extraction<T> {
    /// The fields less probable than `below`, in the order of the document.
    pub fn weak(&self, below: f64) -> impl Iterator<Item = &FieldInfo> {
        self.fields.iter().filter(move |field| field.is_weak(below))
    }

    /// Marks the fields that are still less probable than `below` as doubtful.
    pub fn mark(&mut self, below: f64) {
        self.fields.iter_mut().for_each(|field| field.doubtful = field.is_weak(below));
    }
}

impl FieldInfo {
    fn is_weak(&self, below: f64) -> bool {
        self.sureness.as_ref().is_some_and(|sureness| sureness.probability < below)
    }
}

impl<T: DeserializeOwned> Extractor<T> {
    /// Asks again for each field less probable than `below`, alone, the others as they are; the surer answer
    /// is taken. `by` says who is asked: with the model of the first answer [`Answerer::Alone`], with a
    /// bigger one, by an extractor [for its vocabulary](Extractor::for_vocabulary), [`Answerer::Bigger`].
    /// What is weak after that is marked as doubtful; so is a field for which the context or the budget has
    /// no room.
    ///
    /// # Errors
    /// As [`Extractor::request`] and [`Decoder::resume`], for another reason than room. What was found so far
    /// stays.
    pub fn again(
        &self,
        decoder: &mut Decoder<'_>,
        document: &str,
        found: &mut Extraction<T>,
        (below, by): (f64, &Answerer),
    ) -> Result<()> {
        let weak: Vec<String> = found.weak(below).map(|field| field.pointer.clone()).collect();
        for pointer in weak {
            match self.ask(decoder, document, found, (&pointer, by)) {
                // With what is known, the prompt is longer than it was.
                Err(error) if is_room(error.kind()) => {}
                asked => asked?,
            }
        }
        found.mark(below);
        Ok(())
    }

    /// Asks for one field, and takes the answer if it is surer.
    fn ask(
        &self,
        decoder: &mut Decoder<'_>,
        document: &str,
        found: &mut Extraction<T>,
        (pointer, by): (&str, &Answerer),
    ) -> Result<()> {
        let Some(at) = found.fields.iter().position(|field| field.pointer == pointer) else {
            return Ok(());
        };
        let range = found.fields[at].range.clone();
        let (before, after) = (&found.text[..range.start], &found.text[range.end..]);
        let begun = before.trim_end();
        let request = self.request_again(decoder, document, (found, pointer))?;
        let outcome = decoder.resume(&request, begun.as_bytes(), &mut |bytes| is_whole(bytes))?;
        let Some(value_end) = scalar_end(&outcome.bytes) else { return Ok(()) };
        let Ok(given) = std::str::from_utf8(&outcome.bytes[..value_end]) else { return Ok(()) };
        let text = format!("{begun}{given}{after}");
        if !self.allows(&request, &text) {
            return Ok(());
        }
        self.take(found, (at, by), (text, begun.len()), &outcome)?;
        place(&mut found.fields, &request, self);
        Ok(())
    }

    /// What is to be decoded to ask for one field: the usual conversation, and at its end what is known.
    fn request_again(
        &self,
        decoder: &Decoder<'_>,
        document: &str,
        (found, pointer): (&Extraction<T>, &str),
    ) -> Result<Request> {
        let mut messages = self.messages(document)?;
        if let Some(Message { content, .. }) = messages.last_mut() {
            let known = without(&found.text, pointer).unwrap_or_default();
            let name = pointer.trim_start_matches('/');
            content.push_str(&format!("\n\nKnown:\n{known}\n\nLook again for {name}."));
        }
        let request = self.request_of(decoder.model(), &messages, document)?;
        // A search over whole outputs is no way to find one value.
        Ok(Request { strategy: Strategy::Sample, ..request })
    }

    /// Whether a text is a whole document under the constraint.
    fn allows(&self, request: &Request, text: &str) -> bool {
        let mut matcher = request.constraint.as_ref().unwrap_or(self.constraint()).matcher();
        matcher.accept_bytes(text.as_bytes()).is_ok() && matcher.can_stop()
    }

    /// Puts the surer of two answers in the place of the field, and notes the other.
    fn take(
        &self,
        found: &mut Extraction<T>,
        (at, by): (usize, &Answerer),
        (text, start): (String, usize),
        outcome: &Outcome,
    ) -> Result<()> {
        let tracker = Tracker::of(text.as_bytes())?;
        let steps = Steps::from(self.constraint().vocabulary(), outcome, (text.as_bytes(), start));
        let Some(node) = tracker.nodes().get(at) else { return Ok(()) };
        let Some(sureness) = steps.sureness(node) else { return Ok(()) };
        let value = tracker.value().and_then(|root| root.pointer(&node.pointer));
        let Some(value) = value.cloned() else { return Ok(()) };
        let stripped = without_reasoning(&text, &tracker, self).map(|(_, rest)| rest);
        let whole = value_of(stripped.as_deref().unwrap_or(&text))?;
        let Some(field) = found.fields.get_mut(at) else { return Ok(()) };
        let old = field.sureness.as_ref().map_or(0.0, |old: &Sureness| old.probability);
        if sureness.probability <= old {
            let probability = sureness.probability;
            field.earlier.push(Earlier { by: by.clone(), value, probability });
            return Ok(());
        }
        let earlier = std::mem::replace(&mut field.by, by.clone());
        let value = std::mem::replace(&mut field.value, value);
        field.earlier.push(Earlier { by: earlier, value, probability: old });
        field.sureness = Some(sureness);
        field.kind = node.kind;
        // It has no tokens in the first output.
        field.tokens = 0..0;
        let root = tracker.value().cloned().unwrap_or_default();
        for (field, node) in found.fields.iter_mut().zip(tracker.nodes()) {
            field.range = node.range().unwrap_or_default();
            if !field.kind.is_scalar() {
                field.value = root.pointer(&field.pointer).cloned().unwrap_or_default();
            }
        }
        found.value = whole;
        found.text = text;
        Ok(())
    }
}

/// Whether an error says that there is no room for a question.
fn is_room(kind: &Kind) -> bool {
    matches!(kind, Kind::TooLarge | Kind::BudgetTooSmall { .. })
}

/// Where a scalar ends in `bytes`, which begin with white space and then its first byte; `None` if it does
/// not, or no scalar begins there.
fn scalar_end(bytes: &[u8]) -> Option<usize> {
    let start = bytes.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let mut scalar = Scalar::begin(*bytes.get(start)?)?;
    for (at, &byte) in bytes.iter().enumerate().skip(start + 1) {
        match scalar.push(byte).ok()? {
            Step::More => {}
            Step::Done => return Some(at + 1),
            Step::Before => return Some(at),
        }
    }
    None
}

/// Whether the value that is asked for is there, or cannot be: an object or a list is not taken.
fn is_whole(bytes: &[u8]) -> bool {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    first.is_some_and(|byte| b"{[".contains(byte)) || scalar_end(bytes).is_some()
}

/// A document without the value at a pointer.
fn without(text: &str, pointer: &str) -> Option<String> {
    let mut root: Value = serde_json::from_str(text).ok()?;
    let (parent, name) = pointer.rsplit_once('/')?;
    match root.pointer_mut(parent)? {
        Value::Object(members) => {
            members.shift_remove(&name.replace("~1", "/").replace("~0", "~"))?;
        }
        Value::Array(items) => {
            *items.get_mut(name.parse::<usize>().ok()?)? = Value::from("?");
        }
        _ => return None,
    }
    serde_json::to_string(&root).ok()
}

#[cfg(test)]
mod tests;
