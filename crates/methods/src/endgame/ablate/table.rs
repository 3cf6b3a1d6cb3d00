//! The results of an ablation: means over the seeds with 95 % confidence intervals, as a table, as
//! CSV and as charts.

use std::fmt::Write as _;

use selfmate_arena::svg::{Interval, interval_svg};
use serde::Serialize;

use super::{Cell, Outcome, Point};

/// A quantity that is compared.
#[derive(Clone, Copy)]
pub struct Metric {
    /// The name in files.
    pub name: &'static str,
    /// The title in tables.
    pub title: &'static str,
    /// The smallest and largest possible value.
    pub bounds: (f64, f64),
    pub of: fn(&Point) -> f64,
}

const ANY: (f64, f64) = (0.0, f64::MAX);
const SHARE: (f64, f64) = (0.0, 1.0);

impl Metric {
    /// The first `DRAWN` have charts.
    pub const ALL: [Metric; 14] = [
        metric("mate_share", "mates", SHARE, |point| point.report.mate_share),
        metric("regret_plies", "regret", ANY, |point| point.report.regret_plies),
        metric("optimal_share", "optimal", SHARE, |point| point.report.optimal_share),
        metric("value_error", "value error", ANY, |point| point.report.value_error),
        metric("thrown_share", "thrown", SHARE, |point| point.report.thrown_share),
        metric("mate_moves", "moves to mate", ANY, |point| point.report.mate_moves),
        metric("random_mate_share", "against random", SHARE, |p| p.report.random_mate_share),
        metric("heuristic_mate_share", "against heuristic", SHARE, |p| {
            p.report.heuristic_mate_share
        }),
        metric("depth", "depth", ANY, |point| point.report.depth),
        metric("terminal_share", "terminal", SHARE, |point| point.report.terminal_share),
        metric("backup", "backup", SHARE, |point| point.report.backup),
        metric("node_bytes", "bytes per node", ANY, |point| point.report.node_bytes),
        metric("games", "games", ANY, |point| point.games as f64),
        metric("steps", "steps", ANY, |point| point.steps as f64),
    ];
    const DRAWN: usize = 5;
}

const fn metric(
    name: &'static str,
    title: &'static str,
    bounds: (f64, f64),
    of: fn(&Point) -> f64,
) -> Metric {
    Metric { name, title, bounds, of }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    pub mean: f64,
    /// Half the width of the 95 % confidence interval, by Student's t; `None` for a single seed.
    pub half: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub cell: Cell,
    /// One per entry of [`Metric::ALL`].
    pub means: Vec<Mean>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// In the order of the grid.
    pub rows: Vec<Row>,
}

/// Averages runs over their seeds; the runs of a combination must be adjacent.
pub fn summarise(outcomes: &[Outcome]) -> Summary {
    let rows = outcomes.chunk_by(|a, b| a.cell == b.cell).map(|seeds| {
        let last: Vec<&Point> = seeds.iter().filter_map(|run| run.points.last()).collect();
        let means = Metric::ALL
            .iter()
            .map(|metric| mean(&last.iter().map(|point| (metric.of)(point)).collect::<Vec<f64>>()));
        Row { cell: seeds[0].cell.clone(), means: means.collect() }
    });
    Summary { rows: rows.collect() }
}

fn mean(values: &[f64]) -> Mean {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let spread = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let half = (values.len() > 1)
        .then(|| t_quantile(values.len() - 1) * (spread / (count - 1.0)).sqrt() / count.sqrt());
    Mean { mean, half }
}

/// The 97.5 % quantile of Student's t distribution.
fn t_quantile(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    TABLE.get(freedom.saturating_sub(1)).copied().unwrap_or(1.96)
}

/// The metrics of [`axes_markdown`].
const IN_AXES: [&str; 6] =
    ["mate_share", "regret_plies", "optimal_share", "thrown_share", "value_error", "games"];
/// Those of them with a chart.
const DRAWN_IN_AXES: [&str; 2] = ["mate_share", "regret_plies"];

