//! The state of a distributed run. How it is queried, and over which broker, is up to the caller.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use utoipa::ToSchema;

/// State of a distributed run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct ClusterView {
    /// Name of the run or other job.
    pub run: String,
    /// The generation or round being played; `None` while the learner trains.
    pub generation: Option<u64>,
    /// Hash of the network that plays.
    pub network: Option<String>,
    /// Missing games of this generation.
    pub missing: u64,
    /// Accepted games since the learner started.
    pub games: u64,
    /// Games waiting at the broker; `None` when unknown.
    pub waiting: Option<u64>,
    /// Rejected games by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Workers seen since the learner started.
    pub members: u64,
    /// The most recently seen workers.
    pub workers: Vec<WorkerView>,
    /// Banned workers with the reason.
    pub bans: BTreeMap<String, String>,
}

/// State of one worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct WorkerView {
    /// Name of the worker.
    pub name: String,
    /// Version of selfmate.
    pub version: String,
    /// Threads that play games.
    pub threads: u32,
    /// Accepted games.
    pub games: u64,
    /// Accepted games per second since it was first seen.
    pub games_per_second: f64,
    /// Games that another worker had already sent.
    pub duplicates: u64,
    /// Rejected games by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Games that were replayed for verification.
    pub audited: u64,
    /// Games it is playing now.
    pub held: u64,
    /// Seconds since its last message.
    pub silent_s: f64,
    /// True when it plays with the newest network.
    pub is_current: bool,
}

/// Queries the state of a cluster. The error is shown to users.
pub type ClusterQuery = dyn Fn() -> Result<ClusterView, String> + Send + Sync;

/// A watched cluster. Only one query runs at a time, however many clients watch.
#[derive(Clone)]
pub struct ClusterWatcher(Arc<Inner>);

struct Inner {
    query: Box<ClusterQuery>,
    querying: Mutex<()>,
    last: Mutex<Option<(Instant, Result<ClusterView, String>)>>,
}

/// How long an answer is reused.
const FRESH: Duration = Duration::from_secs(1);

impl ClusterWatcher {
    /// Watches a cluster with this query.
    pub fn new(
        query: impl Fn() -> Result<ClusterView, String> + Send + Sync + 'static,
    ) -> ClusterWatcher {
        let (querying, last) = (Mutex::default(), Mutex::default());
        ClusterWatcher(Arc::new(Inner { query: Box::new(query), querying, last }))
    }

    /// The state, at most a second old.
    pub fn look(&self) -> Result<ClusterView, String> {
        let last = || self.0.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last().clone();
        if let Some((when, answer)) = &known
            && when.elapsed() < FRESH
        {
            return answer.clone();
        }
        // While another query runs, the old state is returned: threads must not wait here.
        let Ok(_querying) = self.0.querying.try_lock() else {
            let none = || Err("there is no answer yet: try again".to_owned());
            return known.map_or_else(none, |(_, answer)| answer);
        };
        let answer = (self.0.query)();
        *last() = Some((Instant::now(), answer.clone()));
        answer
    }
}

impl fmt::Debug for ClusterWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterWatcher")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;

    #[test]
    fn many_clients_cause_one_query_per_second() {
        let asked = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&asked);
        let watched = ClusterWatcher::new(move || {
            counter.fetch_add(1, Relaxed);
            Err("away".to_owned())
        });
        let began = Instant::now();
        for _ in 0..1000 {
            assert_eq!(watched.look(), Err("away".to_owned()));
        }
        // A stalled machine may query once per second.
        assert!(asked.load(Relaxed) <= 1 + began.elapsed().as_secs(), "{asked:?}");
        let held = watched.0.querying.lock().unwrap();
        *watched.0.last.lock().unwrap() = None;
        assert!(watched.look().unwrap_err().contains("try again"));
        drop(held);
    }
}
