//! How sure the model is of each value, from the log-probabilities of the tokens.
//!
//! A token belongs to a value if it has a byte of it; the quotes of a string are part of the string. By
//! hand, the output `{"a": "no", "b": 12}` in the tokens
//!
//! ```text
//! {"    a    ":    ␣"    no    ",    ␣"    b    ":    ␣    1    2    }
//!                  └─ "no" ──────┘                        └─ 12 ──┘
//! ```
//!
//! At each token of a value, the tokens that the schema allows are of three kinds:
//!
//! ```text
//! at ␣"         for it       ␣"   "   "no   "no",      the value goes on as it did, at least as far
//!               against it   "yes   null               the value is another one
//!               neither      ␣                         it says nothing yet, or differs in what is not the value
//! ```
//!
//! and the probability of the value is the product of for / (for + against). So white space, keys and
//! punctuation count for nothing, whether or not a token joins them to a value, and spellings of one
//! value are not held against each other. A number says where it ends only by the token after it, which
//! is against it if it goes on with a digit, a point or an exponent.
//!
//! `kept` is the least share of the model's own law that the mask left, at the tokens of the value.
//!
//! Of the tokens, as many alternatives are known as the request asked for; the rest counts as against. Each of
//! them is compared once with the text, byte by byte, at each token of a value.

use crate::decode::Outcome;
use crate::extract::{Alternative, Node, Sureness, Tracker, ValueKind, Warning, WarningKind};
use crate::sample::logprob::{LogProb, StepLogProbs};
use crate::vocab::{TokenId, Vocabulary};
use std::ops::Range;

/// Alternatives that are reported per value.
const ALTERNATIVES: usize = 3;

/// Other ways less likely than this are not worth a line.
const ALTERNATIVE_MIN: f64 = 0.001;

/// A forbidden favourite is worth a warning if the model gave it at least this much.
const WANTED_MIN: f64 = 0.5;

/// The tokens of an output with what is known about them.
pub(crate) struct Steps<'a> {
    vocabulary: &'a Vocabulary,
    bytes: &'a [u8],
    /// Where the first token begins in the bytes.
    begin: usize,
    /// Where each token ends in the bytes.
    ends: Vec<usize>,
    /// Before which bytes no white space may be added.
    inside: Vec<bool>,
    /// One per token, none at all if not asked for.
    log_probs: &'a [StepLogProbs],
}

impl<'a> Steps<'a> {
    /// The tokens of a whole output.
    pub fn new(vocabulary: &'a Vocabulary, outcome: &'a Outcome) -> Self {
        Self::from(vocabulary, outcome, (&outcome.bytes, 0))
    }

