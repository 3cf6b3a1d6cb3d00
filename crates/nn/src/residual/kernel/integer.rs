//! Convolutions of bytes: unsigned activations, signed weights, 32-bit sums.
//!
//! No sum can overflow: 9 taps × 512 channels × 255 × 127 is below 2³¹. All later operations are
//! plain multiplication, addition and rounding to even, so every processor gives the same bits.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use super::{Detected, LANES};

/// Ranks and files of a board with a border of zeros.
pub const SIDE: usize = 10;

/// Which inner loops to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegerKernel {
    /// Plain Rust.
    Portable,
    /// The byte dot products of AVX-512 VNNI.
    Vnni(Detected),
}

#[derive(Clone, Debug)]
pub struct ByteFilters {
    /// Input channels, a multiple of 4.
    pub inputs: usize,
    /// Output channels, a multiple of 16.
    pub outputs: usize,
    /// For each 16 outputs, each tap, each 4 inputs: 16 outputs × 4 inputs.
    weights: Vec<i8>,
}

/// Conversion of sums: sum × `scale` + `bias`, ReLU, then times `inverse` in bytes.
#[derive(Clone, Copy, Debug)]
pub struct ByteFinish<'a> {
    pub scale: &'a [f32],
    pub bias: &'a [f32],
    pub inverse: f32,
}

impl ByteFilters {
    /// Packs weights [out, in, 3, 3].
    pub fn new(inputs: usize, outputs: usize, weights: &[i8]) -> ByteFilters {
        assert!(inputs.is_multiple_of(4) && outputs.is_multiple_of(LANES));
        assert_eq!(weights.len(), inputs * outputs * 9);
        let mut packed = vec![0; weights.len()];
        for (number, weight) in weights.iter().enumerate() {
            let (tap, input, output) = (number % 9, number / 9 % inputs, number / 9 / inputs);
            let strip = output / LANES * 9 + tap;
            let offset = (strip * (inputs / 4) + input / 4) * 4 * LANES;
            packed[offset + output % LANES * 4 + input % 4] = *weight;
        }
        ByteFilters { inputs, outputs, weights: packed }
    }
}

