//! The metrics of a run: typed records, one JSON object per line.
//!
//! Plots, the web page and the terminal read nothing else. Lines are only appended, except when a
//! resume goes back to an earlier generation.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::atomic_file;
use crate::error::{Damage, RunError};
use crate::reader::RunReader;
use crate::writer::Run;

/// A line of the metrics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    Start {
        /// The version of selfmate.
        version: String,
        seed: u64,
        /// The number of threads at the start.
        threads: u64,
        /// When training stops; `None` in old runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<Budget>,
    },
    /// Training continues after a stop or a kill.
    Resume {
        /// Seconds of training before the resume.
        elapsed_s: f64,
        /// The step from which training continues.
        step: u64,
        /// The last generation that is kept.
        generation: u64,
        /// Damage that was found, and how it was handled.
        #[serde(default)]
        notes: Vec<String>,
        /// The number of threads; `None` in old runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        threads: Option<u64>,
        /// When training stops; `None` in old runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<Budget>,
    },
    /// A generation is complete.
    Progress(Progress),
    Rating(Rating),
    Alarm(Alarm),
    /// Training stopped. It may be resumed.
    End {
        /// Total seconds of training.
        elapsed_s: f64,
        /// In words.
        reason: String,
    },
}

/// When training stops. Without any limit it runs until it is stopped by the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// Minutes of training, earlier sessions included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minutes: Option<f64>,
    /// Self-play games, earlier sessions included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub games: Option<u64>,
    /// Training batches, earlier sessions included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
}

impl Budget {
    /// Whether any limit is reached.
    pub fn is_spent(&self, elapsed_s: f64, games: u64, steps: u64) -> bool {
        self.minutes.is_some_and(|minutes| elapsed_s >= 60.0 * minutes)
            || self.games.is_some_and(|most| games >= most)
            || self.steps.is_some_and(|most| steps >= most)
    }
}

/// Totals since the start of the run, and the learner's own curves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Seconds of training.
    pub elapsed_s: f64,
    /// The generation that was completed.
    pub generation: u64,
    pub games: u64,
    /// Recorded positions.
    pub positions: u64,
    pub simulations: u64,
    /// Training batches.
    pub steps: u64,
    /// Curves by name, such as `loss.value` or `draw_share`.
    #[serde(default)]
    pub values: BTreeMap<String, f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rating {
    /// Seconds of training.
    pub elapsed_s: f64,
    /// The rated step.
    pub step: u64,
    /// The generation of that step.
    pub generation: u64,
    pub elo: f64,
    /// The lower end of the 95 % interval.
    pub low: f64,
    /// The upper end of the 95 % interval.
    pub high: f64,
    /// The number of rating games.
    pub games: u64,
}

/// A warning that a metric is out of bounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alarm {
    /// Seconds of training.
    pub elapsed_s: f64,
    /// The generation in which it was detected.
    pub generation: u64,
    /// The name of the metric, such as `draw_share`.
    pub name: String,
    pub value: f64,
    /// The limit that was passed.
    pub bound: f64,
    /// The interpretation, in words.
    pub meaning: String,
    /// What is done about it, or what the user should do.
    pub action: String,
}

impl Record {
    /// Seconds of training, if the record contains them.
    pub fn elapsed_s(&self) -> Option<f64> {
        match self {
            Record::Start { .. } => None,
            Record::Resume { elapsed_s, .. } | Record::End { elapsed_s, .. } => Some(*elapsed_s),
            Record::Progress(progress) => Some(progress.elapsed_s),
            Record::Rating(rating) => Some(rating.elapsed_s),
            Record::Alarm(alarm) => Some(alarm.elapsed_s),
        }
    }

    fn generation(&self) -> Option<u64> {
        match self {
            Record::Start { .. } | Record::End { .. } => None,
            Record::Resume { generation, .. } => Some(*generation),
            Record::Progress(progress) => Some(progress.generation),
            Record::Rating(rating) => Some(rating.generation),
            Record::Alarm(alarm) => Some(alarm.generation),
        }
    }

