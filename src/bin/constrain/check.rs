//! `constrain check`: can a schema or a grammar be enforced, and does a text match it?
//!
//! A text is judged by the engine, byte by byte, exactly as generated text is. Where it fails, the
//! set of bytes that could have come instead says what was expected. The independent validator is
//! asked as well: it knows the keyword that a well-formed document violates, which bytes do not
//! tell. If it accepts what the engine rejects, the text has a form that is not generated under
//! the flags in force, such as another order of keys; the opposite would be a bug.
//!
//! With a tokenizer, what depends on the vocabulary is tried, too: whether the budget of a part suffices for its
//! shortest text.
//!
//! A schema alone is also looked through for what is legal but will hurt: warnings, on standard error.

use crate::args::CheckArgs;
use crate::compile::{Form, byte_vocabulary};
use crate::expected;
use crate::input;
use crate::raised::in_flags;
use crate::report::{Failure, Source, excerpt};
use crate::verify::Verifier;
use constrain::error::{Place, quote};
use constrain::schema::{self, Report, Status, Warning};
use constrain::syntax::Syntax;
use constrain::{Constraint, Error, Limits, Matcher, Vocabulary};
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;

/// Runs the sub-command.
pub fn run(args: &CheckArgs) -> Result<ExitCode, Failure> {
    let document = args.document.input.as_deref().map(input::read).transpose()?;
    let form = Form::read(&args.schema)?;
    let form = form.with_document(document.as_ref().map(|document| document.text.as_str()))?;
    let form = if args.file.is_none() { form.without_document() } else { form };
    let vocabulary = args.tokenizer.as_ref().map(Vocabulary::from_file).transpose()?;
    if args.file.is_none() && form.is_schema() {
        return check_schema(&form, vocabulary.as_ref(), args.json);
    }
    if let Some(error) = over(&form, vocabulary.as_ref())? {
        return Err(form.failure(&error));
    }
    match &args.file {
        None => check_grammar(&form, args.json),
        Some(path) => check_text(&form, &input::read(path)?, args.json),
    }
}

/// Why a form cannot be enforced over a vocabulary although it can be over others: a budget that is too small.
fn over(form: &Form, vocabulary: Option<&Vocabulary>) -> Result<Option<Error>, Failure> {
    let Some(vocabulary) = vocabulary else { return Ok(None) };
    form.check(vocabulary)?;
    Ok(Constraint::new(&form.compile()?, vocabulary).err())
}

