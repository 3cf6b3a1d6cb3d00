//! `cargo xtask bench-peers`: compares our speed with other libraries, in one run on one core.
//!
//! Both are measured in alternating rounds, so that other load on the machine slows both, and the
//! medians are compared. Our side is `selfmate bench --json`; the other is `judges/peers.py`.

use std::{collections::BTreeMap, process::Command};

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    bench_nets,
    process::{capture, cargo, find_program, root, run as run_command},
    setup,
};

#[derive(clap::Args)]
pub struct Options {
    /// What to compare
    #[arg(value_enum, default_value = "rules")]
    group: Group,
    /// Number of rounds; the medians are compared
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds per peer and round
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Group {
    /// Random games to their end
    Rules,
    /// Simulations of tree search
    Search,
    /// The residual network against PyTorch
    Nets,
}

impl Group {
    fn name(self) -> &'static str {
        match self {
            Group::Rules => "rules",
            Group::Search => "search",
            Group::Nets => "nets",
        }
    }

    fn comparisons(self) -> &'static [Comparison] {
        match self {
            Group::Rules => &[
                Comparison {
                    ours: "environment",
                    peer: "python-chess-games",
                    unit: "plies/s",
                    goal: Some(150.0),
                },
                Comparison {
                    ours: "environment",
                    peer: "openspiel-games",
                    unit: "plies/s",
                    goal: Some(25.0),
                },
            ],
            Group::Search => &[
                Comparison {
                    ours: "mcts_uniform",
                    peer: "openspiel-mcts-python",
                    unit: "simulations/s",
                    goal: Some(50.0),
                },
                Comparison {
                    ours: "rollout_full",
                    peer: "openspiel-mcts-cpp",
                    unit: "playouts/s",
                    goal: Some(20.0),
                },
                Comparison {
                    ours: "rollout",
                    peer: "openspiel-mcts-cpp",
                    unit: "playouts/s",
                    goal: Some(20.0),
                },
            ],
            Group::Nets => &[],
        }
    }
}

/// One part of `selfmate bench` against one subcommand of `peers.py`.
struct Comparison {
    ours: &'static str,
    peer: &'static str,
    unit: &'static str,
    goal: Option<f64>,
}

/// Medians in the comparison's unit, and their ratio.
#[derive(Serialize)]
struct Row {
    part: &'static str,
    peer: &'static str,
    unit: &'static str,
    ours: f64,
    theirs: f64,
    ratio: f64,
    goal: Option<f64>,
}

/// Speeds per second by name of the part or peer, one per round.
type Speeds = BTreeMap<&'static str, Vec<f64>>;

pub fn run(options: &Options) -> Result<()> {
    if let Group::Nets = options.group {
        return bench_nets::run(options.rounds, options.seconds, options.json);
    }
    let python = setup::judge_python()?;
    setup::OPEN_SPIEL.meet()?;
    // Built first, because `measure` pins commands to one core.
    run_command(&mut cargo("build --release -p selfmate"))?;

    let comparisons = options.group.comparisons();
    let mut speeds = Speeds::new();
    for round in 1..=options.rounds as usize {
        eprintln!("round {round} of {}", options.rounds);
        let mut bench = cargo("run --quiet --release -p selfmate -- bench --json");
        let report = measure(&mut bench)?;
        for comparison in comparisons {
            // A part can occur in several comparisons; its speed counts once per round.
            let measured = speeds.entry(comparison.ours).or_default();
            if measured.len() < round {
                measured.push(part_speed(&report, comparison.ours)?);
            }
        }
        for comparison in comparisons {
            // The same for a peer.
            if speeds.get(comparison.peer).is_some_and(|measured| measured.len() >= round) {
                continue;
            }
            let mut peer = Command::new(&python);
            peer.args(["-B", "xtask/judges/peers.py", comparison.peer, "--seconds"])
                .arg(options.seconds.to_string())
                .current_dir(root());
            let speed = measure(&mut peer)?["per_second"]
                .as_f64()
                .with_context(|| format!("{} reports no per_second", comparison.peer))?;
            speeds.entry(comparison.peer).or_default().push(speed);
        }
    }

    let rows = rows(comparisons, &speeds);
    if options.json {
        let report =
            json!({ "group": options.group.name(), "rounds": options.rounds, "rows": rows });
        println!("{report:#}");
    } else {
        print_table(&rows);
    }
    Ok(())
}

/// Runs a command, on one core if `taskset` is available, and parses the JSON that it prints.
fn measure(command: &mut Command) -> Result<Value> {
    let mut pinned;
    let command = if let Some(taskset) = find_program("taskset") {
        pinned = Command::new(taskset);
        pinned.args(["-c", "0"]).arg(command.get_program()).args(command.get_args());
        pinned.current_dir(root());
        &mut pinned
    } else {
        command
    };
    let text = capture(command)?;
    serde_json::from_str(&text)
        .with_context(|| format!("`{}` printed no JSON", crate::process::show(command)))
}

/// The speed of a part in the report of `selfmate bench --json`.
fn part_speed(report: &Value, part: &str) -> Result<f64> {
    report[part]["per_second"].as_f64().with_context(|| {
        format!("`selfmate bench --json` has no \"{part}\": {{\"per_second\": …}}")
    })
}

fn rows(comparisons: &[Comparison], speeds: &Speeds) -> Vec<Row> {
    comparisons
        .iter()
        .map(|comparison| {
            let ours = median(&speeds[comparison.ours]);
            let theirs = median(&speeds[comparison.peer]);
            Row {
                part: comparison.ours,
                peer: comparison.peer,
                unit: comparison.unit,
                ours,
                theirs,
                ratio: ours / theirs,
                goal: comparison.goal,
            }
        })
        .collect()
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

fn print_table(rows: &[Row]) {
    println!(
        "{:14} {:22} {:>14} {:>14}  {:14} {:>8} {:>7}",
        "part", "peer", "ours", "theirs", "unit", "ratio", "goal"
    );
    for row in rows {
        let goal = match row.goal {
            Some(goal) if row.ratio >= goal => format!("{goal:.0}x  met"),
            Some(goal) => format!("{goal:.0}x  MISSED"),
            None => "-".to_owned(),
        };
        println!(
            "{:14} {:22} {:>14.0} {:>14.0}  {:14} {:>7.1}x {goal:>7}",
            row.part, row.peer, row.ours, row.theirs, row.unit, row.ratio
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value() {
        assert!((median(&[3.0, 1.0, 100.0]) - 3.0).abs() < 1e-9);
        assert!((median(&[4.0, 1.0]) - 2.5).abs() < 1e-9);
    }

    #[test]
    fn rows_compare_medians() {
        let comparisons = Group::Rules.comparisons();
        let speeds = Speeds::from([
            ("environment", vec![300.0, 200.0, 400.0]),
            ("python-chess-games", vec![2.0, 1.0, 3.0]),
            ("openspiel-games", vec![30.0, 10.0, 20.0]),
        ]);
        let ratios: Vec<f64> = rows(comparisons, &speeds).iter().map(|row| row.ratio).collect();
        assert!((ratios[0] - 150.0).abs() < 1e-9);
        assert!((ratios[1] - 15.0).abs() < 1e-9);
    }

    #[test]
    fn the_error_names_a_missing_part() {
        let error = part_speed(&json!({ "environment": {} }), "environment").unwrap_err();
        assert!(error.to_string().contains("environment"));
    }
}
