//! Squeeze and excitation (Hu et al. 2018): a gate per channel, from the means of all channels.

use super::weights::{Squeeze, Weights};

/// The two matrices of a block's gate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gate<'a> {
    /// [squeeze, filters].
    pub reduce: &'a [f32],
    pub reduce_bias: &'a [f32],
    /// [filters, squeeze].
    pub expand: &'a [f32],
    pub expand_bias: &'a [f32],
}

/// The intermediate results for one board: `filters` means, `squeeze` units, `filters` gates.
#[derive(Debug)]
pub(super) struct GateState<'a> {
    pub means: &'a mut [f32],
    pub units: &'a mut [f32],
    pub gates: &'a mut [f32],
}

impl<'a> GateState<'a> {
    /// Floats for one board.
    pub fn len(filters: usize, squeeze: usize) -> usize {
        2 * filters + squeeze
    }

    pub fn new(floats: &'a mut [f32], filters: usize, squeeze: usize) -> GateState<'a> {
        let (means, rest) = floats.split_at_mut(filters);
        let (units, gates) = rest.split_at_mut(squeeze);
        GateState { means, units, gates }
    }
}

/// Derivatives by the matrices and biases of [`Gate`].
#[derive(Debug)]
pub(super) struct GateGradient<'a> {
    pub reduce: &'a mut [f32],
    pub reduce_bias: &'a mut [f32],
    pub expand: &'a mut [f32],
    pub expand_bias: &'a mut [f32],
}

impl<'a> Gate<'a> {
    pub fn new(weights: &'a Weights, squeeze: &Squeeze) -> Gate<'a> {
        Gate {
            reduce: weights.at(&squeeze.reduce.weight),
            reduce_bias: weights.at(&squeeze.reduce.bias),
            expand: weights.at(&squeeze.expand.weight),
            expand_bias: weights.at(&squeeze.expand.bias),
        }
    }

    /// Computes the gates of a board, which is 64 rows of channels.
    pub fn open(&self, board: &[f32], state: &mut GateState) {
        let (filters, squeeze) = (self.expand_bias.len(), self.reduce_bias.len());
        state.means.fill(0.0);
        for square in board.chunks_exact(filters) {
            add_scaled(state.means, square, 1.0 / 64.0);
        }
        let rows = self.reduce.chunks_exact(filters).zip(self.reduce_bias);
        for (unit, (row, bias)) in state.units.iter_mut().zip(rows) {
            *unit = (dot(row, state.means) + bias).max(0.0);
        }
        let rows = self.expand.chunks_exact(squeeze).zip(self.expand_bias);
        for (gate, (row, bias)) in state.gates.iter_mut().zip(rows) {
            *gate = 1.0 / (1.0 + libm::expf(-dot(row, state.units) - bias));
        }
    }

    /// Transforms derivatives by the gated board to derivatives by the board, in place.
    pub fn back(
        &self,
        state: &GateState,
        board: &[f32],
        derivative: &mut [f32],
        scratch: &mut [f32],
        gradient: &mut GateGradient,
    ) {
        let (filters, squeeze) = (self.expand_bias.len(), self.reduce_bias.len());
        let GateState { means: by_gates, units: by_units, gates: by_means } =
            GateState::new(scratch, filters, squeeze);
        by_gates.fill(0.0);
        by_units.fill(0.0);
        by_means.fill(0.0);
        let squares = derivative.chunks_exact(filters).zip(board.chunks_exact(filters));
        for (derivative, square) in squares {
            for ((sum, d), y) in by_gates.iter_mut().zip(derivative).zip(square) {
                *sum += d * y;
            }
        }
        for (filter, (by_gate, gate)) in by_gates.iter_mut().zip(&*state.gates).enumerate() {
            *by_gate *= gate * (1.0 - gate);
            let row = filter * squeeze..(filter + 1) * squeeze;
            add_scaled(&mut gradient.expand[row.clone()], state.units, *by_gate);
            gradient.expand_bias[filter] += *by_gate;
            add_scaled(by_units, &self.expand[row], *by_gate);
        }
        for (unit, (by_unit, value)) in by_units.iter_mut().zip(&*state.units).enumerate() {
            if *value <= 0.0 {
                continue;
            }
            let row = unit * filters..(unit + 1) * filters;
            add_scaled(&mut gradient.reduce[row.clone()], state.means, *by_unit);
            gradient.reduce_bias[unit] += *by_unit;
            add_scaled(by_means, &self.reduce[row], *by_unit / 64.0);
        }
        for derivative in derivative.chunks_exact_mut(filters) {
            for ((d, gate), mean) in derivative.iter_mut().zip(&*state.gates).zip(&*by_means) {
                *d = *d * gate + mean;
            }
        }
    }
}

/// Multiplies a board by its gates, adds the previous contents of `out`, and applies ReLU.
pub(super) fn gated(board: &[f32], gates: &[f32], out: &mut [f32]) {
    let filters = gates.len();
    for (square, out) in board.chunks_exact(filters).zip(out.chunks_exact_mut(filters)) {
        for ((value, gate), out) in square.iter().zip(gates).zip(out) {
            *out = (value * gate + *out).max(0.0);
        }
    }
}

/// Adds one row, scaled, to another.
pub(super) fn add_scaled(out: &mut [f32], row: &[f32], scale: f32) {
    for (out, value) in out.iter_mut().zip(row) {
        *out += value * scale;
    }
}

/// A dot product with eight partial sums: vectorisable, in a fixed order.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; 8];
    let (chunks, rest) = a.as_chunks::<8>();
    let (others, other_rest) = b.as_chunks::<8>();
    for (a, b) in chunks.iter().zip(others) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = rest.iter().zip(other_rest).map(|(a, b)| a * b).sum();
    let [a, b, c, d, e, f, g, h] = sums;
    ((a + b) + (c + d)) + ((e + f) + (g + h)) + rest
}
