//! From what people write to a grammar: the one place that knows schemas and text grammars.
//!
//! `schema` and `syntax` do not see each other. A text grammar may hold a schema all the same
//! (`%json {...}` in Lark): `syntax` hands its text to a function that it is given, and this module
//! gives it the compiler of schemas.
//!
//! ```
//! use constrain::schema::Options;
//! use constrain::{Grammar, syntax::Syntax};
//!
//! let text = r#"start: "<call>" %json {"type": "integer"} "</call>""#;
//! let grammar = Grammar::from_text(text, Syntax::Lark, &Options::default())?;
//! let error = Grammar::from_text("root ::= \"a\" (", Syntax::Gbnf, &Options::default());
//! assert!(error.unwrap_err().to_string().contains("line 1, column 14"));
//! # Ok::<(), constrain::Error>(())
//! ```

use crate::error::Result;
use crate::grammar::{Grammar, NodeId};
use crate::schema::{self, Options};
use crate::syntax::{self, Syntax};

impl Grammar {
    /// The grammar of the JSON texts that are valid under a schema: [`schema::compile`].
    ///
    /// # Errors
    /// As [`schema::compile`].
    pub fn from_schema(text: &str, options: &Options) -> Result<Self> {
        schema::compile(text, options)
    }

    /// The grammar that a text describes. The options are for the schemas in it; their limits are
    /// those of the whole.
    ///
    /// # Errors
    /// As [`syntax::compile`].
    pub fn from_text(text: &str, syntax: Syntax, options: &Options) -> Result<Self> {
        let mut grammar = Grammar::new(options.limits.clone());
        grammar.whitespace = options.whitespace;
        Ok(text_into(grammar, text, syntax, options)?.0)
    }
}

/// Adds what a text describes to a grammar that may have other nodes.
pub(crate) fn text_into(
    grammar: Grammar,
    text: &str,
    syntax: Syntax,
    options: &Options,
) -> Result<(Grammar, NodeId)> {
    let json = |grammar: Grammar, schema: &str| schema::compile_into(grammar, schema, options);
    syntax::compile_into(grammar, text, syntax, &json)
}
