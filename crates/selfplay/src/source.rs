//! Where games come from: the threads of this process, or other machines.
//!
//! A game is a pure function of its run, its number, its network and its config, so it does not
//! matter who plays it. [`LocalThreads`] plays here; other crates provide other sources.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};

use selfmate_nn::device::Evaluators;

use crate::error::SelfPlayError;
use crate::game::{Generation, SelfPlayer};
use crate::live_feed::LiveFeed;
use crate::sink::{GameSink, TICK};

/// The games of a generation that are still to be played.
pub struct GenerationJob<'a> {
    pub run_seed: u64,
    /// The number of the generation.
    pub index: u64,
    pub generation: &'a Generation,
    /// The numbers of the games.
    pub numbers: Vec<u64>,
    /// The network that plays, for threads of this process.
    pub evaluators: &'a Evaluators,
    /// The same network as a file.
    pub model_file: &'a dyn Fn() -> Result<Vec<u8>, SelfPlayError>,
}

/// Whether all games of a job are there and may be learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    Complete,
    /// There was no time to check all games.
    Incomplete,
}

pub trait GameSource {
    /// Adds every game of the job to the sink, in any order. Ends early when [`GameSink::should_continue`]
    /// is false; the missing games are requested again later.
    fn play(
        &mut self,
        job: &GenerationJob<'_>,
        sink: &mut GameSink<'_>,
    ) -> Result<Completion, SelfPlayError>;

    /// The numbers of games of earlier generations that turned out to be invalid since the last
    /// call. They are removed from the run.
    fn take_invalid(&mut self) -> BTreeSet<u64> {
        BTreeSet::new()
    }

    /// True when the stored copy of a game is invalid, so that it has to be played again.
    fn is_invalid(&self, _number: u64) -> bool {
        false
    }
}

/// This many threads of this process.
#[derive(Clone, Copy, Debug)]
pub struct LocalThreads(pub usize);

impl GameSource for LocalThreads {
    fn play(
        &mut self,
        job: &GenerationJob<'_>,
        sink: &mut GameSink<'_>,
    ) -> Result<Completion, SelfPlayError> {
        if job.numbers.is_empty() {
            return Ok(Completion::Complete);
        }
        job.generation.config.check_memory(self.0)?;
        let next = AtomicUsize::new(0);
        let cancelled = AtomicBool::new(false);
        let (sender, receiver) = channel();
        // Requested before the first move, so that a short generation is shown too.
        let feeds: Vec<Arc<LiveFeed>> = (0..self.0.max(1)).map(|_| LiveFeed::requested()).collect();
        let GenerationJob { generation, numbers, evaluators, .. } = job;
        std::thread::scope(|scope| {
            for feed in &feeds {
                let (sender, next, cancelled) = (sender.clone(), &next, &cancelled);
                scope.spawn(move || {
                    let mut player = SelfPlayer::new(&generation.config, evaluators());
                    player.set_feed(Arc::clone(feed));
                    let next = || numbers.get(next.fetch_add(1, Relaxed)).copied();
                    // The receiver is gone only when the games are no longer wanted.
                    player.play(generation, next, |game| _ = sender.send(game), cancelled);
                });
            }
            drop(sender);
            let mut result = Ok(());
            loop {
                match receiver.recv_timeout(TICK) {
                    // Finished games are still kept after a cancellation.
                    Ok(game) => result = result.and(sink.add(game)),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                sink.show(|| feeds.iter().flat_map(|feed| feed.take()).collect());
                if !sink.should_continue() || result.is_err() {
                    cancelled.store(true, Relaxed);
                }
            }
            result?;
            Ok(Completion::Complete)
        })
    }
}
