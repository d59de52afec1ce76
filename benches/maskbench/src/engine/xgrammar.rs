//! The peer XGrammar: one thread, no cache, any white space, not strict.
use super::{Compiled, Engine, Sequence, Source};
use crate::PropertyOrder;
use crate::tokens::Tokens;
use anyhow::{Result, anyhow, bail};
use dlpark::prelude::*;
use ndarray::{ArrayD, IxDyn};
use xgrammar::{CompiledGrammar, Grammar, GrammarCompiler, GrammarMatcher, TokenizerInfo};

/// The engine with a vocabulary.
pub struct Xgrammar {
    compiler: GrammarCompiler,
    words: usize,
}

impl Xgrammar {
    /// Reads the vocabulary with the peer's loader; the end tokens are those of this library.
    pub fn new(json: &[u8], tokens: &Tokens) -> Result<Self> {
        let text = std::str::from_utf8(json)?;
        let ours = constrain::Vocabulary::from_tokenizer_json(json)?;
        let end: Result<Vec<i32>, _> = ours.end_tokens().iter().map(|&id| id.try_into()).collect();
        let info = TokenizerInfo::from_backend_str(text, Some(tokens.len()), end?)
            .map_err(|error| anyhow!("{error}"))?;
        let words = xgrammar::get_bitmask_size(info.get_vocab_size());
        let compiler = GrammarCompiler::with(&info, Some(1), Some(false), None);
        Ok(Self { compiler, words: words.try_into()? })
    }
}

impl Engine for Xgrammar {
    fn compile(&self, source: Source<'_>, order: PropertyOrder) -> Result<Box<dyn Compiled + '_>> {
        let any_order = Some(order == PropertyOrder::Any);
        let compiler = &self.compiler;
        let compiled = match source {
            Source::Schema(text) => compiler.compile_json_schema(
                text,
                Some(true),
                None,
                None,
                Some(false),
                None,
                any_order,
            ),
            Source::Grammar(text, "gbnf") => Grammar::from_ebnf(text, Some("root"))
                .and_then(|grammar| compiler.compile_grammar(&grammar)),
            Source::Grammar(text, "regex") => compiler.compile_regex(text),
            Source::Grammar(_, syntax) => bail!("grammars in {syntax} are not supported"),
        };
        let compiled = compiled.map_err(|error| anyhow!("{error}"))?;
        Ok(Box::new(Ready { compiled, words: self.words }))
    }
}

struct Ready {
    compiled: CompiledGrammar,
    words: usize,
}

impl Compiled for Ready {
    fn start(&mut self) -> Result<Box<dyn Sequence>> {
        let matcher = GrammarMatcher::with(&self.compiled, None, Some(false), None);
        let mask = ArrayD::from_shape_vec(IxDyn(&[1, self.words]), vec![0_i32; self.words])?;
        let mask = SafeManagedTensorVersioned::new(mask).map_err(|error| anyhow!("{error}"))?;
        Ok(Box::new(Running { matcher, mask }))
    }
}

struct Running {
    matcher: GrammarMatcher,
    mask: SafeManagedTensorVersioned,
}

impl Sequence for Running {
    fn fill(&mut self, mask: &mut [u32]) -> Result<()> {
        mask.fill(0);
        if self.matcher.is_terminated() {
            return Ok(());
        }
        let filled = self.matcher.fill_next_token_bitmask(&mut self.mask, None, None);
        filled.map_err(|error| anyhow!("{error}"))?;
        let words: &[i32] = self.mask.as_slice_contiguous().map_err(|e| anyhow!("{e}"))?;
        for (to, &from) in mask.iter_mut().zip(words) {
            *to = from.cast_unsigned();
        }
        Ok(())
    }

    fn accept(&mut self, token: u32) -> Result<()> {
        match self.matcher.accept_token(token.try_into()?, None) {
            true => Ok(()),
            false => bail!("token {token} is in the mask but was not accepted"),
        }
    }

    fn can_stop(&mut self) -> Result<bool> {
        Ok(self.matcher.is_completed() || self.matcher.is_terminated())
    }
}
