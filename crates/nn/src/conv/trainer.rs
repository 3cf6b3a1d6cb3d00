//! Training steps of the network.

use super::gradient::{Sample, gradient};
use super::network::ConvConfig;
use crate::mlp::{LossWeights, Losses};
use crate::small::{self, AdamConfig, TrainError};

pub type Trainer = small::Trainer<ConvConfig>;

impl Trainer {
    /// Trains on a batch. Returns its losses and the length of its gradient before clipping.
    pub fn learn(
        &mut self,
        samples: &[Sample],
        weights: &LossWeights,
        adam: &AdamConfig,
        rate: f32,
    ) -> Result<(Losses, f32), TrainError> {
        if samples.is_empty() {
            return Err(TrainError::Empty);
        }
        let (losses, gradient) = gradient(self.network(), samples, weights);
        let norm = self.follow(losses.total(weights), &gradient, adam, rate)?;
        Ok((losses, norm))
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::super::gradient::tests::samples;
    use super::super::network::Network;
    use super::*;

    #[test]
    fn a_restored_trainer_continues_and_both_targets_are_learned() {
        const WEIGHTS: LossWeights = LossWeights { value: 1.0, entropy: 0.0 };
        let config = ConvConfig { channels: 8, blocks: 1, has_skips: true, head: 4, hidden: 16 };
        let samples = samples(12);
        let mut trainer = Trainer::new(Network::random(config, Seed::new(1)).unwrap());
        let mut other = trainer.clone();
        let before = super::super::loss(trainer.network(), &samples);
        for step in 0..200 {
            if step == 70 {
                other = Trainer::restore(&other.state().unwrap()).unwrap();
            }
            trainer.learn(&samples, &WEIGHTS, &AdamConfig::default(), 3e-3).unwrap();
            other.learn(&samples, &WEIGHTS, &AdamConfig::default(), 3e-3).unwrap();
        }
        assert!(trainer == other);
        let after = super::super::loss(trainer.network(), &samples);
        // The entropy of the targets is a lower bound of the policy's loss.
        let least = -[0.5f64, 0.2, 0.3].iter().map(|share| share * share.ln()).sum::<f64>();
        assert!(after.value < 0.1 * before.value, "{before:?} {after:?}");
        assert!(after.policy - least < 0.3 * (before.policy - least), "{before:?} {after:?}");
        let empty = trainer.learn(&[], &WEIGHTS, &AdamConfig::default(), 0.1);
        assert_eq!(empty, Err(TrainError::Empty));
    }
}
