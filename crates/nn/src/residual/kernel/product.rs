//! Matrix products. Each result is summed by one accumulator in the order of the depth, so it does
//! not depend on how many rows are computed at a time.

use super::vector::Vector;
use super::{Call, Kernel, LANES};

/// Columns of the right matrix that are stored together.
pub const PANEL: usize = 64;
/// Depth that is multiplied at a time: this part of a panel stays in the first-level cache.
const DEPTH: usize = 128;

/// The left matrix: element (row, depth) is at `row × row_step + depth × depth_step`.
#[derive(Clone, Copy, Debug)]
pub struct Left<'a> {
    pub values: &'a [f32],
    pub row_step: usize,
    pub depth_step: usize,
}

impl<'a> Left<'a> {
    /// A row-major matrix.
    pub fn rows(values: &'a [f32], row_step: usize) -> Left<'a> {
        Left { values, row_step, depth_step: 1 }
    }

    /// A column-major matrix.
    pub fn columns(values: &'a [f32], depth_step: usize) -> Left<'a> {
        Left { values, row_step: 1, depth_step }
    }
}

/// The right matrix: panels of 64 columns, each row-major.
#[derive(Clone, Copy, Debug)]
pub struct Right<'a> {
    values: &'a [f32],
    /// Distance between rows within a panel.
    row_step: usize,
    /// Distance between panels.
    panel_step: usize,
}

impl<'a> Right<'a> {
    /// A plain row-major matrix.
    pub fn rows(values: &'a [f32], row_step: usize) -> Right<'a> {
        Right { values, row_step, panel_step: PANEL }
    }

    /// A matrix packed by [`Right::index`], so that a panel is read sequentially.
    pub fn packed(values: &'a [f32], depth: usize, columns: usize) -> Right<'a> {
        let row_step = columns.min(PANEL);
        Right { values, row_step, panel_step: depth * row_step }
    }

    /// The length of a packed matrix.
    pub fn packed_len(depth: usize, columns: usize) -> usize {
        depth * columns.min(PANEL) * columns.div_ceil(PANEL)
    }

    /// The index of an element of a packed matrix.
    #[inline(always)]
    pub fn index(depth: usize, columns: usize, row: usize, column: usize) -> usize {
        let width = columns.min(PANEL);
        column / PANEL * depth * width + row * width + column % PANEL
    }
}

/// The sizes of the matrices. `columns` is a multiple of 16.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub rows: usize,
    pub depth: usize,
    pub columns: usize,
}

impl Kernel {
    /// Sets `out` to `left` × `right`; its rows are `out_step` apart.
    pub(in crate::residual) fn product(
        self,
        shape: Shape,
        left: Left,
        right: Right,
        out: &mut [f32],
        out_step: usize,
    ) {
        self.run(Product::new(shape, left, right, out, out_step, false));
    }

    /// Adds `left` × `right` to `out`.
    pub(crate) fn product_add(
        self,
        shape: Shape,
        left: Left,
        right: Right,
        out: &mut [f32],
        out_step: usize,
    ) {
        self.run(Product::new(shape, left, right, out, out_step, true));
    }
}

struct Product<'a> {
    shape: Shape,
    left: Left<'a>,
    right: Right<'a>,
    out: &'a mut [f32],
    out_step: usize,
    add: bool,
}

impl<'a> Product<'a> {
    fn new(
        shape: Shape,
        left: Left<'a>,
        right: Right<'a>,
        out: &'a mut [f32],
        out_step: usize,
        add: bool,
    ) -> Product<'a> {
        let Shape { rows, depth, columns } = shape;
        assert!(columns.is_multiple_of(LANES) && out_step >= columns, "{shape:?} into {out_step}");
        if rows > 0 && columns > 0 {
            assert!((rows - 1) * out_step + columns <= out.len(), "{shape:?}: out {}", out.len());
            if depth > 0 {
                let last = (rows - 1) * left.row_step + (depth - 1) * left.depth_step;
                assert!(last < left.values.len(), "{shape:?}: left {}", left.values.len());
                let (panel, column) = ((columns - 1) / PANEL, (columns - 1) % PANEL);
                let full = if panel > 0 { PANEL - 1 } else { column };
                assert!(right.row_step > full, "{shape:?}: rows of {}", right.row_step);
                let last = panel * right.panel_step + (depth - 1) * right.row_step + column;
                // All panels before the last have the same size and end before it.
                let full = panel.saturating_sub(1) * right.panel_step
                    + (depth - 1) * right.row_step
                    + full;
                assert!(last.max(full) < right.values.len(), "{shape:?}: {}", right.values.len());
            }
        }
        Product { shape, left, right, out, out_step, add }
    }
}

