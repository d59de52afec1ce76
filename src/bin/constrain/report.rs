//! What is said when something cannot be done: one message, the place with an excerpt, a remedy.
//!
//! ```text
//! constrain: "minLength" must be a non-negative integer
//!   --> schema.json:4:20 (/properties/name/minLength)
//!    |
//!  4 |       "minLength": -1
//!    |                    ^
//! help: write a number such as 1
//! ```
//!
//! Everything quoted from a file is escaped, so that a document cannot steer the terminal.

use crate::locate::locate;
use crate::raised::in_flags;
use constrain::error::{Error, Place, quote};
use std::fmt;
use std::path::Path;

/// Characters of a line that an excerpt shows at most.
const EXCERPT_CHARS: usize = 100;

/// A text that the user gave, and what to call it.
#[derive(Debug)]
pub struct Source {
    /// A file name, or "standard input".
    pub name: String,
    /// Its content.
    pub text: String,
}

/// Why the program stops before its result.
#[derive(Debug)]
pub enum Failure {
    /// It could not be done: exit status 2.
    Report(Box<Report>),
    /// Whoever reads standard output went away: no message, exit status 0.
    BrokenPipe,
}

/// A message for people.
#[derive(Debug)]
pub struct Report {
    message: String,
    excerpt: Option<String>,
    help: Option<String>,
}

impl Failure {
    /// A failure with a message that is a clause without a final full stop.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Report(Box::new(Report { message: message.into(), excerpt: None, help: None }))
    }

    /// The same failure with a remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        if let Self::Report(report) = &mut self {
            report.help = Some(help.into());
        }
        self
    }

    /// An error of the library about `source`, with the excerpt that it points at.
    pub fn in_source(error: &Error, source: &Source) -> Self {
        Self::Report(Box::new(Report {
            message: error.message().to_string(),
            excerpt: Some(excerpt(source, error.place())),
            help: error.remedy().map(in_flags),
        }))
    }

    /// A file that cannot be read, written or found.
    pub fn io(action: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::new(format!("cannot {action} {}: {error}", quote(&path.to_string_lossy())))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut message = error.message().to_string();
        if let Some(place) = error.place() {
            message.push_str(&format!(" ({})", describe(place)));
        }
        let report = Report { message, excerpt: None, help: error.remedy().map(in_flags) };
        Self::Report(Box::new(report))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "constrain: {}", self.message)?;
        if let Some(excerpt) = &self.excerpt {
            writeln!(f, "{excerpt}")?;
        }
        match &self.help {
            Some(help) => writeln!(f, "help: {help}"),
            None => Ok(()),
        }
    }
}

fn describe(place: &Place) -> String {
    match place {
        Place::Pointer { pointer, .. } if pointer.is_empty() => "at the root".to_string(),
        Place::Pointer { pointer, .. } => format!("at {}", escape(pointer)),
        Place::Text { line, column } => format!("line {line}, column {column}"),
        Place::Offset(offset) => format!("at byte {offset}"),
    }
}

/// Where `place` lies in `source`: its name, line and column, and that line with a caret.
pub fn excerpt(source: &Source, place: Option<&Place>) -> String {
    let name = escape(&source.name);
    let Some((line, column)) = place.and_then(|place| line_column(&source.text, place)) else {
        return format!("  --> {name}");
    };
    let note = match place {
        Some(Place::Pointer { pointer, .. }) if !pointer.is_empty() => {
            format!(" ({})", escape(pointer))
        }
        Some(Place::Offset(offset)) => format!(" (byte {offset})"),
        _ => String::new(),
    };
    let text = source.text.split('\n').nth(line - 1).unwrap_or_default();
    let (shown, caret) = window(text, column);
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    format!(
        "  --> {name}:{line}:{column}{note}\n {margin} |\n {number} | {shown}\n {margin} | {caret}"
    )
}

