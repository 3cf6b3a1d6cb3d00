//! Evaluation against the exact tablebase: whether the network with its search mates from won
//! positions, how many moves more than necessary it takes, and how far its values are from the
//! exact ones.

use rayon::prelude::*;
use selfmate_chess::tablebase::Verdict;
use selfmate_chess::{Color, Game, Seed};
use selfmate_search::Evaluator;
use selfmate_search::mcts::{Batch, Search, SimulationStats, StopCondition, run_in};
use selfmate_selfplay::{SelfPlayConfig, search_params};
use selfmate_train::Curves;
use serde::{Deserialize, Serialize};

use super::network::EndgameNetwork;
use super::oracle::{Defender, Oracle};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TablebaseEvaluationConfig {
    /// Rounds between evaluations; 0 for none.
    pub every_rounds: u64,
    /// Won positions to play against each defender. Ten times as many are drawn to compare values.
    pub positions: u64,
    /// Simulations per move.
    pub simulations: u64,
    /// The most moves of the winning side.
    pub moves: u32,
}

impl Default for TablebaseEvaluationConfig {
    fn default() -> TablebaseEvaluationConfig {
        TablebaseEvaluationConfig { every_rounds: 20, positions: 100, simulations: 200, moves: 50 }
    }
}

impl TablebaseEvaluationConfig {
    /// True when an evaluation follows this round.
    pub fn is_due(&self, round: u64) -> bool {
        self.every_rounds > 0 && (round + 1).is_multiple_of(self.every_rounds)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TablebaseReport {
    /// Won positions played against each defender.
    pub positions: u64,
    /// The share of games that ended in mate in time, against the perfect defender.
    pub mate_share: f64,
    /// The same against the random defender.
    pub random_mate_share: f64,
    /// The same against the heuristic defender.
    pub heuristic_mate_share: f64,
    /// The mean number of plies that a move of the winning side loses, against the perfect
    /// defender.
    pub regret_plies: f64,
    /// The share of moves that lose no plies, against the perfect defender.
    pub optimal_share: f64,
    /// The share of games in which a move gave the win away, against the perfect defender.
    pub thrown_share: f64,
    /// The mean number of moves to mate, against the perfect defender.
    pub mate_moves: f64,
    /// The mean number of moves to mate in the same games with perfect play.
    pub best_moves: f64,
    /// The mean absolute difference between the network's values and those of the tablebase.
    pub value_error: f64,
    /// The mean depth in plies at which a simulation ended.
    pub depth: f64,
    /// The depth of the deepest simulation, in plies.
    pub deepest: u32,
    /// The share of simulations that ended in a position with a known result.
    pub terminal_share: f64,
    /// The mean absolute value that simulations backed up.
    pub backup: f64,
    /// Bytes of tree memory per node.
    pub node_bytes: f64,
    /// Simulations of the searches against the perfect defender.
    pub simulations: u64,
    pub all_simulations: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct PlayedGame {
    is_mate: bool,
    is_thrown: bool,
    /// Moves of the winning side while it was winning, the number of optimal ones, and the plies
    /// lost by the others.
    moves: u32,
    optimal: u32,
    regret: u32,
    /// Plies to mate from the first position.
    distance: u8,
    stats: SimulationStats,
    bytes: usize,
    nodes: usize,
}

/// The search of self-play without noise.
struct PlainSearch {
    search: Search,
    batch: Batch,
    evaluator: Box<dyn Evaluator>,
}

impl PlainSearch {
    /// # Panics
    ///
    /// When there is no memory for its tree.
    fn new(config: &SelfPlayConfig, network: &EndgameNetwork) -> PlainSearch {
        let evaluator: Box<dyn Evaluator> = Box::new(network.evaluator());
        let search = Search::new(search_params(&config.without_noise()));
        PlainSearch {
            search: search.unwrap_or_else(|error| panic!("{error}")),
            batch: Batch::new(&*evaluator),
            evaluator,
        }
    }

    fn run(&mut self, game: &Game, simulations: u64, seed: Seed) {
        self.search.start(game, simulations, seed);
        run_in(&mut self.search, &mut self.batch, &mut *self.evaluator, &StopCondition::default());
    }
}

/// Evaluates a network on the current thread pool. The same seed draws the same positions. `None`
/// when it was cancelled.
pub fn evaluate(
    config: &SelfPlayConfig,
    evaluation: &TablebaseEvaluationConfig,
    oracle: &Oracle,
    network: &EndgameNetwork,
    seed: Seed,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Option<TablebaseReport> {
    let mut report =
        TablebaseReport { positions: evaluation.positions, ..TablebaseReport::default() };
    for defender in Defender::ALL {
        let search = || PlainSearch::new(config, network);
        let games: Option<Vec<PlayedGame>> = (0..evaluation.positions)
            .into_par_iter()
            .map_init(search, |search, number| {
                play(search, evaluation, oracle, defender, seed.index(number), cancel)
            })
            .collect();
        let games = games?;
        let mates = share(&games, |game| game.is_mate);
        report.all_simulations += games.iter().map(|game| game.stats.count).sum::<u64>();
        match defender {
            Defender::Perfect => {
                report.mate_share = mates;
                report.add_perfect_defence(&games);
            }
            Defender::Random => report.random_mate_share = mates,
            Defender::Heuristic => report.heuristic_mate_share = mates,
        }
    }
    report.value_error = value_error(config, evaluation, oracle, network, seed);
    Some(report)
}

impl TablebaseReport {
    /// Adds the statistics of games against the perfect defender.
    fn add_perfect_defence(&mut self, games: &[PlayedGame]) {
        let mut stats = SimulationStats::default();
        games.iter().for_each(|game| stats.add(&game.stats));
        let sum = |count: &dyn Fn(&PlayedGame) -> f64| games.iter().map(count).sum::<f64>();
        let moves = sum(&|game| f64::from(game.moves)).max(1.0);
        self.regret_plies = sum(&|game| f64::from(game.regret)) / moves;
        self.optimal_share = sum(&|game| f64::from(game.optimal)) / moves;
        self.thrown_share = share(games, |game| game.is_thrown);
        let mates: Vec<&PlayedGame> = games.iter().filter(|game| game.is_mate).collect();
        let mean = |count: &dyn Fn(&PlayedGame) -> f64| {
            mates.iter().map(|game| count(game)).sum::<f64>() / mates.len().max(1) as f64
        };
        self.mate_moves = mean(&|game| f64::from(game.moves));
        self.best_moves = mean(&|game| f64::from(game.distance.div_ceil(2)));
        let count = stats.count.max(1) as f64;
        self.depth = stats.plies as f64 / count;
        self.deepest = stats.deepest;
        self.terminal_share = stats.known as f64 / count;
        self.backup = stats.magnitude / count;
        self.node_bytes = sum(&|game| game.bytes as f64) / sum(&|game| game.nodes as f64).max(1.0);
        self.simulations = stats.count;
    }

    pub fn curves(&self) -> Curves {
        [
            ("mate_share.perfect", self.mate_share),
            ("mate_share.random", self.random_mate_share),
            ("mate_share.heuristic", self.heuristic_mate_share),
            ("optimal_share", self.optimal_share),
            ("thrown_share", self.thrown_share),
            ("regret_plies", self.regret_plies),
            ("value_error", self.value_error),
            ("search_depth.mean", self.depth),
            ("terminal_share", self.terminal_share),
            ("backup_size", self.backup),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

fn share(games: &[PlayedGame], counts: impl Fn(&PlayedGame) -> bool) -> f64 {
    games.iter().filter(|game| counts(game)).count() as f64 / games.len().max(1) as f64
}

/// Plays a won position to its end; `None` when it was cancelled.
fn play(
    search: &mut PlainSearch,
    evaluation: &TablebaseEvaluationConfig,
    oracle: &Oracle,
    defender: Defender,
    seed: Seed,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Option<PlayedGame> {
    let mut game = oracle.draw_won(&mut seed.derive("position").rng());
    let mut rng = seed.derive("defence").rng();
    search.search.clear();
    search.batch.take_stats();
    let mut played = PlayedGame::default();
    let mut verdict = oracle.verdict(game.position());
    played.distance = verdict.plies().unwrap_or(0);
    loop {
        let legal = game.legal_moves();
        if let Some(outcome) = game.outcome_given(&legal) {
            played.is_mate = outcome.winner == Some(Color::White);
            break;
        }
        if game.turn() == Color::Black {
            game.play_unchecked(oracle.defend(defender, game.position(), &legal, &mut rng));
            verdict = oracle.verdict(game.position());
            continue;
        }
        if played.moves >= evaluation.moves {
            break;
        }
        if cancel() {
            return None;
        }
        search.run(&game, evaluation.simulations, seed.index(game.ply() as u64));
        played.nodes += search.search.nodes();
        played.bytes += search.search.tree_bytes();
        let decision = search.search.decision(&legal).expect("an unfinished game has a move");
        game.play_unchecked(decision.best);
        played.moves += 1;
        let after = oracle.verdict(game.position()).a_move_before();
        match (verdict, after) {
            (Verdict::Win(before), Verdict::Win(after)) => {
                played.optimal += u32::from(after == before);
                played.regret += u32::from(after.saturating_sub(before));
            }
            (Verdict::Win(_), _) => {
                played.is_thrown = true;
                break;
            }
            _ => {}
        }
    }
    played.stats = search.batch.take_stats();
    Some(played)
}

/// The mean absolute difference between values of the network and of the tablebase, over random
/// positions of the ending.
fn value_error(
    config: &SelfPlayConfig,
    evaluation: &TablebaseEvaluationConfig,
    oracle: &Oracle,
    network: &EndgameNetwork,
    seed: Seed,
) -> f64 {
    let mut rng = seed.derive("values").rng();
    let mut evaluator = network.evaluator();
    let count = 10 * evaluation.positions;
    let errors = (0..count).map(|_| {
        let game = oracle.draw(&mut rng);
        let exact = Oracle::value(oracle.verdict(game.position()), config.discount);
        (f64::from(evaluator.value(&game)) - exact).abs()
    });
    errors.sum::<f64>() / count as f64
}
