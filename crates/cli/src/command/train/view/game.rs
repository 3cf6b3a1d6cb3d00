//! The last finished game, prepared for drawing.

use selfmate_chess::notation::san;
use selfmate_chess::{Chess, Color, Move, Outcome, Position};
use selfmate_run::{GameRecord, RecordError};

pub struct LastGame {
    /// Number in the run.
    pub number: u64,
    /// The final position.
    pub position: Chess,
    pub last: Option<Move>,
    /// The moves with their numbers.
    pub moves: Vec<String>,
    pub plies: usize,
    pub outcome: Outcome,
}

impl LastGame {
    /// Replays a game.
    pub fn new(game: &GameRecord) -> Result<LastGame, RecordError> {
        let mut position = game.start_game()?.position().clone();
        let mut moves = Vec::new();
        for (ply, &m) in game.moves.iter().enumerate() {
            let name = san(&position, m);
            let number = position.fullmoves();
            moves.push(match position.turn() {
                Color::White => format!("{number}.\u{a0}{name}"),
                Color::Black if ply == 0 => format!("{number}...\u{a0}{name}"),
                Color::Black => name,
            });
            position.play_unchecked(m);
        }
        let (number, plies, outcome) = (game.number, game.moves.len(), game.outcome);
        Ok(LastGame { number, position, last: game.moves.last().copied(), moves, plies, outcome })
    }

    /// The last moves, in at most `height` lines of this width.
    pub fn tail(&self, width: usize, height: usize) -> Vec<String> {
        let mut lines = vec![String::new()];
        for name in &self.moves {
            let length = name.chars().count();
            match lines.last_mut() {
                Some(line) if line.is_empty() => line.push_str(name),
                Some(line) if line.chars().count() + 1 + length <= width => {
                    line.push(' ');
                    line.push_str(name);
                }
                _ => lines.push(name.clone()),
            }
        }
        lines.split_off(lines.len().saturating_sub(height))
    }
}
