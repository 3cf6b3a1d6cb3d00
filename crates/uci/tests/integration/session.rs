//! Whole sessions with a small engine behind [`serve`], as a GUI sees them.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{self, BufRead, BufReader, Cursor, PipeReader, PipeWriter, Write};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use selfmate_chess::{CastlingMode, Game, Position, Seed, notation};
use selfmate_uci::{BestMove, Control, EngineOption, Go, Info, Score, UciEngine, serve};

/// Castles if possible, otherwise plays the first move in alphabetical order.
#[derive(Default)]
struct Dummy {
    /// Search until stopped.
    searches_until_stop: bool,
    /// Returned instead of a legal move.
    answer: Option<BestMove>,
}

impl UciEngine for Dummy {
    fn id(&self) -> (String, String) {
        ("Dummy 1.0".to_owned(), "nobody".to_owned())
    }

    fn options(&self) -> Vec<EngineOption> {
        vec![
            EngineOption::spin("Hash", 16, 1, 1024),
            EngineOption::check("Ponder", false),
            EngineOption::combo("Style", "Solid", &["Solid", "Very Risky"]),
            EngineOption::button("Clear Hash"),
            EngineOption::string("SyzygyPath", ""),
        ]
    }

    fn set_option(&mut self, name: &str, value: &str) -> Result<(), String> {
        match (name, value) {
            ("SyzygyPath", "") => Ok(()),
            ("SyzygyPath", path) => Err(format!("cannot read {path}")),
            _ => Ok(()),
        }
    }

    fn new_game(&mut self) {}

    fn go(
        &mut self,
        game: &Game,
        limits: &Go,
        control: &Control,
        report: &mut (dyn FnMut(Info) + Send),
    ) -> BestMove {
        let mut moves = limits.root_moves(game);
        moves.sort_by_key(|m| (!m.is_castle(), m.to_uci(CastlingMode::Standard).to_string()));
        let best = moves[0];
        let score = Some(Score::cp(7));
        let pv = vec![best.to_uci(CastlingMode::Standard)];
        let wdl = Some([100, 800, 100]);
        report(Info { depth: Some(1), score, wdl, nodes: Some(20), pv, ..Info::default() });
        while self.searches_until_stop && !control.is_stopped() {
            thread::yield_now();
        }
        self.answer.unwrap_or(BestMove { best: Some(best), ponder: None })
    }

    fn extra(&mut self, command: &str, game: &Game, control: &Control) -> Option<String> {
        match command {
            "eval" => Some(format!("{} legal moves\n", game.legal_moves().len())),
            "bench" if self.searches_until_stop => {
                while !control.is_stopped() {
                    thread::yield_now();
                }
                Some("stopped".to_owned())
            }
            _ => None,
        }
    }
}

/// The output of a session with this input, sent at once.
fn run(engine: &mut Dummy, input: impl AsRef<[u8]>) -> String {
    let mut output = Vec::new();
    serve(engine, Cursor::new(input), &mut output).unwrap();
    String::from_utf8(output).unwrap()
}

/// The GUI side of a session that runs in another thread.
struct Gui {
    input: PipeWriter,
    output: BufReader<PipeReader>,
    session: JoinHandle<io::Result<()>>,
}

