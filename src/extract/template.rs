//! Prompts by a template of one's own, in Jinja.
//!
//! By hand, the template
//!
//! ```text
//! {{ form }}
//! {% for example in examples %}{{ example.text }} => {{ example.answer }}
//! {% endfor %}{{ document }} =>
//! ```
//!
//! makes the user's turn out of the parts that prompts have: `form` (which form is wanted, in words),
//! `instruction`, `examples` (each with `text` and `answer`) and `document`. Documents are values,
//! never read as templates: `{{` in one stays as it is. The work of a template is bounded.

use crate::error::{Error, Kind, Result};
use crate::extract::Example;
use minijinja::{Environment, UndefinedBehavior, context};

/// Instructions of the template engine for one prompt.
const FUEL: u64 = 1_000_000;

/// A template of the user's turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    source: String,
}

impl Template {
    /// Checks that it parses.
    ///
    /// # Errors
    /// [`Kind::BadArgument`] with the line.
    pub fn new(source: impl Into<String>) -> Result<Self> {
        let source = source.into();
        environment().template_from_str(&source).map_err(failed)?;
        Ok(Self { source })
    }

    /// The user's turn for a document.
    pub(crate) fn render(
        &self,
        form: &str,
        instruction: &str,
        examples: &[Example],
        document: &str,
    ) -> Result<String> {
        let examples = examples.iter().map(
            |Example { text, answer }| context! { text => text.as_str(), answer => answer.as_str() },
        );
        let parts = context! {
            form => form,
            instruction => instruction,
            examples => examples.collect::<Vec<_>>(),
            document => document,
        };
        environment().render_str(&self.source, parts).map_err(failed)
    }
}

/// Names that the prompt does not have are errors: an empty place would not be seen.
fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment
}

fn failed(error: minijinja::Error) -> Error {
    let failed = Error::new(Kind::BadArgument, format!("the prompt's template: {error}"))
        .help("it may use form, instruction, examples (text, answer) and document");
    match error.line().and_then(|line| u32::try_from(line).ok()) {
        Some(line) => failed.at_line(line, 1),
        None => failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "{{ form }}|{% for example in examples %}{{ example.text }} => \
        {{ example.answer }}|{% endfor %}{{ instruction }}|{{ document }} =>";

    #[test]
    fn documents_are_values() -> Result<()> {
        let template = Template::new(SOURCE)?;
        let examples = [Example::new("one & a", "1")];
        let text = template.render("F", "I", &examples, "{{ form }} <b>")?;
        assert_eq!(text, "F|one & a => 1|I|{{ form }} <b> =>");
        Ok(())
    }

    #[test]
    fn mistakes_are_errors_with_their_line() -> Result<()> {
        let error = Template::new("a\n{% for %}").expect_err("no template");
        assert!(error.to_string().contains("line 2"), "{error}");
        let unknown = Template::new("{{ docment }}")?;
        assert_eq!(
            unknown.render("", "", &[], "x").expect_err("a typo").kind(),
            &Kind::BadArgument
        );
        let endless = Template::new(
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
        )?;
        assert!(endless.render("", "", &[], "x").is_err());
        Ok(())
    }
}
