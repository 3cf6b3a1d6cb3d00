//! The seam between games and whoever plays them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use selfmate_chess::{Game, Move};

use crate::value::Wdl;

/// Picks moves: a search of ours, another engine, a person.
pub trait Player: Send {
    /// What to call it in tables and PGN.
    fn name(&self) -> &str;

    /// Forgets what it knows of earlier games.
    fn new_game(&mut self) {}

    /// Picks a move for the side to move, which must have one.
    fn choose(&mut self, game: &Game, limit: &Limit) -> Result<Choice, PlayerError>;
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
}

impl Limit {
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
}

impl Choice {
    /// A move without an opinion.
    pub fn bare(played: Move) -> Choice {
        Choice { played, wdl: None, score: None, depth: None, nodes: None, line: vec![played] }
    }
}

/// A judgement for the side to move, as engines print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Score {
    /// Hundredths of a pawn.
    Centipawns(i32),
    /// Moves until the side to move mates; negative when it is mated.
    Mate(i32),
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
