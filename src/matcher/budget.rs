//! A matcher with a budget of tokens: an output that is complete and valid when it ends.
//!
//! The budget counts tokens from the start of the output, the end token included. A token is
//! allowed only if the document can be completed with what is left after it, see [`crate::cost`].
//! While that holds for any token, which is one comparison per step, the mask is the same object as
//! without a budget, and no cost is computed.
//!
//! A budget below the cost of the start comes with a [`Plan`]: a whole completion in few
//! tokens. As long as the output follows it, its next token is allowed whatever the costs say; so
//! the mask is never empty there either.
//!
//! By hand: `{"enum": ["yes", "no"]}` over single bytes costs 5 tokens: `"no"` and the end. With a
//! budget of 5, `y` is not in the mask after `"`, since `es"` and the end would need 6 in all.

use std::sync::Arc;

use super::Matcher;
use crate::constraint::Constraint;
use crate::cost::{Judge, NEAR, NEVER, Plan, Room};
use crate::error::{Error, Kind, Place, Result};
use crate::mask::allowed::Parts;
use crate::mask::{Allowed, ConfigId};
use crate::vocab::TokenId;

/// What a matcher may spend.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    tokens: u64,
    plan: Option<Arc<Plan>>,
    /// With so many tokens left it is ample wherever the output is.
    room: Room,
    /// Whether that is the closer one.
    close: bool,
    /// How many of the accepted tokens are the first ones of the plan.
    followed: usize,
}

impl Budget {
    /// Notes a step, the first after `len` steps.
    pub fn follow(&mut self, len: usize, token: Option<TokenId>) {
        let next = self.plan.as_ref().and_then(|plan| plan.tokens().get(len));
        if self.followed == len && next.is_some() && next.copied() == token {
            self.followed += 1;
        }
    }

    /// Notes that only `len` steps are left.
    pub fn cut(&mut self, len: usize) {
        self.followed = self.followed.min(len);
    }

    /// The same budget at the start.
    pub fn fresh(&self) -> Self {
        Self { followed: 0, ..self.clone() }
    }

    /// Whether any token may be taken after `len` steps and so many bytes of `output`, inside `depth` containers, as can
    /// be told without looking.
    #[inline]
    fn is_ample(&self, len: usize, depth: usize, output: usize) -> bool {
        // The token itself, and the end token.
        self.tokens.saturating_sub(len as u64 + 2) >= self.room.tokens(depth, output)
    }

    /// The token of the plan after `len` steps, if they followed it.
    fn planned(&self, len: usize) -> Option<TokenId> {
        let plan = self.plan.as_ref().filter(|_| self.followed == len)?;
        plan.tokens().get(len).copied()
    }
}

impl Constraint {
    /// A matcher whose output ends within `max_tokens` tokens, the end token counted.
    ///
    /// ```
    /// # use constrain::{Constraint, schema, vocab::{Token, Vocabulary}};
    /// # let mut tokens: Vec<Token> = (0..=255u8).map(|byte| Token::Text([byte].into())).collect();
    /// # tokens.push(Token::Special("<end>".into()));
    /// # let vocabulary = Vocabulary::new(tokens, vec![256])?;
    /// let options = schema::Options::default();
    /// let grammar = schema::compile(r#"{"enum": ["yes", "no"]}"#, &options)?;
    /// let constraint = Constraint::new(&grammar, &vocabulary)?;
    /// assert_eq!(constraint.min_tokens()?, 5);
    /// assert!(constraint.matcher_within(4).is_err());
    /// let mut matcher = constraint.matcher_within(5)?;
    /// matcher.accept(u32::from(b'"'))?;
    /// assert!(!matcher.mask()?.contains(u32::from(b'y')));
    /// # Ok::<(), constrain::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Kind::BudgetTooSmall`] with the least budget if this one is too small;
    /// [`Kind::TooComplex`] if costs cannot be computed within the grammar's limits.
    pub fn matcher_within(&self, max_tokens: u64) -> Result<Matcher> {
        let mut matcher = self.matcher();
        let room = matcher.judge().room();
        let mut budget = Budget { tokens: max_tokens, plan: None, room, close: false, followed: 0 };
        if !budget.is_ample(0, 0, 0) {
            (budget.room, budget.close) = (matcher.judge().closer_room()?, true);
            let cost = matcher.judge().cost(ConfigId::START)?;
            if max_tokens < cost {
                budget.plan = self.plan()?;
                let planned = budget.plan.as_ref().map(|plan| plan.tokens().len() as u64);
                let min = planned.map_or(cost, |planned| cost.min(planned));
                if max_tokens < min {
                    return Err(too_small(max_tokens, min));
                }
            }
        }
        matcher.budget = Some(budget);
        Ok(matcher)
    }

