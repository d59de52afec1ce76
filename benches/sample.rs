//! How long does one sampling step take? One core, 131,072 tokens, sparse and dense masks.
//!
//! `cargo bench --no-default-features --bench sample`. Prints the median and the 99th percentile of
//! 2,000 steps on rows of different shapes. Budgets: 5 µs with 64 allowed tokens, 60 µs dense.

use constrain::matcher::Mask;
use constrain::sample::logprob::log_probs;
use constrain::sample::{Sampler, Settings, Step};
use std::hint::black_box;
use std::time::Instant;

const VOCABULARY: usize = 131_072;
const STEPS: usize = 2_000;

fn main() -> constrain::Result<()> {
    let sparse: Vec<u32> = (0..64).map(|i| i * 2_003 + 17).collect();
    let nearly_all: Vec<u32> = (0..VOCABULARY / 32).map(|i| !(1 << (i % 32))).collect();
    let half: Vec<u32> = (0..VOCABULARY as u64 / 32).map(|i| mix(i) as u32).collect();
    let masks = [
        ("64 allowed", Mask::Sparse(&sparse)),
        ("97 % allowed", Mask::Dense(&nearly_all)),
        ("half allowed", Mask::Dense(&half)),
    ];
    let top_p = Settings { top_p: 0.95, ..Settings::drawing(0.7) };
    let all = [
        ("greedy", Settings::greedy()),
        ("top-p 0.95", top_p.clone()),
        ("top-p 0.95, temperature 1.5", Settings { temperature: 1.5, ..top_p }),
        ("min-p 0.05", Settings { min_p: 0.05, ..Settings::drawing(0.7) }),
        ("top-k 40", Settings { top_k: 40, ..Settings::drawing(0.7) }),
        ("drawing", Settings::drawing(1.0)),
    ];
    for (shape, spread, peak) in [("a model's usual row", 2.0, 14.0), ("an unsure row", 2.0, 4.0)] {
        let rows: Vec<Vec<f32>> = (0..8).map(|seed| row(seed, spread, peak)).collect();
        println!("{shape}");
        for (mask_name, mask) in masks {
            for (name, settings) in &all {
                let (median, high) = measure(settings, &rows, mask)?;
                println!("  {mask_name:14} {name:28} {median:7.1} µs {high:7.1} µs");
            }
            let (median, high) =
                time(&rows, mask, |step| log_probs(step, 17, 5).map(|found| _ = black_box(found)))?;
            println!("  {mask_name:14} {:28} {median:7.1} µs {high:7.1} µs", "log-probabilities");
        }
    }
    Ok(())
}

/// Median and 99th percentile in microseconds.
fn measure(
    settings: &Settings,
    rows: &[Vec<f32>],
    mask: Mask<'_>,
) -> constrain::Result<(f64, f64)> {
    let mut sampler = Sampler::new(settings.clone(), 0)?;
    time(rows, mask, |step| sampler.sample(step).map(|token| _ = black_box(token)))
}

/// The same of anything that is done with a step.
fn time(
    rows: &[Vec<f32>],
    mask: Mask<'_>,
    mut f: impl FnMut(&Step<'_>) -> constrain::Result<()>,
) -> constrain::Result<(f64, f64)> {
    let mut times = Vec::with_capacity(STEPS);
    for position in 0..STEPS {
        let logits = &rows[position % rows.len()];
        let step = Step { logits, mask: Some(mask), history: &[], position: position as u64 };
        let clock = Instant::now();
        f(&step)?;
        times.push(clock.elapsed().as_nanos() as f64 / 1000.0);
    }
    times.sort_by(f64::total_cmp);
    Ok((times[STEPS / 2], times[STEPS * 99 / 100]))
}

/// A bell of logits, and thirty tokens that stand out by up to `peak`.
fn row(seed: u64, spread: f32, peak: f32) -> Vec<f32> {
    let mut row: Vec<f32> = (0..VOCABULARY as u64)
        .map(|i| {
            let hash = mix(seed << 32 | i);
            let sum: u64 = (0..4).map(|part| hash >> (part * 16) & 0xffff).sum();
            (sum as f32 / 65_536.0 - 2.0) * 1.73 * spread
        })
        .collect();
    for i in 0..30 {
        let at = mix(seed * 31 + i) as usize % VOCABULARY;
        row[at] += peak * (1.0 - i as f32 / 30.0);
    }
    row
}

/// The finaliser of SplitMix64.
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
