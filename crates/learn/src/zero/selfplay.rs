//! Games against itself: each a pure function of the run's seed, its number, the network and the
//! config.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use selfmate_chess::{Color, Outcome, Reason, Seed};
use selfmate_nn::sparse::Network;
use selfmate_run::{GameRecord, Judged};
use selfmate_search::mcts::{
    Batch, Expansion, FirstPlayUrgency, Gumbel, GumbelSearch, InteriorRule, Limit, Puct, RootRule,
    Search, SearchParams, Temperature, run_in,
};

use super::config::SelfPlayConfig;
use super::start::{random_start, start_fen};

/// What all games of a generation share.
#[derive(Clone, Debug)]
pub struct Generation {
    /// How to play.
    pub config: SelfPlayConfig,
    /// The seed of all games of the run.
    pub seed: Seed,
    /// Simulations for a move.
    pub sims: u64,
    /// The step of the network that plays.
    pub network: u64,
}

/// Plays games, one at a time.
pub struct SelfPlayer {
    search: Search,
    network: Network,
    batch: Batch,
}

/// A finished game, and the work that went into it.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// The game.
    pub record: GameRecord,
    /// Simulations of all its searches.
    pub simulations: u64,
}

impl SelfPlayer {
    /// A player with this network.
    pub fn new(config: &SelfPlayConfig, network: Network) -> SelfPlayer {
        let params = SearchParams {
            root: RootRule::Gumbel(gumbel(config, 1.0)),
            interior: InteriorRule::Puct(Puct {
                c_init: config.c_puct,
                first_play_urgency: FirstPlayUrgency::Reduced(config.first_play_urgency),
                ..Puct::default()
            }),
            expansion: Expansion::SecondVisit,
            policy_temperature: 1.0,
            root_policy_temperature: 1.0,
            virtual_loss: 1.0,
            discount: config.discount,
            temperature: Temperature { value: 0.0, plies: 0 },
            memory_mb: config.memory_mb,
        };
        SelfPlayer { search: Search::new(params), batch: Batch::new(&network), network }
    }

    /// Plays a game; `None` when it was stopped on the way.
    pub fn play(
        &mut self,
        generation: &Generation,
        number: u64,
        stop: &AtomicBool,
    ) -> Option<Played> {
        let config = &generation.config;
        let seed = generation.seed.index(number);
        let mut rng = seed.rng();
        let mut game = random_start(config, &mut rng);
        let resigns = rng.chance(config.resign_share);
        let first = game.ply();
        let mut positions = Vec::new();
        let mut simulations = 0;
        let mut streak = Streak::default();
        self.search.clear();
        let outcome = loop {
            let legal = game.legal_moves();
            if let Some(outcome) = game.outcome_given(&legal) {
                break outcome;
            }
            let ply = game.ply() - first;
            if ply >= config.max_plies as usize {
                break Outcome { winner: None, reason: Reason::PlyCap };
            }
            if stop.load(Relaxed) {
                return None;
            }
            let is_quick = config.quick_share > 0.0 && rng.chance(config.quick_share);
            let sims = if is_quick { u64::from(config.quick_sims) } else { generation.sims };
            let noise = if ply < config.noisy_plies as usize { 1.0 } else { 0.0 };
            self.search.set_root_rule(RootRule::Gumbel(gumbel(config, noise)));
            self.search.start(&game, sims, seed.index(game.ply() as u64));
            run_in(&mut self.search, &mut self.batch, &mut self.network, &Limit::default());
            simulations += self.search.simulations();
            let decision =
                self.search.decision(&legal).expect("the game goes on, so there is a move");
            let value = decision.wdl.value();
            if !is_quick {
                positions.push(Judged {
                    ply: game.ply() as u16,
                    value,
                    draw: decision.wdl.draw,
                    policy: decision.policy_target,
                });
            }
            let favourite = streak.add(value, game.turn(), config);
            if resigns && favourite.is_some() {
                break Outcome { winner: favourite, reason: Reason::Adjudication };
            }
            game.play_unchecked(decision.best);
        };
        let record = GameRecord {
            number,
            network: generation.network,
            start: start_fen(&game),
            moves: game.moves().collect(),
            outcome,
            positions,
        };
        Some(Played { record, simulations })
    }
}

