//! `cargo xtask compare`: every learner trained with its budget, all of them on one ladder.
//!
//! Writes docs/comparison.md, which is made anew each time and never edited. Trainings and the
//! ladder go on where they were when the chore is started again.

use std::{fmt::Write as _, fs, path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process::{capture, cargo, root, run as run_command, target_dir};

/// How to compare.
#[derive(clap::Args)]
pub struct Options {
    /// Minutes for each learner [default: its own]
    #[arg(long, value_name = "M")]
    minutes: Option<f64>,
    /// Only these learners
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<String>,
    /// Threads for each learner [default: one for each core]
    #[arg(long, value_name = "T")]
    threads: Option<usize>,
    /// Games for each pairing of the ladder
    #[arg(long, default_value_t = 20)]
    games: u64,
    /// Milliseconds a move on the ladder
    #[arg(long, default_value_t = 20)]
    movetime: u64,
    /// The seed of all trainings and of the ladder
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Games at the same time on the ladder
    #[arg(long, default_value_t = 2)]
    concurrency: usize,
}

/// A learner with its budget.
struct Learner {
    name: &'static str,
    method: &'static str,
    budget: &'static str,
}

const LEARNERS: &[Learner] = &[
    Learner {
        name: "zero",
        method: "sparse network, self-play, Gumbel search",
        budget: "--minutes 60",
    },
    Learner {
        name: "alphazero",
        method: "residual network, self-play, Gumbel search",
        budget: "--minutes 30",
    },
    Learner {
        name: "value",
        method: "value network, Monte Carlo returns, one ply",
        budget: "--games 3000",
    },
    Learner {
        name: "reinforce",
        method: "policy network, policy gradient, no search",
        budget: "--minutes 30",
    },
    Learner {
        name: "qlearn",
        method: "table of values, Q-learning, no search",
        budget: "--minutes 10",
    },
    Learner { name: "clone", method: "sparse network, copies Stockfish", budget: "--minutes 45" },
    Learner {
        name: "evolve",
        method: "evaluation weights, CMA-ES, alpha-beta",
        budget: "--minutes 30",
    },
    Learner {
        name: "tune",
        method: "evaluation weights, SPRT, SPSA, Texel, alpha-beta",
        budget: "--minutes 45",
    },
];

/// Players whose rating is given, from our own rungs.
const ANCHORS: &[(&str, u32)] = &[("random", 0), ("greedy", 640), ("alphabeta:depth=1", 1430)];

/// What plays, in the checkpoint of whichever learner.
const PLAYER_FILES: [&str; 5] =
    ["model.safetensors", "value.safetensors", "policy.safetensors", "table.q", "weights.toml"];

/// A row of the table.
struct Row {
    name: String,
    method: String,
    seconds: f64,
    games: u64,
    bytes: u64,
    elo: f64,
    /// `None` where all games ended alike.
    error: Option<f64>,
}

/// Trains, plays the ladder and writes the page.
pub fn run(options: &Options) -> Result<()> {
    for name in &options.only {
        let names: Vec<&str> = LEARNERS.iter().map(|learner| learner.name).collect();
        ensure!(names.contains(&name.as_str()), "no learner '{name}': {}", names.join(", "));
    }
    run_command(&mut cargo("build --release -p selfmate"))?;
    let binary = target_dir()?.join("release/selfmate");
    let folder = target_dir()?.join("compare");
    let runs = folder.join("runs");
    fs::create_dir_all(&runs).with_context(|| format!("cannot make {}", runs.display()))?;
    let selfmate = |arguments: &[String]| {
        let mut command = Command::new(&binary);
        command.args(arguments).arg("--runs").arg(&runs).current_dir(root());
        command
    };
    let chosen: Vec<&Learner> = LEARNERS
        .iter()
        .filter(|learner| options.only.is_empty() || options.only.iter().any(|n| n == learner.name))
        .collect();
    let mut commands = Vec::new();
    for learner in &chosen {
        let minutes = options.minutes.map(|minutes| format!("--minutes {minutes}"));
        let budget = minutes.as_deref().unwrap_or(learner.budget);
        let threads = options.threads.map_or_else(String::new, |t| format!(" --threads {t}"));
        let train =
            format!("train {0} --run {0} {budget} --seed {1}{threads}", learner.name, options.seed);
        run_command(&mut selfmate(&words(&format!("{train} --plain"))))?;
        commands.push(format!("selfmate {train}"));
    }
    let players: Vec<String> = chosen
        .iter()
        .map(|learner| format!("run:{}", learner.name))
        .chain(ANCHORS.iter().map(|(player, _)| (*player).to_owned()))
        .collect();
    let anchors: Vec<String> =
        ANCHORS.iter().map(|(player, elo)| format!("--anchor {player}={elo}")).collect();
    let ladder = format!(
        "ladder {} {} --games {} --movetime {} --seed {} --concurrency {}",
        players.join(" "),
        anchors.join(" "),
        options.games,
        options.movetime,
        options.seed,
        options.concurrency
    );
    commands.push(format!("selfmate {ladder}"));
    let store = format!("--store {}", folder.join("ladder").display());
    let report = capture(&mut selfmate(&words(&format!("{ladder} {store} --json"))))?;
    let report: Value = serde_json::from_str(&report).context("the ladder printed no JSON")?;
    let rows: Result<Vec<Row>> = chosen
        .iter()
        .map(|learner| {
            let show = capture(&mut selfmate(&words(&format!("show {} --json", learner.name))))?;
            let show: Value = serde_json::from_str(&show).context("`show` printed no JSON")?;
            row(learner, &show, &report, &runs)
        })
        .collect();
    let page = page(&rows?, &commands, options.movetime);
    let path = root().join("docs/comparison.md");
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("{}", path.display());
    Ok(())
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn row(learner: &Learner, show: &Value, ladder: &Value, runs: &Path) -> Result<Row> {
    let name = format!("run:{}", learner.name);
    let rated = ladder["players"].as_array().context("the ladder lists no players")?;
    let rated = rated.iter().find(|player| player["name"] == name.as_str());
    let rated = rated.with_context(|| format!("{name} is not on the ladder"))?;
    let number = |value: &Value, key: &str| {
        value[key].as_f64().with_context(|| format!("{name} has no {key}"))
    };
    let step = show["latest"]["checkpoint"].as_u64().context("a run without a checkpoint")?;
    let checkpoint = runs.join(learner.name).join("checkpoints").join(step.to_string());
    let sizes = PLAYER_FILES.iter().filter_map(|file| fs::metadata(checkpoint.join(file)).ok());
    Ok(Row {
        name: learner.name.to_owned(),
        method: learner.method.to_owned(),
        seconds: number(show, "elapsed_s")?,
        games: show["games"].as_u64().unwrap_or(0),
        bytes: sizes.map(|size| size.len()).sum(),
        elo: number(rated, "elo")?,
        error: rated["elo_error"].as_f64(),
    })
}

/// The page, the strongest first.
fn page(rows: &[Row], commands: &[String], movetime: u64) -> String {
    let mut order: Vec<&Row> = rows.iter().collect();
    order.sort_by(|a, b| b.elo.total_cmp(&a.elo));
    let mut text = String::from(
        "# All learners on one ladder\n\nMade by `cargo xtask compare`; do not edit. Each learner is trained \
         once, with the seed and the time of its command below, and then plays all others and the anchors. ",
    );
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "Elo is on the scale of our own rungs (random is 0), {movetime} ms a move, with 95 % error bars.\n"
    );
    text.push_str(
        "| learner | method | training | games | size | Elo |\n|---|---|---|---|---|---|\n",
    );
    for row in order {
        let _ = writeln!(
            text,
            "| [{0}](learners/{0}.md) | {1} | {2:.0} min | {3} | {4} | {5:.0}{6} |",
            row.name,
            row.method,
            row.seconds / 60.0,
            row.games,
            size(row.bytes),
            row.elo,
            row.error.map_or_else(String::new, |error| format!(" ± {error:.0}"))
        );
    }
    text.push_str(
        "\nThe ladder begins with openings of several moves, where a table of whole positions knows none: \
         what [qlearn](learners/qlearn.md) learned is measured on its own page.\n\n```\n",
    );
    for command in commands {
        text.push_str(command);
        text.push('\n');
    }
    text.push_str("```\n");
    text
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_page_lists_the_strongest_first() {
        let row = |name: &str, elo: f64| Row {
            name: name.to_owned(),
            method: "a method".to_owned(),
            seconds: 1800.0,
            games: 12,
            bytes: 3_400_000,
            elo,
            error: Some(20.0),
        };
        let page = page(&[row("qlearn", 40.0), row("tune", 1500.0)], &["selfmate x".into()], 50);
        let (tune, qlearn) = (page.find("tune").unwrap(), page.find("qlearn").unwrap());
        assert!(tune < qlearn);
        assert!(page.contains("| 30 min | 12 | 3400 kB | 1500 ± 20 |"), "{page}");
        assert!(page.ends_with("```\nselfmate x\n```\n"));
    }

    #[test]
    fn a_player_that_is_not_on_the_ladder_is_named() {
        let show = json!({ "elapsed_s": 60.0, "games": 5, "latest": { "checkpoint": 3 } });
        let ladder = json!({ "players": [{ "name": "run:zero", "elo": 1.0, "elo_error": 2.0 }] });
        let runs = Path::new("nowhere");
        let found = row(&LEARNERS[0], &show, &ladder, runs).unwrap();
        assert_eq!((found.elo, found.games, found.bytes), (1.0, 5, 0));
        let error = row(&LEARNERS[1], &show, &ladder, runs).map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "run:alphazero is not on the ladder");
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!([999, 10_000, 12_345_678].map(size), ["999 B", "10 kB", "12 MB"]);
    }
}
