//! The list of banned workers, kept in `cluster/bans.jsonl` of a run, one worker per line.
//!
//! This file only stores bans; the collector decides on them (see the crate documentation). To lift
//! a ban, stop the learner and remove the worker's line.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use selfmate_run::atomic_file;
use serde::{Deserialize, Serialize};

use crate::error::ClusterError;
use crate::subject::WorkerName;

#[derive(Default)]
pub struct Bans {
    /// `None` for matches: their bans are only kept in memory.
    path: Option<PathBuf>,
    reasons: BTreeMap<WorkerName, String>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    worker: WorkerName,
    reason: String,
}

impl Bans {
    /// Reads the file. A file that does not exist is an empty list.
    pub fn open(path: &Path) -> Result<Bans, ClusterError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(ClusterError::io(path)(error)),
        };
        let mut reasons = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let Line { worker, reason } =
                serde_json::from_str(line).map_err(|error| ClusterError::File {
                    path: path.to_owned(),
                    what: format!("line {}: {error}", index + 1),
                })?;
            reasons.insert(worker, reason);
        }
        Ok(Bans { path: Some(path.to_owned()), reasons })
    }

    /// Why a worker is banned; `None` when it is not.
    pub fn reason(&self, worker: &WorkerName) -> Option<&str> {
        self.reasons.get(worker).map(String::as_str)
    }

    /// Bans a worker, also after a restart. Returns false if it was banned before.
    pub fn add(&mut self, worker: &WorkerName, reason: &str) -> Result<bool, ClusterError> {
        if self.reasons.contains_key(worker) {
            return Ok(false);
        }
        self.reasons.insert(worker.clone(), reason.to_owned());
        let mut text = String::new();
        for (worker, reason) in self.iter() {
            let line = Line { worker: worker.clone(), reason: reason.to_owned() };
            text.push_str(&serde_json::to_string(&line).expect("a line is plain data"));
            text.push('\n');
        }
        // Atomic: a torn line would be an error at every later start.
        if let Some(path) = &self.path {
            atomic_file::write(path, text.as_bytes())?;
        }
        Ok(true)
    }

    pub fn workers(&self) -> BTreeSet<WorkerName> {
        self.reasons.keys().cloned().collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&WorkerName, &str)> {
        self.reasons.iter().map(|(worker, reason)| (worker, reason.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ban_survives_a_restart_and_keeps_its_first_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bans.jsonl");
        let [a, b] = ["a", "b"].map(|name| WorkerName::new(name).unwrap());
        let mut bans = Bans::open(&path).unwrap();
        assert!(bans.add(&a, "an illegal \"move\"").unwrap());
        assert!(!bans.add(&a, "once more").unwrap());
        let bans = Bans::open(&path).unwrap();
        assert_eq!(bans.reason(&a), Some("an illegal \"move\""));
        assert_eq!((bans.reason(&b), bans.iter().count()), (None, 1));
        fs::write(&path, "nonsense\n").unwrap();
        assert!(Bans::open(&path).err().unwrap().to_string().contains("line 1"));
    }
}
