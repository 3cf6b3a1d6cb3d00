//! Runs: what there is, how one goes; and starting, stopping, resuming trainings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use selfmate_run::{Alarm, Progress, Rating, Record};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::feed::FeedPlace;
use crate::app::App;
use crate::blocking::work;
use crate::error::{ApiError, Named, Posted, Problem, int64};
use crate::run::{Metrics, RunSummary};
use crate::training_process::{MAX_MINUTES, Order};

/// Points of a curve; of longer ones every second, third… is left out.
const POINTS: usize = 2000;

/// The longest that a training takes to make its folder.
const LONGEST_START: Duration = Duration::from_secs(10);

/// A run with all that is not a curve.
#[derive(Serialize, ToSchema)]
pub struct RunDetail {
    /// In short.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// Ratings in order, as in metrics.jsonl.
    #[schema(value_type = Vec<Object>)]
    pub ratings: Vec<Rating>,
    /// Alarms in order, as in metrics.jsonl.
    #[schema(value_type = Vec<Object>)]
    pub alarms: Vec<Alarm>,
    /// What resumes had to say.
    pub notes: Vec<String>,
    /// What is damaged and passed over, such as a checkpoint newer than the one that plays.
    pub warnings: Vec<String>,
    /// The config as run.toml has it.
    #[schema(value_type = Object)]
    pub config: serde_json::Value,
    /// The end of what the training said, when this server started it.
    pub said: Vec<String>,
}

/// The curves of a run, by column: as many numbers in each as in `elapsed_s`.
#[derive(Default, Serialize, ToSchema)]
pub struct Curves {
    /// Records so far.
    pub records: usize,
    /// Where a feed goes on.
    pub place: String,
    /// Seconds of training.
    pub elapsed_s: Vec<f64>,
    /// Generations.
    pub generation: Vec<u64>,
    /// Games so far.
    pub games: Vec<u64>,
    /// Positions so far.
    pub positions: Vec<u64>,
    /// Simulations so far.
    pub simulations: Vec<u64>,
    /// Batches so far.
    pub steps: Vec<u64>,
    /// The learner's own curves; `null` where it has no number.
    pub values: BTreeMap<String, Vec<Option<f64>>>,
}

impl Curves {
    fn new(metrics: &Metrics) -> Curves {
        let all: Vec<&Progress> = metrics
            .records
            .iter()
            .filter_map(|record| match record {
                Record::Progress(progress) => Some(progress),
                _ => None,
            })
            .collect();
        let stride = all.len().div_ceil(POINTS).max(1);
        // Counted from the end, so that the newest is always there.
        let kept: Vec<&Progress> = all.iter().rev().step_by(stride).rev().copied().collect();
        let names: BTreeSet<&String> =
            kept.iter().flat_map(|progress| progress.values.keys()).collect();
        Curves {
            records: metrics.records.len(),
            place: FeedPlace::end_of(metrics).to_string(),
            elapsed_s: kept.iter().map(|progress| progress.elapsed_s).collect(),
            generation: kept.iter().map(|progress| progress.generation).collect(),
            games: kept.iter().map(|progress| progress.games).collect(),
            positions: kept.iter().map(|progress| progress.positions).collect(),
            simulations: kept.iter().map(|progress| progress.simulations).collect(),
            steps: kept.iter().map(|progress| progress.steps).collect(),
            values: names
                .into_iter()
                .map(|name| {
                    let column = kept.iter().map(|progress| progress.values.get(name).copied());
                    (name.clone(), column.collect())
                })
                .collect(),
        }
    }
}

/// All runs.
#[utoipa::path(get, path = "/api/runs", tag = "runs", responses((status = 200, body = Vec<RunSummary>)))]
pub async fn list(State(app): State<Arc<App>>) -> Result<Json<Vec<RunSummary>>, ApiError> {
    work(&app, |app| Ok(Json(app.runs.summaries(&app.trainings)))).await
}

/// Starts a training.
#[utoipa::path(post, path = "/api/runs", tag = "runs", request_body = Order, responses(
    (status = 201, body = RunSummary), (status = 409, body = Problem), (status = 422, body = Problem),
    (status = 503, body = Problem)))]
