//! Makes any local language model emit output guaranteed to satisfy a JSON Schema or a grammar.
// The layers, in reading order: a module imports only modules above it in this list
// (tests/layers.rs). The blank lines keep the formatter from sorting it.
pub mod error;
pub mod limits;
pub mod observe;

mod codec;
mod escape;

pub mod vocab;

pub mod expr;
pub mod regex;

pub mod grammar;

pub mod schema;
pub mod syntax;

pub mod source;
pub mod spans;
pub mod tags;

pub mod machine;
pub mod mask;

pub mod cost;

pub mod constraint;
pub mod matcher;
pub mod saved;

pub mod sample;

pub mod model;

pub mod decode;

pub mod extract;

pub mod serve;

pub use constraint::Constraint;
pub use error::{Error, Kind, Result};
pub use expr::Document;
pub use grammar::Grammar;
pub use limits::Limits;
pub use matcher::{Mask, Matcher};
pub use vocab::{TokenId, Vocabulary};

/// The example of README.md compiles and runs.
#[cfg(all(doctest, feature = "schemars"))]
#[doc = include_str!("../README.md")]
pub struct Readme;
