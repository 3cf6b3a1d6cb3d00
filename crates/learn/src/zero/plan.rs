//! How many games this machine can play in a given time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use selfmate_chess::Seed;
use selfmate_nn::sparse::{Network, TrainError, Weights};

use super::LearnError;
use super::config::ZeroConfig;
use super::selfplay::{Generation, SelfPlayer};

/// The share of a run's time that is self-play, and the searches in a game, as the hour run had
/// them.
const PLAY_SHARE: f64 = 0.8;
const SEARCHES: f64 = 85.0;

/// The games that fit into so many minutes on so many threads, from a second of self-play.
pub fn plan_games(config: &ZeroConfig, minutes: f64, threads: usize) -> Result<u64, LearnError> {
    let weights = Weights::random(config.network, Seed::new(1)).map_err(TrainError::from)?;
    let network = Network::new(&weights);
    let sims = (config.selfplay.sims.from + config.selfplay.sims.to) / 2.0;
    let generation = Generation {
        config: config.selfplay.clone(),
        seed: Seed::new(1),
        sims: sims.round() as u64,
        network: 0,
    };
    let (next, simulations) = (AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                let mut player = SelfPlayer::new(&generation.config, network.clone());
                while started.elapsed() < Duration::from_secs(1) {
                    let number = next.fetch_add(1, Relaxed);
                    if let Some(played) = player.play(&generation, number, &stop) {
                        simulations.fetch_add(played.simulations, Relaxed);
                    }
                }
            });
        }
    });
    let speed = simulations.into_inner() as f64 / started.elapsed().as_secs_f64();
    let games = minutes * 60.0 * PLAY_SHARE * speed / (sims * SEARCHES);
    Ok((games as u64).max(config.selfplay.generation_games))
}
