//! The output as a Parquet file: one optional column per field, of the type that holds all its values.
//!
//! Rows are written in groups, so that memory does not grow with them. Whole numbers are `INT64`, other numbers `DOUBLE`, truth
//! values `BOOLEAN`, all else strings: texts as they are, lists as JSON.

use crate::extract::export::{cannot_write, whole};
use crate::extract::journal::Journal;
use crate::extract::table::{Column, Kind, Table, integer, text};
use crate::report::Failure;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Rows of a group.
const GROUP: usize = 10_000;

/// Writes the rows of a journal; the file appears when it is whole.
pub fn write(journal: &Journal, out: &Path) -> std::result::Result<(), Failure> {
    let table = Table::of(journal)?;
    whole(out, &|new| {
        let file = File::create(new).map_err(|error| Failure::io("write", new, &error))?;
        let failure = |error| cannot_write(new, &error);
        let schema = schema(&table.columns).map_err(failure)?;
        let properties =
            WriterProperties::builder().set_compression(Compression::SNAPPY).build().into();
        let mut writer =
            SerializedFileWriter::new(file, Arc::new(schema), properties).map_err(failure)?;
        let mut group: Vec<Vec<Option<Value>>> = vec![Vec::new(); table.columns.len()];
        table.for_each_row(journal, &mut |row| {
            group.iter_mut().zip(row).for_each(|(column, cell)| column.push(cell.cloned()));
            match group.first().is_some_and(|column| column.len() == GROUP) {
                true => write_group(&mut writer, &table.columns, &mut group).map_err(failure),
                false => Ok(()),
            }
        })?;
        write_group(&mut writer, &table.columns, &mut group).map_err(failure)?;
        writer.close().map(|_| ()).map_err(failure)
    })
}

fn schema(columns: &[Column]) -> Result<Type> {
    let fields = columns.iter().map(|column| {
        let (physical, logical) = match column.kind {
            Kind::Boolean => (Physical::BOOLEAN, None),
            Kind::Integer => (Physical::INT64, None),
            Kind::Number => (Physical::DOUBLE, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(&column.name, physical)
            .with_logical_type(logical)
            .with_repetition(Repetition::OPTIONAL);
        field.build().map(Arc::new)
    });
    Type::group_type_builder("row").with_fields(fields.collect::<Result<_>>()?).build()
}

/// Writes the rows that were gathered, if there are any.
fn write_group(
    writer: &mut SerializedFileWriter<File>,
    columns: &[Column],
    group: &mut [Vec<Option<Value>>],
) -> Result<()> {
    if group.first().is_none_or(Vec::is_empty) {
        return Ok(());
    }
    let mut rows = writer.next_row_group()?;
    for (column, cells) in columns.iter().zip(group) {
        let Some(mut out) = rows.next_column()? else { break };
        let cells = std::mem::take(cells);
        match column.kind {
            Kind::Boolean => fill::<BoolType>(&mut out, &cells, Value::as_bool)?,
            Kind::Integer => fill::<Int64Type>(&mut out, &cells, integer)?,
            Kind::Number => fill::<DoubleType>(&mut out, &cells, Value::as_f64)?,
            Kind::Text => fill::<ByteArrayType>(&mut out, &cells, |value| {
                Some(ByteArray::from(text(value).into_bytes()))
            })?,
        }
        out.close()?;
    }
    rows.close().map(|_| ())
}

/// Writes the cells of a column: 1 for each that has a value, 0 for each that has none, and the values.
fn fill<T: DataType>(
    out: &mut SerializedColumnWriter<'_>,
    cells: &[Option<Value>],
    value: impl Fn(&Value) -> Option<T::T>,
) -> Result<()> {
    let values: Vec<Option<T::T>> =
        cells.iter().map(|cell| cell.as_ref().and_then(&value)).collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    out.typed::<T>().write_batch(&values, Some(&levels), None).map(|_| ())
}
