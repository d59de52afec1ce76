//! Verdicts, in a file that grows: what is in it is not judged again.

use crate::copy::Copy;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// What became of a mutant.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// By this test, which ended in this way.
    Caught(String),
    /// It makes no difference on the way of any test.
    Unreached,
    /// All tests in whose way it is have passed, as many.
    Missed(usize),
    /// So many of so many tests have passed; for the others these seconds were too few.
    Left(usize, usize, f64),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caught(by) => write!(f, "caught\t{by}"),
            Self::Unreached => f.write_str("unreached\t"),
            Self::Missed(tests) => write!(f, "missed\tby {tests} tests"),
            Self::Left(tests, of, seconds) => {
                write!(f, "missed\tby {tests} of {of} tests in {seconds} seconds")
            }
        }
    }
}

impl Verdict {
    /// The other way round.
    fn read(verdict: &str, how: &str) -> Option<Self> {
        Some(match verdict {
            "caught" => Self::Caught(how.to_owned()),
            "unreached" => Self::Unreached,
            _ => {
                let mut numbers = how.split(' ').filter_map(|word| word.parse::<f64>().ok());
                let tests = numbers.next()? as usize;
                match (numbers.next(), numbers.next()) {
                    (Some(of), Some(seconds)) => Self::Left(tests, of as usize, seconds),
                    _ => Self::Missed(tests),
                }
            }
        })
    }
}

/// Verdicts by the names of mutants, and the file.
pub struct Results {
    file: File,
    verdicts: BTreeMap<String, Verdict>,
}

impl Results {
    /// Reads what there is; the last verdict on a mutant counts.
    pub fn open(path: &Path) -> Result<Self, Box<dyn Error>> {
        let mut verdicts = BTreeMap::new();
        for line in fs::read_to_string(path).unwrap_or_default().lines() {
            let mut parts = line.split('\t');
            if let (Some(name), Some(verdict), Some(how)) =
                (parts.next(), parts.next(), parts.next())
            {
                verdicts.extend(Verdict::read(verdict, how).map(|it| (name.to_owned(), it)));
            }
        }
        Ok(Self { file: OpenOptions::new().append(true).create(true).open(path)?, verdicts })
    }

    pub fn get(&self, name: &str) -> Option<&Verdict> {
        self.verdicts.get(name)
    }

    pub fn add(&mut self, name: String, verdict: Verdict) -> std::io::Result<()> {
        writeln!(self.file, "{name}\t{verdict}")?;
        self.verdicts.insert(name, verdict);
        Ok(())
    }

    /// The mutants that were not caught, in their order, and a table of the modules.
    pub fn report(&self, copy: &Copy, refused: &[usize]) -> String {
        let mut rows: BTreeMap<String, [usize; 6]> = BTreeMap::new();
        let mut text = String::new();
        for number in copy.numbers() {
            let name = copy.name(number);
            let column = match self.verdicts.get(name) {
                _ if refused.contains(&number) => 1,
                None => 5,
                Some(Verdict::Caught(_)) => 2,
                Some(Verdict::Missed(_) | Verdict::Left(..)) => 3,
                Some(Verdict::Unreached) => 4,
            };
            if let (3 | 4, Some(verdict)) = (column, self.verdicts.get(name)) {
                text += &format!("{name}  {}\n", verdict.to_string().replace('\t', " "));
            }
            for key in [module(name), "all".to_owned()] {
                let row = rows.entry(key).or_default();
                row[0] += 1;
                row[column] += 1;
            }
        }
        text += "| module | mutants | do not compile | caught | missed | make no difference in tests | open |\n";
        text += "|---|--:|--:|--:|--:|--:|--:|\n";
        for (module, row) in rows {
            let row: Vec<String> = row.iter().map(usize::to_string).collect();
            text += &format!("| {module} | {} |\n", row.join(" | "));
        }
        text
    }
}

/// `expr` of `src/expr/choice.rs:17:3 ...`, `constraint` of `src/constraint.rs:3:7 ...`.
fn module(name: &str) -> String {
    let name = name.strip_prefix("src/").unwrap_or(name);
    name.split(['/', '.']).next().unwrap_or_default().to_owned()
}
