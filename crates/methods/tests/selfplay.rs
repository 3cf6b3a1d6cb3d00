//! Whole runs of the self-play learners with tiny configs.
#![allow(clippy::unwrap_used)] // test helpers may panic

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use selfmate_chess::Seed;
use selfmate_methods::zero::{self, ZeroConfig};
use selfmate_methods::{RunConfig, Settings, learner};
use selfmate_nn::Device;
use selfmate_run::{Budget, GameRecord, LiveGame, Record, Run, RunReader};
use selfmate_selfplay::{
    Completion, GameSink, GameSource, GenerationJob, LocalThreads, SelfPlayError, Stage, Status,
    Watch,
};
use selfmate_train::{End, Hardware, RatingConfig, TrainOptions, TrainingError};

const GAMES: u64 = 96;

struct Notes(Vec<String>);

impl Watch for Notes {
    fn note(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}

fn run_to(path: &Path, games: u64, threads: usize) -> Result<(End, Vec<String>), TrainingError> {
    run_with(&config("zero"), path, games, threads)
}

fn config(learner: &str) -> RunConfig {
    RunConfig::new(3, Settings::preset(learner, "tiny").unwrap())
}

fn zero_settings(config: ZeroConfig) -> Settings {
    Settings::new(learner("zero").unwrap(), Box::new(config))
}

fn run_with(
    config: &RunConfig,
    path: &Path,
    games: u64,
    threads: usize,
) -> Result<(End, Vec<String>), TrainingError> {
    let mut run = Run::open(path)?;
    run.write_config(&config.to_toml())?;
    let mut notes = Notes(Vec::new());
    let budget = Budget { games: Some(games), ..Budget::default() };
    let stop = Arc::new(AtomicBool::new(false));
    let end = config.train(&mut run, budget, threads, &stop, &mut notes)?;
    Ok((end, notes.0))
}

/// Every sealed chunk, and the network and optimiser of the last checkpoint.
fn results(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(path.join("games")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".games") {
            files.insert(name, fs::read(path).unwrap());
        }
    }
    let last = checkpoints(path).pop().unwrap();
    for name in ["model.safetensors", "trainer.safetensors"] {
        files.insert(name.to_owned(), fs::read(last.join(name)).unwrap());
    }
    files
}

/// The folders of the checkpoints, oldest first.
fn checkpoints(path: &Path) -> Vec<PathBuf> {
    let steps = fs::read_dir(path.join("checkpoints")).unwrap();
    let mut steps: Vec<(u64, PathBuf)> = steps
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            let step = path.file_name()?.to_str()?.parse().ok()?;
            Some((step, path))
        })
        .collect();
    steps.sort();
    steps.into_iter().map(|(_, path)| path).collect()
}

#[test]
fn results_do_not_depend_on_threads_or_pauses() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two, paused] = ["one", "two", "paused"].map(|name| folder.path().join(name));
    assert_eq!(run_to(&one, GAMES, 1).unwrap().0, End::Finished);
    run_to(&two, GAMES, 2).unwrap();
    for games in [1, 16, 40, 41, 80, GAMES] {
        run_to(&paused, games, 2).unwrap();
    }
    let expected = results(&one);
    assert!(expected.len() == 6 + 2);
    assert!(expected == results(&two), "two threads");
    assert!(expected == results(&paused), "a pause after every generation");
}

#[test]
fn results_of_residual_networks_in_lockstep_do_not_depend_on_threads_or_pauses() {
    let folder = tempfile::tempdir().unwrap();
    let [one, paused] = ["one", "paused"].map(|name| folder.path().join(name));
    run_with(&config("alphazero"), &one, 24, 1).unwrap();
    for games in [1, 9, 24] {
        run_with(&config("alphazero"), &paused, games, 2).unwrap();
    }
    let expected = results(&one);
    assert!(expected.len() == 3 + 2);
    assert!(expected == results(&paused));
}

