//! Runs as requests see them: read from their folders while others train them, and cached so that
//! many readers cost as much as one.

mod summary;

pub use summary::RunSummary;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use selfmate_run::{CheckpointStamp, Damage, Follower, GameRecord, Record, RunError, RunReader};

use crate::error::without_paths;
use crate::learner;
use crate::training_process::Trainings;
use crate::view::MistakesView;

/// Files are read again when the last read is older than this.
const FRESH: Duration = Duration::from_millis(400);
/// Cached chunks of games.
const CHUNKS: usize = 6;

pub struct Runs {
    folder: PathBuf,
    followed: Mutex<HashMap<String, Arc<Mutex<Followed>>>>,
    chunks: Mutex<Vec<Chunk>>,
    /// The result of checking the newest checkpoint of each run.
    checkpoints: Mutex<HashMap<String, CheckedCheckpoint>>,
}

/// The result of reading the newest checkpoint of a run completely.
#[derive(Clone)]
struct CheckedCheckpoint {
    /// While this is unchanged, the checkpoint need not be read again.
    stamp: CheckpointStamp,
    skipped_checkpoints: Option<String>,
    mistakes: Option<MistakesView>,
}

/// The metrics of one run as read so far.
struct Followed {
    follower: Follower,
    looked: Option<Instant>,
    metrics: Metrics,
    /// Damaged lines.
    damages: Vec<Damage>,
}

/// The records of a run at one moment.
#[derive(Clone, Default)]
pub struct Metrics {
    /// In the order of the file.
    pub records: Arc<Vec<Record>>,
    /// A hash of each record and all before it. Clients with the same records have the same mark,
    /// whichever server sent them and whatever happened to the run since.
    marks: Arc<Vec<u64>>,
}

impl Metrics {
    /// The mark of the first `count` records; `None` when there are fewer.
    pub fn mark(&self, count: usize) -> Option<u64> {
        match count.checked_sub(1) {
            None => Some(0),
            Some(last) => self.marks.get(last).copied(),
        }
    }

    pub fn extend(&mut self, records: Vec<Record>) {
        let marks = Arc::make_mut(&mut self.marks);
        for record in &records {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&marks.last().copied().unwrap_or_default().to_le_bytes());
            // Serialising numbers and strings cannot fail.
            hasher.update(&serde_json::to_vec(record).unwrap_or_default());
            let hash = hasher.finalize();
            let mut mark = [0; 8];
            mark.copy_from_slice(&hash.as_bytes()[..8]);
            marks.push(u64::from_le_bytes(mark));
        }
        Arc::make_mut(&mut self.records).extend(records);
    }
}

struct Chunk {
    run: String,
    generation: u64,
    /// Changes when a generation is played again or a run is created again under the same name.
    stamp: (u64, SystemTime),
    games: Arc<Vec<GameRecord>>,
}

impl Runs {
    pub fn new(folder: &Path) -> Runs {
        Runs {
            folder: folder.to_owned(),
            followed: Mutex::default(),
            chunks: Mutex::default(),
            checkpoints: Mutex::default(),
        }
    }

    /// A run by name. Only names in the folder's listing are found, so no path leads out of it.
    pub fn find(&self, name: &str) -> Result<RunReader, RunError> {
        RunReader::find(&self.folder, name)
    }

    /// The records of a run, less than a second old.
    pub fn metrics(&self, name: &str) -> Result<Metrics, RunError> {
        self.followed(name, |followed| followed.metrics.clone())
    }

    /// Damaged files that were skipped: lines of the metrics, and checkpoints newer than the one
    /// that plays.
    pub fn warnings(&self, name: &str) -> Vec<String> {
        let clean = |text: &dyn std::fmt::Display| without_paths(text, &self.folder);
        let mut warnings = Vec::new();
        match self.skipped_checkpoints(name) {
            Ok(skipped) => warnings.extend(skipped),
            Err(error) => warnings.push(clean(&error)),
        }
        match self.followed(name, |followed| followed.damages.clone()) {
            Ok(damages) => {
                warnings.extend(damages.iter().map(|damage| clean(&format!("{damage}; left out"))));
            }
            Err(error) => warnings.push(clean(&error)),
        }
        warnings
    }

    /// A warning if the newest checkpoint of a run is damaged.
    pub fn skipped_checkpoints(&self, name: &str) -> Result<Option<String>, RunError> {
        Ok(self.checked(name)?.skipped_checkpoints)
    }

    /// The moves that lost games of a run, if its learner counts them.
    pub fn mistakes(&self, name: &str) -> Result<Option<MistakesView>, RunError> {
        Ok(self.checked(name)?.mistakes)
    }

