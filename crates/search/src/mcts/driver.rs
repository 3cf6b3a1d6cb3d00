//! The usual search loops: one evaluator, or one per thread in a shared tree.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use super::batch::Batch;
use super::node::Sharing;
use super::params::RootRule;
use super::search::Search;
use crate::evaluator::Evaluator;

/// When a search ends, in addition to its budget of simulations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limit<'a> {
    pub deadline: Option<Instant>,
    pub stop: Option<&'a AtomicBool>,
    /// Stop when the most visited move can no longer be overtaken within the budget.
    pub stop_when_decided: bool,
    /// Stop when a hundred simulations change the root's visit distribution by less than this
    /// (relative entropy per simulation).
    pub min_gain: Option<f64>,
}

impl Limit<'_> {
    fn reached(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Relaxed))
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// Leaves evaluated at a time. The tree chooses best when every value is known.
const LEAVES: usize = 1;
/// Evaluations between checks of the clock and the visits.
const CHECK_INTERVAL: usize = 16;

/// Searches until the budget is spent or the limit is reached.
pub fn run(search: &mut Search, evaluator: &mut dyn Evaluator, limit: &Limit<'_>) {
    run_in(search, &mut Batch::new(evaluator), evaluator, limit);
}

/// Like [`run`], with reused working memory. Small searches would otherwise spend much of their
/// time allocating it.
pub fn run_in(
    search: &mut Search,
    batch: &mut Batch,
    evaluator: &mut dyn Evaluator,
    limit: &Limit<'_>,
) {
    let mut convergence = Convergence::new(search);
    while !search.is_solved() {
        let busy = work(search, batch, evaluator);
        if search.is_full() && !limit.reached() {
            finish(search, batch, evaluator);
            if !search.recycle() {
                return;
            }
        } else if !busy || limit.reached() || convergence.is_settled(search, limit) {
            return finish(search, batch, evaluator);
        }
    }
}

/// Like [`run`], with one thread per evaluator in a shared tree.
pub fn run_parallel(search: &mut Search, evaluators: &mut [Box<dyn Evaluator>], limit: &Limit<'_>) {
    let [first, others @ ..] = evaluators else { return };
    if others.is_empty() {
        return run(search, first.as_mut(), limit);
    }
    // Single-threaded until the root is expanded: before that there is nothing to share.
    let mut batch = Batch::new(first.as_ref());
    search.gather(&mut batch, LEAVES);
    batch.evaluate(first.as_mut());
    search.apply(&mut batch);
    finish(search, &mut batch, first.as_mut());

    search.share(Sharing::Threads);
    loop {
        let shared = &*search;
        let done = AtomicBool::new(false);
        let simulate = |evaluator: &mut dyn Evaluator| {
            let mut batch = Batch::new(evaluator);
            let mut convergence = Convergence::new(shared);
            while !done.load(Relaxed) {
                let busy = work(shared, &mut batch, evaluator);
                if shared.is_full()
                    || shared.is_solved()
                    || limit.reached()
                    || convergence.is_settled(shared, limit)
                {
                    done.store(true, Relaxed);
                }
                // With simulations left, another thread holds the leaf: try again.
                if !busy && shared.remaining() == 0 && !batch.has_budget() {
                    break;
                }
            }
            finish(shared, &mut batch, evaluator);
        };
        std::thread::scope(|scope| {
            for evaluator in others.iter_mut() {
                let simulate = &simulate;
                let help = move || simulate(evaluator.as_mut());
                // If the system refuses another thread, the search continues with those it has.
                if std::thread::Builder::new().spawn_scoped(scope, help).is_err() {
                    break;
                }
            }
            simulate(first.as_mut());
        });
        if !search.is_full() || limit.reached() || !search.recycle() {
            break;
        }
    }
    search.share(Sharing::Alone);
}

/// Runs simulations for a while, or until the tree is full or solved. False when nothing could be
/// started.
fn work(search: &Search, batch: &mut Batch, evaluator: &mut dyn Evaluator) -> bool {
    for _ in 0..CHECK_INTERVAL {
        if !search.gather(batch, LEAVES) {
            return false;
        }
        batch.evaluate(evaluator);
        search.apply(batch);
        if search.is_full() || search.is_solved() {
            break;
        }
    }
    true
}

/// Completes unfinished simulations and updates the search's counts.
fn finish(search: &Search, batch: &mut Batch, evaluator: &mut dyn Evaluator) {
    while batch.has_resumed() && !search.is_full() {
        search.gather(batch, LEAVES);
        batch.evaluate(evaluator);
        search.apply(batch);
    }
    search.settle(batch);
}

/// Detects that more simulations would not change the chosen move.
struct Convergence {
    visits: Vec<u32>,
    simulations: u64,
}

impl Convergence {
    const INTERVAL: u64 = 100;

    fn new(search: &Search) -> Convergence {
        Convergence { visits: search.root_visits(), simulations: search.simulations() }
    }

    fn is_settled(&mut self, search: &Search, limit: &Limit<'_>) -> bool {
        // A Gumbel root does not play the most visited move.
        if limit.stop_when_decided && !matches!(search.params().root, RootRule::Gumbel(_)) {
            let mut visits = search.root_visits();
            visits.sort_unstable_by(|a, b| b.cmp(a));
            let lead = match visits[..] {
                [] => return false,
                [_] => return true,
                [first, second, ..] => u64::from(first - second),
            };
            if lead > search.remaining() + search.unstarted() {
                return true;
            }
        }
        let Some(min_gain) = limit.min_gain else { return false };
        if search.simulations() < self.simulations + Self::INTERVAL {
            return false;
        }
        let visits = search.root_visits();
        let gain = relative_entropy(&self.visits, &visits);
        let simulations = search.simulations() - self.simulations;
        let settled = gain.is_some_and(|gain| gain / (simulations as f64) < min_gain);
        self.visits = visits;
        self.simulations = search.simulations();
        settled
    }
}

/// Σ old ln(old / new) over visit shares; `None` when they cannot be compared.
fn relative_entropy(old: &[u32], new: &[u32]) -> Option<f64> {
    let total = |visits: &[u32]| visits.iter().map(|&v| f64::from(v)).sum::<f64>();
    let (old_total, new_total) = (total(old), total(new));
    if old.len() != new.len() || old_total == 0.0 || new_total == 0.0 {
        return None;
    }
    let term = |(&old, &new): (&u32, &u32)| match old {
        0 => 0.0,
        _ => {
            let share = f64::from(old) / old_total;
            share * (share * new_total / f64::from(new)).ln()
        }
    };
    Some(old.iter().zip(new).map(term).sum())
}
