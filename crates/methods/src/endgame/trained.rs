//! The network of an endgame run, loaded from its checkpoints.

use std::sync::Arc;

use selfmate_nn::Model;
use selfmate_nn::mlp::Network;
use selfmate_nn::sparse::WeightsError;
use selfmate_run::{PassedOver, RunError, RunReader};
use selfmate_selfplay::Ending;
use selfmate_train::{ConfigError, MODEL};

use super::EndgameConfig;
use crate::settings::RunConfig;

/// The network of a checkpoint, and how it was trained.
#[derive(Clone, Debug)]
pub struct Trained {
    pub config: EndgameConfig,
    pub step: u64,
    pub network: Arc<Network>,
    /// Newer checkpoints that were skipped because they are damaged.
    pub passed_over: Option<PassedOver>,
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
        let (checkpoint, passed_over) = match step {
            Some(step) => (Some(run.load_checkpoint(step)?), None),
            None => {
                let latest = run.latest_checkpoint(&[MODEL])?;
                let passed_over = latest.passed_over();
                (latest.checkpoint, passed_over)
            }
        };
        let found = checkpoint
            .as_ref()
            .and_then(|checkpoint| Some((checkpoint.step, checkpoint.files.get(MODEL)?)));
        let Some((step, bytes)) = found else { return Err(TrainedError::Untrained(name)) };
        match Model::decode(bytes) {
            Ok((Model::Mlp(network), _)) => Ok(Trained { config, step, network, passed_over }),
            Ok(_) => Err(TrainedError::Architecture { run: name, step }),
            Err(error) => Err(TrainedError::Network { run: name, step, error }),
        }
    }
}
