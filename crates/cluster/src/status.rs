//! The status report of a cluster, and the request for it. The coordinator makes the report from its
//! own memory; a watcher needs no access to the stream or the run folder.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::broker::{Access, Broker, Role};
use crate::error::ClusterError;
use crate::hash::Hash;
use crate::subject::{self, WorkerName};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the run or match.
    pub run: String,
    /// The generation, or the round of a match, that is being played; `None` while the learner trains.
    pub generation: Option<u64>,
    pub network: Option<Hash>,
    /// Games of the current job that have not arrived.
    pub missing: u64,
    /// Games accepted since the coordinator started.
    pub games: u64,
    /// Games rejected since the coordinator started, by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Messages stored by the broker that are not acknowledged; `None` if the broker does not answer.
    pub waiting: Option<u64>,
    /// Workers seen since the coordinator started.
    pub members: u64,
    /// The workers seen most recently, at most a thousand.
    pub workers: Vec<Member>,
    /// Banned workers with the reason, at most a thousand.
    pub bans: BTreeMap<WorkerName, String>,
}

/// A worker in the status report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    pub name: WorkerName,
    /// Version of selfmate.
    pub version: String,
    pub threads: u32,
    /// Games sent, by the worker's own count.
    pub sent: u64,
    /// Games accepted.
    pub games: u64,
    /// Games that had already arrived, from this worker or another.
    pub duplicates: u64,
    /// Games rejected, by reason.
    pub rejected: BTreeMap<String, u64>,
    pub audited: u64,
    /// Audited games that diverged in a few plies; see [`crate::audit::Agreement::Diverged`].
    pub diverged: u64,
    /// Games lent to it at the moment.
    pub held: u64,
    /// Games accepted per second since it was first seen.
    pub games_per_second: f64,
    /// Seconds since its last message.
    pub silent_s: f64,
    /// Whether it plays the current job.
    pub is_current: bool,
}

/// Requests the status report from the coordinator.
pub fn status(access: &Access) -> Result<Report, ClusterError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ClusterError::Runtime)?;
    runtime.block_on(async {
        let broker = Broker::connect(access, Role::Watcher).await?;
        let timeout = Duration::from_secs(5);
        let answer = broker.request(subject::STATUS, Vec::new(), timeout).await?;
        let answer = answer.ok_or_else(|| ClusterError::NoLearner { url: access.url.clone() })?;
        serde_json::from_slice(&answer).map_err(ClusterError::broker("reading the status report"))
    })
}
