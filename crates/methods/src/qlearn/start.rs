//! Where games start: the usual position, a random placement of an ending's pieces, or a file.

use std::path::PathBuf;

use selfmate_arena::{OpeningSource, Openings};
use selfmate_chess::{Bitboard, CastlingMode, Chess, Color, Game, Piece, Rng, Role, Seed, Square};
use selfmate_train::ConfigError;
use shakmaty::{FromSetup, Setup};

use super::state::State;

/// Placements tried before an ending is said to have none that can be played.
const TRIES: usize = 10_000;

/// One of so many starts is kept for evaluations.
const HELD_OUT: u64 = 8;

/// A set of starts.
#[derive(Clone, Debug)]
pub enum Starts {
    /// The usual position.
    Usual,
    /// The pieces of an ending, White's king first.
    Ending(Vec<Piece>),
    /// Given positions.
    Positions(Vec<Chess>),
}

impl Starts {
    /// Reads `game`, an ending such as `krk`, or the name of an EPD or PGN file.
    pub fn load(text: &str) -> Result<Starts, ConfigError> {
        if text == "game" {
            return Ok(Starts::Usual);
        }
        let wrong = |reason: &dyn std::fmt::Display| ConfigError::Value {
            field: "start",
            got: format!("'{text}' ({reason})"),
            expected: "game, an ending such as krk, or an EPD file",
        };
        if let Some(pieces) = pieces(text) {
            let mut rng = Seed::new(0).rng();
            let mut turns = (0..TRIES).map(|number| Color::from_white(number % 2 == 0));
            let is_found = turns
                .any(|turn| place(&pieces, turn, &mut rng).is_some_and(|found| goes_on(&found)));
            let starts = is_found.then_some(Starts::Ending(pieces));
            return starts.ok_or_else(|| wrong(&"no game can start there"));
        }
        let source = OpeningSource::File { path: PathBuf::from(text), plies: None };
        let openings = Openings::load(&source, Seed::new(0)).map_err(|error| wrong(&error))?;
        let positions = openings.take(openings.len());
        let positions = positions.iter().map(|opening| opening.game.position().clone());
        let positions: Vec<Chess> = positions.filter(goes_on).collect();
        if positions.is_empty() {
            return Err(wrong(&"no game can start there"));
        }
        Ok(Starts::Positions(positions))
    }

    /// A start to train from, or one of those that are kept for evaluations.
    pub fn draw(&self, is_exam: bool, rng: &mut Rng) -> Game {
        loop {
            let position = match self {
                Starts::Usual => return Game::new(),
                Starts::Ending(pieces) => {
                    // An evaluation asks the side with the pieces, in training both sides begin.
                    let turn = Color::from_white(is_exam || rng.chance(0.5));
                    let Some(position) = place(pieces, turn, rng) else { continue };
                    position
                }
                Starts::Positions(positions) => positions[rng.below(positions.len())].clone(),
            };
            let is_held_out = State::of(&position).key.is_multiple_of(HELD_OUT);
            if matches!(self, Starts::Ending(_)) && is_held_out != is_exam {
                continue;
            }
            let game = Game::from_position(position);
            if game.outcome().is_none() {
                return game;
            }
        }
    }
}

/// Whether a game can start at a position.
fn goes_on(position: &Chess) -> bool {
    Game::from_position(position.clone()).outcome().is_none()
}

/// The pieces that a name such as `krk` stands for.
fn pieces(name: &str) -> Option<Vec<Piece>> {
    let second = name.char_indices().filter(|(_, letter)| "kK".contains(*letter)).nth(1)?.0;
    if !(3..=6).contains(&name.len()) || !name.starts_with(['k', 'K']) {
        return None;
    }
    let piece = |(place, letter): (usize, char)| {
        let role = Role::from_char(letter)?;
        // More than two kings make no ending.
        (role != Role::King || place == 0 || place == second)
            .then(|| role.of(Color::from_white(place < second)))
    };
    name.char_indices().map(piece).collect()
}

/// Pieces on random squares; `None` when that is no position.
fn place(pieces: &[Piece], turn: Color, rng: &mut Rng) -> Option<Chess> {
    let mut setup = Setup::empty();
    setup.turn = turn;
    for &piece in pieces {
        let allowed = if piece.role == Role::Pawn { !Bitboard::BACKRANKS } else { Bitboard::FULL };
        let free: Vec<Square> = (allowed & !setup.board.occupied()).into_iter().collect();
        setup.board.set_piece_at(*rng.choose(&free)?, piece);
    }
    Chess::from_setup(setup, CastlingMode::Standard).ok()
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Position;

    use super::*;

    #[test]
    fn endings_are_named_by_their_pieces() {
        let names = |text: &str| -> Option<String> {
            Some(pieces(text)?.iter().map(|piece| piece.char()).collect())
        };
        assert_eq!(names("krk").as_deref(), Some("KRk"));
        assert_eq!(names("KQKR").as_deref(), Some("KQkr"));
        for text in ["", "k", "kr", "rkk", "kkk", "krx", "file.epd"] {
            assert_eq!(names(text), None, "{text}");
        }
        for drawn in ["knk", "kbk"] {
            let error = Starts::load(drawn).unwrap_err().to_string();
            assert!(error.contains("no game can start there"), "{error}");
        }
        assert!(Starts::load("no such thing").unwrap_err().to_string().contains("krk"));
    }

    #[test]
    fn no_start_of_an_exam_is_trained_from() {
        let starts = Starts::load("krk").unwrap();
        let mut rng = Seed::new(1).rng();
        for number in 0..500 {
            let is_exam = number % 2 == 0;
            let game = starts.draw(is_exam, &mut rng);
            let position = game.position();
            assert_eq!(State::of(position).key.is_multiple_of(HELD_OUT), is_exam);
            assert_eq!(position.board().occupied().count(), 3);
            assert!(!is_exam || position.turn() == Color::White);
        }
    }
}
