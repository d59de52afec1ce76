//! Makes any local language model emit output guaranteed to satisfy a JSON Schema or a grammar.
// The layers, in reading order: a module imports only modules above it in this list.
pub mod constraint;
pub mod decode;
pub mod error;
pub mod expr;
pub mod grammar;
pub mod limits;
pub mod machine;
pub mod mask;
pub mod matcher;
pub mod model;
pub mod regex;
pub mod sample;
pub mod schema;
pub mod syntax;
pub mod vocab;

pub use constraint::Constraint;
pub use error::{Error, Kind, Result};
pub use grammar::Grammar;
pub use limits::Limits;
pub use matcher::{Mask, Matcher};
pub use vocab::{TokenId, Vocabulary};
