//! View types of the API for games, positions and searches. Values are White's unless a field says
//! otherwise.

mod game;
mod position;
mod thought;

pub use game::{GameView, matched, selfplay};
pub use position::{Line, MoveView, OutcomeView, PositionView};
pub use thought::{ChoiceView, ThoughtView};
