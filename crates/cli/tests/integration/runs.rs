//! Runs as a user looks at them: what there is, how one goes, its curves.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use selfmate_methods::{RunConfig, Settings};
use selfmate_run::{Alarm, Progress, Rating, Record, Run};
use serde_json::Value;

fn selfmate(runs: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::cargo_bin("selfmate").unwrap();
    command.env("SELFMATE_RUNS", runs).args(arguments).output().unwrap()
}

fn text(runs: &Path, arguments: &[&str]) -> String {
    let output = selfmate(runs, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(runs: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&text(runs, &[arguments, &["--json"]].concat())).unwrap()
}

/// Standard error of a call that must fail.
fn refused(runs: &Path, arguments: &[&str]) -> String {
    let output = selfmate(runs, arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty(), "a refusal prints nothing on standard output");
    String::from_utf8(output.stderr).unwrap()
}

/// An hour of a made-up training, a generation a minute.
fn train(path: &Path) {
    let mut run = Run::open(path).unwrap();
    run.write_config(
        "learner = \"zero\"\nseed = 7\n\n[search]\nsimulations = 64\nroot = \"gumbel\"\n",
    )
    .unwrap();
    run.append_metric(&Record::Start {
        version: "0.1.0".into(),
        seed: 7,
        threads: 2,
        budget: None,
    })
    .unwrap();
    for generation in 1..=60u64 {
        let elapsed_s = 60.0 * generation as f64;
        let done = generation as f64 / 60.0;
        let wave = [0.7, -0.9, 0.2, -0.4, 1.0, 0.0, -0.6][generation as usize % 7];
        let values = [
            ("loss.policy", 3.3 - 1.2 * done.sqrt() + 0.04 * wave),
            ("loss.value", 1.05 - 0.4 * done + 0.02 * wave),
            ("draw_share", 0.12 + 0.25 * done + 0.03 * wave),
            ("truncated_share", 0.5 * (1.0 - done) + 0.02 * wave.abs()),
            ("plies", 140.0 - 50.0 * done + 4.0 * wave),
            ("simulations_per_move", 32.0 + 96.0 * done),
            ("replay_positions", 1e6 * done),
            ("wins.late", done),
            ("value_spread", 0.2 + 0.3 * done),
        ];
        run.append_metric(&Record::Progress(Progress {
            elapsed_s,
            generation,
            games: 240 * generation,
            positions: 19_000 * generation,
            simulations: 3_100_000 * generation + (200_000.0 * wave) as u64,
            steps: 150 * generation,
            values: values.map(|(name, value)| (name.to_owned(), value)).into(),
        }))
        .unwrap();
        if generation.is_multiple_of(10) {
            let elo = -200.0 + 900.0 * done.sqrt();
            let (low, high, games) = (elo - 70.0, elo + 65.0, 80);
            let step = 150 * generation;
            run.append_metric(&Record::Rating(Rating {
                elapsed_s,
                step,
                generation,
                elo,
                low,
                high,
                games,
            }))
            .unwrap();
            run.save_checkpoint(step, &[("model.safetensors", b"weights")]).unwrap();
        }
        if generation == 23 {
            run.append_metric(&Record::Alarm(Alarm {
                elapsed_s,
                generation,
                name: "draw_share".into(),
                value: 0.91,
                bound: 0.9,
                meaning: "almost all games are draws".into(),
                action: "openings are longer from here on".into(),
            }))
            .unwrap();
        }
    }
    let reason = "60 minutes are over".to_owned();
    run.append_metric(&Record::End { elapsed_s: 3600.0, reason }).unwrap();
}

#[test]
fn runs_lists_them_all_and_one_bad_run_does_not_hide_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = text(folder.path(), &["runs"]);
    assert!(nothing.starts_with("no runs in "), "{nothing}");
    train(&folder.path().join("first"));
    Run::open(&folder.path().join("empty")).unwrap().write_config("learner = \"tune\"\n").unwrap();
    std::fs::create_dir(folder.path().join("bad")).unwrap();
    std::fs::write(folder.path().join("bad/run.toml"), "learner = \n").unwrap();
    let table = text(folder.path(), &["runs"]);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 4, "{table}");
    assert!(lines[1].starts_with("bad    cannot be read: "), "{table}");
    assert!(lines[2].starts_with("empty  tune "), "{table}");
    for part in ["zero", "60 min", "14,400", "1,140,000", "9,000", "700 [630, 765]"] {
        assert!(lines[3].contains(part), "{part}: {table}");
    }
    let report = json(folder.path(), &["runs"]);
    assert_eq!(report["runs"][2]["run"], "first");
    assert_eq!(report["runs"][2]["games"], 14_400);
    assert!(report["runs"][0]["error"].as_str().unwrap().contains("run.toml"));
}

#[test]
fn show_tells_how_a_run_goes() {
    let folder = tempfile::tempdir().unwrap();
    train(&folder.path().join("first"));
    let shown = text(folder.path(), &["show", "first"]);
    // How long ago depends on the clock.
    let shown: String = shown.lines().filter(|line| !line.starts_with("trained")).fold(
        String::new(),
        |mut shown, line| {
            shown.push_str(line);
            shown.push('\n');
            shown
        },
    );
    insta::assert_snapshot!(shown);
    let report = json(folder.path(), &["show", "first"]);
    assert_eq!(report["run"], "first");
    assert_eq!(report["learner"], "zero");
    assert_eq!(report["seed"], 7);
    assert_eq!(report["elapsed_s"], 3600.0);
    assert_eq!(report["games"], 14_400);
    assert_eq!(report["positions"], 1_140_000);
    assert_eq!(report["steps"], 9_000);
    assert_eq!(report["checkpoints"].as_array().unwrap().len(), 6);
    assert_eq!(report["latest"]["checkpoint"], 9_000);
    assert_eq!(report["latest"]["rating"]["games"], 80);
    assert!(report["latest"]["values"]["loss.policy"].as_f64().unwrap() > 0.0);
    assert_eq!(report["ended"], "60 minutes are over");
    assert_eq!(report["config"]["search"]["simulations"], 64);
    assert_eq!(report["alarms"].as_array().unwrap().len(), 1);
}

