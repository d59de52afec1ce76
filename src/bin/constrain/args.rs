//! What was typed: every flag, with the help that is printed for it, and nothing else.
//!
//! The first line of a flag's comment is its `-h` text; the whole comment is its `--help` text.
//! Parsing never touches the system: files are opened by the sub-commands.

use crate::eval::EvalArgs;
use crate::extract::ExtractArgs;
use crate::lab::LabArgs;
use crate::raised;
use crate::strategy::StrategyArgs;
use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use constrain::sample::{Penalties, Preset, Settings};
use constrain::syntax::Syntax;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  Fill in a schema from a sentence, with the default model (fetched once, 98 MB):
    constrain --schema schemas/support_ticket.json \"I was charged twice for order KX-204419.\"

  Extract from a document on standard input, with a model of your own:
    pdftotext invoice.pdf - | constrain --schema schemas/invoice.json --model qwen.gguf \\
        --prompt-file ask.txt --input -

  The same answer every time, with statistics and the receipt of what was enforced:
    constrain --schema schemas/receipt.json --whitespace compact --preset extraction --json \\
        \"2 rolls, 1.10 each\"

  Can this schema be enforced? Does this document match it? Which tokens may come next?
    constrain check --schema schema.json
    constrain check --schema schema.json document.json
    constrain mask --schema schema.json --tokenizer tokenizer.json --after '{\"name\": \"'

Exit status: 0 done or accepted; 1 a clean no (check: the text does not match);
2 it could not be done (usage, schema, model, limits). Standard output carries the result alone.";

/// Make a local language model emit JSON that is guaranteed to satisfy a schema
///
/// At every step, the tokens that cannot lead to a valid document are removed before sampling.
/// The finished document is parsed and validated once more, by other code, before it is printed.
#[derive(Debug, Parser)]
#[command(name = "constrain", version, max_term_width = 100, after_help = EXAMPLES)]
#[command(arg_required_else_help = true)]
pub struct Cli {
    /// The sub-command; without one, a document is generated.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// The flags of generating.
    #[command(flatten)]
    pub generate: GenerateArgs,

    /// How much is said.
    #[command(flatten)]
    pub verbosity: Verbosity,
}

/// The sub-commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Tell whether a schema can be enforced, or whether a text matches it
    Check(CheckArgs),
    /// List the tokens that may come next after a text
    Mask(MaskArgs),
    /// Compile a schema or a grammar to a file, for --constraint
    Compile(CompileArgs),
    /// Show what a schema compiles to
    Inspect(InspectArgs),
    /// Extract the data of many documents, a row each; an interrupted batch goes on where it was
    Extract(Box<ExtractArgs>),
    /// Compare values with the right ones, field by field
    Eval(Box<EvalArgs>),
    /// Show what each sampling stage takes away, and where two runs part
    Lab(Box<LabArgs>),
    /// Fetch the default model, or one from the Hugging Face Hub, and print its path
    Pull(PullArgs),
}

/// How much is said on standard error.
#[derive(Debug, Args)]
pub struct Verbosity {
    /// Say nothing but errors
    #[arg(short, long, global = true, help_heading = "Messages", conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more: the model, the timing, what was enforced
    #[arg(short, long, global = true, help_heading = "Messages")]
    pub verbose: bool,
}

/// The document of schemas with spans: shared by the sub-commands that read no prompt.
#[derive(Debug, Args)]
pub struct DocumentArgs {
    /// The document of which values with `"x-constrain": {"span": true}` are pieces; `-` reads standard input
    #[arg(short, long, value_name = "FILE", help_heading = "Input")]
    pub input: Option<PathBuf>,
}

