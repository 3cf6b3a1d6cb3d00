//! Training as plain lines, where there is no terminal.

use std::time::{Duration, Instant};

use selfmate_learn::End;
use selfmate_learn::Watch;
use selfmate_run::{Progress, Record};

/// Time between two lines.
const PAUSE: Duration = Duration::from_secs(10);

/// Writes a line now and then.
#[derive(Default)]
pub struct Lines {
    last: Option<Instant>,
}

/// How it ended and what to do next.
pub fn closing(name: &str, end: &End, seconds: f64) -> String {
    let how = match end {
        End::Stopped => "stopped",
        End::Finished | End::Collapsed(_) => "finished",
    };
    let time = clock(seconds);
    format!("{how} after {}: play it with `selfmate play run:{name}`", time.trim())
}

impl Lines {
    fn progress(&mut self, progress: &Progress) {
        if self.last.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        self.last = Some(Instant::now());
        let value = |name: &str| progress.values.get(name).copied().unwrap_or(f64::NAN);
        eprintln!(
            "{}  generation {}  games {}  positions {}  steps {}  {:.0} k sims/s  loss {:.3} {:.3}  \
             draws {:.0} %  capped {:.0} %  {:.0} plies",
            clock(progress.elapsed_s),
            progress.generation,
            progress.games,
            progress.positions,
            progress.steps,
            value("simulations_per_second") / 1000.0,
            value("loss.value"),
            value("loss.policy"),
            100.0 * value("draw_share"),
            100.0 * value("capped_share"),
            value("plies"),
        );
    }
}

impl Watch for Lines {
    fn record(&mut self, record: &Record) {
        match record {
            Record::Progress(progress) => self.progress(progress),
            Record::Rating(rating) => eprintln!(
                "{}  Elo {:.0} [{:.0}, {:.0}] after {} games",
                clock(rating.elapsed_s),
                rating.elo,
                rating.low,
                rating.high,
                rating.games
            ),
            Record::Alarm(alarm) => eprintln!(
                "{}  alarm: {} is {:.3} (bound {:.3}): {}; {}",
                clock(alarm.elapsed_s),
                alarm.name,
                alarm.value,
                alarm.bound,
                alarm.meaning,
                alarm.action
            ),
            Record::Resume { step, generation, .. } => {
                eprintln!("going on from step {step}, generation {generation}");
            }
            Record::Start { .. } | Record::End { .. } => {}
        }
    }

    fn note(&mut self, text: &str) {
        eprintln!("note: {text}");
    }
}

/// Seconds as minutes and seconds.
pub fn clock(seconds: f64) -> String {
    let seconds = seconds as u64;
    format!("{:3}:{:02}", seconds / 60, seconds % 60)
}