    /// The least budget that [`Constraint::matcher_within`] accepts: the tokens of a short document,
    /// the end token counted. It is the least number of tokens of any document where the search for
    /// it is exhaustive, else an upper bound of that; [`u64::MAX`] if no document can be planned.
    ///
    /// # Errors
    /// [`Kind::TooComplex`] if costs cannot be computed within the grammar's limits.
    pub fn min_tokens(&self) -> Result<u64> {
        let cost = self.matcher().judge().cost(ConfigId::START)?;
        let plan = self.plan()?;
        Ok(plan.map_or(cost, |plan| cost.min(plan.tokens().len() as u64)))
    }

    /// Whether [`Constraint::min_tokens`] is known to be the least.
    ///
    /// # Errors
    /// As [`Constraint::min_tokens`].
    pub fn min_tokens_is_exact(&self) -> Result<bool> {
        Ok(self.plan()?.is_some_and(|plan| plan.is_exact()))
    }
}

#[cold]
fn too_small(max_tokens: u64, min: u64) -> Error {
    let kind = Kind::BudgetTooSmall { min };
    if min == NEVER {
        let message = format!("no document within {max_tokens} tokens can be planned");
        return Error::new(kind, message).help("lower the least counts and lengths of the schema");
    }
    let message = format!("{max_tokens} tokens are too few: the shortest document takes {min}");
    Error::new(kind, message).help(format!("allow at least {min} tokens"))
}

