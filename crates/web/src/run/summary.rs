//! The summary of a run: a row of the table of runs.

use selfmate_run::{Rating, Record, RunError, RunReader, RunTotals};
use serde::Serialize;
use utoipa::ToSchema;

use crate::learner::{SearchKind, search_kind};
use crate::training_process::TrainingState;

/// A run with a record within this time is probably being trained by another process.
const RECENT_S: f64 = 120.0;
/// Points of the sparkline.
const SPARK: usize = 60;

/// Summary of a run.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct RunSummary {
    /// Name of the run.
    pub name: String,
    /// From the config.
    pub learner: Option<String>,
    /// From the config.
    pub seed: Option<u64>,
    /// Whether the run is being trained.
    pub state: RunState,
    /// Why the training ended or failed.
    pub reason: Option<String>,
    /// Seconds since the run was created.
    pub age_s: Option<f64>,
    /// Seconds since the last record.
    pub recorded_s: Option<f64>,
    /// Seconds of training, as last recorded.
    pub elapsed_s: f64,
    /// Seconds of training until now. While this server trains the run, this includes the time
    /// since the last record.
    pub trained_s: f64,
    /// The budget of the last session; `null` when unknown.
    pub budget: Option<BudgetView>,
    /// Threads of the last session; `null` when unknown.
    pub threads: Option<u64>,
    /// Finished generations.
    pub generation: u64,
    /// Games played.
    pub games: u64,
    /// Positions recorded.
    pub positions: u64,
    /// Simulations searched.
    pub simulations: u64,
    /// Training steps.
    pub steps: u64,
    /// True when `/api/inside` can show its search.
    pub searches_tree: bool,
    /// Steps of the checkpoints.
    pub checkpoints: Vec<u64>,
    /// The newest rating.
    pub rating: Option<RatingView>,
    /// Number of alarms.
    pub alarm_count: u64,
    /// A sparkline: Elo if there are at least two ratings, otherwise the loss.
    pub spark: Vec<f64>,
    /// The metric of the sparkline.
    pub spark_of: &'static str,
    /// Why the run cannot be read.
    pub error: Option<String>,
}

/// Whether a run is being trained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Trained by this server, which can stop it.
    Training,
    /// This server has asked the training to stop.
    Stopping,
    /// Probably trained by another process: there is a recent record.
    Elsewhere,
    /// Ended, or never started.
    #[default]
    Stopped,
}

/// When a training stops. Without any bound it runs until it is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct BudgetView {
    /// Minutes of training, including earlier sessions.
    pub minutes: Option<f64>,
    /// Games, including earlier sessions.
    pub games: Option<u64>,
    /// Training steps, including earlier sessions.
    pub steps: Option<u64>,
    /// True when a bound is reached; resuming then needs a larger one.
    pub is_spent: bool,
}

/// A rating with its error.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RatingView {
    /// Elo.
    pub elo: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
    /// Step of the rated checkpoint.
    pub step: u64,
}

impl From<&Rating> for RatingView {
    fn from(rating: &Rating) -> RatingView {
        RatingView { elo: rating.elo, low: rating.low, high: rating.high, step: rating.step }
    }
}

impl RunSummary {
    /// Summarises a run.
    pub fn new(
        run: &RunReader,
        records: &[Record],
        training: Option<&TrainingState>,
    ) -> Result<RunSummary, RunError> {
        let text = run.config()?.unwrap_or_default();
        let config = match text.parse::<toml::Table>() {
            Ok(config) => config,
            Err(error) => {
                let name = run.name();
                let error = format!("runs/{name}/run.toml: {}", error.message());
                return Ok(RunSummary::unreadable(&name, &error));
            }
        };
        let totals = RunTotals::new(run, records)?;
        let mut summary = RunSummary {
            name: run.name(),
            learner: config.get("learner").and_then(toml::Value::as_str).map(str::to_owned),
            seed: config
                .get("seed")
                .and_then(toml::Value::as_integer)
                .and_then(|seed| u64::try_from(seed).ok()),
            age_s: totals.age_s,
            recorded_s: totals.recorded_s,
            elapsed_s: totals.elapsed_s,
            generation: totals.progress.generation,
            games: totals.progress.games,
            positions: totals.progress.positions,
            simulations: totals.progress.simulations,
            steps: totals.progress.steps,
            threads: totals.threads,
            checkpoints: totals.checkpoints,
            rating: totals.ratings.last().map(RatingView::from),
            alarm_count: totals.alarms.len() as u64,
            reason: totals.ended,
            ..RunSummary::default()
        };
        summary.searches_tree =
            summary.learner.as_deref().is_some_and(|name| search_kind(name) != SearchKind::NoTree);
        summary.budget = totals.budget.map(|budget| BudgetView {
            minutes: budget.minutes,
            games: budget.games,
            steps: budget.steps,
            is_spent: budget.is_spent(summary.elapsed_s, summary.games, summary.steps),
        });
        if totals.ratings.len() >= 2 {
            summary.spark = thin(totals.ratings.iter().map(|rating| rating.elo).collect());
            summary.spark_of = "elo";
        } else {
            let loss = records.iter().filter_map(|record| match record {
                Record::Progress(progress) => progress.values.get("loss.value").copied(),
                _ => None,
            });
            summary.spark = thin(loss.collect());
            summary.spark_of = "loss.value";
        }
        summary.set_state(training);
        Ok(summary)
    }

