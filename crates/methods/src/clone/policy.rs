//! The `clone-policy` learner: imitation with the small policy network of `reinforce`.
//!
//! The games, the passes and the validation are those of [`Cloner`]; this file has the settings, the
//! model and its samples. The checkpoints have the file of `reinforce`, and so its player.

use std::sync::Arc;

use rayon::ThreadPool;
use selfmate_chess::{MoveList, Seed};
use selfmate_nn::mlp::{
    Forward, LossWeights, MlpConfig, NO_INDEX_LOGIT, Network, Sample, Target, Trainer,
};
use selfmate_nn::small::{AdamConfig, Shape};
use selfmate_nn::sparse::WeightsInfo;
use selfmate_run::{GameRecord, RecordError, Run};
use selfmate_search::{Evaluation, Evaluator, Leaf, Wdl};
use selfmate_selfplay::{Evaluators, GameSource, Ramp, Watch};
use selfmate_train::{
    ConfigError, End, Hardware, Losses, Targets, TrainOptions, TrainableModel, TrainingError, train,
};
use serde::{Deserialize, Serialize};

use super::{CloneConfig, Cloner, Config};
use crate::reinforce::{self, POLICY, PolicyInput};
use crate::table::{LearnerConfig, LearnerInfo, SearchKind, boxed, parse};

pub const INFO: LearnerInfo = LearnerInfo {
    name: "clone-policy",
    summary: "the same with the small policy network of reinforce, which plays without a search",
    presets: &PolicyCloneConfig::PRESETS,
    preset: |name| boxed(PolicyCloneConfig::preset(name)),
    parse: parse::<PolicyCloneConfig>,
    search: SearchKind::NoTree,
    player: reinforce::INFO.player,
    ..super::INFO
};

/// The settings for a small policy network.
pub type PolicyCloneConfig = Config<MlpConfig, PolicyTraining>;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyTraining {
    /// The weight of the value's squared error relative to the policy's cross entropy.
    pub value_weight: f64,
    pub optimiser: AdamConfig,
}

impl PolicyCloneConfig {
    /// The names that [`PolicyCloneConfig::preset`] accepts.
    pub const PRESETS: [&str; 3] = CloneConfig::PRESETS;

    /// The preset for a sparse network, with a small policy network instead.
    pub fn preset(name: &str) -> Option<PolicyCloneConfig> {
        let common = CloneConfig::preset(name)?;
        let is_tiny = name == "tiny";
        let network =
            if is_tiny { MlpConfig { first: 16, second: 16 } } else { MlpConfig::default() };
        let trainer = PolicyTraining { value_weight: 0.5, optimiser: AdamConfig::default() };
        let batch = if is_tiny { common.batch } else { 256 };
        let rate = Ramp::new(1e-3, 1e-4, 0.0, 1.0);
        Some(Config { batch, rate, ..common.with(network, trainer) })
    }
}

impl LearnerConfig for PolicyCloneConfig {
    fn check(&self) -> Result<(), ConfigError> {
        self.check_common()?;
        self.network.check().map_err(|error| ConfigError::network(&error))
    }

    fn train(
        &self,
        run: &mut Run,
        options: &TrainOptions<'_>,
        source: &mut dyn GameSource,
        watch: &mut dyn Watch,
    ) -> Result<End, TrainingError> {
        train::<Cloner<Policy>>(run, self, options, source, watch)
    }
}

/// A small policy network in training.
pub struct Policy {
    trainer: Trainer,
    training: PolicyTraining,
    pool: ThreadPool,
}

impl Policy {
    fn with_trainer(
        trainer: Trainer,
        training: &PolicyTraining,
        hardware: Hardware,
    ) -> Result<Policy, TrainingError> {
        Ok(Policy { trainer, training: *training, pool: hardware.pool()? })
    }
}

impl TrainableModel for Policy {
    type Shape = MlpConfig;
    type Training = PolicyTraining;
    type Sample = Sample;
    const FILE: &'static str = POLICY;

    fn new(
        shape: &MlpConfig,
        training: &PolicyTraining,
        seed: Seed,
        hardware: Hardware,
    ) -> Result<Policy, TrainingError> {
        let network =
            Network::random(*shape, seed).map_err(|error| ConfigError::network(&error))?;
        Policy::with_trainer(Trainer::new(network), training, hardware)
    }

    fn restore(
        state: &[u8],
        training: &PolicyTraining,
        hardware: Hardware,
    ) -> Result<Policy, TrainingError> {
        Policy::with_trainer(Trainer::restore(state)?, training, hardware)
    }

    fn shape(&self) -> MlpConfig {
        self.trainer.network().config()
    }

    fn state(&self) -> Result<Vec<u8>, TrainingError> {
        Ok(self.trainer.state()?)
    }

    fn step(&self) -> u64 {
        self.trainer.step()
    }

