//! A run as its trainer sees it: locked against other writers.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::atomic;
use crate::chunk;
use crate::error::RunError;
use crate::game::GameRecord;
use crate::reader::RunReader;

/// A run to write. Everything a [`RunReader`] can do, and more.
#[derive(Debug)]
pub struct Run {
    reader: RunReader,
    lock: File,
    /// Open for appending.
    pub(crate) metrics: File,
}

impl Deref for Run {
    type Target = RunReader;

    fn deref(&self) -> &RunReader {
        &self.reader
    }
}

impl Run {
    /// Opens a run for writing, or begins it. Finishes what a kill left half done.
    pub fn open(path: &Path) -> Result<Run, RunError> {
        let reader = RunReader::new(path);
        for folder in [reader.checkpoints_path(), reader.games_path(), reader.matches_path()] {
            fs::create_dir_all(&folder).map_err(RunError::io(&folder))?;
        }
        let lock_path = reader.lock_path();
        let lock = OpenOptions::new().write(true).create(true).truncate(false).open(&lock_path);
        let lock = lock.map_err(RunError::io(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(RunError::Locked { name: reader.name(), path: path.to_owned() });
            }
            Err(TryLockError::Error(error)) => {
                return Err(RunError::Io { path: lock_path, error });
            }
        }
        let metrics = Run::open_metrics(&reader)?;
        let mut run = Run { reader, lock, metrics };
        for folder in [run.path().to_owned(), run.checkpoints_path(), run.games_path()] {
            remove_partial(&folder)?;
        }
        run.tidy_checkpoints()?;
        run.tidy_journals()?;
        Ok(run)
    }

    /// Writes the resolved config.
    pub fn write_config(&mut self, text: &str) -> Result<(), RunError> {
        atomic::write(&self.config_path(), text.as_bytes())
    }

    /// Puts a damaged chunk out of the way; says where it is now.
    pub fn set_aside(&mut self, generation: u64) -> Result<PathBuf, RunError> {
        atomic::set_aside(&self.chunk_path(generation))
    }

    /// Seals these games in the place of those that a generation had.
    pub fn replace_chunk(&mut self, generation: u64, games: &[GameRecord]) -> Result<(), RunError> {
        let path = self.chunk_path(generation);
        atomic::write(&path, &chunk::encode(&path, generation, games)?)
    }

    /// Removes the games of a generation; fine when there are none.
    pub fn remove_chunk(&mut self, generation: u64) -> Result<(), RunError> {
        atomic::remove(&self.chunk_path(generation))
    }

    /// A journal whose games are sealed was about to be removed.
    fn tidy_journals(&mut self) -> Result<(), RunError> {
        for generation in self.chunks()? {
            atomic::remove(&self.journal_path(generation))?;
        }
        Ok(())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Closing alone would leave the lock to a child process that is just being started.
        let _ = self.lock.unlock();
    }
}

fn remove_partial(folder: &Path) -> Result<(), RunError> {
    let end = format!(".{}", atomic::PARTIAL);
    for name in atomic::names(folder)?.iter().filter(|name| name.ends_with(&end)) {
        atomic::remove(&folder.join(name))?;
    }
    Ok(())
}
