//! Sparse inputs: the few features that are on, for networks that add up weight rows.
//!
//! [`Threats`] are the richer set, with the attacks on every square and rows for moves. The plain
//! one is `sparse768` v1, from the side to move: feature `(side × 6 + kind) × 64 + square`, where side 0
//! is the mover's, kind counts P N B R Q K, and the board is turned for Black. One feature for
//! each piece, so at most 32 are on.

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

/// The name stored with networks that take these features.
pub const SPARSE768: &str = "sparse768";
/// The version; a change of any feature raises it.
pub const SPARSE768_VERSION: u32 = 1;
/// How many features there are.
pub const SPARSE768_LEN: usize = 768;

/// Replaces `features` by those of a position, in order of square as stored on the board.
pub fn sparse768(position: &Chess, features: &mut Vec<u16>) {
    features.clear();
    let mover = position.turn();
    features.extend(position.board().into_iter().map(|(square, piece)| {
        let side = u16::from(piece.color != mover);
        let kind = piece.role as u16 - 1;
        (side * 6 + kind) * 64 + u16::from(seen_by(mover, square))
    }));
}
