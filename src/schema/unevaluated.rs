//! `unevaluatedProperties` and `unevaluatedItems`. (Placeholder.)
use super::keywords::{Keyword, Keywords};
use super::normal::{Compiler, Parts};
use super::resolve::ScopeId;
use crate::error::{Error, Kind, Result};

impl Compiler<'_> {
    pub fn annotated_parts(&mut self, keywords: &Keywords, _scope: ScopeId) -> Result<Parts> {
        let at = keywords
            .get(Keyword::UnevaluatedProperties)
            .or(keywords.get(Keyword::UnevaluatedItems));
        let keyword = "unevaluatedProperties".to_owned();
        Err(Error::new(Kind::Unsupported { keyword }, "unevaluated")
            .at(self.json.place(at.unwrap_or(0))))
    }
}
