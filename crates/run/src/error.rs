//! What can be wrong with a run.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::game::RecordError;

/// Why a run cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// There is no such run.
    #[error("no run '{name}' in {}: {}", runs.display(), there_are(names))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The folder of runs.
        runs: PathBuf,
        /// The runs that it has.
        names: Vec<String>,
    },
    /// Another process writes to it.
    #[error("run '{name}' ({}): another process trains it", path.display())]
    Locked {
        /// The run.
        name: String,
        /// Its folder.
        path: PathBuf,
    },
    /// What the writer has open, or made when it began, is not in its place any more.
    #[error(
        "{}: deleted, moved or replaced while the run is trained; stopped: the same command goes on \
         from what is left",
        path.display()
    )]
    Gone {
        /// The file or folder.
        path: PathBuf,
    },
    /// A file is not what was once written.
    #[error(transparent)]
    Damaged(Damage),
    /// A game that cannot be stored.
    #[error("{}: {error}", path.display())]
    Game {
        /// Where it was to be stored.
        path: PathBuf,
        /// What is wrong with it.
        error: RecordError,
    },
    /// A number, a name or a size that cannot be stored.
    #[error("{}: {what}", path.display())]
    Refused {
        /// Where it was to be stored.
        path: PathBuf,
        /// What came, and what was expected.
        what: String,
    },
}

/// A file that is not what was once written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub what: String,
}

/// Checkpoints that are damaged, and the older one that is used in their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// What is damaged, newest first.
    pub damages: Vec<Damage>,
    /// The step of the checkpoint that is used.
    pub used: u64,
}

impl fmt::Display for PassedOver {
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

    /// For `map_err`: an error of the system, with the file it is about.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> RunError {
        let path = path.to_owned();
        |error| RunError::Io { path, error }
    }
}

/// The end of a sentence that tells what could have been asked for.
pub(crate) fn there_are(names: &[String]) -> String {
    if names.is_empty() {
        "there are none".into()
    } else {
        format!("there are {}", names.join(", "))
    }
}
