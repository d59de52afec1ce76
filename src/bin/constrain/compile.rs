//! From `--schema` and its companions to a grammar: what every sub-command begins with.

use crate::args::{self, SchemaArgs};
use crate::input;
use crate::report::{Failure, Source};
use constrain::grammar::{PropertyOrder, Whitespace};
use constrain::schema::{self, Options};
use constrain::vocab::Token;
use constrain::{Constraint, Grammar, Vocabulary};

/// Spaces per level of `--whitespace pretty`.
const INDENT: u8 = 2;

/// A schema and how it is to be read.
pub struct Schema {
    /// The text.
    pub source: Source,
    /// The flags.
    pub options: Options,
}

impl Schema {
    /// Reads the schema file; the text is not looked at yet.
    pub fn read(args: &SchemaArgs) -> Result<Self, Failure> {
        let path = args.schema.as_ref().ok_or_else(|| {
            Failure::new("no schema is given").help("name one with --schema FILE, or see --help")
        })?;
        Ok(Self { source: input::read(path)?, options: options(args) })
    }

    /// The grammar of the schema.
    ///
    /// # Errors
    /// The schema cannot be enforced: the message points into its text.
    pub fn compile(&self) -> Result<Grammar, Failure> {
        schema::compile(&self.source.text, &self.options).map_err(|error| self.failure(&error))
    }

    /// An error about this schema.
    pub fn failure(&self, error: &constrain::Error) -> Failure {
        Failure::in_source(error, &self.source)
    }

    /// Its grammar over a vocabulary.
    pub fn constraint(&self, grammar: &Grammar, over: &Vocabulary) -> Result<Constraint, Failure> {
        Constraint::new(grammar, over).map_err(|error| self.failure(&error))
    }
}

fn options(args: &SchemaArgs) -> Options {
    Options {
        property_order: match args.property_order {
            args::PropertyOrder::Declared => PropertyOrder::Declared,
            args::PropertyOrder::Any => PropertyOrder::Any,
        },
        whitespace: match args.whitespace {
            args::Whitespace::Compact => Whitespace::Compact,
            args::Whitespace::Pretty => Whitespace::Pretty(INDENT),
            args::Whitespace::Flexible => Whitespace::Flexible,
        },
        reasoning_field: args.reasoning_field.clone(),
        add_reasoning: args.add_reasoning,
        ..Options::default()
    }
}

/// A vocabulary with one token per byte and one that ends: it turns a token mask into the set of
/// bytes that may come next.
pub fn byte_vocabulary() -> Result<Vocabulary, Failure> {
    let mut tokens: Vec<Token> = (0..=u8::MAX).map(|byte| Token::Text([byte].into())).collect();
    tokens.push(Token::Special("the end".into()));
    Ok(Vocabulary::new(tokens, vec![256])?)
}