    /// The summary of a run that cannot be read.
    pub fn unreadable(name: &str, error: &str) -> RunSummary {
        RunSummary { name: name.to_owned(), error: Some(error.to_owned()), ..RunSummary::default() }
    }

    /// The summary of a run whose folder does not exist yet.
    pub fn starting(name: &str, training: Option<&TrainingState>) -> RunSummary {
        let mut summary = RunSummary { name: name.to_owned(), ..RunSummary::default() };
        summary.set_state(training);
        summary
    }

    fn set_state(&mut self, training: Option<&TrainingState>) {
        match training {
            Some(TrainingState::Running(_)) => self.state = RunState::Training,
            Some(TrainingState::Stopping(_)) => self.state = RunState::Stopping,
            // Newer than the reason recorded by the last session.
            Some(TrainingState::Failed(reason)) => self.reason = Some(reason.clone()),
            Some(TrainingState::Ended) | None => {
                let recent = self.recorded_s.is_some_and(|seconds| seconds < RECENT_S);
                if recent && self.reason.is_none() && training.is_none() {
                    self.state = RunState::Elsewhere;
                }
            }
        }
        self.trained_s = self.elapsed_s;
        if let Some(TrainingState::Running(begun) | TrainingState::Stopping(begun)) = training
            && self.reason.is_none()
        {
            // The last record may be from an earlier session.
            let session_s = begun.elapsed().as_secs_f64();
            self.trained_s += self.recorded_s.unwrap_or_default().min(session_s);
        }
    }
}

/// At most [`SPARK`] evenly chosen points, including the last.
fn thin(values: Vec<f64>) -> Vec<f64> {
    if values.len() <= SPARK {
        return values;
    }
    let last = values.len() - 1;
    (0..SPARK).map(|index| values[index * last / (SPARK - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thinned_curve_keeps_its_ends() {
        let thinned = thin((0..1000).map(f64::from).collect());
        assert_eq!((thinned.len(), thinned[0], thinned[SPARK - 1]), (SPARK, 0.0, 999.0));
        assert!(thinned.is_sorted());
        assert_eq!(thin(vec![1.0, 2.0]), [1.0, 2.0]);
    }

    #[test]
    fn training_time_advances_between_records() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = selfmate_run::Run::open(folder.path()).unwrap();
        run.write_config("learner = \"zero\"").unwrap();
        let start = Record::Start { version: "1".into(), seed: 1, threads: 1, budget: None };
        run.append_metric(&start).unwrap();
        let started = std::time::Instant::now();
        let running = TrainingState::Running(started);
        let summary =
            |records: &[Record], training| RunSummary::new(&run, records, training).unwrap();
        // Also in the first generation.
        let first = summary(std::slice::from_ref(&start), Some(&running));
        assert!(first.elapsed_s == 0.0 && first.trained_s > 0.0, "{first:?}");
        assert!(first.trained_s <= started.elapsed().as_secs_f64());
        // For an ended session the recorded time counts.
        let end = Record::End { elapsed_s: 24.0, reason: "stopped".to_owned() };
        assert_eq!(summary(&[start, end], None).trained_s, 24.0);
    }

    #[test]
    fn the_reason_of_a_failed_resume_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = selfmate_run::Run::open(folder.path()).unwrap();
        run.write_config("learner = \"zero\"").unwrap();
        let end = Record::End { elapsed_s: 1.0, reason: "the budget is spent".to_owned() };
        let failed = TrainingState::Failed("the disk is full".to_owned());
        let reason = |training| {
            RunSummary::new(&run, std::slice::from_ref(&end), training).unwrap().reason.unwrap()
        };
        assert_eq!(reason(None), "the budget is spent");
        assert_eq!(reason(Some(&failed)), "the disk is full");
    }
}
