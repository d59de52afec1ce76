//! From `--schema`, `--grammar` and their companions to a grammar: what every sub-command begins with.

use crate::args::{self, FormArgs, SchemaArgs, TextArgs};
use crate::idle::{self, Flag};
use crate::input;
use crate::raised;
use crate::report::{Failure, Source};
use crate::saved;
use constrain::error::quote;
use constrain::extract::is_reasoning;
use constrain::grammar::{PropertyOrder, Whitespace};
use constrain::saved::Saved;
use constrain::schema::Options;
use constrain::syntax::Syntax;
use constrain::vocab::Token;
use constrain::{Constraint, Document, Grammar, Vocabulary};
use serde_json::Value;

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
    pub fn read(args: &FormArgs) -> Result<Self, Failure> {
        match text(&args.text)? {
            None => Self::of_schema(&args.schema),
            Some((source, syntax)) => Self::of(source, Some(syntax), &args.schema),
        }
    }

    /// The same where only schemas are taken.
    pub fn of_schema(args: &SchemaArgs) -> Result<Self, Failure> {
        match (&args.constraint, &args.schema) {
            (Some(path), _) => saved::read(path, raised::limits(&args.limits)),
            (None, Some(path)) => Self::of(input::read(path)?, None, args),
            (None, None) => Err(Failure::new("there is no schema and no other constraint")
                .help("name one with --schema FILE, or see --help for others")),
        }
    }

    fn of(source: Source, syntax: Option<Syntax>, args: &SchemaArgs) -> Result<Self, Failure> {
        let form = Self { source, syntax, options: options(args), saved: None };
        form.refuse_idle_flags(args)?;
        Ok(form)
    }

    /// Refuses flags for schemas where there is none, and those for a property that there is not.
    fn refuse_idle_flags(&self, args: &SchemaArgs) -> Result<(), Failure> {
        let text = &self.source.text;
        let works = match self.syntax {
            None => true,
            Some(syntax) => syntax == Syntax::Lark && text.contains("%json"),
        };
        let row = |name, is_given| Flag {
            name,
            is_given,
            works,
            why: "it is for JSON, of which the constraint says itself how it is spelled",
            help: "leave it out, or give a schema with --schema",
        };
        let name = args.reasoning_field.as_deref();
        let unknown = format!("no property of the schema is named {}", quote(name.unwrap_or("")));
        idle::refuse(&[
            row("--property-order", args.property_order.is_some()),
            row("--whitespace", args.whitespace.is_some()),
            row("--reasoning-field", name.is_some()),
            row("--add-reasoning", args.add_reasoning),
            row("--reasoning-tokens", args.reasoning_tokens.is_some()),
            Flag {
                name: "--reasoning-field",
                is_given: name.is_some(),
                works: args.add_reasoning || self.has_property(&|property| Some(property) == name),
                why: &unknown,
                help: "name one that is declared, or add it with --add-reasoning",
            },
            Flag {
                name: "--reasoning-tokens",
                is_given: args.reasoning_tokens.is_some(),
                works: self.has_reasoning(),
                ..NO_REASONING
            },
        ])
    }

    /// Whether a reasoning property is declared or added, as far as that can be told from the text.
    pub fn has_reasoning(&self) -> bool {
        self.options.add_reasoning || self.has_property(&|name| is_reasoning(name, &self.options))
    }

    /// Whether the schema declares such a property, wherever; what is no JSON may.
    fn has_property(&self, is_it: &dyn Fn(&str) -> bool) -> bool {
        fn within(schema: &Value, is_it: &dyn Fn(&str) -> bool) -> bool {
            match schema {
                Value::Array(items) => items.iter().any(|item| within(item, is_it)),
                Value::Object(members) => members.iter().any(|(keyword, value)| {
                    let names = value.as_object().filter(|_| keyword == "properties");
                    names.is_some_and(|names| names.keys().any(|name| is_it(name)))
                        || within(value, is_it)
                }),
                _ => false,
            }
        }
        let schema = serde_json::from_str(&self.source.text);
        schema.map_or(true, |schema: Value| within(&schema, is_it))
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
            self.options.document = Some(Document::within(text, &self.options.limits)?);
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
            return Ok(Saved::read(bytes)?.grammar(&self.options.limits)?);
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

/// The row of a flag that is for a reasoning property.
pub const NO_REASONING: Flag<'static> = Flag {
    name: "",
    is_given: false,
    works: false,
    why: "the schema has no reasoning property",
    help: "say which property it is with --reasoning-field, or add one with --add-reasoning",
};

/// A grammar, a regular expression or choices, if the flags name one.
fn text(args: &TextArgs) -> Result<Option<(Source, Syntax)>, Failure> {
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
            Ok(Some((source, syntax)))
        }
        TextArgs { regex: Some(regex), .. } => {
            Ok(Some((named("--regex", regex.clone()), Syntax::Regex)))
        }
        TextArgs { choice, .. } if !choice.is_empty() => {
            if let Some(odd) = choice.iter().find(|text| text.is_empty() || text.contains('\n')) {
                let message = format!("{} is not one line of text", quote(odd));
                return Err(Failure::new(message).help("write a grammar for such a choice"));
            }
            Ok(Some((named("--choice", choice.join("\n")), Syntax::Choice)))
        }
        _ => Ok(None),
    }
}

fn options(args: &SchemaArgs) -> Options {
    Options {
        property_order: match args.property_order {
            None | Some(args::PropertyOrder::Declared) => PropertyOrder::Declared,
            Some(args::PropertyOrder::Any) => PropertyOrder::Any,
        },
        whitespace: match args.whitespace {
            Some(args::Whitespace::Compact) => Whitespace::Compact,
            Some(args::Whitespace::Pretty) => Whitespace::Pretty(INDENT),
            None | Some(args::Whitespace::Flexible) => Whitespace::Flexible,
        },
        reasoning_field: args.reasoning_field.clone(),
        add_reasoning: args.add_reasoning,
        reasoning_tokens: args.reasoning_tokens,
        limits: raised::limits(&args.limits),
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
