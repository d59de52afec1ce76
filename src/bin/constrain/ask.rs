//! What `extract` and `eval` share: who is asked, for what, and how.

use crate::args::{FilterArgs, ModelArgs, SchemaArgs, SchemaInPrompt, Verbosity, positive};
use crate::compile::Form;
use crate::folder::Folder;
use crate::input;
use crate::model::{self, Change, Loaded};
use crate::report::{Failure, Source};
use crate::verify::{Complaint, Verifier};
use clap::Args;
use constrain::error::{Error, quote};
use constrain::extract::{self, Example, Extractor, is_reasoning};
use constrain::model::Model;
use constrain::sample::{Preset, Settings};
use constrain::schema;
use constrain::serve::{self, Client, ConstraintCache};
use constrain::spans;
use constrain::{Document, Vocabulary};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Bytes that the files of a cache may have.
const CACHE_BYTES: u64 = 256 << 20;

/// The flags of asking for the data of documents.
#[derive(Debug, Args)]
pub struct AskArgs {
    /// How the schema is read.
    #[command(flatten)]
    pub schema: SchemaArgs,
    /// Which model runs, and how.
    #[command(flatten)]
    pub model: ModelArgs,
    /// How tokens are drawn; the preset is extraction.
    #[command(flatten)]
    pub filters: FilterArgs,
    /// The most tokens of a value; it is complete within them [default: that of the preset]
    #[arg(long, value_name = "N", help_heading = "Sampling", value_parser = positive())]
    pub max_tokens: Option<usize>,
    /// Seed of the random draws
    #[arg(long, value_name = "N", default_value = "0", help_heading = "Sampling")]
    pub seed: u64,
    /// What the model is asked [default: Extract the data from this document.]
    #[arg(long, value_name = "TEXT", help_heading = "Input")]
    pub instruction: Option<String>,
    /// The system message
    #[arg(long, value_name = "TEXT", help_heading = "Input")]
    pub system: Option<String>,
    /// How the model is told what is wanted
    #[arg(long, value_name = "FORM", default_value = "compact", help_heading = "Input")]
    pub schema_in_prompt: SchemaInPrompt,
    /// Documents with their right values, shown to the model: lines of {"text": ..., "value": ...}
    #[arg(long, value_name = "FILE.jsonl", help_heading = "Input")]
    pub examples: Option<PathBuf>,
    /// Documents at a time: sequences of the model
    #[arg(long, value_name = "N", default_value = "8", help_heading = "Work")]
    #[arg(value_parser = positive())]
    pub parallel: usize,
    /// Cut documents into parts of at most N tokens [default: what the context has room for]
    #[arg(long, value_name = "N", help_heading = "Work", value_parser = positive())]
    pub chunk_tokens: Option<usize>,
    /// Tokens that two parts of a document share at most
    #[arg(long, value_name = "N", default_value = "200", help_heading = "Work")]
    pub overlap_tokens: usize,
    /// Keep compiled schemas in a folder, for the next time
    ///
    /// The folder is to be your own: whoever may write into it can decide what a schema means.
    #[arg(long, value_name = "FOLDER", help_heading = "Work")]
    pub cache: Option<PathBuf>,
    /// Ask again, alone, for each field less probable than P, and mark what stays below
    ///
    /// The other fields are kept as they are; the surer answer is taken.
    #[arg(long, value_name = "P", help_heading = "Escalation", value_parser = share)]
    pub escalate_below: Option<f64>,
    /// A bigger model, which is asked for what is below P even then
    #[arg(long, value_name = "FILE.gguf", help_heading = "Escalation")]
    #[arg(requires = "escalate_below")]
    pub escalate_model: Option<PathBuf>,
}

/// A share: above 0, up to 1.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "write a number above 0 and up to 1, such as 0.5".to_owned())
}

/// Who is asked again for fields of which the first answer was not sure.
pub struct Again<'m> {
    /// Fields less probable than this are weak.
    pub below: f64,
    /// The model of the first answer, with a sequence of its own.
    pub same: Box<dyn Model + 'm>,
    /// A bigger one, with its name.
    pub bigger: Option<(String, Box<dyn Model + 'm>)>,
}

