//! Drafts: guesses at the next tokens that cost little, for one pass of the model to verify.
//!
//! By hand, *lookup*: the prompt says `order 4711 of Ada Lovelace`, the output so far ends in
//! `" of Ada"`; its last two tokens occurred in the prompt, so the draft is what followed there.
//! *Forced*: after `{"na` the constraint leaves only `me": `; the draft is how the tokenizer spells
//! that. A *model* or *heads* guess token by token. The sources are asked in turn, each goes on where
//! the one before it stopped, and the automaton cuts a draft before the first token that it does not
//! allow, or that ends the output.
//!
//! A drafting model is masked like the model that decides: what it guesses is never wasted on a
//! forbidden token. Under [`Verification::Match`] it draws with the random number that the model
//! will draw with, so that two models that agree draw the same token.

use crate::decode::output::{Guard, Output};
use crate::decode::pace::Pace;
use crate::decode::track::Track;
use crate::decode::verify::{Law, pick};
use crate::decode::{Drafts, Request, Source, Strategy, Verification};
use crate::error::Result;
use crate::matcher::Mask;
use crate::model::Model;
use crate::sample::random::{Purpose, uniform};
use crate::sample::{Sampler, Step};
use crate::vocab::{TokenId, Vocabulary};

/// Guessed tokens.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub tokens: Vec<TokenId>,
    /// The law that each was drawn from; `None` if it was not drawn.
    laws: Vec<Option<Law>>,
    /// Which source drafted, and up to where.
    parts: Vec<(usize, usize)>,
}

impl Draft {
    /// The token at a place, with the law that it was drawn from.
    pub fn get(&self, place: usize) -> Option<(TokenId, Option<&Law>)> {
        let token = *self.tokens.get(place)?;
        Some((token, self.laws.get(place)?.as_ref()))
    }
}

/// The output as it would be with the draft.
struct Ahead {
    guard: Guard,
    /// Prompt, output and draft.
    said: Vec<TokenId>,
    /// Where in that the output begins.
    start: usize,
    draft: Draft,
    /// Whether the output would end here.
    ended: bool,
}

impl Ahead {
    /// Appends a token to the draft, if it is allowed and does not end the output.
    fn push(&mut self, token: TokenId, law: Option<Law>, vocabulary: &Vocabulary) -> bool {
        self.ended = vocabulary.is_end(token);
        if self.ended || self.guard.accept(token).is_err() {
            return false;
        }
        self.said.push(token);
        self.draft.tokens.push(token);
        self.draft.laws.push(law);
        true
    }
}

/// Makes drafts for one run.
pub(crate) struct Drafter<'r> {
    drafts: &'r Drafts,
    /// One per source.
    paces: Vec<Pace>,
    /// Draws what a model drafts.
    sampler: Sampler,
}

impl<'r> Drafter<'r> {
    /// The drafter of a request; most strategies have none.
    pub fn new(request: &'r Request) -> Result<Option<Self>> {
        let Strategy::Draft(drafts) = &request.strategy else { return Ok(None) };
        Ok(Some(Self {
            drafts,
            paces: vec![Pace::new(drafts.most, drafts.pays); drafts.sources.len()],
            sampler: Sampler::new(request.settings.clone(), request.index)?,
        }))
    }

    /// How drafted tokens are judged.
    pub fn verification(&self) -> Verification {
        self.drafts.verification
    }