/// A schema, and how it is read: shared by all sub-commands that compile one.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// The JSON Schema to satisfy; `-` reads standard input, here as for all texts
    ///
    /// Drafts 4, 6, 7, 2019-09 and 2020-12, by `$schema` (2020-12 without one). A keyword that
    /// cannot be enforced exactly is refused, with its place; none is ever ignored.
    #[arg(short, long, value_name = "FILE", help_heading = "Constraint")]
    pub schema: Option<PathBuf>,
    /// A constraint that was compiled before, in place of a schema: see `constrain compile`
    ///
    /// With the flags that it was compiled with.
    #[arg(long, value_name = "FILE", help_heading = "Constraint")]
    #[arg(conflicts_with_all = ["schema", "property_order", "whitespace"])]
    #[arg(conflicts_with_all = ["reasoning_field", "add_reasoning", "reasoning_tokens"])]
    pub constraint: Option<PathBuf>,
    /// The order of an object's keys [default: declared]
    #[arg(long, value_name = "ORDER", help_heading = "Constraint")]
    pub property_order: Option<PropertyOrder>,
    /// The white space between the tokens of JSON [default: flexible]
    #[arg(long, value_name = "STYLE", help_heading = "Constraint")]
    pub whitespace: Option<Whitespace>,
    /// The property in which the model reasons: it comes first in its object
    ///
    /// Without this flag, a declared property named reasoning, rationale, thinking, explanation,
    /// analysis or scratchpad comes first: a model that must answer before it may think answers
    /// worse.
    #[arg(long, value_name = "NAME", help_heading = "Constraint")]
    pub reasoning_field: Option<String>,
    /// Add a reasoning property to the root object
    ///
    /// It is named "reasoning", or as --reasoning-field says.
    #[arg(long, help_heading = "Constraint")]
    pub add_reasoning: bool,
    /// Most tokens of a reasoning property
    ///
    /// The answer then always comes within the rest of --max-tokens. Other properties get a budget of
    /// their own by "x-constrain": {"max_tokens": N} in the schema.
    #[arg(long, value_name = "N", help_heading = "Constraint")]
    pub reasoning_tokens: Option<u32>,
    /// Set a limit on what is compiled: what would cost more is refused
    #[arg(long, value_name = "NAME=N", value_delimiter = ',', help_heading = "Constraint")]
    #[arg(value_parser = raised::limit, long_help = raised::help())]
    pub limits: Vec<raised::Limit>,
}

/// What the output is constrained by, and how it is read: shared by the sub-commands that take any constraint.
#[derive(Debug, Args)]
pub struct FormArgs {
    /// A schema.
    #[command(flatten)]
    pub schema: SchemaArgs,
    /// Other constraints than schemas.
    #[command(flatten)]
    pub text: TextArgs,
}

impl SchemaArgs {
    /// The files that are read.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.schema, &self.constraint].into_iter().flatten().map(PathBuf::as_path)
    }
}

impl FormArgs {
    /// The files that are read.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.schema.files().chain(self.text.grammar.as_deref())
    }

    /// Whether there is any constraint.
    pub fn is_given(&self) -> bool {
        let TextArgs { grammar, regex, choice, .. } = &self.text;
        let is_text = grammar.is_some() || regex.is_some() || !choice.is_empty();
        is_text || self.schema.files().next().is_some()
    }
}

/// What else than a schema the output can be constrained by: one of these.
#[derive(Debug, Args)]
pub struct TextArgs {
    /// The grammar to follow: GBNF, EBNF, Lark, a regular expression or a list of choices
    ///
    /// The syntax is that of the file's ending (.gbnf, .ebnf, .w3c, .lark, .regex, .choice), or as
    /// --syntax says.
    #[arg(short, long, value_name = "FILE", help_heading = "Constraint")]
    #[arg(conflicts_with_all = ["schema", "constraint", "regex", "choice"])]
    pub grammar: Option<PathBuf>,
    /// The syntax of the grammar: gbnf, ebnf, w3c, lark, regex or choice
    #[arg(long, value_name = "NAME", help_heading = "Constraint", requires = "grammar")]
    #[arg(conflicts_with_all = ["schema", "regex", "choice", "constraint"])]
    pub syntax: Option<Syntax>,
    /// The regular expression that the whole output matches
    #[arg(long, value_name = "REGEX", help_heading = "Constraint")]
    #[arg(conflicts_with_all = ["schema", "constraint", "choice"])]
    pub regex: Option<String>,
    /// A text that the output may be; repeat it for each
    #[arg(long, value_name = "TEXT", help_heading = "Constraint")]
    #[arg(conflicts_with_all = ["schema", "constraint"])]
    pub choice: Vec<String>,
}

