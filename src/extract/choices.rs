//! Fields with few possible values: which values those are, and how probable the model finds each.
//!
//! Which values a field can have is read from the automaton, not from the schema: so an `enum`, a boolean,
//! a `const` beside `null`, a rating from 1 to 5 and a pattern with three matches are all the same. The
//! search follows the bytes that may come next, shortest spelling first, and gives up on a field with more
//! than [`CHOICES_MAX`] values. Of the spellings of a value the plain one counts.
//!
//! By hand, for `{"enum": ["no", "not yet"]}` beside `null`: after `"` come `"no` and then `"no"`, finished,
//! and `"not`, which ends as `"not yet"`; after `n` only `null`.
//!
//! Each choice is then spelled in the place where the value stands, together with the rest of the tokens
//! at its ends, as the tokenizer spells it:
//!
//! ```text
//! tokens of the output   {"    ok    ":    ␣"    no    ",    ␣"    b ...
//! one choice                               ␣"    not    ␣yet    ",
//! ```
//!
//! and scored by the model's own law, all after the same beginning of the output, which is computed once.
//! The distribution is that of the choices among each other.

use crate::constraint::Constraint;
use crate::decode::run::check_cancelled;
use crate::decode::{Decoder, Outcome, Request};
use crate::error::Result;
use crate::extract::read::plain_integer;
use crate::extract::scalar::{Scalar, Step};
use crate::extract::{Choice, FieldInfo, ValueKind};
use crate::matcher::Matcher;
use crate::model::Model;
use crate::vocab::TokenId;
use serde_json::Value;
use std::collections::{HashSet, VecDeque};
use std::ops::Range;

/// A field with more values is not a choice.
const CHOICES_MAX: usize = 64;

/// Steps of the search: enough for so many long values.
const STEPS_MAX: usize = 16_384;

/// A beginning of a value.
struct Begun {
    matcher: Matcher,
    text: Vec<u8>,
    scalar: Scalar,
}

/// The values that can stand where a matcher is, each as it is spelled; `None` if there are too many, or
/// one is an object or a list.
fn values(matcher: &Matcher) -> Option<Vec<String>> {
    let mut found = Found::default();
    let mut open = VecDeque::new();
    for byte in matcher.next_bytes() {
        match (byte, Scalar::begin(byte)) {
            (b' ' | b'\t' | b'\n' | b'\r', _) => {}
            (_, None) => return None,
            (_, Some(scalar)) => {
                let mut matcher = matcher.fork();
                if matcher.accept_bytes(&[byte]).is_ok() {
                    open.push_back(Begun { matcher, text: vec![byte], scalar });
                }
            }
        }
    }
    for _ in 0..STEPS_MAX {
        let Some(begun) = open.pop_front() else { return Some(found.texts) };
        follow(begun, &mut open, &mut found);
        // What is open will be at least so many values, but for escapes that lead nowhere.
        if found.texts.len() > CHOICES_MAX || open.len() > 3 * CHOICES_MAX {
            return None;
        }
    }
    None
}

/// The values found, each once.
#[derive(Default)]
struct Found {
    texts: Vec<String>,
    values: HashSet<String>,
}

impl Found {
    fn add(&mut self, text: Vec<u8>, scalar: Scalar) {
        let (Ok(text), Ok(value)) = (String::from_utf8(text), scalar.finish()) else { return };
        let value = match value.is_number() {
            true => plain_integer(&text).unwrap_or_else(|| value.to_string()),
            false => value.to_string(),
        };
        if self.values.insert(value) {
            self.texts.push(text);
        }
    }
}

/// Takes a beginning one byte further, in every way that a plain spelling has.
fn follow(begun: Begun, open: &mut VecDeque<Begun>, found: &mut Found) {
    let mut bytes = begun.matcher.next_bytes();
    bytes.retain(|&byte| is_plain(&begun.text, byte));
    let number = begun.scalar.kind() == ValueKind::Number;
    let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']');
    if number && (begun.matcher.can_stop() || bytes.iter().any(ends)) {
        found.add(begun.text.clone(), begun.scalar.clone());
    }
    for byte in bytes {
        let (mut matcher, mut scalar) = (begun.matcher.fork(), begun.scalar.clone());
        let Ok(step) = scalar.push(byte) else { continue };
        if step == Step::Before || matcher.accept_bytes(&[byte]).is_err() {
            continue;
        }
        let text = [begun.text.as_slice(), &[byte]].concat();
        match step {
            Step::Done => found.add(text, scalar),
            _ => open.push_back(Begun { matcher, text, scalar }),
        }
    }
}

