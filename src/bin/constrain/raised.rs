//! `--limits NAME=N`: budgets other than the default, by the names that they have in the library.
//!
//! `--limits fuel=5000000,nodes=1000000` sets two of them. The nesting of schemas is not among them: it keeps the stack
//! of the program from overflowing.

use constrain::Limits;
use std::fmt::Write;

/// A limit that can be set.
struct Row {
    name: &'static str,
    what: &'static str,
    /// More would not work.
    most: u64,
    get: fn(&Limits) -> u64,
    set: fn(&mut Limits, u64),
}

/// How deep the output may nest: the independent judge of finished documents reads no deeper ones.
const DEPTH: u8 = 127;

/// The limits of the program where none is set.
fn defaults() -> Limits {
    Limits { output_depth: DEPTH, ..Limits::default() }
}

/// Any number that the machine can count to.
const ANY: u64 = 1 << 40;

/// The row of a field. Numbers beyond `most`, and so beyond the type of the field, are refused before they are set.
macro_rules! row {
    ($field:ident, $most:expr, $what:expr) => {
        Row {
            name: stringify!($field),
            what: $what,
            most: $most,
            get: |limits| limits.$field as u64,
            set: |limits, n| limits.$field = n as _,
        }
    };
}

const ROWS: [Row; 10] = [
    row!(input_bytes, ANY, "bytes of a schema or a grammar"),
    row!(properties, ANY, "properties of all objects together"),
    row!(enum_entries, ANY, "entries of all enums together"),
    row!(pattern_bytes, ANY, "bytes of a pattern"),
    row!(nodes, ANY, "nodes of the grammar"),
    row!(expressions, ANY, "expressions of the grammar"),
    row!(fuel, ANY, "units of work, of about 50 ns each"),
    row!(output_depth, DEPTH as u64, "nesting of the output"),
    row!(number_digits, 1000, "digits of a number of the output"),
    row!(document_bytes, 1 << 30, "bytes of a document that values are pieces of"),
];

/// A limit that was set: the place of its row, and the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(usize, u64);

/// Reads `NAME=N`.
pub fn limit(text: &str) -> Result<Limit, String> {
    let (name, number) = text.split_once('=').ok_or("write NAME=N, such as fuel=5000000")?;
    let Some(at) = ROWS.iter().position(|row| row.name == name) else {
        let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        return Err(format!("there is no limit of this name, but {}", names.join(", ")));
    };
    let most = ROWS[at].most;
    let number = number.parse().ok().filter(|number| (1..=most).contains(number));
    number.map(|number| Limit(at, number)).ok_or_else(|| format!("write a number from 1 to {most}"))
}

/// The limits, with those that were set.
pub fn limits(set: &[Limit]) -> Limits {
    let mut limits = defaults();
    for &Limit(at, number) in set {
        (ROWS[at].set)(&mut limits, number);
    }
    limits
}

/// The help of the flag, which lists them.
pub fn help() -> String {
    let mut help =
        "Set a limit on what is compiled: what would cost more is refused\n\nRepeat it, or put \
                    commas between. The limits and their defaults:\n"
            .to_owned();
    for Row { name, what, get, .. } in &ROWS {
        let _ = write!(help, "\n{name}={}: {what}", get(&defaults()));
    }
    help
}

/// A message of the library in the terms of the program: the field of a structure is the flag that sets it.
pub fn in_flags(message: &str) -> String {
    let mut parts = message.split("Limits::");
    let mut said = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        let _ = match ROWS.iter().any(|row| row.name == name) {
            true => write!(said, "--limits {name}=N{rest}"),
            false => write!(said, "Limits::{name}{rest}"),
        };
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_set_and_nothing_else() {
        for (at, row) in ROWS.iter().enumerate() {
            // The nesting is at its most already.
            let number = (row.get)(&defaults()) - 1;
            let set = limit(&format!("{}={number}", row.name)).expect("a limit");
            let limits = limits(&[set]);
            for (other, row) in ROWS.iter().enumerate() {
                let expected = (row.get)(&defaults()) - u64::from(other == at);
                assert_eq!((row.get)(&limits), expected, "{}", row.name);
            }
            assert!(help().contains(&format!("\n{}={}: ", row.name, number + 1)));
        }
        for wrong in ["", "fuel", "fuel=", "fuel=0", "fuel=-1", "fuel=1.5", "depth=3"] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
        assert!(limit("output_depth=128").is_err());
        assert!(limit("x=1").is_err_and(|said| said.contains("pattern_bytes, nodes")));
    }

    #[test]
    fn remedies_name_the_flag() {
        let said = in_flags("simplify it, or raise Limits::nodes; Limits::unknown");
        assert_eq!(said, "simplify it, or raise --limits nodes=N; Limits::unknown");
    }
}
