//! The whole terminal for a live view, given back whatever happens: at the end, on an error, on a
//! panic in any thread, on a signal.

use std::io::{self, BufWriter, IsTerminal, Stderr, Write};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, Once};
use std::thread;
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::{cursor, execute, terminal};
use ratatui::{Frame, Terminal};

/// True while a view has the terminal.
static IS_OPEN: AtomicBool = AtomicBool::new(false);
/// Held while a picture is written, so that nothing of it comes after the terminal was given back.
static DRAWING: Mutex<()> = Mutex::new(());

/// The terminal behind standard error, in the hands of a view.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stderr>>>,
}

/// What a person asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// `q`.
    Quit,
    /// Ctrl-C, which is no signal while a view has the terminal.
    Interrupt,
}

impl Screen {
    /// Takes the terminal; `None` where there is none that a view could use.
    pub fn open() -> Option<Screen> {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if is_dumb || !io::stderr().is_terminal() {
            return None;
        }
        restore_on_panic();
        terminal::enable_raw_mode().ok()?;
        IS_OPEN.store(true, SeqCst);
        let opened = execute!(io::stderr(), terminal::EnterAlternateScreen, cursor::Hide);
        let terminal = opened.and_then(|()| {
            Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(1 << 16, io::stderr())))
        });
        if terminal.is_err() {
            restore();
        }
        Some(Screen { terminal: terminal.ok()? })
    }

    /// Draws a picture, unless the terminal was given back meanwhile.
    pub fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) {
        let _drawing = DRAWING.lock();
        if is_open() {
            // A view is a courtesy: a terminal that has gone must not stop the job.
            let _ = self.terminal.draw(picture);
        }
    }

    /// Waits for a key, but not longer than this. Returns early when the size has changed.
    pub fn wait(&mut self, pause: Duration) -> Option<Key> {
        let Ok(is_ready) = event::poll(pause) else {
            thread::sleep(pause);
            return None;
        };
        if !is_ready {
            return None;
        }
        let Ok(Event::Key(key)) = event::read() else { return None };
        match key.code {
            _ if key.kind == KeyEventKind::Release => None,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                Some(Key::Interrupt)
            }
            KeyCode::Char('q' | 'Q') => Some(Key::Quit),
            _ => None,
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// True while a view has the terminal: nobody else may write to it.
pub fn is_open() -> bool {
    IS_OPEN.load(SeqCst)
}

/// Gives the terminal back, if a view has it.
pub fn restore() {
    if !IS_OPEN.swap(false, SeqCst) {
        return;
    }
    // A picture is written in a moment, but a panic may have come in the middle of one.
    for _ in 0..100 {
        if DRAWING.try_lock().is_ok() {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    let _ = execute!(io::stderr(), terminal::LeaveAlternateScreen, cursor::Show);
    let _ = terminal::disable_raw_mode();
    let _ = io::stderr().flush();
}

fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            hook(panic);
        }));
    });
}
