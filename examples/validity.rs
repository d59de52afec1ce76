//! Is every finished output valid? Schemas x seeds x temperatures on a real model, each judged by
//! an independent validator.
//!
//! `CONSTRAIN_MODEL=model.gguf cargo run --release --example validity -- [--seeds N] [--temperature T]
//! [--max-tokens N | --budget F] [--strategies | --llama] [SCHEMA.json...]`; the schemas of `schemas/` by
//! default. `--budget 2` is a budget of twice the minimum of each schema. With `--strategies`, every strategy
//! runs each schema with each seed, instead of sampling at three temperatures (or the one that is given).
//! With `--llama`, llama.cpp's own grammar sampler runs them, by its own conversion of the schema: how
//! many of its documents are cut off by the same budget? Ends with status 1 if one of ours is invalid.

use constrain::decode::{
    Beam, Contrastive, Decoder, Drafts, FinishReason, Request, Shortlist, Source, Strategy,
    Verification,
};
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
    /// Times the minimum of each schema, in place of `max_tokens`.
    budget: Option<f64>,
    temperature: Option<f64>,
    strategies: bool,
    llama: bool,
    schemas: Vec<PathBuf>,
}

impl Arguments {
    /// The budget of a schema.
    fn tokens(&self, constraint: &Constraint) -> Result<usize, Failure> {
        let Some(factor) = self.budget else { return Ok(self.max_tokens) };
        Ok((constraint.min_tokens()? as f64 * factor).ceil() as usize)
    }
}

/// One way of running a schema: a strategy at a temperature, with so many seeds.
struct Way {
    name: String,
    strategy: Strategy,
    temperature: f64,
    seeds: u64,
}

/// How the runs of a schema ended.
#[derive(Default)]
struct Tally {
    finished: usize,
    invalid: usize,
    truncated: usize,
    tokens: usize,
    passes: usize,
    mask_time: Duration,
    model_time: Duration,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.finished += other.finished;
        self.invalid += other.invalid;
        self.truncated += other.truncated;
        self.tokens += other.tokens;
        self.passes += other.passes;
        self.mask_time += other.mask_time;
        self.model_time += other.model_time;
    }
}

fn main() -> Result<(), Failure> {
    let arguments = arguments()?;
    let path =
        std::env::var("CONSTRAIN_MODEL").map_err(|_| "set CONSTRAIN_MODEL to a GGUF file")?;
    if arguments.llama {
        return llama::run(path.as_ref(), &arguments);
    }
    // Beams need sequences; the model is its own drafting model and amateur.
    let options = LlamaOptions {
        threads: Some(1),
        context_len: Some(2048),
        sequences: if arguments.strategies { 4 } else { 1 },
        ..LlamaOptions::default()
    };
    let weights = LlamaWeights::load(path.as_ref(), &options)?;
    let mut model = LlamaModel::new(&weights, &options)?;
    let mut assistant = LlamaModel::new(&weights, &LlamaOptions { sequences: 1, ..options })?;
    let mut decoder = Decoder::new(&mut model).with_assistant(&mut assistant);
    let mut total = Tally::default();
    println!(
        "{:44} {:>8} {:>8} {:>9} {:>8} {:>8} {:>8} {:>8}",
        "schema", "finished", "invalid", "truncated", "tokens", "per pass", "µs/mask", "µs/model"
    );
    for way in ways(&arguments, decoder.model()) {
        let mut sum = Tally::default();
        for path in &arguments.schemas {
            let tally = judge(&mut decoder, path, &way, &arguments)?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            print(&format!("{name}, {}", way.name), &tally);
            sum.add(&tally);
        }
        print(&format!("all, {}", way.name), &sum);
        total.add(&sum);
    }
    print("all", &total);
    if total.invalid > 0 {
        std::process::exit(1);
    }
    Ok(())
}

