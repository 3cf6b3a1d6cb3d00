//! Plays random moves and returns the result: plain Monte Carlo.

use selfmate_chess::{Game, Position, Rng, Rules, Seed};

use super::material::material;
use super::{Evaluation, Evaluator, Leaf};
use crate::value::Wdl;

/// How long a random game is, and what it is worth if it does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Playout {
    /// Until the game ends by the rules.
    Full,
    /// At most this many plies; a game that has not ended is worth a draw.
    Random { plies: u32 },
    /// At most this many plies; a game that has not ended is scored by material, and a lead of
    /// eight pawns ends it as won.
    Material { plies: u32 },
}

/// In pawns.
const DECIDED_AT: f32 = 8.0;

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
            let outcome = self.game.outcome_given(&legal);
            if let Some(result) = outcome.and_then(|outcome| Wdl::of_outcome(outcome, side)) {
                return result;
            }
            match self.playout {
                Playout::Random { plies } if self.game.ply() >= plies as usize => return Wdl::DRAW,
                Playout::Material { plies } => {
                    let board = self.game.position().board();
                    let balance = material(board, side) - material(board, !side);
                    if balance.abs() >= DECIDED_AT {
                        return if balance > 0.0 { Wdl::WIN } else { Wdl::LOSS };
                    }
                    if self.game.ply() >= plies as usize {
                        let value = balance / DECIDED_AT;
                        return Wdl::new(value, 1.0 - value.abs());
                    }
                }
                Playout::Full | Playout::Random { .. } => {}
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
