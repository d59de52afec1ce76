//! The program `constrain`: reads flags and files, calls the library, prints one result.
//!
//! `main` is the whole control flow: parse, run one sub-command, turn the answer into an exit
//! status. 0 is done or accepted, 1 a clean no, 2 it could not be done. Only the public API of
//! the library is used here.

mod args;
mod input;
mod locate;
mod report;

use args::Cli;
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
    Err(Failure::new(format!("{:?}", cli.command.is_some())))
}
