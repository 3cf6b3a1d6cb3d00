//! Ablations: many small runs that differ in some settings, with several seeds each, evaluated against
//! the exact tablebase.
//!
//! Each run may spend the same number of simulations on self-play. It uses one thread and depends
//! only on its settings and its seed; more threads run more runs at the same time. The outcome of
//! each run is a file, so a stopped ablation continues with the missing runs. Of the tables, only
//! `speed.csv` contains timings.

mod estimate;
mod grid;
mod table;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use selfmate_chess::Seed;
use selfmate_nn::Device;
use selfmate_nn::sparse::TrainError;
use selfmate_run::{GameRecord, atomic_file};
use selfmate_selfplay::{Ending, FinishedGame, Generation, SelfPlayer};
use selfmate_train::{Hardware, ReplayBuffer, Targets, TrainableModel, TrainingError, samples};
use serde::{Deserialize, Serialize};

pub use estimate::{Estimate, estimate};
pub use grid::{Axis, AxisError, Cell, Design, STUDY};
pub use table::{
    Mean, Metric, Row, Summary, axes_markdown, by_axis, results_csv, speed_csv, summarise,
};

use super::{
    Endgame, EndgameConfig, EndgameSample, Oracle, TablebaseEvaluationConfig, TablebaseReport,
    ValueMap, evaluate,
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The settings that all runs have in common.
    pub config: EndgameConfig,
    /// The settings that differ.
    pub axes: Vec<Axis>,
    pub design: Design,
    /// The number of runs per combination, with seeds from 1.
    pub seeds: u64,
    /// Simulations of self-play per run.
    pub budget: u64,
    /// Evaluations per run; the last one is at its end.
    pub evaluations: u64,
    pub evaluation: TablebaseEvaluationConfig,
}

/// A finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The settings that differ.
    pub cell: Cell,
    pub seed: u64,
    /// The evaluations, the last one at the end.
    pub points: Vec<Point>,
    /// The total time, including evaluations.
    pub seconds: f64,
    /// The time of the games.
    pub play_seconds: f64,
}

/// The state of a run at an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Simulations of self-play so far. The counts below are cumulative too.
    pub simulations: u64,
    pub games: u64,
    pub positions: u64,
    pub steps: u64,
    pub report: TablebaseReport,
}