impl AskArgs {
    /// The files that are read.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.schema.files().chain(self.examples.as_deref())
    }

    /// Loads the model and serves it, `parallel` sequences at a time, to what `work` does with its client, and
    /// with whoever is asked again.
    pub fn with_client<T: Send>(
        &self,
        verbosity: &Verbosity,
        work: impl FnOnce(Client, Option<Again<'_>>) -> Result<T, Failure> + Send,
    ) -> Result<T, Failure> {
        let loaded = model::load(&self.model, verbosity)?;
        let bigger = self.escalate_model.as_deref();
        let bigger =
            bigger.map(|path| model::load_second(path, &self.model, verbosity)).transpose()?;
        let mut model = loaded.model(Change { sequences: self.parallel, ..Change::default() })?;
        // Whoever works bounds what waits.
        let (client, scheduler) =
            serve::channel(serve::Options { queue: usize::MAX, ..serve::Options::default() });
        std::thread::scope(|scope| {
            // A model need not be `Send`: it is made where it is used.
            let worker = scope.spawn(|| work(client, self.again(&loaded, bigger.as_ref())?));
            let served = scheduler.run(&mut *model);
            let done = worker.join().unwrap_or_else(|_| Err(Failure::new("the work broke off")));
            served?;
            done
        })
    }

    fn again<'m>(
        &self,
        same: &'m Loaded,
        bigger: Option<&'m Loaded>,
    ) -> Result<Option<Again<'m>>, Failure> {
        let Some(below) = self.escalate_below else { return Ok(None) };
        let bigger = match (bigger, &self.escalate_model) {
            (Some(loaded), Some(path)) => {
                let name = path.to_string_lossy().into_owned();
                Some((name, loaded.model(Change::default())?))
            }
            _ => None,
        };
        Ok(Some(Again { below, same: same.model(Change::default())?, bigger }))
    }
}

/// What is asked for, checked as far as it can be without a model.
pub struct Ask {
    pub form: Form,
    verifier: Verifier,
    /// Whether values are pieces of their documents.
    is_grounded: bool,
    pub options: extract::Options,
    pub chunk_tokens: Option<usize>,
    pub overlap_tokens: usize,
    /// Below which probability fields are asked for again, and the bigger model that is asked.
    escalation: Option<(f64, Option<PathBuf>)>,
    /// A folder of compiled schemas.
    cache: Option<PathBuf>,
    /// The file of the examples.
    examples: Option<PathBuf>,
}

impl Ask {
    /// Reads what the flags name. With `figures` it is asked how sure the model is of each field.
    pub fn read(args: &AskArgs, figures: bool) -> Result<Self, Failure> {
        let form = Form::of_schema(&args.schema)?;
        if !form.is_schema() {
            return Err(Failure::new("data is extracted under a schema, not under a grammar")
                .help("name the schema with --schema FILE"));
        }
        let form = form.without_document();
        form.compile()?;
        let preset = args.filters.preset.unwrap_or(Preset::Extraction);
        let settings = Settings { seed: args.seed, ..args.filters.over(preset.settings()) };
        settings.check()?;
        let base = extract::Options::default();
        let options = extract::Options {
            // Which document it is, is known when there is one.
            schema: schema::Options { document: None, ..form.options.clone() },
            instruction: args.instruction.clone().unwrap_or(base.instruction),
            system: args.system.clone(),
            examples: args.examples.as_deref().map(examples).transpose()?.unwrap_or_default(),
            form: match args.schema_in_prompt {
                SchemaInPrompt::Compact => extract::Form::Outline,
                SchemaInPrompt::Json => extract::Form::Schema,
                SchemaInPrompt::Off => extract::Form::Off,
            },
            settings,
            max_tokens: args.max_tokens.unwrap_or(preset.max_tokens()),
            log_probs: base.log_probs.filter(|_| figures || args.escalate_below.is_some()),
            ..extract::Options::default()
        };
        let verifier = Verifier::new(&form.source, None)?;
        let schema: Value = serde_json::from_str(&form.source.text).unwrap_or_default();
        let is_grounded = spans::has_spans(&schema);
        let (chunk_tokens, overlap_tokens) = (args.chunk_tokens, args.overlap_tokens);
        let escalation = args.escalate_below.map(|below| (below, args.escalate_model.clone()));
        let cache = args.cache.clone();
        Ok(Self {
            form,
            verifier,
            is_grounded,
            options,
            chunk_tokens,
            overlap_tokens,
            escalation,
            cache,
            examples: args.examples.clone(),
        })
    }

    /// The first thing that is wrong with the value of a document, if any.
    pub fn complaint(&self, document: &str, value: &Value) -> Result<Option<Complaint>, Failure> {
        Ok(match self.is_grounded {
            false => self.verifier.complaint(value),
            true => Verifier::new(&self.form.source, Some(document))?.complaint(value),
        })
    }

    /// The first thing that is wrong with a value that people wrote, if any. They need not reason.
    pub fn label_complaint(
        &self,
        document: Option<&str>,
        value: &Value,
    ) -> Result<Option<Complaint>, Failure> {
        let own = document.filter(|_| self.is_grounded);
        let own = own.map(|text| Verifier::new(&self.form.source, Some(text))).transpose()?;
        let mut complaints = own.as_ref().unwrap_or(&self.verifier).complaints(value);
        Ok(complaints.find(|Complaint { message, schema, .. }| {
            let missing = message.split('"').nth(1).unwrap_or_default();
            !(schema.ends_with("/required") && is_reasoning(missing, &self.form.options))
        }))
    }

