//! How do I constrain a real model?
//!
//! `cargo run --release --example llama -- model.gguf [schema.json [prompt]]`; without a schema the
//! model answers freely.

use constrain::decode::{Decoder, Request};
use constrain::model::llama::{LlamaModel, LlamaOptions, LlamaWeights};
use constrain::model::{Message, Model, Role};
use constrain::sample::{Preset, Settings};
use constrain::{Constraint, schema};
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: llama MODEL.gguf [SCHEMA.json [PROMPT]]")?;
    let schema = arguments.next().map(std::fs::read_to_string).transpose()?;
    let prompt = arguments.next().unwrap_or_else(|| "Invent a person.".to_owned());

    let options = LlamaOptions::default();
    let weights = LlamaWeights::load(path.as_ref(), &options)?;
    let mut model = LlamaModel::new(&weights, &options)?;

    let prompt = model.chat(&[Message::new(Role::User, prompt)])?;
    let mut request =
        Request::new(prompt.tokens).with(Settings { seed: 7, ..Preset::Chat.settings() });
    if let Some(schema) = schema {
        let grammar = schema::compile(&schema, &schema::Options::default())?;
        request = request.constrained(Constraint::new(&grammar, weights.vocabulary())?);
    }

    let mut stdout = std::io::stdout();
    let outcome = Decoder::new(&mut model).stream(&request, &mut |text| {
        // Text is shown as soon as it is certain; a closed pipe is no reason to panic.
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    })?;
    println!();
    eprintln!(
        "{}: {} tokens, {:.1} tokens/s, {:?} per mask",
        outcome.finish,
        outcome.statistics.tokens,
        outcome.statistics.tokens_per_second(),
        outcome.statistics.mask_time_per_token()
    );
    Ok(())
}
