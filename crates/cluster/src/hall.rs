//! Where a worker's threads play: a queue of games, and threads that take from it.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use selfmate_arena::Pairing;
use selfmate_chess::Seed;
use selfmate_learn::endgame::{self, EndgameConfig, Lab};
use selfmate_learn::selfplay::{Evaluators, Generation, Played, SelfPlayer};
use selfmate_nn::mlp::Network;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use crate::fixture::Stage;
use crate::hash::Hash;
use crate::message::Grant;
use crate::parcel::Parcel;

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
    /// The games that were lent and are not sent yet, and the order that they belong to.
    held: BTreeSet<u64>,
    held_for: Option<Hash>,
    closed: Option<Instant>,
}

/// What games are played with.
pub struct Job {
    /// The order.
    pub order: Hash,
    /// What it asks for.
    task: Task,
    /// Ends its games when set.
    cut: Arc<AtomicBool>,
    /// Games under way.
    playing: AtomicUsize,
}

/// What an order asks for.
pub enum Task {
    /// Games of a generation.
    SelfPlay {
        /// What its games share.
        generation: Generation,
        /// Its network.
        evaluators: Evaluators,
    },
    /// Games of a round of an ending.
    Ending(Ending),
    /// Games of a match.
    Match(Box<Stage>),
}

/// What games of an ending are played with.
pub struct Ending {
    /// How to play.
    pub config: EndgameConfig,
    /// The ending.
    pub lab: Lab,
    /// The network.
    pub network: Arc<Network>,
    /// The seed of all games of the run.
    pub seed: Seed,
}

/// Games of an ending that a thread asks for together: they take milliseconds.
const ENDINGS: usize = 8;

/// A game that has ended.
pub struct Finished {
    /// The order it was played for.
    pub order: Hash,
    /// The game as it is sent.
    pub parcel: Parcel,
}

impl Job {
    /// A job of which nothing is played yet.
    pub fn new(order: Hash, task: Task) -> Job {
        Job { order, task, cut: Arc::default(), playing: AtomicUsize::new(0) }
    }

    /// Games that a thread plays at a time.
    fn games_at_once(&self) -> usize {
        match &self.task {
            Task::SelfPlay { generation, .. } => generation.config.games_at_once.max(1),
            Task::Ending(_) => ENDINGS,
            Task::Match(_) => 1,
        }
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
            std::thread::spawn(move || {
                let _alarm = Alarm(&hall);
                hall.play(&done);
            })
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
        let order = state.job.as_ref().map(|job| job.order);
        if state.held_for != order {
            state.held.clear();
            state.held_for = order;
        }
        drop(state);
        self.hungry.notify_one();
    }

    /// Games of an order are lent to this worker, whether it can play them yet or not.
    pub fn hold(&self, order: Hash, games: &[Grant]) {
        let mut state = self.state();
        if state.held_for != Some(order) {
            state.held.clear();
            state.held_for = Some(order);
        }
        state.held.extend(games.iter().map(|grant| grant.number));
    }

    /// A game is sent, or will never be.
    pub fn release(&self, order: Hash, number: u64) {
        let mut state = self.state();
        if state.held_for == Some(order) {
            state.held.remove(&number);
        }
    }

    /// The games that are lent to this worker, with their order.
    pub fn held(&self) -> (Option<Hash>, Vec<u64>) {
        let state = self.state();
        (state.held_for, state.held.iter().copied().collect())
    }