fn gumbel(config: &SelfPlayConfig, noise: f32) -> Gumbel {
    Gumbel {
        candidates: config.candidates,
        c_visit: config.c_visit,
        c_scale: config.c_scale,
        noise,
        search: GumbelSearch::SequentialHalving,
    }
}

/// For how many plies in a row the searches of both sides have been sure of the same winner.
#[derive(Clone, Copy, Debug, Default)]
pub struct Streak {
    favourite: Option<Color>,
    plies: u32,
}

impl Streak {
    /// Adds the value of the next search for the side that moves; the winner, once it is sure
    /// enough.
    pub fn add(&mut self, value: f32, turn: Color, config: &SelfPlayConfig) -> Option<Color> {
        let favourite = match value {
            v if v >= config.resign_value => Some(turn),
            v if v <= -config.resign_value => Some(!turn),
            _ => None,
        };
        self.plies =
            if favourite.is_some() && favourite == self.favourite { self.plies + 1 } else { 1 };
        self.favourite = favourite;
        favourite.filter(|_| self.plies >= config.resign_plies)
    }
}

/// The winner that the searches of a game were sure enough of to give it up, in games that were
/// played on regardless.
pub fn would_resign(record: &GameRecord, config: &SelfPlayConfig) -> Option<Color> {
    let mut streak = Streak::default();
    let starts_black = record.start.as_deref().is_some_and(|fen| fen.contains(" b "));
    record.positions.iter().find_map(|judged| {
        let is_black = (judged.ply % 2 == 1) != starts_black;
        let turn = if is_black { Color::Black } else { Color::White };
        streak.add(judged.value, turn, config)
    })
}

#[cfg(test)]
mod tests {
    use selfmate_nn::sparse::{SparseConfig, Weights};

    use super::super::config::ZeroConfig;
    use super::*;

    #[test]
    fn a_game_depends_on_nothing_but_its_number() {
        let config = ZeroConfig::tiny().selfplay;
        let shape = SparseConfig { hidden: 64, value_hidden: 8, ..SparseConfig::default() };
        let network = Network::new(&Weights::random(shape, Seed::new(1)).unwrap());
        let generation =
            Generation { config: config.clone(), seed: Seed::new(2), sims: 8, network: 0 };
        let stop = AtomicBool::new(false);
        let mut player = SelfPlayer::new(&config, network.clone());
        let games: Vec<Played> =
            (0..6).map(|number| player.play(&generation, number, &stop).unwrap()).collect();
        let mut other = SelfPlayer::new(&config, network);
        for number in (0..6).rev() {
            assert_eq!(other.play(&generation, number, &stop).unwrap(), games[number as usize]);
        }
        for played in &games {
            let game = played.record.replay(|_, _, _| {}).unwrap();
            assert_eq!(game.ply(), played.record.moves.len());
            assert!(played.simulations > 0);
        }
        assert!(other.play(&generation, 0, &AtomicBool::new(true)).is_none());
    }

    #[test]
    fn a_game_is_given_up_after_enough_certain_plies_in_a_row() {
        let config = SelfPlayConfig { resign_plies: 3, ..SelfPlayConfig::default() };
        let mut streak = Streak::default();
        let mut add = |value, turn| streak.add(value, turn, &config);
        assert_eq!(add(0.95, Color::White), None);
        assert_eq!(add(-0.95, Color::Black), None);
        assert_eq!(add(0.5, Color::White), None);
        assert_eq!(add(-0.95, Color::Black), None);
        assert_eq!(add(0.95, Color::White), None);
        assert_eq!(add(-0.95, Color::Black), Some(Color::White));
        assert_eq!(add(0.95, Color::Black), None, "both sides must agree");
    }
}
