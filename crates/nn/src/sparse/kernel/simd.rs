//! The kernels for vectors of any width.
//!
//! All functions rely on the checks in [`super::check_rows`]: widths are multiples of 64 and every
//! row exists. The modules at the end instantiate the code for each width.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::{_mm_storeu_ps, _mm_storeu_si128};
use std::array::from_fn;

use super::RowNumber;
use super::vector::Vector;

/// Sums that are computed side by side, so that they do not wait for each other.
const GROUP: usize = 8;

/// Runs `$block::<V, N>` over a row, with as many vectors at a time as registers and width allow.
macro_rules! in_blocks {
    ($block:ident, $lanes:expr, $width:expr, ($($argument:expr),*)) => {
        let mut start = 0;
        while start < $width {
            let left = ($width - start) / $lanes;
            start += $lanes
                * if left >= 8 {
                    $block::<V, 8>($($argument,)* start);
                    8
                } else if left >= 4 {
                    $block::<V, 4>($($argument,)* start);
                    4
                } else {
                    $block::<V, 2>($($argument,)* start);
                    2
                };
        }
    };
}

/// # Safety
///
/// The processor supports `V`; rows have `out.len()` numbers, a multiple of 64; `bias` is as long
/// as `out`; every feature has a row.
#[inline(always)]
unsafe fn hidden<V: Vector>(rows: &[i16], bias: &[i16], features: &[u16], out: &mut [i16]) {
    // SAFETY: each block ends within the row, as the width is a multiple of 64.
    unsafe {
        in_blocks!(hidden_block, V::SHORTS, out.len(), (rows, bias, features, out));
    }
}

/// # Safety
/// As [`hidden`], and `start` + N vectors within the row.
#[inline(always)]
unsafe fn hidden_block<V: Vector, const N: usize>(
    rows: &[i16],
    bias: &[i16],
    features: &[u16],
    out: &mut [i16],
    start: usize,
) {
    let width = out.len();
    // SAFETY: the caller guarantees that every row, and this block of it, exists.
    unsafe {
        let bias = bias.as_ptr().add(start);
        let mut sums: [V::Integers; N] = from_fn(|i| V::load(bias.add(i * V::SHORTS)));
        for feature in features {
            let row = rows.as_ptr().add(feature.index() * width + start);
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = V::add(*sum, V::load(row.add(i * V::SHORTS)));
            }
        }
        for (i, sum) in sums.into_iter().enumerate() {
            V::store(out.as_mut_ptr().add(start + i * V::SHORTS), V::activate(sum));
        }
    }
}

/// # Safety
///
/// The processor supports `V`; rows have `out.len()` numbers, a multiple of 64; `sums` is as long
/// as `out`; every feature has a row.
#[inline(always)]
unsafe fn update<V: Vector>(
    rows: &[i16],
    added: &[u16],
    removed: &[u16],
    sums: &mut [i16],
    out: &mut [i16],
) {
    // SAFETY: each block ends within the row, as the width is a multiple of 64.
    unsafe {
        in_blocks!(update_block, V::SHORTS, out.len(), (rows, added, removed, sums, out));
    }
}

/// # Safety
/// As [`update`], and `start` + N vectors within the row.
#[inline(always)]
unsafe fn update_block<V: Vector, const N: usize>(
    rows: &[i16],
    added: &[u16],
    removed: &[u16],
    sums: &mut [i16],
    out: &mut [i16],
    start: usize,
) {
    let width = out.len();
    // SAFETY: the caller guarantees that every row, and this block of it, exists.
    unsafe {
        let kept = sums.as_mut_ptr().add(start);
        let mut sums: [V::Integers; N] = from_fn(|i| V::load(kept.add(i * V::SHORTS)));
        for feature in added {
            let row = rows.as_ptr().add(feature.index() * width + start);
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = V::add(*sum, V::load(row.add(i * V::SHORTS)));
            }
        }
        for feature in removed {
            let row = rows.as_ptr().add(feature.index() * width + start);
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = V::sub(*sum, V::load(row.add(i * V::SHORTS)));
            }
        }
        for (i, sum) in sums.into_iter().enumerate() {
            V::store(kept.add(i * V::SHORTS), sum);
            V::store(out.as_mut_ptr().add(start + i * V::SHORTS), V::activate(sum));
        }
    }
}

