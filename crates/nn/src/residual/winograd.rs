//! Filters in Winograd's domain: U = G g Gᵀ, packed for products, and the derivatives back.
//!
//! The transforms of boards, and the full formula, are in `kernel/winograd`. Sixteen filters are
//! transformed side by side.

use super::kernel::{LANES, Right};

/// Matrices of a transformed filter.
pub(super) const ELEMENTS: usize = 36;

/// One number of each of sixteen filters.
pub(super) type Lanes = [f32; LANES];

const G: [[f32; 3]; 6] = [
    [1.0 / 4.0, 0.0, 0.0],
    [-1.0 / 6.0, -1.0 / 6.0, -1.0 / 6.0],
    [-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
    [1.0 / 24.0, 1.0 / 12.0, 1.0 / 6.0],
    [1.0 / 24.0, -1.0 / 12.0, 1.0 / 6.0],
    [0.0, 0.0, 1.0],
];

/// The sizes of the 36 matrices of a convolution, which determine their packing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filters {
    /// Input channels: the depth of forward products.
    pub inputs: usize,
    /// Output channels, a multiple of 16.
    pub outputs: usize,
}

impl Filters {
    /// Floats of one matrix, inputs × outputs.
    pub fn matrix(self) -> usize {
        Right::packed_len(self.inputs, self.outputs)
    }

    /// Transforms filters [out, in, 3, 3], each times its output's scale.
    pub fn forward(self, weights: &[f32], scale: impl Fn(usize) -> f32, out: &mut [f32]) {
        let Filters { inputs, outputs } = self;
        for input in 0..inputs {
            for first in (0..outputs).step_by(LANES) {
                let mut taps = [[0.0; LANES]; 9];
                for lane in 0..LANES {
                    let start = ((first + lane) * inputs + input) * 9;
                    let scale = scale(first + lane);
                    for (tap, value) in taps.iter_mut().zip(&weights[start..start + 9]) {
                        tap[lane] = value * scale;
                    }
                }
                let index = Right::index(inputs, outputs, input, first);
                transform(&taps, &mut out[index..], self.matrix());
            }
        }
    }

    /// The same transposed, outputs × inputs, for backward products. Inputs are a multiple of 16.
    pub fn backward(self, weights: &[f32], out: &mut [f32]) {
        let Filters { inputs, outputs } = self;
        for output in 0..outputs {
            for first in (0..inputs).step_by(LANES) {
                let mut taps = [[0.0; LANES]; 9];
                let start = (output * inputs + first) * 9;
                let filters = weights[start..start + 9 * LANES].as_chunks::<9>().0;
                for (lane, filter) in filters.iter().enumerate() {
                    for (tap, value) in taps.iter_mut().zip(filter) {
                        tap[lane] = *value;
                    }
                }
                let index = Right::index(outputs, inputs, output, first);
                transform(&taps, &mut out[index..], Right::packed_len(outputs, inputs));
            }
        }
    }
}

/// Writes each element of G g Gᵀ to its matrix.
fn transform(taps: &[Lanes; 9], out: &mut [f32], matrix: usize) {
    let mut half = [[[0.0; LANES]; 3]; 6];
    for (half, g) in half.iter_mut().zip(G) {
        for (column, half) in half.iter_mut().enumerate() {
            *half = sum(g, [&taps[column], &taps[3 + column], &taps[6 + column]]);
        }
    }
    for (row, half) in half.iter().enumerate() {
        for (column, g) in G.into_iter().enumerate() {
            let start = (row * 6 + column) * matrix;
            let lanes = sum(g, [&half[0], &half[1], &half[2]]);
            out[start..start + LANES].copy_from_slice(&lanes);
        }
    }
}

/// Transforms derivatives by transformed filters to derivatives by the filters: Gᵀ u G.
pub(super) fn gradient(elements: &[Lanes; ELEMENTS]) -> [Lanes; 9] {
    let mut half = [[[0.0; LANES]; 6]; 3];
    for (row, half) in half.iter_mut().enumerate() {
        for (column, half) in half.iter_mut().enumerate() {
            let factors = std::array::from_fn(|k| G[k][row]);
            *half = sum::<6>(factors, std::array::from_fn(|k| &elements[k * 6 + column]));
        }
    }
    let mut out = [[0.0; LANES]; 9];
    for (row, half) in half.iter().enumerate() {
        for column in 0..3 {
            let factors = std::array::from_fn(|k| G[k][column]);
            out[row * 3 + column] = sum::<6>(factors, std::array::from_fn(|k| &half[k]));
        }
    }
    out
}

/// The sum of lanes times factors.
#[inline(always)]
fn sum<const N: usize>(factors: [f32; N], lanes: [&Lanes; N]) -> Lanes {
    let mut out = [0.0; LANES];
    for (factor, lanes) in factors.into_iter().zip(lanes) {
        for (out, value) in out.iter_mut().zip(lanes) {
            *out += factor * value;
        }
    }
    out
}
