//! Damaged, missing and changed files of a run, as a user of the commands meets them.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use selfmate_run::RunReader;

fn selfmate(runs: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::cargo_bin("selfmate").unwrap();
    command.env("SELFMATE_RUNS", runs).args(arguments).output().unwrap()
}

/// Standard error of a call that must succeed.
fn said(runs: &Path, arguments: &[&str]) -> String {
    let output = selfmate(runs, arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {text}");
    text
}

/// Standard error of a call that must fail.
fn refused(runs: &Path, arguments: &[&str]) -> String {
    let output = selfmate(runs, arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
    text
}

fn train<'a>(learner: &'a str, games: &'a str) -> [&'a str; 7] {
    ["train", learner, "--preset", "tiny", "--games", games, "--plain"]
}

/// Trains until there are two checkpoints and damages a file of the newer one; that file, and the
/// step before.
fn with_damage(runs: &Path, learner: &str, file: &str) -> (PathBuf, u64) {
    for games in ["16", "32", "48"] {
        said(runs, &train(learner, games));
    }
    let steps = RunReader::new(&runs.join(learner)).steps().unwrap();
    let [.., before, newest] = steps[..] else { panic!("{steps:?}") };
    let path = runs.join(learner).join("checkpoints").join(newest.to_string()).join(file);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    (path, before)
}

#[test]
fn every_command_says_that_it_uses_an_older_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path();
    let (path, before) = with_damage(runs, "zero", "model.safetensors");
    let onnx = runs.join("zero.onnx").display().to_string();
    let epd = runs.join("one.epd");
    fs::write(&epd, "6k1/5ppp/8/8/8/8/8/R3K3 w Q - bm Ra8#;\n").unwrap();
    let epd = epd.display().to_string();
    let warning = format!(
        "selfmate: warning: {}: does not match its hash in MANIFEST; step {before} is used instead\n",
        path.display()
    );
    let commands: [&[&str]; 8] = [
        &["show", "zero"],
        &["export", "zero", "--onnx", &onnx],
        &["analyse", "run:zero", "--depth", "1"],
        &["match", "run:zero,depth=1", "random", "--games", "2", "--max-plies", "4"],
        &["ladder", "run:zero,depth=1", "random", "--games", "2", "--max-plies", "4"],
        &["rate", "run:zero,depth=1", "--games", "2", "--max-plies", "4"],
        &["suite", &epd, "run:zero,depth=1"],
        &["demo", "selfplay", "zero", "--sims", "2"],
    ];
    for arguments in commands {
        let text = said(runs, arguments);
        assert_eq!(text.matches(&warning).count(), 1, "{arguments:?}: {text}");
    }
    let uci = Command::cargo_bin("selfmate")
        .unwrap()
        .env("SELFMATE_RUNS", runs)
        .args(["uci", "run:zero"])
        .write_stdin("position startpos\ngo depth 1\ngo depth 1\nquit\n")
        .output()
        .unwrap();
    let text = String::from_utf8(uci.stdout).unwrap();
    let line = format!("info string warning: {}: ", path.display());
    assert_eq!(text.matches(&line).count(), 1, "{text}");
    let play = Command::cargo_bin("selfmate")
        .unwrap()
        .env("SELFMATE_RUNS", runs)
        .args(["play", "run:zero"])
        .write_stdin("quit\n")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&play.stderr).into_owned();
    assert_eq!(text.matches(&warning).count(), 1, "{text}");
}

#[test]
fn the_commands_of_endings_say_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path();
    let (path, before) = with_damage(runs, "krk", "model.safetensors");
    for arguments in
        [&["evaluate", "krk", "--positions", "1", "--sims", "2"][..], &["value-map", "krk"]]
    {
        let text = selfmate(runs, arguments);
        let text = String::from_utf8_lossy(&text.stderr).into_owned();
        assert!(text.contains(&path.display().to_string()), "{arguments:?}: {text}");
        assert!(text.contains(&format!("step {before} is used instead")), "{arguments:?}: {text}");
    }
}

