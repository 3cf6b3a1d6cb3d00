//! Whole runs of all learners with tiny configs: determinism, interruptions, damaged files. One file,
//! because each test file is linked separately.
#![allow(clippy::unwrap_used)] // test helpers may panic

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use selfmate_arena::Registry;
use selfmate_chess::{Game, Seed};
use selfmate_methods::{RunConfig, Settings, describe, players};
use selfmate_run::{Budget, Record, Run, RunReader};
use selfmate_search::player::Limit;
use selfmate_selfplay::{Stage, Status, Watch};
use selfmate_train::{End, TrainingError};

/// Steps at which a run pauses; the last is its end.
type Pauses = &'static [u64];

fn run_to(path: &Path, learner: &str, steps: u64, threads: usize) -> End {
    let settings = Settings::preset(learner, "tiny").unwrap();
    let budget = Budget { steps: Some(steps), ..Budget::default() };
    run_with(path, settings, budget, threads)
}

fn run_with(path: &Path, settings: Settings, budget: Budget, threads: usize) -> End {
    let config = RunConfig::new(5, settings);
    let mut run = Run::open(path).unwrap();
    run.write_config(&config.to_toml()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    config.train(&mut run, budget, threads, &stop, &mut ()).unwrap()
}

/// Deletes a file or the folder of a run as soon as the run has made progress.
struct Deleter(PathBuf);

impl Watch for Deleter {
    fn record(&mut self, record: &Record) {
        if matches!(record, Record::Progress(_)) && self.0.exists() {
            match self.0.is_dir() {
                true => fs::remove_dir_all(&self.0).unwrap(),
                false => fs::remove_file(&self.0).unwrap(),
            }
        }
    }
}

#[test]
fn a_training_whose_files_are_deleted_stops_with_an_error_that_names_them() {
    let folder = tempfile::tempdir().unwrap();
    for learner in ["zero", "krk", "tune"] {
        for name in ["metrics.jsonl", "lock", "run.toml", ""] {
            let path = folder.path().join(format!("{learner} without {name}"));
            let config = RunConfig::new(5, Settings::preset(learner, "tiny").unwrap());
            let mut run = Run::open(&path).unwrap();
            run.write_config(&config.to_toml()).unwrap();
            let stop = Arc::new(AtomicBool::new(false));
            // Without a budget: the training runs until it notices.
            let deleted = if name.is_empty() { path } else { path.join(name) };
            let mut deleter = Deleter(deleted.clone());
            let ended = config.train(&mut run, Budget::default(), 1, &stop, &mut deleter);
            let error = ended.unwrap_err().to_string();
            let expected = format!("{}: deleted, moved or replaced while", deleted.display());
            assert!(error.starts_with(&expected), "{learner}: {error}");
        }
    }
}

/// The folders of the checkpoints, oldest first.
fn checkpoints(path: &Path) -> Vec<PathBuf> {
    let steps = RunReader::new(path).steps().unwrap();
    steps.into_iter().map(|step| path.join("checkpoints").join(step.to_string())).collect()
}

/// The files of the last checkpoint, except those that contain times.
fn results(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let last = checkpoints(path).pop().unwrap();
    let files = fs::read_dir(last).unwrap().map(|entry| entry.unwrap().path());
    files
        .map(|file| {
            (file.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(file).unwrap())
        })
        .filter(|(name, _)| !["totals.json", "times.json", "MANIFEST"].contains(&name.as_str()))
        .collect()
}

/// Checks that threads, pauses and a lost checkpoint change no byte of the result, and that the run
/// has what the learner's charts show.
fn check(learner: &str, pauses: Pauses) {
    let folder = check_with(learner, &[], pauses);
    check_charts(&folder.path().join("paused"), learner);
}

/// The first part of [`check`] with some settings changed. Its runs need not have every metric.
fn check_with(learner: &str, changes: &[&str], pauses: Pauses) -> tempfile::TempDir {
    let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
    let settings = Settings::preset(learner, "tiny").unwrap().set(&changes).unwrap();
    let run_to = |path: &Path, steps, threads| {
        let budget = Budget { steps: Some(steps), ..Budget::default() };
        run_with(path, settings.clone(), budget, threads);
    };
    let folder = tempfile::tempdir().unwrap();
    let [one, two, paused, killed] =
        ["one", "two", "paused", "killed"].map(|name| folder.path().join(name));
    let end = *pauses.last().unwrap();
    run_to(&one, end, 1);
    run_to(&two, end, 2);
    for &steps in pauses {
        run_to(&paused, steps, 2);
    }
    // As if killed before the newest checkpoint was written.
    run_to(&killed, pauses[pauses.len() / 2], 2);
    let saved = checkpoints(&killed);
    if saved.len() > 1 {
        fs::remove_dir_all(saved.last().unwrap()).unwrap();
    }
    run_to(&killed, end, 1);
    let expected = results(&one);
    assert!(!expected.is_empty());
    for (name, path) in [("two threads", &two), ("pauses", &paused), ("a kill", &killed)] {
        let found = results(path);
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{name}");
        for (file, bytes) in &expected {
            assert!(found[file] == *bytes, "{learner}: {file} differs after {name}");
        }
    }
    check_metrics(&paused);
    check_player(folder.path(), "paused");
    folder
}

/// Checks that every round is recorded once.
fn check_metrics(path: &Path) {
    let metrics = RunReader::new(path).metrics().unwrap().0;
    let rounds: Vec<u64> = metrics
        .iter()
        .filter_map(|record| match record {
            // The metrics that `finish` adds do not belong to a round.
            Record::Progress(progress) => {
                progress.values.contains_key("round_seconds").then_some(progress.generation)
            }
            _ => None,
        })
        .collect();
    assert!(rounds.iter().copied().eq(1..=rounds.len() as u64), "{rounds:?}");
    assert!(metrics.iter().any(|record| matches!(record, Record::Resume { .. })));
}

/// Checks that every chart of a learner draws a metric that its runs have.
fn check_charts(path: &Path, learner: &str) {
    let metrics = RunReader::new(path).metrics().unwrap().0;
    let recorded = |name: &str| {
        metrics
            .iter()
            .any(|record| matches!(record, Record::Progress(p) if p.values.contains_key(name)))
    };
    // The short runs of these tests do not all reach their first evaluation.
    let is_rare = |name: &str| name.starts_with("evaluation") || name.starts_with("validation");
    for chart in selfmate_methods::learner(learner).unwrap().charts {
        if chart.curves.iter().all(|curve| is_rare(curve.metric)) {
            continue;
        }
        let has_curve = chart.curves.iter().any(|curve| recorded(curve.metric));
        assert!(has_curve, "{learner}: no run has a metric of the chart '{}'", chart.title);
    }
}

/// Checks that the player of a run plays, with and without a step in its name.
fn check_player(runs: &Path, name: &str) {
    let mut registry = Registry::standard();
    players::register(&mut registry, runs, Arc::new(|_| {}));
    let steps = RunReader::new(&runs.join(name)).steps().unwrap();
    let last = steps.last().unwrap();
    for text in [format!("run:{name}"), format!("run:{name}@{last}")] {
        let spec = registry.parse(&text).unwrap();
        let mut player = registry.build(&spec, Seed::new(1)).unwrap();
        let mut game = Game::new();
        for _ in 0..6 {
            let choice = player.choose(&game, &Limit::nodes(50)).unwrap();
            game.play(choice.played).unwrap();
        }
    }
    let spec = registry.parse(&format!("run:{name},c_puct=9,blunder=3")).unwrap();
    assert!(registry.build(&spec, Seed::new(1)).is_err(), "unknown options are an error");
}

#[test]
fn qlearn_does_not_depend_on_threads_or_interruptions() {
    check("qlearn", &[1, 1000, 1001, 4000]);
}

#[test]
fn qlearn_of_whole_games_does_not_depend_on_threads_or_interruptions() {
    let changes = ["start=game", "max_plies=24", "new_states=1", "doubt=9", "opponent=random"];
    check_with("qlearn", &changes, &[1, 300, 301, 1000]);
}

#[test]
fn evolve_does_not_depend_on_threads_or_interruptions() {
    check("evolve", &[1, 2, 4, 6]);
}

/// A small version of the preset `spec`.
const FOUR_WEIGHTS: [&str; 6] = [
    "start=four_weights",
    "genes=[\"material\", \"centre\", \"king_safety\", \"development\"]",
    "strategy=truncation",
    "population=6",
    "parents=3",
    "generations=4",
];

#[test]
fn evolve_of_four_weights_does_not_depend_on_threads_or_interruptions() {
    check_with("evolve", &FOUR_WEIGHTS, &[1, 2, 4]);
}

#[test]
fn evolve_ends_after_its_generations() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("four");
    let settings = Settings::preset("evolve", "tiny").unwrap();
    let settings = settings.set(&FOUR_WEIGHTS.map(str::to_owned)).unwrap();
    let budget = Budget { steps: Some(100), ..Budget::default() };
    for _ in 0..2 {
        let end = run_with(&path, settings.clone(), budget, 2);
        assert_eq!(end, End::Done("4 generations are over".to_owned()));
        assert_eq!(RunReader::new(&path).steps().unwrap().last(), Some(&4));
    }
    let lines = describe::describe(&RunReader::new(&path)).unwrap().lines;
    assert!(lines[0].starts_with("weights: material "), "{lines:?}");
    let mut registry = Registry::standard();
    players::register(&mut registry, folder.path(), Arc::new(|_| {}));
    let spec = registry.parse("run:four,depth=3").unwrap();
    let error = registry.build(&spec, Seed::new(1)).map(drop).unwrap_err().to_string();
    assert!(error.contains("no options for this run"), "{error}");
}

