//! The first convolution. Its input is sparse: most planes hold a few pieces, and most others are
//! constant. Adding the pieces one by one takes a tenth of the work.

use super::vector::Vector;
use super::{Call, Kernel, LANES};

/// Filters of 3×3 over planes of 64 squares.
#[derive(Clone, Copy, Debug)]
pub struct Stem<'a> {
    /// [planes, 9, filters]
    pub taps: &'a [f32],
    /// The contribution of a plane of ones to a square, by the square's position: [planes, 9,
    /// filters], the second index by [`edge`].
    pub sums: &'a [f32],
    /// One for each filter.
    pub bias: &'a [f32],
}

/// The class of a square: class of its rank × 3 + class of its file, each 0 on the first, 2 on the
/// last, and 1 between.
fn edge(square: usize) -> usize {
    let class = |line: usize| match line {
        0 => 0,
        7 => 2,
        _ => 1,
    };
    class(square / 8) * 3 + class(square % 8)
}

impl Kernel {
    /// Convolves the planes of a position into 64 squares of filters, followed by ReLU. `edges` is
    /// a buffer for nine squares.
    pub(in crate::residual) fn stem(
        self,
        planes: &[f32],
        stem: Stem<'_>,
        edges: &mut [f32],
        out: &mut [f32],
    ) {
        let filters = stem.bias.len();
        assert!(filters > 0 && filters.is_multiple_of(LANES), "{filters} filters");
        let (planes, rest) = planes.as_chunks::<64>();
        assert!(rest.is_empty(), "whole planes");
        assert_eq!(stem.taps.len(), planes.len() * 9 * filters);
        assert_eq!(stem.sums.len(), stem.taps.len());
        assert_eq!((edges.len(), out.len()), (9 * filters, 64 * filters));
        self.run(Convolve { planes, stem, edges, out });
    }
}

struct Convolve<'a> {
    planes: &'a [[f32; 64]],
    stem: Stem<'a>,
    edges: &'a mut [f32],
    out: &'a mut [f32],
}

impl Call for Convolve<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Convolve { planes, stem, edges, out } = self;
        let filters = stem.bias.len();
        for edge in edges.chunks_exact_mut(filters) {
            edge.copy_from_slice(stem.bias);
        }
        out.fill(0.0);
        for (number, plane) in planes.iter().enumerate() {
            let first = plane[0].to_bits();
            let is_even = plane.iter().fold(0, |bits, value| bits | (value.to_bits() ^ first)) == 0;
            let offset = number * 9 * filters;
            if is_even {
                if plane[0] != 0.0 {
                    let sums = &stem.sums[offset..offset + 9 * filters];
                    // SAFETY: both are nine squares long.
                    unsafe { add::<V>(edges, sums, plane[0]) };
                }
                continue;
            }
            let occupied =
                |bits, (square, value): (usize, &f32)| bits | u64::from(*value != 0.0) << square;
            let mut squares = plane.iter().enumerate().fold(0u64, occupied);
            while squares != 0 {
                let square = squares.trailing_zeros() as usize;
                squares &= squares - 1;
                let value = plane[square];
                let (rank, file) = (square / 8, square % 8);
                // The filter's middle row applies to the square's own rank, the first row to the
                // rank above, the last to the rank below.
                for row in reach(rank) {
                    for column in reach(file) {
                        let to = ((rank + 1 - row) * 8 + file + 1 - column) * filters;
                        let tap = offset + (row * 3 + column) * filters;
                        let out = &mut out[to..to + filters];
                        // SAFETY: both are one square long.
                        unsafe { add::<V>(out, &stem.taps[tap..tap + filters], value) };
                    }
                }
            }
        }
        for (square, out) in out.chunks_exact_mut(filters).enumerate() {
            let edge = &edges[edge(square) * filters..][..filters];
            let mut channel = 0;
            while channel < filters {
                // SAFETY: both are as long as there are filters, a multiple of 16.
                unsafe {
                    let to = out.as_mut_ptr().add(channel);
                    let sum = V::load(to).add(V::load(edge.as_ptr().add(channel)));
                    sum.max(V::splat(0.0)).store(to);
                }
                channel += V::LANES;
            }
        }
    }
}

/// The filter rows that reach a rank from ranks on the board: all three, except at the edges.
#[inline(always)]
fn reach(rank: usize) -> std::ops::RangeInclusive<usize> {
    usize::from(rank == 7)..=1 + usize::from(rank > 0)
}

/// Adds `factor` times `values`.
///
/// # Safety
///
/// As [`Call::run`]; both have the same length, a multiple of 16.
#[inline(always)]
unsafe fn add<V: Vector>(out: &mut [f32], values: &[f32], factor: f32) {
    debug_assert_eq!(out.len(), values.len());
    let mut offset = 0;
    // SAFETY: the caller guarantees the lengths.
    unsafe {
        let factor = V::splat(factor);
        while offset < out.len() {
            let to = out.as_mut_ptr().add(offset);
            V::load(values.as_ptr().add(offset)).mul_add(factor, V::load(to)).store(to);
            offset += V::LANES;
        }
    }
}
