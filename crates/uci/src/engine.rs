//! The engine side: serves a [`UciEngine`] on an input and an output.
//!
//! [`serve`] reads and dispatches commands on the calling thread, so that `stop`, `isready`,
//! `ponderhit` and `quit` take effect at any time. The engine runs on one worker thread
//! (`worker.rs`) and gets its jobs in order. No input is fatal.

use std::fmt::Display;
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;

use selfmate_chess::{CastlingMode, Game, Move, Position, fen};
use shakmaty::EnPassantMode;
use shakmaty::fen::Fen;

pub use crate::control::Control;

use crate::command::Command;
use crate::go::Go;
use crate::info::Info;
use crate::line::{Line, read_line};
use crate::option::EngineOption;
use crate::position::PositionCommand;
use crate::reply::Reply;
use crate::worker::{Job, Output, Search, work};

/// The longest line that is read. A game of ten thousand moves fits.
const LINE_LIMIT: usize = 1 << 20;
/// The most commands in the queue of the worker.
const JOB_LIMIT: usize = 4096;
/// Enough for deep recursion. Only the pages that are touched use memory.
const WORKER_STACK: usize = 64 << 20;

/// Options that [`serve`] implements for every engine.
const CHESS960: &str = "UCI_Chess960";
const SHOW_WDL: &str = "UCI_ShowWDL";

/// A chess engine that [`serve`] can run.
pub trait UciEngine: Send {
    /// Name and authors.
    fn id(&self) -> (String, String);

    /// The engine's options. [`serve`] adds and implements `UCI_Chess960` and `UCI_ShowWDL`.
    fn options(&self) -> Vec<EngineOption>;

    /// Sets an option. Name and value are already validated against [`UciEngine::options`] and in
    /// canonical form. The value of a button is empty.
    fn set_option(&mut self, name: &str, value: &str) -> Result<(), String>;

    /// The next position is from a new game.
    fn new_game(&mut self);

    /// Searches for a move. The position has at least one legal move. Must return soon after
    /// [`Control::is_stopped`]. With `infinite` or while pondering it may return early; [`serve`] then
    /// delays the answer as UCI requires.
    fn go(
        &mut self,
        game: &Game,
        limits: &Go,
        control: &Control,
        report: &mut (dyn FnMut(Info) + Send),
    ) -> BestMove;

