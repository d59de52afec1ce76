//! How much the tokens weigh that were not collected, within bounds, in one pass of vector lanes.
//!
//! Filters and draws need the total weight of a row, but not to the last digit: mostly the few
//! collected candidates decide whatever the rest weighs within some percent. So the exponential is
//! approximated here, and the caller gets an interval that holds the exact sum.
//!
//! Often not even a pass is needed. The largest logits of the lanes of each block of a row are known, and eight tokens weigh at
//! most as much as if all of them had the largest logit ([`Scale::outline`]). That is a few times too much, and
//! decides all the same where the collected candidates outweigh the rest by far.
//!
//! Both approximations use that a float *is* nearly `2^exponent`: with `t = x + 1.5 * 2^23` the
//! integer nearest to `x` stands in the low bits of `t`, and shifted up it is an exponent.
//! * [`Precision::Coarse`] keeps 7 more bits as the mantissa: between powers of two the curve is
//!   replaced by its chord, at most 6.2 % above it, and the last bit is worth 0.8 %.
//! * [`Precision::Fine`] multiplies by a cubic for the rest, to 8e-5.
//!
//! By hand, coarse, `x = -1.5` (in powers of two): exponent and mantissa are those of the line from
//! `2^-2` to `2^-1`, 0.375 instead of 0.3536. The interval is 0.350 to 0.379.

/// Lanes of a block: those of a vector of eight floats.
pub(crate) const LANES: usize = 8;

/// Bounds for the logits of the blocks of a row; nothing for a sparse mask.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bounds {
    /// No allowed logit of the block is larger.
    pub blocks: Vec<f32>,
    /// The largest logit of every eighth token from each of the first eight on, allowed or not; nothing that is not a number.
    pub lanes: Vec<[f32; LANES]>,
}

/// What is read to know the weight of the tokens that were not collected.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Effort {
    /// The bounds of the blocks (of a sparse mask: its row, coarsely).
    Blocks,
    /// The row.
    Row(Precision),
}

/// How good an approximation is, and what it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    /// Within some percent, in half the time.
    Coarse,
    /// Within one in ten thousand.
    Fine,
}

impl Precision {
    /// The exact sum lies between the approximate one times these.
    fn factors(self) -> (f64, f64) {
        match self {
            // 1 / (1.0615 * 1.004), and 1.004 for the last bit.
            Precision::Coarse => (0.933, 1.01),
            Precision::Fine => (0.9998, 1.0002),
        }
    }

    /// An interval that holds what is left of an approximate sum.
    fn around(self, all: f64, taken: f64) -> (f64, f64) {
        // Rounding within groups, relative to the whole.
        let (slack, rest) = (4e-6 * all, all - taken);
        let (low, high) = self.factors();
        (((rest - slack) * low).max(0.0), (rest + slack).max(0.0) * high)
    }
}

/// An exponential relative to the largest logit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    max: f32,
    /// Logits below this count as this.
    floor: f32,
    /// From logits to powers of two.
    factor: f32,
}

/// Adding this rounds to an integer, which stands in the low bits.
const ROUND: f32 = 12_582_912.0;

/// Bits of the mantissa that the coarse approximation keeps.
const KEPT: u32 = 7;

impl Scale {
    /// For the largest logit and a temperature; below `reach` units nothing is told apart.
    pub fn new(max: f32, temperature: f64, reach: f64) -> Self {
        Self {
            max,
            floor: (f64::from(max) - reach * temperature) as f32,
            factor: (std::f64::consts::LOG2_E / temperature) as f32,
        }
    }

    /// Powers of two below the largest.
    #[inline(always)]
    fn exponent(&self, logit: f32) -> f32 {
        let logit = if logit > self.floor { logit } else { self.floor };
        (logit - self.max) * self.factor
    }

