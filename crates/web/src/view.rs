//! View types of the API for games, positions and searches. Values are White's unless a field says
//! otherwise.

mod game;
mod mistakes;
mod position;
mod search_info;

pub use game::{GameView, matched, selfplay};
pub use mistakes::{MistakeView, MistakesView};
pub use position::{Line, MoveView, OutcomeView, PositionView};
pub use search_info::{ChoiceView, SearchInfoView};
