//! Rates a network by a few games against players of known strength.
//!
//! The network plays with few nodes per move, so that ratings take a few percent of the training
//! time. The limit is in nodes, not in time: the games depend only on the network and the seed, not
//! on the machine or the number of threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use selfmate_arena::adjudicate::{Adjudication, ResignRule, ResignSides};
use selfmate_arena::players::net;
use selfmate_arena::rate::{DEPTH_RUNGS, OWN_RUNGS};
use selfmate_arena::{
    GameSettings, MatchError, MatchLimit, MatchRun, PlayerKind, RateConfig, RateReport, Registry,
    Rung, run_rate,
};
use selfmate_chess::Seed;
use selfmate_nn::Model;
use selfmate_search::player::Limit;

use crate::config::RatingConfig;
use crate::endgame_mistakes::endgame_mistakes;

/// The network's name in the registry.
const NAME: &str = "network";
/// Pairs of games before the next rung is chosen. Fixed, so that it does not depend on threads.
const PAIRS_AT_ONCE: usize = 2;
/// Ends games that both players consider decided; their endings would not change the rating.
const RESIGN: ResignRule = ResignRule { move_count: 3, score: 1000, sides: ResignSides::Both };
/// A weak network may not be able to win; a game this long is truncated.
const MAX_PLIES: u32 = 300;

/// Rates a network against the built-in rungs.
pub fn rate(
    model: &Model,
    config: &RatingConfig,
    seed: u64,
    threads: usize,
    stop: &Arc<AtomicBool>,
) -> Result<RateReport, MatchError> {
    let registry = registry(model);
    let rungs = OWN_RUNGS.into_iter().chain(DEPTH_RUNGS).map(Rung::from).collect();
    let adjudication = Adjudication {
        resign: Some(RESIGN),
        max_plies: Some(MAX_PLIES),
        ..Adjudication::default()
    };
    let limit = MatchLimit::nodes(config.nodes);
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

/// The share of endings in which the network throws away a win or a draw, with the same search as in
/// the rating; `None` if stopped.
pub fn mistakes(
    model: &Model,
    config: &RatingConfig,
    stop: &AtomicBool,
) -> Result<Option<f64>, MatchError> {
    let registry = registry(model);
    let mut player = registry.build(&registry.parse(NAME)?, Seed::new(0))?;
    let is_stopped = || stop.load(Relaxed);
    Ok(endgame_mistakes(&mut *player, &Limit::nodes(config.nodes), &is_stopped))
}

/// The standard players and the network.
fn registry(model: &Model) -> Registry {
    let model = model.clone();
    let mut registry = Registry::standard();
    let network = PlayerKind::new(NAME, "the network in training", move |options| {
        net::build(options, &model)
    });
    registry.register(net::declare(network));
    registry
}

#[cfg(test)]
mod tests {
    use selfmate_nn::sparse::{self, SparseConfig, Weights};

    use super::*;

    const SHIPPED: &[u8] = include_bytes!("../../../nets/zero.safetensors");

    fn rated(weights: &Weights, nodes: u64, seed: u64, threads: usize) -> RateReport {
        let config = RatingConfig { games: 12, nodes, ..RatingConfig::default() };
        let model = Model::Sparse(weights.clone().into());
        rate(&model, &config, seed, threads, &Arc::default()).unwrap()
    }

    #[test]
    fn a_rating_does_not_depend_on_threads() {
        let config = SparseConfig { hidden: 64, ..SparseConfig::default() };
        let weights = Weights::random(config, Seed::new(1)).unwrap();
        let one = rated(&weights, 100, 7, 1);
        assert_eq!(one.games, 12);
        assert_eq!(one, rated(&weights, 100, 7, 3));
        assert_ne!(one, rated(&weights, 100, 8, 1));
    }

    #[test]
    fn a_trained_network_is_rated_above_the_shallow_rungs() {
        // The highest rung used to be alphabeta:depth=1; the shipped network with 2000 nodes per
        // move is about as strong as depth 5.
        let report = rated(&sparse::decode(SHIPPED).unwrap().0, 2000, 1, 2);
        let highest = OWN_RUNGS[OWN_RUNGS.len() - 1];
        assert!(report.rungs.iter().any(|rung| rung.rung.elo > highest.1), "{report:?}");
    }
}
