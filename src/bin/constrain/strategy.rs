//! `--strategy` and what belongs to it: the flags, and the strategy that they describe.

use crate::idle::{self, Flag};
use crate::report::Failure;
use clap::{Args, ValueEnum};
use constrain::decode::{Beam, Contrastive, Drafts, Shortlist, Source, Strategy, Verification};
use constrain::{TokenId, Vocabulary};
use std::path::{Path, PathBuf};

/// The algorithm around the sampler, and its settings.
#[derive(Debug, Default, Args)]
pub struct StrategyArgs {
    /// How the next tokens are found [default: sample]
    ///
    /// All of them are under the constraint. Drafts (speculative, lookup, grammar, mtp) change the
    /// time, not the output.
    #[arg(long, value_name = "NAME", help_heading = "Strategy")]
    pub strategy: Option<Name>,
    /// Who drafts, in this order; each goes on where the one before it stopped
    #[arg(long, value_name = "SOURCE", value_delimiter = ',', help_heading = "Strategy")]
    pub draft: Vec<Drafter>,
    /// The small model that drafts: a GGUF file with the same vocabulary
    #[arg(long, value_name = "FILE.gguf", help_heading = "Strategy")]
    pub draft_model: Option<PathBuf>,
    /// Most tokens of a draft [default: 8]
    #[arg(long, value_name = "N", help_heading = "Strategy", value_parser = super::args::positive())]
    pub draft_max: Option<usize>,
    /// Draft only the N most frequent tokens, and those of the prompt
    #[arg(long, value_name = "N", help_heading = "Strategy")]
    pub draft_shortlist: Option<usize>,
    /// How drafted tokens are judged [default: match]
    #[arg(long, value_name = "RULE", help_heading = "Strategy")]
    pub verify: Option<Rule>,
    /// Beams [default: 4]
    #[arg(long, alias = "beam-width", value_name = "N", help_heading = "Strategy")]
    #[arg(value_parser = super::args::positive())]
    pub beams: Option<usize>,
    /// Beams compare sums of log-probabilities, divided by the length to this power [default: 1]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Strategy")]
    pub length_penalty: Option<f64>,
    /// The law that beams are scored by [default: raw]
    #[arg(long, value_name = "LAW", help_heading = "Strategy")]
    pub beam_score: Option<Score>,
    /// The weak model of contrastive decoding: a GGUF file with the same vocabulary
    #[arg(long, value_name = "FILE.gguf", help_heading = "Strategy")]
    pub amateur: Option<PathBuf>,
    /// The amateur judges tokens at least ALPHA times as likely as the best [default: 0.1]
    #[arg(long, value_name = "ALPHA", allow_negative_numbers = true, help_heading = "Strategy")]
    pub alpha: Option<f64>,
    /// How much the amateur counts [default: 0.5]
    #[arg(long, value_name = "BETA", allow_negative_numbers = true, help_heading = "Strategy")]
    pub beta: Option<f64>,
}

/// The strategies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// The best token at every step, whatever the temperature
    Greedy,
    /// One draw per step
    Sample,
    /// The most likely output as a whole, as far as a few beams find it
    Beam,
    /// What the model likes more than a weak one does (needs --amateur)
    Contrastive,
    /// Drafts by a small model (needs --draft-model)
    Speculative,
    /// Drafts copied from the prompt and the output
    Lookup,
    /// Drafts of what the constraint forces
    Grammar,
    /// Drafts by the model's own heads (multi-token prediction)
    Mtp,
    /// The fields of a closed object side by side: faster, less consistent
    Fields,
}

/// Who drafts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Drafter {
    /// What the constraint forces
    Grammar,
    /// What the prompt or the output said before
    Lookup,
    /// The model's own heads
    Mtp,
    /// The model of --draft-model
    Model,
}

impl Drafter {
    fn source(self) -> Source {
        match self {
            Drafter::Grammar => Source::Forced,
            Drafter::Lookup => Source::Lookup,
            Drafter::Mtp => Source::Heads,
            Drafter::Model => Source::Model,
        }
    }
}

/// How drafted tokens are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// Right if it is the token that would have been drawn: the same output
    Match,
    /// Taken by the ratio of the two models' probabilities: the same law
    Rejection,
}

