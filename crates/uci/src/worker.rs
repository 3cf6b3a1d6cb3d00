//! The thread that owns the engine: takes jobs in order and writes what comes of them.
//!
//! It makes sure that the protocol holds whatever the engine does: one `bestmove` for each search,
//! always legal, and held back while the search is infinite or ponders.

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

/// What the reading side asks of the engine.
pub(crate) enum Job {
    Print(String),
    SetOption { name: String, value: String },
    NewGame,
    Go(Box<Search>),
    Extra { text: String, game: Arc<Game>, control: Arc<Control> },
    Sync(SyncSender<()>),
}

/// One `go`, with all that it depends on.
pub(crate) struct Search {
    pub game: Arc<Game>,
    pub limits: Go,
    pub control: Arc<Control>,
    /// How castling is written.
    pub mode: CastlingMode,
    pub shows_wdl: bool,
}

/// Does all jobs, until nobody can send one.
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
                    output.say(format!("option {name}: {error}"));
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
            // The asker may have gone.
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
            let mut report = |info: Info| output.write(&self.presented(info));
            let answer = engine.go(&self.game, &self.limits, &self.control, &mut report);
            self.checked(answer, legal[0], output)
        };
        self.control.wait_until_released();
        self.control.finish();
        output.write(&reply);
    }

    /// The info as the GUI asked for it.
    fn presented(&self, mut info: Info) -> Info {
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

    /// The answer in UCI notation. A GUI takes an illegal move for a loss, so that an engine that
    /// gives none is put right, and said to be wrong.
    fn checked<W: Write>(&self, answer: BestMove, first: Move, output: &Output<W>) -> Reply {
        let position = self.game.position();
        let best = answer.best.filter(|m| position.is_legal(*m)).unwrap_or_else(|| {
            let got = answer.best.map_or("no move".to_owned(), |m| m.to_uci(self.mode).to_string());
            output.say(format!(
                "internal error: the engine answered {got} in {}",
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

    /// As Stockfish prints it: the count below each move, then the sum.
    fn perft<W: Write>(&self, depth: u32, output: &Output<W>) {
        let position = self.game.position();
        let mut total = 0;
        for m in position.legal_moves() {
            let mut child = position.clone();
            child.play_unchecked(m);
            let nodes = count(&child, depth.saturating_sub(1), &self.control);
            if self.control.is_stopped() {
                return output.say("perft stopped");
            }
            total += nodes;
            output.write(&format_args!("{}: {nodes}", m.to_uci(self.mode)));
        }
        output.write(&format_args!("\nNodes searched: {total}\n"));
    }
}

/// Counts in pieces that are short enough to be stopped between.
fn count(position: &Chess, depth: u32, control: &Control) -> u64 {
    const PIECE: u32 = 4;
    if depth <= PIECE {
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

/// The output, shared by the reading side and the worker: whole lines, sent at once.
pub(crate) struct Output<W> {
    state: Mutex<OutputState<W>>,
}

struct OutputState<W> {
    writer: W,
    /// The first failure; nothing is written after it.
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

    /// `info string …`.
    pub fn say(&self, text: impl Display) {
        self.write(&Info::text(text.to_string()));
    }

    pub fn unknown(&self, text: &str) {
        // Garbage is shown, but not at any length, nor with what would upset a terminal.
        let shown: String = text.chars().filter(|c| !c.is_control()).take(100).collect();
        self.say(format_args!("unknown command: {shown}"));
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
