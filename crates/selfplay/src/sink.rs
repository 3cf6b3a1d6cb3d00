//! Where the games of a generation go as they end: into the run's journal.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use selfmate_run::{GameRecord, Journal, LiveGame, Run, RunError};

use crate::game::FinishedGame;
use crate::watch::{Status, Watch};

/// How long a generation may take, and where the run stood before it.
pub struct PlayLimits<'a> {
    pub stop: &'a AtomicBool,
    pub deadline: Option<Instant>,
    pub status: Status,
}

/// How often progress is reported, and how often a source checks whether to continue.
pub const TICK: Duration = Duration::from_millis(100);
/// How often the games under way are shown.
const LIVE_INTERVAL: Duration = Duration::from_millis(500);

/// Keeps the games of a generation.
pub struct GameSink<'a> {
    run: &'a Run,
    pub(crate) journal: Journal,
    pub(crate) games: Vec<GameRecord>,
    /// Games of the whole generation.
    wanted: usize,
    pub(crate) simulations: u64,
    positions: u64,
    watch: &'a mut dyn Watch,
    limits: &'a PlayLimits<'a>,
    started: Instant,
    last_status: Instant,
    last_live: Option<Instant>,
}

impl<'a> GameSink<'a> {
    pub(crate) fn new(
        run: &'a Run,
        journal: Journal,
        games: Vec<GameRecord>,
        wanted: usize,
        watch: &'a mut dyn Watch,
        limits: &'a PlayLimits<'a>,
    ) -> GameSink<'a> {
        let now = Instant::now();
        let positions = positions(&games);
        GameSink {
            run,
            journal,
            games,
            wanted,
            simulations: 0,
            positions,
            watch,
            limits,
            started: now,
            last_status: now,
            last_live: None,
        }
    }

    /// The games so far, including those found on disk.
    pub fn games(&self) -> &[GameRecord] {
        &self.games
    }

    /// Adds a game to the journal; after this returns, a kill does not lose it. The caller makes
    /// sure that numbers are unique.
    pub fn add(&mut self, game: FinishedGame) -> Result<(), RunError> {
        self.run.check_present()?;
        self.simulations += game.simulations;
        self.positions += game.record.positions.len() as u64;
        self.watch.game(&game.record);
        self.journal.append(&game.record)?;
        self.games.push(game.record);
        Ok(())
    }

    /// Waits until all games are on disk.
    pub fn sync(&mut self) -> Result<(), RunError> {
        self.journal.sync()
    }

    /// Removes games that turned out to be invalid.
    pub fn remove(&mut self, numbers: &BTreeSet<u64>) -> Result<(), RunError> {
        self.games.retain(|game| !numbers.contains(&game.number));
        self.positions = positions(&self.games);
        self.journal.replace(&self.games)
    }

    /// Shows games under way; `games` is called only when a new view is due.
    pub fn show(&mut self, games: impl FnOnce() -> Vec<LiveGame>) {
        if self.last_live.is_some_and(|last| last.elapsed() < LIVE_INTERVAL) {
            return;
        }
        let games = games();
        if !games.is_empty() {
            self.last_live = Some(Instant::now());
            // Training continues if games cannot be shown; the journal reports a full disk.
            let _ = self.run.show_live(&games);
        }
    }

    pub fn note(&mut self, text: &str) {
        self.watch.note(text);
    }

    /// Reports progress; false when there is no more time to play. Call it every [`TICK`].
    pub fn should_continue(&mut self) -> bool {
        if self.last_status.elapsed() >= TICK {
            self.last_status = Instant::now();
            let before = self.limits.status;
            self.watch.status(&Status {
                done: self.games.len() as f64 / self.wanted.max(1) as f64,
                elapsed_s: before.elapsed_s + self.started.elapsed().as_secs_f64(),
                games: before.games + self.games.len() as u64,
                positions: before.positions + self.positions,
                simulations: before.simulations + self.simulations,
                ..before
            });
        }
        let is_late = self.limits.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        !is_late && !self.limits.stop.load(Relaxed)
    }
}

fn positions(games: &[GameRecord]) -> u64 {
    games.iter().map(|game| game.positions.len() as u64).sum()
}