    /// The bits of the approximate exponential.
    #[inline(always)]
    fn coarse(&self, logit: f32) -> u32 {
        const STEPS: f32 = (1 << KEPT) as f32;
        let t = self.exponent(logit) * STEPS + (ROUND + 127.0 * STEPS);
        t.to_bits() << (23 - KEPT)
    }

    /// The bits of the better one.
    #[inline(always)]
    fn fine(&self, logit: f32) -> u32 {
        let x = self.exponent(logit);
        let t = x + ROUND;
        let f = x - (t - ROUND);
        let cubic = 0.999_928_94 + f * (0.693_276_2 + f * (0.242_604_05 + f * 0.055_088_684));
        cubic.to_bits().wrapping_add(t.to_bits() << 23)
    }

    /// As [`Scale::sum`], at the cost of the blocks that reach `high`: only those are read, by `block` (their logits, and one
    /// bit each). The others weigh between nothing and what `bounds` allow. `collected` are the logits of at least `high`.
    pub fn outline<const N: usize, const W: usize>(
        &self,
        bounds: &Bounds,
        high: f32,
        block: impl Fn(usize) -> ([f32; N], [u32; W]),
        collected: impl Iterator<Item = f32>,
    ) -> (f64, f64) {
        let value = |logit: f32| self.coarse(logit);
        let (mut near, mut sums) = (0.0, [0.0_f32; LANES]);
        for (at, (&bound, lanes)) in bounds.blocks.iter().zip(&bounds.lanes).enumerate() {
            if bound >= high {
                let (logits, words) = block(at);
                near += group_sum(&logits, &words, value);
                continue;
            }
            for j in 0..LANES {
                // A lane may hold what is not allowed.
                let most = if lanes[j] < bound { lanes[j] } else { bound };
                sums[j] += f32::from_bits(value(most));
            }
        }
        let far = f64::from(sums.iter().sum::<f32>()) * (N / LANES) as f64;
        let (low, most) = Precision::Coarse.around(near, exactly(collected, value));
        (low, most + far * Precision::Coarse.factors().1)
    }

    /// An interval that holds the sum of the exponentials of the logits that a mask selects (one bit
    /// each; all without a mask), without those of `collected`, which are among them.
    pub fn sum(
        &self,
        precision: Precision,
        (logits, mask): (&[f32], Option<&[u32]>),
        collected: impl Iterator<Item = f32>,
    ) -> (f64, f64) {
        let (all, taken): (f64, f64) = match precision {
            Precision::Coarse => {
                let value = |logit: f32| self.coarse(logit);
                (total(logits, mask, value), exactly(collected, value))
            }
            Precision::Fine => {
                let value = |logit: f32| self.fine(logit);
                (total(logits, mask, value), exactly(collected, value))
            }
        };
        precision.around(all, taken)
    }
}

/// The sum of a function over a few logits.
fn exactly(logits: impl Iterator<Item = f32>, value: impl Fn(f32) -> u32) -> f64 {
    logits.map(|logit| f64::from(f32::from_bits(value(logit)))).sum()
}

/// Logits that are summed before the sum becomes a double: the more, the faster, and the coarser.
const GROUP: usize = 256;

/// For each byte, lanes of ones where its bits are set.
static SELECTED: [[u32; LANES]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte][bit] = if byte >> bit & 1 == 1 { u32::MAX } else { 0 };
            bit += 1;
        }
        byte += 1;
    }
    table
};

/// The sum of a function over the selected logits.
#[inline(always)]
fn total(logits: &[f32], mask: Option<&[u32]>, value: impl Fn(f32) -> u32 + Copy) -> f64 {
    let (full, tail) = logits.as_chunks::<GROUP>();
    let mut padded = [f32::NEG_INFINITY; GROUP];
    padded[..tail.len()].copy_from_slice(tail);
    let sum: f64 = match mask {
        None => full.iter().map(|group| group_sum(group, &[!0; 8], value)).sum(),
        Some(words) => {
            let words = words.as_chunks::<8>().0;
            full.iter().zip(words).map(|(group, words)| group_sum(group, words, value)).sum()
        }
    };
    let mut words = [!0; 8];
    if let Some(mask) = mask {
        let last = mask.get(full.len() * 8..).unwrap_or_default();
        words = std::array::from_fn(|i| last.get(i).copied().unwrap_or(0));
    }
    sum + group_sum(&padded, &words, value)
}

