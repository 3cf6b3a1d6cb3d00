//! The `reinforce` learner: a small policy network by policy gradient, with its own value as the
//! baseline (Williams 1992; Sutton and Barto, chapter 13).
//!
//! A round plays a batch of games on all threads, with moves drawn from the policy, and takes steps
//! along the gradient of `A ln π(a)`: a move that did better than the network expected becomes more
//! likely.

mod config;
mod game;
mod input;
mod player;

use std::sync::Arc;

use rayon::prelude::*;
use selfmate_chess::Seed;
use selfmate_nn::mlp::{Network, Sample, Trainer};
use selfmate_nn::sparse::WeightsInfo;
use selfmate_run::{Checkpoint, Run};
use selfmate_selfplay::{GameSource, Stage, Watch};
use selfmate_train::evaluation::evaluate;
use selfmate_train::{
    ConfigError, End, Hardware, Learner, Round, RoundContext, SavingConfig, TrainOptions,
    TrainingError, check_shape, read_bytes, train,
};

pub use config::ReinforceConfig;
pub use input::PolicyInput;
pub use player::{PolicyPlayer, build, kind};

use crate::charts::{
    Chart, EVALUATION, GAMES_PER_SECOND, LEARNING_RATE, PLIES, Unit, chart, curve,
};
use crate::opponent::{GameOpponent, add_to_pool};
use crate::table::{LearnerConfig, LearnerInfo, Loader, PlayerFormat, SearchKind, boxed, parse};
use game::Episode;

/// The checkpoint file of the network that plays.
pub const POLICY: &str = "policy.safetensors";
/// The file of the weights in training and the optimiser.
const TRAINER: &str = "trainer.safetensors";
/// The file of the pool of earlier networks.
const POOL: &str = "pool.safetensors";

const CHARTS: &[Chart] = &[
    EVALUATION,
    chart(
        "Score against random in training",
        "with moves drawn from the policy; a truncated game counts one half",
        Unit::Share,
        &[curve("random.score", "")],
    ),
    chart(
        "Entropy of the policy (nats)",
        "uniform over 30 moves is 3.4; near 0 early on, exploration has stopped",
        Unit::Amount,
        &[curve("entropy", "")],
    ),
    chart(
        "Value loss and policy objective",
        "value: squared error; policy: −advantage · ln π(move), whose size means little",
        Unit::Number,
        &[curve("loss.value", "value"), curve("loss.policy", "policy")],
    ),
    chart(
        "Advantage",
        "how much better games went than expected",
        Unit::Number,
        &[curve("advantage", "")],
    ),
    chart(
        "Games",
        "with a winner; truncated at the ply cap",
        Unit::Share,
        &[curve("decided_share", "decided"), curve("truncated_share", "truncated")],
    ),
    PLIES,
    GAMES_PER_SECOND,
    LEARNING_RATE,
];

pub const INFO: LearnerInfo = LearnerInfo {
    name: "reinforce",
    summary: "a small policy network, by policy gradient",
    presets: &ReinforceConfig::PRESETS,
    preset: |name| boxed(ReinforceConfig::preset(name)),
    parse: parse::<ReinforceConfig>,
    bounds: config::BOUNDS,
    is_distributed: false,
    has_device: false,
    search: SearchKind::NoTree,
    player: PlayerFormat {
        file: POLICY,
        load: Loader::Own { options: &["temperature"], load: player::load },
    },
    charts: CHARTS,
    descriptions: &[],
};

impl LearnerConfig for ReinforceConfig {
    fn check(&self) -> Result<(), ConfigError> {
        ReinforceConfig::check(self)
    }

    fn train(
        &self,
        run: &mut Run,
        options: &TrainOptions<'_>,
        source: &mut dyn GameSource,
        watch: &mut dyn Watch,
    ) -> Result<End, TrainingError> {
        train::<Reinforce>(run, self, options, source, watch)
    }

    fn plan_games(&mut self) -> Option<&mut u64> {
        Some(&mut self.plan_games)
    }
}

/// The smallest divisor of advantages, so that nearly equal ones are not blown up.
const SMALLEST_SPREAD: f64 = 0.05;

pub struct Reinforce {
    trainer: Trainer,
    /// Earlier networks, oldest first.
    pool: Vec<Network>,
}

