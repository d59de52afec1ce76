//! Models in GGUF files, run by llama.cpp.
//!
//! Two values: [`LlamaWeights`], the loaded file, which several threads share, and
//! [`LlamaModel`], a context with its sequences on those weights, for one thread at a time.
//!
//! ```no_run
//! use constrain::model::llama::{LlamaModel, LlamaOptions, LlamaWeights};
//! let options = LlamaOptions::default();
//! let weights = LlamaWeights::load("model.gguf".as_ref(), &options)?;
//! let mut model = LlamaModel::new(&weights, &options)?;
//! # Ok::<(), constrain::Error>(())
//! ```
//!
//! # What is taken care of
//! llama.cpp aborts the process on some misuse and its bindings write out of bounds on some; the
//! checks of [`check_batch`](crate::model::check_batch) come first, batches have one sequence per
//! token, logits are read only where they were asked for, whole sequences alone are copied, and
//! contexts are made one at a time. Sequences keep separate memory, so that what one computes does
//! not depend on the others. llama.cpp is C++ in this process and reads the file: trust the file,
//! or run the program in a sandbox.
//!
//! # Reproducible?
//! The same options, the same machine, the same calls: the same logits. Other threads, batch
//! shapes or flash attention settings round differently, and a near tie may then fall the other
//! way. Batches of several tokens equal single steps bit for bit on a CPU with one thread, flash
//! attention on and quantised weights.

mod chat;
mod context;
mod heads;

pub use context::LlamaModel;

use crate::error::{Error, Kind, Result};
use crate::vocab::{Piece, PieceKind, TokenId, Vocabulary};
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel as Weights;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::{LlamaTokenAttr, LlamaTokenAttrs};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// How a model is loaded and run.
///
/// # Threads
/// llama.cpp's threads meet after every operation, some hundred times per token, and wait for each
/// other by spinning. Beside other work one of them is always missing: two threads on two busy
/// cores took 1.5 s per token where one thread took a few hundredths. That is why one core is left
/// free, and why llama.cpp is built without OpenMP, which makes it worse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LlamaOptions {
    /// Threads; by default one per physical core, less one (see below: they spin). On a machine
    /// that is busy with other work a single thread is the fastest.
    pub threads: Option<usize>,
    /// Tokens a sequence can hold; by default 4096, or what the model was trained for if less.
    pub context_len: Option<usize>,
    /// Layers on the GPU; by default all of them, where there is one.
    pub gpu_layers: Option<u32>,
    /// Whether attention is computed without its full matrix.
    pub flash_attention: FlashAttention,
    /// Sequences that can be held at a time; each has its own memory.
    pub sequences: usize,
    /// Whether heads that predict several tokens are loaded, where the file has such. They serve one
    /// sequence.
    pub heads: bool,
    /// Whether llama.cpp writes its log to standard error. The first load decides for the process.
    pub logs: bool,
}

impl Default for LlamaOptions {
    fn default() -> Self {
        Self {
            threads: None,
            context_len: None,
            gpu_layers: None,
            flash_attention: FlashAttention::Auto,
            sequences: 1,
            heads: false,
            logs: false,
        }
    }
}

/// Whether attention is computed in the flash manner: the same up to rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlashAttention {
    /// Where llama.cpp thinks it helps.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// A loaded model file.
pub struct LlamaWeights {
    weights: Weights,
    vocabulary: Vocabulary,
    name: String,
    /// Layers that predict several tokens.
    heads: usize,
}

