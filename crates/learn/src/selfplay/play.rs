//! A generation of games on all threads, kept as they end.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use selfmate_run::{GameRecord, RunError};

use super::game::{Generation, SelfPlayer};
use super::student::Evaluators;
use crate::desk::Desk;
use crate::learner::LearnError;
use crate::watch::Status;

/// Who plays, and until when.
pub struct Hands<'a> {
    /// Games at the same time.
    pub threads: usize,
    /// Ends the games when set.
    pub stop: &'a AtomicBool,
    /// Ends them then.
    pub deadline: Option<Instant>,
    /// Where the run stood before.
    pub status: Status,
}

/// A generation, or what there was time for.
pub struct PlayedGeneration {
    /// All of its games as they are stored; `None` when it was cut short. Those that ended are
    /// kept on disk.
    pub games: Option<Vec<GameRecord>>,
    /// Simulations of the games played now.
    pub simulations: u64,
}

/// How often a watcher hears of the games.
const TICK: Duration = Duration::from_millis(100);

/// Plays the games with these numbers, but for those that are on disk already.
pub fn play(
    desk: &mut Desk<'_>,
    index: u64,
    generation: &Generation,
    numbers: Range<u64>,
    evaluators: &Evaluators,
    hands: &Hands<'_>,
) -> Result<PlayedGeneration, LearnError> {
    let Desk { run, watch, .. } = desk;
    let is_ours = |games: &[GameRecord]| {
        games.iter().map(|game| game.number).eq(numbers.clone())
            && games.iter().all(|game| game.network == generation.network)
    };
    if run.chunks()?.contains(&index) {
        let what = match run.read_chunk(index) {
            Ok(games) if is_ours(&games) => {
                return Ok(PlayedGeneration { games: Some(games), simulations: 0 });
            }
            Ok(_) => format!("the stored games of generation {index} are not those to be played"),
            Err(RunError::Damaged(damage)) => damage.to_string(),
            Err(error) => return Err(error.into()),
        };
        watch.note(&format!("{what}; set aside, playing them again"));
        run.set_aside(index)?;
    }

    let (mut journal, mut games) = run.journal(index)?;
    games.retain(|game| numbers.contains(&game.number) && game.network == generation.network);
    let found: HashSet<u64> = games.iter().map(|game| game.number).collect();
    let missing: Vec<u64> = numbers.clone().filter(|number| !found.contains(number)).collect();

    let next = AtomicUsize::new(0);
    let cut = AtomicBool::new(false);
    let (sender, receiver) = channel();
    let mut simulations = 0;
    let started = Instant::now();
    let mut told = started;
    std::thread::scope(|scope| -> Result<(), LearnError> {
        for _ in 0..hands.threads.max(1) {
            let (sender, next, missing, cut) = (sender.clone(), &next, &missing, &cut);
            scope.spawn(move || {
                let mut player = SelfPlayer::new(&generation.config, evaluators());
                let next = || missing.get(next.fetch_add(1, Relaxed)).copied();
                // Nobody listens any more once the games are cut short.
                player.play(generation, next, |played| _ = sender.send(played), cut);
            });
        }
        drop(sender);
        let mut failure = None;
        loop {
            match receiver.recv_timeout(TICK) {
                Ok(played) => {
                    simulations += played.simulations;
                    watch.game(&played.record);
                    // The threads are told to stop, but games that ended are still taken.
                    if let Err(error) = journal.append(&played.record) {
                        failure.get_or_insert(error);
                        cut.store(true, Relaxed);
                    }
                    games.push(played.record);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let is_late = hands.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if is_late || hands.stop.load(Relaxed) {
                cut.store(true, Relaxed);
            }
            if told.elapsed() >= TICK {
                told = Instant::now();
                let positions: usize = games.iter().map(|game| game.positions.len()).sum();
                watch.status(&Status {
                    done: games.len() as f64 / numbers.clone().count().max(1) as f64,
                    elapsed_s: hands.status.elapsed_s + started.elapsed().as_secs_f64(),
                    games: hands.status.games + games.len() as u64,
                    positions: hands.status.positions + positions as u64,
                    simulations: hands.status.simulations + simulations,
                    ..hands.status
                });
            }
        }
        failure.map_or(Ok(()), |error| Err(error.into()))
    })?;

    if games.len() < numbers.clone().count() {
        return Ok(PlayedGeneration { games: None, simulations });
    }
    journal.seal(run, &games)?;
    // What is learned is what is stored, so that a resumed run learns the same.
    Ok(PlayedGeneration { games: Some(run.read_chunk(index)?), simulations })
}
