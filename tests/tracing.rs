//! The spans of the feature `tracing`, as a subscriber sees them.
//!
//! A program of its own with a single test: a place in the code that is first reached by a thread
//! without subscriber, while another thread has the only one, is switched off for both.
#![cfg(feature = "tracing")]

use constrain::decode::{Decoder, Request};
use constrain::error::Result;
use constrain::model::Model;
use constrain::model::scripted::ScriptedModel;
use constrain::{Constraint, Grammar, schema, serve};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// A span, as a subscriber sees it.
#[derive(Debug, Default, Clone)]
struct Seen {
    name: &'static str,
    fields: BTreeMap<&'static str, String>,
    entered: usize,
}

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

#[derive(Default, Clone)]
struct Notes(Arc<Mutex<Vec<Seen>>>);

impl Notes {
    fn with(&self, id: &Id, work: impl FnOnce(&mut Seen)) {
        let mut seen = self.0.lock().expect("no panic");
        work(&mut seen[id.into_u64() as usize - 1]);
    }

    /// The spans of a name.
    fn named(&self, name: &str) -> Vec<Seen> {
        let seen = self.0.lock().expect("no panic");
        seen.iter().filter(|span| span.name == name).cloned().collect()
    }
}

impl Subscriber for Notes {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut new = Seen { name: span.metadata().name(), ..Seen::default() };
        span.record(&mut new);
        let mut seen = self.0.lock().expect("no panic");
        seen.push(new);
        Id::from_u64(seen.len() as u64)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        self.with(id, |span| values.record(span));
    }

    fn enter(&self, id: &Id) {
        self.with(id, |span| span.entered += 1);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn exit(&self, _: &Id) {}
}

/// A subscriber sees the spans of the table with all of their fields, whoever runs the request.
#[test]
fn a_subscriber_sees_all_spans_and_their_fields() -> Result<()> {
    let notes = Notes::default();
    tracing::subscriber::with_default(notes.clone(), || -> Result<()> {
        let mut model = ScriptedModel::following("[1, 2]");
        let grammar = Grammar::from_schema(
            r#"{"type": "array", "items": {"type": "integer"}}"#,
            &schema::Options::default(),
        )?;
        let constraint = Constraint::new(&grammar, model.vocabulary())?;
        let prompt = model.plain("two numbers")?.tokens;
        let request = Request::new(prompt).constrained(constraint);
        let outcome = Decoder::new(&mut model).run(&request)?;
        let (client, scheduler) = serve::channel(serve::Options::default());
        let tickets = [client.submit(request.clone())?, client.submit(request.clone())?];
        drop(client);
        let stats = scheduler.run(&mut model)?;
        for ticket in tickets {
            ticket.wait()?;
        }
        let passes = notes.named("pass");
        assert_eq!(passes.len() as u64, stats.passes);
        assert!(passes.iter().all(|pass| pass.entered == 1 && pass.fields["entries"] != "0"));
        let compiled = notes.named("compile");
        assert_eq!((compiled.len(), compiled[0].entered), (1, 1));
        let (alone, together) = (notes.named("decode"), notes.named("request"));
        assert_eq!((alone.len(), together.len()), (1, 2));
        for span in alone.iter().chain(&together) {
            assert_eq!(span.fields["prompt_tokens"], request.prompt.len().to_string());
            assert_eq!(span.fields["tokens"], outcome.tokens.len().to_string());
            assert_eq!(span.fields["finish"], "\"complete\"");
        }
        Ok(())
    })
}
