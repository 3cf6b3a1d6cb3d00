//! Where a worker's threads play: a queue of games, and threads that take from it.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use selfmate_learn::selfplay::{Evaluators, Generation, Played, SelfPlayer};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use crate::hash::Hash;
use crate::message::Grant;

/// Where a worker's threads play.
pub struct Hall {
    state: Mutex<State>,
    /// There is something to play, or all is over.
    ready: Condvar,
    /// There is room for more games.
    pub hungry: Notify,
    threads: usize,
}

#[derive(Default)]
struct State {
    job: Option<Arc<Job>>,
    queue: VecDeque<Grant>,
    is_closed: bool,
}

/// What games are played with.
pub struct Job {
    /// The order.
    pub order: Hash,
    /// What its games share.
    pub generation: Generation,
    /// Its network.
    pub evaluators: Evaluators,
    /// Ends its games when set.
    cut: AtomicBool,
    /// Games under way.
    playing: AtomicUsize,
}

/// A game that has ended.
pub struct Finished {
    /// The order it was played for.
    pub order: Hash,
    /// The right to send it.
    pub token: Hash,
    /// The game.
    pub played: Played,
}

impl Job {
    /// A job of which nothing is played yet.
    pub fn new(order: Hash, generation: Generation, evaluators: Evaluators) -> Job {
        let (cut, playing) = (AtomicBool::new(false), AtomicUsize::new(0));
        Job { order, generation, evaluators, cut, playing }
    }
}

impl Hall {
    /// Opens a hall; its threads end when it is closed.
    pub fn open(
        threads: usize,
        done: &UnboundedSender<Finished>,
    ) -> (Arc<Hall>, Vec<JoinHandle<()>>) {
        let hall = Arc::new(Hall {
            state: Mutex::default(),
            ready: Condvar::new(),
            hungry: Notify::new(),
            threads: threads.max(1),
        });
        let start = |_| {
            let (hall, done) = (Arc::clone(&hall), done.clone());
            std::thread::spawn(move || hall.play(&done))
        };
        let threads = (0..hall.threads).map(start).collect();
        (hall, threads)
    }

    /// What is being played.
    pub fn job(&self) -> Option<Arc<Job>> {
        self.state().job.clone()
    }

    /// Plays for another order from now on, or for none. Games of the old one are dropped.
    pub fn set_job(&self, job: Option<Arc<Job>>) {
        let mut state = self.state();
        if let Some(old) = std::mem::replace(&mut state.job, job) {
            old.cut.store(true, Relaxed);
        }
        state.queue.clear();
        drop(state);
        self.hungry.notify_one();
    }

    /// Adds games of an order, unless another is played by now.
    pub fn add(&self, order: &Hash, games: Vec<Grant>) {
        let mut state = self.state();
        if !state.is_closed && state.job.as_ref().is_some_and(|job| job.order == *order) {
            state.queue.extend(games);
        }
        drop(state);
        self.ready.notify_all();
    }

    /// How many games to ask for: as many again as are played at a time, before they run out.
    pub fn want(&self) -> usize {
        let state = self.state();
        if state.is_closed {
            return 0;
        }
        let Some(job) = &state.job else { return 2 * self.threads };
        let room = self.threads * job.generation.config.games_at_once.max(1);
        let waiting = state.queue.len();
        if waiting > room / 2 {
            return 0;
        }
        (2 * room).saturating_sub(waiting + job.playing.load(Relaxed))
    }

