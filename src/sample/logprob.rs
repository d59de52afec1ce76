//! Log-probabilities: how likely the model found what was chosen, computed only when asked.
//!
//! *Raw* is the model's own law, the softmax of all logits. *Constrained* is that law
//! renormalised over the mask; before penalties, temperature and filters, so that the figures of
//! two runs with other settings can be compared. The *mask mass* is the raw probability of the
//! allowed tokens together: constrained = raw / mask mass. A small mask mass means that the model
//! wanted to say something else; the product over an answer is the weight by which its law was bent.
//!
//! A mean log-probability is a signal for routing (ask a larger model, ask a person), not a
//! probability that the answer is right. Logarithms are the platform's and may differ in the last
//! digit between machines; nothing that is chosen depends on them.
//!
//! # Cost
//! One pass of comparisons and one of exponentials over the row: two nanoseconds per token of the vocabulary. What is far below the
//! best token is summed in single precision, so that a log-probability is off by up to 1e-6 (3e-6 where all allowed tokens are
//! far below it), mostly by less than 1e-8; logits of models are single precision, too.

use crate::error::{Error, Kind, Result};
use crate::sample::gather::Row;
use crate::sample::rest::Bounds;
use crate::sample::weight::{Candidate, exp};
use crate::sample::{Step, only};
use crate::vocab::TokenId;

/// A token with its log-probabilities (natural logarithms).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogProb {
    /// The token.
    pub token: TokenId,
    /// Among all tokens.
    pub raw: f64,
    /// Among the allowed tokens.
    pub constrained: f64,
}

/// The token that the model would have liked most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Favourite {
    /// The token, the lowest id if several are as likely.
    pub token: TokenId,
    /// Its log-probability among all tokens.
    pub raw: f64,
    /// Whether the mask allows it.
    pub allowed: bool,
}

/// The log-probabilities of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepLogProbs {
    /// The chosen token.
    pub chosen: LogProb,
    /// Raw probability of all allowed tokens together.
    pub mask_mass: f64,
    /// The most likely of all tokens, allowed or not.
    pub favourite: Favourite,
    /// The most likely allowed tokens, the best first.
    pub alternatives: Vec<LogProb>,
}

/// Tokens with a logit so far below the largest are summed in single precision.
const NEAR: f32 = 4.0;

/// From here on the best allowed token is so far below the best of all that its power does not fit the scale of single
/// precision: the allowed tokens get a sum of their own.
const FAR: f32 = 60.0;

/// Computes them for the token `chosen` at `step`, with this many alternatives.
///
/// # Errors
/// [`crate::Kind::Model`] if a logit is not a number or plus infinity.
pub fn log_probs(step: &Step<'_>, chosen: TokenId, alternatives: usize) -> Result<StepLogProbs> {
    let all = Row::new(step.logits, None, step.position)?;
    let allowed = Row::new(step.logits, step.mask, step.position)?;
    let mut bounds = Bounds::default();
    let peak = all.peak(&mut bounds)?;
    let max = f64::from(peak.logit);
    let (sum, sum_allowed) = allowed.sums(peak.logit, &bounds, NEAR);
    let log_all = max + sum.ln();
    let (log_allowed, best) = match only(step)? {
        Some(token) => {
            let best = vec![Candidate::new(token, allowed.logit(token))];
            (f64::from(allowed.logit(token)), best)
        }
        None => {
            let mut own_bounds = Bounds::default();
            let own = allowed.peak(&mut own_bounds)?;
            let best = allowed.best(alternatives, &own_bounds);
            match peak.logit - own.logit > FAR {
                false => (max + sum_allowed.ln(), best),
                true => {
                    (f64::from(own.logit) + allowed.sums(own.logit, &bounds, NEAR).1.ln(), best)
                }
            }
        }
    };
    let log_prob = |token: TokenId| {
        let logit = f64::from(all.logit(token));
        // A forced token has probability 1 among the allowed, even if the model rules it out.
        let constrained = if logit == log_allowed { 0.0 } else { logit - log_allowed };
        LogProb { token, raw: logit - log_all, constrained }
    };
    Ok(StepLogProbs {
        chosen: log_prob(chosen),
        mask_mass: exp((log_allowed - log_all).min(0.0)),
        favourite: Favourite {
            token: peak.token,
            raw: f64::from(peak.logit) - log_all,
            allowed: step.mask.is_none_or(|mask| mask.contains(peak.token)),
        },
        alternatives: best.iter().take(alternatives).map(|c| log_prob(c.token())).collect(),
    })
}

