//! What a user chooses: [`Settings`], and named choices for common tasks ([`Preset`]).

use crate::error::{Error, Kind, Result};
use std::fmt;
use std::str::FromStr;

/// How the next token is chosen from the logits. Plain data; [`crate::sample::Sampler::new`]
/// checks it. The default is [`Preset::Chat`].
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Divides the logits: below 1 sharpens, above 1 flattens. At 0 (and below 1e-5) the best
    /// token is taken without drawing.
    pub temperature: f64,
    /// Keeps only this many of the most likely tokens; 0 is off.
    pub top_k: usize,
    /// Keeps the most likely tokens up to and including the one with which they reach this share
    /// of the probability; 1 is off.
    pub top_p: f64,
    /// Keeps the tokens that are at least this fraction as likely as the best; 0 is off.
    pub min_p: f64,
    /// What makes tokens less likely that were already used.
    pub penalties: Penalties,
    /// Key of all random numbers.
    pub seed: u64,
}

/// Penalties for tokens of the output so far, applied to the raw logits. All off by default: they
/// act on ids, not on meanings, and structured output must repeat its quotes and braces.
#[derive(Debug, Clone, PartialEq)]
pub struct Penalties {
    /// Subtracted once per occurrence; 0 is off.
    pub frequency: f64,
    /// Subtracted once if the token occurred; 0 is off.
    pub presence: f64,
    /// Divides positive and multiplies negative logits of tokens that occurred; 1 is off.
    pub repetition: f64,
    /// How many of the last tokens count; 0 means all.
    pub window: usize,
}

impl Default for Penalties {
    fn default() -> Self {
        Self { frequency: 0.0, presence: 0.0, repetition: 1.0, window: 0 }
    }
}

impl Penalties {
    /// Whether any of them changes anything.
    pub fn is_on(&self) -> bool {
        self.frequency != 0.0 || self.presence != 0.0 || self.repetition != 1.0
    }
}

impl Default for Settings {
    fn default() -> Self {
        Preset::Chat.settings()
    }
}

impl Settings {
    /// Temperature 0: the best token at every step.
    pub fn greedy() -> Self {
        Self { temperature: 0.0, top_p: 1.0, ..Self::drawing(0.0) }
    }

    /// Plain drawing at a temperature, every filter off.
    pub fn drawing(temperature: f64) -> Self {
        Self {
            temperature,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            penalties: Penalties::default(),
            seed: 0,
        }
    }

    /// Whether the best token is taken without drawing.
    pub fn is_greedy(&self) -> bool {
        /// Division by less could overflow.
        const LEAST: f64 = 1e-5;
        self.temperature < LEAST
    }

    /// Checks all ranges.
    ///
    /// # Errors
    /// [`Kind::BadArgument`] naming the setting, its value and its range.
    pub fn check(&self) -> Result<()> {
        let penalties = &self.penalties;
        let rows = [
            ("temperature", self.temperature, 0.0, 100.0),
            ("top-p", self.top_p, 0.0, 1.0),
            ("min-p", self.min_p, 0.0, 1.0),
            ("frequency penalty", penalties.frequency, -100.0, 100.0),
            ("presence penalty", penalties.presence, -100.0, 100.0),
            ("repetition penalty", penalties.repetition, 0.01, 100.0),
        ];
        // `contains` is false for NaN.
        match rows.iter().find(|(_, value, low, high)| !(low..=high).contains(&value)) {
            None => Ok(()),
            Some((name, value, low, high)) => {
                let message = format!("the {name} {value} is not between {low} and {high}");
                Err(Error::new(Kind::BadArgument, message))
            }
        }
    }
}

/// Settings for a kind of task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preset {
    /// One right answer, read from a text.
    Extraction,
    /// One right answer, a label.
    Classification,
    /// Programs: nearly one right answer.
    Code,
    /// Conversation: many acceptable answers.
    Chat,
    /// Ideas: variety wanted.
    Brainstorm,
    /// Judging other outputs: a ruler that must not vary.
    Judge,
}

impl Preset {
    /// All of them.
    pub const ALL: [Preset; 6] = [
        Preset::Extraction,
        Preset::Classification,
        Preset::Code,
        Preset::Chat,
        Preset::Brainstorm,
        Preset::Judge,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Extraction => "extraction",
            Preset::Classification => "classification",
            Preset::Code => "code",
            Preset::Chat => "chat",
            Preset::Brainstorm => "brainstorm",
            Preset::Judge => "judge",
        }
    }

    /// Its settings. With one right answer there is nothing to draw; with many, top-p takes away
    /// the tail and adapts to how sure the model is.
    pub fn settings(self) -> Settings {
        let (temperature, top_p) = match self {
            Preset::Extraction | Preset::Classification | Preset::Judge => (0.0, 1.0),
            Preset::Code => (0.2, 0.95),
            Preset::Chat => (0.7, 0.95),
            Preset::Brainstorm => (1.0, 0.98),
        };
        Settings { top_p, ..Settings::drawing(temperature) }
    }

    /// How many tokens an answer may have.
    pub fn max_tokens(self) -> usize {
        match self {
            Preset::Extraction => 500,
            Preset::Classification => 10,
            Preset::Code => 2000,
            Preset::Chat => 1000,
            Preset::Brainstorm => 800,
            Preset::Judge => 200,
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Preset {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Preset::name).join(", ");
            Error::new(
                Kind::BadArgument,
                format!("no preset is named {}", crate::error::quote(name)),
            )
            .help(format!("choose one of {names}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_pass_their_checks_and_parse() -> Result<()> {
        for preset in Preset::ALL {
            preset.settings().check()?;
            assert_eq!(preset.name().parse::<Preset>()?, preset);
        }
        assert!("Chat".parse::<Preset>().is_err());
        Ok(())
    }

    #[test]
    fn ranges() {
        let broken: [fn(&mut Settings); 9] = [
            |s| s.temperature = -1.0,
            |s| s.temperature = f64::NAN,
            |s| s.temperature = f64::INFINITY,
            |s| s.top_p = f64::NAN,
            |s| s.top_p = 1.5,
            |s| s.min_p = -0.1,
            |s| s.penalties.repetition = 0.0,
            |s| s.penalties.frequency = f64::NEG_INFINITY,
            |s| s.penalties.presence = f64::NAN,
        ];
        for change in broken {
            let mut settings = Settings::default();
            change(&mut settings);
            assert!(settings.check().is_err(), "{settings:?}");
        }
        for temperature in [0.0, 1e-45, 100.0] {
            assert!(Settings::drawing(temperature).check().is_ok());
        }
    }
}
