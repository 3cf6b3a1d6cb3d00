//! The learner's side: announces jobs, answers workers, and receives their games. It does not know
//! what the games are for.

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
use crate::envelope::unload;
use crate::error::ClusterError;
use crate::hash::Hash;
use crate::key::Key;
use crate::leader;
use crate::lease::Terms;
use crate::subject::{GAMES, NEWS, WorkerName};
use responder::Responder;
use state::CoordinatorState;

/// The middle of a cluster.
pub struct Coordinator {
    runtime: Runtime,
    pub responder: Responder,
    games: mpsc::Receiver<Message>,
    pub key: Key,
    /// What was published last, newest last.
    published: Vec<Hash>,
    /// Removes what was published before.
    tidying: Option<JoinHandle<()>>,
    /// Puts back what the broker loses.
    keeping: Option<JoinHandle<()>>,
    /// Tells the broker what became of the last messages.
    acknowledging: Option<JoinHandle<()>>,
}

/// How a coordinator is set up.
pub struct Setup {
    /// How to reach the broker.
    pub access: Access,
    /// How games are kept there.
    pub storage: Storage,
    /// What is played, for people.
    pub name: String,
    /// The secret of its tokens.
    pub key: Key,
    /// Workers that are refused.
    pub bans: Bans,
    /// How long games are lent.
    pub terms: Terms,
}

/// Games that are wanted.
pub struct Announcement {
    /// The order that they belong to.
    pub job: Hash,
    /// Its number among those of the run or the match.
    pub generation: u64,
    /// The network that plays, or one of them.
    pub network: Option<Hash>,
    /// What workers need for it, the order itself last.
    pub objects: Vec<(Hash, Arc<[u8]>)>,
    /// The numbers of the games.
    pub numbers: Vec<u64>,
}

/// What a coordinator needs of whoever waits for it.
pub trait Waiting {
    /// False when there is no more time.
    fn goes_on(&mut self) -> bool;
    /// Says something worth knowing.
    fn note(&mut self, text: &str);
}

/// Messages whose games are written to disk together.
const TOGETHER: usize = 256;
/// How long messages are gathered, and how long when no games are missing.
const MOMENT: Duration = Duration::from_millis(250);
const INSTANT: Duration = Duration::from_millis(20);
/// Orders and networks that stay published: workers may still fetch those before.
const KEPT: usize = 8;
/// The slowest line that a network is published over, in bytes a second.
const SLOWEST: usize = 100_000;
/// How often to look whether the broker still has what was published.
const LOOK: Duration = Duration::from_secs(5);
/// How long the broker may take to answer.
const ANSWER: Duration = Duration::from_secs(30);