/// Whether a plain spelling may go on with a byte: no exponents, and no escapes of characters that need
/// none.
fn is_plain(text: &[u8], byte: u8) -> bool {
    if text.first() != Some(&b'"') {
        return !matches!(byte, b'e' | b'E') || text.first().is_some_and(u8::is_ascii_lowercase);
    }
    let backslashes = |text: &[u8]| text.iter().rev().take_while(|&&byte| byte == b'\\').count();
    let is_escape = |back: usize| {
        let head = text.len().checked_sub(back).and_then(|len| text.get(..len));
        head.is_some_and(|head| backslashes(head) % 2 == 1)
    };
    match (text, byte) {
        (_, b'/') if is_escape(0) => false,
        // Only control characters have to be spelled in digits: `\u00` and 0 or 1.
        ([.., b'u'], _) if is_escape(1) => byte == b'0',
        ([.., b'u', b'0'], _) if is_escape(2) => byte == b'0',
        ([.., b'u', b'0', b'0'], _) if is_escape(3) => matches!(byte, b'0' | b'1'),
        _ => true,
    }
}

/// The distribution over the choices of every field that has few enough, in the outcome of a request.
pub(crate) fn weigh(
    decoder: &mut Decoder<'_>,
    constraint: &Constraint,
    (request, outcome): (&Request, &Outcome),
    fields: &mut [FieldInfo],
) -> Result<()> {
    let mut matcher = constraint.matcher();
    for field in fields.iter_mut().filter(|field| field.kind.is_scalar()) {
        check_cancelled(request)?;
        // Fields come in the order of the text.
        let between = matcher.text().len()..field.range.start;
        matcher.accept_bytes(outcome.bytes.get(between).unwrap_or_default())?;
        let Some(values) = values(&matcher).filter(|values| values.len() > 1) else { continue };
        let place = Place::of(decoder.model(), outcome, field, &values);
        let spelled = values.iter().map(|value| place.spell(decoder.model(), value));
        // A tokenizer that cannot spell a part of a text for itself cannot be asked.
        let Some(spelled) = spelled.collect::<Result<Option<Vec<_>>>>()? else { continue };
        let said = outcome.tokens.get(..place.tokens.start).unwrap_or_default();
        let before = [request.prompt.as_slice(), said].concat();
        let scores = decoder.score(&before, &spelled)?;
        if let Some(sureness) = &mut field.sureness {
            sureness.choices = choices(&values, &scores);
            let own = sureness.choices.iter().find(|choice| is_same(&choice.value, &field.value));
            sureness.probability = own.map_or(sureness.probability, |own| own.probability);
        }
    }
    Ok(())
}

/// Whether two values are one, such as 8 and 8.0.
fn is_same(a: &Value, b: &Value) -> bool {
    a == b || a.as_f64().is_some_and(|a| Some(a) == b.as_f64())
}

/// The distribution, the most probable choice first.
fn choices(values: &[String], scores: &[f64]) -> Vec<Choice> {
    let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = scores.iter().map(|score| (score - best).exp()).sum();
    let choice = |(text, &log_prob): (&String, &f64)| {
        let value = serde_json::from_str(text).unwrap_or(Value::Null);
        Choice { value, probability: (log_prob - best).exp() / sum, log_prob }
    };
    let mut choices: Vec<Choice> = values.iter().zip(scores).map(choice).collect();
    choices.sort_by(|a, b| b.log_prob.total_cmp(&a.log_prob));
    choices
}

/// Where the choices of a field are spelled: whole tokens of the output.
struct Place<'a> {
    tokens: Range<usize>,
    /// The bytes of those tokens before and after the value.
    ends: (&'a [u8], &'a [u8]),
}

impl<'a> Place<'a> {
    fn of(model: &dyn Model, outcome: &'a Outcome, field: &FieldInfo, values: &[String]) -> Self {
        let mut tokens = field.tokens.clone();
        // That a number is over is said by the token after it.
        let is_number =
            |value: &String| value.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        if values.iter().any(is_number) {
            tokens.end = (tokens.end + 1).min(outcome.tokens.len());
        }
        let len = |tokens: &[TokenId]| -> usize {
            tokens.iter().map(|&id| model.vocabulary().bytes(id).map_or(0, <[u8]>::len)).sum()
        };
        let start = len(outcome.tokens.get(..tokens.start).unwrap_or_default());
        let end = start + len(outcome.tokens.get(tokens.clone()).unwrap_or_default());
        let bytes = |range: Range<usize>| outcome.bytes.get(range).unwrap_or_default();
        Self { tokens, ends: (bytes(start..field.range.start), bytes(field.range.end..end)) }
    }

    /// The tokens of a choice in this place; `None` if the tokenizer makes another text of it.
    fn spell(&self, model: &dyn Model, value: &str) -> Result<Option<Vec<TokenId>>> {
        let text = [self.ends.0, value.as_bytes(), self.ends.1].concat();
        let Ok(text) = String::from_utf8(text) else { return Ok(None) };
        let tokens = model.tokenize(&text, false)?;
        let bytes = tokens.iter().flat_map(|&id| model.vocabulary().bytes(id).unwrap_or_default());
        Ok(bytes.eq(text.as_bytes()).then_some(tokens))
    }
}

#[cfg(test)]
mod tests;
