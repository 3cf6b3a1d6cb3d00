//! A generation of games, kept as they end, whoever plays them.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use selfmate_run::{GameRecord, Journal, LiveGame, Run, RunError};

use super::game::Played;
use super::source::{Harvest, Source, Work};
use crate::desk::Desk;
use crate::learner::LearnError;
use crate::watch::{Status, Watch};

/// Until when to play.
pub struct Limits<'a> {
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

/// How often a watcher hears of the games, and a source looks whether it should go on.
pub const TICK: Duration = Duration::from_millis(100);
/// How often the games that are being played are shown.
const LOOK: Duration = Duration::from_millis(500);

/// Has the games of a generation played, but for those that are on disk already.
pub fn play(
    desk: &mut Desk<'_>,
    source: &mut dyn Source,
    mut work: Work<'_>,
    limits: &Limits<'_>,
) -> Result<PlayedGeneration, LearnError> {
    let Desk { run, watch, .. } = desk;
    let (index, network) = (work.index, work.generation.network);
    let wanted: HashSet<u64> = work.numbers.iter().copied().collect();
    let is_ours = |game: &GameRecord| wanted.contains(&game.number) && game.network == network;
    if run.chunks()?.contains(&index) {
        match run.read_chunk(index) {
            Ok(games) if games.iter().all(is_ours) && !games.is_empty() => {
                let mut good = games;
                good.retain(|game| !source.is_bad(game.number));
                if good.len() == wanted.len() {
                    return Ok(PlayedGeneration { games: Some(good), simulations: 0 });
                }
                let missing = wanted.len() - good.len();
                watch.note(&format!(
                    "generation {index}: {missing} games that were removed are played again"
                ));
                // The journal first: a kill in between leaves the chunk, and this begins anew.
                let (mut journal, _) = run.journal(index)?;
                journal.replace(&good)?;
                run.remove_chunk(index)?;
            }
            Ok(_) => {
                let what =
                    format!("the stored games of generation {index} are not those to be played");
                set_aside(run, &mut **watch, index, &what)?;
            }
            Err(RunError::Damaged(damage)) => {
                set_aside(run, &mut **watch, index, &damage.to_string())?;
            }
            Err(error) => return Err(error.into()),
        }
    }

    let (journal, mut games) = run.journal(index)?;
    games.retain(is_ours);
    let found: HashSet<u64> = games.iter().map(|game| game.number).collect();
    work.numbers.retain(|number| !found.contains(number));

    let mut tray = Tray::new(run, journal, games, wanted.len(), &mut **watch, limits);
    // Also when none is missing: a source may still have to look at what was found.
    let harvest = source.play(&work, &mut tray)?;
    let Tray { journal, games, simulations, .. } = tray;
    if games.len() < wanted.len() || harvest == Harvest::Unripe {
        return Ok(PlayedGeneration { games: None, simulations });
    }
    journal.seal(run, &games)?;
    // What is learned is what is stored, so that a resumed run learns the same.
    Ok(PlayedGeneration { games: Some(run.read_chunk(index)?), simulations })
}

/// Puts the stored games of a generation aside, to be played again.
fn set_aside(
    run: &mut Run,
    watch: &mut dyn Watch,
    index: u64,
    what: &str,
) -> Result<(), LearnError> {
    watch.note(&format!("{what}; set aside, playing them again"));
    run.set_aside(index)?;
    Ok(())
}

/// Where a source puts the games of a generation as they end.
pub struct Tray<'a> {
    run: &'a Run,
    journal: Journal,
    games: Vec<GameRecord>,
    /// Games of the whole generation.
    wanted: usize,
    simulations: u64,
    positions: u64,
    watch: &'a mut dyn Watch,
    limits: &'a Limits<'a>,
    started: Instant,
    told: Instant,
    shown: Option<Instant>,
}

impl<'a> Tray<'a> {
    fn new(
        run: &'a Run,
        journal: Journal,
        games: Vec<GameRecord>,
        wanted: usize,
        watch: &'a mut dyn Watch,
        limits: &'a Limits<'a>,
    ) -> Tray<'a> {
        let now = Instant::now();
        let positions = positions(&games);
        Tray {
            run,
            journal,
            games,
            wanted,
            simulations: 0,
            positions,
            watch,
            limits,
            started: now,
            told: now,
            shown: None,
        }
    }

    /// The games so far, those found on disk included.
    pub fn games(&self) -> &[GameRecord] {
        &self.games
    }

    /// Keeps a game; a kill after this returns does not lose it. The caller sees to it that no
    /// number comes twice.
    pub fn add(&mut self, played: Played) -> Result<(), RunError> {
        self.run.check_present()?;
        self.simulations += played.simulations;
        self.positions += played.record.positions.len() as u64;
        self.watch.game(&played.record);
        self.journal.append(&played.record)?;
        self.games.push(played.record);
        Ok(())
    }

    /// Waits until the disk has all games.
    pub fn sync(&mut self) -> Result<(), RunError> {
        self.journal.sync()
    }

    /// Forgets games that turned out not to be what they should be.
    pub fn take_back(&mut self, numbers: &BTreeSet<u64>) -> Result<(), RunError> {
        self.games.retain(|game| !numbers.contains(&game.number));
        self.positions = positions(&self.games);
        self.journal.replace(&self.games)
    }

    /// Shows games that are being played, now and then: `look` is asked only when it is time.
    pub fn show(&mut self, look: impl FnOnce() -> Vec<LiveGame>) {
        if self.shown.is_some_and(|shown| shown.elapsed() < LOOK) {
            return;
        }
        let games = look();
        if !games.is_empty() {
            self.shown = Some(Instant::now());
            // Nobody stops learning because it cannot be watched; the journal tells of a full
            // disk.
            let _ = self.run.show_live(&games);
        }
    }

    /// Says something worth knowing.
    pub fn note(&mut self, text: &str) {
        self.watch.note(text);
    }

    /// Tells how far it is; false when there is no more time to play. To be asked every [`TICK`].
    pub fn goes_on(&mut self) -> bool {
        if self.told.elapsed() >= TICK {
            self.told = Instant::now();
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
