//! The tower in bytes: 8-bit weights with a scale for each output, 8-bit activations with a scale
//! for each convolution, taken from positions that the float network has seen.
//!
//! The stem and the heads stay in floats, and so does the sum that runs through the blocks: only
//! what enters a convolution is rounded. Convolutions are direct, as Winograd's transforms would
//! not fit into bytes.

use super::config::Config;
use super::kernel::{ByteFilters, ByteFinish, Floats, IntegerKernel, SIDE, bytes_of};
use super::network::{Folded, folded_norm};
use super::squeeze::{Gate, GateState, gated};
use super::weights::{Convolution, Weights};

/// The blocks of a network in bytes.
#[derive(Debug)]
pub(super) struct IntegerTower {
    pub kernel: IntegerKernel,
    layers: Vec<IntegerLayer>,
}

/// A convolution of a block.
#[derive(Debug)]
struct IntegerLayer {
    filters: ByteFilters,
    scale: Vec<f32>,
    bias: Vec<f32>,
    /// 1 over the unit of its input.
    inverse: f32,
}

/// Room for one board.
#[derive(Debug, Default)]
pub(super) struct IntegerRoom {
    boards: [Vec<u8>; 2],
    sums: Vec<i32>,
    floats: Floats,
    gate: Floats,
}

impl IntegerTower {
    /// Rounds weights. `largest` is the largest input of each convolution behind the stem.
    pub fn new(weights: &Weights, largest: &[f32], kernel: IntegerKernel) -> IntegerTower {
        let places = weights.layout().tower.iter().skip(1);
        let layers = places
            .zip(largest)
            .map(|(place, largest)| IntegerLayer::new(weights, place, largest.max(1e-6) / 255.0));
        IntegerTower { kernel, layers: layers.collect() }
    }

    /// Brings the stem's output of one board through all blocks.
    pub fn run(&self, folded: &Folded, tower: &mut [f32], room: &mut IntegerRoom) {
        let kernel = self.kernel;
        room.fit(folded.config);
        let IntegerRoom { boards: [outer, inner], sums, floats, gate: gate_room } = room;
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
                    excite(gate, folded.config, floats, gate_room, tower);
                    bytes_of(tower, next, outer);
                }
            }
        }
    }
}

fn excite(gate: Gate, config: Config, board: &[f32], room: &mut Floats, tower: &mut [f32]) {
    let mut state = GateState::new(room, config.filters, config.squeeze);
    gate.open(board, &mut state);
    gated(board, state.gates, tower);
}

impl IntegerLayer {
    fn new(weights: &Weights, place: &Convolution, unit: f32) -> IntegerLayer {
        let (scale, bias) = folded_norm(weights, place);
        let mut rounded = Vec::with_capacity(place.weight.len());
        let mut units = Vec::with_capacity(place.outputs);
        for (filter, scale) in weights.at(&place.weight).chunks_exact(place.inputs * 9).zip(scale) {
            let largest = filter.iter().fold(0.0f32, |most, w| most.max((w * scale).abs()));
            let weight_unit = largest.max(1e-12) / 127.0;
            rounded.extend(filter.iter().map(|w| (w * scale / weight_unit).round() as i8));
            units.push(weight_unit * unit);
        }
        let filters = ByteFilters::new(place.inputs, place.outputs, &rounded);
        IntegerLayer { filters, scale: units, bias, inverse: 1.0 / unit }
    }

    fn finish(&self, inverse: f32) -> ByteFinish<'_> {
        ByteFinish { scale: &self.scale, bias: &self.bias, inverse }
    }

    /// Sums as floats.
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

impl IntegerRoom {
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
