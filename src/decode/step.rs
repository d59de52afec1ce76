//! One step of one sequence, in two halves: what is known before its logits ([`Ready::look`]), and
//! what follows from them ([`Ready::choose`]).
//!
//! Between the halves the model computes. The loop of one request does one after the other; a scheduler
//! does the first half of many sequences on other threads while the model computes, so what the second
//! half needs of the first is kept here instead of borrowed from the matcher.
//!
//! Cost: a copy of the mask per step, some microseconds at 256,000 tokens.

use crate::decode::landing;
use crate::decode::output::{Guard, Output};
use crate::decode::verify::Law;
use crate::error::Result;
use crate::matcher::Mask;
use crate::vocab::TokenId;
use std::time::{Duration, Instant};

/// What is known of a step before its logits.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    ids: Vec<TokenId>,
    words: Vec<u32>,
    is_dense: bool,
    /// What to add to the logits.
    bias: Option<Vec<f32>>,
    /// The only token that is allowed.
    only: Option<TokenId>,
    /// What it took to find out.
    time: Duration,
}

impl Ready {
    /// Finds out which tokens may come next.
    pub fn look(&mut self, output: &mut Output<'_>, guard: &mut Guard) -> Result<()> {
        let clock = Instant::now();
        self.bias = landing::bias(output.request.soft_landing, guard)?;
        let mask = guard.mask()?;
        self.ids.clear();
        self.words.clear();
        match mask {
            Mask::Sparse(ids) => self.ids.extend_from_slice(ids),
            Mask::Dense(words) => self.words.extend_from_slice(words),
        }
        self.is_dense = matches!(mask, Mask::Dense(_));
        self.only = (mask.count() == 1).then(|| mask.iter().next()).flatten();
        output.statistics.forced_tokens += usize::from(self.only.is_some());
        self.time = clock.elapsed();
        output.statistics.mask_time += self.time;
        Ok(())
    }

    /// The tokens that may come next.
    pub fn mask(&self) -> Mask<'_> {
        if self.is_dense { Mask::Dense(&self.words) } else { Mask::Sparse(&self.ids) }
    }

    /// The token that comes next whatever the logits, which change nothing then: the model can skip them,
    /// unless they are asked for.
    pub fn forced(&self, output: &Output<'_>) -> Option<TokenId> {
        self.only.filter(|_| output.request.log_probs.is_none())
    }

    /// Notes that the forced token is taken.
    pub fn force(&self, output: &mut Output<'_>, token: TokenId) {
        output.watch((token, self.mask()), None, self.time);
    }

    /// The next token: from `scores` instead of the logits, if there are any; the drafted one by the
    /// rejection rule, if it is given with the law that it was drawn from.
    pub fn choose(
        &self,
        output: &mut Output<'_>,
        (row, scores): (&[f32], Option<&[f32]>),
        drafted: Option<(TokenId, Option<&Law>)>,
    ) -> Result<TokenId> {
        let landed = self.bias.as_ref().map(|bias| landing::land(row, bias));
        let token = output.choose(self.mask(), (row, scores.or(landed.as_deref())), drafted)?;
        output.watch((token, self.mask()), Some(row), self.time);
        Ok(token)
    }
}
