//! Starting positions: the initial position, a random placement of an ending's pieces, or a file.

use std::path::PathBuf;

use selfmate_arena::{OpeningSource, Openings};
use selfmate_chess::{Bitboard, CastlingMode, Chess, Color, Game, Piece, Rng, Role, Seed, Square};
use selfmate_train::ConfigError;
use shakmaty::{FromSetup, Setup};

use super::state::State;

/// Placements to try before an ending is rejected because no game can start from it.
const TRIES: usize = 10_000;

/// One in this many starts is held out for evaluations.
const HELD_OUT: u64 = 8;

#[derive(Clone, Debug)]
pub enum Starts {
    /// The initial position.
    Usual,
    /// The pieces of an ending, White's king first.
    Ending(Vec<Piece>),
    Positions(Vec<Chess>),
}

impl Starts {
    /// Accepts `game`, an ending such as `krk`, or the path of an EPD or PGN file.
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
            let is_found = turns.any(|turn| {
                random_placement(&pieces, turn, &mut rng).is_some_and(|found| can_start(&found))
            });
            let starts = is_found.then_some(Starts::Ending(pieces));
            return starts.ok_or_else(|| wrong(&"no game can start there"));
        }
        let source = OpeningSource::File { path: PathBuf::from(text), plies: None };
        let openings = Openings::load(&source, Seed::new(0)).map_err(|error| wrong(&error))?;
        let positions = openings.take(openings.len());
        let positions = positions.iter().map(|opening| opening.game.position().clone());
        let positions: Vec<Chess> = positions.filter(can_start).collect();
        if positions.is_empty() {
            return Err(wrong(&"no game can start there"));
        }
        Ok(Starts::Positions(positions))
    }

    /// A start for training, or one held out for evaluations.
    pub fn draw(&self, is_evaluation: bool, rng: &mut Rng) -> Game {
        loop {
            let position = match self {
                Starts::Usual => return Game::new(),
                Starts::Ending(pieces) => {
                    // In an evaluation the side with the pieces moves first, in training either
                    // side.
                    let turn = Color::from_white(is_evaluation || rng.chance(0.5));
                    let Some(position) = random_placement(pieces, turn, rng) else { continue };
                    position
                }
                Starts::Positions(positions) => positions[rng.below(positions.len())].clone(),
            };
            let is_held_out = State::of(&position).key.is_multiple_of(HELD_OUT);
            if matches!(self, Starts::Ending(_)) && is_held_out != is_evaluation {
                continue;
            }
            let game = Game::from_position(position);
            if game.outcome().is_none() {
                return game;
            }
        }
    }
}

fn can_start(position: &Chess) -> bool {
    Game::from_position(position.clone()).outcome().is_none()
}

/// The pieces of an ending's name such as `krk`.
fn pieces(name: &str) -> Option<Vec<Piece>> {
    let second = name.char_indices().filter(|(_, letter)| "kK".contains(*letter)).nth(1)?.0;
    if !(3..=6).contains(&name.len()) || !name.starts_with(['k', 'K']) {
        return None;
    }
    let piece = |(index, letter): (usize, char)| {
        let role = Role::from_char(letter)?;
        // There are exactly two kings.
        (role != Role::King || index == 0 || index == second)
            .then(|| role.of(Color::from_white(index < second)))
    };
    name.char_indices().map(piece).collect()
}

/// Pieces on random squares; `None` when the position is illegal.
fn random_placement(pieces: &[Piece], turn: Color, rng: &mut Rng) -> Option<Chess> {
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
        let letters = |text: &str| -> Option<String> {
            Some(pieces(text)?.iter().map(|piece| piece.char()).collect())
        };
        assert_eq!(letters("krk").as_deref(), Some("KRk"));
        assert_eq!(letters("KQKR").as_deref(), Some("KQkr"));
        for text in ["", "k", "kr", "rkk", "kkk", "krx", "file.epd"] {
            assert_eq!(letters(text), None, "{text}");
        }
        for drawn in ["knk", "kbk"] {
            let error = Starts::load(drawn).unwrap_err().to_string();
            assert!(error.contains("no game can start there"), "{error}");
        }
        assert!(Starts::load("no such thing").unwrap_err().to_string().contains("krk"));
    }

    #[test]
    fn starts_for_evaluation_are_never_used_in_training() {
        let starts = Starts::load("krk").unwrap();
        let mut rng = Seed::new(1).rng();
        for number in 0..500 {
            let is_evaluation = number % 2 == 0;
            let game = starts.draw(is_evaluation, &mut rng);
            let position = game.position();
            assert_eq!(State::of(position).key.is_multiple_of(HELD_OUT), is_evaluation);
            assert_eq!(position.board().occupied().count(), 3);
            assert!(!is_evaluation || position.turn() == Color::White);
        }
    }
}
