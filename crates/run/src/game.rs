//! A finished self-play game: moves, outcome and search results.

use std::fmt;

use selfmate_chess::fen::parse_game;
use selfmate_chess::{Color, Game, Move, MoveList, Outcome, Reason};

use crate::policy;

#[derive(Clone, Debug, PartialEq)]
pub struct GameRecord {
    /// Unique in the run.
    pub number: u64,
    /// The training step of the network that played.
    pub network: u64,
    /// The start position as FEN; `None` for the standard one.
    pub start: Option<String>,
    /// At most 65,535.
    pub moves: Vec<Move>,
    pub outcome: Outcome,
    /// Search results, ordered by ply. Not every position needs one.
    pub positions: Vec<PositionRecord>,
}

/// The result of the search of one position.
#[derive(Clone, Debug, PartialEq)]
pub struct PositionRecord {
    /// The number of moves before this position.
    pub ply: u16,
    /// The expected result for the side to move, from -1 (loss) to 1 (win).
    pub value: f32,
    /// The probability of a draw.
    pub draw: f32,
    /// The policy target: one probability for each legal move, in the order of `Game::legal_moves`.
    pub policy: Vec<f32>,
}

/// What is wrong with a game, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// The number of the game; `None` if it cannot be read.
    pub number: Option<u64>,
    /// `None` if the error is not about a ply.
    pub ply: Option<usize>,
    pub what: String,
}

