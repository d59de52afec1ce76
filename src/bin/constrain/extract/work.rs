//! One document after the other, many at a time: from its text to its row.
//!
//! The work is a window on the documents: so many are on their way, and rows are written in the order of the
//! input, when all before them are written.

use crate::ask::{Again, Ask};
use crate::extract::docs::Doc;
use crate::extract::route::{Router, Told};
use crate::raised::in_flags;
use crate::report::Failure;
use constrain::decode::{Outcome, Request};
use constrain::extract::{Chunk, Extraction, Extractor, FieldInfo, Merged, Origin, chunks, merge};
use constrain::model::Model;
use constrain::serve::{Client, Ticket};
use constrain::{Error, Kind};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often somebody looks whether the user wants to stop.
const GLANCE: Duration = Duration::from_millis(100);

/// Tokens that the prompt of a part may have more than its parts counted one by one.
const SLACK: usize = 16;

/// Whoever turns documents into values.
pub struct Worker<'a> {
    ask: &'a Ask,
    extractor: Extractor,
    client: Client,
    router: Option<Router<'a>>,
    limits: Limits,
    stop: &'static AtomicBool,
}

/// How long parts of documents may be, in tokens.
#[derive(Debug, Clone, Copy)]
struct Limits {
    most: usize,
    overlap: usize,
}

/// A document on its way.
struct Pending {
    doc: Doc,
    parts: Result<Vec<Part>, String>,
}

/// A part of a document.
struct Part {
    chunk: Chunk,
    request: Request,
    ticket: Ticket,
}

/// What became of a document.
pub struct Answer {
    pub doc: Doc,
    pub result: Result<Found, Problem>,
}

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub message: String,
    /// The engine let something through that is not valid.
    pub is_bug: bool,
}

/// The value of a document.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// As JSON on one line.
    pub text: String,
    /// What is known of single values, by their pointers.
    pub fields: BTreeMap<String, Known>,
    pub tokens: usize,
    pub parts: usize,
}

/// What is known of a single value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    pub probability: Option<f64>,
    pub kept: Option<f64>,
    /// Where it stands in the document, in characters, the likeliest place first.
    pub spans: Vec<(usize, usize)>,
    /// Who gave it, if it was asked for again.
    pub told: Option<Told>,
}