fn check_grammar(form: &Form, is_json: bool) -> Result<ExitCode, Failure> {
    let grammar = form.compile()?;
    let syntax = form.syntax.map_or("", Syntax::name);
    let nodes = grammar.len();
    input::print(&match is_json {
        true => format!("{:#}\n", json!({"enforceable": true, "syntax": syntax, "nodes": nodes})),
        false => format!("enforced    {syntax}, {nodes} nodes\n"),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn check_schema(
    form: &Form,
    vocabulary: Option<&Vocabulary>,
    is_json: bool,
) -> Result<ExitCode, Failure> {
    let mut report =
        schema::report(&form.source.text, &form.options).map_err(|error| form.failure(&error))?;
    if report.error.is_none()
        && let Some(error) = over(form, vocabulary)?
    {
        refuse(&mut report, error);
    }
    let warnings = schema::lint(&form.source.text, &form.options).unwrap_or_default();
    let text = if is_json { report_json(&report, &warnings) } else { report_text(&report) };
    input::print(&text)?;
    if !is_json {
        warn(&warnings, &form.source);
    }
    match &report.error {
        None => Ok(ExitCode::SUCCESS),
        Some(error) => Err(form.failure(error)),
    }
}

/// Makes a report that of a schema which is refused for one of the library's own keywords.
fn refuse(report: &mut Report, error: Error) {
    if let Some(Place::Pointer { pointer: blamed, .. }) = error.place() {
        let is_around =
            |pointer: &str| blamed.strip_prefix(pointer).is_some_and(|rest| rest.starts_with('/'));
        let mut entries = report.entries.iter_mut();
        let entry =
            entries.find(|entry| entry.keyword == "x-constrain" && is_around(&entry.pointer));
        if let Some(entry) = entry {
            entry.status = Status::Refused(error.clone());
        }
    }
    report.error = Some(error);
}

/// Warnings that are shown; all of them are in the JSON form.
const WARNINGS_MAX: usize = 12;

/// Says what will hurt, each with its place.
fn warn(warnings: &[Warning], source: &Source) {
    for Warning { message, place, help, .. } in warnings.iter().take(WARNINGS_MAX) {
        let place = excerpt(source, Some(place));
        input::say(&format!("warning: {message}\n{place}\nhelp: {help}\n"));
    }
    if warnings.len() > WARNINGS_MAX {
        let more = warnings.len() - WARNINGS_MAX;
        input::say(&format!("warning: {more} more of these, see --json"));
    }
}

fn warning_json(warning: &Warning) -> Value {
    let mut value = json!({
        "lint": warning.lint.name(), "message": warning.message, "help": warning.help
    });
    if let Place::Pointer { pointer, line_column } = &warning.place {
        value["pointer"] = pointer.as_str().into();
        if let Some((line, column)) = line_column {
            (value["line"], value["column"]) = ((*line).into(), (*column).into());
        }
    }
    value
}

fn status_name(status: &Status) -> &'static str {
    match status {
        Status::Enforced => "enforced",
        Status::Annotation => "annotation",
        Status::Refused(_) => "refused",
    }
}

fn report_text(report: &Report) -> String {
    let mut out = String::new();
    for entry in &report.entries {
        let status = status_name(&entry.status);
        // A pointer is text out of the schema: escaped like all of them.
        let pointer = quote(&entry.pointer);
        let _ = writeln!(out, "{status:<10}  {}", pointer.trim_matches('"'));
    }
    out
}

fn report_json(report: &Report, warnings: &[Warning]) -> String {
    let entries: Vec<_> = report
        .entries
        .iter()
        .map(|entry| {
            let mut value = json!({
                "pointer": entry.pointer,
                "keyword": entry.keyword,
                "status": status_name(&entry.status),
            });
            if let Status::Refused(error) = &entry.status {
                value["message"] = error.message().into();
            }
            value
        })
        .collect();
    let error = report.error.as_ref().map(|error| in_flags(&error.to_string()));
    let value = json!({
        "enforceable": error.is_none(),
        "draft": format!("{:?}", report.draft),
        "keywords": entries,
        "warnings": warnings.iter().map(warning_json).collect::<Vec<_>>(),
        "error": error,
    });
    format!("{value:#}\n")
}

/// Why a text does not match.
struct Mismatch {
    offset: usize,
    expected: String,
    /// What the independent validator says: a message and a pointer into the schema.
    reason: Option<(String, Option<String>)>,
}

fn check_text(form: &Form, text: &Source, is_json: bool) -> Result<ExitCode, Failure> {
    let verifier = Verifier::of(form)?;
    let mut matcher =
        form.constraint(&form.compile()?.without_budgets(), &byte_vocabulary()?)?.matcher();
    let mismatch = match first_mismatch(&mut matcher, text.text.as_bytes())? {
        None => {
            // Under --add-reasoning the schema does not describe the text, so it is no judge.
            if let Some(verifier) = verifier.filter(|_| !form.options.add_reasoning) {
                verifier.confirm(&text.text)?;
            }
            None
        }
        Some(offset) => {
            let expected = expected::describe(&matcher.mask()?);
            let reason = match &verifier {
                Some(verifier) => bound(&form.options.limits, &text.text, offset)
                    .map(|message| (message, None))
                    .or_else(|| reason(verifier, &text.text)),
                None => last_line(text, offset),
            };
            Some(Mismatch { offset, expected, reason })
        }
    };
    let code = if mismatch.is_some() { ExitCode::from(1) } else { ExitCode::SUCCESS };
    if is_json {
        input::print(&mismatch_json(mismatch.as_ref()))?;
    } else if let Some(mismatch) = &mismatch {
        input::say(&mismatch_text(mismatch, text));
    }
    Ok(code)
}

/// Offset of the first byte that cannot come (the length of the text if it ends too early); the
/// matcher is left there.
fn first_mismatch(matcher: &mut Matcher, text: &[u8]) -> Result<Option<usize>, Failure> {
    match matcher.accept_bytes(text) {
        Ok(()) => Ok((!matcher.can_stop()).then_some(text.len())),
        Err(error) => {
            let Some(&Place::Offset(offset)) = error.place() else { return Err(error.into()) };
            matcher.accept_bytes(text.get(..offset).unwrap_or_default())?;
            Ok(Some(offset))
        }
    }
}

/// That it is only the end of the last line, which many programs write behind a text.
fn last_line(text: &Source, offset: usize) -> Option<(String, Option<String>)> {
    let only = text.text.ends_with('\n') && offset + 1 == text.text.len();
    only.then(|| ("the text ends with a line feed, which is part of it".to_string(), None))
}

/// The bound of all generated JSON that a text goes beyond at a place: of nesting, or of numbers. Parsers have such
/// bounds, too, so the validator has nothing to say of the text.
fn bound(limits: &Limits, text: &str, offset: usize) -> Option<String> {
    let (before, after) = text.split_at_checked(offset)?;
    let depth = depth(before)?;
    let most = usize::from(limits.output_depth);
    if after.starts_with(['[', '{']) && depth >= most {
        return Some(format!("arrays and objects nest at most {most} deep in what is generated"));
    }
    let is_other = |c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c));
    let from = before.len() - before.rsplit(is_other).next().map_or(0, str::len);
    let number = text[from..].split(is_other).next().unwrap_or_default();
    if !number.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return None;
    }
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    if number.parse().is_ok_and(f64::is_infinite) {
        let number = quote(number);
        let number = number.trim_matches('"');
        return Some(format!("{number} is beyond the numbers of 64 bits (f64) that readers keep"));
    }
    (digits > limits.number_digits as usize && before.len() > from).then(|| {
        let most = limits.number_digits;
        format!("the number has {digits} digits, of which at most {most} are generated")
    })
}

