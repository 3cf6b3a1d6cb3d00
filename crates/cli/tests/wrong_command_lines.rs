//! Wrong command lines by the thousand: every command, each of its flags and arguments in turn replaced by
//! something that does not belong there. Nothing may panic, abort or go on for long, and nothing may end with
//! another exit code than 0, 1 or 2.
//!
//! All pairs of places and values take minutes: `SELFMATE_WRONG_SHARE=1` tries them all, the default every
//! fifth.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const STARTPOS: &str = "--fen=rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

/// Every command with arguments that make it short. `{runs}` is a folder with the runs `zero` and `krk`.
const COMMANDS: &[(&str, &[&str])] = &[
    ("train", &["krk", "--preset=tiny", "--run=r", "--games=8", "--minutes=0.02", "--plain"]),
    ("play", &["random", "--sims=1"]),
    ("uci", &["random"]),
    ("analyse", &["alphabeta", "--depth=1", STARTPOS]),
    ("match", &["random", "greedy", "--games=2", "--max-plies=8", "--sims=1"]),
    ("ladder", &["random", "greedy", "--games=2", "--max-plies=8", "--sims=1"]),
    ("rate", &["random", "--games=2", "--max-plies=8", "--sims=1"]),
    (
        "selfplay",
        &["random", "--games=2", "--max-plies=8", "--sims=1", "--format=jsonl", "--output=data"],
    ),
    ("suite", &["{runs}/suite.epd", "random", "--sims=1"]),
    ("runs", &["--runs={runs}"]),
    ("show", &["zero", "--runs={runs}"]),
    ("plot", &["zero", "--runs={runs}", "--output=curves.svg"]),
    ("worker", &["--nats=nats://127.0.0.1:1", "--threads=1"]),
    ("cluster status", &["--nats=nats://127.0.0.1:1"]),
    ("evaluate", &["krk", "--runs={runs}", "--positions=2", "--sims=2", "--moves=2"]),
    ("value-map", &["krk", "--runs={runs}", "--place=Ke3,Rd4"]),
    (
        "ablate",
        &[
            "krk",
            "--preset=tiny",
            "--seeds=1",
            "--budget=100",
            "--positions=2",
            "--evaluation-sims=2",
        ],
    ),
    ("tablebase probe", &["--fen=8/8/8/8/8/4k3/8/R3K3 w - - 0 1"]),
    ("tablebase solve", &["KQK"]),
    ("serve", &["--port=0"]),
    ("demo mcts", &["--sims=2"]),
    ("demo network", &["--shape=1x16"]),
    ("demo selfplay", &["zero", "--runs={runs}", "--sims=2"]),
    ("bench", &["--seconds=0.001", "--part=perft"]),
    ("bench search", &["--searches=1", "--sims=2"]),
    ("bench nets", &["--seconds=0.001", "--network=small", "--batch=1", "--searches=1"]),
    ("perft", &["1", STARTPOS]),
    ("encode", &["--encoding=planes13", "--moves=e4"]),
    ("book build", &["{runs}/games.pgn", "--output=book.bin", "--min-games=1"]),
    ("book show", &["{runs}/book.bin"]),
    ("book probe", &["{runs}/book.bin", "startpos"]),
    ("book merge", &["{runs}/book.bin", "{runs}/book.bin", "--output=both.bin"]),
    ("export", &["zero", "--runs={runs}", "--jsonl=games.jsonl"]),
    ("doctor", &[]),
    ("completions", &["bash"]),
];

const WRONG: &[&str] = &[
    "",
    " ",
    "0",
    "-1",
    "NaN",
    "1e300",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
    "x\ny",
    "é\u{202e}🦀",
    "a=b,c:d",
    "/dev/null",
    "/dev/zero",
    "nowhere/at/all",
    ".",
    "8/8/8/8/8/8/8/8 w - - 0 1",
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 4294967295 1",
    "alphabeta:hash=65536",
    "rollout:sims=18446744073709551615,memory=4294967295",
    "net:/dev/zero",
    "uci:/dev/null",
];

/// What a request for endless work gets to be interrupted, as a user would do.
const PATIENCE: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(10);
/// Kilobytes of address space: a command that wants all memory must not take the machine with it.
const ADDRESS_SPACE: &str = "8000000";

#[test]
fn a_thousand_wrong_command_lines_end_soon_and_in_order() {
    let lab = tempfile::tempdir().unwrap();
    let runs = lab.path().join("runs");
    prepare(&runs);
    let share = std::env::var("SELFMATE_WRONG_SHARE").map_or(5, |share| share.parse().unwrap());
    let commands = COMMANDS.iter();
    let lines: Vec<Vec<String>> =
        commands.flat_map(|(command, base)| wrong_lines(command, base, &runs, share)).collect();
    assert!(lines.len() >= 1000, "only {} command lines", lines.len());

    let next = AtomicUsize::new(0);
    let faults = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(fault) = try_line(line) {
                        faults.lock().unwrap().push(format!("selfmate {line:?}\n  {fault}"));
                    }
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), lines.len(), faults.join("\n"));
}