#[test]
fn tune_does_not_depend_on_threads_or_interruptions() {
    check("tune", &[1, 2, 3, 4]);
}

/// Settings of `tune` with which nearly every challenger is promoted.
const PROMOTIONS: [&str; 4] =
    ["trial.elo0=-200", "trial.elo1=-1", "trial.games=40", "pool.every=1"];

#[test]
fn tune_with_promotions_does_not_depend_on_threads_or_interruptions() {
    check_with("tune", &PROMOTIONS, &[1, 2, 3, 4]);
}

#[test]
fn tune_of_depths_and_time_does_not_depend_on_threads_or_interruptions() {
    let changes = [
        "genes=[\"search.depth_opening\", \"search.depth_endgame\", \"search.time_moves_left\"]",
        "cycle=[\"vary\", \"spsa\"]",
        "games.game_nodes=3000",
    ];
    check_with("tune", &changes, &[1, 2, 3, 4]);
}

#[test]
fn challengers_meet_earlier_champions_once_there_are_some() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tune");
    let settings = Settings::preset("tune", "tiny").unwrap();
    let settings = settings.set(&PROMOTIONS.map(str::to_owned)).unwrap();
    run_with(&path, settings, Budget { steps: Some(4), ..Budget::default() }, 2);
    let mut champions = 0.0;
    let mut pool_games = 0;
    for record in RunReader::new(&path).metrics().unwrap().0 {
        let Record::Progress(progress) = record else { continue };
        let values = progress.values;
        assert_eq!(values.contains_key("pool.score"), champions > 0.0, "{values:?}");
        pool_games += usize::from(champions > 0.0);
        champions = values["promotions"];
        let games: f64 = ["wins", "draws", "losses"]
            .iter()
            .map(|end| values[&format!("trial_results.{end}")])
            .sum();
        assert_eq!(games, values["trial_games"]);
        assert!((1.0..=60.0).contains(&values["trial_plies"]), "{values:?}");
    }
    assert!(pool_games > 0);
}

