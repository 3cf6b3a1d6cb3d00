//! Winograd's F(4×4, 3×3) on a board of four tiles (Lavin and Gray 2015), over channels.
//!
//! A board is 64 squares of `channels` floats. Each tile is 6×6 squares and overlaps its neighbours
//! by one. Its 36 transformed elements go to 36 matrices with one row per tile, see [`Tiles`]. With
//! d a tile, g a filter and y the result: y = Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A. In the backward pass each
//! transform is transposed.

use super::vector::Vector;
use super::{Call, Kernel, LANES};

/// Elements of a transformed tile.
const ELEMENTS: usize = 36;

/// The memory layout of the 36 matrices.
#[derive(Clone, Copy, Debug)]
pub struct Tiles {
    /// Boards, with four rows each.
    pub boards: usize,
    /// Floats per row.
    pub channels: usize,
}

impl Tiles {
    /// Rows of each matrix.
    pub fn rows(self) -> usize {
        4 * self.boards
    }

    /// Distance between matrices. One cache line more than their size, so that the 36 elements of
    /// one row do not all map to the same few cache sets.
    pub fn step(self) -> usize {
        self.rows() * self.channels + LANES
    }

    /// The total number of floats.
    pub fn len(self) -> usize {
        ELEMENTS * self.step()
    }

    fn check(self, boards: usize, tiles: usize) {
        assert!(self.channels.is_multiple_of(LANES), "{self:?}");
        assert!(boards >= self.boards * 64 * self.channels, "{self:?}: boards of {boards}");
        assert!(tiles >= self.len(), "{self:?}: tiles of {tiles}");
    }
}

/// What to do with the result of a convolution.
#[derive(Clone, Copy, Debug)]
pub enum Finish<'a> {
    Raw,
    /// Add one number per channel.
    Bias(&'a [f32]),
    /// Add one number per channel, then ReLU.
    Relu(&'a [f32]),
    /// Add one number per channel and the previous contents of the board, then ReLU.
    AddRelu(&'a [f32]),
}

impl Kernel {
    /// Transforms boards to tiles: Bᵀ d B.
    pub(in crate::residual) fn input_tiles(self, layout: Tiles, boards: &[f32], tiles: &mut [f32]) {
        layout.check(boards.len(), tiles.len());
        self.run(Input { layout, boards, tiles });
    }

    /// Transforms products of tiles to boards: Aᵀ m A, then `finish`.
    pub(in crate::residual) fn output_boards(
        self,
        layout: Tiles,
        tiles: &[f32],
        boards: &mut [f32],
        finish: Finish,
    ) {
        layout.check(boards.len(), tiles.len());
        if let Finish::Bias(bias) | Finish::Relu(bias) | Finish::AddRelu(bias) = finish {
            assert_eq!(bias.len(), layout.channels);
        }
        self.run(Output { layout, tiles, boards, finish });
    }

    /// Transforms derivatives by boards to derivatives by products of tiles: A y Aᵀ.
    pub(in crate::residual) fn output_back(self, layout: Tiles, boards: &[f32], tiles: &mut [f32]) {
        layout.check(boards.len(), tiles.len());
        self.run(OutputBack { layout, boards, tiles });
    }

    /// Transforms derivatives by tiles to derivatives by boards: B t Bᵀ, summed where tiles
    /// overlap.
    pub(in crate::residual) fn input_back(self, layout: Tiles, tiles: &[f32], boards: &mut [f32]) {
        layout.check(boards.len(), tiles.len());
        self.run(InputBack { layout, tiles, boards });
    }
}

/// The elements of a file.
#[inline(always)]
fn column<V: Copy, const RANKS: usize, const FILES: usize>(
    ranks: &[[V; FILES]; RANKS],
    file: usize,
) -> [V; RANKS] {
    let mut out = [ranks[0][0]; RANKS];
    for (out, rank) in out.iter_mut().zip(ranks) {
        *out = rank[file];
    }
    out
}

/// The first square of each tile's inner 4×4.
const CORNERS: [usize; 4] = [0, 4, 32, 36];

struct Input<'a> {
    layout: Tiles,
    boards: &'a [f32],
    tiles: &'a mut [f32],
}

impl Call for Input<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Tiles { boards, channels } = self.layout;
        let step = self.layout.step();
        for board in 0..boards {
            let mut channel = 0;
            while channel < channels {
                // SAFETY: `check` has verified the lengths of boards and tiles, and channels are a
                // multiple of 16, so a vector fits.
                unsafe {
                    let from = self.boards.as_ptr().add(board * 64 * channels + channel);
                    let to = self.tiles.as_mut_ptr().add(board * 4 * channels + channel);
                    input_tile::<V, false, false>(from, channels, to, step);
                    input_tile::<V, false, true>(from, channels, to.add(channels), step);
                    input_tile::<V, true, false>(from, channels, to.add(2 * channels), step);
                    input_tile::<V, true, true>(from, channels, to.add(3 * channels), step);
                }
                channel += V::LANES;
            }
        }
    }
}