/// Line and column, both from 1, of a place in a text; columns count characters.
fn line_column(text: &str, place: &Place) -> Option<(usize, usize)> {
    match place {
        Place::Text { line, column } => Some((*line as usize, *column as usize)),
        Place::Pointer { line_column: Some((line, column)), .. } => {
            Some((*line as usize, *column as usize))
        }
        Place::Pointer { pointer, line_column: None } => {
            locate(text, pointer).map(|offset| at_offset(text, offset))
        }
        Place::Offset(offset) => Some(at_offset(text, *offset)),
    }
    .map(|(line, column)| (line.max(1), column.max(1)))
}

fn at_offset(text: &str, offset: usize) -> (usize, usize) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = text.get(..end).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The part of a line around a column, and the line with the caret under that column.
fn window(line: &str, column: usize) -> (String, String) {
    let line = line.trim_end_matches('\r');
    let skipped = column.saturating_sub(EXCERPT_CHARS / 2 + 1);
    let skipped = if line.chars().count() <= EXCERPT_CHARS { 0 } else { skipped };
    let mut shown = String::from(if skipped > 0 { "…" } else { "" });
    let mut caret_at = shown.chars().count();
    for (i, c) in line.chars().enumerate().skip(skipped).take(EXCERPT_CHARS) {
        let before = shown.chars().count();
        match c {
            '\t' => shown.push(' '),
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
        if i + 1 < column {
            caret_at += shown.chars().count() - before;
        }
    }
    if line.chars().nth(skipped + EXCERPT_CHARS).is_some() {
        shown.push('…');
    }
    (shown, " ".repeat(caret_at) + "^")
}

/// `text` with control characters escaped and cut to 200 characters.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().take(200) {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use constrain::error::Kind;

    fn source(text: &str) -> Source {
        Source { name: "s.json".to_string(), text: text.to_string() }
    }

    fn render(failure: &Failure) -> String {
        match failure {
            Failure::Report(report) => report.to_string(),
            Failure::BrokenPipe => String::new(),
        }
    }

    #[test]
    fn a_pointer_is_shown_with_its_line_and_a_caret() {
        let source = source("{\n  \"a\": {\n\t\"minLength\": -1\n  }\n}");
        let error = Error::new(Kind::Syntax, "must not be negative")
            .at_pointer("/a/minLength")
            .help("write 0");
        let expected = "constrain: must not be negative\n  --> s.json:3:15 (/a/minLength)\n   |\n 3 |  \"minLength\": -1\n   |               ^\nhelp: write 0\n";
        assert_eq!(render(&Failure::in_source(&error, &source)), expected);
    }

    #[test]
    fn long_lines_are_cut_around_the_caret() {
        let text = format!("{}X{}", "é".repeat(500), "b".repeat(500));
        let shown = excerpt(&source(&text), Some(&Place::Offset(1000)));
        let lines: Vec<&str> = shown.lines().collect();
        let (excerpt, caret) = (lines[2], lines[3]);
        assert!(lines[0].ends_with("s.json:1:501 (byte 1000)"), "{shown}");
        let column = caret.chars().position(|c| c == '^').expect("a caret");
        assert_eq!(excerpt.chars().nth(column), Some('X'), "{shown}");
        assert!(excerpt.chars().count() < 120, "{shown}");
    }

    #[test]
    fn control_characters_of_a_document_stay_out_of_the_terminal() {
        let shown = excerpt(&source("\"a\u{1b}[2Jb\" x"), Some(&Place::Offset(9)));
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[3].find('^'), lines[2].find('x'), "{shown}");
    }

    #[test]
    fn places_outside_the_text_do_no_harm() {
        for place in [
            Place::Offset(99),
            Place::Text { line: 7, column: 9 },
            Place::Text { line: 0, column: 0 },
            Place::Pointer { pointer: "/x".into(), line_column: None },
        ] {
            for text in ["", "é", "{\n}"] {
                assert!(excerpt(&source(text), Some(&place)).contains("s.json"));
            }
        }
    }
}
