//! The binary as a user meets it: reports, JSON, wrong input.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use assert_cmd::Command;
use serde_json::Value;

fn selfmate(arguments: &[&str]) -> std::process::Output {
    Command::cargo_bin("selfmate").unwrap().args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = selfmate(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Standard error and exit code of a call that must fail.
fn refused(arguments: &[&str]) -> (String, i32) {
    let output = selfmate(arguments);
    assert!(output.stdout.is_empty(), "a refusal prints nothing on standard output");
    (String::from_utf8(output.stderr).unwrap(), output.status.code().unwrap())
}

#[test]
fn perft_counts() {
    let report = json(&["perft", "4", "--json"]);
    assert_eq!(report["nodes"], 197_281);
    assert!(report["seconds"].as_f64().unwrap() >= 0.0);
    let report = json(&["perft", "1", "--divide", "--json", "--fen", "8/8/8/8/8/8/k7/2K4R w - -"]);
    assert_eq!(report["moves"].as_array().unwrap().len() as u64, report["nodes"]);
}

#[test]
fn bench_signature_is_the_same_twice() {
    let first = json(&["bench", "--json", "--seconds", "0.01"]);
    let second = json(&["bench", "--json", "--seconds", "0.01"]);
    assert_eq!(first["signature"], second["signature"]);
    assert_eq!(first["nodes"], second["nodes"]);
    for part in ["perft", "environment", "mcts_uniform", "mcts_800", "rollout", "rollout_full"] {
        assert!(first[part]["per_second"].as_u64().unwrap() > 0, "{part}");
    }
}

#[test]
fn bench_search_makes_the_searches_it_is_asked_for() {
    let found = json(&["bench", "search", "--searches", "3", "--sims", "50", "--json"]);
    assert_eq!((&found["searches"], &found["simulations"]), (&3.into(), &150.into()), "{found}");
    assert!(found["simulations_per_second"].as_f64() > Some(0.0), "{found}");
    let (message, code) = refused(&["bench", "search", "alphabeta", "--sims", "50"]);
    assert!(message.contains("alphabeta: this player has no simulations"), "{message}");
    assert_eq!(code, 1);
}

#[test]
fn bench_nets_measures_every_path() {
    let report = json(&[
        "bench",
        "nets",
        "--json",
        "--seconds",
        "0.01",
        "--network",
        "small",
        "--batch",
        "1,2",
        "--training-batch",
        "8",
        "--threads",
        "2",
        "--searches",
        "3",
    ]);
    let rows = report["networks"].as_array().unwrap();
    let paths: Vec<_> = rows.iter().map(|row| (&row["path"], &row["batch"])).collect();
    let count = |path| format!("{paths:?}").matches(path).count();
    assert_eq!((count("fast"), count("int8"), count("server"), rows.len()), (3, 2, 1, 6));
    for row in rows {
        assert_eq!((&row["name"], &row["threads"]), (&"small".into(), &2.into()));
        let inferred = row["inference_per_second"].as_u64();
        let learned = row["training_per_second"].as_u64();
        assert!(inferred.is_some() != learned.is_some(), "{row}");
    }
}

#[test]
fn encode_prints_planes_and_indices() {
    let output = selfmate(&["encode", "--encoding", "planes13", "--moves", "e4,c7c5"]);
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap());
    let report = json(&["encode", "--encoding", "az4672", "--json"]);
    assert_eq!(report["moves"].as_array().unwrap().len(), 20);
    let report = json(&["encode", "--encoding", "sparse768", "--json"]);
    assert_eq!(report["features"].as_array().unwrap().len(), 32);
}

#[test]
fn doctor_says_what_each_thing_is_for() {
    let report = json(&["doctor", "--json"]);
    let checks = report["checks"].as_array().unwrap();
    let names: Vec<&str> = checks.iter().map(|c| c["name"].as_str().unwrap()).collect();
    let expected =
        ["cpu", "cores", "memory", "stockfish", "syzygy", "nats", "node", "gpu", "devices"];
    assert_eq!(names, expected);
    assert!(checks.iter().all(|c| !c["purpose"].as_str().unwrap().is_empty()));
}

#[test]
fn completions_are_written_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = selfmate(&["completions", shell]);
        assert!(output.status.success() && output.stdout.len() > 500, "{shell}");
    }
}