#[test]
fn reinforce_does_not_depend_on_threads_or_interruptions() {
    check("reinforce", &[1, 3, 4, 8]);
}

#[test]
fn value_does_not_depend_on_threads_or_interruptions() {
    check("value", &[1, 5, 8, 16]);
}

#[test]
fn value_with_batch_norm_does_not_depend_on_threads_or_interruptions() {
    let changes = [
        "network.batch_norm=true",
        "network.convolutions=1",
        "with_replacement=false",
        "mirror_images=false",
        "replay_min=150",
        "evaluation_games=white",
        "best_by=win_rate",
        "best_from=0",
    ];
    check_with("value", &changes, &[1, 5, 8, 16]);
}

#[test]
fn the_final_phase_of_zero_does_not_depend_on_threads_or_interruptions() {
    let changes =
        ["plan_games=48", "learning.final_phase.reuse=40", "learning.final_phase.batch=64"];
    let folder = check_with("zero", &changes, &[40, 90, 180, 190, 420, 5000]);
    // Self-play ended with the plan, the learning rate at its last value.
    let metrics = RunReader::new(&folder.path().join("paused")).metrics().unwrap().0;
    let mut rounds = metrics.iter().filter_map(|record| match record {
        Record::Progress(progress) => Some(progress),
        _ => None,
    });
    let last = rounds.next_back().unwrap();
    assert_eq!((last.games, last.values["final_phase"]), (48, 1.0), "{last:?}");
    assert!((last.values["learning_rate"] - 1e-5).abs() < 1e-9, "{last:?}");
}