/// # Safety
///
/// The processor supports `V`; rows have `hidden.len()` numbers, a multiple of 64; `out` is as long
/// as `numbers`; every number has a row.
#[inline(always)]
unsafe fn products<V: Vector>(rows: &[i16], hidden: &[i16], numbers: &[u16], out: &mut [i32]) {
    let width = hidden.len();
    let full = numbers.len() / GROUP * GROUP;
    for group in (0..full).step_by(GROUP) {
        // SAFETY: the caller guarantees that the rows exist and are as wide as `hidden`; groups
        // stop at `full`.
        unsafe {
            let row: [*const i16; GROUP] =
                from_fn(|k| rows.as_ptr().add(numbers[group + k].index() * width));
            let mut sums = [V::zero(); GROUP];
            for start in (0..width).step_by(V::SHORTS) {
                let units = V::load(hidden.as_ptr().add(start));
                for (sum, row) in sums.iter_mut().zip(row) {
                    *sum = V::multiply_add(*sum, units, V::load(row.add(start)));
                }
            }
            let out = out.as_mut_ptr().add(group);
            let [a, b, c, d, e, f, g, h] = sums;
            _mm_storeu_si128(out.cast(), V::totals([a, b, c, d]));
            _mm_storeu_si128(out.add(4).cast(), V::totals([e, f, g, h]));
        }
    }
    for (number, out) in numbers[full..].iter().zip(&mut out[full..]) {
        // SAFETY: the row exists and is as wide as `hidden`, a multiple of two vectors.
        unsafe {
            let row = rows.as_ptr().add(number.index() * width);
            let mut sums = [V::zero(); 4];
            for start in (0..width).step_by(2 * V::SHORTS) {
                for (half, sum) in sums[..2].iter_mut().enumerate() {
                    let at = start + half * V::SHORTS;
                    let units = V::load(hidden.as_ptr().add(at));
                    *sum = V::multiply_add(*sum, units, V::load(row.add(at)));
                }
            }
            let mut totals = [0i32; 4];
            _mm_storeu_si128(totals.as_mut_ptr().cast(), V::totals(sums));
            *out = totals[0].wrapping_add(totals[1]);
        }
    }
}

/// # Safety
///
/// The processor supports `V`; rows have `out.len()` numbers, a multiple of 64; every number has a
/// row.
#[inline(always)]
unsafe fn add_rows<V: Vector>(rows: &[f32], numbers: &[impl RowNumber], out: &mut [f32]) {
    // SAFETY: each block ends within the row, as the width is a multiple of 64.
    unsafe {
        in_blocks!(add_rows_block, V::FLOATS, out.len(), (rows, numbers, out));
    }
}

/// # Safety
/// As [`add_rows`], and `start` + N vectors within the row.
#[inline(always)]
unsafe fn add_rows_block<V: Vector, const N: usize>(
    rows: &[f32],
    numbers: &[impl RowNumber],
    out: &mut [f32],
    start: usize,
) {
    let width = out.len();
    // SAFETY: the caller guarantees that every row, and this block of it, exists.
    unsafe {
        let target = out.as_mut_ptr().add(start);
        let mut sums: [V::Floats; N] = from_fn(|i| V::load_floats(target.add(i * V::FLOATS)));
        for number in numbers {
            let row = rows.as_ptr().add(number.index() * width + start);
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = V::add_floats(*sum, V::load_floats(row.add(i * V::FLOATS)));
            }
        }
        for (i, sum) in sums.into_iter().enumerate() {
            V::store_floats(target.add(i * V::FLOATS), sum);
        }
    }
}

/// # Safety
/// As [`add_rows`], and `scales` as long as `numbers`.
#[inline(always)]
unsafe fn add_scaled_rows<V: Vector>(
    rows: &[f32],
    numbers: &[impl RowNumber],
    scales: &[f32],
    out: &mut [f32],
) {
    // SAFETY: each block ends within the row, as the width is a multiple of 64.
    unsafe {
        in_blocks!(add_scaled_rows_block, V::FLOATS, out.len(), (rows, numbers, scales, out));
    }
}

/// # Safety
/// As [`add_scaled_rows`], and `start` + N vectors within the row.
#[inline(always)]
unsafe fn add_scaled_rows_block<V: Vector, const N: usize>(
    rows: &[f32],
    numbers: &[impl RowNumber],
    scales: &[f32],
    out: &mut [f32],
    start: usize,
) {
    let width = out.len();
    // SAFETY: the caller guarantees that every row, and this block of it, exists.
    unsafe {
        let target = out.as_mut_ptr().add(start);
        let mut sums: [V::Floats; N] = from_fn(|i| V::load_floats(target.add(i * V::FLOATS)));
        for (number, scale) in numbers.iter().zip(scales) {
            let row = rows.as_ptr().add(number.index() * width + start);
            let scale = V::splat(*scale);
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = V::fused(V::load_floats(row.add(i * V::FLOATS)), scale, *sum);
            }
        }
        for (i, sum) in sums.into_iter().enumerate() {
            V::store_floats(target.add(i * V::FLOATS), sum);
        }
    }
}

