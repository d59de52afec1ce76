//! `constrain [OPTIONS] [PROMPT]`: one document, generated under a schema or a grammar.
//!
//! What can be refused is refused first: the schema, the prompt and the settings are checked before
//! a model is fetched or loaded. What comes out is checked last, by [`crate::verify`].

use crate::args::{GenerateArgs, SamplingArgs, StopInside, Verbosity};
use crate::compile::{Form, NO_REASONING};
use crate::fields::{self, Part};
use crate::idle::{self, Flag};
use crate::input;
use crate::model::{self, Change};
use crate::prompt;
use crate::reasoning;
use crate::receipt::Receipt;
use crate::report::Failure;
use crate::strategy::Plan;
use crate::trace::Trace;
use crate::verify::Verifier;
use constrain::decode::{Decoder, Field, FinishReason, Outcome, Request, SoftLanding};
use constrain::extract::is_reasoning;
use constrain::limits::Cancel;
use constrain::sample::{Preset, Settings};
use constrain::{Constraint, Grammar};
use std::hash::{BuildHasher, RandomState};
use std::process::ExitCode;

/// The settings when no preset is named.
const DEFAULT_PRESET: Preset = Preset::Chat;

/// What is to be done, checked as far as it can be without a model.
struct Job<'a> {
    args: &'a GenerateArgs,
    verbosity: &'a Verbosity,
    form: Form,
    grammar: Grammar,
    /// The second judge, for schemas.
    verifier: Option<Verifier>,
    messages: Vec<constrain::model::Message>,
    settings: Settings,
    plan: Plan,
    /// The fields to decode side by side, if the plan says so.
    parts: Vec<Part>,
    max_tokens: usize,
}

/// Runs the program's main job.
pub fn run(args: &GenerateArgs, verbosity: &Verbosity) -> Result<ExitCode, Failure> {
    let form = Form::read(&args.schema)?;
    let strips = form.is_schema() && form.has_reasoning();
    let (name, is_given) = ("--strip-reasoning", args.strip_reasoning);
    idle::refuse(&[Flag { name, is_given, works: strips, ..NO_REASONING }])?;
    let inputs = prompt::inputs(args)?;
    let form = form.with_document(inputs.document())?;
    let grammar = form.compile()?;
    let verifier = Verifier::of(&form)?;
    let messages = prompt::messages(args, &inputs, &form)?;
    let (settings, max_tokens) = settings(&args.sampling)?;
    let plan = args.strategy.plan()?;
    if plan.fields && args.stream {
        return Err(Failure::new("fields that are decoded side by side cannot be streamed"));
    }
    idle::refuse(&[Flag {
        name: "--soft-landing",
        is_given: args.sampling.soft_landing.is_some(),
        works: !plan.fields,
        why: "fields that are decoded side by side have budgets of their own",
        help: "leave it out, or take another strategy",
    }])?;
    if let Some(trace) = &args.trace {
        input::check_place_of(trace)?;
        input::keep_apart(trace, args.schema.files())?;
    }
    if args.trace.is_some() && !plan.is_stepwise() {
        return Err(Failure::new(
            "only strategies that choose one token after the other are traced",
        ));
    }
    let draws = plan.draws() && !settings.is_greedy();
    if !verbosity.quiet {
        hints(args, &settings, draws);
    }
    let parts = if plan.fields { fields::split(&form)? } else { Vec::new() };
    let sequences = plan.sequences().max(parts.len() + 1);
    let change = Change { sequences, ..Change::default() };
    let job = Job {
        args,
        verbosity,
        form,
        grammar,
        verifier,
        messages,
        settings,
        plan,
        parts,
        max_tokens,
    };
    let weights = model::load_for(&args.model, verbosity, job.plan.needs_heads())?;
    let second = job.plan.assistant();
    let second = second.map(|path| model::load_second(path, &args.model, verbosity)).transpose()?;
    let mut assistant = second.as_ref().map(|w| w.model(Change::default())).transpose()?;
    let mut main = weights.model(change)?;
    let mut decoder = Decoder::new(&mut *main);
    if let Some(assistant) = &mut assistant {
        decoder = decoder.with_assistant(&mut **assistant);
    }
    let trace = args.trace.as_deref();
    let trace = trace.map(|path| Trace::new(path, decoder.model().vocabulary())).transpose()?;
    let done = job.run(&mut decoder, trace.as_ref());
    // A trace is wanted above all where something went wrong.
    trace.map_or(Ok(()), |trace| trace.finish())?;
    done?;
    Ok(ExitCode::SUCCESS)
}

/// The preset with what the flags change, and the token budget.
fn settings(args: &SamplingArgs) -> Result<(Settings, usize), Failure> {
    let preset = args.filters.preset.unwrap_or(DEFAULT_PRESET);
    let seed = args.seed.unwrap_or_else(draw_seed);
    let settings = Settings { seed, ..args.filters.over(preset.settings()) };
    settings.check()?;
    Ok((settings, args.max_tokens.unwrap_or(preset.max_tokens())))
}