impl LlamaWeights {
    /// Loads a GGUF file.
    ///
    /// # Errors
    /// [`Kind::Io`] if the file cannot be read, [`Kind::Model`] if it is no GGUF file or llama.cpp
    /// cannot load it, [`Kind::BadVocabulary`] if its vocabulary cannot be used.
    pub fn load(path: &Path, options: &LlamaOptions) -> Result<Self> {
        check_file(path)?;
        let backend = backend(options.logs)?;
        let mut params = LlamaModelParams::default().with_load_mtp(options.heads);
        if let Some(layers) = options.gpu_layers {
            params = params.with_n_gpu_layers(layers);
        }
        let weights = {
            let _one_at_a_time = lock();
            Weights::load_from_file(backend, path, &params)
        };
        let weights = weights.map_err(|error| {
            let message = format!("llama.cpp could not load {}: {error}", path.display());
            Error::new(Kind::Model, message).help(
                "the file may be damaged or of a kind it does not know; its log says more (-v)",
            )
        })?;
        let vocabulary = vocabulary(&weights)?;
        let file = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = weights.meta_val_str("general.name").ok().or(file).unwrap_or_default();
        let heads = if options.heads { heads::layers(&weights) } else { 0 };
        Ok(Self { weights, vocabulary, name, heads })
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The model's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tokens that the model was trained to look back on.
    pub fn trained_context_len(&self) -> usize {
        self.weights.n_ctx_train() as usize
    }
}

/// llama.cpp, initialised once per process.
fn backend(logs: bool) -> Result<&'static LlamaBackend> {
    static BACKEND: OnceLock<Result<LlamaBackend, String>> = OnceLock::new();
    let backend = BACKEND.get_or_init(|| {
        let mut backend = LlamaBackend::init().map_err(|error| error.to_string())?;
        if !logs {
            backend.void_logs();
        }
        Ok(backend)
    });
    backend.as_ref().map_err(|error| Error::new(Kind::Model, format!("llama.cpp: {error}")))
}

/// Loading, and making contexts, changes state that llama.cpp shares: one at a time.
fn lock() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reasons for which llama.cpp would only say that it failed.
fn check_file(path: &Path) -> Result<()> {
    let place = path.display();
    let cannot = |error: std::io::Error| {
        Error::new(Kind::Io, format!("the model file {place} cannot be read: {error}"))
            .help("give the path of a GGUF file")
    };
    let mut magic = [0; 4];
    let read = File::open(path).map_err(cannot)?.read_exact(&mut magic);
    match read {
        Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => Err(cannot(error)),
        _ if magic != *b"GGUF" => {
            Err(Error::new(Kind::Model, format!("the model file {place} is not a GGUF file"))
                .help("convert the model, or fetch it in the GGUF format"))
        }
        _ => Ok(()),
    }
}

/// The tokens of a model, as llama.cpp prints them. A control token is named, not printed.
fn vocabulary(weights: &Weights) -> Result<Vocabulary> {
    let vocab = weights.vocab();
    let ends = vocab.tokens().filter(|&token| vocab.is_eog(token));
    let end: Vec<TokenId> = ends.map(id_of).collect();
    let pieces = vocab.tokens().map(|token| {
        let kind = kind(vocab.attr(token));
        let bytes = match kind {
            PieceKind::Control | PieceKind::Unknown => {
                vocab.text(token).map(|name| name.to_bytes().to_vec()).unwrap_or_default()
            }
            _ => vocab.token_to_piece(token, false, None),
        };
        Piece { bytes, kind }
    });
    Vocabulary::from_pieces(pieces, end)
}

/// The kind of a token by its attributes; an id without any has no meaning.
fn kind(attributes: LlamaTokenAttrs) -> PieceKind {
    let kinds = [
        (LlamaTokenAttr::Unused, PieceKind::Unused),
        (LlamaTokenAttr::Unknown, PieceKind::Unknown),
        (LlamaTokenAttr::Control, PieceKind::Control),
        (LlamaTokenAttr::Byte, PieceKind::Byte),
        (LlamaTokenAttr::UserDefined, PieceKind::UserDefined),
        (LlamaTokenAttr::Normal, PieceKind::Normal),
    ];
    let kind = kinds.into_iter().find(|(attribute, _)| attributes.contains(*attribute));
    kind.map_or(PieceKind::Unused, |(_, kind)| kind)
}

fn id_of(token: LlamaToken) -> TokenId {
    TokenId::try_from(token.0).unwrap_or(TokenId::MAX)
}

fn token_of(id: TokenId) -> LlamaToken {
    LlamaToken(i32::try_from(id).unwrap_or(-1))
}
