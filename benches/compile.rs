//! How long does it take from the text of a schema to a constraint, and to its first mask?
mod common;

use constrain::{Constraint, schema};
use criterion::{Criterion, criterion_group, criterion_main};

fn compile(c: &mut Criterion) {
    let vocabulary = common::vocabulary();
    let options = schema::Options::default();
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
    group.finish();
}

criterion_group!(benches, compile);
criterion_main!(benches);
