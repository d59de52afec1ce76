//! The sequences of a model: what each holds, who runs on it, and from where a new prompt can be copied.
//!
//! As in [`track`](crate::decode::track), what is kept of a prompt ends at a whole chunk. By hand, chunks of 64: sequence 0
//! runs a request whose prompt of 300 tokens is computed up to token 128; a new one shares 200 tokens with
//! it. 128 of them could be copied now, 192 soon: it is worth waiting. A third prompt that shares 100 is
//! copied at once, 64 of them.
//!
//! A request goes to the lowest free sequence: models compute neighbours together.

use crate::decode::track::CHUNK;
use crate::error::Result;
use crate::model::{Model, Sequence};
use crate::serve::running::Running;
use crate::vocab::TokenId;

/// One sequence.
#[derive(Default)]
pub(super) struct Slot {
    /// The tokens that the model holds.
    pub held: Vec<TokenId>,
    /// How many of them are a prompt that went through in whole chunks.
    prompt_len: usize,
    /// Who runs on it.
    pub running: Option<Running>,
}

/// Where a prompt can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// With a copy of the first tokens of a sequence.
    Copy(usize, usize),
    /// Somebody is computing its beginning.
    Later,
}

fn shared(a: &[TokenId], b: &[TokenId]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Whole chunks of `prompt`, of which at least one token is left to compute.
fn chunks(prompt: &[TokenId], shared: usize) -> usize {
    shared.min(prompt.len().saturating_sub(1)) / CHUNK * CHUNK
}

/// The best start for `prompt` on sequence `own`.
fn start(slots: &[Slot], own: usize, prompt: &[TokenId]) -> Start {
    // What it holds itself needs no copy, so it wins ties.
    let order = std::iter::once(own).chain((0..slots.len()).filter(|&at| at != own));
    let (mut best, mut soon) = ((own, 0), 0);
    for at in order {
        let slot = &slots[at];
        let held =
            chunks(prompt, shared(&slot.held[..slot.prompt_len.min(slot.held.len())], prompt));
        if held > best.1 {
            best = (at, held);
        }
        if let Some(other) = slot.running.as_ref().filter(|_| at != own)
            && other.is_started
            && !other.is_decoding()
        {
            soon = soon.max(chunks(prompt, chunks(other.prompt(), shared(other.prompt(), prompt))));
        }
    }
    if soon > best.1 { Start::Later } else { Start::Copy(best.0, best.1) }
}

/// Prepares the sequence of a request that has one but did not start; says how many tokens of its prompt
/// it has then, or `None` if it is to wait for another one's.
pub(super) fn prepare(
    slots: &mut [Slot],
    own: usize,
    model: &mut dyn Model,
) -> Result<Option<usize>> {
    let Some(running) = &slots[own].running else { return Ok(None) };
    let prompt_len = running.prompt().len();
    let Start::Copy(from, kept) = start(slots, own, running.prompt()) else { return Ok(None) };
    let sequence = own as Sequence;
    if from != own {
        slots[own].held.clear();
        model.truncate(sequence, 0)?;
        model.copy(from as Sequence, sequence)?;
        slots[own].held = slots[from].held.clone();
    }
    let kept = cut(&mut slots[own], sequence, kept, model)?;
    slots[own].prompt_len = prompt_len;
    if let Some(running) = &mut slots[own].running {
        running.start(kept);
    }
    Ok(Some(kept))
}

/// Forgets all but the first `len` tokens, or all where the model cannot go back to the middle of a sequence.
pub(super) fn cut(
    slot: &mut Slot,
    sequence: Sequence,
    len: usize,
    model: &mut dyn Model,
) -> Result<usize> {
    let mut kept = len;
    if model.truncate(sequence, kept).is_err() {
        kept = 0;
        slot.held.clear();
        model.truncate(sequence, 0)?;
    }
    slot.held.truncate(kept);
    slot.prompt_len = slot.prompt_len.min(kept);
    Ok(kept)
}
