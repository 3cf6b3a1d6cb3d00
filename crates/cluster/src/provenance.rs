//! Records which worker played which game, so that the games of a banned worker can be removed.
//!
//! One append-only file per generation; each line has a game's number and a worker's name. A kill
//! can tear only the last line. The game of that line was not acknowledged, so it is delivered again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use selfmate_run::atomic_file;

use crate::error::ClusterError;
use crate::subject::WorkerName;

pub struct Provenance {
    folder: PathBuf,
    /// The file of the generation that is being played.
    open: Option<(PathBuf, File)>,
    /// Lines that are not written yet.
    lines: String,
}

const SUFFIX: &str = "from";

impl Provenance {
    pub fn new(folder: &Path) -> Provenance {
        Provenance { folder: folder.to_owned(), open: None, lines: String::new() }
    }

    /// The workers that sent games of a generation, by game.
    pub fn known(&self, generation: u64) -> Result<BTreeMap<u64, WorkerName>, ClusterError> {
        Ok(read(&self.path(generation))?.0)
    }

    /// Removes the file of a generation whose games are all played by this process.
    pub fn forget(&mut self, generation: u64) -> Result<(), ClusterError> {
        Ok(atomic_file::remove(&self.path(generation))?)
    }

    fn path(&self, generation: u64) -> PathBuf {
        self.folder.join(format!("{generation:08}.{SUFFIX}"))
    }

    /// Opens the file of a generation and returns the workers that sent its games, by game.
    pub fn open(&mut self, generation: u64) -> Result<BTreeMap<u64, WorkerName>, ClusterError> {
        let path = self.path(generation);
        let (known, length) = read(&path)?;
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let file = file.map_err(ClusterError::io(&path))?;
        // Cuts off a torn last line, so that the next line does not continue it.
        file.set_len(length).map_err(ClusterError::io(&path))?;
        atomic_file::sync_folder(&self.folder)?;
        self.open = Some((path, file));
        self.lines.clear();
        Ok(known)
    }

    /// Adds a game; [`Provenance::sync`] writes it.
    pub fn add(&mut self, number: u64, worker: &WorkerName) {
        self.lines.push_str(&format!("{number} {worker}\n"));
    }

    /// Writes the added games and waits for the disk.
    pub fn sync(&mut self) -> Result<(), ClusterError> {
        let Some((path, file)) = &mut self.open else { return Ok(()) };
        if !self.lines.is_empty() {
            file.write_all(self.lines.as_bytes())
                .and_then(|()| file.sync_data())
                .map_err(ClusterError::io(path))?;
            self.lines.clear();
        }
        Ok(())
    }

    /// All games of these workers in this run.
    pub fn games_of(&self, workers: &BTreeSet<WorkerName>) -> Result<BTreeSet<u64>, ClusterError> {
        let mut games = BTreeSet::new();
        if workers.is_empty() {
            return Ok(games);
        }
        for entry in fs::read_dir(&self.folder).map_err(ClusterError::io(&self.folder))? {
            let path = entry.map_err(ClusterError::io(&self.folder))?.path();
            if path.extension().is_some_and(|extension| extension == SUFFIX) {
                let (known, _) = read(&path)?;
                games.extend(
                    known
                        .into_iter()
                        .filter_map(|(number, name)| workers.contains(&name).then_some(number)),
                );
            }
        }
        Ok(games)
    }
}

/// The workers by game, and the length of the complete lines in bytes. If a game occurs twice, the
/// last line counts.
fn read(path: &Path) -> Result<(BTreeMap<u64, WorkerName>, u64), ClusterError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(ClusterError::io(path)(error)),
    };
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let mut known = BTreeMap::new();
    for (index, line) in whole.lines().enumerate() {
        let parsed = line.split_once(' ').and_then(|(number, name)| {
            Some((number.parse::<u64>().ok()?, WorkerName::new(name).ok()?))
        });
        let Some((number, name)) = parsed else {
            let what = format!("line {}: expected a number and a worker name", index + 1);
            return Err(ClusterError::File { path: path.to_owned(), what });
        };
        known.insert(number, name);
    }
    Ok((known, whole.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_games_of_a_worker_are_found_and_a_torn_line_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| WorkerName::new(name).unwrap());
        let mut provenance = Provenance::new(folder.path());
        for (generation, numbers) in [(0, 0..4), (1, 4..8)] {
            assert!(provenance.open(generation).unwrap().is_empty());
            for number in numbers {
                provenance.add(number, if number % 2 == 0 { &a } else { &b });
            }
            provenance.sync().unwrap();
        }
        let of = |worker: &WorkerName| BTreeSet::from([worker.clone()]);
        assert_eq!(provenance.games_of(&of(&a)).unwrap(), BTreeSet::from([0, 2, 4, 6]));
        assert_eq!(provenance.games_of(&[a.clone(), b.clone()].into()).unwrap().len(), 8);
        assert!(provenance.games_of(&BTreeSet::new()).unwrap().is_empty());
        let path = folder.path().join("00000001.from");
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"8 a").unwrap();
        let known = provenance.open(1).unwrap();
        assert_eq!(known.len(), 4);
        // Replayed by another worker: the last line counts.
        provenance.add(4, &b);
        provenance.sync().unwrap();
        assert_eq!(provenance.games_of(&of(&a)).unwrap(), BTreeSet::from([0, 2, 6]));
        fs::write(&path, "nonsense\n").unwrap();
        let error = provenance.open(1).unwrap_err().to_string();
        assert!(error.ends_with("line 1: expected a number and a worker name"), "{error}");
    }
}
