//! `--html`: the tables and, for each report, the plot of sureness against correctness.

use crate::eval::report::{Counts, Report, names, percent, share};
use crate::html::{Page, escape};
use crate::report::Failure;
use std::fmt::Write;
use std::path::Path;

/// Writes the page.
pub fn write(reports: &[Report], out: &Path) -> Result<(), Failure> {
    let mut page = Page::new("Evaluation");
    if reports.len() > 1 {
        page.body.push_str(&side_by_side(reports));
    }
    for report in reports {
        let Report { name, documents, failed, .. } = report;
        let _ = write!(
            page.body,
            "<section><h2>{}</h2><p>{documents} documents, {failed} without a value</p>{}{}</section>",
            escape(name),
            table(report),
            plot(report)
        );
    }
    page.write(out)
}

fn side_by_side(reports: &[Report]) -> String {
    let mut html = String::from("<section><h2>Share of right values</h2><table><tr><th>field");
    for report in reports {
        let _ = write!(html, "<th class=n>{}", escape(&report.name));
    }
    for name in names(reports) {
        let _ = write!(html, "<tr><td>{}", escape(name));
        for report in reports {
            let _ = write!(html, "<td class=n>{}", percent(share(report, name)));
        }
    }
    html.push_str("<tr><th>all");
    for report in reports {
        let _ = write!(html, "<th class=n>{}", percent(report.total.share()));
    }
    html.push_str("</table></section>");
    html
}

fn table(report: &Report) -> String {
    let mut html = String::from("<table><tr><th>field");
    for name in ["right", "wrong", "missing", "invented", "empty", "share"] {
        let _ = write!(html, "<th class=n>{name}");
    }
    let all = ("all".to_owned(), report.total);
    for (name, counts) in report.fields.iter().chain([&all]) {
        let Counts { right, wrong, missing, invented, empty } = counts;
        let _ = write!(html, "<tr><td>{}", escape(name));
        for count in [right, wrong, missing, invented, empty] {
            let _ = write!(html, "<td class=n>{count}");
        }
        let _ = write!(html, "<td class=n>{}", percent(counts.share()));
    }
    html.push_str("</table>");
    html
}

/// The plot: a dot per tenth of sureness, as large as it has values; on the line, sureness would be the share of
/// right ones.
fn plot(report: &Report) -> String {
    let total = report.sure.len();
    if total == 0 {
        return String::new();
    }
    let (side, edge) = (300.0, 40.0);
    let x = |share: f64| edge + share * side;
    let y = |share: f64| edge / 2.0 + (1.0 - share) * side;
    let mut svg = format!(
        "<svg viewBox=\"0 0 360 370\" width=360 height=370 role=img font-size=11>\
         <title>Sureness against correctness</title>\
         <rect x={edge} y={} width={side} height={side} fill=none stroke=#999 />\
         <line x1={} y1={} x2={} y2={} stroke=#bbb />",
        edge / 2.0,
        x(0.0),
        y(0.0),
        x(1.0),
        y(1.0)
    );
    for tenth in 0..=5 {
        let share = f64::from(tenth) / 5.0;
        let _ = write!(
            svg,
            "<text x={} y={} text-anchor=middle>{share:.1}</text>\
             <text x={} y={} text-anchor=end>{share:.1}</text>",
            x(share),
            y(0.0) + 15.0,
            x(0.0) - 6.0,
            y(share) + 4.0
        );
    }
    for bin in report.bins().iter().filter(|bin| bin.values > 0) {
        let radius = 2.0 + 14.0 * (bin.values as f64 / total as f64).sqrt();
        let _ = write!(
            svg,
            "<circle cx={:.1} cy={:.1} r={radius:.1} fill=#36c fill-opacity=.6>\
             <title>{} values, sure {:.3}, right {:.3}</title></circle>",
            x(bin.sure),
            y(bin.right),
            bin.values,
            bin.sure,
            bin.right
        );
    }
    let _ = write!(
        svg,
        "<text x={} y=362 text-anchor=middle>how sure ({total} values)</text>\
         <text transform=\"translate(11 {}) rotate(-90)\" text-anchor=middle>share of right ones</text></svg>",
        x(0.5),
        y(0.5)
    );
    if let Some(separation) = report.separation() {
        let share = percent(Some(separation));
        let _ = write!(svg, "<p>A right value is surer than a wrong one in {share} of pairs.</p>");
    }
    svg
}
