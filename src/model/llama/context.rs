//! A context of llama.cpp as a [`Model`].

use crate::error::{Error, Kind, Result};
use crate::model::llama::heads::{self, Heads};
use crate::model::llama::{
    FlashAttention, LlamaOptions, LlamaWeights, backend, chat, id_of, lock, token_of,
};
use crate::model::{
    Batch, Message, Model, Prompt, Sequence, check_batch, context_full, lacks_heads,
};
use crate::vocab::{TokenId, Vocabulary};
use llama_cpp_2::LlamaContextLoadError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::{LlamaContextParams, LlamaContextType};
use llama_cpp_2::llama_batch::LlamaBatch;
use std::num::NonZeroU32;

/// Most entries of a batch.
const MAX_BATCH: usize = 512;

/// Tokens of a sequence unless the options or the model say less.
const DEFAULT_CONTEXT: usize = 4096;

/// Weights with sequences of their own.
pub struct LlamaModel<'w> {
    weights: &'w LlamaWeights,
    engine: Engine<'w>,
    batch: LlamaBatch<'static>,
    context_len: usize,
    /// Tokens in each sequence.
    lens: Vec<usize>,
    /// Which entries of the last batch have logits.
    wanted: Vec<bool>,
}

/// What computes.
enum Engine<'w> {
    Plain(LlamaContext<'w>),
    /// With heads that predict several tokens.
    Heads(Heads<'w>),
}

impl<'w> Engine<'w> {
    fn context(&self) -> &LlamaContext<'w> {
        match self {
            Engine::Plain(context) => context,
            Engine::Heads(heads) => heads.model(),
        }
    }

    fn context_mut(&mut self) -> &mut LlamaContext<'w> {
        match self {
            Engine::Plain(context) => context,
            Engine::Heads(heads) => heads.model_mut(),
        }
    }
}

impl<'w> LlamaModel<'w> {
    /// A context on `weights`.
    ///
    /// # Errors
    /// [`Kind::BadArgument`] for options out of range, [`Kind::Model`] if there is not enough memory.
    pub fn new(weights: &'w LlamaWeights, options: &LlamaOptions) -> Result<Self> {
        let trained = weights.trained_context_len();
        let context_len = options.context_len.unwrap_or(DEFAULT_CONTEXT.min(trained));
        // llama.cpp rounds up to this itself.
        let context_len = context_len.next_multiple_of(256);
        let sequences = options.sequences;
        let cells = context_len.checked_mul(sequences).and_then(|cells| u32::try_from(cells).ok());
        let threads = options.threads.unwrap_or_else(default_threads);
        let (Some(cells), 1..=256, 1..=512) = (cells.and_then(NonZeroU32::new), sequences, threads)
        else {
            let message = format!(
                "a context of {context_len} tokens, {sequences} sequences and {threads} threads cannot be had"
            );
            return Err(Error::new(Kind::BadArgument, message)
                .help("1 to 256 sequences, 1 to 512 threads and a context that fits the memory"));
        };
        let params = LlamaContextParams::default()
            .with_n_ctx(Some(cells))
            .with_n_batch(MAX_BATCH as u32)
            .with_n_ubatch(MAX_BATCH as u32)
            .with_n_seq_max(sequences as u32)
            .with_kv_unified(false)
            .with_flash_attention_policy(match options.flash_attention {
                FlashAttention::Auto => -1,
                FlashAttention::Off => 0,
                FlashAttention::On => 1,
            })
            .with_n_threads(threads as i32)
            .with_n_threads_batch(threads as i32);
        if weights.heads > 0 && sequences > 1 {
            let message = format!("heads serve one sequence, not {sequences}");
            return Err(Error::new(Kind::BadArgument, message).help("draft by something else"));
        }
        let engine = engine(weights, options, params).map_err(|error| {
            let message =
                format!("no context of {context_len} tokens for {sequences} sequences: {error}");
            Error::new(Kind::Model, message).help("lower the context size")
        })?;
        let batch = LlamaBatch::new(MAX_BATCH, 1);
        let (lens, wanted) = (vec![0; sequences], Vec::new());
        Ok(Self { weights, engine, batch, context_len, lens, wanted })
    }

