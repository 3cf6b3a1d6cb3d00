//! Progress of a training as plain lines.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use selfmate_run::{Progress, Record};
use selfmate_selfplay::{Ending, Watch};
use selfmate_train::End;

/// Time between two lines.
const PAUSE: Duration = Duration::from_secs(10);

#[derive(Default)]
pub struct Lines {
    last: Option<Instant>,
}

/// The last line: how the training of a learner ended and what to do next.
pub fn closing(learner: &str, name: &str, end: &End, seconds: f64, has_learned: bool) -> String {
    let how = match end {
        End::Stopped => "stopped",
        End::Finished | End::Done(_) | End::Collapsed(_) => "finished",
    };
    let time = clock(seconds);
    let time = time.trim();
    if has_learned && Ending::by_name(learner).is_some() {
        format!(
            "{how} after {time}: see it play a won position against the exact defender with `selfmate play run:{name}`"
        )
    } else if has_learned {
        format!("{how} after {time}: play against it with `selfmate play run:{name}`")
    } else {
        format!(
            "{how} after {time}, before the first training step: run the same command with more time to continue"
        )
    }
}

impl Lines {
    fn progress(&mut self, progress: &Progress) {
        if self.last.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        self.last = Some(Instant::now());
        if !progress.values.contains_key("simulations_per_second") {
            return print_line(&round_text(progress));
        }
        let value = |name: &str| progress.values.get(name).copied().unwrap_or(f64::NAN);
        print_line(&format!(
            "{}  generation {}  games {}  positions {}  steps {}  {:.0} k sims/s  loss {:.3} {:.3}  \
             draws {:.0} %  truncated {:.0} %  {:.0} plies",
            clock(progress.elapsed_s),
            progress.generation,
            progress.games,
            progress.positions,
            progress.steps,
            value("simulations_per_second") / 1000.0,
            value("loss.value"),
            value("loss.policy"),
            100.0 * value("draw_share"),
            100.0 * value("truncated_share"),
            value("plies"),
        ));
    }
}

impl Watch for Lines {
    fn record(&mut self, record: &Record) {
        match record {
            Record::Progress(progress) => self.progress(progress),
            Record::Rating(rating) => print_line(&format!(
                "{}  Elo {:.0} [{:.0}, {:.0}] after {} games",
                clock(rating.elapsed_s),
                rating.elo,
                rating.low,
                rating.high,
                rating.games
            )),
            Record::Alarm(alarm) => print_line(&format!(
                "{}  alarm: {} is {:.3} (bound {:.3}): {}; {}",
                clock(alarm.elapsed_s),
                alarm.name,
                alarm.value,
                alarm.bound,
                alarm.meaning,
                alarm.action
            )),
            Record::Resume { step, generation, .. } => {
                print_line(&format!("resuming from step {step}, generation {generation}"));
            }
            Record::Start { .. } | Record::End { .. } => {}
        }
    }

    fn note(&mut self, text: &str) {
        print_line(&format!("note: {text}"));
    }
}

/// Prints a line. A closed standard error must not stop the training.
pub fn print_line(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Formats a round of a learner without self-play, with all of its metrics.
fn round_text(progress: &Progress) -> String {
    let Progress { generation, games, steps, .. } = progress;
    let mut text = format!("{}  round {generation}", clock(progress.elapsed_s));
    if *games > 0 {
        text += &format!("  games {games}");
    }
    text += &format!("  steps {steps}");
    for (name, value) in progress.values.iter().filter(|(name, _)| !name.ends_with("seconds")) {
        let digits = if value.abs() >= 100.0 || value.fract() == 0.0 { 0 } else { 3 };
        text += &format!("  {name} {value:.digits$}");
    }
    text
}

/// Formats seconds as minutes and seconds.
pub fn clock(seconds: f64) -> String {
    let seconds = seconds as u64;
    format!("{:3}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_training_steps_is_not_offered_as_an_opponent() {
        let text = |has_learned| closing("zero", "tonight", &End::Finished, 61.0, has_learned);
        assert_eq!(
            text(true),
            "finished after 1:01: play against it with `selfmate play run:tonight`"
        );
        assert!(text(false).starts_with("finished after 1:01, before the first training step"));
        let ending = closing("krk", "rook", &End::Stopped, 61.0, true);
        assert!(
            ending.ends_with("against the exact defender with `selfmate play run:rook`"),
            "{ending}"
        );
    }

    #[test]
    fn a_round_is_printed_with_its_metrics() {
        let values = [("evaluation.score", 0.875), ("states", 1234.0), ("round_seconds", 2.5)];
        let progress = Progress {
            elapsed_s: 61.0,
            generation: 3,
            games: 96,
            steps: 7,
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
            ..Progress::default()
        };
        assert_eq!(
            round_text(&progress),
            "  1:01  round 3  games 96  steps 7  evaluation.score 0.875  states 1234"
        );
    }
}
