//! Live updates of a run: new metrics records as server-sent events.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, StreamExt, stream};
use selfmate_run::Record;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::blocking::run_blocking;
use crate::error::{ApiError, PathParams, Problem, QueryParams};
use crate::run::Metrics;

/// How often a feed looks for new records.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Records sent at a time; no more are sent until the reader has taken them.
const BATCH: usize = 500;

/// Where a feed starts.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct FeedFrom {
    /// What the client already has: a number of records, or better the id of an event or the
    /// `place` of the curves, which also identify the records. Everything is sent by default.
    #[serde(default)]
    #[param(pattern = r"^[0-9]{1,18}(-[0-9a-f]{1,16})?$")]
    after: Option<String>,
}

/// How many records a client has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedPlace {
    sent: usize,
    /// Identifies the sent records; `None` when the client did not give it.
    mark: Option<u64>,
}

impl FeedPlace {
    /// The place after all current records.
    pub fn end_of(metrics: &Metrics) -> FeedPlace {
        let sent = metrics.records.len();
        FeedPlace { sent, mark: metrics.mark(sent) }
    }

    fn parse(text: &str) -> Option<FeedPlace> {
        let (sent, mark) = match text.split_once('-') {
            Some((sent, mark)) => (sent, Some(u64::from_str_radix(mark, 16).ok()?)),
            None => (text, None),
        };
        Some(FeedPlace { sent: sent.parse().ok()?, mark })
    }

    /// The next records, at most `most`, and whether the client must discard what it has. Advances
    /// the place.
    fn advance<'a>(&mut self, metrics: &'a Metrics, most: usize) -> (bool, &'a [Record]) {
        let mark = metrics.mark(self.sent);
        let restarts = mark.is_none() || self.mark.is_some_and(|known| Some(known) != mark);
        if restarts {
            self.sent = 0;
        }
        let records = &metrics.records[self.sent..];
        let records = &records[..records.len().min(most)];
        self.sent += records.len();
        self.mark = metrics.mark(self.sent);
        (restarts, records)
    }
}

impl fmt::Display for FeedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.sent)?;
        self.mark.map_or(Ok(()), |mark| write!(f, "-{mark:016x}"))
    }
}

/// An event of a feed, only for the API description.
#[derive(ToSchema)]
#[allow(dead_code, reason = "only described")]
pub struct FeedEvent {
    /// `record` or `restart`.
    event: String,
    /// The place after this record, from which a feed can continue.
    id: Option<String>,
    /// A line of metrics.jsonl.
    data: String,
}

/// New records of a run's metrics as server-sent events: `record` with a line of metrics.jsonl,
/// `restart` when earlier records are no longer valid.
#[utoipa::path(get, path = "/api/runs/{run}/feed", tag = "runs", params(("run" = String, Path), FeedFrom),
    responses((status = 200, body = FeedEvent, content_type = "text/event-stream"), (status = 404, body = Problem)))]
pub async fn feed(
    State(app): State<Arc<App>>,
    PathParams(name): PathParams<String>,
    QueryParams(from): QueryParams<FeedFrom>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let busy = || ApiError::Busy("too many streams are open".into());
    let place = Arc::clone(&app.streams).try_acquire_owned().map_err(|_| busy())?;
    {
        let name = name.clone();
        run_blocking(&app, move |app| app.runs.metrics(&name).map_err(|error| app.absent(&error)))
            .await?;
    }
    // A reconnecting browser sends the id of its last event.
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let from = last.or(from.after.as_deref()).unwrap_or("0");
    let from = FeedPlace::parse(from).ok_or_else(|| {
        ApiError::Malformed(format!("after '{from}': expected a number, or the id of an event"))
    })?;
    let state = Feed { app, name, from, _place: place };
    let events = stream::unfold(state, |mut feed| async {
        let events = feed.next().await?;
        Some((stream::iter(events.into_iter().map(Ok)), feed))
    });
    Ok(Sse::new(events.flatten()).keep_alive(KeepAlive::default()))
}

/// One client. Nothing is read or kept while it does not read.
struct Feed {
    app: Arc<App>,
    name: String,
    from: FeedPlace,
    _place: tokio::sync::OwnedSemaphorePermit,
}

impl Feed {
    /// Waits for new records; `None` when the run no longer exists.
    async fn next(&mut self) -> Option<Vec<Event>> {
        loop {
            let name = self.name.clone();
            let read = run_blocking(&self.app, move |app| {
                app.runs.metrics(&name).map_err(|error| app.fault(&error))
            });
            let metrics = read.await.ok()?;
            let mut events = Vec::new();
            // One at a time, because each event carries the id of its place.
            for _ in 0..BATCH {
                let (restarts, records) = self.from.advance(&metrics, 1);
                if restarts {
                    // Browsers ignore events without data.
                    events.push(Event::default().event("restart").data("-"));
                }
                let [record] = records else { break };
                let event = Event::default().event("record").id(self.from.to_string());
                events.extend(event.json_data(record).ok());
            }
            if !events.is_empty() {
                return Some(events);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use selfmate_run::Progress;

    use super::*;

    fn metrics(generations: impl IntoIterator<Item = u64>) -> Metrics {
        let progress =
            |generation| Record::Progress(Progress { generation, ..Progress::default() });
        let mut metrics = Metrics::default();
        metrics.extend(generations.into_iter().map(progress).collect());
        metrics
    }

    #[test]
    fn places_round_trip() {
        let place = FeedPlace::end_of(&metrics(1..=3));
        assert_eq!(FeedPlace::parse(&place.to_string()), Some(place));
        assert_eq!(FeedPlace::parse("7"), Some(FeedPlace { sent: 7, mark: None }));
        for nonsense in ["", "-", "x", "1-", "1-x", "-1", "1-2-3"] {
            assert_eq!(FeedPlace::parse(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_client_with_another_history_starts_over() {
        let before = FeedPlace::end_of(&metrics(1..=3));
        let mut same = before;
        let grown = metrics(1..=5);
        assert_eq!(same.advance(&grown, 9), (false, &grown.records[3..]));
        // The run was resumed from its second record.
        let other = metrics([1, 2, 7, 8, 9]);
        let mut changed = before;
        assert_eq!(changed.advance(&other, 9), (true, &other.records[..]));
        let shorter = metrics(1..=2);
        let mut ahead = before;
        assert_eq!(ahead.advance(&shorter, 9), (true, &shorter.records[..]));
        assert_eq!(ahead.advance(&shorter, 9), (false, &[][..]));
    }

    #[test]
    fn a_long_run_is_sent_in_batches() {
        let long = metrics(1..=1200);
        let mut place = FeedPlace::default();
        let batches = std::iter::from_fn(|| {
            let (_, records) = place.advance(&long, BATCH);
            (!records.is_empty()).then_some(records.len())
        });
        assert_eq!(batches.collect::<Vec<_>>(), [500, 500, 200]);
    }
}