#[test]
fn wrong_input_is_named() {
    let (message, code) = refused(&["perft", "3", "--fen", "8/8/8/8/8/8/8/8 w - -"]);
    assert!(message.contains("board: expected pieces on it"), "{message}");
    assert_eq!(code, 2);
    let (message, code) = refused(&["perft", "three"]);
    assert!(message.contains("'three'"), "{message}");
    assert_eq!(code, 2);
    let (message, code) = refused(&["encode", "--encoding", "planes14"]);
    assert!(message.contains("unknown encoding 'planes14'"), "{message}");
    assert_eq!((code, message.lines().count()), (1, 1));
    let (message, code) = refused(&["encode", "--moves", "e5"]);
    assert!(message.contains("--moves: 'e5' is not legal in"), "{message}");
    assert_eq!((code, message.lines().count()), (1, 1));
    let (message, code) = refused(&["bench", "--seconds", "-1"]);
    assert!(message.contains("-1"), "{message}");
    assert_ne!(code, 0);
    let (_, code) = refused(&["conquer"]);
    assert_eq!(code, 2);
}

#[test]
fn numbers_that_are_none_and_numbers_that_are_too_large_are_told_apart() {
    for (arguments, expected) in [
        (&["train", "--minutes", "NaN"][..], "'NaN' for '--minutes <M>': expected a number of min"),
        (&["train", "--minutes", "inf"], "'inf' for '--minutes <M>': expected a number of minutes"),
        (&["train", "--nats", "x", "--audit", "nan"], "expected a share from 0 to 1"),
        (&["rate", "random", "--error", "NaN"], "expected a number above 0"),
        (&["bench", "--seconds", "NaN"], "expected seconds, more than 0 and at most 600"),
        (&["ladder", "random", "greedy", "--anchor", "random=NaN"], "expected a rating"),
        (&["match", "random", "greedy", "--resign", "99999999999999999999,5"], "to 4294967295"),
        (&["train", "--games", "99999999999999999999"], "number too large"),
    ] {
        let (message, code) = refused(arguments);
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert_eq!(code, 2, "{arguments:?}: {message}");
    }
    for (arguments, expected) in [
        (&["train", "--set", "learning.batch=99999999999999999999"][..], "number of at most 92233"),
        (&["train", "--set", "learning.reuse=NaN"], "'learning.reuse=NaN': expected a number"),
        (&["analyse", "material:sims=99999999999999999999"], "from 1 to 18446744073709551615, got"),
    ] {
        let (message, code) = refused(arguments);
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert_eq!((code, message.lines().count()), (1, 1), "{arguments:?}: {message}");
    }
}

#[test]
fn weights_that_are_none_are_refused() {
    let (message, code) = refused(&["analyse", "alphabeta:depth=1,weights=/dev/null"]);
    assert!(
        message.contains("weights /dev/null: not a regular file: expected one written by evolve"),
        "{message}"
    );
    assert_eq!((code, message.lines().count()), (1, 1));
}

#[test]
fn one_file_is_not_written_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::create_dir(path("inner")).unwrap();
    let (file, other) = (path("net"), path("inner/../net"));
    for arguments in [
        &["export", "default", "--onnx", &file, "--examples", &other][..],
        &["match", "random", "random", "--store", &file, "--pgn", &other],
    ] {
        let (message, code) = refused(arguments);
        assert!(message.contains(&format!("both name {other}: expected two files")), "{message}");
        assert_eq!((code, message.lines().count()), (2, 1), "{message}");
        assert!(!std::path::Path::new(&file).exists());
    }
}

/// A limit on the size of files is a full disk to whoever writes one.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_no_empty_files_and_keeps_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
    let program = env!("CARGO_BIN_EXE_selfmate");
    for command in [
        "export default --onnx",
        "export default --onnx /dev/null --examples",
        "ladder random greedy --games 2 --max-plies 4 --svg",
        "match random greedy --games 2 --max-plies 4 --pgn",
    ] {
        for file in [&old, &new] {
            std::fs::write(&old, "old").unwrap();
            let script =
                format!("trap '' XFSZ; ulimit -f 0; '{program}' {command} '{}'", file.display());
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            let message = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{command}: {message}");
            assert!(message.contains(&file.display().to_string()), "{command}: {message}");
            let left = std::fs::read_dir(folder.path()).unwrap();
            let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(left, ["old"], "{command}");
            assert_eq!(std::fs::read_to_string(&old).unwrap(), "old", "{command}");
        }
    }
}

