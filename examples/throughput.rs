//! How much is gained by serving requests together, and what the rest is made of.
//!
//! ```text
//! cargo run --release --example throughput -- MODEL.gguf [REQUESTS [SEQUENCES [THREADS]]]
//! ```
//!
//! The same requests one after the other, and together on some sequences; and the ceiling: all sequences busy all the time, as fast
//! as llama.cpp computes them in batches, without masks, sampling or text. Towards the end of the requests, some sequences
//! are idle, which the ceiling does not know.

use constrain::decode::{Decoder, Request};
use constrain::model::llama::{LlamaModel, LlamaOptions, LlamaWeights};
use constrain::model::{Batch, Message, Model, Role};
use constrain::sample::Settings;
use constrain::serve::{self, Options};
use constrain::{Constraint, Error, Grammar, schema};
use std::time::{Duration, Instant};

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 40},
        "category": {"enum": ["book", "food", "tool", "toy", "garment"]},
        "price": {"type": "number", "minimum": 0, "maximum": 1000},
        "in_stock": {"type": "boolean"},
        "description": {"type": "string", "minLength": 60, "maxLength": 120}
    },
    "required": ["name", "category", "price", "in_stock", "description"],
    "additionalProperties": false
}"#;

/// Tokens, and the time after the prompts.
struct Speed(usize, Duration);

impl Speed {
    fn per_second(&self) -> f64 {
        self.0 as f64 / self.1.as_secs_f64()
    }
}

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(path) = args.first() else {
        eprintln!("usage: throughput MODEL.gguf [REQUESTS [SEQUENCES [THREADS]]]");
        return Ok(());
    };
    let number = |at: usize| args.get(at).and_then(|text| text.parse().ok());
    let count: usize = number(1).unwrap_or(32);
    let sequences = number(2).unwrap_or(16);
    let options = LlamaOptions {
        sequences,
        context_len: Some(1024),
        threads: number(3),
        ..LlamaOptions::default()
    };
    let weights = LlamaWeights::load(path.as_ref(), &options)?;
    let mut model = LlamaModel::new(&weights, &options)?;
    let requests = requests(&model, count)?;

    let (alone, texts) = one_after_the_other(&mut model, &requests)?;
    println!("one after the other   {:7.1} tokens/s", alone.per_second());
    let ceiling = ceiling(&mut model, &requests[..sequences.min(count)], alone.0 / count)?;
    let times = ceiling.per_second() / alone.per_second();
    println!(
        "ceiling, {sequences:3} together  {:7.1} tokens/s  {times:.2} times",
        ceiling.per_second()
    );

    let (client, scheduler) = serve::channel(Options::default());
    let tickets: Vec<_> =
        requests.into_iter().map(|r| client.submit(r)).collect::<Result<_, _>>()?;
    drop(client);
    let clock = Instant::now();
    let stats = scheduler.run(&mut model)?;
    let all = clock.elapsed();
    let mut equal = 0;
    let mut slowest_prompt = Duration::ZERO;
    for (ticket, text) in tickets.into_iter().zip(&texts) {
        let outcome = ticket.wait()?;
        equal += usize::from(outcome.text() == *text);
        slowest_prompt = slowest_prompt.max(outcome.statistics.prompt_time);
    }
    let together = Speed(stats.tokens as usize, all.saturating_sub(slowest_prompt));
    let times = together.per_second() / alone.per_second();
    println!(
        "{sequences:3} together           {:7.1} tokens/s  {times:.2} times",
        together.per_second()
    );
    println!("not the model's: {:.2} % of {all:.1?}; {stats:?}", stats.overhead() * 100.0);
    println!("{equal} of {count} texts are those of one after the other");
    Ok(())
}

fn requests(model: &dyn Model, count: usize) -> Result<Vec<Request>, Error> {
    let grammar = Grammar::from_schema(SCHEMA, &schema::Options::default())?;
    let constraint = Constraint::new(&grammar, model.vocabulary())?;
    (0..count as u64)
        .map(|seed| {
            let text = format!("Invent product number {seed} of a shop, with a long description.");
            let prompt = model.chat(&[Message::new(Role::User, text)])?.tokens;
            let settings = Settings { seed, ..Settings::drawing(0.7) };
            Ok(Request::new(prompt).constrained(constraint.clone()).with(settings))
        })
        .collect()
}

fn one_after_the_other(
    model: &mut LlamaModel<'_>,
    requests: &[Request],
) -> Result<(Speed, Vec<String>), Error> {
    let (mut speed, mut texts) = (Speed(0, Duration::ZERO), Vec::new());
    let mut decoder = Decoder::new(model);
    for request in requests {
        let outcome = decoder.run(request)?;
        speed.0 += outcome.tokens.len();
        speed.1 += outcome.statistics.total_time - outcome.statistics.prompt_time;
        texts.push(outcome.text());
    }
    Ok((speed, texts))
}

/// As many sequences with a token each per pass as llama.cpp can.
fn ceiling(model: &mut dyn Model, requests: &[Request], passes: usize) -> Result<Speed, Error> {
    for (sequence, request) in (0..).zip(requests) {
        model.truncate(sequence, 0)?;
        model.eval(&Batch::prompt(sequence, &request.prompt))?;
    }
    let clock = Instant::now();
    for pass in 0..passes {
        let mut batch = Batch::new();
        for sequence in 0..requests.len() {
            batch.push((1000 + pass * 17 + sequence) as u32 % 40_000, sequence as u32, true);
        }
        model.eval(&batch)?;
    }
    Ok(Speed(passes * requests.len(), clock.elapsed()))
}
