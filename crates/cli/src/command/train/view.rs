//! Training as a live picture on the terminal.
//!
//! A thread of its own has the terminal and the keys, so that the picture answers while the
//! learner is silent, and the learner never waits for the terminal.

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

use selfmate_learn::{Status, Watch};
use selfmate_run::{GameRecord, Record};

use crate::screen::{self, Key, Screen};
pub use scene::{Scene, Title};

/// Time between two pictures, and between two reports of where the run stands.
const PAUSE: Duration = Duration::from_millis(200);
/// A game stays this long, or nobody could look at it.
const GAME_PAUSE: Duration = Duration::from_secs(3);

/// Watches a run for the terminal.
pub struct View {
    /// Gone when the view ends.
    sender: Option<Sender<Message>>,
    thread: Option<JoinHandle<()>>,
    /// When a status and a game were last passed on.
    last_status: Option<Status>,
    last_time: Option<Instant>,
    last_game: Option<Instant>,
}

/// What the thread of the terminal gets to know.
pub enum Message {
    Status(Status),
    Record(Record),
    Game(GameRecord),
    Note(String),
}

impl View {
    /// Takes the terminal; `None` where there is none.
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
        // The picture is a courtesy: the run goes on without it.
        let _ = self.sender.as_ref().map(|sender| sender.send(message));
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.sender = None;
        // A panic of the thread has been told already.
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
            // What the search thought is most of a game, and not shown.
            let game = GameRecord { start, moves, positions: Vec::new(), ..*game };
            self.send(Message::Game(game));
        }
    }

    fn note(&mut self, text: &str) {
        self.send(Message::Note(text.to_owned()));
    }
}

/// Draws until there is nobody left to tell.
fn show(mut screen: Screen, mut scene: Scene, messages: &Receiver<Message>, stop: &AtomicBool) {
    let mut heard = Instant::now();
    loop {
        loop {
            match messages.try_recv() {
                Ok(message) => {
                    if matches!(message, Message::Status(_)) {
                        heard = Instant::now();
                    }
                    scene.take(message);
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        scene.silent_s = heard.elapsed().as_secs_f64();
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
