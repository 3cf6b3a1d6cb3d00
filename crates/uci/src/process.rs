//! The driver: any UCI program as a child process.
//!
//! Every wait has an end, every answer is checked, and whatever an engine does ends in a move or
//! in an [`EngineError`] that says why not. After an error that leaves its state unknown (hung,
//! flooded, exited) the engine is killed and every later call gives the same error.

use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use selfmate_chess::{CastlingMode, Game, Move, Position, fen, notation};

use crate::child::{ChildProcess, Received};
use crate::command::Command;
use crate::go::Go;
use crate::info::Info;
use crate::option::{EngineOption, OptionError};
use crate::position::PositionCommand;
use crate::program::{EngineCommand, Patience, find_program, is_stockfish};
use crate::reply::Reply;

/// The most lines that may come before an answer.
const LINES_LIMIT: u32 = 200_000;
/// The most bytes that may come before an answer.
const BYTES_LIMIT: usize = 64 << 20;
/// How often to look whether a search shall end.
const TICK: Duration = Duration::from_millis(20);

const CHESS960: &str = "UCI_Chess960";

/// A running engine. Dropping it ends the program and all that it started.
pub struct EngineProcess {
    child: ChildProcess,
    name: String,
    author: String,
    options: Vec<EngineOption>,
    patience: Patience,
    is_chess960: bool,
    /// What broke it.
    failure: Option<EngineError>,
}

/// An engine's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineMove {
    /// The move, which is legal.
    pub best: Move,
    /// The answer it would ponder on, if that is legal.
    pub ponder: Option<Move>,
    /// The last thing it said with a score, for its best line.
    pub info: Option<Info>,
    /// The time from the moment `go` was written to the moment `bestmove` was read.
    pub elapsed: Duration,
    /// True when it had to be told to stop.
    pub was_stopped: bool,
}

/// What went wrong with an engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// There is no such program.
    #[error("cannot find the engine '{program}'{}", install_hint(program))]
    NotFound {
        /// As it was asked for.
        program: String,
    },
    /// The program cannot be started.
    #[error("cannot start the engine '{program}': {reason}")]
    Start {
        /// As it was asked for.
        program: String,
        /// What the system said.
        reason: String,
    },
    /// It ended by itself.
    #[error("the engine exited ({status}){}", quoted(stderr))]
    Exited {
        /// How it ended.
        status: ExitStatus,
        /// The end of what it wrote on standard error.
        stderr: String,
    },
    /// It did not answer in time.
    #[error("the engine hung: no {expected} within {patience:?}")]
    Hung {
        /// What was waited for.
        expected: &'static str,
        /// How long.
        patience: Duration,
    },
    /// It wrote far more than any engine should.
    #[error("the engine flooded its output before {expected}")]
    Flooded {
        /// What was waited for.
        expected: &'static str,
    },
    /// It played a move that is none.
    #[error("the engine played '{text}', which is not legal in {fen}")]
    IllegalMove {
        /// The move as it wrote it.
        text: String,
        /// The position.
        fen: String,
    },
    /// It does not take an option.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// It breaks the protocol, or cannot do what is asked.
    #[error("{0}")]
    Protocol(String),
}

fn install_hint(program: &str) -> &'static str {
    if is_stockfish(program) {
        ": install it with `apt install stockfish` (Debian, Ubuntu), `brew install stockfish` \
         (macOS) or from https://stockfishchess.org/download, or give the path of the program"
    } else {
        ": expected the path of a program, or its name on PATH"
    }
}

fn quoted(stderr: &str) -> String {
    let last = stderr.lines().next_back().unwrap_or_default();
    if last.is_empty() { String::new() } else { format!(": {last}") }
}

impl EngineProcess {
    /// Starts an engine: handshake, options, ready.
    pub fn start(command: &EngineCommand) -> Result<EngineProcess, EngineError> {
        let path = find_program(&command.program)?;
        let child = ChildProcess::spawn(&path, command).map_err(|error| EngineError::Start {
            program: command.program.clone(),
            reason: error.to_string(),
        })?;
        let mut engine = EngineProcess {
            child,
            name: command.program.clone(),
            author: String::new(),
            options: Vec::new(),
            patience: command.patience,
            is_chess960: false,
            failure: None,
        };
        engine.handshake()?;
        for (name, value) in &command.options {
            engine.set_option(name, value.as_deref())?;
        }
        engine.sync("")?;
        Ok(engine)
    }

