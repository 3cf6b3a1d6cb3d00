//! Runs the synchronous libraries on threads. Results are streamed while the work continues, and
//! the work stops when the client is gone or it takes too long.
//!
//! A search first waits for a core, without occupying a thread. So searches never take the threads
//! that other requests need.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use crate::app::App;
use crate::error::ApiError;
use crate::run::lock;

/// Lines buffered for a slow client.
const QUEUE: usize = 64;
/// The total time a search waits for a client that does not read.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a short blocking task, such as reading files.
pub async fn run_blocking<T: Send + 'static>(
    app: &Arc<App>,
    task: impl FnOnce(&App) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let app = Arc::clone(app);
    let task = move || task(&app).map_err(|error| error.without_paths(&app.runs_path));
    match tokio::task::spawn_blocking(task).await {
        Ok(result) => result,
        Err(_) => Err(ApiError::Internal("the work for this request has failed".into())),
    }
}

/// Runs a task that needs a core for a while, once one is free. `stop` is set when the request is
/// dropped or `at_most` has passed.
pub async fn run_on_core<T: Send + 'static>(
    app: &Arc<App>,
    at_most: Duration,
    task: impl FnOnce(&App, &Arc<AtomicBool>) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let busy = || ApiError::Busy("too many searches are waiting: try again soon".into());
    let place = Arc::clone(&app.queue).try_acquire_owned().map_err(|_| busy())?;
    let core = Arc::clone(&app.searches).acquire_owned().await.map_err(|_| busy())?;
    app.counters.searched();
    let stop = Arc::new(AtomicBool::new(false));
    let guard = StopOnDrop(Arc::clone(&stop));
    let mut done = Box::pin(run_blocking(app, move |app| {
        let _places = (place, core);
        task(app, &stop)
    }));
    tokio::select! {
        result = &mut done => return result,
        () = tokio::time::sleep(at_most) => drop(guard),
    }
    done.await
}

/// Sends the results of a search to the client.
pub struct ResultSender {
    lines: mpsc::Sender<Bytes>,
    stop: Arc<AtomicBool>,
    /// How much longer the search waits for the client.
    patience: Mutex<Duration>,
}

impl ResultSender {
    /// Sends one line of JSON. Waits for a slow client up to a limit; sets `stop` when the limit is
    /// exceeded or the client is gone.
    pub fn send(&self, line: &impl Serialize) {
        let mut patience = lock(&self.patience);
        let began = Instant::now();
        let sent = Handle::current().block_on(self.lines.send_timeout(encode(line), *patience));
        *patience = patience.saturating_sub(began.elapsed());
        if sent.is_err() {
            self.stop.store(true, Relaxed);
        }
    }

    /// Sends a line of JSON that the next one replaces. It is dropped if the client is behind.
    pub fn send_if_ready(&self, line: &impl Serialize) {
        if let Err(TrySendError::Closed(_)) = self.lines.try_send(encode(line)) {
            self.stop.store(true, Relaxed);
        }
    }

    /// Set when the client is gone or the time is up; used as the stop flag of searches.
    pub fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }
}

fn encode(line: &impl Serialize) -> Bytes {
    let mut bytes = match serde_json::to_vec(line) {
        Ok(bytes) => bytes,
        Err(error) => format!("{{\"kind\":\"error\",\"message\":\"{error}\"}}").into_bytes(),
    };
    bytes.push(b'\n');
    bytes.into()
}

/// The resources of a search.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Threads, each on its own core.
    pub threads: usize,
    /// The search is stopped after this time.
    pub at_most: Duration,
}

/// Runs a search and streams its results, one JSON document per line. It waits for its cores; the
/// request is rejected if too many searches are waiting.
pub fn search(
    app: &Arc<App>,
    cost: Cost,
    search: impl FnOnce(&App, &ResultSender) -> Result<(), ApiError> + Send + 'static,
) -> Result<Response, ApiError> {
    let busy = || ApiError::Busy("too many searches are waiting: try again soon".into());
    let place = Arc::clone(&app.queue).try_acquire_owned().map_err(|_| busy())?;
    let stream = Arc::clone(&app.streams).try_acquire_owned().map_err(|_| busy())?;
    let app = Arc::clone(app);
    let (lines, received) = mpsc::channel(QUEUE);
    let stop = Arc::new(AtomicBool::new(false));
    let sender = ResultSender { lines, stop: Arc::clone(&stop), patience: Mutex::new(PATIENCE) };
    let time_is_up = Arc::clone(&stop);
    tokio::spawn(async move {
        let cores = u32::try_from(cost.threads.clamp(1, app.cores)).unwrap_or(1);
        let Ok(cores) = Arc::clone(&app.searches).acquire_many_owned(cores).await else { return };
        // The client may have left while waiting.
        if sender.lines.is_closed() {
            return;
        }
        app.counters.searched();
        let mut done = tokio::task::spawn_blocking(move || {
            if let Err(error) = search(&app, &sender) {
                let message = error.without_paths(&app.runs_path).to_string();
                sender.send(&Failure { kind: "error", message });
            }
        });
        // A panic ends only this search.
        tokio::select! {
            _ = &mut done => {}
            () = tokio::time::sleep(cost.at_most) => {
                time_is_up.store(true, Relaxed);
                let _ = done.await;
            }
        }
        drop((cores, place));
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

/// The receiving end of a search.
struct Reader {
    received: mpsc::Receiver<Bytes>,
    _stop: StopOnDrop,
    _stream: tokio::sync::OwnedSemaphorePermit,
}

/// Stops the search when the client is gone.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs on a blocking thread, like searches do.
    fn on_a_thread<T: Send + 'static>(task: impl FnOnce() -> T + Send + 'static) -> T {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
        runtime.block_on(async { tokio::task::spawn_blocking(task).await.unwrap() })
    }

    fn sender(patience: Duration) -> (ResultSender, mpsc::Receiver<Bytes>) {
        let (lines, received) = mpsc::channel(QUEUE);
        let (stop, patience) = (Arc::default(), Mutex::new(patience));
        (ResultSender { lines, stop, patience }, received)
    }

    #[test]
    fn a_client_that_does_not_read_does_not_block_a_search() {
        let (sender, mut received) = sender(Duration::from_millis(1));
        on_a_thread(move || {
            (0..10 * QUEUE).for_each(|line| sender.send_if_ready(&line));
            assert!(!sender.is_stopped(), "the client may still read later");
            sender.send(&"the end");
            assert!(sender.is_stopped());
        });
        let mut first = Vec::new();
        while let Ok(line) = received.try_recv() {
            first.push(line);
        }
        assert_eq!((first.len(), &first[0][..]), (QUEUE, &b"0\n"[..]));
    }

    #[test]
    fn a_search_stops_when_its_client_is_gone() {
        let (sender, received) = sender(PATIENCE);
        drop(received);
        on_a_thread(move || {
            sender.send_if_ready(&1);
            assert!(sender.is_stopped());
        });
    }
}
