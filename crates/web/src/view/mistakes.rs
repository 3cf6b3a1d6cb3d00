//! The mistakes of a tuned engine: which kinds of moves lost its games.

use serde::Serialize;
use utoipa::ToSchema;

/// The moves that turned lost games, by kind and phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct MistakesView {
    /// Lost games that were analysed; not every one has a losing move.
    pub games: u64,
    /// One row per kind, without empty ones.
    pub rows: Vec<MistakeView>,
}

/// The losing moves of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct MistakeView {
    /// The kind in words, such as `hanging piece`.
    pub kind: &'static str,
    /// Moves in the opening.
    pub opening: u64,
    /// Moves in the middlegame.
    pub middlegame: u64,
    /// Moves in the endgame.
    pub endgame: u64,
}
