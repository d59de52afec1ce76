//! Top-k, top-p, min-p and the draw, over candidates that may not be all there are.
//!
//! # Method
//! [`collect`] gathers the tokens within some reach of the best one and bounds what the others
//! weigh ([`Bound`]). The total weight then lies in an interval. A filter is decided when it cuts at
//! the same candidate for both ends, and then the others are out and the bound is zero; a draw is
//! decided when it falls on the same candidate for both. Otherwise the caller tries the next
//! [`Reach`], at the last of which the others weigh nothing. So the answer is always the one that all
//! tokens together would give.
//!
//! By hand, top-p 0.9: candidates weigh 60, 35, 5, the others 1 to 2. The total is 101 to 102,
//! the target 90.9 to 91.8, the sums 60, 95: both targets are crossed at the second candidate.

use crate::sample::Settings;
use crate::sample::gather::{Peak, Row};
use crate::sample::rest::{Bounds, Effort, Precision, Scale};
use crate::sample::weight::{self, Candidate, NOTHING, ONE, crossing};
use crate::vocab::TokenId;

/// How far below the best logit, in units of the temperature, candidates are collected, and how
/// well the weight of the others is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    units: f64,
    rest: Effort,
}

impl Reach {
    /// Whether no token of any weight is left out.
    pub fn is_everything(&self) -> bool {
        self.units >= NOTHING
    }
}

/// Everything that has weight.
pub(crate) const EVERYTHING: Reach = Reach { units: NOTHING, rest: Effort::Row(Precision::Fine) };

/// What is tried in turn.
pub(crate) const REACHES: [Reach; 4] = [
    Reach { units: 10.0, rest: Effort::Blocks },
    Reach { units: 10.0, rest: Effort::Row(Precision::Coarse) },
    Reach { units: 10.0, rest: Effort::Row(Precision::Fine) },
    EVERYTHING,
];

/// With more candidates than these in reach, the row is so flat that all of it will be needed.
const FLAT: usize = 2_048;

/// What the tokens that were not collected weigh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bound {
    /// All together at least.
    pub least: u64,
    /// All together at most.
    pub most: u64,
    /// Each at most.
    pub each: u64,
}

impl Bound {
    pub const ZERO: Bound = Bound { least: 0, most: 0, each: 0 };
}

/// Fills `candidates`, with weights, with the tokens within reach of the peak; `None` if that is of
/// no use, because the row is too flat.
pub(crate) fn collect(
    row: &Row<'_>,
    peak: &Peak,
    (settings, reach): (&Settings, Reach),
    bounds: &Bounds,
    candidates: &mut Vec<Candidate>,
) -> Option<Bound> {
    // With a floor and nothing else, what lies deeper is out.
    let floor = settings.min_p > 1e-6 && settings.top_p >= 1.0 && settings.top_k == 0;
    let units = match floor {
        true => reach.units.min(0.001 - settings.min_p.ln()),
        false => reach.units,
    };
    candidates.clear();
    // Rounded down, so that all tokens below the threshold are below the exact one too.
    let exact = f64::from(peak.logit) - units * settings.temperature;
    let high = (exact as f32).next_down();
    row.collect(high, bounds, candidates);
    let cut_by_k = settings.top_k > 0 && settings.top_k <= candidates.len();
    if candidates.len() > FLAT && !reach.is_everything() && !floor && !cut_by_k {
        return None;
    }
    weight::weigh(candidates, peak.logit, settings.temperature);
    let each = weight_at(units);
    if each == 0 {
        return Some(Bound::ZERO);
    }
    if cut_by_k || (settings.top_p >= 1.0 && settings.min_p > 0.0) {
        // What follows asks only how much each of them weighs.
        return Some(Bound { least: 0, most: 0, each });
    }
    let scale = Scale::new(peak.logit, settings.temperature, NOTHING);
    let ((low, high), tokens) = row.rest((scale, reach.rest), (candidates, high), bounds);
    // Weights are rounded down, each by less than one; a token that weighs nothing counts a little.
    let (one, tokens) = (ONE as f64, tokens as f64);
    let least = (low * one - 4.0 * tokens).max(0.0) as u64;
    Some(Bound { least, most: (high * one + tokens) as u64, each })
}

