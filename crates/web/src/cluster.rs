//! A run on many machines, as somebody tells it who knows how to ask. How that is done, over which
//! broker, is not known here.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use utoipa::ToSchema;

/// How a cluster goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct ClusterView {
    /// The run, or what else is played.
    pub run: String,
    /// The generation or round that is being played; `None` while the learner learns.
    pub generation: Option<u64>,
    /// The hash of the network that plays.
    pub network: Option<String>,
    /// Games of it that are not there yet.
    pub missing: u64,
    /// Games taken since the learner started.
    pub games: u64,
    /// Games that wait at the broker; `None` when it does not say.
    pub waiting: Option<u64>,
    /// Games not taken, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Workers heard of since the learner started.
    pub members: u64,
    /// Those heard of last.
    pub workers: Vec<WorkerView>,
    /// Workers from whom nothing is taken, with the reason.
    pub bans: BTreeMap<String, String>,
}

/// A worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct WorkerView {
    /// Its name.
    pub name: String,
    /// Of selfmate.
    pub version: String,
    /// Threads that play.
    pub threads: u32,
    /// Games taken from it.
    pub games: u64,
    /// Games taken a second since it was first heard of.
    pub games_per_second: f64,
    /// Games that somebody else had sent before.
    pub duplicates: u64,
    /// Games not taken, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Games played again.
    pub audited: u64,
    /// Games that it has to play just now.
    pub held: u64,
    /// Seconds since it was last heard of.
    pub silent_s: f64,
    /// It plays with the newest network.
    pub is_current: bool,
}

/// Asks how a cluster goes; what went wrong in words that anybody may read.
pub type Ask = dyn Fn() -> Result<ClusterView, String> + Send + Sync;

/// A cluster to be watched. However many watch, one at a time asks.
#[derive(Clone)]
pub struct Watched(Arc<Inner>);

struct Inner {
    ask: Box<Ask>,
    asking: Mutex<()>,
    last: Mutex<Option<(Instant, Result<ClusterView, String>)>>,
}

/// For so long an answer is good.
const FRESH: Duration = Duration::from_secs(1);

impl Watched {
    /// Watched by asking this.
    pub fn new(ask: impl Fn() -> Result<ClusterView, String> + Send + Sync + 'static) -> Watched {
        let (asking, last) = (Mutex::default(), Mutex::default());
        Watched(Arc::new(Inner { ask: Box::new(ask), asking, last }))
    }

    /// How it goes, as of a moment ago.
    pub fn look(&self) -> Result<ClusterView, String> {
        let last = || self.0.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last().clone();
        if let Some((when, answer)) = &known
            && when.elapsed() < FRESH
        {
            return answer.clone();
        }
        // Who comes while another asks gets what there is: threads are not for waiting.
        let Ok(_asking) = self.0.asking.try_lock() else {
            let none = || Err("nobody has answered yet: try again".to_owned());
            return known.map_or_else(none, |(_, answer)| answer);
        };
        let answer = (self.0.ask)();
        *last() = Some((Instant::now(), answer.clone()));
        answer
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;

    #[test]
    fn many_who_look_cost_as_much_as_one() {
        let asked = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&asked);
        let watched = Watched::new(move || {
            counter.fetch_add(1, Relaxed);
            Err("away".to_owned())
        });
        let began = Instant::now();
        for _ in 0..1000 {
            assert_eq!(watched.look(), Err("away".to_owned()));
        }
        // A machine that stands still for seconds may ask once a second.
        assert!(asked.load(Relaxed) <= 1 + began.elapsed().as_secs(), "{asked:?}");
        let held = watched.0.asking.lock().unwrap();
        *watched.0.last.lock().unwrap() = None;
        assert!(watched.look().unwrap_err().contains("try again"));
        drop(held);
    }
}