    /// Adds games of an order, unless another is played by now.
    pub fn add(&self, order: &Hash, games: Vec<Grant>) {
        let mut state = self.state();
        if state.closed.is_none() && state.job.as_ref().is_some_and(|job| job.order == *order) {
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
        let mut last: Option<(Arc<Job>, Seat)> = None;
        while let Some(job) = self.wait() {
            let is_same = last.as_ref().is_some_and(|(last, _)| Arc::ptr_eq(last, &job));
            if !is_same {
                last = Some((Arc::clone(&job), Seat::new(&job.task)));
            }
            let Some((_, seat)) = &mut last else { continue };
            let tokens = RefCell::new(HashMap::new());
            let next = || {
                let grant = self.next(&job)?;
                tokens.borrow_mut().insert(grant.number, grant.token);
                Some(grant.number)
            };
            let end = |number: u64, pack: &dyn Fn(Hash) -> Option<Parcel>| {
                job.playing.fetch_sub(1, Relaxed);
                self.hungry.notify_one();
                let token = tokens.borrow_mut().remove(&number);
                match token.and_then(pack) {
                    // Nobody listens any more when the worker is gone.
                    Some(parcel) => _ = done.send(Finished { order: job.order, parcel }),
                    None => self.release(job.order, number),
                }
            };
            seat.play(&job, next, end);
        }
    }

    /// Waits until there is something to play; `None` when the hall is closed.
    fn wait(&self) -> Option<Arc<Job>> {
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

/// Whoever plays in a thread.
enum Seat {
    SelfPlay(SelfPlayer),
    Ending(Box<endgame::SelfPlayer>),
    Match(Option<Pairing>),
}

impl Seat {
    fn new(task: &Task) -> Seat {
        match task {
            Task::SelfPlay { generation, evaluators } => {
                Seat::SelfPlay(SelfPlayer::new(&generation.config, evaluators()))
            }
            Task::Ending(Ending { config, lab, network, .. }) => {
                Seat::Ending(endgame::SelfPlayer::new(config, lab, network).into())
            }
            Task::Match(stage) => {
                let [a, b] = &stage.players;
                // Both were built before the job was taken.
                Seat::Match(Pairing::new([a, b], stage.seed).ok())
            }
        }
    }

    /// Plays games as long as there are any.
    fn play(
        &mut self,
        job: &Job,
        mut next: impl FnMut() -> Option<u64>,
        mut end: impl FnMut(u64, &dyn Fn(Hash) -> Option<Parcel>),
    ) {
        match (self, &job.task) {
            (Seat::SelfPlay(player), Task::SelfPlay { generation, .. }) => {
                let end = |played: Played| {
                    // What was played here can be written.
                    end(played.record.number, &|token| Parcel::new(job.order, token, &played).ok());
                };
                player.play(generation, next, end, &job.cut);
            }
            (Seat::Ending(player), Task::Ending(ending)) => {
                while let Some(number) = next() {
                    let is_cut = || job.cut.load(Relaxed);
                    let log = player.play_until(ending.seed, number, &is_cut);
                    end(number, &|token| Some(Parcel::of_ending(job.order, token, log.as_ref()?)));
                }
            }
            (Seat::Match(Some(pairing)), Task::Match(stage)) => {
                while let Some(number) = next() {
                    let opening = stage.openings.get(&(number / 2));
                    let played = opening.and_then(|opening| {
                        pairing.play(number, opening, &stage.settings, None, &job.cut)
                    });
                    end(number, &|token| {
                        Some(Parcel::of_match(job.order, token, played.as_ref()?))
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

/// Closes the hall when a thread panics: its games would be held for ever.
struct Alarm<'a>(&'a Hall);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use selfmate_learn::endgame::EndingName;
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
        let task = Task::SelfPlay { generation: generation(), evaluators };
        Arc::new(Job::new(Hash::of(name), task))
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
            let Finished { order, parcel } = receiver.blocking_recv().unwrap();
            let (number, token) = (parcel.number, parcel.token);
            assert_eq!((order, token), (job.order, Hash::of(&number.to_le_bytes())));
            let expected = Parcel::new(order, token, &play(&generation(), number)).unwrap();
            assert_eq!(parcel, expected);
        }
        hall.add(&job.order, grants(5..5000));
        hall.close();
        // Games under way are finished, the others are not begun.
        let mut late = 0;
        while receiver.blocking_recv().is_some() {
            late += 1;
        }
        assert!(late < 4000, "{late}");
        assert_eq!(hall.want(), 0);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn a_game_of_an_ending_that_is_cut_is_given_back() {
        let config = EndgameConfig { ending: EndingName::Kpk, ..EndgameConfig::tiny() };
        let lab = Lab::new(config.ending).unwrap();
        let network = Arc::new(Network::random(config.network, Seed::new(1)).unwrap());
        let seed = Seed::new(1);
        let task = Task::Ending(Ending { config, lab, network, seed });
        let job = Job::new(Hash::of(b"one"), task);
        let mut seat = Seat::new(&job.task);
        for is_cut in [false, true] {
            job.cut.store(is_cut, Relaxed);
            let (mut numbers, mut ended) = (0..2, Vec::new());
            let end = |number, pack: &dyn Fn(Hash) -> Option<Parcel>| {
                ended.push((number, pack(Hash::of(b"token")).is_none()));
            };
            seat.play(&job, || numbers.next(), end);
            assert_eq!(ended, [(0, is_cut), (1, is_cut)]);
        }
    }

    #[test]
    fn what_is_held_is_what_was_lent_and_is_not_sent() {
        let (sender, _receiver) = unbounded_channel();
        let (hall, threads) = Hall::open(1, &sender);
        let (old, new) = (job(b"old"), job(b"new"));
        hall.hold(old.order, &grants(0..3));
        assert_eq!(hall.held(), (Some(old.order), vec![0, 1, 2]));
        // The network is there: the games are still held.
        hall.set_job(Some(Arc::clone(&old)));
        hall.release(old.order, 1);
        hall.release(new.order, 2);
        assert_eq!(hall.held(), (Some(old.order), vec![0, 2]));
        hall.hold(new.order, &grants(7..9));
        assert_eq!(hall.held(), (Some(new.order), vec![7, 8]));
        hall.set_job(Some(new));
        hall.set_job(None);
        assert_eq!(hall.held(), (None, vec![]));
        hall.close();
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
                assert_eq!(finished.parcel.number, 7);
                break;
            }
        }
        hall.close();
        assert!(receiver.blocking_recv().is_none());
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
