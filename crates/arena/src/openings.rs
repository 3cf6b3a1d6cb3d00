//! Start positions of games: a built-in set, a file, or random plies.
//!
//! Deterministic players repeat themselves, so a match needs one opening per pair of games. When a
//! set has too few, its lines are extended by random plies until all are different.

pub(crate) mod file;

use std::collections::HashSet;
use std::path::PathBuf;

use selfmate_chess::{Color, Game, Position, Seed, fen, material, notation};
use serde::{Deserialize, Serialize};

use crate::players::best_exchange;
use crate::resolved_player::content_hash;

/// The built-in set: `name: moves in SAN`, one per line. Checked with Stockfish 15.1: at depth 14
/// each is within 60 centipawns (`cargo run --release -p selfmate-arena --example openings`).
const LINES: &str = include_str!("openings/lines.txt");

/// Attempts to find an unused opening before giving up.
const ATTEMPTS: u64 = 200;
/// The largest material imbalance of a random opening after the best exchange, in centipawns.
const MAX_IMBALANCE: i32 = 100;

/// A set of openings in the order in which they are used.
#[derive(Clone, Debug)]
pub struct Openings {
    lines: Vec<Opening>,
    fingerprint: String,
    seed: Seed,
    /// Random plies added to openings that are not in the set.
    random_plies: u32,
}

/// A position with the moves that led to it.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The game so far, which must not be over.
    pub game: Game,
    pub name: Option<String>,
}

/// Where openings come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpeningSource {
    /// The set that comes with selfmate.
    #[default]
    BuiltIn,
    /// An EPD or PGN file, plain or in a zip archive.
    File {
        path: PathBuf,
        /// Plies to keep of each PGN game; all when `None`.
        #[serde(skip_serializing_if = "Option::is_none")]
        plies: Option<u32>,
    },
    /// Random moves from the standard start position.
    Random { plies: u32 },
}

#[derive(Debug, thiserror::Error)]
pub enum OpeningError {
    #[error("openings {}: {error}", path.display())]
    Io { path: PathBuf, error: std::io::Error },
    #[error("openings {}: {reason}", path.display())]
    Archive { path: PathBuf, reason: String },
    /// A part of the file is not a valid opening.
    #[error("openings {}: {reason}", path.display())]
    Content { path: PathBuf, reason: String },
    #[error("openings {}: the file has no position to play from: expected EPD lines or PGN games", path.display())]
    Empty { path: PathBuf },
}

impl Openings {
    /// Loads a set and shuffles it by the seed.
    pub fn load(source: &OpeningSource, seed: Seed) -> Result<Openings, OpeningError> {
        let (mut lines, random_plies) = match source {
            OpeningSource::BuiltIn => (built_in(), 2),
            OpeningSource::File { path, plies } => (file::read(path, *plies)?, 2),
            OpeningSource::Random { plies } => (Vec::new(), *plies),
        };
        let fingerprint = fingerprint(&lines, random_plies);
        seed.derive("order").rng().shuffle(&mut lines);
        Ok(Openings { lines, fingerprint, seed: seed.derive("random plies"), random_plies })
    }

    /// The number of openings before random plies are needed.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// True when all openings are random.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Identifies the set: the same fingerprint and seed give the same openings, move for move.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The first `count` openings. A longer list starts with the shorter one. No position occurs
    /// twice, unless hundreds of attempts fail to avoid it.
    pub fn take(&self, count: usize) -> Vec<Opening> {
        let mut used = HashSet::new();
        let mut openings = Vec::with_capacity(count);
        let mut own = self.lines.iter();
        while openings.len() < count {
            let opening = match own.next() {
                Some(line) if used.contains(&line.game.key()) => continue,
                Some(line) => line.clone(),
                None => self.extended(openings.len(), &used),
            };
            used.insert(opening.game.key());
            openings.push(opening);
        }
        openings
    }

    /// An opening that is not in the set: a line of the set plus random plies.
    fn extended(&self, index: usize, used: &HashSet<u64>) -> Opening {
        let start = Opening { game: Game::new(), name: None };
        let base =
            if self.lines.is_empty() { &start } else { &self.lines[index % self.lines.len()] };
        // Each pass through the set, and each failed series of attempts, adds a few plies.
        let round = index.checked_div(self.lines.len()).unwrap_or(0).clamp(1, 4) as u32;
        let mut fallback = None;
        for attempt in 0..ATTEMPTS {
            let plies = self.random_plies * round + (attempt / 50) as u32;
            let seed = self.seed.index(index as u64).index(attempt);
            let Some(game) = random_plies(&base.game, plies, seed) else { continue };
            let opening = Opening { game, name: base.name.clone() };
            if !used.contains(&opening.game.key()) {
                return opening;
            }
            fallback.get_or_insert(opening);
        }
        fallback.unwrap_or_else(|| base.clone())
    }
}

impl Opening {
    /// The moves in UCI notation.
    pub fn moves(&self) -> Vec<String> {
        self.game.moves().map(|m| m.to_uci(self.game.castling_mode()).to_string()).collect()
    }
}

