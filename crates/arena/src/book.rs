//! How often a player's first choice is in an opening book. A measure only: nothing learns from it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use selfmate_chess::{Chess, Game, Move, Position, Seed, polyglot::polyglot_key};
use selfmate_search::player::Limit;
use selfmate_uci::UciMove;
use serde::{Deserialize, Serialize};

use crate::limit::MoveLimit;
use crate::openings::OpeningError;
use crate::openings::file::read_pgn_games;
use crate::registry::Registry;
use crate::spec::SpecError;

/// Which book, whom to ask, and how much.
#[derive(Clone, Debug)]
pub struct BookConfig {
    /// A Polyglot book (`.bin`), or PGN games (plain or zipped).
    pub file: PathBuf,
    /// The player's spec.
    pub player: String,
    /// How long it may think about each position.
    pub limit: MoveLimit,
    /// Positions after fewer plies than this.
    pub plies: usize,
    /// The most positions for each ply, drawn at random.
    pub positions_per_ply: usize,
    /// The root of all randomness.
    pub seed: u64,
    /// Ends the questions early when set.
    pub stop: Arc<AtomicBool>,
}

impl BookConfig {
    /// Twelve plies, twenty positions each.
    pub fn new(file: &Path, player: &str) -> BookConfig {
        BookConfig {
            file: file.to_owned(),
            player: player.to_owned(),
            limit: MoveLimit::default(),
            plies: 12,
            positions_per_ply: 20,
            seed: 1,
            stop: Arc::new(AtomicBool::new(false)),
        }
    }
}

/// How often a player agrees with a book.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BookReport {
    /// The book.
    pub book: String,
    /// The player's spec.
    pub player: String,
    /// Positions in which its first choice is a book move.
    pub agreed: u64,
    /// Positions asked.
    pub total: u64,
    /// The same for each ply, from 0.
    pub by_ply: Vec<PlyAgreement>,
}

/// Agreement at one ply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlyAgreement {
    /// Moves played before.
    pub ply: usize,
    /// Positions in which the first choice is a book move.
    pub agreed: u64,
    /// Positions asked.
    pub total: u64,
}

/// Why a book cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] OpeningError),
    /// The file is no Polyglot book.
    #[error("book {}: {reason}", file.display())]
    Polyglot {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The player cannot be built.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The player failed.
    #[error("{0}")]
    Player(String),
}

/// A position of the book and its moves.
type Entry = (Chess, HashSet<Move>);

/// Asks a player about the positions of a book and calls `observer` after every ply.
pub fn book_agreement(
    config: &BookConfig,
    registry: &Registry,
    observer: &mut dyn FnMut(&PlyAgreement),
) -> Result<BookReport, BookError> {
    let spec = registry.parse(&config.player)?;
    let is_polyglot = config.file.extension().is_some_and(|e| e.eq_ignore_ascii_case("bin"));
    let by_ply = if is_polyglot {
        walk(&PolyglotBook::read(&config.file)?, config)
    } else {
        from_games(config)?
    };
    let mut player = registry.build(&spec, Seed::new(config.seed))?;
    let limit = Limit {
        nodes: config.limit.nodes,
        depth: config.limit.depth,
        movetime: config.limit.movetime_ms.map(Duration::from_millis),
        stop: Some(Arc::clone(&config.stop)),
        ..Limit::default()
    };
    let mut plies = Vec::new();
    for (ply, entries) in by_ply.into_iter().enumerate() {
        let mut count = PlyAgreement { ply, agreed: 0, total: 0 };
        for (position, moves) in entries {
            player.new_game();
            let choice = player.choose(&Game::from_position(position), &limit);
            if config.stop.load(Relaxed) {
                break;
            }
            let choice = choice.map_err(|error| BookError::Player(error.to_string()))?;
            count.total += 1;
            count.agreed += u64::from(moves.contains(&choice.played));
        }
        if count.total > 0 {
            observer(&count);
            plies.push(count);
        }
    }
    Ok(BookReport {
        book: config.file.display().to_string(),
        player: config.player.clone(),
        agreed: plies.iter().map(|ply| ply.agreed).sum(),
        total: plies.iter().map(|ply| ply.total).sum(),
        by_ply: plies,
    })
}

/// The positions that book moves lead to, ply by ply, at most so many each.
fn walk(book: &PolyglotBook, config: &BookConfig) -> Vec<Vec<Entry>> {
    let seed = Seed::new(config.seed).derive("book");
    let mut plies = Vec::new();
    let mut current = vec![Chess::default()];
    for ply in 0..config.plies {
        let mut entries: Vec<Entry> = current
            .into_iter()
            .map(|position| (book.moves(&position), position))
            .filter(|(moves, _)| !moves.is_empty())
            .map(|(moves, position)| (position, moves.into_iter().map(|(m, _)| m).collect()))
            .collect();
        entries.sort_by_key(|(position, _)| polyglot_key(position));
        seed.index(ply as u64).rng().shuffle(&mut entries);
        entries.truncate(config.positions_per_ply);
        let mut next = BTreeMap::new();
        for (position, moves) in &entries {
            for &m in moves {
                let mut after = position.clone();
                after.play_unchecked(m);
                next.insert(polyglot_key(&after), after);
            }
        }
        current = next.into_values().collect();
        plies.push(entries);
    }
    plies
}

