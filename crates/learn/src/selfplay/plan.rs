//! How many games this machine can play in a given time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use selfmate_chess::Seed;

use super::config::Config;
use super::game::{Generation, Played, SelfPlayer};
use super::student::Student;
use crate::learner::{Hardware, LearnError};
use crate::watchdog::Watchdog;

/// What a run of an hour had of the speed of its first second: learning and rating take their
/// time (0.86), and the trees of a trained network are deeper (0.84).
const SPEED_SHARE: f64 = 0.72;

/// How long games that were begun in that second may take. What was searched until then counts.
const LONGEST: Duration = Duration::from_secs(10);

/// The games that fit into so many minutes on so many threads, from a second of self-play.
pub fn plan_games<S: Student>(
    config: &Config<S::Shape, S::Training>,
    minutes: f64,
    hardware: Hardware,
) -> Result<u64, LearnError> {
    let student = S::new(&config.network, &config.learning.trainer, Seed::new(1), hardware)?;
    let evaluators = student.evaluators()?;
    let sims = (config.selfplay.sims.from + config.selfplay.sims.to) / 2.0;
    let generation = Generation {
        config: config.selfplay.clone(),
        seed: Seed::new(1),
        sims: sims.round() as u64,
        network: 0,
    };
    generation.config.check_memory(hardware.threads)?;
    let (next, simulations) = (AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    // Speed is that of simulations, so games too long to wait for tell it as well.
    let watchdog = Watchdog::new(&Arc::default(), Some(started + LONGEST));
    let stop: &AtomicBool = watchdog.flag();
    std::thread::scope(|scope| {
        for _ in 0..hardware.threads.max(1) {
            scope.spawn(|| {
                let mut player = SelfPlayer::new(&generation.config, evaluators());
                let is_time = || started.elapsed() < Duration::from_secs(1);
                let next = || is_time().then(|| next.fetch_add(1, Relaxed));
                let done = |played: Played| _ = simulations.fetch_add(played.simulations, Relaxed);
                let cut = player.play(&generation, next, done, stop);
                simulations.fetch_add(cut, Relaxed);
            });
        }
    });
    let speed = simulations.into_inner() as f64 / started.elapsed().as_secs_f64();
    let games = minutes * 60.0 * SPEED_SHARE * speed / (sims * S::SEARCHES);
    let blind = config.selfplay.blind.games;
    Ok(blind + (games as u64).max(config.selfplay.generation_games))
}