/// An upper bound for the weight of a token `units` below the best.
fn weight_at(units: f64) -> u64 {
    match (weight::exp(-units) * ONE as f64) as u64 {
        0 => 0,
        weight => weight + 1,
    }
}

/// Applies top-k, top-p and min-p: drops candidates, and returns the bound that remains, or `None`
/// if the outcome hangs on tokens that were not collected.
pub(crate) fn narrow(
    settings: &Settings,
    candidates: &mut Vec<Candidate>,
    mut rest: Bound,
) -> Option<Bound> {
    let k = settings.top_k;
    if k > 0 && k <= candidates.len() {
        weight::select(candidates, k);
        candidates.truncate(k);
        rest = Bound::ZERO;
    } else if k > 0 {
        // Some of the others may stay.
        let more = (k - candidates.len()) as u128 * u128::from(rest.each);
        rest = Bound { least: 0, most: u128::from(rest.most).min(more) as u64, ..rest };
    }
    if settings.top_p < 1.0 {
        let sum = weight::total(candidates);
        let (low, high) =
            (share(settings.top_p, sum + rest.least), share(settings.top_p, sum + rest.most));
        if sum < high {
            return None;
        }
        let cut = crossing(candidates, low)?;
        if cut.sum < high {
            return None;
        }
        candidates.truncate(cut.index + 1);
        rest = Bound::ZERO;
    }
    if settings.min_p > 0.0 {
        let floor = ((settings.min_p * ONE as f64).ceil() as u64).max(1);
        if rest.each >= floor {
            return None;
        }
        candidates.retain(|c| c.weight >= floor);
        rest = Bound::ZERO;
    }
    Some(rest)
}

/// The candidate on which a random number of 53 bits falls, `None` if that hangs on the rest.
pub(crate) fn pick(candidates: &mut [Candidate], rest: Bound, draw: u64) -> Option<TokenId> {
    let place = |total: u64| ((u128::from(draw) * u128::from(total)) >> 53) as u64 + 1;
    let sum = weight::total(candidates);
    let (low, high) = (place(sum + rest.least), place(sum + rest.most));
    if sum < high {
        return None;
    }
    let found = crossing(candidates, low)?;
    let decided = found.sum >= high;
    candidates.get(found.index).filter(|_| decided).map(Candidate::token)
}

/// The least sum, at least 1, that is a share `p < 1` of `total` or more.
fn share(p: f64, total: u64) -> u64 {
    // p as a fraction of 2^64, exact for any p that matters (above 2^-11, a double has no finer
    // bits), times the total without rounding.
    let fraction = (p * 2_f64.powi(64)) as u128;
    let product = fraction * u128::from(total);
    (product.div_ceil(1 << 64) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_is_the_least_that_suffices() {
        assert_eq!(share(0.5, 10), 5);
        assert_eq!(share(0.5, 11), 6);
        assert_eq!(share(0.0, 11), 1);
        assert_eq!(share(1e-300, 11), 1);
        assert_eq!(share(1.0_f64.next_down(), 1 << 60), (1 << 60) - (1 << 7));
    }

    #[test]
    fn undecided_when_the_rest_matters() {
        let settings = Settings { top_p: 0.9, ..Settings::drawing(1.0) };
        let mut candidates: Vec<Candidate> =
            [0.0, -1.0, -2.0].into_iter().zip(0..).map(|(l, id)| Candidate::new(id, l)).collect();
        weight::weigh(&mut candidates, 0.0, 1.0);
        let sum = weight::total(&candidates);
        // 0.665, 0.910, 1.000: the second crosses 0.9, and still does if the rest weighs 1 %,
        // but not if it weighs 2 %.
        for (rest, kept) in [(sum / 100, Some(2)), (sum / 50, None)] {
            let mut candidates = candidates.clone();
            let bound = Bound { least: 0, most: rest, each: 1 };
            let narrowed = narrow(&settings, &mut candidates, bound);
            assert_eq!(narrowed.map(|_| candidates.len()), kept);
        }
    }
}
