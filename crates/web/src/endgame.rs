//! Endings of three pieces that runs have learned, and the truth about them. Both are kept: solving an
//! ending and reading a checkpoint take a moment, looking at a square takes none.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::SystemTime;

use selfmate_learn::endgame::{EndingName, Lab, Trained, TrainedError, lab};
use selfmate_run::RunReader;

use crate::error::ApiError;
use crate::run::lock;

/// Networks that are kept.
const KEPT: usize = 6;

/// What is known of endings.
#[derive(Default)]
pub struct Endgames {
    /// In the order of [`EndingName::ALL`].
    labs: [Mutex<Option<Lab>>; EndingName::ALL.len()],
    trained: Mutex<Vec<(Key, Arc<Trained>)>>,
}

/// A run may be begun anew under an old name.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    run: String,
    begun: Option<SystemTime>,
    step: u64,
}

impl Endgames {
    /// Whether an ending is solved, so that its lab is there at once.
    pub fn is_solved(&self, ending: EndingName) -> bool {
        match self.labs[place(ending)].try_lock() {
            Ok(lab) => lab.is_some(),
            Err(TryLockError::Poisoned(lab)) => lab.into_inner().is_some(),
            Err(TryLockError::WouldBlock) => false,
        }
    }

    /// The lab of an ending. Whoever asks first solves it, which takes a moment; others wait.
    pub fn lab(&self, ending: EndingName) -> Result<Lab, ApiError> {
        let mut kept = self.labs[place(ending)].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lab) = &*kept {
            return Ok(lab.clone());
        }
        let solved = lab(ending).map_err(|error| ApiError::Internal(error.to_string()))?;
        Ok(kept.insert(solved).clone())
    }

    /// What a run has learned by a step, or by now.
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
