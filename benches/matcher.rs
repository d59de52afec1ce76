//! How long do accepting, forking and rolling back take?
mod common;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

fn steps(c: &mut Criterion) {
    let vocabulary = common::vocabulary();
    let tokens = common::encode(&vocabulary, common::DOCUMENT);
    let start = common::constraint(&vocabulary).matcher();
    let mut end = start.fork();
    for &token in &tokens {
        end.accept(token).expect("an allowed token");
    }
    let mut group = c.benchmark_group("matcher");
    group.bench_function(format!("accept {} tokens", tokens.len()), |b| {
        let accept_all = |mut matcher: constrain::Matcher| {
            tokens.iter().try_for_each(|&token| matcher.accept(token))
        };
        b.iter_batched(|| start.fork(), accept_all, BatchSize::SmallInput);
    });
    group.bench_function("fork", |b| b.iter(|| end.fork()));
    // The last tokens again and again, as a draft that is refused.
    let draft = &tokens[tokens.len() - 8..];
    group.bench_function("roll back 8 tokens and accept them again", |b| {
        b.iter(|| {
            end.rollback(draft.len()).expect("that many steps");
            draft.iter().try_for_each(|&token| end.accept(token))
        });
    });
    group.finish();
}

criterion_group!(benches, steps);
criterion_main!(benches);
