//! A static evaluation that replaces the hand-written one in alpha-beta.
//!
//! With it, no term of the hand-written evaluation enters a score. Only the fixed piece values that
//! order and prune captures remain.

use selfmate_chess::Chess;

use super::node::Node;
use super::score::EVAL_LIMIT;

/// Evaluates positions without search, in place of the hand-written evaluation.
pub trait StaticEvaluator: Send {
    /// The score for the side to move, in centipawns.
    ///
    /// The same position must always get the same score. The search never calls this in check.
    fn evaluate(&mut self, position: &Chess) -> i32;

    /// A copy for another thread.
    fn copy(&self) -> Box<dyn StaticEvaluator>;
}

/// An evaluator with a cache of its latest scores.
///
/// The transposition table keeps scores too, but not those of nodes that are pruned at once, and
/// such nodes come back in every iteration.
pub(super) struct CachedStaticEvaluator {
    evaluator: Box<dyn StaticEvaluator>,
    /// Indexed by the lower 16 bits of the key. An entry holds the upper 48 bits of the key and the
    /// score in the lower 16.
    scores: Vec<u64>,
}

const SIZE: usize = 1 << 16;
const LOW: u64 = SIZE as u64 - 1;

impl CachedStaticEvaluator {
    pub(super) fn new(evaluator: Box<dyn StaticEvaluator>) -> CachedStaticEvaluator {
        CachedStaticEvaluator { evaluator, scores: vec![0; SIZE] }
    }

    pub(super) fn copy(&self) -> CachedStaticEvaluator {
        CachedStaticEvaluator::new(self.evaluator.copy())
    }

    /// The score of a position outside the search.
    pub(super) fn evaluate_position(&mut self, position: &Chess) -> i32 {
        self.evaluator.evaluate(position).clamp(-EVAL_LIMIT, EVAL_LIMIT)
    }

    pub(super) fn evaluate(&mut self, node: &Node) -> i32 {
        let index = (node.key & LOW) as usize;
        let known = self.scores[index];
        if known & !LOW == node.key & !LOW {
            return i32::from(known as i16);
        }
        let score = self.evaluate_position(&node.position);
        // Evaluations are limited to less than 16 bits.
        self.scores[index] = node.key & !LOW | u64::from(score as i16 as u16);
        score
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use selfmate_chess::{Game, Position, Seed};

    use super::super::node::SquareTables;
    use super::super::weights::Weights;
    use super::*;

    /// Returns a score that differs between positions, and counts the calls.
    #[derive(Clone, Default)]
    struct Counting(Arc<AtomicU64>);

    impl StaticEvaluator for Counting {
        fn evaluate(&mut self, position: &Chess) -> i32 {
            self.0.fetch_add(1, Relaxed);
            (position.board().occupied().0 % 65_521) as i32 - 32_760
        }

        fn copy(&self) -> Box<dyn StaticEvaluator> {
            Box::new(self.clone())
        }
    }

    #[test]
    fn cached_scores_are_those_of_the_evaluator() {
        let tables = SquareTables::new(&Weights::default());
        let mut counting = Counting::default();
        let mut cached = CachedStaticEvaluator::new(counting.copy());
        for number in 0..100 {
            let mut rng = Seed::new(5).index(number).rng();
            let mut game = Game::new();
            while game.outcome().is_none() && game.ply() < 200 {
                let legal = game.legal_moves();
                game.play_unchecked(legal[rng.below(legal.len())]);
                let node = Node::new(game.position(), &tables);
                let expected = counting.evaluate(game.position()).clamp(-EVAL_LIMIT, EVAL_LIMIT);
                assert_eq!(cached.evaluate(&node), expected);
                let calls = counting.0.load(Relaxed);
                assert_eq!(cached.evaluate(&node), expected);
                assert_eq!(counting.0.load(Relaxed), calls);
            }
        }
    }
}
