//! Runs: lists and details, and starting, stopping and resuming trainings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use selfmate_run::{Alarm, Progress, Rating, Record, RunTotals};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::feed::FeedPlace;
use crate::app::App;
use crate::blocking::run_blocking;
use crate::error::{ApiError, JsonBody, PathParams, Problem, int64};
use crate::learner::{self, Chart};
use crate::run::{Metrics, RunSummary};
use crate::training_process::{MAX_MINUTES, Order};
use crate::view::MistakesView;

/// The maximum number of points of a curve; longer curves are thinned.
const POINTS: usize = 2000;

/// The maximum wait for a training to create its folder.
const LONGEST_START: Duration = Duration::from_secs(10);

/// A run with everything except its curves.
#[derive(Serialize, ToSchema)]
pub struct RunDetail {
    /// Summary of the run.
    #[serde(flatten)]
    pub summary: RunSummary,
    /// Ratings in order, as in metrics.jsonl.
    #[schema(value_type = Vec<Object>)]
    pub ratings: Vec<Rating>,
    /// Alarms in order, as in metrics.jsonl.
    #[schema(value_type = Vec<Object>)]
    pub alarms: Vec<Alarm>,
    /// The charts of its learner: titles, hints, units, and the metrics that they draw.
    #[schema(value_type = Vec<Object>)]
    pub charts: &'static [Chart],
    /// Notes of resumed sessions.
    pub notes: Vec<String>,
    /// Damaged files that were skipped, such as a checkpoint newer than the one that plays.
    pub warnings: Vec<String>,
    /// The config from run.toml.
    #[schema(value_type = Object)]
    pub config: serde_json::Value,
    /// The last lines that the training printed, if this server started it.
    pub said: Vec<String>,
    /// The moves that lost games; `null` for learners that do not count them.
    pub mistakes: Option<MistakesView>,
}

/// The curves of a run as columns. Each column has as many numbers as `elapsed_s`.
#[derive(Default, Serialize, ToSchema)]
pub struct Curves {
    /// Records in metrics.jsonl.
    pub records: usize,
    /// The place from which a feed continues.
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
    /// The learner's own metrics; `null` where a record has no value.
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
        // Counted from the end, so that the newest point is kept.
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
    run_blocking(&app, |app| Ok(Json(app.runs.summaries(&app.trainings)))).await
}

/// Starts a training.
#[utoipa::path(post, path = "/api/runs", tag = "runs", request_body = Order, responses(
    (status = 201, body = RunSummary), (status = 409, body = Problem), (status = 422, body = Problem),
    (status = 503, body = Problem)))]
