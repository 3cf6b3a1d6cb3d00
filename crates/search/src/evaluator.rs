//! The interface between search and evaluation: a batch of positions in, values and priors out.
//!
//! Implement [`Evaluator`] to search with an evaluation of your own.

mod material;
mod rollout;
mod scripted;
mod uniform;

pub use material::Material;
pub use rollout::{Playout, Rollout};
pub use scripted::Scripted;
pub use uniform::Uniform;

use selfmate_chess::{Game, MoveList};

use crate::value::Wdl;

/// Evaluates positions in batches. A cheap evaluator gets batches of one.
pub trait Evaluator: Send {
    /// Fills one evaluation for each leaf with what [`Leaf::need`] requests.
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]);

    /// How many positions of history a leaf must carry, the current one included.
    fn history(&self) -> usize {
        1
    }
}

/// A position to evaluate.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The position with as much history as [`Evaluator::history`] requests.
    pub game: Game,
    /// Empty when only the value is needed.
    pub legal: MoveList,
    pub need: Need,
}

impl Default for Leaf {
    fn default() -> Leaf {
        Leaf { game: Game::new(), legal: MoveList::new(), need: Need::Both }
    }
}

/// Which outputs a search needs for a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Value,
    Policy,
    Both,
}

impl Need {
    pub fn value(self) -> bool {
        self != Need::Policy
    }

    pub fn policy(self) -> bool {
        self != Need::Value
    }
}

#[derive(Clone, Debug)]
pub struct Evaluation {
    /// For the side to move.
    pub wdl: Wdl,
    /// One raw logit for each legal move, in the order of [`Leaf::legal`]. The search turns them
    /// into priors.
    pub logits: Vec<f32>,
}

impl Default for Evaluation {
    fn default() -> Evaluation {
        Evaluation { wdl: Wdl::EVEN, logits: Vec::new() }
    }
}
