//! The training loop that every learner shares.
//!
//! [`train`] runs a [`Learner`] round by round and provides what all learners need: the deadline,
//! the thread pool, metrics, checkpoints and ratings. [`SelfPlayLearner`] is the learner of every
//! self-play method; [`replay`] turns its games into samples. This crate does not depend on any
//! single method, the terminal, the web server or the cluster.

pub mod bounds;
mod config;
mod config_change;
mod config_error;
mod endgame_mistakes;
pub mod engine_match;
mod error;
pub mod evaluation;
mod final_phase;
mod guards;
mod learner;
mod model;
mod options;
mod plan;
mod rating;
pub mod replay;
mod run_session;
mod selfplay_learner;
mod targets;
mod training_loop;

pub use config::{
    GuardConfig, LearningConfig, NoEvaluation, RatingConfig, SavingConfig, SelfPlayLearnerConfig,
};
pub use config_change::{ConfigChange, config_changes, differences};
pub use config_error::ConfigError;
pub use error::TrainingError;
pub use final_phase::{FinalConfig, Selection};
pub use guards::{Finding, Guards, Verdict};
pub use learner::{
    Curves, Learner, Round, RoundContext, Totals, check_shape, read_bytes, read_json, state_error,
};
pub use model::{Losses, MODEL, SelfPlayModel, TRAINER, TrainableModel};
pub use options::{End, Hardware, TrainOptions};
pub use plan::plan_games;
pub use rating::rate;
pub use replay::{ReplayBuffer, samples};
pub use selfplay_learner::SelfPlayLearner;
pub use targets::Targets;
pub use training_loop::{TOTALS, train};
