//! What came out of a comparison: counts per field, and how far sureness tells right from wrong.

use crate::eval::score::{Scored, Verdict};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Bins of the plot.
const BINS: usize = 10;

/// Counts of one field, or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub right: usize,
    pub wrong: usize,
    pub missing: usize,
    pub invented: usize,
    pub empty: usize,
}

impl Counts {
    fn add(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Right => &mut self.right,
            Verdict::Wrong => &mut self.wrong,
            Verdict::Missing => &mut self.missing,
            Verdict::Invented => &mut self.invented,
            Verdict::Empty => &mut self.empty,
        } += 1;
    }

    /// The share of right ones of all that have a value on either side.
    pub fn share(&self) -> Option<f64> {
        let all = self.right + self.wrong + self.missing + self.invented;
        (all > 0).then(|| self.right as f64 / all as f64)
    }

    fn json(&self) -> Value {
        let Self { right, wrong, missing, invented, empty } = self;
        json!({"right": right, "wrong": wrong, "missing": missing, "invented": invented,
            "empty": empty, "share": self.share()})
    }
}

/// How one model, or one setting, did.
#[derive(Debug, Default)]
pub struct Report {
    pub name: String,
    pub documents: usize,
    /// Documents without a value.
    pub failed: usize,
    /// Counts by field, in the order in which fields came up.
    pub fields: Vec<(String, Counts)>,
    pub total: Counts,
    /// How sure the model was of a value, and whether it was right.
    pub sure: Vec<(f64, bool)>,
}

/// A tenth of the scale of sureness.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bin {
    pub values: usize,
    /// Mean sureness.
    pub sure: f64,
    /// Share of right ones.
    pub right: f64,
}

impl Report {
    /// A report without documents.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Adds a document; `sure` tells how sure the value at a pointer is.
    pub fn add(&mut self, scored: Vec<Scored>, sure: impl Fn(&str) -> Option<f64>) {
        self.documents += 1;
        for Scored { field, verdict, found } in scored {
            let place = self.fields.iter().position(|(name, _)| *name == field);
            let place = place.unwrap_or_else(|| {
                self.fields.push((field, Counts::default()));
                self.fields.len() - 1
            });
            self.fields[place].1.add(verdict);
            self.total.add(verdict);
            if let Some(p) = found.as_deref().and_then(&sure) {
                self.sure.push((p, verdict == Verdict::Right));
            }
        }
    }

    /// Sureness against correctness, in tenths.
    pub fn bins(&self) -> [Bin; BINS] {
        let mut bins = [Bin::default(); BINS];
        for &(p, right) in &self.sure {
            let bin = &mut bins[((p * BINS as f64) as usize).min(BINS - 1)];
            bin.values += 1;
            bin.sure += p;
            bin.right += f64::from(u8::from(right));
        }
        for bin in bins.iter_mut().filter(|bin| bin.values > 0) {
            bin.sure /= bin.values as f64;
            bin.right /= bin.values as f64;
        }
        bins
    }

    /// How likely a right value is surer than a wrong one: 1 tells them apart, 0.5 is chance.
    pub fn separation(&self) -> Option<f64> {
        let mut sorted = self.sure.clone();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut wrong, mut sum, mut start) = (0_usize, 0.0, 0);
        let (rights, wrongs) =
            (sorted.iter().filter(|s| s.1).count(), sorted.iter().filter(|s| !s.1).count());
        while start < sorted.len() {
            // Equally sure ones count half.
            let same = sorted[start..].iter().take_while(|s| s.0 == sorted[start].0);
            let (count, right) = same.fold((0, 0), |(n, r), s| (n + 1, r + usize::from(s.1)));
            sum += right as f64 * (wrong as f64 + (count - right) as f64 / 2.0);
            wrong += count - right;
            start += count;
        }
        (rights * wrongs > 0).then(|| sum / (rights as f64 * wrongs as f64))
    }

    /// The report as JSON.
    pub fn json(&self) -> Value {
        let fields = self.fields.iter().map(|(name, counts)| (name.clone(), counts.json()));
        let bins = self.bins();
        let bins = bins.iter().filter(|bin| bin.values > 0);
        let bins: Vec<Value> = bins
            .map(|bin| json!({"values": bin.values, "sure": bin.sure, "right": bin.right}))
            .collect();
        json!({"name": self.name, "documents": self.documents, "failed": self.failed,
            "total": self.total.json(), "fields": fields.collect::<Map<String, Value>>(),
            "sureness": {"bins": bins, "separation": self.separation()}})
    }
}

