//! Why a cluster cannot go on.

use std::io;
use std::path::{Path, PathBuf};

use selfmate_run::{RecordError, RunError};

use crate::job::JobError;
use crate::subject::{NameError, WorkerName};

/// Why a cluster cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A file of the run cannot be written.
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A file that does not hold what it should.
    #[error("{}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What came, and what was expected.
        what: String,
    },
    /// The system has no random numbers.
    #[error("cannot make a key: {0}")]
    Random(String),
    /// An address that no broker can have.
    #[error(
        "'{address}' is no address of a NATS server: {reason}; expected nats://HOST:PORT or tls://HOST:PORT, several with commas"
    )]
    Address {
        /// As given.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A broker whose name nobody knows, or whose certificate is not accepted: waiting hardly helps.
    #[error("connecting to {url}: {what}")]
    Unreachable {
        /// The address of the broker.
        url: String,
        /// What the network says.
        what: String,
    },
    /// The broker cannot be reached or does not allow something.
    #[error("{doing}: {what}")]
    Broker {
        /// What was tried.
        doing: String,
        /// What the broker or the network says.
        what: String,
    },
    /// Nobody trains here.
    #[error("no learner answers at {url}: start one with `selfmate train --nats {url}`")]
    NoLearner {
        /// The address of the broker.
        url: String,
    },
    /// Somebody else trains here.
    #[error(
        "'{run}' has the workers at {url}: an account of a broker has one run or match at a time"
    )]
    Taken {
        /// The address of the broker.
        url: String,
        /// What is trained.
        run: String,
    },
    /// Games that were counted are not what they should be.
    #[error(
        "worker {worker} is refused: {reason}; {games} of its games were counted before: play the match again, without what was stored of it"
    )]
    Counted {
        /// The worker.
        worker: WorkerName,
        /// Why.
        reason: String,
        /// How many.
        games: u64,
    },
    /// The learner does not want this worker.
    #[error("the learner refuses this worker: {0}")]
    Refused(String),
    /// What was fetched is not what was asked for.
    #[error("{what} {name} is not what its name says; it was changed on its way")]
    Forged {
        /// An job or a network.
        what: &'static str,
        /// Its hash.
        name: String,
    },
    /// An job that cannot be followed.
    #[error(transparent)]
    Order(#[from] JobError),
    /// A network that cannot be used.
    #[error("the network of an job: {0}")]
    Network(String),
    /// An job that asks for more memory than this worker has.
    #[error("an job needs more than this worker has: {0}")]
    Memory(String),
    /// A name that cannot be used.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Threads that play have panicked.
    #[error("{threads} of the threads that play have panicked")]
    Panicked {
        /// How many.
        threads: usize,
    },
    /// The runtime cannot be started.
    #[error("cannot start the runtime: {0}")]
    Runtime(io::Error),
}

impl ClusterError {
    /// For `map_err`: an error of the system, with the file it is about.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> ClusterError {
        let path = path.to_owned();
        |error| ClusterError::Io { path, error }
    }

    /// For `map_err`: an error of the broker, with what was tried.
    pub(crate) fn broker<E: std::fmt::Display>(doing: &str) -> impl FnOnce(E) -> ClusterError {
        let doing = doing.to_owned();
        move |error| ClusterError::Broker { doing, what: error.to_string() }
    }
}
