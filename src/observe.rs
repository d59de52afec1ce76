//! What operators of a service see: spans (feature `tracing`) and metrics (feature `metrics`). Without the
//! features, nothing of this is compiled.
//!
//! | span | around | fields |
//! |---|---|---|
//! | `compile` | a constraint being compiled | |
//! | `decode` | a request on a `Decoder` | `prompt_tokens`, `tokens`, `finish` |
//! | `request` | a request on a `Scheduler`, from its sequence to its end | `prompt_tokens`, `tokens`, `finish` |
//! | `pass` | a pass of the model of a `Scheduler` | `entries` |
//!
//! | metric | kind | labels |
//! |---|---|---|
//! | `constrain_requests_total` | counter | `finish`: how a request ended, `error` if it did not |
//! | `constrain_prompt_tokens_total`, `constrain_tokens_total` | counter | |
//! | `constrain_request_seconds`, `constrain_mask_seconds` | histogram, per request | |
//! | `constrain_pass_seconds` | histogram, per pass of a `Scheduler` | |
//! | `constrain_running`, `constrain_waiting` | gauge of a `Scheduler` | |
//!
//! The names are part of the interface: they change with the version.

use std::time::Duration;

/// A part of the work.
pub(crate) struct Span {
    #[cfg(feature = "tracing")]
    span: tracing::Span,
}

impl Span {
    /// A constraint is compiled.
    pub fn compile() -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: tracing::debug_span!("compile"),
        }
    }

    /// A request runs alone.
    #[cfg_attr(not(feature = "tracing"), expect(unused_variables))]
    pub fn decode(prompt_tokens: usize) -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: tracing::info_span!(
                "decode",
                prompt_tokens,
                tokens = tracing::field::Empty,
                finish = tracing::field::Empty
            ),
        }
    }

    /// A request runs among others.
    #[cfg_attr(not(feature = "tracing"), expect(unused_variables))]
    pub fn request(prompt_tokens: usize) -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: tracing::info_span!(
                "request",
                prompt_tokens,
                tokens = tracing::field::Empty,
                finish = tracing::field::Empty
            ),
        }
    }

    /// The model computes.
    #[cfg_attr(not(feature = "tracing"), expect(unused_variables))]
    pub fn pass(entries: usize) -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: tracing::debug_span!("pass", entries),
        }
    }

    /// Does something within it.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        #[cfg(feature = "tracing")]
        let _entered = self.span.enter();
        work()
    }

    /// Notes how a request ended.
    #[cfg_attr(not(feature = "tracing"), expect(unused_variables))]
    pub fn ended(&self, ended: &Ended) {
        #[cfg(feature = "tracing")]
        {
            self.span.record("tokens", ended.tokens);
            self.span.record("finish", ended.finish);
        }
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "metrics"), expect(dead_code))]
pub(crate) struct Ended {
    /// The name of the reason, `error` for an error.
    pub finish: &'static str,
    pub prompt_tokens: usize,
    pub tokens: usize,
    pub mask_time: Duration,
    pub total_time: Duration,
}

/// Counts a request.
#[cfg_attr(not(feature = "metrics"), expect(unused_variables))]
pub(crate) fn count_request(ended: &Ended) {
    #[cfg(feature = "metrics")]
    {
        let Ended { finish, prompt_tokens, tokens, mask_time, total_time } = *ended;
        metrics::counter!("constrain_requests_total", "finish" => finish).increment(1);
        metrics::counter!("constrain_prompt_tokens_total").increment(prompt_tokens as u64);
        metrics::counter!("constrain_tokens_total").increment(tokens as u64);
        metrics::histogram!("constrain_request_seconds").record(total_time.as_secs_f64());
        metrics::histogram!("constrain_mask_seconds").record(mask_time.as_secs_f64());
    }
}

/// Counts a pass of a scheduler.
#[cfg_attr(not(feature = "metrics"), expect(unused_variables))]
pub(crate) fn count_pass(time: Duration) {
    #[cfg(feature = "metrics")]
    metrics::histogram!("constrain_pass_seconds").record(time.as_secs_f64());
}

/// Tells how much a scheduler has to do.
#[cfg_attr(not(feature = "metrics"), expect(unused_variables))]
pub(crate) fn gauge(running: usize, waiting: usize) {
    #[cfg(feature = "metrics")]
    {
        metrics::gauge!("constrain_running").set(running as f64);
        metrics::gauge!("constrain_waiting").set(waiting as f64);
    }
}

#[cfg(test)]
#[cfg(feature = "tracing")]
mod tests {
    use crate::decode::{Decoder, Request};
    use crate::error::Result;
    use crate::model::Model;
    use crate::model::scripted::ScriptedModel;
    use crate::{Constraint, Grammar, schema, serve};
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
}