impl Matcher {
    pub(super) fn judge(&self) -> Judge<'_> {
        let constraint = &self.constraint;
        Judge { costs: constraint.costs(), basis: constraint.basis(), configs: &self.configs }
    }

    /// The tokens left of the budget, if there is one.
    pub fn tokens_left(&self) -> Option<u64> {
        let budget = self.budget.as_ref()?;
        Some(budget.tokens.saturating_sub(self.len() as u64))
    }

    /// The tokens that complete the document from here, the end token counted: an upper bound of the
    /// least number, see [`crate::cost`]. 0 once an end token was accepted.
    ///
    /// # Errors
    /// [`Kind::TooComplex`] if costs cannot be computed within the grammar's limits.
    pub fn tokens_to_finish(&mut self) -> Result<u64> {
        self.renew();
        self.judge().cost(self.here())
    }

    /// For each token of the mask, by how many tokens it brings the end of the document nearer (less
    /// than nothing if it puts it off); `None` for other tokens.
    ///
    /// # Errors
    /// [`Kind::TooComplex`] if costs cannot be computed within the grammar's limits.
    pub fn tokens_nearer(&mut self) -> Result<Vec<Option<i64>>> {
        self.renew();
        let judge = self.judge();
        let cost = judge.cost(self.here())?;
        let after = judge.costs_after(self.here(), &self.text)?;
        let nearer = |after: u64| match after {
            NEVER => None,
            after => i64::try_from(cost).ok()?.checked_sub(i64::try_from(after).ok()?),
        };
        Ok(after.into_iter().map(nearer).collect())
    }

    /// Whether any token may be taken here, as can be told without looking.
    #[inline]
    fn is_ample(&self) -> bool {
        let (len, depth, output) = (self.len(), self.config().depth(), self.text.len());
        self.budget.as_ref().is_some_and(|budget| budget.is_ample(len, depth, output))
    }

    /// The mask under the budget where it differs from the one without it.
    pub(super) fn narrowed(&mut self) -> Result<Option<Allowed>> {
        let Some(left) = self.tokens_left() else { return Ok(None) };
        if self.is_ample() || self.config().is_finished() {
            return Ok(None);
        }
        if self.budget.as_ref().is_some_and(|budget| !budget.close) {
            let room = self.judge().closer_room()?;
            self.budget.iter_mut().for_each(|budget| (budget.room, budget.close) = (room, true));
            if self.is_ample() {
                return Ok(None);
            }
        }
        let judge = self.judge();
        if left >= NEAR && judge.ample(self.here())? <= left {
            return Ok(None);
        }
        self.renew();
        let mut parts = self.within_budget(&self.text, left)?;
        if parts.is_empty() && self.constraint.basis().program.has_budgets() {
            // What gives way is the budget of a part.
            return Ok(None);
        }
        let basis = self.constraint.basis();
        Ok(Some(parts.finish(&basis.tables, &basis.specials, None)))
    }

    /// The mask without regard to the budgets of parts, where none keeps to them.
    #[cold]
    pub(super) fn without_parts(&self) -> Result<Allowed> {
        Ok(self.configs.collect(self.constraint.basis(), self.here(), &self.text)?.0)
    }

    /// Where parts have budgets, the mask says whether they have to give way to the next token.
    #[inline]
    pub(super) fn learn_parts(&mut self) -> Result<()> {
        let has_budgets = self.constraint.basis().program.has_budgets();
        if has_budgets && self.configs.known_mask(self.here()).is_none() {
            self.renew();
            self.judge().learn_mask(self.here(), &self.text)?;
        }
        Ok(())
    }

    /// Whether the budgets of parts allow the configuration `next`, to which a token leads after `text`.
    fn within_parts(&self, token: Option<TokenId>, next: ConfigId, text: &[u8]) -> Result<bool> {
        let known = || self.configs.known_mask(self.here());
        if self.judge().cost(next)? != NEVER || known().is_some_and(Allowed::is_empty) {
            return Ok(true);
        }
        let own = self.judge().learn_mask(self.here(), text)?;
        Ok(own.as_ref().or_else(known).is_some_and(|allowed| self.is_among(token, allowed)))
    }

    /// What a budget of which `left` is left leaves of the mask after `text`; where that is nothing, what it
    /// gives way to.
    fn within_budget(&self, text: &[u8], left: u64) -> Result<Parts> {
        let mut parts = self.judge().narrow(self.here(), text, left)?;
        parts.tokens.extend(self.budget.as_ref().and_then(|budget| budget.planned(self.len())));
        if parts.is_empty() {
            parts = self.judge().give_way(self.here(), text, left)?;
        }
        Ok(parts)
    }

    /// Whether a token is in the mask under the budget.
    #[cold]
    fn is_offered(&self, token: Option<TokenId>, text: &[u8], left: u64) -> Result<bool> {
        let basis = self.constraint.basis();
        let mut parts = self.within_budget(text, left)?;
        Ok(self.is_among(token, &parts.finish(&basis.tables, &basis.specials, None)))
    }

    /// Whether a token is in a mask.
    ///
    /// That is asked where what the token leads to is too dear. Where items must differ, a cost is an estimate, and
    /// more of it is known after a token that completes an item than before: what the mask offers is taken.
    fn is_among(&self, token: Option<TokenId>, allowed: &Allowed) -> bool {
        let Some(token) = token else { return false };
        let basis = self.constraint.basis();
        let mut words = vec![0u32; self.constraint.vocabulary().len().div_ceil(32)];
        allowed.fill(&basis.tables, &basis.specials, &mut words);
        words.get(token as usize / 32).is_some_and(|word| word >> (token % 32) & 1 == 1)
    }

    /// The configuration `next`, to which a token leads (`None`: bytes), if the budget allows it.
    ///
    /// # Errors
    /// [`Kind::Rejected`] if the document could not be completed after it; those of `next`.
    pub(super) fn afford(
        &self,
        token: Option<TokenId>,
        next: Result<Option<ConfigId>>,
    ) -> Result<Option<ConfigId>> {
        let next = next?;
        let before = self.steps[self.len()].text as usize;
        if let Some(config) = next
            && self.constraint.basis().program.has_budgets()
            && !self.within_parts(token, config, &self.text[..before])?
        {
            let message = "the tokens of a field do not suffice for it";
            return Err(Error::new(Kind::Rejected, message).at(Place::Offset(before)));
        }
        let (Some(budget), Some(left), Some(config)) = (&self.budget, self.tokens_left(), next)
        else {
            return Ok(next);
        };
        if budget.is_ample(self.len(), self.config().depth(), before) {
            return Ok(next);
        }
        // Where the mask was asked for, this is known.
        let ample = self.config().ample.get();
        let any = ample.is_some_and(|&ample| ample <= left);
        if token.is_some() && (any || budget.planned(self.len()) == token) {
            return Ok(next);
        }
        if self.judge().cost(config)? < left {
            return Ok(next);
        }
        if self.is_offered(token, &self.text[..before], left)? {
            return Ok(next);
        }
        let message = format!("with {left} tokens left the document could not be completed");
        let place = Place::Offset(before);
        Err(Error::new(Kind::Rejected, message).at(place))
    }
}

#[cfg(test)]
mod part_tests;
#[cfg(test)]
mod tests;