    /// Answers a non-UCI command such as `eval`, `bench 16 1 13` or `d`; `None` if it is unknown. Gets
    /// every line that is not a UCI command. Must return soon after [`Control::is_stopped`].
    fn extra(&mut self, command: &str, game: &Game, control: &Control) -> Option<String> {
        let _ = (command, game, control);
        None
    }
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BestMove {
    pub best: Option<Move>,
    /// The expected answer, to ponder on.
    pub ponder: Option<Move>,
}

/// Runs a UCI session until `quit` or the end of the input.
///
/// Fails only if the output cannot be written, the input cannot be read, or the engine panics.
///
/// ```
/// use selfmate_chess::Game;
/// use selfmate_uci::{BestMove, Control, EngineOption, Go, Info, UciEngine, serve};
///
/// /// Plays the first legal move.
/// struct FirstMove;
///
/// impl UciEngine for FirstMove {
///     fn id(&self) -> (String, String) {
///         ("First move".to_owned(), "Anna".to_owned())
///     }
///     fn options(&self) -> Vec<EngineOption> {
///         Vec::new()
///     }
///     fn set_option(&mut self, _: &str, _: &str) -> Result<(), String> {
///         Ok(())
///     }
///     fn new_game(&mut self) {}
///     fn go(
///         &mut self,
///         game: &Game,
///         limits: &Go,
///         _: &Control,
///         _: &mut (dyn FnMut(Info) + Send),
///     ) -> BestMove {
///         BestMove { best: limits.root_moves(game).first().copied(), ponder: None }
///     }
/// }
///
/// let input = "position startpos moves e2e4\ngo nodes 1 searchmoves e7e5\nquit\n";
/// let mut output = Vec::new();
/// serve(&mut FirstMove, input.as_bytes(), &mut output)?;
/// assert_eq!(output, b"bestmove e7e5\n");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn serve<E: UciEngine + ?Sized>(
    engine: &mut E,
    mut input: impl BufRead,
    output: impl Write + Send,
) -> io::Result<()> {
    let output = Output::new(output);
    let (jobs, queue) = sync_channel(JOB_LIMIT);
    let mut options = engine.options();
    for name in [CHESS960, SHOW_WDL] {
        if EngineOption::find(&options, name).is_none() {
            options.push(EngineOption::check(name, false));
        }
    }
    let mut session = Session {
        output: &output,
        id: engine.id(),
        declared: engine.options(),
        options,
        jobs,
        game: Arc::new(Game::new()),
        searches: Vec::new(),
        extras: Vec::new(),
        is_chess960: false,
        shows_wdl: false,
    };
    thread::scope(|scope| {
        thread::Builder::new()
            .name("uci engine".to_owned())
            .stack_size(WORKER_STACK)
            .spawn_scoped(scope, || {
                let worked = catch_unwind(AssertUnwindSafe(|| work(engine, &queue, &output)));
                if worked.is_err() {
                    output.info_string("internal error: the engine failed and must be restarted");
                    output.fail(io::Error::other("the engine panicked"));
                }
                drop(queue);
            })?;
        let read = session.read(&mut input);
        session.stop_searches();
        // The worker finishes the queued jobs and ends.
        drop(session);
        read
    })?;
    output.into_result()
}

/// The state of the reading thread.
struct Session<'a, W: Write> {
    output: &'a Output<W>,
    id: (String, String),
    /// The engine's own options.
    declared: Vec<EngineOption>,
    /// The engine's options and those of [`serve`].
    options: Vec<EngineOption>,
    jobs: SyncSender<Job>,
    game: Arc<Game>,
    /// Searches that have not ended yet, oldest first.
    searches: Vec<Arc<Control>>,
    /// Non-UCI commands that have not ended yet.
    extras: Vec<Arc<Control>>,
    is_chess960: bool,
    shows_wdl: bool,
}

