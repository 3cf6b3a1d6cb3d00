//! `selfmate plot`: draws the curves of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context;
use selfmate_arena::svg::{Curve, Panel, Point, Size, Unit, curves_svg};
use selfmate_methods::charts::{self, Chart};
use selfmate_methods::learner;
use selfmate_methods::tune::{IMPORTANCE, Row, picture};
use selfmate_run::{Progress, Record, RunReader};
use serde::Serialize;

use crate::file;
use crate::output::{Output, thousands};
use crate::runs::{self, Summary};

#[derive(clap::Args)]
pub struct Args {
    /// The name of the run
    run: String,
    /// The SVG file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Also draw curves that say little by themselves: replay positions, gradient norm, seconds
    #[arg(long)]
    all: bool,
    /// Draw which weights matter instead of curves, for a run of tune
    #[arg(long, conflicts_with = "all")]
    importance: bool,
}

#[derive(Serialize)]
struct Report {
    run: String,
    file: String,
    panels: Vec<String>,
}

pub fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let run = runs::find(&args.run)?;
    if args.importance {
        return importance(args, &run, output);
    }
    let metrics = runs::metrics(&run)?;
    let config = runs::config(&run)?;
    let info = config.get("learner").and_then(toml::Value::as_str).and_then(learner);
    let mut panels = panels(&metrics, info.map_or(&[], |info| info.charts), args.all);
    anyhow::ensure!(!panels.is_empty(), "run '{}' has no curves yet", run.name());
    if panels[0].title == ELO
        && let Some(limit) = rating_limit(&config)
    {
        panels[0].title = format!("{ELO}: {limit} per move, against built-in rungs");
    }
    let summary = runs::summary(&run, &config, &metrics)?;
    let alarms = metrics.iter().filter_map(|record| match record {
        Record::Alarm(alarm) => Some(alarm.elapsed_s / 60.0),
        _ => None,
    });
    let alarms: Vec<f64> = alarms.collect();
    let mut below = subtitle(&summary);
    if !alarms.is_empty() {
        below.push_str(", alarms dashed");
    }
    let svg = curves_svg(&run.name(), &below, &panels, &alarms);
    let panels = panels.into_iter().map(|panel| panel.title).collect();
    write(args, &run, &svg, panels, output)
}

/// Writes a picture and reports its panels.
fn write(
    args: &Args,
    run: &RunReader,
    svg: &str,
    panels: Vec<String>,
    output: &Output,
) -> anyhow::Result<()> {
    file::write(&args.output, svg.as_bytes())?;
    let report = Report { run: run.name(), file: args.output.display().to_string(), panels };
    output.report(&report, |report, out| {
        writeln!(out, "{}: {}", report.file, report.panels.join("; "))
    })
}

