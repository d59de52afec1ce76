//! Reading a row of logits through a mask: the largest allowed logit, and the candidates near it.
//!
//! A sparse mask is a list of ids, and only those logits are read. A dense one is read in blocks of
//! 32 tokens, one word of the mask each. The first pass ([`Row::peak`]) keeps the largest logit of
//! every block; the second ([`Row::collect`]) visits only blocks that reach a threshold, a few
//! dozen of 4,096 as a rule, and returns what the others can weigh at most. Nothing is copied, and
//! minus infinity is never written anywhere: what the mask forbids is not read.
//!
//! # Cost
//! One comparison per logit in the first pass, in vector lanes; the second pass costs one
//! comparison per block and the work on the candidates.

use crate::error::{Error, Kind, Result};
use crate::matcher::Mask;
use crate::sample::weight::Candidate;
use crate::vocab::TokenId;

/// Tokens in a block: the bits of a word of a mask.
const BLOCK: usize = 32;

/// A row of logits behind a mask, at a position of the output (for messages).
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    logits: &'a [f32],
    mask: Option<Mask<'a>>,
    position: u64,
}

/// The best of the allowed tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Peak {
    /// Its logit, finite.
    pub logit: f32,
    /// Its id, the lowest if several share the logit.
    pub token: TokenId,
    /// Number of allowed tokens.
    pub allowed: usize,
}

/// How many allowed tokens were not collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rest {
    /// Possibly above the lower of the two thresholds.
    pub near: usize,
    /// Certainly below it.
    pub far: usize,
}

impl<'a> Row<'a> {
    /// Checks that the mask belongs to a row of this length.
    pub fn new(logits: &'a [f32], mask: Option<Mask<'a>>, position: u64) -> Result<Self> {
        /// Sums of weights fit 64 bits up to here.
        const WIDEST: usize = 1 << 21;
        let row = Self { logits, mask, position };
        let fits = match mask {
            None => true,
            Some(Mask::Dense(words)) => words.len() == logits.len().div_ceil(BLOCK),
            Some(Mask::Sparse(ids)) => ids.last().is_none_or(|&id| (id as usize) < logits.len()),
        };
        match fits && logits.len() <= WIDEST {
            true => Ok(row),
            false => {
                Err(row.error(format!("the row of {} logits does not fit the mask", logits.len())))
            }
        }
    }

    /// The only allowed token, if there is just one.
    pub fn only(&self) -> Option<TokenId> {
        match self.mask {
            Some(Mask::Sparse(&[id])) => Some(id),
            Some(Mask::Dense(words)) => {
                let mut set = words.iter().enumerate().filter(|(_, word)| **word != 0);
                let (at, word) = set.next()?;
                let single = word.is_power_of_two() && set.next().is_none();
                single.then(|| (at * BLOCK) as TokenId + word.trailing_zeros())
            }
            _ => None,
        }
    }

    /// Finds the best allowed token; `blocks` receives the largest logit of each block (nothing
    /// for a sparse mask).
    pub fn peak(&self, blocks: &mut Vec<f32>) -> Result<Peak> {
        blocks.clear();
        let (logit, allowed) = match self.mask {
            Some(Mask::Sparse(ids)) => {
                let nan = ids.iter().find(|&&id| self.logit(id).is_nan());
                if let Some(&id) = nan {
                    return Err(self.unusable(id));
                }
                let logits = ids.iter().map(|&id| self.logit(id));
                (logits.fold(f32::NEG_INFINITY, f32::max), ids.len())
            }
            _ => self.block_peaks(blocks)?,
        };
        if allowed == 0 {
            let message = format!("no token is allowed at position {}", self.position);
            return Err(Error::new(Kind::DeadEnd, message));
        }
        if logit == f32::NEG_INFINITY {
            return Err(self.error("every allowed token has the logit minus infinity".to_owned()));
        }
        let token = self.first_with(logit, blocks);
        if logit == f32::INFINITY {
            return Err(self.unusable(token));
        }
        Ok(Peak { logit, token, allowed })
    }

    /// Appends the allowed tokens with a logit of at least `high` to `candidates`, and counts the
    /// others around `low`. `blocks` is what [`Row::peak`] left there.
    pub fn collect(
        &self,
        (low, high): (f32, f32),
        blocks: &[f32],
        candidates: &mut Vec<Candidate>,
    ) -> Rest {
        let mut rest = Rest::default();
        let mut visit = |id: TokenId| {
            let logit = self.logit(id);
            match logit >= high {
                true => candidates.push(Candidate::new(id, logit)),
                false if logit >= low => rest.near += 1,
                false => rest.far += 1,
            }
        };
        if let Some(Mask::Sparse(ids)) = self.mask {
            ids.iter().for_each(|&id| visit(id));
            return rest;
        }
        let (mut near, mut far) = (0, 0);
        for (at, &peak) in blocks.iter().enumerate() {
            let word = self.word(at);
            if peak >= high {
                bits(word).for_each(|bit| visit((at * BLOCK) as TokenId + bit));
            } else if peak >= low {
                near += word.count_ones() as usize;
            } else {
                far += word.count_ones() as usize;
            }
        }
        Rest { near: rest.near + near, far: rest.far + far }
    }

