//! The rows of a journal as a table: which columns there are, and what they can hold.
//!
//! By hand, the values `{"a": {"b": 1}, "tags": ["x"]}` and `{"a": {"b": 2.5, "c": null}}` make the columns `id`, `error`, `/a/b` (numbers)
//! and `/tags` (texts): objects are spread, lists are JSON texts, what is null or missing is empty and makes no
//! column. A value that is no object has the column `value`. Rows are read twice, so that memory does not grow with them.

use crate::extract::journal::Journal;
use crate::report::Failure;
use serde_json::Value;
use std::collections::HashMap;

/// What all values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// True or false.
    Boolean,
    /// Whole numbers of 64 bits, however they were spelled.
    Integer,
    /// Numbers.
    Number,
    /// Anything: strings as they are, all else as JSON.
    Text,
}

/// The largest whole number up to which a double has all of them.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Kind {
    /// What a value is.
    fn of(value: &Value) -> Self {
        match value {
            Value::Bool(_) => Self::Boolean,
            Value::Number(_) if integer(value).is_some() => Self::Integer,
            Value::Number(number) if number.is_f64() => Self::Number,
            _ => Self::Text,
        }
    }

    /// What holds a value of this kind, or of the other.
    fn or(self, value: &Value) -> Self {
        let other = Self::of(value);
        match (self, other) {
            (a, b) if a == b => a,
            // Whole numbers that a double would round are kept as they are.
            (Self::Number, Self::Integer) if is_exact(value) => Self::Number,
            (Self::Integer, Self::Number) => Self::Number,
            _ => Self::Text,
        }
    }
}

/// A whole number.
pub fn integer(value: &Value) -> Option<i64> {
    let whole = |number: &f64| number.fract() == 0.0 && number.abs() <= EXACT;
    value.as_i64().or_else(|| value.as_f64().filter(whole).map(|number| number as i64))
}

fn is_exact(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number.abs() <= EXACT)
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
    /// Whether a whole number in it is larger than a double can tell from its neighbours.
    is_large: bool,
}

/// Whoever takes the cells of rows.
pub type Each<'f> = dyn FnMut(&[Option<&Value>]) -> Result<(), Failure> + 'f;

/// The columns of a journal.
#[derive(Debug, Default)]
pub struct Table {
    pub columns: Vec<Column>,
    places: HashMap<String, usize>,
}

impl Table {
    /// The columns of the rows of a journal.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(journal: &Journal) -> Result<Self, Failure> {
        let mut table = Self::default();
        // Also of a table without rows.
        table.column("id");
        table.column("error");
        let mut kinds: Vec<Option<Kind>> = Vec::new();
        journal.for_each_row(&mut |row| {
            for (name, value) in cells(&row) {
                let at = table.column(&name);
                kinds.resize(table.columns.len(), None);
                if let (Some(kind), Some(column)) = (kinds.get_mut(at), table.columns.get_mut(at)) {
                    *kind = Some(kind.map_or(Kind::of(value), |kind| kind.or(value)));
                    column.is_large |= integer(value).is_some() && !is_exact(value);
                }
            }
            Ok(())
        })?;
        for (column, kind) in table.columns.iter_mut().zip(kinds) {
            column.kind = match kind {
                Some(Kind::Number) if column.is_large => Kind::Text,
                kind => kind.unwrap_or(Kind::Text),
            };
        }
        Ok(table)
    }

    fn column(&mut self, name: &str) -> usize {
        if let Some(&at) = self.places.get(name) {
            return at;
        }
        let at = self.columns.len();
        self.places.insert(name.to_owned(), at);
        self.columns.push(Column { name: name.to_owned(), kind: Kind::Text, is_large: false });
        at
    }

    /// Calls `f` with the cells of each row, one for each column.
    ///
    /// # Errors
    /// Those of `f`; the journal cannot be read.
    pub fn for_each_row(&self, journal: &Journal, f: &mut Each<'_>) -> Result<(), Failure> {
        journal.for_each_row(&mut |row| {
            let mut record = vec![None; self.columns.len()];
            for (name, value) in cells(&row) {
                if let Some(cell) = self.places.get(&name).and_then(|&at| record.get_mut(at)) {
                    *cell = Some(value);
                }
            }
            f(&record)
        })
    }
}

/// The cells of a row that are not empty, with the names of their columns, in order.
fn cells(row: &Value) -> Vec<(String, &Value)> {
    let fixed = ["id", "error"].map(|name| row.get(name).map(|value| (name.to_owned(), value)));
    let mut cells: Vec<(String, &Value)> = fixed.into_iter().flatten().collect();
    cells.retain(|(_, value)| !value.is_null());
    let mut open: Vec<(String, &Value)> =
        row.get("value").map(|value| (String::new(), value)).into_iter().collect();
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
            value if pointer.is_empty() => cells.push(("value".to_owned(), value)),
            value => cells.push((pointer, value)),
        }
    }
    cells
}

/// A value in a cell of text.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kind(values: &[Value]) -> Kind {
        let (first, others) = values.split_first().expect("a value");
        others.iter().fold(Kind::of(first), |kind, value| kind.or(value))
    }

    #[test]
    fn a_column_is_of_a_kind_that_holds_all_its_values() {
        for (values, expected) in [
            (vec![json!(true), json!(false)], Kind::Boolean),
            (vec![json!(1), json!(2.0), json!(-3)], Kind::Integer),
            (vec![json!(1), json!(2.5)], Kind::Number),
            (vec![json!(2.5), json!(1)], Kind::Number),
            (vec![json!(1), json!("a")], Kind::Text),
            (vec![json!(true), json!(1)], Kind::Text),
            (vec![json!(u64::MAX)], Kind::Text),
            (vec![json!(2.5), json!(i64::MAX)], Kind::Text),
            (vec![json!(1e300)], Kind::Number),
            (vec![json!([1])], Kind::Text),
        ] {
            assert_eq!(kind(&values), expected, "{values:?}");
        }
    }
}
