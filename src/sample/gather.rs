//! Reading a row of logits through a mask: the largest allowed logit, and the candidates near it.
//!
//! A sparse mask is a list of ids, and only those logits are read. A dense one is read in blocks of
//! 64 tokens, two words of the mask each. The first pass ([`Row::peak`]) takes the largest logit of
//! every block, allowed or not: a bound, which is made exact only in the few blocks whose bound
//! exceeds what was found before. (Before it is found, there are eight of them, one for each lane of the block; they are kept,
//! since they bound the block's weight more tightly: see [`rest`](crate::sample::rest).) The second ([`Row::collect`]) visits only blocks that reach a
//! threshold, a few dozen of 2,048 as a rule. Nothing is copied, and minus infinity is never written
//! anywhere.
//!
//! # Cost
//! One comparison per logit in the first pass, in vector lanes; the second pass costs one
//! comparison per block and the work on the candidates.

use crate::error::{Error, Kind, Result};
use crate::matcher::Mask;
use crate::sample::rest::{Bounds, Effort, LANES, Precision, Scale};
use crate::sample::weight::{Candidate, exp, exps, near_exps, select, sort};
use crate::vocab::TokenId;
use std::ops::AddAssign;

/// Tokens in a block.
const BLOCK: usize = 64;

/// Bits of a word of a mask.
const WORD: usize = 32;

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
}

