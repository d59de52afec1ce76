//! Random documents: tokens drawn from the mask, weighted so that documents end.
//!
//! At first any allowed token may come. With each token the wish to end grows; a step that wishes to
//! end takes a token that closes something (`}`, `]`, `"`), else one of a single byte, so that also a
//! pattern such as `@[a-z]+\.com` is soon through. Where an object may want a key, the names that
//! the schema requires are tried, since a random name would seldom be one of them.
use crate::engine::{Budget, Compiled, Sequence};
use crate::record::Generated;
use crate::tokens::Tokens;
use anyhow::Result;
use serde_json::Value;

/// Tokens after which a document is given up; it counts neither as good nor as bad.
const TOKENS_MAX: usize = 1500;
/// Tokens after which every step wishes to end.
const TOKENS_CALM: usize = 120;

/// Draws documents.
pub struct Generator<'a> {
    tokens: &'a Tokens,
    /// How much a token helps to end, by id.
    closing: Vec<Closing>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Closing {
    /// Starts with a closing bracket.
    Bracket,
    /// Is one quote.
    Quote,
    /// Is one byte, no white space, and opens nothing.
    Byte,
    /// Any other text.
    Text,
    /// White space.
    Space,
    /// No text.
    Special,
}

/// How a document ended.
enum Outcome {
    Complete(Vec<u8>),
    Stuck,
    GivenUp,
    OverBudget,
}

/// How many documents, and how long they may be.
#[derive(Clone, Copy)]
pub struct Wanted {
    /// Documents of each schema.
    pub count: usize,
    /// Tokens of each.
    pub budget: Option<Budget>,
}

/// Where a document must end.
#[derive(Clone, Copy)]
struct End {
    tokens: u64,
    budgeted: bool,
}

impl<'a> Generator<'a> {
    /// A generator for a vocabulary.
    pub fn new(tokens: &'a Tokens) -> Self {
        let ids = 0..u32::try_from(tokens.len()).unwrap_or(u32::MAX);
        let closing = ids.map(|id| closing(tokens.bytes(id))).collect();
        Self { tokens, closing }
    }

    /// Draws `count` documents and judges them; `None` if the judge cannot read the schema.
    pub fn run(
        &self,
        compiled: &mut dyn Compiled,
        id: &str,
        schema: &str,
        Wanted { count, budget }: Wanted,
        mask: &mut [u32],
    ) -> Result<Option<Generated>> {
        let rng = &mut seeded(id);
        let schema: Value = serde_json::from_str(schema)?;
        let Ok(judge) = jsonschema::options().should_validate_formats(true).build(&schema) else {
            return Ok(None);
        };
        let names = self.required_names(&schema)?;
        let over_budget = budget.map(|_| 0);
        let mut generated = Generated { over_budget, ..Generated::default() };
        for _ in 0..count {
            let (mut sequence, tokens) = match budget {
                None => (compiled.start()?, u64::MAX),
                Some(budget) => match compiled.start_within(budget)? {
                    Some(started) => started,
                    None => break,
                },
            };
            let end = End { tokens, budgeted: budget.is_some() };
            match self.document(&mut *sequence, &names, rng, mask, end)? {
                Outcome::OverBudget => {
                    generated.over_budget = generated.over_budget.map(|n| n + 1);
                    generated.n += 1;
                }
                Outcome::Complete(bytes) => {
                    let verdict = judge_text(&judge, &bytes);
                    if verdict.is_err() && has_long_number(&bytes) {
                        // The judge reads numbers as floats: it cannot tell.
                        continue;
                    }
                    if let Err(reason) = &verdict {
                        let text = String::from_utf8_lossy(&bytes).replace(char::is_control, " ");
                        let text: String = text.chars().take(300).collect();
                        eprintln!("\ninvalid document of {id}: {reason}: {text}");
                    }
                    generated.invalid += usize::from(verdict.is_err());
                    generated.n += 1;
                }
                Outcome::Stuck => {
                    generated.dead_ends += 1;
                    generated.n += 1;
                }
                Outcome::GivenUp => {}
            }
        }
        Ok(Some(generated))
    }

    fn document(
        &self,
        sequence: &mut dyn Sequence,
        names: &[Vec<u32>],
        rng: &mut fastrand::Rng,
        mask: &mut [u32],
        end: End,
    ) -> Result<Outcome> {
        let mut bytes: Vec<u8> = Vec::new();
        // Tokens of a name that is being tried, the next one last.
        let mut name: Vec<u32> = Vec::new();
        for step in 0..TOKENS_MAX {
            // The end token counts.
            if step as u64 >= end.tokens {
                return Ok(Outcome::OverBudget);
            }
            sequence.fill(mask)?;
            // With a budget documents end by themselves; nothing but that is to be tested.
            let hurry = !end.budgeted && rng.usize(..TOKENS_CALM) < step;
            let stop = sequence.can_stop()?;
            if stop && (hurry || (!end.budgeted && rng.u8(..4) == 0)) {
                return Ok(Outcome::Complete(bytes));
            }
            if !names.is_empty() && wants_key(&bytes) {
                name.clone_from(&names[rng.usize(..names.len())]);
            }
            let tried = name.pop().filter(|&token| is_set(mask, token));
            let drawn = match tried {
                Some(token) => Some(token),
                None => {
                    name.clear();
                    self.draw(mask, hurry, rng)
                }
            };
            let Some(token) = drawn else {
                return Ok(if stop { Outcome::Complete(bytes) } else { Outcome::Stuck });
            };
            sequence.accept(token)?;
            bytes.extend(self.tokens.bytes(token));
        }
        Ok(Outcome::GivenUp)
    }