#[test]
fn a_late_run_starts_its_final_phase_before_its_time_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("late");
    let changes = ["plan_games=1000000", "learning.final_phase.reuse=20"].map(str::to_owned);
    let settings = Settings::preset("zero", "tiny").unwrap().set(&changes).unwrap();
    let budget = Budget { minutes: Some(0.1), ..Budget::default() };
    run_with(&path, settings, budget, 2);
    let metrics = RunReader::new(&path).metrics().unwrap().0;
    let last = metrics.iter().rev().find_map(|record| match record {
        Record::Progress(progress) => Some(progress),
        _ => None,
    });
    let last = last.unwrap();
    assert!(last.games < 1_000_000 && last.values.contains_key("final_phase"), "{last:?}");
}

#[test]
fn krk_does_not_depend_on_threads_or_interruptions() {
    // The first evaluation follows the second round.
    check("krk", &[1, 9, 10, 80]);
}

#[test]
fn clone_does_not_depend_on_threads_or_interruptions() {
    check("clone", &[1, 3, 9, 1000]);
}

/// Stops a run after the first batch of its first round of batches.
struct StopsInRound(Arc<AtomicBool>);

impl Watch for StopsInRound {
    fn status(&mut self, status: &Status) {
        if status.stage == Stage::Learn && status.done > 0.0 {
            self.0.store(true, Relaxed);
        }
    }
}

#[test]
fn a_stop_within_a_round_does_not_shift_later_rounds() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, stopped] = ["whole", "stopped"].map(|name| folder.path().join(name));
    // After three rounds of games and one round of four batches, the second round of batches has
    // begun.
    let steps = 3 + 4 + 1;
    run_to(&whole, "clone", steps, 2);
    let config = RunConfig::new(5, Settings::preset("clone", "tiny").unwrap());
    let mut run = Run::open(&stopped).unwrap();
    run.write_config(&config.to_toml()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let mut watch = StopsInRound(Arc::clone(&stop));
    let end = config.train(&mut run, Budget::default(), 2, &stop, &mut watch).unwrap();
    assert_eq!(end, End::Stopped);
    assert_eq!(run.steps().unwrap().last(), Some(&4), "one batch of four");
    drop(run);
    run_to(&stopped, "clone", steps, 1);
    assert_eq!(
        checkpoints(&stopped).pop().unwrap().file_name(),
        checkpoints(&whole).pop().unwrap().file_name()
    );
    assert!(results(&stopped) == results(&whole));
}

#[test]
fn clone_of_a_residual_network_does_not_depend_on_threads_or_interruptions() {
    check("clone-residual", &[1, 3, 9, 1000]);
}

#[test]
fn clone_of_a_policy_network_does_not_depend_on_threads_or_interruptions() {
    check("clone-policy", &[1, 3, 9, 1000]);
}

