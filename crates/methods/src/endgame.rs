//! The `krk`, `kqk` and `kpk` learners: endings small enough that the value of every position is
//! known, learned by self-play with a small network.
//!
//! Games start from random positions of the ending (`selfplay.ending`), the model is [`Endgame`],
//! and the [`Oracle`] evaluates it against the exact tablebase. Nothing is learned from the oracle.

pub mod ablate;
mod config;
mod evaluation;
mod network;
mod oracle;
mod trained;
mod value_map;

use std::sync::OnceLock;

use selfmate_chess::Seed;
use selfmate_encode::Canonical;
use selfmate_nn::Model;
use selfmate_nn::mlp::{Sample, Target};
use selfmate_run::{GameRecord, RecordError, Run};
use selfmate_search::Wdl;
use selfmate_selfplay::{Ending, Evaluators, GameSource, Ramp, SelfPlayConfig, Stage, Watch};
use selfmate_train::{
    ConfigError, Curves, End, Hardware, Losses, MODEL, RoundContext, SelfPlayLearner,
    SelfPlayModel, Targets, TrainOptions, TrainableModel, TrainingError, train,
};

use network::EndgameTrainer;

pub use config::{EndgameConfig, EndgameTraining, default, preset, spec, tiny};
pub use evaluation::{TablebaseEvaluationConfig, TablebaseReport, evaluate};
pub use network::{Encoder, EndgameEvaluator, EndgameNetwork, EndgameSample, EndgameShape};
pub use oracle::{Defender, Oracle};
pub use trained::{Trained, TrainedError};
pub use value_map::{MoveDetail, Placement, PlacementError, PositionDetail, ValueMap};

use crate::charts;
use crate::table::{
    LearnerConfig, LearnerInfo, Loader, PlayerFormat, SearchKind, boxed, megabytes, parse,
};

pub const KRK: LearnerInfo =
    info("krk", "king and rook against king, evaluated with the exact tablebase", |name| {
        boxed(preset(Ending::Krk, name))
    });
pub const KQK: LearnerInfo =
    info("kqk", "king and queen against king, evaluated with the exact tablebase", |name| {
        boxed(preset(Ending::Kqk, name))
    });
pub const KPK: LearnerInfo =
    info("kpk", "king and pawn against king, evaluated with the exact tablebase", |name| {
        boxed(preset(Ending::Kpk, name))
    });

const fn info(
    name: &'static str,
    summary: &'static str,
    preset: fn(&str) -> Option<Box<dyn crate::table::LearnerSettings>>,
) -> LearnerInfo {
    LearnerInfo {
        name,
        summary,
        presets: &config::PRESETS,
        preset,
        parse: parse::<EndgameConfig>,
        bounds: config::BOUNDS,
        is_distributed: true,
        has_device: false,
        search: SearchKind::Tree,
        player: PlayerFormat { file: MODEL, load: Loader::Network },
        charts: charts::ENDGAME,
        descriptions: &[],
    }
}

impl LearnerConfig for EndgameConfig {
    fn check(&self) -> Result<(), ConfigError> {
        config::check(self)
    }

    fn train(
        &self,
        run: &mut Run,
        options: &TrainOptions<'_>,
        source: &mut dyn GameSource,
        watch: &mut dyn Watch,
    ) -> Result<End, TrainingError> {
        train::<SelfPlayLearner<Endgame>>(run, self, options, source, watch)
    }

    fn memory_mb(&self, threads: usize) -> Vec<(&'static str, u64)> {
        /// Bytes of a sample or a cached evaluation.
        const SAMPLE_BYTES: u64 = 512;
        /// Positions that a run of several hours plays.
        const POSITIONS: u64 = 1_000_000;
        let cached = self.selfplay.transpositions as u64 * SAMPLE_BYTES;
        let replay = self.learning.replay_capacity(POSITIONS) as u64;
        vec![
            ("selfplay.memory_mb", self.selfplay.trees_mb(threads) as u64),
            ("selfplay.transpositions", threads as u64 * megabytes(cached)),
            ("learning.replay_min", megabytes(replay * SAMPLE_BYTES)),
        ]
    }

    fn selfplay(&self) -> Option<(&SelfPlayConfig, Ramp)> {
        Some((&self.selfplay, self.learning.result_weight))
    }
}

/// A small network in training.
pub struct Endgame {
    trainer: EndgameTrainer,
    training: EndgameTraining,
    pool: rayon::ThreadPool,
    /// Computed when the first evaluation is due.
    oracle: OnceLock<Oracle>,
}

impl Endgame {
    fn with_trainer(
        trainer: EndgameTrainer,
        training: &EndgameTraining,
        hardware: Hardware,
    ) -> Result<Endgame, TrainingError> {
        let pool = hardware.pool()?;
        Ok(Endgame { trainer, training: *training, pool, oracle: OnceLock::new() })
    }

    pub fn network(&self) -> EndgameNetwork {
        self.trainer.network()
    }
}

impl TrainableModel for Endgame {
    type Shape = EndgameShape;
    type Training = EndgameTraining;
    type Sample = EndgameSample;

    fn new(
        shape: &EndgameShape,
        training: &EndgameTraining,
        seed: Seed,
        hardware: Hardware,
    ) -> Result<Endgame, TrainingError> {
        Endgame::with_trainer(EndgameTrainer::new(shape, seed)?, training, hardware)
    }

