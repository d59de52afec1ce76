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
//! `/a` is as probable as its three tokens together, among what the schema allows at each step;
//! forced tokens have probability 1 there. Keys and punctuation outside count for nothing, so that
//! long keys make no field look unsure. Three details make the figures mean what they say:
//!
//! * At the first token of a value, tokens that differ only in white space before it count
//!   together: `␣"` and `"` begin the same value.
//! * A number says where it ends only by the token after it. What that token's alternatives would have
//!   added (another digit, a point, an exponent) is taken off.
//! * `kept` is the least share of the model's own law that the mask left, at the tokens of the value.

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
        Self { vocabulary, bytes, begin, ends: ends.collect(), log_probs: &outcome.log_probs }
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

    /// How sure the model is of a value that holds no others.
    pub fn sureness(&self, node: &Node) -> Option<Sureness> {
        let range = node.range().filter(|_| node.kind.is_scalar())?;
        let tokens = self.of(&range);
        let own = self.log_probs.get(tokens.clone()).filter(|own| !own.is_empty())?;
        let (mut probability, mut kept) = (1.0, 1.0_f64);
        let mut alternatives = Vec::new();
        for (index, step) in tokens.clone().zip(own) {
            // The tokens that begin the value alike.
            let (same, others): (Vec<&LogProb>, Vec<&LogProb>) = step
                .alternatives
                .iter()
                .filter(|other| other.token != step.chosen.token)
                .partition(|other| self.is_alike(other, step, index, &range));
            let so_far = probability;
            let chance = |p: &LogProb| p.constrained.exp();
            let alike: f64 = same.into_iter().map(chance).sum();
            probability *= (chance(&step.chosen) + alike).min(1.0);
            kept = kept.min(step.mask_mass);
            alternatives.extend(others.into_iter().filter_map(|other| {
                let probability = so_far * chance(other);
                (probability >= ALTERNATIVE_MIN)
                    .then(|| Alternative { begins: self.begins(index, other, &range), probability })
            }));
        }
        if node.kind == ValueKind::Number {
            probability *= self.ends_here(tokens.end);
        }
        alternatives.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        alternatives.truncate(ALTERNATIVES);
        Some(Sureness { probability, kept, alternatives, choices: Vec::new() })
    }

    /// Whether another token differs from the chosen one only in what stands before the value.
    fn is_alike(
        &self,
        other: &LogProb,
        step: &StepLogProbs,
        index: usize,
        range: &Range<usize>,
    ) -> bool {
        let before = range.start.saturating_sub(self.start(index));
        if index > 0 && before == 0 && self.start(index) > range.start {
            return false;
        }
        let chosen = self.text(step.chosen.token);
        let own = chosen.get(before..).unwrap_or_default();
        let rest = self.text(other.token).trim_ascii_start();
        // What stands before the value in this token may be more than white space.
        let before = chosen.get(..before).unwrap_or_default().trim_ascii_start();
        rest.strip_prefix(before).is_some_and(|rest| rest.trim_ascii_start() == own)
    }

    /// How a value would have begun with another token at a step.
    fn begins(&self, index: usize, other: &LogProb, range: &Range<usize>) -> String {
        let start = self.start(index);
        let said = self.bytes.get(range.start..start).unwrap_or_default();
        let other = self.text(other.token);
        let text = [said, other].concat();
        let text = if said.is_empty() { text.trim_ascii_start() } else { &text };
        String::from_utf8_lossy(text).into_owned()
    }

    /// The probability that a number ends before a step.
    fn ends_here(&self, index: usize) -> f64 {
        let Some(step) = self.log_probs.get(index) else { return 1.0 };
        let goes_on = |other: &&LogProb| {
            let first = self.text(other.token).first();
            first.is_some_and(|byte| byte.is_ascii_digit() || b".eE".contains(byte))
        };
        let more = step.alternatives.iter().filter(goes_on).map(|p| p.constrained.exp());
        (1.0 - more.sum::<f64>()).clamp(0.0, 1.0)
    }

    /// Where the model wanted something that the mask forbids.
    pub fn warnings(&self, tracker: &Tracker) -> Vec<Warning> {
        let mut warnings: Vec<Warning> = Vec::new();
        for (index, step) in self.log_probs.iter().enumerate().take(self.ends.len()) {
            let probability = step.favourite.raw.exp();
            let wanted = self.text(step.favourite.token);
            if step.favourite.allowed || probability < WANTED_MIN || wanted.is_empty() {
                continue;
            }
            if let Some((node, kind)) = self.place(tracker, index, wanted) {
                let wanted = String::from_utf8_lossy(wanted).into_owned();
                let known = |warning: &Warning| warning.pointer == node.pointer;
                // The first one tells most: what follows it is what the model did not want to say.
                if !warnings.iter().any(known) {
                    let pointer = node.pointer.clone();
                    warnings.push(Warning { pointer, kind, wanted, probability });
                }
            }
        }
        warnings
    }

    /// What a forbidden wish at a step is about, if it is about a value.
    fn place<'t>(
        &self,
        tracker: &'t Tracker,
        index: usize,
        wanted: &[u8],
    ) -> Option<(&'t Node, WarningKind)> {
        let start = self.start(index);
        let said = self.bytes.get(start..*self.ends.get(index)?)?;
        let blank = said.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let first = start + blank;
        let node = tracker.nodes().get(tracker.at(first)?)?;
        let byte = *self.bytes.get(first)?;
        let last = node.end == Some(first + 1);
        match node.kind {
            ValueKind::Array if last && byte == b']' => {
                let on = wanted.trim_ascii_start().first() == Some(&b',');
                on.then_some((node, WarningKind::ListClosed))
            }
            ValueKind::String if last && first > node.start => {
                Some((node, WarningKind::StringClosed))
            }
            kind if kind.is_scalar() => Some((node, WarningKind::FavouriteForbidden)),
            _ => None,
        }
    }
}
