//! A float vector aligned to cache lines.

use std::ops::{Deref, DerefMut};

#[derive(Clone, Debug, Default)]
pub struct Floats {
    lines: Vec<Line>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([f32; 16]);

impl Floats {
    pub fn zeros(len: usize) -> Floats {
        Floats { lines: vec![Line([0.0; 16]); len.div_ceil(16)], len }
    }

    /// Grows to at least this length.
    pub fn grow(&mut self, len: usize) {
        if self.len < len {
            *self = Floats::zeros(len);
        }
    }
}

impl Deref for Floats {
    type Target = [f32];

    #[inline(always)]
    fn deref(&self) -> &[f32] {
        // SAFETY: lines are arrays of floats without padding, and `len` floats are in use.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl DerefMut for Floats {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}