impl<'a> Row<'a> {
    /// Checks that the mask belongs to a row of this length.
    pub fn new(logits: &'a [f32], mask: Option<Mask<'a>>, position: u64) -> Result<Self> {
        /// Sums of weights fit 64 bits up to here.
        const WIDEST: usize = 1 << 21;
        let row = Self { logits, mask, position };
        let fits = match mask {
            None => true,
            Some(Mask::Dense(words)) => words.len() == logits.len().div_ceil(WORD),
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
                single.then(|| (at * WORD) as TokenId + word.trailing_zeros())
            }
            _ => None,
        }
    }

    /// Finds the best allowed token; `bounds` receives bounds for the logits of each block (nothing
    /// for a sparse mask).
    pub fn peak(&self, bounds: &mut Bounds) -> Result<Peak> {
        bounds.blocks.clear();
        bounds.lanes.clear();
        let logit = match self.mask {
            Some(Mask::Sparse(ids)) => {
                let nan = ids.iter().find(|&&id| self.logit(id).is_nan());
                if let Some(&id) = nan {
                    return Err(self.unusable(id));
                }
                let logits = ids.iter().map(|&id| self.logit(id));
                logits.fold(f32::NEG_INFINITY, f32::max)
            }
            _ => self.block_peaks(bounds)?,
        };
        if logit == f32::NEG_INFINITY {
            return Err(match self.tokens().next() {
                Some(_) => self.error("every allowed token has the logit minus infinity".into()),
                None => {
                    let message = format!("no token is allowed at position {}", self.position);
                    Error::new(Kind::DeadEnd, message)
                }
            });
        }
        let token = self.first_with(logit, bounds);
        if logit == f32::INFINITY {
            return Err(self.unusable(token));
        }
        Ok(Peak { logit, token })
    }

    /// Appends the allowed tokens with a logit of at least `high` to `candidates`. `bounds` is what
    /// [`Row::peak`] left there.
    pub fn collect(&self, high: f32, bounds: &Bounds, candidates: &mut Vec<Candidate>) {
        let mut visit = |id: TokenId| {
            let logit = self.logit(id);
            if logit >= high {
                candidates.push(Candidate::new(id, logit));
            }
        };
        if let Some(Mask::Sparse(ids)) = self.mask {
            return ids.iter().for_each(|&id| visit(id));
        }
        for (at, _) in bounds.blocks.iter().enumerate().filter(|(_, bound)| **bound >= high) {
            bits(self.word(at)).for_each(|bit| visit((at * BLOCK) as TokenId + bit));
        }
    }

    /// The `count` best allowed tokens, in their order. `bounds` is what [`Row::peak`] left there.
    pub fn best(&self, count: usize, bounds: &Bounds) -> Vec<Candidate> {
        let (mut found, mut low) = (Vec::new(), f32::NEG_INFINITY);
        if count == 0 {
            return found;
        }
        let mut visit = |id: TokenId| {
            let logit = self.logit(id);
            if logit >= low {
                found.push(Candidate::new(id, logit));
            }
            // Sorted out now and then, so that most of the row is only compared.
            if found.len() >= 2 * count + BLOCK {
                keep(&mut found, count);
                low = found.iter().map(Candidate::logit).fold(f32::INFINITY, f32::min);
            }
            low
        };
        if let Some(Mask::Sparse(ids)) = self.mask {
            ids.iter().for_each(|&id| _ = visit(id));
        } else {
            let mut low = f32::NEG_INFINITY;
            for (at, bound) in bounds.blocks.iter().enumerate() {
                if *bound >= low {
                    let ids = bits(self.word(at)).map(|bit| (at * BLOCK) as TokenId + bit);
                    ids.for_each(|id| low = visit(id));
                }
            }
        }
        keep(&mut found, count);
        sort(&mut found);
        found
    }

    /// The sums of `e^(logit - max)` over all tokens of the row, and over the allowed ones. `max` is at least the largest
    /// allowed logit (if it is not the largest of all, the first sum means nothing), `bounds` what [`Row::peak`] left for the
    /// row without a mask.
    ///
    /// Blocks that reach within `near` of the largest logit are summed in double precision, the others in single precision: they
    /// are off by about 1e-6 of what they weigh, and mostly they weigh little.
    pub fn sums(&self, max: f32, bounds: &Bounds, near: f32) -> (f64, f64) {
        let (full, tail) = self.logits.as_chunks::<BLOCK>();
        let padded = pad(tail);
        let blocks = full.iter().chain((!tail.is_empty()).then_some(&padded));
        let (mut all, mut allowed) = (0.0, 0.0);
        for (at, (block, bound)) in blocks.zip(&bounds.blocks).enumerate() {
            let is_near = *bound >= max - near;
            let (sum, part) = match (self.mask, is_near) {
                (Some(Mask::Dense(_)), true) => split(&exps(block, max), self.word(at)),
                (Some(Mask::Dense(_)), false) => split(&near_exps(block, max), self.word(at)),
                (_, true) => (lanes(&exps(block, max)), 0.0),
                (_, false) => (lanes(&near_exps(block, max)), 0.0),
            };
            all += sum;
            allowed += part;
        }
        let power = |&id: &TokenId| exp(f64::from(self.logit(id)) - f64::from(max));
        match self.mask {
            None => (all, all),
            Some(Mask::Dense(_)) => (all, allowed),
            Some(Mask::Sparse(ids)) => (all, ids.iter().map(power).sum()),
        }
    }

    /// An interval that holds the sum of the exponentials of the allowed logits that were not
    /// collected, and the number of allowed tokens at most. All of at least `high` were collected; `bounds` is what
    /// [`Row::peak`] left there.
    pub fn rest(
        &self,
        (scale, effort): (Scale, Effort),
        (candidates, high): (&[Candidate], f32),
        bounds: &Bounds,
    ) -> ((f64, f64), usize) {
        let collected = candidates.iter().map(Candidate::logit);
        let (row, mask, gathered);
        match self.mask {
            None => (row, mask) = (self.logits, None),
            Some(Mask::Dense(words)) => (row, mask) = (self.logits, Some(words)),
            Some(Mask::Sparse(ids)) => {
                gathered = ids.iter().map(|&id| self.logit(id)).collect::<Vec<f32>>();
                (row, mask) = (gathered.as_slice(), None);
            }
        }
        let sum = match effort {
            Effort::Blocks if !bounds.blocks.is_empty() => {
                scale.outline(bounds, high, |at| self.block(at), collected)
            }
            Effort::Blocks => scale.sum(Precision::Coarse, (row, mask), collected),
            Effort::Row(precision) => scale.sum(precision, (row, mask), collected),
        };
        (sum, row.len())
    }

    /// The logits of a block, and the words of its mask.
    fn block(&self, at: usize) -> ([f32; BLOCK], [u32; BLOCK / WORD]) {
        let (full, tail) = self.logits.as_chunks::<BLOCK>();
        let word = self.word(at);
        (full.get(at).copied().unwrap_or_else(|| pad(tail)), [word as u32, (word >> WORD) as u32])
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

    /// The words of the mask for a block, without bits beyond the row.
    fn word(&self, at: usize) -> u64 {
        let half = |at: usize| match self.mask {
            Some(Mask::Dense(words)) => words.get(at).copied().map_or(0, u64::from),
            _ => u64::from(u32::MAX),
        };
        let word = half(at * 2) | half(at * 2 + 1) << WORD;
        match self.logits.len().saturating_sub(at * BLOCK) {
            tail if tail < BLOCK => word & ((1 << tail) - 1),
            _ => word,
        }
    }

    /// A bound for each block, and the largest allowed logit.
    fn block_peaks(&self, bounds: &mut Bounds) -> Result<f32> {
        let (full, tail) = self.logits.as_chunks::<BLOCK>();
        bounds.blocks.reserve(full.len() + 1);
        bounds.lanes.reserve(full.len() + 1);
        let padded = pad(tail);
        for block in full.iter().chain((!tail.is_empty()).then_some(&padded)) {
            let (bound, lanes) = block_bound(block);
            bounds.blocks.push(bound);
            bounds.lanes.push(lanes);
        }
        let mut best = f32::NEG_INFINITY;
        for (at, bound) in bounds.blocks.iter_mut().enumerate() {
            if *bound <= best {
                continue;
            }
            let ids = || bits(self.word(at)).map(|bit| (at * BLOCK) as TokenId + bit);
            // NaN makes the bound infinite, so that it is found here if it is allowed.
            if let Some(nan) = ids().find(|&id| self.logit(id).is_nan()) {
                return Err(self.unusable(nan));
            }
            *bound = ids().map(|id| self.logit(id)).fold(f32::NEG_INFINITY, f32::max);
            best = best.max(*bound);
        }
        Ok(best)
    }

    /// The lowest allowed id with this logit, which exists.
    fn first_with(&self, logit: f32, bounds: &Bounds) -> TokenId {
        let is_it = |id: &TokenId| self.logit(*id) == logit;
        let found = match self.mask {
            Some(Mask::Sparse(ids)) => ids.iter().copied().find(is_it),
            _ => {
                let near = bounds.blocks.iter().enumerate().filter(|(_, bound)| **bound >= logit);
                let ids = near.flat_map(|(at, _)| {
                    bits(self.word(at)).map(move |bit| (at * BLOCK) as TokenId + bit)
                });
                ids.into_iter().find(is_it)
            }
        };
        found.unwrap_or_default()
    }
}