    /// The first number that JSON cannot represent.
    fn not_finite(&self) -> Option<(&str, f64)> {
        let mut numbers = vec![("elapsed_s", self.elapsed_s().unwrap_or_default())];
        match self {
            Record::Progress(progress) => {
                numbers.extend(progress.values.iter().map(|(name, &value)| (name.as_str(), value)));
            }
            Record::Rating(Rating { elo, low, high, .. }) => {
                numbers.extend([("elo", *elo), ("low", *low), ("high", *high)]);
            }
            Record::Alarm(Alarm { value, bound, .. }) => {
                numbers.extend([("value", *value), ("bound", *bound)]);
            }
            Record::Start { .. } | Record::Resume { .. } | Record::End { .. } => {}
        }
        numbers.into_iter().find(|(_, number)| !number.is_finite())
    }
}

/// The lines of a metrics file: parsed records and damaged lines.
struct Lines {
    records: Vec<(Record, Vec<u8>)>,
    unreadable: Vec<(Damage, Vec<u8>)>,
}

impl RunReader {
    /// All records, and the lines that cannot be parsed. Skips an unfinished last line.
    pub fn metrics(&self) -> Result<(Vec<Record>, Vec<Damage>), RunError> {
        let Lines { records, unreadable } = self.metric_lines()?;
        let records = records.into_iter().map(|(record, _)| record).collect();
        Ok((records, unreadable.into_iter().map(|(damage, _)| damage).collect()))
    }

    fn metric_lines(&self) -> Result<Lines, RunError> {
        let path = self.metrics_path();
        let bytes = atomic_file::read(&path)?.unwrap_or_default();
        let lines = bytes[..whole_lines(&bytes)].split_inclusive(|&byte| byte == b'\n');
        let mut found = Lines { records: Vec::new(), unreadable: Vec::new() };
        for (index, line) in lines.enumerate() {
            match parse(line) {
                Ok(record) => found.records.push((record, line.to_vec())),
                Err(what) => {
                    let damage = unreadable(&path, index + 1, &what);
                    found.unreadable.push((damage, line.to_vec()));
                }
            }
        }
        Ok(found)
    }

    /// Where damaged lines are kept.
    fn damaged_metrics_path(&self) -> PathBuf {
        self.path().join("metrics.damaged")
    }
}

/// Parses a line, or returns what is wrong with it.
pub(crate) fn parse(line: &[u8]) -> Result<Record, String> {
    serde_json::from_slice(line).map_err(|error| {
        // serde_json adds a location, which is always line 1.
        let text = error.to_string();
        text.split(" at line ").next().unwrap_or(&text).to_owned()
    })
}

/// The damage report for a line that cannot be parsed.
pub(crate) fn unreadable(path: &Path, line: usize, what: &str) -> Damage {
    Damage::new(path, format!("line {line} cannot be read: {what}"))
}

impl Run {
    /// Appends a record. A kill after this returns does not lose it.
    pub fn append_metric(&mut self, record: &Record) -> Result<(), RunError> {
        self.check_present()?;
        let path = self.metrics_path();
        if let Some((name, number)) = record.not_finite() {
            let what = format!("{name} is {number}: expected a finite number");
            return Err(RunError::refused(&path, what));
        }
        let mut line = serde_json::to_string(record).expect("records have string keys");
        line.push('\n');
        self.metrics.write_all(line.as_bytes()).map_err(|error| {
            // The disk may be full. Remove the partial line before the next record.
            if let Ok(metrics) = Run::open_metrics(self) {
                self.metrics = metrics;
            }
            RunError::Io { path, error }
        })
    }

    /// Moves lines that cannot be parsed to `metrics.damaged` and returns the damage.
    pub fn recover_metrics(&mut self) -> Result<Vec<Damage>, RunError> {
        let Lines { records, unreadable } = self.metric_lines()?;
        if unreadable.is_empty() {
            return Ok(Vec::new());
        }
        let aside = self.damaged_metrics_path();
        let mut kept_aside = atomic_file::read(&aside)?.unwrap_or_default();
        kept_aside.extend(unreadable.iter().flat_map(|(_, line)| line));
        // Copied first, removed second: a kill in between duplicates a line but never loses it.
        atomic_file::write(&aside, &kept_aside)?;
        let kept: Vec<u8> = records.into_iter().flat_map(|(_, line)| line).collect();
        atomic_file::write(&self.metrics_path(), &kept)?;
        self.metrics = Run::open_metrics(self)?;
        Ok(unreadable.into_iter().map(|(damage, _)| damage).collect())
    }

