//! The live view of a training on the terminal.
//!
//! A separate thread draws and reads keys, so that the view reacts while the learner is busy, and
//! the learner never waits for the terminal.

mod draw;
mod game;
mod scene;
mod spark;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use selfmate_run::{GameRecord, Record};
use selfmate_selfplay::{Status, Watch};

use crate::screen::{self, Key, Screen};
pub use scene::{Scene, Title};

/// Time between two frames, and between two status reports.
const PAUSE: Duration = Duration::from_millis(200);
/// A game is shown for at least this long.
const GAME_PAUSE: Duration = Duration::from_secs(3);

/// Sends the events of a run to the thread of the view.
pub struct View {
    /// `None` once the view ends.
    sender: Option<Sender<Message>>,
    thread: Option<JoinHandle<()>>,
    /// The last status and when a status and a game were last sent.
    last_status: Option<Status>,
    last_time: Option<Instant>,
    last_game: Option<Instant>,
}

/// Events for the thread of the view.
pub enum Message {
    Status(Status),
    Record(Record),
    Game(GameRecord),
    Note(String),
}

impl View {
    /// Opens the view; `None` without a usable terminal.
    pub fn open(scene: Scene, stop: &Arc<AtomicBool>) -> Option<View> {
        let screen = Screen::open()?;
        let (sender, receiver) = channel();
        let stop = Arc::clone(stop);
        let thread = thread::Builder::new().name("view".into());
        let thread = thread.spawn(move || show(screen, scene, &receiver, &stop)).ok()?;
        Some(View {
            sender: Some(sender),
            thread: Some(thread),
            last_status: None,
            last_time: None,
            last_game: None,
        })
    }

    fn send(&self, message: Message) {
        // The view is optional: the run continues without it.
        let _ = self.sender.as_ref().map(|sender| sender.send(message));
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.sender = None;
        // A panic of the thread has already been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Watch for View {
    fn status(&mut self, status: &Status) {
        let is_new = self.last_status.is_none_or(|last| last.stage != status.stage);
        if is_new || self.last_time.is_none_or(|last| last.elapsed() >= PAUSE / 2) {
            (self.last_status, self.last_time) = (Some(*status), Some(Instant::now()));
            self.send(Message::Status(*status));
        }
    }

    fn record(&mut self, record: &Record) {
        self.send(Message::Record(record.clone()));
    }

    fn game(&mut self, game: &GameRecord) {
        if self.last_game.is_none_or(|last| last.elapsed() >= GAME_PAUSE) {
            self.last_game = Some(Instant::now());
            let (start, moves) = (game.start.clone(), game.moves.clone());
            // Search results are most of a game record and are not shown.
            let game = GameRecord { start, moves, positions: Vec::new(), ..*game };
            self.send(Message::Game(game));
        }
    }

    fn note(&mut self, text: &str) {
        self.send(Message::Note(text.to_owned()));
    }
}

/// Draws until the sender is dropped.
fn show(mut screen: Screen, mut scene: Scene, messages: &Receiver<Message>, stop: &AtomicBool) {
    let mut last_status = Instant::now();
    loop {
        loop {
            match messages.try_recv() {
                Ok(message) => {
                    if matches!(message, Message::Status(_)) {
                        last_status = Instant::now();
                    }
                    scene.take(message);
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        scene.silent_s = last_status.elapsed().as_secs_f64();
        scene.is_stopping = stop.load(Relaxed);
        screen.draw(|frame| draw::draw(frame, &scene));
        match screen.wait(PAUSE) {
            Some(Key::Interrupt) if stop.swap(true, Relaxed) => {
                screen::restore();
                std::process::exit(130);
            }
            Some(Key::Interrupt | Key::Quit) => stop.store(true, Relaxed),
            None => {}
        }
    }
}
