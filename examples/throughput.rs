//! How much is gained by serving requests together, and what the rest is made of.
//!
//! ```text
//! cargo run --release --example throughput -- MODEL.gguf [REQUESTS [SEQUENCES [THREADS]]]
//! ```
//!
//! The same requests one after the other, and together on some sequences. Beside them, what llama.cpp computes without masks,
//! sampling or text: the very passes of the run together once more, and all sequences busy all the time. The second is a
//! ceiling that no schedule reaches, since prompts take time too and towards the end some sequences are idle.

use constrain::decode::{Decoder, Request};
use constrain::model::llama::{LlamaModel, LlamaOptions, LlamaWeights};
use constrain::model::{Batch, Message, Model, Prompt, Role, Sequence};
use constrain::sample::Settings;
use constrain::serve::{self, Options, Stats};
use constrain::{Constraint, Error, Grammar, TokenId, Vocabulary, schema};
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

/// Tokens that were generated, and the time, that of prompts included.
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
    let busy = &requests[..sequences.min(count)];
    let before = all_busy(&mut model, busy, alone.0 / count)?;
    let mut recorder = Recorder { model: &mut model, calls: Vec::new() };
    let (together, stats, equal) = together(&mut recorder, requests.clone(), &texts)?;
    let calls = recorder.calls;
    let again = Speed(together.0, repeat(&mut model, &calls)?);
    let after = all_busy(&mut model, busy, alone.0 / count)?;
    let ceiling = Speed(before.0 + after.0, before.1 + after.1);

    let print = |what: &str, speed: &Speed| {
        let times = speed.per_second() / alone.per_second();
        println!("{what:48}{:7.1} tokens/s  {times:.2} times", speed.per_second());
    };
    print("one after the other", &alone);
    print(&format!("on {sequences} sequences"), &together);
    print("the same passes, llama.cpp alone", &again);
    print("all sequences busy all the time, llama.cpp alone", &ceiling);
    println!("not the model's: {:.2} %; {stats:?}", stats.overhead() * 100.0);
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
        speed.1 += outcome.statistics.total_time;
        texts.push(outcome.text());
    }
    Ok((speed, texts))
}

/// All requests on the sequences of the model, and how many texts are the expected ones.
fn together(
    model: &mut dyn Model,
    requests: Vec<Request>,
    texts: &[String],
) -> Result<(Speed, Stats, usize), Error> {
    let (client, scheduler) = serve::channel(Options::default());
    let tickets: Vec<_> =
        requests.into_iter().map(|r| client.submit(r)).collect::<Result<_, _>>()?;
    drop(client);
    let clock = Instant::now();
    let stats = scheduler.run(model)?;
    let time = clock.elapsed();
    let mut equal = 0;
    for (ticket, text) in tickets.into_iter().zip(texts) {
        equal += usize::from(ticket.wait()?.text() == *text);
    }
    Ok((Speed(stats.tokens as usize, time), stats, equal))
}

/// As many sequences with a token each per pass as llama.cpp can.
fn all_busy(model: &mut dyn Model, requests: &[Request], passes: usize) -> Result<Speed, Error> {
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

/// What a scheduler asks of a model.
enum Call {
    Eval(Batch),
    Truncate(Sequence, usize),
    Copy(Sequence, Sequence),
}

/// A model that notes what is asked of it.
struct Recorder<'m, 'w> {
    model: &'m mut LlamaModel<'w>,
    calls: Vec<Call>,
}

/// The same calls once more; the time they took.
fn repeat(model: &mut dyn Model, calls: &[Call]) -> Result<Duration, Error> {
    let clock = Instant::now();
    for call in calls {
        match *call {
            Call::Eval(ref batch) => model.eval(batch)?,
            Call::Truncate(sequence, len) => model.truncate(sequence, len)?,
            Call::Copy(from, to) => model.copy(from, to)?,
        }
    }
    Ok(clock.elapsed())
}

impl Model for Recorder<'_, '_> {
    fn vocabulary(&self) -> &Vocabulary {
        self.model.vocabulary()
    }

    fn name(&self) -> String {
        self.model.name()
    }

    fn context_len(&self) -> usize {
        self.model.context_len()
    }

    fn max_sequences(&self) -> usize {
        self.model.max_sequences()
    }

    fn max_batch(&self) -> usize {
        self.model.max_batch()
    }

    fn sequence_len(&self, sequence: Sequence) -> usize {
        self.model.sequence_len(sequence)
    }

    fn eval(&mut self, batch: &Batch) -> Result<(), Error> {
        self.calls.push(Call::Eval(batch.clone()));
        self.model.eval(batch)
    }

    fn logits(&self, index: usize) -> Result<&[f32], Error> {
        self.model.logits(index)
    }

    fn truncate(&mut self, sequence: Sequence, len: usize) -> Result<(), Error> {
        self.calls.push(Call::Truncate(sequence, len));
        self.model.truncate(sequence, len)
    }

    fn copy(&mut self, from: Sequence, to: Sequence) -> Result<(), Error> {
        self.calls.push(Call::Copy(from, to));
        self.model.copy(from, to)
    }

    fn tokenize(&self, text: &str, special: bool) -> Result<Vec<TokenId>, Error> {
        self.model.tokenize(text, special)
    }

    fn chat(&self, messages: &[Message]) -> Result<Prompt, Error> {
        self.model.chat(messages)
    }
}
