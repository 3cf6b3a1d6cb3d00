//! PositionRecord by the truth: does the network with its search mate from won positions, how much longer
//! than necessary does it take, and how far are its values from the table's.

use std::sync::Arc;

use rayon::prelude::*;
use selfmate_chess::tablebase::Verdict;
use selfmate_chess::{Color, Seed};
use selfmate_nn::mlp::Network;
use selfmate_search::mcts::SimulationStats;
use serde::{Deserialize, Serialize};

use super::config::EndgameConfig;
use super::lab::{Defender, Lab};
use super::thinker::{Manner, NetworkEvaluator, Priors, Thinker};

/// When a learner is examined, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExamConfig {
    /// Rounds between exams; 0 for none.
    pub every_rounds: u64,
    /// Won positions to play out against each defender, and positions to compare values of.
    pub positions: u64,
    /// Simulations for a move.
    pub simulations: u64,
    /// Moves of the winning side until it must have mated.
    pub moves: u32,
}

impl Default for ExamConfig {
    fn default() -> ExamConfig {
        ExamConfig { every_rounds: 20, positions: 100, simulations: 200, moves: 50 }
    }
}

impl ExamConfig {
    /// True when an exam follows this round.
    pub fn is_due(&self, round: u64) -> bool {
        self.every_rounds > 0 && (round + 1).is_multiple_of(self.every_rounds)
    }
}

/// How it went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExamReport {
    /// Won positions played out against each defender.
    pub positions: u64,
    /// The share of them that ended in mate in time, against the longest resistance.
    pub mate_share: f64,
    /// The same against random moves.
    pub random_mate_share: f64,
    /// The same against a defender with a rule of thumb.
    pub heuristic_mate_share: f64,
    /// Plies that a move of the winning side loses on average, against the longest resistance.
    pub regret_plies: f64,
    /// The share of such moves that lose none.
    pub optimal_share: f64,
    /// The share of such games in which a win was thrown away.
    pub thrown_share: f64,
    /// Moves that a mate took on average, against the longest resistance.
    pub mate_moves: f64,
    /// Moves that it takes with best play, on average over the same games.
    pub best_moves: f64,
    /// The mean distance of the network's values from the truth, over all of the ending.
    pub value_error: f64,
    /// Plies from the root to where a simulation ended, on average.
    pub depth: f64,
    /// The longest way of any simulation.
    pub deepest: u32,
    /// The share of simulations that ended where the result is certain.
    pub terminal_share: f64,
    /// The mean size of what simulations carried back.
    pub backup: f64,
    /// Bytes of the tree for each of its nodes.
    pub node_bytes: f64,
    /// Simulations of the searches against the longest resistance.
    pub simulations: u64,
    /// Simulations of all searches.
    pub all_simulations: u64,
}

/// One game played out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Game {
    is_mate: bool,
    is_thrown: bool,
    /// Moves of the winning side while it was winning, how many of them were best, and what the
    /// others lost.
    moves: u32,
    optimal: u32,
    regret: u32,
    /// The distance of the first position.
    distance: u8,
    walks: SimulationStats,
    bytes: usize,
    nodes: usize,
}

/// Examines a network on a pool's threads. The same seed asks the same questions. `None` when it was
/// told to halt before the end.
pub fn examine(
    config: &EndgameConfig,
    exam: &ExamConfig,
    lab: &Lab,
    network: &Arc<Network>,
    seed: Seed,
    halt: &(dyn Fn() -> bool + Sync),
) -> Option<ExamReport> {
    let mut report = ExamReport { positions: exam.positions, ..ExamReport::default() };
    for defender in Defender::ALL {
        let thinker =
            || Thinker::new(&config.search, Manner::Exploit, config.discount, Arc::clone(network));
        let games: Option<Vec<Game>> = (0..exam.positions)
            .into_par_iter()
            .map_init(thinker, |thinker, number| {
                play(thinker, exam, lab, defender, seed.index(number), halt)
            })
            .collect();
        let games = games?;
        let mates = share(&games, |game| game.is_mate);
        report.all_simulations += games.iter().map(|game| game.walks.count).sum::<u64>();
        match defender {
            Defender::Perfect => {
                report.mate_share = mates;
                report.judge(&games);
            }
            Defender::Random => report.random_mate_share = mates,
            Defender::Heuristic => report.heuristic_mate_share = mates,
        }
    }
    report.value_error = value_error(config, exam, lab, network, seed);
    Some(report)
}

