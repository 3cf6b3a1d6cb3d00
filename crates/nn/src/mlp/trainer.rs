//! Training steps of the policy and value network.

use super::gradient::{LossWeights, Losses, Sample, gradient};
use super::network::MlpConfig;
use crate::small::{self, AdamConfig, TrainError};

pub type Trainer = small::Trainer<MlpConfig>;

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

    use super::super::gradient::Target;
    use super::super::gradient::tests::samples;
    use super::super::network::{Forward, Network};
    use super::*;

    const WEIGHTS: LossWeights = LossWeights { value: 1.0, entropy: 0.0 };

    #[test]
    fn a_restored_trainer_continues_with_the_same_bits() {
        let config = MlpConfig { first: 16, second: 16 };
        let mut whole = Trainer::new(Network::random(config, Seed::new(1)).unwrap());
        let samples = samples(20, &mut Seed::new(2).rng());
        let adam = AdamConfig::default();
        for step in 0..6 {
            if step == 3 {
                whole = Trainer::restore(&whole.state().unwrap()).unwrap();
            }
            whole.learn(&samples[step..], &WEIGHTS, &adam, 1e-3).unwrap();
        }
        let mut other = Trainer::new(Network::random(config, Seed::new(1)).unwrap());
        for step in 0..6 {
            other.learn(&samples[step..], &WEIGHTS, &adam, 1e-3).unwrap();
        }
        assert!(whole == other);
        assert_eq!(whole.learn(&[], &WEIGHTS, &adam, 1e-3), Err(TrainError::Empty));
    }

    #[test]
    fn values_and_moves_are_learned() {
        let config = MlpConfig { first: 32, second: 32 };
        let mut trainer = Trainer::new(Network::random(config, Seed::new(1)).unwrap());
        let mut samples = samples(30, &mut Seed::new(3).rng());
        samples.iter_mut().for_each(|sample| sample.advantage = 1.0);
        let adam = AdamConfig::default();
        let before = super::super::loss(trainer.network(), &samples);
        for _ in 0..300 {
            trainer.learn(&samples, &WEIGHTS, &adam, 3e-3).unwrap();
        }
        let after = super::super::loss(trainer.network(), &samples);
        assert!(
            after.value < 0.1 * before.value && after.policy < 0.2 * before.policy,
            "{after:?}"
        );
    }

    #[test]
    fn a_policy_target_is_learned() {
        let config = MlpConfig { first: 32, second: 32 };
        let mut trainer = Trainer::new(Network::random(config, Seed::new(1)).unwrap());
        let mut sample = samples(1, &mut Seed::new(3).rng()).remove(0);
        let shares = [0.1, 0.2, 0.0, 0.4, 0.3];
        (sample.target, sample.advantage) = (Target::Policy(shares.into()), 1.0);
        let samples = [sample];
        for _ in 0..300 {
            trainer.learn(&samples, &WEIGHTS, &AdamConfig::default(), 3e-3).unwrap();
        }
        let mut out = Forward::default();
        trainer.network().forward(&samples[0].features, &samples[0].moves, &mut out);
        let sum: f32 = out.logits.iter().map(|logit| logit.exp()).sum();
        for (logit, share) in out.logits.iter().zip(shares) {
            assert!((logit.exp() / sum - share).abs() < 0.02, "{:?}", out.logits);
        }
    }
}
