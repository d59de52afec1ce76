//! Penalties: lower the raw logits of tokens that the output already used.
//!
//! With `c` occurrences in the window, first the repetition penalty `r` (a positive logit is
//! divided by it, a negative one multiplied), then `logit - c * frequency - presence`. By hand,
//! logit 5, two occurrences, frequency 1: 3, whatever the temperature. Forced tokens never come
//! here, since where one token is allowed no logit is read.

use crate::error::Result;
use crate::sample::gather::Row;
use crate::sample::{Penalties, Step};

/// The row of `step` with penalties, which live in `copy` if there are any.
pub(crate) fn apply<'a>(
    penalties: &Penalties,
    step: &Step<'a>,
    copy: &'a mut Vec<f32>,
) -> Result<Row<'a>> {
    if !penalties.is_on() || step.history.is_empty() {
        return Row::new(step.logits, step.mask, step.position);
    }
    copy.clear();
    copy.extend_from_slice(step.logits);
    let window = match penalties.window {
        0 => step.history.len(),
        window => window.min(step.history.len()),
    };
    let mut used = step.history[step.history.len() - window..].to_vec();
    used.sort_unstable();
    for run in used.chunk_by(|a, b| a == b) {
        if let Some(logit) = copy.get_mut(run[0] as usize) {
            *logit = penalise(penalties, *logit, run.len());
        }
    }
    Row::new(copy, step.mask, step.position)
}

/// One logit after `count` occurrences.
fn penalise(penalties: &Penalties, logit: f32, count: usize) -> f32 {
    let logit = f64::from(logit);
    let repeated = match logit > 0.0 {
        true => logit / penalties.repetition,
        false => logit * penalties.repetition,
    };
    (repeated - count as f64 * penalties.frequency - penalties.presence) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_window() -> Result<()> {
        let penalties = Penalties { frequency: 0.5, presence: 0.25, repetition: 2.0, window: 3 };
        let logits = [4.0, -4.0, 1.0, f32::NEG_INFINITY];
        let history = [2, 2, 0, 1, 0, 9];
        let step = Step { logits: &logits, mask: None, history: &history, position: 0 };
        let mut copy = Vec::new();
        let row = apply(&penalties, &step, &mut copy)?;
        let after: Vec<f32> = (0..4).map(|id| row.logit(id)).collect();
        // Only 1, 0 and 9 are in the window; 9 is not in the row.
        assert_eq!(after, [4.0 / 2.0 - 0.75, -4.0 * 2.0 - 0.75, 1.0, f32::NEG_INFINITY]);
        Ok(())
    }
}
