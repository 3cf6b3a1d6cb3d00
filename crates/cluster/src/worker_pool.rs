//! Where a worker's threads play: a queue of games, and threads that take from it.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use selfmate_arena::Pairing;
use selfmate_selfplay::{Evaluators, FinishedGame, Generation, SelfPlayer};
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use crate::envelope::Envelope;
use crate::hash::Hash;
use crate::job::ReadyMatch;
use crate::message::Grant;

/// Where a worker's threads play.
pub struct WorkerPool {
    state: Mutex<State>,
    /// There is something to play, or all is over.
    ready: Condvar,
    /// There is room for more games.
    pub hungry: Notify,
    threads: usize,
}

#[derive(Default)]
struct State {
    job: Option<Arc<ActiveJob>>,
    queue: VecDeque<Grant>,
    /// The games that were lent and are not sent yet, and the hash that they belong to.
    held: BTreeSet<u64>,
    held_for: Option<Hash>,
    closed: Option<Instant>,
}

/// What games are played with.
pub struct ActiveJob {
    /// The hash.
    pub hash: Hash,
    /// What it asks for.
    task: ActiveTask,
    /// Ends its games when set.
    cut: Arc<AtomicBool>,
    /// Games under way.
    playing: AtomicUsize,
}

/// What an hash asks for.
pub enum ActiveTask {
    /// Games of a generation.
    SelfPlay {
        /// What its games share.
        generation: Generation,
        /// Its network.
        evaluators: Evaluators,
    },
    /// Games of a match.
    Match(Box<ReadyMatch>),
}

/// A game that has ended.
pub struct Finished {
    /// The hash it was played for.
    pub hash: Hash,
    /// The game as it is sent.
    pub envelope: Envelope,
}

impl ActiveJob {
    /// A job of which nothing is played yet.
    pub fn new(hash: Hash, task: ActiveTask) -> ActiveJob {
        ActiveJob { hash, task, cut: Arc::default(), playing: AtomicUsize::new(0) }
    }

    /// Games that a thread plays at a time.
    fn games_at_once(&self) -> usize {
        match &self.task {
            ActiveTask::SelfPlay { generation, .. } => generation.config.games_at_once.max(1),
            ActiveTask::Match(_) => 1,
        }
    }
}

impl WorkerPool {
    /// Opens a pool; its threads end when it is closed.
    pub fn open(
        threads: usize,
        done: &UnboundedSender<Finished>,
    ) -> (Arc<WorkerPool>, Vec<JoinHandle<()>>) {
        let pool = Arc::new(WorkerPool {
            state: Mutex::default(),
            ready: Condvar::new(),
            hungry: Notify::new(),
            threads: threads.max(1),
        });
        let start = |_| {
            let (pool, done) = (Arc::clone(&pool), done.clone());
            std::thread::spawn(move || {
                let _alarm = Alarm(&pool);
                pool.play(&done);
            })
        };
        let threads = (0..pool.threads).map(start).collect();
        (pool, threads)
    }

    /// What is being played.
    pub fn job(&self) -> Option<Arc<ActiveJob>> {
        self.state().job.clone()
    }

    /// Plays for another hash from now on, or for none. Games of the old one are dropped.
    pub fn set_job(&self, job: Option<Arc<ActiveJob>>) {
        let mut state = self.state();
        if let Some(old) = std::mem::replace(&mut state.job, job) {
            old.cut.store(true, Relaxed);
        }
        state.queue.clear();
        let hash = state.job.as_ref().map(|job| job.hash);
        if state.held_for != hash {
            state.held.clear();
            state.held_for = hash;
        }
        drop(state);
        self.hungry.notify_one();
    }

    /// Games of an hash are lent to this worker, whether it can play them yet or not.
    pub fn hold(&self, hash: Hash, games: &[Grant]) {
        let mut state = self.state();
        if state.held_for != Some(hash) {
            state.held.clear();
            state.held_for = Some(hash);
        }
        state.held.extend(games.iter().map(|grant| grant.number));
    }

    /// A game is sent, or will never be.
    pub fn release(&self, hash: Hash, number: u64) {
        let mut state = self.state();
        if state.held_for == Some(hash) {
            state.held.remove(&number);
        }
    }

    /// The games that are lent to this worker, with their hash.
    pub fn held(&self) -> (Option<Hash>, Vec<u64>) {
        let state = self.state();
        (state.held_for, state.held.iter().copied().collect())
    }