pub async fn start(
    State(app): State<Arc<App>>,
    Posted(order): Posted<Order>,
) -> Result<(StatusCode, Json<RunSummary>), ApiError> {
    work(&app, move |app| {
        if app.runs.find(&order.name).is_ok() {
            let text = format!(
                "there is a run '{}' already: resume it, or choose another name",
                order.name
            );
            return Err(ApiError::Conflict(text));
        }
        order.check()?;
        order.check_settings()?;
        app.trainings.start(&order)?;
        // Whoever asks for the run now must find it.
        app.trainings.wait_for(&order.name, LONGEST_START, || app.runs.find(&order.name).is_ok());
        let state = app.trainings.state(&order.name);
        let summary = RunSummary::starting(&order.name, state.as_ref());
        Ok((StatusCode::CREATED, Json(summary)))
    })
    .await
}

/// One run.
#[utoipa::path(get, path = "/api/runs/{run}", tag = "runs", params(("run" = String, Path)),
    responses((status = 200, body = RunDetail), (status = 404, body = Problem)))]
pub async fn show(
    State(app): State<Arc<App>>,
    Named(name): Named<String>,
) -> Result<Json<RunDetail>, ApiError> {
    work(&app, move |app| {
        let said = app.trainings.said(&name);
        let reader = match app.runs.find(&name) {
            Ok(reader) => reader,
            // A training that failed before there was a folder still says why.
            Err(_) if app.trainings.state(&name).is_some() => {
                let summary = RunSummary::starting(&name, app.trainings.state(&name).as_ref());
                return Ok(Json(RunDetail {
                    summary,
                    ratings: Vec::new(),
                    alarms: Vec::new(),
                    notes: Vec::new(),
                    warnings: Vec::new(),
                    config: serde_json::Value::Null,
                    said,
                }));
            }
            Err(error) => return Err(app.absent(&error)),
        };
        let metrics = app.runs.metrics(&name).map_err(|error| app.fault(&error))?;
        let mut detail = RunDetail {
            summary: app.runs.summary(&name, &app.trainings),
            ratings: Vec::new(),
            alarms: Vec::new(),
            notes: Vec::new(),
            warnings: app.runs.warnings(&name),
            config: serde_json::Value::Null,
            said,
        };
        let text = reader.config().map_err(|error| app.fault(&error))?.unwrap_or_default();
        if let Ok(config) = text.parse::<toml::Table>() {
            detail.config = serde_json::to_value(config).unwrap_or_default();
        }
        for record in &*metrics.records {
            match record {
                Record::Rating(rating) => detail.ratings.push(rating.clone()),
                Record::Alarm(alarm) => detail.alarms.push(alarm.clone()),
                Record::Resume { notes, .. } => detail.notes.extend(notes.iter().cloned()),
                Record::Start { .. } | Record::Progress(_) | Record::End { .. } => {}
            }
        }
        Ok(Json(detail))
    })
    .await
}

/// The curves of a run.
#[utoipa::path(get, path = "/api/runs/{run}/curves", tag = "runs", params(("run" = String, Path)),
    responses((status = 200, body = Curves), (status = 404, body = Problem)))]
pub async fn curves(
    State(app): State<Arc<App>>,
    Named(name): Named<String>,
) -> Result<Json<Curves>, ApiError> {
    work(&app, move |app| {
        app.runs.find(&name).map_err(|error| app.absent(&error))?;
        let metrics = app.runs.metrics(&name).map_err(|error| app.fault(&error))?;
        Ok(Json(Curves::new(&metrics)))
    })
    .await
}

/// How long a run is to go on: without any bound, until the budget of its last session is spent.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Resume {
    /// Minutes of training in all, earlier sessions included.
    #[schema(exclusive_minimum = 0, maximum = 1_000_000)]
    minutes: Option<f64>,
    /// Minutes of training on top of those that are done; not beside `minutes`.
    #[schema(exclusive_minimum = 0, maximum = 1_000_000)]
    more_minutes: Option<f64>,
    /// Games in all, earlier sessions included.
    #[serde(deserialize_with = "int64")]
    games: Option<u64>,
    /// Threads; those of the last session when it is left out.
    #[schema(minimum = 1, maximum = 1024)]
    threads: Option<u16>,
}