    fn checked(&self, name: &str) -> Result<CheckedCheckpoint, RunError> {
        let reader = self.find(name)?;
        let stamp = reader.checkpoint_stamp()?;
        let known = lock(&self.checkpoints).get(name).filter(|known| known.stamp == stamp).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let latest = reader.latest_checkpoint(&[])?;
        let skipped_checkpoints =
            latest.skipped_checkpoints().map(|skipped| skipped.to_string()).or_else(|| {
                let damage = latest.damages.first()?;
                Some(format!("{damage}; there is no older checkpoint"))
            });
        let skipped_checkpoints =
            skipped_checkpoints.map(|skipped| without_paths(&skipped, &self.folder));
        let mistakes = latest.checkpoint.as_ref().and_then(learner::mistakes);
        let checked = CheckedCheckpoint { stamp, skipped_checkpoints, mistakes };
        lock(&self.checkpoints).insert(name.to_owned(), checked.clone());
        Ok(checked)
    }

    /// Reads something from the metrics of a run, less than a second old.
    fn followed<T>(&self, name: &str, get: impl Fn(&Followed) -> T) -> Result<T, RunError> {
        let known = lock(&self.followed).get(name).cloned();
        if let Some(known) = known {
            let known = lock(&known);
            // Of many concurrent requests only the first reads the disk.
            if known.is_fresh() {
                return Ok(get(&known));
            }
        }
        let reader = self.find(name)?;
        let followed =
            Arc::clone(lock(&self.followed).entry(name.to_owned()).or_insert_with(|| {
                let follower = Follower::new(reader);
                Arc::new(Mutex::new(Followed {
                    follower,
                    looked: None,
                    metrics: Metrics::default(),
                    damages: Vec::new(),
                }))
            }));
        let mut followed = lock(&followed);
        if !followed.is_fresh() {
            followed.refresh()?;
        }
        Ok(get(&followed))
    }

    /// All runs; those that cannot be read have an error.
    pub fn summaries(&self, trainings: &Trainings) -> Vec<RunSummary> {
        let names = selfmate_run::list(&self.folder).unwrap_or_default();
        names.into_iter().map(|name| self.summary(&name, trainings)).collect()
    }

    /// The summary of a run; with an error if it cannot be read.
    pub fn summary(&self, name: &str, trainings: &Trainings) -> RunSummary {
        let read = || {
            let reader = self.find(name)?;
            let metrics = self.metrics(name)?;
            RunSummary::new(&reader, &metrics.records, trainings.state(name).as_ref())
        };
        read().unwrap_or_else(|error| {
            RunSummary::unreadable(name, &without_paths(&error, &self.folder))
        })
    }

    /// The games of a generation, complete or being played.
    pub fn games(&self, name: &str, generation: u64) -> Result<Arc<Vec<GameRecord>>, RunError> {
        let reader = self.find(name)?;
        let is_it = |chunk: &Chunk| chunk.run == name && chunk.generation == generation;
        let Some(stamp) = reader.chunk_stamp(generation) else {
            let open = reader.open_games()?.filter(|open| open.generation == generation);
            return match open {
                Some(open) => Ok(Arc::new(open.all()?)),
                // It was completed a moment ago, or does not exist; the error tells which.
                None => Ok(Arc::new(reader.read_chunk(generation)?)),
            };
        };
        let is_same = |chunk: &Chunk| is_it(chunk) && chunk.stamp == stamp;
        if let Some(chunk) = lock(&self.chunks).iter().find(|chunk| is_same(chunk)) {
            return Ok(Arc::clone(&chunk.games));
        }
        let games = Arc::new(reader.read_chunk(generation)?);
        let mut chunks = lock(&self.chunks);
        chunks.retain(|chunk| !is_it(chunk));
        if chunks.len() >= CHUNKS {
            chunks.remove(0);
        }
        let run = name.to_owned();
        chunks.push(Chunk { run, generation, stamp, games: Arc::clone(&games) });
        Ok(games)
    }
}

impl Followed {
    fn is_fresh(&self) -> bool {
        self.looked.is_some_and(|looked| looked.elapsed() < FRESH)
    }

    fn refresh(&mut self) -> Result<(), RunError> {
        let news = self.follower.read()?;
        self.looked = Some(Instant::now());
        if news.restarted {
            self.metrics = Metrics::default();
            self.damages.clear();
        }
        self.damages.extend(news.damages);
        if !news.records.is_empty() {
            self.metrics.extend(news.records);
        }
        Ok(())
    }
}

