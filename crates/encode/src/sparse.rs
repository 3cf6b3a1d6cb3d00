//! Sparse inputs: lists of active features, for networks that add up weight rows.
//!
//! [`Threats`] is the richer set: it includes which pieces are attacked and defended, and rows for
//! moves. The plain set is `sparse768` v1, from the point of view of the side to move: feature
//! `(side × 6 + kind) × 64 + square`. Side 0 is the side to move, kind counts P N B R Q K, and the
//! board is flipped for Black. Each piece has one feature, so at most 32 are active.

mod attacks;
mod rows;
mod set;
mod threats;

pub use attacks::Attacks;
pub use rows::{MOVE_ROWS, MOVE_TABLE, MoveKey, MoveRows, THREAT_ROWS, THREAT_ROWS_VERSION};
pub use set::FeatureSet;
pub use threats::{Features, THREATS3084, THREATS3084_LEN, THREATS3084_VERSION, Threats};

use selfmate_chess::{Chess, Position};

use crate::seen_by;

/// The name stored with networks that use these features.
pub const SPARSE768: &str = "sparse768";
/// A change of any feature increases the version.
pub const SPARSE768_VERSION: u32 = 1;
/// The number of features.
pub const SPARSE768_LEN: usize = 768;

/// Replaces `features` with those of a position, ordered by unflipped square.
pub fn sparse768(position: &Chess, features: &mut Vec<u16>) {
    features.clear();
    let mover = position.turn();
    features.extend(position.board().into_iter().map(|(square, piece)| {
        let side = u16::from(piece.color != mover);
        let kind = piece.role as u16 - 1;
        (side * 6 + kind) * 64 + u16::from(seen_by(mover, square))
    }));
}
