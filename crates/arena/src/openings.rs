//! Where games start: a built-in set, a file, or random plies.
//!
//! Deterministic players repeat themselves, so a match needs as many starts as it has pairs.
//! When a set has fewer, its lines are extended by random plies until all are different.

pub(crate) mod file;

use std::collections::HashSet;
use std::path::PathBuf;

use selfmate_chess::{Board, Color, Game, Position, Role, Seed, fen, notation};
use serde::{Deserialize, Serialize};

use crate::players::best_exchange;
use crate::resolved_player::content_hash;

/// Our own set: `name: moves in SAN`, one a line. Checked with Stockfish 15.1: at depth 14 each
/// is within 60 centipawns (`cargo run --release -p selfmate-arena --example openings`).
const LINES: &str = include_str!("openings/lines.txt");

/// How often to look for a start that has not been used before giving up.
const ATTEMPTS: u64 = 200;
/// A random start may be this uneven after the best exchange, in centipawns.
const MAX_IMBALANCE: i32 = 100;

/// A set of starts in the order in which they are used.
#[derive(Clone, Debug)]
pub struct Openings {
    lines: Vec<Opening>,
    fingerprint: String,
    seed: Seed,
    /// Plies for starts that are not in the set.
    random_plies: u32,
}

/// One start: a position with the moves that led to it.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The game so far; it is not over.
    pub game: Game,
    /// What it is called.
    pub name: Option<String>,
}

/// Where starts come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpeningSource {
    /// The set that comes with selfmate.
    #[default]
    BuiltIn,
    /// An EPD or PGN file, plain or in a zip archive.
    File {
        /// The file.
        path: PathBuf,
        /// Moves to keep of each PGN game; all when `None`.
        #[serde(skip_serializing_if = "Option::is_none")]
        plies: Option<u32>,
    },
    /// Random moves from the usual start.
    Random {
        /// How many.
        plies: u32,
    },
}

/// Why there are no openings.
#[derive(Debug, thiserror::Error)]
pub enum OpeningError {
    /// The file cannot be read.
    #[error("openings {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The archive cannot be read.
    #[error("openings {}: {reason}", path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A part of the file is no opening.
    #[error("openings {}: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Where and what.
        reason: String,
    },
    /// Nothing to play from.
    #[error("openings {}: no position to play from: expected EPD lines or PGN games", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl Openings {
    /// Loads a set and puts it into the order that the seed gives.
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

    /// How many there are before random plies are needed.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// True when all starts are random.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// A text that tells the set from others: with the same text and the same seed, the starts
    /// are the same to the last move.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The first `count` starts. A longer list begins with the shorter one; no position comes
    /// twice, unless hundreds of attempts to avoid it fail.
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

    /// A start that is not in the set.
    fn extended(&self, index: usize, used: &HashSet<u64>) -> Opening {
        let start = Opening { game: Game::new(), name: None };
        let base =
            if self.lines.is_empty() { &start } else { &self.lines[index % self.lines.len()] };
        // Each time round the set, and each time nothing new is found, a few plies more.
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
    /// The moves of the opening in UCI notation.
    pub fn moves(&self) -> Vec<String> {
        self.game.moves().map(|m| m.to_uci(self.game.castling_mode()).to_string()).collect()
    }
}

/// Every start with its moves, in the order of the source: the seed shuffles that order.
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

/// Random moves on from a game; `None` when it ends or becomes uneven.
fn random_plies(start: &Game, plies: u32, seed: Seed) -> Option<Game> {
    let mut game = start.clone();
    let mut rng = seed.rng();
    for _ in 0..plies {
        let m = *rng.choose(&game.legal_moves())?;
        game.play_unchecked(m);
    }
    let position = game.position();
    let ahead = imbalance(position.board()) * if game.turn() == Color::White { 1 } else { -1 };
    let even = |value: i32| value.abs() <= MAX_IMBALANCE;
    let fair = even(ahead) && even(ahead + best_exchange(position)) && !position.is_check();
    (fair && game.outcome().is_none()).then_some(game)
}

/// White's material less Black's, in centipawns.
fn imbalance(board: &Board) -> i32 {
    let worth = [
        (Role::Pawn, 100),
        (Role::Knight, 300),
        (Role::Bishop, 300),
        (Role::Rook, 500),
        (Role::Queen, 900),
    ];
    let count = |role, color| (board.by_role(role) & board.by_color(color)).count() as i32;
    worth
        .iter()
        .map(|&(role, value)| value * (count(role, Color::White) - count(role, Color::Black)))
        .sum()
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
            assert!(seen.insert(opening.game.key()), "{name} is there twice");
            assert!(opening.game.outcome().is_none(), "{name}");
            let ahead = imbalance(opening.game.position().board());
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
    fn no_start_comes_twice_and_a_longer_list_begins_with_the_shorter() {
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
    fn a_fingerprint_knows_order_moves_and_plies_but_not_the_seed() {
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
        // The same position by other moves is another history.
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
    fn random_starts_are_fair() {
        let openings = Openings::load(&OpeningSource::Random { plies: 9 }, Seed::new(3)).unwrap();
        for opening in openings.take(200) {
            let position = opening.game.position();
            assert!(opening.game.ply() >= 9 && opening.game.outcome().is_none());
            assert!(imbalance(position.board()).abs() <= MAX_IMBALANCE);
            assert!(best_exchange(position) <= 2 * MAX_IMBALANCE);
        }
    }
}
