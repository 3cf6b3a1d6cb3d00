//! What a machine or a file cannot give: memory, an end, an address. One line and exit code 1, never
//! an abort, and one signal ends whatever waits for a file.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_selfmate");
/// A call that has not ended by then never will.
const LONG: Duration = Duration::from_secs(120);

/// Runs a command to its end, which comes.
fn run(mut command: Command, input: &str) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Whoever reads nothing closes its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let id = child.id();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    receiver.recv_timeout(LONG).map(Result::unwrap).unwrap_or_else(|_| {
        signal("KILL", id);
        panic!("{command:?} has not ended")
    })
}

fn selfmate(arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(arguments);
    run(command, "")
}

/// With this much address space, in kilobytes.
fn limited(kilobytes: u64, arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {kilobytes}; exec \"$@\""), "sh", BINARY]);
    command.args(arguments);
    run(command, input)
}

fn signal(name: &str, id: u32) {
    Command::new("kill").args([&format!("-{name}"), &id.to_string()]).status().unwrap();
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The line of a call that failed as it should.
fn refused(arguments: &[&str]) -> String {
    let output = selfmate(arguments);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {message}");
    assert_eq!(message.lines().count(), 1, "{arguments:?}: {message}");
    message
}

#[test]
fn a_clock_that_no_game_has_is_refused() {
    let fen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 4294967295 1";
    let input = format!("position fen {fen}\ngo depth 3\nquit\n");
    let mut command = Command::new(BINARY);
    command.args(["uci", "alphabeta"]);
    let output = run(command, &input);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains("bestmove"), "{said}");
    assert!(said.contains("halfmove clock: expected a whole number from 0 to 10000"), "{said}");

    let output = selfmate(&["analyse", "alphabeta", "--fen", fen]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("halfmove clock"), "{}", stderr(&output));

    let folder = tempfile::tempdir().unwrap();
    let suite = folder.path().join("a.epd");
    std::fs::write(&suite, "6k1/5ppp/8/8/8/8/8/R5K1 w - - bm Ra8#; hmvc 4294967295;\n").unwrap();
    let message = refused(&["suite", suite.to_str().unwrap(), "alphabeta", "--depth", "2"]);
    assert!(message.contains("line 1: ") && message.contains("halfmove clock"), "{message}");
}

#[test]
fn memory_that_the_machine_does_not_have_is_one_line() {
    for player in [
        "material:memory=1048576",
        "rollout:memory=1048576",
        "default:memory=1048576",
        "default:search=mcts,memory=1048576",
    ] {
        let message = refused(&["analyse", player, "--sims", "2"]);
        assert!(message.contains(&format!("player '{player},sims=2': 1048576 MB")), "{message}");
    }
}

#[test]
fn players_without_memory_are_refused_and_never_abort() {
    for player in [
        "random",
        "greedy",
        "rollout",
        "rollout:threads=256",
        "material",
        "material:memory=400",
        "material:memory=65536",
        "material:memory=1,threads=256",
        "alphabeta",
        "alphabeta:hash=400",
        "alphabeta:hash=65536",
        "alphabeta:threads=256",
        "default",
        "default:threads=256",
        "default:search=mcts",
        "default:search=mcts,memory=1,threads=256",
    ] {
        for kilobytes in [300_000, 500_000, 700_000] {
            let output = limited(kilobytes, &["analyse", player, "--nodes", "50"], "");
            let message = stderr(&output);
            assert_eq!(output.status.signal(), None, "{player}, {kilobytes} kB: {message}");
            assert!(output.status.code() <= Some(1), "{player}, {kilobytes} kB: {message}");
            if !output.status.success() {
                let is_one_line = message.starts_with("selfmate: ") && message.lines().count() == 1;
                assert!(is_one_line, "{player}, {kilobytes} kB: {message}");
            }
        }
    }
}

