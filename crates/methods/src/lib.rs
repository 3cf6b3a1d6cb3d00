//! The learners, and the one [`table`] that lists them.
//!
//! Each learner is a file of its own: its settings, what a round does, and how a checkpoint becomes
//! a player. What learners share is in `selfmate-train` (the loop) and `selfmate-selfplay` (games).
//! This crate does not depend on the terminal, the web server or the cluster.

pub mod alphazero;
pub mod charts;
pub mod clone;
pub mod dataset;
pub mod describe;
pub mod endgame;
pub mod evolve;
pub mod opponent;
pub mod players;
pub mod qlearn;
mod random_plies;
pub mod reinforce;
mod settings;
pub mod table;
pub mod tune;
pub mod tuning;
pub mod value;
pub mod zero;

pub use settings::{FORMAT, RunConfig, Settings};
pub use table::{LEARNERS, LearnerInfo, learner};
