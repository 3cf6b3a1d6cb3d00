//! The coordinator: publishes a job, lends its games, and receives what workers send. A learner or a
//! match runs one. It does not look into games and does not know what they are for; the collector
//! validates them.

mod responder;
mod state;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::{AckKind, Message};
use selfmate_selfplay::TICK;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::backoff::Backoff;
use crate::ban::Bans;
use crate::broker::{Access, Broker, Role, Storage};
use crate::envelope::split_message;
use crate::error::ClusterError;
use crate::hash::Hash;
use crate::key::Key;
use crate::leader;
use crate::lease::Terms;
use crate::subject::{GAMES, NEWS, WorkerName};
use responder::Responder;
use state::CoordinatorState;

pub struct Coordinator {
    runtime: Runtime,
    pub responder: Responder,
    games: mpsc::Receiver<Message>,
    pub key: Key,
    /// Objects in the object store, newest last.
    published: Vec<Hash>,
    /// Removes old objects.
    cleanup: Option<JoinHandle<()>>,
    /// Publishes objects again that the broker has lost.
    republishing: Option<JoinHandle<()>>,
    /// Acknowledges the last messages.
    acknowledging: Option<JoinHandle<()>>,
}

pub struct Setup {
    pub access: Access,
    pub storage: Storage,
    /// Of the run or match, for people.
    pub name: String,
    pub key: Key,
    pub bans: Bans,
    pub terms: Terms,
}

/// A job and the games of it that are missing.
pub struct Announcement {
    pub job: Hash,
    /// The generation of a run, or the round of a match.
    pub generation: u64,
    /// For the status report; of a match, the network of one player.
    pub network: Option<Hash>,
    /// The networks and the job itself, which comes last.
    pub objects: Vec<(Hash, Arc<[u8]>)>,
    /// The numbers of the missing games.
    pub numbers: Vec<u64>,
}

/// The caller that a coordinator works for.
pub trait Caller {
    /// False when the time is up or a stop was requested.
    fn should_continue(&mut self) -> bool;
    /// Shows a message to the user.
    fn note(&mut self, text: &str);
}

/// Messages whose games are written to disk together.
const MAX_BATCH: usize = 256;
/// How long messages are gathered into a batch.
const BATCH_WAIT: Duration = Duration::from_millis(250);
/// The same when no game is missing.
const SHORT_BATCH_WAIT: Duration = Duration::from_millis(20);
/// Jobs and networks that stay published: slow workers may still fetch earlier ones.
const KEPT_OBJECTS: usize = 8;
/// The slowest upload of a network that does not time out, in bytes per second.
const MIN_UPLOAD_RATE: usize = 100_000;
const REPUBLISH_INTERVAL: Duration = Duration::from_secs(5);
const BROKER_TIMEOUT: Duration = Duration::from_secs(30);

impl Coordinator {
    /// Connects, becomes the only coordinator of the account, and starts to answer workers.
    pub fn open(setup: Setup) -> Result<Coordinator, ClusterError> {
        let Setup { access, storage, name, key, bans, terms } = setup;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(ClusterError::Runtime)?;
        let state = CoordinatorState::new(name.clone(), key.clone(), bans, terms);
        let (responder, games) = runtime.block_on(async {
            let broker = Broker::connect(&access, Role::Learner).await?;
            leader::claim(&broker, &name, &access.url).await?;
            set_up(&broker, storage).await?;
            Responder::start(broker, state, storage).await
        })?;
        Ok(Coordinator {
            runtime,
            responder,
            games,
            key,
            published: Vec::new(),
            cleanup: None,
            republishing: None,
            acknowledging: None,
        })
    }

    /// Publishes a job and starts to lend its games. Returns false if the caller stopped before that.
    pub fn begin(&mut self, announcement: Announcement, caller: &mut dyn Caller) -> bool {
        let Announcement { job, generation, network, objects, numbers } = announcement;
        if !self.publish(&objects, caller) {
            return false;
        }
        self.republishing = Some(self.keep_published(objects));
        self.responder.lock_state().begin(job, generation, network, numbers);
        self.announce_job();
        true
    }

    /// Ends the job: no more games are lent.
    pub fn end(&mut self) {
        if let Some(republishing) = self.republishing.take() {
            republishing.abort();
        }
        self.responder.lock_state().end();
        self.announce_job();
    }

