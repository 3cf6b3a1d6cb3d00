//! Settings that cannot be used.

use crate::bounds::Bounds;

/// A config that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// `run.toml` or a config file that does not say what it should.
    #[error("{file}: {message}")]
    Parse {
        /// The file.
        file: String,
        /// What is wrong.
        message: String,
    },
    /// `--set` without a key and a value.
    #[error("'{0}': expected key=value, such as selfplay.simulations.to=200")]
    NoValue(String),
    /// `--set` with a key or value that does not fit.
    #[error("'{setting}': {message}")]
    Set {
        /// The setting as it was given.
        setting: String,
        /// What is wrong.
        message: String,
    },
    /// A number out of its bounds.
    #[error("{field} is {got}: expected {bounds}")]
    Bounds {
        /// The setting.
        field: String,
        /// Its value.
        got: String,
        /// What would do.
        bounds: Bounds,
    },
    /// Settings that ask for more memory than there is.
    #[error(
        "the settings need {needed_mb} MB of memory on {threads} threads, most of it for {setting}: this machine has {limit_mb} MB"
    )]
    Memory {
        /// The setting that asks for most.
        setting: &'static str,
        /// What all of them ask for.
        needed_mb: u64,
        /// What there is.
        limit_mb: u64,
        /// Threads, each with trees or tables of its own.
        threads: usize,
    },
    /// A value that makes no sense.
    #[error("{field} is {got}: expected {expected}")]
    Value {
        /// The setting.
        field: &'static str,
        /// Its value.
        got: String,
        /// What would do.
        expected: &'static str,
    },
}

impl ConfigError {
    /// The shape of a network cannot be built.
    pub fn network(error: &dyn std::fmt::Display) -> ConfigError {
        ConfigError::Parse { file: "network".to_owned(), message: error.to_string() }
    }
}
