//! What a run comes to, in a row of a table.

use std::time::SystemTime;

use selfmate_run::{Budget, Progress, Rating, Record, RunError, RunReader};
use serde::Serialize;
use utoipa::ToSchema;

use crate::learner::{Thinking, thinking};
use crate::training_process::TrainingState;

/// A run that was written to within so many seconds is probably being trained by somebody.
const RECENT_S: f64 = 120.0;
/// Points of the small picture of a run.
const SPARK: usize = 60;

/// A run in short.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct RunSummary {
    /// Its name.
    pub name: String,
    /// From its config.
    pub learner: Option<String>,
    /// From its config.
    pub seed: Option<u64>,
    /// Whether it is being trained.
    pub state: RunState,
    /// Why its training ended, or failed.
    pub reason: Option<String>,
    /// Seconds since it was begun.
    pub age_s: Option<f64>,
    /// Seconds since something was last recorded.
    pub recorded_s: Option<f64>,
    /// Seconds of training, as last recorded.
    pub elapsed_s: f64,
    /// Seconds of training until now: while this server trains the run, the time since the last
    /// record is counted too.
    pub trained_s: f64,
    /// When its last session was to stop; `null` when that is not known.
    pub budget: Option<BudgetView>,
    /// Threads of its last session; `null` when that is not known.
    pub threads: Option<u64>,
    /// Generations finished.
    pub generation: u64,
    /// Games played.
    pub games: u64,
    /// Positions recorded.
    pub positions: u64,
    /// Simulations searched.
    pub simulations: u64,
    /// Batches learned from.
    pub steps: u64,
    /// Whether `/api/inside` can show how it searches.
    pub searches_tree: bool,
    /// The steps of its checkpoints.
    pub checkpoints: Vec<u64>,
    /// The newest rating.
    pub rating: Option<RatingView>,
    /// Alarms so far.
    pub alarm_count: u64,
    /// A small curve: Elo once there are two ratings, else the loss.
    pub spark: Vec<f64>,
    /// What the small curve shows.
    pub spark_of: &'static str,
    /// Why it cannot be read.
    pub error: Option<String>,
}

/// Whether a run is being trained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// By this server, which can stop it.
    Training,
    /// This server has asked it to stop.
    Stopping,
    /// By another process, as far as one can see: something was recorded lately.
    RemoteGames,
    /// It ended, or was never begun.
    #[default]
    Stopped,
}

/// When a training stops. Without any bound it goes on until it is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub struct BudgetView {
    /// Minutes of training, earlier sessions included.
    pub minutes: Option<f64>,
    /// Games, earlier sessions included.
    pub games: Option<u64>,
    /// Batches learned from, earlier sessions included.
    pub steps: Option<u64>,
    /// A bound is reached: a resume has to say how much more.
    pub is_spent: bool,
}

/// A rating with its error.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RatingView {
    /// Elo.
    pub elo: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The step that was rated.
    pub step: u64,
}

impl From<&Rating> for RatingView {
    fn from(rating: &Rating) -> RatingView {
        RatingView { elo: rating.elo, low: rating.low, high: rating.high, step: rating.step }
    }
}