/// The flags of generating.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// What the model is asked; `-` reads standard input
    #[arg(value_name = "PROMPT", help_heading = "Input")]
    pub prompt: Option<String>,
    /// Read the prompt from a file; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "prompt", help_heading = "Input")]
    pub prompt_file: Option<PathBuf>,
    /// A document to append to the prompt; `-` reads standard input
    ///
    /// Strings of the schema with `"x-constrain": {"span": true}` are pieces of it (of the prompt if
    /// there is no document).
    #[arg(short, long, value_name = "FILE", help_heading = "Input")]
    pub input: Option<PathBuf>,
    /// The system message
    #[arg(long, value_name = "TEXT", help_heading = "Input")]
    pub system: Option<String>,
    /// How the model is told what is wanted
    ///
    /// The output is valid either way; a model that was told gives better values.
    #[arg(long, value_name = "FORM", default_value = "compact", help_heading = "Input")]
    pub schema_in_prompt: SchemaInPrompt,
    /// Print the prompt as the model gets it, and stop
    #[arg(long, help_heading = "Input")]
    pub show_prompt: bool,

    /// How the schema is read.
    #[command(flatten)]
    pub schema: FormArgs,

    /// Which model runs, and how.
    #[command(flatten)]
    pub model: ModelArgs,

    /// How tokens are drawn.
    #[command(flatten)]
    pub sampling: SamplingArgs,

    /// The algorithm around that.
    #[command(flatten)]
    pub strategy: StrategyArgs,

    /// Print one JSON object: the result, statistics, and the receipt of what was enforced
    #[arg(long, help_heading = "Output", conflicts_with = "stream")]
    pub json: bool,
    /// Print the log-probabilities of the tokens, with N alternatives each (with --json)
    #[arg(long, value_name = "N", help_heading = "Output", requires = "json")]
    #[arg(value_parser = RangedU64ValueParser::<usize>::new().range(0..=20))]
    pub logprobs: Option<usize>,
    /// Write one line of JSON per token: what was allowed, what was likely, what was chosen, and how long it took
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub trace: Option<PathBuf>,
    /// Print the text while it is generated, before the final check of the whole
    #[arg(long, help_heading = "Output")]
    pub stream: bool,
    /// Remove the reasoning property from the result
    #[arg(long, help_heading = "Output", conflicts_with = "stream")]
    pub strip_reasoning: bool,
}

/// Which model runs, and how.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// A GGUF model file
    ///
    /// Without --model and --hf, the variable CONSTRAIN_MODEL names the file; without that, it is
    /// SmolLM2-135M-Instruct, fetched once into the cache folder. `scripted:SEED` is a model without
    /// weights that says random things, always the same: for trying out the rest of the program.
    #[arg(short, long, value_name = "FILE.gguf", conflicts_with = "hf", help_heading = "Model")]
    pub model: Option<PathBuf>,
    /// A model of the Hugging Face Hub, fetched once
    ///
    /// Without a file, the repository must hold exactly one .gguf file.
    #[arg(long, value_name = "OWNER/REPO[:FILE]", help_heading = "Model")]
    pub hf: Option<String>,
    /// CPU threads [default: one per physical core]
    #[arg(long, value_name = "N", help_heading = "Model", value_parser = positive())]
    pub threads: Option<usize>,
    /// Layers to run on the GPU [default: all, when built for one]
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub gpu_layers: Option<u32>,
    /// Tokens of context [default: 4096, or what the model was trained for if less]
    #[arg(long, value_name = "TOKENS", help_heading = "Model", value_parser = positive())]
    pub ctx_size: Option<usize>,
    /// Flash attention
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Model")]
    pub flash_attn: FlashAttention,
}

