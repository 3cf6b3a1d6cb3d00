//! The small dense matrices of `rating`.

#[derive(Clone, Debug)]
pub(super) struct Matrix {
    size: usize,
    /// Row-major.
    cells: Vec<f64>,
}

impl Matrix {
    pub(super) fn zero(size: usize) -> Matrix {
        Matrix { size, cells: vec![0.0; size * size] }
    }

    pub(super) fn at(&self, row: usize, column: usize) -> f64 {
        self.cells[row * self.size + column]
    }

    pub(super) fn add(&mut self, row: usize, column: usize, value: f64) {
        self.cells[row * self.size + column] += value;
    }

    pub(super) fn scaled(&self, factor: f64) -> Matrix {
        Matrix { size: self.size, cells: self.cells.iter().map(|cell| factor * cell).collect() }
    }

    /// Sets the row and the column of an index to zero, with 1 on the diagonal.
    pub(super) fn isolate(&mut self, index: usize) {
        for other in 0..self.size {
            self.cells[index * self.size + other] = 0.0;
            self.cells[other * self.size + index] = 0.0;
        }
        self.add(index, index, 1.0);
    }

    pub(super) fn times(&self, vector: &[f64]) -> Vec<f64> {
        let row = |row| (0..self.size).map(|column| self.at(row, column) * vector[column]).sum();
        (0..self.size).map(row).collect()
    }

    pub(super) fn product(&self, other: &Matrix) -> Matrix {
        let mut product = Matrix::zero(self.size);
        for row in 0..self.size {
            for middle in 0..self.size {
                for column in 0..self.size {
                    product.add(row, column, self.at(row, middle) * other.at(middle, column));
                }
            }
        }
        product
    }

    /// The inverse, by Gauss-Jordan elimination with pivoting.
    ///
    /// # Panics
    ///
    /// Panics for a singular matrix; the prior on the diagonal prevents that.
    pub(super) fn inverse(&self) -> Matrix {
        let (mut left, mut right) = (self.clone(), Matrix::zero(self.size));
        for index in 0..self.size {
            right.add(index, index, 1.0);
        }
        for column in 0..self.size {
            let pivot = (column..self.size)
                .max_by(|&a, &b| left.at(a, column).abs().total_cmp(&left.at(b, column).abs()))
                .unwrap_or(column);
            left.swap_rows(column, pivot);
            right.swap_rows(column, pivot);
            let value = left.at(column, column);
            assert!(value != 0.0, "the information matrix is positive definite");
            left.scale_row(column, 1.0 / value);
            right.scale_row(column, 1.0 / value);
            for row in (0..self.size).filter(|&row| row != column) {
                let factor = left.at(row, column);
                left.subtract_row(row, column, factor);
                right.subtract_row(row, column, factor);
            }
        }
        right
    }

    /// Turns the covariance of values into the covariance of their differences from the mean.
    pub(super) fn centre(&mut self) {
        let size = self.size as f64;
        let means: Vec<f64> = (0..self.size)
            .map(|row| (0..self.size).map(|column| self.at(row, column)).sum::<f64>() / size)
            .collect();
        let mean = means.iter().sum::<f64>() / size;
        for row in 0..self.size {
            for column in 0..self.size {
                self.add(row, column, mean - means[row] - means[column]);
            }
        }
    }

    fn swap_rows(&mut self, a: usize, b: usize) {
        for column in 0..self.size {
            self.cells.swap(a * self.size + column, b * self.size + column);
        }
    }

    fn scale_row(&mut self, row: usize, factor: f64) {
        self.cells[row * self.size..(row + 1) * self.size]
            .iter_mut()
            .for_each(|cell| *cell *= factor);
    }

    fn subtract_row(&mut self, row: usize, from: usize, factor: f64) {
        for column in 0..self.size {
            self.add(row, column, -factor * self.at(from, column));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_times_its_inverse_is_one() {
        let mut matrix = Matrix::zero(3);
        for (index, value) in [0.0, 2.0, 1.0, 2.0, 5.0, -1.0, 1.0, -1.0, 4.0].iter().enumerate() {
            matrix.add(index / 3, index % 3, *value);
        }
        let product = matrix.product(&matrix.inverse());
        for row in 0..3 {
            for column in 0..3 {
                let expected = f64::from(u8::from(row == column));
                assert!((product.at(row, column) - expected).abs() < 1e-12);
            }
        }
    }
}
