//! A finished game of self-play: its moves, its outcome and what the search thought on the way.

use std::fmt;

use selfmate_chess::fen::parse_game;
use selfmate_chess::{Color, Game, Move, MoveList, Outcome, Reason};

use crate::policy;

/// A finished game.
#[derive(Clone, Debug, PartialEq)]
pub struct GameRecord {
    /// Its number in the run.
    pub number: u64,
    /// The step of the network that played.
    pub network: u64,
    /// The position it started from, as FEN; `None` for the usual one.
    pub start: Option<String>,
    /// The moves, at most 65,535.
    pub moves: Vec<Move>,
    /// How it ended.
    pub outcome: Outcome,
    /// What the search thought, by ply; not every position needs to be here.
    pub positions: Vec<PositionRecord>,
}

/// What the search thought of a position.
#[derive(Clone, Debug, PartialEq)]
pub struct PositionRecord {
    /// Moves played before it.
    pub ply: u16,
    /// What the side to move may expect, from -1 (loss) to 1 (win).
    pub value: f32,
    /// The probability of a draw.
    pub draw: f32,
    /// The policy target: a probability for each legal move, in the order of `Game::legal_moves`.
    pub policy: Vec<f32>,
}

/// What is wrong with a game: where, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// The number of the game; `None` when not even that can be read.
    pub number: Option<u64>,
    /// The ply; `None` when it is not about one.
    pub ply: Option<usize>,
    /// What is wrong.
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
    /// The game at its start.
    pub fn start_game(&self) -> Result<Game, RecordError> {
        match &self.start {
            None => Ok(Game::new()),
            Some(fen) => parse_game(fen).map_err(|error| self.fault(None, error)),
        }
    }

    /// Who moves after so many moves.
    pub fn turn(&self, ply: usize) -> Color {
        let black_starts = self.start.as_deref().is_some_and(|fen| fen.contains(" b "));
        if ply.is_multiple_of(2) == black_starts { Color::Black } else { Color::White }
    }

    /// Plays the game again and shows each judged position with its legal moves; returns the game
    /// at its end.
    pub fn replay(
        &self,
        mut visit: impl FnMut(&Game, &MoveList, &PositionRecord),
    ) -> Result<Game, RecordError> {
        self.try_replay(|game, legal, judged| {
            visit(game, legal, judged);
            Ok(())
        })
    }

    /// As [`GameRecord::replay`]; the visitor may say what is wrong with a position.
    pub(crate) fn try_replay(
        &self,
        mut visit: impl FnMut(&Game, &MoveList, &PositionRecord) -> Result<(), String>,
    ) -> Result<Game, RecordError> {
        let mut game = self.start_game()?;
        let mut positions = self.positions.iter().peekable();
        for ply in 0..=self.moves.len() {
            if let Some(judged) = positions.next_if(|judged| usize::from(judged.ply) == ply) {
                let legal = game.legal_moves();
                if judged.policy.len() != legal.len() {
                    let (got, expected) = (judged.policy.len(), legal.len());
                    let what = format!("a policy over {got} moves: expected {expected}");
                    return Err(self.fault(Some(ply), what));
                }
                visit(&game, &legal, judged).map_err(|what| self.fault(Some(ply), what))?;
            }
            if let Some(&m) = self.moves.get(ply) {
                game.play(m).map_err(|error| self.fault(Some(ply), error))?;
            }
        }
        if let Some(judged) = positions.next() {
            let what = format!("expected positions in order, up to ply {}", self.moves.len());
            return Err(self.fault(Some(judged.ply.into()), what));
        }
        Ok(game)
    }

    /// The game as it is after being stored and read. Whoever goes on with games that may also
    /// come back from a file goes on with these, so that a kill changes nothing.
    #[must_use]
    pub fn rounded(mut self) -> GameRecord {
        for judged in &mut self.positions {
            judged.value = value_from(value_bits(judged.value));
            judged.draw = draw_from(draw_bits(judged.draw));
            judged.policy = policy::unpack(&policy::pack(&judged.policy));
        }
        self
    }

    /// Checks that the outcome is one of this game, which stands at its end.
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
        let what = format!("the outcome is {}: expected one of the game", self.outcome);
        Err(self.fault(Some(end.ply()), what))
    }

    pub(crate) fn fault(&self, ply: Option<usize>, what: impl fmt::Display) -> RecordError {
        RecordError { number: Some(self.number), ply, what: what.to_string() }
    }
}

const VALUE_ONE: f32 = 32_767.0;
const DRAW_ONE: f32 = 255.0;

/// A value in [-1, 1] as 16 bits.
pub(crate) fn value_bits(value: f32) -> i16 {
    (value * VALUE_ONE).round() as i16
}

/// A value from its 16 bits.
pub(crate) fn value_from(bits: i16) -> f32 {
    f32::from(bits) / VALUE_ONE
}

/// A probability as 8 bits.
pub(crate) fn draw_bits(draw: f32) -> u8 {
    (draw * DRAW_ONE).round() as u8
}

/// A probability from its 8 bits.
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
        let judged =
            PositionRecord { ply: 2, value: 0.25, draw: 0.5, policy: vec![1.0 / 19.0; 19] };
        GameRecord {
            number: 7,
            network: 0,
            start: None,
            moves: game.moves().collect(),
            outcome: Outcome { winner: Some(Color::Black), reason: Reason::Checkmate },
            positions: vec![judged],
        }
    }

    #[test]
    fn replaying_shows_the_judged_positions() {
        let record = mate();
        let mut seen = Vec::new();
        let end = record
            .replay(|game, legal, judged| seen.push((game.ply(), legal.len(), judged.ply)))
            .unwrap();
        assert_eq!((seen, end.ply()), (vec![(2, 19, 2)], 4));
        assert!(record.check_outcome(&end).is_ok());
    }

    #[test]
    fn what_does_not_fit_the_game_is_named() {
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
    fn an_outcome_that_the_game_does_not_have_is_refused() {
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
