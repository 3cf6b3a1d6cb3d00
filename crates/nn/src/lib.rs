//! Networks, their training steps and their weight files.
//!
//! [`sparse`] is the network made for CPUs: sparse inputs, one wide layer, integer play and a
//! hand-written trainer. [`residual`] is AlphaZero's tower of convolutions. A [`Model`] is either, as
//! its file says; [`onnx`] writes both for other programs. This crate does not know games being
//! played or run folders.

mod file;
mod model;
pub mod onnx;
pub mod residual;
pub mod sparse;

pub use model::Model;
