//! The network as an evaluator of endings: it sees the canonical board.

use std::sync::Arc;

use selfmate_chess::{Game, MoveList};
use selfmate_encode::Canonical;
use selfmate_search::{Evaluation, Evaluator, Leaf, Wdl};

use super::network::{Forward, Network};

/// The largest value that is not certain: only the rules of chess are.
pub(crate) const MAX_VALUE: f32 = 0.99;

/// The logit of a move without an index: promotions to anything but a queen.
pub const NO_INDEX_LOGIT: f32 = -8.0;

pub struct NetworkEvaluator {
    network: Arc<Network>,
    canonical: Canonical,
    indices: Vec<u16>,
    forward: Forward,
}

impl NetworkEvaluator {
    pub fn new(network: Arc<Network>) -> NetworkEvaluator {
        NetworkEvaluator {
            network,
            canonical: Canonical::default(),
            indices: Vec::new(),
            forward: Forward::default(),
        }
    }

    /// The expected result of the side to move.
    pub fn value(&mut self, game: &Game) -> f32 {
        self.forward(game, &MoveList::new())
    }

    fn forward(&mut self, game: &Game, legal: &MoveList) -> f32 {
        self.canonical.encode(game.position(), legal);
        self.indices.clear();
        self.indices.extend(self.canonical.indices());
        self.network.forward(&self.canonical.features, &self.indices, &mut self.forward);
        self.forward.value.clamp(-MAX_VALUE, MAX_VALUE)
    }
}

impl Evaluator for NetworkEvaluator {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        for (leaf, evaluation) in leaves.iter().zip(evaluations) {
            let value = self.forward(&leaf.game, &leaf.legal);
            evaluation.wdl = Wdl::new(value, 1.0 - value.abs());
            let mut logits = self.forward.logits.iter().copied();
            let logit =
                |index: &Option<u16>| index.and_then(|_| logits.next()).unwrap_or(NO_INDEX_LOGIT);
            evaluation.logits.clear();
            evaluation.logits.extend(self.canonical.moves.iter().map(logit));
        }
    }
}
