//! What a run has recorded so far, added up: totals, ratings, alarms and how its last session ended.
//! Commands and pages show it; the config is not read here.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::{Alarm, Budget, Progress, Rating, Record, RunError, RunReader};

/// The totals and events of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunTotals {
    /// Seconds since the run was created.
    pub age_s: Option<f64>,
    /// Seconds since the last record.
    pub recorded_s: Option<f64>,
    /// Seconds of training.
    pub elapsed_s: f64,
    /// The newest progress; its values include those of all records of the same generation, because
    /// the end of a training may add to its last generation.
    pub progress: Progress,
    /// The steps of the checkpoints.
    pub checkpoints: Vec<u64>,
    pub ratings: Vec<Rating>,
    pub alarms: Vec<Alarm>,
    /// Notes of resumed sessions.
    pub notes: Vec<String>,
    /// Of the last session, if known.
    pub threads: Option<u64>,
    /// Of the last session, if known.
    pub budget: Option<Budget>,
    /// Why the training ended; `None` while it runs, and after a kill.
    pub ended: Option<String>,
}

impl RunTotals {
    /// Adds up the records of a run.
    pub fn new(run: &RunReader, records: &[Record]) -> Result<RunTotals, RunError> {
        let mut totals = RunTotals {
            age_s: run.begun().map(seconds_since),
            recorded_s: run.recorded().map(seconds_since),
            checkpoints: run.steps()?,
            ..RunTotals::default()
        };
        for record in records {
            totals.elapsed_s = totals.elapsed_s.max(record.elapsed_s().unwrap_or_default());
            totals.ended = None;
            match record {
                Record::Start { threads, budget, .. } => {
                    (totals.threads, totals.budget) = (Some(*threads), *budget);
                }
                Record::Resume { threads, budget, notes, .. } => {
                    (totals.threads, totals.budget) = (*threads, *budget);
                    totals.notes.extend(notes.iter().cloned());
                }
                Record::Progress(newer) => totals.progress = newer.clone(),
                Record::Rating(rating) => totals.ratings.push(rating.clone()),
                Record::Alarm(alarm) => totals.alarms.push(alarm.clone()),
                Record::End { reason, .. } => totals.ended = Some(reason.clone()),
            }
        }
        totals.progress.values = values_of(totals.progress.generation, records);
        // A training that ended inside a generation has made steps that no record counts yet.
        let saved = totals.checkpoints.last().copied().unwrap_or_default();
        totals.progress.steps = totals.progress.steps.max(saved);
        Ok(totals)
    }
}

/// The values of all records of a generation; of each name the newest.
fn values_of(generation: u64, records: &[Record]) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    for record in records {
        if let Record::Progress(progress) = record
            && progress.generation == generation
        {
            values.extend(progress.values.clone());
        }
    }
    values
}

fn seconds_since(then: SystemTime) -> f64 {
    // A file from the future has age 0.
    SystemTime::now().duration_since(then).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;

    #[test]
    fn records_are_added_up_and_the_last_generation_keeps_all_its_values() {
        let folder = tempfile::tempdir().unwrap();
        let run = Run::open(folder.path()).unwrap();
        let progress = |generation, elapsed_s, name: &str| {
            let values = [(name.to_owned(), elapsed_s)].into();
            Record::Progress(Progress { generation, elapsed_s, values, ..Progress::default() })
        };
        let end = |elapsed_s| Record::End { elapsed_s, reason: "stopped".to_owned() };
        let budget = Some(Budget { games: Some(9), ..Budget::default() });
        let records = [
            Record::Start { version: "1".into(), seed: 1, threads: 2, budget },
            progress(1, 10.0, "old"),
            end(11.0),
            progress(2, 20.0, "loss.value"),
            progress(2, 22.0, "evaluation.score"),
        ];
        let totals = RunTotals::new(&run, &records).unwrap();
        assert_eq!((totals.elapsed_s, totals.progress.generation), (22.0, 2));
        assert_eq!((totals.threads, totals.budget, totals.ended), (Some(2), budget, None));
        let names: Vec<&String> = totals.progress.values.keys().collect();
        assert_eq!(names, ["evaluation.score", "loss.value"]);
        let ended = RunTotals::new(&run, &[records.as_slice(), &[end(30.0)]].concat()).unwrap();
        assert_eq!((ended.elapsed_s, ended.ended.as_deref()), (30.0, Some("stopped")));
    }
}