#[test]
fn the_table_has_every_command() {
    let help = help(&[]);
    let commands = help.split("Commands:\n").nth(1).unwrap();
    for line in commands.lines().take_while(|line| line.starts_with("  ")) {
        let name = line.split_whitespace().next().unwrap();
        let is_known = COMMANDS.iter().any(|(command, _)| command.split(' ').next() == Some(name));
        assert!(is_known || name == "help", "no wrong command lines for '{name}'");
    }
}

/// Two small runs, a book, games and positions.
fn prepare(runs: &Path) {
    fs::create_dir(runs).unwrap();
    fs::write(runs.join("games.pgn"), "[Result \"1-0\"]\n\n1. e4 e5 2. Nf3 1-0\n\n".repeat(4))
        .unwrap();
    fs::write(runs.join("suite.epd"), "8/8/8/8/8/4k3/8/R3K3 w - - bm Ra3;\n").unwrap();
    let do_it = |line: &[&str]| {
        let output = selfmate(line, runs).output().unwrap();
        assert!(output.status.success(), "{line:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let folder = format!("--runs={}", runs.display());
    for (learner, games) in [("zero", "--games=32"), ("krk", "--games=8")] {
        do_it(&["train", learner, "--preset=tiny", games, "--plain", &folder]);
    }
    do_it(&["book", "build", "games.pgn", "--output=book.bin", "--min-games=1"]);
}

/// A command with each of its flags and arguments wrong in a few ways.
fn wrong_lines(command: &str, base: &[&str], runs: &Path, share: usize) -> Vec<Vec<String>> {
    let words: Vec<&str> = command.split(' ').collect();
    let runs = runs.to_str().unwrap();
    let base: Vec<String> = base.iter().map(|word| word.replace("{runs}", runs)).collect();
    let line = |arguments: Vec<String>| -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).chain(arguments).collect()
    };
    // Each flag and argument has other values than the one before it.
    let mut turn = 0;
    let mut some = || {
        turn += 1;
        WRONG
            .iter()
            .cycle()
            .skip(turn * WRONG.len().div_ceil(share))
            .take(WRONG.len().div_ceil(share))
    };
    let mut lines = Vec::new();
    for flag in flags(&help(&words)) {
        let given = format!("{flag}=");
        for wrong in some() {
            let kept = base.iter().filter(|word| !word.starts_with(&given)).cloned();
            lines.push(line(kept.chain([format!("{given}{wrong}")]).collect()));
        }
    }
    for (place, _) in base.iter().enumerate().filter(|(_, word)| !word.starts_with("--")) {
        for wrong in some() {
            let mut arguments = base.clone();
            arguments[place] = (*wrong).to_owned();
            lines.push(line(arguments));
        }
    }
    lines
}

/// The flags with a value that a help text lists.
fn flags(help: &str) -> Vec<&str> {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    lines
        .filter_map(|line| {
            line.split_whitespace().find(|word| word.starts_with("--")).zip(Some(line))
        })
        .filter(|(flag, line)| line.contains(&format!("{flag} <")))
        .map(|(flag, _)| flag)
        .collect()
}

fn help(command: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_selfmate")).args(command).arg("-h").output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

fn selfmate<S: AsRef<std::ffi::OsStr>>(line: &[S], folder: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {ADDRESS_SPACE}; exec \"$@\""), "sh"]);
    command.arg(env!("CARGO_BIN_EXE_selfmate")).args(line).current_dir(folder);
    command.stdin(Stdio::null());
    command
}

fn try_line(line: &[String]) -> Result<(), String> {
    // Files that a wrong name makes are nobody's.
    let folder = tempfile::tempdir().unwrap();
    let (out, err) = (folder.path().join("stdout"), folder.path().join("stderr"));
    let mut command = selfmate(line, folder.path());
    command.stdout(fs::File::create(&out).unwrap()).stderr(fs::File::create(&err).unwrap());
    let mut child = command.spawn().unwrap();
    let (status, was_interrupted) = wait(&mut child);
    let said = String::from_utf8_lossy(&fs::read(&err).unwrap()).into_owned();
    let end: String = said.chars().take(500).collect();
    let Some(status) = status else { return Err(format!("still there after 10 s: {end}")) };
    let is_fine = match status.code() {
        Some(code) => code <= 2 || (was_interrupted && code == 130),
        None => was_interrupted && status.signal() == Some(2),
    };
    if !is_fine {
        return Err(format!("{status}: {end}"));
    }
    if said.contains("panicked at") {
        return Err(format!("a panic: {end}"));
    }
    Ok(())
}

/// Waits for the end; who asked for endless work interrupts it after a while. Says whether it was interrupted.
fn wait(child: &mut Child) -> (Option<ExitStatus>, bool) {
    let started = Instant::now();
    let mut interrupted = false;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return (Some(status), interrupted);
        }
        if started.elapsed() > PATIENCE && !interrupted {
            interrupted = true;
            let pid = child.id().to_string();
            assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        }
        if started.elapsed() > LONGEST {
            child.kill().unwrap();
            child.wait().unwrap();
            return (None, interrupted);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
