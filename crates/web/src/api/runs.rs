//! Runs: what there is, how one goes; and starting, stopping, resuming trainings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use selfmate_run::{Alarm, Progress, Rating, Record};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::feed::FeedPlace;
use crate::app::App;
use crate::bridge::work;
use crate::child::Order;
use crate::error::{ApiError, Named, Posted, Problem};
use crate::run::{Metrics, RunSummary};

/// Points of a curve; of longer ones every second, third… is left out.
const POINTS: usize = 2000;

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
        app.trainings.start(&order)?;
        // Its folder is there in a moment.
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

/// How long a run is to go on.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Resume {
    /// Minutes of training in all.
    minutes: Option<f64>,
    /// Games in all.
    games: Option<u64>,
    /// Threads.
    threads: Option<u16>,
}

/// Lets a run go on.
#[utoipa::path(post, path = "/api/runs/{run}/resume", tag = "runs", params(("run" = String, Path)),
    request_body = Resume, responses((status = 202), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub async fn resume(
    State(app): State<Arc<App>>,
    Named(name): Named<String>,
    Posted(resume): Posted<Resume>,
) -> Result<StatusCode, ApiError> {
    work(&app, move |app| {
        let reader = app.runs.find(&name).map_err(|error| app.absent(&error))?;
        let config = reader.config().map_err(|error| app.fault(&error))?.unwrap_or_default();
        let config = config.parse::<toml::Table>().unwrap_or_default();
        let learner = config.get("learner").and_then(toml::Value::as_str).map(str::to_owned);
        let Resume { minutes, games, threads } = resume;
        app.trainings.start(&Order {
            name,
            learner,
            minutes,
            games,
            threads,
            ..Order::default()
        })?;
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
