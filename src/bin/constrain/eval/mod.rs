//! `constrain eval`: how right values are, field by field, and whether sureness tells.
//!
//! The documents of the labels are extracted and compared with their values; or what `extract` wrote before is,
//! which compares models and settings: one output for each.
//!
//! Scores are reported, not judged: the exit status is 0 whatever they are.

mod page;
mod report;
mod score;

use crate::args::Verbosity;
use crate::ask::{Ask, AskArgs, model_name};
use crate::extract::docs::Docs;
use crate::extract::work::{Answer, Worker};
use crate::extract::{STOP, WINDOW, heed_signals, progress};
use crate::input;
use crate::report::{Failure, Source};
use clap::Args;
use constrain::error::quote;
use report::Report;
use score::score;
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The flags of `eval`.
#[derive(Debug, Args)]
#[command(after_help = "\
A row of LABELS is {\"id\": ..., \"text\": \"the document\", \"value\": what is right}.

Examples:
  constrain eval --schema s.json --labels labels.jsonl --html report.html
  constrain extract --schema s.json --input labels.jsonl --output a.jsonl --details
  constrain extract --schema s.json --input labels.jsonl --output b.jsonl --details --model other.gguf
  constrain eval --schema s.json --labels labels.jsonl --outputs a.jsonl --outputs b.jsonl")]
pub struct EvalArgs {
    /// Who is asked, for what, and how.
    #[command(flatten)]
    pub ask: AskArgs,
    /// The documents with their right values: a JSON Lines file; `-` reads standard input
    #[arg(short, long, value_name = "LABELS.jsonl", help_heading = "Input")]
    pub labels: PathBuf,
    /// The name of a document's id in its row
    #[arg(long, value_name = "NAME", default_value = "id", help_heading = "Input")]
    pub id_field: String,
    /// The name of a document's text in its row
    #[arg(long, value_name = "NAME", default_value = "text", help_heading = "Input")]
    pub text_field: String,
    /// The name of the right value in a row
    #[arg(long, value_name = "NAME", default_value = "value", help_heading = "Input")]
    pub value_field: String,
    /// What `constrain extract` wrote, to be scored in place of asking a model; repeat it to compare
    #[arg(long, value_name = "OUT.jsonl", help_heading = "Input")]
    #[arg(conflicts_with_all = ["ModelArgs", "FilterArgs", "max_tokens", "seed", "instruction", "system"])]
    #[arg(conflicts_with_all = ["schema_in_prompt", "examples", "parallel", "chunk_tokens"])]
    #[arg(conflicts_with_all = ["overlap_tokens", "cache", "escalate_below", "escalate_model"])]
    pub outputs: Vec<PathBuf>,
    /// Compare texts without regard to case and white space
    #[arg(long, help_heading = "Output")]
    pub loose: bool,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Write a page with the tables, and the plot of sureness against correctness
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    pub html: Option<PathBuf>,
}

/// The right values, by the ids of their documents.
type Labels = HashMap<String, Value>;

/// Runs `constrain eval`.
pub fn run(args: &EvalArgs, verbosity: &Verbosity) -> Result<ExitCode, Failure> {
    if let Some(html) = &args.html {
        input::check_place_of(html)?;
        let read = args.ask.files().chain([&*args.labels]);
        input::keep_apart(html, read.chain(args.outputs.iter().map(PathBuf::as_path)))?;
    }
    let ask = Ask::read(&args.ask, true)?;
    let source = input::read(&args.labels)?;
    let labels = labels(args, &ask, &source)?;
    let reports = match &args.outputs[..] {
        [] => vec![asked(&ask, args, (source, &labels), verbosity)?],
        outputs => outputs
            .iter()
            .map(|path| written(path, args, &labels))
            .collect::<Result<Vec<Report>, Failure>>()?,
    };
    if let Some(path) = &args.html {
        page::write(&reports, path)?;
    }
    match args.json {
        true => {
            let reports: Vec<Value> = reports.iter().map(Report::json).collect();
            input::print(&format!("{:#}\n", Value::from(reports)))?;
        }
        false => input::print(&report::table(&reports))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Labels that are shown to be wrong; others are counted.
const WRONG_MAX: usize = 20;

/// The right values.
///
/// # Errors
/// A row is none; values that the schema does not allow, all of them: no model could reach them.
fn labels(args: &EvalArgs, ask: &Ask, source: &Source) -> Result<Labels, Failure> {
    let (mut labels, mut lines, mut invalid) = (Labels::new(), HashMap::new(), Vec::new());
    rows(source, &mut |line, mut row| {
        let wrong = |what: &str| {
            let name = quote(&source.name);
            Failure::new(format!("{name}, line {line}: {what}")).help(
                "a row is {\"id\": ..., \"text\": \"the document\", \"value\": what is right}",
            )
        };
        let id = row.get(&args.id_field).ok_or_else(|| wrong("there is no id"))?.to_string();
        let value = row.get_mut(&args.value_field).map(Value::take);
        let value = value.ok_or_else(|| wrong("there is no right value"))?;
        if let Some(before) = lines.insert(id.clone(), line) {
            return Err(wrong(&format!("its id is that of line {before}")));
        }
        let text = row.get(&args.text_field).and_then(Value::as_str);
        if let Some(complaint) = ask.label_complaint(text, &value)? {
            invalid.push(format!("\n  line {line}: {complaint}"));
        }
        labels.insert(id, value);
        Ok(())
    })?;
    if !invalid.is_empty() {
        let more = invalid.len().saturating_sub(WRONG_MAX);
        let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
        let (count, name) = (invalid.len(), quote(&source.name));
        let shown = invalid[..count.min(WRONG_MAX)].concat();
        return Err(Failure::new(format!(
            "{count} of the right values in {name} are not valid under the schema:{shown}{more}"
        ))
        .help("correct them, or name the schema that they are of"));
    }
    match labels.is_empty() {
        true => Err(Failure::new("there are no labels")),
        false => Ok(labels),
    }
}

/// Calls `f` with the rows of a file and their lines.
fn rows(
    source: &Source,
    f: &mut dyn FnMut(usize, Value) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for (at, line) in source.text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let row = input::json_line(line.as_bytes(), at as u64 + 1).map_err(|problem| {
            let name = quote(&source.name);
            Failure::new(format!("{name}, {problem}"))
        })?;
        f(at + 1, row)?;
    }
    Ok(())
}

/// Asks the model for the documents of the labels.
fn asked(
    ask: &Ask,
    args: &EvalArgs,
    (source, labels): (Source, &Labels),
    verbosity: &Verbosity,
) -> Result<Report, Failure> {
    let docs = Docs {
        input: args.labels.clone(),
        held: Some(source.text.into_bytes()),
        id_field: args.id_field.clone(),
        text_field: args.text_field.clone(),
        shard: (0, 1),
        fingerprint: String::new(),
        apart: Vec::new(),
    };
    heed_signals()?;
    let progress = progress(labels.len(), 0, verbosity.quiet);
    let mut report = Report::new(model_name(&args.ask.model));
    let is_done = args.ask.with_client(verbosity, |client, again| {
        let mut worker = Worker::new(ask, (client, again), &STOP)?;
        worker.all(&mut docs.open()?, args.ask.parallel * WINDOW, &mut |answer| {
            let Answer { doc, result } = answer;
            let label = labels.get(&doc.id.to_string()).unwrap_or(&Value::Null);
            let found = result.unwrap_or_else(|problem| {
                input::say(&format!("{}: {}", doc.id, problem.message));
                report.failed += 1;
                Default::default()
            });
            let value = serde_json::from_str(&found.text).unwrap_or_default();
            let sure = |pointer: &str| found.fields.get(pointer).and_then(|f| f.probability);
            report.add(score(label, &value, args.loose), sure);
            progress.inc(1);
            Ok(())
        })
    });
    progress.finish_and_clear();
    match is_done? {
        true => Ok(report),
        false => Err(Failure::new("interrupted")),
    }
}

/// Scores what was written before. What the labels do not know is left out; what is not there is missing.
fn written(path: &Path, args: &EvalArgs, labels: &Labels) -> Result<Report, Failure> {
    let mut report = Report::new(path.to_string_lossy());
    let mut left: HashMap<&String, &Value> = labels.iter().collect();
    let source = input::read(path)?;
    rows(&source, &mut |line, row| {
        if row.get("id").is_none() || (row.get("value").is_none() && row.get("error").is_none()) {
            let name = quote(&source.name);
            return Err(Failure::new(format!("{name}, line {line}: no row of an output"))
                .help("name what `constrain extract` has written"));
        }
        let Some(label) = left.remove(&row["id"].to_string()) else { return Ok(()) };
        report.failed += usize::from(row.get("value").is_none());
        let sure = |pointer: &str| row["fields"][pointer]["p"].as_f64();
        report.add(score(label, &row["value"], args.loose), sure);
        Ok(())
    })?;
    let mut absent: Vec<_> = left.into_iter().collect();
    absent.sort_by_key(|(id, _)| id.as_str());
    for (_, label) in absent {
        report.failed += 1;
        report.add(score(label, &Value::Null, args.loose), |_| None);
    }
    Ok(report)
}
