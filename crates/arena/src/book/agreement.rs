//! Measures how often a player's first choice is in an opening book. Nothing is trained on it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use selfmate_chess::{Chess, Game, Move, Position, Seed, polyglot::polyglot_key};
use serde::{Deserialize, Serialize};

use super::{BookError, PolyglotBook};
use crate::limit::MatchLimit;
use crate::openings::file::read_pgn_games;
use crate::registry::Registry;

/// Settings of one measurement.
#[derive(Clone, Debug)]
pub struct BookConfig {
    /// A Polyglot book (`.bin`) or PGN games, plain or zipped.
    pub file: PathBuf,
    pub player: String,
    pub limit: MatchLimit,
    /// Only positions after fewer plies than this are used.
    pub plies: usize,
    /// The maximum number of positions per ply; they are drawn at random.
    pub positions_per_ply: usize,
    pub seed: u64,
    /// Ends the measurement early when set.
    pub stop: Arc<AtomicBool>,
    /// Set once all files are read and the player starts.
    pub begun: Arc<AtomicBool>,
}

impl BookConfig {
    /// The defaults: 12 plies, 20 positions each.
    pub fn new(file: &Path, player: &str) -> BookConfig {
        BookConfig {
            file: file.to_owned(),
            player: player.to_owned(),
            limit: MatchLimit::default(),
            plies: 12,
            positions_per_ply: 20,
            seed: 1,
            stop: Arc::new(AtomicBool::new(false)),
            begun: Arc::new(AtomicBool::new(false)),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BookReport {
    pub book: String,
    pub player: String,
    /// Positions where the player's first choice is a book move.
    pub agreed: u64,
    pub total: u64,
    /// The same counts per ply, from ply 0.
    pub by_ply: Vec<PlyAgreement>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlyAgreement {
    pub ply: usize,
    /// Positions where the first choice is a book move.
    pub agreed: u64,
    pub total: u64,
}

/// A position of the book and its moves.
type Entry = (Chess, HashSet<Move>);

/// Lets a player choose a move in positions of a book. Calls `observer` after every ply.
pub fn book_agreement(
    config: &BookConfig,
    registry: &Registry,
    observer: &mut dyn FnMut(&PlyAgreement),
) -> Result<BookReport, BookError> {
    let spec = registry.parse(&config.player)?;
    let is_polyglot = config.file.extension().is_some_and(|e| e.eq_ignore_ascii_case("bin"));
    let by_ply = if is_polyglot {
        from_polyglot(&PolyglotBook::read(&config.file)?, config)
    } else {
        from_games(config)?
    };
    config.begun.store(true, Relaxed);
    let mut player = registry.build(&spec, Seed::new(config.seed))?;
    let limit = config.limit.to_limit(&config.stop);
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

/// Positions reached by book moves, per ply, at most `positions_per_ply` each.
fn from_polyglot(book: &PolyglotBook, config: &BookConfig) -> Vec<Vec<Entry>> {
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

/// Positions from games, per ply, at most `positions_per_ply` each, with all moves played there.
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
        // After 1. e4 every reply is in the book; in the start position only e4 is.
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
