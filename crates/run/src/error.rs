//! Errors of reading and writing runs.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::game::RecordError;

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("no run '{name}' in {}: {}", runs.display(), there_are(names))]
    Unknown {
        name: String,
        /// The folder of all runs.
        runs: PathBuf,
        /// The runs in that folder.
        names: Vec<String>,
    },
    #[error("run '{name}' ({}): another process is training it", path.display())]
    Locked { name: String, path: PathBuf },
    /// A file or folder of an open run was removed or replaced by something else.
    #[error(
        "{}: deleted, moved or replaced while the run is training; stopped. Run the same \
         command again to go on from what is left",
        path.display()
    )]
    Gone { path: PathBuf },
    /// A file differs from what was written.
    #[error(transparent)]
    Damaged(Damage),
    #[error("{}: {error}", path.display())]
    Game { path: PathBuf, error: RecordError },
    /// A number, name or size that cannot be stored.
    #[error("{}: {what}", path.display())]
    Refused {
        path: PathBuf,
        /// What was given and what was expected.
        what: String,
    },
}

/// A file that differs from what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct Damage {
    pub path: PathBuf,
    pub what: String,
}

/// Damaged checkpoints, and the older one that is used instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedCheckpoints {
    /// Newest first.
    pub damages: Vec<Damage>,
    /// The step of the checkpoint that is used.
    pub used: u64,
}

impl fmt::Display for SkippedCheckpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let damages: Vec<String> = self.damages.iter().map(Damage::to_string).collect();
        write!(f, "{}; step {} is used instead", damages.join("; "), self.used)
    }
}

impl Damage {
    pub(crate) fn new(path: &Path, what: impl fmt::Display) -> Damage {
        Damage { path: path.to_owned(), what: what.to_string() }
    }
}

impl RunError {
    pub(crate) fn damaged(path: &Path, what: impl fmt::Display) -> RunError {
        RunError::Damaged(Damage::new(path, what))
    }

    pub(crate) fn refused(path: &Path, what: impl fmt::Display) -> RunError {
        RunError::Refused { path: path.to_owned(), what: what.to_string() }
    }

    /// For `map_err`: adds the path to an I/O error.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> RunError {
        let path = path.to_owned();
        |error| RunError::Io { path, error }
    }
}

/// Lists the existing names, as the end of an error message.
pub(crate) fn there_are(names: &[String]) -> String {
    if names.is_empty() {
        "there are none".into()
    } else {
        format!("there are {}", names.join(", "))
    }
}
