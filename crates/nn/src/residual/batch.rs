//! Training batches.

use selfmate_search::Wdl;

use super::config::{Config, MOVES};

/// Positions with their policy and value targets. Its memory can be reused.
#[derive(Clone, Debug)]
pub struct Batch {
    planes_each: usize,
    planes: Vec<f32>,
    /// The end of each position's moves.
    ends: Vec<usize>,
    moves: Vec<(u16, f32)>,
    values: Vec<Wdl>,
}

/// Why a position cannot be used for training.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BatchError {
    /// A position of another encoding.
    #[error("a position of {got} numbers: expected {expected}")]
    Planes { got: usize, expected: usize },
    /// A plane value that is NaN or infinite.
    #[error("the planes hold {value} at {index}")]
    NotFinite { index: usize, value: f32 },
    /// A move number out of range.
    #[error("move {0} is out of range: expected a number below {MOVES}")]
    Move(u16),
    #[error("move {0} is listed twice")]
    Twice(u16),
    /// Move probabilities that do not sum to 1.
    #[error("{moves} moves whose probabilities sum to {sum}: expected 1")]
    Shares {
        moves: usize,
        /// NaN when a probability is negative.
        sum: f32,
    },
    /// Invalid win, draw and loss probabilities.
    #[error("probabilities {0:?}: expected numbers from 0 to 1 that sum to 1")]
    Value(Wdl),
}

impl Batch {
    pub fn new(config: Config) -> Batch {
        Batch {
            planes_each: config.planes * 64,
            planes: Vec::new(),
            ends: Vec::new(),
            moves: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Adds a position: its planes, every legal move with its target probability (which may be 0),
    /// and the result for the side to move. A scalar value head is trained on win minus loss.
    pub fn push(
        &mut self,
        planes: &[f32],
        policy: &[(u16, f32)],
        value: Wdl,
    ) -> Result<(), BatchError> {
        if planes.len() != self.planes_each {
            return Err(BatchError::Planes { got: planes.len(), expected: self.planes_each });
        }
        if let Some(index) = planes.iter().position(|value| !value.is_finite()) {
            return Err(BatchError::NotFinite { index, value: planes[index] });
        }
        if let Some(&(number, _)) = policy.iter().find(|(m, _)| usize::from(*m) >= MOVES) {
            return Err(BatchError::Move(number));
        }
        for (index, (number, _)) in policy.iter().enumerate() {
            if policy[..index].iter().any(|(other, _)| other == number) {
                return Err(BatchError::Twice(*number));
            }
        }
        let is_negative = policy.iter().any(|(_, share)| *share < 0.0);
        let sum = if is_negative { f32::NAN } else { policy.iter().map(|(_, share)| share).sum() };
        if sum.is_nan() || (sum - 1.0).abs() > 1e-3 {
            return Err(BatchError::Shares { moves: policy.len(), sum });
        }
        let probabilities = [value.win, value.draw, value.loss];
        let total: f32 = probabilities.iter().sum();
        if !probabilities.iter().all(|probability| (0.0..=1.0).contains(probability))
            || (total - 1.0).abs() > 1e-3
        {
            return Err(BatchError::Value(value));
        }
        self.planes.extend_from_slice(planes);
        self.moves.extend_from_slice(policy);
        self.ends.push(self.moves.len());
        self.values.push(value);
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True when the batch has no positions.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Removes all positions.
    pub fn clear(&mut self) {
        self.planes.clear();
        self.ends.clear();
        self.moves.clear();
        self.values.clear();
    }

    /// The planes of all positions, one after the other.
    pub fn planes(&self) -> &[f32] {
        &self.planes
    }

    /// Numbers per position.
    pub(crate) fn planes_each(&self) -> usize {
        self.planes_each
    }

    /// The moves of a position with their target probabilities.
    pub fn moves(&self, index: usize) -> &[(u16, f32)] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.moves[start..self.ends[index]]
    }

    /// The result target of a position.
    pub fn value(&self, index: usize) -> Wdl {
        self.values[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_what_is_wrong_with_a_position() {
        let config = Config { planes: 9, ..Config::small() };
        let mut batch = Batch::new(config);
        let planes = vec![0.0; 9 * 64];
        let mut push = |planes: &[f32], policy: &[(u16, f32)], value| {
            batch.push(planes, policy, value).unwrap_err().to_string()
        };
        let even = [(7, 0.5), (9, 0.5)];
        assert_eq!(push(&planes[1..], &even, Wdl::WIN), "a position of 575 numbers: expected 576");
        assert_eq!(
            push(&planes, &[(4672, 1.0)], Wdl::WIN),
            "move 4672 is out of range: expected a number below 4672"
        );
        assert_eq!(push(&planes, &[(3, 0.5), (3, 0.5)], Wdl::WIN), "move 3 is listed twice");
        assert!(push(&planes, &[], Wdl::WIN).starts_with("0 moves"));
        assert!(push(&planes, &[(1, 1.5), (2, -0.5)], Wdl::WIN).contains("NaN"));
        assert!(push(&planes, &[(1, f32::NAN)], Wdl::WIN).contains("NaN"));
        let value = Wdl { win: 2.0, draw: 0.0, loss: -1.0 };
        assert!(push(&planes, &even, value).starts_with("probabilities"));
        let mut broken = planes.clone();
        broken[8] = f32::INFINITY;
        assert_eq!(push(&broken, &even, Wdl::WIN), "the planes hold inf at 8");
        assert!(batch.is_empty(), "an invalid position leaves the batch unchanged");
        batch.push(&planes, &even, Wdl::DRAW).unwrap();
        batch.push(&planes, &[(1, 1.0)], Wdl::LOSS).unwrap();
        assert_eq!((batch.moves(0), batch.moves(1)), (&even[..], &[(1, 1.0)][..]));
    }
}
