//! `cargo xtask bench-peers`: our speed beside other people's, measured in one run on one core.
//!
//! Rounds interleave ours and theirs, so that a machine that is busy for a while slows both; the
//! medians are compared. Our side is `selfmate bench --json`; theirs is `judges/peers.py`.

use std::{collections::BTreeMap, process::Command};

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    bench_nets,
    process::{capture, cargo, find_program, root, run as run_command},
    setup,
};

/// What to compare.
#[derive(clap::Args)]
pub struct Options {
    /// What to compare
    #[arg(value_enum, default_value = "rules")]
    group: Group,
    /// Rounds to take the medians of
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seconds for each peer in each round
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Print one JSON document instead of the table
    #[arg(long)]
    json: bool,
}

/// The groups of comparisons.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Group {
    /// Random games to their end
    Rules,
    /// Simulations of tree search
    Search,
    /// The residual network beside PyTorch's
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

    fn contests(self) -> &'static [Contest] {
        match self {
            Group::Rules => &[
                Contest {
                    ours: "environment",
                    peer: "python-chess-games",
                    unit: "plies/s",
                    goal: Some(150.0),
                },
                Contest {
                    ours: "environment",
                    peer: "openspiel-games",
                    unit: "plies/s",
                    goal: Some(25.0),
                },
            ],
            Group::Search => &[
                Contest {
                    ours: "mcts_uniform",
                    peer: "openspiel-mcts-python",
                    unit: "simulations/s",
                    goal: Some(50.0),
                },
                Contest {
                    ours: "rollout_full",
                    peer: "openspiel-mcts-cpp",
                    unit: "playouts/s",
                    goal: Some(20.0),
                },
                Contest {
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
struct Contest {
    ours: &'static str,
    peer: &'static str,
    unit: &'static str,
    goal: Option<f64>,
}

/// The outcome of a contest: medians in the contest's unit, and how many times faster we are.
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

/// Speeds per second, by the part's or peer's name, one for each round.
type Speeds = BTreeMap<&'static str, Vec<f64>>;

/// Measures a group and prints it.
pub fn run(options: &Options) -> Result<()> {
    if let Group::Nets = options.group {
        return bench_nets::run(options.rounds, options.seconds, options.json);
    }
    let python = setup::judge_python()?;
    setup::OPEN_SPIEL.meet()?;
    // Built before anything is pinned to one core.
    run_command(&mut cargo("build --release -p selfmate"))?;

    let contests = options.group.contests();
    let mut speeds = Speeds::new();
    for round in 1..=options.rounds as usize {
        eprintln!("round {round} of {}", options.rounds);
        let mut bench = cargo("run --quiet --release -p selfmate -- bench --json");
        let report = measure(&mut bench)?;
        for contest in contests {
            // One part may meet many peers; its speed counts once a round.
            let measured = speeds.entry(contest.ours).or_default();
            if measured.len() < round {
                measured.push(part_speed(&report, contest.ours)?);
            }
        }
        for contest in contests {
            // So may a peer meet many parts.
            if speeds.get(contest.peer).is_some_and(|measured| measured.len() >= round) {
                continue;
            }
            let mut peer = Command::new(&python);
            peer.args(["-B", "xtask/judges/peers.py", contest.peer, "--seconds"])
                .arg(options.seconds.to_string())
                .current_dir(root());
            let speed = measure(&mut peer)?["per_second"]
                .as_f64()
                .with_context(|| format!("{} reports no per_second", contest.peer))?;
            speeds.entry(contest.peer).or_default().push(speed);
        }
    }

    let rows = rows(contests, &speeds);
    if options.json {
        let report =
            json!({ "group": options.group.name(), "rounds": options.rounds, "rows": rows });
        println!("{report:#}");
    } else {
        print_table(&rows);
    }
    Ok(())
}

/// Runs a command on one core, where there is a tool for that, and reads the JSON it prints.
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

/// The speed of one part in the report of `selfmate bench --json`.
fn part_speed(report: &Value, part: &str) -> Result<f64> {
    report[part]["per_second"].as_f64().with_context(|| {
        format!("`selfmate bench --json` has no \"{part}\": {{\"per_second\": …}}")
    })
}

fn rows(contests: &[Contest], speeds: &Speeds) -> Vec<Row> {
    contests
        .iter()
        .map(|contest| {
            let ours = median(&speeds[contest.ours]);
            let theirs = median(&speeds[contest.peer]);
            Row {
                part: contest.ours,
                peer: contest.peer,
                unit: contest.unit,
                ours,
                theirs,
                ratio: ours / theirs,
                goal: contest.goal,
            }
        })
        .collect()
}

/// The middle value.
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
    fn the_median_is_the_middle() {
        assert!((median(&[3.0, 1.0, 100.0]) - 3.0).abs() < 1e-9);
        assert!((median(&[4.0, 1.0]) - 2.5).abs() < 1e-9);
    }

    #[test]
    fn rows_compare_medians() {
        let contests = Group::Rules.contests();
        let speeds = Speeds::from([
            ("environment", vec![300.0, 200.0, 400.0]),
            ("python-chess-games", vec![2.0, 1.0, 3.0]),
            ("openspiel-games", vec![30.0, 10.0, 20.0]),
        ]);
        let ratios: Vec<f64> = rows(contests, &speeds).iter().map(|row| row.ratio).collect();
        assert!((ratios[0] - 150.0).abs() < 1e-9);
        assert!((ratios[1] - 15.0).abs() < 1e-9);
    }

    #[test]
    fn a_missing_part_is_named() {
        let error = part_speed(&json!({ "environment": {} }), "environment").unwrap_err();
        assert!(error.to_string().contains("environment"));
    }
}