/// A table for each axis of [`Design::Each`](super::Design::Each), with links to its charts.
pub fn axes_markdown(ending: &str, outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for (axis, outcomes) in by_axis(outcomes) {
        let _ = writeln!(text, "### `{axis}`\n");
        text.push_str(&summarise(outcomes).markdown_of(|metric| IN_AXES.contains(&metric.name)));
        for metric in DRAWN_IN_AXES {
            let title = format!("{ending}: {} by {axis}", metric.replace('_', " "));
            let _ = write!(text, "\n![{title}]({axis}-{metric}.svg)\n");
        }
        text.push('\n');
    }
    text
}

/// The outcomes of each axis of [`Design::Each`](super::Design::Each), with its name.
pub fn by_axis(outcomes: &[Outcome]) -> impl Iterator<Item = (&str, &[Outcome])> {
    fn axis(outcome: &Outcome) -> &str {
        outcome.cell.0.first().map_or("", |(name, _)| name)
    }
    outcomes.chunk_by(|a, b| axis(a) == axis(b)).map(|own| (axis(&own[0]), own))
}

impl Summary {
    /// The table as Markdown.
    pub fn markdown(&self) -> String {
        self.markdown_of(|_| true)
    }

    fn markdown_of(&self, is_wanted: impl Fn(&Metric) -> bool) -> String {
        let names = self.rows.first().map_or(&[][..], |row| &row.cell.0[..]);
        let titles = Metric::ALL.iter().filter(|m| is_wanted(m)).map(|metric| metric.title);
        let head: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).chain(titles).collect();
        let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
        for row in &self.rows {
            let values = row.cell.0.iter().map(|(_, value)| value.clone());
            let means = row.means.iter().zip(&Metric::ALL).filter(|(_, m)| is_wanted(m));
            let means = means.map(|(mean, _)| match mean.half {
                Some(half) => format!("{} ± {}", number(mean.mean), number(half)),
                None => number(mean.mean),
            });
            let cells: Vec<String> = values.chain(means).collect();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        text
    }

    /// The charts: file name and SVG.
    pub fn pictures(&self, ending: &str) -> Vec<(String, String)> {
        let drawn = Metric::ALL.iter().enumerate().take(Metric::DRAWN);
        drawn
            .map(|(index, metric)| {
                let rows: Vec<Interval> = self
                    .rows
                    .iter()
                    .map(|row| Interval {
                        name: row.cell.to_string(),
                        mean: row.means[index].mean,
                        half: row.means[index].half,
                    })
                    .collect();
                let title = format!("{ending}: {}", metric.name.replace('_', " "));
                (format!("{}.svg", metric.name), interval_svg(&title, &rows, metric.bounds))
            })
            .collect()
    }
}

/// Formats with about four digits.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{:.3}", value + 0.0),
    }
}

/// One line per evaluation of each run.
pub fn results_csv(outcomes: &[Outcome]) -> String {
    let mut text = head(outcomes);
    text.push_str("seed,simulations,positions");
    Metric::ALL.iter().for_each(|metric| text.extend([",", metric.name]));
    text.push('\n');
    let has_many_axes = has_many_axes(outcomes);
    for run in outcomes {
        for point in &run.points {
            start(run, has_many_axes, &mut text);
            let _ = write!(text, "{},{},{}", run.seed, point.simulations, point.positions);
            for metric in Metric::ALL {
                let _ = write!(text, ",{}", (metric.of)(point));
            }
            text.push('\n');
        }
    }
    text
}

/// One line per run, with its timings.
pub fn speed_csv(outcomes: &[Outcome]) -> String {
    let mut text = head(outcomes);
    text.push_str("seed,seconds,play_seconds,simulations_per_second\n");
    let has_many_axes = has_many_axes(outcomes);
    for run in outcomes {
        start(run, has_many_axes, &mut text);
        let simulations = run.points.last().map_or(0, |point| point.simulations);
        let speed = simulations as f64 / run.play_seconds.max(1e-9);
        let _ =
            writeln!(text, "{},{:.1},{:.1},{speed:.0}", run.seed, run.seconds, run.play_seconds);
    }
    text
}