/// No branches: the compiler makes vector instructions of it.
#[inline(always)]
fn group_sum<const N: usize, const W: usize>(
    group: &[f32; N],
    words: &[u32; W],
    value: impl Fn(f32) -> u32,
) -> f64 {
    let mut sums = [0.0_f32; 8];
    for (block, word) in group.as_chunks::<32>().0.iter().zip(words) {
        for (eight, byte) in block.as_chunks::<8>().0.iter().zip(word.to_le_bytes()) {
            let lanes = &SELECTED[usize::from(byte)];
            for j in 0..8 {
                sums[j] += f32::from_bits(value(eight[j]) & lanes[j]);
            }
        }
    }
    f64::from(sums.iter().sum::<f32>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::random::mix;

    #[test]
    fn the_interval_holds_the_exact_sum() {
        for seed in 0..400_u64 {
            let temperature = [0.05, 0.7, 1.0, 3.0][seed as usize % 4];
            let logits: Vec<f32> = (0..32 * 40)
                .map(|i| match mix(seed << 20 | i) {
                    bits if bits.is_multiple_of(50) => f32::NEG_INFINITY,
                    bits => -((bits >> 40) as f32 / 2_f32.powi(24)) * 30.0 * temperature as f32,
                })
                .collect();
            let words: Vec<u32> = (0..40).map(|i| mix(seed * 99 + i) as u32).collect();
            let scale = Scale::new(0.0, temperature, 29.2);
            let collected: Vec<f32> = (0..logits.len())
                .filter(|i| words[i / 32] >> (i % 32) & 1 == 1)
                .map(|i| logits[i])
                .collect();
            let near = |logit: &f32| f64::from(*logit) > -4.0 * temperature;
            let exact: f64 = collected
                .iter()
                .filter(|logit| !near(logit))
                .map(|logit| (f64::from(*logit) / temperature).exp().max((-29.2_f64).exp()))
                .sum();
            for precision in [Precision::Coarse, Precision::Fine] {
                let taken = collected.iter().copied().filter(near);
                let (low, high) = scale.sum(precision, (&logits, Some(&words)), taken);
                assert!(low <= exact && exact <= high, "{low} {exact} {high}, {precision:?}");
                let width = (high - low) / exact;
                assert!(width < if precision == Precision::Fine { 0.01 } else { 0.12 }, "{width}");
            }
        }
    }

    #[test]
    fn single_values_are_as_near_as_they_claim() {
        let scale = Scale::new(3.0, 1.0, 29.2);
        for i in 0..100_000 {
            let logit = 3.0 - i as f32 * 29.0e-5;
            let exact = f64::from(logit - 3.0).exp();
            for (precision, bits) in
                [(Precision::Coarse, scale.coarse(logit)), (Precision::Fine, scale.fine(logit))]
            {
                let found = f64::from(f32::from_bits(bits));
                let (low, high) = precision.factors();
                assert!(found * low <= exact && exact <= found * high, "{precision:?} at {logit}");
            }
        }
    }

    #[test]
    fn what_is_not_selected_may_be_anything() {
        let mut block = [-1.0_f32; 32];
        block[3] = f32::NAN;
        block[4] = f32::INFINITY;
        block[5] = 1e30;
        for precision in [Precision::Coarse, Precision::Fine] {
            let scale = Scale::new(0.0, 1.0, 29.2);
            let (low, high) = scale.sum(precision, (&block, Some(&[1])), [].into_iter());
            let exact = (-1.0_f64).exp();
            assert!(low <= exact && exact <= high, "{low} {high}");
        }
    }
}
