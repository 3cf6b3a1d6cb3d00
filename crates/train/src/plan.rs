//! How many games this machine can play in a given time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use selfmate_chess::Seed;
use selfmate_selfplay::{FinishedGame, Generation, SelfPlayer, Watchdog};

use crate::config::SelfPlayLearnerConfig;
use crate::error::TrainingError;
use crate::model::SelfPlayModel;
use crate::options::Hardware;

/// The mean speed of an hour of training, as a share of the speed of its first second: learning and
/// rating take time (0.86), and the trees of a trained network are deeper (0.84).
const SPEED_SHARE: f64 = 0.72;

/// The share of the time that is left for self-play if a final phase follows.
const BEFORE_FINAL_PHASE: f64 = 0.93;

/// Games that were started in that second are dropped after this time; their simulations still
/// count.
const LONGEST: Duration = Duration::from_secs(10);

/// Estimates from one second of self-play how many games fit into this time.
pub fn plan_games<M: SelfPlayModel>(
    config: &SelfPlayLearnerConfig<M::Shape, M::Training, M::Evaluation>,
    minutes: f64,
    hardware: Hardware,
) -> Result<u64, TrainingError> {
    let model = M::new(&config.network, &config.learning.trainer, Seed::new(1), hardware)?;
    let evaluators = model.evaluators()?;
    let simulations = (config.selfplay.simulations.from + config.selfplay.simulations.to) / 2.0;
    let generation = Generation {
        config: config.selfplay.clone(),
        seed: Seed::new(1),
        simulations: simulations.round() as u64,
        network: 0,
    };
    generation.config.check_memory(hardware.threads)?;
    let (next, searched) = (AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    // Speed is measured in simulations, so there is no need to wait for long games.
    let watchdog = Watchdog::new(&Arc::default(), Some(started + LONGEST));
    let stop: &AtomicBool = watchdog.flag();
    std::thread::scope(|scope| {
        for _ in 0..hardware.threads.max(1) {
            scope.spawn(|| {
                let mut player = SelfPlayer::new(&generation.config, evaluators());
                let is_time = || started.elapsed() < Duration::from_secs(1);
                let next = || is_time().then(|| next.fetch_add(1, Relaxed));
                let done = |game: FinishedGame| _ = searched.fetch_add(game.simulations, Relaxed);
                let dropped = player.play(&generation, next, done, stop);
                searched.fetch_add(dropped, Relaxed);
            });
        }
    });
    let speed = searched.into_inner() as f64 / started.elapsed().as_secs_f64();
    let share = if config.learning.final_phase.is_planned() { BEFORE_FINAL_PHASE } else { 1.0 };
    let seconds = minutes * 60.0 * share;
    let games = seconds * SPEED_SHARE * speed / (simulations * M::SEARCHES_PER_GAME);
    Ok(config.selfplay.bootstrap.games + (games as u64).max(config.selfplay.generation_games))
}
