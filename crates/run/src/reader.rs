//! Reads a run without a lock, while another process may write.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::atomic_file;
use crate::chunk;
use crate::error::RunError;
use crate::game::GameRecord;
use crate::metric::Record;

/// The file with the resolved config. Checkpoints contain a copy under the same name.
pub const CONFIG: &str = "run.toml";

#[derive(Clone, Debug)]
pub struct RunReader {
    path: PathBuf,
}

/// The names of the runs in a folder, sorted; empty if the folder does not exist.
pub fn list(runs: &Path) -> Result<Vec<String>, RunError> {
    let mut names = atomic_file::names(runs)?;
    names.retain(|name| runs.join(name).join(CONFIG).is_file());
    Ok(names)
}

impl RunReader {
    /// Does not check the folder.
    pub fn new(path: &Path) -> RunReader {
        RunReader { path: path.to_owned() }
    }

    /// Finds a run by name. The error lists the runs that exist.
    pub fn find(runs: &Path, name: &str) -> Result<RunReader, RunError> {
        let names = list(runs)?;
        if names.iter().any(|known| known == name) {
            return Ok(RunReader::new(&runs.join(name)));
        }
        Err(RunError::Unknown { name: name.to_owned(), runs: runs.to_owned(), names })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the folder.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy().into_owned()
    }

    /// When the run was created; `None` if the system does not report it.
    pub fn begun(&self) -> Option<SystemTime> {
        // The lock file is created first and never written to.
        fs::metadata(self.lock_path()).and_then(|lock| lock.modified()).ok()
    }

    /// When the metrics were last written; `None` if they were not.
    pub fn recorded(&self) -> Option<SystemTime> {
        fs::metadata(self.metrics_path()).and_then(|metrics| metrics.modified()).ok()
    }

    /// The resolved config; `None` if it has not been written yet.
    pub fn config(&self) -> Result<Option<String>, RunError> {
        let path = self.config_path();
        let Some(bytes) = atomic_file::read(&path)? else { return Ok(None) };
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(RunError::damaged(&path, "is not valid UTF-8")),
        }
    }

    /// The generations with sealed games, in order.
    pub fn chunks(&self) -> Result<Vec<u64>, RunError> {
        let names = atomic_file::names(&self.games_path())?;
        let generation = |name: &String| name.strip_suffix(".games")?.parse().ok();
        let mut chunks: Vec<u64> = names.iter().filter_map(generation).collect();
        chunks.sort_unstable();
        Ok(chunks)
    }

    /// The verified games of a generation, by number.
    pub fn read_chunk(&self, generation: u64) -> Result<Vec<GameRecord>, RunError> {
        let path = self.chunk_path(generation);
        let bytes = fs::read(&path).map_err(RunError::io(&path))?;
        chunk::decode(generation, &bytes).map_err(|what| RunError::damaged(&path, what))
    }

    /// The length and modification time of a generation's sealed games. Readers may cache what they
    /// read as long as both stay equal. `None` if there are no sealed games.
    pub fn chunk_stamp(&self, generation: u64) -> Option<(u64, SystemTime)> {
        let chunk = fs::metadata(self.chunk_path(generation)).ok()?;
        Some((chunk.len(), chunk.modified().ok()?))
    }

    /// The folder for results of the arena.
    pub fn matches_path(&self) -> PathBuf {
        self.path.join("matches")
    }

    /// True if the run has no checkpoints, games or metrics yet.
    pub fn is_blank(&self) -> Result<bool, RunError> {
        if self.metrics()?.0.iter().any(|record| matches!(record, Record::Progress(_))) {
            return Ok(false);
        }
        for folder in [self.checkpoints_path(), self.games_path(), self.matches_path()] {
            if !atomic_file::names(&folder)?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(crate) fn lock_path(&self) -> PathBuf {
        self.path.join("lock")
    }

    pub(crate) fn config_path(&self) -> PathBuf {
        self.path.join(CONFIG)
    }

    pub(crate) fn metrics_path(&self) -> PathBuf {
        self.path.join("metrics.jsonl")
    }

    pub(crate) fn live_path(&self) -> PathBuf {
        self.path.join("live.json")
    }

    pub(crate) fn checkpoints_path(&self) -> PathBuf {
        self.path.join("checkpoints")
    }

    pub(crate) fn games_path(&self) -> PathBuf {
        self.path.join("games")
    }

    pub(crate) fn chunk_path(&self, generation: u64) -> PathBuf {
        self.games_path().join(format!("{generation:08}.games"))
    }

    pub(crate) fn journal_path(&self, generation: u64) -> PathBuf {
        self.games_path().join(format!("{generation:08}.open"))
    }
}