    fn restore(
        state: &[u8],
        training: &EndgameTraining,
        hardware: Hardware,
    ) -> Result<Endgame, TrainingError> {
        Endgame::with_trainer(EndgameTrainer::restore(state)?, training, hardware)
    }

    fn shape(&self) -> EndgameShape {
        self.trainer.shape()
    }

    fn state(&self) -> Result<Vec<u8>, TrainingError> {
        Ok(self.trainer.state()?)
    }

    fn step(&self) -> u64 {
        self.trainer.step()
    }

    fn learn(&mut self, batch: &[&EndgameSample], rate: f32) -> Result<Losses, TrainingError> {
        let Endgame { trainer, training, pool, .. } = self;
        let weights = training.loss_weights();
        let (losses, norm) =
            pool.install(|| trainer.learn(batch, &weights, &training.optimiser, rate))?;
        let (value, policy) = (losses.value as f32, losses.policy as f32);
        Ok(Losses { value, policy, gradient_norm: norm })
    }

    fn model_file(&self) -> Result<Vec<u8>, TrainingError> {
        Ok(self.trainer.model_file()?)
    }

    fn evaluators(&self) -> Result<Evaluators, TrainingError> {
        let network = self.network();
        Ok(Box::new(move || Box::new(network.evaluator())))
    }

    fn samples(record: &GameRecord, targets: Targets) -> Result<Vec<EndgameSample>, RecordError> {
        let mut wdls = targets.wdls(record).into_iter();
        let (mut samples, mut canonical) = (Vec::new(), Canonical::default());
        record.replay(|game, legal, position| {
            let value = wdls.next().map_or(0.0, Wdl::value);
            canonical.encode(game.position(), legal);
            samples.push(EndgameSample {
                position: game.position().clone(),
                canonical: sample(&canonical, &position.policy, value),
            });
        })?;
        Ok(samples)
    }
}

impl SelfPlayModel for Endgame {
    type Evaluation = TablebaseEvaluationConfig;
    const SEARCHES_PER_GAME: f64 = 20.0;

    fn model(&self) -> Result<Model, TrainingError> {
        Ok(match self.network() {
            EndgameNetwork::Mlp(network) => Model::Mlp(network),
            EndgameNetwork::Conv(network) => Model::Conv(network),
        })
    }

    fn evaluate(
        &self,
        config: &TablebaseEvaluationConfig,
        selfplay: &SelfPlayConfig,
        context: &mut RoundContext<'_>,
    ) -> Result<Option<Curves>, TrainingError> {
        let Some(ending) = selfplay.ending.filter(|_| config.is_due(context.totals.rounds)) else {
            return Ok(None);
        };
        context.report(Stage::Rate, 0.0);
        let oracle = match self.oracle.get() {
            Some(oracle) => oracle,
            None => {
                let solved = Oracle::solve(ending)?;
                self.oracle.get_or_init(|| solved)
            }
        };
        let (network, seed) = (self.network(), context.seed.derive("evaluation"));
        let cancel = || context.cancel.is_cancelled();
        let report =
            context.pool.install(|| evaluate(selfplay, config, oracle, &network, seed, &cancel));
        Ok(report.map(|report| report.curves()))
    }
}

/// Moves without an index (underpromotions) are left out of the policy. If only such moves have a
/// share, the target is uniform.
fn sample(canonical: &Canonical, policy: &[f32], value: f32) -> Sample {
    let indexed = canonical.moves.iter().zip(policy);
    let (moves, mut policy): (Vec<u16>, Vec<f32>) =
        indexed.filter_map(|(index, share)| Some(((*index)?, *share))).unzip();
    let sum: f32 = policy.iter().sum();
    let uniform = 1.0 / moves.len().max(1) as f32;
    policy.iter_mut().for_each(|share| *share = if sum > 1e-6 { *share / sum } else { uniform });
    Sample {
        features: canonical.features.as_slice().into(),
        moves: moves.into(),
        target: Target::Policy(policy.into()),
        advantage: 1.0,
        result: value.clamp(-1.0, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_settings_are_rejected_by_name() {
        for ending in Ending::ALL {
            config::check(&default(ending)).unwrap();
            config::check(&tiny(ending)).unwrap();
        }
        let mut config = tiny(Ending::Krk);
        config.selfplay.discount = 0.0;
        let error = config::check(&config).unwrap_err().to_string();
        assert!(error.starts_with("selfplay.discount is 0"), "{error}");
    }

    #[test]
    fn a_policy_without_the_moves_that_have_no_index_adds_up_to_one() {
        let mut canonical = Canonical::default();
        canonical.moves = vec![Some(7), None, Some(9)];
        let sample = sample(&canonical, &[0.3, 0.4, 0.3], 2.0);
        assert_eq!((&*sample.moves, sample.result), (&[7, 9][..], 1.0));
        assert_eq!(sample.target, Target::Policy([0.5, 0.5].into()));
        let uniform = super::sample(&canonical, &[0.0, 1.0, 0.0], 0.0);
        assert_eq!(uniform.target, Target::Policy([0.5, 0.5].into()));
    }
}
