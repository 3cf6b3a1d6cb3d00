//! Plays the games of a pairing on several threads, or hands them to [`crate::remote`].

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use selfmate_chess::Seed;

use crate::game::GameSettings;
use crate::match_runner::{MatchError, MatchRun};
use crate::openings::Opening;
use crate::pairing::Pairing;
use crate::record::MatchGame;
use crate::remote::{Next, OpenGames};
use crate::resolved_player::ResolvedPlayer;
use crate::spec::SpecError;

/// What all threads of the pool share.
pub(crate) struct GamePool<'a> {
    pub(crate) settings: &'a GameSettings,
    pub(crate) run: &'a MatchRun,
    pub(crate) players: [&'a ResolvedPlayer; 2],
    pub(crate) seed: u64,
    /// One for every `games_per_opening` games.
    pub(crate) openings: &'a [Opening],
    /// 2 for pairs of games. Games on other machines are always pairs.
    pub(crate) games_per_opening: usize,
}

enum Message {
    Game(Box<MatchGame>),
    Failed(SpecError),
}

impl GamePool<'_> {
    /// Plays the open games. `take` gets each finished game, in the caller's thread.
    pub(crate) fn play(
        &self,
        open: &[usize],
        take: &mut dyn FnMut(MatchGame) -> Result<Next, MatchError>,
    ) -> Result<(), MatchError> {
        self.run.begun.store(true, Relaxed);
        if let Some(remote) = &self.run.remote {
            let GamePool { settings, run, players, seed, openings, .. } = *self;
            let stop = &*run.stop;
            return remote.play(&OpenGames { players, settings, seed, openings, open, stop }, take);
        }
        let threads = self.run.concurrency.clamp(1, open.len().max(1));
        // The first pair is built here, so that a bad spec is an error of this call.
        let first = Mutex::new(Some(self.build()?));
        let next = AtomicUsize::new(0);
        let halt = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = mpsc::channel();
        let mut result = Ok(());
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let sender = sender.clone();
                let (next, halt, first) = (&next, &halt, &first);
                let play = move || {
                    let mine = first.lock().unwrap_or_else(PoisonError::into_inner).take();
                    let mut pairing = match mine.map_or_else(|| self.build(), Ok) {
                        Ok(pairing) => pairing,
                        Err(error) => {
                            // A send fails only when the receiver has stopped listening.
                            let _ = sender.send(Message::Failed(error));
                            return;
                        }
                    };
                    while let Some(&game) = open.get(next.fetch_add(1, Relaxed)) {
                        let Some(record) = self.game(game, &mut pairing, halt) else { return };
                        if sender.send(Message::Game(Box::new(record))).is_err() {
                            return;
                        }
                    }
                };
                if let Err(error) = Builder::new().spawn_scoped(scope, play) {
                    // The threads that did start play all games.
                    if thread == 0 {
                        result = Err(MatchError::Thread(error));
                    }
                    break;
                }
            }
            drop(sender);
            loop {
                let message = match receiver.recv_timeout(Duration::from_millis(50)) {
                    Ok(message) => message,
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => {
                        if self.run.stop.load(Relaxed) {
                            halt.store(true, Relaxed);
                        }
                        continue;
                    }
                };
                if result.is_err() {
                    continue;
                }
                let taken = match message {
                    Message::Game(record) => take(*record),
                    Message::Failed(error) => Err(error.into()),
                };
                let stopped = self.run.stop.load(Relaxed);
                match taken {
                    Ok(Next::GoOn) if !stopped => {}
                    Ok(_) => halt.store(true, Relaxed),
                    Err(error) => {
                        result = Err(error);
                        halt.store(true, Relaxed);
                    }
                }
            }
        });
        result
    }

    fn build(&self) -> Result<Pairing, SpecError> {
        Pairing::new(self.players, Seed::new(self.seed))
    }

    fn game(
        &self,
        game: usize,
        pairing: &mut Pairing,
        halt: &Arc<AtomicBool>,
    ) -> Option<MatchGame> {
        let adjudicator = self.run.adjudicator.as_deref();
        let opening = &self.openings[game / self.games_per_opening];
        pairing.play(game as u64, opening, self.settings, adjudicator, halt)
    }
}