    /// The tokens of an outcome whose output stands in a text, from a byte on.
    pub fn from(
        vocabulary: &'a Vocabulary,
        outcome: &'a Outcome,
        (bytes, begin): (&'a [u8], usize),
    ) -> Self {
        let mut end = begin;
        let len = |&token: &TokenId| vocabulary.bytes(token).map_or(0, <[u8]>::len);
        let ends = outcome.tokens.iter().map(|token| {
            end += len(token);
            end
        });
        Self {
            vocabulary,
            bytes,
            begin,
            ends: ends.collect(),
            inside: inside(bytes),
            log_probs: &outcome.log_probs,
        }
    }

    /// The tokens that have a byte of a range.
    pub fn of(&self, range: &Range<usize>) -> Range<usize> {
        let first = self.ends.partition_point(|&end| end <= range.start);
        let last = self.ends.partition_point(|&end| end < range.end);
        first..(last + 1).min(self.ends.len()).max(first)
    }

    fn start(&self, step: usize) -> usize {
        step.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(self.begin)
    }

    fn text(&self, token: TokenId) -> &[u8] {
        self.vocabulary.bytes(token).unwrap_or_default()
    }

    /// Compares another token at a step with the text, white space between values aside.
    fn compare(&self, step: usize, other: TokenId, value: usize) -> Compared {
        let other = self.text(other);
        let mut at = self.start(step);
        let mut value_from = (at >= value).then_some(0);
        for (index, &byte) in other.iter().enumerate() {
            let reached = at;
            while self.is_blank(at) {
                at += 1;
            }
            if at >= value && value_from.is_none() && !byte.is_ascii_whitespace() {
                value_from = Some(index);
            }
            if self.bytes.get(at) == Some(&byte) {
                at += 1;
            } else if self.inside.get(at) == Some(&true) || !byte.is_ascii_whitespace() {
                return Compared { at, reached, differs: Some(index), value_from };
            }
        }
        Compared { at, reached: at, differs: None, value_from }
    }

    /// Whether a byte of the text is white space between values.
    fn is_blank(&self, at: usize) -> bool {
        let blank = self.bytes.get(at).is_some_and(u8::is_ascii_whitespace);
        blank && self.inside.get(at) == Some(&false)
    }

    /// How sure the model is of a value that holds no others.
    pub fn sureness(&self, node: &Node) -> Option<Sureness> {
        let range = node.range().filter(|_| node.kind.is_scalar())?;
        let tokens = self.of(&range);
        let own = self.log_probs.get(tokens.clone()).filter(|own| !own.is_empty())?;
        let number = node.kind == ValueKind::Number;
        let (mut probability, mut kept) = (1.0, 1.0_f64);
        let mut alternatives = Vec::new();
        for (index, step) in tokens.clone().zip(own) {
            // A number is over when the token reaches beyond it.
            let reach = self.ends[index].min(range.end + usize::from(number));
            let (mut agree, mut open) = (step.chosen.constrained.exp(), 0.0);
            let before = probability;
            for other in step.alternatives.iter().filter(|p| p.token != step.chosen.token) {
                let compared = self.compare(index, other.token, range.start);
                let chance = other.constrained.exp();
                match compared.verdict(&range, reach, number.then(|| self.text(other.token))) {
                    Verdict::For => agree += chance,
                    Verdict::Neither => open += chance,
                    Verdict::Against => {
                        let probability = before * chance;
                        if probability >= ALTERNATIVE_MIN {
                            let begins = self.begins(index, other.token, &compared, &range);
                            alternatives.push(Alternative { begins, probability });
                        }
                    }
                }
            }
            // What is open may round to all there is.
            let decided = (1.0 - open).max(agree);
            probability *= if decided > 0.0 { (agree / decided).min(1.0) } else { 0.0 };
            kept = kept.min(step.mask_mass);
        }
        if number && self.ends.get(tokens.end.saturating_sub(1)) == Some(&range.end) {
            probability *= self.ends_here(tokens.end);
        }
        alternatives.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        alternatives.truncate(ALTERNATIVES);
        let free = own.iter().filter(|step| step.chosen.constrained < 0.0).count();
        let per_token = probability.powf(1.0 / free.max(1) as f64);
        Some(Sureness { probability, per_token, kept, alternatives, choices: Vec::new() })
    }

    /// How a value would have begun with another token at a step.
    fn begins(
        &self,
        index: usize,
        other: TokenId,
        compared: &Compared,
        range: &Range<usize>,
    ) -> String {
        let said = self.bytes.get(range.start..self.start(index)).unwrap_or_default();
        let from = compared.value_from.unwrap_or_default();
        let other = self.text(other).get(from..).unwrap_or_default();
        String::from_utf8_lossy(&[said, other].concat()).into_owned()
    }

    /// The probability that a number ends before a step.
    fn ends_here(&self, index: usize) -> f64 {
        let Some(step) = self.log_probs.get(index) else { return 1.0 };
        let goes_on = |other: &&LogProb| self.text(other.token).first().is_some_and(continues);
        let more = step.alternatives.iter().filter(goes_on).map(|p| p.constrained.exp());
        (1.0 - more.sum::<f64>()).clamp(0.0, 1.0)
    }

    /// Where the model wanted something that the mask forbids.
    pub fn warnings(&self, tracker: &Tracker) -> Vec<Warning> {
        let mut warnings: Vec<Warning> = Vec::new();
        for (index, step) in self.log_probs.iter().enumerate().take(self.ends.len()) {
            let probability = step.favourite.raw.exp();
            if step.favourite.allowed || probability < WANTED_MIN {
                continue;
            }
            let compared = self.compare(index, step.favourite.token, 0);
            let Some(differs) = compared.differs else { continue };
            let wanted = self.text(step.favourite.token).get(differs..).unwrap_or_default();
            let Some((node, kind)) = self.place(tracker, compared.at, wanted) else { continue };
            // The first one tells most: what follows it is what the model did not want to say.
            if !warnings.iter().any(|warning| warning.pointer == node.pointer) {
                let wanted = String::from_utf8_lossy(wanted).into_owned();
                let pointer = node.pointer.clone();
                warnings.push(Warning { pointer, kind, wanted, probability });
            }
        }
        warnings
    }

    /// What a forbidden wish is about that parts from the text at a byte, if it is about a value.
    fn place<'t>(
        &self,
        tracker: &'t Tracker,
        at: usize,
        wanted: &[u8],
    ) -> Option<(&'t Node, WarningKind)> {
        let node = tracker.nodes().get(tracker.at(at)?)?;
        let last = node.end == Some(at + 1);
        match (node.kind, wanted.first()?) {
            (ValueKind::Array, b',') if last => Some((node, WarningKind::ListClosed)),
            (ValueKind::String, _) if last && at > node.start => {
                Some((node, WarningKind::StringClosed))
            }
            (kind, _) if kind.is_scalar() => Some((node, WarningKind::FavouriteForbidden)),
            _ => None,
        }
    }
}

/// Whether a number goes on with a byte.
fn continues(byte: &u8) -> bool {
    byte.is_ascii_digit() || b".eE".contains(byte)
}

/// How far another token goes along with the text.
struct Compared {
    /// Where in the text it parts from it, or as far as it goes.
    at: usize,
    /// The same before white space in the text.
    reached: usize,
    /// The byte of the token that differs.
    differs: Option<usize>,
    /// The first byte of the token that is part of the value.
    value_from: Option<usize>,
}

/// What another token says about a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    For,
    Against,
    Neither,
}

impl Compared {
    /// For a value in `range`, of which the chosen token decides what is before `reach`; the text of
    /// the other token if the value is a number, which must end where it did.
    fn verdict(&self, range: &Range<usize>, reach: usize, number: Option<&[u8]>) -> Verdict {
        let next = |at: usize| number.and_then(|text| text.get(at)).is_some_and(continues);
        match self.differs {
            Some(_) if self.at < range.start => Verdict::Neither,
            Some(_) if self.at < range.end => Verdict::Against,
            Some(at) if self.reached == range.end && next(at) => Verdict::Against,
            Some(_) => Verdict::For,
            None if self.at >= reach => Verdict::For,
            None => Verdict::Neither,
        }
    }
}

/// Before which bytes of a document no white space may be added: those within strings, numbers and
/// literals.
fn inside(bytes: &[u8]) -> Vec<bool> {
    let (mut string, mut escaped, mut word) = (false, false, false);
    let part = |&byte: &u8| {
        let is_word = byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        let inside = string || word && is_word;
        string ^= byte == b'"' && !escaped;
        escaped = inside && string && byte == b'\\' && !escaped;
        word = !string && is_word;
        inside
    };
    bytes.iter().map(part).collect()
}

#[cfg(test)]
mod tests;
