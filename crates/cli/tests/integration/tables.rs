//! Tablebases and networks as a user names them: flags, UCI options, wrong input.
//!
//! Some tests need Syzygy tables with up to four pieces and fail without them.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

/// The folders of Syzygy tables of up to four pieces: what SELFMATE_SYZYGY names, or else those that
/// `cargo xtask setup` fetches.
fn syzygy_path() -> String {
    std::env::var("SELFMATE_SYZYGY").unwrap_or_else(|_| {
        let tables = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/syzygy");
        assert!(Path::new(tables).exists(), "no Syzygy tables: `cargo xtask setup` fetches them");
        tables.to_owned()
    })
}

/// The program without tables of its own accord.
fn selfmate(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("selfmate").unwrap();
    command.args(arguments).env_remove("SELFMATE_SYZYGY");
    command
}

fn json(arguments: &[&str]) -> Value {
    let output = selfmate(arguments).arg("--json").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Standard error of a call that must fail.
fn refused(arguments: &[&str]) -> String {
    let output = selfmate(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert!(output.stdout.is_empty(), "a refusal prints nothing on standard output");
    String::from_utf8(output.stderr).unwrap()
}

fn dialogue(arguments: &[&str], input: &str) -> String {
    let output = selfmate(arguments).write_stdin(input).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const ROOK: &str = "8/8/8/4k3/8/8/2R5/4K3 w - - 0 1";

#[test]
fn missing_tables_are_named() {
    let empty = tempfile::tempdir().unwrap();
    let folder = empty.path().to_str().unwrap();
    let five = "8/8/8/4k3/8/8/2R5/R1R1K3 w - - 0 1";
    let message = refused(&["tablebase", "probe", "--fen", five]);
    assert!(message.contains("expected --syzygy PATH, or the folders in SELFMATE_SYZYGY"));
    let message = refused(&["tablebase", "probe", "--fen", ROOK, "--syzygy", folder]);
    assert!(message.contains("no Syzygy tables there"), "{message}");
    for command in [
        &["match", "random", "random", "--tb", folder][..],
        &["match", "alphabeta", "random", "--syzygy", folder],
        &["rate", "alphabeta", "--tb", folder],
        &["ladder", "alphabeta", "random", "--syzygy", folder],
        &["analyse", "alphabeta", "--depth", "1", "--syzygy", folder],
        &["play", "material", "--syzygy", folder],
    ] {
        let message = refused(command);
        assert!(message.contains("no Syzygy tables there"), "{command:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    let report = json(&["doctor"]);
    let checks = report["checks"].as_array().unwrap();
    let tables = checks.iter().find(|check| check["name"] == "syzygy").unwrap();
    assert_eq!(tables["found"], false);
}

#[test]
fn a_uci_session_survives_wrong_paths() {
    let input = "uci\n\
                 setoption name SyzygyPath value /no/such/tables\n\
                 setoption name SyzygyProbeLimit value 8\n\
                 setoption name Syzygy50MoveRule value sometimes\n\
                 setoption name WeightsFile value /no/such/network\n\
                 setoption name SyzygyPath value <empty>\n\
                 setoption name WeightsFile value <empty>\n\
                 position startpos\ngo depth 2\nwait\nquit\n";
    let text = dialogue(&["uci"], input);
    for line in [
        "option name SyzygyPath type string default <empty>",
        "option name SyzygyProbeLimit type spin default 7 min 0 max 7",
        "option name Syzygy50MoveRule type check default true",
        "option name WeightsFile type string default <empty>",
        "info string option SyzygyProbeLimit: expected a whole number from 0 to 7, got '8'",
        "info string option Syzygy50MoveRule: expected true or false, got 'sometimes'",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    for (option, path) in [("SyzygyPath", "/no/such/tables"), ("WeightsFile", "/no/such/network")] {
        let said = |line: &str| {
            line.starts_with(&format!("info string option {option}: ")) && line.contains(path)
        };
        assert_eq!(text.lines().filter(|line| said(line)).count(), 1, "{text}");
    }
    assert!(text.lines().last().unwrap().starts_with("bestmove "), "{text}");
    // A player that is no network has no file to read one from.
    let text = dialogue(&["uci", "alphabeta"], "uci\nsetoption name WeightsFile value x\nquit\n");
    assert!(text.contains("SyzygyPath") && !text.contains("option name WeightsFile"), "{text}");
    assert!(text.contains("info string no such option: WeightsFile"), "{text}");
}

#[test]
fn a_network_named_by_an_option_plays() {
    // The shipped network from its file, at the same depth, plays the same game.
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../nets/zero.safetensors");
    let go = "position startpos moves e2e4\ngo depth 5\nwait\nquit\n";
    let last_line = |input: &str| {
        let text = dialogue(&["uci"], input);
        assert!(!text.contains("info string"), "{text}");
        let score = text.lines().rfind(|line| line.starts_with("info depth 5")).unwrap().to_owned();
        score.split(" nodes ").next().unwrap().to_owned()
    };
    let named = format!("setoption name WeightsFile value {file}\n{go}");
    assert_eq!(last_line(&named), last_line(go));
}

#[test]
fn a_position_is_looked_up() {
    let folders = syzygy_path();
    let probe = |fen: &str| json(&["tablebase", "probe", "--fen", fen, "--syzygy", &folders]);
    let won = probe(ROOK);
    // White takes nothing in this ending, so that both distances are one.
    assert_eq!((won["wdl"].as_i64(), &won["dtm"]), (Some(1), &won["dtz"]));
    assert!((20..=33).contains(&won["dtz"].as_i64().unwrap()), "{won}");
    assert_eq!(won["moves"][0]["move"], won["best"]);
    let lost = probe("8/8/8/4k3/8/8/2R5/4K3 b - - 0 1");
    assert_eq!((lost["wdl"].as_i64(), lost["result"].as_str()), (Some(-1), Some("loss")));
    assert!(lost["dtz"].as_i64().unwrap() < 0);
    let drawn = probe("8/8/8/4k3/4P3/4K3/8/8 w - - 0 1");
    assert_eq!((drawn["wdl"].as_i64(), drawn["dtz"].as_i64()), (Some(0), Some(0)));
    let stalemate = probe("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1");
    assert_eq!((stalemate["wdl"].as_i64(), stalemate["best"].is_null()), (Some(0), true));
    let text = dialogue(&["tablebase", "probe", "--fen", ROOK, "--syzygy", &folders], "");
    assert!(text.lines().nth(1).unwrap().starts_with("win, "), "{text}");
    let refusal = |fen| refused(&["tablebase", "probe", "--fen", fen, "--syzygy", &folders]);
    assert!(refusal("8/8/8/4k3/8/8/8/4K2R w K - 0 1").contains("castling rights"));
    let many = refusal("4k3/pp6/8/8/8/8/PP6/4K3 w - - 0 1");
    assert!(
        many.contains("the position has 6 pieces: the tables contain positions of up to"),
        "{many}"
    );
}

#[test]
fn small_endings_need_no_tables() {
    let probe = |fen: &str| json(&["tablebase", "probe", "--fen", fen]);
    let won = probe("6k1/8/6K1/8/8/8/8/R7 w - - 0 1");
    assert_eq!(
        (won["wdl"].as_i64(), won["dtm"].as_i64(), won["dtz"].is_null()),
        (Some(1), Some(1), true)
    );
    assert_eq!((won["best"].as_str(), won["moves"][0]["dtm"].as_i64()), (Some("a1a8"), Some(1)));
    let lost = probe("R5k1/8/6K1/8/8/8/8/8 b - - 0 1");
    assert_eq!(
        (lost["wdl"].as_i64(), lost["dtm"].as_i64(), lost["best"].is_null()),
        (Some(-1), Some(0), true)
    );
    let drawn = probe("8/8/8/4k3/4P3/4K3/8/8 w - - 0 1");
    assert_eq!((drawn["wdl"].as_i64(), drawn["dtm"].is_null()), (Some(0), true));
    // Too late for the fifty-move rule, as far as the distance tells.
    assert!(probe("8/8/8/4k3/8/8/2R5/4K3 w - - 90 100")["wdl"].is_null());
    let text = dialogue(&["tablebase", "probe", "--fen", ROOK], "");
    assert!(text.lines().nth(1).unwrap().starts_with("win, mate in "), "{text}");
    assert!(
        refused(&["tablebase", "probe", "--fen", "8/8/8/4k3/8/8/8/4K2R w K - 0 1"])
            .contains("castling rights")
    );
}

#[test]
fn an_ending_is_solved() {
    let report = json(&["tablebase", "solve", "KRK"]);
    assert_eq!(report["white_to_move"]["longest"], 31);
    assert_eq!(report["white_to_move"]["wins"], 175_168);
    assert!(report["black_to_move"]["longest"].is_null());
    // The stronger side is White, whatever it is called.
    assert_eq!(json(&["tablebase", "solve", "KvKR"])["ending"], "KRK");
    assert!(refused(&["tablebase", "solve", "KPKP"]).contains("pawns on both sides"));
    assert!(refused(&["tablebase", "solve", "KRRKR"]).contains("5 pieces"));
    let wrong = selfmate(&["tablebase", "solve", "KX"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn a_uci_search_reports_hits() {
    let folders = syzygy_path();
    let input = format!(
        "setoption name SyzygyPath value {folders}\n\
         position fen {ROOK}\ngo nodes 500\nwait\n\
         position fen 4k3/8/8/3pp3/8/8/3R4/4K3 w - - 0 1\ngo nodes 5000\nwait\n\
         setoption name SyzygyProbeLimit value 2\ngo nodes 500\nwait\nquit\n"
    );
    for player in ["alphabeta", "material", "default"] {
        let text = dialogue(&["uci", player], &input);
        assert!(!text.contains("info string"), "{text}");
        let mut searches = text.split("bestmove ");
        let hits = |search: Option<&str>| -> u64 {
            let line = search.unwrap().lines().rfind(|line| line.starts_with("info depth"));
            let mut words = line.unwrap().split(' ').skip_while(|word| *word != "tbhits");
            words.nth(1).unwrap().parse().unwrap()
        };
        assert!(hits(searches.next()) > 10, "{player}: {text}");
        assert!(hits(searches.next()) > 0, "{player}: {text}");
        assert_eq!(hits(searches.next()), 0, "{player}: {text}");
    }
}

#[test]
fn a_match_is_called_by_tables_and_resumed_with_them() {
    let folders = syzygy_path();
    let folder = tempfile::tempdir().unwrap();
    let openings = folder.path().join("endings.epd");
    std::fs::write(&openings, "8/8/8/4k3/8/8/2R5/4K3 w - - id \"rook\";\n").unwrap();
    let store = folder.path().join("match.jsonl");
    let arguments = [
        "match",
        "alphabeta:depth=1",
        "random",
        "--games",
        "2",
        "--openings",
        openings.to_str().unwrap(),
        "--store",
        store.to_str().unwrap(),
        "--syzygy",
        &folders,
    ];
    let with_tables = [&arguments[..], &["--tb", &folders]].concat();
    let report = json(&with_tables);
    assert_eq!(report["terminations"]["tablebase"], 2, "{report}");
    assert_eq!(report["a"], format!("alphabeta:depth=1,syzygy={folders}"));
    assert_eq!(json(&with_tables)["games"], 2);
    let message = refused(&arguments);
    assert!(message.contains("was started with settings.adjudication.tables"), "{message}");
}
