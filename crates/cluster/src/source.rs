//! Games from many machines, as a source of games for any learner from self-play.
//!
//! What comes in is checked, written to the learner's own disk, and only then acknowledged. Part of
//! it is played again before the generation is over. The learner itself does not know the
//! difference, and a run may change between this and the threads of one process at any time.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use async_nats::jetstream::{AckKind, Message};
use selfmate_learn::LearnError;
use selfmate_learn::selfplay::{Harvest, Source, TICK, Tray, Work, evaluators};
use selfmate_nn::Model;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::audit::Exactness;
use crate::auditor::Auditor;
use crate::backoff::Backoff;
use crate::ban::Bans;
use crate::broker::{Access, Broker, Role, Storage};
use crate::error::ClusterError;
use crate::hash::Hash;
use crate::host::Host;
use crate::intake::Intake;
use crate::key::Key;
use crate::lease::Terms;
use crate::office::Office;
use crate::order::{Order, PROTOCOL};
use crate::provenance::Provenance;
use crate::shift::Shift;
use crate::status::Report;
use crate::subject::{NEWS, STATUS};

/// How a learner uses a cluster.
#[derive(Clone, Debug)]
pub struct Options {
    /// How to reach the broker.
    pub access: Access,
    /// How games are kept there.
    pub storage: Storage,
    /// The name of the run.
    pub run: String,
    /// The folder of the run.
    pub folder: PathBuf,
    /// Threads for playing games again.
    pub threads: usize,
    /// The share of games that are played again.
    pub audit_share: f64,
    /// How long games are lent.
    pub terms: Terms,
}

/// Games from many machines.
pub struct Cluster {
    pub(crate) options: Options,
    runtime: Runtime,
    pub(crate) host: Host,
    games: mpsc::Receiver<Message>,
    pub(crate) key: Key,
    pub(crate) provenance: Provenance,
    /// Games of earlier generations that must go.
    pub(crate) purge: BTreeSet<u64>,
    /// What was published last, newest last.
    published: Vec<Hash>,
    /// Removes what was published before.
    tidying: Option<JoinHandle<()>>,
    /// Tells the broker what became of the last messages.
    acknowledging: Option<JoinHandle<()>>,
}

/// Games that are written to disk together.
const TOGETHER: usize = 256;
/// Orders and networks that stay published: workers may still fetch the one before.
const KEPT: usize = 4;
/// The slowest line that a network is published over, in bytes a second.
const SLOWEST: usize = 100_000;
/// How often to look whether the broker still has what was published.
const LOOK: Duration = Duration::from_secs(5);
/// How long the broker may take to answer.
const ANSWER: Duration = Duration::from_secs(30);
/// How long to listen for another learner.
const ALONE: Duration = Duration::from_secs(3);

impl From<ClusterError> for LearnError {
    fn from(error: ClusterError) -> LearnError {
        LearnError::Source(Box::new(error))
    }
}