impl Coordinator {
    /// Connects and starts to answer workers.
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
            leader::settle(&broker, &name, &access.url).await?;
            set_up(&broker, storage).await?;
            Responder::start(broker, state, storage).await
        })?;
        let (published, tidying, keeping, acknowledging) = (Vec::new(), None, None, None);
        Ok(Coordinator {
            runtime,
            responder,
            games,
            key,
            published,
            tidying,
            keeping,
            acknowledging,
        })
    }

    /// Publishes an order and lends its games from now on; false when there was no time for it.
    pub fn begin(&mut self, announcement: Announcement, waiting: &mut dyn Waiting) -> bool {
        let Announcement { job, generation, network, objects, numbers } = announcement;
        if !self.publish(&objects, waiting) {
            return false;
        }
        self.keeping = Some(self.keep_published(objects));
        self.responder.state().begin(job, generation, network, numbers);
        self.tell_news();
        true
    }

    /// Lends no more games.
    pub fn end(&mut self) {
        if let Some(keeping) = self.keeping.take() {
            keeping.abort();
        }
        self.responder.state().end();
        self.tell_news();
    }

    /// Publishes objects under their hashes, however often it takes; false when there is no more
    /// time for it.
    fn publish(&mut self, objects: &[(Hash, Arc<[u8]>)], waiting: &mut dyn Waiting) -> bool {
        // An old list must not remove what is new.
        if let Some(tidying) = self.tidying.take() {
            tidying.abort();
        }
        let mut backoff = Backoff::new("publish");
        for (hash, bytes) in objects {
            let hash = *hash;
            loop {
                let publish = self.responder.broker().publish(&hash, bytes);
                let time = ANSWER + Duration::from_secs((bytes.len() / SLOWEST) as u64);
                let published =
                    self.runtime.block_on(async { tokio::time::timeout(time, publish).await });
                let what = match published {
                    Ok(Ok(())) => break,
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "the broker does not answer".to_owned(),
                };
                waiting.note(&format!("{what}; trying again"));
                if !wait(backoff.next_wait(), waiting) {
                    return false;
                }
            }
            self.published.retain(|&known| known != hash);
            self.published.push(hash);
        }
        let old = self.published.len().saturating_sub(KEPT);
        self.published.drain(..old);
        let (broker, kept) = (self.responder.broker().clone(), self.published.clone());
        // What is left over takes space, nothing more; the next time tries again.
        self.tidying = Some(self.runtime.spawn(async move { _ = broker.keep_only(&kept).await }));
        true
    }

    /// Puts objects back where a broker that lost its disk has lost them, until the handle is
    /// aborted.
    fn keep_published(&self, objects: Vec<(Hash, Arc<[u8]>)>) -> JoinHandle<()> {
        let broker = self.responder.broker().clone();
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

    /// Who sent a message, and what is in it; `None`, and counted, when it is nobody from whom
    /// anything is taken, or nothing that could be taken.
    pub fn envelopes<'m>(&self, message: &'m Message) -> Option<(WorkerName, Vec<&'m [u8]>)> {
        let now = self.responder.now();
        let mut state = self.responder.state();
        let Some(worker) = WorkerName::of_subject(GAMES, &message.subject) else {
            state.ignore();
            return None;
        };
        if state.is_banned(&worker) {
            state.refuse(&worker, "banned", now);
            return None;
        }
        match unload(&message.payload) {
            Ok(envelopes) => Some((worker, envelopes)),
            Err(rejection) => {
                state.refuse(&worker, rejection.kind(), now);
                None
            }
        }
    }

    /// Tells all workers which order games are wanted for.
    fn tell_news(&self) {
        let job = self.responder.state().job();
        let client = self.responder.broker().client().clone();
        let payload = job.map_or(Vec::new(), |hash| hash.to_string().into_bytes());
        // Workers that do not hear it find out by themselves a little later.
        self.runtime.spawn(async move { client.publish(NEWS, payload.into()).await });
    }

    /// Messages that came in within a moment, so that the disk is asked once for all of them; sooner
    /// when there are as many as games are missing.
    pub fn receive(&mut self) -> Vec<Message> {
        let missing = self.responder.state().missing();
        let enough = missing.clamp(1, TOGETHER);
        // When only audits are missing, their end should not wait for messages.
        let time = if missing == 0 { INSTANT } else { MOMENT };
        let (games, mut messages) = (&mut self.games, Vec::new());
        let receive = async {
            while messages.len() < enough {
                let room = TOGETHER - messages.len();
                if games.recv_many(&mut messages, room).await == 0 {
                    // Nobody sends any more.
                    std::future::pending::<()>().await;
                }
            }
        };
        // Nothing is lost when the time is up: what was received is there.
        let _ = self.runtime.block_on(async { tokio::time::timeout(time, receive).await });
        messages
    }

    /// Tells the broker what became of messages.
    pub fn acknowledge(&mut self, messages: Vec<(Message, AckKind)>) {
        if messages.is_empty() {
            return;
        }
        self.acknowledging = Some(self.runtime.spawn(async move {
            for (message, kind) in messages {
                // What is not acknowledged comes again, and is known by its number.
                let _ = message.ack_with(kind).await;
            }
        }));
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        if let Some(last) = self.acknowledging.take() {
            let time = Duration::from_secs(1);
            // What the broker does not hear of in time is sent to the next learner, and is too late.
            let _ = self.runtime.block_on(async { tokio::time::timeout(time, last).await });
        }
    }
}

/// Waits, unless there is no more time.
fn wait(wait: Duration, waiting: &mut dyn Waiting) -> bool {
    let mut left = wait;
    while !left.is_zero() {
        if !waiting.goes_on() {
            return false;
        }
        let step = left.min(TICK);
        std::thread::sleep(step);
        left -= step;
    }
    true
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
