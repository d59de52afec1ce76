//! How do I show a value while it is being generated?
//!
//! `cargo run --example streaming --no-default-features` runs without any download. What is shown is never
//! taken back: a number appears when it is finished, a string grows.

use constrain::decode::Decoder;
use constrain::extract::{Event, Extractor, Options};
use constrain::model::{Model, scripted::ScriptedModel};

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "title": {"type": "string", "maxLength": 60},
    "rooms": {"type": "integer", "minimum": 1},
    "features": {"type": "array", "items": {"type": "string", "maxLength": 30}, "maxItems": 5}
  },
  "required": ["title", "rooms", "features"],
  "additionalProperties": false
}"#;

const ANSWER: &str = r#"{"title": "House by the café", "rooms": 12, "features": ["garden", "\u00fcber 80 m\u00b2"]}"#;

fn main() -> constrain::Result<()> {
    let mut model = ScriptedModel::following(ANSWER);
    let extractor = Extractor::new(model.vocabulary(), SCHEMA, Options::default())?;
    let mut decoder = Decoder::new(&mut model);
    let document = "For sale: a house of twelve rooms by the café, with a garden ...";
    let found = extractor.stream(&mut decoder, document, &mut |event, tracker| match event {
        Event::Started { pointer, kind } => println!("{pointer:13} begins: {kind:?}"),
        // Whole characters without escapes: ready for a screen.
        Event::Text { pointer, piece } => println!("{pointer:13} ... {piece}"),
        Event::Finished { pointer, value } => {
            println!("{pointer:13} = {value}");
            if let Some(partial) = tracker.partial() {
                println!("{:13} so far {partial}", "");
            }
        }
    })?;
    println!("{} after {} tokens", found.finish, found.statistics.tokens);
    Ok(())
}