#[derive(Debug, thiserror::Error)]
pub enum AblateError {
    #[error(transparent)]
    Axis(#[from] AxisError),
    #[error(transparent)]
    Learn(#[from] TrainingError),
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    /// The content is not valid.
    #[error("{}: {message}", path.display())]
    Damaged { path: PathBuf, message: String },
    /// The folder belongs to another ablation.
    #[error("{}: begun with other settings or by another version: choose another folder", path.display())]
    Other { path: PathBuf },
}

/// Reported after every run.
pub struct Progress<'a> {
    /// Finished runs.
    pub done: usize,
    pub total: usize,
    /// The run that has just finished.
    pub outcome: &'a Outcome,
}

impl Plan {
    /// All combinations with their settings.
    pub fn cells(&self) -> Result<Vec<(Cell, EndgameConfig)>, AxisError> {
        grid::cells(&self.config, &self.axes, self.design)
    }
}

/// For each combination the first one with the same settings, which has its runs.
fn first_equal(cells: &[(Cell, EndgameConfig)]) -> Vec<usize> {
    let first = |config| cells.iter().position(|(_, other)| other == config);
    cells.iter().enumerate().map(|(index, (_, config))| first(config).unwrap_or(index)).collect()
}

/// Runs the missing runs of a folder and returns all outcomes by combination, then seed. `None`
/// when it was stopped.
pub fn run(
    plan: &Plan,
    folder: &Path,
    threads: usize,
    stop: &AtomicBool,
    report: &(dyn Fn(&Progress<'_>) + Sync),
) -> Result<Option<Vec<Outcome>>, AblateError> {
    let cells = plan.cells()?;
    let runs_folder = folder.join("runs");
    fs::create_dir_all(&runs_folder).map_err(|error| file_error(&runs_folder, error))?;
    check_plan(plan, &folder.join("plan.json"))?;
    let first_equal = first_equal(&cells);
    // Seed by seed, so that a partial ablation covers every combination.
    let distinct = || (0..cells.len()).filter(|&cell| first_equal[cell] == cell);
    let jobs: Vec<(usize, u64)> =
        (1..=plan.seeds).flat_map(|seed| distinct().map(move |cell| (cell, seed))).collect();
    let path = |(cell, seed): (usize, u64)| runs_folder.join(format!("{cell:03}-{seed}.json"));
    let mut missing = Vec::new();
    for &job in &jobs {
        if read::<Outcome>(&path(job))?.is_none() {
            missing.push(job);
        }
    }
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(jobs.len() - missing.len()));
    let failure: Mutex<Option<AblateError>> = Mutex::new(None);
    let cancel = || stop.load(Relaxed) || failure.lock().is_ok_and(|failure| failure.is_some());
    let work = || {
        while let Some(&job) = missing.get(next.fetch_add(1, Relaxed)) {
            let (cell, config) = &cells[job.0];
            let outcome = run_one(plan, config, cell, job.1, &cancel).and_then(|ended| {
                let Some((outcome, picture)) = ended else { return Ok(None) };
                if job.1 == 1 {
                    write(&folder.join(format!("values-{:03}.svg", job.0)), picture.as_bytes())?;
                }
                // Written last, because a run with an outcome is not repeated.
                write(&path(job), &to_json(&outcome))?;
                Ok(Some(outcome))
            });
            match outcome {
                Ok(Some(outcome)) => {
                    let done = done.fetch_add(1, Relaxed) + 1;
                    report(&Progress { done, total: jobs.len(), outcome: &outcome });
                }
                Ok(None) => return,
                Err(error) => {
                    if let Ok(mut failure) = failure.lock() {
                        failure.get_or_insert(error);
                    }
                    return;
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, missing.len().max(1)) {
            scope.spawn(work);
        }
    });
    if let Some(error) = failure.into_inner().ok().flatten() {
        return Err(error);
    }
    let mut outcomes = Vec::new();
    for ((cell, _), first) in cells.iter().zip(first_equal) {
        for seed in 1..=plan.seeds {
            match read::<Outcome>(&path((first, seed)))? {
                Some(outcome) => outcomes.push(Outcome { cell: cell.clone(), ..outcome }),
                None => return Ok(None),
            }
        }
    }
    Ok(Some(outcomes))
}

/// One run, and an SVG picture of its values; `None` when it was cancelled.
fn run_one(
    plan: &Plan,
    config: &EndgameConfig,
    cell: &Cell,
    seed: u64,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<Option<(Outcome, String)>, AblateError> {
    let pool = single_thread()?;
    let began = Instant::now();
    let ending = config.selfplay.ending.unwrap_or(Ending::Krk);
    let oracle = Oracle::solve(ending).map_err(TrainingError::from)?;
    let mut learner = InMemoryLearner::new(config, seed)?;
    let mut outcome =
        Outcome { cell: cell.clone(), seed, points: Vec::new(), seconds: 0.0, play_seconds: 0.0 };
    for evaluation in 1..=plan.evaluations.max(1) {
        let until = plan.budget * evaluation / plan.evaluations.max(1);
        while learner.simulations < until {
            let started = Instant::now();
            let games = learner.play(cancel);
            outcome.play_seconds += started.elapsed().as_secs_f64();
            if cancel() {
                return Ok(None);
            }
            pool.install(|| learner.learn(&games))?;
        }
        // All runs are evaluated on the same positions.
        let (network, seed) = (learner.model.network(), Seed::new(0).derive("evaluation"));
        let report = pool.install(|| {
            evaluate(&config.selfplay, &plan.evaluation, &oracle, &network, seed, cancel)
        });
        let Some(report) = report else { return Ok(None) };
        let InMemoryLearner { simulations, games, positions, .. } = learner;
        let steps = learner.model.step();
        outcome.points.push(Point { simulations, games, positions, steps, report });
    }
    outcome.seconds = began.elapsed().as_secs_f64();
    let discount = config.selfplay.discount;
    let picture = ValueMap::usual(&oracle, &learner.model.network(), discount);
    Ok(Some((outcome, picture.svg(&format!("{}: {cell}, seed {seed}", ending.name())))))
}

fn single_thread() -> Result<rayon::ThreadPool, TrainingError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .map_err(|error| TrainError::Threads { threads: 1, message: error.to_string() }.into())
}

/// Learns like [`selfmate_train::SelfPlayLearner`], on one thread and without a run folder.
struct InMemoryLearner<'a> {
    config: &'a EndgameConfig,
    seed: u64,
    model: Endgame,
    replay: ReplayBuffer<EndgameSample>,
    simulations: u64,
    games: u64,
    positions: u64,
}

impl InMemoryLearner<'_> {
    fn new(config: &EndgameConfig, seed: u64) -> Result<InMemoryLearner<'_>, TrainingError> {
        let hardware = Hardware { threads: 1, device: Device::Cpu };
        let trainer = &config.learning.trainer;
        let model = Endgame::new(&config.network, trainer, Seed::new(seed), hardware)?;
        let replay = ReplayBuffer::default();
        Ok(InMemoryLearner { config, seed, model, replay, simulations: 0, games: 0, positions: 0 })
    }

