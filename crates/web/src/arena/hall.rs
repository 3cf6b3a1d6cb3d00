//! Where matches are played, one after another, and the files they are kept in.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex};

use selfmate_arena::{GameRecord, MatchConfig, MatchRun, Registry, run_match, stored_match};

use super::{MatchState, MatchView};
use crate::error::ApiError;
use crate::run::lock;

/// The folder beside the runs; no run can have this name.
const FOLDER: &str = ".matches";

/// Where matches are played.
pub(super) struct Hall {
    folder: PathBuf,
    registry: Registry,
    cores: usize,
    pub(super) queue: Mutex<Queue>,
    pub(super) changed: Condvar,
}

/// What is to be played.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) waiting: Vec<String>,
    pub(super) playing: Option<Playing>,
    /// The thread that plays is there.
    pub(super) is_served: bool,
    /// What went wrong, by match.
    pub(super) failed: Vec<(String, String)>,
}

/// The match that is being played.
pub(super) struct Playing {
    pub(super) id: String,
    pub(super) stop: Arc<AtomicBool>,
}

impl Hall {
    pub(super) fn new(runs: &Path, registry: Registry, cores: usize) -> Hall {
        let (queue, changed) = (Mutex::default(), Condvar::new());
        Hall { folder: runs.join(FOLDER), registry, cores, queue, changed }
    }

    /// Plays what waits, until nothing does.
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
                Err(_) => "a player has failed".to_owned(),
            };
            lock(&self.queue).failed.push((id, error));
        }
    }

    fn play(&self, id: &str, stop: Arc<AtomicBool>) -> Result<(), ApiError> {
        let config = self.config(id)?;
        let run = MatchRun {
            // The page and a training want to breathe too.
            concurrency: self.cores.saturating_sub(1).max(1),
            store: Some(self.store(id)),
            stop,
            ..MatchRun::default()
        };
        let played = run_match(&config, &run, &self.registry, &mut |_| {});
        played.map(|_| ()).map_err(|error| ApiError::Internal(self.without_path(&error)))
    }

    /// Writes down what is to be played, under a number of its own.
    pub(super) fn create(&self, config: &MatchConfig) -> Result<String, ApiError> {
        let fault = |error: std::io::Error| ApiError::Internal(format!("matches: {error}"));
        fs::create_dir_all(&self.folder).map_err(fault)?;
        let last = self.ids().last().and_then(|id| id.parse::<u64>().ok()).unwrap_or_default();
        let text = serde_json::to_vec_pretty(config)
            .map_err(|error| ApiError::Internal(format!("matches: {error}")))?;
        for number in last + 1.. {
            let id = format!("{number:06}");
            let path = self.folder.join(format!("{id}.json"));
            let file = fs::OpenOptions::new().write(true).create_new(true).open(&path);
            match file.and_then(|mut file| std::io::Write::write_all(&mut file, &text)) {
                Ok(()) => return Ok(id),
                // Another server over the same folder was quicker.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(fault(error)),
            }
        }
        Err(ApiError::Internal("matches: out of numbers".into()))
    }

    /// The names of all matches, oldest first.
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

    pub(super) fn read(
        &self,
        id: &str,
    ) -> Result<(MatchView, MatchConfig, Vec<Option<GameRecord>>), ApiError> {
        let config = self.config(id)?;
        let stored = stored_match(&self.store(id), &config);
        let (report, games) =
            stored.map_err(|error| ApiError::Internal(self.without_path(&error)))?;
        let queue = lock(&self.queue);
        let is_playing = queue.playing.as_ref().is_some_and(|playing| playing.id == id);
        let is_waiting = queue.waiting.iter().any(|waiting| waiting == id);
        let state = match (is_playing, is_waiting, report.is_finished) {
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
            report,
        };
        Ok((view, config, games))
    }

    fn without_path(&self, error: &dyn std::fmt::Display) -> String {
        error.to_string().replace(&self.folder.display().to_string(), "matches")
    }
}

/// Names that we give: nothing else becomes part of a path.
fn is_id(text: &str) -> bool {
    (6..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}
