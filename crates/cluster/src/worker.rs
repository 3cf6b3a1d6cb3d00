//! A worker: asks for games, plays them, sends them, until it is told to stop.
//!
//! It needs nothing but the address of a broker. Whatever goes away comes back: it tries again, ever
//! more slowly. It never sends a game that it was not asked for, and nothing it holds is missed when
//! it dies: its games are given to others.

use std::cell::RefCell;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::future::FusedFuture;
use futures_util::{FutureExt, StreamExt, stream};
use selfmate_arena::Pairing;
use selfmate_nn::Model;
use selfmate_selfplay::{SelfPlayConfig, evaluators};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep, timeout_at};

use crate::backoff::Backoff;
use crate::broker::{Access, Broker, Role};
use crate::envelope::load;
use crate::error::ClusterError;
use crate::hash::Hash;
use crate::job::{GenerationJob, Job, MAX_JOB, MatchJob, PROTOCOL, Task};
use crate::key::Key;
use crate::message::{Answer, Ask, Heartbeat, HeartbeatReply, decode, encode};
use crate::subject::{ASK, GAMES, HEARTBEAT, NEWS, WorkerName};
use crate::worker_pool::{ActiveJob, ActiveTask, Finished, WorkerPool};

/// How a worker works.
#[derive(Clone, Debug)]
pub struct Options {
    /// How to reach the broker.
    pub access: Access,
    /// Its name; the broker may insist on it.
    pub name: WorkerName,
    /// Threads that play.
    pub threads: usize,
}

/// What a worker tells while it works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The broker is there.
    Connected,
    /// Plays for another job: a generation of a run, or a match.
    Job(String),
    /// So many games are sent.
    Sent(u64),
    /// Something does not work; it is tried again.
    Trouble(String),
}

/// How often a worker says that it is alive: several times in the shortest lease.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(5);
/// How often the signal to stop is looked for.
const TICK: Duration = Duration::from_millis(100);
/// Messages that are sent at the same time.
const SENDING: usize = 16;
/// Games of one message, at most.
const TOGETHER: usize = 8;
/// How long a game waits for others to go with it.
const MOMENT: Duration = Duration::from_millis(500);
/// The longest wait before a game is sent again.
const RESEND: Duration = Duration::from_secs(2);
/// How long a worker that stops goes on trying to send its games.
const PARTING: Duration = Duration::from_secs(30);
/// No network is larger.
const MAX_NETWORK: usize = 1 << 30;

/// Works until `stop` is set; how many games were sent. Returns early only when the learner refuses
/// this worker, or when the broker's address can never work.
pub fn work(
    options: &Options,
    stop: &AtomicBool,
    tell: &dyn Fn(Event),
) -> Result<u64, ClusterError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ClusterError::Runtime)?;
    runtime.block_on(async {
        let Some(broker) = connect(options, stop, tell).await? else { return Ok(0) };
        tell(Event::Connected);
        let (sender, mut finished) = unbounded_channel();
        let (pool, threads) = WorkerPool::open(options.threads, &sender);
        drop(sender);
        let worker = Worker {
            options,
            broker,
            pool,
            tell,
            nonce: Key::random()?,
            messages: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            networks: RefCell::default(),
            news: Notify::new(),
        };
        let outcome = worker.run(stop, &mut finished).await;
        worker.pool.set_job(None);
        worker.pool.close();
        let panics = threads.into_iter().map(JoinHandle::join).filter(Result::is_err).count();
        outcome?;
        if panics > 0 {
            return Err(ClusterError::Panicked { threads: panics });
        }
        Ok(worker.sent.load(Relaxed))
    })
}

/// The first connection, however long it takes; `None` when told to stop before.
async fn connect(
    options: &Options,
    stop: &AtomicBool,
    tell: &dyn Fn(Event),
) -> Result<Option<Broker>, ClusterError> {
    let Options { access, name, .. } = options;
    let mut backoff = Backoff::new(name.as_str());
    let mut patience = Patience::default();
    while !stop.load(Relaxed) {
        let connected = tokio::select! {
            connected = Broker::connect(access, Role::Worker(name)) => connected,
            () = until(stop) => break,
        };
        match connected {
            Ok(broker) => return Ok(Some(broker)),
            Err(error) if patience.is_over(&error, Instant::now()) => return Err(error),
            Err(error) => tell(Event::Trouble(error.to_string())),
        }
        tokio::select! {
            () = sleep(backoff.next_wait()) => {}
            () = until(stop) => {}
        }
    }
    Ok(None)
}