/// The raw log-probabilities of tokens: those of the model's own law, in double precision throughout.
///
/// # Errors
/// As [`log_probs`]; [`crate::Kind::BadArgument`] for a token that the row does not have.
pub fn raw_log_probs(logits: &[f32], tokens: &[TokenId]) -> Result<Vec<f64>> {
    let all = Row::new(logits, None, 0)?;
    let mut bounds = Bounds::default();
    let peak = all.peak(&mut bounds)?.logit;
    let log_all = f64::from(peak) + all.sums(peak, &bounds, f32::INFINITY).0.ln();
    let missing = |token| {
        let message = format!("token {token} of a row of {} logits", logits.len());
        Error::new(Kind::BadArgument, message)
    };
    let log_prob = |&token: &TokenId| {
        let logit = logits.get(token as usize).ok_or_else(|| missing(token))?;
        Ok(f64::from(*logit) - log_all)
    };
    tokens.iter().map(log_prob).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matcher::Mask;
    use crate::sample::random::mix;

    #[test]
    fn agree_with_the_definition() -> Result<()> {
        let logits: Vec<f32> = (0..100).map(|i| ((i * 37) % 100) as f32 / 7.0).collect();
        let ids: Vec<TokenId> = (0..100).filter(|i| i % 3 == 0).collect();
        let mask = Some(Mask::Sparse(&ids));
        let step = Step { logits: &logits, mask, history: &[], position: 0 };
        let found = log_probs(&step, 30, 4)?;
        let e = |id: TokenId| f64::from(logits[id as usize]).exp();
        let all: f64 = (0..100).map(e).sum();
        let allowed: f64 = ids.iter().map(|&id| e(id)).sum();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
        close(found.chosen.raw, (e(30) / all).ln());
        close(found.chosen.constrained, (e(30) / allowed).ln());
        close(found.mask_mass, allowed / all);
        let mut best = ids.clone();
        best.sort_by(|&a, &b| logits[b as usize].total_cmp(&logits[a as usize]));
        let tokens: Vec<TokenId> = found.alternatives.iter().map(|a| a.token).collect();
        assert_eq!(tokens, best[..4]);
        let favourite = (0..100).max_by(|&a: &TokenId, &b| e(a).total_cmp(&e(b))).unwrap_or(0);
        assert_eq!((found.favourite.token, found.favourite.allowed), (favourite, true));
        close(found.favourite.raw, (e(favourite) / all).ln());
        let everything = log_probs(&Step { mask: None, ..step }, 30, 0)?;
        close(everything.mask_mass, 1.0);
        assert_eq!(everything.chosen.raw, everything.chosen.constrained);
        Ok(())
    }

    #[test]
    fn masks_of_all_shapes_agree_with_the_definition() -> Result<()> {
        for seed in 0..200_u64 {
            let width = 70 + (mix(seed) % 900) as usize;
            let spread = [0.5, 3.0, 20.0, 900.0][seed as usize % 4];
            let logits: Vec<f32> = (0..width as u64)
                .map(|i| (mix(seed << 20 | i) >> 40) as f32 / 2_f32.powi(24) * spread)
                .collect();
            // From a few tokens to nearly all, in whole blocks too.
            let rare = 1 + mix(seed + 5) % 6;
            let is_in = |i: u64| (mix(seed * 77 + i) % 6 < rare) != (i / 64 == 1);
            let ids: Vec<TokenId> =
                (0..width as TokenId).filter(|&i| is_in(u64::from(i))).collect();
            let mut words = vec![0_u32; width.div_ceil(32)];
            ids.iter().for_each(|&id| words[id as usize / 32] |= 1 << (id % 32));
            let mut best = ids.clone();
            best.sort_by(|&a, &b| {
                logits[b as usize].total_cmp(&logits[a as usize]).then(a.cmp(&b))
            });
            let log_sum = |ids: &mut dyn Iterator<Item = TokenId>| {
                let logits: Vec<f64> = ids.map(|id| f64::from(logits[id as usize])).collect();
                let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                max + logits.iter().map(|logit| (logit - max).exp()).sum::<f64>().ln()
            };
            let (all, some) =
                (log_sum(&mut (0..width as TokenId)), log_sum(&mut ids.iter().copied()));
            for mask in [Mask::Sparse(&ids), Mask::Dense(&words)] {
                let step = Step { logits: &logits, mask: Some(mask), history: &[], position: 0 };
                let found = log_probs(&step, best[1], 9)?;
                let logit = f64::from(logits[best[1] as usize]);
                let close = |a: f64, b: f64| {
                    assert!((a - b).abs() < 2e-6 * b.abs().max(1.0), "{a} is not {b}")
                };
                close(found.chosen.raw, logit - all);
                close(found.chosen.constrained, logit - some);
                close(found.mask_mass, (some - all).exp());
                let tokens: Vec<TokenId> = found.alternatives.iter().map(|a| a.token).collect();
                assert_eq!(tokens, best[..9.min(best.len())]);
            }
        }
        Ok(())
    }

    #[test]
    fn a_forced_token_is_certain_among_the_allowed() -> Result<()> {
        let logits = [3.0, f32::NEG_INFINITY, -2.0];
        for (token, mass) in [(2, (-5.0_f64).exp() / (1.0 + (-5.0_f64).exp())), (1, 0.0)] {
            let ids = [token];
            let mask = Some(Mask::Sparse(&ids));
            let step = Step { logits: &logits, mask, history: &[], position: 0 };
            let found = log_probs(&step, token, 0)?;
            assert_eq!(found.chosen.constrained, 0.0);
            assert!((found.mask_mass - mass).abs() < 1e-15);
            assert_eq!((found.favourite.token, found.favourite.allowed), (0, false));
        }
        Ok(())
    }
}
