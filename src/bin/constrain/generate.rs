//! `constrain [OPTIONS] [PROMPT]`: one document, generated under a schema.
//!
//! What can be refused is refused first: the schema, the prompt and the settings are checked before
//! a model is fetched or loaded. What comes out is checked last, by [`crate::verify`].

use crate::args::{GenerateArgs, SamplingArgs, Verbosity};
use crate::compile::Schema;
use crate::input;
use crate::model::with_model;
use crate::outline::is_reasoning;
use crate::prompt;
use crate::reasoning;
use crate::receipt::Receipt;
use crate::report::Failure;
use crate::verify::Verifier;
use constrain::decode::{Decoder, FinishReason, Outcome, Request};
use constrain::limits::Cancel;
use constrain::model::Model;
use constrain::sample::{Penalties, Preset, Settings};
use constrain::{Constraint, Grammar};
use std::hash::{BuildHasher, RandomState};
use std::process::ExitCode;

/// The settings when no preset is named.
const DEFAULT_PRESET: Preset = Preset::Chat;

/// What is to be done, checked as far as it can be without a model.
struct Job<'a> {
    args: &'a GenerateArgs,
    verbosity: &'a Verbosity,
    schema: Schema,
    grammar: Grammar,
    verifier: Verifier,
    messages: Vec<constrain::model::Message>,
    settings: Settings,
    max_tokens: usize,
}

/// Runs the program's main job.
pub fn run(args: &GenerateArgs, verbosity: &Verbosity) -> Result<ExitCode, Failure> {
    let schema = Schema::read(&args.schema)?;
    let grammar = schema.compile()?;
    let verifier = Verifier::new(&schema.source)?;
    let messages = prompt::messages(args, &schema)?;
    let (settings, max_tokens) = settings(&args.sampling)?;
    if args.sampling.seed.is_none() && !settings.is_greedy() && !verbosity.quiet {
        input::say(&format!("seed {}", settings.seed));
    }
    let job = Job { args, verbosity, schema, grammar, verifier, messages, settings, max_tokens };
    with_model(&args.model, verbosity, |model| job.run(model))?;
    Ok(ExitCode::SUCCESS)
}

/// The preset with what the flags change, and the token budget.
fn settings(args: &SamplingArgs) -> Result<(Settings, usize), Failure> {
    let preset = args.preset.unwrap_or(DEFAULT_PRESET);
    let base = preset.settings();
    let settings = Settings {
        temperature: args.temperature.unwrap_or(base.temperature),
        top_k: args.top_k.unwrap_or(base.top_k),
        top_p: args.top_p.unwrap_or(base.top_p),
        min_p: args.min_p.unwrap_or(base.min_p),
        penalties: Penalties {
            frequency: args.frequency_penalty.unwrap_or(base.penalties.frequency),
            presence: args.presence_penalty.unwrap_or(base.penalties.presence),
            repetition: args.repetition_penalty.unwrap_or(base.penalties.repetition),
            ..base.penalties
        },
        seed: args.seed.unwrap_or_else(draw_seed),
    };
    settings.check()?;
    Ok((settings, args.max_tokens.unwrap_or(preset.max_tokens())))
}

/// A fresh seed, short enough to be typed again.
fn draw_seed() -> u64 {
    RandomState::new().hash_one("seed") >> 32
}

impl Job<'_> {
    fn run(&self, model: &mut dyn Model) -> Result<(), Failure> {
        let prompt = model.chat(&self.messages)?;
        if self.args.show_prompt {
            return input::print(&format!("{}\n", prompt.text.trim_end_matches('\n')));
        }
        let constraint = self.schema.constraint(&self.grammar, model.vocabulary())?;
        let max_tokens = self.budget(prompt.tokens.len(), model.context_len());
        let request = Request {
            settings: self.settings.clone(),
            max_tokens,
            ..Request::new(prompt.tokens).constrained(constraint.clone())
        };
        let name = model.name();
        let outcome = self.decode(model, request)?;
        let text = self.finish(&outcome)?;
        if self.verbosity.verbose {
            input::say(&summary(&name, &outcome));
        }
        if self.args.stream {
            return input::print("\n");
        }
        self.print(&name, &constraint, &outcome, &text)
    }

    /// The token budget, cut to what the context has room for.
    fn budget(&self, prompt_tokens: usize, context_tokens: usize) -> usize {
        let room = context_tokens.saturating_sub(prompt_tokens);
        if room < self.max_tokens && room > 0 && !self.verbosity.quiet {
            input::say(&format!(
                "the context of {context_tokens} tokens leaves room for {room}; --ctx-size enlarges it"
            ));
        }
        // A prompt that does not fit at all is refused by the decoder.
        self.max_tokens.min(room.max(1))
    }

    fn decode(&self, model: &mut dyn Model, mut request: Request) -> Result<Outcome, Failure> {
        let mut decoder = Decoder::new(model);
        if !self.args.stream {
            return Ok(decoder.run(&request)?);
        }
        let cancel = Cancel::default();
        request.cancel = Some(cancel.clone());
        let mut stopped = None;
        let outcome = decoder.stream(&request, &mut |piece| {
            if stopped.is_none()
                && let Err(failure) = input::print(piece)
            {
                stopped = Some(failure);
                cancel.cancel();
            }
        });
        match stopped {
            Some(failure) => Err(failure),
            None => Ok(outcome?),
        }
    }

    /// The text of a whole, verified document, without its reasoning if that is not wanted.
    fn finish(&self, outcome: &Outcome) -> Result<String, Failure> {
        if outcome.finish != FinishReason::Complete {
            let message =
                format!("the document is not complete after {} tokens", outcome.tokens.len());
            let help = match outcome.finish {
                FinishReason::ContextFull => "enlarge the context with --ctx-size",
                _ => "raise --max-tokens, or bound the lengths in the schema",
            };
            return Err(Failure::new(message).help(help));
        }
        let text = outcome.text();
        let options = &self.schema.options;
        let stripped =
            reasoning::strip(&text, |name| is_reasoning(name, options), options.whitespace);
        match (self.verifier.verify(&text), &stripped) {
            (Ok(_), _) => {}
            // The schema does not know the field that was added to it.
            (Err(_), Some(stripped)) if options.add_reasoning => {
                self.verifier.verify(stripped)?;
            }
            (Err(failure), _) => return Err(failure),
        }
        Ok(stripped.filter(|_| self.args.strip_reasoning).unwrap_or(text))
    }

    fn print(
        &self,
        model: &str,
        constraint: &Constraint,
        outcome: &Outcome,
        text: &str,
    ) -> Result<(), Failure> {
        if !self.args.json {
            return input::print(&format!("{}\n", text.trim_end()));
        }
        let receipt = Receipt {
            schema: &self.schema,
            vocabulary: constraint.vocabulary(),
            settings: &self.settings,
            model,
            outcome,
        };
        input::print(&format!("{}\n", receipt.json(text)?))
    }
}

fn summary(model: &str, outcome: &Outcome) -> String {
    let statistics = &outcome.statistics;
    format!(
        "{model}: {} tokens of prompt in {:.2?}; {} tokens, {} of them forced, at {:.1} per second; \
         masks {:.1?} and sampling {:.1?} in all",
        statistics.prompt_tokens,
        statistics.prompt_time,
        statistics.tokens,
        statistics.forced_tokens,
        statistics.tokens_per_second(),
        statistics.mask_time,
        statistics.sample_time,
    )
}
