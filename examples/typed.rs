//! How do I get a struct out of a document, and how sure is the model of each field?
//!
//! `cargo run --example typed --no-default-features --features schemars` runs without any download: the
//! model is a scripted one. With the feature `llama` too, `CONSTRAIN_MODEL=model.gguf` names a real one.

use constrain::decode::Decoder;
use constrain::extract::{Answerer, Example, Extractor, Options};
use constrain::model::{Model, scripted::ScriptedModel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is wanted: doc comments tell the model what a field means.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Complaint {
    /// What the customer bought.
    product: String,
    kind: Kind,
    /// How many days the customer has waited; null if that is not said.
    days: Option<u16>,
    refund_wanted: bool,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Broken,
    Late,
    Other,
}

const DOCUMENT: &str = "The kettle came after nine days and leaks. I want my money back.";

fn main() -> constrain::Result<()> {
    #[cfg(feature = "llama")]
    if let Some(path) = std::env::var_os("CONSTRAIN_MODEL") {
        use constrain::model::llama::{LlamaModel, LlamaOptions, LlamaWeights};
        let options = LlamaOptions::default();
        let weights = LlamaWeights::load(path.as_ref(), &options)?;
        return extract(&mut LlamaModel::new(&weights, &options)?);
    }
    let answer = r#"{"product": "kettle", "kind": "broken", "days": 9, "refund_wanted": true}"#;
    extract(&mut ScriptedModel::following(answer))
}

fn extract(model: &mut dyn Model) -> constrain::Result<()> {
    // 1. Once: the schema of the type, compiled for the model's vocabulary, and an example that is
    //    checked against it.
    let shown = Complaint {
        product: "lamp".to_owned(),
        kind: Kind::Late,
        days: None,
        refund_wanted: false,
    };
    let options = Options {
        instruction: "What does this customer complain about?".to_owned(),
        examples: vec![Example::of("Where is the lamp that I ordered?", &shown)?],
        distributions: true,
        ..Options::default()
    };
    let extractor: Extractor<Complaint> = Extractor::typed(model.vocabulary(), options)?;

    // 2. Per document.
    let mut decoder = Decoder::new(model);
    let mut found = extractor.extract(&mut decoder, DOCUMENT)?;

    // 3. Fields that the model is unsure of are asked for again, alone; what stays weak is marked.
    extractor.again(&mut decoder, DOCUMENT, &mut found, (0.5, &Answerer::Alone))?;
    println!("{:#?}", found.value);

    for field in &found.fields {
        let Some(sure) = &field.sureness else { continue };
        eprint!("{:15} {:12} {:.3}", field.pointer, field.value.to_string(), sure.probability);
        eprint!("  the schema left {:.2}", sure.kept);
        for choice in &sure.choices {
            eprint!("  {} {:.3}", choice.value, choice.probability);
        }
        eprintln!("{}", if field.doubtful { "  doubtful" } else { "" });
    }
    for warning in &found.warnings {
        eprintln!("{}: the model wanted {:?}", warning.pointer, warning.wanted);
    }
    Ok(())
}