/// The same games are learned from and the same are held out, for every network.
#[test]
fn clones_of_the_games_of_another_run_use_the_same_data() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own");
    let budget = Budget { steps: Some(1000), ..Budget::default() };
    run_to(&own, "clone", 1000, 2);
    let data = |path: &Path| -> serde_json::Value {
        let state: serde_json::Value =
            serde_json::from_slice(&results(path)["lessons.json"]).unwrap();
        assert!(state["positions"].as_u64().unwrap() > 100, "{state}");
        serde_json::json!([state["positions"], state["best"]["positions"]])
    };
    let expected = data(&own);
    let changes = ["source=run".to_owned(), format!("run={}", own.display())];
    for learner in ["clone", "clone-residual", "clone-policy"] {
        let path = folder.path().join(learner);
        let settings = Settings::preset(learner, "tiny").unwrap().set(&changes).unwrap();
        run_with(&path, settings, budget, 2);
        assert_eq!(data(&path), expected, "{learner}");
        assert!(RunReader::new(&path).chunks().unwrap().is_empty(), "{learner}");
    }
    // The same network learns the same from them.
    assert!(
        results(&folder.path().join("clone"))["model.safetensors"]
            == results(&own)["model.safetensors"]
    );
}

#[test]
fn clone_ends_by_itself_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let end = run_to(&path, "clone", 1_000_000, 2);
    let End::Done(reason) = &end else { panic!("{end:?}") };
    assert!(reason.contains("passes"), "{reason}");
    // Training a finished run again changes nothing.
    let before = results(&path);
    assert_eq!(run_to(&path, "clone", 1_000_000, 2), end);
    assert!(results(&path) == before);
}

/// There are more games to play than time.
#[test]
fn clone_stops_gathering_when_its_share_of_the_time_is_spent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let settings = Settings::preset("clone", "tiny").unwrap();
    let changes = ["games=1000000", "gathering_share=1e-9"].map(str::to_owned);
    let settings = settings.set(&changes).unwrap();
    let budget = Budget { minutes: Some(1000.0), ..Budget::default() };
    let end = run_with(&path, settings, budget, 2);
    let End::Done(reason) = &end else { panic!("{end:?}") };
    assert!(reason.contains("passes"), "{reason}");
    assert_eq!(RunReader::new(&path).chunks().unwrap(), [0]);
}

/// The time for gathering is spent on resume, but earlier files still count.
#[test]
fn clone_uses_all_files_from_before_an_interruption() {
    let folder = tempfile::tempdir().unwrap();
    let killed = folder.path().join("killed");
    let settings = Settings::preset("clone", "tiny").unwrap();
    // Two of three files exist, but no checkpoint.
    run_to(&killed, "clone", 2, 2);
    fs::remove_dir_all(killed.join("checkpoints")).unwrap();
    let late = settings.set(&["gathering_share=1e-9".to_owned()]).unwrap();
    run_with(&killed, late, Budget { minutes: Some(1000.0), ..Budget::default() }, 2);
    assert_eq!(RunReader::new(&killed).chunks().unwrap(), [0, 1]);
    let state = String::from_utf8(results(&killed)["lessons.json"].clone()).unwrap();
    assert!(state.contains(r#""games":16"#), "{state}");
}

#[test]
fn damaged_teacher_games_are_played_again() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, damaged] = ["whole", "damaged"].map(|name| folder.path().join(name));
    run_to(&whole, "clone", 12, 2);
    // By then all games have been gathered and training has begun.
    run_to(&damaged, "clone", 9, 2);
    let files = fs::read_dir(damaged.join("games")).unwrap().map(|entry| entry.unwrap().path());
    let file = files.filter(|file| file.is_file()).min().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    run_to(&damaged, "clone", 12, 2);
    assert!(results(&damaged) == results(&whole));
}

#[test]
fn a_damaged_checkpoint_is_replaced_by_the_one_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, damaged] = ["whole", "damaged"].map(|name| folder.path().join(name));
    run_to(&whole, "reinforce", 6, 2);
    for steps in [2, 4] {
        run_to(&damaged, "reinforce", steps, 2);
    }
    let file = checkpoints(&damaged).pop().unwrap().join("trainer.safetensors");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).unwrap();
    run_to(&damaged, "reinforce", 6, 2);
    assert!(results(&whole) == results(&damaged));
}