    /// Guesses what comes next; nothing if there is nothing to go by.
    pub fn draft(
        &mut self,
        (main, mut assistant): (&mut Track<'_>, Option<&mut Track<'_>>),
        (output, guard): (&Output<'_>, &Guard),
    ) -> Result<Draft> {
        let (prompt, position) = (&output.request.prompt, output.tokens.len());
        let said = [prompt.as_slice(), &output.tokens].concat();
        // The pass must fit the context, and tokens after the last allowed one are of no use.
        let room = main.model.context_len().saturating_sub(said.len() + 1);
        let left = output.request.max_tokens.saturating_sub(position + 1);
        let most = self.drafts.most.min(room).min(left).min(main.model.max_batch() - 1);
        let lens: Vec<usize> = self.paces.iter().map(|pace| pace.len(position)).collect();
        if most == 0 || lens.iter().all(|&len| len == 0) {
            return Ok(Draft::default());
        }
        let (guard, draft) = (guard.clone(), Draft::default());
        let mut ahead = Ahead { guard, said, start: prompt.len(), draft, ended: false };
        let vocabulary = main.model.vocabulary().clone();
        for (index, (source, len)) in self.drafts.sources.iter().zip(lens).enumerate() {
            let len = len.min(most - ahead.draft.tokens.len());
            if len == 0 || ahead.ended {
                continue;
            }
            let guess = match (source, assistant.as_deref_mut()) {
                (Source::Forced, _) => forced(main.model, &mut ahead.guard)?,
                (Source::Lookup, _) => lookup(&ahead.said).to_vec(),
                (Source::Heads, _) => self.heads(main, &ahead, len)?,
                (Source::Model, Some(assistant)) => {
                    self.model(assistant, (&mut ahead, len), &vocabulary)?;
                    Vec::new()
                }
                (Source::Model, None) => Vec::new(),
            };
            for &token in guess.iter().take(len) {
                if !ahead.push(token, None, &vocabulary) {
                    break;
                }
            }
            ahead.draft.parts.push((index, ahead.draft.tokens.len()));
        }
        Ok(ahead.draft)
    }

    /// Learns that the first `right` tokens of a draft were right. Who was not reached is not judged.
    pub fn learn(&mut self, draft: &Draft, right: usize, position: usize) {
        let mut start = 0;
        for &(source, end) in &draft.parts {
            if end > start && right >= start {
                self.paces[source].learn(end - start, right.min(end) - start, position);
            }
            start = end;
        }
    }

    /// What the model's heads expect after the draft so far, as far as they agree with it.
    fn heads(&self, main: &mut Track<'_>, ahead: &Ahead, len: usize) -> Result<Vec<TokenId>> {
        let (draft, list) = (&ahead.draft.tokens, &self.drafts.shortlist);
        let all =
            main.model.predict(&ahead.said[..ahead.said.len() - draft.len()], draft.len() + len)?;
        let after = all.strip_prefix(draft.as_slice()).unwrap_or_default();
        let listed = |token: &&TokenId| list.as_ref().is_none_or(|list| list.contains(**token));
        Ok(after.iter().take_while(listed).copied().collect())
    }

    /// The tokens of a mask that a model may draft, one bit each; `None` if those are all. By the
    /// rejection rule it must not draw an end: whether a draft is cut must not depend on the draw.
    fn drawable(&self, mask: &Mask<'_>, vocabulary: &Vocabulary) -> Option<Vec<u32>> {
        let list = self.drafts.shortlist.as_ref();
        let ends = self.drafts.verification == Verification::Match;
        if list.is_none() && ends {
            return None;
        }
        let mut words = vec![0; vocabulary.len().div_ceil(32)];
        for id in mask.iter() {
            if list.is_none_or(|list| list.contains(id)) && (ends || !vocabulary.is_end(id)) {
                words[id as usize / 32] |= 1 << (id % 32);
            }
        }
        Some(words)
    }

    /// Lets the assistant go on for up to `len` tokens.
    fn model(
        &mut self,
        assistant: &mut Track<'_>,
        (ahead, len): (&mut Ahead, usize),
        vocabulary: &Vocabulary,
    ) -> Result<()> {
        for _ in 0..len {
            if ahead.said.len() > assistant.model.context_len() {
                break;
            }
            let logits = assistant.follow(&ahead.said)?;
            let history = &ahead.said[ahead.start..];
            let mut mask = ahead.guard.mask()?;
            let words = self.drawable(&mask, vocabulary);
            mask = words.as_ref().map_or(mask, |words| Mask::Dense(words));
            if mask.is_empty() {
                break;
            }
            let position = history.len() as u64;
            let step = Step { logits, mask: Some(mask), history, position };
            let (token, law) = match self.drafts.verification {
                Verification::Match => (self.sampler.sample(&step)?, None),
                Verification::Rejection => {
                    let law = self.sampler.law(&step)?;
                    let (seed, stream) = (self.sampler.settings().seed, self.sampler.stream());
                    let draw = uniform(seed, stream, position, Purpose::Draft);
                    (pick(&law, draw).unwrap_or_default(), Some(law))
                }
            };
            if !ahead.push(token, law, vocabulary) {
                break;
            }
        }
        Ok(())
    }
}

/// What followed the most recent earlier occurrence of the last few tokens, trying four of them
/// first and at least two.
fn lookup(tokens: &[TokenId]) -> &[TokenId] {
    for n in (2..=4).rev() {
        let Some(start) = tokens.len().checked_sub(n) else { continue };
        let (before, key) = (&tokens[..tokens.len() - 1], &tokens[start..]);
        let found = before.windows(n).rposition(|window| window == key);
        if let Some(at) = found {
            return &tokens[at + n..];
        }
    }
    &[]
}

/// What the constraint forces, as the tokenizer spells it.
fn forced(model: &dyn Model, guard: &mut Guard) -> Result<Vec<TokenId>> {
    let Guard::Constrained(matcher) = guard else { return Ok(Vec::new()) };
    let bytes = matcher.forced_bytes();
    // Half a character has no spelling of its own.
    let whole = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    if whole.is_empty() { Ok(Vec::new()) } else { model.tokenize(whole, false) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Decoder, FinishReason, Request};
    use crate::model::scripted::ScriptedModel;
    use crate::sample::Settings;

    #[test]
    fn lookup_prefers_long_and_recent() {
        assert_eq!(lookup(&[1, 2, 3, 9, 9, 2, 3]), [9, 9, 2, 3]);
        assert_eq!(lookup(&[1, 2, 7, 1, 2, 8, 1, 2]), [8, 1, 2]);
        assert_eq!(lookup(&[5, 1, 2, 7, 6, 1, 2, 8, 5, 1, 2]), [7, 6, 1, 2, 8, 5, 1, 2]);
        assert_eq!(lookup(&[4, 4, 4]), [4]);
        assert!(lookup(&[1, 2, 3]).is_empty() && lookup(&[1]).is_empty() && lookup(&[]).is_empty());
    }

    #[test]
    fn a_quotation_takes_few_passes() -> Result<()> {
        let text = "order 4711 of Ada Lovelace, shipped on 12 May to Old Street 99";
        let mut model = ScriptedModel::following(text);
        let prompt = model.plain(text)?.tokens;
        let plain = Request::new(prompt).with(Settings::greedy());
        let expected = Decoder::new(&mut model).run(&plain)?;
        let request = Request { strategy: Strategy::Draft(Drafts::default()), ..plain };
        let outcome = Decoder::new(&mut model).run(&request)?;
        assert_eq!((outcome.text().as_str(), outcome.finish), (text, FinishReason::EndToken));
        let (with, without) = (outcome.statistics.passes, expected.statistics.passes);
        assert!(with * 3 < without, "{with} passes instead of {without}");
        Ok(())
    }
}
