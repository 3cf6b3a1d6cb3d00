//! The kernels in plain Rust: the reference for the others.

use super::{RowNumber, activate};

pub fn hidden(rows: &[i16], bias: &[i16], features: &[u16], out: &mut [i16]) {
    let width = out.len();
    out.copy_from_slice(bias);
    for feature in features {
        let row = &rows[feature.index() * width..][..width];
        for (sum, weight) in out.iter_mut().zip(row) {
            *sum = sum.wrapping_add(*weight);
        }
    }
    for sum in out {
        *sum = activate(*sum);
    }
}

pub fn update(rows: &[i16], added: &[u16], removed: &[u16], sums: &mut [i16], out: &mut [i16]) {
    let width = out.len();
    for feature in added {
        let row = &rows[feature.index() * width..][..width];
        for (sum, weight) in sums.iter_mut().zip(row) {
            *sum = sum.wrapping_add(*weight);
        }
    }
    for feature in removed {
        let row = &rows[feature.index() * width..][..width];
        for (sum, weight) in sums.iter_mut().zip(row) {
            *sum = sum.wrapping_sub(*weight);
        }
    }
    for (unit, sum) in out.iter_mut().zip(sums) {
        *unit = activate(*sum);
    }
}

pub fn products(rows: &[i16], hidden: &[i16], numbers: &[u16], out: &mut [i32]) {
    let width = hidden.len();
    for (number, out) in numbers.iter().zip(out) {
        let row = &rows[number.index() * width..][..width];
        let products = hidden.iter().zip(row).map(|(h, w)| i32::from(*h) * i32::from(*w));
        *out = products.fold(0, i32::wrapping_add);
    }
}

pub fn add_rows<N: RowNumber>(rows: &[f32], numbers: &[N], out: &mut [f32]) {
    let width = out.len();
    for number in numbers {
        let row = &rows[number.index() * width..][..width];
        for (sum, value) in out.iter_mut().zip(row) {
            *sum += value;
        }
    }
}

pub fn add_scaled_rows<N: RowNumber>(rows: &[f32], numbers: &[N], scales: &[f32], out: &mut [f32]) {
    let width = out.len();
    for (number, scale) in numbers.iter().zip(scales) {
        let row = &rows[number.index() * width..][..width];
        for (sum, value) in out.iter_mut().zip(row) {
            *sum += value * scale;
        }
    }
}

pub fn dots<N: RowNumber>(rows: &[f32], vector: &[f32], numbers: &[N], out: &mut [f32]) {
    let width = vector.len();
    for (number, out) in numbers.iter().zip(out) {
        let row = &rows[number.index() * width..][..width];
        // Sixteen sums side by side, so that the compiler can vectorise.
        let mut lanes = [0.0f32; 16];
        for (row, vector) in row.chunks_exact(16).zip(vector.chunks_exact(16)) {
            for lane in 0..16 {
                lanes[lane] += row[lane] * vector[lane];
            }
        }
        *out = lanes.iter().sum();
    }
}

/// Simple enough for the compiler to vectorise; inlined so that it can use the caller's
/// instructions.
#[inline(always)]
pub fn square(sums: &[f32], hidden: &mut [f32]) {
    for (unit, sum) in hidden.iter_mut().zip(sums) {
        let clipped = sum.clamp(0.0, 1.0);
        *unit = clipped * clipped;
    }
}

#[inline(always)]
pub fn square_back(back: &[f32], sums: &mut [f32]) {
    for (sum, back) in sums.iter_mut().zip(back) {
        let slope = if *sum > 0.0 && *sum < 1.0 { 2.0 * *sum } else { 0.0 };
        *sum = slope * back;
    }
}
