//! The network of an endgame run, loaded from its checkpoints.

use selfmate_nn::Model;
use selfmate_nn::sparse::WeightsError;
use selfmate_run::{RunError, RunReader, SkippedCheckpoints};
use selfmate_selfplay::Ending;
use selfmate_train::{ConfigError, MODEL};

use super::{EndgameConfig, EndgameNetwork};
use crate::settings::RunConfig;

/// The network of a checkpoint, and how it was trained.
#[derive(Clone, Debug)]
pub struct Trained {
    pub config: EndgameConfig,
    pub step: u64,
    pub network: EndgameNetwork,
    /// Newer checkpoints that were skipped because they are damaged.
    pub skipped_checkpoints: Option<SkippedCheckpoints>,
}

#[derive(Debug, thiserror::Error)]
pub enum TrainedError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("run '{run}': {error}")]
    Config { run: String, error: ConfigError },
    /// The run has another learner.
    #[error("run '{run}' has the learner {learner}: expected krk, kqk or kpk")]
    Learner { run: String, learner: String },
    #[error("run '{0}' has no checkpoint yet")]
    Untrained(String),
    #[error("run '{run}', step {step}: expected the network of an ending")]
    Architecture { run: String, step: u64 },
    #[error("run '{run}', step {step}: {error}")]
    Network { run: String, step: u64, error: WeightsError },
}

impl Trained {
    pub fn ending(&self) -> Ending {
        self.config.selfplay.ending.unwrap_or(Ending::Krk)
    }

    /// The network of this step, or the newest.
    pub fn load(run: &RunReader, step: Option<u64>) -> Result<Trained, TrainedError> {
        let name = run.name();
        let text = run.config()?.unwrap_or_default();
        let settings = RunConfig::parse(&text)
            .map_err(|error| TrainedError::Config { run: name.clone(), error })?
            .settings;
        let Some(config) = settings.downcast::<EndgameConfig>().cloned() else {
            let learner = settings.learner().to_owned();
            return Err(TrainedError::Learner { run: name, learner });
        };
        let (checkpoint, skipped_checkpoints) = match step {
            Some(step) => (Some(run.load_checkpoint(step)?), None),
            None => {
                let latest = run.latest_checkpoint(&[MODEL])?;
                let skipped_checkpoints = latest.skipped_checkpoints();
                (latest.checkpoint, skipped_checkpoints)
            }
        };
        let found = checkpoint
            .as_ref()
            .and_then(|checkpoint| Some((checkpoint.step, checkpoint.files.get(MODEL)?)));
        let Some((step, bytes)) = found else { return Err(TrainedError::Untrained(name)) };
        match Model::decode(bytes).map(|(model, _)| EndgameNetwork::of(model)) {
            Ok(Some(network)) => Ok(Trained { config, step, network, skipped_checkpoints }),
            Ok(None) => Err(TrainedError::Architecture { run: name, step }),
            Err(error) => Err(TrainedError::Network { run: name, step, error }),
        }
    }
}
