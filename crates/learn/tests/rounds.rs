//! Whole runs of every learner that goes in rounds, with tiny configs.
#![allow(clippy::unwrap_used)] // helpers of tests may fail as tests do

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use selfmate_arena::Registry;
use selfmate_chess::{Game, Seed};
use selfmate_learn::{Budget, End, RunConfig, Settings, knowledge, players, train};
use selfmate_run::{Record, Run, RunReader};
use selfmate_search::player::Limit;

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
    train(&mut run, &config, budget, threads, &stop, &mut ()).unwrap()
}

/// The folders of the checkpoints, oldest first.
fn checkpoints(path: &Path) -> Vec<PathBuf> {
    let steps = RunReader::new(path).steps().unwrap();
    steps.into_iter().map(|step| path.join("checkpoints").join(step.to_string())).collect()
}

/// What the last checkpoint holds, but for the time it took.
fn results(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let last = checkpoints(path).pop().unwrap();
    let files = fs::read_dir(last).unwrap().map(|entry| entry.unwrap().path());
    files
        .map(|file| {
            (file.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(file).unwrap())
        })
        .filter(|(name, _)| name != "totals.json" && name != "MANIFEST")
        .collect()
}

/// Threads, pauses and a lost checkpoint change no byte of what is learned.
fn check(learner: &str, pauses: Pauses) {
    check_with(learner, &[], pauses);
}

/// The same with some settings changed.
fn check_with(learner: &str, changes: &[&str], pauses: Pauses) {
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
    // A kill between two checkpoints: the newest was never written.
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
}

/// Every round counts once, and its curves are numbers.
fn check_metrics(path: &Path) {
    let metrics = RunReader::new(path).metrics().unwrap();
    let rounds: Vec<u64> = metrics
        .iter()
        .filter_map(|record| match record {
            // What is found out at the end of a run is no round of its own.
            Record::Progress(progress) => {
                progress.values.contains_key("round_seconds").then_some(progress.generation)
            }
            _ => None,
        })
        .collect();
    assert!(rounds.iter().copied().eq(1..=rounds.len() as u64), "{rounds:?}");
    assert!(metrics.iter().any(|record| matches!(record, Record::Resume { .. })));
}

/// What was learned plays, with and without a step.
fn check_player(runs: &Path, name: &str) {
    let mut registry = Registry::standard();
    players::register(&mut registry, runs);
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
    let spec = registry.parse(&format!("run:{name},cpuct=9,blunder=3")).unwrap();
    assert!(registry.build(&spec, Seed::new(1)).is_err(), "options that mean nothing are refused");
}

#[test]
fn qlearn_is_the_same_whatever_happens() {
    check("qlearn", &[1, 1000, 1001, 4000]);
}

#[test]
fn qlearn_of_whole_games_is_the_same_whatever_happens() {
    let changes = ["start=game", "max_plies=24", "new_states=1", "doubt=9", "opponent=random"];
    check_with("qlearn", &changes, &[1, 300, 301, 1000]);
}

#[test]
fn evolve_is_the_same_whatever_happens() {
    check("evolve", &[1, 2, 4, 6]);
}

#[test]
fn tune_is_the_same_whatever_happens() {
    check("tune", &[1, 2, 3, 4]);
}

#[test]
fn reinforce_is_the_same_whatever_happens() {
    check("reinforce", &[1, 3, 4, 8]);
}

#[test]
fn value_is_the_same_whatever_happens() {
    check("value", &[1, 5, 8, 16]);
}

#[test]
fn an_ending_is_the_same_whatever_happens() {
    check("krk", &[1, 9, 10, 30]);
}

#[test]
fn clone_is_the_same_whatever_happens() {
    check("clone", &[1, 3, 9, 1000]);
}

#[test]
fn clone_of_a_residual_network_is_the_same_whatever_happens() {
    check("clone-residual", &[1, 3, 5, 9]);
}