/// One tile: the upper or lower ranks, the right or left files.
///
/// # Safety
///
/// `from` is the first square of a board, `to` the row of the tile in the first matrix.
#[inline(always)]
unsafe fn input_tile<V: Vector, const UP: bool, const RIGHT: bool>(
    from: *const f32,
    channels: usize,
    to: *mut f32,
    step: usize,
) {
    // SAFETY: squares off the board are not read; the caller guarantees the others.
    unsafe {
        let zero = V::splat(0.0);
        let mut half = [[zero; 6]; 6];
        for (rank, half) in half.iter_mut().enumerate() {
            if if UP { rank == 5 } else { rank == 0 } {
                continue;
            }
            let rank = if UP { rank + 3 } else { rank - 1 };
            let mut row = [zero; 6];
            for (file, square) in row.iter_mut().enumerate() {
                if if RIGHT { file < 5 } else { file > 0 } {
                    let file = if RIGHT { file + 3 } else { file - 1 };
                    *square = V::load(from.add((rank * 8 + file) * channels));
                }
            }
            *half = input_line(row);
        }
        for file in 0..6 {
            let line = input_line(column(&half, file));
            for (rank, element) in line.iter().enumerate() {
                element.store(to.add((rank * 6 + file) * step));
            }
        }
    }
}

/// Bᵀ times a line of six.
///
/// # Safety
/// As every function of [`Vector`].
#[inline(always)]
unsafe fn input_line<V: Vector>(x: [V; 6]) -> [V; 6] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (two, four, five) = (V::splat(2.0), V::splat(-4.0), V::splat(-5.0));
        let even = x[2].mul_add(four, x[4]);
        let odd = x[1].mul_add(four, x[3]);
        let near = x[4].sub(x[2]);
        let far = x[3].sub(x[1]);
        let plus = V::splat(4.0);
        [
            x[0].mul_add(plus, x[2].mul_add(five, x[4])),
            even.add(odd),
            even.sub(odd),
            far.mul_add(two, near),
            far.mul_add(V::splat(-2.0), near),
            x[1].mul_add(plus, x[3].mul_add(five, x[5])),
        ]
    }
}

struct Output<'a> {
    layout: Tiles,
    tiles: &'a [f32],
    boards: &'a mut [f32],
    finish: Finish<'a>,
}

impl Call for Output<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.finish {
                Finish::Raw => self.boards::<V, 0>(&[]),
                Finish::Bias(bias) => self.boards::<V, 1>(bias),
                Finish::Relu(bias) => self.boards::<V, 2>(bias),
                Finish::AddRelu(bias) => self.boards::<V, 3>(bias),
            }
        }
    }
}