/// How many arrays and objects are open at the end of a text; `None` inside a string.
fn depth(text: &str) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    (!in_string).then_some(depth)
}

/// What is wrong in the terms of the schema; `None` if the text is not even JSON.
fn reason(verifier: &Verifier, text: &str) -> Option<(String, Option<String>)> {
    let document = serde_json::from_str(text).ok()?;
    Some(match verifier.complaint(&document) {
        Some(complaint) => (complaint.message, Some(complaint.schema)),
        None => (
            "the document satisfies the schema, but is not in a form that is generated under \
             these flags: see --property-order and --whitespace; a key never occurs twice, and \
             runs of white space, numbers and nesting are bounded"
                .to_string(),
            None,
        ),
    })
}

fn mismatch_text(mismatch: &Mismatch, text: &Source) -> String {
    let Mismatch { offset, expected, reason } = mismatch;
    let place = excerpt(text, Some(&Place::Offset(*offset)));
    let mut out = format!("constrain: the text does not match\n{place}\nexpected: {expected}");
    if let Some((message, pointer)) = reason {
        let _ = write!(out, "\nreason: {message}");
        if let Some(pointer) = pointer {
            let _ = write!(out, " (schema: {})", quote(pointer).trim_matches('"'));
        }
    }
    out
}

fn mismatch_json(mismatch: Option<&Mismatch>) -> String {
    let value = match mismatch {
        None => json!({"matches": true}),
        Some(Mismatch { offset, expected, reason }) => json!({
            "matches": false,
            "offset": offset,
            "expected": expected,
            "reason": reason.as_ref().map(|reason| &reason.0),
            "schema_pointer": reason.as_ref().and_then(|reason| reason.1.as_ref()),
        }),
    };
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, offset: usize, part: Option<&str>) {
        let found = bound(&Limits::default(), text, offset);
        match part {
            None => assert_eq!(found, None, "{text}"),
            Some(part) => assert!(found.as_ref().is_some_and(|m| m.contains(part)), "{found:?}"),
        }
    }

    #[test]
    fn bounds_of_numbers_and_nesting_are_named() {
        check(r#"{"n": 1e400}"#, 10, Some("1e400 is beyond"));
        check(r#"{"n": -1e400}"#, 9, Some("-1e400 is beyond"));
        let long = "7".repeat(70);
        check(&long, 64, Some("has 70 digits, of which at most 64"));
        let deep = format!("[\"]\\\"\", {}", "[".repeat(200));
        check(&deep, 135, Some("at most 128 deep"));
        check(&deep, 134, None);
    }

    #[test]
    fn other_places_have_no_such_reason() {
        check(r#"{"n": "1e400"}"#, 10, None);
        check(r#"{"n": 12}"#, 7, None);
        check("{\"é\":é1", 7, None);
        check(&"7".repeat(70), 0, None);
        check("[[true", 3, None);
        check("", 0, None);
        check("1", 9, None);
    }
}
