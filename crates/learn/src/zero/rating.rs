//! How strong a network is: a few games against players of known strength.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selfmate_arena::players::MctsOptions;
use selfmate_arena::rate::OWN_RUNGS;
use selfmate_arena::{
    GameSettings, MatchError, MatchRun, MoveLimit, PlayerKind, RateConfig, RateReport, Registry,
    Rung, run_rate,
};
use selfmate_nn::sparse::{Network, Weights};
use selfmate_search::mcts::SearchParams;

use super::config::RatingConfig;

/// The name of the network among the players.
const NAME: &str = "network";

/// Rates a network against our own rungs.
pub fn rate(
    weights: &Weights,
    config: &RatingConfig,
    seed: u64,
    threads: usize,
    stop: &Arc<AtomicBool>,
) -> Result<RateReport, MatchError> {
    let network = Network::new(weights);
    let mut registry = Registry::standard();
    registry.register(PlayerKind::new(NAME, "the network in training", move |options| {
        let network = network.clone();
        let player = MctsOptions::read(options, SearchParams::default())?.player(
            NAME,
            options.seed,
            move |_| Box::new(network.clone()),
        );
        Ok(Box::new(player))
    }));
    let rungs = OWN_RUNGS.map(|(player, elo)| Rung { player: player.to_owned(), elo });
    let limit = MoveLimit::nodes(config.sims);
    let config = RateConfig {
        settings: GameSettings { limit, ..GameSettings::default() },
        seed,
        max_games: config.games,
        max_error: 1.0,
        rungs: Some(rungs.into()),
        ..RateConfig::new(NAME)
    };
    let run = MatchRun { concurrency: threads, stop: Arc::clone(stop), ..MatchRun::default() };
    run_rate(&config, &run, &registry, &mut |_, _| {})
}