/// A hash of all openings with their moves, in the order of the source, before the seed shuffles
/// them.
fn fingerprint(lines: &[Opening], random_plies: u32) -> String {
    let mut text = format!("{random_plies}\n");
    for line in lines {
        text += &fen::to_fen(line.game.start());
        text += &format!(" {}\n", line.moves().join(" "));
    }
    content_hash(text.as_bytes())
}

/// The set that comes with selfmate.
fn built_in() -> Vec<Opening> {
    let line = |line: &str| {
        let (name, moves) = line.split_once(": ").expect("a test reads every line");
        let mut game = Game::new();
        for san in moves.split(' ') {
            let m = notation::parse_san(game.position(), san).expect("a test plays every line");
            game.play_unchecked(m);
        }
        Opening { game, name: Some(name.to_owned()) }
    };
    LINES.lines().map(line).collect()
}

/// Adds random moves to a game; `None` when it ends or becomes unbalanced.
fn random_plies(start: &Game, plies: u32, seed: Seed) -> Option<Game> {
    let mut game = start.clone();
    let mut rng = seed.rng();
    for _ in 0..plies {
        let m = *rng.choose(&game.legal_moves())?;
        game.play_unchecked(m);
    }
    let position = game.position();
    let ahead =
        material::balance(position.board()) * if game.turn() == Color::White { 1 } else { -1 };
    let even = |value: i32| value.abs() <= MAX_IMBALANCE;
    let fair = even(ahead) && even(ahead + best_exchange(position)) && !position.is_check();
    (fair && game.outcome().is_none()).then_some(game)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_set_is_legal_distinct_even_and_varied() {
        for line in LINES.lines() {
            let (_, moves) = line.split_once(": ").unwrap_or_else(|| panic!("{line}"));
            let mut game = Game::new();
            for san in moves.split(' ') {
                let m = notation::parse_san(game.position(), san);
                game.play(m.unwrap_or_else(|error| panic!("{line}: {error}"))).unwrap();
            }
        }
        let openings = built_in();
        assert!((150..=250).contains(&openings.len()), "{}", openings.len());
        let keys: HashSet<u64> = openings.iter().map(|opening| opening.game.key()).collect();
        let mut seen = HashSet::new();
        for opening in &openings {
            let name = opening.name.as_deref().unwrap();
            assert!(seen.insert(opening.game.key()), "{name} is in the set twice");
            assert!(opening.game.outcome().is_none(), "{name}");
            let ahead = material::balance(opening.game.position().board());
            assert_eq!(ahead, 0, "{name}");
            assert!((6..=16).contains(&opening.game.ply()), "{name}: {}", opening.game.ply());
            assert_eq!(opening.game.turn(), Color::White, "{name}");
        }
        assert_eq!(keys.len(), openings.len());
        let first: HashSet<_> =
            openings.iter().filter_map(|opening| opening.game.moves().next()).collect();
        assert!(first.len() >= 6);
    }

    #[test]
    fn openings_are_distinct_and_a_longer_list_starts_with_the_shorter() {
        let seed = Seed::new(7);
        for source in [OpeningSource::BuiltIn, OpeningSource::Random { plies: 4 }] {
            let openings = Openings::load(&source, seed).unwrap();
            let many = openings.take(1000);
            let keys: HashSet<u64> = many.iter().map(|opening| opening.game.key()).collect();
            assert_eq!(keys.len(), 1000, "{source:?}");
            for (a, b) in openings.take(300).iter().zip(&many) {
                assert_eq!(a.moves(), b.moves());
            }
            let other = Openings::load(&source, Seed::new(8)).unwrap().take(300);
            assert!(other.iter().zip(&many).any(|(a, b)| a.moves() != b.moves()));
        }
    }

    #[test]
    fn a_fingerprint_depends_on_order_moves_and_plies_but_not_on_the_seed() {
        let of = |lines: &[&[&str]], plies| {
            let line = |line: &&[&str]| {
                let mut game = Game::new();
                for text in *line {
                    game.play(notation::parse_uci(game.position(), text).unwrap()).unwrap();
                }
                Opening { game, name: None }
            };
            fingerprint(&lines.iter().map(line).collect::<Vec<_>>(), plies)
        };
        let (first, second) = (&["e2e4", "e7e6", "d2d4"][..], &["c2c4"][..]);
        // The same position reached by other moves has another history.
        let swapped = &["d2d4", "e7e6", "e2e4"][..];
        let base = of(&[first, second], 2);
        assert_eq!(base, of(&[first, second], 2));
        for other in [of(&[second, first], 2), of(&[swapped, second], 2), of(&[first, second], 3)] {
            assert_ne!(base, other);
        }
        let load = |seed| Openings::load(&OpeningSource::BuiltIn, Seed::new(seed)).unwrap();
        assert_eq!(load(1).fingerprint(), load(2).fingerprint());
    }

    #[test]
    fn random_openings_are_balanced() {
        let openings = Openings::load(&OpeningSource::Random { plies: 9 }, Seed::new(3)).unwrap();
        for opening in openings.take(200) {
            let position = opening.game.position();
            assert!(opening.game.ply() >= 9 && opening.game.outcome().is_none());
            assert!(material::balance(position.board()).abs() <= MAX_IMBALANCE);
            assert!(best_exchange(position) <= 2 * MAX_IMBALANCE);
        }
    }
}
