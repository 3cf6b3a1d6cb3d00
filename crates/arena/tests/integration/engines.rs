//! Engines that misbehave, as shell scripts, and Stockfish. Each fault costs one game; the match
//! continues.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![cfg(unix)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use selfmate_arena::game::{Side, Termination};
use selfmate_arena::*;
use selfmate_chess::{Game, Seed};
use selfmate_search::player::Limit;

/// An engine that behaves correctly except for its answers to `go` and `quit`, and writes its
/// process ids to a file.
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

/// Plays two games against a mock engine. Returns the records, the report and the number of engine
/// starts.
fn play(on_go: &str, on_quit: &str) -> (Vec<MatchGame>, MatchReport, usize) {
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
fn each_fault_loses_one_game_with_its_reason_and_the_match_continues() {
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
        // A new process for the second game and none after it.
        assert_eq!(starts, 2, "{on_go}");
        assert_eq!([records[0].a_plays, records[1].a_plays], [Side::White, Side::Black]);
        let event =
            record::Event { name: "test", a: "mock", b: "random", limit: "-", has_times: true };
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
fn an_engine_that_ignores_quit_is_killed() {
    let (records, report, starts) = play("echo bestmove e2e5", ":");
    assert_eq!((report.losses, records.len(), starts), (2, 2, 2));
}

#[test]
fn an_engine_that_cannot_be_restarted_loses_the_remaining_games() {
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
fn an_engine_that_exceeds_its_time_loses_the_game() {
    // It answers only to `stop`, which comes after its time is over.
    let settings =
        GameSettings { limit: MatchLimit::movetime(10), margin_ms: 100, ..GameSettings::default() };
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
fn an_engine_is_not_charged_for_time_before_go() {
    // `isready` takes it 0.1 s each time, `go` takes no time.
    let script = "while read -r word rest; do case $word in uci) echo uciok;; \
         isready) sleep 0.1; echo readyok;; go) echo bestmove e2e4;; quit) exit 0;; esac; done";
    let registry = Registry::standard();
    let spec = registry.parse(&format!("uci:/bin/sh -c \"{script}\"")).unwrap();
    let mut player = registry.build(&spec, Seed::new(1)).unwrap();
    let started = Instant::now();
    let choice = player.choose(&Game::new(), &Limit::nodes(1)).unwrap();
    let (all, charged) = (started.elapsed(), choice.elapsed.unwrap());
    assert!(charged + Duration::from_millis(100) <= all, "{charged:?} of {all:?}");
}

#[test]
fn a_stopped_match_does_not_wait_for_a_searching_engine() {
    // It searches until it is told to stop and writes the commands it received to a file.
    let folder = tempfile::tempdir().unwrap();
    let heard = folder.path().join("heard");
    let script = format!(
        "while read -r word rest; do case $word in uci) echo uciok;; isready) echo readyok;; \
         go) echo go >> {0}; read -r word; echo $word >> {0}; echo bestmove e2e4;; \
         quit) exit 0;; esac; done",
        heard.display()
    );
    let mock = format!("uci:/bin/sh -c \"{script}\" timeout=86400000");
    let run = MatchRun::default();
    let stop = Arc::clone(&run.stop);
    let is_searching = || std::fs::read_to_string(&heard).is_ok_and(|text| text.contains("go"));
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_searching() && !stop.load(Relaxed) {
                std::thread::yield_now();
            }
            stop.store(true, Relaxed);
        });
        let config = MatchConfig::new(&mock, "random", 2);
        let report = run_match(&config, &run, &Registry::standard(), &mut |_| {});
        stop.store(true, Relaxed);
        report
    });
    assert_eq!(report.unwrap().games, 0);
    assert_eq!(std::fs::read_to_string(&heard).unwrap(), "go\nstop\n");
}

#[test]
fn a_match_does_not_resume_with_another_version_of_an_engine() {
    let folder = tempfile::tempdir().unwrap();
    let version = folder.path().join("version");
    let script = format!(
        "while read -r word rest; do case $word in uci) cat {}; echo uciok;; \
         isready) echo readyok;; go) echo bestmove none;; quit) exit 0;; esac; done",
        version.display()
    );
    let mock = format!("uci:/bin/sh -c \"{script}\"");
    let store = Some(folder.path().join("match.jsonl"));
    let run = MatchRun { store, ..MatchRun::default() };
    let play = |games| {
        let config = MatchConfig::new("random", &mock, games);
        run_match(&config, &run, &Registry::standard(), &mut |_| {})
            .map_err(|error| error.to_string())
    };
    std::fs::write(&version, "id name Mock 1\n").unwrap();
    assert_eq!(play(2).unwrap().games, 2);
    std::fs::write(&version, "id name Mock 2\n").unwrap();
    let error = play(4).unwrap_err();
    assert!(error.contains("identity.b \"Mock 1\", not \"Mock 2\""), "{error}");
    std::fs::write(&version, "id name Mock 1\n").unwrap();
    assert_eq!(play(4).unwrap().games, 4);
}

#[test]
fn the_error_for_a_missing_stockfish_explains_how_to_install_it() {
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
