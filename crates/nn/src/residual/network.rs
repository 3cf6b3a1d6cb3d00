//! The network for inference: batch norm folded into the filters, all matrices packed.

use std::sync::Arc;

use rayon::prelude::*;

use super::config::{Config, MOVES, NORM_EPSILON, POLICY_CHANNELS};
use super::integer::IntegerTower;
use super::kernel::{
    Finish, Floats, IntegerKernel, Kernel, LANES, Left, Right, Shape, Stem, Tiles,
};
use super::session::largest_inputs;
use super::squeeze::Gate;
use super::weights::{Convolution, Weights};
use super::winograd::{ELEMENTS, Filters};

/// Inputs of the policy's matrix: channel × 64 + square.
pub(super) const POLICY_INPUTS: usize = POLICY_CHANNELS * 64;

/// A residual network for inference, run by a [`super::Session`]. Clones share the weights.
#[derive(Clone, Debug)]
pub struct Network {
    pub(super) folded: Arc<Folded>,
    /// The blocks in 8-bit integers, if quantised.
    pub(super) integers: Option<Arc<IntegerTower>>,
    pub(super) kernel: Kernel,
}

/// Weights prepared for matrix products.
#[derive(Debug)]
pub(super) struct Folded {
    pub config: Config,
    pub stem: StemLayer,
    /// Two for each block.
    pub tower: Vec<Layer>,
    /// The matrices of squeeze and excitation are used unchanged.
    pub weights: Weights,
    /// The 1×1 convolutions of both heads, filters × 16: two columns for the policy, one for the
    /// value, the rest 0.
    pub head: Floats,
    pub head_bias: [f32; LANES],
    /// Packed, 128 × 4672.
    pub policy: Floats,
    /// Packed, 64 × 256.
    pub hidden: Floats,
}

#[derive(Debug)]
pub(super) struct StemLayer {
    taps: Floats,
    sums: Floats,
    bias: Floats,
}

#[derive(Debug)]
pub(crate) struct Layer {
    filters: Filters,
    /// Floats per square of the input.
    channels: usize,
    weights: Floats,
    bias: Floats,
}

impl Network {
    /// Uses the fastest kernel for this processor.
    pub fn new(weights: &Weights) -> Network {
        Network::with_kernel(weights, Kernel::detect())
    }

    /// Like [`Network::new`], with a chosen kernel; results differ in the last bits.
    pub fn with_kernel(weights: &Weights, kernel: Kernel) -> Network {
        let (config, layout) = (weights.config(), weights.layout());
        let filters = config.filters;
        let mut head = Floats::zeros(filters * LANES);
        let mut head_bias = [0.0; LANES];
        let mut column = 0;
        for conv in [&layout.policy, &layout.value] {
            let (scale, shift) = folded_norm(weights, conv);
            let rows = weights.at(&conv.weight).chunks_exact(filters);
            for (row, (scale, shift)) in rows.zip(scale.iter().zip(&shift)) {
                for (filter, weight) in row.iter().enumerate() {
                    head[filter * LANES + column] = weight * scale;
                }
                head_bias[column] = *shift;
                column += 1;
            }
        }
        let folded = Folded {
            config,
            stem: StemLayer::new(weights, &layout.tower[0]),
            tower: layout.tower[1..].iter().map(|conv| Layer::new(weights, conv)).collect(),
            weights: weights.clone(),
            head,
            head_bias,
            policy: packed(weights.at(&layout.policy_linear.weight), POLICY_INPUTS, MOVES),
            hidden: packed(weights.at(&layout.value_hidden.weight), 64, layout.config.value_hidden),
        };
        Network { folded: folded.into(), integers: None, kernel }
    }

    /// Like [`Network::new`], with the blocks in 8-bit integers: faster and slightly less accurate.
    /// `planes` are positions for calibration: they determine the range of the activations, so use
    /// many that resemble those in play.
    ///
    /// # Panics
    ///
    /// Panics unless `planes` holds whole positions.
    pub fn quantised(weights: &Weights, planes: &[f32]) -> Network {
        Network::quantised_with(weights, planes, IntegerKernel::detect())
    }

