//! The extractor: a schema and a way of asking, made ready for a vocabulary.

use crate::constraint::Constraint;
use crate::decode::output::within;
use crate::decode::{Decoder, Outcome, Request};
use crate::error::{Error, Kind, Result};
use crate::expr::Document;
use crate::extract::prompt::Parts;
use crate::extract::{Event, Extraction, Options, Tracker, choices, read};
use crate::model::{Message, Model};
use crate::schema;
use crate::spans;
use crate::vocab::Vocabulary;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Extracts values of type `T` from documents. Immutable, `Send + Sync`; a clone copies a pointer.
pub struct Extractor<T = Value> {
    inner: Arc<Inner>,
    /// Makes values, holds none.
    value: PhantomData<fn() -> T>,
}

struct Inner {
    /// The text of the schema.
    schema: String,
    options: Options,
    constraint: Constraint,
    /// The schema, if values are to be pieces of the document that is at hand at the time.
    grounded: Option<Value>,
    parts: Parts,
}

impl<T> Clone for Extractor<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), value: PhantomData }
    }
}

impl<T> fmt::Debug for Extractor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extractor").field("constraint", self.constraint()).finish_non_exhaustive()
    }
}

impl Extractor<Value> {
    /// An extractor of JSON values that satisfy a schema.
    ///
    /// # Errors
    /// As [`Extractor::of`].
    pub fn new(vocabulary: &Vocabulary, schema: &str, options: Options) -> Result<Self> {
        Self::of(vocabulary, schema, options)
    }
}

impl<T: DeserializeOwned> Extractor<T> {
    /// An extractor of values of a type, by a schema that is written for it: what the schema allows must
    /// be what the type can hold.
    ///
    /// # Errors
    /// As [`schema::compile`] and [`Constraint::new`]; [`Kind::BadArgument`] for settings out of range
    /// and for an example whose answer the schema does not allow, with the place in the answer;
    /// [`Kind::BudgetTooSmall`] if no document has so few tokens.
    pub fn of(vocabulary: &Vocabulary, schema: &str, options: Options) -> Result<Self> {
        let known = options.schema.document.clone();
        let document = known.unwrap_or_else(Document::unknown);
        let constraint = compile(vocabulary, schema, &options, document)?;
        Self::with_constraint(constraint, schema, options)
    }

    /// The same with a constraint that was compiled before, or loaded, for this schema.
    ///
    /// # Errors
    /// As [`Extractor::of`].
    pub fn with_constraint(constraint: Constraint, schema: &str, options: Options) -> Result<Self> {
        options.settings.check()?;
        // Otherwise every single document would be refused.
        within(&constraint, options.max_tokens)?;
        let value = options.schema.document.is_none().then(|| serde_json::from_str(schema).ok());
        let grounded = value.flatten().filter(spans::has_spans);
        let matcher = |document: &str| match &grounded {
            None => Ok(constraint.matcher()),
            Some(_) => Ok(grounded_in(document, schema, &options, &constraint)?.matcher()),
        };
        let parts = Parts::new(schema, &options, &matcher)?;
        let inner = Inner { schema: schema.to_owned(), options, constraint, grounded, parts };
        Ok(Self { inner: Arc::new(inner), value: PhantomData })
    }

    /// The same extractor for another model's vocabulary.
    ///
    /// # Errors
    /// As [`Constraint::new`].
    pub fn for_vocabulary(&self, vocabulary: &Vocabulary) -> Result<Self> {
        Self::of(vocabulary, self.schema(), self.options().clone())
    }

    /// The conversation that asks for the data of a document.
    ///
    /// # Errors
    /// [`Kind::BadArgument`] if the template fails.
    pub fn messages(&self, document: &str) -> Result<Vec<Message>> {
        self.inner.parts.messages(document)
    }

    /// What is to be decoded for a document. Where the context has room for fewer tokens than the
    /// options allow, the answer is to be complete within those.
    ///
    /// # Errors
    /// As [`Extractor::messages`] and [`Model::chat`]; [`Kind::TooLarge`] if the prompt does not fit.
    pub fn request(&self, model: &dyn Model, document: &str) -> Result<Request> {
        self.request_of(model, &self.messages(document)?, document)
    }

    /// What is to be decoded for a conversation about a document.
    pub(crate) fn request_of(
        &self,
        model: &dyn Model,
        messages: &[Message],
        document: &str,
    ) -> Result<Request> {
        let prompt = model.chat(messages)?.tokens;
        let Options { settings, strategy, max_tokens, log_probs, .. } = self.options();
        let room = model.context_len().saturating_sub(prompt.len());
        Ok(Request {
            settings: settings.clone(),
            strategy: strategy.clone(),
            max_tokens: (*max_tokens).min(room.max(1)),
            log_probs: *log_probs,
            ..Request::new(prompt).constrained(self.constraint_for(document)?)
        })
    }

