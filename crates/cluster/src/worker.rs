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
use selfmate_learn::endgame::{EndingName, Lab, games_seed};
use selfmate_learn::selfplay::{SelfPlayConfig, evaluators};
use selfmate_nn::{Model, mlp};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep, timeout_at};

use crate::backoff::Backoff;
use crate::broker::{Access, Broker, Role};
use crate::document::Document;
use crate::ending::EndingOrder;
use crate::error::ClusterError;
use crate::fixture::Fixture;
use crate::hall::{Ending, Finished, Hall, Job, Task};
use crate::hash::Hash;
use crate::key::Key;
use crate::message::{Answer, Ask, Beat, Pulse, decode, encode};
use crate::order::{MAX_ORDER, Order, PROTOCOL};
use crate::parcel::load;
use crate::subject::{ASK, BEAT, GAMES, NEWS, WorkerName};

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
    /// Plays for another order: a generation of a run, or a match.
    Order(String),
    /// So many games are sent.
    Sent(u64),
    /// Something does not work; it is tried again.
    Trouble(String),
}

/// How often a worker says that it is alive: several times in the shortest lease.
const BEATS: Duration = Duration::from_secs(5);
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
        let (hall, threads) = Hall::open(options.threads, &sender);
        drop(sender);
        let worker = Worker {
            options,
            broker,
            hall,
            tell,
            nonce: Key::random()?,
            messages: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            networks: RefCell::default(),
            lab: RefCell::default(),
            news: Notify::new(),
        };
        let outcome = worker.run(stop, &mut finished).await;
        worker.hall.set_job(None);
        worker.hall.close();
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
    hall: Arc<Hall>,
    tell: &'a dyn Fn(Event),
    /// Makes ids of messages that no other process uses.
    nonce: Key,
    /// Messages with games, whether the broker has them or not.
    messages: AtomicU64,
    /// Games that the broker has.
    sent: AtomicU64,
    /// Networks that were fetched last.
    networks: RefCell<Vec<(Hash, Arc<[u8]>)>>,
    /// The ending that was played last.
    lab: RefCell<Option<Lab>>,
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
        let _ = self.beat(true).await;
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
        self.hall.close();
        if !sending.is_terminated() {
            tokio::select! {
                () = &mut sending => {}
                () = self.keep_alive() => {}
            }
        }
        let _ = self.beat(true).await;
        Ok(())
    }

    /// Keeps the hall supplied; ends only when the learner refuses this worker.
    async fn ask_for_games(&self) -> Result<(), ClusterError> {
        let mut backoff = Backoff::new(self.options.name.as_str());
        loop {
            let want = self.hall.want();
            if want == 0 {
                self.hall.hungry.notified().await;
                continue;
            }
            match self.ask(want).await {
                Ok(Some(Answer::Work { order, games })) => {
                    self.hall.hold(order, &games);
                    match self.follow(order).await {
                        Ok(()) => {
                            backoff.reset();
                            self.hall.add(&order, games);
                        }
                        Err(error) => {
                            // Others may be able to play them.
                            self.hall.set_job(None);
                            let _ = self.beat(true).await;
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
        let (order, has) = self.hall.held();
        let ask = Ask {
            order,
            has,
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            threads: u32::try_from(*threads).unwrap_or(u32::MAX),
            want: u32::try_from(want).unwrap_or(u32::MAX),
        };
        let answer = self.broker.request(&name.subject(ASK), encode(&ask), ANSWER).await?;
        answer.map(|bytes| decode(&bytes)).transpose().map_err(unreadable)
    }

    /// Sees to it that the hall plays for an order.
    async fn follow(&self, order: Hash) -> Result<(), ClusterError> {
        let old = self.hall.job();
        if old.as_ref().is_some_and(|job| job.order == order) {
            return Ok(());
        }
        let bytes = self.broker.fetch("order", &order, MAX_ORDER).await?;
        let (task, what) = match Document::parse(&bytes)? {
            Document::Generation(order) => self.prepare_generation(&order).await?,
            Document::Round(order) => self.prepare_round(order).await?,
            Document::Match(fixture) => self.prepare_match(&fixture).await?,
        };
        self.hall.set_job(Some(Arc::new(Job::new(order, task))));
        (self.tell)(Event::Order(what));
        Ok(())
    }

    async fn prepare_generation(&self, order: &Order) -> Result<(Task, String), ClusterError> {
        let bytes = self.network(&order.network).await?;
        let decoded = Model::decode(&bytes);
        let (model, _) = decoded.map_err(|error| ClusterError::Network(error.to_string()))?;
        let Order { run, generation, step, .. } = order;
        let what = format!("run {run}, generation {generation}, network {step}");
        let evaluators = evaluators(&model);
        let generation = order.generation();
        check_memory(&generation.config, self.options.threads)?;
        Ok((Task::SelfPlay { generation, evaluators }, what))
    }

    async fn prepare_round(&self, order: EndingOrder) -> Result<(Task, String), ClusterError> {
        let bytes = self.network(&order.network).await?;
        let unusable = |error: String| ClusterError::Network(error);
        let (network, _) =
            mlp::Network::decode(&bytes).map_err(|error| unusable(error.to_string()))?;
        let EndingOrder { run, seed, round, step, endgame: config, .. } = order;
        let what = format!("run {run}, round {round}, network {step}");
        let lab = self.lab(config.ending)?;
        let seed = games_seed(seed);
        Ok((Task::Ending(Ending { config, lab, network: Arc::new(network), seed }), what))
    }

    /// The ending, solved once.
    fn lab(&self, ending: EndingName) -> Result<Lab, ClusterError> {
        let mut known = self.lab.borrow_mut();
        match &*known {
            Some(lab) if lab.ending() == ending => Ok(lab.clone()),
            _ => {
                let lab = Lab::new(ending);
                let lab = lab.map_err(|error| ClusterError::Network(error.to_string()))?;
                Ok(known.insert(lab).clone())
            }
        }
    }

    async fn prepare_match(&self, fixture: &Fixture) -> Result<(Task, String), ClusterError> {
        let mut networks = [None, None];
        for (network, contestant) in networks.iter_mut().zip([&fixture.a, &fixture.b]) {
            if let Some(hash) = &contestant.network {
                *network = Some(self.network(hash).await?);
            }
        }
        let stage = fixture.stage(networks)?;
        // What cannot be built is given back before anybody waits for it.
        let [a, b] = &stage.players;
        let built = Pairing::new([a, b], stage.seed);
        built.map_err(|error| ClusterError::Network(error.to_string()))?;
        Ok((Task::Match(stage.into()), format!("match {}", fixture.name)))
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
        while games.len() < TOGETHER && !self.hall.is_idle() {
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
            while let Some(game) = games.next_if(|game| load(&mut message, &game.parcel.encode())) {
                loaded.push(game);
            }
            self.send_message(&loaded, message).await;
            for game in loaded {
                self.hall.release(game.order, game.parcel.number);
            }
        }
    }

    /// Sends a message until the broker has it, or nobody wants what is in it any more.
    async fn send_message(&self, games: &[Finished], message: Vec<u8>) {
        let Some(order) = games.first().map(|game| game.order) else { return };
        let mut backoff = Backoff::new(self.options.name.as_str()).at_most(RESEND);
        // The same for all tries, so that the broker keeps one; another when the same game is
        // played once more, so that it is not taken for an old one.
        let id = self.nonce.token(&self.options.name, &order, self.messages.fetch_add(1, Relaxed));
        loop {
            let subject = self.options.name.subject(GAMES);
            let Err(error) = self.broker.send(subject, &id, message.clone()).await else {
                let count = games.len() as u64;
                (self.tell)(Event::Sent(self.sent.fetch_add(count, Relaxed) + count));
                return;
            };
            let job = self.hall.job();
            let is_wanted =
                |game: &Finished| job.as_ref().is_none_or(|job| job.order == game.order);
            let is_late = self.hall.closed_for().is_some_and(|time| time > PARTING);
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
            sleep(BEATS).await;
            self.check_order().await;
        }
    }

    /// Says that this worker is alive; drops its games when they are not wanted any more.
    async fn check_order(&self) {
        let playing = self.hall.job();
        // The learner's silence is noticed where games are asked for.
        let Ok(Some(pulse)) = self.beat(false).await else { return };
        if let Some(job) = &playing {
            self.drop_unless(job.order, pulse.order);
        }
    }

    async fn beat(&self, leaving: bool) -> Result<Option<Pulse>, ClusterError> {
        let (order, has) = self.hall.held();
        let beat = Beat { order, has, sent: self.sent.load(Relaxed), leaving };
        let subject = self.options.name.subject(BEAT);
        let answer = self.broker.request(&subject, encode(&beat), ANSWER).await?;
        answer.map(|bytes| decode(&bytes)).transpose().map_err(unreadable)
    }

    /// Hears at once when there is another order.
    async fn hear_news(&self) {
        let mut backoff = Backoff::new(NEWS);
        loop {
            // Without the right to listen, a worker finds out by asking.
            if let Ok(mut news) = self.broker.client().subscribe(NEWS).await {
                while news.next().await.is_some() {
                    // Who else could have said it is not known, so only the learner's own answer
                    // counts.
                    self.check_order().await;
                    self.news.notify_one();
                }
            }
            sleep(backoff.next_wait()).await;
        }
    }

    /// Drops the games of an order when they are not wanted any more.
    fn drop_unless(&self, order: Hash, wanted: Option<Hash>) {
        if wanted != Some(order) && self.hall.job().is_some_and(|job| job.order == order) {
            self.hall.set_job(None);
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
            ("", "names no host"),
            ("nats://", "names no host"),
            ("nats://127.0.0.1:99999", "port"),
            ("nats://127.0.0.1:0", "port"),
            ("nats://a b:4222", "URL is invalid"),
            ("http://127.0.0.1:4222", "scheme"),
            ("ws://127.0.0.1:4222", "ws"),
            ("127.0.0.1:4222,", "names no host"),
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