fn importance(args: &Args, run: &RunReader, output: &Output) -> anyhow::Result<()> {
    let latest = run.latest_checkpoint(&[IMPORTANCE])?;
    if let Some(skipped) = latest.skipped_checkpoints() {
        runs::warn(&skipped);
    }
    let bytes = latest.checkpoint.as_ref().and_then(|checkpoint| checkpoint.files.get(IMPORTANCE));
    let bytes = bytes.with_context(|| {
        format!("run '{}' has no importances of weights: expected a run of tune", run.name())
    })?;
    let rows: Vec<Row> = serde_json::from_slice(bytes).context(IMPORTANCE)?;
    write(args, run, &picture(&rows), vec!["weights that matter".to_owned()], output)
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

/// The limit per move of rating games; older runs were rated by simulations.
fn rating_limit(config: &toml::Table) -> Option<String> {
    let learner = config.get("learner")?.as_str()?;
    let rating = config.get(learner)?.get("rating")?;
    let number = |name: &str| rating.get(name)?.as_integer();
    let nodes = number("nodes").map(|nodes| match learner {
        // A residual network is too slow for alpha-beta, so its nodes are simulations of a tree
        // search.
        "alphazero" => format!("{nodes} simulations"),
        _ => format!("alpha-beta, {nodes} nodes"),
    });
    nodes.or_else(|| number("sims").map(|sims| format!("{sims} simulations")))
}

const ELO: &str = "Elo, with 95 % intervals";

/// Curves that are drawn only with `--all`: they say little by themselves, or the same as another.
const ONLY_WITH_ALL: [&str; 7] = [
    "games_per_second",
    "gradient_norm",
    "learn_seconds",
    "play_seconds",
    "round_seconds",
    "simulations_per_second",
    "replay_positions",
];

/// The panels for the curves of a run: ratings, the charts of its learner, and everything else.
fn panels(metrics: &[Record], charts: &[Chart], all: bool) -> Vec<Panel> {
    let progress: Vec<&Progress> = metrics
        .iter()
        .filter_map(|record| match record {
            Record::Progress(progress) => Some(progress),
            _ => None,
        })
        .collect();
    let mut curves = learner_curves(&progress);
    // Speeds over whole generations have fewer outliers than those of single rounds.
    curves.insert("simulations_per_second", speed(&progress, |progress| progress.simulations));
    curves.insert("games_per_second", speed(&progress, |progress| progress.games));
    let mut of_chart = |chart: &Chart| {
        let curve = |curve: &charts::Curve| {
            Some(Curve { name: curve.label.into(), points: curves.remove(curve.metric)? })
        };
        let size = if chart.is_schedule { Size::Small } else { Size::Half };
        panel(chart.title, chart.unit, size, chart.curves.iter().filter_map(curve).collect())
    };
    let (schedules, main): (Vec<&Chart>, Vec<&Chart>) =
        charts.iter().partition(|chart| chart.is_schedule);
    let main: Vec<Panel> = main.into_iter().map(&mut of_chart).collect();
    let schedules: Vec<Panel> = schedules.into_iter().map(&mut of_chart).collect();
    let mut only_with_all = Vec::new();
    for name in ONLY_WITH_ALL {
        only_with_all.extend(curves.remove_entry(name));
    }
    let unnamed = |points| vec![Curve { name: String::new(), points }];
    let mut panels = vec![panel(ELO, Unit::Number, Size::Wide, unnamed(ratings(metrics)))];
    panels.extend(main);
    panels.extend(other_panels(curves));
    panels.extend(schedules);
    if all {
        panels.extend(only_with_all.into_iter().map(|(name, points)| {
            panel(&capitalised(name), Unit::Amount, Size::Small, unnamed(points))
        }));
    }
    for panel in &mut panels {
        panel.curves.retain(|curve| !curve.points.is_empty());
    }
    panels.retain(|panel| !panel.curves.is_empty());
    panels
}

fn panel(title: &str, unit: Unit, size: Size, curves: Vec<Curve>) -> Panel {
    Panel { title: title.into(), unit, size, curves }
}

type Curves<'a> = BTreeMap<&'a str, Vec<Point>>;

fn learner_curves<'a>(progress: &[&'a Progress]) -> Curves<'a> {
    let mut curves = Curves::new();
    for progress in progress {
        for (name, &value) in &progress.values {
            let minutes = progress.elapsed_s / 60.0;
            curves.entry(name).or_default().push(Point { minutes, value, bar: None });
        }
    }
    curves
}

/// Panels for other curves, grouped by the first part of their names.
fn other_panels(curves: Curves<'_>) -> Vec<Panel> {
    let mut groups: BTreeMap<&str, Vec<Curve>> = BTreeMap::new();
    for (name, points) in curves {
        let (title, name) = name.split_once('.').unwrap_or((name, ""));
        groups.entry(title).or_default().push(Curve { name: name.replace('_', " "), points });
    }
    let panel = |(title, curves): (&str, Vec<Curve>)| {
        let unit = if title.ends_with("_share") { Unit::Share } else { Unit::Number };
        panel(&capitalised(title), unit, Size::Half, curves)
    };
    groups.into_iter().map(panel).collect()
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

/// The growth rate of a total, over whole generations. Generations shorter than 1/200 of the
/// training time are merged, because short ones would give outliers.
fn speed(progress: &[&Progress], total: fn(&Progress) -> u64) -> Vec<Point> {
    let shortest = progress.last().map_or(0.0, |last| last.elapsed_s / 200.0);
    let mut points = Vec::new();
    let (mut seconds, mut before) = (0.0, 0);
    for progress in progress {
        let (time, amount) = (progress.elapsed_s - seconds, total(progress).saturating_sub(before));
        if time > 0.0 && time >= shortest {
            let value = amount as f64 / time;
            // Games that were found on disk after a kill took no measurable time.
            if amount > 0 {
                points.push(Point { minutes: progress.elapsed_s / 60.0, value, bar: None });
            }
            (seconds, before) = (progress.elapsed_s, total(progress));
        }
    }
    points
}