#[test]
fn ratings_are_deterministic_and_do_not_affect_the_training() {
    let folder = tempfile::tempdir().unwrap();
    let [without, one, two] = ["without", "one", "two"].map(|name| folder.path().join(name));
    run_to(&without, 48, 1).unwrap();
    let rating = RatingConfig { every_seconds: 1e-3, games: 4, nodes: 50 };
    let rated = RunConfig::new(3, zero_settings(ZeroConfig { rating, ..zero::tiny() }));
    let ratings = |path: &Path, threads| {
        run_with(&rated, path, 48, threads).unwrap();
        assert!(results(path) == results(&without), "{threads} threads");
        let metrics = Run::open(path).unwrap().metrics().unwrap().0;
        let rating = |record: &Record| match record {
            Record::Rating(rating) => {
                Some((rating.step, rating.elo, rating.low, rating.high, rating.games))
            }
            _ => None,
        };
        let mistakes = |record: &Record| match record {
            Record::Progress(progress) => {
                progress.values.get("evaluation.endgame_mistakes").copied()
            }
            _ => None,
        };
        let ratings: Vec<_> = metrics.iter().filter_map(rating).collect();
        (ratings, metrics.iter().filter_map(mistakes).collect::<Vec<f64>>())
    };
    let (first, mistakes) = ratings(&one, 1);
    assert!(first.len() == 3 && first.iter().all(|rating| rating.4 == 4), "{first:?}");
    assert!(mistakes.len() == 3 && mistakes.iter().all(|share| *share > 0.1), "{mistakes:?}");
    assert_eq!((first, mistakes), ratings(&two, 2));
}

#[test]
fn metrics_count_every_game_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    run_to(&path, 32, 2).unwrap();
    run_to(&path, GAMES, 2).unwrap();
    let run = Run::open(&path).unwrap();
    let metrics = run.metrics().unwrap().0;
    let games: Vec<u64> = metrics
        .iter()
        .filter_map(|record| match record {
            Record::Progress(progress) => Some(progress.games),
            _ => None,
        })
        .collect();
    assert_eq!(games, [16, 32, 48, 64, 80, 96]);
    assert!(matches!(metrics[0], Record::Start { .. }));
    assert!(metrics.iter().any(|record| matches!(record, Record::Resume { .. })));
}

#[test]
fn a_damaged_checkpoint_is_reported_and_does_not_change_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    run_to(&whole, GAMES, 2).unwrap();
    let expected = results(&whole);
    let mut rng = Seed::new(9).rng();
    for (number, victim) in
        ["model.safetensors", "trainer.safetensors", "selfplay.json", "MANIFEST"].iter().enumerate()
    {
        let path = folder.path().join(format!("run{number}"));
        for games in [16, 32, 48] {
            run_to(&path, games, 2).unwrap();
        }
        let file = checkpoints(&path).pop().unwrap().join(victim);
        let mut bytes = fs::read(&file).unwrap();
        let bit = rng.below(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&file, bytes).unwrap();
        let (_, notes) = run_to(&path, GAMES, 2).unwrap();
        assert!(notes.iter().any(|note| note.contains(victim)), "{victim}: {notes:?}");
        assert!(expected == results(&path), "{victim}");
    }
}

#[test]
fn a_damaged_chunk_is_played_again_or_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    run_to(&path, 48, 2).unwrap();
    run_to(&path, 64, 2).unwrap();
    // The newest checkpoint is lost and the newest games are damaged, so they are played again. The
    // games before them are damaged too, but only needed for the replay buffer.
    fs::remove_dir_all(checkpoints(&path).pop().unwrap()).unwrap();
    let mut chunks: Vec<PathBuf> =
        fs::read_dir(path.join("games")).unwrap().map(|entry| entry.unwrap().path()).collect();
    chunks.sort();
    for chunk in &chunks[2..] {
        let mut bytes = fs::read(chunk).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        fs::write(chunk, bytes).unwrap();
    }
    let (end, notes) = run_to(&path, GAMES, 2).unwrap();
    assert_eq!(end, End::Finished);
    assert!(notes.iter().any(|note| note.contains("games")), "{notes:?}");
    assert_eq!(results(&path).len(), 5 + 2, "all generations but the one left out");
}

