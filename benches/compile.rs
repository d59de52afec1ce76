//! How long does it take from the text of a schema to a constraint, and to its first mask? From a file? With
//! values that are pieces of a document of 100 kB?
mod common;

use constrain::saved::Saved;
use constrain::{Constraint, Document, Limits, schema};
use criterion::{Criterion, criterion_group, criterion_main};

fn compile(c: &mut Criterion) {
    let vocabulary = common::vocabulary();
    let (options, limits) = (schema::Options::default(), Limits::default());
    let mut mask = vec![0; vocabulary.len().div_ceil(32)];
    // What belongs to the vocabulary is warm.
    common::constraint(&vocabulary).matcher().fill_bitmask(&mut mask).expect("a mask");
    let mut group = c.benchmark_group("compile");
    group.bench_function("grammar", |b| b.iter(|| schema::compile(common::SCHEMA, &options)));
    let grammar = schema::compile(common::SCHEMA, &options).expect("a schema");
    group.bench_function("constraint", |b| b.iter(|| Constraint::new(&grammar, &vocabulary)));
    group.bench_function("first mask", |b| {
        b.iter(|| common::constraint(&vocabulary).matcher().fill_bitmask(&mut mask));
    });
    let file = common::constraint(&vocabulary).save(b"").expect("bytes");
    group.bench_function("from a file", |b| {
        b.iter(|| Saved::read(&file).and_then(|saved| saved.constraint(&vocabulary, &limits)));
    });
    group.finish();
}

fn pieces(c: &mut Criterion) {
    let vocabulary = common::vocabulary();
    let mut mask = vec![0; vocabulary.len().div_ceil(32)];
    let sentence = |i: usize| format!("Item {i}: {} boxes for {}. ", i * 7 % 90, i * i % 9_973);
    let text: String = (0..4_000).map(sentence).collect();
    let text: String = text.chars().take(100_000).collect();
    let compiled = |document: &Document| {
        let document = Some(document.clone());
        let options = schema::Options { document, ..schema::Options::default() };
        let schema = r#"{"type": "string", "x-constrain": {"span": true}}"#;
        let grammar = schema::compile(schema, &options).expect("a schema");
        Constraint::new(&grammar, &vocabulary).expect("a constraint")
    };
    let mut group = c.benchmark_group("pieces of 100 kB");
    group.bench_function("automaton", |b| b.iter(|| Document::new(&text)));
    let document = Document::new(&text).expect("a document");
    let mut first = |name: &str, before: &[u8]| {
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut matcher = compiled(&document).matcher();
                matcher.accept_bytes(before).expect("it is allowed");
                matcher.fill_bitmask(&mut mask)
            });
        });
    };
    first("constraint and first mask", b"");
    first("constraint and first mask of the value", b"\"");
    let mut matcher = compiled(&document).matcher();
    matcher.accept_bytes(b"\"Item 1").expect("it is a piece");
    group.bench_function("mask again", |b| b.iter(|| matcher.fill_bitmask(&mut mask)));
    group.finish();
}

criterion_group!(benches, compile, pieces);
criterion_main!(benches);
