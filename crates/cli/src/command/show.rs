//! `selfmate show`: the state of a run.

use std::io::{self, Write};

use selfmate_methods::describe::{RunDescription, describe};
use selfmate_run::{Alarm, Rating, RunTotals};
use serde::Serialize;

use crate::output::{Output, thousands};
use crate::runs::{self, Summary, setting_text, span};

#[derive(clap::Args)]
pub struct Args {
    /// The name of the run
    run: String,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    summary: Summary,
    ratings: Vec<Rating>,
    alarms: Vec<Alarm>,
    /// Notes of resumed sessions.
    notes: Vec<String>,
    /// What the learner has learned, as text.
    knows: Vec<String>,
    config: toml::Table,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let run = runs::find(&args.run)?;
    let config = runs::config(&run)?;
    let metrics = runs::metrics(&run)?;
    let summary = runs::summary(&run, &config, &metrics)?;
    let RunDescription { lines: knows, skipped_checkpoints } = describe(&run)?;
    if let Some(skipped) = skipped_checkpoints {
        runs::warn(&skipped);
    }
    let RunTotals { ratings, alarms, notes, .. } = RunTotals::new(&run, &metrics)?;
    let report = Report { summary, ratings, alarms, notes, knows, config };
    output.report(&report, print)
}

fn print(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let summary = &report.summary;
    let learner = summary.learner.as_deref().unwrap_or("no learner");
    let seed = summary.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
    writeln!(out, "{}: {learner}{seed}", summary.run)?;
    writeln!(out, "{}", state(summary))?;
    writeln!(
        out,
        "\ngeneration {}, {} games, {} positions, {} simulations, {} steps",
        thousands(summary.generation),
        thousands(summary.games),
        thousands(summary.positions),
        thousands(summary.simulations),
        thousands(summary.steps)
    )?;
    match summary.checkpoints.as_slice() {
        [] => writeln!(out, "no checkpoint yet")?,
        [only] => writeln!(out, "1 checkpoint, at step {}", thousands(*only))?,
        [.., last] => {
            let count = summary.checkpoints.len();
            writeln!(out, "{count} checkpoints, the newest at step {}", thousands(*last))?;
        }
    }
    if !summary.latest.values.is_empty() {
        writeln!(out, "\nlatest values")?;
        for (name, value) in &summary.latest.values {
            writeln!(out, "  {name:24}{:>12}", number(*value))?;
        }
    }
    if !report.ratings.is_empty() {
        writeln!(out, "\nratings")?;
        for rating in &report.ratings {
            let (time, step) = (span(rating.elapsed_s), thousands(rating.step));
            let (elo, games) = (rating_text(rating), rating.games);
            writeln!(out, "  {time:>10}  step {step:>9}  {elo} in {games} games")?;
        }
    }
    if !report.alarms.is_empty() {
        writeln!(out, "\nalarms")?;
        for alarm in &report.alarms {
            let (time, value) = (span(alarm.elapsed_s), number(alarm.value));
            let Alarm { name, meaning, action, .. } = alarm;
            let bound = number(alarm.bound);
            writeln!(out, "  {time:>10}  {name} is {value} (bound {bound}): {meaning}; {action}")?;
        }
    }
    if !report.notes.is_empty() {
        writeln!(out, "\nnotes")?;
        for note in &report.notes {
            writeln!(out, "  {note}")?;
        }
    }
    if !report.knows.is_empty() {
        writeln!(out, "\nknows")?;
        for line in &report.knows {
            writeln!(out, "  {line}")?;
        }
    }
    writeln!(out, "\nconfig")?;
    print_config("", &report.config, out)
}

/// Prints one line per table, at any depth; values outside of tables come first.
fn print_config(name: &str, config: &toml::Table, out: &mut dyn Write) -> io::Result<()> {
    let values = config.iter().filter(|(_, value)| !value.is_table());
    let values: Vec<String> =
        values.map(|(key, value)| format!("{key} = {}", setting_text(value))).collect();
    let colon = if name.is_empty() { "" } else { ": " };
    if !values.is_empty() {
        writeln!(out, "  {name}{colon}{}", values.join(", "))?;
    }
    for (key, table) in config.iter().filter_map(|(key, value)| Some((key, value.as_table()?))) {
        let dot = if name.is_empty() { "" } else { "." };
        print_config(&format!("{name}{dot}{key}"), table, out)?;
    }
    Ok(())
}

/// How long the run was trained, and whether it still is.
fn state(summary: &Summary) -> String {
    let trained = format!("trained for {}", span(summary.elapsed_s));
    let recorded = summary.recorded_s.map(span);
    match (&summary.ended, recorded) {
        (Some(reason), Some(ago)) => format!("{trained}, ended {ago} ago: {reason}"),
        (None, Some(ago)) => format!("{trained}, last record {ago} ago"),
        (_, None) => "not trained yet".into(),
    }
}

/// `612 [560, 668]`.
pub fn rating_text(rating: &Rating) -> String {
    format!("{:.0} [{:.0}, {:.0}]", rating.elo, rating.low, rating.high)
}

/// Formats a number with about four digits.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.01 || size == 0.0 => format!("{value:.3}"),
        _ => format!("{value:.2e}"),
    }
}
