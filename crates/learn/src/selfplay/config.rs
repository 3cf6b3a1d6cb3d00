//! The settings that all learners from self-play have in common.

use selfmate_search::mcts::Expansion;
use selfmate_search::memory::{MemoryError, check_limit, check_rooms};
use serde::{Deserialize, Serialize};

use crate::bounds;
use crate::config::ConfigError;

/// The settings of a learner from self-play, with the shape of its network and the settings of
/// its optimiser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config<N, T> {
    /// The games after which ramps end: learning rate, simulations and targets depend on the
    /// share of these that have been played, never on the clock.
    pub plan_games: u64,
    /// The network's shape.
    pub network: N,
    /// How games are played.
    pub selfplay: SelfPlayConfig,
    /// How they are learned from.
    pub learning: LearningConfig<T>,
    /// When to raise an alarm.
    pub guards: GuardConfig,
    /// How strength is watched.
    pub rating: RatingConfig,
}

/// How games are played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelfPlayConfig {
    /// Games between one network and the next.
    pub generation_games: u64,
    /// What is played before there is a network worth asking.
    #[serde(default)]
    pub blind: Blind,
    /// Simulations for a move.
    pub sims: Ramp,
    /// Games that a thread plays in lockstep, so that their positions are evaluated together:
    /// one for a cheap network, many for a dear one.
    pub games_at_once: usize,
    /// When a position in the tree gets its moves.
    pub expansion: Expansion,
    /// How the root chooses.
    pub root: Root,
    /// The noise on the priors of a PUCT root: small means on few moves.
    pub dirichlet_alpha: f32,
    /// The share of that noise.
    pub dirichlet_share: f32,
    /// Moves that a Gumbel root looks at.
    pub candidates: usize,
    /// See [`selfmate_search::mcts::Gumbel`].
    pub c_visit: f32,
    /// See [`selfmate_search::mcts::Gumbel`].
    pub c_scale: f32,
    /// The weight of exploration below the root.
    pub c_puct: f32,
    /// How much worse than its parent a move not yet tried counts.
    pub first_play_urgency: f32,
    /// A value is worth this much less a ply further away, in the search and in the result.
    pub discount: f32,
    /// Plies in which moves are drawn with noise; later ones are the best found.
    pub noisy_plies: u32,
    /// The share of moves searched with few simulations and not recorded.
    pub quick_share: f64,
    /// Simulations of those.
    pub quick_sims: u32,
    /// Games start with up to so many random plies.
    pub opening_plies: u32,
    /// The share of games with up to `wild_plies` random plies instead.
    pub wild_share: f64,
    /// See `wild_share`.
    pub wild_plies: u32,
    /// The share of games that start from a random endgame.
    pub endgame_share: f64,
    /// The most pieces in those, kings included.
    pub endgame_pieces: usize,
    /// Games are cut off after so many plies (random ones not counted).
    pub max_plies: u32,
    /// A game is given up once the search is this sure of the winner...
    pub resign_value: f32,
    /// ...for so many plies...
    pub resign_plies: u32,
    /// ...in this share of games. The others show how often it would have been wrong.
    pub resign_share: f64,
    /// Megabytes for each tree.
    pub memory_mb: usize,
}

/// A first generation whose searches know the rules alone. A dear network that knows nothing either
/// would take far longer to say so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blind {
    /// Its games; 0 for none.
    pub games: u64,
    /// Simulations for a move.
    pub sims: u64,
    /// The share of positions that are learned from.
    pub kept: f64,
}

impl SelfPlayConfig {
    /// Games of a generation.
    pub fn games_of(&self, generation: u64) -> u64 {
        if self.is_blind(generation) { self.blind.games } else { self.generation_games }
    }

    /// The generation of a game.
    pub fn generation_of(&self, number: u64) -> u64 {
        if number < self.blind.games {
            return 0;
        }
        let after = (number - self.blind.games) / self.generation_games;
        u64::from(self.blind.games > 0) + after
    }

    /// How the blind generation is played: every move is looked at, or mates would be missed; with
    /// noise to the end, or moves that are all the same would go round in circles; and few
    /// positions of a game are kept, as all say the same of its result.
    pub fn blinded(&self) -> SelfPlayConfig {
        SelfPlayConfig {
            candidates: usize::MAX,
            noisy_plies: u32::MAX,
            quick_share: 1.0 - self.blind.kept,
            quick_sims: self.blind.sims as u32,
            ..self.clone()
        }
    }

    /// Whether a generation is played without a network.
    pub fn is_blind(&self, generation: u64) -> bool {
        generation == 0 && self.blind.games > 0
    }
}

/// How the root of a search chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Root {
    /// Candidates by prior and Gumbel noise, sequential halving among them.
    Gumbel,
    /// As below the root, with Dirichlet noise; moves are drawn by visits in the noisy plies.
    Puct,
}