impl<W: Write> Session<'_, W> {
    fn read(&mut self, input: &mut impl BufRead) -> io::Result<()> {
        while !self.output.has_failed() {
            match read_line(input, LINE_LIMIT)? {
                Line::End => break,
                Line::TooLong => {
                    self.info_string(format!("line ignored: longer than {LINE_LIMIT} bytes"));
                }
                Line::Text(line) => match Command::parse(&line) {
                    Command::Quit => {
                        // The end of the input does not stop a bench: `echo bench | selfmate uci` must print
                        // the result.
                        self.stop();
                        break;
                    }
                    command => self.handle(command),
                },
            }
        }
        Ok(())
    }

    fn handle(&mut self, command: Command) {
        self.searches.retain(|search| !search.is_done());
        self.extras.retain(|extra| !extra.is_done());
        match command {
            Command::Uci => self.identify(),
            Command::IsReady => self.answer(&Reply::ReadyOk),
            Command::SetOption { name, value } => self.set_option(&name, value.as_deref()),
            Command::UciNewGame => self.send(Job::NewGame),
            Command::Position(position) => self.set_position(&position),
            Command::Go(limits) => self.go(*limits),
            Command::Stop => self.stop(),
            Command::PonderHit => self.searches.iter().for_each(|search| search.ponderhit()),
            Command::Flip => self.game = Arc::new(flipped(&self.game)),
            Command::Wait => self.wait(),
            Command::Unknown(text) if text.is_empty() => {}
            Command::Unknown(text) if !self.searches.is_empty() => self.output.unknown(&text),
            Command::Extra(text) | Command::Unknown(text) => {
                let control = Arc::new(Control::new(&Go::default()));
                let game = Arc::clone(&self.game);
                if self.try_send(Job::Extra { text, game, control: Arc::clone(&control) }) {
                    self.extras.push(control);
                }
            }
            Command::Debug(_) | Command::Register(_) | Command::Quit => {}
        }
    }

    fn identify(&self) {
        let (name, author) = &self.id;
        self.answer(&Reply::IdName(name.clone()));
        self.answer(&Reply::IdAuthor(author.clone()));
        for option in &self.options {
            self.answer(option);
        }
        self.answer(&Reply::UciOk);
    }

    fn set_option(&mut self, name: &str, value: Option<&str>) {
        let (name, value) = match EngineOption::resolve(&self.options, name, value) {
            Ok((name, value)) => (name.to_owned(), value.unwrap_or_default()),
            Err(error) => return self.info_string(error),
        };
        match name.as_str() {
            CHESS960 => self.is_chess960 = value == "true",
            SHOW_WDL => self.shows_wdl = value == "true",
            _ => {}
        }
        if EngineOption::find(&self.declared, &name).is_some() {
            self.send(Job::SetOption { name, value });
        }
    }

    fn set_position(&mut self, position: &PositionCommand) {
        match position.game() {
            Ok(game) => self.game = Arc::new(game),
            Err(error) => self.info_string(format!("position ignored: {error}")),
        }
    }

    fn go(&mut self, limits: Go) {
        let control = Arc::new(Control::new(&limits));
        let mode =
            if self.is_chess960 { CastlingMode::Chess960 } else { self.game.castling_mode() };
        let search = Search {
            game: Arc::clone(&self.game),
            limits,
            control: Arc::clone(&control),
            mode,
            shows_wdl: self.shows_wdl,
        };
        if self.try_send(Job::Go(Box::new(search))) {
            self.searches.push(control);
        }
    }

    fn stop(&self) {
        self.stop_searches();
        self.extras.iter().for_each(|extra| extra.stop());
    }

    fn stop_searches(&self) {
        self.searches.iter().for_each(|search| search.stop());
    }

    /// Waits until all earlier commands are done, except for a search that only `stop` can end.
    fn wait(&self) {
        if self.searches.iter().any(|search| search.is_held()) {
            return self.info_string("wait ignored: the search runs until stop");
        }
        let (done, wait) = sync_channel(1);
        if self.try_send(Job::Sync(done)) {
            // An error means that the worker has ended: nothing to wait for.
            let _ = wait.recv();
        }
    }

    /// Answers in the order of the commands. During a search it answers at once.
    fn answer(&self, line: &impl Display) {
        if self.searches.is_empty() {
            self.send(Job::Print(line.to_string()));
        } else {
            self.output.write(line);
        }
    }

    fn info_string(&self, text: impl Display) {
        self.answer(&Info::text(text.to_string()));
    }

    fn send(&self, job: Job) {
        self.try_send(job);
    }

    /// Queues a job for the worker; returns false if it was dropped.
    fn try_send(&self, job: Job) -> bool {
        match self.jobs.try_send(job) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) if self.searches.iter().any(|search| search.is_held()) => {
                // Blocking here would prevent reading the `stop` that empties the queue.
                self.info_string(
                    "command ignored: too many commands are waiting for the search to stop",
                );
                false
            }
            Err(TrySendError::Full(job)) => self.jobs.send(job).is_ok(),
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}

/// The position with colours swapped and the board flipped, without history.
fn flipped(game: &Game) -> Game {
    let setup = game.position().to_setup(EnPassantMode::Legal).into_mirrored();
    // A legal position is also legal when mirrored.
    let mirrored = Fen::try_from_setup(setup).ok().map(|fen| fen::parse_game(&fen.to_string()));
    mirrored.and_then(Result::ok).unwrap_or_else(|| game.clone())
}