    fn learn(&mut self, batch: &[&Sample], rate: f32) -> Result<Losses, TrainingError> {
        let Policy { trainer, training, pool } = self;
        let weights = LossWeights { value: training.value_weight as f32, entropy: 0.0 };
        let samples: Vec<Sample> = batch.iter().map(|&sample| sample.clone()).collect();
        let (losses, gradient_norm) =
            pool.install(|| trainer.learn(&samples, &weights, &training.optimiser, rate))?;
        Ok(Losses { value: losses.value as f32, policy: losses.policy as f32, gradient_norm })
    }

    fn model_file(&self) -> Result<Vec<u8>, TrainingError> {
        Ok(self.trainer.network().encode(WeightsInfo { step: self.step() })?)
    }

    fn evaluators(&self) -> Result<Evaluators, TrainingError> {
        let network = Arc::new(self.trainer.network().clone());
        Ok(Box::new(move || Box::new(PolicyEvaluator::new(Arc::clone(&network)))))
    }

    fn samples(record: &GameRecord, targets: Targets) -> Result<Vec<Sample>, RecordError> {
        let mut wdls = targets.wdls(record).into_iter();
        let (mut samples, mut input) = (Vec::new(), PolicyInput::default());
        record.replay(|game, legal, recorded| {
            let value = wdls.next().map_or(0.0, Wdl::value);
            input.encode(game.position(), legal);
            samples.extend(sample(&input, legal, &recorded.policy, value));
        })?;
        Ok(samples)
    }
}

/// Underpromotions have no index, so the policy is scaled to add up to 1 without them. `None` where
/// the teacher considers nothing else: there is no move to imitate.
fn sample(input: &PolicyInput, legal: &MoveList, policy: &[f32], value: f32) -> Option<Sample> {
    let mut indexed = input.legal.iter().peekable();
    let mut shares: Vec<f32> = legal
        .iter()
        .zip(policy)
        .filter(|(m, _)| indexed.next_if_eq(m).is_some())
        .map(|(_, share)| *share)
        .collect();
    let sum: f32 = shares.iter().sum();
    if sum < 1e-6 {
        return None;
    }
    shares.iter_mut().for_each(|share| *share /= sum);
    Some(Sample {
        features: input.features.as_slice().into(),
        moves: input.moves.as_slice().into(),
        target: Target::Policy(shares.into()),
        advantage: 1.0,
        result: value,
    })
}

/// The network for the validation. Positions are encoded as for its player.
struct PolicyEvaluator {
    network: Arc<Network>,
    input: PolicyInput,
    forward: Forward,
}

impl PolicyEvaluator {
    fn new(network: Arc<Network>) -> PolicyEvaluator {
        PolicyEvaluator { network, input: PolicyInput::default(), forward: Forward::default() }
    }
}

