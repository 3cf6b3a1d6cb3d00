//! Opening books as a user makes and uses them.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

fn selfmate(folder: &Path, arguments: &[&str]) -> (bool, String, String) {
    let mut command = Command::cargo_bin("selfmate").unwrap();
    let output = command.current_dir(folder).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let (is_fine, out, error) = selfmate(folder, &[arguments, &["--json"]].concat());
    assert!(is_fine, "{arguments:?}: {error}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_book_is_made_shown_probed_merged_and_played() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let game = |moves: &str, result: &str| {
        format!("[Event \"x\"]\n[Result \"{result}\"]\n\n{moves} {result}\n\n")
    };
    let open = game("1. e4 e5 2. Nf3 Nc6", "1-0").repeat(4);
    let closed = game("1. d4 d5 2. c4 e6", "1/2-1/2").repeat(4);
    fs::write(folder.join("open.pgn"), &open).unwrap();
    fs::write(folder.join("closed.pgn"), &closed).unwrap();
    let built = json(folder, &["book", "build", "open.pgn", "-o", "open.bin"]);
    assert_eq!((built["games"].as_u64(), built["moves"].as_u64()), (Some(4), Some(4)));
    assert!(fs::read_to_string(folder.join("open.txt")).unwrap().contains("e4 1000"));
    json(folder, &["book", "build", "closed.pgn", "-o", "closed.bin"]);
    json(folder, &["book", "merge", "open.bin", "closed.bin", "-o", "both.bin"]);
    let moves = json(folder, &["book", "probe", "both.bin"]);
    let sans: Vec<&str> =
        moves.as_array().unwrap().iter().filter_map(|m| m["san"].as_str()).collect();
    assert_eq!(sans.len(), 2);
    assert!(sans.contains(&"e4") && sans.contains(&"d4"));
    let (_, shown, _) = selfmate(folder, &["book", "show", "open.bin", "--plies", "2"]);
    assert!(shown.starts_with("e4 ") && shown.contains("\n  e5 "), "{shown}");
    let lines = json(folder, &["book", "show", "open.bin", "--plies", "2"]);
    assert_eq!((&lines[0]["san"], &lines[0]["then"][0]["uci"]), (&"e4".into(), &"e7e5".into()));
    let pgn = folder.join("games.pgn").display().to_string();
    let players = ["random:book=open.bin", "greedy:book=open.bin"];
    let played = json(
        folder,
        &[
            "match",
            players[0],
            players[1],
            "--games",
            "2",
            "--openings",
            "random:1",
            "--max-plies",
            "6",
            "--pgn",
            &pgn,
        ],
    );
    assert_eq!(played["games"].as_u64(), Some(2));
    let (is_fine, _, error) = selfmate(folder, &["book", "build", "nowhere.pgn", "-o", "x.bin"]);
    assert!(!is_fine && error.contains("nowhere.pgn"), "{error}");
}

#[test]
fn a_book_is_written_over_nothing_that_it_is_made_of() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let games = "[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 1-0\n\n".repeat(3);
    fs::write(folder.join("games.txt"), &games).unwrap();
    for (output, expected) in [
        ("games.txt", "expected another extension than .txt"),
        ("games.bin", "games.txt would be overwritten"),
        ("./games.bin", "games.txt would be overwritten"),
    ] {
        let (is_fine, _, error) = selfmate(folder, &["book", "build", "games.txt", "-o", output]);
        assert!(!is_fine && error.contains(expected), "{error}");
        assert_eq!(fs::read_to_string(folder.join("games.txt")).unwrap(), games);
    }
    let build = ["book", "build", "games.txt", "-o", "other.bin", "--min-games", "1"];
    assert!(selfmate(folder, &build).0);
    let (_, shown, _) =
        selfmate(folder, &["book", "probe", "other.bin", "8/8/8/8/8/k7/8/K7 w - - 0 1"]);
    assert_eq!(shown, "no book move in this position\n");
    // Nobody knows who would have won a game that was cut off.
    let contest = ["match", "random", "random", "--games", "2", "--max-plies", "12"];
    json(folder, &[&contest[..], &["--store", "short.games"]].concat());
    let build_short = ["book", "build", "short.games", "-o", "short.bin", "--min-games", "1"];
    let (is_fine, _, error) = selfmate(folder, &build_short);
    assert!(!is_fine && error.contains("0 games are too few for a book"), "{error}");
    let (is_fine, _, error) = selfmate(folder, &[&build[..], &["--tolerance", "nan"]].concat());
    assert!(!is_fine && error.contains("expected a share from 0 to 1"), "{error}");
}
