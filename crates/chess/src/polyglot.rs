//! Polyglot's key of a position, the index of `.bin` opening books.

use shakmaty::zobrist::Zobrist64;
use shakmaty::{Chess, EnPassantMode, Position};

/// The key under which a Polyglot book files this position.
///
/// En passant counts only when a pawn stands beside the one that just advanced, whether or
/// not the capture would leave the king in check.
pub fn polyglot_key(position: &Chess) -> u64 {
    position.zobrist_hash::<Zobrist64>(EnPassantMode::PseudoLegal).into()
}
