//! A few evaluators shared by many threads. Requests wait in a queue until they fill a batch or
//! until the oldest has waited long enough.
//!
//! Every request carries a channel for its reply. If a client disappears, its reply is dropped.
//! When the last client is gone, the server ends and returns its evaluators. With several
//! evaluators, one collects a batch while the others compute.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::evaluator::{Evaluation, Evaluator, Leaf};

/// When a batch is evaluated.
#[derive(Clone, Copy, Debug)]
pub struct ServerParams {
    /// As soon as this many leaves wait.
    pub batch: usize,
    /// When the oldest leaf has waited this long.
    pub max_wait: Duration,
}

/// One thread for each evaluator.
pub struct Server {
    threads: Vec<JoinHandle<Box<dyn Evaluator>>>,
}

/// An evaluator that sends its leaves to a server. Clones use the same server.
pub struct Client {
    requests: Sender<Request>,
    history: usize,
    /// Buffers to reuse.
    idle: Work,
}

/// Leaves on their way to the server, or evaluations on their way back.
#[derive(Default)]
struct Work {
    leaves: Vec<Leaf>,
    evaluations: Vec<Evaluation>,
    /// How many of them are in use.
    count: usize,
}

struct Request {
    work: Work,
    reply: Sender<Work>,
}

impl Server {
    /// Starts one thread for each evaluator and returns the first client. The evaluators must be
    /// equivalent.
    pub fn start(evaluators: Vec<Box<dyn Evaluator>>, params: ServerParams) -> (Server, Client) {
        let history = evaluators.iter().map(|evaluator| evaluator.history()).max().unwrap_or(1);
        let (sender, receiver) = channel();
        let receiver = Arc::new(Mutex::new(receiver));
        let start = |evaluator| {
            let receiver = Arc::clone(&receiver);
            std::thread::spawn(move || serve(evaluator, params, &receiver))
        };
        let threads = evaluators.into_iter().map(start).collect();
        let client = Client { requests: sender, history, idle: Work::default() };
        (Server { threads }, client)
    }

    /// Waits until all clients are gone and returns the evaluators; `None` if one has panicked.
    pub fn join(self) -> Option<Vec<Box<dyn Evaluator>>> {
        self.threads.into_iter().map(|thread| thread.join().ok()).collect()
    }
}

impl Clone for Client {
    fn clone(&self) -> Client {
        Client { requests: self.requests.clone(), history: self.history, idle: Work::default() }
    }
}

impl Evaluator for Client {
    /// # Panics
    ///
    /// Panics when the evaluator that took the leaves has panicked, because no reply will come.
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        let mut work = std::mem::take(&mut self.idle);
        work.count = leaves.len();
        if work.leaves.len() < leaves.len() {
            work.leaves.resize_with(leaves.len(), Leaf::default);
            work.evaluations.resize_with(leaves.len(), Evaluation::default);
        }
        for (slot, leaf) in work.leaves.iter_mut().zip(leaves) {
            slot.clone_from(leaf);
        }
        // Only the server holds the sender: if the server ends, receiving fails.
        let (reply, replies) = channel();
        let sent = self.requests.send(Request { work, reply });
        let mut work = sent
            .ok()
            .and_then(|()| replies.recv().ok())
            .expect("a server replies until its evaluator panics");
        for (evaluation, slot) in evaluations.iter_mut().zip(&mut work.evaluations) {
            std::mem::swap(evaluation, slot);
        }
        self.idle = work;
    }

    fn history(&self) -> usize {
        self.history
    }
}

/// Collects and evaluates batches until there are no clients.
fn serve(
    mut evaluator: Box<dyn Evaluator>,
    params: ServerParams,
    requests: &Mutex<Receiver<Request>>,
) -> Box<dyn Evaluator> {
    let mut waiting: Vec<Request> = Vec::new();
    let mut all = Work::default();
    loop {
        collect(params, requests, &mut waiting);
        if waiting.is_empty() {
            return evaluator;
        }
        let count = waiting.iter().map(|request| request.work.count).sum();
        if all.leaves.len() < count {
            all.leaves.resize_with(count, Leaf::default);
            all.evaluations.resize_with(count, Evaluation::default);
        }
        exchange(&mut all, &mut waiting);
        evaluator.evaluate(&all.leaves[..count], &mut all.evaluations[..count]);
        exchange(&mut all, &mut waiting);
        for Request { work, reply } in waiting.drain(..) {
            // The client may be gone; then the reply is not needed.
            _ = reply.send(work);
        }
    }
}

