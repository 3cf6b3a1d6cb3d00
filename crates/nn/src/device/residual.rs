//! The residual network on any device: our own kernels, or Burn.

use selfmate_search::Evaluator;

use super::{Device, DeviceError};
#[cfg(feature = "burn")]
use crate::burn;
use crate::residual::{
    self, Batch, Losses, Network, NetworkEvaluator, TrainError, TrainingConfig, Weights,
};

/// Creates one evaluator per call, for use on one thread.
pub type Evaluators = Box<dyn Fn() -> Box<dyn Evaluator> + Send + Sync>;

/// A factory of evaluators for these weights on a device.
pub fn evaluators(weights: &Weights, device: Device) -> Result<Evaluators, DeviceError> {
    device.check()?;
    #[cfg(feature = "burn")]
    if device != Device::Cpu {
        let weights = weights.clone();
        return Ok(Box::new(move || {
            let evaluator = burn::NetworkEvaluator::new(&weights, device);
            Box::new(evaluator.expect("the device was available a moment ago"))
        }));
    }
    let network = Network::new(weights);
    Ok(Box::new(move || Box::new(NetworkEvaluator::new(&network))))
}

/// Trains a residual network on any device. A state from one device can be resumed on any other.
pub enum Trainer {
    Cpu(Box<residual::Trainer>),
    #[cfg(feature = "burn")]
    Burn(Box<burn::Trainer>),
}

impl Trainer {
    /// `threads` applies to our own kernels only.
    pub fn new(
        weights: Weights,
        config: TrainingConfig,
        threads: usize,
        device: Device,
    ) -> Result<Trainer, TrainError> {
        device.check()?;
        #[cfg(feature = "burn")]
        if device != Device::Cpu {
            return Ok(Trainer::Burn(burn::Trainer::new(&weights, config, device)?.into()));
        }
        Ok(Trainer::Cpu(residual::Trainer::new(weights, config, threads)?.into()))
    }

    /// Resumes from a state of the same optimiser.
    pub fn restore(
        state: &[u8],
        config: TrainingConfig,
        threads: usize,
        device: Device,
    ) -> Result<Trainer, TrainError> {
        device.check()?;
        #[cfg(feature = "burn")]
        if device != Device::Cpu {
            return Ok(Trainer::Burn(burn::Trainer::restore(state, config, device)?.into()));
        }
        Ok(Trainer::Cpu(residual::Trainer::restore(state, config, threads)?.into()))
    }

    /// Trains on one batch.
    pub fn step(&mut self, batch: &Batch, learning_rate: f32) -> Result<Losses, TrainError> {
        match self {
            Trainer::Cpu(trainer) => trainer.step(batch, learning_rate),
            #[cfg(feature = "burn")]
            Trainer::Burn(trainer) => trainer.step(batch, learning_rate),
        }
    }

    /// The number of batches trained on.
    pub fn steps(&self) -> u64 {
        match self {
            Trainer::Cpu(trainer) => trainer.steps(),
            #[cfg(feature = "burn")]
            Trainer::Burn(trainer) => trainer.steps(),
        }
    }

    /// The moving average of the weights, which should be used for play.
    pub fn average(&self) -> &Weights {
        match self {
            Trainer::Cpu(trainer) => trainer.average(),
            #[cfg(feature = "burn")]
            Trainer::Burn(trainer) => trainer.average(),
        }
    }

    /// The complete training state.
    pub fn state(&self) -> Result<Vec<u8>, TrainError> {
        match self {
            Trainer::Cpu(trainer) => Ok(trainer.state()?),
            #[cfg(feature = "burn")]
            Trainer::Burn(trainer) => trainer.state(),
        }
    }
}
