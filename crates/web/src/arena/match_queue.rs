//! The queue that plays matches one after another, and their files.

use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime};

use selfmate_arena::game::Side;
use selfmate_arena::{
    GameSettings, MatchConfig, MatchGame, MatchReport, MatchRun, Registry, run_match, stored_match,
};

use super::{MatchGameRow, MatchState, MatchView};
use crate::error::ApiError;
use crate::run::lock;

/// The folder beside the runs; a run cannot have this name.
const FOLDER: &str = ".matches";

/// The maximum age of the cached data of a running match.
const FRESH: Duration = Duration::from_secs(2);

pub(super) struct MatchQueue {
    folder: PathBuf,
    registry: Registry,
    cores: usize,
    pub(super) queue: Mutex<PendingMatches>,
    pub(super) changed: Condvar,
    /// Cached matches by id.
    known: Mutex<HashMap<String, CachedMatch>>,
}

/// A cached match.
struct CachedMatch {
    config: MatchConfig,
    /// Length and modification time of the file that was read.
    stamp: Option<(u64, SystemTime)>,
    looked: Instant,
    stored: Arc<Stored>,
}

/// The content of a match's file.
pub(super) struct Stored {
    pub(super) settings: GameSettings,
    pub(super) report: MatchReport,
    pub(super) rows: Vec<MatchGameRow>,
    pub(super) games: Vec<GameResult>,
}

/// The result of a game, with a fingerprint to find repetitions.
pub(super) struct GameResult {
    /// Equal for games with the same players, start and moves.
    pub(super) fingerprint: u64,
    pub(super) a_points: f64,
}

impl Stored {
    fn new(config: &MatchConfig, report: MatchReport, games: &[Option<MatchGame>]) -> Stored {
        let row = |game: &MatchGame| MatchGameRow {
            number: game.game,
            a_is_white: game.a_plays == Side::White,
            a_points: game.a_points(),
            reason: game.played.termination.describe(),
            plies: game.played.moves.len(),
            opening: game.played.opening.clone(),
        };
        let result = |game: &MatchGame| {
            let mut sides = [&report.a, &report.b];
            if game.a_plays == Side::Black {
                sides.reverse();
            }
            let mut hasher = DefaultHasher::new();
            (sides, &game.played.fen, &game.played.moves).hash(&mut hasher);
            GameResult { fingerprint: hasher.finish(), a_points: game.a_points() }
        };
        let all = || games.iter().flatten();
        let (rows, games) = (all().map(row).collect(), all().map(result).collect());
        Stored { settings: config.settings.clone(), report, rows, games }
    }
}

/// Matches that wait, play or have failed.
#[derive(Default)]
pub(super) struct PendingMatches {
    pub(super) waiting: Vec<String>,
    pub(super) playing: Option<Playing>,
    /// True while a thread plays the queue.
    pub(super) is_served: bool,
    /// Errors by id of the match.
    pub(super) failed: Vec<(String, String)>,
}

pub(super) struct Playing {
    pub(super) id: String,
    pub(super) stop: Arc<AtomicBool>,
}

impl MatchQueue {
    pub(super) fn new(runs: &Path, registry: Registry, cores: usize) -> MatchQueue {
        let (queue, known) = (Mutex::default(), Mutex::default());
        let (folder, changed) = (runs.join(FOLDER), Condvar::new());
        MatchQueue { folder, registry, cores, queue, changed, known }
    }

