//! The shape of a sparse network.

use selfmate_encode::sparse::{MOVE_ROWS, MOVE_TABLE, THREATS3084_LEN};
use serde::{Deserialize, Serialize};

/// The shape of a sparse network. Its inputs are `threats3084`, its moves `threat_rows`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SparseConfig {
    /// Units of the wide layer: a multiple of 64, at most 1024 so that integer sums cannot
    /// overflow.
    pub hidden: usize,
    /// Units between the wide layer and the value: a multiple of 8, at most 64.
    pub value_hidden: usize,
    pub value_head: ValueHead,
}

/// The output of the value head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueHead {
    /// Three classes: win, draw, loss.
    Wdl,
    /// One number: the expected score. Draws count as half a win and half a loss.
    Score,
}

impl ValueHead {
    /// The number of logits.
    pub fn outputs(self) -> usize {
        match self {
            ValueHead::Wdl => 3,
            ValueHead::Score => 1,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {got}: expected a multiple of {step} from {step} to {most}")]
pub struct ConfigError {
    field: &'static str,
    got: usize,
    step: usize,
    most: usize,
}

impl Default for SparseConfig {
    fn default() -> SparseConfig {
        SparseConfig { hidden: 256, value_hidden: 32, value_head: ValueHead::Wdl }
    }
}

impl SparseConfig {
    /// Checks that the shape is within the supported limits.
    pub fn check(&self) -> Result<(), ConfigError> {
        let fields =
            [("hidden", self.hidden, 64, 1024), ("value_hidden", self.value_hidden, 8, 64)];
        for (field, got, step, most) in fields {
            if got == 0 || !got.is_multiple_of(step) || got > most {
                return Err(ConfigError { field, got, step, most });
            }
        }
        Ok(())
    }

    /// The number of weights.
    pub fn parameters(&self) -> usize {
        let (hidden, middle, outputs) = (self.hidden, self.value_hidden, self.value_head.outputs());
        let value = (hidden + 1) * middle + (middle + 1) * outputs;
        (THREATS3084_LEN + 1) * hidden + value + MOVE_ROWS * (hidden + 1) + MOVE_TABLE
    }
}