#[test]
fn a_missing_chunk_does_not_stop_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    run_to(&path, 64, 2).unwrap();
    let chunk = path.join("games").join("00000003.games");
    let mut bytes = fs::read(&chunk).unwrap();
    bytes[40] ^= 1;
    fs::write(&chunk, bytes).unwrap();
    // The first of these sets the chunk aside; the checkpoint still refers to it.
    for games in [64, 64, 80] {
        let (end, notes) = run_to(&path, games, 2).unwrap();
        assert_eq!(end, End::Finished);
        assert!(notes.iter().any(|note| note.contains("00000003")), "{notes:?}");
    }
}

/// Plays games, removes some and plays them again, and later reports others as invalid.
struct Unreliable;

impl GameSource for Unreliable {
    fn play(
        &mut self,
        job: &GenerationJob<'_>,
        sink: &mut GameSink<'_>,
    ) -> Result<Completion, SelfPlayError> {
        LocalThreads(2).play(job, sink)?;
        let removed: BTreeSet<u64> = job.numbers.iter().copied().take(3).collect();
        sink.remove(&removed)?;
        sink.sync()?;
        assert_eq!(sink.games().len() + removed.len(), 16);
        let again = GenerationJob { numbers: removed.into_iter().collect(), ..*job };
        LocalThreads(1).play(&again, sink)
    }

    fn take_invalid(&mut self) -> BTreeSet<u64> {
        BTreeSet::from([5, 17, 18])
    }
}

#[test]
fn invalid_games_are_removed_from_the_run() {
    let folder = tempfile::tempdir().unwrap();
    run_to(&folder.path().join("good"), 48, 2).unwrap();
    let good = Run::open(&folder.path().join("good")).unwrap();
    let mut run = Run::open(&folder.path().join("unreliable")).unwrap();
    let budget = Budget { games: Some(48), ..Budget::default() };
    let stop = Arc::new(AtomicBool::new(false));
    let options = TrainOptions {
        seed: 3,
        budget,
        hardware: Hardware { threads: 2, device: Device::Cpu },
        stop: &stop,
    };
    let settings = config("zero").settings;
    settings.train(&mut run, &options, &mut Unreliable, &mut ()).unwrap();
    // Games that were played again are the same; invalid games of earlier generations are removed.
    let numbers = |run: &Run, generation| {
        let games = run.read_chunk(generation).unwrap();
        games.iter().map(|game| game.number).collect::<Vec<u64>>()
    };
    assert_eq!(numbers(&run, 0).len(), 15);
    assert!(!numbers(&run, 0).contains(&5));
    assert_eq!(numbers(&run, 1).len(), 14);
    assert_eq!(numbers(&run, 2), numbers(&good, 2));
}

/// Local threads, with one stored game reported as invalid.
struct OneInvalid(u64);

impl GameSource for OneInvalid {
    fn play(
        &mut self,
        job: &GenerationJob<'_>,
        sink: &mut GameSink<'_>,
    ) -> Result<Completion, SelfPlayError> {
        LocalThreads(2).play(job, sink)
    }

    fn is_invalid(&self, number: u64) -> bool {
        number == self.0
    }
}

/// Collects the numbers of the games that were played.
#[derive(Default)]
struct Seen(Vec<u64>);

impl Watch for Seen {
    fn game(&mut self, game: &GameRecord) {
        self.0.push(game.number);
    }
}

