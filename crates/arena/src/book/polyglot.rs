//! Polyglot books: 16-byte records, big-endian, sorted by key.
//!
//! A record is key, move, weight and four bytes that programs use differently (written as zero). A
//! move holds its files and ranks in three bits each, then the promotion piece; castling is written
//! as king takes rook.

use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use selfmate_chess::polyglot::polyglot_key;
use selfmate_chess::{Chess, Move, Rng};
use selfmate_run::atomic_file;
use selfmate_uci::UciMove;

use super::BookError;
use selfmate_run::bounded_file;

/// The records of a book, sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolyglotBook {
    records: Vec<Record>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    key: u64,
    code: u16,
    weight: u16,
}

const RECORD: usize = 16;
/// The largest file that is read: 64 million moves.
const MAX_BYTES: u64 = 1 << 30;

enum ReadError {
    Io(io::Error),
    Content(String),
}

impl Record {
    fn new(bytes: &[u8; RECORD]) -> Record {
        let part = |from: usize, to: usize| {
            bytes[from..to].iter().fold(0u64, |value, &byte| value << 8 | u64::from(byte))
        };
        Record { key: part(0, 8), code: part(8, 10) as u16, weight: part(10, 12) as u16 }
    }
}

impl PolyglotBook {
    pub fn read(path: &Path) -> Result<PolyglotBook, BookError> {
        let io = |error| BookError::Io { file: path.to_owned(), error };
        let input = BufReader::new(bounded_file::open(path, MAX_BYTES).map_err(io)?);
        PolyglotBook::read_from(input).map_err(|error| match error {
            ReadError::Io(error) => io(error),
            ReadError::Content(reason) => BookError::Polyglot { file: path.to_owned(), reason },
        })
    }

    pub fn parse(bytes: &[u8]) -> Result<PolyglotBook, String> {
        PolyglotBook::read_from(bytes).map_err(|error| match error {
            ReadError::Io(error) => error.to_string(),
            ReadError::Content(reason) => reason,
        })
    }

    /// Stops at the first invalid record: a file that is not a book may have no end, such as a
    /// device.
    fn read_from(mut input: impl Read) -> Result<PolyglotBook, ReadError> {
        let mut records: Vec<Record> = Vec::new();
        let mut bytes = Vec::with_capacity(RECORD);
        loop {
            bytes.clear();
            input.by_ref().take(RECORD as u64).read_to_end(&mut bytes).map_err(ReadError::Io)?;
            let Ok(record) = <[u8; RECORD]>::try_from(bytes.as_slice()) else { break };
            let number = records.len() + 1;
            let wrong = |what| ReadError::Content(format!("record {number} {what}"));
            // Books are sorted by key, so a first record of zeros means that this is not a book.
            if number == 1 && record == [0; RECORD] {
                return Err(wrong("is empty: expected a Polyglot book"));
            }
            let record = Record::new(&record);
            // 0 to 4 encode the promotion; the highest bit is never set.
            if record.code >> 12 > 4 {
                return Err(wrong("is not a move: expected a Polyglot book"));
            }
            records.try_reserve(1).map_err(|error| ReadError::Io(error.into()))?;
            records.push(record);
        }
        if !bytes.is_empty() || records.is_empty() {
            let length = records.len() * RECORD + bytes.len();
            return Err(ReadError::Content(format!(
                "{length} bytes: expected records of 16 bytes"
            )));
        }
        // Some programs write unsorted books.
        records.sort_by_key(|record| record.key);
        Ok(PolyglotBook { records })
    }