/// The columns of the settings: one for each axis of a grid, or the axis and its value.
fn head(outcomes: &[Outcome]) -> String {
    if has_many_axes(outcomes) {
        return "axis,value,".to_owned();
    }
    let names = outcomes.first().map_or(&[][..], |run| &run.cell.0[..]);
    names.iter().map(|(name, _)| format!("{name},")).collect()
}

fn start(run: &Outcome, has_many_axes: bool, text: &mut String) {
    for (name, value) in &run.cell.0 {
        if has_many_axes {
            text.extend([name.as_str(), ","]);
        }
        text.extend([value.as_str(), ","]);
    }
}

/// Whether each outcome has an axis of its own.
fn has_many_axes(outcomes: &[Outcome]) -> bool {
    by_axis(outcomes).nth(1).is_some()
}

#[cfg(test)]
mod tests {
    use super::super::super::TablebaseReport;
    use super::*;

    fn outcome(rule: &str, seed: u64, mate_share: f64) -> Outcome {
        let report = TablebaseReport { mate_share, ..TablebaseReport::default() };
        let point = Point { simulations: 1000, games: 10, positions: 90, steps: 3, report };
        Outcome {
            cell: Cell(vec![("rule".to_owned(), rule.to_owned())]),
            seed,
            points: vec![point],
            seconds: 2.0,
            play_seconds: 0.5,
        }
    }

    #[test]
    fn means_and_intervals_have_known_values() {
        let runs =
            [outcome("greedy", 1, 0.7), outcome("greedy", 2, 0.8), outcome("greedy", 3, 0.9)];
        let runs = [&runs[..], &[outcome("halving", 1, 1.0)]].concat();
        let summary = summarise(&runs);
        assert_eq!(summary.rows.len(), 2);
        let first = summary.rows[0].means[0];
        // s = 0.1, 4.303 · 0.1 / √3.
        assert!((first.mean - 0.8).abs() < 1e-12);
        assert!((first.half.unwrap() - 0.248434).abs() < 1e-5, "{first:?}");
        assert_eq!(summary.rows[1].means[0], Mean { mean: 1.0, half: None });
        let text = summary.markdown();
        assert!(text.contains("| greedy | 0.800 ± 0.248 |"), "{text}");
        assert!(text.starts_with("| rule | mates |"), "{text}");
        let columns: Vec<usize> = text.lines().map(|line| line.matches('|').count()).collect();
        assert!(columns.iter().all(|count| *count == columns[0]), "{columns:?}");
        let pictures = summary.pictures("krk");
        assert_eq!(pictures[0].0, "mate_share.svg");
        assert!(pictures[0].1.contains("rule=greedy"));
    }

    #[test]
    fn outcomes_of_several_axes_name_them() {
        let mut runs = [outcome("greedy", 1, 0.7), outcome("halving", 1, 0.8)];
        runs[1].cell = Cell(vec![("sims".to_owned(), "8".to_owned())]);
        let results = results_csv(&runs);
        assert!(results.starts_with("axis,value,seed,simulations,"), "{results}");
        assert!(results.lines().nth(2).unwrap().starts_with("sims,8,1,1000,"), "{results}");
        assert_eq!(speed_csv(&runs).lines().nth(1), Some("rule,greedy,1,2.0,0.5,2000"));
        let text = axes_markdown("krk", &runs);
        assert!(text.starts_with("### `rule`\n\n| rule | mates | regret |"), "{text}");
        assert!(
            text.contains("\n| 8 | 0.800 |") && text.contains("(sims-regret_plies.svg)"),
            "{text}"
        );
    }

    #[test]
    fn csv_files_have_one_line_per_run() {
        let runs = [outcome("greedy", 1, 0.7), outcome("halving", 1, 0.8)];
        let results = results_csv(&runs);
        assert!(results.starts_with("rule,seed,simulations,positions,mate_share,"), "{results}");
        assert_eq!(results.lines().nth(2).unwrap().split(',').nth(4), Some("0.8"));
        assert!(!results.contains("second"), "timings belong in speed.csv");
        assert_eq!(speed_csv(&runs).lines().nth(1), Some("greedy,1,2.0,0.5,2000"));
        let fields = |line: &str| line.split(',').count();
        let head = fields(results.lines().next().unwrap());
        assert!(results.lines().all(|line| fields(line) == head));
    }
}