    /// The data in an outcome of such a request, wherever it was run.
    ///
    /// # Errors
    /// [`Kind::TooLarge`] if the outcome was cut; [`Kind::Syntax`] if the type cannot hold what the
    /// schema allows, with the pointer of the field where known.
    pub fn read(&self, request: &Request, outcome: &Outcome) -> Result<Extraction<T>> {
        read::extraction(self, request, outcome)
    }

    /// Asks the model for the data of a document.
    ///
    /// # Errors
    /// As [`Extractor::request`], [`Decoder::run`] and [`Extractor::read`].
    pub fn extract(&self, decoder: &mut Decoder<'_>, document: &str) -> Result<Extraction<T>> {
        let request = self.request(decoder.model(), document)?;
        let outcome = decoder.run(&request)?;
        self.finish(decoder, &request, &outcome)
    }

    /// Reads an outcome and, where the options say so, asks the model about the choices.
    fn finish(
        &self,
        decoder: &mut Decoder<'_>,
        request: &Request,
        outcome: &Outcome,
    ) -> Result<Extraction<T>> {
        let mut found = self.read(request, outcome)?;
        if self.options().distributions {
            self.weigh(decoder, (request, outcome), &mut found)?;
        }
        Ok(found)
    }

    /// Asks the model how probable each value of every field with few possible values is
    /// ([`Sureness::choices`](crate::extract::Sureness::choices)), in the outcome of a request, wherever it was
    /// run.
    ///
    /// # Errors
    /// As [`Decoder::score`]; [`Kind::Cancelled`] if the request was cancelled.
    pub fn weigh(
        &self,
        decoder: &mut Decoder<'_>,
        (request, outcome): (&Request, &Outcome),
        found: &mut Extraction<T>,
    ) -> Result<()> {
        let constraint = request.constraint.as_ref().unwrap_or(self.constraint());
        choices::weigh(decoder, constraint, (request, outcome), &mut found.fields)
    }

    /// As [`Extractor::extract`], and calls `sink` with what happens as soon as it is certain, and with
    /// the tracker, which has the value so far.
    ///
    /// # Errors
    /// As [`Extractor::extract`].
    pub fn stream(
        &self,
        decoder: &mut Decoder<'_>,
        document: &str,
        sink: &mut dyn FnMut(&Event, &Tracker),
    ) -> Result<Extraction<T>> {
        let request = self.request(decoder.model(), document)?;
        let mut tracker = Tracker::new();
        let mut failed = None;
        let outcome =
            decoder.stream(&request, &mut |piece| match tracker.push(piece.as_bytes()) {
                Ok(events) => events.iter().for_each(|event| sink(event, &tracker)),
                Err(error) => failed = failed.take().or(Some(error)),
            })?;
        match failed {
            Some(error) => return Err(error),
            None => tracker.finish()?.iter().for_each(|event| sink(event, &tracker)),
        }
        self.finish(decoder, &request, &outcome)
    }
}

impl<T> Extractor<T> {
    /// The constraint that holds every answer to the schema. Values that are to be pieces of a document
    /// may be any text here: which document it is [`Extractor::constraint_for`] knows.
    pub fn constraint(&self) -> &Constraint {
        &self.inner.constraint
    }

    /// The constraint that holds the answer about a document to the schema. It is compiled anew where the
    /// schema speaks of pieces of the document.
    ///
    /// # Errors
    /// As [`Extractor::of`]; [`Kind::TooLarge`] if the document is longer than the limits allow.
    pub fn constraint_for(&self, document: &str) -> Result<Constraint> {
        let Inner { schema, options, constraint, grounded, .. } = &*self.inner;
        match grounded {
            None => Ok(constraint.clone()),
            Some(_) => grounded_in(document, schema, options, constraint),
        }
    }

    /// The schema, if it speaks of pieces of the document that is at hand at the time.
    pub(crate) fn grounded(&self) -> Option<&Value> {
        self.inner.grounded.as_ref()
    }

    /// The text of the schema.
    pub fn schema(&self) -> &str {
        &self.inner.schema
    }

    /// The options.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }
}

/// The constraint of a schema about a document.
fn compile(
    vocabulary: &Vocabulary,
    schema: &str,
    options: &Options,
    document: Document,
) -> Result<Constraint> {
    let options = schema::Options { document: Some(document), ..options.schema.clone() };
    let grammar = schema::compile(schema, &options)?;
    Constraint::compile(Arc::new(grammar), vocabulary, options.cancel)
}

/// The same as `constraint` about a document.
fn grounded_in(
    text: &str,
    schema: &str,
    options: &Options,
    constraint: &Constraint,
) -> Result<Constraint> {
    let document = Document::within(text, &options.schema.limits)?;
    compile(constraint.vocabulary(), schema, options, document)
}

/// The error for an outcome that was cut.
pub(crate) fn cut(outcome: &Outcome) -> Error {
    let (tokens, finish) = (outcome.tokens.len(), outcome.finish);
    let message = format!("the answer is not complete after {tokens} tokens ({finish})");
    Error::new(Kind::TooLarge, message)
        .help("raise the maximum of tokens, or bound the lengths in the schema")
}