impl Resume {
    /// The order for a run that stands so.
    fn order(self, run: &RunSummary) -> Result<Order, ApiError> {
        let bad = |text: String| Err(ApiError::Bad(text));
        let Resume { minutes, more_minutes, games, threads } = self;
        let trained = run.elapsed_s / 60.0;
        let minutes = match (minutes, more_minutes) {
            (Some(_), Some(_)) => return bad("minutes, more_minutes: expected one of them".into()),
            (_, Some(more)) if !(more > 0.0 && more <= MAX_MINUTES) => {
                return Err(ApiError::Malformed(format!(
                    "more_minutes is {more}: expected a number above 0, at most {MAX_MINUTES}"
                )));
            }
            (minutes, more) => minutes.or(more.map(|more| (trained + more).min(MAX_MINUTES))),
        };
        if let Some(minutes) = minutes.filter(|minutes| *minutes <= trained) {
            return bad(format!(
                "minutes is {minutes}: expected more than the {trained:.1} that the run has \
                 trained, or more_minutes"
            ));
        }
        if let Some(games) = games.filter(|games| *games <= run.games) {
            let done = run.games;
            return bad(format!("games is {games}: expected more than the {done} already played"));
        }
        let mut order = Order {
            name: run.name.clone(),
            learner: run.learner.clone(),
            minutes,
            games,
            // A machine with fewer cores than the last one still goes on.
            threads: threads.or(run.threads.map(at_most_the_cores)),
            ..Order::default()
        };
        if let Some(budget) = &run.budget {
            let asks_nothing = minutes.is_none() && games.is_none();
            if asks_nothing && budget.is_spent {
                let text = "the budget of this run is spent: say with more_minutes how long it is \
                    to go on";
                return bad(text.into());
            }
            // Bounds that were not reached stay.
            if asks_nothing {
                order.minutes = budget.minutes;
            }
            order.games = games.or(budget.games.filter(|most| *most > run.games));
            order.steps = budget.steps.filter(|most| *most > run.steps);
        }
        Ok(order)
    }
}

fn at_most_the_cores(threads: u64) -> u16 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    u16::try_from(threads.clamp(1, cores as u64)).unwrap_or(u16::MAX)
}

/// Lets a run go on.
#[utoipa::path(post, path = "/api/runs/{run}/resume", tag = "runs", params(("run" = String, Path)),
    request_body = Resume, responses((status = 202), (status = 404, body = Problem), (status = 409, body = Problem),
    (status = 422, body = Problem), (status = 503, body = Problem)))]
pub async fn resume(
    State(app): State<Arc<App>>,
    Named(name): Named<String>,
    Posted(resume): Posted<Resume>,
) -> Result<StatusCode, ApiError> {
    work(&app, move |app| {
        app.runs.find(&name).map_err(|error| app.absent(&error))?;
        let run = app.runs.summary(&name, &app.trainings);
        if let Some(error) = run.error {
            return Err(ApiError::Conflict(error));
        }
        app.trainings.start(&resume.order(&run)?)?;
        Ok(StatusCode::ACCEPTED)
    })
    .await
}

/// Stops a training that this server started. It writes a checkpoint first.
#[utoipa::path(post, path = "/api/runs/{run}/stop", tag = "runs", params(("run" = String, Path)),
    responses((status = 202), (status = 409, body = Problem)))]
pub async fn stop(
    State(app): State<Arc<App>>,
    Named(name): Named<String>,
) -> Result<StatusCode, ApiError> {
    work(&app, move |app| app.trainings.stop(&name).map(|()| StatusCode::ACCEPTED)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(count: u64) -> Metrics {
        let progress = |generation| {
            let values = if generation % 2 == 0 {
                [("even".to_owned(), generation as f64)].into()
            } else {
                BTreeMap::new()
            };
            Record::Progress(Progress { generation, values, ..Progress::default() })
        };
        let mut metrics = Metrics::default();
        metrics.extend((1..=count).map(progress).collect());
        metrics
    }

    #[test]
    fn columns_have_the_same_length_and_gaps_are_told() {
        let curves = Curves::new(&metrics(3));
        assert_eq!(curves.records, 3);
        assert_eq!(curves.generation, [1, 2, 3]);
        assert_eq!(curves.values["even"], [None, Some(2.0), None]);
    }

    #[test]
    fn long_curves_are_thinned_and_keep_the_newest() {
        let curves = Curves::new(&metrics(9001));
        assert!(curves.generation.len() <= POINTS);
        assert_eq!(curves.generation.last(), Some(&9001));
        assert!(curves.generation.is_sorted());
    }
}
