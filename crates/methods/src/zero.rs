//! The `zero` learner: a sparse network for CPUs, trained by self-play.
//!
//! The training loop is [`SelfPlayLearner`]; this file has the model and its presets.

use selfmate_chess::{Game, MoveList, Seed};
use selfmate_nn::Model;
use selfmate_nn::sparse::{
    self, Network, Sample, SparseConfig, TrainError, Trainer, TrainerConfig, Weights, WeightsInfo,
};
use selfmate_run::{GameRecord, PositionRecord, RecordError, Run};
use selfmate_search::Wdl;
use selfmate_search::mcts::ValueTarget;
use selfmate_selfplay::{Evaluators, GameSource, Ramp, SelfPlayConfig, Watch};
use selfmate_train::{
    ConfigError, End, FinalConfig, GuardConfig, Hardware, LearningConfig, Losses, MODEL,
    NoEvaluation, RatingConfig, Selection, SelfPlayLearner, SelfPlayLearnerConfig, SelfPlayModel,
    Targets, TrainOptions, TrainableModel, TrainingError, plan_games, train,
};

use crate::charts;
use crate::table::{
    LearnerConfig, LearnerInfo, Loader, PlayerFormat, SearchKind, boxed, megabytes, parse,
};

pub type ZeroConfig = SelfPlayLearnerConfig<SparseConfig, TrainerConfig>;

pub fn default() -> ZeroConfig {
    ZeroConfig {
        plan_games: 250_000,
        plan_steps: None,
        network: SparseConfig::default(),
        selfplay: SelfPlayConfig { value_target: ValueTarget::Policy, ..SelfPlayConfig::default() },
        learning: LearningConfig {
            final_phase: FinalConfig { reuse: 6.0, ..FinalConfig::default() },
            ..LearningConfig::default()
        },
        guards: GuardConfig::default(),
        rating: RatingConfig::default(),
        evaluation: None,
    }
}

const PRESETS: [&str; 2] = ["default", "tiny"];

fn preset(name: &str) -> Option<ZeroConfig> {
    match name {
        "default" => Some(default()),
        "tiny" => Some(tiny()),
        _ => None,
    }
}

/// A run of a few seconds that learns almost nothing, for tests and first experiments.
pub fn tiny() -> ZeroConfig {
    ZeroConfig {
        plan_games: 256,
        network: SparseConfig { hidden: 64, value_hidden: 8, ..SparseConfig::default() },
        selfplay: SelfPlayConfig { value_target: ValueTarget::Policy, ..SelfPlayConfig::tiny() },
        learning: LearningConfig {
            batch: 64,
            replay_max: 4000,
            warmup_steps: 4,
            checkpoint_seconds: 0.2,
            keep_steps: 50,
            ..LearningConfig::default()
        },
        rating: RatingConfig { every_seconds: 0.0, ..RatingConfig::default() },
        ..default()
    }
}

pub const INFO: LearnerInfo = LearnerInfo {
    name: "zero",
    summary: "a sparse network made for CPUs, from games against itself",
    presets: &PRESETS,
    preset: |name| boxed(preset(name)),
    parse: parse::<ZeroConfig>,
    bounds: &[],
    is_distributed: true,
    has_device: false,
    search: SearchKind::Either,
    player: PlayerFormat { file: MODEL, load: Loader::Network },
    charts: charts::SELF_PLAY,
    descriptions: &[],
};

/// Bytes of a sample; a generous estimate.
const SAMPLE_BYTES: u64 = 512;
/// The same in the final phase, where most samples have no policy; measured 150.
const FINAL_SAMPLE_BYTES: u64 = 176;

impl LearnerConfig for ZeroConfig {
    fn check(&self) -> Result<(), ConfigError> {
        self.check_common(INFO.bounds)?;
        self.network.check().map_err(|error| ConfigError::network(&error))
    }

    fn train(
        &self,
        run: &mut Run,
        options: &TrainOptions<'_>,
        source: &mut dyn GameSource,
        watch: &mut dyn Watch,
    ) -> Result<End, TrainingError> {
        train::<SelfPlayLearner<Zero>>(run, self, options, source, watch)
    }

