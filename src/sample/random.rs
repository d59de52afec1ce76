//! Random numbers that depend on nothing but a key: the same on every machine, in any order.
//!
//! A generator with a state would give another number to step 7 whenever step 6 drew twice, was
//! skipped because it was forced, or was a draft that got rejected. Here step 7 of answer 0 with
//! seed 42 *is* a number, so that batching, drafts, retries and several answers cannot shift the
//! stream, and a strategy that verifies drafts can be compared with plain decoding token by token.
//!
//! The function is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom
//! number generators, 2014), applied once per word of the key: integer arithmetic alone. It is
//! statistically sound and no secret: do not make keys or passwords with it.

/// What a number is for: two uses at one position must not share their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The draw of the token itself.
    Draw = 1,
    /// Whether a draft is taken, by the rejection rule.
    Accept = 2,
    /// The draw from what is left after a rejection.
    Residual = 3,
    /// The draw of a draft.
    Draft = 4,
}

/// Increment of SplitMix64: 2^64 divided by the golden ratio, made odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// 53 random bits for a key: uniform over `0..2^53`.
pub fn bits(seed: u64, stream: u64, position: u64, purpose: Purpose) -> u64 {
    let key = [seed, stream, position, purpose as u64];
    let hash = key.iter().fold(0, |hash: u64, &word| mix(hash.wrapping_add(GOLDEN) ^ word));
    mix(hash.wrapping_add(GOLDEN)) >> 11
}

/// A uniform number in `[0, 1)` for a key.
///
/// ```
/// use constrain::sample::random::{Purpose, uniform};
/// let u = uniform(42, 0, 7, Purpose::Draw);
/// assert_eq!(u, uniform(42, 0, 7, Purpose::Draw));
/// assert_ne!(u, uniform(42, 0, 8, Purpose::Draw));
/// ```
pub fn uniform(seed: u64, stream: u64, position: u64, purpose: Purpose) -> f64 {
    bits(seed, stream, position, purpose) as f64 / (1_u64 << 53) as f64
}

/// A bijection of 64-bit words in which every bit of the input moves every bit of the output.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_pinned() {
        // Changing the function would change everybody's outputs for a seed.
        let draws: Vec<u64> = (0..3).map(|i| bits(42, 0, i, Purpose::Draw)).collect();
        assert_eq!(draws, PINNED);
    }

    const PINNED: [u64; 3] = [1_981_761_420_504_665, 2_628_163_869_331_687, 5_189_099_872_941_372];

    #[test]
    fn every_word_of_the_key_counts() {
        let base = bits(1, 2, 3, Purpose::Draw);
        assert_ne!(base, bits(2, 1, 3, Purpose::Draw));
        assert_ne!(base, bits(1, 3, 2, Purpose::Draw));
        assert_ne!(base, bits(1, 2, 4, Purpose::Draw));
        assert_ne!(base, bits(1, 2, 3, Purpose::Accept));
    }

    #[test]
    fn uniform_over_positions_and_over_seeds() {
        // Chi-square with 99 degrees of freedom: 178 is exceeded with probability 2e-6.
        for by_seed in [false, true] {
            let mut counts = [0_u32; 100];
            for i in 0..100_000 {
                let (seed, position) = if by_seed { (i, 5) } else { (5, i) };
                let u = uniform(seed, 0, position, Purpose::Draw);
                counts[(u * 100.0) as usize] += 1;
            }
            let chi: f64 = counts.iter().map(|&c| (f64::from(c) - 1000.0).powi(2) / 1000.0).sum();
            assert!(chi < 178.0, "chi-square {chi}");
        }
    }
}
