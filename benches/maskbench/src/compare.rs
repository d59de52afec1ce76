//! Compares two result files: times on the cases that both compile, verdicts of each.
use crate::case::read_lines;
use crate::record::Record;
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

/// What `--json` prints.
#[derive(Serialize)]
struct Comparison {
    /// Cases that both engines compile: the times are of these.
    common: usize,
    /// Microseconds to fill a mask and to accept a token.
    masks_us: SideBySide,
    /// Microseconds from the text of a schema to the first mask.
    ttfm_us: SideBySide,
    verdicts: Verdicts,
}

#[derive(Serialize)]
struct SideBySide {
    a: Times,
    b: Times,
    /// How many times slower the second is.
    ratio: Times,
}

/// A distribution, or ratios of two.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Times {
    n: f64,
    mean: f64,
    p50: f64,
    p90: f64,
    p99: f64,
    #[serde(rename = "p99.9")]
    p999: f64,
    max: f64,
}

#[derive(Serialize)]
struct Verdicts {
    a: Counts,
    b: Counts,
}

/// Verdicts over all cases of one file.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Counts {
    cases: usize,
    /// Cases compiled with every test right, and cases rightly refused.
    all_right: usize,
    /// Cases refused that must not be.
    refused: usize,
    /// Cases compiled that must be refused.
    wrongly_compiled: usize,
    /// Tests right.
    right: usize,
    /// Invalid texts accepted.
    wrong_accept: usize,
    /// Valid texts rejected.
    wrong_reject: usize,
    /// Random documents, those not valid, and those that came to a dead end.
    generated: usize,
    invalid: usize,
    dead_ends: usize,
}

