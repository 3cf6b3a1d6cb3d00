//! `cargo xtask compare`: trains the learners, each with its own budget, and rates them on one ladder.
//!
//! Writes docs/comparison.md and its picture, which are generated and never edited by hand. When it
//! is started again after an interruption, trainings and the ladder continue where they stopped.

use std::{
    fmt::Write as _,
    fs::{self, File},
    path::PathBuf,
    process::Command,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process::{capture, cargo, find_program, root, run as run_command, target_dir};

#[derive(clap::Args)]
pub struct Options {
    /// Minutes per learner [default: its own budget]
    #[arg(long, value_name = "M")]
    minutes: Option<f64>,
    /// Flags of `train` for one learner, such as 'zero=--minutes 20 --threads 2'
    #[arg(long, value_name = "NAME=FLAGS", value_parser = budget)]
    budget: Vec<(String, String)>,
    /// Only these learners
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<String>,
    /// Threads per learner [default: one per core]
    #[arg(long, value_name = "T")]
    threads: Option<usize>,
    /// Learners to train in parallel
    #[arg(long, default_value_t = 1, value_name = "N")]
    jobs: usize,
    /// Games per pairing of the ladder
    #[arg(long, default_value_t = 20)]
    games: u64,
    /// Milliseconds per move on the ladder
    #[arg(long, default_value_t = 20)]
    movetime: u64,
    /// Seed of all trainings and of the ladder
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Games in parallel on the ladder
    #[arg(long, default_value_t = 2)]
    concurrency: usize,
}

/// A learner with its texts for the page and its budget.
struct Learner {
    name: &'static str,
    method: &'static str,
    /// What the training starts from.
    start: &'static str,
    /// Flags of `train`.
    budget: &'static str,
}

/// The learners of whole games. The names are repeated here because xtask does not use selfmate's
/// crates; `selfmate train` rejects a name that is not in its own table.
const LEARNERS: &[Learner] = &[
    Learner {
        name: "zero",
        method: "sparse network, self-play, Gumbel search",
        start: "random weights",
        budget: "--minutes 60",
    },
    Learner {
        name: "alphazero",
        method: "residual network, self-play, Gumbel search",
        start: "random weights",
        budget: "--minutes 30",
    },
    Learner {
        name: "value",
        method: "value network, Monte Carlo returns, one ply",
        start: "random weights",
        budget: "--games 3000",
    },
    Learner {
        name: "reinforce",
        method: "policy network, policy gradient, no search",
        start: "random weights",
        budget: "--minutes 30",
    },
    Learner {
        name: "qlearn",
        method: "table of values, Q-learning, no search",
        start: "an empty table",
        budget: "--minutes 10",
    },
    Learner {
        name: "clone",
        method: "sparse network, copies Stockfish",
        start: "Stockfish's games",
        budget: "--minutes 45",
    },
    Learner {
        name: "evolve",
        method: "evaluation weights, CMA-ES, alpha-beta",
        start: "a plain evaluation by hand",
        budget: "--minutes 30",
    },
    Learner {
        name: "tune",
        method: "evaluation weights, SPRT, SPSA, Texel, alpha-beta",
        start: "a plain evaluation by hand",
        budget: "--minutes 45",
    },
];

/// Players with fixed ratings: some of our own, and Stockfish limited to the Elo that it claims.
const ANCHORS: &[(&str, u32)] = &[
    ("random", 0),
    ("greedy", 640),
    ("alphabeta:depth=1", 1430),
    ("stockfish:elo=1500", 1500),
    ("stockfish:elo=2000", 2000),
];

/// The files of a checkpoint from which players are made, of all learners.
const PLAYER_FILES: [&str; 5] =
    ["model.safetensors", "value.safetensors", "policy.safetensors", "table.q", "weights.toml"];

struct Row {
    name: String,
    method: String,
    start: String,
    seconds: f64,
    games: u64,
    bytes: u64,
    elo: f64,
    /// `None` where all games had the same result.
    error: Option<f64>,
}

pub fn run(options: &Options) -> Result<()> {
    for name in options.only.iter().chain(options.budget.iter().map(|(name, _)| name)) {
        let names: Vec<&str> = LEARNERS.iter().map(|learner| learner.name).collect();
        ensure!(
            names.contains(&name.as_str()),
            "unknown learner '{name}': expected one of {}",
            names.join(", ")
        );
    }
    ensure!(
        find_program("stockfish").is_some(),
        "Stockfish is missing, but the ladder needs it as an anchor: install it with `cargo xtask setup`"
    );
    run_command(&mut cargo("build --release -p selfmate"))?;
    let workspace = Workspace::open()?;
    let chosen: Vec<&Learner> = LEARNERS
        .iter()
        .filter(|learner| options.only.is_empty() || options.only.iter().any(|n| n == learner.name))
        .collect();
    let trainings: Vec<String> = chosen.iter().map(|learner| training(learner, options)).collect();
    train(&workspace, &chosen, &trainings, options.jobs)?;

    let trained: Result<Vec<Trained>> =
        chosen.iter().map(|learner| Trained::find(&workspace, learner)).collect();
    let trained = trained?;
    let anchored = ANCHORS.iter().map(|(player, _)| (*player).to_owned());
    let players: Vec<String> =
        trained.iter().map(|trained| trained.player.clone()).chain(anchored).collect();
    let anchors: Vec<String> =
        ANCHORS.iter().map(|(player, elo)| format!("--anchor {player}={elo}")).collect();
    let ladder = format!(
        "ladder {} {} --games {} --movetime {} --seed {} --concurrency {} --max-plies 300",
        players.join(" "),
        anchors.join(" "),
        options.games,
        options.movetime,
        options.seed,
        options.concurrency
    );
    let (store, picture) = (workspace.folder.join("ladder"), root().join("docs/comparison.svg"));
    let mut command = workspace.selfmate(&format!("{ladder} --json"));
    command.arg("--store").arg(store).arg("--svg").arg(picture);
    let report = capture(&mut command)?;
    let report: Value = serde_json::from_str(&report).context("the ladder printed no JSON")?;
    let rows: Result<Vec<Row>> = trained.iter().map(|trained| row(trained, &report)).collect();
    let commands = trainings.iter().chain([&ladder]).map(|line| format!("selfmate {line}"));
    let page = page(&rows?, &own_command(), &commands.collect::<Vec<_>>(), options.movetime);
    let path = root().join("docs/comparison.md");
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    eprintln!("{}", path.display());
    Ok(())
}

/// The binary and the folders of a comparison.
struct Workspace {
    binary: PathBuf,
    folder: PathBuf,
    runs: PathBuf,
}

impl Workspace {
    fn open() -> Result<Workspace> {
        let target = target_dir()?;
        let folder = target.join("compare");
        let runs = folder.join("runs");
        fs::create_dir_all(&runs).with_context(|| format!("cannot create {}", runs.display()))?;
        Ok(Workspace { binary: target.join("release/selfmate"), folder, runs })
    }

    /// The binary with its arguments given as one line.
    fn selfmate(&self, arguments: &str) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments.split_whitespace()).arg("--runs").arg(&self.runs);
        command.current_dir(root());
        command
    }
}