impl Call for Product<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Shape { rows, depth, columns } = self.shape;
        // SAFETY: `new` has checked the last element of every matrix, and blocks end there.
        unsafe {
            let mut column = 0;
            while column < columns {
                let wide = (columns - column).min(PANEL - column % PANEL) / V::LANES;
                let offset = column / PANEL * self.right.panel_step + column % PANEL;
                let mut first = 0;
                let mut done = 0;
                // At least once, so that a product of depth 0 writes zeros.
                while first == 0 || first < depth {
                    let block = Block {
                        left: self.left.values.as_ptr().wrapping_add(first * self.left.depth_step),
                        left_row: self.left.row_step,
                        left_depth: self.left.depth_step,
                        right: (self.right.values.as_ptr())
                            .wrapping_add(offset + first * self.right.row_step),
                        right_row: self.right.row_step,
                        out: self.out.as_mut_ptr().add(column),
                        out_row: self.out_step,
                        depth: (depth - first).min(DEPTH),
                        add: self.add || first > 0,
                    };
                    // As many columns as leave registers for six rows.
                    done = if V::REGISTERS >= 32 && wide >= 4 {
                        block.strip::<V, 4>(rows)
                    } else if V::REGISTERS >= 32 && wide == 3 {
                        block.strip::<V, 3>(rows)
                    } else if V::REGISTERS >= 16 && wide >= 2 {
                        block.strip::<V, 2>(rows)
                    } else {
                        block.strip::<V, 1>(rows)
                    };
                    first += DEPTH;
                }
                column += done * V::LANES;
            }
        }
    }
}

/// Some rows times some columns.
struct Block {
    left: *const f32,
    left_row: usize,
    left_depth: usize,
    right: *const f32,
    right_row: usize,
    out: *mut f32,
    out_row: usize,
    depth: usize,
    add: bool,
}

impl Block {
    /// All rows times N vectors of columns; returns the number of vectors.
    ///
    /// # Safety
    ///
    /// Every element of the block exists.
    #[inline(always)]
    unsafe fn strip<V: Vector, const N: usize>(mut self, rows: usize) -> usize {
        let mut row = 0;
        while row < rows {
            let left = rows - row;
            // SAFETY: at most the remaining rows.
            let done = unsafe {
                if V::REGISTERS >= 32 && N <= 2 && left >= 12 {
                    self.rows::<V, 12, N>()
                } else if V::REGISTERS >= 16 && left >= 6 && left != 8 {
                    self.rows::<V, 6, N>()
                } else if left >= 4 {
                    self.rows::<V, 4, N>()
                } else if left >= 2 {
                    self.rows::<V, 2, N>()
                } else {
                    self.rows::<V, 1, N>()
                }
            };
            row += done;
            self.left = self.left.wrapping_add(done * self.left_row);
            self.out = self.out.wrapping_add(done * self.out_row);
        }
        N
    }

    /// R rows times N vectors of columns, all in registers.
    ///
    /// # Safety
    ///
    /// Every element of these rows exists.
    #[inline(always)]
    unsafe fn rows<V: Vector, const R: usize, const N: usize>(&self) -> usize {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut sums = [[V::splat(0.0); N]; R];
            if self.add {
                for (r, sums) in sums.iter_mut().enumerate() {
                    for (n, sum) in sums.iter_mut().enumerate() {
                        *sum = V::load(self.out.add(r * self.out_row + n * V::LANES));
                    }
                }
            }
            let (mut left, mut right) = (self.left, self.right);
            for _ in 0..self.depth {
                let mut columns = [V::splat(0.0); N];
                for (n, column) in columns.iter_mut().enumerate() {
                    *column = V::load(right.add(n * V::LANES));
                }
                for (r, sums) in sums.iter_mut().enumerate() {
                    let factor = V::splat(*left.add(r * self.left_row));
                    for (sum, column) in sums.iter_mut().zip(&columns) {
                        *sum = factor.mul_add(*column, *sum);
                    }
                }
                left = left.wrapping_add(self.left_depth);
                right = right.wrapping_add(self.right_row);
            }
            for (r, sums) in sums.iter().enumerate() {
                for (n, sum) in sums.iter().enumerate() {
                    sum.store(self.out.add(r * self.out_row + n * V::LANES));
                }
            }
        }
        R
    }
}