    /// The allowed tokens, ascending.
    pub fn tokens(&self) -> impl Iterator<Item = TokenId> + use<'a> {
        let row = *self;
        let (ids, blocks): (&'a [TokenId], usize) = match row.mask {
            Some(Mask::Sparse(ids)) => (ids, 0),
            _ => (&[], row.logits.len().div_ceil(BLOCK)),
        };
        let dense = (0..blocks)
            .flat_map(move |at| bits(row.word(at)).map(move |bit| (at * BLOCK) as TokenId + bit));
        ids.iter().copied().chain(dense)
    }

    /// The logit of a token; minus infinity outside the row.
    pub fn logit(&self, id: TokenId) -> f32 {
        self.logits.get(id as usize).copied().unwrap_or(f32::NEG_INFINITY)
    }

    /// An error about this row, naming its position.
    pub fn error(&self, message: String) -> Error {
        let position = self.position;
        Error::new(Kind::Model, format!("{message}, at position {position} of the output"))
    }

    /// The error for a logit that is not a number or plus infinity.
    pub fn unusable(&self, id: TokenId) -> Error {
        self.error(format!("the logit of token {id} is {}", self.logit(id)))
            .help("the model file or its computation is damaged; try it without GPU layers")
    }

    /// The word of the mask for a block, without bits beyond the row.
    fn word(&self, at: usize) -> u32 {
        let word = match self.mask {
            Some(Mask::Dense(words)) => words.get(at).copied().unwrap_or(0),
            _ => !0,
        };
        match self.logits.len().saturating_sub(at * BLOCK) {
            tail if tail < BLOCK => word & ((1 << tail) - 1),
            _ => word,
        }
    }

    /// The largest logit of each block, of all of them, and the number of allowed tokens.
    fn block_peaks(&self, blocks: &mut Vec<f32>) -> Result<(f32, usize)> {
        let (full, tail) = self.logits.as_chunks::<BLOCK>();
        let mut padded = [f32::NEG_INFINITY; BLOCK];
        padded[..tail.len()].copy_from_slice(tail);
        let (mut best, mut allowed) = (f32::NEG_INFINITY, 0);
        for (at, block) in full.iter().chain((!tail.is_empty()).then_some(&padded)).enumerate() {
            let word = self.word(at);
            let peak = match word {
                0 => Some(f32::NEG_INFINITY),
                word => block_peak(block, word),
            };
            let Some(peak) = peak else {
                let id = bits(word).map(|bit| (at * BLOCK) as TokenId + bit);
                let nan = id.into_iter().find(|&id| self.logit(id).is_nan());
                return Err(self.unusable(nan.unwrap_or_default()));
            };
            blocks.push(peak);
            best = best.max(peak);
            allowed += word.count_ones() as usize;
        }
        Ok((best, allowed))
    }

    /// The lowest allowed id with this logit, which exists.
    fn first_with(&self, logit: f32, blocks: &[f32]) -> TokenId {
        let ids = match self.mask {
            Some(Mask::Sparse(ids)) => ids.iter().copied().find(|&id| self.logit(id) == logit),
            _ => blocks.iter().position(|&peak| peak == logit).and_then(|at| {
                let ids = bits(self.word(at)).map(|bit| (at * BLOCK) as TokenId + bit);
                ids.into_iter().find(|&id| self.logit(id) == logit)
            }),
        };
        ids.unwrap_or_default()
    }
}

/// The positions of the set bits, ascending.
fn bits(mut word: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        let more = word != 0;
        word &= word.wrapping_sub(1);
        more.then_some(bit)
    })
}

/// The largest selected logit, `None` if one of them is not a number. Written in lanes, without
/// branches, so that the compiler makes vector instructions of it.
fn block_peak(block: &[f32; BLOCK], word: u32) -> Option<f32> {
    const LANES: usize = 8;
    let mut best = [f32::NEG_INFINITY; LANES];
    let mut nan = [false; LANES];
    for (i, lanes) in block.as_chunks::<LANES>().0.iter().enumerate() {
        let selected = word >> (i * LANES);
        for j in 0..LANES {
            let value = if selected & 1 << j != 0 { lanes[j] } else { f32::NEG_INFINITY };
            nan[j] |= value.is_nan();
            best[j] = if value > best[j] { value } else { best[j] };
        }
    }
    let peak = best.into_iter().fold(f32::NEG_INFINITY, f32::max);
    (!nan.contains(&true)).then_some(peak)
}
