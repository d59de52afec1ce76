//! How do I get output that satisfies a JSON Schema?
//!
//! Runs without any download: the model is a scripted one that wants to say something else, and is
//! held to the schema. `cargo run --example quickstart --no-default-features`

use constrain::decode::{Decoder, Request};
use constrain::model::{Message, Model, Role, scripted::ScriptedModel};
use constrain::{Constraint, schema};

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "name": {"type": "string", "maxLength": 20},
    "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "mood": {"enum": ["calm", "busy"]}
  },
  "required": ["name", "age", "mood"],
  "additionalProperties": false
}"#;

fn main() -> constrain::Result<()> {
    // 1. The schema becomes a grammar, and with the model's vocabulary a constraint.
    let grammar = schema::compile(SCHEMA, &schema::Options::default())?;
    // This model means to answer with prose around its JSON and with an age out of range.
    let wish = r#"Sure! {"name": "Ada", "age": 1815, "mood": "busy"} Anything else?"#;
    let mut model = ScriptedModel::following(wish);
    let constraint = Constraint::new(&grammar, model.vocabulary())?;

    // 2. A prompt in the model's own chat format.
    let prompt = model.chat(&[Message::new(Role::User, "Who are you?")])?;

    // 3. Decode: every token is chosen among those that can still lead to a valid document.
    let request = Request::new(prompt.tokens).constrained(constraint);
    let outcome = Decoder::new(&mut model).run(&request)?;
    println!("{}", outcome.text());
    eprintln!(
        "{} after {} tokens, {:?} per mask",
        outcome.finish,
        outcome.statistics.tokens,
        outcome.statistics.mask_time_per_token()
    );
    Ok(())
}
