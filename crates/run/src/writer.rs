//! A run as its trainer sees it: locked against other writers.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
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
    has_config: bool,
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
        let has_config = reader.config_path().exists();
        let mut run = Run { reader, lock, metrics, has_config };
        for folder in [run.path().to_owned(), run.checkpoints_path(), run.games_path()] {
            remove_partial(&folder)?;
        }
        run.tidy_checkpoints()?;
        run.tidy_journals()?;
        Ok(run)
    }

    /// Writes the resolved config.
    pub fn write_config(&mut self, text: &str) -> Result<(), RunError> {
        atomic::write(&self.config_path(), text.as_bytes())?;
        self.has_config = true;
        Ok(())
    }

    /// Names what is not there any more of the folder and the files that every run has. A training
    /// would otherwise write to files that nobody can open, beside another that has its own lock.
    pub fn check_present(&self) -> Result<(), RunError> {
        let is_there = |path: &Path| match fs::symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(RunError::Io { path: path.to_owned(), error }),
        };
        let folders = [self.checkpoints_path(), self.games_path()];
        let config = self.has_config.then(|| self.config_path());
        // The folder first: with it all else is gone.
        for path in [self.path().to_owned()].into_iter().chain(folders).chain(config) {
            if !is_there(&path)? {
                return Err(RunError::Gone { path });
            }
        }
        for (path, open) in [(self.lock_path(), &self.lock), (self.metrics_path(), &self.metrics)] {
            if !is_there(&path)? || !is_same(&path, open).map_err(RunError::io(&path))? {
                return Err(RunError::Gone { path });
            }
        }
        Ok(())
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

/// Whether a path still leads to an open file.
fn is_same(path: &Path, open: &File) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let (found, open) = (fs::metadata(path)?, open.metadata()?);
        Ok((found.dev(), found.ino()) == (open.dev(), open.ino()))
    }
    // RemoteGames a file that is open cannot be replaced.
    #[cfg(not(unix))]
    {
        let _ = (path, open);
        Ok(true)
    }
}

fn remove_partial(folder: &Path) -> Result<(), RunError> {
    let end = format!(".{}", atomic::PARTIAL);
    for name in atomic::names(folder)?.iter().filter(|name| name.ends_with(&end)) {
        atomic::remove(&folder.join(name))?;
    }
    Ok(())
}
