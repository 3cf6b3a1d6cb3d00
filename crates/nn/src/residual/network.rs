//! The network for play: batch norm folded into the filters, everything packed for products.

use std::sync::Arc;

use rayon::prelude::*;

use super::config::{Config, MOVES, NORM_EPSILON, POLICY_CHANNELS, VALUE_HIDDEN};
use super::integer::IntegerTower;
use super::kernel::{
    Finish, Floats, IntegerKernel, Kernel, LANES, Left, Right, Shape, Stem, Tiles,
};
use super::session::largest_inputs;
use super::squeeze::Gate;
use super::weights::{Convolution, Weights};
use super::winograd::{ELEMENTS, Filters};

/// Numbers that enter the policy's matrix: channel × 64 + square.
pub(super) const POLICY_INPUTS: usize = POLICY_CHANNELS * 64;

/// A residual network that plays, by way of a [`super::Session`]. Copies share the weights.
#[derive(Clone, Debug)]
pub struct Network {
    pub(super) folded: Arc<Folded>,
    /// The blocks in bytes, if they are.
    pub(super) integers: Option<Arc<IntegerTower>>,
    pub(super) kernel: Kernel,
}

/// Weights ready to be multiplied.
#[derive(Debug)]
pub(super) struct Folded {
    pub config: Config,
    pub stem: StemLayer,
    /// Two for each block.
    pub tower: Vec<Layer>,
    /// The matrices of squeeze and excitation are used as they are.
    pub weights: Weights,
    /// The 1×1 convolutions of both heads, filters × 16: two columns of the policy, one of the
    /// value, the rest 0.
    pub head: Floats,
    pub head_bias: [f32; LANES],
    /// Packed, 128 × 4672.
    pub policy: Floats,
    /// Packed, 64 × 256.
    pub hidden: Floats,
}

/// The first convolution.
#[derive(Debug)]
pub(super) struct StemLayer {
    taps: Floats,
    sums: Floats,
    bias: Floats,
}

/// A convolution.
#[derive(Debug)]
pub(crate) struct Layer {
    filters: Filters,
    /// Floats of a square of the input.
    channels: usize,
    weights: Floats,
    bias: Floats,
}

impl Network {
    /// Prepares weights for the fastest kernels there are.
    pub fn new(weights: &Weights) -> Network {
        Network::with_kernel(weights, Kernel::detect())
    }

    /// The same with chosen inner loops; results differ in the last bits.
    pub fn with_kernel(weights: &Weights, kernel: Kernel) -> Network {
        let (config, layout) = (weights.config(), weights.layout());
        let filters = config.filters;
        let mut head = Floats::zeros(filters * LANES);
        let mut head_bias = [0.0; LANES];
        let mut column = 0;
        for place in [&layout.policy, &layout.value] {
            let (scale, shift) = folded_norm(weights, place);
            let rows = weights.at(&place.weight).chunks_exact(filters);
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
            tower: layout.tower[1..].iter().map(|place| Layer::new(weights, place)).collect(),
            weights: weights.clone(),
            head,
            head_bias,
            policy: packed(weights.at(&layout.policy_linear.weight), POLICY_INPUTS, MOVES),
            hidden: packed(weights.at(&layout.value_hidden.weight), 64, VALUE_HIDDEN),
        };
        Network { folded: folded.into(), integers: None, kernel }
    }

    /// The same network with its blocks in 8-bit integers: faster, a little less exact. `planes`
    /// are positions like those it will see, the more the better: they say how large its
    /// activations become.
    ///
    /// # Panics
    ///
    /// Panics unless `planes` holds whole positions.
    pub fn quantised(weights: &Weights, planes: &[f32]) -> Network {
        Network::quantised_with(weights, planes, IntegerKernel::detect())
    }

    /// The same with chosen inner loops; they change no bit of what happens in integers.
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

    /// The shape.
    pub fn config(&self) -> Config {
        self.folded.config
    }
}

impl Folded {
    /// The gate of a block, if blocks have gates.
    pub fn gate(&self, block: usize) -> Option<Gate<'_>> {
        let place = self.weights.layout().squeezes.get(block)?;
        Some(Gate::new(&self.weights, place))
    }
}

