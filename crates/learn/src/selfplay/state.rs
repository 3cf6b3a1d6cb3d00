//! What a checkpoint remembers besides weights and optimiser.

use serde::{Deserialize, Serialize};

use super::guards::Guards;
use super::statistics::Statistics;

/// Files of a checkpoint.
pub const MODEL: &str = "model.safetensors";
/// The optimiser with its own copy of the weights.
pub const TRAINER: &str = "trainer.safetensors";
/// A [`State`] as JSON.
pub const STATE: &str = "learner.json";

/// Where a run stands between two generations, or in the middle of learning from one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Generations played and learned.
    pub generation: u64,
    /// Games played.
    pub games: u64,
    /// Positions recorded.
    pub positions: u64,
    /// Simulations; those of games that were found again after a kill are not counted.
    pub simulations: u64,
    /// Seconds of training.
    pub elapsed_s: f64,
    /// The guards' memory.
    pub guards: Guards,
    /// The generations of the replay window, oldest first.
    pub window: Vec<WindowEntry>,
    /// What is being learned from the newest of them; `None` between two generations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lesson: Option<Lesson>,
}

/// A generation that was played and is being learned from. Its games and positions are counted, but
/// it is not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lesson {
    /// What its games look like.
    pub statistics: Statistics,
    /// Simulations that were searched for it now.
    pub simulations: u64,
    /// Seconds that it took to play.
    pub play_s: f64,
    /// Seconds that were spent on learning so far.
    pub learn_s: f64,
    /// Batches so far, and the sums of their losses.
    pub batches: u64,
    /// See `batches`.
    pub losses: MeanLosses,
}

/// Losses of several batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeanLosses {
    /// Of the value.
    pub value: f64,
    /// Of the policy.
    pub policy: f64,
    /// The length of the gradient.
    pub gradient_norm: f64,
}

/// A generation in the replay window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowEntry {
    /// Its number.
    pub generation: u64,
    /// Its positions.
    pub positions: u64,
    /// The weight of results in its value targets.
    pub result_weight: f64,
    /// The mean entropy of its policy targets.
    pub entropy: f64,
}

impl State {
    /// The mean entropy of the policy targets in the window.
    pub fn window_entropy(&self) -> f64 {
        let positions: u64 = self.window.iter().map(|entry| entry.positions).sum();
        let sum: f64 = self.window.iter().map(|entry| entry.entropy * entry.positions as f64).sum();
        sum / (positions as f64).max(1.0)
    }
}
