//! The UCI protocol in both directions: the engine side and the GUI side.
//!
//! Messages ([`command`], [`reply`]) are plain data that can be parsed and written. [`engine`] serves
//! a [`UciEngine`] on any input and output. [`process`] runs a UCI program as a child process. This
//! crate contains no search.

mod child;
pub mod clock;
pub mod command;
mod control;
pub mod engine;
pub mod go;
pub mod info;
mod line;
pub mod option;
pub mod position;
pub mod process;
pub mod program;
pub mod reply;
mod worker;

pub use clock::{Clock, TimeBudget, TimeConstants};
pub use command::Command;
pub use engine::{BestMove, Control, UciEngine, serve};
pub use go::Go;
pub use info::{Bound, Info, Score, ScoreValue};
pub use option::{EngineOption, OptionError, OptionKind};
pub use position::{PositionCommand, PositionError};
pub use process::{EngineError, EngineMove, EngineProcess};
pub use program::{EngineCommand, Patience, find_program};
pub use reply::Reply;
pub use shakmaty::uci::UciMove;