impl RunSummary {
    /// Adds up a run.
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
        let mut summary = RunSummary {
            name: run.name(),
            learner: config.get("learner").and_then(toml::Value::as_str).map(str::to_owned),
            seed: config
                .get("seed")
                .and_then(toml::Value::as_integer)
                .and_then(|seed| u64::try_from(seed).ok()),
            age_s: run.begun().map(seconds_since),
            recorded_s: run.recorded().map(seconds_since),
            checkpoints: run.steps()?,
            ..RunSummary::default()
        };
        summary.searches_tree =
            summary.learner.as_deref().is_some_and(|name| thinking(name) != Thinking::NoTree);
        let mut session: (Option<u64>, Option<Budget>) = (None, None);
        let mut progress = &Progress::default();
        let mut ratings: Vec<&Rating> = Vec::new();
        for record in records {
            let seconds = record.elapsed_s().unwrap_or_default();
            summary.elapsed_s = summary.elapsed_s.max(seconds);
            summary.reason = None;
            match record {
                Record::Start { threads, budget, .. } => session = (Some(*threads), *budget),
                Record::Resume { threads, budget, .. } => session = (*threads, *budget),
                Record::Progress(newer) => progress = newer,
                Record::Rating(rating) => ratings.push(rating),
                Record::Alarm(_) => summary.alarm_count += 1,
                Record::End { reason, .. } => summary.reason = Some(reason.clone()),
            }
        }
        summary.generation = progress.generation;
        summary.games = progress.games;
        summary.positions = progress.positions;
        summary.simulations = progress.simulations;
        summary.steps = progress.steps;
        let (threads, budget) = session;
        summary.threads = threads;
        summary.budget = budget.map(|budget| BudgetView {
            minutes: budget.minutes,
            games: budget.games,
            steps: budget.steps,
            is_spent: budget.is_spent(summary.elapsed_s, summary.games, summary.steps),
        });
        summary.rating = ratings.last().map(|rating| RatingView::from(*rating));
        if ratings.len() >= 2 {
            summary.spark = thin(ratings.iter().map(|rating| rating.elo).collect());
            summary.spark_of = "elo";
        } else {
            let loss = records.iter().filter_map(|record| match record {
                Record::Progress(progress) => progress.values.get("loss.value").copied(),
                _ => None,
            });
            summary.spark = thin(loss.collect());
            summary.spark_of = "loss.value";
        }
        summary.judge_state(training);
        Ok(summary)
    }

    /// A run that cannot be read, with the reason.
    pub fn unreadable(name: &str, error: &str) -> RunSummary {
        RunSummary { name: name.to_owned(), error: Some(error.to_owned()), ..RunSummary::default() }
    }

    /// A run whose training has not made its folder yet, or never will.
    pub fn starting(name: &str, training: Option<&TrainingState>) -> RunSummary {
        let mut summary = RunSummary { name: name.to_owned(), ..RunSummary::default() };
        summary.judge_state(training);
        summary
    }

    fn judge_state(&mut self, training: Option<&TrainingState>) {
        match training {
            Some(TrainingState::Running(_)) => self.state = RunState::Training,
            Some(TrainingState::Stopping(_)) => self.state = RunState::Stopping,
            // Newer than what the run's last session had to say.
            Some(TrainingState::Failed(reason)) => self.reason = Some(reason.clone()),
            Some(TrainingState::Ended) | None => {
                let recent = self.recorded_s.is_some_and(|seconds| seconds < RECENT_S);
                if recent && self.reason.is_none() && training.is_none() {
                    self.state = RunState::RemoteGames;
                }
            }
        }
        self.trained_s = self.elapsed_s;
        if let Some(TrainingState::Running(begun) | TrainingState::Stopping(begun)) = training
            && self.reason.is_none()
        {
            // What was last recorded may be from an earlier session.
            let session_s = begun.elapsed().as_secs_f64();
            self.trained_s += self.recorded_s.unwrap_or_default().min(session_s);
        }
    }
}

/// At most [`SPARK`] points, evenly chosen, the last among them.
fn thin(values: Vec<f64>) -> Vec<f64> {
    if values.len() <= SPARK {
        return values;
    }
    let last = values.len() - 1;
    (0..SPARK).map(|index| values[index * last / (SPARK - 1)]).collect()
}

fn seconds_since(then: SystemTime) -> f64 {
    // A file from the future has no age.
    SystemTime::now().duration_since(then).unwrap_or_default().as_secs_f64()
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
    fn training_time_goes_on_between_records() {
        let folder = tempfile::tempdir().unwrap();
        let mut run = selfmate_run::Run::open(folder.path()).unwrap();
        run.write_config("learner = \"zero\"").unwrap();
        let start = Record::Start { version: "1".into(), seed: 1, threads: 1, budget: None };
        run.append_metric(&start).unwrap();
        let begun = std::time::Instant::now();
        let running = TrainingState::Running(begun);
        let summary =
            |records: &[Record], training| RunSummary::new(&run, records, training).unwrap();
        // In the first generation, too.
        let first = summary(std::slice::from_ref(&start), Some(&running));
        assert!(first.elapsed_s == 0.0 && first.trained_s > 0.0, "{first:?}");
        assert!(first.trained_s <= begun.elapsed().as_secs_f64());
        // A session that has ended counts as recorded.
        let end = Record::End { elapsed_s: 24.0, reason: "stopped".to_owned() };
        assert_eq!(summary(&[start, end], None).trained_s, 24.0);
    }

    #[test]
    fn a_resume_that_fails_says_why() {
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