    /// The bytes of a file, sorted by key; the move with the largest weight of a position comes
    /// first.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut records = self.records.clone();
        records.sort_by_key(|record| (record.key, std::cmp::Reverse(record.weight), record.code));
        let mut bytes = Vec::with_capacity(16 * records.len());
        for record in records {
            bytes.extend(record.key.to_be_bytes());
            bytes.extend(record.code.to_be_bytes());
            bytes.extend(record.weight.to_be_bytes());
            bytes.extend([0; 4]);
        }
        bytes
    }

    /// Writes the file atomically.
    pub fn write(&self, path: &Path) -> Result<(), BookError> {
        atomic_file::write_with(path, |out| out.write_all(&self.to_bytes()))
            .map_err(|error| BookError::Io { file: path.to_owned(), error })
    }

    pub fn add(&mut self, position: &Chess, m: Move, weight: u16) {
        let record = Record { key: polyglot_key(position), code: encode(m), weight };
        let place = self.records.partition_point(|other| other.key <= record.key);
        self.records.insert(place, record);
    }

    /// Merges two books; the weights of the same move are added.
    #[must_use]
    pub fn merged(&self, other: &PolyglotBook) -> PolyglotBook {
        let mut records: Vec<Record> = self.records.iter().chain(&other.records).copied().collect();
        records.sort_by_key(|record| (record.key, record.code));
        records.dedup_by(|later, first| {
            let is_same = (later.key, later.code) == (first.key, first.code);
            if is_same {
                first.weight = first.weight.saturating_add(later.weight);
            }
            is_same
        });
        PolyglotBook { records }
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub fn positions(&self) -> usize {
        self.records.chunk_by(|a, b| a.key == b.key).count()
    }

    /// The legal book moves of a position with their weights.
    pub fn moves(&self, position: &Chess) -> Vec<(Move, u16)> {
        let key = polyglot_key(position);
        let first = self.records.partition_point(|record| record.key < key);
        let found = self.records[first..].iter().take_while(|record| record.key == key);
        found.filter_map(|record| Some((decode(position, record.code)?, record.weight))).collect()
    }

    /// Draws a book move with probability proportional to its weight; `None` without a move of
    /// positive weight.
    pub fn draw(&self, position: &Chess, rng: &mut Rng) -> Option<Move> {
        let moves = self.moves(position);
        let total: u64 = moves.iter().map(|(_, weight)| u64::from(*weight)).sum();
        // A weight of zero marks a known move that must not be played.
        let mut left = rng.below(usize::try_from(total).ok().filter(|total| *total > 0)?) as u64;
        moves.into_iter().find_map(|(m, weight)| match left.checked_sub(u64::from(weight)) {
            Some(rest) => {
                left = rest;
                None
            }
            None => Some(m),
        })
    }
}

fn encode(m: Move) -> u16 {
    let square = |square: selfmate_chess::Square| u32::from(square) as u16;
    let promotion = m.promotion().map_or(0, |role| role as u16 - 1);
    square(m.to()) | m.from().map_or(0, square) << 6 | promotion << 12
}

fn decode(position: &Chess, code: u16) -> Option<Move> {
    let square = |file: u16, rank: u16| {
        let (file, rank) = (code >> file & 7, code >> rank & 7);
        format!("{}{}", char::from(b'a' + file as u8), rank + 1)
    };
    let promotion = ["", "n", "b", "r", "q"].get(usize::from(code >> 12 & 7))?;
    let text = format!("{}{}{promotion}", square(6, 9), square(0, 3));
    UciMove::from_ascii(text.as_bytes()).ok()?.to_move(position).ok()
}

#[cfg(test)]
mod tests {
    use selfmate_chess::fen::parse_fen;
    use selfmate_chess::{Game, Position, Seed, notation};

    use super::*;

    fn record(position: &Chess, from: (u16, u16), to: (u16, u16), weight: u16) -> Vec<u8> {
        let code = to.0 | to.1 << 3 | from.0 << 6 | from.1 << 9;
        let mut bytes = polyglot_key(position).to_be_bytes().to_vec();
        bytes.extend(code.to_be_bytes());
        bytes.extend(weight.to_be_bytes());
        bytes.extend([0; 4]);
        bytes
    }

    #[test]
    fn books_are_read_including_castling() {
        let start = Chess::default();
        let mut game = Game::new();
        for san in ["e4", "e5", "Nf3", "Nc6", "Bc4", "Bc5"] {
            game.play(notation::parse_san(game.position(), san).unwrap()).unwrap();
        }
        let castle = game.position();
        let mut bytes = record(castle, (4, 0), (7, 0), 5);
        bytes.extend(record(&start, (4, 1), (4, 3), 7));
        bytes.extend(record(&start, (3, 1), (3, 3), 2));
        bytes.extend(record(&start, (3, 1), (3, 6), 2));
        let book = PolyglotBook::parse(&bytes).unwrap();
        let sans = |position: &Chess| -> Vec<String> {
            book.moves(position).iter().map(|(m, _)| notation::san(position, *m)).collect()
        };
        assert_eq!(sans(castle), ["O-O"]);
        assert_eq!(sans(&start), ["e4", "d4"], "d2d7 is not legal");
        assert_eq!((book.len(), book.positions()), (4, 2));
        assert!(PolyglotBook::parse(&bytes[1..]).is_err() && PolyglotBook::parse(&[]).is_err());
        let text = b"A text, not book A text, no book";
        let error = PolyglotBook::parse(text).unwrap_err();
        assert_eq!(error, "record 1 is not a move: expected a Polyglot book");
    }

