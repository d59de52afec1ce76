//! `constrain extract`: the values of many documents, one row each.
//!
//! ```text
//! DOCS.jsonl or FOLDER ─► docs ─► work (window, scheduler) ─► journal = OUT.jsonl ─► table (csv, parquet), review (html)
//! ```
//!
//! The output is the journal: whatever ends the program, the same command goes on where it was. Rows come in
//! the order of the input. A document that cannot be done gets an error row, and the others go on.

pub mod docs;
mod export;
mod ids;
mod journal;
#[cfg(feature = "parquet")]
mod parquet;
mod review;
mod route;
mod table;
pub mod work;

use crate::args::Verbosity;
use crate::ask::{Ask, AskArgs, model_name};
use crate::input;
use crate::report::Failure;
use clap::{Args, ValueEnum};
use constrain::error::quote;
use docs::{Doc, Docs};
use ids::Ids;
use indicatif::{ProgressBar, ProgressStyle};
use journal::Journal;
use route::Told;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use work::{Answer, Found, Worker};

/// Documents on their way for each one that runs: rows wait for those before them.
pub const WINDOW: usize = 4;

/// Set when the user wants to stop.
pub static STOP: AtomicBool = AtomicBool::new(false);

/// The flags of `extract`.
#[derive(Debug, Args)]
#[command(after_help = "\
A row of DOCS is {\"id\": ..., \"text\": \"...\"}; of a folder every file is a document. A row of OUT is
{\"id\": ..., \"key\": ..., \"value\": ...} or {\"id\": ..., \"key\": ..., \"error\": \"...\"}, in the order of the input.
After a crash or Ctrl-C, the same command goes on where it was.

Examples:
  constrain extract --schema schemas/invoice.json --input invoices/ --output invoices.jsonl
  constrain extract --schema s.json --input docs.jsonl --output out-2.jsonl --shard 2/8
  constrain extract --schema s.json --input docs.jsonl --output out.jsonl --html review.html
  constrain extract --schema s.json --input docs.jsonl --output out.jsonl --model small.gguf \\
      --escalate-below 0.5 --escalate-model big.gguf

Exit status: 0 all rows are values; 1 some are errors; 2 it could not be done, or was interrupted.")]
pub struct ExtractArgs {
    /// Who is asked, for what, and how.
    #[command(flatten)]
    pub ask: AskArgs,
    /// The documents: a JSON Lines file (`-` reads standard input), or a folder
    #[arg(short, long, value_name = "DOCS", help_heading = "Input")]
    pub input: PathBuf,
    /// The name of a document's id in its row
    #[arg(long, value_name = "NAME", default_value = "id", help_heading = "Input")]
    pub id_field: String,
    /// The name of a document's text in its row
    #[arg(long, value_name = "NAME", default_value = "text", help_heading = "Input")]
    pub text_field: String,
    /// The output, to which rows are added
    #[arg(short, long, value_name = "OUT", help_heading = "Output")]
    pub output: PathBuf,
    /// The format of the output
    ///
    /// With csv and parquet, the rows are kept in OUT.jsonl too, and OUT is made from them at the end.
    #[arg(long, value_name = "FORMAT", default_value = "jsonl", help_heading = "Output")]
    pub format: Format,
    /// Write a page that shows each document with its values, the least sure first
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Add to each row how sure the model is of its fields, and where they stand in the document
    #[arg(long, help_heading = "Output")]
    pub details: bool,
    /// Do only part I of N of the documents, I from 1: for N processes with an output each
    #[arg(long, value_name = "I/N", default_value = "1/1", help_heading = "Work")]
    #[arg(value_parser = shard)]
    pub shard: (u64, u64),
    /// Try the documents again whose rows are errors
    #[arg(long, help_heading = "Work")]
    pub retry_errors: bool,
}

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A JSON object per line
    Jsonl,
    /// A table with a column per field
    Csv,
    /// The same with types (needs a build with the feature parquet)
    Parquet,
}

impl Format {
    /// Whether this build can write it.
    fn check(self) -> Result<(), Failure> {
        match self {
            Self::Parquet if cfg!(not(feature = "parquet")) => {
                Err(Failure::new("this build of constrain cannot write Parquet files").help(
                    "build it with the feature parquet (`cargo install --path . --features parquet`), or \
                     write csv",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Where the rows are kept while there are some to do.
    fn journal(self, output: &Path) -> PathBuf {
        match self {
            Self::Jsonl => output.to_path_buf(),
            Self::Csv | Self::Parquet => beside(output, ".jsonl"),
        }
    }

    /// Makes the output from the rows.
    fn export(self, journal: &Journal, output: &Path) -> Result<(), Failure> {
        match self {
            Self::Jsonl => Ok(()),
            Self::Csv => export::csv(journal, output),
            #[cfg(feature = "parquet")]
            Self::Parquet => parquet::write(journal, output),
            #[cfg(not(feature = "parquet"))]
            Self::Parquet => self.check(),
        }
    }
}

/// `I/N` as what remains and the divisor.
fn shard(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once('/');
    let numbers = parts.and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match numbers {
        Some((i, n)) if (1..=n).contains(&i) => Ok((i - 1, n)),
        _ => Err("write I/N with I from 1 to N, such as 2/8".to_owned()),
    }
}

/// From now on Ctrl-C sets [`STOP`]. A second one ends the program at once, which loses nothing that was written.
pub fn heed_signals() -> Result<(), Failure> {
    let handler = || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(2);
        }
    };
    ctrlc::set_handler(handler)
        .map_err(|error| Failure::new(format!("signals cannot be handled: {error}")))
}

/// What was done.
#[derive(Debug, Default)]
struct Tally {
    tokens: usize,
    again: AskedAgain,
    bugs: usize,
    is_stopped: bool,
    /// The id of its document, and what it says.
    first_error: Option<String>,
}

/// Fields that were asked for again.
#[derive(Debug, Default)]
struct AskedAgain {
    fields: usize,
    replaced: usize,
    doubtful: usize,
}

impl AskedAgain {
    fn add(&mut self, found: &Found) {
        for told in found.fields.values().filter_map(|known| known.told.as_ref()) {
            self.fields += 1;
            self.replaced += usize::from(told.by.is_some());
            self.doubtful += usize::from(told.doubtful);
        }
    }
}

impl ExtractArgs {
    /// The files that are written, the page last.
    fn written(&self) -> Vec<PathBuf> {
        let journal = self.format.journal(&self.output);
        let copy = journal::copy(&journal);
        [self.output.clone(), journal, copy].into_iter().chain(self.html.clone()).collect()
    }

    /// Refuses to overwrite what is read, what is written as well, and a table of somebody else.
    fn keep_apart(&self) -> Result<(), Failure> {
        let (journal, written) = (self.format.journal(&self.output), self.written());
        for output in &written {
            let read = self.ask.files().chain([&*self.input]);
            input::keep_apart(output, read)?;
        }
        if let Some((html, others)) = written.split_last().filter(|_| self.html.is_some()) {
            input::keep_apart(html, others.iter().map(PathBuf::as_path))?;
        }
        if journal != self.output && self.output.exists() && !journal.exists() {
            return Err(journal::stranger(&self.output));
        }
        Ok(())
    }

    /// The keys of all documents. Tells what is hardly what the user wanted.
    fn keys(&self, docs: &Docs, verbosity: &Verbosity) -> Result<HashSet<String>, Failure> {
        let (mut keys, mut are_bad) = (HashSet::new(), true);
        let mut ids = Ids::default();
        for doc in docs.open()? {
            let doc = doc?;
            ids.see(&doc);
            are_bad &= doc.text.is_err();
            keys.insert(doc.key);
        }
        if let Some(warning) = ids.warning().filter(|_| !verbosity.quiet) {
            input::say(&format!("warning: {warning}"));
        }
        let name = quote(&input::name(&self.input));
        let warning = match (keys.is_empty(), are_bad) {
            (true, _) if self.shard.1 == 1 => format!("there are no documents in {name}"),
            (false, true) if !docs.is_folder() => format!(
                "no line of {name} is a row {{\"id\": ..., \"text\": \"...\"}}; for files that are documents themselves, \
                 name their folder"
            ),
            _ => return Ok(keys),
        };
        if !verbosity.quiet {
            input::say(&format!("warning: {warning}"));
        }
        Ok(keys)
    }
}

/// Runs `constrain extract`.
pub fn run(args: &ExtractArgs, verbosity: &Verbosity) -> Result<ExitCode, Failure> {
    args.format.check()?;
    for path in args.html.iter().chain([&args.output]) {
        input::check_place_of(path)?;
    }
    args.keep_apart()?;
    let wants_figures = args.details || args.html.is_some();
    let ask = Ask::read(&args.ask, wants_figures)?;
    let docs = Docs {
        input: args.input.clone(),
        held: input::is_stdin(&args.input).then(|| input::read_bytes(&args.input)).transpose()?,
        id_field: args.id_field.clone(),
        text_field: args.text_field.clone(),
        shard: args.shard,
        fingerprint: ask.fingerprint(&model_name(&args.ask.model)),
        apart: args.written(),
    };
    let keys = args.keys(&docs, verbosity)?;
    let path = args.format.journal(&args.output);
    let mut journal = Journal::open(&path)?;
    journal.check(&|key| keys.contains(key))?;
    if args.retry_errors && journal.counts().1 > 0 {
        journal = journal.drop_errors()?;
    }
    let before = journal.counts().0 + journal.counts().1;
    let clock = Instant::now();
    let mut tally = Tally::default();
    if before < keys.len() {
        let batch = Batch { ask: &ask, docs: &docs, total: keys.len(), before, wants_figures };
        tally = batch.run(args, verbosity, &mut journal)?;
    }
    let (values, errors) = journal.counts();
    if !verbosity.quiet {
        let (seconds, tokens) = (clock.elapsed().as_secs_f64(), tally.tokens);
        let new = values + errors - before;
        let counts = [(values, "value"), (errors, "error"), (new, "row"), (tokens, "token")];
        let [values, errors, new, tokens_now] = counts.map(|(count, what)| counted(count, what));
        input::say(&format!(
            "{values} and {errors}; {new} now in {seconds:.1} s, {tokens_now} at {:.1} per second",
            tokens as f64 / seconds.max(1e-9)
        ));
        if let Some(first) = &tally.first_error {
            input::say(&format!("the first error now: {first}"));
        }
    }
    let AskedAgain { fields, replaced, doubtful } = tally.again;
    if fields > 0 && !verbosity.quiet {
        input::say(&format!(
            "asked again for {}; {replaced} got a surer answer, {doubtful} stay doubtful",
            counted(fields, "field")
        ));
    }
    if tally.is_stopped {
        let message = format!("interrupted after {} of {} rows", values + errors, keys.len());
        return Err(Failure::new(message).help("the same command goes on where it was"));
    }
    args.format.export(&journal, &args.output)?;
    if let Some(html) = &args.html {
        review::write(&docs, &journal, html)?;
    }
    match (tally.bugs, errors) {
        (0, 0) => Ok(ExitCode::SUCCESS),
        (0, _) => Ok(ExitCode::from(1)),
        (bugs, _) => Err(Failure::new(format!("{bugs} values failed their last check"))
            .help("this is a bug in constrain: please report it with the schema and the rows")),
    }
}

/// `1 row`, `2 rows`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.to_path_buf().into_os_string();
    name.push(suffix);
    name.into()
}

/// What is left of a batch.
struct Batch<'a> {
    ask: &'a Ask,
    docs: &'a Docs,
    total: usize,
    before: usize,
    wants_figures: bool,
}

impl Batch<'_> {
    /// Does the documents that have no row yet.
    fn run(
        &self,
        args: &ExtractArgs,
        verbosity: &Verbosity,
        journal: &mut Journal,
    ) -> Result<Tally, Failure> {
        heed_signals()?;
        let progress = progress(self.total, self.before, verbosity.quiet);
        let tally = args.ask.with_client(verbosity, |client, again| {
            let mut worker = Worker::new(self.ask, (client, again), &STOP)?;
            self.drive(&mut worker, args.ask.parallel, journal, &progress)
        });
        progress.finish_and_clear();
        tally
    }

    fn drive(
        &self,
        worker: &mut Worker<'_>,
        parallel: usize,
        journal: &mut Journal,
        progress: &ProgressBar,
    ) -> Result<Tally, Failure> {
        let mut tally = Tally::default();
        let done = journal.keys();
        let docs = self.docs.open()?;
        let mut left = docs.filter(|doc| doc.as_ref().map_or(true, |d| !done.contains(&d.key)));
        let is_done = worker.all(&mut left, parallel * WINDOW, &mut |answer| {
            if let Ok(found) = &answer.result {
                tally.tokens += found.tokens;
                tally.again.add(found);
            }
            if let Err(problem) = &answer.result {
                let error = || format!("{}: {}", answer.doc.id, problem.message);
                tally.first_error.get_or_insert_with(error);
            }
            let is_bug = answer.result.as_ref().is_err_and(|problem| problem.is_bug);
            tally.bugs += usize::from(is_bug);
            let row = row(&answer, self.wants_figures);
            journal.add(&answer.doc.key, answer.result.is_ok(), row)?;
            progress.inc(1);
            Ok(())
        })?;
        Ok(Tally { is_stopped: !is_done, ..tally })
    }
}

pub fn progress(total: usize, before: usize, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let progress = ProgressBar::new(total as u64).with_position(before as u64);
    let style = "{wide_bar} {pos} of {len}, {per_sec}, {eta} left";
    progress.set_style(
        ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    progress.reset_eta();
    progress
}

/// The row of a document.
fn row(answer: &Answer, with_figures: bool) -> String {
    let Answer { doc: Doc { id, key, .. }, result } = answer;
    let head = format!("{{\"id\":{id},\"key\":\"{key}\"");
    match result {
        Err(problem) => format!("{head},\"error\":{}}}", Value::from(problem.message.as_str())),
        Ok(found) => {
            let figures = figures(found, with_figures);
            let figures = match figures.is_empty() && !with_figures {
                true => String::new(),
                false => format!(",\"fields\":{}", Value::from(figures)),
            };
            let parts = match found.parts {
                1 => String::new(),
                parts => format!(",\"parts\":{parts}"),
            };
            format!("{head},\"value\":{}{figures}{parts}}}", found.text)
        }
    }
}

/// What is known of each field: `p` how sure, `kept` how much of the model's law the mask left, `at` where, and
/// who gave it if it was asked for again; of those alone, unless `all` are wanted.
fn figures(found: &Found, all: bool) -> Map<String, Value> {
    let rounded = |p: f64| json!((p * 1e4).round() / 1e4);
    let shown = found.fields.iter().filter(|(_, known)| all || known.told.is_some());
    let fields = shown.map(|(pointer, known)| {
        let mut field = Map::new();
        field.extend(known.probability.map(|p| ("p".to_owned(), rounded(p))));
        field.extend(known.kept.map(|kept| ("kept".to_owned(), rounded(kept))));
        if !known.spans.is_empty() {
            field.insert("at".to_owned(), json!(known.spans));
        }
        if let Some(Told { by, earlier, doubtful }) = &known.told {
            field.extend(by.as_ref().map(|by| ("by".to_owned(), json!(by))));
            let earlier: Vec<Value> = earlier
                .iter()
                .map(|(by, value, p)| json!({"by": by, "value": value, "p": rounded(*p)}))
                .collect();
            field.extend((!earlier.is_empty()).then(|| ("earlier".to_owned(), json!(earlier))));
            field.extend(doubtful.then(|| ("doubtful".to_owned(), json!(true))));
        }
        (pointer.clone(), Value::Object(field))
    });
    fields.collect()
}
