//! Settings that learners share.

use selfmate_selfplay::{Bootstrap, Ramp, SelfPlayConfig};
use serde::{Deserialize, Serialize};

use crate::bounds::{self, NamedBounds};
use crate::config_error::ConfigError;
use crate::final_phase::FinalConfig;

/// The settings of a self-play learner, generic over the network's shape (`N`), the optimiser's
/// settings (`T`) and those of the learner's own evaluation (`E`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelfPlayLearnerConfig<N, T, E = NoEvaluation> {
    /// The number of games at which the ramps end. Learning rate, simulations and targets depend on
    /// the share of these games that have been played, never on time.
    pub plan_games: u64,
    /// The run is complete after this many steps, and the ramps depend on the share of these steps
    /// instead of games.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_steps: Option<u64>,
    pub network: N,
    pub selfplay: SelfPlayConfig,
    pub learning: LearningConfig<T>,
    pub guards: GuardConfig,
    pub rating: RatingConfig,
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<E>,
}

/// For learners without their own evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum NoEvaluation {}

/// How the network learns from the games.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearningConfig<T> {
    /// Positions per batch.
    pub batch: usize,
    /// How often each position is used, on average.
    pub reuse: f64,
    /// The learning rate.
    pub rate: Ramp,
    /// From each of these steps on, the learning rate is a tenth of what it was.
    pub rate_drops: Vec<u64>,
    /// The learning rate also decays as 1/√(1 + step / this).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_decay_steps: Option<f64>,
    /// The learning rate rises linearly over the first steps.
    pub warmup_steps: u64,
    /// The largest capacity of the replay buffer, in positions.
    pub replay_max: usize,
    /// The capacity as a share of all positions so far, so that the weak first games are soon
    /// dropped.
    pub replay_share: f64,
    /// The smallest capacity.
    pub replay_min: usize,
    /// Learning starts when the replay buffer has this many positions.
    #[serde(default)]
    pub min_buffer: usize,
    /// The weight of the game's result in the value target; the rest is the value of searches.
    pub result_weight: Ramp,
    /// The λ of λ-returns over the following searches as the value of searches; without it, the
    /// value of the position's own search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lambda: Option<f64>,
    pub trainer: T,
    /// What follows when all planned games have been played.
    #[serde(default)]
    pub final_phase: FinalConfig,
    /// Seconds between checkpoints.
    pub checkpoint_seconds: f64,
    /// Steps between checkpoints that are kept permanently.
    pub keep_steps: u64,
}

impl<T> LearningConfig<T> {
    pub fn rate_at(&self, progress: f64, step: u64) -> f64 {
        let drops = self.rate_drops.iter().filter(|&&drop| drop <= step).count() as i32;
        let warm = ((step + 1) as f64 / self.warmup_steps.max(1) as f64).min(1.0);
        let rate = self.rate.at(progress) * warm * 0.1f64.powi(drops);
        self.rate_decay_steps.map_or(rate, |steps| rate / (1.0 + step as f64 / steps).sqrt())
    }

    pub fn saving(&self) -> SavingConfig {
        SavingConfig { checkpoint_seconds: self.checkpoint_seconds, keep_steps: self.keep_steps }
    }

    /// The capacity of the replay buffer after this many positions.
    pub fn replay_capacity(&self, positions: u64) -> usize {
        let share = (positions as f64 * self.replay_share) as usize;
        share.max(self.replay_min).min(self.replay_max)
    }
}

/// The bounds at which the guards raise an alarm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardConfig {
    /// Generations before the first alarm, because new networks are always out of bounds.
    pub patience: u64,
    /// The largest share of draws among games that were not truncated.
    pub max_draws: f64,
    /// The largest share of truncated games.
    pub max_truncated: f64,
    /// The smallest standard deviation of search values.
    pub min_value_spread: f64,
    /// The smallest mean entropy of policy targets, in nats.
    pub min_entropy: f64,
    /// The largest mean divergence of policy targets from the network's policy, in nats.
    pub max_divergence: f64,
    /// Generations of more varied games after an alarm.
    pub remedy_generations: u64,
    /// Remedies in a row after which the run stops.
    pub max_remedies: u32,
}

impl GuardConfig {
    /// Guards that never raise an alarm.
    pub fn off() -> GuardConfig {
        GuardConfig { patience: 1_000_000_000_000, ..GuardConfig::default() }
    }
}

