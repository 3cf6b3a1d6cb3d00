//! Convolutions of a board as matrix products: each square's neighbourhood is a column.

pub const SQUARES: usize = 64;
/// A square and its neighbours.
pub const TAPS: usize = 9;

/// Writes the neighbourhoods of all squares: row `channel × 9 + tap`, one column per square.
/// Squares off the board are 0.
pub fn unfold(planes: &[f32], columns: &mut Vec<f32>) {
    columns.clear();
    columns.resize(planes.len() * TAPS, 0.0);
    let (boards, _) = planes.as_chunks::<SQUARES>();
    let (rows, _) = columns.as_chunks_mut::<SQUARES>();
    for (board, rows) in boards.iter().zip(rows.chunks_mut(TAPS)) {
        for (tap, row) in rows.iter_mut().enumerate() {
            each(tap, |square, neighbour| row[square] = board[neighbour]);
        }
    }
}

/// The adjoint of [`unfold`]: adds derivatives by the neighbourhoods to those of their squares.
pub fn fold(columns: &[f32], planes: &mut [f32]) {
    let (boards, _) = planes.as_chunks_mut::<SQUARES>();
    let (rows, _) = columns.as_chunks::<SQUARES>();
    for (board, rows) in boards.iter_mut().zip(rows.chunks(TAPS)) {
        for (tap, row) in rows.iter().enumerate() {
            each(tap, |square, neighbour| board[neighbour] += row[square]);
        }
    }
}

/// Calls `call` with each square and its neighbour in one of nine directions, if on the board.
#[inline(always)]
fn each(tap: usize, mut call: impl FnMut(usize, usize)) {
    let (up, right) = (tap / 3, tap % 3);
    for rank in 0..8usize {
        // One more than the neighbour's rank, so that it is never negative.
        let from_rank = rank + up;
        if !(1..=8).contains(&from_rank) {
            continue;
        }
        for file in 0..8usize {
            let from_file = file + right;
            if (1..=8).contains(&from_file) {
                call(rank * 8 + file, (from_rank - 1) * 8 + from_file - 1);
            }
        }
    }
}

/// The transposed matrix.
pub fn transposed(matrix: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let mut turned = vec![0.0; matrix.len()];
    for row in 0..rows {
        for column in 0..columns {
            turned[column * rows + row] = matrix[row * columns + column];
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_square_sees_its_neighbours() {
        let mut planes = vec![0.0; SQUARES];
        // A piece on b2 is in the neighbourhood of nine squares.
        planes[9] = 1.0;
        let mut columns = Vec::new();
        unfold(&planes, &mut columns);
        assert_eq!(columns.iter().sum::<f32>(), 9.0);
        // From a1 it is to the upper right: the last tap.
        assert_eq!(columns[8 * SQUARES], 1.0);
        // A piece on a1 is in the neighbourhood of four squares.
        let mut corner = vec![0.0; SQUARES];
        corner[0] = 1.0;
        unfold(&corner, &mut columns);
        assert_eq!(columns.iter().sum::<f32>(), 4.0);
    }

    #[test]
    fn folding_is_the_adjoint_of_unfolding() {
        let a: Vec<f32> = (0..2 * SQUARES).map(|i| (i as f32 * 0.37).sin()).collect();
        let b: Vec<f32> = (0..2 * SQUARES * TAPS).map(|i| (i as f32 * 0.11).cos()).collect();
        let dot =
            |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| f64::from(x * y)).sum::<f64>();
        let mut unfolded = Vec::new();
        unfold(&a, &mut unfolded);
        let mut folded = vec![0.0; a.len()];
        fold(&b, &mut folded);
        assert!((dot(&unfolded, &b) - dot(&a, &folded)).abs() < 1e-3);
    }
}