#[test]
fn clone_ends_by_itself_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let end = run_to(&path, "clone", 1_000_000, 2);
    let End::Done(reason) = &end else { panic!("{end:?}") };
    assert!(reason.contains("passes"), "{reason}");
    // Once it is done it is done.
    let before = results(&path);
    assert_eq!(run_to(&path, "clone", 1_000_000, 2), end);
    assert!(results(&path) == before);
}

/// With more games asked for than there is time to play.
#[test]
fn clone_learns_from_what_it_has_when_its_share_of_the_time_is_over() {
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

/// The time is over when it goes on, but what was played before counts.
#[test]
fn clone_learns_from_all_files_that_are_there_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let killed = folder.path().join("killed");
    let settings = Settings::preset("clone", "tiny").unwrap();
    // Two files of three, and then all checkpoints are lost.
    run_to(&killed, "clone", 2, 2);
    fs::remove_dir_all(killed.join("checkpoints")).unwrap();
    let late = settings.set(&["gathering_share=1e-9".to_owned()]).unwrap();
    run_with(&killed, late, Budget { minutes: Some(1000.0), ..Budget::default() }, 2);
    assert_eq!(RunReader::new(&killed).chunks().unwrap(), [0, 1]);
    let state = String::from_utf8(results(&killed)["lessons.json"].clone()).unwrap();
    assert!(state.contains(r#""games":16"#), "{state}");
}

#[test]
fn lessons_that_are_damaged_are_played_again() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, damaged] = ["whole", "damaged"].map(|name| folder.path().join(name));
    run_to(&whole, "clone", 12, 2);
    // By then all games are gathered, and the learning has begun.
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
fn a_damaged_checkpoint_is_named_and_the_one_before_it_used() {
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
fn the_last_exam_of_a_value_network_is_on_its_curve() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("value");
    let exams = || -> Vec<u64> {
        let metrics = RunReader::new(&path).metrics().unwrap();
        let told = metrics.iter().filter_map(|record| match record {
            Record::Progress(progress) if progress.values.contains_key("exam.score") => {
                Some(progress.generation)
            }
            _ => None,
        });
        told.collect()
    };
    // Two batches a round, an exam after every third.
    run_to(&path, "value", 12, 2);
    assert_eq!(exams(), [4, 6]);
    run_to(&path, "value", 12, 2);
    run_to(&path, "value", 18, 2);
    assert_eq!(exams(), [4, 6, 9]);
}

#[test]
fn games_of_every_way_to_make_a_challenger_count() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tune");
    let settings = Settings::preset("tune", "tiny").unwrap();
    let settings = settings.set(&["cycle=[\"spsa\"]".to_owned()]).unwrap();
    let budget = Budget { steps: Some(1), ..Budget::default() };
    run_with(&path, settings, budget, 2);
    let metrics = RunReader::new(&path).metrics().unwrap();
    let round = metrics.iter().find_map(|record| match record {
        Record::Progress(progress) => Some(progress),
        _ => None,
    });
    let round = round.unwrap();
    // Two probes of a pair of games each, and the trial.
    assert_eq!(round.games as f64, 4.0 + round.values["trial_games"]);
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
    players::register(&mut registry, folder.path());
    let spec = registry.parse("run:q").unwrap();
    let error = registry.build(&spec, Seed::new(1)).map(drop).unwrap_err().to_string();
    assert!(error.contains("no whole checkpoint") && error.contains("table.q"), "{error}");
}

#[test]
fn what_a_table_and_a_champion_know_can_be_told() {
    let folder = tempfile::tempdir().unwrap();
    for (learner, steps, expected) in
        [("qlearn", 500, "states"), ("tune", 2, "trials"), ("evolve", 2, "piece values")]
    {
        let path = folder.path().join(learner);
        run_to(&path, learner, steps, 2);
        let lines = knowledge::describe(&RunReader::new(&path)).unwrap();
        assert!(lines.iter().any(|line| line.contains(expected)), "{learner}: {lines:?}");
    }
}