#[test]
fn one_flipped_bit_in_the_metrics_does_not_stop_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path();
    said(runs, &train("zero", "16"));
    let path = runs.join("zero/metrics.jsonl");
    let mut bytes = fs::read(&path).unwrap();
    let second = bytes.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    bytes.splice(second..second, *b"\x00nonsense\n");
    fs::write(&path, bytes).unwrap();
    let svg = runs.join("zero.svg").display().to_string();
    let line = "metrics.jsonl: line 2 cannot be read: ";
    for arguments in [&["show", "zero"][..], &["plot", "zero", "-o", &svg], &["runs"]] {
        let text = said(runs, arguments);
        assert_eq!(text.matches(line).count(), 1, "{arguments:?}: {text}");
    }
    let text = said(runs, &train("zero", "32"));
    assert!(text.contains(line) && text.contains("set aside in metrics.damaged"), "{text}");
    assert_eq!(fs::read(runs.join("zero/metrics.damaged")).unwrap(), b"\x00nonsense\n");
    assert!(!said(runs, &["show", "zero"]).contains("cannot be read"));
}

#[test]
fn a_trained_run_without_its_config_is_not_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path();
    said(runs, &train("zero", "16"));
    let path = runs.join("zero/run.toml");
    let config = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let text = refused(runs, &train("zero", "32"));
    assert!(text.contains("run.toml is missing: copy "), "{text}");
    assert!(!path.exists());
    // What it names is the config.
    let copy = text.split("copy ").nth(1).unwrap().split(" there").next().unwrap();
    assert_eq!(fs::read_to_string(copy).unwrap(), config);
    fs::copy(copy, &path).unwrap();
    said(runs, &train("zero", "32"));
}

#[test]
fn a_changed_digit_in_the_config_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path();
    said(runs, &train("zero", "16"));
    let path = runs.join("zero/run.toml");
    let config = fs::read_to_string(&path).unwrap();
    let change = |from: &str, to: &str| {
        assert!(config.contains(from), "{config}");
        fs::write(&path, config.replace(from, to)).unwrap();
    };
    change("warmup_steps = 4", "warmup_steps = 5");
    let text = said(runs, &["train", "zero", "--games", "32", "--plain"]);
    let note = "run.toml: learning.warmup_steps was 4 at step ";
    assert!(text.contains(note) && text.contains("and is 5 now; going on with 5"), "{text}");
    change("hidden = 64", "hidden = 128");
    let text = refused(runs, &["train", "zero", "--games", "48", "--plain"]);
    assert!(text.contains("run.toml: network.hidden is 128, but the checkpoint of"), "{text}");
    assert!(text.contains("was made with 64: set it back, or start another run"), "{text}");
}

#[test]
fn settings_that_would_crash_or_never_end_are_refused_before_there_is_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path();
    for (learner, setting) in [
        ("zero", "selfplay.memory_mb=4294967295"),
        ("zero", "selfplay.memory_mb=9223372036854775807"),
        ("zero", "selfplay.generation_games=9223372036854775807"),
        ("zero", "selfplay.games_at_once=4294967295"),
        ("zero", "selfplay.opening_plies=4294967295"),
        ("zero", "selfplay.long_opening_plies=4294967295"),
        ("zero", "selfplay.simulations.from=1e300"),
        ("zero", "learning.reuse=1e300"),
        ("zero", "learning.batch=18446744073709551615"),
        ("zero", "learning.trainer.epsilon=NaN"),
        ("krk", "learning.batch=9223372036854775807"),
        ("qlearn", "table_mb=9223372036854775807"),
    ] {
        let name = setting.split('=').next().unwrap();
        let text = refused(runs, &["train", learner, "--minutes", "0.01", "--set", setting]);
        assert!(text.contains(name) && text.contains("expected "), "{setting}: {text}");
        assert_eq!(text.lines().count(), 1, "{setting}: {text}");
    }
    assert_eq!(fs::read_dir(runs).unwrap().count(), 0);
}