    /// A text token of the mask: any one, or one of those that help most to end.
    fn draw(&self, mask: &[u32], hurry: bool, rng: &mut fastrand::Rng) -> Option<u32> {
        let mut best = if hurry { Closing::Space } else { Closing::Text };
        let mut candidates = Vec::new();
        for token in set_bits(mask) {
            let closing = *self.closing.get(token as usize).unwrap_or(&Closing::Special);
            if hurry && closing < best {
                best = closing;
                candidates.clear();
            }
            if closing == best || (!hurry && closing < best) {
                candidates.push(token);
            }
        }
        if candidates.is_empty() {
            candidates.extend(set_bits(mask).filter(|&token| self.is_text(token)));
        }
        (!candidates.is_empty()).then(|| candidates[rng.usize(..candidates.len())])
    }

    fn is_text(&self, token: u32) -> bool {
        self.closing.get(token as usize).is_some_and(|&closing| closing != Closing::Special)
    }

    /// The tokens of the names in all `required` of a schema, last token first, with the quote that
    /// ends them.
    fn required_names(&self, schema: &Value) -> Result<Vec<Vec<u32>>> {
        let mut names = Vec::new();
        let mut values = vec![schema];
        while let Some(value) = values.pop() {
            if let Some(Value::Array(required)) = value.get("required") {
                names.extend(required.iter().filter_map(Value::as_str));
            }
            match value {
                Value::Object(members) => values.extend(members.values()),
                Value::Array(items) => values.extend(items),
                _ => {}
            }
        }
        names.sort_unstable();
        names.dedup();
        let spell = |name: &str| {
            let spelled = serde_json::to_string(name)?;
            let mut tokens = self.tokens.encode(&spelled[1..])?;
            tokens.reverse();
            Ok(tokens)
        };
        names.into_iter().map(spell).collect()
    }
}

/// The same random documents for the same case, every time.
fn seeded(id: &str) -> fastrand::Rng {
    let mix = |seed: u64, byte: u8| (seed ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    fastrand::Rng::with_seed(id.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
}

/// Why a text is not a valid document.
fn judge_text(judge: &jsonschema::Validator, text: &[u8]) -> Result<(), String> {
    let document: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    judge.validate(&document).map_err(|error| error.to_string().chars().take(200).collect())
}

/// Whether a number of the text may have more digits than a float.
fn has_long_number(text: &[u8]) -> bool {
    let numbers = text.split(|byte| !matches!(byte, b'0'..=b'9' | b'.'));
    numbers.into_iter().any(|digits| digits.len() > 15)
}

/// Whether the text ends in the opening quote of what may be a key.
fn wants_key(text: &[u8]) -> bool {
    let Some(before) = text.strip_suffix(b"\"") else { return false };
    matches!(before.trim_ascii_end().last(), Some(b'{' | b','))
}

fn closing(bytes: &[u8]) -> Closing {
    match bytes {
        [] => Closing::Special,
        [b'}' | b']', ..] => Closing::Bracket,
        [b'"'] => Closing::Quote,
        _ if bytes.trim_ascii().is_empty() => Closing::Space,
        [b'{' | b'[' | b'\\'] => Closing::Text,
        [_] => Closing::Byte,
        _ => Closing::Text,
    }
}

fn is_set(mask: &[u32], token: u32) -> bool {
    mask.get(token as usize / 32).is_some_and(|word| word >> (token % 32) & 1 == 1)
}

fn set_bits(mask: &[u32]) -> impl Iterator<Item = u32> {
    mask.iter().zip((0..).step_by(32)).flat_map(|(&word, first)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros())?;
            rest &= rest - 1;
            Some(first + bit)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits() {
        assert_eq!(set_bits(&[0b101, 0, 1 << 31]).collect::<Vec<_>>(), [0, 2, 95]);
        assert!(is_set(&[0, 2], 33) && !is_set(&[0, 2], 32) && !is_set(&[0, 2], 64));
    }

    #[test]
    fn long_numbers() {
        assert!(has_long_number(b"[1, 1234567890123456]") && has_long_number(b"0.12345678901234"));
        assert!(!has_long_number(b"[123456789012345,1e99]") && !has_long_number(b"{}"));
    }

    #[test]
    fn keys() {
        assert!(wants_key(b"{\"") && wants_key(b"{\"a\": 1, \""));
        assert!(!wants_key(b"{\"a") && !wants_key(b"[\"") && !wants_key(b"\"") && !wants_key(b""));
    }

    #[test]
    fn what_closes() {
        assert!(closing(b"}") == Closing::Bracket && closing(b"\"") == Closing::Quote);
        assert!(closing(b"a") == Closing::Byte && closing(b"[") == Closing::Text);
        assert!(closing(b" \n") == Closing::Space && closing(b"") == Closing::Special);
    }
}
