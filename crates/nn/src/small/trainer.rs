//! A small network in training: gradients in, better weights out.

use super::adam::{Adam, AdamConfig};
use super::network::{Network, Shape};
use super::parameters::Parameters;
use super::{encode, read_part};
use crate::file::WeightsError;

/// A network in training.
#[derive(Clone, Debug, PartialEq)]
pub struct Trainer<S> {
    network: Network<S>,
    adam: Adam,
    step: u64,
}

/// Why a batch cannot be learned from; the weights are as before it.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum TrainError {
    /// No lessons.
    #[error("the batch is empty")]
    Empty,
    /// A loss or a gradient that is no number.
    #[error("step {step}: a batch of loss {loss} cannot be learned")]
    NotFinite {
        /// The step.
        step: u64,
        /// The loss.
        loss: f64,
    },
}

/// Names of Adam's moments in files.
const FIRST: &str = "first.";
const SECOND: &str = "second.";

impl<S: Shape> Trainer<S> {
    /// Starts to train a network.
    pub fn new(network: Network<S>) -> Trainer<S> {
        Trainer { adam: Adam::new(&network.weights), network, step: 0 }
    }

    /// The network as it is now.
    pub fn network(&self) -> &Network<S> {
        &self.network
    }

    /// How many batches have been learned.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Follows the gradient of a batch with this loss; the gradient's length before clipping.
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

    /// Everything needed to go on as if nothing had happened.
    pub fn state(&self) -> Result<Vec<u8>, WeightsError> {
        let Trainer { network, adam, step } = self;
        let sets = [("", &network.weights), (FIRST, &adam.first), (SECOND, &adam.second)];
        encode(S::ARCHITECTURE, network.config, *step, &sets)
    }

    /// Goes on from a state.
    pub fn restore(bytes: &[u8]) -> Result<Trainer<S>, WeightsError> {
        let (network, step, tensors) = Network::<S>::decode_set(bytes, "")?;
        let mut adam = Adam::new(&network.weights);
        read_part(&tensors, FIRST, &mut adam.first)?;
        read_part(&tensors, SECOND, &mut adam.second)?;
        Ok(Trainer { network, adam, step })
    }
}
