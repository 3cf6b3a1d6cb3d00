//! The float vector interface of the loops, for each kind of processor.
//!
//! Every function is inlined into a caller that was compiled for the processor, see
//! [`super::Call`]. The functions may not be called from anywhere else.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// A vector of floats.
///
/// # Safety (of all functions)
///
/// The processor must support the vector, and pointers must be valid for `LANES` floats.
pub trait Vector: Copy {
    /// The number of floats; a divisor of [`super::LANES`].
    const LANES: usize;
    /// The number of vector registers.
    const REGISTERS: usize;
    unsafe fn splat(value: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// `self` × `factor` + `term`.
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self;
    /// The lane-wise maximum.
    unsafe fn max(self, other: Self) -> Self;
    /// `self` where `gate` is above 0, else 0.
    unsafe fn where_positive(self, gate: Self) -> Self;
}

/// Eight floats for any processor.
#[derive(Clone, Copy)]
pub struct Plain([f32; 8]);

impl Plain {
    #[inline(always)]
    fn zip(mut self, other: Plain, f: impl Fn(f32, f32) -> f32) -> Plain {
        for lane in 0..8 {
            self.0[lane] = f(self.0[lane], other.0[lane]);
        }
        self
    }
}

impl Vector for Plain {
    const LANES: usize = 8;
    const REGISTERS: usize = 8;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Plain {
        Plain([value; 8])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Plain {
        // SAFETY: the caller guarantees eight floats, and every bit pattern is a valid float.
        Plain(unsafe { from.cast::<[f32; 8]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller guarantees space for eight floats.
        unsafe { to.cast::<[f32; 8]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Plain) -> Plain {
        self.zip(other, |a, b| a + b)
    }

    #[inline(always)]
    unsafe fn sub(self, other: Plain) -> Plain {
        self.zip(other, |a, b| a - b)
    }

    #[inline(always)]
    unsafe fn mul(self, other: Plain) -> Plain {
        self.zip(other, |a, b| a * b)
    }

    #[inline(always)]
    unsafe fn mul_add(self, factor: Plain, term: Plain) -> Plain {
        // Not fused: without the instruction, `mul_add` would be a function call.
        self.zip(factor, |a, b| a * b).zip(term, |a, b| a + b)
    }

    #[inline(always)]
    unsafe fn max(self, other: Plain) -> Plain {
        self.zip(other, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    unsafe fn where_positive(self, gate: Plain) -> Plain {
        self.zip(gate, |a, b| if b > 0.0 { a } else { 0.0 })
    }
}

/// Eight floats in AVX2.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct Avx2(__m256);

// SAFETY of every block below: the caller guarantees AVX2 with fused multiply-add, and pointers to
// eight floats.
#[cfg(target_arch = "x86_64")]
#[expect(clippy::undocumented_unsafe_blocks, reason = "documented once above")]
impl Vector for Avx2 {
    const LANES: usize = 8;
    const REGISTERS: usize = 16;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Avx2 {
        Avx2(unsafe { _mm256_set1_ps(value) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Avx2 {
        Avx2(unsafe { _mm256_loadu_ps(from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm256_storeu_ps(to, self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Avx2) -> Avx2 {
        Avx2(unsafe { _mm256_add_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn sub(self, other: Avx2) -> Avx2 {
        Avx2(unsafe { _mm256_sub_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn mul(self, other: Avx2) -> Avx2 {
        Avx2(unsafe { _mm256_mul_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn mul_add(self, factor: Avx2, term: Avx2) -> Avx2 {
        Avx2(unsafe { _mm256_fmadd_ps(self.0, factor.0, term.0) })
    }

    #[inline(always)]
    unsafe fn max(self, other: Avx2) -> Avx2 {
        Avx2(unsafe { _mm256_max_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn where_positive(self, gate: Avx2) -> Avx2 {
        unsafe {
            let open = _mm256_cmp_ps::<_CMP_GT_OQ>(gate.0, _mm256_setzero_ps());
            Avx2(_mm256_and_ps(self.0, open))
        }
    }
}

/// Sixteen floats in AVX-512.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct Avx512(__m512);

// SAFETY of every block below: the caller guarantees AVX-512, and pointers to sixteen floats.
#[cfg(target_arch = "x86_64")]
#[expect(clippy::undocumented_unsafe_blocks, reason = "documented once above")]
impl Vector for Avx512 {
    const LANES: usize = 16;
    const REGISTERS: usize = 32;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Avx512 {
        Avx512(unsafe { _mm512_set1_ps(value) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Avx512 {
        Avx512(unsafe { _mm512_loadu_ps(from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm512_storeu_ps(to, self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Avx512) -> Avx512 {
        Avx512(unsafe { _mm512_add_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn sub(self, other: Avx512) -> Avx512 {
        Avx512(unsafe { _mm512_sub_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn mul(self, other: Avx512) -> Avx512 {
        Avx512(unsafe { _mm512_mul_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn mul_add(self, factor: Avx512, term: Avx512) -> Avx512 {
        Avx512(unsafe { _mm512_fmadd_ps(self.0, factor.0, term.0) })
    }

    #[inline(always)]
    unsafe fn max(self, other: Avx512) -> Avx512 {
        Avx512(unsafe { _mm512_max_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn where_positive(self, gate: Avx512) -> Avx512 {
        unsafe {
            let open = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(gate.0, _mm512_setzero_ps());
            Avx512(_mm512_maskz_mov_ps(open, self.0))
        }
    }
}
