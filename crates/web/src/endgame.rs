//! Three-piece endings that runs have learned, and their tablebases. Both are cached: solving an
//! ending and loading a checkpoint take a moment.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::SystemTime;

use selfmate_learn::endgame::{EndingName, Lab, Trained, TrainedError, lab};
use selfmate_run::RunReader;

use crate::error::ApiError;
use crate::run::lock;

/// Cached networks.
const KEPT: usize = 6;

/// Cached tablebases and networks.
#[derive(Default)]
pub struct Endgames {
    /// In the order of [`EndingName::ALL`].
    labs: [Mutex<Option<Lab>>; EndingName::ALL.len()],
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
    pub fn is_solved(&self, ending: EndingName) -> bool {
        match self.labs[place(ending)].try_lock() {
            Ok(lab) => lab.is_some(),
            Err(TryLockError::Poisoned(lab)) => lab.into_inner().is_some(),
            Err(TryLockError::WouldBlock) => false,
        }
    }

    /// The solved ending. The first call solves it, which takes a moment; others wait.
    pub fn lab(&self, ending: EndingName) -> Result<Lab, ApiError> {
        let mut kept = self.labs[place(ending)].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lab) = &*kept {
            return Ok(lab.clone());
        }
        let solved = lab(ending).map_err(|error| ApiError::Internal(error.to_string()))?;
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

fn place(ending: EndingName) -> usize {
    EndingName::ALL.iter().position(|known| *known == ending).unwrap_or_default()
}
