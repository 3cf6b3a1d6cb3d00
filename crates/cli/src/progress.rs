//! Progress on standard error: one line that is rewritten on a terminal, a new line from time to
//! time elsewhere. Also the handler of Ctrl-C that ends long jobs cleanly.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::screen;

/// Shows the progress of a job.
pub struct Progress {
    is_terminal: bool,
    last: Option<Instant>,
    width: usize,
}

impl Progress {
    pub fn new() -> Progress {
        Progress { is_terminal: io::stderr().is_terminal(), last: None, width: 0 }
    }

    /// Shows a line, unless the last one was shown very recently.
    pub fn show(&mut self, line: &str) {
        let pause = Duration::from_millis(if self.is_terminal { 100 } else { 10_000 });
        if self.last.is_some_and(|last| last.elapsed() < pause) {
            return;
        }
        self.last = Some(Instant::now());
        let mut err = io::stderr().lock();
        // Progress is optional: a closed standard error must not stop the job.
        let _ = if self.is_terminal {
            let padding = self.width.saturating_sub(line.chars().count());
            self.width = line.chars().count();
            write!(err, "\r{line}{:padding$}", "").and_then(|()| err.flush())
        } else {
            writeln!(err, "{line}")
        };
    }

    /// Clears the rewritten line.
    pub fn finish(&mut self) {
        if self.is_terminal && self.last.is_some() {
            eprint!("\r{:width$}\r", "", width = self.width);
        }
        self.last = None;
    }
}

/// A flag that the first Ctrl-C or termination signal sets; the second ends the program.
pub fn stop_on_signal() -> anyhow::Result<Arc<AtomicBool>> {
    let CleanStop { stop, begun } = CleanStop::on_signal()?;
    begun.store(true, Ordering::Relaxed);
    Ok(stop)
}

/// Flags to end a job cleanly.
pub struct CleanStop {
    /// Set by the first Ctrl-C or termination signal; the second ends the program.
    pub stop: Arc<AtomicBool>,
    /// Set this once there is something to end cleanly. Before that, while files are read, the
    /// first signal ends the program.
    pub begun: Arc<AtomicBool>,
}

impl CleanStop {
    /// Handles signals from now on.
    pub fn on_signal() -> anyhow::Result<CleanStop> {
        let (stop, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let clean = CleanStop { stop: Arc::clone(&stop), begun: Arc::clone(&begun) };
        listen(move || begun.load(Ordering::Relaxed) && !stop.swap(true, Ordering::Relaxed))?;
        Ok(clean)
    }
}

/// Ends the program at every signal for which `is_clean_stop` is false.
fn listen(is_clean_stop: impl Fn() -> bool + Send + 'static) -> anyhow::Result<()> {
    ctrlc::set_handler(move || {
        if !is_clean_stop() {
            screen::restore();
            std::process::exit(130);
        }
        // A live view shows this itself.
        if !screen::is_open() {
            // Standard error may be closed; a panic here would lose the second signal.
            let _ = writeln!(io::stderr(), "\nstopping; once more to stop at once");
        }
    })
    .context("cannot listen for Ctrl-C")
}