/// Tells a broker that is down, which is waited for, from one that will never be there.
#[derive(Debug, Default)]
struct Patience {
    /// Since when nobody has known the broker's name, or its certificate has not been accepted.
    unreachable_since: Option<Instant>,
}

/// How long a name that nobody knows is tried: a broker that is being started may get its name later
/// than its workers.
const NAME: Duration = Duration::from_secs(30);

impl Patience {
    /// True when trying again makes no sense.
    fn is_over(&mut self, error: &ClusterError, now: Instant) -> bool {
        match error {
            ClusterError::Broker { .. } => {
                self.unreachable_since = None;
                false
            }
            ClusterError::Unreachable { .. } => {
                now.duration_since(*self.unreachable_since.get_or_insert(now)) >= NAME
            }
            // A wrong address, or files that cannot be read.
            _ => true,
        }
    }
}

async fn until(stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        sleep(TICK).await;
    }
}

struct Worker<'a> {
    options: &'a Options,
    broker: Broker,
    pool: Arc<WorkerPool>,
    tell: &'a dyn Fn(Event),
    /// Makes ids of messages that no other process uses.
    nonce: Key,
    /// Messages with games, whether the broker has them or not.
    messages: AtomicU64,
    /// Games that the broker has.
    sent: AtomicU64,
    /// Networks that were fetched last.
    networks: RefCell<Vec<(Hash, Arc<[u8]>)>>,
    /// The learner has something new.
    news: Notify,
}

