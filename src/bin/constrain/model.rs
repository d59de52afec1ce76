//! Which model runs, and loading it; and vocabularies, which tokenizer files have, and models too.

use crate::args::{FlashAttention, ModelArgs, Verbosity};
use crate::input;
use crate::report::Failure;
use constrain::Vocabulary;
use constrain::error::quote;
use constrain::model::Model;
use constrain::model::scripted::ScriptedModel;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The variable that names a model file when no flag does.
const VARIABLE: &str = "CONSTRAIN_MODEL";

/// What a model without weights is named, in place of a file: with a seed behind it.
const SCRIPTED: &str = "scripted:";

/// What is asked of a model beside the flags.
#[derive(Debug, Clone, Copy, Default)]
#[cfg_attr(not(feature = "llama"), expect(dead_code, reason = "llama.cpp reads all of them"))]
pub struct Change {
    /// Sequences that it holds at a time; 1 if 0.
    pub sequences: usize,
    /// Instead of `--threads`.
    pub threads: Option<usize>,
    /// Instead of `--flash-attn`.
    pub flash_attn: Option<FlashAttention>,
}

/// What a model is made from.
pub struct Loaded {
    weights: Weights,
    /// Tokens of a sequence, if the flags say so.
    context_len: Option<usize>,
    /// Whether there is nothing (more) to be said about them.
    is_told: AtomicBool,
}

/// Where the model comes from.
enum Weights {
    /// A model without weights, which says random things: for trying things out.
    Scripted {
        /// What it likes.
        seed: u64,
    },
    /// A file for llama.cpp.
    #[cfg(feature = "llama")]
    Llama(with::Llama),
}

impl Loaded {
    /// A model with sequences of its own.
    pub fn model(&self, change: Change) -> Result<Box<dyn Model + '_>, Failure> {
        let model: Box<dyn Model + '_> = match &self.weights {
            Weights::Scripted { seed } => {
                let model = ScriptedModel::noise(*seed).with_sequences(change.sequences.max(1));
                let len = self.context_len.unwrap_or(model.context_len());
                Box::new(model.with_context_len(len))
            }
            #[cfg(feature = "llama")]
            Weights::Llama(llama) => llama.model(change)?,
        };
        let other = self.context_len.and_then(|asked| other_context(asked, model.context_len()));
        if let Some(other) = other.filter(|_| !self.is_told.swap(true, Ordering::Relaxed)) {
            input::say(&other);
        }
        Ok(model)
    }
}

/// That a context is not as long as it was asked for.
fn other_context(asked: usize, len: usize) -> Option<String> {
    (asked != len).then(|| format!("--ctx-size {asked} is rounded: the context has {len} tokens"))
}

/// The vocabulary of a tokenizer file, or of a model.
pub fn vocabulary(path: &Path) -> Result<Vocabulary, Failure> {
    let is_scripted = path.to_str().is_some_and(|name| name.starts_with(SCRIPTED));
    if !is_scripted && !is_gguf(path) {
        return Ok(Vocabulary::from_file(path)?);
    }
    if !is_scripted && cfg!(not(feature = "llama")) {
        let message = format!(
            "{} is a GGUF model, whose vocabulary this build of constrain cannot read",
            quote(&path.to_string_lossy())
        );
        return Err(Failure::new(message).help(
            "give the tokenizer.json of the model instead, which stands beside its original weights; \
             or build with the feature llama",
        ));
    }
    // As little of it as there is.
    let args = ModelArgs {
        model: None,
        hf: None,
        threads: None,
        gpu_layers: Some(0),
        ctx_size: None,
        flash_attn: FlashAttention::Auto,
    };
    let verbosity = Verbosity { quiet: true, verbose: false };
    let loaded = load_second(path, &args, &verbosity)?;
    Ok(loaded.model(Change::default())?.vocabulary().clone())
}

/// Whether a file begins like a model.
fn is_gguf(path: &Path) -> bool {
    let mut magic = [0; 4];
    // What is no file may have no end, or no beginning yet.
    let file = path.is_file().then(|| File::open(path));
    let read = file.and_then(Result::ok).map(|mut file| file.read_exact(&mut magic));
    read.is_some_and(|read| read.is_ok()) && magic == *b"GGUF"
}

/// The weights that the flags ask for.
pub fn load(args: &ModelArgs, verbosity: &Verbosity) -> Result<Loaded, Failure> {
    load_for(args, verbosity, false)
}

/// The same, with heads that predict several tokens if those are needed.
pub fn load_for(args: &ModelArgs, verbosity: &Verbosity, heads: bool) -> Result<Loaded, Failure> {
    let named = match (&args.model, &args.hf) {
        (Some(path), _) => Some(path.clone()),
        (None, Some(_)) => None,
        (None, None) => {
            std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
        }
    };
    named_or_default(args, verbosity, (named, heads))
}