impl Gui {
    fn start(mut engine: Dummy) -> Gui {
        let (their_input, input) = io::pipe().unwrap();
        let (output, their_output) = io::pipe().unwrap();
        let session =
            thread::spawn(move || serve(&mut engine, BufReader::new(their_input), their_output));
        Gui { input, output: BufReader::new(output), session }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    #[track_caller]
    fn expect(&mut self, start: &str) {
        let line = self.line();
        assert!(line.starts_with(start), "expected {start}, got {line}");
    }

    fn quit(mut self) {
        self.send("quit");
        self.session.join().unwrap().unwrap();
    }
}

#[test]
fn a_full_session() {
    let input = "\
uci
debug on
setoption name hash value 64
setoption name Hash value 0
setoption name STYLE value very risky
setoption name Style value wild
setoption name Clear Hash
setoption name SyzygyPath value /no such place
setoption name Nonsense value 1
isready
ucinewgame
position startpos moves e2e4 e7e5
go wtime 1000 btime 1000
wait
position startpos moves e2e4 e7e4
position fen 8/8/8/8/8/8/8/8 w - - 0 1
joho go depth 1
wait
setoption name UCI_ShowWDL value true
position fen r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1
go nodes 1
wait
setoption name UCI_Chess960 value true
go nodes 1 searchmoves e1g1
wait
flip
d
eval
bench
Rubbish!
position fen 7k/5Q2/6K1/8/8/8/8/8 b - - 0 1
go depth 1
wait
position fen 7k/6Q1/6K1/8/8/8/8/8 b - - 0 1
go depth 1
wait
position startpos
go perft 2
wait
quit
isready
";
    insta::assert_snapshot!(run(&mut Dummy::default(), input));
}

#[test]
fn commands_are_processed_during_a_search() {
    let mut gui = Gui::start(Dummy { searches_until_stop: true, ..Dummy::default() });
    gui.send("go movetime 3600000");
    gui.expect("info depth 1");
    gui.send("isready");
    gui.expect("readyok");
    gui.send("what?");
    gui.expect("info string unknown command: what?");
    // Processed when the search is over.
    gui.send("setoption name SyzygyPath value x");
    gui.send("position startpos moves e2e4");
    gui.send("stop");
    gui.expect("bestmove a2a3");
    gui.expect("info string option SyzygyPath: cannot read x");
    gui.send("go depth 1");
    gui.expect("info depth 1");
    gui.send("stop");
    gui.expect("bestmove a7a5");
    gui.quit();
}

#[test]
fn infinite_and_ponder_delay_the_answer() {
    // This engine answers at once, which UCI forbids here.
    let mut gui = Gui::start(Dummy::default());
    gui.send("go infinite");
    gui.expect("info depth 1");
    gui.send("ponderhit");
    gui.send("isready");
    gui.expect("readyok");
    gui.send("stop");
    gui.expect("bestmove");
    for release in ["ponderhit", "stop"] {
        gui.send("go ponder wtime 1000 btime 1000");
        gui.expect("info depth 1");
        gui.send("isready");
        gui.expect("readyok");
        gui.send(release);
        gui.expect("bestmove");
    }
    // No answer is left over.
    gui.send("stop");
    gui.send("isready");
    gui.expect("readyok");
    gui.quit();
}

#[test]
fn quit_and_end_of_input_stop_a_search() {
    for end in ["go infinite\nquit\n", "go infinite\n", "go infinite", "go ponder\n\n\n"] {
        let output = run(&mut Dummy { searches_until_stop: true, ..Dummy::default() }, end);
        assert!(output.ends_with("bestmove a2a3\n"), "{end}: {output}");
    }
}

#[test]
fn quit_and_stop_end_a_bench() {
    let patient = || Dummy { searches_until_stop: true, ..Dummy::default() };
    assert_eq!(run(&mut patient(), "bench\nbench\nquit\n"), "stopped\nstopped\n");
    let mut gui = Gui::start(patient());
    for _ in 0..2 {
        gui.send("bench");
        gui.send("stop");
        gui.expect("stopped");
    }
    gui.quit();
}

#[test]
fn the_clock_of_a_pondering_search_starts_at_ponderhit() {
    let control = Control::new(&Go { ponder: true, ..Go::default() });
    assert!(control.is_pondering() && control.elapsed().is_none());
    control.ponderhit();
    assert!(!control.is_pondering() && control.elapsed().is_some());
    assert!(!control.is_stopped());
}

#[test]
fn illegal_answers_are_replaced_by_a_legal_move() {
    let black = notation::parse_uci(
        selfmate_chess::fen::parse_game("4k3/8/8/8/8/8/8/4K3 b - - 0 1").unwrap().position(),
        "e8e7",
    )
    .unwrap();
    for best in [None, Some(black)] {
        let answer = Some(BestMove { best, ponder: best });
        let output = run(&mut Dummy { answer, ..Dummy::default() }, "go depth 1\nwait\n");
        assert!(output.contains("info string internal error: the engine answered"), "{output}");
        assert_legal(&Game::new(), output.lines().last().unwrap());
    }
}

#[test]
fn an_engine_that_panics_ends_the_session_with_an_error() {
    struct Panics(Dummy);
    impl UciEngine for Panics {
        fn id(&self) -> (String, String) {
            self.0.id()
        }
        fn options(&self) -> Vec<EngineOption> {
            Vec::new()
        }
        fn set_option(&mut self, _: &str, _: &str) -> Result<(), String> {
            Ok(())
        }
        fn new_game(&mut self) {}
        fn go(
            &mut self,
            _: &Game,
            _: &Go,
            _: &Control,
            _: &mut (dyn FnMut(Info) + Send),
        ) -> BestMove {
            panic!("a bug")
        }
    }
    let mut output = Vec::new();
    let input = "go depth 1\nwait\nisready\n".repeat(3);
    let error = serve(&mut Panics(Dummy::default()), Cursor::new(input), &mut output).unwrap_err();
    assert_eq!(error.to_string(), "the engine panicked");
    assert!(String::from_utf8(output).unwrap().contains("info string internal error"));
}

#[test]
fn a_closed_output_ends_the_session() {
    struct Closed(Arc<Mutex<u32>>);
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            *self.0.lock().unwrap() += 1;
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let writes = Arc::default();
    let input = Cursor::new("uci\n".repeat(100));
    let error = serve(&mut Dummy::default(), input, Closed(Arc::clone(&writes))).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    assert_eq!(*writes.lock().unwrap(), 1);
}

#[test]
fn overlong_lines_are_dropped() {
    let mut input = vec![b'x'; 3 << 20];
    input.extend_from_slice(b"\nisready\n");
    let output = run(&mut Dummy::default(), input);
    assert_eq!(output, "info string line ignored: longer than 1048576 bytes\nreadyok\n");
}

#[test]
fn garbage_input_leaves_the_session_usable() {
    let words = [
        "go",
        "stop",
        "position",
        "startpos",
        "fen",
        "moves",
        "setoption",
        "name",
        "value",
        "Hash",
        "e2e4",
        "isready",
        "ucinewgame",
        "uci",
        "-1",
        "depth",
        "perft",
        "99999999999999999999",
        "ponder",
        "infinite",
        "ponderhit",
        "rnbqkbnr/8/8/8/8/8/8/4K3",
        "w",
        "KQkq",
        "\u{1}",
        "ß",
    ];
    let mut rng = Seed::new(1).rng();
    let mut below = |limit| rng.below(limit);
    let mut input = Vec::new();
    for number in 0..10_000 {
        match number % 4 {
            0 => {
                for _ in 0..below(60) {
                    input.push(u8::try_from(below(256)).unwrap());
                }
            }
            1 | 2 => {
                for _ in 0..below(8) {
                    let word = words[below(words.len())];
                    // A deep perft would take forever.
                    if word != "perft" {
                        input.extend_from_slice(word.as_bytes());
                        input.push(b' ');
                    }
                }
            }
            _ => input.extend_from_slice(b"isready\nposition startpos\ngo nodes 10\nstop"),
        }
        input.push(b'\n');
    }
    input.extend_from_slice(b"stop\nisready\nposition startpos moves e2e4\ngo nodes 10\nwait\n");
    let output = run(&mut Dummy::default(), input);
    let lines: Vec<&str> = output.lines().collect();
    assert!(lines.iter().filter(|line| **line == "readyok").count() >= 2500);
    assert!(lines.iter().filter(|line| line.starts_with("bestmove")).count() >= 2500);
    let mut game = Game::new();
    game.play(notation::parse_uci(game.position(), "e2e4").unwrap()).unwrap();
    assert_legal(&game, lines.last().unwrap());
}

#[track_caller]
fn assert_legal(game: &Game, line: &str) {
    let text = line.strip_prefix("bestmove ").unwrap();
    let text = text.split(' ').next().unwrap();
    notation::parse_uci(game.position(), text).unwrap();
    assert!(!game.position().legal_moves().is_empty());
}