impl Learner for Reinforce {
    type Config = ReinforceConfig;
    const FILES: &'static [&'static str] = &[POLICY, TRAINER, POOL];
    const TRAINING_FILES: &'static [&'static str] = &[TRAINER, POOL];

    fn saving(config: &ReinforceConfig) -> SavingConfig {
        config.saving
    }

    fn new(config: &ReinforceConfig, seed: Seed, _: Hardware) -> Result<Reinforce, TrainingError> {
        let network = Network::random(config.network, seed).map_err(|error| {
            ConfigError::Parse { file: "network".to_owned(), message: error.to_string() }
        })?;
        Ok(Reinforce { pool: vec![network.clone()], trainer: Trainer::new(network) })
    }

    fn restore(
        config: &ReinforceConfig,
        checkpoint: &Checkpoint,
        _: Hardware,
    ) -> Result<Reinforce, TrainingError> {
        let trainer = Trainer::restore(read_bytes(checkpoint, TRAINER)?)?;
        check_shape(checkpoint, TRAINER, &trainer.network().config(), &config.network)?;
        Ok(Reinforce { trainer, pool: Network::decode_many(read_bytes(checkpoint, POOL)?)? })
    }

    fn files(&self) -> Result<Vec<(&'static str, Vec<u8>)>, TrainingError> {
        let info = WeightsInfo { step: self.trainer.step() };
        Ok(vec![
            (POLICY, self.trainer.network().encode(info)?),
            (TRAINER, self.trainer.state()?),
            (POOL, Network::encode_many(&self.pool)?),
        ])
    }

    fn round(
        &mut self,
        config: &ReinforceConfig,
        context: &mut RoundContext<'_>,
    ) -> Result<Option<Round>, TrainingError> {
        context.report(Stage::Play, 0.0);
        let Some(games) = self.play(config, context) else { return Ok(None) };
        context.report(Stage::Learn, 0.0);
        let mut round = Round { games: games.len() as u64, steps: 1, ..Round::default() };
        count(&games, &mut round);
        let mut samples: Vec<Sample> = games.into_iter().flat_map(|game| game.samples).collect();
        round.positions = samples.len() as u64;
        let progress = context.totals.games as f64 / config.plan_games as f64;
        let (weights, rate) = (config.losses(progress), config.rate.at(progress));
        if !samples.is_empty() {
            round.add("advantage", scale(&mut samples));
            context.seed_for("batches").rng().shuffle(&mut samples);
            // Equal parts, each about the size of a batch or larger.
            let parts = (samples.len() / config.batch).max(1);
            let parts = samples.chunks(samples.len().div_ceil(parts));
            let (count, mut sums) = (parts.len(), [0.0; 4]);
            let before = self.trainer.clone();
            for part in parts {
                if context.cancel.is_cancelled() {
                    self.trainer = before;
                    return Ok(None);
                }
                let (losses, norm) = context.pool.install(|| {
                    self.trainer.learn(part, &weights, &config.optimiser, rate as f32)
                })?;
                let found = [losses.policy, losses.value, losses.entropy, f64::from(norm)];
                sums.iter_mut().zip(found).for_each(|(sum, value)| *sum += value);
            }
            round.steps = count as u64;
            let names = ["loss.policy", "loss.value", "entropy", "gradient_norm"];
            for (name, sum) in names.into_iter().zip(sums) {
                round.add(name, sum / count as f64);
            }
        }
        round.add("learning_rate", rate);
        if (context.totals.rounds + 1).is_multiple_of(config.pool_every) && config.pool > 0 {
            add_to_pool(&mut self.pool, self.trainer.network().clone(), config.pool);
        }
        if config.evaluation.is_due(context.totals.rounds) {
            context.report(Stage::Rate, 0.0);
            let network = Arc::new(self.trainer.network().clone());
            let seed = context.seed_for("evaluation");
            if let Some(report) =
                evaluate(&config.evaluation, |name| kind(name, network), seed, context)?
            {
                round.add("evaluation.score", report.score);
                if let Some(elo) = report.elo {
                    round.add("evaluation.elo", elo);
                }
            }
        }
        Ok(Some(round))
    }
}

