//! Which model runs, and loading it.

use crate::args::{FlashAttention, ModelArgs, Verbosity};
use crate::report::Failure;
use constrain::model::Model;
use std::path::{Path, PathBuf};

/// The variable that names a model file when no flag does.
const VARIABLE: &str = "CONSTRAIN_MODEL";

/// What is asked of a model beside the flags.
#[derive(Debug, Clone, Copy, Default)]
#[cfg_attr(not(feature = "llama"), expect(dead_code, reason = "only llama.cpp reads them"))]
pub struct Change {
    /// Sequences that it holds at a time; 1 if 0.
    pub sequences: usize,
    /// Instead of `--threads`.
    pub threads: Option<usize>,
    /// Instead of `--flash-attn`.
    pub flash_attn: Option<FlashAttention>,
}

/// The weights that the flags ask for.
pub fn load(args: &ModelArgs, verbosity: &Verbosity) -> Result<Loaded, Failure> {
    let named = match (&args.model, &args.hf) {
        (Some(path), _) => Some(path.clone()),
        (None, Some(_)) => None,
        (None, None) => {
            std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
        }
    };
    if let Some(path) = &named {
        check_file(path)?;
    }
    Loaded::new(args, verbosity, named)
}

/// The weights of a second model.
pub fn load_second(
    path: &Path,
    args: &ModelArgs,
    verbosity: &Verbosity,
) -> Result<Loaded, Failure> {
    check_file(path)?;
    Loaded::new(args, verbosity, Some(path.to_path_buf()))
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

#[cfg(not(feature = "llama"))]
pub use without::Loaded;

#[cfg(not(feature = "llama"))]
mod without {
    use super::*;

    /// There are no weights in a build without llama.cpp.
    pub enum Loaded {}

    impl Loaded {
        pub(super) fn new(
            _: &ModelArgs,
            _: &Verbosity,
            _: Option<PathBuf>,
        ) -> Result<Self, Failure> {
            Err(Failure::new("this build of constrain cannot run models: it is without llama.cpp")
                .help(
                    "build with the feature llama, which is on by default and needs cmake, a C++ \
                     compiler and libclang (Debian: cmake g++ libclang-dev); or name --tokenizer \
                     and use `constrain mask`",
                ))
        }

        /// A context on the weights.
        pub fn model(&self, _: Change) -> Result<Box<dyn Model + '_>, Failure> {
            match *self {}
        }
    }
}

#[cfg(feature = "llama")]
pub use with::Loaded;

#[cfg(feature = "llama")]
mod with {
    use super::*;
    use constrain::model::llama::{self, LlamaModel, LlamaOptions, LlamaWeights};

    /// Loaded weights, and how they are run.
    pub struct Loaded {
        weights: LlamaWeights,
        options: LlamaOptions,
    }

    impl Loaded {
        pub(super) fn new(
            args: &ModelArgs,
            verbosity: &Verbosity,
            named: Option<PathBuf>,
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
