//! Eigenvectors of a symmetric matrix by Jacobi rotations: slow for large matrices, but simple and
//! accurate for a few hundred rows.

use serde::{Deserialize, Serialize};

/// Eigenvalues, and eigenvectors as the columns of a row-major matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Eigen {
    pub values: Vec<f64>,
    pub vectors: Vec<f64>,
}

/// The most sweeps; finite matrices converge long before.
const SWEEPS: usize = 60;

pub fn eigen(matrix: &[f64], n: usize) -> Eigen {
    let mut a = matrix.to_vec();
    let mut vectors: Vec<f64> =
        (0..n * n).map(|i| if i % (n + 1) == 0 { 1.0 } else { 0.0 }).collect();
    let size: f64 = a.iter().map(|v| v * v).sum();
    for _ in 0..SWEEPS {
        let off: f64 = (0..n)
            .flat_map(|p| (0..p).map(move |q| (p, q)))
            .map(|(p, q)| a[p * n + q].powi(2))
            .sum();
        if off <= 1e-26 * size {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                rotate(&mut a, &mut vectors, n, p, q);
            }
        }
    }
    Eigen { values: (0..n).map(|i| a[i * n + i]).collect(), vectors }
}

/// Rotates two axes so that the element between them becomes zero.
fn rotate(a: &mut [f64], vectors: &mut [f64], n: usize, p: usize, q: usize) {
    let between = a[p * n + q];
    if between == 0.0 {
        return;
    }
    let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * between);
    let sign = if theta < 0.0 { -1.0 } else { 1.0 };
    let t = sign / (theta.abs() + (theta * theta + 1.0).sqrt());
    let c = 1.0 / (t * t + 1.0).sqrt();
    let s = t * c;
    for k in 0..n {
        let (x, y) = (a[k * n + p], a[k * n + q]);
        a[k * n + p] = c * x - s * y;
        a[k * n + q] = s * x + c * y;
    }
    for k in 0..n {
        let (x, y) = (a[p * n + k], a[q * n + k]);
        a[p * n + k] = c * x - s * y;
        a[q * n + k] = s * x + c * y;
    }
    for row in vectors.chunks_mut(n) {
        let (x, y) = (row[p], row[q]);
        row[p] = c * x - s * y;
        row[q] = s * x + c * y;
    }
}

impl Eigen {
    /// From coordinates along the eigenvectors to standard coordinates.
    pub fn to_standard(&self, vector: &[f64]) -> Vec<f64> {
        let row = |row: &[f64]| row.iter().zip(vector).map(|(a, b)| a * b).sum();
        self.vectors.chunks(vector.len().max(1)).map(row).collect()
    }

    /// From standard coordinates to coordinates along the eigenvectors.
    pub fn to_axes(&self, vector: &[f64]) -> Vec<f64> {
        let n = vector.len();
        let mut along = vec![0.0; n];
        for (row, value) in self.vectors.chunks(n.max(1)).zip(vector) {
            for (sum, part) in along.iter_mut().zip(row) {
                *sum += part * value;
            }
        }
        along
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::Seed;

    use super::*;

    #[test]
    fn eigenvectors_reproduce_the_matrix() {
        let mut rng = Seed::new(5).rng();
        for n in [1, 2, 5, 20] {
            let mut matrix = vec![0.0; n * n];
            for p in 0..n {
                for q in 0..=p {
                    let value = rng.normal();
                    (matrix[p * n + q], matrix[q * n + p]) = (value, value);
                }
            }
            let axes = eigen(&matrix, n);
            for p in 0..n {
                let mut unit = vec![0.0; n];
                unit[p] = 1.0;
                let along = axes.to_axes(&unit);
                let scaled: Vec<f64> = along.iter().zip(&axes.values).map(|(a, v)| a * v).collect();
                for (q, value) in axes.to_standard(&scaled).into_iter().enumerate() {
                    assert!((value - matrix[p * n + q]).abs() < 1e-9, "{n} {p} {q}");
                }
            }
        }
    }

    #[test]
    fn eigenvalues_of_a_known_matrix() {
        let axes = eigen(&[2.0, 1.0, 1.0, 2.0], 2);
        let mut values = axes.values;
        values.sort_by(f64::total_cmp);
        assert!((values[0] - 1.0).abs() < 1e-12 && (values[1] - 3.0).abs() < 1e-12);
    }
}
