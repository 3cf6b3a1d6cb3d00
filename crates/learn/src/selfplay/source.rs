//! Where games come from: the threads of this process, or whoever else plays them.
//!
//! A game is a pure function of its run, its number, its network and its config, so the loop that
//! learns does not care. [`Threads`] plays here; other crates bring other sources.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};

use super::game::{Generation, SelfPlayer, Window};
use super::play::{TICK, Tray};
use super::student::Evaluators;
use crate::endgame;
use crate::learner::LearnError;

/// The games of a generation that are still to be played.
pub struct Work<'a> {
    /// The seed of the run.
    pub seed: u64,
    /// The number of the generation.
    pub index: u64,
    /// What its games share.
    pub generation: &'a Generation,
    /// The numbers of the games.
    pub numbers: Vec<u64>,
    /// The network that plays, for threads of this process.
    pub evaluators: &'a Evaluators,
    /// The same network as a file.
    pub model: &'a dyn Fn() -> Result<Vec<u8>, LearnError>,
}

/// Whether what is on a tray may be learned from, once nothing is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harvest {
    /// It may.
    Ripe,
    /// There was no time to look at all of it.
    Unripe,
}

/// Has games played.
pub trait Source {
    /// Puts every game of the work on the tray, in any order. Ends early when the tray says so;
    /// what is missing then is asked for again another time.
    fn play(&mut self, work: &Work<'_>, tray: &mut Tray<'_>) -> Result<Harvest, LearnError>;

    /// Plays every game of a round of an ending; `None` when there was no time for all of them. What
    /// is worth knowing is told to `note`.
    fn play_endings(
        &mut self,
        work: &endgame::Work<'_>,
        note: &mut dyn FnMut(&str),
    ) -> Result<Option<Vec<endgame::Log>>, LearnError>;

    /// The numbers of games of earlier generations or rounds that turned out not to be what they should be
    /// since this was last asked. They are removed from the run.
    fn purge(&mut self) -> BTreeSet<u64> {
        BTreeSet::new()
    }

    /// True when the copy of a game that is on disk is not what it should be: it is played again.
    fn is_bad(&self, _number: u64) -> bool {
        false
    }
}

/// So many threads of this process.
#[derive(Clone, Copy, Debug)]
pub struct Threads(pub usize);

impl Source for Threads {
    fn play(&mut self, work: &Work<'_>, tray: &mut Tray<'_>) -> Result<Harvest, LearnError> {
        if work.numbers.is_empty() {
            return Ok(Harvest::Ripe);
        }
        work.generation.config.check_memory(self.0)?;
        let next = AtomicUsize::new(0);
        let cut = AtomicBool::new(false);
        let (sender, receiver) = channel();
        // Asked once before the first move: a short generation is seen too.
        let windows: Vec<Arc<Window>> = (0..self.0.max(1)).map(|_| Window::asked()).collect();
        let Work { generation, numbers, evaluators, .. } = work;
        std::thread::scope(|scope| {
            for window in &windows {
                let (sender, next, cut) = (sender.clone(), &next, &cut);
                scope.spawn(move || {
                    let mut player = SelfPlayer::new(&generation.config, evaluators());
                    player.set_window(Arc::clone(window));
                    let next = || numbers.get(next.fetch_add(1, Relaxed)).copied();
                    // Nobody listens any more once the games are cut short.
                    player.play(generation, next, |played| _ = sender.send(played), cut);
                });
            }
            drop(sender);
            let mut outcome = Ok(());
            loop {
                match receiver.recv_timeout(TICK) {
                    // The threads are told to stop, but games that ended are still taken.
                    Ok(played) => outcome = outcome.and(tray.add(played)),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                tray.show(|| windows.iter().flat_map(|window| window.look()).collect());
                if !tray.goes_on() || outcome.is_err() {
                    cut.store(true, Relaxed);
                }
            }
            outcome?;
            Ok(Harvest::Ripe)
        })
    }

    fn play_endings(
        &mut self,
        work: &endgame::Work<'_>,
        _: &mut dyn FnMut(&str),
    ) -> Result<Option<Vec<endgame::Log>>, LearnError> {
        Ok(work.play())
    }
}