/// Parses NAME=FLAGS.
fn budget(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(_, flags)| !flags.trim().is_empty());
    let (name, flags) = parts.ok_or("expected NAME=FLAGS")?;
    Ok((name.to_owned(), flags.to_owned()))
}

/// The arguments that train a learner.
fn training(learner: &Learner, options: &Options) -> String {
    let own = options.budget.iter().find(|(name, _)| name == learner.name);
    let flags = own.map(|(_, flags)| flags.clone()).unwrap_or_else(|| {
        let minutes = options.minutes.map(|minutes| format!("--minutes {minutes}"));
        let threads = options.threads.map(|threads| format!(" --threads {threads}"));
        minutes.unwrap_or_else(|| learner.budget.to_owned()) + &threads.unwrap_or_default()
    });
    format!("train {0} --run {0} {flags} --seed {1}", learner.name, options.seed)
}

/// Runs the trainings, `jobs` of them in parallel. Parallel trainings write to a log file each.
fn train(
    workspace: &Workspace,
    learners: &[&Learner],
    trainings: &[String],
    jobs: usize,
) -> Result<()> {
    let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Relaxed);
                    let Some(learner) = learners.get(index) else { return };
                    if let Err(error) =
                        train_one(workspace, learner.name, &trainings[index], jobs > 1)
                    {
                        // Running trainings continue; no other is started.
                        next.store(learners.len(), Relaxed);
                        eprintln!(
                            "training {} failed; waiting for the other running trainings",
                            learner.name
                        );
                        failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    }
                }
            });
        }
    });
    let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    failure.map_or(Ok(()), Err)
}

