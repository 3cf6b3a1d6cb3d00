//! `selfmate train`, killed and resumed for real.
#![allow(clippy::unwrap_used)] // helpers of tests may fail as tests do

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use selfmate_chess::Seed;
use selfmate_methods::{LEARNERS, Settings};
use selfmate_run::{Record, RunReader};

const GAMES: &str = "600";

fn train(runs: &Path, run: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selfmate"));
    command.args(["train", "--preset", "tiny", "--games", GAMES, "--seed", "5", "--run", run]);
    command.arg("--runs").arg(runs).stderr(Stdio::piped());
    command
}

/// The sealed games and the last network.
fn results(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(run.join("games")).unwrap() {
        let path = entry.unwrap().path();
        files.insert(
            path.file_name().unwrap().to_string_lossy().into_owned(),
            fs::read(&path).unwrap(),
        );
    }
    let reader = RunReader::new(run);
    let step = *reader.steps().unwrap().last().unwrap();
    let network = run.join("checkpoints").join(step.to_string()).join("model.safetensors");
    files.insert("network".to_owned(), fs::read(network).unwrap());
    files
}

/// All files below a folder with their lengths and times; every write changes it.
fn files(folder: &Path) -> BTreeMap<PathBuf, (u64, Option<SystemTime>)> {
    let mut found = BTreeMap::new();
    // Files may vanish while we look.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(data) = entry.metadata() else { continue };
        if data.is_dir() {
            found.extend(files(&entry.path()));
        }
        found.insert(entry.path(), (data.len(), data.modified().ok()));
    }
    found
}

/// Kills a training (SIGKILL: nothing can be tidied up) after it has been seen to write to its folder
/// this many times. Returns whether it was still running.
fn kill_after_writes(child: &mut Child, run: &Path, writes: usize) -> bool {
    let mut last = files(run);
    for _ in 0..writes {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let now = files(run);
            if now != last {
                last = now;
                break;
            }
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            assert!(Instant::now() < deadline, "the training writes nothing");
            std::thread::yield_now();
        }
    }
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

#[test]
fn twenty_kills_lose_nothing_and_count_nothing_twice() {
    let runs = tempfile::tempdir().unwrap();
    let whole = train(runs.path(), "whole").output().unwrap();
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));

    let mut rng = Seed::new(20).rng();
    for kill in 1..=20 {
        let mut child = train(runs.path(), "killed").spawn().unwrap();
        let writes = 1 + rng.below(40);
        let was_running = kill_after_writes(&mut child, &runs.path().join("killed"), writes);
        assert!(was_running, "kill {kill} came too late");
    }
    let last = train(runs.path(), "killed").output().unwrap();
    assert!(last.status.success(), "{}", String::from_utf8_lossy(&last.stderr));
    let (whole, killed) = (runs.path().join("whole"), runs.path().join("killed"));
    assert!(results(&whole) == results(&killed));

    let progress = |run: &Path| -> Vec<(u64, u64, u64, u64)> {
        let metrics = RunReader::new(run).metrics().unwrap().0;
        let numbers = metrics.into_iter().filter_map(|record| match record {
            Record::Progress(p) => Some((p.generation, p.games, p.positions, p.steps)),
            _ => None,
        });
        numbers.collect()
    };
    assert_eq!(progress(&whole), progress(&killed));
}

