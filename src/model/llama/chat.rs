//! A conversation in the chat format that the model file asks for.
//!
//! llama.cpp knows the common templates by their look; the others are Jinja programs, run here by
//! `minijinja` with a bounded amount of work, since they come with the file. Neither ever sees what
//! the messages say: each is rendered as a placeholder and put in afterwards. So a message cannot
//! change the template's course, and the parts of the prompt that are the template's own (where
//! `<|im_end|>` is a token) stay apart from those that are content (where it is ten characters).
//!
//! By hand: the messages `[user "hi"]` render as `<|im_start|>user\n⟨0⟩<|im_end|>\n<|im_start|>assistant\n`
//! and become three parts: own, content `hi`, own.

use crate::error::{Error, Kind, Result};
use crate::model::{Message, Role};
use llama_cpp_2::model::{LlamaChatMessage, LlamaModel as Weights};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, context};

/// A piece of a rendered prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub text: String,
    /// Whether it is what a message says.
    pub content: bool,
}

/// Renders a conversation, up to where the answer begins.
pub(crate) fn render(weights: &Weights, messages: &[Message]) -> Result<Vec<Part>> {
    let template = weights.meta_val_str("tokenizer.chat_template").ok();
    let Some(template) = template else { return Ok(plain(messages)) };
    let apply = |messages: &[Message]| {
        let rendered =
            by_llama(weights, messages).map_or_else(|| by_jinja(weights, &template, messages), Ok);
        rendered.and_then(|text| split(&text, messages))
    };
    match apply(messages) {
        Ok(parts) => Ok(parts),
        // Some formats have no system role: the instructions then open the user's turn.
        Err(error) => without_system(messages).map_or(Err(error), |messages| apply(&messages)),
    }
}

/// A model without a format only continues text.
fn plain(messages: &[Message]) -> Vec<Part> {
    let mut parts = Vec::new();
    for message in messages {
        parts.push(Part { text: message.content.clone(), content: true });
        parts.push(Part { text: "\n\n".to_owned(), content: false });
    }
    parts
}

/// Stands for message `index`: characters of the private use area, which no template spells.
fn placeholder(index: usize) -> String {
    format!("\u{e0c0}{index}\u{e0c1}")
}

/// By llama.cpp, if it knows the template.
fn by_llama(weights: &Weights, messages: &[Message]) -> Option<String> {
    let template = weights.chat_template(None).ok()?;
    let turn = |(i, message): (usize, &Message)| {
        LlamaChatMessage::new(message.role.name().to_owned(), placeholder(i)).ok()
    };
    let turns: Option<Vec<LlamaChatMessage>> = messages.iter().enumerate().map(turn).collect();
    weights.apply_chat_template(&template, &turns?, true).ok()
}

/// By running the template.
fn by_jinja(weights: &Weights, template: &str, messages: &[Message]) -> Result<String> {
    /// Instructions of the template engine; real templates need a few thousand.
    const FUEL: u64 = 1_000_000;
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    let mut syntax = SyntaxConfig::builder();
    let syntax = syntax.trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.map_err(|error| Error::new(Kind::Model, error.to_string()))?);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", |message: String| -> Result<String, _> {
        Err(minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, message))
    });
    let vocab = weights.vocab();
    let name = |token| vocab.text(token).map(|text| text.to_string_lossy().into_owned());
    let turns: Vec<_> = (0..)
        .zip(messages)
        .map(|(i, message)| context! { role => message.role.name(), content => placeholder(i) })
        .collect();
    let rendered = environment.render_str(
        template,
        context! {
            messages => turns,
            add_generation_prompt => true,
            bos_token => name(vocab.bos()).unwrap_or_default(),
            eos_token => name(vocab.eos()).unwrap_or_default(),
        },
    );
    rendered.map_err(|error| {
        Error::new(Kind::Model, format!("the model's chat template failed: {error}"))
            .help("give a plain prompt, without the chat format")
    })
}

/// Puts the messages in the place of their placeholders.
fn split(rendered: &str, messages: &[Message]) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let mut rest = rendered;
    for (i, message) in messages.iter().enumerate() {
        let Some((before, after)) = rest.split_once(&placeholder(i)) else {
            let role = message.role.name();
            let error = format!("the model's chat template leaves out a {role} message");
            return Err(
                Error::new(Kind::Model, error).help("give a plain prompt, without the chat format")
            );
        };
        parts.push(Part { text: before.to_owned(), content: false });
        parts.push(Part { text: message.content.clone(), content: true });
        rest = after;
    }
    parts.push(Part { text: rest.to_owned(), content: false });
    Ok(parts)
}

/// The same conversation with a leading system message joined to the turn after it.
fn without_system(messages: &[Message]) -> Option<Vec<Message>> {
    let [system, user, rest @ ..] = messages else { return None };
    let joins = system.role == Role::System && user.role == Role::User;
    joins.then(|| {
        let first = Message::new(Role::User, format!("{}\n\n{}", system.content, user.content));
        std::iter::once(first).chain(rest.iter().cloned()).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_where_their_placeholders_are() -> Result<()> {
        let messages = [Message::new(Role::System, "be brief"), Message::new(Role::User, "<end>")];
        let rendered = format!("<s>{}</s><u>{}</u>", placeholder(0), placeholder(1));
        let parts = split(&rendered, &messages)?;
        let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
        assert_eq!(texts, ["<s>", "be brief", "</s><u>", "<end>", "</u>"]);
        assert!(split("<s></s>", &messages).is_err());
        let joined = without_system(&messages).unwrap_or_default();
        assert_eq!(joined, [Message::new(Role::User, "be brief\n\n<end>")]);
        assert_eq!(without_system(&messages[1..]), None);
        Ok(())
    }
}
