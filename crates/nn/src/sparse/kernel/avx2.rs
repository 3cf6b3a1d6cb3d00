//! The kernels in AVX2 with fused multiply-add.
//!
//! Every function may run only where the processor has both, and trusts what
//! [`super::check_rows`] has checked: widths are multiples of 64 and every row exists.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::*;
use std::array::from_fn;

use super::RowNumber;

const SHORTS: usize = 16;
const FLOATS: usize = 8;

/// # Safety
/// AVX2; rows of `out.len()`, a multiple of 64; `bias` as long as `out`; every feature a row.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn hidden(rows: &[i16], bias: &[i16], features: &[u16], out: &mut [i16]) {
    let width = out.len();
    let mut start = 0;
    while start < width {
        // SAFETY: each block ends within the row, as the width is a multiple of 64.
        unsafe {
            if width - start >= 128 {
                hidden_block::<8>(rows, bias, features, out, start);
                start += 128;
            } else {
                hidden_block::<4>(rows, bias, features, out, start);
                start += 64;
            }
        }
    }
}

/// # Safety
/// As [`hidden`], and `start` + 16 × N within the row.
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn hidden_block<const N: usize>(
    rows: &[i16],
    bias: &[i16],
    features: &[u16],
    out: &mut [i16],
    start: usize,
) {
    let width = out.len();
    // SAFETY: the caller promises that every row, and this block of it, exists.
    unsafe {
        let bias = bias.as_ptr().add(start);
        let mut sums: [__m256i; N] = from_fn(|i| _mm256_loadu_si256(bias.add(i * SHORTS).cast()));
        for feature in features {
            let row = rows.as_ptr().add(feature.index() * width + start);
            for (i, sum) in sums.iter_mut().enumerate() {
                let weights = _mm256_loadu_si256(row.add(i * SHORTS).cast());
                *sum = _mm256_add_epi16(*sum, weights);
            }
        }
        for (i, sum) in sums.into_iter().enumerate() {
            _mm256_storeu_si256(out.as_mut_ptr().add(start + i * SHORTS).cast(), activate(sum));
        }
    }
}

/// # Safety
/// AVX2.
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn activate(sum: __m256i) -> __m256i {
    let one = _mm256_set1_epi16(super::INPUT_ONE);
    let clipped = _mm256_min_epi16(_mm256_max_epi16(sum, _mm256_setzero_si256()), one);
    _mm256_mulhrs_epi16(_mm256_slli_epi16::<3>(clipped), _mm256_slli_epi16::<2>(clipped))
}

/// # Safety
/// AVX2; rows of `out.len()`, a multiple of 64; `sums` as long as `out`; every feature a row.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn update(
    rows: &[i16],
    added: &[u16],
    removed: &[u16],
    sums: &mut [i16],
    out: &mut [i16],
) {
    let width = out.len();
    let mut start = 0;
    while start < width {
        // SAFETY: each block ends within the row, as the width is a multiple of 64.
        unsafe {
            if width - start >= 128 {
                update_block::<8>(rows, added, removed, sums, out, start);
                start += 128;
            } else {
                update_block::<4>(rows, added, removed, sums, out, start);
                start += 64;
            }
        }
    }
}

/// # Safety
/// As [`update`], and `start` + 16 × N within the row.
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn update_block<const N: usize>(
    rows: &[i16],
    added: &[u16],
    removed: &[u16],
    sums: &mut [i16],
    out: &mut [i16],
    start: usize,
) {
    let width = out.len();
    // SAFETY: the caller promises that every row, and this block of it, exists.
    unsafe {
        let kept = sums.as_mut_ptr().add(start);
        let mut sums: [__m256i; N] = from_fn(|i| _mm256_loadu_si256(kept.add(i * SHORTS).cast()));
        for feature in added {
            let row = rows.as_ptr().add(feature.index() * width + start);
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = _mm256_add_epi16(*sum, _mm256_loadu_si256(row.add(i * SHORTS).cast()));
            }
        }
        for feature in removed {
            let row = rows.as_ptr().add(feature.index() * width + start);
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = _mm256_sub_epi16(*sum, _mm256_loadu_si256(row.add(i * SHORTS).cast()));
            }
        }
        for (i, sum) in sums.into_iter().enumerate() {
            _mm256_storeu_si256(kept.add(i * SHORTS).cast(), sum);
            _mm256_storeu_si256(out.as_mut_ptr().add(start + i * SHORTS).cast(), activate(sum));
        }
    }
}

/// # Safety
/// AVX2; rows of `hidden.len()`, a multiple of 64; `out` as long as `numbers`, every number a row.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn products(rows: &[i16], hidden: &[i16], numbers: &[u16], out: &mut [i32]) {
    let width = hidden.len();
    let full = numbers.len() / 4 * 4;
    // SAFETY: the caller promises that the rows exist and are as wide as `hidden`; groups of
    // four stop at `full`.
    unsafe {
        for group in (0..full).step_by(4) {
            let row: [*const i16; 4] =
                from_fn(|k| rows.as_ptr().add(numbers[group + k].index() * width));
            let mut sums = [_mm256_setzero_si256(); 4];
            for start in (0..width).step_by(SHORTS) {
                let h = _mm256_loadu_si256(hidden.as_ptr().add(start).cast());
                for k in 0..4 {
                    let w = _mm256_loadu_si256(row[k].add(start).cast());
                    sums[k] = _mm256_add_epi32(sums[k], _mm256_madd_epi16(h, w));
                }
            }
            let pairs = _mm256_hadd_epi32(
                _mm256_hadd_epi32(sums[0], sums[1]),
                _mm256_hadd_epi32(sums[2], sums[3]),
            );
            let four =
                _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256::<1>(pairs));
            _mm_storeu_si128(out.as_mut_ptr().add(group).cast(), four);
        }
    }
    super::portable::products(rows, hidden, &numbers[full..], &mut out[full..]);
}

