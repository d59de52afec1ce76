//! The peer llguidance, with its defaults: fast-forward off, JSON slices on, flexible white space.
use super::{Compiled, Engine, Sequence, Source};
use crate::PropertyOrder;
use crate::tokens::Tokens;
use anyhow::{Result, anyhow, bail};
use llguidance::api::TopLevelGrammar;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::InferenceCapabilities;
use llguidance::{Matcher, ParserFactory};

/// The engine with a vocabulary.
pub struct Llguidance {
    factory: ParserFactory,
}

impl Llguidance {
    /// Builds the tables of the vocabulary.
    pub fn new(tokens: &Tokens) -> Result<Self> {
        let capabilities = InferenceCapabilities::default();
        let slices = SlicedBiasComputer::json_slices();
        let mut factory = ParserFactory::new(&tokens.env, capabilities, &slices)?;
        factory.quiet();
        Ok(Self { factory })
    }
}

impl Engine for Llguidance {
    /// It has the declared order of keys only.
    fn compile(&self, source: Source<'_>, _: PropertyOrder) -> Result<Box<dyn Compiled + '_>> {
        let grammar = match source {
            Source::Schema(text) => TopLevelGrammar::from_json_schema(serde_json::from_str(text)?),
            Source::Grammar(text, "lark") => TopLevelGrammar::from_lark(text.to_owned()),
            Source::Grammar(text, "regex") => TopLevelGrammar::from_regex(text),
            Source::Grammar(text, "choice") => TopLevelGrammar::from_lark(choice(text)?),
            Source::Grammar(_, syntax) => bail!("grammars in {syntax} are not supported"),
        };
        let matcher = Matcher::new(self.factory.create_parser(grammar));
        match matcher.get_error() {
            Some(error) => Err(anyhow!(error)),
            None => Ok(Box::new(Ready(matcher))),
        }
    }
}

/// One of several lines.
fn choice(lines: &str) -> Result<String> {
    let lines: Result<Vec<String>, _> = lines.lines().map(serde_json::to_string).collect();
    Ok(format!("start: {}", lines?.join(" | ")))
}

/// A fresh matcher: each sequence is a clone of it.
struct Ready(Matcher);

impl Compiled for Ready {
    fn start(&mut self) -> Result<Box<dyn Sequence>> {
        Ok(Box::new(Running(self.0.deep_clone())))
    }
}

struct Running(Matcher);

impl Sequence for Running {
    fn fill(&mut self, mask: &mut [u32]) -> Result<()> {
        mask.fill(0);
        if !self.0.is_stopped() {
            let computed = self.0.compute_mask()?;
            let words = computed.as_slice();
            let len = words.len().min(mask.len());
            mask[..len].copy_from_slice(&words[..len]);
        }
        Ok(())
    }

    fn accept(&mut self, token: u32) -> Result<()> {
        self.0.consume_token(token)
    }

    fn can_stop(&mut self) -> Result<bool> {
        self.0.is_accepting()
    }
}
