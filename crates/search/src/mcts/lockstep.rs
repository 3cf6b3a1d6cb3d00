//! Many searches in step: each advances to its next leaf, then all leaves are evaluated together.
//! An expensive evaluator gets full batches, and no tree needs virtual losses.
//!
//! Every search builds the same tree as it would on its own.

use std::sync::atomic::AtomicBool;

use selfmate_chess::{Game, Seed};

use super::batch::Batch;
use super::driver::{StopCondition, run_in};
use super::params::SearchParams;
use super::search::Search;
use crate::evaluator::{Evaluation, Evaluator, Leaf};
use crate::memory::MemoryError;

/// One of the searches that advance together.
pub struct SearchSlot {
    search: Search,
    batch: Batch,
    is_busy: bool,
}

/// The buffers of the shared evaluation.
#[derive(Default)]
pub struct Lockstep {
    leaves: Vec<Leaf>,
    evaluations: Vec<Evaluation>,
}

impl SearchSlot {
    /// Creates an idle search for this evaluator.
    pub fn new(params: SearchParams, evaluator: &dyn Evaluator) -> Result<SearchSlot, MemoryError> {
        let search = Search::new(params)?;
        Ok(SearchSlot { search, batch: Batch::new(evaluator), is_busy: false })
    }

    pub fn search(&mut self) -> &mut Search {
        &mut self.search
    }

    /// Starts a search for the best move of a game.
    pub fn start(&mut self, game: &Game, budget: u64, seed: Seed) {
        self.search.start(game, budget, seed);
        self.is_busy = true;
    }

    /// Completes the search without the other slots, unless `stop` is set.
    pub fn run(&mut self, evaluator: &mut dyn Evaluator, stop: &AtomicBool) {
        let limit = StopCondition { stop: Some(stop), ..StopCondition::default() };
        run_in(&mut self.search, &mut self.batch, evaluator, &limit);
        self.is_busy = false;
    }

    /// True until the budget is spent or the root is solved.
    pub fn is_busy(&self) -> bool {
        self.is_busy
    }

    fn gather(&mut self) {
        if self.search.is_solved() {
            return self.end();
        }
        let started = self.search.gather(&mut self.batch, 1);
        if self.search.is_full() && self.batch.is_empty() {
            self.search.settle(&mut self.batch);
            self.is_busy = self.search.recycle();
        } else if !started {
            self.end();
        }
    }

    fn end(&mut self) {
        self.search.settle(&mut self.batch);
        self.is_busy = false;
    }
}

impl Lockstep {
    /// Advances every busy search by one evaluation.
    pub fn step<'a>(
        &mut self,
        slots: impl Iterator<Item = &'a mut SearchSlot>,
        evaluator: &mut dyn Evaluator,
    ) {
        let mut busy: Vec<&mut SearchSlot> = slots.filter(|slot| slot.is_busy).collect();
        for slot in &mut busy {
            slot.gather();
        }
        let count = busy.iter().map(|slot| slot.batch.len()).sum();
        if self.leaves.len() < count {
            self.leaves.resize_with(count, Leaf::default);
            self.evaluations.resize_with(count, Evaluation::default);
        }
        self.exchange(&mut busy);
        if count > 0 {
            evaluator.evaluate(&self.leaves[..count], &mut self.evaluations[..count]);
        }
        self.exchange(&mut busy);
        for slot in busy {
            slot.search.apply(&mut slot.batch);
        }
    }

    /// Swaps the slots' leaves with those of the shared evaluation.
    fn exchange(&mut self, slots: &mut [&mut SearchSlot]) {
        let common = self.leaves.iter_mut().zip(&mut self.evaluations);
        let own = slots.iter_mut().flat_map(|slot| {
            let count = slot.batch.len();
            let batch = &mut slot.batch;
            batch.leaves[..count].iter_mut().zip(&mut batch.evaluations[..count])
        });
        for ((leaf, evaluation), (own_leaf, own_evaluation)) in common.zip(own) {
            std::mem::swap(leaf, own_leaf);
            std::mem::swap(evaluation, own_evaluation);
        }
    }
}
