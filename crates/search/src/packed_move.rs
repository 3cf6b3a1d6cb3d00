//! A move in 16 bits, for trees and tables.

use selfmate_chess::{Board, Move, Role, Square};

/// From-square, to-square and kind of a move. Unpacking needs the board it is played on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct PackedMove(pub u16);

const EN_PASSANT: u16 = 1;
const CASTLE: u16 = 2;
/// Promotions are encoded as this plus the role (knight 2 to queen 5).
const PROMOTION: u16 = 4;

impl PackedMove {
    pub fn new(m: Move) -> PackedMove {
        let (from, to, kind) = match m {
            Move::Normal { from, to, promotion, .. } => {
                (from, to, promotion.map_or(0, |role| PROMOTION + role as u16))
            }
            Move::EnPassant { from, to } => (from, to, EN_PASSANT),
            Move::Castle { king, rook } => (king, rook, CASTLE),
            Move::Put { .. } => unreachable!("standard chess has no drops"),
        };
        PackedMove(u16::from(from) | u16::from(to) << 6 | kind << 12)
    }

    /// The move on the board it was packed for.
    ///
    /// # Panics
    ///
    /// Panics when the from-square is empty.
    pub fn unpack(self, board: &Board) -> Move {
        let from = Square::new(u32::from(self.0 & 63));
        let to = Square::new(u32::from(self.0 >> 6 & 63));
        match self.0 >> 12 {
            EN_PASSANT => Move::EnPassant { from, to },
            CASTLE => Move::Castle { king: from, rook: to },
            kind => Move::Normal {
                role: board.role_at(from).expect("a packed move starts at an occupied square"),
                from,
                capture: board.role_at(to),
                to,
                promotion: match kind.checked_sub(PROMOTION) {
                    Some(2) => Some(Role::Knight),
                    Some(3) => Some(Role::Bishop),
                    Some(4) => Some(Role::Rook),
                    Some(5) => Some(Role::Queen),
                    _ => None,
                },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{Game, Position, Seed};

    use super::*;

    #[test]
    fn packing_keeps_every_legal_move() {
        let starts = [
            "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
            "8/PPPk4/8/8/8/8/4Kppp/8 w - - 0 1",
        ];
        for (index, fen) in starts.into_iter().cycle().take(40).enumerate() {
            let mut rng = Seed::new(index as u64).rng();
            let mut game: Game = selfmate_chess::fen::parse_game(fen).unwrap();
            while game.outcome().is_none() && game.ply() < 150 {
                let legal = game.legal_moves();
                for &m in &legal {
                    assert_eq!(PackedMove::new(m).unpack(game.position().board()), m);
                }
                game.play_unchecked(*rng.choose(&legal).unwrap());
            }
        }
    }
}