    /// Like [`Network::quantised`], with chosen kernels; these do not change the integer results.
    pub(super) fn quantised_with(
        weights: &Weights,
        planes: &[f32],
        kernel: IntegerKernel,
    ) -> Network {
        let mut network = Network::new(weights);
        let largest = largest_inputs(&network, planes);
        network.integers = Some(IntegerTower::new(weights, &largest, kernel).into());
        network
    }

    /// Whether the blocks are in integers.
    pub fn is_quantised(&self) -> bool {
        self.integers.is_some()
    }

    pub fn config(&self) -> Config {
        self.folded.config
    }
}

impl Folded {
    /// The gate of a block; `None` for networks without squeeze and excitation.
    pub fn gate(&self, block: usize) -> Option<Gate<'_>> {
        let conv = self.weights.layout().squeezes.get(block)?;
        Some(Gate::new(&self.weights, conv))
    }
}

impl StemLayer {
    fn new(weights: &Weights, conv: &Convolution) -> StemLayer {
        let &Convolution { inputs, outputs, .. } = conv;
        let (scale, shift) = folded_norm(weights, conv);
        let mut taps = Floats::zeros(inputs * 9 * outputs);
        for (number, filter) in weights.at(&conv.weight).as_chunks::<9>().0.iter().enumerate() {
            let (output, input) = (number / inputs, number % inputs);
            for (tap, weight) in filter.iter().enumerate() {
                taps[(input * 9 + tap) * outputs + output] = weight * scale[output];
            }
        }
        let mut sums = Floats::zeros(taps.len());
        for (index, sum) in sums.chunks_exact_mut(outputs).enumerate() {
            let (input, edge) = (index / 9, index % 9);
            // The filter's first row is off the board on the first rank, its last row on the last
            // rank.
            let is_seen = |edge: usize, row: usize| edge + row != 0 && edge + row != 4;
            for tap in (0..9).filter(|tap| is_seen(edge / 3, tap / 3) && is_seen(edge % 3, tap % 3))
            {
                let taps = &taps[(input * 9 + tap) * outputs..][..outputs];
                sum.iter_mut().zip(taps).for_each(|(sum, tap)| *sum += tap);
            }
        }
        let mut bias = Floats::zeros(outputs);
        bias.copy_from_slice(&shift);
        StemLayer { taps, sums, bias }
    }

    /// In the form that the kernels use.
    pub fn parts(&self) -> Stem<'_> {
        Stem { taps: &self.taps, sums: &self.sums, bias: &self.bias }
    }
}

impl Layer {
    fn new(weights: &Weights, conv: &Convolution) -> Layer {
        let filters = Filters { inputs: conv.inputs, outputs: conv.outputs };
        let (scale, shift) = folded_norm(weights, conv);
        let mut transformed = Floats::zeros(ELEMENTS * filters.matrix());
        filters.forward(weights.at(&conv.weight), |output| scale[output], &mut transformed);
        let mut bias = Floats::zeros(conv.outputs);
        bias.copy_from_slice(&shift);
        let channels = conv.inputs.next_multiple_of(LANES);
        Layer { filters, channels, weights: transformed, bias }
    }

    /// A convolution without batch norm: filters [out, in, 3, 3] and a bias per output. The number
    /// of outputs is a multiple of 16.
    pub fn plain(weights: &[f32], bias: &[f32], inputs: usize) -> Layer {
        let filters = Filters { inputs, outputs: bias.len() };
        let mut transformed = Floats::zeros(ELEMENTS * filters.matrix());
        filters.forward(weights, |_| 1.0, &mut transformed);
        let mut padded = Floats::zeros(bias.len());
        padded.copy_from_slice(bias);
        let channels = inputs.next_multiple_of(LANES);
        Layer { filters, channels, weights: transformed, bias: padded }
    }

    /// Convolves boards into others, with activation.
    pub fn run(
        &self,
        kernel: Kernel,
        count: usize,
        boards: &[f32],
        tiles: &mut TileScratch,
        out: &mut [f32],
        end: End,
    ) {
        let to = self.products(kernel, count, boards, tiles);
        let finish = match end {
            End::Relu => Finish::Relu(&self.bias),
            End::AddRelu => Finish::AddRelu(&self.bias),
        };
        kernel.output_boards(to, &tiles.products, out, finish);
    }