/// Ratings against built-in players during the training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatingConfig {
    /// Seconds of training between ratings; 0 for none.
    pub every_seconds: f64,
    /// Games per rating.
    pub games: u64,
    /// Nodes of alpha-beta per move; with a residual network, simulations.
    pub nodes: u64,
}

/// Which checkpoints are made and kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavingConfig {
    /// Seconds between checkpoints.
    pub checkpoint_seconds: f64,
    /// Steps between checkpoints that are kept permanently.
    pub keep_steps: u64,
}

impl<T: Default> Default for LearningConfig<T> {
    fn default() -> LearningConfig<T> {
        LearningConfig {
            batch: 2048,
            reuse: 5.0,
            rate: Ramp::new(1.5e-3, 1e-4, 0.4, 1.0),
            rate_drops: Vec::new(),
            rate_decay_steps: None,
            warmup_steps: 100,
            replay_max: 3_000_000,
            replay_share: 0.5,
            replay_min: 0,
            min_buffer: 0,
            result_weight: Ramp::new(1.0, 0.5, 0.05, 0.2),
            lambda: None,
            trainer: T::default(),
            final_phase: FinalConfig::default(),
            checkpoint_seconds: 30.0,
            keep_steps: 500,
        }
    }
}

impl Default for GuardConfig {
    fn default() -> GuardConfig {
        GuardConfig {
            patience: 16,
            max_draws: 0.85,
            max_truncated: 0.5,
            min_value_spread: 0.08,
            min_entropy: 0.05,
            max_divergence: 2.0,
            remedy_generations: 8,
            max_remedies: 6,
        }
    }
}

impl Default for RatingConfig {
    fn default() -> RatingConfig {
        RatingConfig { every_seconds: 120.0, games: 40, nodes: 2000 }
    }
}

/// The length of a long game, for estimates.
const LONG_GAME: u32 = 150;

impl<N, T, E> SelfPlayLearnerConfig<N, T, E> {
    /// The largest size of the replay buffer if the run goes as planned.
    pub fn replay_positions(&self) -> u64 {
        self.learning.replay_capacity(self.all_positions()) as u64
    }

    /// The largest number of positions in a final phase.
    pub fn final_positions(&self) -> u64 {
        match self.learning.final_phase.is_planned() {
            true => self.all_positions().min(self.learning.final_phase.positions as u64),
            false => 0,
        }
    }

    fn all_positions(&self) -> u64 {
        let plies = f64::from(self.selfplay.max_plies.min(LONG_GAME));
        (self.plan_games as f64 * plies) as u64
    }
}

impl<N: Serialize, T: Serialize, E: Serialize> SelfPlayLearnerConfig<N, T, E> {
    /// Checks everything except the network's shape.
    pub fn check_common(&self, own: &[NamedBounds]) -> Result<(), ConfigError> {
        bounds::check(self, own)?;
        let Bootstrap { games, simulations, .. } = self.selfplay.bootstrap;
        if games > 0 && simulations == 0 {
            return Err(ConfigError::Value {
                field: "selfplay.bootstrap.simulations",
                got: simulations.to_string(),
                expected: "at least 1 if there are bootstrap games",
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_learning_rate_warms_up_drops_and_decays() {
        let mut config = LearningConfig::<()> {
            rate: Ramp::new(2.0, 1.0, 0.0, 1.0),
            rate_drops: vec![100, 300],
            warmup_steps: 10,
            ..LearningConfig::default()
        };
        let rates = [(0.0, 4), (0.0, 50), (0.5, 100), (1.0, 300)];
        let rates = rates.map(|(progress, step)| config.rate_at(progress, step));
        for (rate, expected) in rates.into_iter().zip([1.0, 2.0, 0.15, 0.01]) {
            assert!((rate - expected).abs() < 1e-12, "{rate} {expected}");
        }
        config.rate_decay_steps = Some(30.0);
        assert!((config.rate_at(0.0, 90) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_replay_buffer_grows_with_the_positions_between_its_bounds() {
        let config = LearningConfig::<()> {
            replay_min: 50,
            replay_share: 0.5,
            replay_max: 200,
            ..LearningConfig::default()
        };
        assert_eq!(
            [10, 200, 1000].map(|positions| config.replay_capacity(positions)),
            [50, 100, 200]
        );
    }
}
