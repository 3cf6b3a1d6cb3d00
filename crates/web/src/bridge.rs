//! Between requests and the synchronous libraries: work on threads, answers that flow while it goes
//! on, and an end to it when nobody listens any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::app::App;
use crate::error::ApiError;

/// Lines that wait for a slow reader before the search waits too.
const QUEUE: usize = 64;

/// Does something that reads files or computes for a moment.
pub async fn work<T: Send + 'static>(
    app: &Arc<App>,
    work: impl FnOnce(&App) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let app = Arc::clone(app);
    match tokio::task::spawn_blocking(move || work(&app)).await {
        Ok(result) => result,
        Err(_) => Err(ApiError::Internal("the work for this request has failed".into())),
    }
}

/// Where a search tells what it finds.
pub struct Teller {
    lines: mpsc::Sender<Bytes>,
    stop: Arc<AtomicBool>,
}

impl Teller {
    /// Sends one line of JSON. Waits while the reader is behind; sets the stop flag when it is gone.
    pub fn tell(&self, line: &impl Serialize) {
        let mut bytes = match serde_json::to_vec(line) {
            Ok(bytes) => bytes,
            Err(error) => format!("{{\"kind\":\"error\",\"message\":\"{error}\"}}").into_bytes(),
        };
        bytes.push(b'\n');
        if self.lines.blocking_send(bytes.into()).is_err() {
            self.stop.store(true, Relaxed);
        }
    }

    /// Set when the reader is gone: a limit for searches.
    pub fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }
}

/// A search whose findings are sent as they come, a JSON document a line. It waits for a core;
/// when too many wait already, the request is refused.
pub fn search(
    app: &Arc<App>,
    search: impl FnOnce(&App, &Teller) -> Result<(), ApiError> + Send + 'static,
) -> Result<Response, ApiError> {
    let busy = || ApiError::Busy("too many searches are waiting: try again soon".into());
    let place = Arc::clone(&app.queue).try_acquire_owned().map_err(|_| busy())?;
    let stream = Arc::clone(&app.streams).try_acquire_owned().map_err(|_| busy())?;
    let app = Arc::clone(app);
    let (lines, received) = mpsc::channel(QUEUE);
    let stop = Arc::new(AtomicBool::new(false));
    let teller = Teller { lines, stop: Arc::clone(&stop) };
    tokio::spawn(async move {
        let Ok(core) = Arc::clone(&app.searches).acquire_owned().await else { return };
        // Whoever gave up while waiting wants nothing computed.
        if teller.lines.is_closed() {
            return;
        }
        app.counters.searched();
        let done = tokio::task::spawn_blocking(move || {
            if let Err(error) = search(&app, &teller) {
                teller.tell(&Failure { kind: "error", message: error.to_string() });
            }
        });
        // A panic ends this search and no other.
        let _ = done.await;
        drop((core, place));
    });
    let reader = Reader { received, _stop: StopOnDrop(stop), _stream: stream };
    let body = Body::from_stream(stream::unfold(reader, |mut reader| async {
        let line = reader.received.recv().await?;
        Some((Ok::<_, std::convert::Infallible>(line), reader))
    }));
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

#[derive(Serialize)]
struct Failure {
    kind: &'static str,
    message: String,
}

/// The client's end of a search.
struct Reader {
    received: mpsc::Receiver<Bytes>,
    _stop: StopOnDrop,
    _stream: tokio::sync::OwnedSemaphorePermit,
}

/// A search that nobody listens to ends.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