#[test]
fn a_stored_run_refuses_other_settings_and_bad_ones_are_named() {
    let runs = tempfile::tempdir().unwrap();
    let error = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selfmate"));
        command.args(["train", "--preset", "tiny", "--games", "16", "--run", "r"]).args(arguments);
        let output = command.arg("--runs").arg(runs.path()).output().unwrap();
        (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert!(error(&["--set", "selfplay.simms=3"]).unwrap().contains("there is no 'simms'"));
    assert!(error(&["--set", "learning.batch=0"]).unwrap().contains("learning.batch is 0"));
    assert_eq!(error(&[]), None);
    assert_eq!(error(&[]), None);
    assert!(error(&["--seed", "2"]).unwrap().contains("has seed 1, not 2"));
    let other = error(&["--set", "learning.batch=32"]).unwrap();
    assert!(other.contains("was started with learning.batch = 64, not 32"), "{other}");
}

#[test]
fn a_run_that_failed_before_it_did_anything_takes_other_settings() {
    let runs = tempfile::tempdir().unwrap();
    let pgn = runs.path().join("games.pgn");
    fs::write(&pgn, "[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 1-0\n\n".repeat(16)).unwrap();
    let train = |file: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selfmate"));
        command.args(["train", "clone", "--preset", "tiny", "--steps", "2", "--set", "source=pgn"]);
        command.arg("--set").arg(format!("pgn.files=[{:?}]", file.display().to_string()));
        let output = command.arg("--runs").arg(runs.path()).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (is_fine, error) = train(Path::new("nowhere.pgn"));
    assert!(!is_fine && error.contains("nowhere.pgn"), "{error}");
    let (is_fine, error) = train(&pgn);
    assert!(is_fine, "{error}");
    // Now it has done something.
    let (is_fine, error) = train(Path::new("nowhere.pgn"));
    assert!(!is_fine && error.contains("was started with pgn.files = "), "{error}");
}

/// What the last checkpoint of a run holds, but for the time that it took.
fn learned(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let step = *RunReader::new(run).steps().unwrap().last().unwrap();
    let files = fs::read_dir(run.join("checkpoints").join(step.to_string())).unwrap();
    files
        .map(|file| file.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path))
        .filter(|(name, _)| !["totals.json", "times.json", "MANIFEST"].contains(&name.as_str()))
        .map(|(name, path)| (name, fs::read(path).unwrap()))
        .collect()
}

/// The other learners: killed at any moment, they go on as if nothing had happened.
#[test]
fn every_learner_survives_kills() {
    let runs = tempfile::tempdir().unwrap();
    let mut rng = Seed::new(21).rng();
    for (learner, steps) in [
        ("alphazero", "60"),
        ("value", "60"),
        ("reinforce", "30"),
        ("qlearn", "40000"),
        ("evolve", "12"),
        ("tune", "8"),
        ("krk", "60"),
        ("clone", "200"),
        ("clone-policy", "200"),
    ] {
        let train = |name: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_selfmate"));
            command.args(["train", learner, "--preset", "tiny", "--steps", steps, "--plain"]);
            command.args(["--run", name, "--runs"]).arg(runs.path()).stderr(Stdio::piped());
            command
        };
        let [whole, killed] = ["whole", "killed"].map(|name| format!("{learner}-{name}"));
        let output = train(&whole).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut kills = 0;
        for _ in 0..5 {
            let mut child = train(&killed).spawn().unwrap();
            let writes = 1 + rng.below(30);
            kills += u32::from(kill_after_writes(&mut child, &runs.path().join(&killed), writes));
        }
        assert!(kills > 0, "{learner}: every kill came too late");
        let output = train(&killed).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let expected = learned(&runs.path().join(&whole));
        assert!(!expected.is_empty());
        assert!(learned(&runs.path().join(&killed)) == expected, "{learner}");
    }
}

#[test]
fn a_device_that_cannot_be_had_is_named() {
    let runs = tempfile::tempdir().unwrap();
    let error = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selfmate"));
        let output =
            command.arg("train").args(arguments).arg("--runs").arg(runs.path()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let text = error(&["alphazero", "--device", "gpu"]);
    assert!(text.contains("unknown device 'gpu': expected cpu, flex, wgpu"), "{text}");
    if !cfg!(feature = "cuda") {
        let text = error(&["alphazero", "--device", "cuda:1"]);
        assert!(
            text.contains("cuda:1 is not in this build: build with `--features cuda`"),
            "{text}"
        );
    }
    if cfg!(feature = "burn") {
        let text = error(&["zero", "--device", "flex"]);
        assert!(text.contains("zero has no residual network"), "{text}");
    }
    assert_eq!(fs::read_dir(runs.path()).unwrap().count(), 0, "a folder was left behind");
}

#[test]
fn a_preset_that_the_learner_has_not_is_wrong_usage() {
    let runs = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_selfmate"));
    command.args(["train", "alphazero", "--preset", "huge", "--runs"]).arg(runs.path());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("--preset 'huge': alphazero has cpu, toy, paper, large, tiny"), "{text}");
    assert_eq!(fs::read_dir(runs.path()).unwrap().count(), 0, "a folder was left behind");
}

