//! What a checkpoint remembers besides weights and optimiser.

use serde::{Deserialize, Serialize};

use super::guards::Guards;

/// Files of a checkpoint.
pub const MODEL: &str = "model.safetensors";
/// The optimiser with its own copy of the weights.
pub const TRAINER: &str = "trainer.safetensors";
/// A [`State`] as JSON.
pub const STATE: &str = "learner.json";

/// Where a run stands between two generations.
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
