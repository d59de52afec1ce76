//! Candidates and their weights: the exponential, and prefixes of the order.
//!
//! # Order
//! Candidates are ordered by logit, largest first, ties by the lower id. Temperature keeps this
//! order, and top-k, top-p and min-p each keep a *prefix* of it. So a filter is a length, what
//! several filters keep is the shortest of their prefixes, and a draw is a position in it.
//!
//! # Weights are integers
//! The weight of a token is `floor(2^42 * exp((logit - max) / temperature))`. Sums of integers do
//! not depend on the order of summation, so sparse and dense masks, sorting and selecting, and all
//! machines agree on every filter and every draw. A token below 2^-42 of the best one weighs
//! nothing and is never drawn; the law is off by at most `V * 2^-42` in all (3e-8 for 131,072
//! tokens). Rows are limited to 2^21 tokens, so that sums fit 64 bits.
//!
//! # Crossing
//! [`crossing`] finds where the running sum reaches a target without sorting: it selects the
//! median, sums the half before it, and goes on in one half. By hand, weights 5 1 4 2 in any
//! order and target 7: the larger half {5, 4} sums to 9, which reaches 7; in it, {5} does not;
//! the answer is the second of the order. Each round halves the range: O(n) in all.

use crate::vocab::TokenId;

/// The weight of the best token.
pub(crate) const ONE: u64 = 1 << 42;

/// Below this exponent a weight is 0: `2^42 * exp(-29.2) < 1`.
pub(crate) const NOTHING: f64 = 29.2;

/// A token that may be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Ascending in the order of the module: inverted logit, then id.
    key: u64,
    /// Its weight, see above.
    pub weight: u64,
}

impl Candidate {
    /// A token with its (penalised) logit, still without weight.
    pub fn new(token: TokenId, logit: f32) -> Self {
        // Adding zero turns -0 into +0. The bits of a float, read as an integer, ascend for
        // positive numbers and descend for negative ones; flipping makes them descend throughout.
        let bits = (logit + 0.0).to_bits();
        let descending = if bits >> 31 == 0 { !bits & 0x7fff_ffff } else { bits };
        Self { key: u64::from(descending) << 32 | u64::from(token), weight: 0 }
    }

    /// Its id.
    pub fn token(&self) -> TokenId {
        self.key as u32
    }

    /// Its logit.
    pub fn logit(&self) -> f32 {
        let descending = (self.key >> 32) as u32;
        f32::from_bits(if descending >> 31 == 0 { !descending & 0x7fff_ffff } else { descending })
    }
}

/// Sets the weights for the largest logit `max` and a positive temperature.
pub(crate) fn weigh(candidates: &mut [Candidate], max: f32, temperature: f64) {
    for candidate in candidates {
        let x = (f64::from(candidate.logit()) - f64::from(max)) / temperature;
        candidate.weight = (exp(x) * ONE as f64) as u64;
    }
}

/// Moves the first `n` of the order to the front (not sorted among themselves).
pub(crate) fn select(candidates: &mut [Candidate], n: usize) {
    if n > 0 && n < candidates.len() {
        candidates.select_nth_unstable_by_key(n, |c| c.key);
    }
}

/// Sorts by the order.
pub(crate) fn sort(candidates: &mut [Candidate]) {
    candidates.sort_unstable_by_key(|c| c.key);
}

/// The sum of all weights.
pub(crate) fn total(candidates: &[Candidate]) -> u64 {
    candidates.iter().map(|c| c.weight).sum()
}

/// Where a running sum reaches a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crossing {
    /// Index of the candidate whose weight makes the sum reach the target.
    pub index: usize,
    /// The sum up to and including it.
    pub sum: u64,
}

/// The first candidate of the order at which the running sum is at least `target` (at least 1);
/// `None` if all of them stay below. Afterwards the candidates before the index are those before
/// it in the order, itself is at the index, the rest is behind.
pub(crate) fn crossing(candidates: &mut [Candidate], target: u64) -> Option<Crossing> {
    /// Ranges this short are sorted.
    const SHORT: usize = 32;
    let (mut low, mut high, mut before) = (0, candidates.len(), 0);
    while high - low > SHORT {
        let middle = (high - low) / 2;
        let range = &mut candidates[low..high];
        select(range, middle);
        let sum = total(&range[..middle]);
        if before + sum >= target {
            high = low + middle;
        } else {
            before += sum;
            low += middle;
        }
    }
    sort(&mut candidates[low..high]);
    for (index, candidate) in candidates.iter().enumerate().take(high).skip(low) {
        before += candidate.weight;
        if before >= target {
            return Some(Crossing { index, sum: before });
        }
    }
    None
}

/// `e^x` for `x <= 0`, to about one unit in the last place, by additions and multiplications
/// alone, so that all machines agree; the libraries of operating systems do not.
///
/// With `n` the integer nearest to `x / ln 2` and `r = x - n ln 2` (at most 0.347 in size):
/// `e^x = 2^n e^r`, and thirteen terms of the series of `e^r` leave an error below 2e-17.
pub(crate) fn exp(x: f64) -> f64 {
    if x < LEAST { 0.0 } else { power(x) }
}