impl Cluster {
    /// Connects and starts to answer workers.
    pub fn open(options: Options) -> Result<Cluster, ClusterError> {
        let folder = options.folder.join("cluster");
        fs::create_dir_all(&folder).map_err(ClusterError::io(&folder))?;
        let key = Key::open(&folder.join("key"))?;
        let bans = Bans::open(&folder.join("refused.jsonl"))?;
        let provenance = Provenance::new(&folder);
        let mut purge = BTreeSet::new();
        // A kill may have come between the refusal and the removal.
        for (worker, _) in bans.iter() {
            purge.extend(provenance.games_of(worker)?);
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(ClusterError::Runtime)?;
        let office = Office::new(options.run.clone(), key.clone(), bans, options.terms);
        let (host, games) = runtime.block_on(async {
            let broker = Broker::connect(&options.access, Role::Learner).await?;
            be_alone(&broker, &options.access.url).await?;
            set_up(&broker, options.storage).await?;
            Host::start(broker, office, options.storage).await
        })?;
        let published = Vec::new();
        let (tidying, acknowledging) = (None, None);
        Ok(Cluster {
            options,
            runtime,
            host,
            games,
            key,
            provenance,
            purge,
            published,
            tidying,
            acknowledging,
        })
    }

    /// Publishes an order and its network, however often it takes; false when there is no more
    /// time for it.
    fn publish(&mut self, order: &Order, model: &[u8], tray: &mut Tray<'_>) -> bool {
        // An old list must not remove what is new.
        if let Some(tidying) = self.tidying.take() {
            tidying.abort();
        }
        let text = order.to_toml();
        let objects = [(order.network, model), (order.hash(), text.as_bytes())];
        let mut backoff = Backoff::new("publish");
        for (hash, bytes) in objects {
            loop {
                let publish = self.host.broker().publish(&hash, bytes);
                let time = ANSWER + Duration::from_secs((bytes.len() / SLOWEST) as u64);
                let published =
                    self.runtime.block_on(async { tokio::time::timeout(time, publish).await });
                let what = match published {
                    Ok(Ok(())) => break,
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "the broker does not answer".to_owned(),
                };
                tray.note(&format!("{what}; trying again"));
                let wait = backoff.next_wait();
                if !self.wait(wait, tray) {
                    return false;
                }
            }
            self.published.retain(|&known| known != hash);
            self.published.push(hash);
        }
        let old = self.published.len().saturating_sub(2 * KEPT);
        self.published.drain(..old);
        let (broker, kept) = (self.host.broker().clone(), self.published.clone());
        // What is left over takes space, nothing more; the next time tries again.
        self.tidying = Some(self.runtime.spawn(async move { _ = broker.keep_only(&kept).await }));
        true
    }

    /// Waits, unless there is no more time.
    fn wait(&self, wait: Duration, tray: &mut Tray<'_>) -> bool {
        let mut left = wait;
        while !left.is_zero() {
            if !tray.goes_on() {
                return false;
            }
            let step = left.min(TICK);
            std::thread::sleep(step);
            left -= step;
        }
        true
    }

    /// Tells all workers which order games are wanted for.
    fn tell_news(&self) {
        let order = self.host.office().order();
        let client = self.host.broker().client().clone();
        let payload = order.map_or(Vec::new(), |hash| hash.to_string().into_bytes());
        // Workers that do not hear it find out by themselves a little later.
        self.runtime.spawn(async move { client.publish(NEWS, payload.into()).await });
    }

    /// Games that came in, after a tick at the latest.
    pub(crate) fn receive(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        let receive = self.games.recv_many(&mut messages, TOGETHER);
        // Nothing is lost when the time is up: it takes all at once or nothing.
        let _ = self.runtime.block_on(async { tokio::time::timeout(TICK, receive).await });
        messages
    }

    /// Tells the broker what became of messages.
    pub(crate) fn acknowledge(&mut self, messages: Vec<(Message, AckKind)>) {
        self.acknowledging = Some(self.runtime.spawn(async move {
            for (message, kind) in messages {
                // What is not acknowledged comes again, and is known by its number.
                let _ = message.ack_with(kind).await;
            }
        }));
    }

    /// Puts an order and its network back where a broker that lost its disk has lost them, until
    /// the handle is aborted.
    fn keep_published(&self, objects: Vec<(Hash, Vec<u8>)>) -> JoinHandle<()> {
        let broker = self.host.broker().clone();
        self.runtime.spawn(async move {
            loop {
                tokio::time::sleep(LOOK).await;
                for (hash, bytes) in &objects {
                    // What does not work is tried again.
                    let _ = broker.publish(hash, bytes).await;
                }
            }
        })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(last) = self.acknowledging.take() {
            let time = Duration::from_secs(1);
            // What the broker does not hear of in time is sent to the next learner, and is too late.
            let _ = self.runtime.block_on(async { tokio::time::timeout(time, last).await });
        }
    }
}

/// Two learners would take each other's games.
async fn be_alone(broker: &Broker, url: &str) -> Result<(), ClusterError> {
    // One that does not answer is as good as none.
    let Ok(Some(answer)) = broker.request(STATUS, Vec::new(), ALONE).await else { return Ok(()) };
    let report: Result<Report, _> = serde_json::from_slice(&answer);
    let run = report.map_or("another run".to_owned(), |report| format!("run '{}'", report.run));
    Err(ClusterError::Taken { url: url.to_owned(), run })
}

/// Servers that have just been started need a while to agree on who leads.
async fn set_up(broker: &Broker, storage: Storage) -> Result<(), ClusterError> {
    let (began, mut backoff) = (Instant::now(), Backoff::new("set-up"));
    loop {
        match broker.set_up(storage).await {
            Err(_) if began.elapsed() < ANSWER => tokio::time::sleep(backoff.next_wait()).await,
            outcome => return outcome,
        }
    }
}

impl Source for Cluster {
    fn play(&mut self, work: &Work<'_>, tray: &mut Tray<'_>) -> Result<Harvest, LearnError> {
        let bytes = (work.model)()?;
        // As workers get it: what they play is what is played again here.
        let (model, _) = Model::decode(&bytes)?;
        let order = Order {
            protocol: PROTOCOL,
            run: self.options.run.clone(),
            seed: work.seed,
            generation: work.index,
            step: work.generation.network,
            sims: work.generation.sims,
            network: Hash::of(&bytes),
            selfplay: work.generation.config.clone(),
        };
        let known = self.provenance.open(work.index)?;
        if !self.publish(&order, &bytes, tray) {
            return Ok(Harvest::Unripe);
        }
        let text = order.to_toml().into_bytes();
        let keeping = self.keep_published(vec![(order.network, bytes), (order.hash(), text)]);
        let exactness = Exactness::of(&model);
        let intake = Intake::new(self.key.clone(), order.hash(), work.generation.clone());
        let auditor =
            Auditor::new(self.options.threads, work.generation, evaluators(&model), exactness);
        self.host.office().begin(&order, work.numbers.iter().copied());
        self.tell_news();
        let outcome = Shift::new(self, order.hash(), intake, auditor).run(known, tray);
        keeping.abort();
        self.host.office().end();
        self.tell_news();
        outcome
    }

    fn purge(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.purge)
    }
}
