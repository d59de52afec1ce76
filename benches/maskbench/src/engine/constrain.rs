//! This project's engine.
use super::{Budget, Compiled, Engine, Sequence, Source};
use crate::PropertyOrder;
use crate::tokens::Tokens;
use anyhow::Result;
use constrain::syntax::Syntax;
use constrain::{Constraint, Grammar, Kind, Matcher, Vocabulary, grammar, schema};
use std::sync::Arc;

/// The library with a vocabulary.
pub struct Ours {
    vocabulary: Vocabulary,
}

impl Ours {
    /// Reads the vocabulary with the library's own loader.
    pub fn new(json: &[u8], tokens: &Tokens) -> Result<Self> {
        let vocabulary = Vocabulary::from_tokenizer_json(json)?;
        tokens.check(&vocabulary)?;
        let len = vocabulary.len().max(tokens.len());
        Ok(Self { vocabulary: vocabulary.with_len(len)? })
    }
}

impl Engine for Ours {
    fn compile(&self, source: Source<'_>, order: PropertyOrder) -> Result<Box<dyn Compiled + '_>> {
        let property_order = match order {
            PropertyOrder::Declared => grammar::PropertyOrder::Declared,
            PropertyOrder::Any => grammar::PropertyOrder::Any,
        };
        let options = schema::Options { property_order, ..schema::Options::default() };
        let grammar = match source {
            Source::Schema(text) => Grammar::from_schema(text, &options)?,
            Source::Grammar(text, syntax) => {
                Grammar::from_text(text, syntax.parse::<Syntax>()?, &options)?
            }
        };
        Ok(Box::new(Ready(Constraint::compile(Arc::new(grammar), &self.vocabulary, None)?)))
    }
}

struct Ready(Constraint);

impl Compiled for Ready {
    fn start(&mut self) -> Result<Box<dyn Sequence>> {
        Ok(Box::new(Running(self.0.matcher())))
    }

    fn start_within(&mut self, budget: Budget) -> Result<Option<(Box<dyn Sequence>, u64)>> {
        let tokens = match budget {
            Budget::Tokens(tokens) => tokens,
            // The least is searched for.
            _ => budget.tokens(self.0.min_tokens()?),
        };
        match self.0.matcher_within(tokens) {
            Ok(matcher) => Ok(Some((Box::new(Running(matcher)), tokens))),
            Err(error) if matches!(error.kind(), Kind::BudgetTooSmall { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

struct Running(Matcher);

impl Sequence for Running {
    fn fill(&mut self, mask: &mut [u32]) -> Result<()> {
        Ok(self.0.fill_bitmask(mask)?)
    }

    fn accept(&mut self, token: u32) -> Result<()> {
        Ok(self.0.accept(token)?)
    }

    fn can_stop(&mut self) -> Result<bool> {
        Ok(self.0.can_stop())
    }
}