/// The positions of games, ply by ply, at most so many each, with all moves played there.
fn from_games(config: &BookConfig) -> Result<Vec<Vec<Entry>>, BookError> {
    let mut plies: Vec<HashMap<u64, Entry>> = vec![HashMap::new(); config.plies];
    for game in read_pgn_games(&config.file)? {
        let mut position = game.start().clone();
        for (ply, m) in game.moves().take(config.plies).enumerate() {
            let entry = plies[ply].entry(polyglot_key(&position));
            entry.or_insert_with(|| (position.clone(), HashSet::new())).1.insert(m);
            position.play_unchecked(m);
        }
    }
    let seed = Seed::new(config.seed).derive("book");
    let draw = |(ply, entries): (usize, HashMap<u64, Entry>)| {
        let mut entries: Vec<(u64, Entry)> = entries.into_iter().collect();
        entries.sort_by_key(|(key, _)| *key);
        seed.index(ply as u64).rng().shuffle(&mut entries);
        entries.into_iter().take(config.positions_per_ply).map(|(_, entry)| entry).collect()
    };
    Ok(plies.into_iter().enumerate().map(draw).collect())
}

/// A Polyglot book in memory: 16-byte records, big-endian, sorted by key.
#[derive(Clone, Debug)]
pub struct PolyglotBook {
    /// (key, move, weight)
    records: Vec<(u64, u16, u16)>,
}

impl PolyglotBook {
    /// Reads a `.bin` file.
    pub fn read(path: &Path) -> Result<PolyglotBook, BookError> {
        let bytes = std::fs::read(path)
            .map_err(|error| OpeningError::Io { path: path.to_owned(), error })?;
        PolyglotBook::parse(&bytes)
            .map_err(|reason| BookError::Polyglot { file: path.to_owned(), reason })
    }

    fn parse(bytes: &[u8]) -> Result<PolyglotBook, String> {
        let (records, rest) = bytes.as_chunks::<16>();
        if !rest.is_empty() || records.is_empty() {
            return Err(format!("{} bytes: expected records of 16 bytes", bytes.len()));
        }
        let part = |record: &[u8; 16], from: usize, to: usize| {
            record[from..to].iter().fold(0u64, |value, &byte| value << 8 | u64::from(byte))
        };
        let read = |record: &[u8; 16]| {
            (part(record, 0, 8), part(record, 8, 10) as u16, part(record, 10, 12) as u16)
        };
        let mut records: Vec<_> = records.iter().map(read).collect();
        // Some programs write them unsorted.
        records.sort_by_key(|(key, _, _)| *key);
        Ok(PolyglotBook { records })
    }

    /// The legal moves that the book has for a position, with their weights.
    pub fn moves(&self, position: &Chess) -> Vec<(Move, u16)> {
        let key = polyglot_key(position);
        let first = self.records.partition_point(|(other, _, _)| *other < key);
        let found = self.records[first..].iter().take_while(|(other, _, _)| *other == key);
        found.filter_map(|&(_, code, weight)| Some((decode(position, code)?, weight))).collect()
    }
}

/// Files and ranks in three bits each, then the promotion; castling as king takes rook.
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
    use selfmate_chess::notation;

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
    fn a_book_is_read_castling_included() {
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
        assert!(PolyglotBook::parse(&bytes[1..]).is_err() && PolyglotBook::parse(&[]).is_err());
    }

    #[test]
    fn agreement_is_counted_by_ply() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("book.pgn");
        // After 1. e4 every answer is in the book; at the start only e4 is.
        let legal = {
            let mut game = Game::new();
            game.play(notation::parse_san(game.position(), "e4").unwrap()).unwrap();
            let sans = game.legal_moves();
            sans.iter().map(|&m| notation::san(game.position(), m)).collect::<Vec<_>>()
        };
        let games: Vec<String> =
            legal.iter().map(|san| format!("[Event \"x\"]\n\n1. e4 {san} *\n\n")).collect();
        std::fs::write(&path, games.concat()).unwrap();
        let config = BookConfig::new(&path, "random");
        let report = book_agreement(&config, &Registry::standard(), &mut |_| {}).unwrap();
        assert_eq!(report.by_ply.len(), 2);
        assert_eq!(report.by_ply[1], PlyAgreement { ply: 1, agreed: 1, total: 1 });
        assert_eq!(report.total, 2);
        let polyglot = folder.path().join("book.bin");
        std::fs::write(&polyglot, record(&Chess::default(), (4, 1), (4, 3), 1)).unwrap();
        let config = BookConfig::new(&polyglot, "alphabeta:depth=1");
        let report = book_agreement(&config, &Registry::standard(), &mut |_| {}).unwrap();
        assert_eq!((report.total, report.by_ply.len()), (1, 1));
    }
}