/// # Safety
/// AVX2; rows of `out.len()`, a multiple of 64; every number a row.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn add_rows<N: RowNumber>(rows: &[f32], numbers: &[N], out: &mut [f32]) {
    let width = out.len();
    for start in (0..width).step_by(64) {
        // SAFETY: the block of 64 lies within `out` and within each row.
        unsafe {
            let target = out.as_mut_ptr().add(start);
            let mut sums: [__m256; 8] = from_fn(|i| _mm256_loadu_ps(target.add(i * FLOATS)));
            for number in numbers {
                let row = rows.as_ptr().add(number.index() * width + start);
                for (i, sum) in sums.iter_mut().enumerate() {
                    *sum = _mm256_add_ps(*sum, _mm256_loadu_ps(row.add(i * FLOATS)));
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                _mm256_storeu_ps(target.add(i * FLOATS), sum);
            }
        }
    }
}

/// # Safety
/// AVX2 and fused multiply-add; as [`add_rows`], and `scales` as long as `numbers`.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn add_scaled_rows<N: RowNumber>(
    rows: &[f32],
    numbers: &[N],
    scales: &[f32],
    out: &mut [f32],
) {
    let width = out.len();
    for start in (0..width).step_by(64) {
        // SAFETY: the block of 64 lies within `out` and within each row.
        unsafe {
            let target = out.as_mut_ptr().add(start);
            let mut sums: [__m256; 8] = from_fn(|i| _mm256_loadu_ps(target.add(i * FLOATS)));
            for (number, scale) in numbers.iter().zip(scales) {
                let row = rows.as_ptr().add(number.index() * width + start);
                let scale = _mm256_set1_ps(*scale);
                for (i, sum) in sums.iter_mut().enumerate() {
                    *sum = _mm256_fmadd_ps(_mm256_loadu_ps(row.add(i * FLOATS)), scale, *sum);
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                _mm256_storeu_ps(target.add(i * FLOATS), sum);
            }
        }
    }
}

/// # Safety
/// AVX2 and fused multiply-add; rows of `vector.len()`, a multiple of 64; `out` as long as
/// `numbers`, every number a row.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn dots<N: RowNumber>(rows: &[f32], vector: &[f32], numbers: &[N], out: &mut [f32]) {
    let width = vector.len();
    let full = numbers.len() / 4 * 4;
    for group in (0..full).step_by(4) {
        // SAFETY: the rows exist and are as wide as `vector`; groups of four stop at `full`.
        unsafe {
            let row: [*const f32; 4] =
                from_fn(|k| rows.as_ptr().add(numbers[group + k].index() * width));
            let mut sums = [[_mm256_setzero_ps(); 4]; 2];
            for start in (0..width).step_by(2 * FLOATS) {
                for (half, sums) in sums.iter_mut().enumerate() {
                    let at = start + half * FLOATS;
                    let v = _mm256_loadu_ps(vector.as_ptr().add(at));
                    for (sum, row) in sums.iter_mut().zip(row) {
                        *sum = _mm256_fmadd_ps(_mm256_loadu_ps(row.add(at)), v, *sum);
                    }
                }
            }
            let [a, b, c, d] = from_fn(|k| _mm256_add_ps(sums[0][k], sums[1][k]));
            let pairs = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
            let four = _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps::<1>(pairs));
            _mm_storeu_ps(out.as_mut_ptr().add(group), four);
        }
    }
    for (number, out) in numbers[full..].iter().zip(&mut out[full..]) {
        // SAFETY: the row exists and is as wide as `vector`, whose width 32 divides.
        unsafe {
            let row = rows.as_ptr().add(number.index() * width);
            let mut sums = [_mm256_setzero_ps(); 4];
            for start in (0..width).step_by(4 * FLOATS) {
                for (i, sum) in sums.iter_mut().enumerate() {
                    let at = start + i * FLOATS;
                    let (w, v) =
                        (_mm256_loadu_ps(row.add(at)), _mm256_loadu_ps(vector.as_ptr().add(at)));
                    *sum = _mm256_fmadd_ps(w, v, *sum);
                }
            }
            let sum =
                _mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3]));
            let half = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps::<1>(sum));
            let pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
            *out = _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps::<1>(pair, pair)));
        }
    }
}

/// # Safety
/// AVX2.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn square(sums: &[f32], hidden: &mut [f32]) {
    super::portable::square(sums, hidden);
}

/// # Safety
/// AVX2.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn square_back(back: &[f32], sums: &mut [f32]) {
    super::portable::square_back(back, sums);
}
