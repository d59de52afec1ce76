//! How do I get values that are copied from the document, and where in it do they stand?
//!
//! Runs without any download: the model is a scripted one that adds a digit to an order number. It is held
//! to the document. `cargo run --example spans --no-default-features`

use constrain::decode::Decoder;
use constrain::extract::{Extractor, Options};
use constrain::model::{Model, scripted::ScriptedModel};

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "customer": {"type": "string", "x-constrain": {"span": true}, "maxLength": 40},
    "refund": {"type": ["string", "null"], "x-constrain": {"span": true}, "maxLength": 20},
    "order": {"type": "string", "x-constrain": {"span": true}, "pattern": "^[A-Z]{2}-[0-9]+$"}
  },
  "required": ["customer", "refund", "order"],
  "additionalProperties": false
}"#;

const DOCUMENT: &str = "Zo\u{eb} Ng wrote: I was charged twice for KX-204419. \
                        KX-204419 is the one that I want, thanks, Zo\u{eb} Ng";

fn main() -> constrain::Result<()> {
    let wish = r#"{"customer": "Zo\u00eb Ng", "refund": null, "order": "KX-2044190"}"#;
    let mut model = ScriptedModel::following(wish);

    // The schema is compiled once; each document brings its own pieces.
    let extractor = Extractor::new(model.vocabulary(), SCHEMA, Options::default())?;
    let found = extractor.extract(&mut Decoder::new(&mut model), DOCUMENT)?;
    println!("{}", found.value);

    for field in found.fields.iter().filter(|field| !field.spans.is_empty()) {
        for span in &field.spans {
            let mark = if span.best { "  <- the likeliest" } else { "" };
            let piece = &DOCUMENT[span.bytes.clone()];
            println!("{}: characters {:?}: {piece:?}{mark}", field.pointer, span.range);
        }
    }
    Ok(())
}
