//! The driver with engines that misbehave, written as shell scripts, and with Stockfish.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![cfg(unix)]

use std::path::Path;
use std::time::{Duration, Instant};

use selfmate_chess::{Game, fen, notation};
use selfmate_uci::{EngineCommand, EngineError, EngineProcess, Go, OptionError, PositionCommand};

const LONG: Duration = Duration::from_secs(20);

/// An engine that follows the protocol up to `go`. Its author is the ID of the process it starts.
fn mock(on_go: &str, on_quit: &str) -> EngineCommand {
    let script = format!(
        r#"sleep 1000 & helper=$!
        while read -r word rest; do
            case "$word" in
                uci) echo "id name mock"; echo "id author $helper"
                    echo "option name Level type spin default 1 min 1 max 9"; echo uciok;;
                isready) echo readyok;;
                go) {on_go};;
                quit) {on_quit};;
            esac
        done"#
    );
    script_engine(&script)
}

fn script_engine(script: &str) -> EngineCommand {
    // Not a file: a file that was just written may be busy when it is run.
    let mut command = EngineCommand::new("/bin/sh").arguments(["-c", script]);
    command.patience.handshake = Duration::from_millis(500);
    command.patience.stop = Duration::from_millis(100);
    command.patience.quit = Duration::from_millis(100);
    command
}

fn play(engine: &mut EngineProcess) -> Result<String, EngineError> {
    let game = Game::new();
    let answer = engine.go(&game, &Go::nodes(1), Duration::from_millis(500))?;
    Ok(notation::uci(game.position(), answer.best))
}

/// True if the process runs. Zombies do not count.
fn runs(id: &str) -> bool {
    let status = std::fs::read_to_string(Path::new("/proc").join(id).join("stat"));
    status.is_ok_and(|text| {
        !text.rsplit(')').next().is_some_and(|state| state.trim_start().starts_with('Z'))
    })
}

/// Drops the engine and checks that it and its helper process have ended.
fn assert_nothing_remains(engine: EngineProcess) {
    let (main, helper) = (engine.id().to_string(), engine.author().to_owned());
    drop(engine);
    assert!(!Path::new("/proc").join(&main).exists(), "the engine was not waited for");
    let deadline = Instant::now() + LONG;
    while runs(&helper) {
        assert!(Instant::now() < deadline, "its helper {helper} still runs");
        std::thread::yield_now();
    }
}

#[test]
fn a_good_engine_plays_and_quits() {
    let command =
        mock("echo 'info depth 3 score cp 12 pv e2e4'; echo 'bestmove e2e4 ponder e7e5'", "exit 0");
    let mut engine = EngineProcess::start(&command).unwrap();
    assert!(runs(engine.author()));
    engine.set_option("level", Some("3")).unwrap();
    engine.new_game().unwrap();
    let answer = engine.go(&Game::new(), &Go::nodes(1), LONG).unwrap();
    assert_eq!(answer.info.unwrap().depth, Some(3));
    assert!(answer.ponder.is_some() && !answer.was_stopped);
    assert_nothing_remains(engine);
}

#[test]
fn an_engine_that_ignores_quit_is_killed() {
    let mut engine = EngineProcess::start(&mock("echo 'bestmove e2e4'", ":")).unwrap();
    assert_eq!(play(&mut engine).unwrap(), "e2e4");
    assert_nothing_remains(engine);
}

#[test]
fn an_engine_that_hangs_is_reported_and_stays_dead() {
    let mut engine = EngineProcess::start(&mock("sleep 1000", "exit 0")).unwrap();
    let error = play(&mut engine).unwrap_err();
    assert!(matches!(error, EngineError::Hung { expected: "bestmove", .. }), "{error}");
    assert_eq!(play(&mut engine).unwrap_err(), error);
    assert_nothing_remains(engine);
}

#[test]
fn an_engine_that_answers_only_after_stop_is_accepted() {
    let engine = mock("read -r stop && echo \"bestmove e2e4\"", "exit 0");
    let mut engine = EngineProcess::start(&engine).unwrap();
    let limits = Go { infinite: true, ..Go::default() };
    let answer = engine.go(&Game::new(), &limits, Duration::from_millis(1)).unwrap();
    assert!(answer.was_stopped);
    assert_nothing_remains(engine);
}

#[test]
fn an_engine_that_exits_is_reported_with_status_and_stderr() {
    let mut engine =
        EngineProcess::start(&mock("echo 'out of ideas' >&2; exit 3", "exit 0")).unwrap();
    let error = play(&mut engine).unwrap_err();
    // The helper keeps the pipes open, so the exit itself must be detected.
    match &error {
        EngineError::Exited { status, stderr } => {
            assert_eq!((status.code(), stderr.as_str()), (Some(3), "out of ideas"));
        }
        other => panic!("{other}"),
    }
    assert_eq!(error.to_string(), "the engine exited (exit status: 3): out of ideas");
    assert_nothing_remains(engine);
}

