//! Vectors of two widths, and the instructions that the kernels use.
//!
//! The functions are inlined into the entry points of [`super::simd`], which define the required
//! processor features.
#![cfg(target_arch = "x86_64")]

use std::arch::x86_64::*;
use std::array::from_fn;

/// A width of vectors.
///
/// # Safety
///
/// Every function requires a processor with the instructions of the implementer; pointers must be
/// valid for a whole vector.
pub(super) trait Vector {
    /// 16-bit integers, or half as many 32-bit ones.
    type Integers: Copy;
    /// 32-bit floats.
    type Floats: Copy;
    /// The number of 16-bit integers.
    const SHORTS: usize;
    /// The number of floats.
    const FLOATS: usize = Self::SHORTS / 2;

    unsafe fn zero() -> Self::Integers;
    unsafe fn load(from: *const i16) -> Self::Integers;
    unsafe fn store(to: *mut i16, shorts: Self::Integers);
    unsafe fn add(a: Self::Integers, b: Self::Integers) -> Self::Integers;
    unsafe fn sub(a: Self::Integers, b: Self::Integers) -> Self::Integers;
    /// Like [`super::activate`], in every lane.
    unsafe fn activate(sums: Self::Integers) -> Self::Integers;
    /// Products of adjacent 16-bit lanes, added in pairs to 32-bit sums.
    unsafe fn multiply_add(
        sums: Self::Integers,
        a: Self::Integers,
        b: Self::Integers,
    ) -> Self::Integers;
    /// The total of the 32-bit lanes of each vector.
    unsafe fn totals(sums: [Self::Integers; 4]) -> __m128i;

    unsafe fn zero_floats() -> Self::Floats;
    unsafe fn load_floats(from: *const f32) -> Self::Floats;
    unsafe fn store_floats(to: *mut f32, floats: Self::Floats);
    unsafe fn splat(value: f32) -> Self::Floats;
    unsafe fn add_floats(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    /// `a` × `b` + `sums`, rounded once.
    unsafe fn fused(a: Self::Floats, b: Self::Floats, sums: Self::Floats) -> Self::Floats;
    /// The total of the lanes of each vector.
    unsafe fn float_totals(sums: [Self::Floats; 4]) -> __m128;
}

/// 256 bits: AVX2 with fused multiply-add.
pub(super) struct Narrow;

/// 512 bits: AVX-512 F, BW and VNNI.
pub(super) struct Wide;

impl Vector for Narrow {
    type Integers = __m256i;
    type Floats = __m256;
    const SHORTS: usize = 16;

    #[inline(always)]
    unsafe fn zero() -> __m256i {
        // SAFETY: by the contract of the trait; also for all blocks below.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn load(from: *const i16) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut i16, shorts: __m256i) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_si256(to.cast(), shorts) }
    }

    #[inline(always)]
    unsafe fn add(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_add_epi16(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_sub_epi16(a, b) }
    }

    #[inline(always)]
    unsafe fn activate(sums: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe {
            let one = _mm256_set1_epi16(super::INPUT_ONE);
            let clipped = _mm256_min_epi16(_mm256_max_epi16(sums, _mm256_setzero_si256()), one);
            _mm256_mulhrs_epi16(_mm256_slli_epi16::<3>(clipped), _mm256_slli_epi16::<2>(clipped))
        }
    }

    #[inline(always)]
    unsafe fn multiply_add(sums: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_add_epi32(sums, _mm256_madd_epi16(a, b)) }
    }

    #[inline(always)]
    unsafe fn totals([a, b, c, d]: [__m256i; 4]) -> __m128i {
        // SAFETY: see above.
        unsafe {
            let pairs = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
            _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256::<1>(pairs))
        }
    }

    #[inline(always)]
    unsafe fn zero_floats() -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn load_floats(from: *const f32) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store_floats(to: *mut f32, floats: __m256) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_ps(to, floats) }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn add_floats(a: __m256, b: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn fused(a: __m256, b: __m256, sums: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_fmadd_ps(a, b, sums) }
    }

    #[inline(always)]
    unsafe fn float_totals([a, b, c, d]: [__m256; 4]) -> __m128 {
        // SAFETY: see above.
        unsafe {
            let pairs = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
            _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps::<1>(pairs))
        }
    }
}

impl Vector for Wide {
    type Integers = __m512i;
    type Floats = __m512;
    const SHORTS: usize = 32;

    #[inline(always)]
    unsafe fn zero() -> __m512i {
        // SAFETY: by the contract of the trait; also for all blocks below.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn load(from: *const i16) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut i16, shorts: __m512i) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_si512(to.cast(), shorts) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_add_epi16(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_sub_epi16(a, b) }
    }

    #[inline(always)]
    unsafe fn activate(sums: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe {
            let one = _mm512_set1_epi16(super::INPUT_ONE);
            let clipped = _mm512_min_epi16(_mm512_max_epi16(sums, _mm512_setzero_si512()), one);
            _mm512_mulhrs_epi16(_mm512_slli_epi16::<3>(clipped), _mm512_slli_epi16::<2>(clipped))
        }
    }

    #[inline(always)]
    unsafe fn multiply_add(sums: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_dpwssd_epi32(sums, a, b) }
    }

    #[inline(always)]
    unsafe fn totals(sums: [__m512i; 4]) -> __m128i {
        // SAFETY: see above.
        unsafe {
            Narrow::totals(from_fn(|k| {
                let low = _mm512_castsi512_si256(sums[k]);
                _mm256_add_epi32(low, _mm512_extracti64x4_epi64::<1>(sums[k]))
            }))
        }
    }

    #[inline(always)]
    unsafe fn zero_floats() -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_setzero_ps() }
    }

    #[inline(always)]
    unsafe fn load_floats(from: *const f32) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store_floats(to: *mut f32, floats: __m512) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_ps(to, floats) }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn add_floats(a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn fused(a: __m512, b: __m512, sums: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_fmadd_ps(a, b, sums) }
    }

    #[inline(always)]
    unsafe fn float_totals(sums: [__m512; 4]) -> __m128 {
        // SAFETY: see above.
        unsafe {
            Narrow::float_totals(from_fn(|k| {
                let high = _mm512_castps_pd(sums[k]);
                let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(high));
                _mm256_add_ps(_mm512_castps512_ps256(sums[k]), high)
            }))
        }
    }
}
