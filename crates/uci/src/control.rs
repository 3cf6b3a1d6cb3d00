//! Controls a running search: stop, ponder hit, and the start of its clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::go::Go;

/// Shared between a search and the thread that may stop it.
#[derive(Debug)]
pub struct Control {
    stop: Arc<AtomicBool>,
    /// When our clock started; unset while pondering.
    clock_start: OnceLock<Instant>,
    is_infinite: bool,
    is_done: AtomicBool,
    /// Guards the changes that [`Control::wait_until_released`] waits for.
    gate: Mutex<()>,
    changed: Condvar,
}

impl Control {
    /// Starts now.
    pub fn new(limits: &Go) -> Control {
        let clock_start = OnceLock::new();
        if !limits.ponder {
            clock_start.get_or_init(Instant::now);
        }
        Control {
            stop: Arc::new(AtomicBool::new(false)),
            clock_start,
            is_infinite: limits.infinite,
            is_done: AtomicBool::new(false),
            gate: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// True once the search must end and return its best move.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The flag behind [`Control::is_stopped`], for searches with several threads.
    pub fn stop_flag(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// True while the opponent's clock runs. Time limits do not apply yet.
    pub fn is_pondering(&self) -> bool {
        self.clock_start.get().is_none()
    }

    /// The time on our clock for this move; `None` while pondering.
    pub fn elapsed(&self) -> Option<Duration> {
        self.clock_start.get().map(Instant::elapsed)
    }

    pub fn stop(&self) {
        self.change(|| self.stop.store(true, Ordering::Relaxed));
    }

    /// The opponent played the expected move: our clock starts.
    pub fn ponderhit(&self) {
        self.change(|| {
            self.clock_start.get_or_init(Instant::now);
        });
    }

    fn change(&self, change: impl FnOnce()) {
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        change();
        self.changed.notify_all();
    }

    /// True while UCI forbids sending the best move, even if the search is over.
    pub(crate) fn is_held(&self) -> bool {
        !self.is_stopped() && (self.is_infinite || self.is_pondering())
    }

    pub(crate) fn wait_until_released(&self) {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        while self.is_held() {
            gate = self.changed.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    pub(crate) fn finish(&self) {
        self.is_done.store(true, Ordering::Release);
    }
}
