//! What the model is told: the form that is wanted, the instruction, examples, the document.
//!
//! By hand, one example and no system message give three turns:
//!
//! ```text
//! user       Answer with JSON of this form:      user       Document:
//!            {"name": string}                               Grace Hopper wrote a compiler.
//!
//!            Extract the data ...
//!
//!            Document:
//!            Ada wrote a program.
//! assistant  {"name": "Ada"}
//! ```
//!
//! The form comes first and the instruction behind it: small models answer what they read last. The
//! document is the last thing of all, so that prompts of one extractor share all that is before it,
//! and a model computes that once.

use crate::error::{Error, Kind, Result};
use crate::extract::outline;
use crate::extract::{Example, Options};
use crate::matcher::Matcher;
use crate::model::{Message, Role};
use serde_json::Value;

/// How the model is told which form is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// By an outline of the schema, which is shorter than the schema.
    #[default]
    Outline,
    /// By the schema itself.
    Schema,
    /// Not at all: the constraint alone gives the form.
    Off,
}

/// The parts of prompts that all documents share.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    system: Option<String>,
    /// The form that is wanted, in words; empty if the model is not told.
    form: String,
    instruction: String,
    examples: Vec<Example>,
    #[cfg(feature = "templates")]
    template: Option<crate::extract::Template>,
}

impl Parts {
    /// Checks the examples: `at_start` makes a matcher of the constraint about a document.
    pub fn new(
        schema: &str,
        options: &Options,
        at_start: &dyn Fn(&str) -> Result<Matcher>,
    ) -> Result<Self> {
        let form = match options.form {
            Form::Off => String::new(),
            Form::Schema => format!("Answer with JSON that satisfies this schema:\n{schema}"),
            Form::Outline => {
                // The text was compiled as a schema before, so it is JSON.
                let value: Value = serde_json::from_str(schema)
                    .map_err(|error| Error::new(Kind::Syntax, format!("the schema: {error}")))?;
                let outline = outline::outline(&value, &options.schema);
                format!("Answer with JSON of this form:\n{outline}")
            }
        };
        for (index, example) in options.examples.iter().enumerate() {
            check(index, example, at_start(&example.text)?)?;
        }
        Ok(Self {
            system: options.system.clone(),
            form,
            instruction: options.instruction.trim().to_owned(),
            examples: options.examples.clone(),
            #[cfg(feature = "templates")]
            template: options.template.clone(),
        })
    }

    /// The conversation that asks for the data of a document.
    pub fn messages(&self, document: &str) -> Result<Vec<Message>> {
        let mut messages = Vec::new();
        if let Some(system) = &self.system {
            messages.push(Message::new(Role::System, system));
        }
        #[cfg(feature = "templates")]
        if let Some(template) = &self.template {
            let (form, instruction) = (&self.form, &self.instruction);
            let text = template.render(form, instruction, &self.examples, document)?;
            messages.push(Message::new(Role::User, text));
            return Ok(messages);
        }
        let mut opening: Vec<&str> = [self.form.as_str(), self.instruction.as_str()].into();
        opening.retain(|part| !part.is_empty());
        for (text, answer) in self
            .examples
            .iter()
            .map(|example| (example.text.as_str(), Some(&example.answer)))
            .chain([(document, None)])
        {
            let asked = format!("Document:\n{}", text.trim_end());
            let turn: Vec<&str> = opening.drain(..).chain([asked.as_str()]).collect();
            messages.push(Message::new(Role::User, turn.join("\n\n")));
            if let Some(answer) = answer {
                messages.push(Message::new(Role::Assistant, answer));
            }
        }
        Ok(messages)
    }
}

/// Whether the constraint allows an example's answer: a model that is shown something else is led
/// away from what it may say.
fn check(index: usize, example: &Example, mut matcher: Matcher) -> Result<()> {
    let wrong = |what: String| {
        Error::new(Kind::BadArgument, format!("the answer of example {}: {what}", index + 1))
    };
    if let Err(error) = matcher.accept_bytes(example.answer.trim().as_bytes()) {
        let refused = wrong(error.message().to_owned())
            .help("write what the schema allows, keys in its order, the reasoning first");
        return Err(match error.place() {
            Some(place) => refused.at(place.clone()),
            None => refused,
        });
    }
    match matcher.can_stop() {
        true => Ok(()),
        false => Err(wrong("it is not a whole document".to_owned())),
    }
}
