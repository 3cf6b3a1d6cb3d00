//! How games of self-play are played.

use selfmate_search::mcts::{Expansion, PuctFormula, ValueTarget};
use selfmate_search::memory::{MemoryError, check_limit, check_rooms};
use serde::{Deserialize, Serialize};

use crate::ramp::Ramp;
use crate::start::Ending;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelfPlayConfig {
    /// Games between one network and the next.
    pub generation_games: u64,
    /// A first generation without a network.
    #[serde(default)]
    pub bootstrap: Bootstrap,
    /// Simulations per move.
    pub simulations: Ramp,
    /// Games that a thread plays in lockstep, so that their positions are evaluated together: one
    /// for a cheap network, many for an expensive one.
    pub games_at_once: usize,
    /// At which visit a node of the tree gets its children.
    pub expansion: Expansion,
    pub root_rule: RootRuleName,
    /// The policy that the network learns.
    #[serde(default)]
    pub policy_target: PolicyTargetName,
    /// The value of a search: what the network learns besides the result, and what games are resigned
    /// by.
    #[serde(default)]
    pub value_target: ValueTarget,
    /// See [`selfmate_search::mcts::Dirichlet`].
    pub dirichlet_alpha: f64,
    /// See [`selfmate_search::mcts::Dirichlet`].
    pub dirichlet_epsilon: f64,
    /// Root moves that `gumbel` and `top_k` consider.
    pub candidates: usize,
    /// See [`selfmate_search::mcts::Gumbel`].
    pub c_visit: f64,
    /// See [`selfmate_search::mcts::Gumbel`].
    pub c_scale: f64,
    /// The exploration constant below the root.
    pub c_puct: f64,
    /// The exploration constant grows by ln((N + this + 1) / this) with the visits N of a node; with 0 it
    /// stays the same.
    #[serde(default = "default_c_puct_base")]
    pub c_puct_base: f64,
    /// The exploration term below the root, and at the root of `puct` and `greedy`.
    #[serde(default)]
    pub puct_formula: PuctFormula,
    /// The value of an unvisited move is that of its parent minus this times the square root of the
    /// prior mass already tried. Not used with `unvisited_value`.
    pub first_play_urgency: f64,
    /// The value of every unvisited move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unvisited_value: Option<f64>,
    /// The factor by which a value shrinks with every ply, in the search and in the result.
    pub discount: f64,
    /// Plies with Gumbel noise; the best move found is played after them.
    pub noise_plies: u32,
    /// Plies in which `puct` draws moves in proportion to their visits.
    pub temperature_plies: u32,
    /// The share of moves that are searched with few simulations and not recorded (playout cap
    /// randomisation; Wu 2019, section 3.1).
    pub fast_share: f64,
    pub fast_simulations: u32,
    /// Games start with up to this many random plies.
    pub opening_plies: u32,
    /// The share of games with up to `long_opening_plies` random plies instead.
    pub long_opening_share: f64,
    pub long_opening_plies: u32,
    /// The share of games that start from a random endgame.
    pub endgame_share: f64,
    /// The most pieces of a random endgame, kings included.
    pub endgame_pieces: usize,
    /// All games start from a random position of this ending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// Games are truncated after this many plies, random ones not counted.
    pub max_plies: u32,
    /// A game is resigned when the searches of both sides give the winner at least this value…
    pub resign_value: f64,
    /// … for this many plies in a row …
    pub resign_plies: u32,
    /// … in this share of games. The others show how often a resignation would have been wrong.
    pub resign_share: f64,
    pub priors: Priors,
    /// Evaluations that a thread caches by position; 0 for no cache.
    pub transpositions: usize,
    /// Nodes of the same position share their children; see
    /// [`selfmate_search::mcts::Transpositions`].
    #[serde(default)]
    pub shared_nodes: bool,
    /// When a search proves a win or a loss, record its best move as the policy target and the
    /// discounted result as the value.
    pub proven_targets: bool,
    /// Megabytes for each search tree.
    pub memory_mb: usize,
}

/// A first generation whose searches use no network. An expensive network with random weights adds
/// no information and is far slower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bootstrap {
    /// 0 for no such generation.
    pub games: u64,
    /// Simulations per move.
    pub simulations: u64,
    /// The share of positions that are recorded.
    pub kept_share: f64,
}

/// How the move at the root of a search is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RootRuleName {
    /// Candidates by prior and Gumbel noise, sequential halving among them.
    Gumbel,
    /// The same candidates, PUCT among them.
    TopK,
    /// PUCT with Dirichlet noise; moves are drawn by visits in the first plies.
    Puct,
    /// PUCT without noise; the most visited move is played.
    Greedy,
}

/// See [`selfmate_search::mcts::PolicyTarget`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyTargetName {
    /// What belongs to the root rule: the improved policy to `gumbel` and `top_k`, visits to `puct`
    /// and `greedy`.
    #[default]
    RootRule,
    /// The share of each move in the visits.
    Visits,
    /// The softmax of log prior and completed value, by `c_visit` and `c_scale`.
    Improved,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priors {
    Network,
    /// The same prior for every legal move.
    Uniform,
}

impl SelfPlayConfig {
    /// A run of a few seconds, for tests and first experiments.
    pub fn tiny() -> SelfPlayConfig {
        SelfPlayConfig {
            generation_games: 16,
            simulations: Ramp::new(4.0, 8.0, 0.0, 1.0),
            candidates: 4,
            max_plies: 60,
            memory_mb: 1,
            ..SelfPlayConfig::default()
        }
    }

    /// The number of games of a generation.
    pub fn games_of(&self, generation: u64) -> u64 {
        if self.is_bootstrap(generation) { self.bootstrap.games } else { self.generation_games }
    }

