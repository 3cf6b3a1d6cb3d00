//! The tower in 8-bit integers: weights with a scale per output, activations with a scale per
//! convolution, calibrated on positions evaluated by the float network.
//!
//! The stem, the heads and the residual sum stay in floats; only the inputs of convolutions are
//! rounded. Convolutions are direct, because the values of Winograd's transforms do not fit in
//! bytes.

use super::config::Config;
use super::kernel::{ByteFilters, ByteFinish, Floats, IntegerKernel, SIDE, bytes_of};
use super::network::{Folded, folded_norm};
use super::squeeze::{Gate, GateState, gated};
use super::weights::{Convolution, Weights};

/// The blocks of a network in 8-bit integers.
#[derive(Debug)]
pub(super) struct IntegerTower {
    pub kernel: IntegerKernel,
    layers: Vec<IntegerLayer>,
}

#[derive(Debug)]
struct IntegerLayer {
    filters: ByteFilters,
    scale: Vec<f32>,
    bias: Vec<f32>,
    /// The inverse of the scale of its input.
    inverse: f32,
}

/// Buffers for one board.
#[derive(Debug, Default)]
pub(super) struct IntegerScratch {
    boards: [Vec<u8>; 2],
    sums: Vec<i32>,
    floats: Floats,
    gate: Floats,
}

impl IntegerTower {
    /// Rounds weights. `largest` is the largest input of each convolution after the stem.
    pub fn new(weights: &Weights, largest: &[f32], kernel: IntegerKernel) -> IntegerTower {
        let convolutions = weights.layout().tower.iter().skip(1);
        let layers = convolutions
            .zip(largest)
            .map(|(conv, largest)| IntegerLayer::new(weights, conv, largest.max(1e-6) / 255.0));
        IntegerTower { kernel, layers: layers.collect() }
    }

    /// Runs the stem's output of one board through all blocks.
    pub fn run(&self, folded: &Folded, tower: &mut [f32], scratch: &mut IntegerScratch) {
        let kernel = self.kernel;
        scratch.fit(folded.config);
        let IntegerScratch { boards: [outer, inner], sums, floats, gate: gate_scratch } = scratch;
        if let Some(first) = self.layers.first() {
            bytes_of(tower, first.inverse, outer);
        }
        for (block, layers) in self.layers.chunks_exact(2).enumerate() {
            kernel.convolve(&layers[0].filters, outer, sums);
            kernel.finish(sums, layers[0].finish(layers[1].inverse), inner);
            kernel.convolve(&layers[1].filters, inner, sums);
            let next = self.layers.get(2 * block + 2).map_or(1.0, |layer| layer.inverse);
            match folded.gate(block) {
                None => kernel.finish_add(sums, layers[1].finish(next), tower, outer),
                Some(gate) => {
                    layers[1].floats(sums, floats);
                    excite(gate, folded.config, floats, gate_scratch, tower);
                    bytes_of(tower, next, outer);
                }
            }
        }
    }
}

fn excite(gate: Gate, config: Config, board: &[f32], scratch: &mut Floats, tower: &mut [f32]) {
    let mut state = GateState::new(scratch, config.filters, config.squeeze);
    gate.open(board, &mut state);
    gated(board, state.gates, tower);
}

impl IntegerLayer {
    fn new(weights: &Weights, conv: &Convolution, unit: f32) -> IntegerLayer {
        let (scale, bias) = folded_norm(weights, conv);
        let mut rounded = Vec::with_capacity(conv.weight.len());
        let mut units = Vec::with_capacity(conv.outputs);
        for (filter, scale) in weights.at(&conv.weight).chunks_exact(conv.inputs * 9).zip(scale) {
            let largest = filter.iter().fold(0.0f32, |most, w| most.max((w * scale).abs()));
            let weight_unit = largest.max(1e-12) / 127.0;
            rounded.extend(filter.iter().map(|w| (w * scale / weight_unit).round() as i8));
            units.push(weight_unit * unit);
        }
        let filters = ByteFilters::new(conv.inputs, conv.outputs, &rounded);
        IntegerLayer { filters, scale: units, bias, inverse: 1.0 / unit }
    }

    fn finish(&self, inverse: f32) -> ByteFinish<'_> {
        ByteFinish { scale: &self.scale, bias: &self.bias, inverse }
    }

    /// Converts sums to floats.
    fn floats(&self, sums: &[i32], out: &mut [f32]) {
        let channels = self.bias.len();
        for (sums, out) in sums.chunks_exact(channels).zip(out.chunks_exact_mut(channels)) {
            let lines = self.scale.iter().zip(&self.bias);
            for ((sum, out), (scale, bias)) in sums.iter().zip(out).zip(lines) {
                *out = *sum as f32 * scale + bias;
            }
        }
    }
}

impl IntegerScratch {
    fn fit(&mut self, config: Config) {
        let filters = config.filters;
        if self.sums.len() != 64 * filters {
            self.boards = [0, 1].map(|_| vec![0; SIDE * SIDE * filters]);
            self.sums = vec![0; 64 * filters];
            self.floats = Floats::zeros(64 * filters);
            self.gate = Floats::zeros(GateState::len(filters, config.squeeze));
        }
    }
}