impl Worker<'_> {
    async fn run(
        &self,
        stop: &AtomicBool,
        finished: &mut UnboundedReceiver<Finished>,
    ) -> Result<(), ClusterError> {
        // Whoever had this name before has forgotten its games.
        let _ = self.heartbeat(true).await;
        // The same one to the end: a game that is being sent when the signal comes is not forgotten.
        let mut sending = pin!(self.send_games(finished).fuse());
        tokio::select! {
            outcome = self.ask_for_games() => return outcome,
            () = &mut sending => {}
            () = self.keep_alive() => {}
            () = self.hear_news() => {}
            () = until(stop) => {}
        }
        // Games under way are finished and sent; the rest goes to others.
        self.pool.close();
        if !sending.is_terminated() {
            tokio::select! {
                () = &mut sending => {}
                () = self.keep_alive() => {}
            }
        }
        let _ = self.heartbeat(true).await;
        Ok(())
    }

    /// Keeps the pool supplied; ends only when the learner refuses this worker.
    async fn ask_for_games(&self) -> Result<(), ClusterError> {
        let mut backoff = Backoff::new(self.options.name.as_str());
        loop {
            let want = self.pool.want();
            if want == 0 {
                self.pool.hungry.notified().await;
                continue;
            }
            match self.ask(want).await {
                Ok(Some(Answer::Work { job, games })) => {
                    self.pool.hold(job, &games);
                    match self.follow(job).await {
                        Ok(()) => {
                            backoff.reset();
                            self.pool.add(&job, games);
                        }
                        Err(error) => {
                            // Others may be able to play them.
                            self.pool.set_job(None);
                            let _ = self.heartbeat(true).await;
                            self.trouble(&error, &mut backoff).await;
                        }
                    }
                }
                Ok(Some(Answer::Wait { milliseconds })) => {
                    backoff.reset();
                    self.wait(Duration::from_millis(milliseconds.clamp(50, 30_000))).await;
                }
                Ok(Some(Answer::Refused { reason })) => return Err(ClusterError::Refused(reason)),
                Ok(None) => {
                    let url = self.options.access.url.clone();
                    self.trouble(&ClusterError::NoLearner { url }, &mut backoff).await;
                }
                Err(error) => self.trouble(&error, &mut backoff).await,
            }
        }
    }

    /// Tells of trouble and waits a while, or until the learner has something new.
    async fn trouble(&self, error: &ClusterError, backoff: &mut Backoff) {
        (self.tell)(Event::Trouble(error.to_string()));
        self.wait(backoff.next_wait()).await;
    }

    async fn wait(&self, wait: Duration) {
        tokio::select! {
            () = sleep(wait) => {}
            () = self.news.notified() => {}
        }
    }

    /// Asks for games; `None` when nobody is there to ask.
    async fn ask(&self, want: usize) -> Result<Option<Answer>, ClusterError> {
        let Options { name, threads, .. } = self.options;
        let (job, has) = self.pool.held();
        let ask = Ask {
            job,
            has,
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            threads: u32::try_from(*threads).unwrap_or(u32::MAX),
            want: u32::try_from(want).unwrap_or(u32::MAX),
        };
        let answer = self.broker.request(&name.subject(ASK), encode(&ask), ANSWER).await?;
        answer.map(|bytes| decode(&bytes)).transpose().map_err(unreadable)
    }

    /// Sees to it that the pool plays for an job.
    async fn follow(&self, job: Hash) -> Result<(), ClusterError> {
        let old = self.pool.job();
        if old.as_ref().is_some_and(|active| active.hash == job) {
            return Ok(());
        }
        let bytes = self.broker.fetch("job", &job, MAX_JOB).await?;
        let (task, what) = match Job::parse(&bytes)?.task {
            Task::Generation(generation) => self.prepare_generation(&generation).await?,
            Task::Match(match_job) => self.prepare_match(&match_job).await?,
        };
        self.pool.set_job(Some(Arc::new(ActiveJob::new(job, task))));
        (self.tell)(Event::Job(what));
        Ok(())
    }

    async fn prepare_generation(
        &self,
        job: &GenerationJob,
    ) -> Result<(ActiveTask, String), ClusterError> {
        let bytes = self.network(&job.network).await?;
        let decoded = Model::decode(&bytes);
        let (model, _) = decoded.map_err(|error| ClusterError::Network(error.to_string()))?;
        let GenerationJob { run, generation, step, .. } = job;
        let what = format!("run {run}, generation {generation}, network {step}");
        let evaluators = evaluators(&model);
        let generation = job.generation();
        check_memory(&generation.config, self.options.threads)?;
        Ok((ActiveTask::SelfPlay { generation, evaluators }, what))
    }

    async fn prepare_match(
        &self,
        match_job: &MatchJob,
    ) -> Result<(ActiveTask, String), ClusterError> {
        let mut networks = [None, None];
        for (network, contestant) in networks.iter_mut().zip([&match_job.a, &match_job.b]) {
            if let Some(hash) = &contestant.network {
                *network = Some(self.network(hash).await?);
            }
        }
        let ready = match_job.prepare(networks)?;
        // What cannot be built is given back before anybody waits for it.
        let [a, b] = &ready.players;
        let built = Pairing::new([a, b], ready.seed);
        built.map_err(|error| ClusterError::Network(error.to_string()))?;
        Ok((ActiveTask::Match(ready.into()), format!("match {}", match_job.name)))
    }

    /// The file of a network, fetched once.
    async fn network(&self, hash: &Hash) -> Result<Arc<[u8]>, ClusterError> {
        let known = |networks: &Vec<(Hash, Arc<[u8]>)>| {
            networks.iter().find(|(known, _)| known == hash).map(|(_, bytes)| Arc::clone(bytes))
        };
        if let Some(bytes) = known(&self.networks.borrow()) {
            return Ok(bytes);
        }
        let bytes: Arc<[u8]> = self.broker.fetch("network", hash, MAX_NETWORK).await?.into();
        let mut networks = self.networks.borrow_mut();
        // Those of the two players of a match.
        networks.truncate(1);
        networks.insert(0, (*hash, Arc::clone(&bytes)));
        Ok(bytes)
    }

    /// Sends games as they end, several messages at a time; ends when there will be no more.
    async fn send_games(&self, finished: &mut UnboundedReceiver<Finished>) {
        let games = stream::unfold(finished, async |finished| {
            let games = self.gather(finished).await?;
            Some((games, finished))
        });
        games.for_each_concurrent(SENDING, |games| self.send(games)).await;
    }

    /// The games that end within a moment, or sooner when there are no others under way; `None` when
    /// there will be no more.
    async fn gather(&self, finished: &mut UnboundedReceiver<Finished>) -> Option<Vec<Finished>> {
        let mut games = vec![finished.recv().await?];
        let until = Instant::now() + MOMENT;
        while games.len() < TOGETHER && !self.pool.is_idle() {
            match timeout_at(until, finished.recv()).await {
                Ok(Some(game)) => games.push(game),
                Ok(None) | Err(_) => break,
            }
        }
        Some(games)
    }

    /// Sends games, in as few messages as they fit into.
    async fn send(&self, games: Vec<Finished>) {
        let mut games = games.into_iter().peekable();
        while games.peek().is_some() {
            let (mut message, mut loaded) = (Vec::new(), Vec::new());
            while let Some(game) = games.next_if(|game| load(&mut message, &game.envelope.encode()))
            {
                loaded.push(game);
            }
            self.send_message(&loaded, message).await;
            for game in loaded {
                self.pool.release(game.hash, game.envelope.number);
            }
        }
    }

    /// Sends a message until the broker has it, or nobody wants what is in it any more.
    async fn send_message(&self, games: &[Finished], message: Vec<u8>) {
        let Some(job) = games.first().map(|game| game.hash) else { return };
        let mut backoff = Backoff::new(self.options.name.as_str()).at_most(RESEND);
        // The same for all tries, so that the broker keeps one; another when the same game is
        // played once more, so that it is not taken for an old one.
        let id = self.nonce.token(&self.options.name, &job, self.messages.fetch_add(1, Relaxed));
        loop {
            let subject = self.options.name.subject(GAMES);
            let Err(error) = self.broker.send(subject, &id, message.clone()).await else {
                let count = games.len() as u64;
                (self.tell)(Event::Sent(self.sent.fetch_add(count, Relaxed) + count));
                return;
            };
            let active = self.pool.job();
            let is_wanted =
                |game: &Finished| active.as_ref().is_none_or(|active| active.hash == game.hash);
            let is_late = self.pool.closed_for().is_some_and(|time| time > PARTING);
            if is_late || !games.iter().any(is_wanted) {
                return;
            }
            (self.tell)(Event::Trouble(error.to_string()));
            sleep(backoff.next_wait()).await;
        }
    }

    /// Says now and then that this worker is alive, and hears whether its games are still wanted.
    async fn keep_alive(&self) {
        loop {
            sleep(HEARTBEAT_INTERVAL).await;
            self.check_job().await;
        }
    }

    /// Says that this worker is alive; drops its games when they are not wanted any more.
    async fn check_job(&self) {
        let playing = self.pool.job();
        // The learner's silence is noticed where games are asked for.
        let Ok(Some(reply)) = self.heartbeat(false).await else { return };
        if let Some(active) = &playing {
            self.drop_unless(active.hash, reply.job);
        }
    }

    async fn heartbeat(&self, leaving: bool) -> Result<Option<HeartbeatReply>, ClusterError> {
        let (job, has) = self.pool.held();
        let heartbeat = Heartbeat { job, has, sent: self.sent.load(Relaxed), leaving };
        let subject = self.options.name.subject(HEARTBEAT);
        let answer = self.broker.request(&subject, encode(&heartbeat), ANSWER).await?;
        answer.map(|bytes| decode(&bytes)).transpose().map_err(unreadable)
    }

    /// Hears at once when there is another job.
    async fn hear_news(&self) {
        let mut backoff = Backoff::new(NEWS);
        loop {
            // Without the right to listen, a worker finds out by asking.
            if let Ok(mut news) = self.broker.client().subscribe(NEWS).await {
                while news.next().await.is_some() {
                    // Who else could have said it is not known, so only the learner's own answer
                    // counts.
                    self.check_job().await;
                    self.news.notify_one();
                }
            }
            sleep(backoff.next_wait()).await;
        }
    }

    /// Drops the games of an job when they are not wanted any more.
    fn drop_unless(&self, job: Hash, wanted: Option<Hash>) {
        if wanted != Some(job) && self.pool.job().is_some_and(|active| active.hash == job) {
            self.pool.set_job(None);
        }
    }
}

