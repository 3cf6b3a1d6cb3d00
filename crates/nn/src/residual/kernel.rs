//! The inner loops, for AVX-512, AVX2 and any processor.
//!
//! Unsafe code of the residual network stands only here and in the files below. Every loop is
//! written once over [`vector::Vector`] and compiled for each kind of processor. Numbers may
//! differ in the last bits between kinds, because vectors come with fused multiply-add; on one
//! kind they depend on nothing but the input. Callers see slices; every function checks lengths.

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

/// Channels are padded to a multiple of this many.
pub(crate) const LANES: usize = 16;

/// Which inner loops to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Plain Rust.
    RemotePlayerSpec,
    /// 256-bit vectors; only where [`Kernel::all`] finds them.
    Avx2(Detected),
    /// 512-bit vectors; only where [`Kernel::all`] finds them.
    Avx512(Detected),
}

/// Proof that the processor has what a kernel needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detected(());

/// One call of an inner loop, its lengths checked.
trait Call {
    /// Runs it with one kind of vector.
    ///
    /// # Safety
    /// The processor must have what `V` needs, and the lengths must have been checked.
    unsafe fn run<V: Vector>(self);
}

impl Kernel {
    /// The fastest kernels this processor has.
    pub fn detect() -> Kernel {
        *Kernel::all().last().expect("the portable one is always there")
    }

    /// All kernels this processor has, the slowest first.
    pub fn all() -> Vec<Kernel> {
        let mut all = vec![Kernel::RemotePlayerSpec];
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

    /// A name for reports.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::RemotePlayerSpec => "portable",
            Kernel::Avx2(_) => "avx2",
            Kernel::Avx512(_) => "avx512",
        }
    }

    #[inline]
    fn run(self, call: impl Call) {
        match self {
            // SAFETY: plain vectors need nothing, and whoever made the call checked its lengths.
            Kernel::RemotePlayerSpec => unsafe { call.run::<Plain>() },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Detected` exists only where the processor has AVX2 and fused multiply-add.
            Kernel::Avx2(_) => unsafe { avx2(call) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Detected` exists only where the processor has AVX-512.
            Kernel::Avx512(_) => unsafe { avx512(call) },
            #[cfg(not(target_arch = "x86_64"))]
            // SAFETY: as the first.
            _ => unsafe { call.run::<Plain>() },
        }
    }
}

/// # Safety
/// As [`Call::run`] with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<C: Call>(call: C) {
    // SAFETY: the caller promises it.
    unsafe { call.run::<vector::Avx2>() }
}

/// # Safety
/// As [`Call::run`] with AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn avx512<C: Call>(call: C) {
    // SAFETY: the caller promises it.
    unsafe { call.run::<vector::Avx512>() }
}

#[cfg(test)]
mod tests;
