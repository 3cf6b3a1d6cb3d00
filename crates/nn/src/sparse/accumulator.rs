//! Incremental sums of the wide layer.
//!
//! Consecutive positions of a search share most features if they are seen from the same side. The
//! latest sums are kept for each orientation of the board, and only the rows of changed features
//! are added or subtracted. Integers do not drift: the sums equal those computed from scratch.

use selfmate_chess::{Chess, Position};
use selfmate_encode::sparse::{FeatureSet, Features, Threats};

use super::kernel::Lines;

/// The latest sums for each orientation of the board.
#[derive(Clone, Debug)]
pub(super) struct Accumulators {
    /// By side to move and mirroring: another orientation has entirely different features.
    latest: [Accumulator; 4],
}

#[derive(Clone, Debug)]
struct Accumulator {
    features: FeatureSet,
    count: usize,
    sums: Lines,
}

/// The difference between the sums of an earlier position and those of this one.
pub(super) struct Step<'a> {
    /// Features whose rows must be added.
    pub added: Features,
    /// Features whose rows must be subtracted.
    pub removed: Features,
    /// The sums. The caller must apply the step to them.
    pub sums: &'a mut [i16],
}

impl Accumulators {
    /// Sums without any feature: the bias.
    pub fn new(bias: &Lines) -> Accumulators {
        let sums = bias.clone();
        let empty = Accumulator { features: FeatureSet::EMPTY, count: 0, sums };
        Accumulators { latest: std::array::from_fn(|_| empty.clone()) }
    }

    /// The shortest update to a position, from earlier sums or from the bias.
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