#[test]
fn names_that_are_no_plain_names_are_wrong_usage() {
    let runs = tempfile::tempdir().unwrap();
    for name in ["a\nb", "-x", "--x", "a\u{1b}[31mb", ".x", "a/b", ""] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selfmate"));
        command.arg("train").arg(format!("--run={name}")).arg("--runs").arg(runs.path());
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), text.lines().count()), (Some(2), 1), "{text}");
        assert!(text.contains(&format!("--run {name:?}: expected a plain name")), "{text}");
    }
    assert_eq!(fs::read_dir(runs.path()).unwrap().count(), 0, "a folder was left behind");
}

#[test]
fn the_settings_of_every_learner_are_listed_before_there_is_a_run() {
    let runs = tempfile::tempdir().unwrap();
    let list = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selfmate"));
        command.arg("train").args(arguments).arg("--settings").arg("--runs").arg(runs.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for learner in LEARNERS.iter().map(|info| info.name) {
        // As a file of settings it means the defaults, whatever it is added to.
        let tiny = Settings::preset(learner, "tiny").unwrap();
        let listed = tiny.merge("listed", &list(&[learner])).unwrap();
        assert_eq!(listed, Settings::preset(learner, "default").unwrap(), "{learner}");
    }
    let listed = list(&["zero", "--preset", "tiny", "--set", "selfplay.simulations.to=77"]);
    assert!(listed.contains("\nselfplay.simulations.to = 77.0\n"), "{listed}");
    assert_eq!(fs::read_dir(runs.path()).unwrap().count(), 0, "a folder was left behind");
}

#[test]
fn a_demo_of_self_play_has_the_settings_of_its_run() {
    let runs = tempfile::tempdir().unwrap();
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selfmate"));
        let output = command.args(arguments).arg("--runs").arg(runs.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for (learner, setting, root) in [
        ("zero", "selfplay.candidates=3", "A Gumbel root takes\n3 moves"),
        ("alphazero", "selfplay.root_rule=puct", "The root uses PUCT"),
    ] {
        let train = ["train", learner, "--preset", "tiny", "--games", "16", "--plain"];
        let sims = ["--set", "selfplay.simulations.from=5", "--set", "selfplay.simulations.to=5"];
        let plies = ["--set", "selfplay.max_plies=6", "--set", setting];
        command(&[&train[..], &sims, &plies].concat());
        let text = command(&["demo", "selfplay", learner]);
        let expected = format!("A self-play game with the settings of run '{learner}'.");
        assert!(text.starts_with(&expected), "{text}");
        assert!(text.contains("searched with 5 simulations.") && text.contains(root), "{text}");
        // Random plies aside, 6 and no more.
        let moves = text.lines().filter(|line| line.ends_with(" %")).count();
        assert!(moves <= 6, "{text}");
        let text = command(&["demo", "selfplay", learner, "--sims", "9"]);
        assert!(text.contains("searched with 9 simulations."), "{text}");
    }
}

#[test]
fn a_run_is_a_player_in_every_command() {
    let runs = tempfile::tempdir().unwrap();
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selfmate"));
        let output = command.args(arguments).arg("--runs").arg(runs.path()).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    };
    let train = ["train", "--preset", "tiny", "--games", "32", "--run", "small"];
    assert!(command(&train).0);
    let (done, text) = command(&["match", "run:small", "random", "--sims", "8", "--games", "4"]);
    assert!(done && text.contains("run:small"), "{text}");
    let (done, text) = command(&["analyse", "run:small,search=alphabeta,depth=2"]);
    assert!(done, "{text}");
    for (player, message) in [
        ("run:large", "no run 'large'"),
        ("run:small@7", "no checkpoint of step 7: there are "),
        ("run:small@new", "'new' is no step: expected a number, as in small@1000"),
    ] {
        let (done, text) = command(&["analyse", player]);
        assert!(!done && text.contains(message), "{text}");
    }
}

/// As when the page that started it has crashed: nobody hears its lines any more.
#[test]
fn a_training_that_nobody_hears_goes_on() {
    let runs = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_selfmate"));
    command.args(["train", "--plain", "--preset", "tiny", "--games", "64", "--seed", "5"]);
    command.args(["--run", "unheard", "--runs"]).arg(runs.path()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stderr.take());
    assert!(child.wait().unwrap().success());
    let metrics = RunReader::new(&runs.path().join("unheard")).metrics().unwrap().0;
    assert!(matches!(metrics.last(), Some(Record::End { .. })), "{metrics:?}");
}
