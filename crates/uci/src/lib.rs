//! The UCI protocol in both directions: as an engine for a GUI, and as the driver of engines.
//!
//! Messages ([`command`], [`reply`]) are plain data that can be read and written. [`engine`] puts
//! anything that implements [`UciEngine`] behind standard input and output; [`process`] runs any
//! UCI program as a child. The crate knows nothing about who is playing.

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

pub use clock::{Budget, Clock};
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