impl Evaluator for PolicyEvaluator {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        for (leaf, evaluation) in leaves.iter().zip(evaluations) {
            self.input.encode(leaf.game.position(), &leaf.legal);
            self.network.forward(&self.input.features, &self.input.moves, &mut self.forward);
            let value = self.forward.value;
            evaluation.wdl = Wdl::new(value, 1.0 - value.abs());
            let mut indexed = self.input.legal.iter().zip(&self.forward.logits).peekable();
            evaluation.logits.clear();
            evaluation.logits.extend(leaf.legal.iter().map(|m| {
                let next = indexed.next_if(|(other, _)| *other == m);
                next.map_or(NO_INDEX_LOGIT, |(_, logit)| *logit)
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::fen::parse_fen;
    use selfmate_chess::{Game, Outcome, Position, Reason, Role};
    use selfmate_nn::Device;
    use selfmate_run::PositionRecord;
    use selfmate_search::player::Limit;
    use selfmate_search::{Need, Player};

    use super::*;
    use crate::clone::{Source, validate};

    fn model(first: usize, second: usize) -> Policy {
        let training = PolicyCloneConfig::preset("default").unwrap().trainer;
        let hardware = Hardware { threads: 2, device: Device::Cpu };
        Policy::new(&MlpConfig { first, second }, &training, Seed::new(1), hardware).unwrap()
    }

    /// A game in which the teacher is certain of every move and of its value.
    fn record(number: u64) -> GameRecord {
        let (mut game, mut positions) = (Game::new(), Vec::new());
        let mut rng = Seed::new(number).rng();
        for ply in 0..30 {
            let legal = game.legal_moves();
            if game.outcome_given(&legal).is_some() {
                break;
            }
            let mut policy = vec![0.0; legal.len()];
            let index = rng.below(legal.len());
            policy[index] = 1.0;
            let value = if ply % 2 == 0 { 0.5 } else { -0.5 };
            positions.push(PositionRecord { ply, value, draw: 0.5, policy });
            game.play(legal[index]).unwrap();
        }
        GameRecord {
            number,
            network: 0,
            start: None,
            moves: game.moves().collect(),
            outcome: Outcome { winner: None, reason: Reason::Truncated },
            positions,
        }
    }

    const TARGETS: Targets = Targets { result_weight: 0.0, discount: 1.0, lambda: None };

    #[test]
    fn the_moves_and_values_of_games_are_learned() {
        let games = [record(1), record(2)];
        let mut model = model(32, 32);
        let samples: Vec<Sample> =
            games.iter().flat_map(|game| Policy::samples(game, TARGETS).unwrap()).collect();
        assert_eq!(samples.len(), games.iter().map(|game| game.positions.len()).sum::<usize>());
        let batch: Vec<&Sample> = samples.iter().collect();
        let before = model.learn(&batch, 3e-3).unwrap();
        for _ in 0..300 {
            model.learn(&batch, 3e-3).unwrap();
        }
        let after = model.learn(&batch, 3e-3).unwrap();
        assert!(after.policy < 0.1 * before.policy, "{before:?} {after:?}");
        assert!(after.value < 0.1 * before.value, "{before:?} {after:?}");
        let found = validate(&games, &model.evaluators().unwrap()).unwrap();
        // The games begin in the same position with different moves, which cannot both be first.
        assert!(found.top1 > 0.9 && found.top5 > 0.95 && found.value < 0.05, "{found:?}");
    }

    /// The validation describes the network that the run's player has.
    #[test]
    fn the_player_chooses_the_evaluators_first_move() {
        let model = model(16, 16);
        let (network, _) = Network::decode(&model.model_file().unwrap()).unwrap();
        let mut player =
            reinforce::PolicyPlayer::new("policy", Arc::new(network), 0.0, Seed::new(1));
        let mut evaluator = model.evaluators().unwrap()();
        let mut game = Game::new();
        for _ in 0..40 {
            let legal = game.legal_moves();
            let leaf = Leaf { game: game.clone(), legal: legal.clone(), need: Need::Both };
            let mut found = [Evaluation::default()];
            evaluator.evaluate(&[leaf], &mut found);
            let [Evaluation { logits, .. }] = &found;
            let best = (0..legal.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b])).unwrap();
            let choice = player.choose(&game, &Limit::default()).unwrap();
            assert_eq!(choice.played, legal[best]);
            game.play(legal[best]).unwrap();
            if game.outcome_given(&game.legal_moves()).is_some() {
                break;
            }
        }
    }

    #[test]
    fn underpromotions_are_left_out_of_samples_and_come_last() {
        let position = parse_fen("8/P3k3/8/8/8/8/8/4K3 w - - 0 1").unwrap();
        let legal = position.legal_moves();
        let mut input = PolicyInput::default();
        input.encode(&position, &legal);
        let shares = |of: &dyn Fn(Option<Role>) -> f32| -> Vec<f32> {
            legal.iter().map(|m| of(m.promotion())).collect()
        };
        let queen = input.legal.iter().position(|m| m.is_promotion()).unwrap();
        let half = shares(&|promotion| match promotion {
            Some(Role::Queen | Role::Knight) => 0.5,
            _ => 0.0,
        });
        let found = sample(&input, &legal, &half, 0.25).unwrap();
        let mut expected = vec![0.0; input.legal.len()];
        expected[queen] = 1.0;
        assert_eq!(found.target, Target::Policy(expected.into()));
        assert_eq!((&*found.moves, found.result), (&*input.moves, 0.25));
        let knight = shares(&|promotion| f32::from(u8::from(promotion == Some(Role::Knight))));
        assert_eq!(sample(&input, &legal, &knight, 0.25), None);

        let mut evaluator = model(16, 16).evaluators().unwrap()();
        let game = Game::from_position(position.clone());
        let leaf = Leaf { game, legal: legal.clone(), need: Need::Both };
        let mut found = [Evaluation::default()];
        evaluator.evaluate(&[leaf], &mut found);
        for (m, logit) in legal.iter().zip(&found[0].logits) {
            let is_last = *logit == NO_INDEX_LOGIT;
            assert_eq!(is_last, m.promotion().is_some_and(|role| role != Role::Queen), "{m}");
        }
    }

    #[test]
    fn the_network_is_that_of_reinforce() {
        let config = PolicyCloneConfig::preset("default").unwrap();
        assert_eq!(config.network, reinforce::ReinforceConfig::default().network);
        assert_eq!(config.network, MlpConfig { first: 128, second: 128 });
    }

    #[test]
    fn invalid_settings_are_rejected_by_name() {
        for name in PolicyCloneConfig::PRESETS {
            PolicyCloneConfig::preset(name).unwrap().check().unwrap();
        }
        let error = |change: fn(&mut PolicyCloneConfig)| {
            let mut config = PolicyCloneConfig::preset("tiny").unwrap();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert!(error(|c| c.network.first = 0).starts_with("network.first is 0"));
        assert!(error(|c| c.trainer.value_weight = -1.0).starts_with("trainer.value_weight is -1"));
        assert!(
            error(|c| c.trainer.optimiser.beta1 = 1.0).starts_with("trainer.optimiser.beta1 is 1")
        );
        assert!(error(|c| c.source = Source::Run).starts_with("run is empty"));
    }
}
