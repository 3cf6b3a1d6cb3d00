//! Positions as network inputs and moves as indices.
//!
//! [`Planes`] are dense inputs for convolutional networks, [`sparse`] features are inputs for the
//! CPU network, and [`MoveSpace`] numbers moves. Every encoding has a name and a version. Networks
//! store both and reject inputs of another encoding. This crate contains no networks and no tensors.

mod canonical;
mod moves;
mod planes;
pub mod sparse;

pub use canonical::Canonical;
pub use moves::MoveSpace;
pub use planes::{PlaneRange, Planes};

use selfmate_chess::{Color, Square};

/// The name does not belong to any encoding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown encoding '{name}': expected one of {}", known.join(", "))]
pub struct UnknownEncoding {
    pub name: String,
    pub known: Vec<&'static str>,
}

/// A square from a side's point of view: the board is flipped vertically for Black.
pub(crate) fn seen_by(color: Color, square: Square) -> Square {
    if color == Color::White { square } else { square.flip_vertical() }
}

// The guide to the environment is tested here and not in `selfmate-chess`, because it uses an
// action space of this crate.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/environment.md")]
struct EnvironmentGuide;