/// How games are learned from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearningConfig<T> {
    /// Positions in a batch.
    pub batch: usize,
    /// How often a position is learned from, on average.
    pub reuse: f64,
    /// The learning rate.
    pub rate: Ramp,
    /// The learning rate is a tenth from each of these batches on.
    pub rate_drops: Vec<u64>,
    /// The learning rate rises to that over so many batches.
    pub warmup_steps: u64,
    /// The most positions to draw batches from.
    pub window: usize,
    /// The window holds at most this share of all positions so far, so that the first games are
    /// soon forgotten.
    pub window_share: f64,
    /// The weight of the game's result in the value target; the rest is the search's value.
    pub result_weight: Ramp,
    /// The optimiser.
    pub trainer: T,
    /// Seconds between checkpoints.
    pub checkpoint_seconds: f64,
    /// Batches between networks that are kept for good.
    pub keep_steps: u64,
}

impl<T> LearningConfig<T> {
    /// The learning rate of a batch.
    pub fn rate_at(&self, progress: f64, step: u64) -> f64 {
        let drops = self.rate_drops.iter().filter(|&&drop| drop <= step).count() as i32;
        let warm = ((step + 1) as f64 / self.warmup_steps.max(1) as f64).min(1.0);
        self.rate.at(progress) * warm * 0.1f64.powi(drops)
    }
}

/// When to raise an alarm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardConfig {
    /// Generations before any alarm: random networks are all alarming.
    pub patience: u64,
    /// The largest share of draws among finished games.
    pub max_draws: f64,
    /// The largest share of games cut off.
    pub max_capped: f64,
    /// The smallest standard deviation of search values.
    pub min_value_spread: f64,
    /// The smallest mean entropy of policy targets, in nats.
    pub min_entropy: f64,
    /// The largest mean divergence of policy targets from the network's policy, in nats.
    pub max_divergence: f64,
    /// Generations of more varied games that an alarm brings.
    pub remedy_generations: u64,
    /// Remedies in a row after which the run stops.
    pub max_remedies: u32,
}

/// How strength is watched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatingConfig {
    /// Seconds of training between ratings; 0 for none.
    pub every_seconds: f64,
    /// Games for each.
    pub games: u64,
    /// Nodes of alpha-beta for a move; with a residual network, simulations.
    pub nodes: u64,
}

/// A number that goes in a straight line from one value to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ramp {
    /// The value at first.
    pub from: f64,
    /// The value at last.
    pub to: f64,
    /// The share of the plan at which it begins to move.
    pub begin: f64,
    /// The share at which it arrives.
    pub end: f64,
}

impl Ramp {
    /// A ramp between two shares of the plan.
    pub const fn new(from: f64, to: f64, begin: f64, end: f64) -> Ramp {
        Ramp { from, to, begin, end }
    }

    /// The value once this share of the plan is done.
    pub fn at(&self, progress: f64) -> f64 {
        let span = (self.end - self.begin).max(f64::MIN_POSITIVE);
        let share = ((progress - self.begin) / span).clamp(0.0, 1.0);
        self.from + (self.to - self.from) * share
    }
}

impl Default for SelfPlayConfig {
    fn default() -> SelfPlayConfig {
        SelfPlayConfig {
            generation_games: 1024,
            blind: Blind::default(),
            sims: Ramp::new(32.0, 160.0, 0.0, 1.0),
            games_at_once: 1,
            expansion: Expansion::SecondVisit,
            root: Root::Gumbel,
            dirichlet_alpha: 0.3,
            dirichlet_share: 0.25,
            candidates: 16,
            c_visit: 50.0,
            c_scale: 0.2,
            c_puct: 1.5,
            first_play_urgency: 0.3,
            discount: 0.998,
            noisy_plies: 30,
            quick_share: 0.0,
            quick_sims: 16,
            opening_plies: 8,
            wild_share: 0.15,
            wild_plies: 50,
            endgame_share: 0.05,
            endgame_pieces: 8,
            max_plies: 200,
            resign_value: 0.9,
            resign_plies: 6,
            resign_share: 0.85,
            memory_mb: 8,
        }
    }
}