/// Trains a learner. Its command is stored: a run that was trained by another command does not belong
/// to this comparison.
fn train_one(workspace: &Workspace, name: &str, training: &str, has_log_file: bool) -> Result<()> {
    let (file, run) = (workspace.folder.join(format!("{name}.command")), workspace.runs.join(name));
    if run.exists() {
        let before = fs::read_to_string(&file).with_context(|| {
            format!("cannot read {}, the command that trained {name}", file.display())
        })?;
        ensure!(
            before == training,
            "{name} was trained by `{before}`: expected `{training}`; remove {} to start a new comparison",
            workspace.folder.display()
        );
    }
    fs::write(&file, training).with_context(|| format!("cannot write {}", file.display()))?;
    let mut command = workspace.selfmate(&format!("{training} --plain"));
    if has_log_file {
        let path = workspace.folder.join(format!("{name}.log"));
        let log =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("{name} writes to {}", path.display());
        command.stdout(log.try_clone()?).stderr(log);
    }
    run_command(&mut command)
}

struct Trained<'a> {
    learner: &'a Learner,
    /// Player spec with its step.
    player: String,
    /// The output of `show --json`.
    show: Value,
    /// Size of its [`PLAYER_FILES`].
    bytes: u64,
}

impl<'a> Trained<'a> {
    fn find(workspace: &Workspace, learner: &'a Learner) -> Result<Trained<'a>> {
        let name = learner.name;
        let show = capture(&mut workspace.selfmate(&format!("show {name} --json")))?;
        let show: Value = serde_json::from_str(&show).context("`show` printed no JSON")?;
        let step = show["latest"]["checkpoint"].as_u64().context("the run has no checkpoint")?;
        let checkpoint = workspace.runs.join(name).join("checkpoints").join(step.to_string());
        let sizes = PLAYER_FILES.iter().filter_map(|file| fs::metadata(checkpoint.join(file)).ok());
        let bytes = sizes.map(|size| size.len()).sum();
        Ok(Trained { learner, player: format!("run:{name}@{step}"), show, bytes })
    }
}

fn row(trained: &Trained<'_>, ladder: &Value) -> Result<Row> {
    let Trained { learner, player, show, bytes } = trained;
    let rated = ladder["players"].as_array().context("the ladder lists no players")?;
    let rated = rated.iter().find(|rated| rated["name"] == player.as_str());
    let rated = rated.with_context(|| format!("{player} is not on the ladder"))?;
    let number = |value: &Value, key: &str| {
        value[key].as_f64().with_context(|| format!("{player} has no {key}"))
    };
    Ok(Row {
        name: learner.name.to_owned(),
        method: learner.method.to_owned(),
        start: learner.start.to_owned(),
        seconds: number(show, "elapsed_s")?,
        games: show["games"].as_u64().unwrap_or(0),
        bytes: *bytes,
        elo: number(rated, "elo")?,
        error: rated["elo_error"].as_f64(),
    })
}

/// The command line of this process.
fn own_command() -> String {
    std::env::args().skip(1).fold("cargo xtask".to_owned(), |line, argument| {
        let quote = if argument.contains(char::is_whitespace) { "'" } else { "" };
        format!("{line} {quote}{argument}{quote}")
    })
}

/// The page, with the strongest learner first.
fn page(rows: &[Row], own_command: &str, commands: &[String], movetime: u64) -> String {
    let mut order: Vec<&Row> = rows.iter().collect();
    order.sort_by(|a, b| b.elo.total_cmp(&a.elo));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut text = format!(
        "# All learners on one ladder\n\nMade by `{own_command}` on {cores} cores; do not edit. Each learner is trained \
         once, with the seed and budget of its command below, and then plays against all others and the anchors. ",
    );
    let anchors: Vec<String> =
        ANCHORS.iter().map(|(player, elo)| format!("`{player}` is {elo}")).collect();
    // Writing to a `String` cannot fail.
    let _ = writeln!(
        text,
        "Elo is given with 95 % error bars, at {movetime} ms per move. The anchors fix the scale: {}.\n",
        anchors.join(", ")
    );
    text.push_str(
        "| learner | method | starts from | training | games | size | Elo |\n|---|---|---|---|---|---|---|\n",
    );
    for row in order {
        let _ = writeln!(
            text,
            "| [{0}](learners/{0}.md) | {1} | {2} | {3:.0} min | {4} | {5} | {6:.0}{7} |",
            row.name,
            row.method,
            row.start,
            row.seconds / 60.0,
            grouped(row.games),
            size(row.bytes),
            row.elo,
            row.error.map_or_else(String::new, |error| format!(" ± {error:.0}"))
        );
    }
    text.push_str(
        "\n![all players with their error bars](comparison.svg)\n\nThe games of the ladder start from openings of several moves, and the table of \
         [qlearn](learners/qlearn.md) has no entries there: its page shows what it learned.\n\n```\n",
    );
    for command in commands {
        text.push_str(command);
        text.push('\n');
    }
    text.push_str("```\n");
    text
}

/// With commas: 1,000,000.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
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

