//! `constrain compile`, and `--constraint` wherever a schema or a grammar is taken.
//!
//! The file is the library's, with a note: the text that was compiled and how it was read. So what needs
//! the text (the prompt, the second judge, the receipt) works with a saved constraint, too.

use crate::args::{CompileArgs, Verbosity};
use crate::compile::Form;
use crate::input;
use crate::model;
use crate::report::{Failure, Source};
use constrain::error::quote;
use constrain::grammar::{PropertyOrder, Whitespace};
use constrain::saved::Saved;
use constrain::schema::Options;
use constrain::{Constraint, Limits};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::ExitCode;

/// What the file says about the text that was compiled.
#[derive(Serialize, Deserialize)]
struct Note {
    name: String,
    text: String,
    /// Of a grammar.
    syntax: Option<String>,
    any_order: bool,
    /// Spaces per level of exact indentation.
    indent: Option<u8>,
    compact: bool,
    reasoning_field: Option<String>,
    add_reasoning: bool,
}

/// Runs the sub-command.
pub fn run(args: &CompileArgs, verbosity: &Verbosity) -> Result<ExitCode, Failure> {
    let read = args.schema.files().chain([&*args.tokenizer]).chain(args.document.input.as_deref());
    input::check_place_of(&args.output)?;
    input::keep_apart(&args.output, read)?;
    let document = args.document.input.as_deref().map(input::read).transpose()?;
    let form = Form::read(&args.schema)?;
    let form = form.with_document(document.as_ref().map(|document| document.text.as_str()))?;
    let vocabulary = model::vocabulary(&args.tokenizer)?;
    let constraint = form.constraint(&form.compile()?, &vocabulary)?;
    let bytes = save(&form, &constraint)?;
    std::fs::write(&args.output, &bytes)
        .map_err(|error| Failure::io("write", &args.output, &error))?;
    if !verbosity.quiet {
        input::say(&format!("{}: {} bytes", quote(&args.output.to_string_lossy()), bytes.len()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The file of a form's constraint.
fn save(form: &Form, constraint: &Constraint) -> Result<Vec<u8>, Failure> {
    let Form { source, syntax, options, .. } = form;
    let note = Note {
        name: source.name.clone(),
        text: source.text.clone(),
        syntax: syntax.map(|syntax| syntax.name().to_owned()),
        any_order: options.property_order == PropertyOrder::Any,
        indent: match options.whitespace {
            Whitespace::Pretty(width) => Some(width),
            _ => None,
        },
        compact: options.whitespace == Whitespace::Compact,
        reasoning_field: options.reasoning_field.clone(),
        add_reasoning: options.add_reasoning,
    };
    let note = serde_json::to_vec(&note).map_err(|error| Failure::new(error.to_string()))?;
    Ok(constraint.save(&note)?)
}

/// The form in a file that `constrain compile` has written, within limits.
///
/// # Errors
/// It is no such file, or damaged.
pub fn read(path: &Path, limits: Limits) -> Result<Form, Failure> {
    let bytes = input::read_bytes(path)?;
    let odd = |what: &str| {
        Failure::new(format!("{}: {what}", quote(&path.to_string_lossy())))
            .help("give a file that `constrain compile` has written")
    };
    let saved = Saved::read(&bytes).map_err(|error| odd(error.message()))?;
    let note: Note =
        serde_json::from_slice(saved.note()).map_err(|_| odd("its note is of another program"))?;
    let syntax = note.syntax.map(|syntax| syntax.parse()).transpose()?;
    let document = saved.grammar(&limits)?.exprs.document().cloned();
    let options = Options {
        property_order: match note.any_order {
            true => PropertyOrder::Any,
            false => PropertyOrder::Declared,
        },
        whitespace: match (note.indent, note.compact) {
            (Some(width), _) => Whitespace::Pretty(width),
            (None, true) => Whitespace::Compact,
            (None, false) => Whitespace::Flexible,
        },
        reasoning_field: note.reasoning_field,
        add_reasoning: note.add_reasoning,
        document,
        limits,
        ..Options::default()
    };
    let source = Source { name: note.name, text: note.text };
    Ok(Form { source, syntax, options, saved: Some(bytes) })
}