    #[test]
    fn every_legal_move_is_written_and_read() {
        let fens = [
            "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
            "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R b KQkq - 0 1",
            "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
            "8/8/8/2k5/2pP4/8/B7/4K3 b - d3 0 3",
        ];
        let mut book = PolyglotBook::default();
        for fen in fens {
            let position = parse_fen(fen).unwrap();
            for (index, m) in position.legal_moves().into_iter().enumerate() {
                book.add(&position, m, index as u16 + 1);
            }
        }
        let bytes = book.to_bytes();
        let read = PolyglotBook::parse(&bytes).unwrap();
        assert_eq!(read.to_bytes(), bytes);
        for fen in fens {
            let position = parse_fen(fen).unwrap();
            let legal = position.legal_moves();
            let mut found = read.moves(&position);
            found.sort_by_key(|(_, weight)| *weight);
            assert_eq!(found.iter().map(|(m, _)| *m).collect::<Vec<_>>(), legal.to_vec(), "{fen}");
        }
        let keys: Vec<&[u8]> = bytes.chunks(16).map(|record| &record[..8]).collect();
        assert!(keys.is_sorted());
    }

    #[test]
    fn the_error_for_a_missing_book_names_the_file() {
        let error = PolyglotBook::read(Path::new("nowhere.bin")).unwrap_err().to_string();
        assert!(error.starts_with("book nowhere.bin: "), "{error}");
    }

    #[test]
    fn endless_and_oversized_files_are_rejected() {
        let endless = |byte| match PolyglotBook::read_from(io::repeat(byte)) {
            Err(ReadError::Content(reason)) => reason,
            Err(ReadError::Io(error)) => panic!("{error}"),
            Ok(_) => panic!("a book of {byte}"),
        };
        assert_eq!(endless(0), "record 1 is empty: expected a Polyglot book");
        assert_eq!(endless(0xFF), "record 1 is not a move: expected a Polyglot book");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.bin");
        std::fs::File::create(&path).unwrap().set_len(MAX_BYTES + 16).unwrap();
        let error = PolyglotBook::read(&path).unwrap_err().to_string();
        assert!(error.ends_with("more than 1024 MB, which is the most that is read"), "{error}");
    }

    #[test]
    fn the_start_position_is_written_as_the_format_specifies() {
        let start = Chess::default();
        let mut book = PolyglotBook::default();
        book.add(&start, notation::parse_san(&start, "e4").unwrap(), 0x1234);
        // The key of the start position from the format's home page; e2e4 is 0o1434.
        let expected = [0x463b_9618_1691_fc9c_u64.to_be_bytes(), [3, 0x1C, 0x12, 0x34, 0, 0, 0, 0]];
        assert_eq!(book.to_bytes(), expected.concat());
    }

    #[test]
    fn moves_are_drawn_by_weight_and_merging_adds_weights() {
        let start = Chess::default();
        let m = |san: &str| notation::parse_san(&start, san).unwrap();
        let mut book = PolyglotBook::default();
        book.add(&start, m("e4"), 3);
        book.add(&start, m("d4"), 1);
        book.add(&start, m("a4"), 0);
        let mut rng = Seed::new(1).rng();
        let drawn: Vec<Move> = (0..1000).filter_map(|_| book.draw(&start, &mut rng)).collect();
        let share = drawn.iter().filter(|d| **d == m("e4")).count();
        assert!(drawn.len() == 1000 && (700..800).contains(&share), "{share}");
        assert!(!drawn.contains(&m("a4")));
        let mut other = PolyglotBook::default();
        other.add(&start, m("d4"), 65_535);
        other.add(&start, m("c4"), 2);
        let mut weights: Vec<(String, u16)> = book
            .merged(&other)
            .moves(&start)
            .into_iter()
            .map(|(m, weight)| (notation::san(&start, m), weight))
            .collect();
        weights.sort();
        let expected = [("a4", 0), ("c4", 2), ("d4", 65_535), ("e4", 3)];
        assert_eq!(weights, expected.map(|(san, weight)| (san.to_owned(), weight)));
    }
}
