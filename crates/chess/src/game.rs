//! A game: the position with everything that led to it.
//!
//! `Game` knows its legal moves and its outcome under all draw rules. It keeps every position
//! since the start, so that history planes, takeback and a search that walks down and back
//! up need nothing else. It does not know notation (see [`crate::notation`]).

use shakmaty::zobrist::Zobrist64;
use shakmaty::{CastlingMode, Chess, Color, EnPassantMode, Move, MoveList, Position};

use crate::outcome::{DrawRules, Outcome, Reason, Rules};

/// A position with its history and the rules that end the game.
#[derive(Clone, Debug)]
pub struct Game {
    /// One entry for each position since the start; never empty, the last is the current one.
    steps: Vec<Step>,
    rules: Rules,
}

#[derive(Clone, Debug)]
struct Step {
    position: Chess,
    /// Equal for equal positions: pieces, side to move, castling rights, legal en passant.
    key: u64,
    /// The move that led here; `None` at the start.
    played: Option<Move>,
}

/// A move that is not legal in the position it was played in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("illegal move {uci} in {fen}")]
pub struct IllegalMove {
    /// The move in UCI notation.
    pub uci: String,
    /// The position it was meant for.
    pub fen: String,
}

impl Default for Game {
    fn default() -> Game {
        Game::new()
    }
}

impl Game {
    /// A game from the usual start position.
    pub fn new() -> Game {
        Game::from_position(Chess::default())
    }

    /// A game from any position.
    pub fn from_position(position: Chess) -> Game {
        let key = repetition_key(&position);
        Game { steps: vec![Step { position, key, played: None }], rules: Rules::default() }
    }

    /// Starts over from a position, under the same rules and in the same memory.
    pub fn restart(&mut self, position: Chess) {
        let key = repetition_key(&position);
        self.steps.clear();
        self.steps.push(Step { position, key, played: None });
    }

    /// The same game under other rules.
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Game {
        self.rules = rules;
        self
    }

    /// The rules that end this game.
    pub fn rules(&self) -> Rules {
        self.rules
    }

    fn current(&self) -> &Step {
        self.steps.last().expect("a game has at least its start position")
    }

    /// The current position.
    pub fn position(&self) -> &Chess {
        &self.current().position
    }

    /// The position the game started from.
    pub fn start(&self) -> &Chess {
        &self.steps[0].position
    }

    /// The side to move.
    pub fn turn(&self) -> Color {
        self.position().turn()
    }

    /// Standard chess or Chess960: how castling is written.
    pub fn castling_mode(&self) -> CastlingMode {
        self.position().castles().mode()
    }

    /// The number of moves played since the start.
    pub fn ply(&self) -> usize {
        self.steps.len() - 1
    }

    /// The moves played since the start.
    pub fn moves(&self) -> impl DoubleEndedIterator<Item = Move> + '_ {
        self.steps.iter().filter_map(|step| step.played)
    }

    /// The last move played.
    pub fn last_move(&self) -> Option<Move> {
        self.current().played
    }

    /// All positions, the current one first.
    pub fn positions_back(&self) -> impl Iterator<Item = &Chess> + '_ {
        self.steps.iter().rev().map(|step| &step.position)
    }

    /// A key that is equal for positions that count as repetitions of each other.
    pub fn key(&self) -> u64 {
        self.current().key
    }

    /// How often the current position has stood on the board, this time included.
    pub fn repetitions(&self) -> usize {
        self.repetitions_at(self.ply())
    }

    /// How often the position after `ply` moves had stood on the board by then, that time included.
    ///
    /// # Panics
    ///
    /// Panics if fewer than `ply` moves have been played.
    pub fn repetitions_at(&self, ply: usize) -> usize {
        let here = &self.steps[ply];
        // Nothing before the last capture or pawn move can come back, and only every other
        // position has the same side to move.
        let reversible = (here.position.halfmoves() as usize).min(ply);
        let mut count = 1;
        let mut back = 4;
        while back <= reversible {
            count += usize::from(self.steps[ply - back].key == here.key);
            back += 2;
        }
        count
    }

    /// The legal moves of the current position.
    pub fn legal_moves(&self) -> MoveList {
        self.position().legal_moves()
    }

    /// Plays a move, or says that it is illegal and leaves the game as it was.
    pub fn play(&mut self, m: Move) -> Result<(), IllegalMove> {
        if !self.position().is_legal(m) {
            return Err(IllegalMove {
                uci: crate::notation::uci(self.position(), m),
                fen: crate::fen::to_fen(self.position()),
            });
        }
        self.play_unchecked(m);
        Ok(())
    }

    /// Plays a move that is known to be legal.
    ///
    /// # Panics
    ///
    /// May panic, now or later, when the move is not legal.
    pub fn play_unchecked(&mut self, m: Move) {
        let here = self.current();
        let mut position = here.position.clone();
        let quick_key = position.update_zobrist_hash(Zobrist64(here.key), m, EnPassantMode::Legal);
        position.play_unchecked(m);
        let key = quick_key.map_or_else(|| repetition_key(&position), u64::from);
        self.steps.push(Step { position, key, played: Some(m) });
    }

    /// Takes back the last move and returns it; `None` at the start.
    pub fn undo(&mut self) -> Option<Move> {
        let played = self.current().played?;
        self.steps.pop();
        Some(played)
    }

    /// Goes back to the position after `ply` moves; does nothing when that is ahead.
    pub fn rewind(&mut self, ply: usize) {
        self.steps.truncate(ply + 1);
    }

    /// How the game ended, or `None` while it goes on.
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome_given(&self.legal_moves())
    }

    /// As [`Game::outcome`], for callers that already have the legal moves.
    pub fn outcome_given(&self, legal: &MoveList) -> Option<Outcome> {
        let position = self.position();
        // Mate counts even on the move that completes fifty quiet moves.
        if legal.is_empty() {
            return Some(if position.is_check() {
                Outcome { winner: Some(!position.turn()), reason: Reason::Checkmate }
            } else {
                Outcome::draw(Reason::Stalemate)
            });
        }
        if position.is_insufficient_material() {
            return Some(Outcome::draw(Reason::InsufficientMaterial));
        }
        let draws = self.rules.draws;
        if self.repetitions() >= draws.repetitions() {
            return Some(Outcome::draw(match draws {
                DrawRules::Claimed => Reason::Threefold,
                DrawRules::Automatic => Reason::Fivefold,
            }));
        }
        if position.halfmoves() >= draws.halfmoves() {
            return Some(Outcome::draw(match draws {
                DrawRules::Claimed => Reason::FiftyMoves,
                DrawRules::Automatic => Reason::SeventyFiveMoves,
            }));
        }
        if self.rules.max_plies.is_some_and(|cap| self.ply() >= cap as usize) {
            return Some(Outcome::draw(Reason::PlyCap));
        }
        None
    }
}

fn repetition_key(position: &Chess) -> u64 {
    position.zobrist_hash::<Zobrist64>(EnPassantMode::Legal).into()
}