#[test]
fn show_works_before_the_first_record() {
    let folder = tempfile::tempdir().unwrap();
    Run::open(&folder.path().join("new")).unwrap().write_config("learner = \"zero\"\n").unwrap();
    let shown = text(folder.path(), &["show", "new"]);
    assert!(shown.contains("no checkpoint yet"), "{shown}");
    let error = refused(folder.path(), &["plot", "new", "-o", "x.svg"]);
    assert_eq!(error, "selfmate: run 'new' has no curves yet\n");
}

#[test]
fn plot_draws_every_curve() {
    let folder = tempfile::tempdir().unwrap();
    train(&folder.path().join("first"));
    let file = folder.path().join("first.svg");
    let report = json(folder.path(), &["plot", "first", "-o", file.to_str().unwrap()]);
    let titles = [
        "Elo, with 95 % intervals",
        "Value loss",
        "Policy (nats)",
        "Games",
        "Plies per game",
        "Value spread",
        "Simulations per second",
        "Games per second",
        "Wins",
        "Simulations per move",
    ];
    assert_eq!(report["panels"], Value::from(&titles[..]));
    let svg = std::fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    for part in titles.iter().chain(&[
        "loss 2.1",
        "drawn 40%",
        "late 1.00",
        "zero, seed 7",
        "alarms dashed",
    ]) {
        assert!(svg.contains(part), "{part}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    let report = json(folder.path(), &["plot", "first", "--all", "-o", file.to_str().unwrap()]);
    assert_eq!(report["panels"].as_array().unwrap().last().unwrap(), "Replay positions");
    let error = refused(folder.path(), &["plot", "first", "-o", "/nowhere/x.svg"]);
    assert!(error.contains("cannot write /nowhere/x.svg"), "{error}");
}

/// By the learner's own settings, whatever the learner and the run are called.
#[test]
fn plot_says_how_ratings_were_measured() {
    let folder = tempfile::tempdir().unwrap();
    let rating = Rating {
        elapsed_s: 60.0,
        step: 1,
        generation: 1,
        elo: 500.0,
        low: 450.0,
        high: 550.0,
        games: 40,
    };
    for (name, config, title) in [
        ("tonight", "learner = \"zero\"\n[zero.rating]\nnodes = 2000", "alpha-beta, 2000 nodes"),
        ("old", "learner = \"zero\"\n[zero.rating]\nsims = 400", "400 simulations"),
        ("deep", "learner = \"alphazero\"\n[alphazero.rating]\nnodes = 64", "64 simulations"),
    ] {
        let mut run = Run::open(&folder.path().join(name)).unwrap();
        run.write_config(config).unwrap();
        run.append_metric(&Record::Rating(rating.clone())).unwrap();
        let file = folder.path().join("elo.svg");
        let report = json(folder.path(), &["plot", name, "-o", file.to_str().unwrap()]);
        let title = format!("Elo, with 95 % intervals: {title} per move, against built-in rungs");
        assert_eq!(report["panels"][0], title);
    }
}

/// As deep as they are nested: what `--set` takes can be looked up.
#[test]
fn show_lists_every_setting() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::preset("zero", "default").unwrap();
    let mut run = Run::open(&folder.path().join("first")).unwrap();
    run.write_config(&RunConfig::new(7, settings).to_toml()).unwrap();
    let shown = text(folder.path(), &["show", "first"]);
    assert!(shown.contains(
        "\n  zero.selfplay.simulations: begin = 0.0, end = 1.0, from = 32.0, to = 160.0"
    ));
    assert!(shown.contains("\n  zero.learning.rate: "), "{shown}");
}

#[test]
fn a_full_disk_leaves_no_half_picture() {
    let folder = tempfile::tempdir().unwrap();
    train(&folder.path().join("first"));
    let file = folder.path().join("first.svg");
    let program = env!("CARGO_BIN_EXE_selfmate");
    let script =
        format!("trap '' XFSZ; ulimit -f 0; '{program}' plot first -o '{}'", file.display());
    let mut shell = Command::new("sh");
    let output = shell.env("SELFMATE_RUNS", folder.path()).args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains(&format!("cannot write {}: ", file.display())), "{message}");
    assert!(!file.exists() && !folder.path().join("first.svg.partial").exists());
}

#[test]
fn an_unknown_run_says_which_there_are() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["b", "a"] {
        Run::open(&folder.path().join(name)).unwrap().write_config("").unwrap();
    }
    let runs = folder.path().display();
    let expected = format!("selfmate: no run 'x' in {runs}: there are a, b\n");
    assert_eq!(refused(Path::new("remote"), &["show", "x", "--runs", &runs.to_string()]), expected);
    assert_eq!(refused(folder.path(), &["plot", "x", "-o", "x.svg"]), expected);
    // A path is no name.
    assert!(refused(&folder.path().join("a"), &["show", "../b"]).contains("no run '../b'"));
}
