//! The same tokens, computed in other ways: by how much do the logits differ?
//!
//! The tokens of a greedy run are put through the model once per way, and the logits after each of
//! them are compared: the largest difference, the places where another token would be the best, and
//! the first of them.

use super::CompareArgs;
use super::step::last_logits;
use crate::args::{FlashAttention, Verbosity};
use crate::input;
use crate::model::{self, Change, Loaded};
use crate::report::Failure;
use constrain::TokenId;
use constrain::model::{Batch, Message, Role};
use serde_json::{Value, json};

/// A way to compute: a change of the context, and tokens at a time.
struct Way {
    name: &'static str,
    change: Change,
    batch: usize,
}

/// The first is the one that the others are compared with.
fn ways() -> [Way; 5] {
    let way = |name, threads, flash, batch| {
        let change =
            Change { flash_attn: Some(flash), threads: Some(threads), ..Change::default() };
        Way { name, change, batch }
    };
    [
        way("flash attention, one thread, one token at a time", 1, FlashAttention::On, 1),
        way("flash attention, one thread, 8 tokens at a time", 1, FlashAttention::On, 8),
        way("flash attention, two threads, one token at a time", 2, FlashAttention::On, 1),
        way("no flash attention, one thread, one token at a time", 1, FlashAttention::Off, 1),
        way("no flash attention, one thread, 8 tokens at a time", 1, FlashAttention::Off, 8),
    ]
}

/// Runs `constrain lab kernels`.
pub fn run(args: &CompareArgs, verbosity: &Verbosity) -> Result<(), Failure> {
    let weights = model::load(&args.model, verbosity)?;
    let (prompt, output) = greedy(&weights, args)?;
    let mut base: Option<Vec<Vec<f32>>> = None;
    let mut rows: Vec<Value> = Vec::new();
    for way in ways() {
        let logits = compute(&weights, &way, (&prompt, &output))?;
        let base = base.get_or_insert_with(|| logits.clone());
        let found = compare(base, &logits);
        if !args.json {
            let flips = match found.first_flip {
                None => "the same best tokens".to_string(),
                Some(first) => {
                    format!("{} other best tokens, the first after {first}", found.flips)
                }
            };
            input::print(&format!("{:52} {:>8.4}  {flips}\n", way.name, found.largest))?;
        }
        rows.push(json!({
            "way": way.name,
            "largest_difference": found.largest,
            "other_best_tokens": found.flips,
            "first_after": found.first_flip,
        }));
    }
    match args.json {
        true => input::print(&format!("{:#}\n", json!({ "tokens": output.len(), "ways": rows }))),
        false => input::print(&format!(
            "largest difference of a logit over {} tokens, and where the best token differs\n",
            output.len()
        )),
    }
}

/// The prompt and the best tokens after it.
fn greedy(weights: &Loaded, args: &CompareArgs) -> Result<(Vec<TokenId>, Vec<TokenId>), Failure> {
    let mut model = weights.model(ways()[0].change)?;
    let prompt = model.chat(&[Message::new(Role::User, &args.prompt)])?.tokens;
    let room = model.context_len().saturating_sub(prompt.len());
    let mut output = Vec::new();
    let mut logits = last_logits(&mut *model, &prompt)?;
    for _ in 0..args.max_tokens.min(room) {
        let best = best(&logits);
        output.push(best);
        if model.vocabulary().is_end(best) {
            break;
        }
        model.eval(&Batch::prompt(0, &[best]))?;
        logits = model.logits(0)?.to_vec();
    }
    Ok((prompt, output))
}

/// The logits after each token of the output but the last.
fn compute(
    weights: &Loaded,
    way: &Way,
    (prompt, output): (&[TokenId], &[TokenId]),
) -> Result<Vec<Vec<f32>>, Failure> {
    let mut model = weights.model(way.change)?;
    let mut rows = vec![last_logits(&mut *model, prompt)?];
    let known = output.len().saturating_sub(1);
    for chunk in output[..known].chunks(way.batch) {
        let mut batch = Batch::new();
        let indices: Vec<usize> = chunk.iter().map(|&token| batch.push(token, 0, true)).collect();
        model.eval(&batch)?;
        for index in indices {
            rows.push(model.logits(index)?.to_vec());
        }
    }
    Ok(rows)
}

/// The lowest id with the largest logit.
fn best(row: &[f32]) -> TokenId {
    let ids = (0..).zip(row);
    ids.reduce(|best, next| if next.1 > best.1 { next } else { best }).map_or(0, |row| row.0)
}

#[derive(Debug, PartialEq)]
struct Difference {
    largest: f32,
    flips: usize,
    first_flip: Option<usize>,
}

fn compare(base: &[Vec<f32>], other: &[Vec<f32>]) -> Difference {
    let pairs = || base.iter().zip(other);
    let differences = pairs().flat_map(|(a, b)| a.iter().zip(b).map(|(a, b)| (a - b).abs()));
    let flips: Vec<usize> = pairs()
        .enumerate()
        .filter(|(_, (a, b))| best(a) != best(b))
        .map(|(place, _)| place)
        .collect();
    Difference {
        largest: differences.fold(0.0, f32::max),
        flips: flips.len(),
        first_flip: flips.first().copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_and_flips() {
        let base = vec![vec![1.0, 2.0], vec![3.0, 0.0], vec![0.0, 0.5]];
        let other = vec![vec![1.0, 2.0], vec![2.5, 0.25], vec![0.75, 0.5]];
        let found = compare(&base, &other);
        assert_eq!(found, Difference { largest: 0.75, flips: 1, first_flip: Some(2) });
        assert_eq!(best(&[1.0, 3.0, 3.0]), 1);
    }
}
