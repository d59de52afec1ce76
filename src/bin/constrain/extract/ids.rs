//! Ids that several rows share: legal, and hardly what was wanted, as nothing else tells their rows apart.
//!
//! Of the ids 7, 8, 7, 7 the first pair is told, rows 1 and 3, and that there is one more. Hashes are kept, not ids: 40
//! bytes for each row.

use crate::extract::docs::Doc;
use constrain::error::quote;
use serde_json::Value;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The ids that came so far.
#[derive(Debug, Default)]
pub struct Ids {
    lines: HashMap<blake3::Hash, u64>,
    /// The lines of the first two rows with the same id, and that id.
    pair: Option<(u64, u64, Value)>,
    /// Rows with the id of another before them.
    count: usize,
}

impl Ids {
    /// Takes the id of a row; files have names of their own.
    pub fn see(&mut self, doc: &Doc) {
        let Some(line) = doc.line else { return };
        match self.lines.entry(blake3::hash(doc.id.to_string().as_bytes())) {
            Entry::Vacant(place) => {
                place.insert(line);
            }
            Entry::Occupied(before) => {
                self.count += 1;
                self.pair.get_or_insert_with(|| (*before.get(), line, doc.id.clone()));
            }
        }
    }

    /// What is to be said of ids that came twice.
    pub fn warning(&self) -> Option<String> {
        let (before, line, id) = self.pair.as_ref()?;
        let id = match id {
            Value::String(text) => quote(text),
            other => quote(&other.to_string()).trim_matches('"').to_owned(),
        };
        let more = match self.count - 1 {
            0 => String::new(),
            more => format!(" ({more} more rows have the id of another)"),
        };
        Some(format!(
            "line {line} has the id of line {before}, {id}{more}; so will their rows of the output"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_pair_is_told_and_others_are_counted() {
        let mut ids = Ids::default();
        for (line, id) in [(1, json!(7)), (2, json!("7")), (4, json!(8))] {
            ids.see(&Doc { id, text: Ok(String::new()), key: String::new(), line: Some(line) });
            assert_eq!(ids.warning(), None);
        }
        let again = |ids: &mut Ids, line, id| {
            ids.see(&Doc { id, text: Ok(String::new()), key: String::new(), line });
            ids.warning().unwrap_or_default()
        };
        assert_eq!(again(&mut ids, None, json!(7)), "", "a file");
        let said = again(&mut ids, Some(5), json!("7"));
        assert_eq!(said, "line 5 has the id of line 2, \"7\"; so will their rows of the output");
        let said = again(&mut ids, Some(6), json!(7));
        assert!(said.starts_with("line 5 has the id of line 2, \"7\" (1 more rows"), "{said}");
    }
}
