//! Plays chosen games again on the threads that the learner does not need while others play.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use selfmate_selfplay::{Evaluators, FinishedGame, Generation, SelfPlayConfig, SelfPlayer};

use crate::audit::{Agreement, Exactness, compare, compare_recomputed};
use crate::error::ClusterError;
use crate::subject::WorkerName;

/// Plays games again.
pub struct Auditor<T> {
    shared: Arc<Shared<T>>,
    findings: Receiver<Finding>,
    threads: Vec<JoinHandle<()>>,
    pending: usize,
}

/// What playing a game again has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Who had sent it.
    pub worker: WorkerName,
    /// The number of the game.
    pub number: u64,
    /// Whether it is the same game.
    pub agreement: Agreement,
}

/// Plays a game again and compares; `None` when it was stopped.
pub type Replay<T> = Box<dyn FnMut(&T, &Arc<AtomicBool>) -> Option<Agreement>>;

/// Games with a number.
pub trait Numbered {
    /// The number.
    fn number(&self) -> u64;
}

impl Numbered for FinishedGame {
    fn number(&self) -> u64 {
        self.record.number
    }
}

impl Numbered for selfmate_arena::GameRecord {
    fn number(&self) -> u64 {
        self.game
    }
}

struct Shared<T> {
    make: Box<dyn Fn() -> Replay<T> + Send + Sync>,
    queue: Mutex<VecDeque<(WorkerName, T)>>,
    /// There is something in the queue, or all is over.
    ready: Condvar,
    over: Arc<AtomicBool>,
}

impl Auditor<FinishedGame> {
    /// For the games of a generation.
    pub fn of_generation(
        threads: usize,
        generation: &Generation,
        evaluators: Evaluators,
        exactness: Exactness,
    ) -> Auditor<FinishedGame> {
        // One game at a time needs the least memory, and games are the same however many there are.
        let config = SelfPlayConfig { games_at_once: 1, ..generation.config.clone() };
        let generation = Arc::new(Generation { config, ..generation.clone() });
        let evaluators = Arc::new(evaluators);
        Auditor::new(threads, move || {
            let (generation, evaluators) = (Arc::clone(&generation), Arc::clone(&evaluators));
            let mut player = None;
            Box::new(move |sent: &FinishedGame, halt: &Arc<AtomicBool>| {
                let sent = &sent.record;
                let player =
                    player.get_or_insert_with(|| SelfPlayer::new(&generation.config, evaluators()));
                if exactness == Exactness::Rounded {
                    let recomputed = player.recompute(&generation, sent, halt)?;
                    return Some(compare_recomputed(sent, &recomputed));
                }
                let (mut next, mut own) = (Some(sent.number), None);
                player.play(&generation, || next.take(), |played| own = Some(played), halt);
                Some(compare(sent, &own?.record.rounded()))
            })
        })
    }
}

impl<T: Numbered + Send + 'static> Auditor<T> {
    /// On so many threads, each with a way to play games again of its own, made when there is
    /// something to play: most generations of a small run have nothing.
    pub fn new(threads: usize, make: impl Fn() -> Replay<T> + Send + Sync + 'static) -> Auditor<T> {
        let shared = Arc::new(Shared {
            make: Box::new(make),
            queue: Mutex::default(),
            ready: Condvar::new(),
            over: Arc::default(),
        });
        let (sender, findings) = channel();
        let start = |_| {
            let (shared, sender) = (Arc::clone(&shared), sender.clone());
            std::thread::spawn(move || shared.work(&sender))
        };
        let threads = (0..threads.max(1)).map(start).collect();
        Auditor { shared, findings, threads, pending: 0 }
    }

    /// Has a game played again.
    pub fn add(&mut self, worker: WorkerName, game: T) {
        self.pending += 1;
        let mut queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back((worker, game));
        drop(queue);
        self.shared.ready.notify_one();
    }

    /// What was found since this was last asked.
    pub fn findings(&mut self) -> Vec<Finding> {
        let findings: Vec<Finding> = self.findings.try_iter().collect();
        self.pending -= findings.len();
        findings
    }

    /// Does not play the games of a worker again that are not begun: it is refused anyway.
    pub fn forget(&mut self, worker: &WorkerName) {
        let mut queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let before = queue.len();
        queue.retain(|(sender, _)| sender != worker);
        self.pending -= before - queue.len();
    }

    /// Games whose findings are still to come; an error when they never will.
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
            let replay = replay.get_or_insert_with(|| (self.make)());
            // None when all is over.
            let Some(agreement) = replay(&sent, &self.over) else { return };
            let number = sent.number();
            if sender.send(Finding { worker, number, agreement }).is_err() {
                return;
            }
        }
    }

    fn next(&self) -> Option<(WorkerName, T)> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.over.load(Relaxed) {
                return None;
            }
            match queue.pop_front() {
                Some(job) => return Some(job),
                None => {
                    queue = self.ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl<T> Drop for Auditor<T> {
    fn drop(&mut self) {
        // Under the lock, so that no thread looks just before and waits just after.
        let queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.over.store(true, Relaxed);
        drop(queue);
        self.shared.ready.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
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

    /// A game as it is stored.
    fn rounded(generation: &Generation, number: u64) -> FinishedGame {
        let game = play(generation, number);
        FinishedGame { record: game.record.rounded(), ..game }
    }

    #[test]
    fn honest_games_agree_and_a_forged_one_does_not() {
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
        // What is forgotten is not waited for, but for what is begun.
        let game = rounded(&generation, 7);
        (0..500).for_each(|_| auditor.add(cheat.clone(), game.clone()));
        auditor.forget(&cheat);
        let mut findings = Vec::new();
        while auditor.pending().unwrap() > 0 {
            findings.extend(auditor.findings());
            std::thread::yield_now();
        }
        assert!(findings.len() < 400, "{}", findings.len());
        // Dropping it while it has work ends it.
        for number in 0..50 {
            auditor.add(honest.clone(), rounded(&generation, number % 3));
        }
    }
}