impl Output<'_> {
    /// # Safety
    /// As [`Call::run`]; a bias for each channel unless KIND is 0.
    #[inline(always)]
    unsafe fn boards<V: Vector, const KIND: usize>(self, bias: &[f32]) {
        let Tiles { boards, channels } = self.layout;
        let step = self.layout.step();
        for board in 0..boards {
            let mut channel = 0;
            while channel < channels {
                // SAFETY: `check` has verified the lengths of boards and tiles, and channels are a
                // multiple of 16, so a vector fits.
                unsafe {
                    let bias = match KIND {
                        0 => V::splat(0.0),
                        _ => V::load(bias.as_ptr().add(channel)),
                    };
                    for (tile, corner) in CORNERS.iter().enumerate() {
                        let from = (board * 4 + tile) * channels + channel;
                        let to = (board * 64 + corner) * channels + channel;
                        output_tile::<V, KIND>(
                            self.tiles.as_ptr().add(from),
                            step,
                            self.boards.as_mut_ptr().add(to),
                            channels,
                            bias,
                        );
                    }
                }
                channel += V::LANES;
            }
        }
    }
}

/// # Safety
/// `from` is the row of the tile in the first matrix, `to` the tile's first square.
#[inline(always)]
unsafe fn output_tile<V: Vector, const KIND: usize>(
    from: *const f32,
    step: usize,
    to: *mut f32,
    channels: usize,
    bias: V,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let zero = V::splat(0.0);
        let mut half = [[zero; 4]; 6];
        for (rank, half) in half.iter_mut().enumerate() {
            let mut row = [zero; 6];
            for (file, element) in row.iter_mut().enumerate() {
                *element = V::load(from.add((rank * 6 + file) * step));
            }
            *half = output_line(row);
        }
        for file in 0..4 {
            let line = output_line(column(&half, file));
            for (rank, square) in line.iter().enumerate() {
                let to = to.add((rank * 8 + file) * channels);
                let result = match KIND {
                    0 => *square,
                    1 => square.add(bias),
                    2 => square.add(bias).max(zero),
                    _ => square.add(bias).add(V::load(to)).max(zero),
                };
                result.store(to);
            }
        }
    }
}

/// Aᵀ times a line of six.
///
/// # Safety
/// As every function of [`Vector`].
#[inline(always)]
unsafe fn output_line<V: Vector>(m: [V; 6]) -> [V; 4] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (two, four, eight) = (V::splat(2.0), V::splat(4.0), V::splat(8.0));
        let (near, far) = (m[1].add(m[2]), m[3].add(m[4]));
        let (near_odd, far_odd) = (m[1].sub(m[2]), m[3].sub(m[4]));
        [
            m[0].add(near).add(far),
            far_odd.mul_add(two, near_odd),
            far.mul_add(four, near),
            far_odd.mul_add(eight, near_odd).add(m[5]),
        ]
    }
}

struct OutputBack<'a> {
    layout: Tiles,
    boards: &'a [f32],
    tiles: &'a mut [f32],
}

impl Call for OutputBack<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Tiles { boards, channels } = self.layout;
        let step = self.layout.step();
        for board in 0..boards {
            let mut channel = 0;
            while channel < channels {
                // SAFETY: `check` has verified the lengths of boards and tiles, and channels are a
                // multiple of 16, so a vector fits.
                unsafe {
                    for (tile, corner) in CORNERS.iter().enumerate() {
                        let from = (board * 64 + corner) * channels + channel;
                        let to = (board * 4 + tile) * channels + channel;
                        output_back_tile::<V>(
                            self.boards.as_ptr().add(from),
                            channels,
                            self.tiles.as_mut_ptr().add(to),
                            step,
                        );
                    }
                }
                channel += V::LANES;
            }
        }
    }
}

/// # Safety
/// `from` is the tile's first square, `to` the row of the tile in the first matrix.
#[inline(always)]
unsafe fn output_back_tile<V: Vector>(
    from: *const f32,
    channels: usize,
    to: *mut f32,
    step: usize,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let zero = V::splat(0.0);
        let mut half = [[zero; 6]; 4];
        for (rank, half) in half.iter_mut().enumerate() {
            let mut row = [zero; 4];
            for (file, square) in row.iter_mut().enumerate() {
                *square = V::load(from.add((rank * 8 + file) * channels));
            }
            *half = output_back_line(row);
        }
        for file in 0..6 {
            let line = output_back_line(column(&half, file));
            for (rank, element) in line.iter().enumerate() {
                element.store(to.add((rank * 6 + file) * step));
            }
        }
    }
}

