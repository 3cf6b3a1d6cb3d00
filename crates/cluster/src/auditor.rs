//! Replays the games chosen for an audit, on threads that the learner does not use while workers
//! play. It does not choose the games and does not act on the findings; the collector does both.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use selfmate_selfplay::{Evaluators, FinishedGame, Generation, SelfPlayConfig, SelfPlayer};

use crate::audit::{Agreement, Exactness, compare, compare_recomputed};
use crate::error::ClusterError;
use crate::subject::WorkerName;

pub struct Auditor<T> {
    shared: Arc<Shared<T>>,
    findings: Receiver<Finding>,
    threads: Vec<JoinHandle<()>>,
    pending: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The sender.
    pub worker: WorkerName,
    pub number: u64,
    pub agreement: Agreement,
}

/// Replays a game and compares; `None` when it was stopped.
pub type Replay<T> = Box<dyn FnMut(&T, &Arc<AtomicBool>) -> Option<Agreement>>;

pub trait Numbered {
    fn number(&self) -> u64;
}

impl Numbered for FinishedGame {
    fn number(&self) -> u64 {
        self.record.number
    }
}

impl Numbered for selfmate_arena::MatchGame {
    fn number(&self) -> u64 {
        self.game
    }
}

struct Shared<T> {
    make_replay: Box<dyn Fn() -> Replay<T> + Send + Sync>,
    queue: Mutex<VecDeque<(WorkerName, T)>>,
    /// Signals a new entry of the queue, or the stop.
    ready: Condvar,
    stop: Arc<AtomicBool>,
}

impl Auditor<FinishedGame> {
    pub fn of_generation(
        threads: usize,
        generation: &Generation,
        evaluators: Evaluators,
        exactness: Exactness,
    ) -> Auditor<FinishedGame> {
        // One game at a time needs the least memory and gives the same games.
        let config = SelfPlayConfig { games_at_once: 1, ..generation.config.clone() };
        let generation = Arc::new(Generation { config, ..generation.clone() });
        let evaluators = Arc::new(evaluators);
        Auditor::new(threads, move || {
            let (generation, evaluators) = (Arc::clone(&generation), Arc::clone(&evaluators));
            let mut player = None;
            Box::new(move |sent: &FinishedGame, stop: &Arc<AtomicBool>| {
                let sent = &sent.record;
                let player =
                    player.get_or_insert_with(|| SelfPlayer::new(&generation.config, evaluators()));
                if exactness == Exactness::Rounded {
                    let recomputed = player.recompute(&generation, sent, stop)?;
                    return Some(compare_recomputed(sent, &recomputed));
                }
                let (mut next, mut own) = (Some(sent.number), None);
                player.play(&generation, || next.take(), |played| own = Some(played), stop);
                Some(compare(sent, &own?.record.rounded()))
            })
        })
    }
}

impl<T: Numbered + Send + 'static> Auditor<T> {
    /// Each thread makes its own [`Replay`] when its first game arrives: most generations of a small
    /// run have no audit at all.
    pub fn new(
        threads: usize,
        make_replay: impl Fn() -> Replay<T> + Send + Sync + 'static,
    ) -> Auditor<T> {
        let shared = Arc::new(Shared {
            make_replay: Box::new(make_replay),
            queue: Mutex::default(),
            ready: Condvar::new(),
            stop: Arc::default(),
        });
        let (sender, findings) = channel();
        let start = |_| {
            let (shared, sender) = (Arc::clone(&shared), sender.clone());
            std::thread::spawn(move || shared.work(&sender))
        };
        let threads = (0..threads.max(1)).map(start).collect();
        Auditor { shared, findings, threads, pending: 0 }
    }

    pub fn add(&mut self, worker: WorkerName, game: T) {
        self.pending += 1;
        let mut queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back((worker, game));
        drop(queue);
        self.shared.ready.notify_one();
    }

    /// The findings since the last call.
    pub fn findings(&mut self) -> Vec<Finding> {
        let findings: Vec<Finding> = self.findings.try_iter().collect();
        self.pending -= findings.len();
        findings
    }

    /// Drops the audits of a banned worker that have not begun.
    pub fn cancel(&mut self, worker: &WorkerName) {
        let mut queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let before = queue.len();
        queue.retain(|(sender, _)| sender != worker);
        self.pending -= before - queue.len();
    }

    /// Audits without a finding; an error if a thread has panicked, because some would never end.
    pub fn pending(&self) -> Result<usize, ClusterError> {
        let panicked = self.threads.iter().filter(|thread| thread.is_finished()).count();
        if panicked > 0 {
            return Err(ClusterError::Panicked { threads: panicked });
        }
        Ok(self.pending)
    }
}