/// A share as people read it.
pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// All reports as text: counts for each, and the shares side by side if there are several.
pub fn table(reports: &[Report]) -> String {
    let mut out = String::new();
    for report in reports {
        let width =
            report.fields.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(5);
        let Report { name, documents, failed, .. } = report;
        let _ = writeln!(out, "{name}: {documents} documents, {failed} without a value\n");
        let _ =
            writeln!(out, "{:width$}  right  wrong  missing  invented  empty    share", "field");
        let all = ("all".to_owned(), report.total);
        for (name, counts) in report.fields.iter().chain([&all]) {
            let Counts { right, wrong, missing, invented, empty } = counts;
            let share = percent(counts.share());
            let _ = writeln!(
                out,
                "{name:width$}  {right:5}  {wrong:5}  {missing:7}  {invented:8}  {empty:5}  {share:>7}"
            );
        }
        if let Some(separation) = report.separation() {
            let _ = writeln!(
                out,
                "\na right value is surer than a wrong one in {}",
                percent(Some(separation))
            );
        }
        out.push('\n');
    }
    if reports.len() > 1 {
        out.push_str(&side_by_side(reports));
    }
    out
}

fn side_by_side(reports: &[Report]) -> String {
    let mut out = String::from("share of right values\n\n");
    let names = names(reports);
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(5);
    let head: Vec<String> =
        reports.iter().map(|report| format!("{:>12.12}", report.name)).collect();
    let _ = writeln!(out, "{:width$}  {}", "field", head.join("  "));
    for name in names {
        let shares: Vec<String> =
            reports.iter().map(|report| format!("{:>12}", percent(share(report, name)))).collect();
        let _ = writeln!(out, "{name:width$}  {}", shares.join("  "));
    }
    let all: Vec<String> =
        reports.iter().map(|report| format!("{:>12}", percent(report.total.share()))).collect();
    let _ = writeln!(out, "{:width$}  {}", "all", all.join("  "));
    out
}

/// The fields of all reports.
pub fn names(reports: &[Report]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in reports.iter().flat_map(|report| &report.fields) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// The share of right ones of a field.
pub fn share(report: &Report, field: &str) -> Option<f64> {
    report.fields.iter().find(|(name, _)| name == field).and_then(|(_, counts)| counts.share())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separation_is_the_share_of_pairs() {
        let report = |sure: &[(f64, bool)]| Report { sure: sure.to_vec(), ..Report::default() };
        assert_eq!(report(&[(0.9, true), (0.1, false)]).separation(), Some(1.0));
        assert_eq!(report(&[(0.1, true), (0.9, false)]).separation(), Some(0.0));
        assert_eq!(report(&[(0.5, true), (0.5, false)]).separation(), Some(0.5));
        assert_eq!(report(&[(0.5, true)]).separation(), None);
        let sure =
            [(0.9, true), (0.8, false), (0.7, true), (0.7, false), (0.2, true), (0.1, false)];
        let mut sum = 0.0;
        for (p, _) in sure.iter().filter(|s| s.1) {
            for (q, _) in sure.iter().filter(|s| !s.1) {
                sum += if p > q {
                    1.0
                } else if p == q {
                    0.5
                } else {
                    0.0
                };
            }
        }
        assert_eq!(report(&sure).separation(), Some(sum / 9.0));
    }

    #[test]
    fn bins_hold_all_values() {
        let sure = vec![(0.0, false), (0.05, true), (0.99, true), (1.0, true)];
        let bins = Report { sure, ..Report::default() }.bins();
        assert_eq!(bins[0], Bin { values: 2, sure: 0.025, right: 0.5 });
        assert_eq!(bins[9].values, 2);
        assert_eq!(bins.iter().map(|bin| bin.values).sum::<usize>(), 4);
    }
}
