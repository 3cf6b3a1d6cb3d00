//! Writes a run, with a lock against other writers.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::atomic_file;
use crate::chunk;
use crate::error::RunError;
use crate::game::GameRecord;
use crate::reader::RunReader;

/// An open run. It can do everything a [`RunReader`] can.
///
/// ```
/// use selfmate_run::{Run, RunReader};
///
/// # let runs = tempfile::tempdir()?;
/// # let path = runs.path().join("first");
/// let mut run = Run::open(&path)?;
/// run.write_config("seed = 1\n")?;
/// run.save_checkpoint(100, &[("model", b"weights")])?;
///
/// // A run has one writer and any number of readers.
/// assert!(Run::open(&path).is_err());
/// let latest = RunReader::new(&path).latest_checkpoint(&["model"])?;
/// let checkpoint = latest.checkpoint.expect("a checkpoint was saved");
/// assert_eq!((checkpoint.step, &checkpoint.files["model"][..]), (100, &b"weights"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
    /// Opens a run for writing or creates it. Completes operations that a kill interrupted.
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

    pub fn write_config(&mut self, text: &str) -> Result<(), RunError> {
        atomic_file::write(&self.config_path(), text.as_bytes())?;
        self.has_config = true;
        Ok(())
    }

    /// Fails if the folder or a file that every run has was removed. Otherwise training would write to
    /// deleted files, while another process could lock and train a new run in the same place.
    pub fn check_present(&self) -> Result<(), RunError> {
        let is_there = |path: &Path| match fs::symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(RunError::Io { path: path.to_owned(), error }),
        };
        let folders = [self.checkpoints_path(), self.games_path()];
        let config = self.has_config.then(|| self.config_path());
        // The folder first: without it the others are missing too.
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

    /// Renames a damaged chunk and returns its new path.
    pub fn set_aside(&mut self, generation: u64) -> Result<PathBuf, RunError> {
        atomic_file::set_aside(&self.chunk_path(generation))
    }

    /// Seals games as a generation's chunk. Replaces an existing chunk.
    pub fn replace_chunk(&mut self, generation: u64, games: &[GameRecord]) -> Result<(), RunError> {
        let path = self.chunk_path(generation);
        atomic_file::write(&path, &chunk::encode(&path, generation, games)?)
    }

    /// Removes the games of a generation. Succeeds if there are none.
    pub fn remove_chunk(&mut self, generation: u64) -> Result<(), RunError> {
        atomic_file::remove(&self.chunk_path(generation))
    }

    /// Removes journals whose games are already sealed.
    fn tidy_journals(&mut self) -> Result<(), RunError> {
        for generation in self.chunks()? {
            atomic_file::remove(&self.journal_path(generation))?;
        }
        Ok(())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is being started may hold it open.
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
    // On other systems an open file cannot be replaced.
    #[cfg(not(unix))]
    {
        let _ = (path, open);
        Ok(true)
    }
}

fn remove_partial(folder: &Path) -> Result<(), RunError> {
    let end = format!(".{}", atomic_file::PARTIAL);
    for name in atomic_file::names(folder)?.iter().filter(|name| name.ends_with(&end)) {
        atomic_file::remove(&folder.join(name))?;
    }
    Ok(())
}
