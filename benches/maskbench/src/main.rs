//! Measures masks and verdicts of constraint engines on files of schemas and grammars.
//!
//! ```text
//! maskbench run --engine constrain --tokenizer tokenizer.json --out a.jsonl quick.jsonl.gz
//! maskbench run --engine llguidance --tokenizer tokenizer.json --out b.jsonl quick.jsonl.gz
//! maskbench compare a.jsonl b.jsonl
//! ```
//!
//! [`run`] reads cases ([`case`]) and hands them one by one to a *worker*, a child process that
//! measures one case at a time ([`worker`]): so that a peer that hangs or dies costs one case, and
//! one thread does all the work. An engine is behind two small traits ([`engine`]). The lines that
//! come out ([`record`]) are what [`compare`] reads.
mod case;
mod compare;
mod engine;
mod generate;
mod record;
mod run;
mod tokens;
mod worker;

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure how fast and how right constraint engines are.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run one engine over files of cases (.jsonl or .jsonl.gz).
    Run(RunArgs),
    /// Compare two files that `run` wrote.
    Compare {
        /// The first file; ratios say how many times slower the second is.
        a: PathBuf,
        /// The second file.
        b: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Measure the cases that come on standard input; what `run` starts.
    #[command(hide = true)]
    Worker(EngineArgs),
}

#[derive(Args)]
struct RunArgs {
    #[command(flatten)]
    engine: EngineArgs,
    /// Only the first N cases.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Seconds for one case; after that it counts as refused.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    time_limit: u64,
    /// Where the results go.
    #[arg(long, value_name = "OUT.jsonl")]
    out: PathBuf,
    /// Files of cases (.jsonl, .jsonl.gz), or grammars with their .cases.jsonl beside them.
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
}

/// What a worker needs to know.
#[derive(Args)]
struct EngineArgs {
    /// The engine to run.
    #[arg(long)]
    engine: EngineName,
    /// The tokenizer.json of a model.
    #[arg(long, value_name = "FILE")]
    tokenizer: PathBuf,
    /// The order of an object's keys, for cases that do not say it.
    #[arg(long, default_value = "declared")]
    property_order: PropertyOrder,
    /// Match each text once before it is measured: the times are those of what was seen before.
    #[arg(long)]
    warm: bool,
    /// Match the documents under a budget of so many tokens each.
    #[arg(long, value_name = "TOKENS")]
    within: Option<u64>,
    /// Documents to generate for each schema from random tokens of the mask.
    #[arg(long, value_name = "K", default_value_t = 0)]
    generate: usize,
    /// The budget of each of them, in tokens: `min`, `min+K`, `xF` (times the least) or a number;
    /// OUT then counts those that are over it.
    #[arg(long, value_name = "SPEC")]
    budget: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum EngineName {
    Constrain,
    Llguidance,
    #[cfg(feature = "xgrammar")]
    Xgrammar,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum PropertyOrder {
    Declared,
    Any,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Compare { a, b, json } => compare::compare(&a, &b, json),
        Command::Worker(args) => worker::serve(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