    /// A sequence number as llama.cpp wants it.
    fn number(&self, sequence: Sequence) -> Result<i32> {
        let number = i32::try_from(sequence).ok().filter(|_| (sequence as usize) < self.lens.len());
        number.ok_or_else(|| {
            let count = self.lens.len();
            Error::new(Kind::BadArgument, format!("there is no sequence {sequence} of {count}"))
        })
    }
}

/// A context on `weights`, with that of their heads if they have any.
fn engine<'w>(
    weights: &'w LlamaWeights,
    options: &LlamaOptions,
    params: LlamaContextParams,
) -> Result<Engine<'w>> {
    let backend = backend(options.logs)?;
    let failed = |error: LlamaContextLoadError| Error::new(Kind::Model, error.to_string());
    let _one_at_a_time = lock();
    let context = weights.weights.new_context(backend, params.clone()).map_err(failed)?;
    if weights.heads == 0 {
        return Ok(Engine::Plain(context));
    }
    let params = params.with_context_type(LlamaContextType::Mtp);
    let heads = weights.weights.new_context_with_ctx_other(backend, params, &context);
    Ok(Engine::Heads(Heads::new(context, heads.map_err(failed)?)?))
}

impl Model for LlamaModel<'_> {
    fn vocabulary(&self) -> &Vocabulary {
        &self.weights.vocabulary
    }

    fn name(&self) -> String {
        self.weights.name.clone()
    }

    fn context_len(&self) -> usize {
        self.context_len
    }

    fn max_sequences(&self) -> usize {
        self.lens.len()
    }

    fn max_batch(&self) -> usize {
        MAX_BATCH
    }

    fn sequence_len(&self, sequence: Sequence) -> usize {
        self.lens.get(sequence as usize).copied().unwrap_or(0)
    }

    fn eval(&mut self, batch: &Batch) -> Result<()> {
        check_batch(self, batch)?;
        self.wanted.clear();
        self.batch.clear();
        let mut lens = self.lens.clone();
        for entry in batch.entries() {
            let sequence = self.number(entry.sequence)?;
            let len = &mut lens[entry.sequence as usize];
            let position = i32::try_from(*len).unwrap_or(i32::MAX);
            *len += 1;
            let added = self.batch.add(token_of(entry.token), position, &[sequence], entry.logits);
            added.map_err(|error| Error::new(Kind::Model, format!("llama.cpp: {error}")))?;
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.engine.context_mut().decode(&mut self.batch).map_err(|error| {
            let message = format!("llama.cpp failed on a batch of {} tokens: {error}", batch.len());
            Error::new(Kind::Model, message).help("its log says more (-v)")
        })?;
        if let Engine::Heads(heads) = &mut self.engine {
            heads.follow(&self.batch, self.lens[0])?;
        }
        self.lens = lens;
        self.wanted.extend(batch.entries().iter().map(|entry| entry.logits));
        Ok(())
    }

    fn logits(&self, index: usize) -> Result<&[f32]> {
        match (self.wanted.get(index), i32::try_from(index)) {
            (Some(true), Ok(index)) => Ok(self.engine.context().get_logits_ith(index)),
            _ => {
                let message = format!("entry {index} did not ask for logits");
                Err(Error::new(Kind::BadArgument, message))
            }
        }
    }

    fn truncate(&mut self, sequence: Sequence, len: usize) -> Result<()> {
        let number = self.number(sequence)?;
        let held = self.lens[sequence as usize];
        let from = u32::try_from(len).ok().filter(|&from| from > 0);
        if len > held {
            return Ok(());
        }
        // Also where nothing seems to be removed: a failed batch may have left something.
        let context = self.engine.context_mut();
        let removed = context.clear_kv_cache_seq(Some(number as u32), from, None);
        if removed != Ok(true) {
            let message = format!("the model cannot go back from {held} to {len} tokens");
            return Err(Error::new(Kind::Model, message)
                .help("recurrent models cannot; use a strategy without drafts"));
        }
        if let Engine::Heads(heads) = &mut self.engine {
            heads.cut(len)?;
        }
        self.lens[sequence as usize] = len;
        Ok(())
    }

    fn heads(&self) -> usize {
        if matches!(self.engine, Engine::Heads(_)) { heads::MOST } else { 0 }
    }

    fn predict(&mut self, tokens: &[TokenId], most: usize) -> Result<Vec<TokenId>> {
        let Engine::Heads(heads) = &mut self.engine else {
            return Err(Error::new(Kind::Model, lacks_heads(self.weights.name())));
        };
        let mut guess = heads.guess(tokens)?;
        guess.truncate(most);
        Ok(guess)
    }

    fn copy(&mut self, from: Sequence, to: Sequence) -> Result<()> {
        let (source, target) = (self.number(from)?, self.number(to)?);
        if from == to {
            return Ok(());
        }
        let failed = |message: String| Error::new(Kind::Model, format!("llama.cpp: {message}"));
        // The whole sequence: llama.cpp aborts on a part of one.
        self.engine
            .context_mut()
            .copy_kv_cache_seq(source, target, None, None)
            .map_err(|error| failed(error.to_string()))?;
        self.lens[to as usize] = self.lens[from as usize];
        Ok(())
    }

    fn tokenize(&self, text: &str, special: bool) -> Result<Vec<TokenId>> {
        self.encode(text, false, special)
    }

    fn chat(&self, messages: &[Message]) -> Result<Prompt> {
        let rendered = chat::render(&self.weights.weights, messages)?;
        let text: String = rendered.iter().map(|part| part.text.as_str()).collect();
        let mut tokens = self.encode(&text, true, true)?;
        let specials = |tokens: &[TokenId]| {
            tokens.iter().filter(|&&id| self.vocabulary().is_special(id)).count()
        };
        let own = rendered.iter().filter(|part| !part.content);
        let own: String = own.map(|part| part.text.as_str()).collect();
        if specials(&tokens) != specials(&self.encode(&own, true, true)?) {
            // A message spells special tokens: its parts are read one by one, so that they are text.
            tokens.clear();
            for (i, part) in rendered.iter().enumerate() {
                tokens.extend(self.encode(&part.text, i == 0, !part.content)?);
            }
        }
        // Some templates spell the token that begins a sequence, and the encoder puts it there too.
        if let [first, second, ..] = tokens[..]
            && first == second
            && first == id_of(self.weights.weights.vocab().bos())
        {
            tokens.remove(0);
        }
        Ok(Prompt { text, tokens })
    }

    fn plain(&self, text: &str) -> Result<Prompt> {
        Ok(Prompt { text: text.to_owned(), tokens: self.encode(text, true, false)? })
    }
}

