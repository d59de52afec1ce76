//! How do I use the matcher without the decoding loop: masks, going back, going two ways?
//!
//! This is what an engine with its own loop needs. `cargo run --example rollback_fork --no-default-features`

use constrain::model::{Model, scripted::ScriptedModel};
use constrain::{Constraint, Matcher, Vocabulary, schema};

fn main() -> constrain::Result<()> {
    let schema = r#"{"type": "object", "properties": {"ok": {"type": "boolean"}},
        "required": ["ok"], "additionalProperties": false}"#;
    let grammar = schema::compile(schema, &schema::Options::default())?;
    let model = ScriptedModel::noise(0);
    let constraint = Constraint::new(&grammar, model.vocabulary())?;

    let mut matcher = constraint.matcher();
    matcher.accept_bytes(br#"{"ok": "#)?;
    show("after {\"ok\": ", &mut matcher, model.vocabulary())?;

    // A token that the mask forbids is refused, and nothing has changed.
    let quote = model.tokenize("\"", false)?[0];
    assert!(matcher.accept(quote).is_err());

    // Two continuations side by side: a fork is a small copy.
    let mut other = matcher.fork();
    matcher.accept_bytes(b"true}")?;
    other.accept_bytes(b"fal")?;
    show("one way, true}", &mut matcher, model.vocabulary())?;
    show("the other, fal", &mut other, model.vocabulary())?;
    assert!(matcher.can_stop() && !other.can_stop());

    // Back by one step, as after a rejected draft, and on.
    matcher.rollback(1)?;
    matcher.accept_bytes(b"false}")?;
    assert!(matcher.can_stop());
    println!("went back and took the other way too");
    Ok(())
}

/// Prints what may come next.
fn show(title: &str, matcher: &mut Matcher, vocabulary: &Vocabulary) -> constrain::Result<()> {
    let mut words = vec![0_u32; vocabulary.len().div_ceil(32)];
    matcher.fill_bitmask(&mut words)?;
    let allowed = |id: &u32| words[*id as usize / 32] >> (id % 32) & 1 == 1;
    let names = (0..vocabulary.len() as u32).filter(allowed).map(|id| match vocabulary.bytes(id) {
        Some(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
        None => "(end)".to_owned(),
    });
    println!("{title}: {}", names.collect::<Vec<_>>().join(" "));
    Ok(())
}