fn unreadable(what: String) -> ClusterError {
    ClusterError::Broker { doing: "reading the learner's answer".to_owned(), what }
}

/// Refuses games whose trees this worker has no memory for: its threads would panic.
fn check_memory(config: &SelfPlayConfig, threads: usize) -> Result<(), ClusterError> {
    config.check_memory(threads).map_err(|error| ClusterError::Memory(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn games_that_there_is_no_memory_for_are_refused() {
        let usual = SelfPlayConfig::default();
        check_memory(&usual, 2).unwrap();
        let large = SelfPlayConfig { memory_mb: 1 << 30, ..usual };
        let error = check_memory(&large, 2).unwrap_err().to_string();
        assert!(error.contains("MB of memory for the search trees"), "{error}");
    }

    fn options(access: Access) -> Options {
        Options { access, name: WorkerName::new("a").unwrap(), threads: 1 }
    }

    /// How a worker ends that is told to stop at the first trouble that it would wait out.
    fn outcome(access: Access) -> Result<u64, ClusterError> {
        let stop = AtomicBool::new(false);
        work(&options(access), &stop, &|event| {
            assert!(matches!(event, Event::Trouble(_)), "{event:?}");
            stop.store(true, Relaxed);
        })
    }

    #[test]
    fn an_address_that_can_never_work_is_an_error() {
        for (url, reason) in [
            ("", "names no responder"),
            ("nats://", "names no responder"),
            ("nats://127.0.0.1:99999", "port"),
            ("nats://127.0.0.1:0", "port"),
            ("nats://a b:4222", "URL is invalid"),
            ("http://127.0.0.1:4222", "scheme"),
            ("ws://127.0.0.1:4222", "ws"),
            ("127.0.0.1:4222,", "names no responder"),
            ("nats://127.0.0.1:4222,nats://[::1", "URL is invalid"),
        ] {
            let refused = outcome(Access { url: url.to_owned(), ..Access::default() });
            let error = refused.unwrap_err();
            assert!(matches!(error, ClusterError::Address { .. }), "{url}: {error}");
            assert!(error.to_string().contains(reason), "{url}: {error}");
        }
    }

    #[test]
    fn files_that_are_not_there_are_an_error() {
        let url = "nats://127.0.0.1:4222".to_owned();
        let missing = Some("nowhere.pem".into());
        for access in [
            Access { credentials: missing.clone(), ..Access::default() },
            Access { nkey: missing.clone(), ..Access::default() },
            Access { authority: missing.clone(), ..Access::default() },
            Access { certificate: missing.clone().zip(missing), ..Access::default() },
        ] {
            let error = outcome(Access { url: url.clone(), ..access }).unwrap_err();
            assert!(error.to_string().starts_with("nowhere.pem: "), "{error}");
        }
    }

    #[test]
    fn a_broker_that_is_down_is_waited_for() {
        // A port that was free a moment ago: nobody listens there.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("nats://{}", listener.local_addr().unwrap());
        drop(listener);
        assert_eq!(outcome(Access { url, ..Access::default() }).unwrap(), 0);
    }

    #[test]
    fn a_name_that_nobody_knows_is_tried_for_a_while() {
        let (url, what) = ("nats://nowhere.invalid".to_owned(), "DNS error".to_owned());
        let unknown = ClusterError::Unreachable { url, what: what.clone() };
        let down = ClusterError::Broker { doing: "connecting".to_owned(), what };
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut patience = Patience::default();
        assert!(!patience.is_over(&unknown, start));
        assert!(!patience.is_over(&unknown, start + NAME - second));
        assert!(patience.is_over(&unknown, start + NAME));
        // A server that had a name and is down has all the time in the world.
        assert!(!patience.is_over(&down, start + 100 * NAME));
        assert!(!patience.is_over(&unknown, start + 100 * NAME + second));
    }
}