    /// Publishes objects under their hashes and retries until it succeeds. Returns false if the
    /// caller stopped before that.
    fn publish(&mut self, objects: &[(Hash, Arc<[u8]>)], caller: &mut dyn Caller) -> bool {
        // Its list is outdated: it would remove the new objects.
        if let Some(cleanup) = self.cleanup.take() {
            cleanup.abort();
        }
        let mut backoff = Backoff::new("publish");
        for (hash, bytes) in objects {
            let hash = *hash;
            loop {
                let publish = self.responder.broker().publish(&hash, bytes);
                let time =
                    BROKER_TIMEOUT + Duration::from_secs((bytes.len() / MIN_UPLOAD_RATE) as u64);
                let published =
                    self.runtime.block_on(async { tokio::time::timeout(time, publish).await });
                let what = match published {
                    Ok(Ok(())) => break,
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "the broker does not answer".to_owned(),
                };
                caller.note(&format!("{what}; trying again"));
                if !wait(backoff.next_wait(), caller) {
                    return false;
                }
            }
            self.published.retain(|&known| known != hash);
            self.published.push(hash);
        }
        let old = self.published.len().saturating_sub(KEPT_OBJECTS);
        self.published.drain(..old);
        let (broker, kept) = (self.responder.broker().clone(), self.published.clone());
        // Old objects only take space. If this fails, the next job tries again.
        self.cleanup = Some(self.runtime.spawn(async move { _ = broker.keep_only(&kept).await }));
        true
    }

    /// Publishes objects again whenever the broker has lost them, until the handle is aborted.
    fn keep_published(&self, objects: Vec<(Hash, Arc<[u8]>)>) -> JoinHandle<()> {
        let broker = self.responder.broker().clone();
        self.runtime.spawn(async move {
            loop {
                tokio::time::sleep(REPUBLISH_INTERVAL).await;
                for (hash, bytes) in &objects {
                    // A failure is retried in the next round.
                    let _ = broker.publish(hash, bytes).await;
                }
            }
        })
    }

    /// The sender of a message and its envelopes. `None` if the sender is unknown or banned, or if the
    /// message cannot be split; the status report counts these.
    pub fn envelopes<'m>(&self, message: &'m Message) -> Option<(WorkerName, Vec<&'m [u8]>)> {
        let now = self.responder.now();
        let mut state = self.responder.lock_state();
        let Some(worker) = WorkerName::of_subject(GAMES, &message.subject) else {
            state.count_stranger();
            return None;
        };
        if state.is_banned(&worker) {
            state.count_rejection(&worker, "banned", now);
            return None;
        }
        match split_message(&message.payload) {
            Ok(envelopes) => Some((worker, envelopes)),
            Err(rejection) => {
                state.count_rejection(&worker, rejection.kind(), now);
                None
            }
        }
    }

    /// Tells all workers that the current job has changed.
    fn announce_job(&self) {
        let job = self.responder.lock_state().job();
        let client = self.responder.broker().client().clone();
        let payload = job.map_or(Vec::new(), |hash| hash.to_string().into_bytes());
        // A worker that misses it learns of the change from its next heartbeat.
        self.runtime.spawn(async move { client.publish(NEWS, payload.into()).await });
    }

    /// Receives a batch of messages, so that one sync to disk serves all of them. Returns early when
    /// there are as many messages as missing games.
    pub fn receive(&mut self) -> Vec<Message> {
        let missing = self.responder.lock_state().missing();
        let enough = missing.clamp(1, MAX_BATCH);
        // When only audits are pending, the collector should see their end soon.
        let time = if missing == 0 { SHORT_BATCH_WAIT } else { BATCH_WAIT };
        let (games, mut messages) = (&mut self.games, Vec::new());
        let receive = async {
            while messages.len() < enough {
                let room = MAX_BATCH - messages.len();
                if games.recv_many(&mut messages, room).await == 0 {
                    // The sender is gone: wait for the timeout.
                    std::future::pending::<()>().await;
                }
            }
        };
        // Messages received before the timeout are in `messages`.
        let _ = self.runtime.block_on(async { tokio::time::timeout(time, receive).await });
        messages
    }

    pub fn acknowledge(&mut self, messages: Vec<(Message, AckKind)>) {
        if messages.is_empty() {
            return;
        }
        self.acknowledging = Some(self.runtime.spawn(async move {
            for (message, kind) in messages {
                // A message without acknowledgement is delivered again; its games are duplicates.
                let _ = message.ack_with(kind).await;
            }
        }));
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        if let Some(last) = self.acknowledging.take() {
            let time = Duration::from_secs(1);
            // Messages without acknowledgement go to the next coordinator, which rejects them as late.
            let _ = self.runtime.block_on(async { tokio::time::timeout(time, last).await });
        }
    }
}

/// Sleeps. Returns false as soon as the caller stops.
fn wait(duration: Duration, caller: &mut dyn Caller) -> bool {
    let mut left = duration;
    while !left.is_zero() {
        if !caller.should_continue() {
            return false;
        }
        let step = left.min(TICK);
        std::thread::sleep(step);
        left -= step;
    }
    true
}

/// Retries for a while: brokers that have just started must first elect a leader.
async fn set_up(broker: &Broker, storage: Storage) -> Result<(), ClusterError> {
    let (began, mut backoff) = (Instant::now(), Backoff::new("set-up"));
    loop {
        match broker.set_up(storage).await {
            Err(_) if began.elapsed() < BROKER_TIMEOUT => {
                tokio::time::sleep(backoff.next_wait()).await;
            }
            outcome => return outcome,
        }
    }
}
