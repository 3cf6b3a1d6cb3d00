//! Our hand-written code against Burn: forward passes, and gradients by automatic differentiation.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[cfg(feature = "wgpu")]
mod graphics;
mod residual;
mod sparse;
