//! The network in integers, for play: the same bits on every processor.
//!
//! Input weights, activations and the weights after them have a scale of 1024, so logits are in
//! units of 2⁻²⁰. With weights within the bounds of [`super::Weights::clip`], no sum over up to 32
//! pieces can overflow; with more pieces, sums may wrap, identically on every processor. Only the
//! final results are converted to floats.

use selfmate_chess::Chess;
use selfmate_encode::sparse::{MoveKey, MoveRows, Threats};
use selfmate_search::{Evaluation, Evaluator, Leaf, Wdl, math};

use super::accumulator::{Accumulators, Step};
use super::config::{SparseConfig, ValueHead};
use super::kernel::{Kernel, Lines, Pages};
use super::weights::Weights;

/// 1.0 in the sums of input weights.
pub(super) const INPUT_ONE: i16 = 1024;
/// 1.0 in the activations of the wide layer and of the value head's layer.
pub(super) const ACTIVATION_ONE: i16 = 1024;
/// 1.0 in the weights after the wide layer; input weights have the same scale.
pub(super) const WEIGHT_ONE: f32 = 1024.0;
/// 1.0 in the sums of products.
const SUM_ONE: f32 = (1 << 20) as f32;
/// The upper limit of the value head's units, just below 16.
const VALUE_MOST: i32 = 16_383;

/// A sparse network for play: an [`Evaluator`] that takes about a microsecond per position.
///
/// Clones share the weights. Each thread needs its own clone, because it holds buffers.
///
/// ```
/// use selfmate_chess::{Game, Seed};
/// use selfmate_nn::sparse::{self, Network, SparseConfig, Weights, WeightsInfo};
/// use selfmate_search::{Evaluation, Evaluator, Leaf, Need};
///
/// let config = SparseConfig { hidden: 64, ..SparseConfig::default() };
/// let weights = Weights::random(config, Seed::new(1)).unwrap();
/// // A weight file is these bytes.
/// let bytes = sparse::encode(&weights, WeightsInfo { step: 0 })?;
/// let (weights, _) = sparse::decode(&bytes)?;
///
/// let game = Game::new();
/// let leaf = Leaf { legal: game.legal_moves(), game, need: Need::Both };
/// let mut evaluations = [Evaluation::default()];
/// Network::new(&weights).evaluate(&[leaf], &mut evaluations);
/// // Untrained weights give almost no preference for a result, and one logit per legal move.
/// assert!(evaluations[0].wdl.value().abs() < 0.2);
/// assert_eq!(evaluations[0].logits.len(), 20);
/// # Ok::<(), sparse::WeightsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Network {
    weights: std::sync::Arc<Quantised>,
    kernel: Kernel,
    hidden: Lines,
    value: Vec<i32>,
    rows: Vec<u16>,
    table: Vec<u16>,
    products: Vec<i32>,
}

#[derive(Debug)]
struct Quantised {
    config: SparseConfig,
    input: Pages,
    input_bias: Lines,
    value1: Lines,
    value1_bias: Vec<i32>,
    value1_rows: Vec<u16>,
    value2: Vec<i32>,
    value2_bias: Vec<i32>,
    policy: Pages,
    policy_bias: Vec<i32>,
    table: Vec<i32>,
}

impl Network {
    /// Rounds weights to integers, clipping those out of bounds.
    pub fn new(weights: &Weights) -> Network {
        Network::with_kernel(weights, Kernel::detect())
    }

    /// Like [`Network::new`], with a chosen kernel, which changes the speed but not the result.
    pub fn with_kernel(weights: &Weights, kernel: Kernel) -> Network {
        let config = weights.config();
        let mut weights = weights.clone();
        weights.clip();
        let sums = |values: &[f32]| values.iter().map(|v| (v * SUM_ONE).round() as i32).collect();
        let quantised = Quantised {
            config,
            input: Pages::new(rounded(&weights.input, f32::from(INPUT_ONE))),
            input_bias: Lines::new(rounded(&weights.input_bias, f32::from(INPUT_ONE))),
            value1: Lines::new(rounded(&weights.value1, WEIGHT_ONE)),
            value1_bias: sums(&weights.value1_bias),
            value1_rows: (0..config.value_hidden as u16).collect(),
            value2: weights.value2.iter().map(|v| (v * WEIGHT_ONE).round() as i32).collect(),
            value2_bias: sums(&weights.value2_bias),
            policy: Pages::new(rounded(&weights.policy, WEIGHT_ONE)),
            policy_bias: sums(&weights.policy_bias),
            table: sums(&weights.table),
        };
        Network {
            weights: quantised.into(),
            kernel,
            hidden: Lines::new((0..config.hidden).map(|_| 0)),
            value: vec![0; config.value_hidden],
            rows: Vec::with_capacity(256),
            table: Vec::with_capacity(256),
            products: Vec::with_capacity(256),
        }
    }

    pub fn config(&self) -> SparseConfig {
        self.weights.config
    }

