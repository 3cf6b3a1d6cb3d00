//! Benchmarks of the `zero` learner, with the network that ships with selfmate.

use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use selfmate_chess::{Game, Move, Seed};
use selfmate_methods::players::shipped_weights;
use selfmate_nn::sparse::{Network, Trainer, TrainerConfig, bench};
use selfmate_search::mcts::{Batch, Search, SearchParams, StopCondition, run_in};
use selfmate_search::{Evaluation, Evaluator, Leaf, Need};
use selfmate_selfplay::{Generation, SelfPlayConfig, SelfPlayer};

use super::{Part, ROOM, per_second, sample_games};

pub fn values(time: Duration) -> Part {
    evaluations("network, value", Need::Value, time)
}

pub fn policies(time: Duration) -> Part {
    evaluations("network, value and policy", Need::Both, time)
}

fn evaluations(label: &'static str, need: Need, time: Duration) -> Part {
    let leaves = bench::leaves(4000, Seed::new(1), need);
    let per_second =
        bench::evaluations(&mut Network::new(&shipped_weights()), &leaves, time) as u64;
    Part { per_second, ..super::per_second(label, 0, time, "evaluations") }
}

/// New trees of 800 simulations.
pub fn trees(time: Duration) -> Part {
    let mut network = Network::new(&shipped_weights());
    let (simulations, elapsed) = grow(&mut network, time);
    let part = per_second("trees of 800 with the network", simulations, elapsed, "simulations");
    // Measuring takes time too, so the shares are measured in separate searches and only the times
    // per simulation are used.
    let mut timed = Timed { network: network.clone(), time: Duration::ZERO };
    let (timed_simulations, _) = grow(&mut timed, time / 4);
    let mut recorder = PathRecorder { network, root_ply: 0, paths: Vec::new() };
    let (seen, _) = grow(&mut recorder, time / 20);
    let rules = recorder.replay();
    let whole = elapsed.as_secs_f64() / simulations as f64;
    let network = timed.time.as_secs_f64() / timed_simulations as f64 / whole;
    let rules = rules.as_secs_f64() / seen as f64 / whole;
    // Rules: playing moves, detecting the end of the game, generating legal moves. Tree: everything
    // else, such as selection, expansion and backup.
    let shares = [("network", network), ("rules", rules), ("tree", 1.0 - network - rules)];
    Part { shares: Some(shares.into()), ..part }
}

fn grow(evaluator: &mut dyn Evaluator, time: Duration) -> (u64, Duration) {
    let mut search =
        Search::new(SearchParams { memory_mb: 16, ..SearchParams::default() }).expect(ROOM);
    let mut batch = Batch::new(evaluator);
    let games = sample_games();
    let mut simulations = 0;
    let started = Instant::now();
    for game in games.iter().filter(|game| game.outcome().is_none()).cycle() {
        if started.elapsed() >= time {
            break;
        }
        search.clear();
        search.start(game, 800, Seed::new(1));
        run_in(&mut search, &mut batch, evaluator, &StopCondition::default());
        simulations += search.simulations();
    }
    (simulations, started.elapsed())
}

/// Self-play games as in the middle of a run.
pub fn selfplay(time: Duration) -> Part {
    let config = SelfPlayConfig::default();
    let network = Box::new(Network::new(&shipped_weights()));
    let mut player = SelfPlayer::new(&config, network);
    let generation = Generation { config, seed: Seed::new(1), simulations: 80, network: 0 };
    let stop = AtomicBool::new(false);
    let (mut simulations, started) = (0, Instant::now());
    let mut numbers = 0..;
    let next = || numbers.next().filter(|_| started.elapsed() < time);
    player.play(&generation, next, |played| simulations += played.simulations, &stop);
    per_second("self-play, 80 per move, one core", simulations, started.elapsed(), "simulations")
}

pub fn training(time: Duration) -> Part {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let samples = bench::samples(16 * 4096, Seed::new(1));
    let trainer = Trainer::new(shipped_weights(), TrainerConfig::default(), threads);
    let speed = trainer.and_then(|mut trainer| bench::training(&mut trainer, &samples, 4096, time));
    let per_second = speed.expect("random samples are valid training data") as u64;
    Part { per_second, ..super::per_second("training, all cores", 0, time, "positions") }
}

/// A network that measures its own time.
struct Timed {
    network: Network,
    time: Duration,
}

impl Evaluator for Timed {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        let started = Instant::now();
        self.network.evaluate(leaves, evaluations);
        self.time += started.elapsed();
    }
}

/// A network that records the paths to its leaves.
struct PathRecorder {
    network: Network,
    root_ply: usize,
    /// The root, the moves from there, and what was requested.
    paths: Vec<(Game, Vec<Move>, Need)>,
}

impl PathRecorder {
    /// The time that the rules take on these paths: playing moves, counting repetitions, and
    /// generating legal moves where needed.
    fn replay(self) -> Duration {
        let mut paths = self.paths;
        let started = Instant::now();
        for (game, path, need) in &mut paths {
            for &m in &*path {
                game.play_unchecked(m);
            }
            black_box(game.repetitions());
            if need.policy() {
                black_box(game.legal_moves());
            }
        }
        started.elapsed()
    }
}

impl Evaluator for PathRecorder {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        self.network.evaluate(leaves, evaluations);
        for leaf in leaves {
            // Only the root needs both at once.
            if leaf.need == Need::Both {
                self.root_ply = leaf.game.ply();
            }
            let mut root = leaf.game.clone();
            root.rewind(self.root_ply);
            self.paths.push((root, leaf.game.moves().skip(self.root_ply).collect(), leaf.need));
        }
    }

    fn history(&self) -> usize {
        usize::MAX
    }
}
