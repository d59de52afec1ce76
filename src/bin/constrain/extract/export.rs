//! The output as a table: a column per field.
//!
//! By hand, the values `{"a": {"b": 1}, "tags": ["x"]}` and `{"a": {"c": null}}` make the columns `id`, `error`, `/a/b`, `/tags`,
//! `/a/c`: objects are spread, lists are JSON texts, what is null or missing is empty. The rows are read twice, so that memory
//! does not grow with them.

use crate::extract::journal::for_each_row;
use crate::report::Failure;
use constrain::error::quote;
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Writes the rows of a journal as CSV; the file appears when it is whole.
pub fn csv(journal: &Path, out: &Path) -> Result<(), Failure> {
    let mut columns: Vec<String> = vec!["id".to_owned(), "error".to_owned()];
    let mut places: HashMap<String, usize> = HashMap::new();
    for_each_row(journal, &mut |row| {
        for (pointer, _) in cells(&row["value"]) {
            if !places.contains_key(&pointer) {
                places.insert(pointer.clone(), columns.len());
                columns.push(pointer);
            }
        }
        Ok(())
    })?;
    let new: PathBuf = super::beside(out, ".new");
    let failure = |error: csv::Error| {
        Failure::new(format!("cannot write {}: {error}", quote(&new.to_string_lossy())))
    };
    let mut writer = csv::Writer::from_path(&new).map_err(failure)?;
    writer.write_record(&columns).map_err(failure)?;
    for_each_row(journal, &mut |row| {
        let mut record = vec![String::new(); columns.len()];
        record[0] = text(&row["id"]);
        record[1] = text(&row["error"]);
        for (pointer, value) in cells(&row["value"]) {
            if let Some(cell) = places.get(&pointer).and_then(|&at| record.get_mut(at)) {
                *cell = text(value);
            }
        }
        writer.write_record(&record).map_err(failure)
    })?;
    writer.flush().map_err(|error| Failure::io("write", &new, &error))?;
    drop(writer);
    std::fs::rename(&new, out).map_err(|error| Failure::io("write", out, &error))
}

/// The values of a row that are no objects, with their pointers, in order.
fn cells(value: &Value) -> Vec<(String, &Value)> {
    let (mut cells, mut open) = (Vec::new(), vec![(String::new(), value)]);
    while let Some((pointer, value)) = open.pop() {
        match value {
            Value::Null => {}
            Value::Object(members) => {
                let token = |key: &str| key.replace('~', "~0").replace('/', "~1");
                let inner = |(key, value)| (format!("{pointer}/{}", token(key)), value);
                let members: Vec<(String, &Value)> =
                    members.iter().map(|(key, value)| inner((key.as_str(), value))).collect();
                open.extend(members.into_iter().rev());
            }
            value => cells.push((pointer, value)),
        }
    }
    cells
}

/// A value in a cell.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}
