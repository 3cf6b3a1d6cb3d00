//! `selfmate runs`: lists all runs.

use std::io::{self, Write};

use selfmate_run::RunReader;
use serde::Serialize;

use crate::output::{Output, thousands};
use crate::runs::{self, Summary, span};

#[derive(Serialize)]
struct Report {
    folder: String,
    runs: Vec<Row>,
}

/// A run that cannot be read does not hide the others.
#[derive(Serialize)]
#[serde(untagged)]
enum Row {
    Readable(Box<Summary>),
    Unreadable { run: String, error: String },
}

pub fn run(output: &Output) -> anyhow::Result<()> {
    let folder = runs::folder();
    let rows = selfmate_run::list(folder)?.into_iter().map(|name| {
        match summary(&RunReader::new(&folder.join(&name))) {
            Ok(summary) => Row::Readable(Box::new(summary)),
            Err(error) => Row::Unreadable { run: name, error: format!("{error:#}") },
        }
    });
    let report = Report { folder: folder.display().to_string(), runs: rows.collect() };
    output.report(&report, print)
}

fn summary(run: &RunReader) -> anyhow::Result<Summary> {
    runs::summary(run, &runs::config(run)?, &runs::metrics(run)?)
}

fn print(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    if report.runs.is_empty() {
        return writeln!(out, "no runs in {}", report.folder);
    }
    let name = |row: &Row| match row {
        Row::Readable(summary) => summary.run.chars().count(),
        Row::Unreadable { run, .. } => run.chars().count(),
    };
    let width = report.runs.iter().map(name).max().unwrap_or(0).max(3);
    writeln!(
        out,
        "{:width$}  {:10}{:>10}{:>10}{:>10}{:>13}{:>10}  Elo",
        "run", "learner", "age", "trained", "games", "positions", "steps"
    )?;
    for row in &report.runs {
        match row {
            Row::Readable(summary) => writeln!(
                out,
                "{:width$}  {:10}{:>10}{:>10}{:>10}{:>13}{:>10}  {}",
                summary.run,
                summary.learner.as_deref().unwrap_or("-"),
                summary.age_s.map_or("-".into(), span),
                span(summary.elapsed_s),
                thousands(summary.games),
                thousands(summary.positions),
                thousands(summary.steps),
                summary.latest.rating.as_ref().map_or("-".into(), super::show::rating_text),
            )?,
            Row::Unreadable { run, error } => {
                writeln!(out, "{run:width$}  cannot be read: {error}")?;
            }
        }
    }
    Ok(())
}
