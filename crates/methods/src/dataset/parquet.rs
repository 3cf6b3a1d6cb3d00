//! Positions as Parquet: one row per position, one row group per group of games.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::row::{BOARD, BOARD_SHAPE, Extras, Row, SearchColumns};
use super::{DatasetError, Games, Output};

/// The columns of all positions, in the order of writing.
const COMMON: &str = "required int64 game;
    required int32 ply;
    required binary fen (UTF8);
    optional binary move (UTF8);
    required binary player (UTF8);
    optional int32 outcome;
    required binary result (UTF8);
    required binary reason (UTF8);";
/// The moves and shares of a policy are two lists of the same length.
const SEARCH: &str = "required float value;
    required float draw;
    repeated binary policy_moves (UTF8);
    repeated float policy_shares;";

impl Games<'_> {
    pub(super) fn write_parquet(
        self,
        extras: Extras,
        out: &mut Output<'_>,
    ) -> Result<u64, DatasetError> {
        let columns = match self {
            Games::Run(_) => SEARCH,
            Games::SelfPlay(_) => "required boolean opening;",
        };
        let board = if extras.board { "repeated int32 board;" } else { "" };
        let legal = if extras.legal { "repeated binary legal (UTF8);" } else { "" };
        let schema = format!("message position {{ {COMMON} {columns} {board} {legal} }}");
        let shape = BOARD_SHAPE.map(|size| size.to_string()).join(",");
        let metadata = extras.board.then(|| {
            vec![
                KeyValue::new("board.encoding".to_owned(), BOARD.name().to_owned()),
                KeyValue::new("board.version".to_owned(), BOARD.version().to_string()),
                KeyValue::new("board.shape".to_owned(), shape),
            ]
        });
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_key_value_metadata(metadata)
            .build();
        let schema = Arc::new(parse_message_type(&schema)?);
        let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
        let mut count = 0;
        for group in self.groups()? {
            let games = self.rows(group, extras)?;
            count += games.len() as u64;
            let rows: Vec<Row> = games.into_iter().flatten().collect();
            let mut group = file.next_row_group()?;
            write_common(&mut group, &rows)?;
            match self {
                Games::Run(_) => write_search(&mut group, &rows)?,
                Games::SelfPlay(_) => required::<BoolType, _>(&mut group, &rows, |row| {
                    row.is_opening.expect("every position of a self-play says so")
                })?,
            }
            if extras.board {
                repeated::<Int32Type, _>(&mut group, &rows, |row| {
                    row.board.iter().flatten().map(|&value| i32::from(value)).collect()
                })?;
            }
            if extras.legal {
                repeated::<ByteArrayType, _>(&mut group, &rows, |row| {
                    row.legal.iter().flatten().map(|uci| text(uci)).collect()
                })?;
            }
            group.close()?;
        }
        file.close()?;
        Ok(count)
    }
}

/// Writes one column after the other, in the order of [`COMMON`].
fn write_common<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
) -> Result<(), ParquetError> {
    required::<Int64Type, _>(group, rows, |row| row.game as i64)?;
    required::<Int32Type, _>(group, rows, |row| row.ply as i32)?;
    required::<ByteArrayType, _>(group, rows, |row| text(&row.fen))?;
    optional::<ByteArrayType, _>(group, rows, |row| row.played.as_deref().map(text))?;
    required::<ByteArrayType, _>(group, rows, |row| text(row.player))?;
    optional::<Int32Type, _>(group, rows, |row| row.outcome.map(i32::from))?;
    required::<ByteArrayType, _>(group, rows, |row| text(row.result))?;
    required::<ByteArrayType, _>(group, rows, |row| text(&row.reason))
}

/// Writes the columns of [`SEARCH`].
fn write_search<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
) -> Result<(), ParquetError> {
    fn search(row: &Row) -> &SearchColumns {
        row.search.as_ref().expect("every position of a run has the result of a search")
    }
    required::<FloatType, _>(group, rows, |row| search(row).value)?;
    required::<FloatType, _>(group, rows, |row| search(row).draw)?;
    repeated::<ByteArrayType, _>(group, rows, |row| {
        search(row).policy.iter().map(|(uci, _)| text(uci)).collect()
    })?;
    repeated::<FloatType, _>(group, rows, |row| {
        search(row).policy.iter().map(|(_, share)| *share).collect()
    })
}

fn text(text: &str) -> ByteArray {
    ByteArray::from(text.as_bytes().to_vec())
}

fn required<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
    value: impl Fn(&Row) -> T::T,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = rows.iter().map(value).collect();
    write_column::<T, W>(group, &values, None, None)
}

fn optional<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
    value: impl Fn(&Row) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let found: Vec<Option<T::T>> = rows.iter().map(value).collect();
    let definition: Vec<i16> = found.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = found.into_iter().flatten().collect();
    write_column::<T, W>(group, &values, Some(&definition), None)
}

fn repeated<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
    list: impl Fn(&Row) -> Vec<T::T>,
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

    use super::super::tests::{run, self_play};
    use super::super::{Format, Games};
    use super::*;

    fn read(games: Games<'_>, extras: Extras) -> SerializedFileReader<std::fs::File> {
        let mut file = tempfile::tempfile().unwrap();
        games.write(Format::Parquet, extras, &mut file).unwrap();
        SerializedFileReader::new(file).unwrap()
    }

    #[test]
    fn positions_of_a_run_round_trip_through_parquet() {
        let folder = tempfile::tempdir().unwrap();
        let run = run(folder.path());
        let reader = read(Games::Run(&run), Extras::default());
        assert_eq!(reader.metadata().num_row_groups(), 2);
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!((rows.len(), rows[3].len()), (4, 12));
        let row = &rows[3];
        assert_eq!((row.get_long(0).unwrap(), row.get_int(1).unwrap()), (3, 2));
        assert_eq!(row.get_string(3).unwrap(), "g2g4");
        assert_eq!((row.get_string(4).unwrap().as_str(), row.get_int(5).unwrap()), ("white", -1));
        assert_eq!(row.get_string(6).unwrap(), "0-1");
        // Stored values are rounded.
        assert!((row.get_float(8).unwrap() + 0.5).abs() < 1e-3);
        let (moves, shares) = (row.get_list(10).unwrap(), row.get_list(11).unwrap());
        assert_eq!((moves.len(), shares.get_float(0).unwrap()), (1, 1.0));
    }

    #[test]
    fn positions_of_a_self_play_have_boards_and_legal_moves_on_request() {
        let games = self_play();
        let reader = read(Games::SelfPlay(&games), Extras { board: true, legal: true });
        let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let shape = metadata.iter().find(|pair| pair.key == "board.shape").unwrap();
        assert_eq!(shape.value.as_deref(), Some("8,8,12"));
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        let opening: Vec<bool> = rows.iter().map(|row| row.get_bool(8).unwrap()).collect();
        assert_eq!(opening[..4], [true, true, false, false]);
        let (board, legal) = (rows[0].get_list(9).unwrap(), rows[0].get_list(10).unwrap());
        let pieces: i32 = (0..board.len()).map(|place| board.get_int(place).unwrap()).sum();
        assert_eq!((board.len(), pieces, legal.len()), (768, 32, 20));
        // The second game is truncated: it has no outcome.
        assert!(rows[4].get_int(5).is_err() && rows[4].get_string(6).unwrap() == "*");
    }
}
