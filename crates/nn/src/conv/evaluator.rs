//! The network as an evaluator of endings, with convolutions by Winograd's method.

use std::sync::Arc;

use selfmate_chess::Game;
use selfmate_chess::env::ActionSpace;
use selfmate_encode::MoveSpace;
use selfmate_search::{Evaluation, Evaluator, Leaf, Wdl};

use super::network::{ENCODING, Network, outputs};
use super::trunk::Trunk;
use crate::mlp::{MAX_VALUE, NO_INDEX_LOGIT};
use crate::residual::{End, Floats, Kernel, LANES, Layer, TileScratch, Tiles, boards_of};
use crate::small::kernel::multiply_transposed;
use crate::valuenet::board::SQUARES;

/// Positions that are convolved together, so that the tiles stay in the second-level cache.
const BLOCK: usize = 8;

pub struct NetworkEvaluator {
    network: Arc<Network>,
    kernel: Kernel,
    /// The stem, then two for each block. Channels are padded to whole vectors.
    layers: Vec<Layer>,
    channels: usize,
    /// The 1×1 convolution: head × channels.
    head: Vec<f32>,
    scratch: Scratch,
}

/// Reusable buffers.
#[derive(Default)]
struct Scratch {
    planes: Vec<f32>,
    input: Floats,
    tower: Floats,
    between: Floats,
    tiles: TileScratch,
    head: Vec<f32>,
    hidden: Vec<f32>,
    moves: Vec<u16>,
    logits: Vec<f32>,
}

impl NetworkEvaluator {
    pub fn new(network: Arc<Network>) -> NetworkEvaluator {
        let (config, weights) = (network.config(), &network.weights);
        let trunk = config.trunk();
        let channels = trunk.channels.next_multiple_of(LANES);
        let layer = |index: usize, inputs: usize, padded_inputs: usize| {
            let mut filters = vec![0.0; channels * padded_inputs * 9];
            for (output, filter) in weights.part(index).chunks_exact(inputs * 9).enumerate() {
                filters[output * padded_inputs * 9..][..filter.len()].copy_from_slice(filter);
            }
            let mut bias = weights.part(index + 1).to_vec();
            bias.resize(channels, 0.0);
            Layer::plain(&filters, &bias, padded_inputs)
        };
        let mut layers = vec![layer(Trunk::STEM, trunk.planes, trunk.planes)];
        for block in 0..trunk.blocks {
            for index in [Trunk::first_of(block), Trunk::second_of(block)] {
                layers.push(layer(index, trunk.channels, channels));
            }
        }
        let mut head = vec![0.0; trunk.head * channels];
        let rows = weights.part(trunk.head_index()).chunks_exact(trunk.channels);
        for (padded, row) in head.chunks_exact_mut(channels).zip(rows) {
            padded[..trunk.channels].copy_from_slice(row);
        }
        let (kernel, scratch) = (Kernel::detect(), Scratch::default());
        NetworkEvaluator { network, kernel, layers, channels, head, scratch }
    }

    /// The expected result of the side to move.
    pub fn value(&mut self, game: &Game) -> f32 {
        self.convolve(std::iter::once(game));
        self.scratch.moves.clear();
        self.finish(0)
    }

    /// Runs up to [`BLOCK`] positions through stem and blocks.
    fn convolve<'a>(&mut self, games: impl ExactSizeIterator<Item = &'a Game>) {
        let (count, size) = (games.len(), ENCODING.size());
        let Scratch { planes, input, tower, between, tiles, .. } = &mut self.scratch;
        planes.resize(count * size, 0.0);
        for (game, planes) in games.zip(planes.chunks_exact_mut(size)) {
            ENCODING.encode(game, planes);
        }
        let padded = ENCODING.count().next_multiple_of(LANES);
        let (boards, channels) = (count, self.channels);
        input.grow(count * SQUARES * padded);
        tower.grow(count * SQUARES * channels);
        between.grow(count * SQUARES * channels);
        tiles.tiles.grow(Tiles { boards, channels: padded.max(channels) }.len());
        tiles.products.grow(Tiles { boards, channels }.len());
        boards_of(planes, ENCODING.count(), input);
        self.layers[0].run(self.kernel, count, input, tiles, tower, End::Relu);
        let end = if self.network.config().has_skips { End::AddRelu } else { End::Relu };
        for layers in self.layers[1..].chunks_exact(2) {
            layers[0].run(self.kernel, count, tower, tiles, between, End::Relu);
            layers[1].run(self.kernel, count, between, tiles, tower, end);
        }
    }

    /// The value of one of the convolved positions; the logits of `scratch.moves` go to
    /// `scratch.logits`.
    fn finish(&mut self, index: usize) -> f32 {
        let (config, weights) = (self.network.config(), &self.network.weights);
        let trunk = config.trunk();
        let Scratch { tower, head, hidden, moves, logits, .. } = &mut self.scratch;
        let board = &tower[index * SQUARES * self.channels..][..SQUARES * self.channels];
        head.clear();
        for &bias in weights.part(trunk.head_index() + 1) {
            head.extend([bias; SQUARES]);
        }
        multiply_transposed(&self.head, board, head, (trunk.head, self.channels, SQUARES));
        head.iter_mut().for_each(|value| *value = value.max(0.0));
        hidden.clear();
        hidden.extend_from_slice(weights.part(trunk.hidden_index() + 1));
        let rows = weights.part(trunk.hidden_index());
        multiply_transposed(rows, head, hidden, (trunk.hidden, head.len(), 1));
        hidden.iter_mut().for_each(|value| *value = value.max(0.0));
        outputs(config, weights, hidden, moves, logits).clamp(-MAX_VALUE, MAX_VALUE)
    }
}