#[test]
fn only_missing_and_invalid_games_are_played_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    run_to(&path, 48, 2).unwrap();
    let mut run = Run::open(&path).unwrap();
    let whole = run.read_chunk(2).unwrap();
    // Two games of the last generation have been removed, and the last checkpoint is lost.
    let fewer: Vec<GameRecord> = whole[2..].to_vec();
    run.replace_chunk(2, &fewer).unwrap();
    let steps = run.steps().unwrap();
    let last = steps.last().unwrap();
    fs::remove_dir_all(path.join(format!("checkpoints/{last}"))).unwrap();
    let budget = Budget { games: Some(48), ..Budget::default() };
    let stop = Arc::new(AtomicBool::new(false));
    let hardware = Hardware { threads: 2, device: Device::Cpu };
    let options = TrainOptions { seed: 3, budget, hardware, stop: &stop };
    let (mut source, mut seen) = (OneInvalid(whole[5].number), Seen::default());
    let settings = config("zero").settings;
    settings.train(&mut run, &options, &mut source, &mut seen).unwrap();
    seen.0.sort_unstable();
    assert_eq!(seen.0, [whole[0].number, whole[1].number, whole[5].number]);
    assert_eq!(run.read_chunk(2).unwrap(), whole);
}

/// Plays all games but is stopped before it has checked them.
struct StoppedBeforeCheck(Arc<AtomicBool>);

impl GameSource for StoppedBeforeCheck {
    fn play(
        &mut self,
        job: &GenerationJob<'_>,
        sink: &mut GameSink<'_>,
    ) -> Result<Completion, SelfPlayError> {
        LocalThreads(2).play(job, sink)?;
        self.0.store(true, Relaxed);
        Ok(Completion::Incomplete)
    }
}

#[test]
fn unchecked_games_are_kept_but_not_learned_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let stop = Arc::new(AtomicBool::new(false));
    let options = TrainOptions {
        seed: 3,
        budget: Budget::default(),
        hardware: Hardware { threads: 2, device: Device::Cpu },
        stop: &stop,
    };
    let settings = config("zero").settings;
    let mut run = Run::open(&path).unwrap();
    let mut source = StoppedBeforeCheck(Arc::clone(&stop));
    let end = settings.train(&mut run, &options, &mut source, &mut ()).unwrap();
    assert_eq!(end, End::Stopped);
    assert!(run.chunks().unwrap().is_empty());
    let (_, games) = run.journal(0).unwrap();
    assert_eq!(games.len(), 16, "kept for the next session");
}

#[test]
fn a_run_that_cannot_recover_stops_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::open(&folder.path().join("run")).unwrap();
    let mut config = zero::tiny();
    config.guards.patience = 1;
    config.guards.max_remedies = 1;
    config.guards.remedy_generations = 1;
    config.guards.max_truncated = 1.0;
    config.guards.max_draws = 1.0;
    config.guards.min_value_spread = 2.0;
    let config = RunConfig::new(3, zero_settings(config));
    let stop = Arc::new(AtomicBool::new(false));
    let end = config.train(&mut run, Budget::default(), 2, &stop, &mut ()).unwrap();
    let End::Collapsed(reason) = end else { panic!("{end:?}") };
    assert!(reason.contains("value_spread") && reason.contains("collapsed"), "{reason}");
    let metrics = run.metrics().unwrap().0;
    assert!(metrics.iter().any(|record| matches!(record, Record::Alarm(_))));
}

/// Reads the live games after each generation.
struct LiveWatch {
    run: RunReader,
    seen: Vec<LiveGame>,
}

impl Watch for LiveWatch {
    fn record(&mut self, record: &Record) {
        if matches!(record, Record::Progress(_)) {
            self.seen.extend(self.run.live_games().unwrap().1);
        }
    }
}