/// The last logits of a row as a block.
fn pad(tail: &[f32]) -> [f32; BLOCK] {
    let mut padded = [f32::NEG_INFINITY; BLOCK];
    padded[..tail.len()].copy_from_slice(tail);
    padded
}

/// Keeps the first `count` of the order.
fn keep(candidates: &mut Vec<Candidate>, count: usize) {
    select(candidates, count);
    candidates.truncate(count);
}

/// The sum of all values of a block, and of those that a mask selects.
fn split<T: Copy + Default + AddAssign + Into<f64>>(values: &[T; BLOCK], word: u64) -> (f64, f64) {
    let all = lanes(values);
    let selected = match word {
        u64::MAX => all,
        word => bits(word).map(|bit| values[bit as usize].into()).sum(),
    };
    (all, selected)
}

/// The sum, in lanes.
fn lanes<T: Copy + Default + AddAssign + Into<f64>>(values: &[T; BLOCK]) -> f64 {
    let mut sums = [T::default(); 8];
    for eight in values.as_chunks::<8>().0 {
        for j in 0..8 {
            sums[j] += eight[j];
        }
    }
    sums.into_iter().map(Into::into).sum()
}

/// The positions of the set bits, ascending.
fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        let more = word != 0;
        word &= word.wrapping_sub(1);
        more.then_some(bit)
    })
}

/// The largest logit of a block, infinite if one of them is not a number, and those of its lanes. Written in lanes, without
/// branches, so that the compiler makes vector instructions of it; one comparison tells whether one of two
/// is not a number.
fn block_bound(block: &[f32; BLOCK]) -> (f32, [f32; LANES]) {
    let mut best = [f32::NEG_INFINITY; LANES];
    let mut nan = [0_u32; LANES];
    for pair in block.as_chunks::<{ 2 * LANES }>().0 {
        for j in 0..LANES {
            let (a, b) = (pair[j], pair[j + LANES]);
            nan[j] |= if a.is_nan() | b.is_nan() { u32::MAX } else { 0 };
            best[j] = if a > best[j] { a } else { best[j] };
            best[j] = if b > best[j] { b } else { best[j] };
        }
    }
    let halves = [0, 1, 2, 3].map(|j| if best[j] > best[j + 4] { best[j] } else { best[j + 4] });
    let bound = halves.into_iter().fold(f32::NEG_INFINITY, |a, b| if a > b { a } else { b });
    let bound = if nan.iter().fold(0, |all, lane| all | lane) == 0 { bound } else { f32::INFINITY };
    (bound, best)
}