/// What the user may not expect.
fn hints(args: &GenerateArgs, settings: &Settings, draws: bool) {
    if draws && args.sampling.seed.is_none() {
        input::say(&format!("seed {}", settings.seed));
    }
    if settings.penalties.is_on() {
        input::say(
            "warning: penalties also act on the quotes, braces and names that a document must \
             repeat; take them for a loop that you have seen",
        );
    }
    if args.sampling.answers > 1 && !draws {
        input::say("warning: nothing is drawn at random, so all answers will be the same");
    }
}

/// A fresh seed, short enough to be typed again.
fn draw_seed() -> u64 {
    RandomState::new().hash_one("seed") >> 32
}

impl Job<'_> {
    fn run(&self, decoder: &mut Decoder<'_>, trace: Option<&Trace>) -> Result<(), Failure> {
        let model = decoder.model();
        let prompt = model.chat(&self.messages)?;
        if self.args.show_prompt {
            return input::print(&format!("{}\n", prompt.text.trim_end_matches('\n')));
        }
        let vocabulary = model.vocabulary().clone();
        self.form.check(&vocabulary)?;
        let constraint = self.form.constraint(&self.grammar, &vocabulary)?;
        if self.args.sampling.stop_inside == StopInside::Refuse {
            constraint.check_stops(&self.args.sampling.stop)?;
        }
        let request = Request {
            settings: self.settings.clone(),
            max_tokens: self.budget(prompt.tokens.len(), model.context_len()),
            strategy: self.plan.strategy(&vocabulary, &prompt.tokens),
            stop: self.args.sampling.stop.clone(),
            soft_landing: self
                .args
                .sampling
                .soft_landing
                .map(|from| SoftLanding { from, strength: 2.0 }),
            log_probs: self.args.logprobs,
            watch: trace.map(|trace| trace.watch(self.form.is_schema())),
            ..Request::new(prompt.tokens).constrained(constraint.clone())
        };
        let name = model.name();
        let field = |part: &Part| -> Result<Field, Failure> {
            let constraint = part.form.constraint(&part.grammar, &vocabulary)?;
            Ok(Field { name: part.name.clone(), constraint })
        };
        let fields = self.parts.iter().map(field).collect::<Result<Vec<Field>, Failure>>()?;
        let mut receipts = Vec::new();
        for index in 0..self.args.sampling.answers as u64 {
            let request = Request { index, ..request.clone() };
            let outcome = match &fields[..] {
                [] => self.decode(decoder, request)?,
                fields => decoder.fields(fields, &request)?,
            };
            let text = self.finish(&outcome)?;
            if self.verbosity.verbose {
                input::say(&summary(&name, &outcome));
            }
            match (self.args.stream, self.args.json) {
                (true, _) => input::print("\n")?,
                (false, true) => {
                    receipts.push(self.receipt(&name, &constraint, &outcome, &text)?)
                }
                (false, false) if self.form.is_schema() => {
                    input::print(&format!("{}\n", text.trim_end()))?;
                }
                (false, false) => input::print(&format!("{text}\n"))?,
            }
        }
        match &receipts[..] {
            [] => Ok(()),
            [receipt] => input::print(&format!("{receipt}\n")),
            several => input::print(&format!("[{}]\n", several.join(",\n"))),
        }
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

    fn decode(&self, decoder: &mut Decoder<'_>, mut request: Request) -> Result<Outcome, Failure> {
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
        if !matches!(outcome.finish, FinishReason::Complete | FinishReason::Stop(_)) {
            let message =
                format!("the document is not complete after {} tokens", outcome.tokens.len());
            let help = match outcome.finish {
                FinishReason::ContextFull => "enlarge the context with --ctx-size",
                _ => "raise --max-tokens, or bound the lengths in the schema or grammar",
            };
            return Err(Failure::new(message).help(help));
        }
        let text = outcome.text();
        let Some(verifier) = &self.verifier else { return Ok(text) };
        let options = &self.form.options;
        let stripped =
            reasoning::strip(&text, |name| is_reasoning(name, options), options.whitespace);
        match (verifier.verify(&text), &stripped) {
            (Ok(_), _) => {}
            // The schema does not know the field that was added to it.
            (Err(_), Some(stripped)) if options.add_reasoning => {
                verifier.verify(stripped)?;
            }
            (Err(failure), _) => return Err(failure),
        }
        Ok(stripped.filter(|_| self.args.strip_reasoning).unwrap_or(text))
    }

    fn receipt(
        &self,
        model: &str,
        constraint: &Constraint,
        outcome: &Outcome,
        text: &str,
    ) -> Result<String, Failure> {
        let receipt = Receipt {
            form: &self.form,
            vocabulary: constraint.vocabulary(),
            settings: &self.settings,
            strategy: &self.plan.name,
            model,
            outcome,
        };
        receipt.json(text)
    }
}

fn summary(model: &str, outcome: &Outcome) -> String {
    let statistics = &outcome.statistics;
    format!(
        "{model}: {} tokens of prompt in {:.2?}; {} tokens, {} of them forced, in {} passes at {:.1} \
         per second; {} of {} drafted tokens were right; masks {:.1?} and sampling {:.1?} in all",
        statistics.prompt_tokens,
        statistics.prompt_time,
        statistics.tokens,
        statistics.forced_tokens,
        statistics.passes,
        statistics.tokens_per_second(),
        statistics.accepted_tokens,
        statistics.drafted_tokens,
        statistics.mask_time,
        statistics.sample_time,
    )
}
