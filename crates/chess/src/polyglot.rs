//! Polyglot keys, the index of `.bin` opening books.

use shakmaty::zobrist::Zobrist64;
use shakmaty::{Chess, EnPassantMode, Position};

/// The key of this position in a Polyglot book.
///
/// An en passant file counts if an enemy pawn stands beside the pawn that just advanced, even if
/// the capture would leave the king in check.
pub fn polyglot_key(position: &Chess) -> u64 {
    position.zobrist_hash::<Zobrist64>(EnPassantMode::PseudoLegal).into()
}
