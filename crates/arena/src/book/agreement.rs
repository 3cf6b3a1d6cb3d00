//! How often a player's first choice is in an opening book. A measure only: nothing learns from it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use selfmate_chess::{Chess, Game, Move, Position, Seed, polyglot::polyglot_key};
use selfmate_search::player::Limit;
use serde::{Deserialize, Serialize};

use super::{BookError, PolyglotBook};
use crate::limit::MoveLimit;
use crate::openings::file::read_pgn_games;
use crate::registry::Registry;

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
    /// Set when all files are read and the player begins.
    pub begun: Arc<AtomicBool>,
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
            begun: Arc::new(AtomicBool::new(false)),
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
    config.begun.store(true, Relaxed);
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

#[cfg(test)]
mod tests {
    use selfmate_chess::notation;

    use super::*;

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
        let start = Chess::default();
        let mut book = PolyglotBook::default();
        book.add(&start, notation::parse_san(&start, "e4").unwrap(), 1);
        book.write(&polyglot).unwrap();
        let config = BookConfig::new(&polyglot, "alphabeta:depth=1");
        let report = book_agreement(&config, &Registry::standard(), &mut |_| {}).unwrap();
        assert_eq!((report.total, report.by_ply.len()), (1, 1));
    }
}
