//! How long does a mask take, at the first visit of a state and later?
//!
//! One iteration is a whole document: divide by its number of tokens, which the name gives.
mod common;

use constrain::{Constraint, TokenId};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

fn document(constraint: &Constraint, tokens: &[TokenId], mask: &mut [u32]) {
    let mut matcher = constraint.matcher();
    for &token in tokens {
        matcher.fill_bitmask(mask).expect("a mask");
        matcher.accept(token).expect("an allowed token");
    }
}

fn masks(c: &mut Criterion) {
    let vocabulary = common::vocabulary();
    let tokens = common::encode(&vocabulary, common::DOCUMENT);
    let mut mask = vec![0; vocabulary.len().div_ceil(32)];
    let warm = common::constraint(&vocabulary);
    document(&warm, &tokens, &mut mask);
    let mut group = c.benchmark_group(format!("{} masks", tokens.len()));
    group.bench_function("warm", |b| b.iter(|| document(&warm, &tokens, &mut mask)));
    group.bench_function("first visit", |b| {
        let fresh = || common::constraint(&vocabulary);
        b.iter_batched(fresh, |fresh| document(&fresh, &tokens, &mut mask), BatchSize::LargeInput);
    });
    group.finish();
}

criterion_group!(benches, masks);
criterion_main!(benches);
