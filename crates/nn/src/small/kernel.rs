//! Products of small row-major matrices. The same code is compiled for every processor and for
//! those with AVX2 and fused multiply-add.
//!
//! The order of all additions is fixed, so results do not depend on threads; the two builds differ
//! in the last bits.

/// Rows and columns of the block that is kept in registers.
const ROWS: usize = 4;
const COLUMNS: usize = 16;

/// Whether this processor supports the faster build.
#[cfg(target_arch = "x86_64")]
fn is_fast() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// `c += a · b` for `a` of m × k, `b` of k × n and `c` of m × n.
///
/// # Panics
///
/// Panics when the slices have other sizes.
pub fn multiply(a: &[f32], b: &[f32], c: &mut [f32], (m, k, n): (usize, usize, usize)) {
    assert!(a.len() == m * k && b.len() == k * n && c.len() == m * n, "{m} x {k} x {n}");
    #[cfg(target_arch = "x86_64")]
    if is_fast() {
        // SAFETY: the processor has AVX2 and FMA, which is all that the function needs.
        return unsafe { multiply_fast(a, b, c, (m, k, n)) };
    }
    blocks::<false>(a, b, c, (m, k, n));
}

/// `c += a · bᵀ` for `a` of m × k, `b` of n × k and `c` of m × n.
///
/// # Panics
///
/// Panics when the slices have other sizes.
pub fn multiply_transposed(a: &[f32], b: &[f32], c: &mut [f32], (m, k, n): (usize, usize, usize)) {
    assert!(a.len() == m * k && b.len() == n * k && c.len() == m * n, "{m} x {k} x {n}");
    #[cfg(target_arch = "x86_64")]
    if is_fast() {
        // SAFETY: the processor has AVX2 and FMA, which is all that the function needs.
        return unsafe { dots_fast(a, b, c, (m, k, n)) };
    }
    dots::<false>(a, b, c, (m, k, n));
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn multiply_fast(a: &[f32], b: &[f32], c: &mut [f32], size: (usize, usize, usize)) {
    blocks::<true>(a, b, c, size);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn dots_fast(a: &[f32], b: &[f32], c: &mut [f32], size: (usize, usize, usize)) {
    dots::<true>(a, b, c, size);
}

/// `x · y + z`, fused when the processor supports it.
#[inline(always)]
fn fused<const FMA: bool>(x: f32, y: f32, z: f32) -> f32 {
    // Without the instruction, `mul_add` would be a function call.
    if FMA { x.mul_add(y, z) } else { x * y + z }
}

#[inline(always)]
fn blocks<const FMA: bool>(a: &[f32], b: &[f32], c: &mut [f32], (m, k, n): (usize, usize, usize)) {
    let mut row = 0;
    while row < m {
        let rows = ROWS.min(m - row);
        let mut column = 0;
        while column < n {
            let columns = COLUMNS.min(n - column);
            if rows == ROWS && columns == COLUMNS {
                block::<FMA>(a, b, c, (row, column), (k, n));
            } else {
                for r in row..row + rows {
                    for col in column..column + columns {
                        let mut sum = c[r * n + col];
                        for i in 0..k {
                            sum = fused::<FMA>(a[r * k + i], b[i * n + col], sum);
                        }
                        c[r * n + col] = sum;
                    }
                }
            }
            column += columns;
        }
        row += rows;
    }
}

#[inline(always)]
fn block<const FMA: bool>(
    a: &[f32],
    b: &[f32],
    c: &mut [f32],
    (row, column): (usize, usize),
    (k, n): (usize, usize),
) {
    let mut sums = [[0.0f32; COLUMNS]; ROWS];
    for (r, sums) in sums.iter_mut().enumerate() {
        sums.copy_from_slice(&c[(row + r) * n + column..][..COLUMNS]);
    }
    let lines: [&[f32]; ROWS] = std::array::from_fn(|r| &a[(row + r) * k..][..k]);
    for i in 0..k {
        let (line, _) = b[i * n + column..].as_chunks::<COLUMNS>();
        let Some(line) = line.first() else { break };
        for (sums, factors) in sums.iter_mut().zip(&lines) {
            let factor = factors[i];
            for (sum, value) in sums.iter_mut().zip(line) {
                *sum = fused::<FMA>(factor, *value, *sum);
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        c[(row + r) * n + column..][..COLUMNS].copy_from_slice(sums);
    }
}

#[inline(always)]
fn dots<const FMA: bool>(a: &[f32], b: &[f32], c: &mut [f32], (m, k, n): (usize, usize, usize)) {
    for row in 0..m {
        let (left, left_rest) = a[row * k..][..k].as_chunks::<COLUMNS>();
        for column in 0..n {
            let (right, right_rest) = b[column * k..][..k].as_chunks::<COLUMNS>();
            let mut sums = [0.0f32; COLUMNS];
            for (left, right) in left.iter().zip(right) {
                for ((sum, left), right) in sums.iter_mut().zip(left).zip(right) {
                    *sum = fused::<FMA>(*left, *right, *sum);
                }
            }
            let rest: f32 = left_rest.iter().zip(right_rest).map(|(x, y)| x * y).sum();
            c[row * n + column] += sums.iter().sum::<f32>() + rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::*;

    #[test]
    fn products_match_the_definition() {
        let mut rng = Seed::new(1).rng();
        let mut noise =
            |count: usize| -> Vec<f32> { (0..count).map(|_| rng.normal() as f32).collect() };
        for (m, k, n) in [(1, 1, 1), (4, 3, 16), (5, 7, 33), (64, 117, 64), (3, 20, 5)] {
            let (a, b, start) = (noise(m * k), noise(k * n), noise(m * n));
            let mut expected = start.clone();
            for row in 0..m {
                for column in 0..n {
                    let terms =
                        (0..k).map(|i| f64::from(a[row * k + i]) * f64::from(b[i * n + column]));
                    expected[row * n + column] += terms.sum::<f64>() as f32;
                }
            }
            let transposed: Vec<f32> =
                (0..n * k).map(|index| b[(index % k) * n + index / k]).collect();
            let mut first = start.clone();
            multiply(&a, &b, &mut first, (m, k, n));
            let mut second = start.clone();
            multiply_transposed(&a, &transposed, &mut second, (m, k, n));
            let mut plain = start.clone();
            blocks::<false>(&a, &b, &mut plain, (m, k, n));
            for (index, value) in expected.iter().enumerate() {
                for got in [first[index], second[index], plain[index]] {
                    assert!((got - value).abs() < 1e-4 * (1.0 + value.abs()), "{m} {k} {n}");
                }
            }
        }
    }
}
