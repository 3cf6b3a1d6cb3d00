//! The usual loops: one evaluator, or one for each thread in the same tree.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use super::batch::Batch;
use super::node::Sharing;
use super::params::RootRule;
use super::search::Search;
use crate::evaluator::Evaluator;

/// When a search ends, besides its budget of simulations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limit<'a> {
    /// Not later than this.
    pub deadline: Option<Instant>,
    /// As soon as this is set.
    pub stop: Option<&'a AtomicBool>,
    /// When the most visited move can no longer be overtaken within the budget.
    pub stop_when_decided: bool,
    /// When a hundred simulations change the root's visit shares by less than this (relative
    /// entropy for each simulation).
    pub min_gain: Option<f64>,
}

impl Limit<'_> {
    fn reached(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Relaxed))
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// Leaves evaluated at a time: a tree that waits for no batch chooses best.
const INLINE: usize = 1;
/// Evaluations between looks at the clock and at the visits.
const STRIDE: usize = 16;

/// Searches until the budget is spent or the limit is reached.
pub fn run(search: &mut Search, evaluator: &mut dyn Evaluator, limit: &Limit<'_>) {
    run_in(search, &mut Batch::new(evaluator), evaluator, limit);
}

/// As [`run`], in working memory that is used again: small searches would spend a good part of
/// their time on making their own.
pub fn run_in(
    search: &mut Search,
    batch: &mut Batch,
    evaluator: &mut dyn Evaluator,
    limit: &Limit<'_>,
) {
    let mut watch = Watch::new(search);
    while !search.is_solved() {
        let busy = work(search, batch, evaluator);
        if search.is_full() && !limit.reached() {
            finish(search, batch, evaluator);
            if !search.recycle() {
                return;
            }
        } else if !busy || limit.reached() || watch.is_settled(search, limit) {
            return finish(search, batch, evaluator);
        }
    }
}

/// As [`run`], with a thread for each evaluator in the one tree.
pub fn run_parallel(search: &mut Search, evaluators: &mut [Box<dyn Evaluator>], limit: &Limit<'_>) {
    let [first, others @ ..] = evaluators else { return };
    if others.is_empty() {
        return run(search, first.as_mut(), limit);
    }
    // Alone until the root has its children: there is nothing to share before.
    let mut batch = Batch::new(first.as_ref());
    search.gather(&mut batch, INLINE);
    batch.evaluate(first.as_mut());
    search.apply(&mut batch);
    finish(search, &mut batch, first.as_mut());

    search.share(Sharing::Threads);
    loop {
        let shared = &*search;
        let done = AtomicBool::new(false);
        let simulate = |evaluator: &mut dyn Evaluator| {
            let mut batch = Batch::new(evaluator);
            let mut watch = Watch::new(shared);
            while !done.load(Relaxed) {
                let busy = work(shared, &mut batch, evaluator);
                if shared.is_full()
                    || shared.is_solved()
                    || limit.reached()
                    || watch.is_settled(shared, limit)
                {
                    done.store(true, Relaxed);
                }
                // Not busy with simulations left: another thread stands in the way.
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
                // A system that starts no more threads has let this one run: it can search alone.
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

/// Simulates for a while, or until the tree is full or solved. False when nothing could be started.
fn work(search: &Search, batch: &mut Batch, evaluator: &mut dyn Evaluator) -> bool {
    for _ in 0..STRIDE {
        if !search.gather(batch, INLINE) {
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

/// Brings simulations to their end that wait for their second half, and the counts up to date.
fn finish(search: &Search, batch: &mut Batch, evaluator: &mut dyn Evaluator) {
    while batch.has_resumed() && !search.is_full() {
        search.gather(batch, INLINE);
        batch.evaluate(evaluator);
        search.apply(batch);
    }
    search.settle(batch);
}

/// Notices when going on would not change the choice.
struct Watch {
    visits: Vec<u32>,
    simulations: u64,
}

impl Watch {
    const INTERVAL: u64 = 100;

    fn new(search: &Search) -> Watch {
        Watch { visits: search.root_visits(), simulations: search.simulations() }
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