    /// Evaluates one leaf into an evaluation whose memory is reused.
    pub fn evaluate_leaf(&mut self, leaf: &Leaf, evaluation: &mut Evaluation) {
        let threats = Threats::of(leaf.game.position());
        let policy = leaf.need.policy();
        if policy {
            self.prepare_policy(&threats, leaf);
        }
        self.fill_hidden(&threats);
        if leaf.need.value() {
            evaluation.wdl = self.value();
        }
        evaluation.logits.clear();
        if policy {
            self.logits(&mut evaluation.logits);
        }
    }

    /// The value for the side to move, without the policy.
    pub fn wdl(&mut self, position: &Chess) -> Wdl {
        self.fill_hidden(&Threats::of(position));
        self.value()
    }

    /// Like [`Network::wdl`], with sums updated from earlier positions.
    pub(super) fn wdl_from(&mut self, earlier: &mut Accumulators, position: &Chess) -> Wdl {
        let net = &*self.weights;
        let Step { added, removed, sums } = earlier.step(position, &net.input_bias);
        let hidden = self.hidden.as_mut_slice();
        let (added, removed) = (added.as_slice(), removed.as_slice());
        self.kernel.update(net.input.as_slice(), added, removed, sums, hidden);
        self.value()
    }

    /// Initial sums.
    pub(super) fn accumulators(&self) -> Accumulators {
        Accumulators::new(&self.weights.input_bias)
    }

    /// Computes the wide layer.
    fn fill_hidden(&mut self, threats: &Threats) {
        let net = &*self.weights;
        let features = threats.features();
        let hidden = self.hidden.as_mut_slice();
        let (input, bias) = (net.input.as_slice(), net.input_bias.as_slice());
        self.kernel.hidden(input, bias, features.as_slice(), hidden);
    }

    /// Maps moves to rows and prefetches them while the wide layer is computed.
    fn prepare_policy(&mut self, threats: &Threats, leaf: &Leaf) {
        let net = &*self.weights;
        let rows = MoveRows::of(threats);
        self.rows.clear();
        self.table.clear();
        for &m in &leaf.legal {
            let MoveKey { row, table } = rows.key(m);
            self.kernel.prefetch(net.policy.as_slice(), net.config.hidden, row);
            self.rows.push(row);
            self.table.push(table);
        }
    }

    /// The result of the value head.
    fn value(&mut self) -> Wdl {
        let net = &*self.weights;
        let hidden = self.hidden.as_slice();
        self.kernel.products(net.value1.as_slice(), hidden, &net.value1_rows, &mut self.value);
        for (unit, bias) in self.value.iter_mut().zip(&net.value1_bias) {
            // Rounds to the nearest unit of the smaller scale.
            *unit = ((*unit + bias + 512).max(0) >> 10).min(VALUE_MOST);
        }
        let mut logits = [0.0; 3];
        let rows = net.value2.chunks_exact(self.value.len());
        for ((row, bias), logit) in rows.zip(&net.value2_bias).zip(&mut logits) {
            let sum: i32 = row.iter().zip(&self.value).map(|(w, unit)| w * unit).sum();
            *logit = (sum + bias) as f32 / SUM_ONE;
        }
        wdl_of_logits(net.config.value_head, logits)
    }

    fn logits(&mut self, logits: &mut Vec<f32>) {
        let net = &*self.weights;
        self.products.resize(self.rows.len(), 0);
        let hidden = self.hidden.as_slice();
        self.kernel.products(net.policy.as_slice(), hidden, &self.rows, &mut self.products);
        let entries = self.rows.iter().zip(&self.table);
        logits.extend(self.products.iter().zip(entries).map(|(product, (&row, &table))| {
            let bias = net.policy_bias[usize::from(row)] + net.table[usize::from(table)];
            (product + bias) as f32 / SUM_ONE
        }));
    }
}

impl Evaluator for Network {
    fn evaluate(&mut self, leaves: &[Leaf], evaluations: &mut [Evaluation]) {
        for (leaf, evaluation) in leaves.iter().zip(evaluations) {
            self.evaluate_leaf(leaf, evaluation);
        }
    }
}

/// Probabilities from the logits of a value head; a head with one logit uses only the first.
pub(super) fn wdl_of_logits(head: ValueHead, mut logits: [f32; 3]) -> Wdl {
    match head {
        ValueHead::Wdl => {
            math::softmax(&mut logits, 1.0);
            Wdl { win: logits[0], draw: logits[1], loss: logits[2] }
        }
        ValueHead::Score => {
            let mut pair = [logits[0], 0.0];
            math::softmax(&mut pair, 1.0);
            Wdl { win: pair[0], draw: 0.0, loss: pair[1] }
        }
    }
}

fn rounded(values: &[f32], scale: f32) -> impl ExactSizeIterator<Item = i16> {
    values.iter().map(move |value| (value * scale).round() as i16)
}
