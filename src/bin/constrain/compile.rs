//! From `--schema`, `--grammar` and their companions to a grammar: what every sub-command begins with.

use crate::args::{self, SchemaArgs, TextArgs};
use crate::input;
use crate::report::{Failure, Source};
use crate::saved;
use constrain::error::quote;
use constrain::grammar::{PropertyOrder, Whitespace};
use constrain::saved::Saved;
use constrain::schema::Options;
use constrain::syntax::Syntax;
use constrain::vocab::Token;
use constrain::{Constraint, Document, Grammar, Limits, Vocabulary};

/// Spaces per level of `--whitespace pretty`.
const INDENT: u8 = 2;

/// The form that the output must have, and how it is to be read.
pub struct Form {
    /// The text of a schema or a grammar.
    pub source: Source,
    /// The syntax of a grammar; none for a schema.
    pub syntax: Option<Syntax>,
    /// The flags for schemas, also of those in a grammar.
    pub options: Options,
    /// The file that it was compiled to, if it comes from one.
    pub saved: Option<Vec<u8>>,
}

impl Form {
    /// Reads what the flags name; the text is not looked at yet.
    pub fn read(args: &SchemaArgs) -> Result<Self, Failure> {
        if let Some(path) = &args.constraint {
            return saved::read(path);
        }
        let (source, syntax) = match &args.schema {
            Some(path) => (input::read(path)?, None),
            None => {
                let (source, syntax) = text(&args.text)?;
                (source, Some(syntax))
            }
        };
        Ok(Self { source, syntax, options: options(args), saved: None })
    }

    /// The same with the document of which values may be pieces.
    ///
    /// # Errors
    /// The document is too long, or the form was compiled for another.
    pub fn with_document(mut self, text: Option<&str>) -> Result<Self, Failure> {
        if self.saved.is_some() {
            let own = self.options.document.as_ref().map(|document| document.text());
            return match (own, text) {
                (Some(own), Some(text)) if own != text => {
                    Err(Failure::new("the constraint was compiled for another document")
                        .help("compile it for this one, or give the schema with --schema"))
                }
                _ => Ok(self),
            };
        }
        if let Some(text) = text.filter(|_| self.may_have_spans()) {
            self.options.document = Some(Document::new(text)?);
        }
        Ok(self)
    }

    /// The same for a look at it without a document: any text could be a piece of one.
    pub fn without_document(mut self) -> Self {
        self.options.document.get_or_insert_with(Document::unknown);
        self
    }

    /// Whether it speaks of pieces of a document, as far as a glance tells: to prepare one that nothing
    /// is a piece of costs time and changes nothing.
    fn may_have_spans(&self) -> bool {
        self.source.text.contains("\"x-constrain\"") || self.source.text.contains("\\u")
    }

    /// Whether it is a schema.
    pub fn is_schema(&self) -> bool {
        self.syntax.is_none()
    }

    /// Its grammar.
    ///
    /// # Errors
    /// The form cannot be enforced: the message points into its text.
    pub fn compile(&self) -> Result<Grammar, Failure> {
        if let Some(bytes) = &self.saved {
            return Ok(Saved::read(bytes)?.grammar(&Limits::default())?);
        }
        let text = &self.source.text;
        let grammar = match self.syntax {
            None => Grammar::from_schema(text, &self.options),
            Some(syntax) => Grammar::from_text(text, syntax, &self.options),
        };
        grammar.map_err(|error| self.failure(&error))
    }

    /// That it may be used over a vocabulary: what was compiled to a file is for one alone.
    ///
    /// # Errors
    /// It was compiled for another vocabulary.
    pub fn check(&self, over: &Vocabulary) -> Result<(), Failure> {
        match &self.saved {
            Some(bytes) => Ok(Saved::read(bytes)?.check(over)?),
            None => Ok(()),
        }
    }

    /// An error about this form.
    pub fn failure(&self, error: &constrain::Error) -> Failure {
        Failure::in_source(error, &self.source)
    }

    /// Its grammar over a vocabulary.
    pub fn constraint(&self, grammar: &Grammar, over: &Vocabulary) -> Result<Constraint, Failure> {
        Constraint::new(grammar, over).map_err(|error| self.failure(&error))
    }
}

/// A grammar, a regular expression or choices.
fn text(args: &TextArgs) -> Result<(Source, Syntax), Failure> {
    let named = |name: &str, text: String| Source { name: name.to_string(), text };
    match args {
        TextArgs { grammar: Some(path), syntax, .. } => {
            let syntax = syntax.or_else(|| Syntax::from_path(path)).ok_or_else(|| {
                let name = quote(&path.to_string_lossy());
                Failure::new(format!("the name {name} does not say in which syntax it is"))
                    .help("say it with --syntax gbnf, ebnf, w3c, lark, regex or choice")
            })?;
            let mut source = input::read(path)?;
            // Editors end the last line; that end is no part of an expression.
            if syntax == Syntax::Regex && source.text.ends_with('\n') {
                source.text.pop();
            }
            Ok((source, syntax))
        }
        TextArgs { regex: Some(regex), .. } => Ok((named("--regex", regex.clone()), Syntax::Regex)),
        TextArgs { choice, .. } if !choice.is_empty() => {
            if let Some(odd) = choice.iter().find(|text| text.is_empty() || text.contains('\n')) {
                let message = format!("{} is not one line of text", quote(odd));
                return Err(Failure::new(message).help("write a grammar for such a choice"));
            }
            Ok((named("--choice", choice.join("\n")), Syntax::Choice))
        }
        _ => Err(Failure::new("there is no schema and no other constraint")
            .help("name one with --schema FILE or --grammar FILE, or see --help")),
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
        reasoning_tokens: args.reasoning_tokens,
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
