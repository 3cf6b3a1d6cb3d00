//! Answers workers and receives messages in background tasks. It connects the broker with
//! [`CoordinatorState`], which makes all decisions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::Subscriber;
use async_nats::jetstream::Message;
use futures_util::StreamExt;
use tokio::sync::mpsc;

use super::state::CoordinatorState;
use crate::backoff::Backoff;
use crate::broker::{Broker, Storage};
use crate::error::ClusterError;
use crate::message::{Ask, Heartbeat, decode, encode};
use crate::subject::{ASK, HEARTBEAT, STATUS, WorkerName};

#[derive(Clone)]
pub struct Responder {
    broker: Broker,
    state: Arc<Mutex<CoordinatorState>>,
    began: Instant,
    storage: Storage,
}

/// Messages buffered between the broker and the collector.
const BUFFERED: usize = 1024;

impl Responder {
    /// Starts the tasks. Also returns the channel of received messages.
    pub async fn start(
        broker: Broker,
        state: CoordinatorState,
        storage: Storage,
    ) -> Result<(Responder, mpsc::Receiver<Message>), ClusterError> {
        let state = Arc::new(Mutex::new(state));
        let responder = Responder { broker, state, began: Instant::now(), storage };
        let doing = "listening to workers";
        let client = responder.broker.client();
        for base in [ASK, HEARTBEAT, STATUS] {
            let subject = if base == STATUS { STATUS.to_owned() } else { format!("{base}.*") };
            let messages = client.subscribe(subject).await.map_err(ClusterError::broker(doing))?;
            tokio::spawn(responder.clone().serve(base, messages));
        }
        let (sender, receiver) = mpsc::channel(BUFFERED);
        tokio::spawn(responder.clone().receive(sender));
        Ok((responder, receiver))
    }

    /// Locks the state. Workers get no answer while it is locked, so hold it briefly.
    pub fn lock_state(&self) -> MutexGuard<'_, CoordinatorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time since the start, which is the clock of all leases.
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub const fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Answers the requests of a subscription, which survives lost connections.
    async fn serve(self, base: &'static str, mut messages: Subscriber) {
        while let Some(message) = messages.next().await {
            let Some(reply) = message.reply else { continue };
            let answer = if base == STATUS {
                Some(self.report().await)
            } else {
                self.answer(base, &message.subject, &reply, &message.payload)
            };
            if let Some(answer) = answer {
                // A worker without an answer asks again.
                let _ = self.broker.client().publish(reply, answer.into()).await;
            }
        }
    }

    /// `None` for requests that no worker of ours sends.
    fn answer(&self, base: &str, subject: &str, reply: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        let worker = WorkerName::of_subject(base, subject)?;
        // Only the worker's own inbox: otherwise a request could make the coordinator, which may
        // publish anywhere, publish on a subject that the worker has no permission for.
        let is_own = reply.strip_prefix(&worker.inbox()).is_some_and(|rest| rest.starts_with('.'));
        if !is_own {
            return None;
        }
        let now = self.now();
        if base == ASK {
            let ask: Ask = decode(bytes).ok()?;
            Some(encode(&self.lock_state().ask(&worker, &ask, now)))
        } else {
            let heartbeat: Heartbeat = decode(bytes).ok()?;
            Some(encode(&self.lock_state().heartbeat(&worker, &heartbeat, now)))
        }
    }

    async fn report(&self) -> Vec<u8> {
        let waiting = self.broker.waiting().await;
        let mut report = self.lock_state().report(self.now());
        report.waiting = waiting;
        encode(&report)
    }

    /// Passes messages on until the receiver is dropped.
    async fn receive(self, sender: mpsc::Sender<Message>) {
        let mut backoff = Backoff::new("games");
        while !sender.is_closed() {
            // A broker that lost its disk has lost the stream as well.
            let _: Result<(), ClusterError> = self.broker.set_up(self.storage).await;
            if let Ok(consumer) = self.broker.games().await
                && let Ok(mut messages) = consumer.messages().await
            {
                while let Some(Ok(message)) = messages.next().await {
                    backoff.reset();
                    if sender.send(message).await.is_err() {
                        return;
                    }
                }
            }
            tokio::time::sleep(backoff.next_wait()).await;
        }
    }
}
