//! A worker: asks for games, plays them and sends them, until it is stopped.
//!
//! It needs only the address of a broker; the job and the networks come from there. After a failure
//! it retries, with growing waits. It sends only games that were lent to it. When it dies, its games
//! are lent to others. It does not know whether its games are accepted, and is not told of audits.

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
use crate::envelope::append_envelope;
use crate::error::ClusterError;
use crate::hash::Hash;
use crate::job::{GenerationJob, Job, MAX_JOB, MatchJob, PROTOCOL, Task};
use crate::key::Key;
use crate::message::{Answer, Ask, Heartbeat, HeartbeatReply, decode, encode};
use crate::subject::{ASK, GAMES, HEARTBEAT, NEWS, WorkerName};
use crate::worker_pool::{ActiveJob, ActiveTask, Finished, WorkerPool};

#[derive(Clone, Debug)]
pub struct Options {
    pub access: Access,
    /// The broker's permissions may require a certain name.
    pub name: WorkerName,
    pub threads: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Connected,
    /// The new job, described for people.
    Job(String),
    /// Games sent since the start.
    Sent(u64),
    /// Something failed and is retried.
    Trouble(String),
}

/// Several times shorter than a lease.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the stop flag is checked.
const TICK: Duration = Duration::from_millis(100);
/// Messages sent at the same time.
const CONCURRENT_SENDS: usize = 16;
const MAX_GAMES_PER_MESSAGE: usize = 8;
/// How long a finished game waits for others to share its message.
const BATCH_WAIT: Duration = Duration::from_millis(500);
/// The longest wait before a message is sent again.
const MAX_RESEND_WAIT: Duration = Duration::from_secs(2);
/// How long a worker that is stopping tries to send its last games.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);
/// In bytes.
const MAX_NETWORK: usize = 1 << 30;