    /// Plays the next generation; fewer games when it is cancelled.
    fn play(&mut self, cancel: &(dyn Fn() -> bool + Sync)) -> Vec<GameRecord> {
        let selfplay = &self.config.selfplay;
        let generation = Generation {
            config: selfplay.clone(),
            seed: Generation::games_seed(self.seed),
            simulations: selfplay.simulations.from.round() as u64,
            network: self.model.step(),
        };
        let evaluator = self.model.network().evaluator();
        let mut player = SelfPlayer::new(selfplay, Box::new(evaluator));
        let mut numbers = self.games..self.games + selfplay.generation_games;
        let mut games = Vec::new();
        let next = || numbers.next().filter(|_| !cancel());
        let finished = |game: FinishedGame| {
            self.simulations += game.simulations.max(1);
            // Rounded as in a file.
            games.push(game.record.rounded());
        };
        player.play(&generation, next, finished, &AtomicBool::new(false));
        games
    }

    fn learn(&mut self, games: &[GameRecord]) -> Result<(), TrainingError> {
        let EndgameConfig { learning, selfplay, .. } = self.config;
        let targets = Targets::new(learning, learning.result_weight.from, selfplay.discount);
        let added = samples::<Endgame>(games, targets)?;
        self.games += games.len() as u64;
        self.positions += added.len() as u64;
        self.replay.push(added);
        self.replay.trim(learning.replay_capacity(self.positions));
        let due = (self.positions as f64 * learning.reuse / learning.batch as f64) as u64;
        let seed = Seed::new(self.seed).derive("batches");
        for step in self.model.step()..due {
            let batch = self.replay.draw(learning.batch, &mut seed.index(step).rng());
            self.model.learn(&batch, learning.rate_at(0.0, step) as f32)?;
        }
        Ok(())
    }
}

/// Writes the plan, or compares it with the stored one.
fn check_plan(plan: &Plan, path: &Path) -> Result<(), AblateError> {
    match read::<Stored>(path)? {
        Some(stored) if stored.version == VERSION && stored.plan == *plan => Ok(()),
        Some(_) => Err(AblateError::Other { path: path.to_owned() }),
        None => write(path, &to_json(&Stored { version: VERSION.to_owned(), plan: plan.clone() })),
    }
}

/// Results of another version may differ.
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Serialize, Deserialize)]
struct Stored {
    version: String,
    plan: Plan,
}

fn to_json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec_pretty(value).expect("plans and outcomes are plain data")
}

/// The content of a file; `None` when it does not exist.
fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, AblateError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(file_error(path, error)),
    };
    let found = serde_json::from_slice(&bytes).map_err(|error| AblateError::Damaged {
        path: path.to_owned(),
        message: error.to_string(),
    })?;
    Ok(Some(found))
}

/// Writes a file atomically.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), AblateError> {
    atomic_file::write_with(path, |out| out.write_all(bytes))
        .map_err(|error| file_error(path, error))
}