    /// Lets the games under way end and begins no others.
    pub fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.queue.clear();
        drop(state);
        self.ready.notify_all();
    }

    /// True once it is closed.
    pub fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread's life.
    fn play(&self, done: &UnboundedSender<Finished>) {
        let mut last: Option<(Arc<Job>, SelfPlayer)> = None;
        while let Some(job) = self.wait() {
            let is_same = last.as_ref().is_some_and(|(last, _)| Arc::ptr_eq(last, &job));
            if !is_same {
                let player = SelfPlayer::new(&job.generation.config, (job.evaluators)());
                last = Some((Arc::clone(&job), player));
            }
            let Some((_, player)) = &mut last else { continue };
            let tokens = RefCell::new(HashMap::new());
            let next = || {
                let grant = self.next(&job)?;
                tokens.borrow_mut().insert(grant.number, grant.token);
                Some(grant.number)
            };
            let end = |played: Played| {
                job.playing.fetch_sub(1, Relaxed);
                self.hungry.notify_one();
                if let Some(token) = tokens.borrow_mut().remove(&played.record.number) {
                    // Nobody listens any more when the worker is gone.
                    let _ = done.send(Finished { order: job.order, token, played });
                }
            };
            player.play(&job.generation, next, end, &job.cut);
        }
    }

    /// Waits until there is something to play; `None` when the hall is closed.
    fn wait(&self) -> Option<Arc<Job>> {
        let mut state = self.state();
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(job) = &state.job
                && !state.queue.is_empty()
            {
                return Some(Arc::clone(job));
            }
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The next game of a job; `None` when there is none just now.
    fn next(&self, job: &Arc<Job>) -> Option<Grant> {
        let mut state = self.state();
        if !state.job.as_ref().is_some_and(|current| Arc::ptr_eq(current, job)) {
            return None;
        }
        let grant = state.queue.pop_front()?;
        drop(state);
        job.playing.fetch_add(1, Relaxed);
        self.hungry.notify_one();
        Some(grant)
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;
    use selfmate_learn::selfplay::evaluators;
    use selfmate_learn::zero::ZeroConfig;
    use selfmate_nn::Model;
    use selfmate_nn::sparse::Weights;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::audit::tests::{generation, play};

    fn job(name: &[u8]) -> Arc<Job> {
        let weights = Weights::random(ZeroConfig::tiny().network, Seed::new(1)).unwrap();
        let evaluators = evaluators(&Model::Sparse(Box::new(weights)));
        Arc::new(Job::new(Hash::of(name), generation(), evaluators))
    }

    fn grants(numbers: impl IntoIterator<Item = u64>) -> Vec<Grant> {
        let grant = |number: u64| Grant { number, token: Hash::of(&number.to_le_bytes()) };
        numbers.into_iter().map(grant).collect()
    }

    #[test]
    fn games_are_played_with_their_tokens_and_the_hall_closes_after_them() {
        let (sender, mut receiver) = unbounded_channel();
        let (hall, threads) = Hall::open(2, &sender);
        drop(sender);
        assert_eq!(hall.want(), 4);
        let job = job(b"one");
        hall.set_job(Some(Arc::clone(&job)));
        hall.add(&Hash::of(b"another"), grants(0..2));
        hall.add(&job.order, grants(0..5));
        for _ in 0..5 {
            let Finished { order, token, played } = receiver.blocking_recv().unwrap();
            let number = played.record.number;
            assert_eq!((order, token), (job.order, Hash::of(&number.to_le_bytes())));
            assert_eq!(played, play(&generation(), number));
        }
        hall.add(&job.order, grants(5..9));
        hall.close();
        // Games under way are finished, the others are not begun.
        let mut late = 0;
        while receiver.blocking_recv().is_some() {
            late += 1;
        }
        assert!(late <= 2, "{late}");
        assert_eq!(hall.want(), 0);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn a_new_order_ends_the_old_one() {
        let (sender, mut receiver) = unbounded_channel();
        let (hall, threads) = Hall::open(1, &sender);
        drop(sender);
        let (old, new) = (job(b"old"), job(b"new"));
        hall.set_job(Some(Arc::clone(&old)));
        hall.add(&old.order, grants(0..1000));
        hall.set_job(Some(Arc::clone(&new)));
        hall.add(&old.order, grants(0..1000));
        hall.add(&new.order, grants(7..8));
        loop {
            let finished = receiver.blocking_recv().unwrap();
            if finished.order == new.order {
                assert_eq!(finished.played.record.number, 7);
                break;
            }
        }
        hall.close();
        assert!(receiver.blocking_recv().is_none());
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
