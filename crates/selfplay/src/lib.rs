//! Games that are played to learn from: whole games and endings alike.
//!
//! A game is a pure function of the run's seed, its number, the network and the config ([`game`]).
//! [`play_generation`] has the games of a generation played by a [`GameSource`] and keeps each one
//! on disk as it ends. This crate does not know what is learned from the games.

mod cancel;
mod check;
mod config;
mod error;
mod evaluator;
pub mod game;
mod generation;
mod live_feed;
mod ramp;
mod resign;
mod sink;
mod source;
mod start;
mod statistics;
mod watch;

pub use cancel::{CancelToken, Watchdog};
pub use check::{RecordMismatch, check};
pub use config::{Bootstrap, PolicyTargetName, Priors, RootRuleName, SelfPlayConfig};
pub use error::SelfPlayError;
pub use evaluator::evaluators;
pub use game::{FinishedGame, Generation, Recomputed, SelfPlayer, search_params};
pub use generation::{PlayedGeneration, play_generation};
pub use live_feed::LiveFeed;
pub use ramp::Ramp;
pub use selfmate_nn::device::Evaluators;
pub use sink::{GameSink, PlayLimits, TICK};
pub use source::{Completion, GameSource, GenerationJob, LocalThreads};
pub use start::{Ending, random_ending, start_fen};
pub use statistics::GenerationStats;
pub use watch::{Stage, Status, Watch};