#[test]
fn live_games_are_shown_during_the_training_and_removed_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let config = config("zero");
    let mut run = Run::open(folder.path()).unwrap();
    run.write_config(&config.to_toml()).unwrap();
    let run_reader = RunReader::new(folder.path());
    let mut watch = LiveWatch { run: run_reader.clone(), seen: Vec::new() };
    let budget = Budget { games: Some(32), ..Budget::default() };
    let stop = Arc::new(AtomicBool::new(false));
    config.train(&mut run, budget, 2, &stop, &mut watch).unwrap();
    assert!(!watch.seen.is_empty());
    for live in &watch.seen {
        let position = selfmate_chess::fen::parse_fen(&live.fen);
        assert!(position.is_ok() && live.value.is_none_or(|value| value.abs() <= 1.0), "{live:?}");
    }
    assert_eq!(run_reader.live_games().unwrap().1, []);
}

/// Stops a run when it begins to learn from this many games.
struct StopsWhileLearning(Arc<AtomicBool>, u64);

impl Watch for StopsWhileLearning {
    fn status(&mut self, status: &Status) {
        if status.stage == Stage::Learn && status.games == self.1 {
            self.0.store(true, Relaxed);
        }
    }
}

#[test]
fn a_stop_while_learning_does_not_change_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, stopped] = ["whole", "stopped"].map(|name| folder.path().join(name));
    // Many batches, so that the stop comes long before the last one.
    let settings = Settings::preset("zero", "tiny").unwrap();
    let settings = settings.set(&["learning.batch=8".to_owned()]).unwrap();
    let config = RunConfig::new(3, settings);
    run_with(&config, &whole, 48, 2).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let mut run = Run::open(&stopped).unwrap();
    run.write_config(&config.to_toml()).unwrap();
    let budget = Budget { games: Some(48), ..Budget::default() };
    let mut watch = StopsWhileLearning(Arc::clone(&stop), 32);
    let end = config.train(&mut run, budget, 2, &stop, &mut watch).unwrap();
    assert_eq!(end, End::Stopped);
    let newest = run.latest_checkpoint(&["selfplay.json"]).unwrap().checkpoint.unwrap();
    let json =
        |file: &str| -> serde_json::Value { serde_json::from_slice(&newest.files[file]).unwrap() };
    let (totals, state) = (json("totals.json"), json("selfplay.json"));
    assert_eq!((&totals["rounds"], &totals["games"]), (&1.into(), &16.into()));
    assert!(state["learning"]["batches"].as_u64().unwrap() > 0, "{state}");
    drop(run);
    run_with(&config, &stopped, 48, 1).unwrap();
    assert!(results(&whole) == results(&stopped));
    let games = |path: &Path| -> Vec<(u64, u64)> {
        let metrics = Run::open(path).unwrap().metrics().unwrap().0;
        let games = metrics.iter().filter_map(|record| match record {
            Record::Progress(progress) => Some((progress.games, progress.steps)),
            _ => None,
        });
        games.collect()
    };
    assert_eq!(games(&whole), games(&stopped));
}

#[test]
fn a_run_continues_when_all_games_to_learn_from_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let settings = Settings::preset("zero", "tiny").unwrap();
    let settings = settings.set(&["learning.batch=8".to_owned()]).unwrap();
    let config = RunConfig::new(3, settings);
    let stop = Arc::new(AtomicBool::new(false));
    let mut run = Run::open(&path).unwrap();
    run.write_config(&config.to_toml()).unwrap();
    let mut watch = StopsWhileLearning(Arc::clone(&stop), 16);
    config.train(&mut run, Budget::default(), 2, &stop, &mut watch).unwrap();
    drop(run);
    let chunk = path.join("games").join("00000000.games");
    fs::remove_file(&chunk).unwrap();
    let (end, notes) = run_with(&config, &path, 48, 2).unwrap();
    assert_eq!(end, End::Finished);
    let expected = "none of the games to learn from can be read";
    assert_eq!(notes.iter().filter(|note| note.contains(expected)).count(), 1, "{notes:?}");
    let chunks = RunReader::new(&path).chunks().unwrap();
    assert_eq!(chunks, [1, 2], "missing games of learned generations are not played again");
}
