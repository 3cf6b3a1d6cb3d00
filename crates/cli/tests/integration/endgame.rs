//! The endgame lab as a user sees it: train, evaluate, value-map and ablate.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

fn selfmate(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("selfmate").unwrap();
    command.current_dir(folder).args(arguments).env_remove("SELFMATE_RUNS");
    command
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = selfmate(folder, arguments).arg("--json").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = selfmate(folder, arguments).output().unwrap();
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_run_is_evaluated_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for ending in ["krk", "kpk"] {
        let train = ["train", ending, "--preset", "tiny", "--steps", "20", "--plain"];
        selfmate(folder, &train).assert().success();
        // Also when the steps end inside a generation.
        assert_eq!(json(folder, &["show", ending])["steps"], 20);
        let evaluate = ["evaluate", ending, "--positions", "6", "--sims", "8", "--moves", "4"];
        let report = json(folder, &evaluate);
        assert_eq!(
            (report["ending"].as_str(), report["positions"].as_u64()),
            (Some(ending), Some(6))
        );
        for share in ["mate_share", "optimal_share", "thrown_share", "terminal_share"] {
            assert!((0.0..=1.0).contains(&report[share].as_f64().unwrap()), "{share}: {report}");
        }
        assert!(report["simulations"].as_u64().unwrap() > 0);
        // The same questions have the same answers, on any number of threads.
        let again = json(folder, &[&evaluate[..], &["--threads", "1"]].concat());
        for name in ["mate_share", "regret_plies", "value_error", "depth", "simulations"] {
            assert_eq!(report[name], again[name], "{name}");
        }
    }
    let picture = folder.join("values.svg");
    let map = ["value-map", "krk", "--place", "Kg6,kg8", "--svg", "values.svg"];
    let report = json(folder, &map);
    assert_eq!((report["piece"].as_str(), report["plies"][0].as_u64()), (Some("R"), Some(1)));
    assert!(fs::read_to_string(&picture).unwrap().ends_with("</svg>\n"));
    let message = refused(folder, &["value-map", "krk", "--place", "Ke3,Re3"]);
    assert!(message.contains("two pieces on e3: expected a square for each"), "{message}");
    #[cfg(unix)]
    {
        fs::write(&picture, "old").unwrap();
        let program = env!("CARGO_BIN_EXE_selfmate");
        let script =
            format!("trap '' XFSZ; ulimit -f 0; '{program}' value-map krk --svg values.svg");
        let mut shell = Command::new("sh");
        shell.current_dir(folder).args(["-c", &script]).env_remove("SELFMATE_RUNS");
        let message = String::from_utf8(shell.output().unwrap().stderr).unwrap();
        assert!(message.contains("cannot write values.svg: "), "{message}");
        assert_eq!(fs::read_to_string(&picture).unwrap(), "old");
        assert!(!folder.join("values.svg.partial").exists());
    }
    let message = refused(folder, &["value-map", "krk", "--place", "Kg6,Qa1"]);
    assert!(message.contains("expected all pieces of KRK but one"), "{message}");
    assert!(refused(folder, &["evaluate", "nobody"]).contains("nobody"));
    // A game of it starts where it knows something.
    let play = |more: &[&str]| {
        let mut command = selfmate(folder, &[&["play", "run:krk,sims=4"], more].concat());
        let output = command.write_stdin("fen\nquit\n").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let (first, again, second) = (play(&["--seed", "1"]), play(&[]), play(&["--seed", "2"]));
    let start = "This run was trained only on krk, so the game starts from: ";
    let fen = first.lines().next().unwrap().strip_prefix(start).unwrap();
    let board = fen.split(' ').next().unwrap();
    let mut pieces: Vec<char> = board.chars().filter(char::is_ascii_alphabetic).collect();
    pieces.sort_unstable();
    assert_eq!(pieces, ['K', 'R', 'k'], "{first}");
    assert_eq!(first, again);
    // White, to move, wins; it plays to the end against the exact defender, or against the user.
    assert!(fen.contains(" w "), "{fen}");
    let probed = json(folder, &["tablebase", "probe", "--fen", fen]);
    assert!(probed.to_string().contains("win"), "{probed}");
    let (start_of_game, end) = first.rsplit_once('\n').unwrap().0.rsplit_once('\n').unwrap();
    assert!(start_of_game.contains("1. … "), "{first}");
    assert!(end.contains(" moves of White; best play mates in "), "{end}");
    let black = play(&["--seed", "1", "--color", "black"]);
    assert!(
        black.starts_with(&format!("{start}{fen}")) && black.contains("You play Black"),
        "{black}"
    );
    assert!(!second.starts_with(&format!("{start}{fen}")), "{second}");
    let given = ["play", "run:krk,sims=4", "--fen", "startpos"];
    let output = selfmate(folder, &given).write_stdin("fen\nquit\n").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("rnbqkbnr/pppppppp/"));
    let game = ["match", "run:krk,sims=4", "random", "--games", "2", "--openings", "endings.epd"];
    fs::write(folder.join("endings.epd"), "8/8/8/4k3/8/8/2R5/4K3 w - - id \"rook\";\n").unwrap();
    assert_eq!(json(folder, &game)["games"], 2);
}

