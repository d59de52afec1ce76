//! Which model runs, and loading it.

use crate::args::{ModelArgs, Verbosity};
use crate::report::Failure;
use constrain::model::Model;
use std::path::{Path, PathBuf};

/// The variable that names a model file when no flag does.
const VARIABLE: &str = "CONSTRAIN_MODEL";

/// Loads the model that the flags ask for and hands it to `run`.
pub fn with_model<T>(
    args: &ModelArgs,
    verbosity: &Verbosity,
    run: impl FnOnce(&mut dyn Model) -> Result<T, Failure>,
) -> Result<T, Failure> {
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
    load(args, verbosity, named, run)
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
fn load<T>(
    _: &ModelArgs,
    _: &Verbosity,
    _: Option<PathBuf>,
    _: impl FnOnce(&mut dyn Model) -> Result<T, Failure>,
) -> Result<T, Failure> {
    Err(Failure::new("this build of constrain cannot run models: it is without llama.cpp").help(
        "build with the feature llama, which is on by default and needs cmake, a C++ compiler and \
         libclang (Debian: cmake g++ libclang-dev); or name --tokenizer and use `constrain mask`",
    ))
}

#[cfg(feature = "llama")]
fn load<T>(
    args: &ModelArgs,
    verbosity: &Verbosity,
    named: Option<PathBuf>,
    run: impl FnOnce(&mut dyn Model) -> Result<T, Failure>,
) -> Result<T, Failure> {
    use constrain::model::llama::{LlamaModel, LlamaWeights};
    let path = match (named, &args.hf) {
        (Some(path), _) => path,
        (None, Some(spec)) => crate::pull::from_hub(spec, verbosity.quiet)?,
        (None, None) => crate::pull::default_model(verbosity.quiet)?,
    };
    let options = options(args, verbosity);
    let weights = LlamaWeights::load(&path, &options)?;
    let mut model = LlamaModel::new(&weights, &options)?;
    run(&mut model)
}

#[cfg(feature = "llama")]
fn options(args: &ModelArgs, verbosity: &Verbosity) -> constrain::model::llama::LlamaOptions {
    use crate::args::FlashAttention as Flag;
    use constrain::model::llama::{FlashAttention, LlamaOptions};
    LlamaOptions {
        threads: args.threads,
        context_len: args.ctx_size,
        gpu_layers: args.gpu_layers,
        flash_attention: match args.flash_attn {
            Flag::Auto => FlashAttention::Auto,
            Flag::On => FlashAttention::On,
            Flag::Off => FlashAttention::Off,
        },
        logs: verbosity.verbose,
        ..LlamaOptions::default()
    }
}
