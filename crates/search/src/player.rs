//! The seam between games and whoever plays them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use selfmate_chess::{Game, Move, MoveList, Seed};

use crate::mcts::NodeView;
use crate::value::Wdl;

/// Picks moves: a search of ours, another engine, a person.
pub trait Player: Send {
    /// What to call it in tables and PGN.
    fn name(&self) -> &str;

    /// Forgets what it knows of earlier games.
    fn new_game(&mut self) {}

    /// Picks a move for the side to move, which must have one.
    ///
    /// Tells what it thinks on the way: now and then while it searches, and once at the end, the
    /// best [`Limit::lines`] each time. Players without an inner life tell nothing.
    fn choose_observed(
        &mut self,
        game: &Game,
        limit: &Limit,
        observe: &mut dyn FnMut(&SearchInfo),
    ) -> Result<Choice, PlayerError>;

    /// As [`Player::choose_observed`], unobserved.
    fn choose(&mut self, game: &Game, limit: &Limit) -> Result<Choice, PlayerError> {
        self.choose_observed(game, limit, &mut |_| {})
    }

    /// Opens the tree of its last search at the end of a line of moves; `None` for players without
    /// a tree, and where no simulation has been.
    fn look(&self, _line: &[Move]) -> Option<NodeView> {
        None
    }
}

/// How long a player may think about a move. Without any limit a player uses its own default.
#[derive(Clone, Debug, Default)]
pub struct Limit {
    /// The most simulations (tree search) or nodes (alpha-beta, other engines).
    pub nodes: Option<u64>,
    /// The deepest iteration of alpha-beta and other engines.
    pub depth: Option<u32>,
    /// The time for this move.
    pub movetime: Option<Duration>,
    /// The clock, for players that share out their time themselves.
    pub clock: Option<Clock>,
    /// Ends the search early when set, with the best move so far.
    pub stop: Option<Arc<AtomicBool>>,
    /// When not empty, the only moves to look at. Players that cannot be told so ignore it.
    pub only: Vec<Move>,
    /// How many of the best lines to tell an observer; 0 means one.
    pub lines: usize,
}

impl Limit {
    /// The legal moves that may be looked at.
    pub fn candidates(&self, game: &Game) -> MoveList {
        let mut moves = game.legal_moves();
        if !self.only.is_empty() {
            moves.retain(|m| self.only.contains(m));
        }
        moves
    }

    /// A number of simulations or nodes.
    pub fn nodes(nodes: u64) -> Limit {
        Limit { nodes: Some(nodes), ..Limit::default() }
    }

    /// A depth.
    pub fn depth(depth: u32) -> Limit {
        Limit { depth: Some(depth), ..Limit::default() }
    }

    /// A time.
    pub fn movetime(movetime: Duration) -> Limit {
        Limit { movetime: Some(movetime), ..Limit::default() }
    }
}

/// What is left on the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The mover's time.
    pub own: Duration,
    /// The other side's time.
    pub other: Duration,
    /// Added to the mover's clock after each move.
    pub increment: Duration,
    /// Moves until more time comes; `None` for the rest of the game.
    pub moves_to_go: Option<u32>,
}

/// A picked move, and what the player thinks of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The move.
    pub played: Move,
    /// The chances of the side that moves, if the player has an opinion.
    pub wdl: Option<Wdl>,
    /// The same as centipawns or moves to mate, if it thinks in those.
    pub score: Option<Score>,
    /// How deep it looked.
    pub depth: Option<u32>,
    /// Simulations or nodes it took.
    pub nodes: Option<u64>,
    /// The line it expects, this move first.
    pub line: Vec<Move>,
    /// The time it took, from a player that measures it better than its caller can.
    pub elapsed: Option<Duration>,
}

impl Choice {
    /// A move without an opinion.
    pub fn bare(played: Move) -> Choice {
        Choice {
            played,
            wdl: None,
            score: None,
            depth: None,
            nodes: None,
            line: vec![played],
            elapsed: None,
        }
    }
}

/// One of the lines a player looks at.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchInfo {
    /// The line's place among the best, from 1.
    pub rank: usize,
    /// The moves, at least one.
    pub line: Vec<Move>,
    /// What the side to move can expect.
    pub score: Score,
    /// The chances of the side to move, if the player thinks in those.
    pub wdl: Option<Wdl>,
    /// How deep it looked on the whole.
    pub depth: u32,
    /// The deepest it looked anywhere.
    pub deepest: u32,
    /// Simulations or nodes so far.
    pub nodes: u64,
    /// Time so far.
    pub elapsed: Duration,
    /// The memory in use, per thousand.
    pub permille_full: u32,
    /// Positions found in tablebases so far.
    pub tablebase_hits: u64,
    /// SimulationStats through the first move, for tree searches.
    pub visits: Option<u32>,
    /// The first move's prior, for tree searches.
    pub prior: Option<f32>,
}

/// A judgement for the side to move, as engines print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Score {
    /// Hundredths of a pawn.
    Centipawns(i32),
    /// Moves until the side to move mates; negative when it is mated.
    Mate(i32),
}

impl Score {
    /// Centipawns for an expected result in [-1, 1]: 0.5 is about 90, certainty about 12,800.
    pub fn from_value(value: f32) -> Score {
        // tan keeps small values proportional and lets large ones grow without bound; the
        // constant is just below π/2, so that ±1 stays finite.
        let value = f64::from(value.clamp(-1.0, 1.0));
        Score::Centipawns((90.0 * (1.563_754 * value).tan()).round() as i32)
    }
}

/// Why a player has no move. It loses the game with this reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{player}: {reason}")]
pub struct PlayerError {
    /// The player's name.
    pub player: String,
    /// What happened.
    pub reason: String,
}

impl PlayerError {
    /// The error of a player that is asked to move when the game is over.
    pub fn no_move(player: &str) -> PlayerError {
        PlayerError { player: player.to_owned(), reason: "there is no legal move".to_owned() }
    }
}

/// A child of a player's seed for this moment of this game, so that what it draws does not depend
/// on the games before.
pub fn seed_of(seed: Seed, game: &Game) -> Seed {
    seed.index(game.key_at(0).unwrap_or(0)).index(game.ply() as u64).index(game.key())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn centipawns_grow_with_the_value_and_stay_finite() {
        let at = |value| match Score::from_value(value) {
            Score::Centipawns(centipawns) => centipawns,
            Score::Mate(_) => unreachable!("a value is no mate"),
        };
        assert_eq!((at(0.0), at(0.5), at(-0.5)), (0, 89, -89));
        assert!(at(1.0) > 12_000 && at(1.0) < 13_500 && at(2.0) == at(1.0));
    }
}
