//! Networks, their training steps and their weight files.
//!
//! [`sparse`] is the network made for CPUs: sparse inputs, one wide layer, integer play and a
//! hand-written trainer. [`residual`] is AlphaZero's tower of convolutions. A [`Model`] is either, as
//! its file says; [`onnx`] writes both for other programs. With the cargo feature `burn`, `burn` has
//! the residual network on Burn's devices. [`mlp`] and [`valuenet`] are small networks for policies
//! and values, made of [`small`] parts. This crate does not know games being played or run folders.

#[cfg(feature = "burn")]
pub mod burn;
pub mod device;
mod file;
pub mod mlp;
mod model;
pub mod onnx;
pub mod residual;
pub mod small;
pub mod sparse;
pub mod valuenet;

pub use device::{Device, DeviceError};
pub use model::Model;
