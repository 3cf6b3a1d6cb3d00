//! How a cluster goes, as the learner tells it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::broker::{Access, Broker, Role};
use crate::error::ClusterError;
use crate::hash::Hash;
use crate::subject::{self, WorkerName};

/// How a cluster goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The run.
    pub run: String,
    /// The generation that is being played; `None` while the learner learns.
    pub generation: Option<u64>,
    /// The network that plays it.
    pub network: Option<Hash>,
    /// Games of that generation that are not there yet.
    pub missing: u64,
    /// Games taken since the learner started.
    pub games: u64,
    /// Games not taken since the learner started, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Games that the broker keeps for the learner; `None` when it does not say.
    pub waiting: Option<u64>,
    /// Workers heard of since the learner started.
    pub members: u64,
    /// Those heard of last, a thousand at most.
    pub workers: Vec<Member>,
    /// Workers from whom nothing is taken, with the reason, a thousand at most.
    pub bans: BTreeMap<WorkerName, String>,
}

/// A worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Its name.
    pub name: WorkerName,
    /// Of selfmate.
    pub version: String,
    /// Threads that play.
    pub threads: u32,
    /// Games that it says it has sent.
    pub sent: u64,
    /// Games taken from it.
    pub games: u64,
    /// Games that somebody else had sent before.
    pub duplicates: u64,
    /// Games not taken, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Games played again.
    pub audited: u64,
    /// Those of them that diverged from what they should be, within rounding.
    pub diverged: u64,
    /// Games that it has to play just now.
    pub held: u64,
    /// Games taken a second since it was first heard of.
    pub games_per_second: f64,
    /// Seconds since it was last heard of.
    pub silent_s: f64,
    /// It plays with the newest network.
    pub is_current: bool,
}

/// Asks the learner how it goes.
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
        serde_json::from_slice(&answer)
            .map_err(ClusterError::broker("reading the learner's report"))
    })
}
