//! The network as an evaluator for search.

use selfmate_chess::Move;
use selfmate_chess::env::ActionSpace;
use selfmate_encode::MoveSpace;
use selfmate_search::{Evaluation, Evaluator, Leaf};

use super::network::Network;
use super::session::{Session, ThreadsError, wdl_of_outputs};

/// Evaluates leaves with a residual network. Larger batches are faster.
///
/// A scalar value head has no draws: its v becomes (1 + v) / 2 wins and (1 - v) / 2 losses.
#[derive(Debug)]
pub struct NetworkEvaluator {
    session: Session,
    planes: Vec<f32>,
    moves: Vec<Vec<u16>>,
    logits: Vec<Vec<f32>>,
    value: Vec<f32>,
}

impl NetworkEvaluator {
    /// Runs on the caller's thread.
    pub fn new(network: &Network) -> NetworkEvaluator {
        NetworkEvaluator::of(Session::new(network))
    }

    /// Divides each batch among threads.
    pub fn with_threads(
        network: &Network,
        threads: usize,
    ) -> Result<NetworkEvaluator, ThreadsError> {
        Ok(NetworkEvaluator::of(Session::with_threads(network, threads)?))
    }

    fn of(session: Session) -> NetworkEvaluator {
        NetworkEvaluator {
            session,
            planes: Vec::new(),
            moves: Vec::new(),
            logits: Vec::new(),
            value: Vec::new(),
        }
    }
}

impl Evaluator for NetworkEvaluator {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        let config = self.session.network().config();
        let encoding = config.encoding();
        self.planes.resize(leaves.len() * encoding.size(), 0.0);
        self.moves.resize_with(leaves.len().max(self.moves.len()), Vec::new);
        self.logits.resize_with(leaves.len().max(self.logits.len()), Vec::new);
        let (moves, logits) = (&mut self.moves[..leaves.len()], &mut self.logits[..leaves.len()]);
        let planes = self.planes.chunks_exact_mut(encoding.size());
        for ((leaf, planes), moves) in leaves.iter().zip(planes).zip(&mut *moves) {
            encoding.encode(&leaf.game, planes);
            moves.clear();
            if leaf.need.policy() {
                let position = leaf.game.position();
                let number = |m: Move| MoveSpace::Az4672.index(position, m);
                let numbers =
                    leaf.legal.iter().map(|&m| number(m).expect("every legal move has a number"));
                moves.extend(numbers.map(|number| number as u16));
            }
        }
        // The logits are written directly into the search's evaluations.
        for (evaluation, logits) in evaluations.iter_mut().zip(&mut *logits) {
            std::mem::swap(&mut evaluation.logits, logits);
        }
        self.session.run_moves(&self.planes, moves, logits, &mut self.value);
        let values = self.value.chunks_exact(config.value.outputs());
        let results = evaluations.iter_mut().zip(&mut *logits).zip(values).zip(leaves);
        for (((evaluation, logits), value), leaf) in results {
            std::mem::swap(&mut evaluation.logits, logits);
            if leaf.need.value() {
                evaluation.wdl = wdl_of_outputs(config.value, value);
            }
        }
    }

    fn history(&self) -> usize {
        self.session.network().config().encoding().history()
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;
    use selfmate_encode::Planes;
    use selfmate_search::Need;

    use super::*;
    use crate::residual::{Config, Outputs, ValueHead, Weights};
    use crate::sparse::bench::leaves;

    #[test]
    fn legal_logits_match_the_full_policy() {
        let config = Config { blocks: 1, value: ValueHead::Wdl, ..Config::small() };
        let network = Network::new(&Weights::random(config, Seed::new(4)).unwrap());
        let mut leaves = leaves(5, Seed::new(4), Need::Both);
        leaves[3].need = Need::Value;
        let mut evaluations = vec![Evaluation::default(); 5];
        let mut evaluator = NetworkEvaluator::new(&network);
        evaluator.evaluate(&leaves, &mut evaluations);
        assert_eq!(evaluator.history(), 8);
        let mut outputs = Outputs::default();
        let mut session = Session::new(&network);
        for (leaf, evaluation) in leaves.iter().zip(&evaluations) {
            session.run(&Planes::Planes119.encoded(&leaf.game), &mut outputs);
            assert_eq!(outputs.wdl(0), evaluation.wdl);
            let expected = if leaf.need.policy() { leaf.legal.len() } else { 0 };
            assert_eq!(evaluation.logits.len(), expected);
            for (logit, &m) in evaluation.logits.iter().zip(&leaf.legal) {
                let number = MoveSpace::Az4672.index(leaf.game.position(), m).unwrap();
                assert!((logit - outputs.policy[number]).abs() < 1e-5);
            }
        }
    }
}