/// What beams are scored by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Score {
    /// The model's own law
    Raw,
    /// The law renormalised over what is allowed
    Constrained,
}

/// A strategy, checked as far as it can be without a model.
#[derive(Debug)]
pub struct Plan {
    /// What is shown for it.
    pub name: String,
    strategy: Strategy,
    /// Whether fields are decoded side by side.
    pub fields: bool,
    shortlist: Option<usize>,
    /// The file of the second model.
    pub assistant: Option<PathBuf>,
}

impl Plan {
    /// Whether the model's own heads draft.
    pub fn needs_heads(&self) -> bool {
        matches!(&self.strategy, Strategy::Draft(drafts) if drafts.sources.contains(&Source::Heads))
    }
}

impl StrategyArgs {
    /// What the flags describe.
    ///
    /// # Errors
    /// A flag that would have no effect, or one that is missing.
    pub fn plan(&self) -> Result<Plan, Failure> {
        let name = self.strategy.unwrap_or(match self.draft.first() {
            None => Name::Sample,
            Some(Drafter::Grammar) => Name::Grammar,
            Some(Drafter::Lookup) => Name::Lookup,
            Some(Drafter::Mtp) => Name::Mtp,
            Some(Drafter::Model) => Name::Speculative,
        });
        let strategy = match name {
            Name::Greedy => Strategy::Greedy,
            Name::Sample | Name::Fields => Strategy::Sample,
            Name::Beam => Strategy::Beam(self.beam()),
            Name::Contrastive => Strategy::Contrastive(self.contrastive()),
            Name::Speculative => self.drafts(Source::Model),
            Name::Lookup => self.drafts(Source::Lookup),
            Name::Grammar => self.drafts(Source::Forced),
            Name::Mtp => self.drafts(Source::Heads),
        };
        self.refuse_idle_flags(&strategy)?;
        let assistant = match &strategy {
            Strategy::Contrastive(_) => needed(&self.amateur, "--amateur")?,
            strategy if strategy.needs_assistant() => needed(&self.draft_model, "--draft-model")?,
            _ => None,
        };
        let fields = name == Name::Fields;
        let name = name.to_possible_value().map(|value| value.get_name().to_string());
        let name = name.unwrap_or_default();
        Ok(Plan { name, strategy, fields, shortlist: self.draft_shortlist, assistant })
    }

    /// The drafts of `--draft`, or of one source.
    fn drafts(&self, source: Source) -> Strategy {
        let mut sources: Vec<Source> = self.draft.iter().map(|drafter| drafter.source()).collect();
        if !sources.contains(&source) {
            sources.push(source);
        }
        let default = Drafts::default();
        Strategy::Draft(Drafts {
            sources,
            most: self.draft_max.unwrap_or(default.most),
            verification: match self.verify {
                Some(Rule::Rejection) => Verification::Rejection,
                _ => Verification::Match,
            },
            ..default
        })
    }

    fn beam(&self) -> Beam {
        let default = Beam::default();
        Beam {
            width: self.beams.unwrap_or(default.width),
            length_penalty: self.length_penalty.unwrap_or(default.length_penalty),
            constrained_score: self.beam_score == Some(Score::Constrained),
        }
    }

    fn contrastive(&self) -> Contrastive {
        let default = Contrastive::default();
        Contrastive {
            alpha: self.alpha.unwrap_or(default.alpha),
            beta: self.beta.unwrap_or(default.beta),
        }
    }

