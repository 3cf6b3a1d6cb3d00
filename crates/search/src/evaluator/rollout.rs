//! Plays random moves and returns the result: plain Monte Carlo.

use selfmate_chess::{Game, Position, Rng, Rules, Seed};

use super::material::material;
use super::{Evaluation, Evaluator, Leaf};
use crate::value::Wdl;

/// The length of a random game.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Playout {
    /// Until the game ends by the rules.
    Full,
    /// At most `plies`, then scored by material.
    Capped {
        plies: u32,
        /// A lead of this many pawns ends the game as won.
        decided_at: f32,
    },
}

impl Default for Playout {
    fn default() -> Playout {
        Playout::Capped { plies: 40, decided_at: 8.0 }
    }
}

/// Values from one random game per leaf; uniform priors.
#[derive(Clone, Debug)]
pub struct Rollout {
    playout: Playout,
    rng: Rng,
    game: Game,
}

impl Rollout {
    /// The games depend only on the seed and the leaves.
    pub fn new(playout: Playout, seed: Seed) -> Rollout {
        Rollout { playout, rng: seed.derive("rollout").rng(), game: Game::new() }
    }

    /// Plays random moves from a position. The result is for its side to move.
    pub fn play(&mut self, start: &Game) -> Wdl {
        let side = start.turn();
        self.game.copy_recent(start, 1);
        self.game.set_rules(Rules::default());
        loop {
            let legal = self.game.legal_moves();
            if let Some(outcome) = self.game.outcome_given(&legal) {
                return Wdl::of_outcome(outcome, side);
            }
            if let Playout::Capped { plies, decided_at } = self.playout {
                let board = self.game.position().board();
                let balance = material(board, side) - material(board, !side);
                if balance.abs() >= decided_at {
                    return if balance > 0.0 { Wdl::WIN } else { Wdl::LOSS };
                }
                if self.game.ply() >= plies as usize {
                    let value = balance / decided_at;
                    return Wdl::new(value, 1.0 - value.abs());
                }
            }
            let m = *self.rng.choose(&legal).expect("a game that goes on has a legal move");
            self.game.play_unchecked(m);
        }
    }
}

impl Evaluator for Rollout {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        for (leaf, evaluation) in leaves.iter().zip(evaluations) {
            if leaf.need.value() {
                evaluation.wdl = self.play(&leaf.game);
            }
            evaluation.logits.clear();
            evaluation.logits.resize(leaf.legal.len(), 0.0);
        }
    }
}