impl std::error::Error for RecordError {}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "game {number}")?,
            None => write!(f, "a game")?,
        }
        if let Some(ply) = self.ply {
            write!(f, ", ply {ply}")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl GameRecord {
    /// The game at its start position.
    pub fn start_game(&self) -> Result<Game, RecordError> {
        match &self.start {
            None => Ok(Game::new()),
            Some(fen) => parse_game(fen).map_err(|error| self.fault(None, error)),
        }
    }

    /// The side to move after `ply` moves.
    pub fn turn(&self, ply: usize) -> Color {
        let black_starts = self.start.as_deref().is_some_and(|fen| fen.contains(" b "));
        if ply.is_multiple_of(2) == black_starts { Color::Black } else { Color::White }
    }

    /// Replays the game and passes each recorded position with its legal moves to `visit`. Returns the
    /// final game.
    pub fn replay(
        &self,
        mut visit: impl FnMut(&Game, &MoveList, &PositionRecord),
    ) -> Result<Game, RecordError> {
        self.try_replay(|game, legal, recorded| {
            visit(game, legal, recorded);
            Ok(())
        })
    }

    /// Like [`GameRecord::replay`]; the visitor may return an error.
    pub(crate) fn try_replay(
        &self,
        mut visit: impl FnMut(&Game, &MoveList, &PositionRecord) -> Result<(), String>,
    ) -> Result<Game, RecordError> {
        let mut game = self.start_game()?;
        let mut positions = self.positions.iter().peekable();
        for ply in 0..=self.moves.len() {
            if let Some(recorded) = positions.next_if(|recorded| usize::from(recorded.ply) == ply) {
                let legal = game.legal_moves();
                if recorded.policy.len() != legal.len() {
                    let (got, expected) = (recorded.policy.len(), legal.len());
                    let what = format!("a policy over {got} moves: expected {expected}");
                    return Err(self.fault(Some(ply), what));
                }
                visit(&game, &legal, recorded).map_err(|what| self.fault(Some(ply), what))?;
            }
            if let Some(&m) = self.moves.get(ply) {
                game.play(m).map_err(|error| self.fault(Some(ply), error))?;
            }
        }
        if let Some(recorded) = positions.next() {
            let what = format!("expected positions in order, up to ply {}", self.moves.len());
            return Err(self.fault(Some(recorded.ply.into()), what));
        }
        Ok(game)
    }

    /// The game as it is after being stored and read. Code that also reads games from files must
    /// use this, so that a kill and a resume change nothing.
    #[must_use]
    pub fn rounded(mut self) -> GameRecord {
        for recorded in &mut self.positions {
            recorded.value = value_from(value_bits(recorded.value));
            recorded.draw = draw_from(draw_bits(recorded.draw));
            recorded.policy = policy::unpack(&policy::pack(&recorded.policy));
        }
        self
    }

    /// Checks that the outcome is possible for this game. `end` is the game after all moves.
    pub(crate) fn check_outcome(&self, end: &Game) -> Result<(), RecordError> {
        let Outcome { winner, reason } = self.outcome;
        let fits = match reason {
            Reason::Checkmate | Reason::Stalemate | Reason::InsufficientMaterial => {
                end.outcome() == Some(self.outcome)
            }
            Reason::Adjudication => true,
            _ => winner.is_none(),
        };
        if fits {
            return Ok(());
        }
        let what =
            format!("the outcome is {}: expected an outcome that the moves lead to", self.outcome);
        Err(self.fault(Some(end.ply()), what))
    }

    pub(crate) fn fault(&self, ply: Option<usize>, what: impl fmt::Display) -> RecordError {
        RecordError { number: Some(self.number), ply, what: what.to_string() }
    }
}

const VALUE_ONE: f32 = 32_767.0;
const DRAW_ONE: f32 = 255.0;

/// Quantises a value in [-1, 1] to 16 bits.
pub(crate) fn value_bits(value: f32) -> i16 {
    (value * VALUE_ONE).round() as i16
}

pub(crate) fn value_from(bits: i16) -> f32 {
    f32::from(bits) / VALUE_ONE
}

/// Quantises a probability to 8 bits.
pub(crate) fn draw_bits(draw: f32) -> u8 {
    (draw * DRAW_ONE).round() as u8
}

pub(crate) fn draw_from(bits: u8) -> f32 {
    f32::from(bits) / DRAW_ONE
}

#[cfg(test)]
mod tests {

    use selfmate_chess::notation::parse_uci;

    use super::*;

    fn mate() -> GameRecord {
        let mut game = Game::new();
        for text in ["f2f3", "e7e5", "g2g4", "d8h4"] {
            let m = parse_uci(game.position(), text).unwrap();
            game.play(m).unwrap();
        }
        let recorded =
            PositionRecord { ply: 2, value: 0.25, draw: 0.5, policy: vec![1.0 / 19.0; 19] };
        GameRecord {
            number: 7,
            network: 0,
            start: None,
            moves: game.moves().collect(),
            outcome: Outcome { winner: Some(Color::Black), reason: Reason::Checkmate },
            positions: vec![recorded],
        }
    }

    #[test]
    fn replaying_visits_the_recorded_positions() {
        let record = mate();
        let mut seen = Vec::new();
        let end = record
            .replay(|game, legal, recorded| seen.push((game.ply(), legal.len(), recorded.ply)))
            .unwrap();
        assert_eq!((seen, end.ply()), (vec![(2, 19, 2)], 4));
        assert!(record.check_outcome(&end).is_ok());
    }

    #[test]
    fn errors_name_what_does_not_fit_the_game() {
        let error = |change: fn(&mut GameRecord)| {
            let mut record = mate();
            change(&mut record);
            record.replay(|_, _, _| ()).unwrap_err().to_string()
        };
        let text = error(|record| record.positions[0].policy.truncate(3));
        assert_eq!(text, "game 7, ply 2: a policy over 3 moves: expected 19");
        let text = error(|record| record.positions[0].ply = 5);
        assert_eq!(text, "game 7, ply 5: expected positions in order, up to ply 4");
        let text = error(|record| record.moves.swap(0, 2));
        assert!(text.starts_with("game 7, ply 2: a policy"), "{text}");
        let text = error(|record| record.moves.swap(0, 1));
        assert!(text.starts_with("game 7, ply 0: illegal move"), "{text}");
        let text = error(|record| record.start = Some("8/8/8/8/8/8/8/8 w - -".into()));
        assert!(text.starts_with("game 7: bad FEN"), "{text}");
    }

    #[test]
    fn impossible_outcomes_are_rejected() {
        let end = mate().replay(|_, _, _| ()).unwrap();
        for (winner, reason, fits) in [
            (Some(Color::Black), Reason::Checkmate, true),
            (Some(Color::White), Reason::Checkmate, false),
            (None, Reason::Stalemate, false),
            (Some(Color::White), Reason::Truncated, false),
            (None, Reason::Truncated, true),
            (Some(Color::White), Reason::Adjudication, true),
        ] {
            let record = GameRecord { outcome: Outcome { winner, reason }, ..mate() };
            assert_eq!(record.check_outcome(&end).is_ok(), fits, "{winner:?} {reason}");
        }
    }
}