/// [`exp`] of logits less the largest one; what is below the least power counts as that. No branches: the compiler makes vector
/// instructions of it. Logits above `max` give anything.
pub(crate) fn exps<const N: usize>(logits: &[f32; N], max: f32) -> [f64; N] {
    let max = f64::from(max);
    logits.map(|logit| {
        let x = f64::from(logit) - max;
        power(if x > LEAST { x } else { LEAST })
    })
}

/// The same in single precision, four times as fast: each is off by at most 3e-7 of itself (and by what the difference of two
/// floats is rounded), and what is below `e^-80` counts as that.
pub(crate) fn near_exps<const N: usize>(logits: &[f32; N], max: f32) -> [f32; N] {
    logits.map(|logit| {
        let x = logit - max;
        near_power(if x > -80.0 { x } else { -80.0 })
    })
}

/// Exponents below this one have no power that matters.
const LEAST: f64 = -700.0;

/// As [`power`], with the constants that fit single precision; apart, since nothing but the shape is shared.
#[inline(always)]
fn near_power(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    const LN_2: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);
    const TERMS: [f32; 7] = [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    let t = x * std::f32::consts::LOG2_E + ROUND;
    let n = t - ROUND;
    let r = (x - n * LN_2.0) - n * LN_2.1;
    let series = TERMS.iter().fold(0.0, |sum, term| sum * r + term);
    series * f32::from_bits((t.to_bits() << 23).wrapping_add(127 << 23))
}

#[inline(always)]
fn power(x: f64) -> f64 {
    /// Adding this rounds to an integer, which stands in the low bits then.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    /// `ln 2` in two parts; the first has trailing zeros, so that `n` times it is exact.
    const LN_2: (f64, f64) = (6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10);
    /// `1 / i!`, from 13 down to 0.
    const TERMS: [f64; 14] = [
        1.0 / 6_227_020_800.0,
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    let t = x * std::f64::consts::LOG2_E + ROUND;
    let n = t - ROUND;
    let r = (x - n * LN_2.0) - n * LN_2.1;
    let series = TERMS.iter().fold(0.0, |sum, term| sum * r + term);
    // 2^n: its exponent has 1,023 added to it.
    series * f64::from_bits((t.to_bits() << 52).wrapping_add(1023 << 52))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::random::mix;

    #[test]
    fn exp_agrees_with_the_library() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f64::NEG_INFINITY), 0.0);
        for i in 0..200_000_u32 {
            let x = -f64::from(i) * 0.003_37;
            let (ours, theirs) = (exp(x), x.exp());
            assert!((ours - theirs).abs() <= 4e-16 * theirs, "exp({x}) = {ours}, not {theirs}");
        }
        assert_eq!((exp(-NOTHING) * ONE as f64) as u64, 0);
        let logits = [3.0, 2.5, -1.0, -600.0, -1e9, f32::NEG_INFINITY, 3.0, 0.0];
        for (logit, found) in logits.iter().zip(exps(&logits, 3.0)) {
            let x = f64::from(logit - 3.0);
            assert!(found == exp(x) || (x < LEAST && found < 1e-303), "{found} for {x}");
        }
    }

    #[test]
    fn near_exps_are_as_near_as_they_claim() {
        for i in 0..200_000_u32 {
            let x = -(i as f32) * 4e-4;
            let [found] = near_exps(&[x], 0.0);
            let exact = f64::from(x).exp();
            assert!((f64::from(found) - exact).abs() <= 3e-7 * exact, "exp({x}) is not {found}");
        }
        assert!(near_exps(&[f32::NEG_INFINITY, -1e30], 0.0).iter().all(|power| *power < 2e-35));
    }

    #[test]
    fn a_candidate_keeps_its_logit_and_its_place() {
        let logits = [f32::MAX, 5.0, 1.0, 1e-40, 0.0, -1e-40, -1.0, -7.5, f32::NEG_INFINITY];
        for (i, &a) in logits.iter().enumerate() {
            assert_eq!(Candidate::new(3, a).logit(), a);
            for &b in &logits[i + 1..] {
                assert!(Candidate::new(9, a).key < Candidate::new(1, b).key, "{a} before {b}");
            }
        }
        assert!(Candidate::new(1, 0.0).key < Candidate::new(2, -0.0).key, "ties go by id");
        assert!(Candidate::new(1, -0.0).key < Candidate::new(2, 0.0).key, "ties go by id");
    }

    #[test]
    fn crossing_equals_a_sorted_scan() {
        for seed in 0..500 {
            let n = (mix(seed) % 300) as usize;
            let mut candidates: Vec<Candidate> = (0..n)
                .map(|i| {
                    let logit = (mix(seed * 1000 + i as u64) % 40) as f32 / 4.0;
                    Candidate::new(i as u32, logit)
                })
                .collect();
            weigh(&mut candidates, 10.0, 1.0);
            let sum = total(&candidates);
            let target = 1 + mix(seed + 77) % sum.max(2);
            let mut sorted = candidates.clone();
            sort(&mut sorted);
            let mut running = 0;
            let expected = sorted.iter().position(|c| {
                running += c.weight;
                running >= target
            });
            let found = crossing(&mut candidates, target);
            assert_eq!(found.map(|c| c.index), expected);
            let Some(found) = found else { continue };
            assert_eq!(total(&candidates[..=found.index]), found.sum);
            assert_eq!(candidates[found.index], sorted[found.index]);
            sort(&mut candidates[..found.index]);
            assert_eq!(candidates[..found.index], sorted[..found.index]);
        }
    }
}
