//! A batch in some forty lines: documents go through a scheduler, so many at a time, and come out in order.
//!
//! ```text
//! cargo run --example batch
//! ```
//!
//! `constrain extract` does the same with a journal, long documents and error rows.

use constrain::decode::Request;
use constrain::extract::{Extractor, Options};
use constrain::model::scripted::ScriptedModel;
use constrain::serve::{self, Client, Ticket};
use constrain::{Error, Result};
use std::collections::VecDeque;

const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "topic": {"enum": ["delivery", "payment", "product", "other"]},
        "urgent": {"type": "boolean"}
    },
    "required": ["topic", "urgent"],
    "additionalProperties": false
}"#;

/// Documents on their way.
const WINDOW: usize = 8;

fn main() -> Result<()> {
    let (client, scheduler) = serve::channel(serve::Options::default());
    // A real model is made here too: on the thread that runs it.
    let model = std::thread::spawn(move || scheduler.run(&mut ScriptedModel::noise(11)));
    let documents = (1..=30).map(|n| format!("Message {n}: where is my parcel?"));
    let counted = batch(client, documents);
    let stats =
        model.join().unwrap_or_else(|_| Err(Error::from(std::io::Error::other("a panic"))))?;
    eprintln!("{} rows, {} passes for {} tokens", counted?, stats.passes, stats.tokens);
    Ok(())
}

/// Prints the value of each document, in their order.
fn batch(client: Client, documents: impl Iterator<Item = String>) -> Result<usize> {
    let vocabulary = client.ask(|model| model.vocabulary().clone())?;
    let extractor = Extractor::new(&vocabulary, SCHEMA, Options::default())?;
    let (mut queue, mut count) = (VecDeque::new(), 0);
    for document in documents {
        if queue.len() == WINDOW {
            count += print(&extractor, queue.pop_front())?;
        }
        queue.push_back(client.submit_document(&extractor, &document)?);
    }
    while !queue.is_empty() {
        count += print(&extractor, queue.pop_front())?;
    }
    Ok(count)
}

fn print(extractor: &Extractor, job: Option<(Request, Ticket)>) -> Result<usize> {
    let Some((request, ticket)) = job else { return Ok(0) };
    println!("{}", extractor.read(&request, &ticket.wait()?)?.value);
    Ok(1)
}