impl IntegerKernel {
    /// The fastest kernel for this processor.
    pub fn detect() -> IntegerKernel {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni") {
            return IntegerKernel::Vnni(Detected(()));
        }
        IntegerKernel::Portable
    }

    /// The sums of a convolution: 64 squares of `outputs`. The board has a border of zeros.
    pub fn convolve(self, filters: &ByteFilters, board: &[u8], sums: &mut [i32]) {
        assert_eq!(board.len(), SIDE * SIDE * filters.inputs);
        assert_eq!(sums.len(), 64 * filters.outputs);
        match self {
            IntegerKernel::Portable => convolve(filters, board, sums),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Detected` exists only when the processor has VNNI; lengths are checked.
            IntegerKernel::Vnni(_) => unsafe { convolve_vnni(filters, board, sums) },
            #[cfg(not(target_arch = "x86_64"))]
            IntegerKernel::Vnni(_) => convolve(filters, board, sums),
        }
    }

    /// Converts sums to bytes on a board.
    pub fn finish(self, sums: &[i32], by: ByteFinish, board: &mut [u8]) {
        by.check(sums.len(), board.len());
        match self {
            IntegerKernel::Portable => by.bytes(sums, board),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Detected` exists only when the processor has AVX-512.
            IntegerKernel::Vnni(_) => unsafe { bytes_avx512(by, sums, board) },
            #[cfg(not(target_arch = "x86_64"))]
            IntegerKernel::Vnni(_) => by.bytes(sums, board),
        }
    }

    /// Adds sums to floats and applies ReLU; writes the same values as bytes to a board.
    pub fn finish_add(self, sums: &[i32], by: ByteFinish, floats: &mut [f32], board: &mut [u8]) {
        by.check(sums.len(), board.len());
        assert_eq!(floats.len(), sums.len());
        match self {
            IntegerKernel::Portable => by.add(sums, floats, board),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Detected` exists only when the processor has AVX-512.
            IntegerKernel::Vnni(_) => unsafe { add_avx512(by, sums, floats, board) },
            #[cfg(not(target_arch = "x86_64"))]
            IntegerKernel::Vnni(_) => by.add(sums, floats, board),
        }
    }
}

/// Converts a board of floats, 64 squares, to bytes with a border.
pub fn bytes_of(floats: &[f32], inverse: f32, board: &mut [u8]) {
    let channels = floats.len() / 64;
    for (square, floats) in floats.chunks_exact(channels).enumerate() {
        let start = inner(square) * channels;
        for (byte, float) in board[start..start + channels].iter_mut().zip(floats) {
            *byte = rounded(float * inverse);
        }
    }
}

/// The index of a square on a board with a border.
#[inline(always)]
const fn inner(square: usize) -> usize {
    (square / 8 + 1) * SIDE + square % 8 + 1
}

/// Rounds to the nearest byte; halves round to even.
#[inline(always)]
fn rounded(value: f32) -> u8 {
    // Above 2²³ a float has no fraction, so this addition rounds; the low byte is the result.
    const SHIFT: f32 = 12_582_912.0;
    (value.clamp(0.0, 255.0) + SHIFT).to_bits() as u8
}

impl ByteFinish<'_> {
    fn check(&self, sums: usize, board: usize) {
        let channels = self.scale.len();
        assert!(self.bias.len() == channels && sums == 64 * channels);
        assert_eq!(board, SIDE * SIDE * channels);
    }

    #[inline(always)]
    fn bytes(self, sums: &[i32], board: &mut [u8]) {
        let channels = self.scale.len();
        for (square, sums) in sums.chunks_exact(channels).enumerate() {
            let start = inner(square) * channels;
            let lines = self.scale.iter().zip(self.bias);
            let bytes = &mut board[start..start + channels];
            for ((byte, sum), (scale, bias)) in bytes.iter_mut().zip(sums).zip(lines) {
                *byte = rounded((*sum as f32 * scale + bias) * self.inverse);
            }
        }
    }

    #[inline(always)]
    fn add(self, sums: &[i32], floats: &mut [f32], board: &mut [u8]) {
        let channels = self.scale.len();
        let squares = sums.chunks_exact(channels).zip(floats.chunks_exact_mut(channels));
        for (square, (sums, floats)) in squares.enumerate() {
            let start = inner(square) * channels;
            let lines = self.scale.iter().zip(self.bias);
            let results = board[start..start + channels].iter_mut().zip(floats);
            for (((byte, float), sum), (scale, bias)) in results.zip(sums).zip(lines) {
                *float = (*sum as f32 * scale + bias + *float).max(0.0);
                *byte = rounded(*float * self.inverse);
            }
        }
    }
}

/// # Safety
/// AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn bytes_avx512(by: ByteFinish, sums: &[i32], board: &mut [u8]) {
    by.bytes(sums, board);
}

/// # Safety
/// AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn add_avx512(by: ByteFinish, sums: &[i32], floats: &mut [f32], board: &mut [u8]) {
    by.add(sums, floats, board);
}

fn convolve(filters: &ByteFilters, board: &[u8], sums: &mut [i32]) {
    let ByteFilters { inputs, outputs, weights } = filters;
    let strips = weights.chunks_exact(9 * inputs * LANES);
    for (square, sums) in sums.chunks_exact_mut(*outputs).enumerate() {
        for (sums, strip) in sums.chunks_exact_mut(LANES).zip(strips.clone()) {
            let mut lanes = [0i32; LANES];
            for (tap, weights) in strip.chunks_exact(inputs * LANES).enumerate() {
                let corner = inner(square) - SIDE - 1;
                let start = (corner + tap / 3 * SIDE + tap % 3) * inputs;
                let (fours, _) = board[start..start + inputs].as_chunks::<4>();
                let (rows, _) = weights.as_chunks::<{ 4 * LANES }>();
                for (four, row) in fours.iter().zip(rows) {
                    for (lane, weights) in lanes.iter_mut().zip(row.as_chunks::<4>().0) {
                        for (byte, weight) in four.iter().zip(weights) {
                            *lane += i32::from(*byte) * i32::from(*weight);
                        }
                    }
                }
            }
            sums.copy_from_slice(&lanes);
        }
    }
}

/// # Safety
/// AVX-512 VNNI; the board is 10 × 10 × inputs, the sums are 64 × outputs.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn convolve_vnni(filters: &ByteFilters, board: &[u8], sums: &mut [i32]) {
    let strips = filters.outputs / LANES;
    let mut strip = 0;
    while strip < strips {
        // SAFETY: at most the remaining strips.
        strip += unsafe {
            match strips - strip {
                4.. => strips_vnni::<4, 4>(filters, board, sums, strip),
                3 => strips_vnni::<4, 3>(filters, board, sums, strip),
                2 => strips_vnni::<8, 2>(filters, board, sums, strip),
                _ => strips_vnni::<8, 1>(filters, board, sums, strip),
            }
        };
    }
}

/// All squares, R of a rank at a time, times N strips of 16 outputs.
///
/// # Safety
///
/// As [`convolve_vnni`], and the strips exist.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vnni")]
#[inline]
unsafe fn strips_vnni<const R: usize, const N: usize>(
    filters: &ByteFilters,
    board: &[u8],
    sums: &mut [i32],
    strip: usize,
) -> usize {
    let ByteFilters { inputs, outputs, .. } = *filters;
    let size = 9 * inputs * LANES;
    // SAFETY: the squares of a tap are on the board with its border, the weights are N strips of
    // `size`, and the sums are 64 rows of `outputs`.
    unsafe {
        let first = filters.weights.as_ptr().add(strip * size);
        for square in (0..64).step_by(R) {
            let corner = board.as_ptr().add((inner(square) - SIDE - 1) * inputs);
            let mut lanes = [[_mm512_setzero_si512(); N]; R];
            let mut weights = first;
            for tap in 0..9 {
                let mut bytes = corner.add((tap / 3 * SIDE + tap % 3) * inputs);
                for _ in 0..inputs / 4 {
                    let mut columns = [_mm512_setzero_si512(); N];
                    for (n, column) in columns.iter_mut().enumerate() {
                        *column = _mm512_loadu_si512(weights.add(n * size).cast());
                    }
                    for (r, lanes) in lanes.iter_mut().enumerate() {
                        let four = bytes.add(r * inputs).cast::<i32>().read_unaligned();
                        let four = _mm512_set1_epi32(four);
                        for (lane, column) in lanes.iter_mut().zip(&columns) {
                            *lane = _mm512_dpbusd_epi32(*lane, four, *column);
                        }
                    }
                    bytes = bytes.add(4);
                    weights = weights.wrapping_add(4 * LANES);
                }
            }
            for (r, lanes) in lanes.iter().enumerate() {
                for (n, lane) in lanes.iter().enumerate() {
                    let offset = (square + r) * outputs + (strip + n) * LANES;
                    _mm512_storeu_si512(sums.as_mut_ptr().add(offset).cast(), *lane);
                }
            }
        }
    }
    N
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::*;

    #[test]
    fn every_kernel_matches_a_direct_convolution() {
        let mut rng = Seed::new(12).rng();
        for (inputs, outputs) in [(16, 16), (32, 32), (48, 48), (64, 64), (80, 80), (120, 16)] {
            let weights: Vec<i8> =
                (0..inputs * outputs * 9).map(|_| (rng.below(255) as i32 - 127) as i8).collect();
            let filters = ByteFilters::new(inputs, outputs, &weights);
            let mut board = vec![0u8; SIDE * SIDE * inputs];
            for square in 0..64 {
                let start = inner(square) * inputs;
                let bytes = &mut board[start..start + inputs];
                bytes.iter_mut().for_each(|byte| *byte = rng.below(256) as u8);
            }
            let (mut plain, mut fast) = (vec![0; 64 * outputs], vec![1; 64 * outputs]);
            IntegerKernel::Portable.convolve(&filters, &board, &mut plain);
            IntegerKernel::detect().convolve(&filters, &board, &mut fast);
            assert!(plain == fast);
            for square in [0usize, 7, 27, 56, 63] {
                for output in [0, outputs - 1] {
                    let mut sum = 0i32;
                    for input in 0..inputs {
                        for tap in 0..9 {
                            let offset = inner(square) + tap / 3 * SIDE + tap % 3 - SIDE - 1;
                            let weight = weights[(output * inputs + input) * 9 + tap];
                            sum += i32::from(board[offset * inputs + input]) * i32::from(weight);
                        }
                    }
                    assert_eq!(plain[square * outputs + output], sum);
                }
            }

            let floats = |rng: &mut selfmate_chess::Rng, len: usize, scale: f32| -> Vec<f32> {
                (0..len).map(|_| rng.normal() as f32 * scale).collect()
            };
            let (scale, bias) = (floats(&mut rng, outputs, 1e-5), floats(&mut rng, outputs, 0.1));
            let by = ByteFinish { scale: &scale, bias: &bias, inverse: 50.0 };
            let tower = floats(&mut rng, 64 * outputs, 1.0);
            let results = [IntegerKernel::Portable, IntegerKernel::detect()].map(|kernel| {
                let mut boards = [0, 1].map(|_| vec![0; SIDE * SIDE * outputs]);
                let mut tower = tower.clone();
                kernel.finish(&plain, by, &mut boards[0]);
                kernel.finish_add(&plain, by, &mut tower, &mut boards[1]);
                (boards, tower)
            });
            assert!(results[0] == results[1]);
            let ([_, board], tower) = &results[0];
            let expected = (tower[outputs] * 50.0).round_ties_even().clamp(0.0, 255.0) as u8;
            assert_eq!(board[inner(1) * outputs], expected);
        }
    }

    #[test]
    fn bytes_round_to_even() {
        let cases = [(-3.0, 0), (0.5, 0), (1.5, 2), (2.5, 2), (254.6, 255), (1e9, 255)];
        for (value, expected) in cases {
            assert_eq!(rounded(value), expected, "{value}");
        }
    }
}
