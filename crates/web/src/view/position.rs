//! A position with the moves that led to it and the legal moves.

use selfmate_chess::fen::{parse_game, to_fen};
use selfmate_chess::notation::{parse_move, san, uci};
use selfmate_chess::{Chess, Color, Game, Move, Outcome, Position};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::ApiError;

/// The maximum number of moves of a game.
const MAX_MOVES: usize = 2000;

/// A game sent by a client: its start and its moves.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct Line {
    /// The start position; the standard one by default.
    #[serde(default)]
    pub fen: Option<String>,
    /// Moves from the start, in UCI or SAN notation.
    #[serde(default)]
    #[schema(max_items = 2000)]
    pub moves: Vec<String>,
}

impl Line {
    /// Plays the moves. The error names the first illegal one.
    pub fn game(&self) -> Result<Game, ApiError> {
        if self.moves.len() > MAX_MOVES {
            let count = self.moves.len();
            let text = format!("{count} moves: expected at most {MAX_MOVES}");
            return Err(ApiError::Malformed(text));
        }
        let bad = |error: &dyn std::fmt::Display| ApiError::Bad(error.to_string());
        let mut game = match self.fen.as_deref().map(str::trim).filter(|fen| !fen.is_empty()) {
            Some(fen) => parse_game(fen).map_err(|error| bad(&error))?,
            None => Game::new(),
        };
        for (index, text) in self.moves.iter().enumerate() {
            let m = parse_move(game.position(), text)
                .map_err(|error| ApiError::Bad(format!("move {}: {error}", index + 1)))?;
            game.play(m).map_err(|error| bad(&error))?;
        }
        Ok(game)
    }
}

/// A position with everything a board needs.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PositionView {
    /// The start of the game.
    pub start: String,
    /// The position.
    pub fen: String,
    /// `white` or `black`.
    pub turn: &'static str,
    /// True when the side to move is in check.
    pub check: bool,
    /// The moves that led here.
    pub played: Vec<MoveView>,
    /// Legal moves; empty when the game is over.
    pub legal: Vec<MoveView>,
    /// The outcome; `null` while the game is not over.
    pub outcome: Option<OutcomeView>,
}

/// A move in both notations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct MoveView {
    /// UCI notation.
    pub uci: String,
    /// SAN notation.
    pub san: String,
}

/// The end of a game.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct OutcomeView {
    /// `1-0`, `0-1`, `1/2-1/2`, or `*` for a truncated game.
    pub result: String,
    /// Why the game ended.
    pub reason: String,
}

impl PositionView {
    pub fn new(game: &Game) -> PositionView {
        let position = game.position();
        let legal = game.legal_moves();
        let outcome = game.outcome_given(&legal);
        let moves: Vec<Move> = game.moves().collect();
        PositionView {
            start: to_fen(game.start()),
            fen: to_fen(position),
            turn: color(position.turn()),
            check: position.is_check(),
            played: move_views(game.start(), &moves),
            legal: match outcome {
                None => legal.iter().map(|&m| MoveView::new(position, m)).collect(),
                Some(_) => Vec::new(),
            },
            outcome: outcome.map(OutcomeView::from),
        }
    }
}

impl MoveView {
    pub fn new(position: &Chess, m: Move) -> MoveView {
        MoveView { uci: uci(position, m), san: san(position, m) }
    }
}

impl From<Outcome> for OutcomeView {
    fn from(outcome: Outcome) -> OutcomeView {
        OutcomeView { result: outcome.pgn().to_owned(), reason: outcome.reason.to_string() }
    }
}

/// Moves from a position on, each in the notation of its position. They must be legal.
pub fn move_views(start: &Chess, moves: &[Move]) -> Vec<MoveView> {
    let mut position = start.clone();
    let view = |&m: &Move| {
        let view = MoveView::new(&position, m);
        position.play_unchecked(m);
        view
    };
    moves.iter().map(view).collect()
}

pub(super) fn color(color: Color) -> &'static str {
    if color == Color::White { "white" } else { "black" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(fen: Option<&str>, moves: &[&str]) -> Line {
        Line {
            fen: fen.map(str::to_owned),
            moves: moves.iter().map(|&text| text.to_owned()).collect(),
        }
    }

    #[test]
    fn a_mate_has_no_legal_moves_and_an_outcome() {
        let game = line(None, &["f3", "e7e5", "g2g4", "Qh4"]).game().unwrap();
        let view = PositionView::new(&game);
        assert!(view.check && view.legal.is_empty());
        assert_eq!(
            view.outcome.unwrap(),
            OutcomeView { result: "0-1".into(), reason: "checkmate".into() }
        );
        assert_eq!(view.played[3], MoveView { uci: "d8h4".into(), san: "Qh4#".into() });
    }

    #[test]
    fn errors_name_the_illegal_move() {
        let error = |line: Line| line.game().unwrap_err().to_string();
        assert!(error(line(None, &["e4", "e4"])).starts_with("move 2: 'e4' is not legal in "));
        assert!(error(line(Some("8/8 w - -"), &[])).starts_with("bad FEN '8/8 w - -': "));
        assert!(error(line(None, &["e4"; 2001])).starts_with("2001 moves: expected at most"));
    }
}
