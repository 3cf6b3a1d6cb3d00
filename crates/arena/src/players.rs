//! The standard kinds of players, one file each, and how their specs are read.

pub mod alphabeta;
pub(crate) mod booked;
mod greedy;
mod mcts;
pub mod net;
mod one_ply;
mod random;
mod stockfish;

pub use alphabeta::AlphaBetaPlayer;
pub use booked::{BookedPlayer, LoadedBook};
pub use greedy::{GreedyPlayer, best_exchange, exchange_gain};
pub use mcts::{MctsOptions, MctsPlayer};
pub use one_ply::{OnePlyPlayer, OnePlyWeights};
pub use random::RandomPlayer;
pub use stockfish::{EloRange, set_stockfish, stockfish_elo_range, stockfish_program};

use selfmate_chess::{Game, Move, Seed};
use selfmate_search::evaluator::{Material, Playout, Rollout};
use selfmate_search::mcts::{InteriorRule, SearchParams};
use selfmate_search::player::seed_of;
use selfmate_search::{Choice, PlayerError};

use crate::engine::UciPlayer;
use crate::registry::PlayerKind;
use crate::spec::COMMAND_KIND;

pub(crate) fn kinds() -> Vec<PlayerKind> {
    vec![
        PlayerKind::new("random", "a random legal move", |options| {
            Ok(Box::new(RandomPlayer::new(&options.label(), options.seed)))
        }),
        PlayerKind::new("greedy", "mates or captures what it can win, otherwise any safe move", |options| {
            Ok(Box::new(GreedyPlayer::new(&options.label(), options.seed)))
        }),
        one_ply::kind(),
        MctsOptions::declare(PlayerKind::new(
            "rollout",
            "Monte Carlo tree search (UCT) with random playouts",
            |options| {
                let mut params = SearchParams::uct();
                if let Some(c) = options.decimal("c", 0.0..=100.0)? {
                    params.interior = InteriorRule::Uct { c };
                }
                let settings = MctsOptions::read(options, params)?;
                let plies = options.number("plies", 1..=10_000)?.unwrap_or(50) as u32;
                let playout = match options.choice("playout", &["random", "material"])? {
                    Some(1) => Playout::Material { plies },
                    _ => Playout::Random { plies },
                };
                let seed = options.seed;
                Ok(Box::new(settings.player(&options.label(), seed, move |thread| {
                    Box::new(Rollout::new(playout, seed.index(thread as u64)))
                })?))
            },
        ))
        .option("playout", "how a playout that reaches `plies` counts: random (a draw), or material (random)")
        .option("plies", "plies of a playout (50)")
        .option("c", "weight of exploration (1.41)"),
        MctsOptions::declare(PlayerKind::new(
            "material",
            "Monte Carlo tree search (PUCT) with a material evaluation",
            |options| {
                let settings = MctsOptions::read(options, SearchParams::default())?;
                Ok(Box::new(
                    settings.player(&options.label(), options.seed, |_| Box::new(Material))?,
                ))
            },
        )),
        alphabeta::kind(),
        net::kind(),
        stockfish::kind(),
        PlayerKind::new(
            COMMAND_KIND,
            "any UCI engine; option.NAME=VALUE, nodes=, depth=, movetime= and timeout= are read by selfmate",
            |options| Ok(Box::new(UciPlayer::from_spec(options)?)),
        )
        .version(|options| Ok(UciPlayer::from_spec(options)?.version().unwrap_or("").to_owned()))
        .argument("COMMAND [args] [option.NAME=VALUE] [nodes=N] [timeout=MS]"),
    ]
}

/// One of `moves`, drawn by the player's seed and the game so far.
fn draw_move(player: &str, seed: Seed, game: &Game, moves: &[Move]) -> Result<Choice, PlayerError> {
    let drawn = seed_of(seed, game).rng().choose(moves).copied();
    drawn.map(Choice::bare).ok_or_else(|| PlayerError::no_move(player))
}

/// The time for one move on this clock.
fn budget_of(
    clock: &selfmate_search::player::Clock,
    constants: &selfmate_uci::TimeConstants,
) -> selfmate_uci::TimeBudget {
    let milliseconds = |time: std::time::Duration| time.as_millis() as u64;
    let clock = selfmate_uci::Clock {
        remaining_ms: milliseconds(clock.own),
        increment_ms: milliseconds(clock.increment),
        moves_to_go: clock.moves_to_go,
        // Time for scheduling, and for the answer to reach the process that keeps the clock.
        overhead_ms: 10,
    };
    clock.budget_with(constants)
}
