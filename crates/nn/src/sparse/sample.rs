//! A compact training sample, since a replay buffer holds millions of them.

use selfmate_chess::{Game, MoveList};
use selfmate_encode::sparse::{MoveKey, MoveRows, Threats};
use selfmate_search::Wdl;

/// A training sample: the features and legal moves of a position, and its targets.
///
/// About 270 bytes for a position with 30 moves, in one allocation.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Features, then rows, then table entries, then the policy target in 65535ths.
    words: Box<[u16]>,
    features: u16,
    wdl: [f32; 3],
}

/// A target that does not fit the position.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SampleError {
    /// The number of probabilities differs from the number of legal moves.
    #[error("{got} probabilities for {moves} legal moves")]
    Moves { got: usize, moves: usize },
    #[error("the target holds {0}: expected numbers from 0 to 1")]
    Probability(f32),
}

impl Sample {
    /// A position with the target policy over `legal` and the target probabilities of win, draw and
    /// loss.
    ///
    /// An all-zero policy trains only the value.
    pub fn new(
        game: &Game,
        legal: &MoveList,
        policy: &[f32],
        wdl: Wdl,
    ) -> Result<Sample, SampleError> {
        if policy.len() != legal.len() {
            return Err(SampleError::Moves { got: policy.len(), moves: legal.len() });
        }
        let wdl = [wdl.win, wdl.draw, wdl.loss];
        let bad = |p: &&f32| !(0.0..=1.001).contains(*p);
        if let Some(&probability) = policy.iter().chain(&wdl).find(bad) {
            return Err(SampleError::Probability(probability));
        }
        let threats = Threats::of(game.position());
        let rows = MoveRows::of(&threats);
        let features = threats.features();
        let features = features.as_slice();
        let keys: Vec<MoveKey> = legal.iter().map(|&m| rows.key(m)).collect();
        let mut words = Vec::with_capacity(features.len() + 3 * keys.len());
        words.extend_from_slice(features);
        words.extend(keys.iter().map(|key| key.row));
        words.extend(keys.iter().map(|key| key.table));
        words.extend(policy.iter().map(|p| (p.min(1.0) * 65535.0).round() as u16));
        Ok(Sample { words: words.into(), features: features.len() as u16, wdl })
    }

    /// The active features.
    pub fn features(&self) -> &[u16] {
        &self.words[..usize::from(self.features)]
    }

    /// The number of legal moves.
    pub fn moves(&self) -> usize {
        (self.words.len() - usize::from(self.features)) / 3
    }

    /// The row of each legal move.
    pub fn rows(&self) -> &[u16] {
        self.part(0)
    }

    /// The table entry of each legal move.
    pub fn table(&self) -> &[u16] {
        self.part(1)
    }

    /// The policy target, not normalised; divide by the sum.
    pub fn shares(&self) -> &[u16] {
        self.part(2)
    }

    /// The target for win, draw and loss.
    pub fn wdl(&self) -> [f32; 3] {
        self.wdl
    }

    fn part(&self, index: usize) -> &[u16] {
        let moves = self.moves();
        &self.words[usize::from(self.features) + index * moves..][..moves]
    }
}
