//! Benchmarks of the searches.

use std::time::{Duration, Instant};

use selfmate_chess::{Game, Seed};
use selfmate_search::Evaluator;
use selfmate_search::evaluator::{Material, Playout, Rollout, Scripted, Uniform};
use selfmate_search::mcts::{Search, SearchParams, StopCondition, run, run_parallel};

use super::{Part, ROOM, per_second};

/// A large tree with a uniform evaluator: the speed of the tree itself, with UCT.
pub fn mcts_uniform(_: Duration) -> Part {
    large_tree("tree alone, 1M simulations, UCT", 1)
}

/// The same tree with one thread per core.
pub fn mcts_uniform_threads(_: Duration) -> Part {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    large_tree("the same, all cores in one tree", threads)
}

fn large_tree(label: &'static str, threads: usize) -> Part {
    const SIMULATIONS: u64 = 1_000_000;
    let mut search =
        Search::new(SearchParams { memory_mb: 1024, ..SearchParams::uct() }).expect(ROOM);
    let mut evaluators: Vec<Box<dyn Evaluator>> =
        (0..threads).map(|_| -> Box<dyn Evaluator> { Box::new(Uniform) }).collect();
    let started = Instant::now();
    search.start(&Game::new(), SIMULATIONS, Seed::new(1));
    run_parallel(&mut search, &mut evaluators, &StopCondition::default());
    let bytes = search.memory_bytes() as f64 / SIMULATIONS as f64;
    let part = per_second(label, search.simulations(), started.elapsed(), "simulations");
    Part { bytes_per_simulation: Some(bytes), ..part }
}

/// PUCT with a cheap evaluator.
pub fn mcts_material(time: Duration) -> Part {
    timed("PUCT counting material", time, SearchParams::default(), &mut Material)
}

/// New trees of 800 simulations, as in self-play.
pub fn mcts_800(time: Duration) -> Part {
    let mut search =
        Search::new(SearchParams { memory_mb: 16, ..SearchParams::default() }).expect(ROOM);
    let mut simulations = 0;
    let started = Instant::now();
    while started.elapsed() < time {
        search.clear();
        search.start(&Game::new(), 800, Seed::new(1));
        run(&mut search, &mut Uniform, &StopCondition::default());
        simulations += search.simulations();
    }
    per_second("tree alone, 800 simulations, PUCT", simulations, started.elapsed(), "simulations")
}

/// Playouts of 40 plies, scored by material.
pub fn rollout(time: Duration) -> Part {
    let mut evaluator = Rollout::new(Playout::Material { plies: 40 }, Seed::new(1));
    timed("UCT with capped playouts", time, SearchParams::uct(), &mut evaluator)
}

/// Random playouts to the end of the game.
pub fn rollout_full(time: Duration) -> Part {
    let mut evaluator = Rollout::new(Playout::Full, Seed::new(1));
    timed("UCT with playouts to the end", time, SearchParams::uct(), &mut evaluator)
}

fn timed(
    label: &'static str,
    time: Duration,
    params: SearchParams,
    evaluator: &mut dyn Evaluator,
) -> Part {
    let mut search = Search::new(params).expect(ROOM);
    let started = Instant::now();
    search.start(&Game::new(), u64::MAX, Seed::new(1));
    run(
        &mut search,
        evaluator,
        &StopCondition { deadline: Some(started + time), ..StopCondition::default() },
    );
    per_second(label, search.simulations(), started.elapsed(), "simulations")
}

/// Adds small trees of every root rule to the signature.
pub fn fingerprint(add: &mut dyn FnMut(u64)) {
    let rules = [
        SearchParams::default(),
        SearchParams::alphazero(),
        SearchParams::gumbel(),
        SearchParams::uct(),
    ];
    for params in rules {
        let mut search = Search::new(SearchParams { memory_mb: 16, ..params }).expect(ROOM);
        search.start(&Game::new(), 2_000, Seed::new(1));
        run(&mut search, &mut Scripted::new(Seed::new(1)), &StopCondition::default());
        let result = search.result();
        for (m, target) in result.moves.iter().zip(&result.policy_target) {
            add(u64::from(m.visits));
            add(u64::from(target.to_bits()));
        }
        add(u64::from(result.wdl.value().to_bits()));
    }
}
