//! Training steps of the value network.

use super::batch_norm;
use super::gradient::{Sample, gradient};
use super::network::ValueNetConfig;
use crate::small::{self, AdamConfig, TrainError};

pub type Trainer = small::Trainer<ValueNetConfig>;

impl Trainer {
    /// Trains on a batch. Returns its mean squared error and the length of its gradient before
    /// clipping. Batch norm uses the statistics of the batch, and its running ones are updated.
    pub fn learn(
        &mut self,
        samples: &[Sample<'_>],
        adam: &AdamConfig,
        rate: f32,
    ) -> Result<(f64, f32), TrainError> {
        if samples.is_empty() {
            return Err(TrainError::Empty);
        }
        if !self.network().config().batch_norm {
            let (loss, gradient) = gradient(self.network(), samples);
            let norm = self.follow(loss, &gradient, adam, rate)?;
            return Ok((loss, norm));
        }
        let (loss, gradient, statistics) = batch_norm::gradient(self.network(), samples);
        let norm = self.follow(loss, &gradient, adam, rate)?;
        statistics.update(self.network_mut());
        Ok((loss, norm))
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::super::gradient::tests::{boards, samples};
    use super::super::network::Network;
    use super::*;

    #[test]
    fn a_restored_trainer_continues_and_results_are_learned() {
        let plain = ValueNetConfig {
            channels: 8,
            blocks: 1,
            head: 4,
            hidden: 16,
            ..ValueNetConfig::default()
        };
        let normed = ValueNetConfig { convolutions: 1, batch_norm: true, ..plain };
        [plain, normed].into_iter().for_each(check);
    }

    fn check(config: ValueNetConfig) {
        let boards = boards(12);
        let samples = samples(&boards);
        let mut trainer = Trainer::new(Network::random(config, Seed::new(1)).unwrap());
        let mut other = trainer.clone();
        let before = super::super::loss(trainer.network(), &samples);
        for step in 0..300 {
            if step == 70 {
                other = Trainer::restore(&other.state().unwrap()).unwrap();
            }
            trainer.learn(&samples, &AdamConfig::default(), 3e-3).unwrap();
            other.learn(&samples, &AdamConfig::default(), 3e-3).unwrap();
        }
        assert!(trainer == other);
        let after = super::super::loss(trainer.network(), &samples);
        assert!(after < 0.2 * before, "{before} {after}");
        assert_eq!(trainer.learn(&[], &AdamConfig::default(), 0.1), Err(TrainError::Empty));
    }
}
