//! The threads of a worker and their queue of games. It does not know the broker: games come in as
//! grants and go out through a channel.

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

pub struct WorkerPool {
    state: Mutex<State>,
    /// Signals a new game in the queue, or that the pool is closed.
    ready: Condvar,
    /// Signals that the worker should ask for more games.
    pub has_room: Notify,
    threads: usize,
}

#[derive(Default)]
struct State {
    job: Option<Arc<ActiveJob>>,
    queue: VecDeque<Grant>,
    /// Games that are lent to this worker and not sent.
    held: BTreeSet<u64>,
    /// The job of `held`.
    held_job: Option<Hash>,
    closed: Option<Instant>,
}

/// The job that is being played, with its networks loaded.
pub struct ActiveJob {
    pub job_hash: Hash,
    task: ActiveTask,
    /// Stops the games of this job.
    stop: Arc<AtomicBool>,
    /// Games in progress.
    playing: AtomicUsize,
}

pub enum ActiveTask {
    SelfPlay { generation: Box<Generation>, evaluators: Evaluators },
    Match(Box<ReadyMatch>),
}

/// A finished game, ready to be sent.
pub struct Finished {
    pub job_hash: Hash,
    pub envelope: Envelope,
}

impl ActiveJob {
    pub fn new(job_hash: Hash, task: ActiveTask) -> ActiveJob {
        ActiveJob { job_hash, task, stop: Arc::default(), playing: AtomicUsize::new(0) }
    }

    /// Per thread.
    fn games_at_once(&self) -> usize {
        match &self.task {
            ActiveTask::SelfPlay { generation, .. } => generation.config.games_at_once.max(1),
            ActiveTask::Match(_) => 1,
        }
    }
}

impl WorkerPool {
    /// Starts the threads. They end when the pool is closed.
    pub fn open(
        threads: usize,
        done: &UnboundedSender<Finished>,
    ) -> (Arc<WorkerPool>, Vec<JoinHandle<()>>) {
        let pool = Arc::new(WorkerPool {
            state: Mutex::default(),
            ready: Condvar::new(),
            has_room: Notify::new(),
            threads: threads.max(1),
        });
        let start = |_| {
            let (pool, done) = (Arc::clone(&pool), done.clone());
            std::thread::spawn(move || {
                let _guard = CloseOnPanic(&pool);
                pool.play(&done);
            })
        };
        let threads = (0..pool.threads).map(start).collect();
        (pool, threads)
    }

    pub fn job(&self) -> Option<Arc<ActiveJob>> {
        self.lock_state().job.clone()
    }

    /// Switches to another job, or to none. Games of the old one are stopped and dropped.
    pub fn set_job(&self, job: Option<Arc<ActiveJob>>) {
        let mut state = self.lock_state();
        if let Some(old) = std::mem::replace(&mut state.job, job) {
            old.stop.store(true, Relaxed);
        }
        state.queue.clear();
        let job_hash = state.job.as_ref().map(|job| job.job_hash);
        if state.held_job != job_hash {
            state.held.clear();
            state.held_job = job_hash;
        }
        drop(state);
        self.has_room.notify_one();
    }

    /// Records games as held. The job need not be loaded yet.
    pub fn hold(&self, job_hash: Hash, games: &[Grant]) {
        let mut state = self.lock_state();
        if state.held_job != Some(job_hash) {
            state.held.clear();
            state.held_job = Some(job_hash);
        }
        state.held.extend(games.iter().map(|grant| grant.number));
    }

    /// Records that a game is no longer held: it was sent, or never will be.
    pub fn release(&self, job_hash: Hash, number: u64) {
        let mut state = self.lock_state();
        if state.held_job == Some(job_hash) {
            state.held.remove(&number);
        }
    }

    /// The held games and their job.
    pub fn held(&self) -> (Option<Hash>, Vec<u64>) {
        let state = self.lock_state();
        (state.held_job, state.held.iter().copied().collect())
    }

    /// Queues games, unless the pool has switched to another job.
    pub fn add(&self, job_hash: &Hash, games: Vec<Grant>) {
        let mut state = self.lock_state();
        if state.closed.is_none() && state.job.as_ref().is_some_and(|job| job.job_hash == *job_hash)
        {
            state.queue.extend(games);
        }
        drop(state);
        self.ready.notify_all();
    }

    /// How many games to ask for. The queue is refilled when it is half empty, so that threads do not
    /// run out of games while an answer is under way.
    pub fn want(&self) -> usize {
        let state = self.lock_state();
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

    /// Whether no game is in progress or queued.
    pub fn is_idle(&self) -> bool {
        let state = self.lock_state();
        let playing = state.job.as_ref().map_or(0, |job| job.playing.load(Relaxed));
        playing == 0 && state.queue.is_empty()
    }

    /// Lets the games in progress end, and drops the queue.
    pub fn close(&self) {
        let mut state = self.lock_state();
        state.closed.get_or_insert_with(Instant::now);
        state.queue.clear();
        drop(state);
        self.ready.notify_all();
    }

    /// The time since the pool was closed; `None` while it is open.
    pub fn closed_for(&self) -> Option<Duration> {
        self.lock_state().closed.map(|since| since.elapsed())
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loop of a thread.
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
                self.has_room.notify_one();
                let token = tokens.borrow_mut().remove(&number);
                match token.and_then(pack) {
                    // Fails only when the worker is gone.
                    Some(envelope) => {
                        _ = done.send(Finished { job_hash: job.job_hash, envelope });
                    }
                    None => self.release(job.job_hash, number),
                }
            };
            player.play(&job, next, end);
        }
    }

    /// Waits for a game in the queue; `None` when the pool is closed.
    fn wait(&self) -> Option<Arc<ActiveJob>> {
        let mut state = self.lock_state();
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

    /// The next game; `None` when the queue is empty or the pool has switched to another job.
    fn next(&self, job: &Arc<ActiveJob>) -> Option<Grant> {
        let mut state = self.lock_state();
        if !state.job.as_ref().is_some_and(|current| Arc::ptr_eq(current, job)) {
            return None;
        }
        let grant = state.queue.pop_front()?;
        drop(state);
        job.playing.fetch_add(1, Relaxed);
        self.has_room.notify_one();
        Some(grant)
    }
}

