//! Self-play and the learners, one file each.
//!
//! A learner turns a run folder, a config and a budget into better players. It knows nothing of
//! terminals, browsers or brokers: what happens is told to a [`Watch`].

pub mod config;
pub mod players;
pub mod watch;
pub mod zero;

pub use config::{Budget, RunConfig};
pub use watch::{Stage, Status, Watch};