    /// What it calls itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who made it.
    pub fn author(&self) -> &str {
        &self.author
    }

    /// The options it declares.
    pub fn options(&self) -> &[EngineOption] {
        &self.options
    }

    /// The process number, which is its process group's too.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sets an option, checked against what the engine declares.
    pub fn set_option(&mut self, name: &str, value: Option<&str>) -> Result<(), EngineError> {
        let (name, value) = EngineOption::resolve(&self.options, name, value)?;
        if name == CHESS960 {
            self.is_chess960 = value.as_deref() == Some("true");
        }
        let command = Command::SetOption { name: name.to_owned(), value };
        self.send(format!("{command}\n"), "setoption")?;
        Ok(())
    }

    /// Says that another game starts, and waits until the engine is ready for it.
    pub fn new_game(&mut self) -> Result<(), EngineError> {
        self.sync("ucinewgame\n")
    }

    /// Asks for a move. At the deadline the engine is told to stop; what it answers then is still
    /// taken (see [`EngineMove::was_stopped`]), and silence means that it hung.
    ///
    /// The game must not be over.
    pub fn go(
        &mut self,
        game: &Game,
        limits: &Go,
        deadline: Duration,
    ) -> Result<EngineMove, EngineError> {
        self.go_observed(game, limits, deadline, None, &mut |_| {})
    }

    /// As [`EngineProcess::go`], and shows each `info` as it comes. When `stop` is set the engine
    /// is told so as at the deadline.
    pub fn go_observed(
        &mut self,
        game: &Game,
        limits: &Go,
        deadline: Duration,
        stop: Option<&AtomicBool>,
        observer: &mut dyn FnMut(&Info),
    ) -> Result<EngineMove, EngineError> {
        if game.legal_moves().is_empty() {
            let fen = fen::to_fen(game.position());
            return Err(EngineError::Protocol(format!("there is no move to ask for in {fen}")));
        }
        if game.castling_mode() == CastlingMode::Chess960 && !self.is_chess960 {
            if EngineOption::find(&self.options, CHESS960).is_none() {
                return Err(EngineError::Protocol(format!("{} cannot play Chess960", self.name)));
            }
            self.set_option(CHESS960, Some("true"))?;
        }
        let mode = if self.is_chess960 { CastlingMode::Chess960 } else { CastlingMode::Standard };
        // Waiting here drops what an earlier search may still have said, and keeps the time that
        // the engine needs to set up the position off its clock.
        self.sync(&format!("{}\n", PositionCommand::from_game(game, mode)))?;

        let asked = Instant::now();
        let written = self.send(format!("{limits}\n"), "bestmove")?;
        let mut info = None;
        let mut watch = |reply: Reply| match reply {
            Reply::Info(new) => {
                observer(&new);
                if new.score.is_some() && new.multipv.is_none_or(|line| line == 1) {
                    info = Some(*new);
                }
                None
            }
            Reply::BestMove { best, ponder } => Some((best, ponder)),
            _ => None,
        };
        let mut was_stopped = false;
        let mut answer = self.wait_for("bestmove", asked + deadline, stop, &mut watch);
        if let Ok(None) = answer {
            was_stopped = true;
            self.send("stop\n".to_owned(), "bestmove")?;
            let patience = Instant::now() + self.patience.stop;
            answer = self.wait_for("bestmove", patience, None, &mut watch);
        }
        let Some(((best, ponder), answered)) = answer? else {
            return Err(self.silent("bestmove", asked.elapsed()));
        };
        let (best, ponder) = checked(game, &best, ponder.as_deref())?;
        // What was answered had been written, unless the engine spoke unasked.
        let elapsed = answered.saturating_duration_since(written.try_recv().unwrap_or(asked));
        Ok(EngineMove { best, ponder, info, elapsed, was_stopped })
    }

    fn handshake(&mut self) -> Result<(), EngineError> {
        self.send("uci\n".to_owned(), "uciok")?;
        let (mut name, mut author, mut options) = (None, None, Vec::new());
        let patience = self.patience.handshake;
        self.require("uciok", patience, &mut |reply| {
            match reply {
                Reply::IdName(text) => name = Some(text),
                Reply::IdAuthor(text) => author = Some(text),
                Reply::Option(option) => options.push(option),
                Reply::UciOk => return Some(()),
                _ => {}
            }
            None
        })?;
        self.name = name.unwrap_or_else(|| self.name.clone());
        self.author = author.unwrap_or_default();
        self.options = options;
        Ok(())
    }

