//! `selfplay` as a user runs it, with its files read back.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use selfmate_chess::pgn::{PgnGame, PgnResult, Reader};
use selfmate_chess::{Color, Game, fen, notation};
use serde_json::{Value, json};

/// The exit code and standard error of a call that must fail.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let output = selfplay(arguments);
    assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?}");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn selfplay(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selfmate"));
    command.arg("selfplay").args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn report(arguments: &[&str]) -> Value {
    let output = selfplay(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn positions(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("positions.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn games(folder: &Path) -> Vec<PgnGame> {
    let file = fs::read(folder.join("games.pgn")).unwrap();
    Reader::new(&file[..]).map(Result::unwrap).collect()
}

#[test]
fn positions_replay_the_games_and_outcomes_are_for_the_side_to_move() {
    let folder = tempfile::tempdir().unwrap();
    // A folder that does not exist yet.
    let folder = folder.path().join("new/data");
    let to = folder.to_str().unwrap();
    let report =
        report(&["greedy", "--games", "30", "--seed", "2", "--max-plies", "250", "-o", to]);
    let (games, positions) = (games(&folder), positions(&folder));
    assert_eq!(report["games"], 30);
    assert_eq!(report["positions"], positions.len());
    assert_eq!((&report["duplicates"], &report["faults"]), (&json!(0), &json!(0)));
    assert_eq!(report["files"].as_array().unwrap().len(), 3);
    let count = |result| games.iter().filter(|game| game.result == result).count() as u64;
    for (key, result) in [
        ("white_wins", PgnResult::White),
        ("draws", PgnResult::Draw),
        ("black_wins", PgnResult::Black),
        ("truncated", PgnResult::Unknown),
    ] {
        assert_eq!(report[key], count(result), "{key}");
        assert!(count(result) > 0, "no game with this end: {key}");
    }
    let mut rows = positions.iter();
    let mut openings = HashSet::new();
    for (number, pgn) in games.iter().enumerate() {
        let mut game = Game::new();
        for m in pgn.game.moves() {
            let row = rows.next().unwrap();
            let turn = game.turn();
            let player = if turn == Color::White { "white" } else { "black" };
            let outcome = match (pgn.result, turn) {
                (PgnResult::White, Color::White) | (PgnResult::Black, Color::Black) => json!(1),
                (PgnResult::White | PgnResult::Black, _) => json!(-1),
                (PgnResult::Draw, _) => json!(0),
                (PgnResult::Unknown, _) => Value::Null,
            };
            assert_eq!((&row["game"], &row["ply"]), (&json!(number), &json!(game.ply())));
            assert_eq!(row["fen"], fen::to_fen(game.position()));
            assert_eq!(row["move"], notation::uci(game.position(), m));
            assert_eq!((&row["player"], &row["outcome"]), (&json!(player), &outcome));
            assert_eq!(row["result"], pgn.result.as_str());
            assert_eq!(row["reason"] == "truncated", pgn.result == PgnResult::Unknown);
            assert!(row.get("board").is_none() && row.get("legal").is_none());
            if row["opening"] == false {
                openings.insert((number, game.key()));
            }
            game.play(m).unwrap();
        }
        assert!(pgn.game.ply() <= 250);
    }
    assert!(rows.next().is_none());
    // All openings of the set start with at least six plies that the player did not choose.
    assert!(positions.iter().all(|row| row["ply"].as_u64() >= Some(6) || row["opening"] == true));
    assert!(!openings.is_empty());
    let dataset: Value =
        serde_json::from_slice(&fs::read(folder.join("dataset.json")).unwrap()).unwrap();
    assert_eq!((&dataset["player"], &dataset["config"]["seed"]), (&json!("greedy"), &json!(2)));
    assert_eq!((&dataset["is_finished"], &dataset["board"]), (&json!(true), &Value::Null));
}

#[test]
fn the_files_are_the_same_with_one_thread_and_with_two() {
    let folder = tempfile::tempdir().unwrap();
    let play = |name: &str, flags: &[&str]| {
        let folder = folder.path().join(name);
        let common = ["rollout:sims=8", "--games", "6", "-o", folder.to_str().unwrap()];
        report(&[&common[..], flags].concat());
        ["games.pgn", "positions.jsonl", "dataset.json"]
            .map(|file| fs::read(folder.join(file)).unwrap())
    };
    let one = play("one", &["--seed", "3", "--threads", "1"]);
    assert_eq!(one, play("two", &["--seed", "3", "--threads", "2"]));
    assert_ne!(one, play("other", &["--seed", "4"]));
}

#[test]
fn boards_and_legal_moves_are_written_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().to_str().unwrap();
    let flags = ["--games", "2", "--max-plies", "12", "--with", "board,legal", "--format", "jsonl"];
    report(&[&["random", "-o", to][..], &flags].concat());
    assert!(!folder.path().join("games.pgn").exists());
    let rows = positions(folder.path());
    for row in &rows {
        let board = row["board"].as_array().unwrap();
        let text = row["fen"].as_str().unwrap();
        let pieces = text.split(' ').next().unwrap().matches(char::is_alphabetic).count();
        assert_eq!(board.len(), 768);
        assert_eq!(board.iter().filter(|value| **value == 1).count(), pieces);
        assert!(row["legal"].as_array().unwrap().contains(&row["move"]));
    }
    // White's rook on a1 and Black's king on e8: rank × 96 + file × 12 + piece.
    let board = rows[0]["board"].as_array().unwrap();
    assert_eq!((&board[3], &board[7 * 96 + 4 * 12 + 11]), (&json!(1), &json!(1)));
    let dataset: Value =
        serde_json::from_slice(&fs::read(folder.path().join("dataset.json")).unwrap()).unwrap();
    assert_eq!(dataset["board"]["encoding"], "planes12");
    assert_eq!(dataset["board"]["shape"], json!([8, 8, 12]));
}

#[test]
fn parquet_is_written_if_the_build_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("data");
    let arguments = [
        "random",
        "--games",
        "2",
        "--max-plies",
        "8",
        "--format",
        "parquet",
        "-o",
        to.to_str().unwrap(),
    ];
    if cfg!(feature = "parquet") {
        report(&arguments);
        let bytes = fs::read(to.join("positions.parquet")).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    } else {
        let (code, error) = refused(&arguments);
        assert_eq!(code, Some(1));
        assert!(error.contains("--format") && error.contains("the feature `parquet`"), "{error}");
        assert!(!to.exists());
    }
}

#[test]
fn wrong_players_formats_and_existing_files_are_refused_before_the_first_game() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("data");
    let to_text = to.to_str().unwrap();
    let (code, error) = refused(&["nobody", "-o", to_text]);
    assert!(code == Some(1) && error.contains("nobody"), "{error}");
    let (code, error) = refused(&["run:missing", "-o", to_text]);
    assert!(code == Some(1) && error.contains("missing"), "{error}");
    let (code, error) = refused(&["random", "-o", to_text, "--format", "csv"]);
    assert!(code == Some(2) && error.contains("csv"), "{error}");
    assert!(!to.exists());
    fs::create_dir(&to).unwrap();
    for name in ["games.pgn", "positions.jsonl", "positions.parquet", "dataset.json"] {
        let file = to.join(name);
        fs::write(&file, "mine").unwrap();
        let (code, error) = refused(&["random", "--games", "1", "-o", to_text]);
        assert_eq!(code, Some(1));
        assert!(error.contains(&format!("{name} exists already")), "{error}");
        assert_eq!(fs::read(&file).unwrap(), b"mine");
        fs::remove_file(&file).unwrap();
    }
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let (code, error) = refused(&["random", "-o", file.to_str().unwrap()]);
    assert!(code == Some(1) && error.contains("cannot create the folder"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_stopped_self_play_writes_its_finished_games() {
    use std::io::{BufRead as _, BufReader};

    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().to_str().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_selfmate"))
        .args(["selfplay", "rollout:sims=50", "--games", "1000", "-o", to, "--json"])
        .args(["--openings", "random:4", "--threads", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The first line of progress: games are being played.
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(line.contains("game 1/1000"), "{line}");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["is_finished"], false);
    let games = games(folder.path());
    assert!((1..1000).contains(&games.len()));
    assert_eq!(report["games"], games.len());
    assert_eq!(report["positions"], positions(folder.path()).len());
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["dataset.json", "games.pgn", "positions.jsonl"]);
}