#[test]
fn an_engine_without_memory_keeps_its_table() {
    // Below the maximum, which is what the limit leaves for everything, and more than is left.
    let input = "uci\nsetoption name Hash value 680\nsetoption name Hash value 99999999\n\
                 setoption name Hash value 2\nisready\ngo depth 2\nwait\nquit\n";
    let output = limited(700_000, &["uci", "alphabeta"], input);
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.success(), "{said}{}", stderr(&output));
    let maximum = "option name Hash type spin default 16 min 1 max 683\n";
    // A machine may have less than the limit.
    assert!(said.contains("option name Hash type spin default 16 min 1 max "), "{said}");
    if said.contains(maximum) {
        assert!(said.contains("680 MB of memory for the transposition table"), "{said}");
    }
    let strings = said.lines().filter(|line| line.starts_with("info string")).count();
    assert_eq!(strings, 2, "{said}");
    assert!(said.contains("readyok") && said.contains("bestmove"), "{said}");
}

#[test]
fn files_without_end_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.bin");
    let out = out.to_str().unwrap();
    // A name that ends as games do.
    let pgn = folder.path().join("zeros.pgn");
    std::os::unix::fs::symlink("/dev/zero", &pgn).unwrap();
    let pgn = pgn.to_str().unwrap();
    for arguments in [
        &["suite", "/dev/zero", "random"][..],
        &["suite", pgn, "random", "--book"],
        &["match", "random", "random", "--games", "2", "--openings", "/dev/zero"],
        &["match", "random", "random", "--games", "2", "--openings", pgn],
        &["book", "build", "/dev/zero", "-o", out],
        &["book", "build", pgn, "-o", out],
        &["book", "show", "/dev/zero"],
        &["book", "probe", "/dev/zero"],
        &["book", "merge", "/dev/zero", "/dev/zero", "-o", out],
        &["analyse", "random:book=/dev/zero"],
        &["analyse", "alphabeta:weights=/dev/zero"],
        &["train", "krk", "--config", "/dev/zero"],
    ] {
        refused(arguments);
    }
    // Nobody is at this address, and nobody is asked.
    let worker = ["worker", "--nats", "nats://127.0.0.1:1"];
    for files in [
        &["--nats-creds", "/dev/zero"][..],
        &["--nats-nkey", "/dev/zero"],
        &["--nats-ca", "/dev/zero"],
        &["--nats-cert", "/dev/zero", "--nats-key", "/dev/zero"],
    ] {
        let output = selfmate(&[&worker[..], files].concat());
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{files:?}: {message}");
        assert!(message.contains("/dev/zero: more than 1 MB"), "{files:?}: {message}");
    }
    assert!(!Path::new(out).exists());
}

#[test]
fn one_signal_ends_a_command_that_waits_for_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.epd");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let pipe = pipe.to_str().unwrap();
    for arguments in [
        &["suite", pipe, "random"][..],
        &["match", "random", "random", "--openings", pipe],
        &["ladder", "random", "greedy", "--openings", pipe],
    ] {
        for name in ["TERM", "INT"] {
            let mut command = Command::new(BINARY);
            let command = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            let id = child.id();
            // It can be opened as soon as the other side reads, which then waits for ever.
            let writer = OpenOptions::new().write(true).open(pipe).unwrap();
            signal(name, id);
            let (sender, receiver) = mpsc::channel();
            thread::spawn(move || sender.send(child.wait()));
            let ended = receiver.recv_timeout(LONG);
            if ended.is_err() {
                signal("KILL", id);
            }
            let status = ended.expect("the signal ends it").unwrap();
            assert_eq!(status.code(), Some(130), "{arguments:?}: {status}");
            drop(writer);
        }
    }
}

#[test]
fn a_worker_with_an_address_that_can_never_work_ends() {
    for address in ["http://localhost:4222", "nats://localhost:99999", "nats://", "a b", ","] {
        let output = selfmate(&["worker", "--nats", address]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{address}: {message}");
        assert!(message.contains("is not the address of a NATS server"), "{address}: {message}");
    }
}
