//! Contrastive scores: what the model likes more than the amateur does.
//!
//! By hand, alpha 0.1, beta 0.5, logits of the model 4, 3, 1 and of the amateur 4, 1, 0: the head is
//! what reaches 4 + ln 0.1 = 1.70, the first two; their scores are 1.5 * 4 - 0.5 * 4 = 4 and
//! 1.5 * 3 - 0.5 * 1 = 4. What both like is pulled down to what the amateur does not expect.
//!
//! The mask comes first: else the best token could be a forbidden one, and the head empty. Only
//! differences of logits matter in both laws, so neither needs to be normalised.

use crate::decode::Contrastive;
use crate::error::Result;
use crate::matcher::Mask;

/// How far below its best allowed logit the amateur's are counted: one that finds a token impossible
/// must not decide alone.
const DEEPEST: f32 = 30.0;

/// Fills `scores`: minus infinity outside the head.
pub(crate) fn score(
    contrastive: &Contrastive,
    mask: &Mask<'_>,
    (model, amateur): (&[f32], &[f32]),
    scores: &mut Vec<f32>,
) -> Result<()> {
    let peak = |row: &[f32]| {
        let logits = mask.iter().filter_map(|id| row.get(id as usize));
        logits.fold(f32::NEG_INFINITY, |peak, &logit| peak.max(logit))
    };
    scores.clear();
    scores.resize(model.len(), f32::NEG_INFINITY);
    let best = peak(model);
    let floor = Some(peak(amateur) - DEEPEST).filter(|floor| floor.is_finite()).unwrap_or(0.0);
    let head = (f64::from(best) + contrastive.alpha.ln()) as f32;
    let beta = contrastive.beta as f32;
    for id in mask.iter() {
        let id = id as usize;
        let (Some(&logit), Some(&other), Some(score)) =
            (model.get(id), amateur.get(id), scores.get_mut(id))
        else {
            continue;
        };
        // What is not a number stays one: the sampler names the token.
        if logit >= head || logit.is_nan() {
            *score = (1.0 + beta) * logit - beta * other.max(floor);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sampler, Settings, Step};

    const MODEL: [f32; 6] = [4.0, 3.0, 1.0, 9.0, 3.9, f32::NEG_INFINITY];
    const AMATEUR: [f32; 6] = [4.0, 1.0, 0.0, 0.0, 4.0, 2.0];
    /// The fourth, the model's favourite, is forbidden.
    const ALLOWED: Mask<'_> = Mask::Sparse(&[0, 1, 2, 4, 5]);

    fn scores(alpha: f64, beta: f64, amateur: &[f32]) -> Result<Vec<f32>> {
        let mut scores = Vec::new();
        score(&Contrastive { alpha, beta }, &ALLOWED, (&MODEL, amateur), &mut scores)?;
        Ok(scores)
    }

    #[test]
    fn by_hand_and_only_inside_the_mask() -> Result<()> {
        let none = f32::NEG_INFINITY;
        let found = scores(0.1, 0.5, &AMATEUR)?;
        let expected = [4.0, 4.0, none, none, 1.5 * 3.9 - 2.0, none];
        assert_eq!(found, expected);
        Ok(())
    }

    #[test]
    fn its_ends_are_greedy_and_the_model_itself() -> Result<()> {
        // Alpha 1: the head is the best allowed token.
        let one = scores(1.0, 0.5, &AMATEUR)?;
        assert_eq!(one.iter().filter(|score| score.is_finite()).count(), 1);
        assert!(one[0].is_finite());
        // Beta 0, alpha 0: the model's own logits. An amateur that is the model changes nothing.
        for found in [scores(0.0, 0.0, &AMATEUR)?, scores(0.0, 0.7, &MODEL)?] {
            for id in ALLOWED.iter().take(4) {
                assert!((found[id as usize] - MODEL[id as usize]).abs() < 1e-5);
            }
        }
        Ok(())
    }

    #[test]
    fn an_amateur_without_hope_is_no_infinity() -> Result<()> {
        let hopeless = [0.0, f32::NEG_INFINITY, 0.0, 0.0, 0.0, 0.0];
        let found = scores(0.1, 0.5, &hopeless)?;
        assert_eq!(found[1], 1.5 * 3.0 + 0.5 * DEEPEST);
        let mut sampler = Sampler::new(Settings::greedy(), 0)?;
        let step = Step { logits: &found, mask: Some(ALLOWED), history: &[], position: 0 };
        assert_eq!(sampler.sample(&step)?, 1);
        Ok(())
    }
}
