//! Static exchange evaluation: the material result of all captures on one square.

use selfmate_chess::{Bitboard, Board, Color, Move, Position, Role, Square};
use shakmaty::attacks;

use super::node::Node;

/// Piece values for exchanges; `Role` starts at 1. They are fixed, so that tuning the evaluation
/// does not change which captures are searched.
pub(super) const VALUE: [i32; 7] = [0, 100, 320, 330, 500, 900, 0];

/// True when the exchange started by `m` gains at least `threshold`.
pub(super) fn gains(node: &Node, m: Move, threshold: i32) -> bool {
    let Move::Normal { role, from, capture, to, promotion } = m else {
        // Castling captures nothing and lands on a safe square; en passant trades pawns at worst.
        return threshold <= 0;
    };
    let value = |role: Option<Role>| role.map_or(0, |role| VALUE[role as usize]);
    let promoted = if promotion.is_some() { value(promotion) - VALUE[1] } else { 0 };
    let mut balance = value(capture) + promoted - threshold;
    if balance < 0 {
        return false;
    }
    balance -= VALUE[promotion.unwrap_or(role) as usize];
    if balance >= 0 {
        return true;
    }

    let board = node.position.board();
    let diagonal = board.bishops_and_queens();
    let straight = board.rooks_and_queens();
    let mut occupied = board.occupied() ^ Bitboard::from(from) | Bitboard::from(to);
    let mut attackers = all_attackers(board, to, occupied);
    let mut side = !node.turn();
    loop {
        attackers &= occupied;
        let ours = attackers & board.by_color(side);
        let Some((attacker, role)) = least_valuable(board, ours) else { break };
        if role == Role::King && (attackers & board.by_color(!side)).any() {
            // The king may not capture a defended piece.
            break;
        }
        occupied ^= Bitboard::from(attacker);
        side = !side;
        // The balance for the side that just captured, if its piece is captured in turn.
        balance = -balance - 1 - VALUE[role as usize];
        if balance >= 0 {
            break;
        }
        if matches!(role, Role::Pawn | Role::Bishop | Role::Queen) {
            attackers |= attacks::bishop_attacks(to, occupied) & diagonal;
        }
        if matches!(role, Role::Rook | Role::Queen) {
            attackers |= attacks::rook_attacks(to, occupied) & straight;
        }
    }
    // The side that has no further capture loses the exchange.
    side != node.turn()
}

fn all_attackers(board: &Board, to: Square, occupied: Bitboard) -> Bitboard {
    board.attacks_to(to, Color::White, occupied) | board.attacks_to(to, Color::Black, occupied)
}

fn least_valuable(board: &Board, ours: Bitboard) -> Option<(Square, Role)> {
    if ours.is_empty() {
        return None;
    }
    Role::ALL.into_iter().find_map(|role| Some(((ours & board.by_role(role)).first()?, role)))
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{fen, notation};

    use super::super::node::SquareTables;
    use super::super::weights::Weights;
    use super::*;

    #[test]
    fn exchanges_have_known_values() {
        let table = [
            ("4k3/8/8/3p4/8/8/8/3RK3 w - - 0 1", "d1d5", 100),
            ("4k3/4p3/3p4/8/8/8/8/3RK3 w - - 0 1", "d1d6", 100 - 500),
            ("4k3/8/2p5/3p4/4P3/8/8/4K3 w - - 0 1", "e4d5", 0),
            ("4k3/8/2p5/3n4/4P3/8/8/4K3 w - - 0 1", "e4d5", 220),
            // The second rook supports the first, the queen supports the enemy rook.
            ("3qk3/3r4/8/3p4/8/8/3R4/3RK3 w - - 0 1", "d2d5", 100 - 500),
            ("3rk3/8/8/3p4/8/8/3R4/3RK3 w - - 0 1", "d2d5", 100),
            // The king recaptures only what is undefended.
            ("8/8/4k3/3p4/8/8/8/3RK3 w - - 0 1", "d1d5", 100 - 500),
            ("8/8/4k3/3p4/8/8/3R4/3RK3 w - - 0 1", "d2d5", 100),
            // A promotion on a free and on a guarded square.
            ("8/4P1k1/8/8/8/8/8/4K3 w - - 0 1", "e7e8q", 800),
            ("3r4/4P1k1/8/8/8/8/8/4K3 w - - 0 1", "e7e8q", -100),
            ("3r4/4P1k1/8/8/8/8/8/4K3 w - - 0 1", "e7d8q", 1300),
            // A quiet move to a square that a pawn attacks.
            ("4k3/8/2p5/8/8/8/8/3QK3 w - - 0 1", "d1d5", -900),
        ];
        let tables = SquareTables::new(&Weights::default());
        for (text, uci, value) in table {
            let position = fen::parse_fen(text).expect("a position");
            let m = notation::parse_uci(&position, uci).expect("a legal move");
            let node = Node::new(&position, &tables);
            assert!(gains(&node, m, value), "{text} {uci} should gain {value}");
            assert!(!gains(&node, m, value + 1), "{text} {uci} should gain only {value}");
        }
    }
}
