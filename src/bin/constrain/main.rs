//! The program `constrain`: reads flags and files, calls the library, prints one result.
//!
//! `main` is the whole control flow: parse, run one sub-command, turn the answer into an exit
//! status. 0 is done or accepted, 1 a clean no, 2 it could not be done. Only the public API of
//! the library is used here.

mod args;
mod ask;
mod check;
mod compile;
mod eval;
mod expected;
mod extract;
mod fields;
mod folder;
mod generate;
mod html;
mod idle;
mod input;
mod inspect;
mod lab;
mod locate;
mod logprobs;
mod mask;
mod model;
mod prompt;
mod pull;
mod raised;
mod reasoning;
mod receipt;
mod report;
mod saved;
mod spans;
mod strategy;
mod trace;
mod verify;

use args::{Cli, Command};
use clap::Parser;
use report::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(code) => code,
        Err(Failure::BrokenPipe) => ExitCode::SUCCESS,
        Err(Failure::Report(report)) => {
            input::say(report.to_string().trim_end());
            ExitCode::from(2)
        }
    }
}

fn run(cli: &Cli) -> Result<ExitCode, Failure> {
    if cli.command.is_some() && cli.generate.schema.is_given() {
        return Err(Failure::new("the constraint stands before the sub-command").help(
            "write it behind, as in `constrain check --schema FILE`; \
             a prompt that is named like a sub-command comes after `--`",
        ));
    }
    match &cli.command {
        None => generate::run(&cli.generate, &cli.verbosity),
        Some(Command::Check(args)) => check::run(args),
        Some(Command::Mask(args)) => mask::run(args),
        Some(Command::Compile(args)) => saved::run(args, &cli.verbosity),
        Some(Command::Inspect(args)) => inspect::run(args),
        Some(Command::Eval(args)) => eval::run(args, &cli.verbosity),
        Some(Command::Extract(args)) => extract::run(args, &cli.verbosity),
        Some(Command::Lab(args)) => lab::run(args, &cli.verbosity),
        Some(Command::Pull(args)) => pull::run(args, cli.verbosity.quiet),
    }
}