/// How the law of the next token is shaped. What is not given comes from the preset.
#[derive(Debug, Args)]
pub struct FilterArgs {
    /// Start from the settings for a task; other flags override them
    ///
    /// extraction, classification, code, chat (the default), brainstorm or judge.
    #[arg(long, value_name = "TASK", help_heading = "Sampling")]
    pub preset: Option<Preset>,
    /// 0 takes the likeliest allowed token; higher is more varied
    #[arg(
        long,
        alias = "temp",
        value_name = "T",
        allow_negative_numbers = true,
        help_heading = "Sampling"
    )]
    pub temperature: Option<f64>,
    /// Keep the K likeliest tokens; 0 keeps all
    #[arg(long, value_name = "K", allow_negative_numbers = true, help_heading = "Sampling")]
    pub top_k: Option<usize>,
    /// Keep the likeliest tokens up to and including the one that crosses probability P
    #[arg(long, value_name = "P", allow_negative_numbers = true, help_heading = "Sampling")]
    pub top_p: Option<f64>,
    /// Keep the tokens at least P times as likely as the likeliest
    #[arg(long, value_name = "P", allow_negative_numbers = true, help_heading = "Sampling")]
    pub min_p: Option<f64>,
    /// Subtract X per earlier use of a token from its logit
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Sampling")]
    pub frequency_penalty: Option<f64>,
    /// Subtract X from the logit of a token that was used
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Sampling")]
    pub presence_penalty: Option<f64>,
    /// Divide the logit of a token that was used by X; 1 is off
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Sampling")]
    pub repetition_penalty: Option<f64>,
}

impl FilterArgs {
    /// `base` with what the flags change.
    pub fn over(&self, base: Settings) -> Settings {
        Settings {
            temperature: self.temperature.unwrap_or(base.temperature),
            top_k: self.top_k.unwrap_or(base.top_k),
            top_p: self.top_p.unwrap_or(base.top_p),
            min_p: self.min_p.unwrap_or(base.min_p),
            penalties: Penalties {
                frequency: self.frequency_penalty.unwrap_or(base.penalties.frequency),
                presence: self.presence_penalty.unwrap_or(base.penalties.presence),
                repetition: self.repetition_penalty.unwrap_or(base.penalties.repetition),
                ..base.penalties
            },
            ..base
        }
    }
}

/// How tokens are drawn, and when an answer ends.
#[derive(Debug, Args)]
pub struct SamplingArgs {
    /// The law of the next token.
    #[command(flatten)]
    pub filters: FilterArgs,
    /// The most tokens to generate; the document is complete within them
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Sampling")]
    #[arg(value_parser = positive())]
    pub max_tokens: Option<usize>,
    /// From this share of --max-tokens on (0 to 1), prefer tokens that bring the end nearer
    ///
    /// So a list is closed in time, before the constraint has to cut it short. 0.7 is a good start.
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, help_heading = "Sampling")]
    pub soft_landing: Option<f64>,
    /// End where TEXT occurs after a whole document; TEXT is no part of it
    #[arg(long, value_name = "TEXT", help_heading = "Sampling", value_parser = stop_text)]
    pub stop: Vec<String>,
    /// What becomes of a --stop TEXT inside a document, which it would cut
    #[arg(long, value_name = "HOW", default_value = "ignore", help_heading = "Sampling")]
    #[arg(requires = "stop")]
    pub stop_inside: StopInside,
    /// Seed of the random draws; drawn, and printed to standard error, when not given
    #[arg(long, value_name = "N", help_heading = "Sampling")]
    pub seed: Option<u64>,
    /// How many answers; the k-th is the same whatever the number
    #[arg(long, short = 'n', value_name = "N", default_value = "1", help_heading = "Sampling")]
    #[arg(value_parser = positive())]
    pub answers: usize,
}

