//! The inner loops, in AVX-512 or AVX2 if available, and in plain Rust.
//!
//! All unsafe code of the sparse network is here and in the files below. Integer kernels give the
//! same bits on all processors. Float kernels (training only) may differ in the last bits, because
//! vector code uses fused multiply-add and another order of additions. The interface uses slices,
//! and every public function checks its lengths.

mod portable;
mod simd;
mod vector;

use selfmate_search::memory::{LARGE_PAGE, ask_for_large_pages};

use super::network::{ACTIVATION_ONE, INPUT_ONE};

/// Which inner loops to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Plain Rust.
    Portable,
    /// 256-bit vectors; available when [`Kernel::all`] returns it.
    Avx2(Detected),
    /// 512-bit vectors; available when [`Kernel::all`] returns it.
    Avx512(Detected),
}

/// Proof that the processor supports a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detected(());

/// A row number: 16 bits for features and moves, 32 bits for positions of a batch.
pub(super) trait RowNumber: Copy {
    fn index(self) -> usize;
}

impl RowNumber for u16 {
    fn index(self) -> usize {
        usize::from(self)
    }
}

impl RowNumber for u32 {
    fn index(self) -> usize {
        self as usize
    }
}

macro_rules! dispatch {
    ($kernel:expr, $name:ident($($argument:expr),*)) => {
        match $kernel {
            Kernel::Portable => portable::$name($($argument),*),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Detected` exists only when the processor has the instructions, and the
            // lengths have been checked above.
            Kernel::Avx2(_) => unsafe { simd::narrow::$name($($argument),*) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Kernel::Avx512(_) => unsafe { simd::wide::$name($($argument),*) },
            #[cfg(not(target_arch = "x86_64"))]
            _ => portable::$name($($argument),*),
        }
    };
}

impl Kernel {
    /// The fastest kernel for this processor.
    pub fn detect() -> Kernel {
        Kernel::all().pop().unwrap_or(Kernel::Portable)
    }

    /// The kernels for this processor, fastest last.
    pub fn all() -> Vec<Kernel> {
        let mut all = vec![Kernel::Portable];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            all.push(Kernel::Avx2(Detected(())));
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vnni")
            {
                all.push(Kernel::Avx512(Detected(())));
            }
        }
        all
    }

    /// The wide layer in integers: sums bias and rows, then clips and squares into `out`.
    pub(super) fn hidden(self, rows: &[i16], bias: &[i16], features: &[u16], out: &mut [i16]) {
        check_rows(rows.len(), out.len(), features);
        assert_eq!(bias.len(), out.len());
        dispatch!(self, hidden(rows, bias, features, out));
    }

    /// The same from earlier sums: adds and subtracts rows, then clips and squares the new sums
    /// into `out`.
    pub(super) fn update(
        self,
        rows: &[i16],
        added: &[u16],
        removed: &[u16],
        sums: &mut [i16],
        out: &mut [i16],
    ) {
        check_rows(rows.len(), out.len(), added);
        check_rows(rows.len(), out.len(), removed);
        assert_eq!(sums.len(), out.len());
        dispatch!(self, update(rows, added, removed, sums, out));
    }

    /// Sets `out[i]` to the dot product of `hidden` and row `numbers[i]`.
    pub(super) fn products(self, rows: &[i16], hidden: &[i16], numbers: &[u16], out: &mut [i32]) {
        check_rows(rows.len(), hidden.len(), numbers);
        assert_eq!(numbers.len(), out.len());
        dispatch!(self, products(rows, hidden, numbers, out));
    }

    /// Prefetches a row.
    #[inline(always)]
    pub(super) fn prefetch(self, rows: &[i16], width: usize, number: u16) {
        #[cfg(target_arch = "x86_64")]
        if let Some(row) = rows.get(number.index() * width..(number.index() + 1) * width) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            for line in row.chunks(32) {
                // SAFETY: a prefetch only affects caches, and the address is valid.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
            }
        }
    }

    /// Adds the sum of rows to `out`.
    pub(super) fn add_rows<N: RowNumber>(self, rows: &[f32], numbers: &[N], out: &mut [f32]) {
        check_rows(rows.len(), out.len(), numbers);
        dispatch!(self, add_rows(rows, numbers, out));
    }

    /// Adds the sum of rows, each times its scale, to `out`.
    pub(super) fn add_scaled_rows<N: RowNumber>(
        self,
        rows: &[f32],
        numbers: &[N],
        scales: &[f32],
        out: &mut [f32],
    ) {
        check_rows(rows.len(), out.len(), numbers);
        assert_eq!(numbers.len(), scales.len());
        dispatch!(self, add_scaled_rows(rows, numbers, scales, out));
    }

    /// Sets `out[i]` to the dot product of `vector` and row `numbers[i]`.
    pub(super) fn dots<N: RowNumber>(
        self,
        rows: &[f32],
        vector: &[f32],
        numbers: &[N],
        out: &mut [f32],
    ) {
        check_rows(rows.len(), vector.len(), numbers);
        assert_eq!(numbers.len(), out.len());
        dispatch!(self, dots(rows, vector, numbers, out));
    }

    /// The activation in floats: clipped to [0, 1] and squared.
    pub(super) fn square(self, sums: &[f32], hidden: &mut [f32]) {
        assert_eq!(sums.len(), hidden.len());
        dispatch!(self, square(sums, hidden));
    }

    /// Replaces sums by derivatives: the slope of the activation (2x inside, 0 outside) times the
    /// derivative by its result.
    pub(super) fn square_back(self, back: &[f32], sums: &mut [f32]) {
        assert_eq!(sums.len(), back.len());
        dispatch!(self, square_back(back, sums));
    }
}

/// Vectors are processed 64 lanes at a time, and every row must exist.
fn check_rows<N: RowNumber>(len: usize, width: usize, numbers: &[N]) {
    assert!(width > 0 && width.is_multiple_of(64), "a width of {width} is not a multiple of 64");
    let rows = len / width;
    assert!(numbers.iter().all(|number| number.index() < rows), "a row beyond the last of {rows}");
}

/// The activation: clipped to [0, 1] and squared, from the scale of sums to that of activations.
#[inline(always)]
fn activate(sum: i16) -> i16 {
    const { assert!(INPUT_ONE == 1024 && ACTIVATION_ONE == 1024) };
    let clipped = i32::from(sum.clamp(0, INPUT_ONE));
    // Rounds like the vector instruction: (a × 8) × (a × 4) / 2^15, to the nearest.
    (((clipped << 3) * (clipped << 2) + (1 << 14)) >> 15) as i16
}

/// 16-bit weights aligned to cache lines.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    lines: Vec<Line>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([i16; 32]);

impl Lines {
    pub fn new(values: impl ExactSizeIterator<Item = i16>) -> Lines {
        let len = values.len();
        let mut lines = vec![Line([0; 32]); len.div_ceil(32)];
        for (index, value) in values.enumerate() {
            lines[index / 32].0[index % 32] = value;
        }
        Lines { lines, len }
    }

    #[inline(always)]
    pub fn as_slice(&self) -> &[i16] {
        // SAFETY: lines are arrays of i16 without padding, and `len` numbers are in use.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }

    #[inline(always)]
    pub fn as_mut_slice(&mut self) -> &mut [i16] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

/// 16-bit weights on large pages, for matrices whose rows are read in random order.
#[derive(Debug)]
pub(super) struct Pages {
    pages: Vec<Page>,
    len: usize,
}

const PAGE_LEN: usize = LARGE_PAGE / size_of::<i16>();

#[derive(Debug)]
#[repr(C, align(2097152))]
struct Page([i16; PAGE_LEN]);

const _: () = assert!(size_of::<Page>() == LARGE_PAGE && align_of::<Page>() == LARGE_PAGE);

impl Pages {
    pub fn new(values: impl ExactSizeIterator<Item = i16>) -> Pages {
        let len = values.len();
        let count = len.div_ceil(PAGE_LEN);
        let mut pages = Vec::with_capacity(count);
        let spare = &mut pages.spare_capacity_mut()[..count];
        ask_for_large_pages(spare);
        let start: *mut i16 = spare.as_mut_ptr().cast();
        // SAFETY: there is space for all pages, zero is a valid value of them, and values are
        // written within them.
        unsafe {
            start.write_bytes(0, count * PAGE_LEN);
            values.take(len).enumerate().for_each(|(index, value)| start.add(index).write(value));
            pages.set_len(count);
        }
        Pages { pages, len }
    }

    #[inline(always)]
    pub fn as_slice(&self) -> &[i16] {
        // SAFETY: pages are arrays of i16 without padding, and `len` numbers are in use.
        unsafe { std::slice::from_raw_parts(self.pages.as_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests;
