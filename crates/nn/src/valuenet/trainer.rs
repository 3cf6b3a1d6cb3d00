//! The trainer: positions with their results in, better weights out.

use super::gradient::{Lesson, gradient};
use super::network::{ARCHITECTURE, Network, decode_set};
use crate::file::WeightsError;
use crate::small::{self, Adam, AdamConfig};

/// A network in training.
#[derive(Clone, Debug, PartialEq)]
pub struct Trainer {
    network: Network,
    adam: Adam,
    step: u64,
}

/// Why a batch cannot be learned from.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum TrainError {
    /// No lessons.
    #[error("the batch is empty")]
    Empty,
    /// A loss that is no number; the weights are as before the batch.
    #[error("step {step}: loss {loss}")]
    NotFinite {
        /// The step.
        step: u64,
        /// The loss.
        loss: f64,
    },
}

impl Trainer {
    /// Starts to train a network.
    pub fn new(network: Network) -> Trainer {
        Trainer { adam: Adam::new(&network.weights), network, step: 0 }
    }

    /// The network as it is now.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// How many batches have been learned.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Learns from a batch; its mean squared error, and the length of its gradient before clipping.
    pub fn learn(
        &mut self,
        lessons: &[Lesson<'_>],
        adam: &AdamConfig,
        rate: f32,
    ) -> Result<(f64, f32), TrainError> {
        if lessons.is_empty() {
            return Err(TrainError::Empty);
        }
        let (loss, gradient) = gradient(&self.network, lessons);
        if !loss.is_finite() || gradient.values.iter().any(|value| !value.is_finite()) {
            return Err(TrainError::NotFinite { step: self.step, loss });
        }
        self.step += 1;
        let norm = self.adam.step(&mut self.network.weights, &gradient, adam, rate, self.step);
        Ok((loss, norm))
    }

    /// Everything needed to go on as if nothing had happened.
    pub fn state(&self) -> Result<Vec<u8>, WeightsError> {
        let sets = [
            ("", &self.network.weights),
            ("first.", &self.adam.first),
            ("second.", &self.adam.second),
        ];
        small::encode(ARCHITECTURE, self.network.config(), self.step, &sets)
    }

    /// Goes on from a state.
    pub fn restore(bytes: &[u8]) -> Result<Trainer, WeightsError> {
        let (network, step, tensors) = decode_set(bytes, "")?;
        let mut adam = Adam::new(&network.weights);
        small::read_part(&tensors, "first.", &mut adam.first)?;
        small::read_part(&tensors, "second.", &mut adam.second)?;
        Ok(Trainer { network, adam, step })
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::super::gradient::tests::{boards, lessons};
    use super::super::network::ValueNetConfig;
    use super::*;

    #[test]
    fn a_restored_trainer_goes_on_and_results_are_learned() {
        let config = ValueNetConfig { channels: 8, blocks: 1, head: 4, hidden: 16 };
        let boards = boards(12);
        let lessons = lessons(&boards);
        let mut trainer = Trainer::new(Network::random(config, Seed::new(1)).unwrap());
        let mut other = trainer.clone();
        let before = super::super::loss(trainer.network(), &lessons);
        for step in 0..300 {
            if step == 70 {
                other = Trainer::restore(&other.state().unwrap()).unwrap();
            }
            trainer.learn(&lessons, &AdamConfig::default(), 3e-3).unwrap();
            other.learn(&lessons, &AdamConfig::default(), 3e-3).unwrap();
        }
        assert!(trainer == other);
        let after = super::super::loss(trainer.network(), &lessons);
        assert!(after < 0.2 * before, "{before} {after}");
        assert_eq!(trainer.learn(&[], &AdamConfig::default(), 0.1), Err(TrainError::Empty));
    }
}