#[test]
fn the_last_evaluation_of_value_is_in_the_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("value");
    let evaluations = || -> Vec<u64> {
        let metrics = RunReader::new(&path).metrics().unwrap().0;
        let generations = metrics.iter().filter_map(|record| match record {
            Record::Progress(progress) if progress.values.contains_key("evaluation.score") => {
                let games = ["wins", "draws", "losses"]
                    .map(|name| progress.values[&format!("evaluation_games.{name}")]);
                assert_eq!(games.iter().sum::<f64>(), 4.0);
                let score = (games[0] + games[1] / 2.0) / 4.0;
                assert_eq!(progress.values["evaluation.score"], score);
                assert_eq!(progress.values["evaluation.win_rate"], games[0] / 4.0);
                Some(progress.generation)
            }
            _ => None,
        });
        generations.collect()
    };
    // A round has two batches; every third round is followed by an evaluation.
    run_to(&path, "value", 12, 2);
    assert_eq!(evaluations(), [4, 6]);
    run_to(&path, "value", 12, 2);
    run_to(&path, "value", 18, 2);
    assert_eq!(evaluations(), [4, 6, 9]);
}

#[test]
fn games_played_to_make_a_challenger_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tune");
    let settings = Settings::preset("tune", "tiny").unwrap();
    let settings = settings.set(&["cycle=[\"spsa\"]".to_owned()]).unwrap();
    let budget = Budget { steps: Some(1), ..Budget::default() };
    run_with(&path, settings, budget, 2);
    let metrics = RunReader::new(&path).metrics().unwrap().0;
    let round = metrics.iter().find_map(|record| match record {
        Record::Progress(progress) => Some(progress),
        _ => None,
    });
    let round = round.unwrap();
    // Two probes of a pair of games each, and the trial.
    assert_eq!(round.games as f64, 4.0 + round.values["trial_games"]);
}

#[test]
fn a_tuned_player_opens_with_its_book_unless_told_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    run_to(&folder.path().join("t"), "tune", 2, 2);
    let mut registry = Registry::standard();
    players::register(&mut registry, folder.path(), Arc::new(|_| {}));
    let identity = |text: &str| registry.resolve(text).unwrap().identity().unwrap().unwrap();
    assert!(identity("run:t").contains("book blake3 "), "{}", identity("run:t"));
    assert!(!identity("run:t,book=off").contains("book"), "{}", identity("run:t,book=off"));
    let opens = |text: &str, seed: u64| {
        let spec = registry.parse(text).unwrap();
        let mut player = registry.build(&spec, Seed::new(seed)).unwrap();
        let limit = Limit { depth: Some(1), ..Limit::default() };
        let choice = player.choose(&Game::new(), &limit).unwrap();
        (choice.played, choice.nodes)
    };
    // A book move is not searched.
    for seed in 0..10 {
        assert_eq!(opens("run:t", seed).1, None);
        assert_eq!(opens("run:t", seed), opens("run:t", seed));
    }
    assert!(opens("run:t,book=off", 0).1.is_some());
}

#[test]
fn a_player_whose_only_checkpoint_is_damaged_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("q");
    run_to(&path, "qlearn", 1, 2);
    for checkpoint in checkpoints(&path) {
        fs::write(checkpoint.join("table.q"), "short").unwrap();
    }
    let mut registry = Registry::standard();
    players::register(&mut registry, folder.path(), Arc::new(|_| {}));
    let spec = registry.parse("run:q").unwrap();
    let error = registry.build(&spec, Seed::new(1)).map(drop).unwrap_err().to_string();
    assert!(error.contains("no undamaged checkpoint") && error.contains("table.q"), "{error}");
}

#[test]
fn runs_of_qlearn_tune_and_evolve_have_descriptions() {
    let folder = tempfile::tempdir().unwrap();
    for (learner, steps, expected) in
        [("qlearn", 500, "states"), ("tune", 2, "trials"), ("evolve", 2, "piece values")]
    {
        let path = folder.path().join(learner);
        run_to(&path, learner, steps, 2);
        let lines = describe::describe(&RunReader::new(&path)).unwrap().lines;
        assert!(lines.iter().any(|line| line.contains(expected)), "{learner}: {lines:?}");
    }
}

/// Collects the notes of a run.
#[derive(Default)]
struct Notes(Vec<String>);

