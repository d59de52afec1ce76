//! Runs a worker over the cases and writes what it says.
use crate::case::{Case, read_cases};
use crate::engine::Budget;
use crate::record::Record;
use crate::{EngineArgs, EngineName, PropertyOrder, RunArgs};
use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, IsTerminal, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Time to load a tokenizer and to warm up.
const START_LIMIT: Duration = Duration::from_secs(300);

/// Runs one engine over the cases of all inputs.
pub fn run(args: &RunArgs) -> Result<()> {
    let mut lines = Vec::new();
    for input in &args.inputs {
        lines.extend(read_cases(input)?);
    }
    lines.truncate(args.limit.unwrap_or(usize::MAX));
    let out = &args.out;
    let file = File::create(out).with_context(|| format!("cannot write {}", out.display()))?;
    let mut writer = BufWriter::new(file);
    let mut progress = Progress::new(lines.len());
    let mut worker = Worker::start(&args.engine)?;
    for line in &lines {
        let case: Case = serde_json::from_str(line).with_context(|| {
            format!("not a case: {}", line.chars().take(80).collect::<String>())
        })?;
        progress.next(&case.id);
        let record = match worker.measure(line, Duration::from_secs(args.time_limit)) {
            Ok(record) => record,
            Err(failure) => {
                worker = Worker::start(&args.engine)?;
                let (id, expect) = (case.id, case.expect);
                Record { id, expect, compile_error: Some(failure), ..Record::default() }
            }
        };
        progress.count(&record);
        serde_json::to_writer(&mut writer, &record)?;
        writeln!(writer)?;
    }
    writer.flush().with_context(|| format!("cannot write {}", out.display()))?;
    progress.finish();
    Ok(())
}

/// A child process that measures.
struct Worker {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Worker {
    fn start(args: &EngineArgs) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("worker").args(["--engine", &name(args.engine)]);
        command.arg("--tokenizer").arg(&args.tokenizer);
        command.args(["--property-order", order(args.property_order)]);
        command.args(["--generate", &args.generate.to_string()]);
        if args.warm {
            command.arg("--warm");
        }
        if let Some(tokens) = args.within {
            command.args(["--within", &tokens.to_string()]);
        }
        if let Some(budget) = &args.budget {
            // A mistake is better reported once than by the worker.
            budget.parse::<Budget>().map_err(|reason| anyhow!("--budget: {reason}"))?;
            command.args(["--budget", budget]);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("the worker has no input")?;
        let output = child.stdout.take().context("the worker has no output")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.into_iter().try_for_each(|line| sender.send(line))
        });
        let worker = Self { child, input, lines };
        match worker.lines.recv_timeout(START_LIMIT) {
            Ok(line) if line == "ready" => Ok(worker),
            _ => bail!("the worker did not start"),
        }
    }

    /// The record of a case, or why there is none; then the worker is lost.
    fn measure(&mut self, case: &str, limit: Duration) -> Result<Record, String> {
        // A worker that has died shows at the answer.
        let _ = writeln!(self.input, "{case}").and_then(|()| self.input.flush());
        match self.lines.recv_timeout(limit) {
            Ok(line) => serde_json::from_str(&line).map_err(|error| error.to_string()),
            Err(RecvTimeoutError::Timeout) => Err(format!("no answer in {limit:?}")),
            Err(RecvTimeoutError::Disconnected) => Err("the engine crashed".to_owned()),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn name(engine: EngineName) -> String {
    engine.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn order(order: PropertyOrder) -> &'static str {
    match order {
        PropertyOrder::Declared => "declared",
        PropertyOrder::Any => "any",
    }
}

/// One line on standard error, rewritten on a terminal.
struct Progress {
    total: usize,
    done: usize,
    refused: usize,
    wrong: usize,
    invalid: usize,
    started: Instant,
    shown: Instant,
    terminal: bool,
}

impl Progress {
    fn new(total: usize) -> Self {
        let (started, terminal) = (Instant::now(), std::io::stderr().is_terminal());
        Self { total, done: 0, refused: 0, wrong: 0, invalid: 0, started, shown: started, terminal }
    }

    /// Shows the case that runs now: now and then only, since a terminal is slow.
    fn next(&mut self, id: &str) {
        let pause = Duration::from_millis(if self.terminal { 100 } else { 10_000 });
        if self.shown.elapsed() >= pause {
            self.shown = Instant::now();
            let line = format!("{} · {}", self.summary(), id.chars().take(40).collect::<String>());
            if self.terminal { eprint!("\r\x1b[K{line}") } else { eprintln!("{line}") }
        }
    }

    fn count(&mut self, record: &Record) {
        self.done += 1;
        self.refused += usize::from(record.compile_error.is_some());
        self.wrong += record.tests.iter().filter(|test| test.valid != test.accepted).count();
        let generated = record.generated.as_ref();
        self.invalid += generated.map_or(0, |generated| {
            generated.invalid + generated.dead_ends + generated.over_budget.unwrap_or(0)
        });
    }

    fn summary(&self) -> String {
        format!(
            "{}/{} · {} refused · {} tests wrong · {} generated wrong · {:.0} s",
            self.done,
            self.total,
            self.refused,
            self.wrong,
            self.invalid,
            self.started.elapsed().as_secs_f64()
        )
    }

    fn finish(&self) {
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        eprintln!("{clear}{}", self.summary());
    }
}
