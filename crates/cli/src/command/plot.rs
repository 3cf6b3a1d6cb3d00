//! `selfmate plot`: a run's curves as a picture.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context;
use selfmate_arena::svg::{Curve, Panel, Point, Unit, curves_svg};
use selfmate_run::{Progress, Record};
use serde::Serialize;

use crate::output::{Output, thousands};
use crate::runs::{self, Summary};

#[derive(clap::Args)]
pub struct Args {
    /// The name of the run
    run: String,
    /// The picture to write (SVG)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Serialize)]
struct Report {
    run: String,
    file: String,
    panels: Vec<String>,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let run = runs::find(&args.run)?;
    let metrics = run.metrics()?;
    let panels = panels(&metrics);
    anyhow::ensure!(!panels.is_empty(), "run '{}' has no curves yet", args.run);
    let summary = runs::summary(&run, &runs::config(&run)?, &metrics)?;
    let alarms = metrics.iter().filter_map(|record| match record {
        Record::Alarm(alarm) => Some(alarm.elapsed_s / 60.0),
        _ => None,
    });
    let alarms: Vec<f64> = alarms.collect();
    let mut below = subtitle(&summary);
    if !alarms.is_empty() {
        below.push_str(", alarms dashed");
    }
    let svg = curves_svg(&args.run, &below, &panels, &alarms);
    std::fs::write(&args.output, svg)
        .with_context(|| format!("cannot write {}", args.output.display()))?;
    let report = Report {
        run: summary.run,
        file: args.output.display().to_string(),
        panels: panels.into_iter().map(|panel| panel.title).collect(),
    };
    output.report(&report, |report, out| {
        writeln!(out, "{}: {}", report.file, report.panels.join(", "))
    })
}

fn subtitle(summary: &Summary) -> String {
    format!(
        "{}, seed {}: {} games, {} positions, {} steps; minutes of training",
        summary.learner.as_deref().unwrap_or("no learner"),
        summary.seed.map_or("unknown".into(), |seed| seed.to_string()),
        thousands(summary.games),
        thousands(summary.positions),
        thousands(summary.steps)
    )
}

/// The panels that a run has curves for.
fn panels(metrics: &[Record]) -> Vec<Panel> {
    let mut panels = vec![Panel {
        title: "Elo, with 95 % intervals".into(),
        unit: Unit::Number,
        is_wide: true,
        curves: vec![Curve { name: String::new(), points: ratings(metrics) }],
    }];
    let progress: Vec<&Progress> = metrics
        .iter()
        .filter_map(|record| match record {
            Record::Progress(progress) => Some(progress),
            _ => None,
        })
        .collect();
    panels.extend(learner_panels(&progress));
    let speed_panel = |title, total| {
        let curve = Curve { name: String::new(), points: speed(&progress, total) };
        half(title, Unit::Amount, vec![curve])
    };
    panels.push(speed_panel("Simulations a second", |progress| progress.simulations));
    panels.push(speed_panel("Games a second", |progress| progress.games));
    for panel in &mut panels {
        panel.curves.retain(|curve| !curve.points.is_empty());
    }
    panels.retain(|panel| !panel.curves.is_empty());
    panels
}

fn half(title: &str, unit: Unit, curves: Vec<Curve>) -> Panel {
    Panel { title: title.into(), unit, is_wide: false, curves }
}

/// The learner's own curves: losses together, shares together, the rest by the first part of
/// their names.
fn learner_panels(progress: &[&Progress]) -> Vec<Panel> {
    let mut curves: BTreeMap<&str, Vec<Point>> = BTreeMap::new();
    for progress in progress {
        for (name, &value) in &progress.values {
            let minutes = progress.elapsed_s / 60.0;
            curves.entry(name).or_default().push(Point { minutes, value, bar: None });
        }
    }
    let mut groups: BTreeMap<(Group, &str), Vec<Curve>> = BTreeMap::new();
    for (name, points) in curves {
        let (group, title, name) = place(name);
        let curve = Curve { name: name.replace('_', " "), points };
        groups.entry((group, title)).or_default().push(curve);
    }
    let panel = |((group, title), curves): ((Group, &str), Vec<Curve>)| {
        let unit = match group {
            Group::Loss | Group::Other => Unit::Number,
            Group::Share => Unit::Share,
            Group::Length => Unit::Amount,
        };
        half(&capitalised(title), unit, curves)
    };
    groups.into_iter().map(panel).collect()
}

/// In the order of the picture.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Loss,
    Share,
    Length,
    Other,
}

/// Where a curve goes: the group, the title of its panel, its name there.
fn place(name: &str) -> (Group, &str, &str) {
    if let Some(rest) = name.strip_prefix("loss") {
        let rest = rest.trim_start_matches('.');
        return (Group::Loss, "losses", if rest.is_empty() { "all" } else { rest });
    }
    if let Some(start) = name.strip_suffix("_share") {
        return (Group::Share, "share of games", start);
    }
    if name == "plies" || name.ends_with("length") {
        return (Group::Length, "plies a game", "");
    }
    match name.split_once('.') {
        Some((title, name)) => (Group::Other, title, name),
        None => (Group::Other, name, ""),
    }
}

fn capitalised(title: &str) -> String {
    let mut letters = title.chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>());
    first.unwrap_or_default() + &letters.as_str().replace('_', " ")
}

fn ratings(metrics: &[Record]) -> Vec<Point> {
    let point = |record: &Record| match record {
        Record::Rating(rating) => Some(Point {
            minutes: rating.elapsed_s / 60.0,
            value: rating.elo,
            bar: Some((rating.low, rating.high)),
        }),
        _ => None,
    };
    metrics.iter().filter_map(point).collect()
}

/// How fast a total grows: over whole generations, and over as many as take a two-hundredth of the
/// time, because a short one would stand out for nothing.
fn speed(progress: &[&Progress], total: fn(&Progress) -> u64) -> Vec<Point> {
    let shortest = progress.last().map_or(0.0, |last| last.elapsed_s / 200.0);
    let mut points = Vec::new();
    let (mut seconds, mut before) = (0.0, 0);
    for progress in progress {
        let (time, amount) = (progress.elapsed_s - seconds, total(progress).saturating_sub(before));
        if time > 0.0 && time >= shortest {
            let value = amount as f64 / time;
            points.push(Point { minutes: progress.elapsed_s / 60.0, value, bar: None });
            (seconds, before) = (progress.elapsed_s, total(progress));
        }
    }
    points
}
