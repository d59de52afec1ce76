//! Soft landing: the model feels the end of its budget before the mask narrows.
//!
//! From a chosen share of the budget on, a token's logit is raised by how many tokens it brings the end
//! of the document nearer, and lowered by how many it puts it off. The weight grows from nothing at that
//! share to the chosen strength at the end. So an array is closed in time instead of being cut short
//! by the mask in the middle of what the model had in mind.
//!
//! By hand, with a strength of 2 at three quarters of the way from the share to the end: in `[1` a comma
//! (which needs an item) puts the end off by one, so it loses 1.5; `]` brings it nearer by one and
//! gains 1.5; a further digit changes nothing.
//!
//! Invariant: without a budget, before the share and with strength 0 logits are as they were.

use crate::decode::output::Guard;
use crate::error::{Error, Kind, Result};

/// How the end of the budget is announced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SoftLanding {
    /// The share of the budget from which on, 0 to 1.
    pub from: f64,
    /// What one token nearer to the end is worth at the end, in logits.
    pub strength: f64,
}

/// Most tokens nearer or farther that count.
const MOST: i64 = 16;

impl SoftLanding {
    /// Whether the numbers make sense.
    ///
    /// # Errors
    /// [`Kind::BadArgument`] if not.
    pub fn check(&self) -> Result<()> {
        let bad = |message: String| Err(Error::new(Kind::BadArgument, message));
        if !(0.0..=1.0).contains(&self.from) {
            return bad(format!("the soft landing begins at share {}, not from 0 to 1", self.from));
        }
        if !(0.0..=100.0).contains(&self.strength) {
            return bad(format!("the strength {} is not from 0 to 100", self.strength));
        }
        Ok(())
    }

    /// The weight of one token once this share of the budget is used.
    fn weight(&self, used: f64) -> f64 {
        let way = (used - self.from) / (1.0 - self.from).max(f64::EPSILON);
        self.strength * way.clamp(0.0, 1.0)
    }
}

/// What to add to each logit of the next step, if anything.
pub(crate) fn bias(landing: Option<SoftLanding>, guard: &mut Guard) -> Result<Option<Vec<f32>>> {
    let (Some(landing), Guard::Constrained(matcher)) = (landing, guard) else { return Ok(None) };
    let Some(left) = matcher.tokens_left() else { return Ok(None) };
    let total = left + matcher.len() as u64;
    let weight = landing.weight(matcher.len() as f64 / total.max(1) as f64);
    if weight == 0.0 {
        return Ok(None);
    }
    let nearer = matcher.tokens_nearer()?;
    let bias = |nearer: Option<i64>| nearer.unwrap_or(0).clamp(-MOST, MOST) as f64 * weight;
    Ok(Some(nearer.into_iter().map(|nearer| bias(nearer) as f32).collect()))
}

/// Logits with a bias.
pub(crate) fn land(logits: &[f32], bias: &[f32]) -> Vec<f32> {
    logits.iter().zip(bias).map(|(logit, bias)| logit + bias).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraint::Constraint;
    use crate::decode::{Decoder, FinishReason, Request};
    use crate::model::Model;
    use crate::model::scripted::ScriptedModel;
    use crate::sample::Settings;

    #[test]
    fn weights_grow_from_the_share_on() {
        let landing = SoftLanding { from: 0.5, strength: 4.0 };
        assert_eq!([0.0, 0.5, 0.75, 1.0].map(|used| landing.weight(used)), [0.0, 0.0, 2.0, 4.0]);
        assert!(landing.check().is_ok());
        for (from, strength) in [(-0.1, 1.0), (1.1, 1.0), (f64::NAN, 1.0), (0.5, -1.0), (0.5, 1e9)]
        {
            assert!(SoftLanding { from, strength }.check().is_err());
        }
    }

    /// A long array of a model that never wants to end it: landing softly it ends before it must.
    #[test]
    fn arrays_end_before_they_must() -> Result<()> {
        let grammar = crate::schema::compile(
            r#"{"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}}"#,
            &crate::schema::Options {
                whitespace: crate::grammar::Whitespace::Compact,
                ..Default::default()
            },
        )?;
        let mut lengths = Vec::new();
        for soft_landing in [None, Some(SoftLanding { from: 0.3, strength: 30.0 })] {
            let vocabulary = crate::model::scripted::vocabulary();
            let mut model = ScriptedModel::new(vocabulary, |_, row| {
                row[usize::from(b'[')] = 3.0;
                row[usize::from(b',')] = 3.0;
                row[usize::from(b'1')] = 2.0;
            });
            let constraint = Constraint::new(&grammar, model.vocabulary())?;
            let prompt = model.plain("numbers")?.tokens;
            let request = Request { max_tokens: 40, soft_landing, ..Request::new(prompt) };
            let request = request.constrained(constraint).with(Settings::greedy());
            let outcome = Decoder::new(&mut model).run(&request)?;
            assert_eq!(outcome.finish, FinishReason::Complete, "{}", outcome.text());
            lengths.push(outcome.tokens.len());
        }
        assert!(lengths[0] >= 38 && lengths[1] < 30, "{lengths:?}");
        Ok(())
    }
}
