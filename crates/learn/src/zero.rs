//! The `zero` learner: a sparse network made for CPUs that learns from games against itself.
//!
//! The loop is that of all learners from [`crate::selfplay`]; here is what it plays and trains
//! with.

use selfmate_chess::{Game, MoveList, Seed};
use selfmate_nn::Model;
use selfmate_nn::sparse::{
    self, Network, Sample, SparseConfig, TrainError, Trainer, TrainerConfig, Weights, WeightsInfo,
};
use selfmate_run::{GameRecord, PositionRecord, RecordError};
use selfmate_search::Wdl;

use crate::config::ConfigError;
use crate::learner::{Hardware, LearnError};
use crate::selfplay::{
    Config, Evaluators, GuardConfig, LearningConfig, Losses, Ramp, RatingConfig, SelfPlayConfig,
    Student, Targets,
};

/// The settings of the `zero` learner.
pub type ZeroConfig = Config<SparseConfig, TrainerConfig>;

impl Default for ZeroConfig {
    fn default() -> ZeroConfig {
        ZeroConfig {
            plan_games: 250_000,
            network: SparseConfig::default(),
            selfplay: SelfPlayConfig::default(),
            learning: LearningConfig::default(),
            guards: GuardConfig::default(),
            rating: RatingConfig::default(),
        }
    }
}

impl ZeroConfig {
    /// The names that [`ZeroConfig::preset`] knows.
    pub const PRESETS: [&str; 2] = ["default", "tiny"];

    /// Settings by name.
    pub fn preset(name: &str) -> Option<ZeroConfig> {
        match name {
            "default" => Some(ZeroConfig::default()),
            "tiny" => Some(ZeroConfig::tiny()),
            _ => None,
        }
    }

    /// A run of seconds that learns next to nothing: for tests and for a first look.
    pub fn tiny() -> ZeroConfig {
        ZeroConfig {
            plan_games: 256,
            network: SparseConfig { hidden: 64, value_hidden: 8, ..SparseConfig::default() },
            selfplay: SelfPlayConfig {
                generation_games: 16,
                sims: Ramp::new(4.0, 8.0, 0.0, 1.0),
                candidates: 4,
                max_plies: 60,
                memory_mb: 1,
                ..SelfPlayConfig::default()
            },
            learning: LearningConfig {
                batch: 64,
                window: 4000,
                warmup_steps: 4,
                checkpoint_seconds: 0.2,
                keep_steps: 50,
                ..LearningConfig::default()
            },
            rating: RatingConfig { every_seconds: 0.0, ..RatingConfig::default() },
            ..ZeroConfig::default()
        }
    }

    /// Says what makes no sense, if anything does.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_common()?;
        self.network.check().map_err(|error| ConfigError::Parse {
            file: "network".to_owned(),
            message: error.to_string(),
        })
    }
}

/// A sparse network in training.
pub struct Zero(Trainer);

impl Student for Zero {
    type Shape = SparseConfig;
    type Training = TrainerConfig;
    type Sample = Sample;
    const SEARCHES: f64 = 90.0;

    fn new(
        shape: &SparseConfig,
        training: &TrainerConfig,
        seed: Seed,
        hardware: Hardware,
    ) -> Result<Zero, LearnError> {
        let weights = Weights::random(*shape, seed).map_err(TrainError::from)?;
        Ok(Zero(Trainer::new(weights, *training, hardware.threads)?))
    }

    fn restore(
        state: &[u8],
        training: &TrainerConfig,
        hardware: Hardware,
    ) -> Result<Zero, LearnError> {
        Ok(Zero(Trainer::restore(state, *training, hardware.threads)?))
    }

    fn shape(&self) -> SparseConfig {
        self.0.average().config()
    }

    fn state(&self) -> Result<Vec<u8>, LearnError> {
        Ok(self.0.state()?)
    }

    fn step(&self) -> u64 {
        self.0.step()
    }

    fn learn(&mut self, batch: &[&Sample], rate: f32) -> Result<Losses, LearnError> {
        let sparse::Losses { value, policy, gradient_norm } = self.0.train(batch, rate)?;
        Ok(Losses { value, policy, gradient_norm })
    }

    fn model(&self) -> Result<Vec<u8>, LearnError> {
        let info = WeightsInfo { step: self.step() };
        Ok(sparse::encode_for_play(self.0.average(), info)?)
    }

    fn evaluators(&self) -> Result<Evaluators, LearnError> {
        let network = Network::new(self.0.average());
        Ok(Box::new(move || Box::new(network.clone())))
    }

    fn samples(record: &GameRecord, targets: Targets) -> Result<Vec<Sample>, RecordError> {
        let mut samples = Vec::with_capacity(record.positions.len());
        let mut wdls = targets.wdls(record).into_iter();
        record.replay(|game: &Game, legal: &MoveList, judged: &PositionRecord| {
            let wdl = wdls.next().unwrap_or(Wdl::EVEN);
            let sample = Sample::new(game, legal, &judged.policy, wdl);
            samples.push(sample.expect("a stored game has one share for each legal move"));
        })?;
        Ok(samples)
    }

    fn network(&self) -> Result<Model, LearnError> {
        Ok(Model::Sparse(self.0.average().clone().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_named() {
        for name in ZeroConfig::PRESETS {
            ZeroConfig::preset(name).unwrap().check().unwrap();
        }
        let mut config = ZeroConfig::default();
        config.selfplay.wild_share = 1.5;
        let error = config.check().unwrap_err().to_string();
        assert_eq!(error, "selfplay.wild_share is 1.5: expected a share from 0 to 1");
    }
}