impl ExamReport {
    /// Adds up games against the longest resistance.
    fn judge(&mut self, games: &[Game]) {
        let mut walks = SimulationStats::default();
        games.iter().for_each(|game| walks.add(&game.walks));
        let sum = |count: &dyn Fn(&Game) -> f64| games.iter().map(count).sum::<f64>();
        let moves = sum(&|game| f64::from(game.moves)).max(1.0);
        self.regret_plies = sum(&|game| f64::from(game.regret)) / moves;
        self.optimal_share = sum(&|game| f64::from(game.optimal)) / moves;
        self.thrown_share = share(games, |game| game.is_thrown);
        let mates: Vec<&Game> = games.iter().filter(|game| game.is_mate).collect();
        let mean = |count: &dyn Fn(&Game) -> f64| {
            mates.iter().map(|game| count(game)).sum::<f64>() / mates.len().max(1) as f64
        };
        self.mate_moves = mean(&|game| f64::from(game.moves));
        self.best_moves = mean(&|game| f64::from(game.distance.div_ceil(2)));
        let count = walks.count.max(1) as f64;
        self.depth = walks.plies as f64 / count;
        self.deepest = walks.deepest;
        self.terminal_share = walks.known as f64 / count;
        self.backup = walks.magnitude / count;
        self.node_bytes = sum(&|game| game.bytes as f64) / sum(&|game| game.nodes as f64).max(1.0);
        self.simulations = walks.count;
    }

    /// What it says as named numbers, for curves.
    pub fn curves(&self) -> [(&'static str, f64); 10] {
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
    }
}

fn share(games: &[Game], counts: impl Fn(&Game) -> bool) -> f64 {
    games.iter().filter(|game| counts(game)).count() as f64 / games.len().max(1) as f64
}

/// Plays a won position out; `None` when told to halt.
fn play(
    thinker: &mut Thinker,
    exam: &ExamConfig,
    lab: &Lab,
    defender: Defender,
    seed: Seed,
    halt: &(dyn Fn() -> bool + Sync),
) -> Option<Game> {
    let mut game = lab.draw_won(&mut seed.derive("position").rng());
    let mut rng = seed.derive("defence").rng();
    thinker.search.clear();
    thinker.take_stats();
    let mut played = Game::default();
    let mut verdict = lab.verdict(game.position());
    played.distance = verdict.plies().unwrap_or(0);
    loop {
        let legal = game.legal_moves();
        if let Some(outcome) = game.outcome_given(&legal) {
            played.is_mate = outcome.winner == Some(Color::White);
            break;
        }
        if game.turn() == Color::Black {
            game.play_unchecked(lab.defend(defender, game.position(), &legal, &mut rng));
            verdict = lab.verdict(game.position());
            continue;
        }
        if played.moves >= exam.moves {
            break;
        }
        if halt() {
            return None;
        }
        thinker.think(&game, exam.simulations, seed.index(game.ply() as u64));
        played.nodes += thinker.search.nodes();
        played.bytes += thinker.search.tree_bytes();
        let decision = thinker.search.decision(&legal).expect("a game that goes on has a move");
        game.play_unchecked(decision.best);
        played.moves += 1;
        let after = lab.verdict(game.position()).a_move_before();
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
    played.walks = thinker.take_stats();
    Some(played)
}

/// The mean distance of values from the truth, over positions drawn from all of the ending.
fn value_error(
    config: &EndgameConfig,
    exam: &ExamConfig,
    lab: &Lab,
    network: &Arc<Network>,
    seed: Seed,
) -> f64 {
    let mut rng = seed.derive("values").rng();
    let mut evaluator = NetworkEvaluator::new(Arc::clone(network), Priors::Uniform);
    let count = 10 * exam.positions;
    let errors = (0..count).map(|_| {
        let game = lab.draw(&mut rng);
        let truth = Lab::value(lab.verdict(game.position()), config.discount);
        (f64::from(evaluator.value(&game)) - truth).abs()
    });
    errors.sum::<f64>() / count as f64
}