    /// Adds games of an hash, unless another is played by now.
    pub fn add(&self, hash: &Hash, games: Vec<Grant>) {
        let mut state = self.state();
        if state.closed.is_none() && state.job.as_ref().is_some_and(|job| job.hash == *hash) {
            state.queue.extend(games);
        }
        drop(state);
        self.ready.notify_all();
    }

    /// How many games to ask for: as many again as are played at a time, before they run out.
    pub fn want(&self) -> usize {
        let state = self.state();
        if state.closed.is_some() {
            return 0;
        }
        let Some(job) = &state.job else { return 2 * self.threads };
        let room = self.threads * job.games_at_once();
        let waiting = state.queue.len();
        if waiting > room / 2 {
            return 0;
        }
        (2 * room).saturating_sub(waiting + job.playing.load(Relaxed))
    }

    /// True when no game is under way, and none waits.
    pub fn is_idle(&self) -> bool {
        let state = self.state();
        let playing = state.job.as_ref().map_or(0, |job| job.playing.load(Relaxed));
        playing == 0 && state.queue.is_empty()
    }

    /// Lets the games under way end and begins no others.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed.get_or_insert_with(Instant::now);
        state.queue.clear();
        drop(state);
        self.ready.notify_all();
    }

    /// How long it has been closed.
    pub fn closed_for(&self) -> Option<Duration> {
        self.state().closed.map(|since| since.elapsed())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread's life.
    fn play(&self, done: &UnboundedSender<Finished>) {
        let mut last: Option<(Arc<ActiveJob>, ThreadPlayer)> = None;
        while let Some(job) = self.wait() {
            let is_same = last.as_ref().is_some_and(|(last, _)| Arc::ptr_eq(last, &job));
            if !is_same {
                last = Some((Arc::clone(&job), ThreadPlayer::new(&job.task)));
            }
            let Some((_, player)) = &mut last else { continue };
            let tokens = RefCell::new(HashMap::new());
            let next = || {
                let grant = self.next(&job)?;
                tokens.borrow_mut().insert(grant.number, grant.token);
                Some(grant.number)
            };
            let end = |number: u64, pack: &dyn Fn(Hash) -> Option<Envelope>| {
                job.playing.fetch_sub(1, Relaxed);
                self.hungry.notify_one();
                let token = tokens.borrow_mut().remove(&number);
                match token.and_then(pack) {
                    // Nobody listens any more when the worker is gone.
                    Some(envelope) => _ = done.send(Finished { hash: job.hash, envelope }),
                    None => self.release(job.hash, number),
                }
            };
            player.play(&job, next, end);
        }
    }

    /// Waits until there is something to play; `None` when the pool is closed.
    fn wait(&self) -> Option<Arc<ActiveJob>> {
        let mut state = self.state();
        loop {
            if state.closed.is_some() {
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
    fn next(&self, job: &Arc<ActiveJob>) -> Option<Grant> {
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

/// Whoever plays in a thread.
enum ThreadPlayer {
    SelfPlay(SelfPlayer),
    Match(Option<Pairing>),
}

impl ThreadPlayer {
    fn new(task: &ActiveTask) -> ThreadPlayer {
        match task {
            ActiveTask::SelfPlay { generation, evaluators } => {
                ThreadPlayer::SelfPlay(SelfPlayer::new(&generation.config, evaluators()))
            }
            ActiveTask::Match(ready) => {
                let [a, b] = &ready.players;
                // Both were built before the job was taken.
                ThreadPlayer::Match(Pairing::new([a, b], ready.seed).ok())
            }
        }
    }

    /// Plays games as long as there are any.
    fn play(
        &mut self,
        job: &ActiveJob,
        mut next: impl FnMut() -> Option<u64>,
        mut end: impl FnMut(u64, &dyn Fn(Hash) -> Option<Envelope>),
    ) {
        match (self, &job.task) {
            (ThreadPlayer::SelfPlay(player), ActiveTask::SelfPlay { generation, .. }) => {
                let end = |played: FinishedGame| {
                    // What was played here can be written.
                    end(played.record.number, &|token| {
                        Envelope::new(job.hash, token, &played).ok()
                    });
                };
                player.play(generation, next, end, &job.cut);
            }
            (ThreadPlayer::Match(Some(pairing)), ActiveTask::Match(ready)) => {
                while let Some(number) = next() {
                    let opening = ready.openings.get(&(number / 2));
                    let played = opening.and_then(|opening| {
                        pairing.play(number, opening, &ready.settings, None, &job.cut)
                    });
                    end(number, &|token| {
                        Some(Envelope::of_match(job.hash, token, played.as_ref()?))
                    });
                }
            }
            // Nobody to play them: they are given back.
            _ => {
                while let Some(number) = next() {
                    end(number, &|_| None);
                }
            }
        }
    }
}

/// Closes the pool when a thread panics: its games would be held for ever.
struct Alarm<'a>(&'a WorkerPool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;
    use selfmate_nn::Model;
    use selfmate_nn::sparse::Weights;
    use selfmate_selfplay::evaluators;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::audit::tests::{generation, play, tiny_shape};

    fn job(name: &[u8]) -> Arc<ActiveJob> {
        let weights = Weights::random(tiny_shape(), Seed::new(1)).unwrap();
        let evaluators = evaluators(&Model::Sparse(Box::new(weights)));
        let task = ActiveTask::SelfPlay { generation: generation(), evaluators };
        Arc::new(ActiveJob::new(Hash::of(name), task))
    }

    fn grants(numbers: impl IntoIterator<Item = u64>) -> Vec<Grant> {
        let grant = |number: u64| Grant { number, token: Hash::of(&number.to_le_bytes()) };
        numbers.into_iter().map(grant).collect()
    }

    #[test]
    fn games_are_played_with_their_tokens_and_the_hall_closes_after_them() {
        let (sender, mut receiver) = unbounded_channel();
        let (pool, threads) = WorkerPool::open(2, &sender);
        drop(sender);
        assert_eq!(pool.want(), 4);
        let job = job(b"one");
        pool.set_job(Some(Arc::clone(&job)));
        pool.add(&Hash::of(b"another"), grants(0..2));
        pool.add(&job.hash, grants(0..5));
        for _ in 0..5 {
            let Finished { hash, envelope } = receiver.blocking_recv().unwrap();
            let (number, token) = (envelope.number, envelope.token);
            assert_eq!((hash, token), (job.hash, Hash::of(&number.to_le_bytes())));
            let expected = Envelope::new(hash, token, &play(&generation(), number)).unwrap();
            assert_eq!(envelope, expected);
        }
        pool.add(&job.hash, grants(5..5000));
        pool.close();
        // Games under way are finished, the others are not begun.
        let mut late = 0;
        while receiver.blocking_recv().is_some() {
            late += 1;
        }
        assert!(late < 4000, "{late}");
        assert_eq!(pool.want(), 0);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn what_is_held_is_what_was_lent_and_is_not_sent() {
        let (sender, _receiver) = unbounded_channel();
        let (pool, threads) = WorkerPool::open(1, &sender);
        let (old, new) = (job(b"old"), job(b"new"));
        pool.hold(old.hash, &grants(0..3));
        assert_eq!(pool.held(), (Some(old.hash), vec![0, 1, 2]));
        // The network is there: the games are still held.
        pool.set_job(Some(Arc::clone(&old)));
        pool.release(old.hash, 1);
        pool.release(new.hash, 2);
        assert_eq!(pool.held(), (Some(old.hash), vec![0, 2]));
        pool.hold(new.hash, &grants(7..9));
        assert_eq!(pool.held(), (Some(new.hash), vec![7, 8]));
        pool.set_job(Some(new));
        pool.set_job(None);
        assert_eq!(pool.held(), (None, vec![]));
        pool.close();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn a_new_order_ends_the_old_one() {
        let (sender, mut receiver) = unbounded_channel();
        let (pool, threads) = WorkerPool::open(1, &sender);
        drop(sender);
        let (old, new) = (job(b"old"), job(b"new"));
        pool.set_job(Some(Arc::clone(&old)));
        pool.add(&old.hash, grants(0..1000));
        pool.set_job(Some(Arc::clone(&new)));
        pool.add(&old.hash, grants(0..1000));
        pool.add(&new.hash, grants(7..8));
        loop {
            let finished = receiver.blocking_recv().unwrap();
            if finished.hash == new.hash {
                assert_eq!(finished.envelope.number, 7);
                break;
            }
        }
        pool.close();
        assert!(receiver.blocking_recv().is_none());
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
