//! The seam between alpha-beta and whoever judges positions for it.
//!
//! Without a evaluator the hand-written evaluation does it. With one, nothing of that evaluation
//! enters a score: what remains by hand are the piece values that order and prune captures.

use selfmate_chess::Chess;

use super::node::Node;
use super::score::EVAL_LIMIT;

/// Judges positions without looking ahead, in place of the hand-written evaluation.
pub trait StaticEvaluator: Send {
    /// What a position is worth to its side to move, in centipawns.
    ///
    /// The same position always gets the same answer. The search does not ask in check.
    fn evaluate(&mut self, position: &Chess) -> i32;

    /// The same evaluator for another thread.
    fn copy(&self) -> Box<dyn StaticEvaluator>;
}

/// A evaluator and its latest answers.
///
/// The transposition table keeps answers too, but not those of nodes that were given up at
/// once, and such nodes come back in every iteration.
pub(super) struct CachedStaticEvaluator {
    evaluator: Box<dyn StaticEvaluator>,
    /// By the lower 16 bits of the key: its upper 48 bits, and the answer in the place of the rest.
    answers: Vec<u64>,
}

const SIZE: usize = 1 << 16;
const LOW: u64 = SIZE as u64 - 1;

impl CachedStaticEvaluator {
    pub(super) fn new(evaluator: Box<dyn StaticEvaluator>) -> CachedStaticEvaluator {
        CachedStaticEvaluator { evaluator, answers: vec![0; SIZE] }
    }

    pub(super) fn copy(&self) -> CachedStaticEvaluator {
        CachedStaticEvaluator::new(self.evaluator.copy())
    }

    /// The answer for a position outside the search.
    pub(super) fn evaluate_position(&mut self, position: &Chess) -> i32 {
        self.evaluator.evaluate(position).clamp(-EVAL_LIMIT, EVAL_LIMIT)
    }

    pub(super) fn evaluate(&mut self, node: &Node) -> i32 {
        let place = (node.key & LOW) as usize;
        let known = self.answers[place];
        if known & !LOW == node.key & !LOW {
            return i32::from(known as i16);
        }
        let answer = self.evaluate_position(&node.position);
        // The limit of evaluations is below that of 16 bits.
        self.answers[place] = node.key & !LOW | u64::from(answer as i16 as u16);
        answer
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

    /// Answers with something that differs from position to position, and counts the questions.
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
    fn remembered_answers_are_those_of_the_judge() {
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
                let asked = counting.0.load(Relaxed);
                assert_eq!(cached.evaluate(&node), expected);
                assert_eq!(counting.0.load(Relaxed), asked);
            }
        }
    }
}