/// Prints the comparison of two files.
pub fn compare(a: &Path, b: &Path, json: bool) -> Result<()> {
    let comparison = Comparison::new(&read(a)?, &read(b)?);
    let text = if json {
        serde_json::to_string_pretty(&comparison)? + "\n"
    } else {
        comparison.table(a, b)?
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

fn read(path: &Path) -> Result<Vec<Record>> {
    let lines = read_lines(path)?;
    let parsed = lines.iter().map(|line| serde_json::from_str(line)).collect::<Result<_, _>>();
    parsed.with_context(|| format!("{} is not a file of results", path.display()))
}

impl Comparison {
    fn new(a: &[Record], b: &[Record]) -> Self {
        let compiled = |record: &&Record| record.compile_error.is_none();
        let of_a: HashMap<&str, &Record> =
            a.iter().filter(compiled).map(|record| (&*record.id, record)).collect();
        let both: Vec<(&Record, &Record)> = b
            .iter()
            .filter(compiled)
            .filter_map(|record| Some((*of_a.get(&*record.id)?, record)))
            .collect();
        let side_by_side = |times: fn(&Record) -> &[u64]| {
            let a = Times::new(both.iter().flat_map(|(a, _)| times(a)).copied().collect());
            let b = Times::new(both.iter().flat_map(|(_, b)| times(b)).copied().collect());
            SideBySide { ratio: b.over(&a), a, b }
        };
        Self {
            common: both.len(),
            masks_us: side_by_side(|record| &record.masks_ns),
            ttfm_us: side_by_side(|record| std::slice::from_ref(&record.ttfm_ns)),
            verdicts: Verdicts { a: Counts::new(a), b: Counts::new(b) },
        }
    }

    fn table(&self, a: &Path, b: &Path) -> Result<String> {
        let mut out = format!("A: {}\nB: {}\n", a.display(), b.display());
        writeln!(out, "{} cases compiled by both\n", self.common)?;
        let tables =
            [("mask and accept, µs", &self.masks_us), ("compile to first mask, µs", &self.ttfm_us)];
        for (title, times) in tables {
            writeln!(out, "{title:<26}{:>12}{:>12}{:>10}", "A", "B", "B/A")?;
            let rows = times.a.rows().into_iter().zip(times.b.rows()).zip(times.ratio.rows());
            for (((name, a), (_, b)), (_, ratio)) in rows {
                writeln!(out, "  {name:<24}{a:>12.1}{b:>12.1}{ratio:>10.1}")?;
            }
            out.push('\n');
        }
        writeln!(out, "{:<26}{:>12}{:>12}", "verdicts", "A", "B")?;
        let rows = self.verdicts.a.rows().into_iter().zip(self.verdicts.b.rows());
        for ((name, a), (_, b)) in rows {
            writeln!(out, "  {name:<24}{a:>12}{b:>12}")?;
        }
        Ok(out)
    }
}

impl Times {
    /// The distribution of some nanoseconds, in microseconds; percentiles by the nearest rank.
    fn new(mut nanoseconds: Vec<u64>) -> Self {
        nanoseconds.sort_unstable();
        let n = nanoseconds.len();
        let rank = |per_mille: usize| {
            let at = (n * per_mille).div_ceil(1000).max(1) - 1;
            nanoseconds.get(at).map_or(0.0, |&time| time as f64 / 1e3)
        };
        let sum: u64 = nanoseconds.iter().sum();
        Self {
            n: n as f64,
            mean: sum as f64 / 1e3 / n.max(1) as f64,
            p50: rank(500),
            p90: rank(900),
            p99: rank(990),
            p999: rank(999),
            max: rank(1000),
        }
    }

    fn over(&self, other: &Self) -> Self {
        let over = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
        Self {
            n: over(self.n, other.n),
            mean: over(self.mean, other.mean),
            p50: over(self.p50, other.p50),
            p90: over(self.p90, other.p90),
            p99: over(self.p99, other.p99),
            p999: over(self.p999, other.p999),
            max: over(self.max, other.max),
        }
    }

    fn rows(&self) -> [(&'static str, f64); 7] {
        [
            ("n", self.n),
            ("mean", self.mean),
            ("p50", self.p50),
            ("p90", self.p90),
            ("p99", self.p99),
            ("p99.9", self.p999),
            ("max", self.max),
        ]
    }
}

impl Counts {
    fn new(records: &[Record]) -> Self {
        let mut counts = Self { cases: records.len(), ..Self::default() };
        for record in records {
            counts.add(record);
        }
        counts
    }

    fn add(&mut self, record: &Record) {
        let must_fail = record.expect.as_deref() == Some("error");
        let all_right = record.tests.iter().all(|test| test.valid == test.accepted);
        match (record.compile_error.is_some(), must_fail) {
            (true, true) => self.all_right += 1,
            (true, false) => self.refused += 1,
            (false, true) => self.wrongly_compiled += 1,
            (false, false) => self.all_right += usize::from(all_right),
        }
        for test in &record.tests {
            match (test.valid, test.accepted) {
                (false, true) => self.wrong_accept += 1,
                (true, false) => self.wrong_reject += 1,
                _ => self.right += 1,
            }
        }
        if let Some(generated) = &record.generated {
            self.generated += generated.n;
            self.invalid += generated.invalid;
            self.dead_ends += generated.dead_ends;
        }
    }

    fn rows(&self) -> [(&'static str, usize); 10] {
        [
            ("cases", self.cases),
            ("  every test right", self.all_right),
            ("  refused", self.refused),
            ("  wrongly compiled", self.wrongly_compiled),
            ("tests right", self.right),
            ("  wrong accept", self.wrong_accept),
            ("  wrong reject", self.wrong_reject),
            ("generated", self.generated),
            ("  invalid", self.invalid),
            ("  dead ends", self.dead_ends),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Verdict;

    fn record(id: &str, ttfm_ns: u64, masks_ns: &[u64], tests: &[(bool, bool)]) -> Record {
        let verdict = |&(valid, accepted)| Verdict { valid, accepted, error: None };
        let tests = tests.iter().map(verdict).collect();
        Record { id: id.into(), ttfm_ns, masks_ns: masks_ns.into(), tests, ..Record::default() }
    }

    #[test]
    fn percentiles_by_nearest_rank() {
        let times = Times::new((1..=1000).rev().map(|n| n * 1000).collect());
        let expected = Times {
            n: 1000.0,
            mean: 500.5,
            p50: 500.0,
            p90: 900.0,
            p99: 990.0,
            p999: 999.0,
            max: 1000.0,
        };
        assert_eq!(times, expected);
        assert_eq!(Times::new(vec![7000]).p50, 7.0);
        assert_eq!(Times::new(vec![]).max, 0.0);
    }

    #[test]
    fn only_common_cases_are_timed() {
        let refused = Record { compile_error: Some("no".into()), ..record("y", 5, &[], &[]) };
        let a = [record("x", 1000, &[1000, 3000], &[(true, true)]), refused];
        let b =
            [record("y", 9, &[9], &[(false, true)]), record("x", 4000, &[6000], &[(true, false)])];
        let comparison = Comparison::new(&a, &b);
        assert_eq!(comparison.common, 1);
        assert_eq!(comparison.ttfm_us.ratio.mean, 4.0);
        assert_eq!(comparison.masks_us.a.mean, 2.0);
        assert_eq!(comparison.masks_us.b.max, 6.0);
        let expected = Counts { cases: 2, all_right: 1, refused: 1, right: 1, ..Counts::default() };
        assert_eq!(comparison.verdicts.a, expected);
        let expected = Counts { cases: 2, wrong_accept: 1, wrong_reject: 1, ..Counts::default() };
        assert_eq!(comparison.verdicts.b, expected);
    }

    #[test]
    fn cases_that_must_be_refused() {
        let mut compiled = record("x", 1, &[], &[]);
        compiled.expect = Some("error".into());
        let mut refused = compiled.clone();
        refused.compile_error = Some("no".into());
        let expected = Counts { cases: 2, all_right: 1, wrongly_compiled: 1, ..Counts::default() };
        assert_eq!(Counts::new(&[compiled, refused]), expected);
    }
}
