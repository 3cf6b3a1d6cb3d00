//! Training of a small network.

use super::adam::{Adam, AdamConfig};
use super::network::{Network, Shape};
use super::parameters::Parameters;
use super::{encode, read_part};
use crate::file::WeightsError;

#[derive(Clone, Debug, PartialEq)]
pub struct Trainer<S> {
    network: Network<S>,
    adam: Adam,
    step: u64,
}

/// Why a training step failed. The weights are unchanged.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum TrainError {
    #[error("the batch is empty")]
    Empty,
    /// A loss or gradient that is not finite.
    #[error(
        "step {step}: the loss is {loss} or the gradient is not finite; the weights are unchanged"
    )]
    NotFinite { step: u64, loss: f64 },
}

/// Prefixes of Adam's moments in files.
const FIRST: &str = "first.";
const SECOND: &str = "second.";

impl<S: Shape> Trainer<S> {
    pub fn new(network: Network<S>) -> Trainer<S> {
        Trainer { adam: Adam::new(&network.weights), network, step: 0 }
    }

    /// The network in its current state.
    pub fn network(&self) -> &Network<S> {
        &self.network
    }

    /// For numbers that no gradient changes.
    pub(crate) fn network_mut(&mut self) -> &mut Network<S> {
        &mut self.network
    }

    /// The number of batches trained on.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Updates the weights with the gradient of a batch. Returns the length of the gradient before
    /// clipping.
    pub(crate) fn follow(
        &mut self,
        loss: f64,
        gradient: &Parameters,
        adam: &AdamConfig,
        rate: f32,
    ) -> Result<f32, TrainError> {
        if !loss.is_finite() || gradient.values.iter().any(|value| !value.is_finite()) {
            return Err(TrainError::NotFinite { step: self.step, loss });
        }
        self.step += 1;
        Ok(self.adam.step(&mut self.network.weights, gradient, adam, rate, self.step))
    }

    /// The complete training state.
    pub fn state(&self) -> Result<Vec<u8>, WeightsError> {
        let Trainer { network, adam, step } = self;
        let sets = [("", &network.weights), (FIRST, &adam.first), (SECOND, &adam.second)];
        encode(S::ARCHITECTURE, network.config.stored(), *step, &sets)
    }

    /// Resumes from a training state.
    pub fn restore(bytes: &[u8]) -> Result<Trainer<S>, WeightsError> {
        let (network, step, tensors) = Network::<S>::decode_set(bytes, "")?;
        let mut adam = Adam::new(&network.weights);
        read_part(&tensors, FIRST, &mut adam.first)?;
        read_part(&tensors, SECOND, &mut adam.second)?;
        Ok(Trainer { network, adam, step })
    }
}