    /// Removes the records of later generations, which a resume will play again. Lines that cannot be
    /// parsed are kept in `metrics.damaged`.
    pub fn rewind_metrics(&mut self, generation: u64) -> Result<(), RunError> {
        self.recover_metrics()?;
        let Lines { records, .. } = self.metric_lines()?;
        let mut kept = Vec::new();
        let mut keep = true;
        for (record, line) in &records {
            // A record without a generation belongs to the generation before it.
            keep = record.generation().map_or(keep, |of| of <= generation);
            if keep {
                kept.extend(line);
            }
        }
        let path = self.metrics_path();
        atomic_file::write(&path, &kept)?;
        self.metrics = Run::open_metrics(self)?;
        Ok(())
    }

    /// Removes all records, for a run that starts again from nothing.
    pub fn forget_metrics(&mut self) -> Result<(), RunError> {
        atomic_file::write(&self.metrics_path(), b"")?;
        self.metrics = Run::open_metrics(self)?;
        Ok(())
    }

    /// Opens the metrics for appending. Removes an unfinished last line.
    pub(crate) fn open_metrics(reader: &RunReader) -> Result<File, RunError> {
        let path = reader.metrics_path();
        let length = whole_lines(&atomic_file::read(&path)?.unwrap_or_default());
        let open = || {
            let file = OpenOptions::new().append(true).create(true).open(&path)?;
            file.set_len(length as u64)?;
            Ok(file)
        };
        open().map_err(RunError::io(&path))
    }
}