    /// Sends commands and waits until they are done.
    fn sync(&mut self, commands: &str) -> Result<(), EngineError> {
        self.send(format!("{commands}isready\n"), "readyok")?;
        let patience = self.patience.ready;
        self.require("readyok", patience, &mut |reply| (reply == Reply::ReadyOk).then_some(()))
    }

    /// Queues a text; the receiver gets the moment at which it is written.
    fn send(
        &mut self,
        text: String,
        expected: &'static str,
    ) -> Result<Receiver<Instant>, EngineError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        match self.child.send(text) {
            Some(written) => Ok(written),
            // Gone, or its input is full because it does not read.
            None => Err(self.closed(expected)),
        }
    }

    fn require<T>(
        &mut self,
        expected: &'static str,
        patience: Duration,
        pick: &mut dyn FnMut(Reply) -> Option<T>,
    ) -> Result<T, EngineError> {
        match self.wait_for(expected, Instant::now() + patience, None, pick)? {
            Some((picked, _)) => Ok(picked),
            None => Err(self.silent(expected, patience)),
        }
    }

    /// Reads until `pick` takes a reply; `None` when the time is up or `stop` is set. Says when
    /// the reply came.
    fn wait_for<T>(
        &mut self,
        expected: &'static str,
        deadline: Instant,
        stop: Option<&AtomicBool>,
        pick: &mut dyn FnMut(Reply) -> Option<T>,
    ) -> Result<Option<(T, Instant)>, EngineError> {
        let (mut lines, mut bytes) = (0, 0);
        let is_over = |now: Instant| now > deadline || stop.is_some_and(|stop| stop.load(Relaxed));
        // A queue that is never empty would never time out.
        while lines < LINES_LIMIT && bytes <= BYTES_LIMIT {
            let look = stop.map_or(deadline, |_| deadline.min(Instant::now() + TICK));
            let (line, came) = match self.child.receive(look) {
                Ok(Received::Line(line, came)) => (line, came),
                Ok(Received::TooLong) => break,
                Err(RecvTimeoutError::Timeout) if look < deadline && !is_over(look) => continue,
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(self.closed(expected)),
            };
            if let Some(picked) = pick(Reply::parse(&line)) {
                return Ok(Some((picked, came)));
            }
            (lines, bytes) = (lines + 1, bytes + line.len());
            if is_over(came) {
                return Ok(None);
            }
        }
        Err(self.fail(EngineError::Flooded { expected }))
    }

    /// The error for an engine that did not answer.
    fn silent(&mut self, expected: &'static str, patience: Duration) -> EngineError {
        // A process that it started may have kept its output open beyond its end.
        if self.child.wait(Duration::ZERO) {
            return self.closed(expected);
        }
        self.fail(EngineError::Hung { expected, patience })
    }

    /// The error for an engine that can no longer be talked to.
    fn closed(&mut self, expected: &'static str) -> EngineError {
        // Closed pipes come a moment before the end.
        let patience = self.patience.quit;
        if !self.child.wait(patience) {
            return self.fail(EngineError::Hung { expected, patience });
        }
        let error = match self.child.kill() {
            Ok(status) => EngineError::Exited { status, stderr: self.child.stderr() },
            Err(error) => EngineError::Protocol(format!("the engine is gone: {error}")),
        };
        self.fail(error)
    }

    fn fail(&mut self, error: EngineError) -> EngineError {
        // It was ours and cannot be waited for twice: nothing more can be done about an error.
        let _ = self.child.kill();
        self.failure = Some(error.clone());
        error
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        if self.failure.is_none() && self.child.send("stop\nquit\n".to_owned()).is_some() {
            self.child.wait(self.patience.quit);
        }
        // Always: what it started may outlive it.
        let _ = self.child.kill();
    }
}

/// The moves behind the texts of a `bestmove`.
fn checked(
    game: &Game,
    best: &str,
    ponder: Option<&str>,
) -> Result<(Move, Option<Move>), EngineError> {
    let position = game.position();
    let best = notation::parse_uci(position, best).map_err(|_| EngineError::IllegalMove {
        text: best.to_owned(),
        fen: fen::to_fen(position),
    })?;
    let mut after = position.clone();
    after.play_unchecked(best);
    // Only a wish: some engines write a move here that cannot be played.
    let ponder = ponder.and_then(|text| notation::parse_uci(&after, text).ok());
    Ok((best, ponder))
}
