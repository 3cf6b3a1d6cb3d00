//! Matches, ladders and ratings as a user runs them, killed and resumed.
#![allow(clippy::unwrap_used)] // helpers of tests may fail as tests do

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn selfmate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selfmate"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn json(arguments: &[&str]) -> Value {
    let output = selfmate(arguments).arg("--json").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Games in a store, without its header and a torn last line.
fn stored(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.matches('\n').count().saturating_sub(1)
}

#[test]
fn a_match_repeats_whatever_the_concurrency() {
    let run = |concurrency| {
        let report = json(&[
            "match",
            "random",
            "greedy",
            "--games",
            "40",
            "--seed",
            "3",
            "--concurrency",
            concurrency,
        ]);
        assert_eq!(report["duplicates"], 0);
        (
            report["wins"].clone(),
            report["draws"].clone(),
            report["losses"].clone(),
            report["pentanomial"].clone(),
        )
    };
    assert_eq!(run("1"), run("2"));
}

#[test]
fn a_killed_match_goes_on_and_counts_no_game_twice() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("match.jsonl");
    let store_text = store.to_str().unwrap();
    let arguments = [
        "match",
        "rollout:sims=8",
        "random",
        "--games",
        "60",
        "--concurrency",
        "2",
        "--store",
        store_text,
    ];
    for kills in 1..=5 {
        let mut child =
            selfmate(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let started = Instant::now();
        // Whenever a few more games are there: at another moment each time.
        while stored(&store) < kills * 4 && started.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let before = stored(&store);
    assert!((20..60).contains(&before), "{before} games after five kills");
    let report = json(&arguments);
    assert_eq!(report["games"], 60);
    assert_eq!(stored(&store), 60);
    // All games, in order of their numbers, are those of a match that was never killed.
    let whole = json(&arguments[..7]);
    for key in ["wins", "draws", "losses", "pentanomial"] {
        assert_eq!(report[key], whole[key], "{key}");
    }
    // Another match must not go on in the same file.
    let output = selfmate(&["match", "random", "greedy", "--store", store_text]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("match.jsonl"));
}

#[test]
fn a_ladder_lists_its_players_and_draws_them() {
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().join("ladder.svg");
    let report = json(&[
        "ladder",
        "random",
        "greedy",
        "alphabeta:depth=1",
        "--games",
        "6",
        "--anchor",
        "random=0",
        "--svg",
        svg.to_str().unwrap(),
    ]);
    let names: Vec<&str> =
        report["players"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names.last(), Some(&"random"));
    assert_eq!(report["players"][2]["elo"], 0.0);
    assert!(std::fs::read_to_string(svg).unwrap().starts_with("<svg"));
}

#[test]
fn simulations_do_not_limit_a_uci_engine_and_that_is_said_once() {
    let engine = format!("uci:{} uci random", env!("CARGO_BIN_EXE_selfmate"));
    let own = format!("{engine} nodes=3");
    let play = |players: [&str; 2]| {
        let limits = ["--games", "2", "--sims", "7", "--max-plies", "4"];
        let output = selfmate(&[&["match"][..], &players, &limits].concat()).output().unwrap();
        let [said, report] =
            [output.stderr, output.stdout].map(|text| String::from_utf8(text).unwrap());
        assert!(output.status.success(), "{said}");
        (said, report)
    };
    let (said, _) = play([&engine, "random"]);
    let note = format!("--sims 7 does not limit {engine}, which has no simulations");
    assert_eq!(said.matches(&note).count(), 1, "{said}");
    for players in [[&own, "random"], ["random", "greedy"], ["material", "random"]] {
        assert!(!play(players).0.contains("--sims"));
    }
    let (_, report) = play(["material", "default"]);
    assert!(report.contains("Results of material:sims=7 vs default:sims=7"), "{report}");
    let help = String::from_utf8(selfmate(&["match", "--help"]).output().unwrap().stdout).unwrap();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains(
        "It does not limit alpha-beta, Stockfish and other UCI engines, which have no simulations"
    ));
}

#[test]
fn a_rating_against_the_rungs() {
    let report = json(&["rate", "greedy", "--depth", "1", "--games", "24", "--error", "400"]);
    let (low, high) = (report["elo_low"].as_f64().unwrap(), report["elo_high"].as_f64().unwrap());
    assert!(low < high && high < 1500.0, "{report}");
    assert!(report["games"].as_u64().unwrap() >= 20);
}

#[test]
fn a_suite_of_mates() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mates.epd");
    std::fs::write(
        &file,
        "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - bm Ra8#; id \"back rank\";\n\
         7k/8/5K2/8/8/8/8/R7 w - - dm 2; id \"two moves\";\n",
    )
    .unwrap();
    let report = json(&["suite", file.to_str().unwrap(), "alphabeta", "--depth", "8"]);
    assert_eq!((report["solved"].as_u64(), report["total"].as_u64()), (Some(2), Some(2)));
    let output = selfmate(&["suite", "missing.epd", "alphabeta"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("missing.epd"));
}