impl StemLayer {
    fn new(weights: &Weights, place: &Convolution) -> StemLayer {
        let &Convolution { inputs, outputs, .. } = place;
        let (scale, shift) = folded_norm(weights, place);
        let mut taps = Floats::zeros(inputs * 9 * outputs);
        for (number, filter) in weights.at(&place.weight).as_chunks::<9>().0.iter().enumerate() {
            let (output, input) = (number / inputs, number % inputs);
            for (tap, weight) in filter.iter().enumerate() {
                taps[(input * 9 + tap) * outputs + output] = weight * scale[output];
            }
        }
        let mut sums = Floats::zeros(taps.len());
        for (place, sum) in sums.chunks_exact_mut(outputs).enumerate() {
            let (input, edge) = (place / 9, place % 9);
            // On the first rank the filter's first row looks over the edge, on the last its last.
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

    /// As the kernels want it.
    pub fn parts(&self) -> Stem<'_> {
        Stem { taps: &self.taps, sums: &self.sums, bias: &self.bias }
    }
}

impl Layer {
    fn new(weights: &Weights, place: &Convolution) -> Layer {
        let filters = Filters { inputs: place.inputs, outputs: place.outputs };
        let (scale, shift) = folded_norm(weights, place);
        let mut transformed = Floats::zeros(ELEMENTS * filters.matrix());
        filters.forward(weights.at(&place.weight), |output| scale[output], &mut transformed);
        let mut bias = Floats::zeros(place.outputs);
        bias.copy_from_slice(&shift);
        let channels = place.inputs.next_multiple_of(LANES);
        Layer { filters, channels, weights: transformed, bias }
    }

    /// A convolution without norm: filters [out, in, 3, 3] and a bias for each output, of which
    /// there is a multiple of 16.
    pub fn plain(weights: &[f32], bias: &[f32], inputs: usize) -> Layer {
        let filters = Filters { inputs, outputs: bias.len() };
        let mut transformed = Floats::zeros(ELEMENTS * filters.matrix());
        filters.forward(weights, |_| 1.0, &mut transformed);
        let mut padded = Floats::zeros(bias.len());
        padded.copy_from_slice(bias);
        let channels = inputs.next_multiple_of(LANES);
        Layer { filters, channels, weights: transformed, bias: padded }
    }

    /// Convolves boards into others, activated.
    pub fn run(
        &self,
        kernel: Kernel,
        count: usize,
        boards: &[f32],
        tiles: &mut TileRoom,
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

    /// Convolves boards into themselves, not activated; as many channels come out as go in.
    pub fn run_in_place(
        &self,
        kernel: Kernel,
        count: usize,
        boards: &mut [f32],
        tiles: &mut TileRoom,
    ) {
        let to = self.products(kernel, count, boards, tiles);
        kernel.output_boards(to, &tiles.products, boards, Finish::Bias(&self.bias));
    }

    fn products(
        &self,
        kernel: Kernel,
        count: usize,
        boards: &[f32],
        TileRoom { tiles, products, threads }: &mut TileRoom,
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

/// What follows a convolution.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// What is below 0 becomes 0.
    Relu,
    /// The same after what was there is added.
    AddRelu,
}

/// Room for the tiles of convolutions.
#[derive(Debug, Default)]
pub(crate) struct TileRoom {
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

/// The same on several threads: worth it only where one board is all there is to do.
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

/// A matrix [out, in] packed as the right side of a product.
pub(crate) fn packed(matrix: &[f32], inputs: usize, outputs: usize) -> Floats {
    let mut out = Floats::zeros(Right::packed_len(inputs, outputs));
    for (output, row) in matrix.chunks_exact(inputs).enumerate() {
        for (input, value) in row.iter().enumerate() {
            out[Right::place(inputs, outputs, input, output)] = *value;
        }
    }
    out
}

/// Batch norm with running statistics as a factor and a term for each channel.
pub(super) fn folded_norm(weights: &Weights, place: &Convolution) -> (Vec<f32>, Vec<f32>) {
    let norm = &place.norm;
    let variances = weights.at(&norm.variance).iter();
    let scale: Vec<f32> = variances
        .zip(weights.at(&norm.weight))
        .map(|(variance, weight)| weight / (variance + NORM_EPSILON).sqrt())
        .collect();
    let means = weights.at(&norm.mean).iter().zip(weights.at(&norm.bias));
    let shift = means.zip(&scale).map(|((mean, bias), scale)| bias - mean * scale).collect();
    (scale, shift)
}