    /// The generation that the game with this number belongs to.
    pub fn generation_of(&self, number: u64) -> u64 {
        if number < self.bootstrap.games {
            return 0;
        }
        let after = (number - self.bootstrap.games) / self.generation_games;
        u64::from(self.bootstrap.games > 0) + after
    }

    pub fn is_bootstrap(&self, generation: u64) -> bool {
        generation == 0 && self.bootstrap.games > 0
    }

    /// How the bootstrap generation is played. Every move is a candidate, or mates would be missed.
    /// There is noise to the end, because without it moves of equal value would repeat positions
    /// for ever. Few positions of a game are recorded, because all have the same result.
    pub fn bootstrap_config(&self) -> SelfPlayConfig {
        SelfPlayConfig {
            candidates: usize::MAX,
            noise_plies: u32::MAX,
            temperature_plies: u32::MAX,
            fast_share: 1.0 - self.bootstrap.kept_share,
            fast_simulations: self.bootstrap.simulations as u32,
            ..self.clone()
        }
    }

    /// The same search to play with rather than to learn from.
    pub fn without_noise(&self) -> SelfPlayConfig {
        let root_rule = match self.root_rule {
            RootRuleName::Puct => RootRuleName::Greedy,
            rule => rule,
        };
        SelfPlayConfig { root_rule, noise_plies: 0, ..self.clone() }
    }

    /// An error if the search trees do not fit into memory.
    pub fn check_memory(&self, threads: usize) -> Result<(), MemoryError> {
        let purpose = "the search trees of all games at once";
        check_limit(self.trees_mb(threads), purpose)?;
        check_rooms(self.trees(threads), self.memory_mb.max(1) << 20, purpose)
    }

    /// The megabytes that the trees of this many threads can fill. A search does not start unless
    /// there is room for one whole tree.
    pub fn trees_mb(&self, threads: usize) -> usize {
        let Ramp { from, to, .. } = self.simulations;
        let simulations = (from.max(to).ceil() as usize)
            .max(self.fast_simulations as usize)
            .max(self.bootstrap.simulations.try_into().unwrap_or(usize::MAX));
        let filled = simulations.saturating_mul(SIMULATION_BYTES).div_ceil(1 << 20).max(1);
        let whole = self.memory_mb.max(1);
        filled.min(whole).saturating_mul(self.trees(threads)).max(whole)
    }

    fn trees(&self, threads: usize) -> usize {
        self.games_at_once.max(1).saturating_mul(threads.max(1))
    }
}

/// A bound on what a simulation adds to a tree: a node with 60 edges and two groups of children takes
/// half a kilobyte. Twice that, because what is kept of a tree is copied to another; and four times,
/// because what is kept of one search is still there in the next.
const SIMULATION_BYTES: usize = 4 << 10;

/// The published constant. Runs of earlier versions do not name it.
fn default_c_puct_base() -> f64 {
    19_652.0
}

impl Default for SelfPlayConfig {
    fn default() -> SelfPlayConfig {
        SelfPlayConfig {
            generation_games: 1024,
            bootstrap: Bootstrap::default(),
            simulations: Ramp::new(32.0, 160.0, 0.0, 1.0),
            games_at_once: 1,
            expansion: Expansion::SecondVisit,
            root_rule: RootRuleName::Gumbel,
            policy_target: PolicyTargetName::RootRule,
            value_target: ValueTarget::Mean,
            dirichlet_alpha: 0.3,
            dirichlet_epsilon: 0.25,
            candidates: 16,
            c_visit: 50.0,
            c_scale: 0.2,
            c_puct: 1.5,
            c_puct_base: default_c_puct_base(),
            puct_formula: PuctFormula::AlphaZero,
            first_play_urgency: 0.3,
            unvisited_value: None,
            discount: 0.998,
            noise_plies: 30,
            temperature_plies: 30,
            fast_share: 0.0,
            fast_simulations: 16,
            opening_plies: 8,
            long_opening_share: 0.15,
            long_opening_plies: 50,
            endgame_share: 0.05,
            endgame_pieces: 8,
            ending: None,
            max_plies: 200,
            resign_value: 0.9,
            resign_plies: 6,
            resign_share: 0.85,
            priors: Priors::Network,
            transpositions: 0,
            shared_nodes: false,
            proven_targets: false,
            memory_mb: 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_that_do_not_fit_into_memory_are_an_error() {
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
    fn memory_counts_only_what_searches_can_fill() {
        let few = SelfPlayConfig { games_at_once: 256, ..SelfPlayConfig::default() };
        assert_eq!(few.trees_mb(9), 256 * 9);
        let simulations = Ramp::new(32.0, 1e20, 0.0, 1.0);
        let many = SelfPlayConfig { simulations, ..few.clone() };
        assert_eq!(many.trees_mb(9), 256 * 9 * few.memory_mb);
        let one = SelfPlayConfig { memory_mb: 4096, games_at_once: 1, ..few };
        assert_eq!(one.trees_mb(2), 4096);
    }

    #[test]
    fn every_game_belongs_to_one_generation() {
        let plain = SelfPlayConfig { generation_games: 8, ..SelfPlayConfig::default() };
        assert_eq!([0, 7, 8, 16].map(|number| plain.generation_of(number)), [0, 0, 1, 2]);
        let bootstrap = Bootstrap { games: 20, simulations: 4, kept_share: 0.5 };
        let config = SelfPlayConfig { bootstrap, ..plain };
        assert_eq!([0, 19, 20, 27, 28].map(|number| config.generation_of(number)), [0, 0, 1, 1, 2]);
        assert_eq!([0, 1, 2].map(|generation| config.games_of(generation)), [20, 8, 8]);
        assert!(config.is_bootstrap(0) && !config.is_bootstrap(1));
    }
}
