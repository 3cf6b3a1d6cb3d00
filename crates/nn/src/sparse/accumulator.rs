//! The sums of the wide layer, carried from one position to the next.
//!
//! Positions that a search judges one after the other have most features in common, if they
//! are seen from the same side. So the last sums are kept for each way to see a board, and only
//! the rows of features that differ are added or taken away. Integers do not drift: the sums
//! are the same as if they had been added up anew.

use selfmate_chess::{Chess, Position};
use selfmate_encode::sparse::{FeatureSet, Features, Threats};

use super::kernel::Lines;

/// The latest sums for each way to see a board.
#[derive(Clone, Debug)]
pub(super) struct Accumulators {
    /// By side to move and mirroring: a board seen another way has other features throughout.
    latest: [Accumulator; 4],
}

#[derive(Clone, Debug)]
struct Accumulator {
    features: FeatureSet,
    count: usize,
    sums: Lines,
}

/// How to get from sums of an earlier position to those of this one.
pub(super) struct Step<'a> {
    /// Features whose rows are to be added.
    pub added: Features,
    /// Features whose rows are to be taken away.
    pub removed: Features,
    /// The sums; whoever asks for a step has to take it.
    pub sums: &'a mut [i16],
}

impl Accumulators {
    /// Sums of no features at all: the bias.
    pub fn new(bias: &Lines) -> Accumulators {
        let sums = bias.clone();
        let empty = Accumulator { features: FeatureSet::EMPTY, count: 0, sums };
        Accumulators { latest: std::array::from_fn(|_| empty.clone()) }
    }

    /// The shortest way to a position, from earlier sums or from the bias.
    pub fn step(&mut self, position: &Chess, bias: &Lines) -> Step<'_> {
        let threats = Threats::of(position);
        let white = position.turn().is_white();
        let latest = &mut self.latest[2 * usize::from(white) + usize::from(threats.mirrored())];
        let features = threats.feature_set();
        let (mut added, mut removed) = features.changes(&latest.features);
        latest.count = latest.count + added.as_slice().len() - removed.as_slice().len();
        if added.as_slice().len() + removed.as_slice().len() > latest.count {
            (added, removed) = features.changes(&FeatureSet::EMPTY);
            latest.sums.as_mut_slice().copy_from_slice(bias.as_slice());
        }
        latest.features = features;
        Step { added, removed, sums: latest.sums.as_mut_slice() }
    }
}