fn file_error(path: &Path, error: io::Error) -> AblateError {
    AblateError::File { path: path.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let axes = ["root_rule=greedy,gumbel", "sims=4,8"];
        Plan {
            config: super::super::tiny(Ending::Krk),
            axes: axes.map(|text| text.parse().unwrap()).to_vec(),
            design: Design::Grid,
            seeds: 2,
            budget: 400,
            evaluations: 2,
            evaluation: TablebaseEvaluationConfig {
                every_rounds: 0,
                positions: 3,
                simulations: 4,
                moves: 3,
            },
        }
    }

    fn outcomes(folder: &Path, threads: usize) -> Vec<Outcome> {
        let mut outcomes =
            run(&plan(), folder, threads, &AtomicBool::new(false), &|_| {}).unwrap().unwrap();
        for outcome in &mut outcomes {
            (outcome.seconds, outcome.play_seconds) = (0.0, 0.0);
        }
        outcomes
    }

    #[test]
    fn results_do_not_depend_on_threads_or_interruptions() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two, stopped] = ["one", "two", "stopped"].map(|name| folder.path().join(name));
        let expected = outcomes(&one, 1);
        assert_eq!(expected.len(), 8);
        assert!(expected.iter().all(|outcome| outcome.points.len() == 2));
        assert_eq!(outcomes(&two, 2), expected);
        // Stopped after the third run, then continued.
        let stop = AtomicBool::new(false);
        let count = AtomicUsize::new(0);
        let report = |progress: &Progress<'_>| {
            assert_eq!(progress.total, 8);
            if count.fetch_add(1, Relaxed) == 2 {
                stop.store(true, Relaxed);
            }
        };
        assert!(run(&plan(), &stopped, 1, &stop, &report).unwrap().is_none());
        assert_eq!(fs::read_dir(stopped.join("runs")).unwrap().count(), 3);
        assert_eq!(outcomes(&stopped, 2), expected);
        // A folder belongs to one plan.
        let other = Plan { budget: 500, ..plan() };
        let error = run(&other, &one, 1, &AtomicBool::new(false), &|_| {}).unwrap_err();
        assert!(error.to_string().contains("plan.json: begun with other settings"), "{error}");
        // A damaged file is named.
        fs::write(two.join("runs/002-1.json"), "{").unwrap();
        let error = run(&plan(), &two, 1, &AtomicBool::new(false), &|_| {}).unwrap_err();
        assert!(error.to_string().contains("002-1.json"), "{error}");
    }

    #[test]
    fn equal_settings_are_run_once_and_every_axis_can_be_run() {
        let folder = tempfile::tempdir().unwrap();
        let axes = STUDY.map(|text| text.parse().unwrap()).to_vec();
        let design = Design::Each;
        let plan = Plan { axes, design, seeds: 1, budget: 60, evaluations: 1, ..plan() };
        let all = run(&plan, folder.path(), 2, &AtomicBool::new(false), &|_| {}).unwrap().unwrap();
        let cells = plan.cells().unwrap();
        assert_eq!(all.len(), cells.len());
        assert!(all.iter().zip(&cells).all(|(outcome, (cell, _))| outcome.cell == *cell));
        let runs = fs::read_dir(folder.path().join("runs")).unwrap().count();
        assert_eq!(runs, estimate(&plan, &|| false).unwrap().unwrap().combinations);
        assert!(runs < cells.len(), "{runs}");
        let find = |axis: &str, value: &str| {
            let is_wanted = |outcome: &&Outcome| outcome.cell.0[0] == (axis.into(), value.into());
            &all.iter().find(is_wanted).unwrap().points
        };
        assert_eq!(find("encoder", "mlp"), find("puct_formula", "alphazero"));
        assert_ne!(find("encoder", "mlp"), find("encoder", "cnn"));
        assert_ne!(find("expansion", "first_visit"), find("expansion", "random_untried"));
        // A cache changes nothing but the speed.
        assert_eq!(find("transpositions", "none"), find("transpositions", "cache"));
        assert_ne!(find("transpositions", "none"), find("transpositions", "shared"));
        let text = axes_markdown("krk", &all);
        assert_eq!(text.matches("\n| --- ").count() + text.matches("\n|---").count(), STUDY.len());
        assert!(text.contains("![krk: mate share by encoder](encoder-mate_share.svg)"), "{text}");
    }
}
