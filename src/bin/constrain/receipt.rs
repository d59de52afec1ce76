//! `--json`: the result with its statistics, and the receipt of what was enforced.

use crate::compile::Form;
use crate::report::Failure;
use crate::spans;
use constrain::Vocabulary;
use constrain::decode::Outcome;
use constrain::grammar::{PropertyOrder, Whitespace};
use constrain::sample::Settings;
use constrain::schema::{self, Status};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// What the receipt of one generated document is made from.
pub struct Receipt<'a> {
    /// The schema or grammar and how it was read.
    pub form: &'a Form,
    /// The vocabulary of the model.
    pub vocabulary: &'a Vocabulary,
    /// How tokens were drawn.
    pub settings: &'a Settings,
    /// Name of the strategy.
    pub strategy: &'a str,
    /// Name of the model.
    pub model: &'a str,
    /// What came out.
    pub outcome: &'a Outcome,
}

#[derive(serde::Serialize)]
struct Wire<'a> {
    /// The document as it was generated: numbers keep all their digits. Text is a string.
    result: Box<RawValue>,
    finish_reason: &'a str,
    model: &'a str,
    seed: u64,
    settings: Value,
    statistics: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    log_probs: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    spans: Value,
    receipt: Value,
}

impl Receipt<'_> {
    /// One JSON object around the document `text`.
    pub fn json(&self, text: &str) -> Result<String, Failure> {
        let bug = |error: serde_json::Error| Failure::new(format!("the result: {error}"));
        let wire = Wire {
            result: match self.form.is_schema() {
                true => serde_json::from_str(text.trim()).map_err(bug)?,
                false => serde_json::value::to_raw_value(text).map_err(bug)?,
            },
            finish_reason: self.outcome.finish.name(),
            model: self.model,
            seed: self.settings.seed,
            settings: self.settings_json(),
            statistics: self.statistics_json(),
            log_probs: crate::logprobs::json(self.outcome, self.vocabulary),
            spans: spans::json(self.form, text),
            receipt: self.receipt_json()?,
        };
        serde_json::to_string_pretty(&wire).map_err(bug)
    }

    fn settings_json(&self) -> Value {
        let Settings { temperature, top_k, top_p, min_p, penalties, .. } = self.settings;
        json!({
            "strategy": self.strategy,
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "min_p": min_p,
            "frequency_penalty": penalties.frequency,
            "presence_penalty": penalties.presence,
            "repetition_penalty": penalties.repetition,
        })
    }

    fn statistics_json(&self) -> Value {
        let statistics = &self.outcome.statistics;
        json!({
            "prompt_tokens": statistics.prompt_tokens,
            "tokens": statistics.tokens,
            "forced_tokens": statistics.forced_tokens,
            "passes": statistics.passes,
            "tokens_per_pass": statistics.tokens_per_pass(),
            "drafted_tokens": statistics.drafted_tokens,
            "accepted_tokens": statistics.accepted_tokens,
            "tokens_per_second": statistics.tokens_per_second(),
            "mask_microseconds_per_token": micros(statistics.mask_time_per_token()),
            "prompt_microseconds": micros(statistics.prompt_time),
            "model_microseconds": micros(statistics.model_time),
            "mask_microseconds": micros(statistics.mask_time),
            "draft_microseconds": micros(statistics.draft_time),
            "sample_microseconds": micros(statistics.sample_time),
            "total_microseconds": micros(statistics.total_time),
        })
    }

    fn receipt_json(&self) -> Result<Value, Failure> {
        let Form { source, options, syntax, .. } = self.form;
        let hash = hex(&Sha256::digest(source.text.as_bytes()));
        if let Some(syntax) = syntax {
            return Ok(json!({
                "grammar_sha256": hash,
                "syntax": syntax.name(),
                "vocabulary": hex(&self.vocabulary.hash()),
            }));
        }
        let report =
            schema::report(&source.text, options).map_err(|error| self.form.failure(&error))?;
        let with = |wanted: &Status| -> Vec<&str> {
            let entries = report.entries.iter().filter(|entry| entry.status == *wanted);
            entries.map(|entry| entry.pointer.as_str()).collect()
        };
        Ok(json!({
            "schema_sha256": hash,
            "vocabulary": hex(&self.vocabulary.hash()),
            "draft": format!("{:?}", report.draft),
            "enforced": with(&Status::Enforced),
            "annotations": with(&Status::Annotation),
            "narrowed": self.narrowings(),
            "validated_again_by": "jsonschema",
        }))
    }

    /// What the schema would allow and these flags do not generate.
    fn narrowings(&self) -> Vec<&'static str> {
        let options = &self.form.options;
        let order =
            (options.property_order == PropertyOrder::Declared).then_some("keys in declared order");
        let space = match options.whitespace {
            Whitespace::Compact => "no white space",
            Whitespace::Pretty(_) => "white space as indentation",
            Whitespace::Flexible => "white space in bounded runs",
        };
        let always = ["keys unique", "numbers finite and of bounded length", "nesting bounded"];
        order.into_iter().chain([space]).chain(always).collect()
    }
}

fn micros(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