/// The weights of a second model.
pub fn load_second(
    path: &Path,
    args: &ModelArgs,
    verbosity: &Verbosity,
) -> Result<Loaded, Failure> {
    named_or_default(args, verbosity, (Some(path.to_path_buf()), false))
}

fn named_or_default(
    args: &ModelArgs,
    verbosity: &Verbosity,
    (named, heads): (Option<PathBuf>, bool),
) -> Result<Loaded, Failure> {
    let loaded = |weights| Loaded {
        weights,
        context_len: args.ctx_size,
        is_told: AtomicBool::new(verbosity.quiet),
    };
    if let Some(path) = &named {
        if let Some(seed) = path.to_str().and_then(|name| name.strip_prefix(SCRIPTED)) {
            let seed = seed.parse().map_err(|_| {
                Failure::new(format!("the model {SCRIPTED} has no seed"))
                    .help(format!("write a number behind it, such as {SCRIPTED}7"))
            })?;
            return Ok(loaded(Weights::Scripted { seed }));
        }
        check_file(path)?;
    }
    file(args, verbosity, (named, heads)).map(loaded)
}

#[cfg(feature = "llama")]
fn file(
    args: &ModelArgs,
    said: &Verbosity,
    (named, heads): (Option<PathBuf>, bool),
) -> Result<Weights, Failure> {
    with::Llama::new(args, said, named, heads).map(Weights::Llama)
}

#[cfg(not(feature = "llama"))]
fn file(_: &ModelArgs, _: &Verbosity, _: (Option<PathBuf>, bool)) -> Result<Weights, Failure> {
    Err(Failure::new("this build of constrain cannot run models: it is without llama.cpp").help(
        "build with the feature llama, which is on by default and needs cmake, a C++ compiler and \
         libclang (Debian: cmake g++ libclang-dev); or name --tokenizer and use `constrain mask`",
    ))
}

fn check_file(path: &Path) -> Result<(), Failure> {
    let problem = match std::fs::metadata(path) {
        Ok(file) if file.is_file() => return Ok(()),
        Ok(_) => std::io::Error::other("not a file"),
        Err(error) => error,
    };
    Err(Failure::io("read the model", path, &problem).help(format!(
        "name a GGUF file with --model or {VARIABLE}, one of the Hugging Face Hub with --hf, or \
         leave all three out for the default model"
    )))
}

#[cfg(feature = "llama")]
mod with {
    use super::*;
    use constrain::model::llama::{self, LlamaModel, LlamaOptions, LlamaWeights};

    /// Loaded weights, and how they are run.
    pub struct Llama {
        weights: LlamaWeights,
        options: LlamaOptions,
    }

    impl Llama {
        pub(super) fn new(
            args: &ModelArgs,
            verbosity: &Verbosity,
            named: Option<PathBuf>,
            heads: bool,
        ) -> Result<Self, Failure> {
            let path = match (named, &args.hf) {
                (Some(path), _) => path,
                (None, Some(spec)) => crate::pull::from_hub(spec, verbosity.quiet)?,
                (None, None) => crate::pull::default_model(verbosity.quiet)?,
            };
            let options = LlamaOptions {
                threads: args.threads,
                context_len: args.ctx_size,
                gpu_layers: args.gpu_layers,
                flash_attention: flash(args.flash_attn),
                heads,
                logs: verbosity.verbose,
                ..LlamaOptions::default()
            };
            Ok(Self { weights: LlamaWeights::load(&path, &options)?, options })
        }

        /// A context on the weights.
        pub fn model(&self, change: Change) -> Result<Box<dyn Model + '_>, Failure> {
            let own = &self.options;
            let options = LlamaOptions {
                sequences: change.sequences.max(1),
                threads: change.threads.or(own.threads),
                flash_attention: change.flash_attn.map_or(own.flash_attention, flash),
                ..own.clone()
            };
            Ok(Box::new(LlamaModel::new(&self.weights, &options)?))
        }
    }

    fn flash(flag: FlashAttention) -> llama::FlashAttention {
        match flag {
            FlashAttention::Auto => llama::FlashAttention::Auto,
            FlashAttention::Off => llama::FlashAttention::Off,
            FlashAttention::On => llama::FlashAttention::On,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_of_another_length_is_told() {
        assert_eq!(other_context(512, 512), None);
        let said = other_context(10, 256).expect("a message");
        assert!(said.contains("--ctx-size 10 ") && said.contains("has 256 tokens"), "{said}");
    }
}
