//! Positions as numbers and moves as indices.
//!
//! [`Planes`] are dense inputs for convolutions, [`sparse`] features feed the CPU-made network,
//! [`MoveSpace`] numbers moves. Every encoding has a name and a version: a network stores both
//! and refuses inputs of another. This crate does not know networks or tensors.

mod canonical;
mod moves;
mod planes;
pub mod sparse;

pub use canonical::Canonical;
pub use moves::MoveSpace;
pub use planes::{PlaneRange, Planes};

use selfmate_chess::{Color, Square};

/// A name that no encoding has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown encoding '{name}': expected one of {}", known.join(", "))]
pub struct UnknownEncoding {
    /// The name given.
    pub name: String,
    /// The names there are.
    pub known: Vec<&'static str>,
}

/// A square as the given side sees it: Black's board is turned upside down, files stay.
pub(crate) fn seen_by(color: Color, square: Square) -> Square {
    if color == Color::White { square } else { square.flip_vertical() }
}

// The example in the guide to the environment compiles and runs with the tests. It stands here
// because it needs an action space.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/environment.md")]
struct EnvironmentGuide;
