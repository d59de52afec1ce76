//! What each stage did to each token of one step: for people who want to see it, not for speed.

use crate::error::Result;
use crate::sample::gather::Row;
use crate::sample::rest::Bounds;
use crate::sample::weight::{self, Candidate};
use crate::sample::{Settings, Stage, Step, filter, only, penalty};
use crate::vocab::TokenId;

/// One token in a [`trace`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenTrace {
    /// The token.
    pub token: TokenId,
    /// Its raw logit.
    pub logit: f32,
    /// The logit after penalties.
    pub penalised: f32,
    /// Its probability after mask, penalties and temperature (at temperature 0: as at 1).
    pub tempered: f64,
    /// Its final probability, 0 if a stage took it.
    pub probability: f64,
    /// The stage that took it.
    pub taken_by: Option<Stage>,
}

/// Follows every token of a row through the stages; the result is in the order of the ids.
///
/// # Errors
/// As [`crate::sample::Sampler::sample`].
pub fn trace(settings: &Settings, step: &Step<'_>) -> Result<Vec<TokenTrace>> {
    settings.check()?;
    let mut copy = Vec::new();
    let row = match only(step)? {
        Some(_) => Row::new(step.logits, step.mask, step.position)?,
        None => penalty::apply(&settings.penalties, step, &mut copy)?,
    };
    let mut rows: Vec<TokenTrace> = (0..).zip(step.logits).map(|(id, &l)| masked(id, l)).collect();
    let temperature = if settings.is_greedy() { 1.0 } else { settings.temperature };
    let mut candidates: Vec<Candidate> =
        row.tokens().map(|id| Candidate::new(id, row.logit(id))).collect();
    let peak = match only(step)? {
        Some(token) => row.logit(token),
        None => row.peak(&mut Bounds::default())?.logit,
    };
    weight::weigh(&mut candidates, peak, temperature);
    weight::sort(&mut candidates);
    let sum = weight::total(&candidates).max(1) as f64;
    let kept = kept(settings, &candidates);
    let final_sum = weight::total(&candidates[..kept.min_p]).max(1) as f64;
    for (place, candidate) in candidates.iter().enumerate() {
        let Some(row) = rows.get_mut(candidate.token() as usize) else { continue };
        row.penalised = candidate.logit();
        row.tempered = candidate.weight as f64 / sum;
        row.taken_by = kept.taken_by(place);
        if row.taken_by.is_none() {
            row.probability = candidate.weight as f64 / final_sum;
        }
    }
    Ok(rows)
}

/// A token that the mask took, until it is found to be allowed.
fn masked(token: TokenId, logit: f32) -> TokenTrace {
    TokenTrace {
        token,
        logit,
        penalised: logit,
        tempered: 0.0,
        probability: 0.0,
        taken_by: Some(Stage::Mask),
    }
}

/// How many of the candidates are left after each stage.
#[derive(Debug)]
struct Kept {
    temperature: usize,
    top_k: usize,
    top_p: usize,
    min_p: usize,
}

impl Kept {
    fn taken_by(&self, place: usize) -> Option<Stage> {
        let stages = [
            (self.temperature, Stage::Temperature),
            (self.top_k, Stage::TopK),
            (self.top_p, Stage::TopP),
            (self.min_p, Stage::MinP),
        ];
        stages.into_iter().find(|&(kept, _)| place >= kept).map(|(_, stage)| stage)
    }
}

/// Runs the filters one at a time over sorted candidates.
fn kept(settings: &Settings, candidates: &[Candidate]) -> Kept {
    let mut left = candidates.to_vec();
    if settings.is_greedy() {
        left.truncate(1);
    }
    let temperature = left.len();
    let alone = Settings::drawing(1.0);
    let mut after = |one: Settings| {
        filter::narrow(&one, &mut left, filter::Bound::ZERO);
        left.len()
    };
    Kept {
        temperature,
        top_k: after(Settings { top_k: settings.top_k, ..alone.clone() }),
        top_p: after(Settings { top_p: settings.top_p, ..alone.clone() }),
        min_p: after(Settings { min_p: settings.min_p, ..alone }),
    }
}
