//! The driver: runs a UCI program as a child process.
//!
//! Every wait has a timeout, and every answer is validated. Each request ends with a move or with
//! an [`EngineError`] that gives the reason. After an error that leaves the engine in an unknown
//! state (hung, flooded, exited) it is killed, and every later call returns the same error.

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

/// The most lines before an answer.
const LINES_LIMIT: u32 = 200_000;
/// The most bytes before an answer.
const BYTES_LIMIT: usize = 64 << 20;
/// How often to check whether the search is to be stopped.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

const CHESS960: &str = "UCI_Chess960";

/// A running engine. Dropping it ends the program and all processes that it started.
///
/// ```no_run
/// use std::time::Duration;
///
/// use selfmate_chess::{Game, notation};
/// use selfmate_uci::{EngineCommand, EngineProcess, Go};
///
/// let command = EngineCommand::new("stockfish").option("Hash", "64");
/// let mut engine = EngineProcess::start(&command)?;
/// engine.new_game()?;
/// let game = Game::new();
/// let answer = engine.go(&game, &Go::nodes(10_000), Duration::from_secs(10))?;
/// println!("{} plays {}", engine.name(), notation::san(game.position(), answer.best));
/// # Ok::<(), selfmate_uci::EngineError>(())
/// ```
pub struct EngineProcess {
    child: ChildProcess,
    name: String,
    author: String,
    options: Vec<EngineOption>,
    patience: Patience,
    is_chess960: bool,
    /// The error that ended the engine.
    failure: Option<EngineError>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineMove {
    /// A legal move.
    pub best: Move,
    /// The expected answer, if it is legal.
    pub ponder: Option<Move>,
    /// The last report with a score for the best line.
    pub info: Option<Info>,
    /// The time from writing `go` to reading `bestmove`.
    pub elapsed: Duration,
    /// The deadline passed or the caller stopped the search.
    pub was_stopped: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    #[error("cannot find the engine '{program}'{}", install_hint(program))]
    NotFound { program: String },
    #[error("cannot start the engine '{program}': {reason}")]
    Start { program: String, reason: String },
    #[error("the engine exited ({status}){}", quoted(stderr))]
    Exited {
        status: ExitStatus,
        /// The end of its standard error.
        stderr: String,
    },
    #[error("the engine hung: no {expected} within {patience:?}")]
    Hung {
        /// The answer that did not come.
        expected: &'static str,
        patience: Duration,
    },
    #[error("the engine flooded its output before {expected}")]
    Flooded {
        /// The answer that did not come.
        expected: &'static str,
    },
    #[error("the engine played '{text}', which is not legal in {fen}")]
    IllegalMove { text: String, fen: String },
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The engine violates the protocol or lacks a required feature.
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
    /// Starts an engine: handshake, options, `isready`.
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

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn author(&self) -> &str {
        &self.author
    }

    pub fn options(&self) -> &[EngineOption] {
        &self.options
    }

    /// The ID of the process and of its process group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sets an option after validating it against the engine's declaration.
    pub fn set_option(&mut self, name: &str, value: Option<&str>) -> Result<(), EngineError> {
        let (name, value) = EngineOption::resolve(&self.options, name, value)?;
        if name == CHESS960 {
            self.is_chess960 = value.as_deref() == Some("true");
        }
        let command = Command::SetOption { name: name.to_owned(), value };
        self.send(format!("{command}\n"), "setoption")?;
        Ok(())
    }

    /// Starts a new game and waits until the engine is ready.
    pub fn new_game(&mut self) -> Result<(), EngineError> {
        self.sync("ucinewgame\n")
    }

    /// Searches for a move. At the deadline it sends `stop`. An answer after that still counts (see
    /// [`EngineMove::was_stopped`]); without one the engine counts as hung.
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

    /// Like [`EngineProcess::go`], and passes each `info` to the observer as it arrives. Setting `stop`
    /// has the same effect as the deadline.
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
            return Err(EngineError::Protocol(format!(
                "no legal move in {fen}: expected a game that is not over"
            )));
        }
        if game.castling_mode() == CastlingMode::Chess960 && !self.is_chess960 {
            if EngineOption::find(&self.options, CHESS960).is_none() {
                return Err(EngineError::Protocol(format!("{} cannot play Chess960", self.name)));
            }
            self.set_option(CHESS960, Some("true"))?;
        }
        let mode = if self.is_chess960 { CastlingMode::Chess960 } else { CastlingMode::Standard };
        // Waiting here discards late output of an earlier search, and the time to set up the position
        // does not count as thinking time.
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
            return Err(self.timed_out("bestmove", asked.elapsed()));
        };
        let (best, ponder) = parse_best_move(game, &best, ponder.as_deref())?;
        // An answer without `go` having been written is from an engine that sends `bestmove` unasked.
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

    /// Sends commands and waits until the engine has processed them.
    fn sync(&mut self, commands: &str) -> Result<(), EngineError> {
        self.send(format!("{commands}isready\n"), "readyok")?;
        let patience = self.patience.ready;
        self.require("readyok", patience, &mut |reply| (reply == Reply::ReadyOk).then_some(()))
    }

    /// Queues text for writing. The receiver gets the time at which it is written.
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
            // The engine has ended, or does not read its input.
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
            None => Err(self.timed_out(expected, patience)),
        }
    }

    /// Reads until `pick` accepts a reply, and returns it with the time at which it was read. `None` at
    /// the deadline or if `stop` is set.
    fn wait_for<T>(
        &mut self,
        expected: &'static str,
        deadline: Instant,
        stop: Option<&AtomicBool>,
        pick: &mut dyn FnMut(Reply) -> Option<T>,
    ) -> Result<Option<(T, Instant)>, EngineError> {
        let (mut lines, mut bytes) = (0, 0);
        let is_over = |now: Instant| now > deadline || stop.is_some_and(|stop| stop.load(Relaxed));
        // Limits are needed because a queue that is never empty never times out.
        while lines < LINES_LIMIT && bytes <= BYTES_LIMIT {
            let look = stop.map_or(deadline, |_| deadline.min(Instant::now() + POLL_INTERVAL));
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

    /// The error for a timeout.
    fn timed_out(&mut self, expected: &'static str, patience: Duration) -> EngineError {
        // The engine may have exited while a process that it started keeps the output open.
        if self.child.wait(Duration::ZERO) {
            return self.closed(expected);
        }
        self.fail(EngineError::Hung { expected, patience })
    }

    /// The error for closed pipes.
    fn closed(&mut self, expected: &'static str) -> EngineError {
        // Pipes close shortly before the process exits.
        let patience = self.patience.quit;
        if !self.child.wait(patience) {
            return self.fail(EngineError::Hung { expected, patience });
        }
        let error = match self.child.kill() {
            Ok(status) => EngineError::Exited { status, stderr: self.child.stderr() },
            Err(error) => EngineError::Protocol(format!("cannot wait for the engine: {error}")),
        };
        self.fail(error)
    }

    fn fail(&mut self, error: EngineError) -> EngineError {
        // If killing fails there is nothing more to do.
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
        // In any case: processes that it started may still run.
        let _ = self.child.kill();
    }
}

/// Parses the moves of a `bestmove`.
fn parse_best_move(
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
    // Only a hint: some engines send an illegal move here.
    let ponder = ponder.and_then(|text| notation::parse_uci(&after, text).ok());
    Ok((best, ponder))
}
