//! `constrain lab`: sampling and computing, to look at.
//!
//! Without a sub-command: twelve fixed logits, and what each stage of the pipeline takes away. `step`
//! shows the same for one real step of a model, `determinism` where the same request parts when it is
//! computed in another way, `kernels` by how much the logits differ then.

mod determinism;
mod kernels;
mod step;
mod table;
mod twelve;

use crate::args::{FilterArgs, FormArgs, ModelArgs, Verbosity, positive};
use crate::report::Failure;
use clap::{Args, Subcommand};
use constrain::TokenId;
use constrain::sample::Settings;
use std::process::ExitCode;

/// The flags of `lab`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  constrain lab --temperature 0.7 --top-p 0.9            which tokens top-p takes
  constrain lab --min-p 0.1 --temperature 2              the floor moves with the temperature
  constrain lab --frequency-penalty 1 --used 0,0         penalties come before the temperature
  constrain lab --mask 2,5,8 --top-k 2                   the mask comes before everything
  constrain lab --schema schema.json --after '{\"paid\": '  a schema's mask over the twelve tokens
  constrain lab step --schema schema.json --after '{\"paid\": ' \"Is the invoice paid?\"
  constrain lab determinism \"Tell me a story.\"
  constrain lab kernels \"Tell me a story.\""
)]
pub struct LabArgs {
    /// A real model instead of the twelve logits.
    #[command(subcommand)]
    pub command: Option<LabCommand>,
    /// The flags of the twelve.
    #[command(flatten)]
    pub twelve: TwelveArgs,
}

/// The sub-commands.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// What each stage takes away at one step of a model
    Step(StepArgs),
    /// Where the same request parts when it is computed in another way
    Determinism(CompareArgs),
    /// By how much logits differ when they are computed in another way
    Kernels(CompareArgs),
}

/// The flags of the twelve fixed logits.
#[derive(Debug, Args)]
pub struct TwelveArgs {
    /// The law of the next token; everything is off unless given.
    #[command(flatten)]
    pub filters: FilterArgs,
    /// The tokens that are allowed: ids from 0 to 11
    #[arg(
        long,
        alias = "allow",
        value_name = "ID",
        value_delimiter = ',',
        conflicts_with = "schema"
    )]
    #[arg(help_heading = "Constraint")]
    pub mask: Option<Vec<TokenId>>,
    /// The output so far as ids, for the penalties
    #[arg(long, value_name = "ID", value_delimiter = ',', help_heading = "Sampling")]
    pub used: Vec<TokenId>,
    /// A schema whose mask applies.
    #[command(flatten)]
    pub schema: FormArgs,
    /// The document so far, for the mask of the schema
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    #[arg(help_heading = "Constraint", allow_hyphen_values = true)]
    pub after: String,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// The flags of `step`.
#[derive(Debug, Args)]
pub struct StepArgs {
    /// What the model is asked
    #[arg(value_name = "PROMPT")]
    pub prompt: String,
    /// The law of the next token; everything is off unless given.
    #[command(flatten)]
    pub filters: FilterArgs,
    /// A schema whose mask applies.
    #[command(flatten)]
    pub schema: FormArgs,
    /// The document so far
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    #[arg(help_heading = "Constraint", allow_hyphen_values = true)]
    pub after: String,
    /// Which model runs.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Show the N tokens that the model finds likeliest
    #[arg(long, value_name = "N", default_value = "20", help_heading = "Output")]
    #[arg(value_parser = positive())]
    pub limit: usize,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// The flags of `determinism` and `kernels`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// What the model is asked
    #[arg(value_name = "PROMPT", default_value = "Tell me a story about a lighthouse.")]
    pub prompt: String,
    /// A schema to satisfy.
    #[command(flatten)]
    pub schema: FormArgs,
    /// The law of the next token; temperature 0 unless given.
    #[command(flatten)]
    pub filters: FilterArgs,
    /// Tokens to generate
    #[arg(long, value_name = "N", default_value = "64", help_heading = "Sampling")]
    #[arg(value_parser = positive())]
    pub max_tokens: usize,
    /// Seed of the random draws
    #[arg(long, value_name = "N", default_value = "0", help_heading = "Sampling")]
    pub seed: u64,
    /// Which model runs.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Runs the sub-command.
pub fn run(args: &LabArgs, verbosity: &Verbosity) -> Result<ExitCode, Failure> {
    match &args.command {
        None => twelve::run(&args.twelve)?,
        Some(LabCommand::Step(step)) => step::run(step, verbosity)?,
        Some(LabCommand::Determinism(compare)) => determinism::run(compare, verbosity)?,
        Some(LabCommand::Kernels(compare)) => kernels::run(compare, verbosity)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The settings of a look at one step: everything is off but what is given.
fn settings(filters: &FilterArgs, temperature: f64) -> Result<Settings, Failure> {
    let base = filters.preset.map_or(Settings::drawing(temperature), |preset| preset.settings());
    let settings = filters.over(base);
    settings.check()?;
    Ok(settings)
}