impl Reinforce {
    /// The games of a round; `None` when there was no time for all of them.
    fn play(&self, config: &ReinforceConfig, context: &RoundContext<'_>) -> Option<Vec<Episode>> {
        let (seed, first) = (context.seed.derive("games"), context.totals.games);
        let play_config = config.play_config();
        let (network, cancel) = (self.trainer.network(), context.cancel);
        let game = |number: u64| {
            if cancel.is_cancelled() {
                return None;
            }
            let mut rng = seed.index(number).rng();
            let (opponent, side) =
                GameOpponent::of_game(number, &config.opponents, &self.pool, &mut rng);
            Some(game::play(network, opponent, side, &play_config, &mut rng))
        };
        let numbers = first..first + config.round_games;
        context.pool.install(|| numbers.into_par_iter().map(game).collect())
    }
}

/// Divides advantages by their standard deviation, so that the entropy bonus weighs the same early
/// and late. Returns their mean before scaling.
fn scale(samples: &mut [Sample]) -> f64 {
    let count = samples.len() as f64;
    let mean = samples.iter().map(|sample| f64::from(sample.advantage)).sum::<f64>() / count;
    let squared_deviation = |sample: &Sample| (f64::from(sample.advantage) - mean).powi(2);
    let spread =
        (samples.iter().map(squared_deviation).sum::<f64>() / count).sqrt().max(SMALLEST_SPREAD);
    samples.iter_mut().for_each(|sample| sample.advantage /= spread as f32);
    mean
}

/// Adds statistics of the games to the metrics.
fn count(games: &[Episode], round: &mut Round) {
    let total = games.len() as f64;
    let against_random: Vec<&Episode> = games.iter().filter(|game| game.is_random).collect();
    if !against_random.is_empty() {
        let points: f64 = against_random.iter().map(|game| game.outcome.points(game.side)).sum();
        round.add("random.score", points / against_random.len() as f64);
    }
    let share = |is_counted: &dyn Fn(&Episode) -> bool| {
        games.iter().filter(|game| is_counted(game)).count() as f64 / total
    };
    round.add("decided_share", share(&|game| game.outcome.winner.is_some()));
    round.add("truncated_share", share(&|game| game.outcome.is_truncated()));
    round.add("plies", games.iter().map(|game| f64::from(game.plies)).sum::<f64>() / total);
}

#[cfg(test)]
mod tests {
    use selfmate_nn::mlp::Target;

    use super::*;

    #[test]
    fn advantages_keep_their_signs_and_are_scaled_to_variance_one() {
        let sample = |advantage: f32| Sample {
            features: Box::default(),
            moves: Box::default(),
            target: Target::Played(0),
            advantage,
            result: 0.0,
        };
        let mut samples: Vec<Sample> = [-0.5, 0.1, 0.3, 0.5].map(sample).to_vec();
        assert!((scale(&mut samples) - 0.1).abs() < 1e-6);
        let scaled: Vec<f32> = samples.iter().map(|sample| sample.advantage).collect();
        let mean = scaled.iter().sum::<f32>() / 4.0;
        let spread = scaled.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 4.0;
        assert!((spread - 1.0).abs() < 1e-4 && scaled[0] < 0.0 && scaled[1] > 0.0);
        // When everything went as expected, the scaled advantages stay small.
        let mut even: Vec<Sample> = [0.001, -0.001].map(sample).to_vec();
        scale(&mut even);
        assert!(even.iter().all(|sample| sample.advantage.abs() < 0.05));
    }

    #[test]
    fn invalid_settings_are_rejected_by_name() {
        for name in ReinforceConfig::PRESETS {
            ReinforceConfig::preset(name).unwrap().check().unwrap();
        }
        let config = ReinforceConfig { opponents: Vec::new(), ..ReinforceConfig::tiny() };
        assert!(config.check().unwrap_err().to_string().starts_with("opponents is empty"));
        let error = |change: fn(&mut ReinforceConfig)| {
            let mut config = ReinforceConfig::tiny();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert!(error(|c| c.discount = 2.0).starts_with("discount is 2"));
        assert!(error(|c| c.pool = 0).starts_with("pool is 0"));
        assert!(
            error(|c| c.rate.begin = f64::NAN).starts_with("rate.begin is not a finite number")
        );
        assert!(error(|c| c.optimiser.beta1 = 1.0).starts_with("optimiser.beta1 is 1"));
        assert!(error(|c| c.round_games = u64::MAX).starts_with("round_games is"));
        assert!(error(|c| c.evaluation.max_plies = 0).starts_with("evaluation.max_plies is 0"));
    }
}