    /// Refuses the flags of other strategies.
    fn refuse_idle_flags(&self, strategy: &Strategy) -> Result<(), Failure> {
        let sources = match strategy {
            Strategy::Draft(drafts) => &drafts.sources[..],
            _ => &[],
        };
        let draft = (
            !sources.is_empty(),
            "this strategy drafts nothing",
            "take --strategy speculative, lookup, grammar or mtp, or --draft alone",
        );
        let model = (
            strategy.needs_assistant() && draft.0,
            "no second model drafts",
            "take --strategy speculative, or --draft model",
        );
        let predicted = [Source::Model, Source::Heads];
        let shortlist = (
            predicted.iter().any(|source| sources.contains(source)),
            "no model drafts",
            "take --strategy speculative or mtp",
        );
        let beam =
            (matches!(strategy, Strategy::Beam(_)), "there are no beams", "take --strategy beam");
        let contrastive = (
            matches!(strategy, Strategy::Contrastive(_)),
            "no second model is contrasted",
            "take --strategy contrastive",
        );
        let flag = |name, is_given, (works, why, help)| Flag { name, is_given, works, why, help };
        idle::refuse(&[
            flag("--draft", !self.draft.is_empty(), draft),
            flag("--draft-model", self.draft_model.is_some(), model),
            flag("--draft-max", self.draft_max.is_some(), draft),
            flag("--draft-shortlist", self.draft_shortlist.is_some(), shortlist),
            flag("--verify", self.verify.is_some(), draft),
            flag("--beams", self.beams.is_some(), beam),
            flag("--length-penalty", self.length_penalty.is_some(), beam),
            flag("--beam-score", self.beam_score.is_some(), beam),
            flag("--amateur", self.amateur.is_some(), contrastive),
            flag("--alpha", self.alpha.is_some(), contrastive),
            flag("--beta", self.beta.is_some(), contrastive),
        ])
    }
}

fn needed(path: &Option<PathBuf>, flag: &str) -> Result<Option<PathBuf>, Failure> {
    match path {
        Some(path) => Ok(Some(path.clone())),
        None => Err(Failure::new("this strategy needs a second model")
            .help(format!("name a smaller GGUF file with the same vocabulary: {flag} FILE.gguf"))),
    }
}

impl Plan {
    /// Whether it chooses one token after the other.
    pub fn is_stepwise(&self) -> bool {
        !self.fields && !matches!(self.strategy, Strategy::Beam(_))
    }

    /// The strategy for a prompt.
    pub fn strategy(&self, vocabulary: &Vocabulary, prompt: &[TokenId]) -> Strategy {
        let mut strategy = self.strategy.clone();
        if let (Strategy::Draft(drafts), Some(count)) = (&mut strategy, self.shortlist) {
            drafts.shortlist = Some(Shortlist::frequent(vocabulary, count, prompt));
        }
        strategy
    }

    /// Sequences that the model must hold.
    pub fn sequences(&self) -> usize {
        match &self.strategy {
            Strategy::Beam(beam) => beam.width.saturating_mul(2),
            _ => 1,
        }
    }

    /// Whether anything is drawn at random.
    pub fn draws(&self) -> bool {
        !matches!(self.strategy, Strategy::Greedy | Strategy::Beam(_))
    }

    /// The file of the second model.
    pub fn assistant(&self) -> Option<&Path> {
        self.assistant.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        args: StrategyArgs,
    }

    fn plan(flags: &str) -> Result<Plan, Failure> {
        let words = std::iter::once("x").chain(flags.split_whitespace());
        Flags::try_parse_from(words).expect("parses").args.plan()
    }

    #[test]
    fn flags_describe_strategies() {
        let sources = |flags: &str| match plan(flags).expect("a plan").strategy {
            Strategy::Draft(drafts) => drafts.sources,
            other => panic!("{other:?}"),
        };
        assert_eq!(sources("--strategy lookup"), [Source::Lookup]);
        assert_eq!(sources("--draft grammar,lookup"), [Source::Forced, Source::Lookup]);
        assert_eq!(sources("--strategy mtp --draft grammar"), [Source::Forced, Source::Heads]);
        let speculative = plan("--strategy speculative --draft-model s.gguf").expect("a plan");
        assert_eq!(speculative.assistant(), Some(Path::new("s.gguf")));
        assert_eq!(plan("").expect("a plan").strategy, Strategy::Sample);
        let beam = plan("--strategy beam --beams 3 --beam-score constrained").expect("a plan");
        assert_eq!((beam.sequences(), beam.draws()), (6, false));
    }

    #[test]
    fn idle_and_missing_flags_are_refused() {
        for flags in [
            "--beams 3",
            "--strategy beam --draft lookup",
            "--strategy lookup --draft-model s.gguf",
            "--alpha 0.1",
            "--strategy speculative",
            "--draft lookup,model",
            "--strategy contrastive",
            "--verify rejection",
            "--strategy greedy --draft-max 3",
            "--strategy grammar --draft-shortlist 100",
        ] {
            assert!(plan(flags).is_err(), "{flags}");
        }
    }
}
