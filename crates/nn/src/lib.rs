//! Networks, their training steps and their weight files.
//!
//! [`sparse`] is the network made for CPUs: sparse inputs, one wide layer, integer play and a
//! hand-written trainer. This crate does not know games being played or run folders.

pub mod sparse;
