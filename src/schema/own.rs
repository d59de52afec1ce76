//! The keywords of this library, members of the object `x-constrain`, which other validators ignore.
//!
//! (`span`, which restricts the values, is read with the other keywords of strings.)
//!
//! `max_tokens` is a budget: at most so many tokens begin in the value. It says how a value is written,
//! not which values there are. So it has no part in the algebra of sets: what is asked is which budget a set
//! *has*, when its node is made. A schema has its own budget, or the least of those of the schemas that hold
//! beside it (`$ref`, `allOf`).
//!
//! By hand: `{"$ref": "#/$defs/a", "x-constrain": {"max_tokens": 9}}`, where `a` has the budget 5, has
//! the budget 5. In a choice (`anyOf`, `oneOf`, `if`, `not`) a budget would hold for some of the
//! values and not for others; it is refused there, and belongs beside the choice.

use super::json::{At, Type};
use super::keywords::{Keyword, Keywords};
use super::normal::Compiler;
use super::sets::{Def, SetId};
use crate::error::{Error, Kind, Result};
use hashbrown::HashSet;

/// A budget and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tokens {
    pub most: u32,
    pub at: At,
}

impl Compiler<'_> {
    /// The value of one of the library's own keywords.
    pub fn own_keyword(&self, keywords: &Keywords, name: &str) -> Result<Option<At>> {
        let Some(own) = keywords.own else { return Ok(None) };
        if self.json.kind(own) != Type::Object {
            return Err(self.malformed(own, "an object"));
        }
        let mut members = self.json.members(own);
        Ok(members.find(|&(key, _)| self.json.text(key) == name).map(|(_, value)| value))
    }

    /// The budget that a schema states itself.
    pub fn own_tokens(&self, keywords: &Keywords) -> Result<Option<Tokens>> {
        let Some(at) = self.own_keyword(keywords, "max_tokens")? else { return Ok(None) };
        // A greater one is none.
        let most = u32::try_from(self.count(at)?).unwrap_or(u32::MAX);
        Ok(Some(Tokens { most, at }))
    }

    /// The budget of the values of a set.
    ///
    /// # Errors
    /// [`Kind::Unsupported`] for a budget that holds for some of the values only.
    pub fn tokens(&mut self, set: SetId) -> Result<Option<Tokens>> {
        if !self.budgets {
            return Ok(None);
        }
        let mut least: Option<Tokens> = None;
        let (mut todo, mut visited) = (vec![(set, false)], HashSet::new());
        while let Some((set, in_choice)) = todo.pop() {
            self.fuel.spend(1)?;
            if !visited.insert((set, in_choice)) {
                continue;
            }
            match self.sets.def(set).clone() {
                Def::And(members) => {
                    todo.extend(members.iter().map(|&member| (member, in_choice)));
                }
                Def::Or(members) => todo.extend(members.iter().map(|&member| (member, true))),
                Def::Schema(at, scope) => {
                    let keywords = self.keywords(at);
                    if let Some(tokens) = self.own_tokens(&keywords)? {
                        if in_choice {
                            return Err(self.in_choice(tokens.at));
                        }
                        least = least.filter(|least| least.most <= tokens.most).or(Some(tokens));
                    }
                    let (beside, choices) = self.in_place_sets(&keywords, scope)?;
                    todo.extend(beside.into_iter().map(|set| (set, in_choice)));
                    todo.extend(choices.into_iter().map(|set| (set, true)));
                }
                // What a value must not be says nothing of how it is written.
                Def::Never | Def::Any | Def::Kind(_) | Def::Value(_) | Def::Not(_) => {}
            }
        }
        Ok(least)
    }

    /// The sets that hold beside a schema, and those that it chooses from.
    fn in_place_sets(
        &mut self,
        keywords: &Keywords,
        scope: super::resolve::ScopeId,
    ) -> Result<(Vec<SetId>, Vec<SetId>)> {
        let (mut beside, mut choices) = (Vec::new(), Vec::new());
        for keyword in [Keyword::Ref, Keyword::DynamicRef, Keyword::RecursiveRef] {
            if let Some(at) = keywords.get(keyword) {
                beside.push(self.reference(at, keyword, scope)?);
            }
        }
        if let Some(list) = keywords.get(Keyword::AllOf) {
            beside.extend(self.schema_list(list, scope)?);
        }
        for keyword in [Keyword::AnyOf, Keyword::OneOf] {
            if let Some(list) = keywords.get(keyword) {
                choices.extend(self.schema_list(list, scope)?);
            }
        }
        for keyword in [Keyword::Not, Keyword::If, Keyword::Then, Keyword::Else] {
            if let Some(at) = keywords.get(keyword) {
                choices.push(self.schema_set(at, scope)?);
            }
        }
        for (_, at) in self.dependent_schemas(keywords)? {
            choices.push(self.schema_set(at, scope)?);
        }
        Ok((beside, choices))
    }

    fn in_choice(&self, at: At) -> Error {
        let kind = Kind::Unsupported { keyword: "x-constrain/max_tokens".to_owned() };
        let message = "a budget of tokens that holds for some of the choices only is not enforced";
        let help = "put it beside the anyOf, oneOf, not or if";
        Error::new(kind, message).at(self.json.place(at)).help(help)
    }
}
