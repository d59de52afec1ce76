//! How long does it take from the bytes of tokens to ready tables?
mod common;

use constrain::Vocabulary;
use constrain::vocab::Trie;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

fn build(c: &mut Criterion) {
    let (tokens, end) = common::tokens();
    let mut group = c.benchmark_group("vocabulary");
    group.sample_size(20);
    group.bench_function("new", |b| {
        let input = || (tokens.clone(), end.clone());
        b.iter_batched(input, |(tokens, end)| Vocabulary::new(tokens, end), BatchSize::LargeInput);
    });
    let vocabulary = common::vocabulary();
    group.bench_function("trie", |b| {
        b.iter(|| Trie::new(vocabulary.text_tokens().map(|(id, bytes)| (bytes, id))));
    });
    if let Some(path) = std::env::var_os("CONSTRAIN_TOKENIZER") {
        let json = std::fs::read(path).expect("a tokenizer");
        group.bench_function("tokenizer.json", |b| {
            b.iter(|| Vocabulary::from_tokenizer_json(&json));
        });
    }
    group.finish();
}

criterion_group!(benches, build);
criterion_main!(benches);
