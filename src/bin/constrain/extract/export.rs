//! The output as a table in a file: CSV, or Parquet (feature `parquet`). A column per field, as `table` finds them.

use crate::extract::journal::Journal;
use crate::extract::table::{Table, text};
use crate::report::Failure;
use constrain::error::quote;
use std::path::{Path, PathBuf};

/// Writes the rows of a journal as CSV; the file appears when it is whole.
pub fn csv(journal: &Journal, out: &Path) -> Result<(), Failure> {
    let table = Table::of(journal)?;
    whole(out, &|new| {
        let failure = |error: csv::Error| cannot_write(new, &error);
        let mut writer = csv::Writer::from_path(new).map_err(failure)?;
        writer.write_record(table.columns.iter().map(|column| &column.name)).map_err(failure)?;
        table.for_each_row(journal, &mut |row| {
            let record = row.iter().map(|cell| cell.map(text).unwrap_or_default());
            writer.write_record(record).map_err(failure)
        })?;
        writer.flush().map_err(|error| Failure::io("write", new, &error))
    })
}

/// Writes a file under another name, which it loses when it is whole.
pub fn whole(out: &Path, write: &dyn Fn(&Path) -> Result<(), Failure>) -> Result<(), Failure> {
    let new: PathBuf = super::beside(out, ".new");
    write(&new)?;
    std::fs::rename(&new, out).map_err(|error| Failure::io("write", out, &error))
}

/// That a file cannot be written, as a library says.
pub fn cannot_write(path: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", quote(&path.to_string_lossy())))
}
