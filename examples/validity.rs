//! Is every finished output valid? Schemas x seeds x temperatures on a real model, each judged by
//! an independent validator.
//!
//! `CONSTRAIN_MODEL=model.gguf cargo run --release --example validity -- [--seeds N] [--max-tokens N]
//! [SCHEMA.json...]`; the schemas of `schemas/` by default. Ends with status 1 if one is invalid.

use constrain::decode::{Decoder, FinishReason, Request};
use constrain::model::llama::{LlamaModel, LlamaOptions, LlamaWeights};
use constrain::model::{Message, Model, Role};
use constrain::sample::Settings;
use constrain::{Constraint, schema};
use std::path::PathBuf;
use std::time::Duration;

type Failure = Box<dyn std::error::Error>;

/// What the command line asks for.
struct Arguments {
    seeds: u64,
    max_tokens: usize,
    schemas: Vec<PathBuf>,
}

/// How the runs of a schema ended.
#[derive(Default)]
struct Tally {
    finished: usize,
    invalid: usize,
    truncated: usize,
    tokens: usize,
    mask_time: Duration,
    model_time: Duration,
}

fn main() -> Result<(), Failure> {
    let arguments = arguments()?;
    let path =
        std::env::var("CONSTRAIN_MODEL").map_err(|_| "set CONSTRAIN_MODEL to a GGUF file")?;
    let options = LlamaOptions { threads: Some(1), ..LlamaOptions::default() };
    let weights = LlamaWeights::load(path.as_ref(), &options)?;
    let mut model = LlamaModel::new(&weights, &options)?;
    let mut total = Tally::default();
    println!(
        "{:32} {:>8} {:>8} {:>9} {:>8} {:>8} {:>8}",
        "schema", "finished", "invalid", "truncated", "tokens", "µs/mask", "µs/model"
    );
    for path in &arguments.schemas {
        let tally = judge(&mut model, path, &arguments)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        print(&name, &tally);
        total.finished += tally.finished;
        total.invalid += tally.invalid;
        total.truncated += tally.truncated;
        total.tokens += tally.tokens;
        total.mask_time += tally.mask_time;
        total.model_time += tally.model_time;
    }
    print("all", &total);
    if total.invalid > 0 {
        std::process::exit(1);
    }
    Ok(())
}

fn print(name: &str, tally: &Tally) {
    let Tally { finished, invalid, truncated, tokens, .. } = tally;
    let per_token = |time: Duration| time.as_secs_f64() * 1e6 / (*tokens).max(1) as f64;
    let (mask, model) = (per_token(tally.mask_time), per_token(tally.model_time));
    println!(
        "{name:32} {finished:>8} {invalid:>8} {truncated:>9} {tokens:>8} {mask:>8.1} {model:>8.0}"
    );
}

/// Runs one schema with all seeds and temperatures.
fn judge(
    model: &mut LlamaModel<'_>,
    path: &PathBuf,
    arguments: &Arguments,
) -> Result<Tally, Failure> {
    let text = std::fs::read_to_string(path)?;
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(&serde_json::from_str(&text)?)
        .map_err(|error| error.to_string())?;
    let grammar = schema::compile(&text, &schema::Options::default())?;
    let constraint = Constraint::new(&grammar, model.vocabulary())?;
    let question = format!("Invent an example as JSON. Schema: {text}");
    let prompt = model.chat(&[Message::new(Role::User, question)])?;
    let mut decoder = Decoder::new(model);
    let mut tally = Tally::default();
    for temperature in [0.0, 0.7, 1.5] {
        // At temperature 0 the seed changes nothing.
        let seeds = if temperature == 0.0 { 1 } else { arguments.seeds };
        for seed in 0..seeds {
            let mut request = Request::new(prompt.tokens.clone())
                .constrained(constraint.clone())
                .with(Settings { seed, ..Settings::drawing(temperature) });
            request.max_tokens = arguments.max_tokens;
            let outcome = decoder.run(&request)?;
            tally.tokens += outcome.tokens.len();
            tally.mask_time += outcome.statistics.mask_time;
            tally.model_time += outcome.statistics.model_time;
            if outcome.finish != FinishReason::Complete {
                tally.truncated += 1;
                continue;
            }
            tally.finished += 1;
            let valid = serde_json::from_slice(&outcome.bytes)
                .is_ok_and(|value| validator.is_valid(&value));
            if !valid {
                tally.invalid += 1;
                println!(
                    "INVALID ({}, seed {seed}, temperature {temperature}): {}",
                    path.display(),
                    outcome.text()
                );
            }
        }
    }
    Ok(tally)
}

fn arguments() -> Result<Arguments, Failure> {
    let mut found = Arguments { seeds: 25, max_tokens: 400, schemas: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().ok_or("a number is missing");
        match word.as_str() {
            "--seeds" => found.seeds = number()?.parse()?,
            "--max-tokens" => found.max_tokens = number()?.parse()?,
            _ => found.schemas.push(word.into()),
        }
    }
    if found.schemas.is_empty() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        for entry in std::fs::read_dir(folder)? {
            found.schemas.push(entry?.path());
        }
        found.schemas.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        found.schemas.sort();
    }
    Ok(found)
}