impl LlamaModel<'_> {
    /// The tokens of a text; `begin` puts before it what the model wants at the start.
    fn encode(&self, text: &str, begin: bool, special: bool) -> Result<Vec<TokenId>> {
        let longest = self.vocabulary().trie().max_len().max(1);
        if text.len() / longest > self.context_len {
            // Not even with the longest token throughout: no need to count.
            return Err(context_full(text.len() / longest, self.context_len));
        }
        let tokens = self.weights.weights.vocab().tokenize(text.as_bytes(), begin, special);
        Ok(tokens.into_iter().map(id_of).collect())
    }
}

/// One thread per physical core that this process may use, but for one that is left to everything
/// else: the threads wait for each other by spinning, and if one of them has to share its core, all
/// of them are as slow as that one. Two threads on one core gain nothing.
fn default_threads() -> usize {
    let logical = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |block: &str, name: &str| {
        let line = block.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split(':').nth(1)).map(|value| value.trim().to_owned())
    };
    let mut cores: Vec<_> = info
        .split("\n\n")
        .filter_map(|block| Some((field(block, "physical id")?, field(block, "core id")?)))
        .collect();
    cores.sort();
    cores.dedup();
    let physical = if cores.is_empty() { logical } else { cores.len().min(logical) };
    physical.saturating_sub(1).max(1)
}
