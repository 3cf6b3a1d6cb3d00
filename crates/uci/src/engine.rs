//! The engine side: puts a [`UciEngine`] behind an input and an output.
//!
//! [`serve`] reads and dispatches commands on the calling thread, so that `stop`, `isready`,
//! `ponderhit` and `quit` are heard at any time; the engine itself lives on one worker thread
//! (`worker.rs`) and gets its jobs in order. Nothing that comes in is fatal.

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

/// The longest line that is read; a game of ten thousand moves fits.
const LINE_LIMIT: usize = 1 << 20;
/// The most commands that wait behind a search.
const JOB_LIMIT: usize = 4096;
/// Room for deep recursion; only what is touched is used.
const WORKER_STACK: usize = 64 << 20;

/// The options that [`serve`] takes care of, for every engine.
const CHESS960: &str = "UCI_Chess960";
const SHOW_WDL: &str = "UCI_ShowWDL";

/// Anything that plays chess, as [`serve`] needs it.
pub trait UciEngine: Send {
    /// Name and authors.
    fn id(&self) -> (String, String);

    /// The options it takes. `UCI_Chess960` and `UCI_ShowWDL` are added and obeyed by [`serve`].
    fn options(&self) -> Vec<EngineOption>;

    /// Sets an option. Name and value have been checked against [`UciEngine::options`] and are
    /// written as declared there; the value of a button is empty.
    fn set_option(&mut self, name: &str, value: &str) -> Result<(), String>;

    /// The next position is from another game.
    fn new_game(&mut self);

    /// Finds a move. There is at least one legal one. Must come back soon after
    /// [`Control::is_stopped`]; with `infinite` or while pondering it may come back early, and its
    /// answer is held back as UCI asks.
    fn go(
        &mut self,
        game: &Game,
        limits: &Go,
        control: &Control,
        report: &mut (dyn FnMut(Info) + Send),
    ) -> BestMove;

    /// Answers a command outside UCI, such as `eval`, `bench 16 1 13` or `d`; `None` when it does
    /// not know it. Every line that is no UCI command comes here. Must come back soon after
    /// [`Control::is_stopped`].
    fn extra(&mut self, command: &str, game: &Game, control: &Control) -> Option<String> {
        let _ = (command, game, control);
        None
    }
}

/// The end of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BestMove {
    /// The move to play.
    pub best: Option<Move>,
    /// The answer worth pondering on.
    pub ponder: Option<Move>,
}

/// Speaks UCI until `quit` or the end of the input.
///
/// Fails only when the output cannot be written, the input cannot be read, or the engine panics.
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
                    output.say("internal error: the engine failed and must be restarted");
                    output.fail(io::Error::other("the engine panicked"));
                }
                drop(queue);
            })?;
        let read = session.read(&mut input);
        session.stop_searches();
        // Ends the worker, which first does what was still asked.
        drop(session);
        read
    })?;
    output.into_result()
}

/// What the reading side knows.
struct Session<'a, W: Write> {
    output: &'a Output<W>,
    id: (String, String),
    /// The engine's own options.
    declared: Vec<EngineOption>,
    /// These and ours.
    options: Vec<EngineOption>,
    jobs: SyncSender<Job>,
    game: Arc<Game>,
    /// The searches that have not ended yet, oldest first.
    searches: Vec<Arc<Control>>,
    /// The commands outside UCI that have not ended yet.
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
                    self.say(format!("line ignored: longer than {LINE_LIMIT} bytes"));
                }
                Line::Text(line) => match Command::parse(&line) {
                    Command::Quit => {
                        // The end of the input does not end a bench: whoever pipes in one command
                        // waits for its answer.
                        self.stop();
                        break;
                    }
                    command => self.obey(command),
                },
            }
        }
        Ok(())
    }

    fn obey(&mut self, command: Command) {
        self.searches.retain(|search| !search.is_done());
        self.extras.retain(|extra| !extra.is_done());
        match command {
            Command::Uci => self.introduce(),
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

    fn introduce(&self) {
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
            Err(error) => return self.say(error),
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
            Err(error) => self.say(format!("position ignored: {error}")),
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

    /// Until all that was asked is done; not for a search that only `stop` can end.
    fn wait(&self) {
        if self.searches.iter().any(|search| search.is_held()) {
            return self.say("not waiting for a search without an end");
        }
        let (done, wait) = sync_channel(1);
        if self.try_send(Job::Sync(done)) {
            // An error means that the worker is gone: nothing to wait for.
            let _ = wait.recv();
        }
    }

    /// Answers in turn; at once while there is a search, which must not delay it.
    fn answer(&self, line: &impl Display) {
        if self.searches.is_empty() {
            self.send(Job::Print(line.to_string()));
        } else {
            self.output.write(line);
        }
    }

    fn say(&self, text: impl Display) {
        self.answer(&Info::text(text.to_string()));
    }

    fn send(&self, job: Job) {
        self.try_send(job);
    }

    /// Hands a job to the worker; false when it was dropped.
    fn try_send(&self, job: Job) -> bool {
        match self.jobs.try_send(job) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) if self.searches.iter().any(|search| search.is_held()) => {
                // Waiting here would keep us from hearing the `stop` that makes room.
                self.say("command ignored: too many wait for the search to stop");
                false
            }
            Err(TrySendError::Full(job)) => self.jobs.send(job).is_ok(),
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}

/// The same position with the colours swapped and the board upside down, without history.
fn flipped(game: &Game) -> Game {
    let setup = game.position().to_setup(EnPassantMode::Legal).into_mirrored();
    // A position that can be set up can be set up mirrored.
    let mirrored = Fen::try_from_setup(setup).ok().map(|fen| fen::parse_game(&fen.to_string()));
    mirrored.and_then(Result::ok).unwrap_or_else(|| game.clone())
}