/// Waits for a batch; leaves `waiting` empty when there are no clients.
fn collect(params: ServerParams, requests: &Mutex<Receiver<Request>>, waiting: &mut Vec<Request>) {
    let requests = requests.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(first) = requests.recv() else { return };
    let deadline = Instant::now() + params.max_wait;
    let mut count = first.work.count;
    waiting.push(first);
    while count < params.batch {
        let left = deadline.saturating_duration_since(Instant::now());
        match requests.recv_timeout(left) {
            Ok(request) => {
                count += request.work.count;
                waiting.push(request);
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
}

/// Swaps the leaves and evaluations of the requests with those of the common batch.
fn exchange(all: &mut Work, waiting: &mut [Request]) {
    let common = all.leaves.iter_mut().zip(&mut all.evaluations);
    let own = waiting.iter_mut().flat_map(|request| {
        let Work { leaves, evaluations, count } = &mut request.work;
        leaves[..*count].iter_mut().zip(&mut evaluations[..*count])
    });
    for ((leaf, evaluation), (own_leaf, own_evaluation)) in common.zip(own) {
        std::mem::swap(leaf, own_leaf);
        std::mem::swap(evaluation, own_evaluation);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use selfmate_chess::{Game, Seed};

    use super::*;
    use crate::evaluator::{Need, Scripted};

    const PARAMS: ServerParams = ServerParams { batch: 6, max_wait: Duration::from_millis(1) };

    fn leaves(seed: u64, count: usize) -> Vec<Leaf> {
        let mut rng = Seed::new(seed).rng();
        let mut game = Game::new();
        let mut leaf = || {
            let legal = game.legal_moves();
            game.play_unchecked(legal[rng.below(legal.len())]);
            Leaf { game: game.clone(), legal: game.legal_moves(), need: Need::Both }
        };
        (0..count).map(|_| leaf()).collect()
    }

    fn evaluate(evaluator: &mut dyn Evaluator, leaves: &[Leaf]) -> Vec<(f32, Vec<f32>)> {
        let mut evaluations = vec![Evaluation::default(); leaves.len()];
        evaluator.evaluate(leaves, &mut evaluations);
        evaluations.into_iter().map(|e| (e.wdl.value(), e.logits)).collect()
    }

    fn scripted() -> Box<dyn Evaluator> {
        Box::new(Scripted::new(Seed::new(5)))
    }

    fn server(evaluators: usize) -> (Server, Client) {
        Server::start((0..evaluators).map(|_| scripted()).collect(), PARAMS)
    }

    #[test]
    fn every_client_gets_its_own_replies() {
        for evaluators in [1, 3] {
            let (server, client) = server(evaluators);
            std::thread::scope(|scope| {
                for number in 0..4 {
                    let mut client = client.clone();
                    scope.spawn(move || {
                        for round in 0..20 {
                            let leaves = leaves(number * 100 + round, 1 + (round as usize + 1) % 4);
                            assert_eq!(
                                evaluate(&mut client, &leaves),
                                evaluate(&mut *scripted(), &leaves)
                            );
                        }
                    });
                }
            });
            drop(client);
            assert_eq!(server.join().map(|evaluators| evaluators.len()), Some(evaluators));
        }
    }

    #[test]
    fn a_client_that_disappears_does_not_affect_the_others() {
        let (server, mut client) = server(2);
        for round in 0..10 {
            let work = Work {
                leaves: leaves(round, 2),
                evaluations: vec![Evaluation::default(); 2],
                count: 2,
            };
            // No client waits for this reply.
            client.requests.send(Request { work, reply: channel().0 }).unwrap();
            let leaves = leaves(round + 50, 1);
            assert_eq!(evaluate(&mut client, &leaves), evaluate(&mut *scripted(), &leaves));
        }
        drop(client);
        assert!(server.join().is_some());
    }

    #[test]
    fn clients_do_not_wait_for_a_server_that_has_panicked() {
        struct Broken;
        impl Evaluator for Broken {
            fn evaluate(&mut self, _: &[Leaf], _: &mut [Evaluation]) {
                panic!("broken");
            }
        }
        let (server, mut client) = Server::start(vec![Box::new(Broken)], PARAMS);
        for _ in 0..2 {
            let asked = catch_unwind(AssertUnwindSafe(|| evaluate(&mut client, &leaves(1, 1))));
            assert!(asked.is_err());
        }
        assert!(server.join().is_none());
    }
}
