//! Neural networks, their training and their weight files.
//!
//! [`sparse`] is a network for CPUs: sparse inputs, one wide layer, integer inference and a
//! hand-written trainer. [`residual`] is AlphaZero's convolutional network. [`Model`] is either of
//! them, as read from a file; [`onnx`] exports both. With the cargo feature `burn`, the module
//! `burn` runs the residual network on Burn's devices. [`mlp`], [`conv`] and [`valuenet`] are small
//! policy and value networks built from [`small`]. This crate does not play games and does not use run
//! folders.

mod adam;
#[cfg(feature = "burn")]
pub mod burn;
pub mod conv;
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
pub use file::architecture;
pub use model::Model;