impl Watch for Notes {
    fn note(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}

/// Trains `tune` with Texel tuning only; returns the notes.
fn fit(path: &Path, steps: u64) -> Vec<String> {
    let mut notes = Notes::default();
    try_to_fit(path, steps, &mut notes).unwrap();
    notes.0
}

fn try_to_fit(path: &Path, steps: u64, notes: &mut Notes) -> Result<End, TrainingError> {
    let settings = Settings::preset("tune", "tiny").unwrap();
    let config = RunConfig::new(5, settings.set(&["cycle=[\"texel\"]".to_owned()]).unwrap());
    let mut run = Run::open(path).unwrap();
    run.write_config(&config.to_toml()).unwrap();
    let budget = Budget { steps: Some(steps), ..Budget::default() };
    config.train(&mut run, budget, 2, &Arc::default(), notes)
}

#[test]
fn a_damaged_or_incomplete_trial_is_reported_set_aside_and_left_out() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(Damage, &str); 3] = [
        // A change that is still valid JSON: another score.
        (
            |bytes| {
                let text = String::from_utf8(bytes.clone()).unwrap();
                let place = text.rfind("\"cp\":").unwrap() + 5;
                // The last game, and with it the sign, depends on the threads.
                bytes.insert(place + usize::from(bytes[place] == b'-'), b'1');
            },
            "not the games that the trial was decided by",
        ),
        (
            |bytes| {
                let last = bytes[..bytes.len() - 1].iter().rposition(|&byte| byte == b'\n');
                bytes.truncate(last.unwrap() + 1);
            },
            "games: expected 6",
        ),
        (
            |bytes| {
                let middle = bytes.len() / 2;
                bytes[middle - 20..middle].fill(0xff);
            },
            "trial-000000.games, line ",
        ),
    ];
    for (damage, expected) in damages {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tune");
        assert!(fit(&path, 1).is_empty());
        let trial = path.join("matches/trial-000000.games");
        let mut bytes = fs::read(&trial).unwrap();
        damage(&mut bytes);
        fs::write(&trial, bytes).unwrap();
        let notes = fit(&path, 3);
        let found: Vec<&String> = notes.iter().filter(|note| note.contains(expected)).collect();
        assert_eq!(found.len(), 1, "{expected}: {notes:?}");
        assert!(found[0].ends_with("; set aside, learning without this trial"), "{notes:?}");
        assert!(path.join("matches/trial-000000.damaged").exists());
        // Reported once, and the run continues.
        let notes = fit(&path, 4);
        assert!(notes.iter().all(|note| !note.contains("trial-000000")), "{expected}: {notes:?}");
    }
}

#[test]
fn a_missing_trial_is_reported_and_an_unreadable_one_stops_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tune");
    fit(&path, 1);
    let trial = path.join("matches/trial-000000.games");
    fs::remove_file(&trial).unwrap();
    let notes = fit(&path, 2);
    let is_report = |note: &&String| {
        note.contains("trial-000000.games") && note.ends_with("; learning without this trial")
    };
    assert_eq!(notes.iter().filter(is_report).count(), 1, "{notes:?}");
    // An I/O error may be temporary, so nothing is set aside.
    fs::create_dir(&trial).unwrap();
    let error = try_to_fit(&path, 3, &mut Notes::default()).unwrap_err().to_string();
    assert!(error.contains("trial-000000.games"), "{error}");
    assert!(trial.is_dir());
}

