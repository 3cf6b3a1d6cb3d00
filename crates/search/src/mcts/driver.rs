//! The usual search loops: one evaluator, or one per thread in a shared tree.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use super::batch::Batch;
use super::node::Sharing;
use super::search::Search;
use crate::evaluator::Evaluator;

/// When a search ends, in addition to its budget of simulations.
#[derive(Clone, Copy, Debug, Default)]
pub struct StopCondition<'a> {
    pub deadline: Option<Instant>,
    pub stop: Option<&'a AtomicBool>,
}

impl StopCondition<'_> {
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
pub fn run(search: &mut Search, evaluator: &mut dyn Evaluator, limit: &StopCondition<'_>) {
    run_in(search, &mut Batch::new(evaluator), evaluator, limit);
}

/// Like [`run`], with reused working memory. Small searches would otherwise spend much of their
/// time allocating it.
pub fn run_in(
    search: &mut Search,
    batch: &mut Batch,
    evaluator: &mut dyn Evaluator,
    limit: &StopCondition<'_>,
) {
    while !search.is_solved() {
        let busy = work(search, batch, evaluator);
        if search.is_full() && !limit.reached() {
            finish(search, batch, evaluator);
            if !search.recycle() {
                return;
            }
        } else if !busy || limit.reached() {
            return finish(search, batch, evaluator);
        }
    }
}

/// Like [`run`], with one thread per evaluator in a shared tree.
pub fn run_parallel(
    search: &mut Search,
    evaluators: &mut [Box<dyn Evaluator>],
    limit: &StopCondition<'_>,
) {
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
            while !done.load(Relaxed) {
                let busy = work(shared, &mut batch, evaluator);
                if shared.is_full() || shared.is_solved() || limit.reached() {
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