/// # Safety
///
/// The processor supports `V`; rows have `vector.len()` numbers, a multiple of 64; `out` is as long
/// as `numbers`; every number has a row.
#[inline(always)]
unsafe fn dots<V: Vector>(
    rows: &[f32],
    vector: &[f32],
    numbers: &[impl RowNumber],
    out: &mut [f32],
) {
    let width = vector.len();
    let full = numbers.len() / GROUP * GROUP;
    for group in (0..full).step_by(GROUP) {
        // SAFETY: the rows exist and are as wide as `vector`; groups stop at `full`.
        unsafe {
            let row: [*const f32; GROUP] =
                from_fn(|k| rows.as_ptr().add(numbers[group + k].index() * width));
            let mut sums = [V::zero_floats(); GROUP];
            for start in (0..width).step_by(V::FLOATS) {
                let units = V::load_floats(vector.as_ptr().add(start));
                for (sum, row) in sums.iter_mut().zip(row) {
                    *sum = V::fused(V::load_floats(row.add(start)), units, *sum);
                }
            }
            let out = out.as_mut_ptr().add(group);
            let [a, b, c, d, e, f, g, h] = sums;
            _mm_storeu_ps(out, V::float_totals([a, b, c, d]));
            _mm_storeu_ps(out.add(4), V::float_totals([e, f, g, h]));
        }
    }
    for (number, out) in numbers[full..].iter().zip(&mut out[full..]) {
        // SAFETY: the row exists and is as wide as `vector`, a multiple of four vectors.
        unsafe {
            let row = rows.as_ptr().add(number.index() * width);
            let mut sums = [V::zero_floats(); 4];
            for start in (0..width).step_by(4 * V::FLOATS) {
                for (i, sum) in sums.iter_mut().enumerate() {
                    let at = start + i * V::FLOATS;
                    let units = V::load_floats(vector.as_ptr().add(at));
                    *sum = V::fused(V::load_floats(row.add(at)), units, *sum);
                }
            }
            let mut totals = [0.0f32; 4];
            _mm_storeu_ps(totals.as_mut_ptr(), V::float_totals(sums));
            *out = totals.iter().sum();
        }
    }
}

/// The kernels for one width; each requires the processor features.
macro_rules! entry_points {
    ($module:ident, $vector:ident, $features:literal) => {
        pub(super) mod $module {
            use super::super::RowNumber;
            use super::super::vector::$vector;

            entry_points! { $vector, $features,
                hidden(rows: &[i16], bias: &[i16], features: &[u16], out: &mut [i16]);
                update(rows: &[i16], added: &[u16], removed: &[u16], sums: &mut [i16], out: &mut [i16]);
                products(rows: &[i16], hidden: &[i16], numbers: &[u16], out: &mut [i32]);
                add_rows(rows: &[f32], numbers: &[impl RowNumber], out: &mut [f32]);
                add_scaled_rows(rows: &[f32], numbers: &[impl RowNumber], scales: &[f32], out: &mut [f32]);
                dots(rows: &[f32], vector: &[f32], numbers: &[impl RowNumber], out: &mut [f32]);
            }

            /// # Safety
            /// The processor must have the features.
            #[target_feature(enable = $features)]
            pub unsafe fn square(sums: &[f32], hidden: &mut [f32]) {
                super::super::portable::square(sums, hidden);
            }

            /// # Safety
            /// The processor must have the features.
            #[target_feature(enable = $features)]
            pub unsafe fn square_back(back: &[f32], sums: &mut [f32]) {
                super::super::portable::square_back(back, sums);
            }
        }
    };
    ($vector:ident, $features:literal,
        $($name:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            /// # Safety
            /// The processor must have the features; lengths and rows as in [`super`].
            #[target_feature(enable = $features)]
            pub unsafe fn $name($($argument: $type),*) {
                // SAFETY: guaranteed by the caller.
                unsafe { super::$name::<$vector>($($argument),*) }
            }
        )*
    };
}

entry_points!(narrow, Narrow, "avx2,fma");
entry_points!(wide, Wide, "avx2,fma,avx512f,avx512bw,avx512vnni");
