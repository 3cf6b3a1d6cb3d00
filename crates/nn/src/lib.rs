//! Networks, their training steps and their weight files.
//!
//! [`sparse`] is the network made for CPUs: sparse inputs, one wide layer, integer play and a
//! hand-written trainer. [`residual`] is AlphaZero's network, with its own convolutions. [`file`]
//! is what their weight files have in common. This crate does not know games being played or run
//! folders.

pub mod file;
pub mod residual;
pub mod sparse;