/// Standard output of a call that is fed some input.
fn dialogue(arguments: &[&str], input: &str) -> String {
    let output = Command::cargo_bin("selfmate")
        .unwrap()
        .args(arguments)
        .write_stdin(input)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_game_in_the_terminal() {
    let input = "moves\nNf9\nf3\nhint\nundo\nundo\nf3\ng4\n";
    let text = dialogue(&["play", "alphabeta", "--depth", "3"], input);
    insta::assert_snapshot!(text);
    let text = dialogue(&["play", "random", "--color", "black"], "resign\n");
    assert!(text.contains("White wins by resignation"), "{text}");
}

#[test]
fn analyse_lists_moves() {
    let fen = "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1";
    let report = json(&["analyse", "material", "--sims", "300", "--fen", fen, "--json"]);
    assert_eq!(report["best"], "a1a8");
    assert_eq!(report["moves"][0]["move"], "a1a8");
    assert_eq!(report["moves"][0]["score"], "mate in 1");
    let report =
        json(&["analyse", "alphabeta", "--depth", "4", "--fen", fen, "--lines", "2", "--json"]);
    assert_eq!(report["best"], "a1a8");
    assert_eq!(report["moves"].as_array().unwrap().len(), 2);
    let table =
        dialogue(&["analyse", "alphabeta", "--depth", "4", "--fen", fen, "--lines", "2"], "");
    let lines: Vec<&str> = table.lines().skip_while(|line| !line.starts_with("move")).collect();
    assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["move", "score", "line"]);
    assert_eq!(
        lines[1].split_whitespace().take(2).collect::<Vec<_>>(),
        ["Ra8#", "mate"],
        "{table}"
    );
    let table = dialogue(&["analyse", "material", "--sims", "300", "--fen", fen], "");
    let head = table.lines().find(|line| line.starts_with("move")).unwrap();
    let names: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(names, ["move", "visits", "prior", "q", "score", "line"]);
    let report = json(&["analyse", "random", "--fen", "7k/5Q2/6K1/8/8/8/8/8 b - -", "--json"]);
    assert!(report["best"].is_null());
    let (message, code) = refused(&["analyse", "stokfish"]);
    assert_eq!(message, "selfmate: unknown player 'stokfish': did you mean 'stockfish'?\n");
    assert_eq!(code, 1);
}

#[test]
fn a_uci_session() {
    let input = "uci\nisready\nsetoption name MultiPV value 2\nsetoption name CPuct value 2.5\n\
                 setoption name Hash value 8\nsetoption name CPuct value x\n\
                 position fen 6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1\ngo nodes 300\nwait\neval\nquit\n";
    let text = dialogue(&["uci", "material"], input);
    assert!(text.contains("uciok") && text.contains("readyok"), "{text}");
    assert!(text.contains("option name CPuct") && text.contains("option name MultiPV"), "{text}");
    assert!(text.contains("multipv 2"), "{text}");
    assert!(text.contains("expected a number from 0 to 100"), "{text}");
    assert!(text.contains("score mate 1") && text.contains("bestmove a1a8"), "{text}");
}

#[test]
fn a_uci_bench_ends_with_quit_and_is_whole_without_it() {
    let text = dialogue(&["uci", "random"], "bench\nquit\n");
    assert_eq!(text, "info string bench stopped\n");
    let text = dialogue(&["uci", "random"], "bench\n");
    assert!(text.contains("Nodes searched  : ") && !text.contains("stopped"), "{text}");
}

#[test]
fn a_uci_search_proves_mates() {
    let input = "position fen 7k/8/5K2/8/8/8/8/R7 w - - 0 1\ngo nodes 20000\nwait\nquit\n";
    let text = dialogue(&["uci", "material"], input);
    assert!(text.contains("score mate 2"), "{text}");
    let text = dialogue(&["demo", "mcts", "--fen", "7k/5Q2/6K1/8/8/8/8/8 b - -"], "");
    assert!(text.contains("There is no legal move"), "{text}");
}

#[test]
fn the_demo_explains_a_search() {
    insta::assert_snapshot!(dialogue(&["demo", "mcts", "--sims", "6"], ""));
}