    fn options() -> Options {
        Options {
            minutes: None,
            budget: Vec::new(),
            only: Vec::new(),
            threads: None,
            jobs: 1,
            games: 20,
            movetime: 20,
            seed: 1,
            concurrency: 2,
        }
    }

    #[test]
    fn a_learners_own_budget_takes_precedence() {
        let (zero, value) = (&LEARNERS[0], &LEARNERS[2]);
        assert_eq!(training(zero, &options()), "train zero --run zero --minutes 60 --seed 1");
        assert_eq!(training(value, &options()), "train value --run value --games 3000 --seed 1");
        let options = Options {
            minutes: Some(5.0),
            budget: vec![budget("zero=--minutes 20 --threads 2").unwrap()],
            threads: Some(1),
            ..options()
        };
        let line = "train zero --run zero --minutes 20 --threads 2 --seed 1";
        assert_eq!(training(zero, &options), line);
        let line = "train value --run value --minutes 5 --threads 1 --seed 1";
        assert_eq!(training(value, &options), line);
        assert!(budget("zero").is_err() && budget("zero= ").is_err());
    }

    #[test]
    fn the_page_lists_the_strongest_first() {
        let row = |name: &str, elo: f64| Row {
            name: name.to_owned(),
            method: "a method".to_owned(),
            start: "nothing".to_owned(),
            seconds: 1800.0,
            games: 12,
            bytes: 3_400_000,
            elo,
            error: Some(20.0),
        };
        let rows = [row("qlearn", 40.0), row("tune", 1500.0)];
        let page = page(&rows, "cargo xtask compare --seed 1", &["selfmate x".into()], 20);
        let (tune, qlearn) = (page.find("tune").unwrap(), page.find("qlearn").unwrap());
        assert!(tune < qlearn);
        assert!(page.contains("Made by `cargo xtask compare --seed 1` on "), "{page}");
        assert!(page.contains("| 30 min | 12 | 3400 kB | 1500 ± 20 |"), "{page}");
        assert!(page.ends_with("```\nselfmate x\n```\n"));
    }

    #[test]
    fn the_error_names_a_player_that_is_not_on_the_ladder() {
        let trained = |learner, player: &str| Trained {
            learner,
            player: player.to_owned(),
            show: json!({ "elapsed_s": 60.0, "games": 5 }),
            bytes: 7,
        };
        let rated = json!({ "name": "run:zero@12", "elo": 1.0, "elo_error": 2.0 });
        let ladder = json!({ "players": [rated] });
        let found = row(&trained(&LEARNERS[0], "run:zero@12"), &ladder).unwrap();
        assert_eq!((found.elo, found.games, found.bytes), (1.0, 5, 7));
        let missing = row(&trained(&LEARNERS[1], "run:alphazero@3"), &ladder);
        let error = missing.map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, "run:alphazero@3 is not on the ladder");
    }

    #[test]
    fn numbers_and_sizes_are_formatted() {
        assert_eq!([7, 1000, 16_891_904].map(grouped), ["7", "1,000", "16,891,904"]);
        assert_eq!([999, 10_000, 12_345_678].map(size), ["999 B", "10 kB", "12 MB"]);
    }
}
