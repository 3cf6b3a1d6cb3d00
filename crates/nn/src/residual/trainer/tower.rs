//! The tower, forwards and backwards, one convolution of one segment at a time.

use std::ops::Range;

use super::super::batch::Batch;
use super::super::kernel::{Finish, Floats, Kernel, LANES, Left, Right, Shape, Tiles};
use super::super::network::multiply;
use super::super::session::boards_of;
use super::super::squeeze::{Gate, GateGradient, GateState, gated};
use super::super::weights::Weights;
use super::super::winograd::{ELEMENTS, Filters};
use super::norm::BatchNorm;
use super::prepared::Prepared;
use super::segment::{Segment, ThreadScratch};

/// The inputs of every step through the tower. Convolution 0 is the stem; block `b` has
/// convolutions `2b + 1` and `2b + 2`.
#[derive(Clone, Copy, Debug)]
pub struct Tower<'a> {
    pub kernel: Kernel,
    pub weights: &'a Weights,
    pub prepared: &'a Prepared,
    pub batch: &'a Batch,
}

impl Tower<'_> {
    /// Convolution `layer`: activates the result of the previous one, convolves it and computes
    /// sums for batch norm.
    pub fn forward(
        &self,
        segment: &mut Segment,
        scratch: &mut ThreadScratch,
        layer: usize,
        norms: &[BatchNorm],
    ) {
        let prepared = &self.prepared.tower[layer];
        let Filters { inputs, outputs } = prepared.filters;
        let channels = inputs.next_multiple_of(LANES);
        let zero = Floats::zeros(outputs);
        for (start, count) in segment.chunks() {
            if layer == 0 {
                let each = self.batch.planes_each();
                let first = segment.first + start;
                let planes = &self.batch.planes()[first * each..(first + count) * each];
                let to = &mut segment.inputs[0][range(start, count, channels)];
                boards_of(planes, inputs, to);
            } else {
                self.activate(segment, layer, &norms[layer - 1], start, count);
            }
            let from = Tiles { boards: count, channels };
            let to = Tiles { boards: count, channels: outputs };
            let boards = &segment.inputs[layer][range(start, count, channels)];
            self.kernel.input_tiles(from, boards, &mut scratch.tiles);
            let products = (to, &mut scratch.products[..]);
            let tiles = (from, &scratch.tiles[..]);
            multiply(self.kernel, prepared.filters, &prepared.forward, tiles, products);
            let raw = &mut segment.raw[layer][range(start, count, outputs)];
            self.kernel.output_boards(to, &scratch.products, raw, Finish::Raw);
            self.kernel.channel_sums(raw, raw, &zero, &mut segment.sums[..2 * outputs]);
        }
    }

    /// Fills the input of convolution `layer` (or the tower's output) from the previous one.
    pub fn activate(
        &self,
        segment: &mut Segment,
        layer: usize,
        norm: &BatchNorm,
        start: usize,
        count: usize,
    ) {
        let filters = self.weights.config().filters;
        let all = range(start, count, filters);
        let raw = &segment.raw[layer - 1][all.clone()];
        let (before, after) = segment.inputs.split_at_mut(layer);
        let out = &mut after[0][all.clone()];
        let is_block_end = layer >= 3 && layer % 2 == 1;
        let residual = is_block_end.then(|| &before[layer - 2][all]);
        let gate = if is_block_end { self.gate((layer - 3) / 2) } else { None };
        let (Some(gate), Some(residual)) = (gate, residual) else {
            self.kernel.activate(raw, norm.activate(residual), out);
            return;
        };
        let squeeze = self.weights.config().squeeze;
        let each = GateState::len(filters, squeeze);
        let states = &mut segment.gates[(layer - 3) / 2][start * each..(start + count) * each];
        let boards = raw.chunks_exact(64 * filters).zip(residual.chunks_exact(64 * filters));
        let boards = boards.zip(out.chunks_exact_mut(64 * filters));
        let mut normal = vec![0.0; 64 * filters];
        for (((raw, residual), out), state) in boards.zip(states.chunks_exact_mut(each)) {
            normalise(norm, raw, &mut normal);
            let mut state = GateState::new(state, filters, squeeze);
            gate.open(&normal, &mut state);
            out.copy_from_slice(residual);
            gated(&normal, state.gates, out);
        }
    }

    /// Convolution `layer` backwards: sums the derivatives by its filters, and turns those by its
    /// input into derivatives by the previous batch norm.
    pub fn backward(
        &self,
        segment: &mut Segment,
        scratch: &mut ThreadScratch,
        layer: usize,
        norms: &[BatchNorm],
    ) {
        let prepared = &self.prepared.tower[layer];
        let Filters { inputs, outputs } = prepared.filters;
        let channels = inputs.next_multiple_of(LANES);
        let back = Right::packed_len(outputs, inputs);
        for (start, count) in segment.chunks() {
            let all = range(start, count, outputs);
            let derivative = &segment.derivative(layer)[all.clone()];
            let raw = &segment.raw[layer][all.clone()];
            let by_raw = &mut scratch.boards[..count * 64 * outputs];
            self.kernel.norm_back(derivative, raw, norms[layer].back(), by_raw);

            let from = Tiles { boards: count, channels };
            let to = Tiles { boards: count, channels: outputs };
            self.kernel.output_back(to, by_raw, &mut scratch.products);
            let boards = &segment.inputs[layer][range(start, count, channels)];
            self.kernel.input_tiles(from, boards, &mut scratch.tiles);
            let by_filters = Shape { rows: inputs, depth: to.rows(), columns: outputs };
            let by_tiles = Shape { rows: to.rows(), depth: outputs, columns: inputs };
            for element in 0..ELEMENTS {
                let tiles = &mut scratch.tiles[element * from.step()..(element + 1) * from.step()];
                let products = &scratch.products[element * to.step()..(element + 1) * to.step()];
                let filters = &mut segment.filters[element * inputs * outputs..];
                let left = Left::columns(tiles, channels);
                let right = Right::rows(products, outputs);
                if start == 0 {
                    self.kernel.product(by_filters, left, right, filters, outputs);
                } else {
                    self.kernel.product_add(by_filters, left, right, filters, outputs);
                }
                if layer > 0 {
                    let left = Left::rows(products, outputs);
                    let matrix = &prepared.backward[element * back..(element + 1) * back];
                    let right = Right::packed(matrix, outputs, inputs);
                    self.kernel.product(by_tiles, left, right, tiles, channels);
                }
            }
            if layer == 0 {
                continue;
            }
            let gate = &segment.inputs[layer][all.clone()];
            if layer.is_multiple_of(2) {
                let inner = &mut segment.inner[all];
                self.kernel.input_back(from, &scratch.tiles, inner);
                self.kernel.mask(inner, gate);
                self.add_up(segment, layer - 1, norms, start, count);
            } else {
                let by_input = &mut scratch.boards[..count * 64 * inputs];
                self.kernel.input_back(from, &scratch.tiles, by_input);
                self.kernel.add_mask(&mut segment.skip[all], by_input, gate);
                self.enter(segment, scratch, layer - 1, norms, start, count);
            }
        }
    }

    /// The end of a block, or of the stem, backwards: from the derivatives by the sum to those by
    /// the batch norm of convolution `layer`.
    pub fn enter(
        &self,
        segment: &mut Segment,
        scratch: &mut ThreadScratch,
        layer: usize,
        norms: &[BatchNorm],
        start: usize,
        count: usize,
    ) {
        let block = if layer == 0 { None } else { Some((layer - 2) / 2) };
        if let Some((block, gate)) = block.and_then(|block| Some((block, self.gate(block)?))) {
            let filters = self.weights.config().filters;
            let squeeze = self.weights.config().squeeze;
            let each = GateState::len(filters, squeeze);
            let [reduce, reduce_bias, expand, expand_bias] = &mut segment.small.gates[block];
            let mut gradient = GateGradient { reduce, reduce_bias, expand, expand_bias };
            for board in start..start + count {
                let all = range(board, 1, filters);
                let normal = &mut scratch.others[..64 * filters];
                normalise(&norms[layer], &segment.raw[layer][all.clone()], normal);
                let state = &mut segment.gates[block][board * each..(board + 1) * each];
                let state = GateState::new(state, filters, squeeze);
                let derivative = &mut segment.gated[all.clone()];
                derivative.copy_from_slice(&segment.skip[all]);
                gate.back(&state, normal, derivative, &mut scratch.gate, &mut gradient);
            }
        }
        self.add_up(segment, layer, norms, start, count);
    }

    /// Sums the derivatives by the batch norm of convolution `layer`.
    fn add_up(
        &self,
        segment: &mut Segment,
        layer: usize,
        norms: &[BatchNorm],
        start: usize,
        count: usize,
    ) {
        let filters = self.weights.config().filters;
        let all = range(start, count, filters);
        let mut sums = std::mem::take(&mut segment.sums);
        let derivative = &segment.derivative(layer)[all.clone()];
        let (raw, mean) = (&segment.raw[layer][all], &norms[layer].mean);
        self.kernel.channel_sums(derivative, raw, mean, &mut sums[..2 * filters]);
        segment.sums = sums;
    }

    fn gate(&self, block: usize) -> Option<Gate<'_>> {
        let squeeze = self.weights.layout().squeezes.get(block)?;
        Some(Gate::new(self.weights, squeeze))
    }
}

/// Batch norm without an activation.
fn normalise(norm: &BatchNorm, raw: &[f32], out: &mut [f32]) {
    let channels = norm.mean.len();
    for (raw, out) in raw.chunks_exact(channels).zip(out.chunks_exact_mut(channels)) {
        for (channel, (raw, out)) in raw.iter().zip(out).enumerate() {
            let (scale, shift) = norm.line(channel);
            *out = raw * scale + shift;
        }
    }
}

/// The range of boards in a buffer.
fn range(start: usize, count: usize, channels: usize) -> Range<usize> {
    start * 64 * channels..(start + count) * 64 * channels
}