pub async fn start(
    State(app): State<Arc<App>>,
    JsonBody(order): JsonBody<Order>,
) -> Result<(StatusCode, Json<RunSummary>), ApiError> {
    run_blocking(&app, move |app| {
        if app.runs.find(&order.name).is_ok() {
            let text = format!(
                "the run '{}' already exists: resume it, or choose another name",
                order.name
            );
            return Err(ApiError::Conflict(text));
        }
        order.check()?;
        order.check_settings()?;
        app.trainings.start(&order)?;
        // The next request must find the run.
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
    PathParams(name): PathParams<String>,
) -> Result<Json<RunDetail>, ApiError> {
    run_blocking(&app, move |app| {
        let said = app.trainings.output(&name);
        let reader = match app.runs.find(&name) {
            Ok(reader) => reader,
            // A training that failed before its folder existed still reports why.
            Err(_) if app.trainings.state(&name).is_some() => {
                let summary = RunSummary::starting(&name, app.trainings.state(&name).as_ref());
                return Ok(Json(RunDetail {
                    summary,
                    ratings: Vec::new(),
                    alarms: Vec::new(),
                    charts: &[],
                    notes: Vec::new(),
                    warnings: Vec::new(),
                    config: serde_json::Value::Null,
                    said,
                    mistakes: None,
                }));
            }
            Err(error) => return Err(app.absent(&error)),
        };
        let metrics = app.runs.metrics(&name).map_err(|error| app.fault(&error))?;
        let totals =
            RunTotals::new(&reader, &metrics.records).map_err(|error| app.fault(&error))?;
        let summary = app.runs.summary(&name, &app.trainings);
        let mut detail = RunDetail {
            charts: summary.learner.as_deref().map_or(&[], learner::charts),
            summary,
            ratings: totals.ratings,
            alarms: totals.alarms,
            notes: totals.notes,
            warnings: app.runs.warnings(&name),
            config: serde_json::Value::Null,
            said,
            // A damaged checkpoint is among the warnings.
            mistakes: app.runs.mistakes(&name).unwrap_or_default(),
        };
        let text = reader.config().map_err(|error| app.fault(&error))?.unwrap_or_default();
        if let Ok(config) = text.parse::<toml::Table>() {
            detail.config = serde_json::to_value(config).unwrap_or_default();
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
    PathParams(name): PathParams<String>,
) -> Result<Json<Curves>, ApiError> {
    run_blocking(&app, move |app| {
        app.runs.find(&name).map_err(|error| app.absent(&error))?;
        let metrics = app.runs.metrics(&name).map_err(|error| app.fault(&error))?;
        Ok(Json(Curves::new(&metrics)))
    })
    .await
}

/// How long a run continues. Without any bound it uses up the budget of its last session.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Resume {
    /// Total minutes of training, including earlier sessions.
    #[schema(exclusive_minimum = 0, maximum = 1_000_000)]
    minutes: Option<f64>,
    /// Additional minutes of training; cannot be combined with `minutes`.
    #[schema(exclusive_minimum = 0, maximum = 1_000_000)]
    more_minutes: Option<f64>,
    /// Total games, including earlier sessions.
    #[serde(deserialize_with = "int64")]
    games: Option<u64>,
    /// Threads; those of the last session by default.
    #[schema(minimum = 1, maximum = 1024)]
    threads: Option<u16>,
}

impl Resume {
    /// The order that resumes this run.
    fn order(self, run: &RunSummary) -> Result<Order, ApiError> {
        let bad = |text: String| Err(ApiError::Bad(text));
        let Resume { minutes, more_minutes, games, threads } = self;
        let trained = run.elapsed_s / 60.0;
        let minutes = match (minutes, more_minutes) {
            (Some(_), Some(_)) => {
                return bad("minutes and more_minutes: expected only one of them".into());
            }
            (_, Some(more)) if !(more > 0.0 && more <= MAX_MINUTES) => {
                return Err(ApiError::Malformed(format!(
                    "more_minutes is {more}: expected a number above 0, at most {MAX_MINUTES}"
                )));
            }
            (minutes, more) => minutes.or(more.map(|more| (trained + more).min(MAX_MINUTES))),
        };
        if let Some(minutes) = minutes.filter(|minutes| *minutes <= trained) {
            return bad(format!(
                "minutes is {minutes}: expected more than the {trained:.1} that the run has already \
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
            // The machine may have fewer cores than the last one.
            threads: threads.or(run.threads.map(at_most_the_cores)),
            ..Order::default()
        };
        if let Some(budget) = &run.budget {
            let has_no_bound = minutes.is_none() && games.is_none();
            if has_no_bound && budget.is_spent {
                let text = "the budget of this run is used up: set more_minutes to continue it \
                    for longer";
                return bad(text.into());
            }
            // Bounds that are not reached yet still apply.
            if has_no_bound {
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

/// Resumes a run.
#[utoipa::path(post, path = "/api/runs/{run}/resume", tag = "runs", params(("run" = String, Path)),
    request_body = Resume, responses((status = 202), (status = 404, body = Problem), (status = 409, body = Problem),
    (status = 422, body = Problem), (status = 503, body = Problem)))]
pub async fn resume(
    State(app): State<Arc<App>>,
    PathParams(name): PathParams<String>,
    JsonBody(resume): JsonBody<Resume>,
) -> Result<StatusCode, ApiError> {
    run_blocking(&app, move |app| {
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
    PathParams(name): PathParams<String>,
) -> Result<StatusCode, ApiError> {
    run_blocking(&app, move |app| app.trainings.stop(&name).map(|()| StatusCode::ACCEPTED)).await
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
    fn columns_have_the_same_length_and_gaps_are_null() {
        let curves = Curves::new(&metrics(3));
        assert_eq!(curves.records, 3);
        assert_eq!(curves.generation, [1, 2, 3]);
        assert_eq!(curves.values["even"], [None, Some(2.0), None]);
    }

    #[test]
    fn long_curves_are_thinned_and_keep_the_newest_point() {
        let curves = Curves::new(&metrics(9001));
        assert!(curves.generation.len() <= POINTS);
        assert_eq!(curves.generation.last(), Some(&9001));
        assert!(curves.generation.is_sorted());
    }
}
