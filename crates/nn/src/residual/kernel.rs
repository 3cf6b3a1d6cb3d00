//! The inner loops, for AVX-512, AVX2 and any processor.
//!
//! All unsafe code of the residual network is here and in the files below. Every loop is written
//! once over [`vector::Vector`] and compiled for each kind of processor. Results may differ in the
//! last bits between kinds, because vector code uses fused multiply-add; on one kind they depend
//! only on the input. The interface uses slices, and every function checks lengths.

mod element;
mod floats;
mod integer;
mod product;
mod stem;
mod vector;
mod winograd;

pub(super) use element::{Activate, NormBack};
pub(crate) use floats::Floats;
pub(super) use integer::{ByteFilters, ByteFinish, IntegerKernel, SIDE, bytes_of};
pub(super) use product::PANEL;
pub(crate) use product::{Left, Right, Shape};
pub(super) use stem::Stem;
pub(super) use winograd::Finish;
pub(crate) use winograd::Tiles;

use vector::{Plain, Vector};

/// Channels are padded to a multiple of this.
pub(crate) const LANES: usize = 16;

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

/// A call of an inner loop, with checked lengths.
trait Call {
    /// Runs the loop with one kind of vector.
    ///
    /// # Safety
    ///
    /// The processor must support `V`, and the lengths must have been checked.
    unsafe fn run<V: Vector>(self);
}

impl Kernel {
    /// The fastest kernel for this processor.
    pub fn detect() -> Kernel {
        *Kernel::all().last().expect("the portable kernel is always available")
    }

    /// All kernels for this processor, slowest first.
    pub fn all() -> Vec<Kernel> {
        let mut all = vec![Kernel::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                all.push(Kernel::Avx2(Detected(())));
            }
            if is_x86_feature_detected!("avx512f") {
                all.push(Kernel::Avx512(Detected(())));
            }
        }
        all
    }

    pub fn name(self) -> &'static str {
        match self {
            Kernel::Portable => "portable",
            Kernel::Avx2(_) => "avx2",
            Kernel::Avx512(_) => "avx512",
        }
    }

    #[inline]
    fn run(self, call: impl Call) {
        match self {
            // SAFETY: plain vectors need no processor features, and the creator of the call checked
            // lengths.
            Kernel::Portable => unsafe { call.run::<Plain>() },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Detected` exists only when the processor has AVX2 and fused multiply-add.
            Kernel::Avx2(_) => unsafe { avx2(call) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Detected` exists only when the processor has AVX-512.
            Kernel::Avx512(_) => unsafe { avx512(call) },
            #[cfg(not(target_arch = "x86_64"))]
            // SAFETY: as for the first.
            _ => unsafe { call.run::<Plain>() },
        }
    }
}

/// # Safety
/// As [`Call::run`] with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<C: Call>(call: C) {
    // SAFETY: guaranteed by the caller.
    unsafe { call.run::<vector::Avx2>() }
}

/// # Safety
/// As [`Call::run`] with AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn avx512<C: Call>(call: C) {
    // SAFETY: guaranteed by the caller.
    unsafe { call.run::<vector::Avx512>() }
}

#[cfg(test)]
mod tests;
