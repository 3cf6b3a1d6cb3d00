//! The trainer: the same bits with any number of threads.

use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::{Deserialize, Serialize};

use super::file::{self, Precision, WeightsError, WeightsInfo};
use super::gradient::{Gradient, LossWeights};
use super::kernel::Kernel;
use super::optimiser::{Adam, norm};
use super::sample::Sample;
use super::weights::Weights;

/// Training settings. The learning rate is passed with each batch, which allows any schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainerConfig {
    /// Weight of the value loss.
    pub value_weight: f32,
    /// Weight of the policy loss.
    pub policy_weight: f32,
    /// Decay rate of the first moment.
    pub beta1: f32,
    /// Decay rate of the second moment.
    pub beta2: f32,
    /// Avoids division by zero.
    pub epsilon: f32,
    /// Weight decay at learning rate 1; only rows in use decay.
    pub weight_decay: f32,
    /// The maximum length of the mean gradient.
    pub clip_norm: f32,
    /// The share of the weights in the moving average, per batch.
    pub average_rate: f32,
    /// The average is updated once per this many batches, with the sum of their shares.
    pub average_every: u64,
}

impl Default for TrainerConfig {
    fn default() -> TrainerConfig {
        TrainerConfig {
            value_weight: 1.0,
            policy_weight: 1.0,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.0,
            clip_norm: 1.0,
            average_rate: 0.005,
            average_every: 8,
        }
    }
}

/// Mean losses of a batch, before the update.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Losses {
    /// Cross entropy of the value.
    pub value: f32,
    /// Cross entropy of the policy.
    pub policy: f32,
    /// Length of the mean gradient before clipping.
    pub gradient_norm: f32,
}

/// Why a training step failed.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    #[error("the batch is empty")]
    Empty,
    #[error("cannot start {threads} training threads: {message}")]
    Threads { threads: usize, message: String },
    /// A loss or gradient that is not finite. The weights are unchanged.
    #[error("step {step}: value loss {value}, policy loss {policy}, gradient norm {gradient_norm}")]
    NotFinite { step: u64, value: f32, policy: f32, gradient_norm: f32 },
    #[error(transparent)]
    Config(#[from] super::ConfigError),
    /// An invalid training state.
    #[error("cannot resume from this training state: {0}")]
    State(#[from] WeightsError),
}

const FIRST: &str = "first.";
const SECOND: &str = "second.";
const AVERAGE: &str = "average.";

/// Trains a sparse network.
pub struct Trainer {
    weights: Weights,
    adam: Adam,
    gradient: Gradient,
    config: TrainerConfig,
    step: u64,
    kernel: Kernel,
    pool: ThreadPool,
}

impl Trainer {
    pub fn new(
        mut weights: Weights,
        config: TrainerConfig,
        threads: usize,
    ) -> Result<Trainer, TrainError> {
        weights.clip();
        let pool = ThreadPoolBuilder::new().num_threads(threads.max(1)).build();
        let pool =
            pool.map_err(|error| TrainError::Threads { threads, message: error.to_string() })?;
        Ok(Trainer {
            adam: Adam::new(&weights)?,
            gradient: Gradient::new(weights.config())?,
            weights,
            config,
            step: 0,
            kernel: Kernel::detect(),
            pool,
        })
    }

    /// Trains on one batch.
    pub fn train(&mut self, batch: &[&Sample], learning_rate: f32) -> Result<Losses, TrainError> {
        if batch.is_empty() {
            return Err(TrainError::Empty);
        }
        let losses =
            LossWeights { value: self.config.value_weight, policy: self.config.policy_weight };
        let Trainer { weights, adam, gradient, config, step, kernel, pool } = self;
        pool.install(|| {
            let sums = gradient.add(*kernel, weights, batch, losses);
            let mean = 1.0 / batch.len() as f32;
            let [value, policy] = sums.map(|sum| (sum / batch.len() as f64) as f32);
            let gradient_norm = norm(gradient) * mean;
            if !(value.is_finite() && policy.is_finite() && gradient_norm.is_finite()) {
                *gradient = Gradient::new(weights.config())?;
                return Err(TrainError::NotFinite { step: *step, value, policy, gradient_norm });
            }
            let clip = (config.clip_norm / gradient_norm.max(f32::MIN_POSITIVE)).min(1.0);
            adam.update(weights, gradient, mean * clip, *step, learning_rate, config);
            *step += 1;
            let every = config.average_every.max(1);
            if step.is_multiple_of(every) {
                // Early on, the plain mean of all averages so far forgets the initial weights
                // faster.
                let rate = 1.0 - (1.0 - config.average_rate).powi(every as i32);
                let rate = rate.max(1.0 / (*step / every) as f32);
                adam.average_in(weights, rate);
            }
            Ok(Losses { value, policy, gradient_norm })
        })
    }

    /// The losses of a batch and its mean gradient, unclipped. Changes nothing.
    pub fn gradient(&self, batch: &[&Sample]) -> Result<(Losses, Weights), TrainError> {
        if batch.is_empty() {
            return Err(TrainError::Empty);
        }
        let mut gradient = Gradient::new(self.weights.config())?;
        let losses =
            LossWeights { value: self.config.value_weight, policy: self.config.policy_weight };
        let (sums, length) = self.pool.install(|| {
            let sums = gradient.add(self.kernel, &self.weights, batch, losses);
            (sums, norm(&gradient))
        });
        let mean = 1.0 / batch.len() as f32;
        for tensor in gradient.sums.tensors_mut() {
            tensor.values.iter_mut().for_each(|value| *value *= mean);
        }
        let [value, policy] = sums.map(|sum| (sum / batch.len() as f64) as f32);
        Ok((Losses { value, policy, gradient_norm: length * mean }, gradient.sums))
    }

    /// The weights after the last batch.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The moving average of the weights, which should be used for play.
    pub fn average(&self) -> &Weights {
        &self.adam.average
    }

    /// The complete training state: weights, moments and average.
    pub fn state(&self) -> Result<Vec<u8>, WeightsError> {
        let Adam { first, second, average } = &self.adam;
        let parts = [("", &self.weights), (FIRST, first), (SECOND, second), (AVERAGE, average)];
        file::encode_parts(&parts, WeightsInfo { step: self.step }, Precision::Float)
    }

    /// Resumes from a training state.
    pub fn restore(
        state: &[u8],
        config: TrainerConfig,
        threads: usize,
    ) -> Result<Trainer, TrainError> {
        let (parts, info) = file::decode_parts(state, &["", FIRST, SECOND, AVERAGE])?;
        let [weights, first, second, average] =
            <[Weights; 4]>::try_from(parts).expect("four prefixes give four parts");
        let mut trainer = Trainer::new(weights, config, threads)?;
        trainer.adam = Adam { first, second, average };
        trainer.step = info.step;
        Ok(trainer)
    }

    /// The number of batches trained on.
    pub fn step(&self) -> u64 {
        self.step
    }
}

#[cfg(test)]
mod tests;
