//! The `position` command: a start position and moves.
//!
//! It stays text until [`PositionCommand::game`] validates it. A bad command can so be quoted in
//! full, and the previous position stays set.

use std::fmt;

use selfmate_chess::{CastlingMode, Chess, Game, fen, notation};
use shakmaty::uci::UciMove;

use crate::command::split_word;

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PositionCommand {
    /// `None` for the standard start position.
    pub fen: Option<String>,
    /// In UCI notation.
    pub moves: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PositionError {
    #[error(transparent)]
    Fen(#[from] fen::FenError),
    #[error("move {number}: {error}")]
    Move {
        /// The number of the move, from 1.
        number: usize,
        error: notation::MoveError,
    },
}

impl PositionCommand {
    /// Parses what follows the word `position`; `None` without `startpos` or `fen`.
    pub fn parse(text: &str) -> Option<PositionCommand> {
        let (start, rest) = split_word(text);
        let mut words = rest.split_whitespace();
        let fen = match start {
            "startpos" => {
                // Words between `startpos` and `moves` are ignored.
                words.by_ref().find(|word| *word == "moves");
                None
            }
            "fen" => {
                let fields: Vec<&str> =
                    words.by_ref().take_while(|word| *word != "moves").collect();
                Some(fields.join(" "))
            }
            _ => return None,
        };
        Some(PositionCommand { fen, moves: words.map(str::to_owned).collect() })
    }

    /// The command that sets up a game and its history.
    ///
    /// `mode` decides how castling is written: [`CastlingMode::Chess960`] if the engine's option
    /// `UCI_Chess960` is set, even in a game from the standard start position.
    pub fn from_game(game: &Game, mode: CastlingMode) -> PositionCommand {
        let start = game.start();
        let fen = (*start != Chess::default()).then(|| fen::to_fen(start));
        PositionCommand { fen, moves: game.moves().map(|m| m.to_uci(mode).to_string()).collect() }
    }

    /// Sets up the position and plays the moves. Accepts both notations of castling.
    pub fn game(&self) -> Result<Game, PositionError> {
        let mut game = match &self.fen {
            Some(fen) => fen::parse_game(fen)?,
            None => Game::new(),
        };
        for (index, text) in self.moves.iter().enumerate() {
            let m = notation::parse_uci(game.position(), text)
                .map_err(|error| PositionError::Move { number: index + 1, error })?;
            game.play_unchecked(m);
        }
        Ok(game)
    }
}

impl fmt::Display for PositionCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fen {
            Some(fen) => write!(f, "position fen {fen}")?,
            None => f.write_str("position startpos")?,
        }
        if !self.moves.is_empty() {
            write!(f, " moves {}", self.moves.join(" "))?;
        }
        Ok(())
    }
}

/// Rewrites a line of moves with the castling notation of `mode`. Stops at the first illegal move.
pub(crate) fn normalise_line(game: &Game, line: &[UciMove], mode: CastlingMode) -> Vec<UciMove> {
    use selfmate_chess::Position;
    let mut position = game.position().clone();
    let mut out = Vec::with_capacity(line.len());
    for uci in line {
        let Ok(m) = uci.to_move(&position) else { break };
        out.push(m.to_uci(mode));
        position.play_unchecked(m);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn game(text: &str) -> Result<Game, String> {
        PositionCommand::parse(text).unwrap().game().map_err(|error| error.to_string())
    }

    #[test]
    fn start_positions_fens_and_moves_are_set_up() {
        assert_eq!(game("startpos").unwrap().ply(), 0);
        assert_eq!(game("startpos moves e2e4 e7e5").unwrap().ply(), 2);
        let text = "fen 8/8/8/8/8/4k3/4p3/4K3 w - - 0 1 moves";
        assert_eq!(fen::to_fen(game(text).unwrap().position()), "8/8/8/8/8/4k3/4p3/4K3 w - - 0 1");
        assert_eq!(PositionCommand::parse("nonsense"), None);
    }

    #[test]
    fn errors_name_the_move_and_the_field() {
        let error = game("startpos moves e2e4 e7e4").unwrap_err();
        assert!(error.starts_with("move 2: 'e7e4' is not legal in rnbqkbnr/"), "{error}");
        let error = game("startpos moves e2e4 Nf6").unwrap_err();
        assert!(error.starts_with("move 2: 'Nf6' is not a move"), "{error}");
        let error = game("fen 8/8/8/8 w - - 0 1").unwrap_err();
        assert!(error.contains("board"), "{error}");
        assert!(game("startpos moves 0000").is_err(), "a null move is rejected");
    }

    #[test]
    fn both_notations_of_castling_are_read_and_written() {
        let start = "fen r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1 moves";
        for castling in ["e1g1", "e1h1"] {
            let game = game(&format!("{start} {castling}")).unwrap();
            let write = |mode| PositionCommand::from_game(&game, mode).moves;
            assert_eq!(write(CastlingMode::Standard), ["e1g1"]);
            assert_eq!(write(CastlingMode::Chess960), ["e1h1"]);
        }
    }
}
