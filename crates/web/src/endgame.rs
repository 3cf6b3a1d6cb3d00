//! Three-piece endings that runs have learned, and their tablebases. Both are cached: solving an
//! ending and loading a checkpoint take a moment.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::SystemTime;

use selfmate_methods::endgame::{Oracle, Trained, TrainedError};
use selfmate_run::RunReader;
use selfmate_selfplay::Ending;

use crate::error::ApiError;
use crate::run::lock;

/// Cached networks.
const KEPT: usize = 6;

/// Cached tablebases and networks.
#[derive(Default)]
pub struct Endgames {
    /// In the order of [`Ending::ALL`].
    oracles: [Mutex<Option<Oracle>>; Ending::ALL.len()],
    trained: Mutex<Vec<(Key, Arc<Trained>)>>,
}

/// The start time tells runs apart that were created again under the same name.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    run: String,
    begun: Option<SystemTime>,
    step: u64,
}

impl Endgames {
    /// True when an ending is already solved.
    pub fn is_solved(&self, ending: Ending) -> bool {
        match self.oracles[index(ending)].try_lock() {
            Ok(oracle) => oracle.is_some(),
            Err(TryLockError::Poisoned(oracle)) => oracle.into_inner().is_some(),
            Err(TryLockError::WouldBlock) => false,
        }
    }

    /// The solved ending. The first call solves it, which takes a moment; others wait.
    pub fn oracle(&self, ending: Ending) -> Result<Oracle, ApiError> {
        let mut kept = self.oracles[index(ending)].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(oracle) = &*kept {
            return Ok(oracle.clone());
        }
        let solved =
            Oracle::solve(ending).map_err(|error| ApiError::Internal(error.to_string()))?;
        Ok(kept.insert(solved).clone())
    }

    /// The network of a run at a step; the newest by default.
    pub fn trained(
        &self,
        run: &RunReader,
        step: Option<u64>,
    ) -> Result<Arc<Trained>, TrainedError> {
        let newest = run.steps()?.last().copied();
        let key = step.or(newest).map(|step| Key { run: run.name(), begun: run.begun(), step });
        let find = |kept: &[(Key, Arc<Trained>)]| {
            let found = kept.iter().find(|(known, _)| Some(known) == key.as_ref());
            found.map(|(_, trained)| Arc::clone(trained))
        };
        if let Some(trained) = find(&lock(&self.trained)) {
            return Ok(trained);
        }
        let trained = Arc::new(Trained::load(run, step)?);
        let mut kept = lock(&self.trained);
        if find(&kept).is_none() {
            if kept.len() >= KEPT {
                kept.remove(0);
            }
            kept.extend(key.map(|key| (key, Arc::clone(&trained))));
        }
        Ok(trained)
    }
}

fn index(ending: Ending) -> usize {
    Ending::ALL.iter().position(|known| *known == ending).unwrap_or_default()
}