/// Works until `stop` is set. Returns the number of games sent. It returns early only when the
/// coordinator does not accept this worker, a thread panics, or the address can never work.
pub fn work(
    options: &Options,
    stop: &AtomicBool,
    report: &dyn Fn(Event),
) -> Result<u64, ClusterError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ClusterError::Runtime)?;
    runtime.block_on(async {
        let Some(broker) = connect(options, stop, report).await? else { return Ok(0) };
        report(Event::Connected);
        let (sender, mut finished) = unbounded_channel();
        let (pool, threads) = WorkerPool::open(options.threads, &sender);
        drop(sender);
        let worker = Worker {
            options,
            broker,
            pool,
            report,
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

/// Connects, and retries until it succeeds; `None` when stopped before that.
async fn connect(
    options: &Options,
    stop: &AtomicBool,
    report: &dyn Fn(Event),
) -> Result<Option<Broker>, ClusterError> {
    let Options { access, name, .. } = options;
    let mut backoff = Backoff::new(name.as_str());
    let mut retry = RetryPolicy::default();
    while !stop.load(Relaxed) {
        let connected = tokio::select! {
            connected = Broker::connect(access, Role::Worker(name)) => connected,
            () = wait_for(stop) => break,
        };
        match connected {
            Ok(broker) => return Ok(Some(broker)),
            Err(error) if retry.gives_up(&error, Instant::now()) => return Err(error),
            Err(error) => report(Event::Trouble(error.to_string())),
        }
        tokio::select! {
            () = sleep(backoff.next_wait()) => {}
            () = wait_for(stop) => {}
        }
    }
    Ok(None)
}

/// Decides when to stop trying to connect: never for a broker that is down, at once for a wrong
/// address, after a while for a name or certificate that does not work.
#[derive(Debug, Default)]
struct RetryPolicy {
    unreachable_since: Option<Instant>,
}

/// How long a host name that cannot be resolved is retried: a broker that is being started may get
/// its name later than its workers.
const UNREACHABLE_TIMEOUT: Duration = Duration::from_secs(30);

impl RetryPolicy {
    fn gives_up(&mut self, error: &ClusterError, now: Instant) -> bool {
        match error {
            ClusterError::Broker { .. } => {
                self.unreachable_since = None;
                false
            }
            ClusterError::Unreachable { .. } => {
                now.duration_since(*self.unreachable_since.get_or_insert(now))
                    >= UNREACHABLE_TIMEOUT
            }
            // A wrong address, or a file that cannot be read.
            _ => true,
        }
    }
}

async fn wait_for(stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        sleep(TICK).await;
    }
}

struct Worker<'a> {
    options: &'a Options,
    broker: Broker,
    pool: Arc<WorkerPool>,
    report: &'a dyn Fn(Event),
    /// Makes message ids that no other process uses.
    nonce: Key,
    /// Messages with games, confirmed by the broker or not.
    messages: AtomicU64,
    /// Games confirmed by the broker.
    sent: AtomicU64,
    /// The networks fetched last, newest first.
    networks: RefCell<Vec<(Hash, Arc<[u8]>)>>,
    /// The coordinator has announced another job.
    news: Notify,
}

impl Worker<'_> {
    async fn run(
        &self,
        stop: &AtomicBool,
        finished: &mut UnboundedReceiver<Finished>,
    ) -> Result<(), ClusterError> {
        // Frees the games of an earlier process with this name, which has lost them.
        let _ = self.heartbeat(true).await;
        // The same future before and after the stop, so that a message that is being sent is not lost.
        let mut sending = pin!(self.send_games(finished).fuse());
        tokio::select! {
            outcome = self.ask_for_games() => return outcome,
            () = &mut sending => {}
            () = self.keep_alive() => {}
            () = self.listen_for_jobs() => {}
            () = wait_for(stop) => {}
        }
        // Games in progress are finished and sent; the others are given back.
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

    /// Keeps the pool supplied. Returns only when the coordinator does not accept this worker.
    async fn ask_for_games(&self) -> Result<(), ClusterError> {
        let mut backoff = Backoff::new(self.options.name.as_str());
        loop {
            let want = self.pool.want();
            if want == 0 {
                self.pool.has_room.notified().await;
                continue;
            }
            match self.ask(want).await {
                Ok(Some(Answer::Work { job, games })) => {
                    self.pool.hold(job, &games);
                    match self.switch_to(job).await {
                        Ok(()) => {
                            backoff.reset();
                            self.pool.add(&job, games);
                        }
                        Err(error) => {
                            // Gives the games back: another worker may be able to play them.
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

    /// Reports a failure and waits, at most until another job is announced.
    async fn trouble(&self, error: &ClusterError, backoff: &mut Backoff) {
        (self.report)(Event::Trouble(error.to_string()));
        self.wait(backoff.next_wait()).await;
    }

    async fn wait(&self, wait: Duration) {
        tokio::select! {
            () = sleep(wait) => {}
            () = self.news.notified() => {}
        }
    }

    /// Asks for games; `None` when no coordinator listens.
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
        let answer = self.broker.request(&name.subject(ASK), encode(&ask), ANSWER_TIMEOUT).await?;
        answer.map(|bytes| decode(&bytes)).transpose().map_err(unreadable)
    }

    /// Fetches a job and gives it to the pool, unless the pool already plays it.
    async fn switch_to(&self, job: Hash) -> Result<(), ClusterError> {
        let old = self.pool.job();
        if old.as_ref().is_some_and(|active| active.job_hash == job) {
            return Ok(());
        }
        let bytes = self.broker.fetch("job", &job, MAX_JOB).await?;
        let (task, what) = match Job::parse(&bytes)?.task {
            Task::Generation(generation) => self.prepare_generation(&generation).await?,
            Task::Match(match_job) => self.prepare_match(&match_job).await?,
        };
        self.pool.set_job(Some(Arc::new(ActiveJob::new(job, task))));
        (self.report)(Event::Job(what));
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
        Ok((ActiveTask::SelfPlay { generation: Box::new(generation), evaluators }, what))
    }

    async fn prepare_match(
        &self,
        match_job: &MatchJob,
    ) -> Result<(ActiveTask, String), ClusterError> {
        let mut networks = [None, None];
        for (network, player) in networks.iter_mut().zip([&match_job.a, &match_job.b]) {
            if let Some(hash) = &player.network {
                *network = Some(self.network(hash).await?);
            }
        }
        let ready = match_job.prepare(networks)?;
        // A player that cannot be built is an error now, before any game begins.
        let [a, b] = &ready.players;
        let built = Pairing::new([a, b], ready.seed);
        built.map_err(|error| ClusterError::Network(error.to_string()))?;
        Ok((ActiveTask::Match(ready.into()), format!("match {}", match_job.name)))
    }

    /// The file of a network, from memory if it was fetched before.
    async fn network(&self, hash: &Hash) -> Result<Arc<[u8]>, ClusterError> {
        let known = |networks: &Vec<(Hash, Arc<[u8]>)>| {
            networks.iter().find(|(known, _)| known == hash).map(|(_, bytes)| Arc::clone(bytes))
        };
        if let Some(bytes) = known(&self.networks.borrow()) {
            return Ok(bytes);
        }
        let bytes: Arc<[u8]> = self.broker.fetch("network", hash, MAX_NETWORK).await?.into();
        let mut networks = self.networks.borrow_mut();
        // Two networks are enough: those of the players of a match.
        networks.truncate(1);
        networks.insert(0, (*hash, Arc::clone(&bytes)));
        Ok(bytes)
    }

    /// Sends finished games until the pool is closed and empty.
    async fn send_games(&self, finished: &mut UnboundedReceiver<Finished>) {
        let games = stream::unfold(finished, async |finished| {
            let games = self.gather(finished).await?;
            Some((games, finished))
        });
        games.for_each_concurrent(CONCURRENT_SENDS, |games| self.send(games)).await;
    }

    /// Waits for a finished game and for others to share its message, as long as any are in progress.
    /// `None` when there will be no more.
    async fn gather(&self, finished: &mut UnboundedReceiver<Finished>) -> Option<Vec<Finished>> {
        let mut games = vec![finished.recv().await?];
        let until = Instant::now() + BATCH_WAIT;
        while games.len() < MAX_GAMES_PER_MESSAGE && !self.pool.is_idle() {
            match timeout_at(until, finished.recv()).await {
                Ok(Some(game)) => games.push(game),
                Ok(None) | Err(_) => break,
            }
        }
        Some(games)
    }

    /// Sends games in as few messages as possible.
    async fn send(&self, games: Vec<Finished>) {
        let mut games = games.into_iter().peekable();
        while games.peek().is_some() {
            let (mut message, mut packed) = (Vec::new(), Vec::new());
            while let Some(game) =
                games.next_if(|game| append_envelope(&mut message, &game.envelope.encode()))
            {
                packed.push(game);
            }
            self.send_message(&packed, message).await;
            for game in packed {
                self.pool.release(game.job_hash, game.envelope.number);
            }
        }
    }

    /// Sends a message until the broker confirms it or its job has ended.
    async fn send_message(&self, games: &[Finished], message: Vec<u8>) {
        let Some(job) = games.first().map(|game| game.job_hash) else { return };
        let mut backoff = Backoff::new(self.options.name.as_str()).at_most(MAX_RESEND_WAIT);
        // The same id for all tries, so that the broker stores one of them. A replay of the same game
        // gets another id, so that the broker does not drop it as a duplicate.
        let id = self.nonce.token(&self.options.name, &job, self.messages.fetch_add(1, Relaxed));
        loop {
            let subject = self.options.name.subject(GAMES);
            let Err(error) = self.broker.send(subject, &id, message.clone()).await else {
                let count = games.len() as u64;
                (self.report)(Event::Sent(self.sent.fetch_add(count, Relaxed) + count));
                return;
            };
            let active = self.pool.job();
            let is_wanted = |game: &Finished| {
                active.as_ref().is_none_or(|active| active.job_hash == game.job_hash)
            };
            let is_late = self.pool.closed_for().is_some_and(|time| time > SHUTDOWN_TIMEOUT);
            if is_late || !games.iter().any(is_wanted) {
                return;
            }
            (self.report)(Event::Trouble(error.to_string()));
            sleep(backoff.next_wait()).await;
        }
    }

    /// Sends a heartbeat at regular intervals.
    async fn keep_alive(&self) {
        loop {
            sleep(HEARTBEAT_INTERVAL).await;
            self.check_job().await;
        }
    }

    /// Sends a heartbeat and drops the games if their job has ended.
    async fn check_job(&self) {
        let playing = self.pool.job();
        // `ask_for_games` reports a coordinator that does not answer.
        let Ok(Some(reply)) = self.heartbeat(false).await else { return };
        if let Some(active) = &playing {
            self.drop_unless(active.job_hash, reply.job);
        }
    }

    async fn heartbeat(&self, leaving: bool) -> Result<Option<HeartbeatReply>, ClusterError> {
        let (job, has) = self.pool.held();
        let heartbeat = Heartbeat { job, has, sent: self.sent.load(Relaxed), leaving };
        let subject = self.options.name.subject(HEARTBEAT);
        let answer = self.broker.request(&subject, encode(&heartbeat), ANSWER_TIMEOUT).await?;
        answer.map(|bytes| decode(&bytes)).transpose().map_err(unreadable)
    }

    /// Waits for announcements, so that a change of the job is noticed at once.
    async fn listen_for_jobs(&self) {
        let mut backoff = Backoff::new(NEWS);
        loop {
            // Without the permission to subscribe, heartbeats notice the change a little later.
            if let Ok(mut news) = self.broker.client().subscribe(NEWS).await {
                while news.next().await.is_some() {
                    // Others may have published it, so only the coordinator's reply to a heartbeat
                    // counts.
                    self.check_job().await;
                    self.news.notify_one();
                }
            }
            sleep(backoff.next_wait()).await;
        }
    }

    /// Drops the games of a job unless it is the wanted one.
    fn drop_unless(&self, job: Hash, wanted: Option<Hash>) {
        if wanted != Some(job) && self.pool.job().is_some_and(|active| active.job_hash == job) {
            self.pool.set_job(None);
        }
    }
}

fn unreadable(what: String) -> ClusterError {
    ClusterError::Broker { doing: "reading the coordinator's answer".to_owned(), what }
}

/// An error if there is no memory for the search trees: threads would panic later.
fn check_memory(config: &SelfPlayConfig, threads: usize) -> Result<(), ClusterError> {
    config.check_memory(threads).map_err(|error| ClusterError::Memory(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_needs_more_memory_than_there_is_is_rejected() {
        let usual = SelfPlayConfig::default();
        check_memory(&usual, 2).unwrap();
        let large = SelfPlayConfig { memory_mb: 1 << 30, ..usual };
        let error = check_memory(&large, 2).unwrap_err().to_string();
        assert!(error.contains("MB of memory for the search trees"), "{error}");
    }

    fn options(access: Access) -> Options {
        Options { access, name: WorkerName::new("a").unwrap(), threads: 1 }
    }

    /// Runs a worker that is stopped at its first failure that it would retry.
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
            ("", "has no host"),
            ("nats://", "has no host"),
            ("nats://127.0.0.1:99999", "port"),
            ("nats://127.0.0.1:0", "port"),
            ("nats://a b:4222", "URL is invalid"),
            ("http://127.0.0.1:4222", "scheme"),
            ("ws://127.0.0.1:4222", "'ws'"),
            ("127.0.0.1:4222,", "has no host"),
            ("nats://127.0.0.1:4222,nats://[::1", "URL is invalid"),
        ] {
            let refused = outcome(Access { url: url.to_owned(), ..Access::default() });
            let error = refused.unwrap_err();
            assert!(matches!(error, ClusterError::Address { .. }), "{url}: {error}");
            assert!(error.to_string().contains(reason), "{url}: {error}");
        }
    }

    #[test]
    fn missing_credential_files_are_an_error() {
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
    fn a_broker_that_is_down_is_retried() {
        // A port that was free a moment ago, so connections are refused.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("nats://{}", listener.local_addr().unwrap());
        drop(listener);
        assert_eq!(outcome(Access { url, ..Access::default() }).unwrap(), 0);
    }

    #[test]
    fn a_host_name_that_cannot_be_resolved_is_retried_for_a_while() {
        let (url, what) = ("nats://nowhere.invalid".to_owned(), "DNS error".to_owned());
        let unknown = ClusterError::Unreachable { url, what: what.clone() };
        let down = ClusterError::Broker { doing: "connecting".to_owned(), what };
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut retry = RetryPolicy::default();
        assert!(!retry.gives_up(&unknown, start));
        assert!(!retry.gives_up(&unknown, start + UNREACHABLE_TIMEOUT - second));
        assert!(retry.gives_up(&unknown, start + UNREACHABLE_TIMEOUT));
        // A server whose name is known and that is down is retried without limit.
        assert!(!retry.gives_up(&down, start + 100 * UNREACHABLE_TIMEOUT));
        assert!(!retry.gives_up(&unknown, start + 100 * UNREACHABLE_TIMEOUT + second));
    }
}
