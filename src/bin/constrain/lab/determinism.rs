//! The same request, computed in other ways: where do the outputs part?
//!
//! Same settings, same machine, same seed: the same output. But floating-point sums depend on their
//! order, and that on the number of threads, on how many tokens go through the model at a time, on
//! the kernel. Each variation here changes one of these; where two tokens are almost equally likely,
//! the outputs then part.

use super::CompareArgs;
use crate::args::{FlashAttention, Verbosity};
use crate::compile::Form;
use crate::input;
use crate::model::{self, Change, Loaded};
use crate::report::Failure;
use constrain::decode::{Decoder, Drafts, Outcome, Request, Strategy};
use constrain::model::{Message, Role};
use serde_json::{Value, json};

/// A way to compute.
struct Way {
    name: &'static str,
    change: Change,
    /// Tokens of the prompt at a time; 0 is the default.
    chunk: usize,
    /// Several tokens of the output at a time.
    drafts: bool,
}

/// The first is the one that the others are compared with.
fn ways() -> [Way; 6] {
    let flash = |flag| Change { flash_attn: Some(flag), threads: Some(1), ..Change::default() };
    let on = flash(FlashAttention::On);
    let way = |name, change| Way { name, change, chunk: 0, drafts: false };
    [
        way("one thread, flash attention, one token at a time", on),
        way("the same again", on),
        way("two threads", Change { threads: Some(2), ..on }),
        Way { chunk: 7, ..way("the prompt in chunks of 7 instead of 64", on) },
        Way { drafts: true, ..way("several tokens at a time (drafts)", on) },
        way("without flash attention", flash(FlashAttention::Off)),
    ]
}

/// Runs `constrain lab determinism`.
pub fn run(args: &CompareArgs, verbosity: &Verbosity) -> Result<(), Failure> {
    let schema = args.schema.is_given().then(|| Form::read(&args.schema)).transpose()?;
    let grammar = schema.as_ref().map(Form::compile).transpose()?;
    let settings = super::settings(&args.filters, 0.0)?;
    let weights = model::load(&args.model, verbosity)?;
    let mut request = {
        let model = weights.model(Change::default())?;
        let prompt = model.chat(&[Message::new(Role::User, &args.prompt)])?.tokens;
        let mut request = Request::new(prompt).with(settings);
        if let (Some(schema), Some(grammar)) = (&schema, &grammar) {
            request.constraint = Some(schema.constraint(grammar, model.vocabulary())?);
        }
        request
    };
    request.max_tokens = args.max_tokens;
    request.settings.seed = args.seed;
    let mut first: Option<Outcome> = None;
    let mut rows: Vec<Value> = Vec::new();
    for way in ways() {
        let outcome = compute(&weights, &way, &request)?;
        let base = first.get_or_insert_with(|| outcome.clone());
        let parts = parting(base, &outcome);
        if !args.json {
            input::print(&format!("{:50} {}\n", way.name, describe(base, &outcome, parts)))?;
        }
        rows.push(json!({
            "way": way.name,
            "tokens": outcome.tokens.len(),
            "parts_at": parts,
            "text": outcome.text(),
        }));
    }
    match args.json {
        true => input::print(&format!("{:#}\n", json!({ "ways": rows }))),
        false => Ok(()),
    }
}

fn compute(weights: &Loaded, way: &Way, request: &Request) -> Result<Outcome, Failure> {
    let mut model = weights.model(way.change)?;
    let mut decoder = Decoder::new(&mut *model);
    if way.chunk > 0 {
        decoder = decoder.with_chunk(way.chunk);
    }
    let mut request = request.clone();
    if way.drafts {
        request.strategy = Strategy::Draft(Drafts { pays: 0.0, ..Drafts::default() });
    }
    Ok(decoder.run(&request)?)
}

/// The number of tokens after which two outputs differ; `None` if they do not.
fn parting(a: &Outcome, b: &Outcome) -> Option<usize> {
    let shared = a.tokens.iter().zip(&b.tokens).take_while(|(a, b)| a == b).count();
    (a.tokens != b.tokens).then_some(shared)
}

fn describe(base: &Outcome, outcome: &Outcome, parts: Option<usize>) -> String {
    match parts {
        None => format!("the same {} tokens", outcome.tokens.len()),
        Some(at) => {
            let (base, other) = (base.text(), outcome.text());
            let shared = base.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
            let rest = |text: &str| -> String {
                let start = (0..=shared).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
                text[start..].chars().take(20).collect()
            };
            format!("parts after {at} tokens: {:?} became {:?}", rest(&base), rest(&other))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use constrain::decode::FinishReason;

    #[test]
    fn outputs_part_where_their_tokens_do() {
        let outcome = |tokens: &[u32], text: &str| Outcome {
            bytes: text.as_bytes().to_vec(),
            tokens: tokens.to_vec(),
            finish: FinishReason::MaxTokens,
            log_probs: Vec::new(),
            statistics: Default::default(),
        };
        let base = outcome(&[1, 2, 3], "aé1");
        assert_eq!(parting(&base, &outcome(&[1, 2, 3], "aé1")), None);
        let other = outcome(&[1, 2, 4], "aè1");
        assert_eq!(parting(&base, &other), Some(2));
        assert_eq!(parting(&base, &outcome(&[1, 2], "aé")), Some(2));
        let words = describe(&base, &other, Some(2));
        assert_eq!(words, "parts after 2 tokens: \"é1\" became \"è1\"");
    }
}
