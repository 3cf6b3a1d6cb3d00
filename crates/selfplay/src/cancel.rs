//! Requests to stop: a signal of the user, or a deadline.
//!
//! Searches and matches poll a flag. A [`Watchdog`] sets one at a deadline, so a deadline holds
//! inside the longest loop.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Whether the work under way should be given up.
#[derive(Clone, Copy)]
pub struct CancelToken<'a> {
    stop: &'a AtomicBool,
    deadline: Option<Instant>,
    cancelled: &'a Arc<AtomicBool>,
}

impl CancelToken<'_> {
    pub fn is_cancelled(self) -> bool {
        self.stop.load(Relaxed) || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// For code that polls a flag: it is set within `POLL_INTERVAL` of the cancellation.
    pub fn flag(self) -> Arc<AtomicBool> {
        Arc::clone(self.cancelled)
    }
}

/// Sets a flag when a stop is requested or a deadline has passed, until it is dropped.
pub struct Watchdog {
    stop: Arc<AtomicBool>,
    deadline: Option<Instant>,
    cancelled: Arc<AtomicBool>,
    /// Dropping it ends the thread.
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    pub fn new(stop: &Arc<AtomicBool>, deadline: Option<Instant>) -> Watchdog {
        Watchdog::in_thread(stop, deadline, |watch| thread::Builder::new().spawn(watch))
    }

    fn in_thread(
        stop: &Arc<AtomicBool>,
        deadline: Option<Instant>,
        spawn: impl FnOnce(Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>,
    ) -> Watchdog {
        let cancelled = Arc::new(AtomicBool::new(false));
        let (alive, is_alive) = channel();
        let (requested, set) = (Arc::clone(stop), Arc::clone(&cancelled));
        let stop = Arc::clone(stop);
        match spawn(Box::new(move || watch(&requested, deadline, &set, &is_alive))) {
            Ok(thread) => {
                let (alive, thread) = (Some(alive), Some(thread));
                Watchdog { stop, deadline, cancelled, alive, thread }
            }
            // Without a thread the flag is the stop request itself: a deadline is then noticed
            // only where a token is polled.
            Err(_) => {
                let cancelled = Arc::clone(&stop);
                Watchdog { stop, deadline, cancelled, alive: None, thread: None }
            }
        }
    }

    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.cancelled
    }

    pub fn token(&self) -> CancelToken<'_> {
        CancelToken { stop: &self.stop, deadline: self.deadline, cancelled: &self.cancelled }
    }
}

fn watch(
    stop: &AtomicBool,
    deadline: Option<Instant>,
    cancelled: &AtomicBool,
    alive: &Receiver<()>,
) {
    loop {
        let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_late || stop.load(Relaxed) {
            return cancelled.store(true, Relaxed);
        }
        if alive.recv_timeout(POLL_INTERVAL) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            // It cannot panic, and nothing depends on it.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_noticed_when_no_thread_can_be_started() {
        let stop = Arc::new(AtomicBool::new(false));
        let none_left = |_| Err(io::Error::from(io::ErrorKind::WouldBlock));
        let watchdog = Watchdog::in_thread(&stop, None, none_left);
        assert!(!watchdog.flag().load(Relaxed));
        stop.store(true, Relaxed);
        assert!(watchdog.flag().load(Relaxed));
    }
}