impl<'a> Worker<'a> {
    /// A worker for a model behind `client`, and those that are asked again.
    pub fn new(
        ask: &'a Ask,
        (client, again): (Client, Option<Again<'a>>),
        stop: &'static AtomicBool,
    ) -> Result<Self, Failure> {
        let (vocabulary, context) =
            client.ask(|model| (model.vocabulary().clone(), model.context_len()))?;
        let extractor = ask.extractor(&vocabulary)?;
        let empty = extractor.messages("")?;
        let overhead = client.ask(move |model| model.chat(&empty))??.tokens.len();
        let answer = ask.options.max_tokens.min(context / 2);
        let room = context.saturating_sub(overhead + answer + SLACK);
        if room == 0 {
            let message = format!("a context of {context} tokens has no room for documents");
            return Err(
                Failure::new(message).help("enlarge it with --ctx-size, or lower --max-tokens")
            );
        }
        let most = ask.chunk_tokens.unwrap_or(room).min(room);
        let limits = Limits { most, overlap: ask.overlap_tokens.min(most / 2) };
        let router = again.map(|again| Router::new(again, ask)).transpose()?;
        Ok(Self { ask, extractor, client, router, limits, stop })
    }

    /// Whether the user wants to stop.
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Does documents, so many at a time, and calls `each` with what became of them in their order. False if the user
    /// wants to stop.
    ///
    /// # Errors
    /// Those of `docs` and of `each`; the model is gone.
    pub fn all(
        &mut self,
        docs: &mut dyn Iterator<Item = Result<Doc, Failure>>,
        window: usize,
        each: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        let mut queue = VecDeque::new();
        loop {
            let next = if queue.len() < window { docs.next() } else { None };
            if let Some(doc) = next {
                let Some(pending) = self.begin(doc?)? else { return Ok(false) };
                queue.push_back(pending);
                continue;
            }
            let Some(first) = queue.pop_front() else { return Ok(true) };
            let Some(answer) = self.finish(first)? else { return Ok(false) };
            each(answer)?;
        }
    }

    /// Begins a document; `None` if the user wants to stop.
    ///
    /// # Errors
    /// The model is gone.
    fn begin(&self, doc: Doc) -> Result<Option<Pending>, Failure> {
        let parts = match &doc.text {
            Err(problem) => Err(problem.clone()),
            Ok(text) => self.parts(text)?,
        };
        Ok((!self.is_stopped()).then_some(Pending { doc, parts }))
    }

    /// Submits the parts of a document; why that cannot be done. What the model's thread is asked for at a time is
    /// short, but for the borders of the parts: other documents go on meanwhile.
    fn parts(&self, text: &str) -> Result<Result<Vec<Part>, String>, Failure> {
        let (extractor, limits, stop) = (self.extractor.clone(), self.limits, self.stop);
        let whole = text.to_owned();
        // Most documents are one part: nothing else is asked for them.
        let begun = self.client.ask(move |model| {
            let chunks = cut(model, &whole, limits, stop)?;
            let is_one = chunks.len() == 1;
            let only = is_one.then(|| extractor.request(model, &whole)).transpose()?;
            Ok::<_, Error>((chunks, only))
        })?;
        let (chunks, mut only) = match begun {
            Ok(begun) => begun,
            Err(error) => return Ok(Err(in_flags(&error.to_string()))),
        };
        let mut parts = Vec::new();
        for chunk in chunks {
            if self.is_stopped() {
                break;
            }
            let request = match only.take() {
                Some(request) => Ok(request),
                None => {
                    let part = text.get(chunk.bytes.clone()).unwrap_or_default().to_owned();
                    let extractor = self.extractor.clone();
                    self.client.ask(move |model| extractor.request(model, &part))?
                }
            };
            match request {
                Err(error) => return Ok(Err(in_flags(&error.to_string()))),
                Ok(request) => {
                    let ticket = self.client.submit(request.clone())?;
                    parts.push(Part { chunk, request, ticket });
                }
            }
        }
        Ok(Ok(parts))
    }

    /// Waits for what becomes of a document; `None` if the user wants to stop.
    ///
    /// # Errors
    /// The model is gone.
    fn finish(&mut self, pending: Pending) -> Result<Option<Answer>, Failure> {
        let Pending { doc, parts } = pending;
        let problem = |message: String| Problem { message, is_bug: false };
        let parts = match parts {
            Ok(parts) => parts,
            Err(message) => return Ok(Some(Answer { doc, result: Err(problem(message)) })),
        };
        let count = parts.len();
        let mut found = Vec::new();
        for (index, mut part) in parts.into_iter().enumerate() {
            let Some(outcome) = self.wait(&mut part.ticket)? else { return Ok(None) };
            let text = doc.text.as_deref().unwrap_or_default();
            let text = text.get(part.chunk.bytes.clone()).unwrap_or_default();
            let read = outcome.and_then(|outcome| self.extractor.read(&part.request, &outcome));
            match read.and_then(|found| self.route(text, found)) {
                Ok(extraction) => found.push((part.chunk, extraction)),
                Err(error) if count == 1 => {
                    return Ok(Some(Answer {
                        doc,
                        result: Err(problem(in_flags(&error.to_string()))),
                    }));
                }
                Err(error) => {
                    let error = in_flags(&error.to_string());
                    let message = format!("part {} of {count}: {error}", index + 1);
                    return Ok(Some(Answer { doc, result: Err(problem(message)) }));
                }
            }
        }
        let result = self.together(doc.text.as_deref().unwrap_or_default(), &found)?;
        Ok(Some(Answer { doc, result }))
    }

    /// Asks again for weak fields, if that is wanted.
    fn route(
        &mut self,
        text: &str,
        mut found: Extraction<Value>,
    ) -> constrain::Result<Extraction<Value>> {
        if let Some(router) = &mut self.router {
            router.route(&self.extractor, text, &mut found)?;
        }
        Ok(found)
    }

    fn wait(&self, ticket: &mut Ticket) -> Result<Option<constrain::Result<Outcome>>, Failure> {
        loop {
            if self.is_stopped() {
                return Ok(None);
            }
            match ticket.wait_for(GLANCE) {
                Some(Err(error)) if *error.kind() == Kind::Cancelled => return Err(error.into()),
                Some(outcome) => return Ok(Some(outcome)),
                None => {}
            }
        }
    }

    /// The value of a document from those of its parts.
    fn together(
        &self,
        document: &str,
        parts: &[(Chunk, Extraction<Value>)],
    ) -> Result<Result<Found, Problem>, Failure> {
        let found = match parts {
            [(chunk, only)] => {
                let text = match only.reasoning {
                    // The value is the text without it.
                    Some(_) => only.value.to_string(),
                    None => one_line(&only.text),
                };
                let whole = Origin { pointer: String::new(), part: 0, from: String::new() };
                let merged = Merged { value: only.value.clone(), origins: vec![whole] };
                Found { text, ..describe(merged, &[(chunk.clone(), only.clone())]) }
            }
            parts => {
                let values: Vec<Value> = parts.iter().map(|part| part.1.value.clone()).collect();
                let sure = |part: usize, pointer: &str| {
                    let field = parts.get(part).and_then(|(_, found)| found.field(pointer));
                    let sure = field.and_then(|field| field.sureness.as_ref());
                    sure.map_or(0.0, |sure| sure.probability)
                };
                let merged = merge(&values, &sure);
                let text = merged.value.to_string();
                Found { text, ..describe(merged, parts) }
            }
        };
        let value: Value = serde_json::from_str(&found.text).unwrap_or_default();
        let Some(complaint) = self.ask.complaint(document, &value)? else { return Ok(Ok(found)) };
        let what = match parts.len() {
            1 => "the finished value failed its last check".to_owned(),
            count => format!("the values of its {count} parts are not valid together"),
        };
        let message = format!("{what}: {complaint}");
        Ok(Err(Problem { message, is_bug: parts.len() == 1 }))
    }
}

/// The parts of a document.
///
/// # Errors
/// Those of the tokenizer; [`Kind::Cancelled`] if the user wants to stop.
fn cut(
    model: &dyn Model,
    text: &str,
    limits: Limits,
    stop: &AtomicBool,
) -> constrain::Result<Vec<Chunk>> {
    let whole = Chunk { bytes: 0..text.len(), chars: 0..text.chars().count() };
    match model.tokenize(text, false) {
        Ok(tokens) if tokens.len() <= limits.most => return Ok(vec![whole]),
        Err(error) if *error.kind() != Kind::TooLarge => return Err(error),
        _ => {}
    }
    let mut lens = |text: &str| {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::new(Kind::Cancelled, "interrupted"));
        }
        let len = |token| model.vocabulary().bytes(token).map_or(0, <[u8]>::len);
        Ok(model.tokenize(text, false)?.into_iter().map(len).collect())
    };
    chunks(text, limits.most, limits.overlap, &mut lens)
}