#[test]
fn an_ablation_is_the_same_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let ablate = |out: &str, threads: &str| {
        let arguments = [
            "ablate",
            "krk",
            "--preset",
            "tiny",
            "--grid",
            "root_rule=greedy,top_k",
            "--grid",
            "sims=4,8",
            "--seeds",
            "2",
            "--budget",
            "300",
            "--evaluations",
            "1",
            "--positions",
            "3",
            "--evaluation-sims",
            "4",
            "--out",
            out,
            "--threads",
            threads,
        ];
        json(folder, &arguments)
    };
    let report = ablate("one", "1");
    assert_eq!((report["runs"].as_u64(), report["rows"].as_array().unwrap().len()), (Some(8), 4));
    ablate("two", "2");
    let files = ["results.csv", "table.md", "mate_share.svg", "regret_plies.svg", "values-003.svg"];
    for name in files {
        let read = |out: &str| fs::read(folder.join(out).join(name)).unwrap();
        assert!(read("one") == read("two"), "{name}");
    }
    assert_eq!(fs::read_to_string(folder.join("one/results.csv")).unwrap().lines().count(), 9);
    assert_eq!(fs::read_to_string(folder.join("one/speed.csv")).unwrap().lines().count(), 9);
    let each =
        ["ablate", "krk", "--preset", "tiny", "--each", "sims=4,8", "--each", "c_puct=1.5,3"];
    let few = ["--seeds", "1", "--budget", "100", "--positions", "2", "--evaluation-sims", "4"];
    let each = [&each[..], &few, &["--out", "each", "--threads", "1"]].concat();
    // The default is among the values of both axes and is run once.
    let estimate = json(folder, &[&each[..], &["--estimate"]].concat());
    assert_eq!((estimate["combinations"].as_u64(), estimate["runs"].as_u64()), (Some(3), Some(3)));
    assert!(estimate["core_seconds"].as_f64().unwrap() > 0.0 && !folder.join("each").exists());
    assert_eq!(json(folder, &each)["rows"].as_array().unwrap().len(), 4);
    let table = fs::read_to_string(folder.join("each/table.md")).unwrap();
    assert!(table.contains("### `sims`") && table.contains("(c_puct-mate_share.svg)"), "{table}");
    assert!(folder.join("each/c_puct-mate_share.svg").exists());
    let message = refused(folder, &["ablate", "krk", "--each", "sims=4", "--grid", "sims=8"]);
    assert!(message.contains("--each"), "{message}");
    assert!(refused(folder, &["ablate", "krk", "--each", "colour"]).contains("--each"));
    assert!(refused(folder, &["ablate", "krk", "--grid", "root_rule=slow"]).contains("slow"));
    assert!(refused(folder, &["ablate", "chess"]).contains("krk"));
    let message = refused(folder, &["ablate", "krk", "--out", "one"]);
    assert!(message.contains("plan.json: begun with other settings"), "{message}");
}
