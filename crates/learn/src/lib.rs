//! Self-play and the learners, one file each.
//!
//! A learner turns a run folder, a config and a budget into better players. It knows nothing of
//! terminals, browsers or brokers: what happens is told to a [`Watch`].

pub mod alphazero;
pub mod bounds;
pub mod bout;
pub mod clone;
pub mod config;
pub mod dataset;
mod desk;
pub mod endgame;
pub mod evolve;
pub mod exam;
pub mod knowledge;
pub mod learner;
pub mod opponent;
pub mod players;
pub mod qlearn;
pub mod reinforce;
pub mod rounds;
pub mod selfplay;
mod start;
pub mod tune;
pub mod tuning;
pub mod value;
pub mod watch;
mod watchdog;
pub mod zero;

pub use config::{RunConfig, Settings};
pub use learner::{End, Hardware, LearnError, Session, train, train_from};
pub use selfmate_run::Budget;
pub use watch::{Stage, Status, Watch};