impl<T: Default> Default for LearningConfig<T> {
    fn default() -> LearningConfig<T> {
        LearningConfig {
            batch: 2048,
            reuse: 5.0,
            rate: Ramp::new(1.5e-3, 1e-4, 0.4, 1.0),
            rate_drops: Vec::new(),
            warmup_steps: 100,
            window: 3_000_000,
            window_share: 0.5,
            result_weight: Ramp::new(1.0, 0.5, 0.05, 0.2),
            trainer: T::default(),
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
            max_capped: 0.5,
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

impl SelfPlayConfig {
    /// Says when there is not enough memory for the trees of so many threads.
    pub fn check_memory(&self, threads: usize) -> Result<(), MemoryError> {
        let purpose = "the search trees of all games at once";
        check_limit(self.trees_mb(threads), purpose)?;
        check_rooms(self.trees(threads), self.memory_mb.max(1) << 20, purpose)
    }

    /// The megabytes that the trees of so many threads can fill. One tree must have room for all
    /// that it may take: a search refuses to begin without.
    pub(crate) fn trees_mb(&self, threads: usize) -> usize {
        let Ramp { from, to, .. } = self.sims;
        let sims = (from.max(to).ceil() as usize)
            .max(self.quick_sims as usize)
            .max(self.blind.sims.try_into().unwrap_or(usize::MAX));
        let filled = sims.saturating_mul(SIMULATION_BYTES).div_ceil(1 << 20).max(1);
        let whole = self.memory_mb.max(1);
        filled.min(whole).saturating_mul(self.trees(threads)).max(whole)
    }

    /// The trees of so many threads.
    fn trees(&self, threads: usize) -> usize {
        self.games_at_once.max(1).saturating_mul(threads.max(1))
    }
}

impl<N, T> Config<N, T> {
    /// The most positions that the replay window comes to.
    pub(crate) fn window_positions(&self) -> u64 {
        let plies = f64::from(self.selfplay.max_plies.min(LONG_GAME));
        let all = self.plan_games as f64 * plies * self.learning.window_share.min(1.0);
        (self.learning.window as u64).min(all as u64)
    }
}

/// The most that a simulation adds to a tree, about: a node with 60 edges and two groups of children
/// takes half a kilobyte. Twice that, as what is kept of a tree is copied to another; and four times,
/// as what is kept of one search is there in the next.
const SIMULATION_BYTES: usize = 4 << 10;

/// Plies of a game that is not a short one.
const LONG_GAME: u32 = 150;

impl<N: Serialize, T: Serialize> Config<N, T> {
    /// Says what makes no sense, if anything does, the network's shape apart.
    pub fn check_common(&self) -> Result<(), ConfigError> {
        bounds::check(self)?;
        let Blind { games, sims, .. } = self.selfplay.blind;
        if games > 0 && sims == 0 {
            return Err(ConfigError::Value {
                field: "selfplay.blind.sims",
                got: sims.to_string(),
                expected: "at least 1 where there are blind games",
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_that_the_machine_has_no_memory_for_are_refused() {
        let usual = SelfPlayConfig::default();
        assert_eq!(usual.check_memory(2), Ok(()));
        for (memory_mb, games_at_once, threads) in
            [(usize::MAX, 1, 1), (1 << 30, 1, 1), (1 << 10, 1 << 20, 1), (1 << 10, 1, 1 << 20)]
        {
            let config = SelfPlayConfig { memory_mb, games_at_once, ..usual.clone() };
            let refused = config.check_memory(threads);
            assert!(matches!(refused, Err(MemoryError::TooLarge { .. })), "{refused:?}");
        }
    }

    #[test]
    fn trees_count_with_what_their_searches_can_fill() {
        let few = SelfPlayConfig { games_at_once: 256, ..SelfPlayConfig::default() };
        assert_eq!(few.trees_mb(9), 256 * 9);
        let sims = Ramp::new(32.0, 1e20, 0.0, 1.0);
        let many = SelfPlayConfig { sims, ..few.clone() };
        assert_eq!(many.trees_mb(9), 256 * 9 * few.memory_mb);
        let one = SelfPlayConfig { memory_mb: 4096, games_at_once: 1, ..few };
        assert_eq!(one.trees_mb(2), 4096);
    }

    #[test]
    fn a_ramp_stands_moves_and_stands() {
        let ramp = Ramp::new(1.0, 3.0, 0.25, 0.75);
        assert_eq!([0.0, 0.25, 0.5, 0.75, 2.0].map(|p| ramp.at(p)), [1.0, 1.0, 2.0, 3.0, 3.0]);
        assert_eq!(Ramp::new(1.0, 3.0, 0.5, 0.5).at(0.5), 1.0);
        assert_eq!(Ramp::new(1.0, 3.0, 0.5, 0.5).at(0.6), 3.0);
    }

    #[test]
    fn games_belong_to_their_generation() {
        let seeing = SelfPlayConfig { generation_games: 8, ..SelfPlayConfig::default() };
        assert_eq!([0, 7, 8, 16].map(|number| seeing.generation_of(number)), [0, 0, 1, 2]);
        let blind = SelfPlayConfig { blind: Blind { games: 20, sims: 4, kept: 0.5 }, ..seeing };
        assert_eq!([0, 19, 20, 27, 28].map(|number| blind.generation_of(number)), [0, 0, 1, 1, 2]);
        assert_eq!([0, 1, 2].map(|generation| blind.games_of(generation)), [20, 8, 8]);
        assert!(blind.is_blind(0) && !blind.is_blind(1));
    }

    #[test]
    fn the_learning_rate_warms_up_and_drops() {
        let config = LearningConfig::<()> {
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
    }
}