    /// Plays waiting matches until there are none.
    pub(super) fn serve(&self) {
        loop {
            let (id, stop) = {
                let mut queue = lock(&self.queue);
                queue.playing = None;
                self.changed.notify_all();
                if queue.waiting.is_empty() {
                    queue.is_served = false;
                    return;
                }
                let id = queue.waiting.remove(0);
                let stop = Arc::new(AtomicBool::new(false));
                queue.playing = Some(Playing { id: id.clone(), stop: Arc::clone(&stop) });
                (id, stop)
            };
            let played =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.play(&id, stop)));
            let error = match played {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "a player failed with a panic".to_owned(),
            };
            lock(&self.queue).failed.push((id, error));
        }
    }

    fn play(&self, id: &str, stop: Arc<AtomicBool>) -> Result<(), ApiError> {
        let config = self.config(id)?;
        let run = MatchRun {
            // Leaves one core for the page and trainings.
            concurrency: self.cores.saturating_sub(1).max(1),
            store: Some(self.store(id)),
            stop,
            ..MatchRun::default()
        };
        let played = run_match(&config, &run, &self.registry, &mut |_| {});
        played.map(|_| ()).map_err(|error| ApiError::Internal(self.without_path(&error)))
    }

    /// Stores a new match under the next number, which is also its seed unless one is given.
    pub(super) fn create(
        &self,
        config: &MatchConfig,
        seed: Option<u64>,
    ) -> Result<String, ApiError> {
        let fault = |error: std::io::Error| ApiError::Internal(format!("matches: {error}"));
        fs::create_dir_all(&self.folder).map_err(fault)?;
        let last = self.ids().last().and_then(|id| id.parse::<u64>().ok()).unwrap_or_default();
        for number in last + 1.. {
            let config = MatchConfig { seed: seed.unwrap_or(number), ..config.clone() };
            let text = serde_json::to_vec_pretty(&config)
                .map_err(|error| ApiError::Internal(format!("matches: {error}")))?;
            let id = format!("{number:06}");
            let path = self.folder.join(format!("{id}.json"));
            let file = fs::OpenOptions::new().write(true).create_new(true).open(&path);
            match file.and_then(|mut file| std::io::Write::write_all(&mut file, &text)) {
                Ok(()) => return Ok(id),
                // Another server with the same folder took this number.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(fault(error)),
            }
        }
        Err(ApiError::Internal("matches: out of numbers".into()))
    }

    pub(super) fn ids(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let id = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            let id = name.strip_suffix(".json")?;
            is_id(id).then(|| id.to_owned())
        };
        let mut ids: Vec<String> = entries.flatten().filter_map(id).collect();
        ids.sort_unstable();
        ids
    }

    pub(super) fn config(&self, id: &str) -> Result<MatchConfig, ApiError> {
        let absent = || ApiError::NotFound(format!("no match '{id}'"));
        if !is_id(id) {
            return Err(absent());
        }
        let bytes = fs::read(self.folder.join(format!("{id}.json"))).map_err(|_| absent())?;
        serde_json::from_slice(&bytes)
            .map_err(|error| ApiError::Internal(format!("match {id}: {error}")))
    }

    fn store(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.jsonl"))
    }

    /// The current state of a match. Its file is read when it has changed; the file of a running
    /// match is read only every few seconds.
    pub(super) fn look(&self, id: &str) -> Result<(MatchView, Arc<Stored>), ApiError> {
        let is_playing = lock(&self.queue).playing.as_ref().is_some_and(|playing| playing.id == id);
        // Concurrent requests for the same match wait for one read.
        let mut known = lock(&self.known);
        let stamp = stamp(&self.store(id));
        let is_fresh = |known: &CachedMatch| {
            known.stamp == stamp || is_playing && known.looked.elapsed() < FRESH
        };
        let config = match known.get(id) {
            Some(known) if is_fresh(known) => None,
            Some(known) => Some(known.config.clone()),
            None => Some(self.config(id)?),
        };
        if let Some(config) = config {
            let (report, games) = self.read(id, &config)?;
            let stored = Arc::new(Stored::new(&config, report, &games));
            let looked = Instant::now();
            known.insert(id.to_owned(), CachedMatch { config, stamp, looked, stored });
        }
        let Some(CachedMatch { config, stored, .. }) = known.get(id) else {
            return Err(ApiError::Internal(format!("match {id} is not in the cache")));
        };
        let (config, stored) = (config.clone(), Arc::clone(stored));
        drop(known);
        let queue = lock(&self.queue);
        let is_waiting = queue.waiting.iter().any(|waiting| waiting == id);
        let state = match (is_playing, is_waiting, stored.report.is_finished) {
            (true, ..) => MatchState::Playing,
            (false, true, _) => MatchState::Waiting,
            (false, false, true) => MatchState::Finished,
            (false, false, false) => MatchState::Stopped,
        };
        let error = queue.failed.iter().find(|(failed, _)| failed == id);
        let view = MatchView {
            id: id.to_owned(),
            state,
            error: error.map(|(_, error)| error.clone()),
            total: config.games,
            limit: config.settings.limit.to_string(),
            report: stored.report.clone(),
        };
        Ok((view, stored))
    }

    pub(super) fn games(&self, id: &str) -> Result<Vec<Option<MatchGame>>, ApiError> {
        self.read(id, &self.config(id)?).map(|(_, games)| games)
    }

    /// Removes deleted matches from the cache.
    pub(super) fn forget_all_but(&self, ids: &[String]) {
        lock(&self.known).retain(|id, _| ids.contains(id));
    }

    fn read(
        &self,
        id: &str,
        config: &MatchConfig,
    ) -> Result<(MatchReport, Vec<Option<MatchGame>>), ApiError> {
        let stored = stored_match(&self.store(id), config);
        stored.map_err(|error| ApiError::Internal(self.without_path(&error)))
    }

    fn without_path(&self, error: &dyn std::fmt::Display) -> String {
        error.to_string().replace(&self.folder.display().to_string(), "matches")
    }
}

/// Only ids of this form become part of a path.
fn is_id(text: &str) -> bool {
    (6..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Length and modification time of a file.
fn stamp(path: &Path) -> Option<(u64, SystemTime)> {
    let file = fs::metadata(path).ok()?;
    Some((file.len(), file.modified().ok()?))
}
