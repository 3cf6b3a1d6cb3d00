//! Positions as Parquet: one row per position, one row group per chunk of games.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, FloatType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use selfmate_run::RunReader;

use super::{DatasetError, Example, Output, examples};

/// The columns in the order of writing. The moves and shares of a policy are two lists of the same
/// length.
const SCHEMA: &str = "message position {
    required int64 game;
    required int32 ply;
    required binary fen (UTF8);
    optional binary move (UTF8);
    required float value;
    required float draw;
    optional float result;
    repeated binary policy_moves (UTF8);
    repeated float policy_shares;
}";

/// Writes all recorded positions of a run as Parquet and returns the number of games.
pub fn write_parquet(run: &RunReader, out: &mut Output<'_>) -> Result<u64, DatasetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let zstd = Compression::ZSTD(ZstdLevel::default());
    let properties = Arc::new(WriterProperties::builder().set_compression(zstd).build());
    let mut file = SerializedFileWriter::new(out, schema, properties)?;
    let mut games = 0;
    for chunk in run.chunks()? {
        let records = run.read_chunk(chunk)?;
        games += records.len() as u64;
        let mut rows = Vec::new();
        for record in &records {
            rows.extend(examples(record)?);
        }
        let mut group = file.next_row_group()?;
        write_rows(&mut group, &rows)?;
        group.close()?;
    }
    file.close()?;
    Ok(games)
}

/// Writes one column after the other, in the order of [`SCHEMA`].
fn write_rows<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Example],
) -> Result<(), ParquetError> {
    let text = |text: &str| ByteArray::from(text.as_bytes().to_vec());
    required::<Int64Type, _>(group, rows, |row| row.game as i64)?;
    required::<Int32Type, _>(group, rows, |row| i32::from(row.ply))?;
    required::<ByteArrayType, _>(group, rows, |row| text(&row.fen))?;
    optional::<ByteArrayType, _>(group, rows, |row| row.played.as_deref().map(text))?;
    required::<FloatType, _>(group, rows, |row| row.value)?;
    required::<FloatType, _>(group, rows, |row| row.draw)?;
    optional::<FloatType, _>(group, rows, |row| row.result.map(|result| result as f32))?;
    repeated::<ByteArrayType, _>(group, rows, |row| {
        row.policy.iter().map(|(uci, _)| text(uci)).collect()
    })?;
    repeated::<FloatType, _>(group, rows, |row| {
        row.policy.iter().map(|(_, share)| *share).collect()
    })
}

fn required<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Example],
    value: impl Fn(&Example) -> T::T,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = rows.iter().map(value).collect();
    write_column::<T, W>(group, &values, None, None)
}

fn optional<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Example],
    value: impl Fn(&Example) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let found: Vec<Option<T::T>> = rows.iter().map(value).collect();
    let definition: Vec<i16> = found.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = found.into_iter().flatten().collect();
    write_column::<T, W>(group, &values, Some(&definition), None)
}

fn repeated<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Example],
    list: impl Fn(&Example) -> Vec<T::T>,
) -> Result<(), ParquetError> {
    let (mut values, mut definition, mut repetition) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let list = list(row);
        // An empty list still needs one level.
        let levels = list.len().max(1);
        definition.extend((0..levels).map(|_| i16::from(!list.is_empty())));
        repetition.extend((0..levels).map(|level| i16::from(level > 0)));
        values.extend(list);
    }
    write_column::<T, W>(group, &values, Some(&definition), Some(&repetition))
}

fn write_column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    definition: Option<&[i16]>,
    repetition: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("more columns than the schema has".to_owned()))?;
    column.typed::<T>().write_batch(values, definition, repetition)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{ListAccessor, RowAccessor};

    use super::super::tests::run;
    use super::*;

    #[test]
    fn positions_round_trip_through_parquet() {
        let folder = tempfile::tempdir().unwrap();
        let run = run(folder.path());
        let path = folder.path().join("positions.parquet");
        let mut out = std::fs::File::create(&path).unwrap();
        assert_eq!(write_parquet(&run, &mut out).unwrap(), 4);
        let file = std::fs::File::open(&path).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 2);
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 4);
        let row = &rows[3];
        assert_eq!((row.get_long(0).unwrap(), row.get_int(1).unwrap()), (3, 2));
        assert_eq!(row.get_string(3).unwrap(), "g2g4");
        // Stored values are rounded.
        assert!((row.get_float(4).unwrap() + 0.5).abs() < 1e-3);
        assert_eq!(row.get_float(6).unwrap(), -1.0);
        let (moves, shares) = (row.get_list(7).unwrap(), row.get_list(8).unwrap());
        assert_eq!((moves.len(), shares.get_float(0).unwrap()), (1, 1.0));
    }
}
