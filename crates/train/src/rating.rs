//! How strong a network is: a few games against players of known strength.
//!
//! It plays as it plays for users, as the static evaluator of alpha-beta, but with few nodes per move,
//! so that the games cost a few percent of the training. Nodes and not time: the games depend on
//! the network and the seed alone, not on the machine and its threads.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selfmate_arena::adjudicate::{Adjudication, ResignRule, ResignSides};
use selfmate_arena::players::net;
use selfmate_arena::rate::{DEPTH_RUNGS, OWN_RUNGS};
use selfmate_arena::{
    GameSettings, MatchError, MatchRun, MoveLimit, PlayerKind, RateConfig, RateReport, Registry,
    Rung, run_rate,
};
use selfmate_nn::Model;

use crate::config::RatingConfig;

/// The name of the network among the players.
const NAME: &str = "network";
/// Pairs of games before another rung is chosen: a fixed number, for any number of threads.
const PAIRS_AT_ONCE: usize = 2;
/// When both players have seen a game decided for a while, nothing is learned from its end.
const RESIGN: ResignRule = ResignRule { move_count: 3, score: 1000, sides: ResignSides::Both };
/// A young network may not know how to win; such a game counts as drawn.
const MAX_PLIES: u32 = 300;

/// Rates a network against our own rungs.
pub fn rate(
    model: &Model,
    config: &RatingConfig,
    seed: u64,
    threads: usize,
    stop: &Arc<AtomicBool>,
) -> Result<RateReport, MatchError> {
    let model = model.clone();
    let mut registry = Registry::standard();
    let network = PlayerKind::new(NAME, "the network in training", move |options| {
        net::build(options, &model)
    });
    registry.register(net::declare(network));
    let rungs = OWN_RUNGS.into_iter().chain(DEPTH_RUNGS).map(Rung::from).collect();
    let adjudication = Adjudication {
        resign: Some(RESIGN),
        max_plies: Some(MAX_PLIES),
        ..Adjudication::default()
    };
    let limit = MoveLimit::nodes(config.nodes);
    let config = RateConfig {
        settings: GameSettings { limit, adjudication, ..GameSettings::default() },
        seed,
        max_games: config.games,
        max_error: 1.0,
        rungs: Some(rungs),
        pairs_at_once: Some(PAIRS_AT_ONCE),
        ..RateConfig::new(NAME)
    };
    let run = MatchRun { concurrency: threads, stop: Arc::clone(stop), ..MatchRun::default() };
    run_rate(&config, &run, &registry, &mut |_, _| {})
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;
    use selfmate_nn::sparse::{self, SparseConfig, Weights};

    use super::*;

    const SHIPPED: &[u8] = include_bytes!("../../../nets/zero.safetensors");

    fn rated(weights: &Weights, nodes: u64, seed: u64, threads: usize) -> RateReport {
        let config = RatingConfig { games: 12, nodes, ..RatingConfig::default() };
        let model = Model::Sparse(weights.clone().into());
        rate(&model, &config, seed, threads, &Arc::default()).unwrap()
    }

    #[test]
    fn a_rating_depends_on_network_and_seed_and_not_on_threads() {
        let config = SparseConfig { hidden: 64, ..SparseConfig::default() };
        let weights = Weights::random(config, Seed::new(1)).unwrap();
        let one = rated(&weights, 100, 7, 1);
        assert_eq!(one.games, 12);
        assert_eq!(one, rated(&weights, 100, 7, 3));
        assert_ne!(one, rated(&weights, 100, 8, 1));
    }

    #[test]
    fn a_trained_network_is_rated_above_the_rungs_of_old() {
        // The highest used to be alphabeta:depth=1; with 2000 nodes a move it is even with depth 5.
        let report = rated(&sparse::decode(SHIPPED).unwrap().0, 2000, 1, 2);
        let highest = OWN_RUNGS[OWN_RUNGS.len() - 1];
        assert!(report.rungs.iter().any(|rung| rung.rung.elo > highest.1), "{report:?}");
    }
}
