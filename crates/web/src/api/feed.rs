//! A run, live: what is added to its metrics, as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, StreamExt, stream};
use serde::Deserialize;

use crate::app::App;
use crate::bridge::work;
use crate::error::{ApiError, Asked, Named, Problem};

/// How often a feed looks for news.
const LOOK: Duration = Duration::from_millis(500);

/// Where a feed begins.
#[derive(Deserialize, utoipa::IntoParams)]
pub struct FeedFrom {
    /// Records that are known already; 0 when it is left out.
    #[serde(default)]
    after: usize,
}

/// What is added to a run's metrics, as server-sent events: `record` with a line of metrics.jsonl,
/// `restart` when what was told before no longer counts.
#[utoipa::path(get, path = "/api/runs/{run}/feed", tag = "runs", params(("run" = String, Path), FeedFrom),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 404, body = Problem)))]
pub async fn feed(
    State(app): State<Arc<App>>,
    Named(name): Named<String>,
    Asked(from): Asked<FeedFrom>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let busy = || ApiError::Busy("too many streams are open".into());
    let place = Arc::clone(&app.streams).try_acquire_owned().map_err(|_| busy())?;
    let first = {
        let name = name.clone();
        work(&app, move |app| app.runs.metrics(&name).map_err(|error| app.absent(&error))).await?
    };
    // A browser that comes back says what it had.
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let state =
        Feed { app, name, told: last.unwrap_or(from.after), epoch: first.epoch, _place: place };
    let events = stream::unfold(state, |mut feed| async {
        let events = feed.next().await?;
        Some((stream::iter(events.into_iter().map(Ok)), feed))
    });
    Ok(Sse::new(events.flatten()).keep_alive(KeepAlive::default()))
}

/// One listener. Nothing is looked up or kept while it does not read.
struct Feed {
    app: Arc<App>,
    name: String,
    told: usize,
    epoch: u64,
    _place: tokio::sync::OwnedSemaphorePermit,
}

impl Feed {
    /// Waits until there is something to tell; `None` when the run is gone.
    async fn next(&mut self) -> Option<Vec<Event>> {
        loop {
            let name = self.name.clone();
            let read = work(&self.app, move |app| {
                app.runs.metrics(&name).map_err(|error| app.fault(&error))
            });
            let metrics = read.await.ok()?;
            let mut events = Vec::new();
            if metrics.epoch != self.epoch || self.told > metrics.records.len() {
                (self.epoch, self.told) = (metrics.epoch, 0);
                // Browsers keep events without data to themselves.
                events.push(Event::default().event("restart").data("-"));
            }
            for record in &metrics.records[self.told..] {
                self.told += 1;
                let event = Event::default().event("record").id(self.told.to_string());
                events.extend(event.json_data(record).ok());
            }
            if !events.is_empty() {
                return Some(events);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