/// The flags of `check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  constrain check --schema schema.json                 keyword by keyword: enforced, annotation, refused
  constrain check --schema schema.json document.json   exit status 0 if it matches, 1 if it does not
  constrain check --schema schema.json --tokenizer tokenizer.json    are its budgets large enough?
  echo '{\"a\": 1}' | constrain check --schema schema.json -")]
pub struct CheckArgs {
    /// The text to match; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// What values are pieces of.
    #[command(flatten)]
    pub document: DocumentArgs,
    /// How the schema is read.
    #[command(flatten)]
    pub schema: FormArgs,
    /// A vocabulary, over which budgets of parts are checked too: tokenizer.json, or a tiktoken rank file
    #[arg(short, long, value_name = "FILE", help_heading = "Constraint")]
    pub tokenizer: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// The flags of `mask`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  constrain mask --schema schema.json --tokenizer tokenizer.json --after '{\"level\": \"'
  constrain mask --schema schema.json --tokenizer tokenizer.json --after '' --limit 20 --json")]
pub struct MaskArgs {
    /// How the schema is read.
    #[command(flatten)]
    pub schema: FormArgs,
    /// The vocabulary: a Hugging Face tokenizer.json, a tiktoken rank file or a GGUF model
    ///
    /// A GGUF model needs a build with the feature llama.
    #[arg(short, long, value_name = "FILE", help_heading = "Constraint")]
    pub tokenizer: PathBuf,
    /// What values are pieces of.
    #[command(flatten)]
    pub document: DocumentArgs,
    /// The output so far
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    #[arg(help_heading = "Input", allow_hyphen_values = true)]
    pub after: String,
    /// Print at most N tokens
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub limit: Option<usize>,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// The flags of `compile`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  constrain compile --schema schema.json --tokenizer tokenizer.json -o schema.constraint
  constrain --constraint schema.constraint --model model.gguf \"I was charged twice.\"")]
pub struct CompileArgs {
    /// How the schema is read.
    #[command(flatten)]
    pub schema: FormArgs,
    /// The vocabulary of the model: a Hugging Face tokenizer.json, a tiktoken rank file or a GGUF model
    ///
    /// A GGUF model needs a build with the feature llama.
    #[arg(short, long, value_name = "FILE", help_heading = "Constraint")]
    pub tokenizer: PathBuf,
    /// What values are pieces of.
    #[command(flatten)]
    pub document: DocumentArgs,
    /// Where to write it
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub output: PathBuf,
}

/// The flags of `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// How the schema is read.
    #[command(flatten)]
    pub schema: FormArgs,
    /// A vocabulary, to show the tables over it too: tokenizer.json, a tiktoken rank file or a GGUF model
    ///
    /// A GGUF model needs a build with the feature llama.
    #[arg(short, long, value_name = "FILE", help_heading = "Constraint")]
    pub tokenizer: Option<PathBuf>,
    /// What is printed: a listing, the grammar in GBNF, or a graph for Graphviz
    #[arg(long, value_name = "FORM", default_value = "text", help_heading = "Output")]
    pub format: InspectFormat,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// The flags of `pull`.
#[derive(Debug, Args)]
pub struct PullArgs {
    /// A model of the Hugging Face Hub [default: SmolLM2-135M-Instruct]
    #[arg(long, value_name = "OWNER/REPO[:FILE]")]
    pub hf: Option<String>,
}

/// What `inspect` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InspectFormat {
    /// One line per node
    Text,
    /// The grammar, as llama.cpp reads it
    Gbnf,
    /// A graph for Graphviz's `dot`
    Dot,
}

/// The order of an object's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PropertyOrder {
    /// As `properties` lists them, undeclared keys last
    Declared,
    /// In any order
    Any,
}

