//! A flag that is set when a session is told to stop or its time is over. Searches and matches look at
//! flags, so they hold to a deadline however long they would take.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Watches until it is dropped.
pub struct Watchdog {
    over: Arc<AtomicBool>,
    /// Dropped first, which ends the thread.
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Sets its flag as soon as `stop` is set, or at the deadline.
    pub fn new(stop: &Arc<AtomicBool>, deadline: Option<Instant>) -> Watchdog {
        Watchdog::in_thread(stop, deadline, |watch| thread::Builder::new().spawn(watch))
    }

    fn in_thread(
        stop: &Arc<AtomicBool>,
        deadline: Option<Instant>,
        spawn: impl FnOnce(Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>,
    ) -> Watchdog {
        let over = Arc::new(AtomicBool::new(false));
        let (alive, is_alive) = channel();
        let (told, set) = (Arc::clone(stop), Arc::clone(&over));
        match spawn(Box::new(move || watch(&told, deadline, &set, &is_alive))) {
            Ok(thread) => Watchdog { over, alive: Some(alive), thread: Some(thread) },
            // Without a thread to spare a deadline is noticed between two games, a stop at once.
            Err(_) => Watchdog { over: Arc::clone(stop), alive: None, thread: None },
        }
    }

    /// The flag.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.over
    }
}

fn watch(stop: &AtomicBool, deadline: Option<Instant>, over: &AtomicBool, alive: &Receiver<()>) {
    loop {
        let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if is_late || stop.load(Relaxed) {
            return over.store(true, Relaxed);
        }
        if alive.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout) {
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
    fn a_stop_is_seen_without_a_thread_to_spare() {
        let stop = Arc::new(AtomicBool::new(false));
        let none_left = |_| Err(io::Error::from(io::ErrorKind::WouldBlock));
        let watchdog = Watchdog::in_thread(&stop, None, none_left);
        assert!(!watchdog.flag().load(Relaxed));
        stop.store(true, Relaxed);
        assert!(watchdog.flag().load(Relaxed));
    }
}