/// The ways that each schema is run.
fn ways(arguments: &Arguments, model: &dyn Model) -> Vec<Way> {
    let seeds = arguments.seeds;
    let way = |name: &str, strategy: Strategy, temperature: f64| {
        // Without a draw the seed changes nothing.
        let draws = temperature > 0.0 && !matches!(strategy, Strategy::Beam(_));
        let seeds = if draws { seeds } else { 1 };
        Way { name: name.to_owned(), strategy, temperature, seeds }
    };
    if !arguments.strategies {
        let sample = |t: f64| way(&format!("temperature {t}"), Strategy::Sample, t);
        return match arguments.temperature {
            Some(temperature) => vec![sample(temperature)],
            None => [0.0, 0.7, 1.5].map(sample).into(),
        };
    }
    let drafts = |source| Strategy::Draft(Drafts::of(source));
    let shortlist = Some(Shortlist::frequent(model.vocabulary(), 4096, &[]));
    let rejection = Drafts {
        sources: vec![Source::Forced, Source::Lookup, Source::Model],
        verification: Verification::Rejection,
        shortlist,
        ..Drafts::default()
    };
    vec![
        way("sample", Strategy::Sample, 1.0),
        way("greedy", Strategy::Greedy, 0.0),
        way("beam", Strategy::Beam(Beam { width: 2, ..Beam::default() }), 1.0),
        way("contrastive", Strategy::Contrastive(Contrastive::default()), 1.0),
        way("lookup", drafts(Source::Lookup), 1.0),
        way("grammar", drafts(Source::Forced), 1.0),
        way("speculative", drafts(Source::Model), 1.0),
        way("all drafters, rejection rule", Strategy::Draft(rejection), 1.0),
    ]
}

fn print(name: &str, tally: &Tally) {
    let Tally { finished, invalid, truncated, tokens, passes, .. } = tally;
    let per_token = |time: Duration| time.as_secs_f64() * 1e6 / (*tokens).max(1) as f64;
    let (mask, model) = (per_token(tally.mask_time), per_token(tally.model_time));
    let per_pass = *tokens as f64 / (*passes).max(1) as f64;
    println!(
        "{name:44} {finished:>8} {invalid:>8} {truncated:>9} {tokens:>8} {per_pass:>8.2} \
         {mask:>8.1} {model:>8.0}"
    );
}

fn validator(schema: &str) -> Result<jsonschema::Validator, Failure> {
    let options = jsonschema::options().should_validate_formats(true);
    Ok(options.build(&serde_json::from_str(schema)?).map_err(|error| error.to_string())?)
}

fn question(schema: &str) -> Message {
    Message::new(Role::User, format!("Invent an example as JSON. Schema: {schema}"))
}

/// Runs one schema in one way with all its seeds.
fn judge(
    decoder: &mut Decoder<'_>,
    path: &PathBuf,
    way: &Way,
    arguments: &Arguments,
) -> Result<Tally, Failure> {
    let text = std::fs::read_to_string(path)?;
    let validator = validator(&text)?;
    let grammar = schema::compile(&text, &schema::Options::default())?;
    let constraint = Constraint::new(&grammar, decoder.model().vocabulary())?;
    let max_tokens = arguments.tokens(&constraint)?;
    let prompt = decoder.model().chat(&[question(&text)])?;
    let mut tally = Tally::default();
    for seed in 0..way.seeds {
        let request = Request {
            strategy: way.strategy.clone(),
            max_tokens,
            ..Request::new(prompt.tokens.clone())
                .constrained(constraint.clone())
                .with(Settings { seed, ..Settings::drawing(way.temperature) })
        };
        let outcome = decoder.run(&request)?;
        tally.tokens += outcome.tokens.len();
        tally.passes += outcome.statistics.passes;
        tally.mask_time += outcome.statistics.mask_time;
        tally.model_time += outcome.statistics.model_time;
        if outcome.finish != FinishReason::Complete {
            tally.truncated += 1;
            continue;
        }
        tally.finished += 1;
        let valid =
            serde_json::from_slice(&outcome.bytes).is_ok_and(|value| validator.is_valid(&value));
        if !valid {
            tally.invalid += 1;
            println!("INVALID ({}, {}, seed {seed}): {}", path.display(), way.name, outcome.text());
        }
    }
    Ok(tally)
}

