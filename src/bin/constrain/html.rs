//! Pages that stand alone: a head with all the style, and a body.

use crate::report::Failure;
use std::path::Path;

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}\
h1,h2{font-weight:600}h2{font-size:1.1em;margin:0}section{border-top:1px solid #ccc;padding:1em 0}\
table{border-collapse:collapse;margin:.5em 0}th,td{text-align:left;padding:.1em .8em .1em 0;vertical-align:top}\
td.n,th.n{text-align:right}pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f6f6f6;padding:.6em;margin:.5em 0}\
mark{background:#ffe28a}.weak td{background:#fde8e8}.error{color:#a00}";

/// A page on its way.
pub struct Page {
    title: &'static str,
    /// What stands below the title; whoever writes here escapes what is not their own.
    pub body: String,
}

impl Page {
    /// An empty page.
    pub fn new(title: &'static str) -> Self {
        Self { title, body: String::new() }
    }

    /// Writes it to a file.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let Self { title, body } = self;
        let html = format!(
            "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>\
             <style>{STYLE}</style><h1>{title}</h1>{body}</html>\n"
        );
        std::fs::write(path, html).map_err(|error| Failure::io("write", path, &error))
    }
}

/// A text as it stands in a page, also within quotes.
pub fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