/// What is known of a value and of the single values in it.
fn describe(merged: Merged, parts: &[(Chunk, Extraction<Value>)]) -> Found {
    let mut fields = BTreeMap::new();
    for (index, (chunk, extraction)) in parts.iter().enumerate() {
        for field in extraction.fields.iter().filter(|field| field.kind.is_scalar()) {
            if let Some(pointer) = merged.pointer(index, &field.pointer) {
                fields.insert(pointer, known(field, chunk));
            }
        }
    }
    // What was not taken over in one piece has no figures.
    fields.retain(|pointer, known| {
        let is_there = merged.value.pointer(pointer).is_some();
        is_there && *known != Known::default()
    });
    let tokens = parts.iter().map(|part| part.1.statistics.tokens).sum();
    Found { text: String::new(), fields, tokens, parts: parts.len() }
}

fn known(field: &FieldInfo, chunk: &Chunk) -> Known {
    let mut spans: Vec<_> = field.spans.iter().collect();
    spans.sort_by_key(|span| !span.best);
    let offset = chunk.chars.start;
    Known {
        probability: field.sureness.as_ref().map(|sure| sure.probability),
        kept: field.sureness.as_ref().map(|sure| sure.kept),
        spans: spans
            .iter()
            .map(|span| (span.range.start + offset, span.range.end + offset))
            .collect(),
        told: Told::of(field),
    }
}

/// A JSON text without white space between its tokens, all else as it was spelled.
fn one_line(text: &str) -> String {
    let (mut line, mut is_string, mut is_escaped) = (String::new(), false, false);
    for c in text.chars() {
        match (is_string, c) {
            (true, '"') if !is_escaped => is_string = false,
            (false, '"') => is_string = true,
            (false, ' ' | '\t' | '\n' | '\r') => continue,
            _ => {}
        }
        is_escaped = is_string && c == '\\' && !is_escaped;
        line.push(c);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use constrain::model::scripted::ScriptedModel;

    #[test]
    fn the_cutting_of_a_long_document_can_be_interrupted() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let model = ScriptedModel::following("{}");
        let text = "Something happens. ".repeat(3_000);
        let limits = Limits { most: 100, overlap: 20 };
        let chunks = cut(&model, &text, limits, &STOP).expect("parts");
        assert!(chunks.len() > 100, "{}", chunks.len());
        for chunk in chunks {
            let part = model.tokenize(&text[chunk.bytes], false).expect("tokens");
            assert!(part.len() <= limits.most, "{}", part.len());
        }
        STOP.store(true, Ordering::Relaxed);
        let stopped = cut(&model, &text, limits, &STOP).expect_err("an end");
        assert_eq!(*stopped.kind(), Kind::Cancelled);
    }

    #[test]
    fn values_go_on_one_line_as_they_were_spelled() {
        let text = "{\n \"a \\\" b\" : [ 1.50,\t\"\\\\\" , \" \\u0020\"] }\r\n";
        let line = one_line(text);
        assert_eq!(line, r#"{"a \" b":[1.50,"\\"," \u0020"]}"#);
        let parse = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        assert_eq!(parse(text), parse(&line));
    }
}
