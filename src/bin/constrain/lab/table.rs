//! A table of one step: a row per token, a column per stage, and what each stage took away.
//!
//! A cell holds what the token has after that stage: its logit after mask and penalties, its
//! probability among what is left from the temperature on. The stage that took it says `taken`, and
//! the rest of the row is empty.

use constrain::sample::trace::TokenTrace;
use constrain::sample::{Settings, Stage};
use std::fmt::Write;

/// A token of a step, with what it says.
pub struct Named {
    /// Its text, for people.
    pub text: String,
    /// What became of it.
    pub row: TokenTrace,
}

/// The stages that have a column.
const COLUMNS: [Stage; 6] =
    [Stage::Mask, Stage::Penalties, Stage::Temperature, Stage::TopK, Stage::TopP, Stage::MinP];

/// The table of some tokens, and below it one line per stage that took any of `all`.
pub fn render(rows: &[Named], all: &[TokenTrace], settings: &Settings) -> String {
    let width = rows.iter().map(|row| row.text.chars().count()).max().unwrap_or(0).max(5);
    let mut out = format!("{:>6}  {:width$} {:>8}", "id", "token", "logit");
    for stage in COLUMNS {
        let _ = write!(out, " {:>11}", stage.name());
    }
    let _ = writeln!(out, " {:>8}", "p");
    // What is left after each stage has this much of the tempered law.
    let sums = COLUMNS.map(|stage| {
        let left = all.iter().filter(|row| row.taken_by.is_none_or(|by| by > stage));
        left.map(|row| row.tempered).sum::<f64>()
    });
    for Named { text, row } in rows {
        let _ = write!(out, "{:>6}  {text:width$} {:>8.3}", row.token, row.logit);
        for (stage, sum) in COLUMNS.into_iter().zip(sums) {
            let _ = write!(out, " {:>11}", cell(row, stage, sum));
        }
        let _ = match row.taken_by {
            None => writeln!(out, " {:>8.4}", row.probability),
            Some(_) => writeln!(out, " {:>8}", 0),
        };
    }
    for stage in COLUMNS {
        let taken: Vec<&TokenTrace> =
            all.iter().filter(|row| row.taken_by == Some(stage)).collect();
        if !taken.is_empty() {
            let _ = writeln!(out, "{}", took(stage, &taken, settings));
        }
    }
    out
}

fn cell(row: &TokenTrace, stage: Stage, sum: f64) -> String {
    match row.taken_by {
        Some(by) if by == stage => "taken".to_string(),
        Some(by) if by < stage => String::new(),
        _ => match stage {
            Stage::Mask => format!("{:.3}", row.logit),
            Stage::Penalties => format!("{:.3}", row.penalised),
            _ if sum > 0.0 => format!("{:.4}", row.tempered / sum),
            _ => String::new(),
        },
    }
}

/// What a stage took, in words.
fn took(stage: Stage, taken: &[&TokenTrace], settings: &Settings) -> String {
    let (name, count) = (stage.name(), taken.len());
    let mass: f64 = taken.iter().map(|row| row.tempered).sum();
    let setting = match stage {
        Stage::Mask => return format!("{name} took {count}"),
        Stage::Temperature => " 0".to_string(),
        Stage::TopK => format!(" {}", settings.top_k),
        Stage::TopP => format!(" {}", settings.top_p),
        Stage::MinP => format!(" {}", settings.min_p),
        _ => String::new(),
    };
    format!("{name}{setting} took {count} with {mass:.4} of the probability")
}