#[test]
fn an_engine_that_floods_is_stopped() {
    for flood in ["yes 'info string la la la'", "while :; do echo la; done", "cat /dev/zero"] {
        let mut engine = EngineProcess::start(&mock(flood, "exit 0")).unwrap();
        let error = engine.go(&Game::new(), &Go::nodes(1), Duration::from_secs(2)).unwrap_err();
        // A slow flood reaches the deadline before the limit, and ignores `stop` too.
        let is_told = matches!(error, EngineError::Flooded { .. } | EngineError::Hung { .. });
        assert!(is_told, "{flood}: {error}");
        assert!(!flood.starts_with("yes") || matches!(error, EngineError::Flooded { .. }));
        assert_nothing_remains(engine);
    }
}

#[test]
fn an_illegal_move_is_reported_and_the_engine_stays_usable() {
    for text in ["e2e5", "(none)", "0000", "e7e5", "Nf3", "e2e4q"] {
        let mut engine =
            EngineProcess::start(&mock(&format!("echo 'bestmove {text}'"), "exit 0")).unwrap();
        for _ in 0..2 {
            let error = play(&mut engine).unwrap_err();
            let fen = fen::to_fen(Game::new().position());
            assert_eq!(error, EngineError::IllegalMove { text: text.to_owned(), fen });
        }
        assert_nothing_remains(engine);
    }
}

#[test]
fn a_late_answer_is_not_used_for_the_next_search() {
    let script = "echo 'bestmove e2e4'; echo 'bestmove a2a3'";
    let mut engine = EngineProcess::start(&mock(script, "exit 0")).unwrap();
    for _ in 0..3 {
        assert_eq!(play(&mut engine).unwrap(), "e2e4");
    }
    assert_nothing_remains(engine);
}

#[test]
fn programs_that_are_not_engines_are_rejected() {
    let start = |command: &EngineCommand| EngineProcess::start(command).err().unwrap();
    let missing = start(&EngineCommand::new("no-such-engine"));
    assert!(matches!(missing, EngineError::NotFound { .. }));
    let silent = start(&script_engine("while read -r line; do :; done"));
    assert!(matches!(silent, EngineError::Hung { expected: "uciok", .. }), "{silent}");
    let gone = start(&script_engine("exit 4"));
    assert!(matches!(&gone, EngineError::Exited { status, .. } if status.code() == Some(4)));
    let deaf = start(&script_engine("exec <&-; exec >&-; sleep 1000"));
    assert!(matches!(deaf, EngineError::Hung { .. }), "{deaf}");
}

#[test]
fn options_are_validated_before_they_are_sent() {
    let command = mock("echo 'bestmove e2e4'", "exit 0").option("Level", "12");
    let error = EngineProcess::start(&command).err().unwrap();
    assert!(matches!(error, EngineError::Option(OptionError::Value { .. })));
    let error = EngineProcess::start(&command.option("Colour", "1")).err().unwrap();
    assert!(matches!(error, EngineError::Option(_)), "{error}");
}

#[test]
fn chess960_games_need_an_engine_with_the_option() {
    let mut engine = EngineProcess::start(&mock("echo 'bestmove e2e4'", "exit 0")).unwrap();
    let game = fen::parse_game("bqnbrknr/pppppppp/8/8/8/8/PPPPPPPP/BQNBRKNR w HEhe - 0 1").unwrap();
    let error = engine.go(&game, &Go::nodes(1), LONG).unwrap_err();
    assert_eq!(error, EngineError::Protocol("mock cannot play Chess960".to_owned()));
    assert_nothing_remains(engine);
}

#[test]
fn stockfish_plays_a_game_against_itself() {
    let mut engine = EngineProcess::start(&EngineCommand::new("stockfish")).unwrap();
    assert!(engine.name().starts_with("Stockfish"), "{}", engine.name());
    engine.new_game().unwrap();
    let mut game = Game::new();
    while game.outcome().is_none() && game.ply() < 60 {
        let answer = engine.go(&game, &Go::nodes(500), LONG).unwrap();
        assert!(answer.info.unwrap().score.is_some());
        game.play(answer.best).unwrap();
    }
    let error = engine.set_option("UCI_Elo", Some("1")).unwrap_err();
    assert!(error.to_string().contains("expected a whole number from"), "{error}");
}

#[test]
fn stockfish_plays_chess960() {
    let mut engine = EngineProcess::start(&EngineCommand::new("stockfish")).unwrap();
    // King and rook are adjacent: castling can only be written as king takes rook.
    let start = "fen 5k2/8/8/8/8/8/8/5KR1 w G - 0 1 moves f1g1 f8e8";
    let game = PositionCommand::parse(start).unwrap().game().unwrap();
    let answer = engine.go(&game, &Go::depth(3), LONG).unwrap();
    assert!(game.legal_moves().contains(&answer.best));
    // Afterwards, games from the standard start position still work, castling included.
    let start = "startpos moves e2e4 e7e5 g1f3 g8f6 f1c4 f8c5 e1g1 e8g8";
    let game = PositionCommand::parse(start).unwrap().game().unwrap();
    let answer = engine.go(&game, &Go::depth(3), LONG).unwrap();
    assert!(game.legal_moves().contains(&answer.best));
}