/// Ignores poisoning: a panic in another thread leaves no half-written data behind these locks.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use selfmate_run::{Progress, Run};

    use super::*;

    fn progress(generation: u64) -> Record {
        Record::Progress(Progress { generation, games: generation, ..Progress::default() })
    }

    #[test]
    fn names_that_are_paths_find_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = Run::open(&folder.path().join("inside/first")).unwrap();
        run.write_config("learner = \"zero\"").unwrap();
        let runs = Runs::new(&folder.path().join("inside"));
        assert!(runs.find("first").is_ok());
        for name in
            ["../inside/first", "first/", "./first", "", ".", "..", "/etc", "FIRST", "first\0"]
        {
            assert!(runs.find(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_run_can_be_summarised_while_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = Run::open(&folder.path().join("first")).unwrap();
        run.write_config("learner = \"zero\"\nseed = 7").unwrap();
        for generation in 1..=3 {
            run.append_metric(&progress(generation)).unwrap();
        }
        let runs = Runs::new(folder.path());
        let trainings = Trainings::new("none".into(), folder.path().to_owned());
        let summary = &runs.summaries(&trainings)[0];
        assert_eq!((summary.name.as_str(), summary.generation, summary.games), ("first", 3, 3));
        assert_eq!((summary.learner.as_deref(), summary.seed), (Some("zero"), Some(7)));
        std::fs::write(folder.path().join("first/run.toml"), "learner = ").unwrap();
        let summary = &runs.summaries(&trainings)[0];
        assert!(summary.error.as_ref().unwrap().contains("runs/first/run.toml"), "{summary:?}");
    }

    #[test]
    fn warnings_report_damaged_checkpoints_and_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("first");
        let mut run = Run::open(&path).unwrap();
        run.write_config("learner = \"zero\"").unwrap();
        run.append_metric(&progress(1)).unwrap();
        run.save_checkpoint(10, &[("model", b"older")]).unwrap();
        run.save_checkpoint(20, &[("model", b"newer")]).unwrap();
        let runs = Runs::new(folder.path());
        assert!(runs.warnings("first").is_empty());
        std::fs::write(path.join("checkpoints/20/model"), "damaged").unwrap();
        let warnings = Runs::new(folder.path()).warnings("first");
        assert_eq!(warnings, runs.warnings("first"));
        let expected = "runs/first/checkpoints/20/model: ";
        assert!(warnings[0].starts_with(expected), "{warnings:?}");
        assert!(warnings[0].ends_with("; step 10 is used instead"), "{warnings:?}");
        let lines = std::fs::read_to_string(path.join("metrics.jsonl")).unwrap();
        std::fs::write(path.join("metrics.jsonl"), format!("nonsense\n{lines}")).unwrap();
        let runs = Runs::new(folder.path());
        let warnings = runs.warnings("first");
        assert!(warnings[1].starts_with("runs/first/metrics.jsonl: line 1 "), "{warnings:?}");
        assert_eq!(runs.metrics("first").unwrap().records.len(), 1);
    }

    #[test]
    fn mistakes_are_read_from_the_newest_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = Run::open(&folder.path().join("first")).unwrap();
        run.write_config("learner = \"tune\"").unwrap();
        let runs = Runs::new(folder.path());
        run.save_checkpoint(1, &[("weights.toml", b"")]).unwrap();
        assert_eq!(runs.mistakes("first").unwrap(), None);
        let json = br#"{"games":5,"rows":[{"kind":"hanging_piece","opening":1,"middlegame":2,"endgame":0}]}"#;
        run.save_checkpoint(2, &[("mistakes.json", json)]).unwrap();
        let mistakes = runs.mistakes("first").unwrap().unwrap();
        assert_eq!((mistakes.games, mistakes.rows.len()), (5, 1));
        assert_eq!((mistakes.rows[0].kind, mistakes.rows[0].middlegame), ("hanging piece", 2));
    }

    #[test]
    fn marks_differ_for_different_histories() {
        let metrics = |generations: &[u64]| {
            let mut metrics = Metrics::default();
            metrics.extend(generations.iter().map(|&generation| progress(generation)).collect());
            metrics
        };
        let (first, other) = (metrics(&[1, 2, 3, 4]), metrics(&[1, 2, 5, 4]));
        assert_eq!(first.mark(2), other.mark(2));
        assert_ne!(first.mark(3), other.mark(3));
        assert_ne!(first.mark(4), other.mark(4), "it depends on earlier records");
        assert_eq!((first.mark(0), first.mark(5)), (Some(0), None));
        let mut grown = metrics(&[1, 2]);
        grown.extend(vec![progress(3)]);
        assert_eq!(grown.mark(3), first.mark(3));
    }

    #[test]
    fn games_that_were_played_again_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = Run::open(&folder.path().join("first")).unwrap();
        run.write_config("learner = \"zero\"").unwrap();
        let game = |number| GameRecord {
            number,
            network: 0,
            start: None,
            moves: Vec::new(),
            outcome: selfmate_chess::Outcome {
                winner: None,
                reason: selfmate_chess::Reason::Adjudication,
            },
            positions: Vec::new(),
        };
        let runs = Runs::new(folder.path());
        let shown = || runs.games("first", 1).map(|games| games.len());
        let (mut journal, _) = run.journal(1).unwrap();
        journal.append(&game(0)).unwrap();
        assert_eq!(shown().unwrap(), 1);
        journal.seal(&run, &[game(0), game(1)]).unwrap();
        assert_eq!((shown().unwrap(), shown().unwrap()), (2, 2));
        run.set_aside(1).unwrap();
        assert!(shown().is_err());
        let (journal, _) = run.journal(1).unwrap();
        journal.seal(&run, &[game(0), game(1), game(2)]).unwrap();
        assert_eq!(shown().unwrap(), 3);
    }
}
