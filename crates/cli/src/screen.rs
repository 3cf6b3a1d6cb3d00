//! The full-screen terminal of a live view. It is always restored: at the end, after an error, a
//! panic in any thread or a signal.

use std::io::{self, BufWriter, IsTerminal, Stderr, Write};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, Once};
use std::thread;
use std::time::Duration;

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::{cursor, execute, terminal};
use ratatui::{Frame, Terminal};

/// True while a view uses the terminal.
static IS_OPEN: AtomicBool = AtomicBool::new(false);
/// Held while a frame is written, so that nothing is written after the terminal was restored.
static DRAWING: Mutex<()> = Mutex::new(());

/// The terminal on standard error, used by a view.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stderr>>>,
}

/// The keys of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// `q`.
    Quit,
    /// Ctrl-C, which is not a signal in raw mode.
    Interrupt,
}

impl Screen {
    /// Opens the terminal; `None` if a view cannot use it.
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

    /// Draws a frame, unless the terminal was restored meanwhile.
    pub fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) {
        let _drawing = DRAWING.lock();
        if is_open() {
            // The view is optional: a closed terminal must not stop the job.
            let _ = self.terminal.draw(picture);
        }
    }

    /// Waits for a key, at most this long. Returns early when the size changes.
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

/// True while a view uses the terminal: nothing else may write to it.
pub fn is_open() -> bool {
    IS_OPEN.load(SeqCst)
}

/// Restores the terminal if a view uses it.
pub fn restore() {
    if !IS_OPEN.swap(false, SeqCst) {
        return;
    }
    // A frame takes only a moment, but a panic may have interrupted one.
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