impl<T: Numbered> Shared<T> {
    fn work(&self, sender: &Sender<Finding>) {
        let mut replay = None;
        while let Some((worker, sent)) = self.next() {
            let replay = replay.get_or_insert_with(|| (self.make_replay)());
            // `None` after a stop.
            let Some(agreement) = replay(&sent, &self.stop) else { return };
            let number = sent.number();
            if sender.send(Finding { worker, number, agreement }).is_err() {
                return;
            }
        }
    }

    fn next(&self) -> Option<(WorkerName, T)> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.stop.load(Relaxed) {
                return None;
            }
            match queue.pop_front() {
                Some(audit) => return Some(audit),
                None => {
                    queue = self.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl<T> Drop for Auditor<T> {
    fn drop(&mut self) {
        // Set under the lock: otherwise a thread could check the flag just before and then wait for
        // ever.
        let queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.stop.store(true, Relaxed);
        drop(queue);
        self.shared.ready.notify_all();
        for thread in self.threads.drain(..) {
            // A panic was already printed.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;
    use selfmate_nn::Model;
    use selfmate_nn::sparse::Weights;
    use selfmate_selfplay::evaluators;

    use super::*;
    use crate::audit::tests::{generation, play, tiny_shape};

    /// As games are stored.
    fn rounded(generation: &Generation, number: u64) -> FinishedGame {
        let game = play(generation, number);
        FinishedGame { record: game.record.rounded(), ..game }
    }

    #[test]
    fn honest_games_agree_a_forged_one_does_not_and_cancelled_audits_are_dropped() {
        let generation = generation();
        let weights = Weights::random(tiny_shape(), Seed::new(1)).unwrap();
        let model = Model::Sparse(Box::new(weights));
        let exactness = Exactness::of(&model);
        let mut auditor = Auditor::of_generation(2, &generation, evaluators(&model), exactness);
        let [honest, cheat] = ["honest", "cheat"].map(|name| WorkerName::new(name).unwrap());
        for number in 0..6 {
            auditor.add(honest.clone(), rounded(&generation, number));
        }
        let mut forged = rounded(&generation, 6);
        forged.record.positions[0].value = 0.5;
        auditor.add(cheat.clone(), forged);
        let mut findings = Vec::new();
        while auditor.pending().unwrap() > 0 {
            findings.extend(auditor.findings());
            std::thread::yield_now();
        }
        assert_eq!(findings.len(), 7);
        for finding in findings {
            let agrees = finding.agreement == Agreement::Same;
            assert_eq!(agrees, finding.worker == honest, "{finding:?}");
        }
        // Only audits that had begun are still pending after a cancel.
        let game = rounded(&generation, 7);
        (0..500).for_each(|_| auditor.add(cheat.clone(), game.clone()));
        auditor.cancel(&cheat);
        let mut findings = Vec::new();
        while auditor.pending().unwrap() > 0 {
            findings.extend(auditor.findings());
            std::thread::yield_now();
        }
        assert!(findings.len() < 400, "{}", findings.len());
        // Dropping the auditor stops it even though its queue is not empty.
        for number in 0..50 {
            auditor.add(honest.clone(), rounded(&generation, number % 3));
        }
    }
}
