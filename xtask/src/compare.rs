//! `cargo xtask compare`: trains the learners, each with its own budget, and rates them on one ladder,
//! together with a search that does not learn.
//!
//! Writes docs/comparison.md and its picture, which are generated and never edited by hand. When it
//! is started again after an interruption, trainings and the ladder continue where they stopped.

mod code_lines;
mod method;
mod page;

use std::{
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

use method::{METHODS, Method, Source};
use page::{Row, Training, page};

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

pub fn run(options: &Options) -> Result<()> {
    for name in options.only.iter().chain(options.budget.iter().map(|(name, _)| name)) {
        let names: Vec<&str> = METHODS.iter().map(|method| method.name).collect();
        ensure!(
            names.contains(&name.as_str()),
            "unknown method '{name}': expected one of {}",
            names.join(", ")
        );
    }
    for (name, _) in &options.budget {
        let is_trained = |method: &&Method| method.name == name && method.budget().is_some();
        ensure!(
            METHODS.iter().any(|method| is_trained(&method)),
            "--budget {name}: {name} is not trained"
        );
    }
    ensure!(
        find_program("stockfish").is_some(),
        "Stockfish is missing, but the ladder needs it as an anchor: install it with `cargo xtask setup`"
    );
    run_command(&mut cargo("build --release -p selfmate"))?;
    let workspace = Workspace::open()?;
    let chosen: Vec<&Method> = METHODS
        .iter()
        .filter(|method| options.only.is_empty() || options.only.iter().any(|n| n == method.name))
        .collect();
    let trainings: Vec<(&str, String)> = chosen
        .iter()
        .filter_map(|method| Some((method.name, training(method, options)?)))
        .collect();
    train(&workspace, &trainings, options.jobs)?;

    let entries: Result<Vec<Entry>> =
        chosen.iter().map(|method| Entry::find(&workspace, method)).collect();
    let entries = entries?;
    let anchored = ANCHORS.iter().map(|(player, _)| (*player).to_owned());
    let players: Vec<String> =
        entries.iter().map(|entry| entry.player.clone()).chain(anchored).collect();
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
    let rows: Result<Vec<Row>> = entries.iter().map(|entry| row(entry, &report)).collect();
    let commands = trainings.iter().map(|(_, training)| training).chain([&ladder]);
    let commands: Vec<String> = commands.map(|line| format!("selfmate {line}")).collect();
    let page = page(&rows?, &own_command(), &commands, options.movetime);
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

/// The arguments that train a method; `None` if it does not learn.
fn training(method: &Method, options: &Options) -> Option<String> {
    let budget = method.budget()?;
    let own = options.budget.iter().find(|(name, _)| name == method.name);
    let flags = own.map(|(_, flags)| flags.clone()).unwrap_or_else(|| {
        let minutes = options.minutes.map(|minutes| format!("--minutes {minutes}"));
        let threads = options.threads.map(|threads| format!(" --threads {threads}"));
        minutes.unwrap_or_else(|| budget.to_owned()) + &threads.unwrap_or_default()
    });
    Some(format!("train {0} --run {0} {flags} --seed {1}", method.name, options.seed))
}

/// Runs the trainings, `jobs` of them in parallel. Parallel trainings write to a log file each.
fn train(workspace: &Workspace, trainings: &[(&str, String)], jobs: usize) -> Result<()> {
    let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Relaxed);
                    let Some((name, training)) = trainings.get(index) else { return };
                    if let Err(error) = train_one(workspace, name, training, jobs > 1) {
                        // Running trainings continue; no other is started.
                        next.store(trainings.len(), Relaxed);
                        eprintln!(
                            "training {name} failed; waiting for the other running trainings"
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

/// A method that is ready for the ladder.
struct Entry<'a> {
    method: &'a Method,
    /// Player spec; of a run with its step.
    player: String,
    training: Option<Training>,
    code_lines: usize,
}

impl<'a> Entry<'a> {
    fn find(workspace: &Workspace, method: &'a Method) -> Result<Entry<'a>> {
        let code_lines = code_lines::count(root(), method.files)?;
        let name = method.name;
        if let Source::Player(player) = method.source {
            let player = player.to_owned();
            return Ok(Entry { method, player, training: None, code_lines });
        }
        let show = capture(&mut workspace.selfmate(&format!("show {name} --json")))?;
        let show: Value = serde_json::from_str(&show).context("`show` printed no JSON")?;
        let step = show["latest"]["checkpoint"].as_u64().context("the run has no checkpoint")?;
        let checkpoint = workspace.runs.join(name).join("checkpoints").join(step.to_string());
        let sizes = PLAYER_FILES.iter().filter_map(|file| fs::metadata(checkpoint.join(file)).ok());
        let training = Training {
            seconds: show["elapsed_s"]
                .as_f64()
                .with_context(|| format!("{name} has no elapsed_s"))?,
            games: show["games"].as_u64().unwrap_or(0),
            bytes: sizes.map(|size| size.len()).sum(),
        };
        let player = format!("run:{name}@{step}");
        Ok(Entry { method, player, training: Some(training), code_lines })
    }
}

fn row<'a>(entry: &Entry<'a>, ladder: &Value) -> Result<Row<'a>> {
    let Entry { method, player, training, code_lines } = entry;
    let rated = ladder["players"].as_array().context("the ladder lists no players")?;
    let rated = rated.iter().find(|rated| rated["name"] == player.as_str());
    let rated = rated.with_context(|| format!("{player} is not on the ladder"))?;
    Ok(Row {
        method,
        training: *training,
        code_lines: *code_lines,
        elo: rated["elo"].as_f64().with_context(|| format!("{player} has no elo"))?,
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
        let (zero, value) = (&METHODS[0], &METHODS[2]);
        let training = |method, options: &Options| training(method, options).unwrap();
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
    fn the_error_names_a_player_that_is_not_on_the_ladder() {
        let training = Some(Training { seconds: 60.0, games: 5, bytes: 7 });
        let entry = |method, player: &str| Entry {
            method,
            player: player.to_owned(),
            training,
            code_lines: 3,
        };
        let rated = json!({ "name": "run:zero@12", "elo": 1.0, "elo_error": 2.0 });
        let ladder = json!({ "players": [rated] });
        let found = row(&entry(&METHODS[0], "run:zero@12"), &ladder).unwrap();
        assert_eq!((found.elo, found.training, found.code_lines), (1.0, training, 3));
        let missing = row(&entry(&METHODS[1], "run:alphazero@3"), &ladder);
        let error = missing.map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, "run:alphazero@3 is not on the ladder");
    }

    #[test]
    fn a_search_without_a_network_is_not_trained() {
        let rollout = METHODS.iter().find(|method| method.name == "rollout").unwrap();
        assert_eq!(training(rollout, &options()), None);
        let error =
            run(&Options { budget: vec![budget("rollout=--minutes 1").unwrap()], ..options() });
        assert_eq!(error.unwrap_err().to_string(), "--budget rollout: rollout is not trained");
    }
}
