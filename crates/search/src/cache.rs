//! A cache of evaluations in front of any evaluator.
//!
//! The same position is often reached by several move orders; an expensive evaluator should
//! evaluate it once. The cache has a fixed size, and a new entry replaces the old one in its slot.

use crate::evaluator::{Evaluation, Evaluator, Leaf, Need};
use crate::memory::{MemoryError, check_limit};
use crate::value::Wdl;

/// An evaluator with a cache.
///
/// Entries are found by the position's key, so the evaluator must depend on the position only. An
/// evaluator that needs history ([`Evaluator::history`] above 1) gets every leaf.
pub struct Cached<E> {
    evaluator: E,
    entries: Vec<Entry>,
    lookups: u64,
    hits: u64,
    /// The leaves of a batch that are not in the cache, and buffers for their evaluations.
    missing: Vec<usize>,
    leaves: Vec<Leaf>,
    evaluations: Vec<Evaluation>,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    key: u64,
    wdl: Option<Wdl>,
    /// Empty when the priors were never requested.
    logits: Vec<f32>,
}

impl<E: Evaluator> Cached<E> {
    /// A cache of this many positions. Fails when there is not enough memory.
    pub fn new(evaluator: E, positions: usize) -> Result<Cached<E>, MemoryError> {
        let (positions, purpose) = (positions.max(1), "evaluations");
        let megabytes = positions.saturating_mul(size_of::<Entry>()).div_ceil(1 << 20);
        check_limit(megabytes, purpose)?;
        let mut entries = Vec::new();
        let reserved = entries.try_reserve_exact(positions);
        reserved.map_err(|_| MemoryError::Refused { purpose, megabytes })?;
        entries.resize(positions, Entry::default());
        Ok(Cached {
            evaluator,
            entries,
            lookups: 0,
            hits: 0,
            missing: Vec::new(),
            leaves: Vec::new(),
            evaluations: Vec::new(),
        })
    }

    /// Must be called when the evaluator changes.
    pub fn clear(&mut self) {
        self.entries.fill(Entry::default());
    }

    /// The share of lookups that were found in the cache.
    pub fn hit_rate(&self) -> f64 {
        self.hits as f64 / self.lookups.max(1) as f64
    }

    fn slot(&self, key: u64) -> usize {
        (key % self.entries.len() as u64) as usize
    }

    /// Fills the evaluation from the cache; false when that is not possible.
    fn look_up(&self, leaf: &Leaf, evaluation: &mut Evaluation) -> bool {
        let entry = &self.entries[self.slot(leaf.game.key())];
        let Some(wdl) = entry.wdl.filter(|_| entry.key == leaf.game.key()) else { return false };
        if leaf.need.policy() && entry.logits.len() != leaf.legal.len() {
            return false;
        }
        evaluation.wdl = wdl;
        evaluation.logits.clear();
        if leaf.need.policy() {
            evaluation.logits.extend_from_slice(&entry.logits);
        }
        true
    }
}

impl<E: Evaluator> Evaluator for Cached<E> {
    fn history(&self) -> usize {
        self.evaluator.history()
    }

    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        if self.evaluator.history() > 1 {
            return self.evaluator.evaluate(leaves, evaluations);
        }
        self.missing.clear();
        for (index, (leaf, evaluation)) in leaves.iter().zip(evaluations.iter_mut()).enumerate() {
            if !self.look_up(leaf, evaluation) {
                self.missing.push(index);
            }
        }
        self.lookups += leaves.len() as u64;
        self.hits += (leaves.len() - self.missing.len()) as u64;
        self.leaves.clear();
        // Always both: an evaluator worth caching computes them together.
        self.leaves.extend(self.missing.iter().map(|&index| {
            let mut leaf = leaves[index].clone();
            if leaf.need == Need::Value {
                leaf.legal = leaf.game.legal_moves();
            }
            leaf.need = Need::Both;
            leaf
        }));
        self.evaluations.resize_with(self.leaves.len(), Evaluation::default);
        self.evaluator.evaluate(&self.leaves, &mut self.evaluations);
        for (&index, fresh) in self.missing.iter().zip(&self.evaluations) {
            let slot = self.slot(leaves[index].game.key());
            let entry = &mut self.entries[slot];
            entry.key = leaves[index].game.key();
            entry.wdl = Some(fresh.wdl);
            entry.logits.clone_from(&fresh.logits);
            let evaluation = &mut evaluations[index];
            evaluation.wdl = fresh.wdl;
            evaluation.logits.clear();
            if leaves[index].need.policy() {
                evaluation.logits.extend_from_slice(&fresh.logits);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;
    use selfmate_chess::fen::parse_game;

    use super::*;
    use crate::evaluator::Scripted;
    use crate::mcts::{Expansion, Search, SearchParams, StopCondition, run};

    struct NeedsHistory;

    impl Evaluator for NeedsHistory {
        fn evaluate(&mut self, _: &[Leaf], _: &mut [Evaluation]) {}

        fn history(&self) -> usize {
            8
        }
    }

    #[test]
    fn a_search_with_a_cache_finds_the_same_with_fewer_evaluations() {
        for expansion in [Expansion::FirstVisit, Expansion::SecondVisit] {
            let params = SearchParams { expansion, memory_mb: 16, ..SearchParams::default() };
            let search = |evaluator: &mut dyn Evaluator| {
                let mut search = Search::new(params.clone()).unwrap();
                // Few pieces, so that the same position is reached by many move orders.
                let game = parse_game("8/8/8/4k3/8/8/3R4/4K3 w - - 0 1").unwrap();
                search.start(&game, 3_000, Seed::new(1));
                run(&mut search, evaluator, &StopCondition::default());
                search.result()
            };
            let mut cached = Cached::new(Scripted::new(Seed::new(1)), 4096).unwrap();
            assert_eq!(search(&mut cached), search(&mut Scripted::new(Seed::new(1))));
            assert!(cached.hit_rate() > 0.05, "{expansion:?}: {}", cached.hit_rate());
            assert_eq!(Cached::new(NeedsHistory, 8).unwrap().history(), 8, "history is passed on");
            // A cache of one position is useless but harmless.
            let mut tiny = Cached::new(Scripted::new(Seed::new(1)), 1).unwrap();
            assert_eq!(search(&mut tiny), search(&mut cached));
        }
    }
}
