//! The algorithms around the sampler, and their settings.

use crate::error::{Error, Kind, Result};
use crate::vocab::{TokenId, Vocabulary};

/// How the next tokens are found. New strategies may be added.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Strategy {
    /// The best token at every step, whatever the temperature says.
    Greedy,
    /// One draw per step, by the settings.
    Sample,
    /// As [`Strategy::Sample`], with drafts of several tokens that one pass of the model verifies:
    /// the same output, in fewer passes.
    Draft(Drafts),
    /// As [`Strategy::Sample`], from the law that remains when what a weak model likes as well is
    /// taken from what the model likes. Needs an assistant, the weak model.
    Contrastive(Contrastive),
    /// The most likely output as a whole, as far as a few beams find it; draws nothing.
    Beam(Beam),
}

impl Strategy {
    /// Whether it needs [`crate::decode::Decoder::with_assistant`].
    pub fn needs_assistant(&self) -> bool {
        match self {
            Strategy::Draft(drafts) => drafts.sources.contains(&Source::Model),
            Strategy::Contrastive(_) => true,
            _ => false,
        }
    }
}

/// Where drafts come from, and how long they are.
///
/// A draft never decides anything. The model computes the logits after each of its tokens in one
/// pass; then tokens are chosen by those logits ([`Verification`] says how), and as long as the
/// choice agrees with the draft the next logits are there already. Bad drafts cost time, never
/// quality.
#[derive(Debug, Clone, PartialEq)]
pub struct Drafts {
    /// Who is asked, in this order; each goes on where the one before it stopped.
    pub sources: Vec<Source>,
    /// Most tokens of a draft.
    pub most: usize,
    /// How drafted tokens are judged.
    pub verification: Verification,
    /// The tokens that [`Source::Model`] and [`Source::Heads`] may draft; all if there is none.
    pub shortlist: Option<Shortlist>,
    /// A source pays if at least this share of what it drafted lately was right; one that does not
    /// is asked again after a pause, which doubles each time. 0 never pauses.
    pub pays: f64,
}

impl Default for Drafts {
    /// What the constraint forces and what the prompt says, which cost next to nothing.
    fn default() -> Self {
        Self {
            sources: vec![Source::Forced, Source::Lookup],
            most: 8,
            verification: Verification::default(),
            shortlist: None,
            pays: 0.25,
        }
    }
}

impl Drafts {
    /// Drafts of one source.
    pub fn of(source: Source) -> Self {
        Self { sources: vec![source], ..Self::default() }
    }
}

/// Who drafts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// The constraint: what it forces, in the tokenizer's own spelling. For keys and punctuation.
    Forced,
    /// The prompt and the output: what followed the last few tokens where they occurred before.
    /// For outputs that quote their input.
    Lookup,
    /// Heads of the model itself (multi-token prediction).
    Heads,
    /// The assistant, a smaller model over the same vocabulary.
    Model,
}

impl Source {
    /// All of them, in the order in which asking makes sense: the cheap and certain ones first.
    pub const ALL: [Source; 4] = [Source::Forced, Source::Lookup, Source::Heads, Source::Model];
}

/// How drafted tokens are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verification {
    /// A token is drawn as without a draft, with the random number of its position; the draft was
    /// right if it is that token. The output is that of plain sampling, token for token (given
    /// logits that do not depend on the shape of the batch).
    #[default]
    Match,
    /// The drafted token `x` is taken with probability `min(1, p(x) / q(x))`, where `p` is the law
    /// of the step and `q` the one that the draft was drawn from; if not, a token is drawn from what
    /// `p` has more than `q`. Takes a drafting model's guesses more often; the *law* of the output
    /// is that of plain sampling, its tokens are others.
    Rejection,
}

/// A set of frequent tokens to draft from (FR-Spec).
///
/// Rare tokens are seldom worth a guess, and scoring fewer tokens is cheaper where the drafter can
/// compute fewer. llama.cpp computes all logits in any case, so here the shortlist saves the
/// sampler's work alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortlist {
    words: Vec<u32>,
}

impl Shortlist {
    /// These tokens.
    pub fn new(tokens: impl IntoIterator<Item = TokenId>) -> Self {
        let mut list = Self { words: Vec::new() };
        tokens.into_iter().for_each(|token| list.insert(token));
        list
    }

    /// The first `count` tokens that are text, and those of a prompt. Tokenizers that merge pairs
    /// number their tokens in the order of merging, which is the order of frequency in the text
    /// they were trained on.
    pub fn frequent(vocabulary: &Vocabulary, count: usize, prompt: &[TokenId]) -> Self {
        let ids = (0..vocabulary.len()).filter_map(|id| TokenId::try_from(id).ok());
        let text = ids.filter(|&id| vocabulary.bytes(id).is_some());
        Self::new(text.take(count).chain(prompt.iter().copied()))
    }

    fn insert(&mut self, token: TokenId) {
        let at = token as usize / 32;
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        self.words[at] |= 1 << (token % 32);
    }

    /// Whether a token is in it.
    pub fn contains(&self, token: TokenId) -> bool {
        self.words.get(token as usize / 32).is_some_and(|word| word >> (token % 32) & 1 == 1)
    }
}

/// Contrastive decoding: likes what the model likes more than an *amateur* does, which stands for
/// generic, repetitive text (Li et al. 2022; in the form of O'Brien and Lewis 2023).
///
/// After the mask, the *head* are the tokens at least `alpha` times as likely as the best one; in
/// it, the score is `(1 + beta) * logit - beta * logit of the amateur`, and the settings apply to
/// the scores as to logits.
#[derive(Debug, Clone, PartialEq)]
pub struct Contrastive {
    /// What the model must find likely for the amateur to have a say: 1 is greedy, 0 is all.
    pub alpha: f64,
    /// How much the amateur counts; 0 is plain sampling from the head.
    pub beta: f64,
}

impl Default for Contrastive {
    fn default() -> Self {
        Self { alpha: 0.1, beta: 0.5 }
    }
}

impl Contrastive {
    pub(crate) fn check(&self) -> Result<()> {
        let rows = [("alpha", self.alpha, 1.0), ("beta", self.beta, 10.0)];
        match rows.iter().find(|(_, value, high)| !(0.0..=*high).contains(value)) {
            None => Ok(()),
            Some((name, value, high)) => {
                let message = format!("the contrastive {name} {value} is not between 0 and {high}");
                Err(Error::new(Kind::BadArgument, message))
            }
        }
    }
}

/// Beam search: keeps the `width` most likely beginnings at each step.
///
/// Helps where one output is right, as in extraction; for conversation the most likely text is bland.
#[derive(Debug, Clone, PartialEq)]
pub struct Beam {
    /// Beams; the model needs twice as many sequences.
    pub width: usize,
    /// The sum of log-probabilities is divided by the number of tokens to this power: 0 prefers
    /// short outputs, 1 compares means.
    pub length_penalty: f64,
    /// Scores by the law renormalised over the mask instead of the model's own: then what is forced
    /// costs nothing, and unlikely documents with much forced text look good.
    pub constrained_score: bool,
}

impl Default for Beam {
    fn default() -> Self {
        Self { width: 4, length_penalty: 1.0, constrained_score: false }
    }
}
