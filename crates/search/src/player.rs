//! The interface between games and players.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use selfmate_chess::{Game, Move, MoveList, Seed};

use crate::mcts::NodeView;
use crate::value::Wdl;

/// Chooses moves: a search, another engine, or a person.
pub trait Player: Send {
    /// The name for tables and PGN.
    fn name(&self) -> &str;

    /// Clears the state kept from earlier games.
    fn new_game(&mut self) {}

    /// Chooses a move for the side to move, which must have a legal move.
    ///
    /// Calls the observer with search info: now and then during the search and once at the end,
    /// with the best [`Limit::lines`] each time. Players that do not search report nothing.
    fn choose_observed(
        &mut self,
        game: &Game,
        limit: &Limit,
        observe: &mut dyn FnMut(&SearchInfo),
    ) -> Result<Choice, PlayerError>;

    /// Like [`Player::choose_observed`], without an observer.
    fn choose(&mut self, game: &Game, limit: &Limit) -> Result<Choice, PlayerError> {
        self.choose_observed(game, limit, &mut |_| {})
    }

    /// The node of the last search tree at the end of a line of moves. `None` for players without a
    /// tree, and for nodes that no simulation has visited.
    fn look(&self, _line: &[Move]) -> Option<NodeView> {
        None
    }
}

/// How long to search for a move. Without any limit a player uses its own default.
///
/// Flags, UCI's `go`, requests to the page and stored matches each have a form of their own, which
/// is converted to this type once.
#[derive(Clone, Debug, Default)]
pub struct Limit {
    /// Simulations (tree search) or nodes (alpha-beta, other engines).
    pub nodes: Option<u64>,
    /// The deepest iteration of alpha-beta and other engines.
    pub depth: Option<u32>,
    /// The time for this move. The search stops even in the middle of an iteration.
    pub movetime: Option<Duration>,
    /// Alpha-beta starts no new iteration after this time.
    pub soft_time: Option<Duration>,
    /// Alpha-beta starts no new iteration after this many nodes.
    pub soft_nodes: Option<u64>,
    /// The clocks, for players that manage their own time.
    pub clock: Option<Clock>,
    /// Ends the search early when set; the player returns its best move so far.
    pub stop: Option<Arc<AtomicBool>>,
    /// The only moves to search; empty means all. Players that do not support this ignore it.
    pub only: Vec<Move>,
    /// How many of the best lines to report to an observer; 0 means one.
    pub lines: usize,
}

impl Limit {
    /// The legal moves allowed by [`Limit::only`].
    pub fn candidates(&self, game: &Game) -> MoveList {
        let mut moves = game.legal_moves();
        if !self.only.is_empty() {
            moves.retain(|m| self.only.contains(m));
        }
        moves
    }

    pub fn nodes(nodes: u64) -> Limit {
        Limit { nodes: Some(nodes), ..Limit::default() }
    }

    pub fn depth(depth: u32) -> Limit {
        Limit { depth: Some(depth), ..Limit::default() }
    }

    pub fn movetime(movetime: Duration) -> Limit {
        Limit { movetime: Some(movetime), ..Limit::default() }
    }
}

/// The remaining time of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The remaining time of the side to move.
    pub own: Duration,
    /// The remaining time of the other side.
    pub other: Duration,
    /// Added to the mover's clock after each move.
    pub increment: Duration,
    /// Moves until the next time control; `None` for the rest of the game.
    pub moves_to_go: Option<u32>,
}

/// A chosen move with its evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub played: Move,
    /// For the side that moves; `None` when the player has no evaluation.
    pub wdl: Option<Wdl>,
    /// The same as centipawns or moves to mate, when the player uses those.
    pub score: Option<Score>,
    /// The search depth.
    pub depth: Option<u32>,
    /// Simulations or nodes searched.
    pub nodes: Option<u64>,
    /// The expected line, this move first.
    pub line: Vec<Move>,
    /// The time used, when the player measures it more precisely than its caller can.
    pub elapsed: Option<Duration>,
}

impl Choice {
    /// A move without an evaluation.
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

/// One line reported by a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchInfo {
    /// The rank of the line, starting at 1.
    pub rank: usize,
    /// At least one move.
    pub line: Vec<Move>,
    /// For the side to move.
    pub score: Score,
    /// For the side to move; `None` when the player does not use probabilities.
    pub wdl: Option<Wdl>,
    /// The nominal search depth.
    pub depth: u32,
    /// The length of the longest line searched.
    pub deepest: u32,
    /// Simulations or nodes so far.
    pub nodes: u64,
    pub elapsed: Duration,
    /// Memory in use, per thousand.
    pub permille_full: u32,
    /// Positions found in tablebases so far.
    pub tablebase_hits: u64,
    /// Visits of the first move, for tree searches.
    pub visits: Option<u32>,
    /// The prior of the first move, for tree searches.
    pub prior: Option<f32>,
}

/// A score for the side to move, as engines print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Score {
    Centipawns(i32),
    /// Moves until mate; negative when the side to move is mated.
    Mate(i32),
}

impl Score {
    /// Centipawns for an expected result in [-1, 1]: 0.5 is about 90, ±1 about ±12,800.
    pub fn from_value(value: f32) -> Score {
        // tan keeps small values proportional and lets large ones grow without bound. The constant
        // is just below π/2, so that ±1 stays finite.
        let value = f64::from(value.clamp(-1.0, 1.0));
        Score::Centipawns((90.0 * libm::tan(1.563_754 * value)).round() as i32)
    }
}

/// Why a player has no move. The player loses the game for this reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{player}: {reason}")]
pub struct PlayerError {
    pub player: String,
    pub reason: String,
}

impl PlayerError {
    /// For a player that is asked for a move after the game has ended.
    pub fn no_move(player: &str) -> PlayerError {
        PlayerError { player: player.to_owned(), reason: "there is no legal move".to_owned() }
    }
}

/// Derives a player's seed for this position of this game, so that its random choices do not depend
/// on earlier games.
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
