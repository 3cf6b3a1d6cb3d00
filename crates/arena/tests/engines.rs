//! Engines that misbehave, as shell scripts, and Stockfish: each fault costs a game and no more.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![cfg(unix)]

use std::path::Path;
use std::time::{Duration, Instant};

use selfmate_arena::game::{Side, Termination};
use selfmate_arena::*;
use selfmate_chess::Seed;

/// An engine that behaves up to its answer to `go`, and writes down the processes it has.
fn mock(on_go: &str, on_quit: &str, processes: &Path) -> String {
    let script = format!(
        "sleep 1000 & echo $$ $! >> {}; while read -r word rest; do case $word in \
         uci) echo uciok;; isready) echo readyok;; go) {on_go};; quit) {on_quit};; esac; done",
        processes.display()
    );
    format!("uci:/bin/sh -c \"{script}\" timeout=300")
}

fn runs(id: &str) -> bool {
    let status = std::fs::read_to_string(Path::new("/proc").join(id).join("stat"));
    status.is_ok_and(|text| {
        !text.rsplit(')').next().is_some_and(|state| state.trim_start().starts_with('Z'))
    })
}

fn assert_nothing_remains(processes: &Path) {
    let text = std::fs::read_to_string(processes).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    for id in text.split_whitespace() {
        while runs(id) {
            assert!(Instant::now() < deadline, "process {id} is left behind");
            std::thread::yield_now();
        }
    }
}

/// Plays two games against a mock; the records, the report and how often it was started.
fn play(on_go: &str, on_quit: &str) -> (Vec<GameRecord>, MatchReport, usize) {
    let folder = tempfile::tempdir().unwrap();
    let processes = folder.path().join("processes");
    let mut records = Vec::new();
    let config = MatchConfig::new(&mock(on_go, on_quit, &processes), "random", 2);
    let report = run_match(&config, &MatchRun::default(), &Registry::standard(), &mut |event| {
        if let MatchEvent::Finished { record, .. } = event {
            records.push(record.clone());
        }
    })
    .unwrap();
    assert_nothing_remains(&processes);
    let starts = std::fs::read_to_string(&processes).unwrap().lines().count();
    (records, report, starts)
}

#[test]
fn each_fault_loses_its_game_with_its_reason_and_the_match_goes_on() {
    for (on_go, reason) in [
        ("sleep 1000", "the engine hung: no bestmove within"),
        ("exit 3", "the engine exited (exit status: 3)"),
        ("yes info string la la la", "the engine flooded its output before bestmove"),
        ("echo bestmove e2e5", "the engine played 'e2e5', which is not legal in"),
        ("echo bestmove none", "the engine played 'none', which is not legal in"),
    ] {
        let (records, report, starts) = play(on_go, "exit 0");
        assert_eq!((report.losses, report.a_faults, report.b_faults), (2, 2, 0), "{on_go}");
        assert!(report.is_finished, "{on_go}");
        // A new process for the second game, none after it.
        assert_eq!(starts, 2, "{on_go}");
        assert_eq!([records[0].a_plays, records[1].a_plays], [Side::White, Side::Black]);
        let event = record::Event { name: "test", a: "mock", b: "random", limit: "-" };
        for record in records {
            let pgn = record.pgn(&event).unwrap().to_string().replace('\n', " ");
            assert!(pgn.contains("[Termination \"abandoned\"]"), "{pgn}");
            assert!(pgn.contains(&format!("mock: {}", &reason[..12])), "{pgn}");
            assert_eq!(record.played.termination, Termination::Fault, "{on_go}");
            let detail = record.played.detail.unwrap();
            assert!(detail.starts_with(reason), "{on_go}: {detail}");
        }
    }
}

#[test]
fn an_engine_that_will_not_quit_is_ended() {
    let (records, report, starts) = play("echo bestmove e2e5", ":");
    assert_eq!((report.losses, records.len(), starts), (2, 2, 2));
}

#[test]
fn an_engine_that_cannot_be_restarted_loses_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("started");
    let script = format!(
        "test -e {0} && exit 7; touch {0}; while read -r word rest; do case $word in \
         uci) echo uciok;; isready) echo readyok;; go) exit 1;; esac; done",
        marker.display()
    );
    let config = MatchConfig::new(&format!("uci:/bin/sh -c \"{script}\""), "random", 4);
    let report =
        run_match(&config, &MatchRun::default(), &Registry::standard(), &mut |_| {}).unwrap();
    assert_eq!((report.losses, report.a_faults), (4, 4));
}

#[test]
fn an_engine_that_is_late_forfeits() {
    // It answers only to `stop`, and then takes its time.
    let settings =
        GameSettings { limit: MoveLimit::movetime(10), margin_ms: 100, ..GameSettings::default() };
    let folder = tempfile::tempdir().unwrap();
    let mock = mock("read -r stop; echo bestmove a7a6", "exit 0", &folder.path().join("p"));
    let openings = OpeningSource::Random { plies: 1 };
    let config = MatchConfig { settings, openings, ..MatchConfig::new("random", &mock, 1) };
    let mut terminations = Vec::new();
    run_match(&config, &MatchRun::default(), &Registry::standard(), &mut |event| {
        if let MatchEvent::Finished { record, .. } = event {
            terminations.push(record.played.termination);
        }
    })
    .unwrap();
    assert_eq!(terminations, [Termination::TimeForfeit]);
}

#[test]
fn a_missing_stockfish_says_how_to_install_it() {
    let error = Registry::standard()
        .parse("uci:stockfish-that-is-not-there")
        .and_then(|spec| Registry::standard().build(&spec, Seed::new(1)))
        .err()
        .unwrap();
    assert!(error.to_string().contains("apt install stockfish"), "{error}");
}

#[test]
fn stockfish_plays_by_level_nodes_and_options() {
    let specs = ["stockfish:skill=0,nodes=200", "uci:stockfish option.Hash=4 nodes=100"];
    for spec in specs {
        let settings = GameSettings {
            adjudication: adjudicate::Adjudication {
                max_plies: Some(40),
                ..adjudicate::Adjudication::default()
            },
            ..GameSettings::default()
        };
        let config = MatchConfig { settings, ..MatchConfig::new(spec, "random", 2) };
        let report =
            run_match(&config, &MatchRun::default(), &Registry::standard(), &mut |_| {}).unwrap();
        assert_eq!((report.losses, report.a_faults), (0, 0), "{report:?}");
    }
    let spec = Registry::standard().parse("stockfish:elo=99").unwrap();
    let error = Registry::standard().build(&spec, Seed::new(1)).err().unwrap().to_string();
    assert!(error.contains("option UCI_Elo: expected"), "{error}");
    let range = players::stockfish_elo_range().unwrap();
    assert!(range.min < range.max && range.engine.contains("Stockfish"), "{range:?}");
}
