//! `--html`: a page for the eye that checks. Each document with its values, the least sure ones first, and the
//! places in the text that they are from.
//!
//! The page needs nothing else: no script, nothing from elsewhere. Everything from documents is escaped.

use crate::extract::docs::Docs;
use crate::extract::journal::Journal;
use crate::html::{Page, escape};
use crate::report::Failure;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::path::Path;

/// Documents that are shown: the least sure.
const SHOWN_MAX: usize = 500;

/// Characters of a document that are shown.
const CHARS_MAX: usize = 20_000;

/// Writes the page for the rows of a journal.
pub fn write(docs: &Docs, journal: &Journal, out: &Path) -> Result<(), Failure> {
    let mut rows: HashMap<String, Value> = HashMap::new();
    let mut order: Vec<(f64, String)> = Vec::new();
    journal.for_each_row(&mut |row| {
        order.push((weakest(&row), row["key"].as_str().unwrap_or_default().to_owned()));
        Ok(())
    })?;
    let total = order.len();
    // Stable: equally sure ones stay in their order.
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    order.truncate(SHOWN_MAX);
    let places: HashMap<&str, usize> =
        order.iter().enumerate().map(|(place, (_, key))| (key.as_str(), place)).collect();
    journal.for_each_row(&mut |row| {
        let key = row["key"].as_str().unwrap_or_default().to_owned();
        if places.contains_key(key.as_str()) {
            rows.insert(key, row);
        }
        Ok(())
    })?;
    let mut sections = vec![String::new(); order.len()];
    for doc in docs.open()? {
        let doc = doc?;
        if let (Some(&place), Some(row)) = (places.get(doc.key.as_str()), rows.get(&doc.key)) {
            sections[place] = section(row, doc.text.as_deref().unwrap_or_default());
        }
    }
    let mut page = Page::new("Review");
    let _ = write!(
        page.body,
        "<p>{} of {total} documents, the least sure first. Figures are the model's own, not calibrated.</p>",
        order.len()
    );
    page.body.push_str(&sections.concat());
    page.write(out)
}

/// The least probability of a field; errors come first.
fn weakest(row: &Value) -> f64 {
    if row.get("error").is_some() {
        return -1.0;
    }
    let fields = row["fields"].as_object();
    let figures = fields.into_iter().flatten().filter_map(|(_, field)| field["p"].as_f64());
    figures.fold(1.0, f64::min)
}

/// A document with its values.
fn section(row: &Value, text: &str) -> String {
    let mut html = format!("<section><h2>{}</h2>", escape(&plain(&row["id"])));
    if let Some(error) = row["error"].as_str() {
        let _ = write!(html, "<p class=error>{}</p>", escape(error));
    }
    let empty = serde_json::Map::new();
    let fields = row["fields"].as_object().unwrap_or(&empty);
    let mut weak: Vec<(&String, &Value)> = fields.iter().collect();
    let p = |field: &Value| field["p"].as_f64().unwrap_or(1.0);
    weak.sort_by(|a, b| p(a.1).total_cmp(&p(b.1)));
    if !weak.is_empty() {
        html.push_str("<table><tr><th>field<th>value<th>sure<th>kept<th>asked again");
        for (pointer, field) in &weak {
            let value = row["value"].pointer(pointer).unwrap_or(&Value::Null);
            let figure =
                |name: &str| field[name].as_f64().map_or(String::new(), |p| format!("{p:.3}"));
            let is_weak = p(field) < 0.5 || field["doubtful"] == true;
            let class = if is_weak { " class=weak" } else { "" };
            let _ = write!(
                html,
                "<tr{class}><td>{}<td>{}<td>{}<td>{}<td>{}",
                escape(pointer),
                escape(&plain(value)),
                figure("p"),
                figure("kept"),
                escape(&told(field))
            );
        }
        html.push_str("</table>");
    } else if row.get("value").is_some() {
        let value = serde_json::to_string_pretty(&row["value"]).unwrap_or_default();
        let _ = write!(html, "<pre>{}</pre>", escape(&value));
    }
    let _ = write!(html, "<pre>{}</pre></section>", marked(text, fields));
    html
}

/// Who gave a value, if it was asked for again, and what else was answered.
fn told(field: &Value) -> String {
    let earlier = field["earlier"].as_array().map(Vec::as_slice).unwrap_or_default();
    let others = earlier.iter().map(|answer| {
        let p = answer["p"].as_f64().unwrap_or_default();
        format!("{}: {} ({p:.3})", plain(&answer["by"]), plain(&answer["value"]))
    });
    field["by"].as_str().map(str::to_owned).into_iter().chain(others).collect::<Vec<_>>().join("; ")
}

/// The text with the best place of each field marked. Places that overlap are one mark.
fn marked(text: &str, fields: &serde_json::Map<String, Value>) -> String {
    let mut marks: BTreeMap<usize, (usize, Vec<&str>)> = BTreeMap::new();
    for (pointer, field) in fields {
        let place = |at: usize| field["at"][0][at].as_u64().and_then(|n| usize::try_from(n).ok());
        if let (Some(start), Some(end)) = (place(0), place(1)) {
            let mark = marks.entry(start).or_default();
            mark.0 = mark.0.max(end);
            mark.1.push(pointer);
        }
    }
    let (mut html, mut end) = (String::new(), None);
    for (at, c) in text.chars().take(CHARS_MAX).enumerate() {
        if end == Some(at) {
            html.push_str("</mark>");
            end = None;
        }
        if let (None, Some((until, names))) = (end, marks.get(&at))
            && *until > at
        {
            let _ = write!(html, "<mark title=\"{}\">", escape(&names.join(" ")));
            end = Some(*until);
        }
        html.push_str(&escape(c.encode_utf8(&mut [0; 4])));
    }
    if end.is_some() {
        html.push_str("</mark>");
    }
    if text.chars().nth(CHARS_MAX).is_some() {
        html.push('…');
    }
    html
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn places_are_marked_and_everything_is_escaped() {
        let fields = json!({"/a": {"at": [[2, 4], [9, 11]]}, "/b": {"at": [[3, 6]]}, "/c": {"at": [[7, 8]]},
            "/d": {"p": 0.5}});
        let html = marked("a <é>b& c", fields.as_object().expect("an object"));
        assert_eq!(html, "a <mark title=\"/a\">&lt;é</mark>&gt;b&amp;<mark title=\"/c\"> </mark>c");
    }

    #[test]
    fn errors_and_weak_fields_come_first() {
        assert_eq!(weakest(&json!({"error": "x"})), -1.0);
        let row = json!({"value": {}, "fields": {"/a": {"p": 0.9, "by": "<big>", "doubtful": true,
            "earlier": [{"by": "document", "value": 7, "p": 0.25}]}, "/b": {"p": 0.2}, "/c": {}}});
        assert_eq!(weakest(&row), 0.2);
        let html = section(&row, "<script>");
        assert!(html.find("/b") < html.find("/a") && !html.contains("<script>"), "{html}");
        assert!(html.contains("<td>&lt;big&gt;; document: 7 (0.250)"), "{html}");
    }
}
