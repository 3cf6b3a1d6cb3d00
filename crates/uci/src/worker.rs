//! The thread that owns the engine: runs jobs in order and writes their results.
//!
//! It enforces the protocol whatever the engine does: one `bestmove` for each search, always legal,
//! and delayed while the search is infinite or pondering.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use selfmate_chess::{CastlingMode, Chess, Game, Move, Position, fen, perft};

use crate::control::Control;
use crate::engine::{BestMove, UciEngine};
use crate::go::Go;
use crate::info::{Info, Score};
use crate::position::normalise_line;
use crate::reply::Reply;

/// A request to the engine.
pub(crate) enum Job {
    Print(String),
    SetOption { name: String, value: String },
    NewGame,
    Go(Box<Search>),
    Extra { text: String, game: Arc<Game>, control: Arc<Control> },
    Sync(SyncSender<()>),
}

/// One `go` with its context.
pub(crate) struct Search {
    pub game: Arc<Game>,
    pub limits: Go,
    pub control: Arc<Control>,
    /// How castling is written.
    pub mode: CastlingMode,
    pub shows_wdl: bool,
}

/// Runs all jobs until the queue is closed.
pub(crate) fn work<E: UciEngine + ?Sized, W: Write + Send>(
    engine: &mut E,
    jobs: &Receiver<Job>,
    output: &Output<W>,
) {
    for job in jobs {
        match job {
            Job::Print(line) => output.write(&line),
            Job::SetOption { name, value } => {
                if let Err(error) = engine.set_option(&name, &value) {
                    output.info_string(format!("option {name}: {error}"));
                }
            }
            Job::NewGame => engine.new_game(),
            Job::Go(search) => search.run(engine, output),
            Job::Extra { text, game, control } => {
                match engine.extra(&text, &game, &control) {
                    Some(answer) => output.write(&answer.trim_end()),
                    None if text == "d" => output.write(&diagram(game.position())),
                    None => output.unknown(&text),
                }
                control.finish();
            }
            // The receiver may have ended.
            Job::Sync(done) => drop(done.send(())),
        }
    }
}

impl Search {
    fn run<E: UciEngine + ?Sized, W: Write + Send>(&self, engine: &mut E, output: &Output<W>) {
        if let Some(depth) = self.limits.perft {
            self.perft(depth, output);
            return self.control.finish();
        }
        let legal = self.game.legal_moves();
        let reply = if legal.is_empty() {
            let is_mate = self.game.position().is_check();
            let score = Some(if is_mate { Score::mate(0) } else { Score::cp(0) });
            output.write(&Info { depth: Some(0), score, ..Info::default() });
            Reply::BestMove { best: "(none)".to_owned(), ponder: None }
        } else {
            let mut report = |info: Info| output.write(&self.in_requested_form(info));
            let answer = engine.go(&self.game, &self.limits, &self.control, &mut report);
            self.checked_reply(answer, legal[0], output)
        };
        self.control.wait_until_released();
        self.control.finish();
        output.write(&reply);
    }

    /// The report in the form that the GUI requested.
    fn in_requested_form(&self, mut info: Info) -> Info {
        let line = |moves: &[_]| normalise_line(&self.game, moves, self.mode);
        info.pv = line(&info.pv);
        info.refutation = line(&info.refutation);
        info.currline = info.currline.map(|(processor, moves)| (processor, line(&moves)));
        info.currmove = info.currmove.and_then(|m| line(&[m]).first().copied());
        if !self.shows_wdl {
            info.wdl = None;
        }
        info
    }

    /// The answer in UCI notation. GUIs count an illegal move as a loss, so an illegal answer is
    /// replaced by a legal move and reported.
    fn checked_reply<W: Write>(&self, answer: BestMove, first: Move, output: &Output<W>) -> Reply {
        let position = self.game.position();
        let best = answer.best.filter(|m| position.is_legal(*m)).unwrap_or_else(|| {
            let got = answer.best.map_or("no move".to_owned(), |m| m.to_uci(self.mode).to_string());
            output.info_string(format!(
                "internal error: the engine answered {got} in {}, which is not legal",
                fen::to_fen(position)
            ));
            first
        });
        let mut after = position.clone();
        after.play_unchecked(best);
        let ponder = answer.ponder.filter(|m| answer.best == Some(best) && after.is_legal(*m));
        let text = |m: Move| m.to_uci(self.mode).to_string();
        Reply::BestMove { best: text(best), ponder: ponder.map(text) }
    }

    /// The output format of Stockfish: the count below each move, then the sum.
    fn perft<W: Write>(&self, depth: u32, output: &Output<W>) {
        let position = self.game.position();
        let mut total = 0;
        for m in position.legal_moves() {
            let mut child = position.clone();
            child.play_unchecked(m);
            let nodes = count(&child, depth.saturating_sub(1), &self.control);
            if self.control.is_stopped() {
                return output.info_string("perft stopped");
            }
            total += nodes;
            output.write(&format_args!("{}: {nodes}", m.to_uci(self.mode)));
        }
        output.write(&format_args!("\nNodes searched: {total}\n"));
    }
}

/// Counts in parts that are short enough to stop in between.
fn count(position: &Chess, depth: u32, control: &Control) -> u64 {
    const UNINTERRUPTED_DEPTH: u32 = 4;
    if depth <= UNINTERRUPTED_DEPTH {
        return perft::perft(position, depth);
    }
    let mut total = 0;
    for m in position.legal_moves() {
        if control.is_stopped() {
            break;
        }
        let mut child = position.clone();
        child.play_unchecked(m);
        total += count(&child, depth - 1, control);
    }
    total
}

fn diagram(position: &Chess) -> String {
    let text = fen::to_fen(position);
    format!("{:?}\nFen: {text}", position.board())
}

/// The output, shared by the reading thread and the worker. Lines are written whole and flushed.
pub(crate) struct Output<W> {
    state: Mutex<OutputState<W>>,
}

struct OutputState<W> {
    writer: W,
    /// The first failure. Nothing is written after it.
    failure: Option<io::Error>,
}

impl<W: Write> Output<W> {
    pub fn new(writer: W) -> Output<W> {
        Output { state: Mutex::new(OutputState { writer, failure: None }) }
    }

    fn lock(&self) -> MutexGuard<'_, OutputState<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self, line: &impl Display) {
        let mut state = self.lock();
        if state.failure.is_none() {
            // One write for the whole line, so that a reader never sees half of it.
            let text = format!("{line}\n");
            let writer = &mut state.writer;
            let written = writer.write_all(text.as_bytes()).and_then(|()| writer.flush());
            state.failure = written.err();
        }
    }

    /// Writes `info string …`.
    pub fn info_string(&self, text: impl Display) {
        self.write(&Info::text(text.to_string()));
    }

    pub fn unknown(&self, text: &str) {
        // Shown without control characters, which could confuse a terminal, and not at full length.
        let shown: String = text.chars().filter(|c| !c.is_control()).take(100).collect();
        self.info_string(format_args!("unknown command: {shown}"));
    }

    pub fn fail(&self, error: io::Error) {
        self.lock().failure.get_or_insert(error);
    }

    pub fn has_failed(&self) -> bool {
        self.lock().failure.is_some()
    }

    pub fn into_result(self) -> io::Result<()> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.failure.map_or(Ok(()), Err)
    }
}