    /// Convolves boards in place, without activation; inputs and outputs have the same channels.
    pub fn run_in_place(
        &self,
        kernel: Kernel,
        count: usize,
        boards: &mut [f32],
        tiles: &mut TileScratch,
    ) {
        let to = self.products(kernel, count, boards, tiles);
        kernel.output_boards(to, &tiles.products, boards, Finish::Bias(&self.bias));
    }

    fn products(
        &self,
        kernel: Kernel,
        count: usize,
        boards: &[f32],
        TileScratch { tiles, products, threads }: &mut TileScratch,
    ) -> Tiles {
        let from = Tiles { boards: count, channels: self.channels };
        let to = Tiles { boards: count, channels: self.filters.outputs };
        kernel.input_tiles(from, boards, tiles);
        let (tiles, products) = ((from, &tiles[..]), (to, &mut products[..]));
        match *threads {
            0..=1 => multiply(kernel, self.filters, &self.weights, tiles, products),
            _ => multiply_shared(kernel, self.filters, &self.weights, tiles, products, *threads),
        }
        to
    }
}

/// The operation after a convolution.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// ReLU.
    Relu,
    /// Add the previous contents, then ReLU.
    AddRelu,
}

/// Buffers for the tiles of convolutions.
#[derive(Debug, Default)]
pub(crate) struct TileScratch {
    pub tiles: Floats,
    pub products: Floats,
    /// Threads of the caller's pool that share the products of each convolution.
    pub threads: usize,
}

/// The 36 products of a convolution.
pub(super) fn multiply(
    kernel: Kernel,
    filters: Filters,
    weights: &[f32],
    tiles: (Tiles, &[f32]),
    (to, products): (Tiles, &mut [f32]),
) {
    for (element, product) in products.chunks_mut(to.step()).take(ELEMENTS).enumerate() {
        multiply_element(kernel, filters, weights, element, tiles, (to, product));
    }
}

/// Like [`multiply`], on several threads. Only worth it for a single board.
fn multiply_shared(
    kernel: Kernel,
    filters: Filters,
    weights: &[f32],
    tiles: (Tiles, &[f32]),
    (to, products): (Tiles, &mut [f32]),
    threads: usize,
) {
    let products = products[..ELEMENTS * to.step()].par_chunks_mut(to.step()).enumerate();
    products.with_min_len(ELEMENTS.div_ceil(threads)).for_each(|(element, product)| {
        multiply_element(kernel, filters, weights, element, tiles, (to, product));
    });
}

fn multiply_element(
    kernel: Kernel,
    filters: Filters,
    weights: &[f32],
    element: usize,
    (from, tiles): (Tiles, &[f32]),
    (to, product): (Tiles, &mut [f32]),
) {
    let Filters { inputs, outputs } = filters;
    let shape = Shape { rows: from.rows(), depth: inputs, columns: outputs };
    let left = Left::rows(&tiles[element * from.step()..], from.channels);
    let right = &weights[element * filters.matrix()..(element + 1) * filters.matrix()];
    let right = Right::packed(right, inputs, outputs);
    kernel.product(shape, left, right, product, to.channels);
}

/// Packs a matrix [out, in] as the right side of a product.
pub(crate) fn packed(matrix: &[f32], inputs: usize, outputs: usize) -> Floats {
    let mut out = Floats::zeros(Right::packed_len(inputs, outputs));
    for (output, row) in matrix.chunks_exact(inputs).enumerate() {
        for (input, value) in row.iter().enumerate() {
            out[Right::index(inputs, outputs, input, output)] = *value;
        }
    }
    out
}

/// Batch norm with running statistics, as a factor and a term for each channel.
pub(super) fn folded_norm(weights: &Weights, conv: &Convolution) -> (Vec<f32>, Vec<f32>) {
    let norm = &conv.norm;
    let variances = weights.at(&norm.variance).iter();
    let scale: Vec<f32> = variances
        .zip(weights.at(&norm.weight))
        .map(|(variance, weight)| weight / (variance + NORM_EPSILON).sqrt())
        .collect();
    let means = weights.at(&norm.mean).iter().zip(weights.at(&norm.bias));
    let shift = means.zip(&scale).map(|((mean, bias), scale)| bias - mean * scale).collect();
    (scale, shift)
}