/// A times a line of four.
///
/// # Safety
/// As every function of [`Vector`].
#[inline(always)]
unsafe fn output_back_line<V: Vector>(y: [V; 4]) -> [V; 6] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (two, four) = (V::splat(2.0), V::splat(4.0));
        let (even, odd) = (y[0].add(y[2]), y[1].add(y[3]));
        let wide_even = y[2].mul_add(four, y[0]);
        let wide_odd = y[3].mul_add(four, y[1]).mul(two);
        [y[0], even.add(odd), even.sub(odd), wide_even.add(wide_odd), wide_even.sub(wide_odd), y[3]]
    }
}

struct InputBack<'a> {
    layout: Tiles,
    tiles: &'a [f32],
    boards: &'a mut [f32],
}

impl Call for InputBack<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Tiles { boards, channels } = self.layout;
        let step = self.layout.step();
        for board in 0..boards {
            let mut channel = 0;
            while channel < channels {
                // SAFETY: `check` has verified the lengths of boards and tiles, and channels are a
                // multiple of 16, so a vector fits.
                unsafe {
                    let from = self.tiles.as_ptr().add(board * 4 * channels + channel);
                    let to = self.boards.as_mut_ptr().add(board * 64 * channels + channel);
                    let mut squares = [V::splat(0.0); 64];
                    add_tile::<V, false, false>(from, step, &mut squares);
                    add_tile::<V, false, true>(from.add(channels), step, &mut squares);
                    add_tile::<V, true, false>(from.add(2 * channels), step, &mut squares);
                    add_tile::<V, true, true>(from.add(3 * channels), step, &mut squares);
                    for (square, value) in squares.iter().enumerate() {
                        value.store(to.add(square * channels));
                    }
                }
                channel += V::LANES;
            }
        }
    }
}

/// # Safety
/// `from` is the row of the tile in the first matrix.
#[inline(always)]
unsafe fn add_tile<V: Vector, const UP: bool, const RIGHT: bool>(
    from: *const f32,
    step: usize,
    squares: &mut [V; 64],
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let zero = V::splat(0.0);
        let mut half = [[zero; 6]; 6];
        for (rank, half) in half.iter_mut().enumerate() {
            let mut row = [zero; 6];
            for (file, element) in row.iter_mut().enumerate() {
                *element = V::load(from.add((rank * 6 + file) * step));
            }
            *half = input_back_line(row);
        }
        for file in 0..6 {
            if if RIGHT { file == 5 } else { file == 0 } {
                continue;
            }
            let line = input_back_line(column(&half, file));
            let file = if RIGHT { file + 3 } else { file - 1 };
            for (rank, value) in line.iter().enumerate() {
                if if UP { rank == 5 } else { rank == 0 } {
                    continue;
                }
                let rank = if UP { rank + 3 } else { rank - 1 };
                squares[rank * 8 + file] = squares[rank * 8 + file].add(*value);
            }
        }
    }
}

/// B times a line of six.
///
/// # Safety
/// As every function of [`Vector`].
#[inline(always)]
unsafe fn input_back_line<V: Vector>(t: [V; 6]) -> [V; 6] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (two, four, five) = (V::splat(2.0), V::splat(4.0), V::splat(-5.0));
        let (near, far) = (t[1].add(t[2]), t[3].add(t[4]));
        let (near_odd, far_odd) = (t[1].sub(t[2]), t[3].sub(t[4]));
        let minus = V::splat(-4.0);
        [
            t[0].mul(four),
            near_odd.mul_add(minus, t[5].mul_add(four, far_odd.mul(V::splat(-2.0)))),
            t[0].mul_add(five, near.mul_add(minus, V::splat(0.0).sub(far))),
            far_odd.mul_add(two, t[5].mul_add(five, near_odd)),
            t[0].add(near).add(far),
            t[5],
        ]
    }
}