/// The white space between the tokens of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Whitespace {
    /// None
    Compact,
    /// Two spaces per level
    Pretty,
    /// Any legal white space, in bounded runs
    Flexible,
}

/// What becomes of stop texts inside of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StopInside {
    /// They are text like any other
    Ignore,
    /// A text that can occur there, or may, is refused
    Refuse,
}

/// How the model is told what is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaInPrompt {
    /// An outline of the fields and their values
    Compact,
    /// The schema itself
    Json,
    /// Not at all
    Off,
}

/// When flash attention is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FlashAttention {
    /// Where the model supports it
    Auto,
    /// Always
    On,
    /// Never
    Off,
}

/// A number from 1.
pub fn positive() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=1 << 30)
}

/// A text that an answer ends at.
fn stop_text(text: &str) -> Result<String, &'static str> {
    match text {
        "" => Err("an empty text occurs everywhere: write one that ends an answer"),
        text => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_flag_has_a_help_text() {
        let mut commands = vec![Cli::command()];
        commands.extend(Cli::command().get_subcommands().cloned());
        for command in commands {
            for arg in command.get_arguments() {
                assert!(arg.get_help().is_some(), "{} {}", command.get_name(), arg.get_id());
            }
        }
    }

    #[test]
    fn a_prompt_may_be_named_like_a_sub_command() {
        let cli = Cli::try_parse_from(["constrain", "--schema", "s.json", "--", "check"]);
        let cli = cli.expect("parses");
        assert!(cli.command.is_none());
        assert_eq!(cli.generate.prompt.as_deref(), Some("check"));
    }

    #[test]
    fn sub_commands_take_global_flags() {
        for args in [
            ["constrain", "check", "-q", "--schema", "s.json", "-"],
            ["constrain", "-q", "check", "--schema", "s.json", "-"],
        ] {
            let cli = Cli::try_parse_from(args).expect("parses");
            assert!(cli.verbosity.quiet);
            let Some(Command::Check(check)) = cli.command else { panic!("check expected") };
            assert_eq!(check.file, Some(PathBuf::from("-")));
        }
    }

    /// Data is extracted under schemas alone, and what was written before needs no model.
    #[test]
    fn sub_commands_have_no_flags_that_cannot_work_there() {
        let extract = ["constrain", "extract", "-s", "s", "-i", "d", "-o", "o"];
        let eval = ["constrain", "eval", "-s", "s", "-l", "l"];
        let parses =
            |base: &[&str], flags: &[&str]| Cli::try_parse_from(base.iter().chain(flags)).is_ok();
        for base in [&extract[..], &eval] {
            assert!(parses(base, &["--whitespace", "compact", "--model", "m.gguf"]));
            for flags in
                [["--grammar", "g.lark"], ["--regex", "a"], ["--choice", "a"], ["--syntax", "gbnf"]]
            {
                assert!(!parses(base, &flags), "{flags:?}");
            }
        }
        assert!(parses(&eval, &["--outputs", "a", "--outputs", "b", "--loose"]));
        for flags in [["--model", "m"], ["--parallel", "2"], ["--top-k", "3"], ["--hf", "a/b"]] {
            assert!(!parses(&eval, &[&["--outputs", "a"], &flags[..]].concat()), "{flags:?}");
        }
    }

    #[test]
    fn contradictions_are_refused() {
        for flags in [
            &["--json", "--stream"][..],
            &["--strip-reasoning", "--stream"],
            &["-q", "-v"],
            &["--prompt-file", "p.txt", "a prompt"],
            &["--threads", "0"],
            &["--max-tokens", "0"],
            &["--property-order", "random"],
            &["--syntax", "gbnf"],
            &["--grammar", "g.lark"],
            &["--constraint", "a.constraint"],
            &["--stop", ""],
            &["--stop-inside", "refuse"],
        ] {
            let args = ["constrain", "--schema", "s.json"].iter().chain(flags);
            assert!(Cli::try_parse_from(args).is_err(), "{flags:?}");
        }
    }
}
