//! The `zero` learner's part of the benchmark, with the network that ships with selfmate.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use selfmate_chess::Seed;
use selfmate_learn::players::shipped_weights;
use selfmate_learn::zero::{Generation, SelfPlayConfig, SelfPlayer};
use selfmate_nn::sparse::{Network, Trainer, TrainerConfig, bench};
use selfmate_search::mcts::{Batch, Limit, Search, SearchParams, run_in};
use selfmate_search::{Evaluation, Evaluator, Leaf, Need};

use super::{Part, per_second, sample_games};

/// Values of positions.
pub fn values(time: Duration) -> Part {
    evaluations("network, value", Need::Value, time)
}

/// Values and priors of positions.
pub fn policies(time: Duration) -> Part {
    evaluations("network, value and policy", Need::Both, time)
}

fn evaluations(label: &'static str, need: Need, time: Duration) -> Part {
    let leaves = bench::leaves(4000, Seed::new(1), need);
    let per_second =
        bench::evaluations(&mut Network::new(&shipped_weights()), &leaves, time) as u64;
    Part { per_second, ..super::per_second(label, 0, time, "evaluations") }
}

/// Fresh trees of 800 simulations.
pub fn trees(time: Duration) -> Part {
    let mut network = Network::new(&shipped_weights());
    let (simulations, elapsed) = grow(&mut network, time);
    let part = per_second("trees of 800 with the network", simulations, elapsed, "simulations");
    // Looking at the clock takes time too, so this is not part of the measurement.
    let mut timed = Timed { network, time: Duration::ZERO };
    let (_, elapsed) = grow(&mut timed, time / 4);
    Part { network_share: Some(timed.time.as_secs_f64() / elapsed.as_secs_f64()), ..part }
}

fn grow(evaluator: &mut dyn Evaluator, time: Duration) -> (u64, Duration) {
    let mut search = Search::new(SearchParams { memory_mb: 16, ..SearchParams::default() });
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
        run_in(&mut search, &mut batch, evaluator, &Limit::default());
        simulations += search.simulations();
    }
    (simulations, started.elapsed())
}

/// Games of self-play as they are in the middle of a run.
pub fn selfplay(time: Duration) -> Part {
    let config = SelfPlayConfig::default();
    let mut player = SelfPlayer::new(&config, Network::new(&shipped_weights()));
    let generation = Generation { config, seed: Seed::new(1), sims: 80, network: 0 };
    let stop = AtomicBool::new(false);
    let (mut simulations, started) = (0, Instant::now());
    for number in 0.. {
        if started.elapsed() >= time {
            break;
        }
        let played = player.play(&generation, number, &stop);
        simulations += played.map_or(0, |played| played.simulations);
    }
    per_second("self-play, 80 a move, one core", simulations, started.elapsed(), "simulations")
}

/// Positions learned from.
pub fn training(time: Duration) -> Part {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let samples = bench::samples(16 * 4096, Seed::new(1));
    let trainer = Trainer::new(shipped_weights(), TrainerConfig::default(), threads);
    let speed = trainer.and_then(|mut trainer| bench::training(&mut trainer, &samples, 4096, time));
    let per_second = speed.expect("random samples can be learned from") as u64;
    Part { per_second, ..super::per_second("training, all cores", 0, time, "positions") }
}

/// A network that knows how long it took.
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