    fn memory_mb(&self, threads: usize) -> Vec<(&'static str, u64)> {
        let replay = self.replay_positions().saturating_mul(SAMPLE_BYTES);
        let last = self.final_positions().saturating_mul(FINAL_SAMPLE_BYTES);
        // The replay buffer is dropped before the final phase.
        let samples = match replay > last {
            true => ("learning.replay_max", megabytes(replay)),
            false => ("learning.final_phase.positions", megabytes(last)),
        };
        vec![("selfplay.memory_mb", self.selfplay.trees_mb(threads) as u64), samples]
    }

    fn plan_games(&mut self) -> Option<&mut u64> {
        Some(&mut self.plan_games)
    }

    fn measure_plan(&self, minutes: f64, hardware: Hardware) -> Result<Option<u64>, TrainingError> {
        plan_games::<Zero>(self, minutes, hardware).map(Some)
    }

    fn rating(&self) -> Option<&RatingConfig> {
        Some(&self.rating)
    }

    fn selfplay(&self) -> Option<(&SelfPlayConfig, Ramp)> {
        Some((&self.selfplay, self.learning.result_weight))
    }
}

pub struct Zero(Trainer);

impl TrainableModel for Zero {
    type Shape = SparseConfig;
    type Training = TrainerConfig;
    type Sample = Sample;

    fn new(
        shape: &SparseConfig,
        training: &TrainerConfig,
        seed: Seed,
        hardware: Hardware,
    ) -> Result<Zero, TrainingError> {
        let weights = Weights::random(*shape, seed).map_err(TrainError::from)?;
        Ok(Zero(Trainer::new(weights, *training, hardware.threads)?))
    }

    fn restore(
        state: &[u8],
        training: &TrainerConfig,
        hardware: Hardware,
    ) -> Result<Zero, TrainingError> {
        Ok(Zero(Trainer::restore(state, *training, hardware.threads)?))
    }

    fn shape(&self) -> SparseConfig {
        self.0.average().config()
    }

    fn state(&self) -> Result<Vec<u8>, TrainingError> {
        Ok(self.0.state()?)
    }

    fn step(&self) -> u64 {
        self.0.step()
    }

    fn learn(&mut self, batch: &[&Sample], rate: f32) -> Result<Losses, TrainingError> {
        let sparse::Losses { value, policy, gradient_norm } = self.0.train(batch, rate)?;
        Ok(Losses { value, policy, gradient_norm })
    }

    fn model_file(&self) -> Result<Vec<u8>, TrainingError> {
        let info = WeightsInfo { step: self.step() };
        Ok(sparse::encode_for_play(self.0.average(), info)?)
    }

    fn evaluators(&self) -> Result<Evaluators, TrainingError> {
        let network = Network::new(self.0.average());
        Ok(Box::new(move || Box::new(network.clone())))
    }

    fn samples(record: &GameRecord, targets: Targets) -> Result<Vec<Sample>, RecordError> {
        let all = Selection { quiet: false, policy_share: 1.0 };
        Zero::selected_samples(record, targets, all)
    }
}

impl SelfPlayModel for Zero {
    type Evaluation = NoEvaluation;
    const SEARCHES_PER_GAME: f64 = 90.0;

    fn selected_samples(
        record: &GameRecord,
        targets: Targets,
        selection: Selection,
    ) -> Result<Vec<Sample>, RecordError> {
        let mut samples = Vec::with_capacity(record.positions.len());
        let mut wdls = targets.wdls(record).into_iter();
        record.replay(|game: &Game, legal: &MoveList, recorded: &PositionRecord| {
            let wdl = wdls.next().unwrap_or(Wdl::EVEN);
            if !selection.includes(game, legal, recorded) {
                return;
            }
            let sample = match selection.teaches_policy(record.number, recorded.ply) {
                true => Sample::new(game, legal, &recorded.policy, wdl),
                false => Sample::new(game, &MoveList::new(), &[], wdl),
            };
            samples.push(sample.expect("a stored game has one share for each legal move"));
        })?;
        Ok(samples)
    }

    fn model(&self) -> Result<Model, TrainingError> {
        Ok(Model::Sparse(self.0.average().clone().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_rejected_by_name() {
        for name in PRESETS {
            preset(name).unwrap().check().unwrap();
        }
        let mut config = default();
        config.selfplay.long_opening_share = 1.5;
        let error = config.check().unwrap_err().to_string();
        assert_eq!(error, "selfplay.long_opening_share is 1.5: expected a share from 0 to 1");
    }
}