    /// The extractor over a model's vocabulary.
    pub fn extractor(&self, vocabulary: &Vocabulary) -> Result<Extractor, Failure> {
        let (text, options) = (&self.form.source.text, self.options.clone());
        let Some(folder) = &self.cache else {
            let made = Extractor::new(vocabulary, text, options);
            return made.map_err(|error| self.failure(&error));
        };
        let folder = Folder::open(folder, CACHE_BYTES)?;
        let cache = ConstraintCache::new(vocabulary, usize::MAX).with_store(folder);
        // Which document it is, the extractor knows; any could be.
        let document = Some(Document::unknown());
        let constraint =
            cache.schema(text, &schema::Options { document, ..self.options.schema.clone() });
        for warning in cache.take_warnings() {
            input::say(&format!("warning: {}", warning.message()));
        }
        let made =
            constraint.and_then(|constraint| Extractor::with_constraint(constraint, text, options));
        made.map_err(|error| self.failure(&error))
    }

    /// An error of the schema, or of the answer of an example, each with the text that it points at.
    fn failure(&self, error: &Error) -> Failure {
        let path = self.examples.as_deref().map_or("".into(), std::path::Path::to_string_lossy);
        match wrong_example(error, &self.options.examples, &path) {
            Some(answer) => Failure::in_source(error, &answer),
            None => self.form.failure(error),
        }
    }

    /// Everything that the value of a document depends on beside the document, as one text.
    pub fn fingerprint(&self, model: &str) -> String {
        let Self { form, options, chunk_tokens, overlap_tokens, escalation, .. } = self;
        let extract::Options { instruction, system, examples, form: told, .. } = options;
        let extract::Options { settings, max_tokens, schema, .. } = options;
        let text = &form.source.text;
        format!(
            "{text:?} {schema:?} {instruction:?} {system:?} {examples:?} {told:?} {settings:?} \
             {max_tokens} {chunk_tokens:?} {overlap_tokens} {model:?} \
             {escalation:?}"
        )
    }
}

/// What a model is called in fingerprints: as the flags name it.
pub fn model_name(args: &ModelArgs) -> String {
    let file = args.model.as_ref().map(|path| path.to_string_lossy().into_owned());
    let name = file.or_else(|| args.hf.clone()).or_else(|| std::env::var("CONSTRAIN_MODEL").ok());
    name.unwrap_or_else(|| "the default model".to_owned())
}

/// The answer that an error is about, if it is about that of an example. The library counts them from 1.
fn wrong_example(error: &Error, examples: &[Example], path: &str) -> Option<Source> {
    let rest = error.message().strip_prefix("the answer of example ")?;
    let number: usize = rest.split(':').next()?.parse().ok()?;
    let text = examples.get(number.checked_sub(1)?)?.answer.trim().to_owned();
    Some(Source { name: format!("example {number} of {path}"), text })
}

fn examples(path: &Path) -> Result<Vec<Example>, Failure> {
    let source = input::read(path)?;
    let lines = source.text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            let row: Value = serde_json::from_str(line).unwrap_or_default();
            match (row["text"].as_str(), row.get("value")) {
                (Some(text), Some(value)) => Ok(Example::new(text, value.to_string())),
                _ => {
                    let (name, line) = (quote(&source.name), at + 1);
                    Err(Failure::new(format!("{name}, line {line}: no example"))
                        .help("a line is {\"text\": \"the document\", \"value\": its value}"))
                }
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::byte_vocabulary;

    #[test]
    fn a_wrong_answer_of_an_example_is_shown_itself() {
        let schema =
            r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;
        let vocabulary = byte_vocabulary().expect("a vocabulary");
        let wrong = |answer: &str| {
            let examples = vec![Example::new("One.", r#"{"n":1}"#), Example::new("Two.", answer)];
            let options = extract::Options { examples: examples.clone(), ..Default::default() };
            let error = Extractor::new(&vocabulary, schema, options).expect_err("refused");
            let source = wrong_example(&error, &examples, "e.jsonl").expect("an example");
            match Failure::in_source(&error, &source) {
                Failure::Report(report) => report.to_string(),
                Failure::BrokenPipe => String::new(),
            }
        };
        let shown = wrong(r#"{"n":"x"}"#);
        assert!(shown.contains("example 2 of e.jsonl:1:6 (byte 5)"), "{shown}");
        assert!(shown.contains(r#" 1 | {"n":"x"}"#), "{shown}");
        // It ends too early, which has no place.
        let shown = wrong(r#"{"n":1"#);
        assert!(shown.contains("--> example 2 of e.jsonl\n"), "{shown}");
        let error = Extractor::new(&vocabulary, "{\"type\": 1}", extract::Options::default());
        assert!(wrong_example(&error.expect_err("refused"), &[], "e.jsonl").is_none());
    }
}
