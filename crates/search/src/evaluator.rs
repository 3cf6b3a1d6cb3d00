//! The seam between search and knowledge: a batch of positions in, values and priors out.

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

/// Judges positions. Batch in, batch out; a cheap evaluator gets batches of one.
pub trait Evaluator: Send {
    /// Fills one evaluation for each leaf, as far as [`Leaf::need`] asks.
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]);

    /// How many positions of history a leaf must carry, the current one included.
    fn history(&self) -> usize {
        1
    }
}

/// A position that a search wants judged.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The position with as much history as the evaluator asked for.
    pub game: Game,
    /// The legal moves; empty when only the value is needed.
    pub legal: MoveList,
    /// What the search wants to know.
    pub need: Need,
}

impl Default for Leaf {
    fn default() -> Leaf {
        Leaf { game: Game::new(), legal: MoveList::new(), need: Need::Both }
    }
}

/// What a search wants to know of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Only the value.
    Value,
    /// Only the priors.
    Policy,
    /// Value and priors.
    Both,
}

impl Need {
    /// The value is asked for.
    pub fn value(self) -> bool {
        self != Need::Policy
    }

    /// The priors are asked for.
    pub fn policy(self) -> bool {
        self != Need::Value
    }
}

/// What an evaluator thinks of a leaf.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The chances of the side to move.
    pub wdl: Wdl,
    /// One raw logit for each legal move, in the order of [`Leaf::legal`]; the search turns
    /// them into priors.
    pub logits: Vec<f32>,
}

impl Default for Evaluation {
    fn default() -> Evaluation {
        Evaluation { wdl: Wdl::EVEN, logits: Vec::new() }
    }
}
