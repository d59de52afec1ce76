//! What the model is told: what is wanted, the prompt and the document, as chat messages.
//!
//! The form comes first and the prompt behind it: small models answer what they read last.

use crate::args::{GenerateArgs, SchemaInPrompt};
use crate::compile::Form;
use crate::input;
use crate::report::Failure;
use constrain::extract::outline;
use constrain::model::{Message, Role};
use constrain::syntax::Syntax;
use serde_json::Value;
use std::path::Path;

/// What is asked when there is a document and no prompt.
const ABOUT_DOCUMENT: &str = "Extract the data from this document.";

/// What the user asks, and about which document.
pub struct Inputs {
    prompt: Option<String>,
    document: Option<String>,
}

impl Inputs {
    /// What values may be pieces of: the document, else the prompt.
    pub fn document(&self) -> Option<&str> {
        self.document.as_deref().or(self.prompt.as_deref())
    }
}

/// The conversation of one request.
pub fn messages(
    args: &GenerateArgs,
    inputs: &Inputs,
    form: &Form,
) -> Result<Vec<Message>, Failure> {
    let mut parts: Vec<String> = wanted(args, form)?.into_iter().collect();
    let Inputs { prompt, document } = inputs;
    match (prompt, document) {
        (None, None) => {
            return Err(Failure::new("there is no prompt").help(
                "give it as an argument, as --prompt-file FILE, or as `-` on standard input",
            ));
        }
        (None, Some(_)) => parts.push(ABOUT_DOCUMENT.to_string()),
        (Some(prompt), _) => parts.push(prompt.trim_end().to_string()),
    }
    if let Some(document) = document {
        parts.push(format!("Document:\n{}", document.trim_end()));
    }
    let mut messages = Vec::new();
    if let Some(system) = &args.system {
        messages.push(Message::new(Role::System, system));
    }
    messages.push(Message::new(Role::User, parts.join("\n\n")));
    Ok(messages)
}

/// The texts of the prompt and of the document.
pub fn inputs(args: &GenerateArgs) -> Result<Inputs, Failure> {
    let stdin = Path::new("-");
    let is_prompt_stdin =
        args.prompt.as_deref() == Some("-") || args.prompt_file.as_deref() == Some(stdin);
    if is_prompt_stdin && args.input.as_deref() == Some(stdin) {
        return Err(Failure::new("the prompt and --input cannot both be standard input")
            .help("read one of them from a file"));
    }
    let prompt = match (&args.prompt, &args.prompt_file) {
        (Some(_), _) if is_prompt_stdin => Some(input::read(stdin)?.text),
        (Some(prompt), _) => Some(prompt.clone()),
        (None, Some(path)) => Some(input::read(path)?.text),
        (None, None) => None,
    };
    let document = args.input.as_ref().map(|path| input::read(path)).transpose()?;
    Ok(Inputs { prompt, document: document.map(|document| document.text) })
}

/// What the model is told about the form. Of a grammar that is the text itself, on demand: an
/// outline of one says little, and small models imitate its characters.
fn wanted(args: &GenerateArgs, form: &Form) -> Result<Option<String>, Failure> {
    let text = &form.source.text;
    let told = args.schema_in_prompt;
    Ok(match (told, form.syntax) {
        (SchemaInPrompt::Off, _) => None,
        (_, Some(Syntax::Choice)) => Some(format!("Answer with one of these lines:\n{text}")),
        (SchemaInPrompt::Compact, Some(_)) => None,
        (_, Some(Syntax::Regex)) => {
            Some(format!("Answer with a text that matches this regular expression:\n{text}"))
        }
        (_, Some(_)) => Some(format!("Answer with a text of this grammar:\n{text}")),
        (told, None) => {
            // The text was compiled as a schema before, so it is JSON.
            let value: Value = serde_json::from_str(text)
                .map_err(|error| Failure::new(format!("the schema is not JSON: {error}")))?;
            Some(match told {
                SchemaInPrompt::Json => {
                    format!("Answer with JSON that satisfies this schema:\n{value}")
                }
                _ => format!("Answer with JSON of this form:\n{}", outline(&value, &form.options)),
            })
        }
    })
}
