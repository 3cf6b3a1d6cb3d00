//! The errors that stop a coordinator, a worker or a status request. A rejected game is not among
//! them: see [`crate::rejection`].

use std::io;
use std::path::{Path, PathBuf};

use selfmate_run::{RecordError, RunError};

use crate::job::JobError;
use crate::subject::{NameError, WorkerName};

#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A file with invalid content.
    #[error("{}: {what}", path.display())]
    File { path: PathBuf, what: String },
    #[error("the system gave no random bytes for a key: {0}")]
    Random(String),
    /// An address that can never work.
    #[error(
        "'{address}' is not the address of a NATS server: {reason}; expected nats://HOST:PORT or tls://HOST:PORT, or several separated by commas"
    )]
    Address { address: String, reason: String },
    /// The host name cannot be resolved, or the certificate is not accepted. Waiting rarely helps.
    #[error("connecting to {url}: {what}")]
    Unreachable { url: String, what: String },
    /// The broker does not answer, or does not permit something. `doing` is what was tried.
    #[error("{doing}: {what}")]
    Broker { doing: String, what: String },
    #[error("no learner answers at {url}: start one with `selfmate train --nats {url}`")]
    NoLearner { url: String },
    /// Another coordinator leads this account.
    #[error(
        "'{run}' already uses the workers at {url}: a broker account serves one run or match at a time; stop it, or use another account"
    )]
    Taken { url: String, run: String },
    /// Match games that were already counted turn out to be from a banned worker.
    #[error(
        "worker {worker} is banned: {reason}; {games} of its games were counted before: play the match again without its store"
    )]
    Counted { worker: WorkerName, reason: String, games: u64 },
    #[error("the coordinator does not accept this worker: {0}")]
    Refused(String),
    /// `what` is "job" or "network".
    #[error("the broker returned {what} {hash} with other content than its hash says")]
    Forged { what: &'static str, hash: String },
    #[error(transparent)]
    Job(#[from] JobError),
    #[error("the network of the job cannot be used: {0}")]
    Network(String),
    #[error("the job needs more memory than this worker has: {0}")]
    Memory(String),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("{threads} of the threads that play games have panicked")]
    Panicked { threads: usize },
    #[error("cannot start the asynchronous runtime: {0}")]
    Runtime(io::Error),
}

impl ClusterError {
    /// For `map_err`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> ClusterError {
        let path = path.to_owned();
        |error| ClusterError::Io { path, error }
    }

    /// For `map_err`.
    pub(crate) fn broker<E: std::fmt::Display>(doing: &str) -> impl FnOnce(E) -> ClusterError {
        let doing = doing.to_owned();
        move |error| ClusterError::Broker { doing, what: error.to_string() }
    }
}