/// The player of one thread.
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
                // Both were built once before the pool got the job.
                ThreadPlayer::Match(Pairing::new([a, b], ready.seed).ok())
            }
        }
    }

    /// Plays games until `next` returns `None`.
    fn play(
        &mut self,
        job: &ActiveJob,
        mut next: impl FnMut() -> Option<u64>,
        mut end: impl FnMut(u64, &dyn Fn(Hash) -> Option<Envelope>),
    ) {
        match (self, &job.task) {
            (ThreadPlayer::SelfPlay(player), ActiveTask::SelfPlay { generation, .. }) => {
                let end = |played: FinishedGame| {
                    // A game that was just played can be encoded.
                    end(played.record.number, &|token| {
                        Envelope::new(job.job_hash, token, &played).ok()
                    });
                };
                player.play(generation, next, end, &job.stop);
            }
            (ThreadPlayer::Match(Some(pairing)), ActiveTask::Match(ready)) => {
                while let Some(number) = next() {
                    let opening = ready.openings.get(&(number / 2));
                    let played = opening.and_then(|opening| {
                        pairing.play(number, opening, &ready.settings, None, &job.stop)
                    });
                    end(number, &|token| {
                        Some(Envelope::of_match(job.job_hash, token, played.as_ref()?))
                    });
                }
            }
            // The players could not be built: the games are given back.
            _ => {
                while let Some(number) = next() {
                    end(number, &|_| None);
                }
            }
        }
    }
}

/// Closes the pool when a thread panics; otherwise its games would be held for ever.
struct CloseOnPanic<'a>(&'a WorkerPool);

impl Drop for CloseOnPanic<'_> {
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
        let task = ActiveTask::SelfPlay { generation: Box::new(generation()), evaluators };
        Arc::new(ActiveJob::new(Hash::of(name), task))
    }

    fn grants(numbers: impl IntoIterator<Item = u64>) -> Vec<Grant> {
        let grant = |number: u64| Grant { number, token: Hash::of(&number.to_le_bytes()) };
        numbers.into_iter().map(grant).collect()
    }

    #[test]
    fn games_are_returned_with_their_tokens_and_a_closed_pool_begins_no_more() {
        let (sender, mut receiver) = unbounded_channel();
        let (pool, threads) = WorkerPool::open(2, &sender);
        drop(sender);
        assert_eq!(pool.want(), 4);
        let job = job(b"one");
        pool.set_job(Some(Arc::clone(&job)));
        pool.add(&Hash::of(b"another"), grants(0..2));
        pool.add(&job.job_hash, grants(0..5));
        for _ in 0..5 {
            let Finished { job_hash, envelope } = receiver.blocking_recv().unwrap();
            let (number, token) = (envelope.number, envelope.token);
            assert_eq!((job_hash, token), (job.job_hash, Hash::of(&number.to_le_bytes())));
            let expected = Envelope::new(job_hash, token, &play(&generation(), number)).unwrap();
            assert_eq!(envelope, expected);
        }
        pool.add(&job.job_hash, grants(5..5000));
        pool.close();
        // Games in progress are finished; the queue is dropped.
        let mut late = 0;
        while receiver.blocking_recv().is_some() {
            late += 1;
        }
        assert!(late < 4000, "{late}");
        assert_eq!(pool.want(), 0);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn a_game_is_held_from_the_grant_until_it_is_sent_or_the_job_changes() {
        let (sender, _receiver) = unbounded_channel();
        let (pool, threads) = WorkerPool::open(1, &sender);
        let (old, new) = (job(b"old"), job(b"new"));
        pool.hold(old.job_hash, &grants(0..3));
        assert_eq!(pool.held(), (Some(old.job_hash), vec![0, 1, 2]));
        // The job is loaded now; the games are still held.
        pool.set_job(Some(Arc::clone(&old)));
        pool.release(old.job_hash, 1);
        pool.release(new.job_hash, 2);
        assert_eq!(pool.held(), (Some(old.job_hash), vec![0, 2]));
        pool.hold(new.job_hash, &grants(7..9));
        assert_eq!(pool.held(), (Some(new.job_hash), vec![7, 8]));
        pool.set_job(Some(new));
        pool.set_job(None);
        assert_eq!(pool.held(), (None, vec![]));
        pool.close();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn a_new_job_stops_the_old_one() {
        let (sender, mut receiver) = unbounded_channel();
        let (pool, threads) = WorkerPool::open(1, &sender);
        drop(sender);
        let (old, new) = (job(b"old"), job(b"new"));
        pool.set_job(Some(Arc::clone(&old)));
        pool.add(&old.job_hash, grants(0..1000));
        pool.set_job(Some(Arc::clone(&new)));
        pool.add(&old.job_hash, grants(0..1000));
        pool.add(&new.job_hash, grants(7..8));
        loop {
            let finished = receiver.blocking_recv().unwrap();
            if finished.job_hash == new.job_hash {
                assert_eq!(finished.envelope.number, 7);
                break;
            }
        }
        pool.close();
        assert!(receiver.blocking_recv().is_none());
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
