//! Between requests and the synchronous libraries: work on threads, answers that flow while it goes
//! on, and an end to it when nobody listens any more or it takes too long.
//!
//! Who searches has a core first, and waits for it without a thread. So searches never take the
//! threads that other requests need.

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

/// Lines that wait for a slow reader.
const QUEUE: usize = 64;
/// How long a search waits in all for a reader that does not read.
const PATIENCE: Duration = Duration::from_secs(10);

/// Does something that reads files or computes for a moment.
pub async fn work<T: Send + 'static>(
    app: &Arc<App>,
    work: impl FnOnce(&App) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let app = Arc::clone(app);
    let task = move || work(&app).map_err(|error| error.without_paths(&app.runs_path));
    match tokio::task::spawn_blocking(task).await {
        Ok(result) => result,
        Err(_) => Err(ApiError::Internal("the work for this request has failed".into())),
    }
}

/// Does something that takes a core for a while, once one is free. It is told to stop when the
/// request is given up or `at_most` has passed.
pub async fn think<T: Send + 'static>(
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
    let mut done = Box::pin(work(app, move |app| {
        let _places = (place, core);
        task(app, &stop)
    }));
    tokio::select! {
        result = &mut done => return result,
        () = tokio::time::sleep(at_most) => drop(guard),
    }
    done.await
}

/// Where a search tells what it finds.
pub struct Teller {
    lines: mpsc::Sender<Bytes>,
    stop: Arc<AtomicBool>,
    /// How much longer the search waits for its reader.
    patience: Mutex<Duration>,
}

impl Teller {
    /// Sends one line of JSON. Waits for a reader who is behind, but not for ever; the search is
    /// told to stop when that takes too long, and when the reader is gone.
    pub fn tell(&self, line: &impl Serialize) {
        let mut patience = lock(&self.patience);
        let began = Instant::now();
        let sent = Handle::current().block_on(self.lines.send_timeout(encode(line), *patience));
        *patience = patience.saturating_sub(began.elapsed());
        if sent.is_err() {
            self.stop.store(true, Relaxed);
        }
    }

    /// Sends one line of JSON that the next one makes old: a reader who is behind does without.
    pub fn mention(&self, line: &impl Serialize) {
        if let Err(TrySendError::Closed(_)) = self.lines.try_send(encode(line)) {
            self.stop.store(true, Relaxed);
        }
    }

    /// Set when the reader is gone or the time is up: a limit for searches.
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

/// What a search takes.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Threads; a core for each.
    pub threads: usize,
    /// It is told to stop then.
    pub at_most: Duration,
}

/// A search whose findings are sent as they come, a JSON document a line. It waits for its cores;
/// when too many wait already, the request is refused.
pub fn search(
    app: &Arc<App>,
    cost: Cost,
    search: impl FnOnce(&App, &Teller) -> Result<(), ApiError> + Send + 'static,
) -> Result<Response, ApiError> {
    let busy = || ApiError::Busy("too many searches are waiting: try again soon".into());
    let place = Arc::clone(&app.queue).try_acquire_owned().map_err(|_| busy())?;
    let stream = Arc::clone(&app.streams).try_acquire_owned().map_err(|_| busy())?;
    let app = Arc::clone(app);
    let (lines, received) = mpsc::channel(QUEUE);
    let stop = Arc::new(AtomicBool::new(false));
    let teller = Teller { lines, stop: Arc::clone(&stop), patience: Mutex::new(PATIENCE) };
    let time_is_up = Arc::clone(&stop);
    tokio::spawn(async move {
        let cores = u32::try_from(cost.threads.clamp(1, app.cores)).unwrap_or(1);
        let Ok(cores) = Arc::clone(&app.searches).acquire_many_owned(cores).await else { return };
        // Whoever gave up while waiting wants nothing computed.
        if teller.lines.is_closed() {
            return;
        }
        app.counters.searched();
        let mut done = tokio::task::spawn_blocking(move || {
            if let Err(error) = search(&app, &teller) {
                let message = error.without_paths(&app.runs_path).to_string();
                teller.tell(&Failure { kind: "error", message });
            }
        });
        // A panic ends this search and no other.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs on a thread of the kind that searches have.
    fn on_a_thread<T: Send + 'static>(task: impl FnOnce() -> T + Send + 'static) -> T {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
        runtime.block_on(async { tokio::task::spawn_blocking(task).await.unwrap() })
    }

    fn teller(patience: Duration) -> (Teller, mpsc::Receiver<Bytes>) {
        let (lines, received) = mpsc::channel(QUEUE);
        let (stop, patience) = (Arc::default(), Mutex::new(patience));
        (Teller { lines, stop, patience }, received)
    }

    #[test]
    fn a_reader_who_does_not_read_does_not_hold_a_search() {
        let (teller, mut received) = teller(Duration::from_millis(1));
        on_a_thread(move || {
            (0..10 * QUEUE).for_each(|line| teller.mention(&line));
            assert!(!teller.is_stopped(), "it may still come back");
            teller.tell(&"the end");
            assert!(teller.is_stopped());
        });
        let mut first = Vec::new();
        while let Ok(line) = received.try_recv() {
            first.push(line);
        }
        assert_eq!((first.len(), &first[0][..]), (QUEUE, &b"0\n"[..]));
    }

    #[test]
    fn a_reader_who_is_gone_ends_the_search() {
        let (teller, received) = teller(PATIENCE);
        drop(received);
        on_a_thread(move || {
            teller.mention(&1);
            assert!(teller.is_stopped());
        });
    }
}