fn arguments() -> Result<Arguments, Failure> {
    let mut found = Arguments {
        seeds: 25,
        max_tokens: 400,
        budget: None,
        temperature: None,
        strategies: false,
        llama: false,
        schemas: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().ok_or("a number is missing");
        match word.as_str() {
            "--seeds" => found.seeds = number()?.parse()?,
            "--strategies" => found.strategies = true,
            "--llama" => found.llama = true,
            "--budget" => found.budget = Some(number()?.parse()?),
            "--temperature" => found.temperature = Some(number()?.parse()?),
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

/// llama.cpp's own grammar sampler on the same task.
mod llama {
    use super::*;
    use llama_cpp_2::context::params::LlamaContextParams;
    use llama_cpp_2::llama_backend::LlamaBackend;
    use llama_cpp_2::llama_batch::LlamaBatch;
    use llama_cpp_2::model::params::LlamaModelParams;
    use llama_cpp_2::model::{LlamaChatMessage, LlamaModel as Weights};
    use llama_cpp_2::sampling::LlamaSampler;
    use llama_cpp_2::token::LlamaToken;
    use std::num::NonZeroU32;

    /// Tokens of the context.
    const CONTEXT: u32 = 2_048;

    /// Runs all schemas with all seeds.
    pub fn run(path: &std::path::Path, arguments: &Arguments) -> Result<(), Failure> {
        // Our loader reads the vocabulary, for the budget; it must be gone before llama.cpp begins anew.
        let vocabulary = {
            let weights = LlamaWeights::load(path, &LlamaOptions::default())?;
            weights.vocabulary().clone()
        };
        let backend = LlamaBackend {};
        let weights = Weights::load_from_file(
            &backend,
            path,
            &LlamaModelParams::default().with_n_gpu_layers(0),
        )?;
        let params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(CONTEXT))
            .with_n_threads(1)
            .with_n_threads_batch(1);
        let mut context = weights.new_context(&backend, params)?;
        let temperature = arguments.temperature.unwrap_or(1.2) as f32;
        let mut total = Tally::default();
        println!(
            "{:44} {:>8} {:>8} {:>9} {:>8}",
            "schema", "finished", "invalid", "truncated", "tokens"
        );
        for path in &arguments.schemas {
            let text = std::fs::read_to_string(path)?;
            let validator = validator(&text)?;
            let grammar = schema::compile(&text, &schema::Options::default())?;
            let most = arguments.tokens(&Constraint::new(&grammar, &vocabulary)?)?;
            let gbnf = llama_cpp_2::json_schema_to_grammar(&text)?;
            let template = weights.chat_template(None)?;
            let message = LlamaChatMessage::new("user".into(), question(&text).content)?;
            let prompt = weights.apply_chat_template(&template, &[message], true)?;
            let prompt = weights.vocab().tokenize(prompt.as_bytes(), true, true);
            let mut tally = Tally::default();
            for seed in 0..arguments.seeds {
                context.clear_kv_cache_seq(None, None, None)?;
                let mut sampler = LlamaSampler::chain_simple([
                    LlamaSampler::grammar(&weights, &gbnf, "root")?,
                    LlamaSampler::temp(temperature),
                    LlamaSampler::dist(seed as u32),
                ]);
                let (mut pending, mut said, mut document) = (prompt.clone(), 0, Vec::new());
                let mut batch = LlamaBatch::new(CONTEXT as usize, 1);
                let mut held = 0;
                // The end token counts, as it does for us.
                for _ in 0..most {
                    batch.clear();
                    for (i, &token) in pending.iter().enumerate() {
                        batch.add(token, held + i as i32, &[0], i + 1 == pending.len())?;
                    }
                    held += pending.len() as i32;
                    context.decode(&mut batch)?;
                    let token: LlamaToken = sampler.sample(&context, -1);
                    said += 1;
                    if weights.vocab().is_eog(token) {
                        tally.finished += 1;
                        break;
                    }
                    document.extend(weights.vocab().token_to_piece(token, false, None));
                    pending = vec![token];
                }
                tally.tokens += said;
                let valid =
                    serde_json::from_slice(&document).is_ok_and(|value| validator.is_valid(&value));
                tally.invalid += usize::from(!valid);
            }
            tally.truncated = arguments.seeds as usize - tally.finished;
            print_short(&path.file_stem().unwrap_or_default().to_string_lossy(), &tally);
            total.add(&tally);
        }
        print_short("all", &total);
        Ok(())
    }

    fn print_short(name: &str, tally: &Tally) {
        let Tally { finished, invalid, truncated, tokens, .. } = tally;
        println!("{name:44} {finished:>8} {invalid:>8} {truncated:>9} {tokens:>8}");
    }
}