impl Evaluator for NetworkEvaluator {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        for (leaves, evaluations) in leaves.chunks(BLOCK).zip(evaluations.chunks_mut(BLOCK)) {
            self.convolve(leaves.iter().map(|leaf| &leaf.game));
            for (index, (leaf, evaluation)) in leaves.iter().zip(evaluations).enumerate() {
                let number = |m| MoveSpace::FromTo4096.index(leaf.game.position(), m);
                let numbers = || leaf.legal.iter().map(|&m| number(m));
                self.scratch.moves.clear();
                self.scratch.moves.extend(numbers().flatten().map(|number| number as u16));
                let value = self.finish(index);
                evaluation.wdl = Wdl::new(value, 1.0 - value.abs());
                let mut logits = self.scratch.logits.iter().copied();
                evaluation.logits.clear();
                evaluation
                    .logits
                    .extend(numbers().map(|number| {
                        number.and_then(|_| logits.next()).unwrap_or(NO_INDEX_LOGIT)
                    }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;
    use selfmate_chess::fen::parse_game;
    use selfmate_search::Need;

    use super::super::network::{ConvConfig, Forward};
    use super::*;

    /// The underpromotions of the pawn have no number.
    const FENS: [&str; 3] = [
        "8/8/8/4k3/8/8/2R5/4K3 w - - 4 1",
        "8/8/8/4k3/8/8/2R5/4K3 b - - 9 1",
        "8/P7/8/4k3/8/8/8/4K3 w - - 0 1",
    ];

    #[test]
    fn evaluations_agree_with_the_network_in_any_batch() {
        for has_skips in [false, true] {
            let config = ConvConfig { channels: 20, blocks: 2, has_skips, head: 3, hidden: 10 };
            let mut network = Network::random(config, Seed::new(5)).unwrap();
            let mut rng = Seed::new(6).rng();
            for output in [config.policy_index(), config.value_index()] {
                network.weights.randomise(output, config.hidden, 1.0, &mut rng);
            }
            let network = Arc::new(network);
            let mut evaluator = NetworkEvaluator::new(Arc::clone(&network));
            let leaf = |index: usize| {
                let game = parse_game(FENS[index % FENS.len()]).unwrap();
                Leaf { legal: game.legal_moves(), game, need: Need::Both }
            };
            let leaves: Vec<Leaf> = (0..BLOCK + 3).map(leaf).collect();
            let mut evaluations = vec![Evaluation::default(); leaves.len()];
            evaluator.evaluate(&leaves, &mut evaluations);
            for (leaf, evaluation) in leaves.iter().zip(&evaluations) {
                let mut alone = [Evaluation::default()];
                evaluator.evaluate(std::slice::from_ref(leaf), &mut alone);
                assert_eq!((alone[0].wdl, &alone[0].logits), (evaluation.wdl, &evaluation.logits));
                let numbers: Vec<Option<usize>> = leaf
                    .legal
                    .iter()
                    .map(|&m| MoveSpace::FromTo4096.index(leaf.game.position(), m))
                    .collect();
                let moves: Vec<u16> = numbers.iter().flatten().map(|m| *m as u16).collect();
                let mut exact = Forward::default();
                network.forward(&ENCODING.encoded(&leaf.game), &moves, &mut exact);
                let expected = exact.value.clamp(-MAX_VALUE, MAX_VALUE);
                assert!((evaluator.value(&leaf.game) - expected).abs() < 1e-4);
                assert!((evaluation.wdl.value() - expected).abs() < 1e-4);
                let mut logits = exact.logits.iter();
                for (number, logit) in numbers.iter().zip(&evaluation.logits) {
                    let expected = number.map_or(&NO_INDEX_LOGIT, |_| logits.next().unwrap());
                    assert!((logit - expected).abs() < 1e-4, "{logit} {expected}");
                }
            }
        }
    }
}