/// The end of the last complete line.
fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(generation: u64) -> Record {
        let values = [("loss.value".to_owned(), 0.1 + generation as f64)].into();
        Record::Progress(Progress {
            generation,
            games: 10 * generation,
            values,
            ..Progress::default()
        })
    }

    fn rating(generation: u64) -> Record {
        let (elo, low, high) = (512.5, 480.0, 545.25);
        Record::Rating(Rating { elapsed_s: 1.0, step: 9, generation, elo, low, high, games: 40 })
    }

    fn end() -> Record {
        Record::End { elapsed_s: 60.0, reason: "60 minutes are over".into() }
    }

    #[test]
    fn records_round_trip_and_a_truncated_line_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = Run::open(folder.path()).unwrap();
        let start = Record::Start {
            version: "0.1.0".into(),
            seed: 1,
            threads: 2,
            budget: Some(Budget { minutes: Some(1.5), ..Budget::default() }),
        };
        let alarm = Record::Alarm(Alarm {
            elapsed_s: 2.0,
            generation: 1,
            name: "draw_share".into(),
            value: 0.95,
            bound: 0.9,
            meaning: "almost all games are draws".into(),
            action: "openings are longer from here on".into(),
        });
        let notes = vec!["checkpoints/3/model: is missing".to_owned()];
        let (threads, budget) = (Some(1), Some(Budget::default()));
        let resume =
            Record::Resume { elapsed_s: 3.0, step: 4, generation: 1, notes, threads, budget };
        let records = [start, progress(1), rating(1), alarm, resume, end()];
        for record in &records {
            run.append_metric(record).unwrap();
        }
        assert_eq!(run.metrics().unwrap().0, records);
        let path = run.metrics_path();
        let whole = std::fs::read(&path).unwrap();
        drop(run);
        std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        assert_eq!(RunReader::new(folder.path()).metrics().unwrap().0, records[..5]);
        // A writer that goes on starts a new line.
        let mut run = Run::open(folder.path()).unwrap();
        run.append_metric(&end()).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }

    #[test]
    fn an_unreadable_line_is_reported_and_set_aside_and_the_rest_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = Run::open(folder.path()).unwrap();
        for generation in 1..=3 {
            run.append_metric(&progress(generation)).unwrap();
        }
        let path = run.metrics_path();
        let whole = std::fs::read(&path).unwrap();
        let second = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        for bit in 0..8 {
            let mut flipped = whole.clone();
            // The opening brace of the second line.
            flipped[second] ^= 1 << bit;
            std::fs::write(&path, &flipped).unwrap();
            let (records, damages) = run.metrics().unwrap();
            assert_eq!(records, [progress(1), progress(3)]);
            let text = damages[0].to_string();
            assert!(text.contains("metrics.jsonl: line 2 cannot be read: "), "{text}");
            assert_eq!(run.recover_metrics().unwrap(), damages);
            assert_eq!(run.recover_metrics().unwrap(), []);
            assert_eq!(run.metrics().unwrap(), (vec![progress(1), progress(3)], vec![]));
            run.append_metric(&progress(4)).unwrap();
            assert_eq!(run.metrics().unwrap().0.len(), 3);
        }
        let aside = std::fs::read(folder.path().join("metrics.damaged")).unwrap();
        assert_eq!(aside.iter().filter(|&&byte| byte == b'\n').count(), 8);
    }

    #[test]
    fn broken_lines_are_reported_and_unknown_fields_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let reader = RunReader::new(folder.path());
        assert!(reader.metrics().unwrap().0.is_empty());
        let line = r#"{"kind":"end","elapsed_s":1,"reason":"x","mood":"good"}"#;
        let path = folder.path().join("metrics.jsonl");
        std::fs::write(&path, format!("{line}\n")).unwrap();
        assert_eq!(reader.metrics().unwrap().0.len(), 1);
        std::fs::write(&path, format!("{line}\n{{\"kind\":\"e\n{line}\n")).unwrap();
        let (records, damages) = reader.metrics().unwrap();
        assert_eq!(records.len(), 2);
        let text = damages[0].to_string();
        assert!(text.contains("metrics.jsonl: line 2 cannot be read: "), "{text}");
    }

    #[test]
    fn old_runs_without_budgets_are_read() {
        let read = |line: &str| serde_json::from_str::<Record>(line).unwrap();
        let start = read(r#"{"kind":"start","version":"0.1.0","seed":1,"threads":2}"#);
        assert!(matches!(start, Record::Start { budget: None, .. }), "{start:?}");
        let resume = read(r#"{"kind":"resume","elapsed_s":3,"step":4,"generation":1}"#);
        assert!(matches!(resume, Record::Resume { budget: None, threads: None, .. }));
    }

    #[test]
    fn a_budget_is_spent_when_any_limit_is_reached() {
        let unbounded = Budget::default();
        assert!(!unbounded.is_spent(1e9, u64::MAX, u64::MAX));
        let budget = Budget { minutes: Some(1.5), games: Some(100), steps: Some(10) };
        assert!(!budget.is_spent(89.0, 99, 9));
        assert!(budget.is_spent(90.0, 0, 0));
        assert!(budget.is_spent(0.0, 100, 0) && budget.is_spent(0.0, 0, 10));
    }

    #[test]
    fn rewinding_removes_records_of_later_generations() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = Run::open(folder.path()).unwrap();
        for record in [progress(1), end(), progress(2), rating(1), progress(3), end()] {
            run.append_metric(&record).unwrap();
        }
        run.rewind_metrics(1).unwrap();
        run.append_metric(&progress(2)).unwrap();
        let expected = [progress(1), end(), rating(1), progress(2)];
        assert_eq!(run.metrics().unwrap().0, expected);
        run.rewind_metrics(9).unwrap();
        assert_eq!(run.metrics().unwrap().0, expected);
    }

    #[test]
    fn rewinding_keeps_unreadable_lines_in_the_damaged_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = Run::open(folder.path()).unwrap();
        run.append_metric(&progress(1)).unwrap();
        let path = run.metrics_path();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend(b"{nonsense\n");
        std::fs::write(&path, bytes).unwrap();
        run.rewind_metrics(1).unwrap();
        assert_eq!(run.metrics().unwrap(), (vec![progress(1)], vec![]));
        assert_eq!(std::fs::read(folder.path().join("metrics.damaged")).unwrap(), b"{nonsense\n");
    }

    #[test]
    fn numbers_that_are_not_finite_are_rejected_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = Run::open(folder.path()).unwrap();
        let values = [("loss.policy".to_owned(), f64::NAN)].into();
        let record = Record::Progress(Progress { values, ..Progress::default() });
        let error = run.append_metric(&record).unwrap_err().to_string();
        assert!(error.ends_with("loss.policy is NaN: expected a finite number"), "{error}");
        assert!(run.metrics().unwrap().0.is_empty());
    }
}
