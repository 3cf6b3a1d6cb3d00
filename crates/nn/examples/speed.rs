//! Measures the speed of the sparse network: `cargo run --release -p selfmate-nn --example speed
//! [HIDDEN]`.

use std::time::{Duration, Instant};

use selfmate_chess::Seed;
use selfmate_nn::sparse::{
    Kernel, Network, NetworkStaticEvaluator, SparseConfig, Trainer, TrainerConfig, Weights, bench,
};
use selfmate_search::Need;
use selfmate_search::alphabeta::{self, AlphaBeta};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hidden = std::env::args().nth(1).map_or(Ok(256), |text| text.parse())?;
    let config = SparseConfig { hidden, ..SparseConfig::default() };
    let seed = Seed::new(1);
    let time = Duration::from_secs(1);
    let weights = Weights::random(config, seed)?;
    let leaves = bench::leaves(4000, seed, Need::Both);
    let moves: usize = leaves.iter().map(|leaf| leaf.legal.len()).sum();
    println!("hidden {hidden}, {:.1} moves per position", moves as f64 / leaves.len() as f64);
    let report = |name: &str, speed: f64| {
        println!("{name:28} {speed:>12.0}/s  {:>8.0} ns", 1e9 / speed);
    };
    report("features", bench::features(&leaves, time));
    report("attacks and move rows", bench::move_rows(&leaves, time));
    for kernel in Kernel::all() {
        let mut network = Network::with_kernel(&weights, kernel);
        for need in [Need::Value, Need::Policy, Need::Both] {
            let leaves = bench::leaves(4000, seed, need);
            let speed = bench::evaluations(&mut network, &leaves, time);
            report(&format!("{kernel:?} {need:?}"), speed);
        }
    }
    let mut search = AlphaBeta::new(alphabeta::Weights::default(), 16)?;
    for name in ["hand-written", "network"] {
        let start = Instant::now();
        let nodes = alphabeta::bench_search(&mut search);
        let speed = nodes as f64 / start.elapsed().as_secs_f64();
        report(&format!("alpha-beta, {name}"), speed);
        search.set_evaluator(Box::new(NetworkStaticEvaluator::new(Network::new(&weights))));
    }
    let samples = bench::samples(16 * 4096, seed);
    for threads in [1, 2] {
        let mut trainer = Trainer::new(weights.clone(), TrainerConfig::default(), threads)?;
        let speed = bench::training(&mut trainer, &samples, 4096, 2 * time)?;
        report(&format!("training, {threads} threads"), speed);
    }
    Ok(())
}