#[test]
fn changed_settings_are_reported_and_those_of_the_network_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    for learner in ["zero", "reinforce", "value", "krk", "clone", "clone-policy"] {
        let path = path.with_file_name(learner);
        // A round of zero has many steps.
        let (steps, more) = if learner == "zero" { (40, 60) } else { (4, 40) };
        run_to(&path, learner, steps, 2);
        let resume_with = |change: &str| {
            let settings = Settings::preset(learner, "tiny").unwrap();
            let config = RunConfig::new(5, settings.set(&[change.to_owned()]).unwrap());
            let mut run = Run::open(&path).unwrap();
            run.write_config(&config.to_toml()).unwrap();
            let budget = Budget { steps: Some(steps + more), ..Budget::default() };
            let mut notes = Notes::default();
            let end = config.train(&mut run, budget, 2, &Arc::default(), &mut notes);
            (end.map_err(|error| error.to_string()), notes.0)
        };
        let (shape, rate) = match learner {
            "zero" => ("network.hidden=128", "learning.rate.to=0.0002"),
            "clone" => ("network.hidden=128", "rate.to=0.0002"),
            "value" => ("network.channels=8", "rate=0.0002"),
            "krk" => ("network.first=24", "learning.rate.to=0.0002"),
            _ => ("network.first=24", "rate.to=0.0002"),
        };
        let (end, _) = resume_with(shape);
        let error = end.unwrap_err();
        let name = shape.split('=').next().unwrap();
        assert!(error.starts_with(&format!("run.toml: {name} is ")), "{learner}: {error}");
        assert!(error.contains("was made with"), "{learner}: {error}");
        // Checkpoints of earlier versions have no copy of the settings, but the network has its
        // shape.
        let newest = RunReader::new(&path).latest_checkpoint(&["run.toml"]).unwrap();
        let newest = newest.checkpoint.unwrap();
        let save = |is_kept: &dyn Fn(&str) -> bool| {
            let files = newest.files.iter().filter(|(name, _)| is_kept(name));
            let files: Vec<(&str, &[u8])> =
                files.map(|(name, bytes)| (&**name, &**bytes)).collect();
            Run::open(&path).unwrap().save_checkpoint(newest.step, &files).unwrap();
        };
        save(&|name| name != "run.toml");
        let error = resume_with(shape).0.unwrap_err();
        assert!(error.contains("a network of ") && error.contains("run.toml says"), "{error}");
        save(&|_| true);
        let (end, notes) = resume_with(rate);
        end.unwrap();
        let name = rate.split('=').next().unwrap();
        let reports =
            notes.iter().filter(|note| note.starts_with(&format!("run.toml: {name} was ")));
        assert_eq!(reports.count(), 1, "{learner}: {notes:?}");
        // The new checkpoint has the changed settings, so there is nothing to report.
        let (end, notes) = resume_with(rate);
        end.unwrap();
        assert!(notes.is_empty(), "{learner}: {notes:?}");
    }
}

/// With settings at their bounds a round would take hours; the deadline ends it.
#[test]
fn a_deadline_holds_inside_the_longest_loop() {
    let cases: [(&str, &[&str]); 12] = [
        ("zero", &["learning.reuse=1000", "learning.batch=1"]),
        (
            "zero",
            &[
                "selfplay.simulations.from=1e6",
                "selfplay.simulations.to=1e6",
                "selfplay.memory_mb=16",
            ],
        ),
        ("zero", &["selfplay.generation_games=1000000", "selfplay.opening_plies=1000"]),
        (
            "zero",
            &[
                "selfplay.long_opening_plies=1000",
                "selfplay.long_opening_share=1",
                "rating.every_seconds=1e-9",
            ],
        ),
        (
            "alphazero",
            &["selfplay.bootstrap.games=1000000", "selfplay.bootstrap.simulations=1000000"],
        ),
        ("krk", &["learning.reuse=1000", "learning.batch=1"]),
        ("krk", &["selfplay.max_plies=10000", "selfplay.generation_games=1000000"]),
        ("value", &["round_batches=1000000"]),
        ("reinforce", &["round_games=1000000", "max_plies=10000"]),
        ("qlearn", &["round_games=1000000", "max_plies=10000"]),
        ("tune", &["games.nodes=1000000000", "losses.nodes=1000000000"]),
        ("evolve", &["games.nodes=1000000000", "population=10000"]),
    ];
    for (learner, changes) in cases {
        let folder = tempfile::tempdir().unwrap();
        let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
        let settings = Settings::preset(learner, "tiny").unwrap().set(&changes).unwrap();
        settings.check().unwrap();
        let budget = Budget { minutes: Some(0.01), ..Budget::default() };
        let end = run_with(folder.path(), settings, budget, 2);
        assert_eq!(end, End::Finished, "{learner} {changes:?}");
    }
}
