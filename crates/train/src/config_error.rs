//! Errors in the settings.

use crate::bounds::Bounds;

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// `run.toml` or another config file cannot be parsed.
    #[error("{file}: {message}")]
    Parse { file: String, message: String },
    /// `--set` without `=`.
    #[error("'{0}': expected key=value, such as selfplay.simulations.to=200")]
    NoValue(String),
    /// `--set` with an unknown key or a wrong value.
    #[error("'{setting}': {message}")]
    Set {
        /// As it was given.
        setting: String,
        message: String,
    },
    #[error("{field} is {got}: expected {bounds}")]
    Bounds { field: String, got: String, bounds: Bounds },
    /// The settings need more memory than there is.
    #[error(
        "the settings need {needed_mb} MB of memory on {threads} threads, most of it for {setting}: this machine has {limit_mb} MB"
    )]
    Memory {
        /// The setting that needs most.
        setting: &'static str,
        needed_mb: u64,
        limit_mb: u64,
        /// Each thread has its own trees or tables.
        threads: usize,
    },
    #[error("{field} is {got}: expected {expected}")]
    Value { field: &'static str, got: String, expected: &'static str },
}

impl ConfigError {
    /// The network cannot have this shape.
    pub fn network(error: &dyn std::fmt::Display) -> ConfigError {
        ConfigError::Parse { file: "network".to_owned(), message: error.to_string() }
    }
}
