//! Captures and queen promotions only, for the quiescence search.
//!
//! The full generator would make every legal move and discard most of them. Most nodes of a search
//! are quiescence nodes, so a separate generator pays off.

use selfmate_chess::{Bitboard, Move, MoveList, Position, Role, Square};
use shakmaty::attacks;

use super::node::Node;
use super::pawns::forward;

/// The captures and queen promotions of the side to move, which must not be in check.
pub(super) fn tactical_moves(node: &Node) -> MoveList {
    let position = &node.position;
    let board = position.board();
    let us = position.turn();
    let them = position.them();
    let occupied = board.occupied();
    let king = board.king_of(us).expect("both sides have a king");
    let pinned = pinned_pieces(node, king);
    let mut moves = MoveList::new();
    let mut push = |role: Role, from: Square, to: Square, promotion: Option<Role>| {
        if !pinned.contains(from) || attacks::aligned(from, to, king) {
            moves.push(Move::Normal { role, from, capture: board.role_at(to), to, promotion });
        }
    };
    let (last, before_last) = if us.is_white() {
        (Bitboard(0xFF << 56), Bitboard(0xFF << 48))
    } else {
        (Bitboard(0xFF), Bitboard(0xFF << 8))
    };
    let ours = position.us();
    for from in board.pawns() & ours & !before_last {
        for to in attacks::pawn_attacks(us, from) & them {
            push(Role::Pawn, from, to, None);
        }
    }
    for from in board.pawns() & ours & before_last {
        let step = Bitboard(forward(Bitboard::from(from).0, us)) & !occupied;
        for to in (attacks::pawn_attacks(us, from) & them | step) & last {
            push(Role::Pawn, from, to, Some(Role::Queen));
        }
    }
    for from in board.knights() & ours {
        for to in attacks::knight_attacks(from) & them {
            push(Role::Knight, from, to, None);
        }
    }
    for from in board.bishops() & ours {
        for to in attacks::bishop_attacks(from, occupied) & them {
            push(Role::Bishop, from, to, None);
        }
    }
    for from in board.rooks() & ours {
        for to in attacks::rook_attacks(from, occupied) & them {
            push(Role::Rook, from, to, None);
        }
    }
    for from in board.queens() & ours {
        for to in attacks::queen_attacks(from, occupied) & them {
            push(Role::Queen, from, to, None);
        }
    }
    for to in attacks::king_attacks(king) & them {
        if board.attacks_to(to, !us, occupied ^ Bitboard::from(king)).is_empty() {
            push(Role::King, king, to, None);
        }
    }
    if position.maybe_ep_square().is_some() {
        moves.extend(position.en_passant_moves());
    }
    moves
}

/// Our pieces that are pinned to our king by an enemy slider.
fn pinned_pieces(node: &Node, king: Square) -> Bitboard {
    let board = node.position.board();
    let them = node.position.them();
    let snipers = (attacks::rook_attacks(king, Bitboard::EMPTY) & board.rooks_and_queens()
        | attacks::bishop_attacks(king, Bitboard::EMPTY) & board.bishops_and_queens())
        & them;
    let mut pinned = Bitboard::EMPTY;
    for sniper in snipers {
        let between = attacks::between(king, sniper) & board.occupied();
        if !between.more_than_one() {
            pinned |= between & node.position.us();
        }
    }
    pinned
}

#[cfg(test)]
mod tests {
    use selfmate_chess::{Game, Seed};

    use super::super::node::SquareTables;
    use super::super::order::{is_tactical, pack};
    use super::super::weights::Weights;
    use super::*;

    #[test]
    fn tactical_moves_match_the_full_generator() {
        let tables = SquareTables::new(&Weights::default());
        for number in 0..200 {
            let mut rng = Seed::new(3).index(number).rng();
            let mut game = Game::new();
            while game.outcome().is_none() && game.ply() < 200 {
                let legal = game.legal_moves();
                let node = Node::new(game.position(), &tables);
                if !node.in_check() {
                    let sorted = |moves: &[Move]| {
                        let tactical = moves.iter().filter(|m| {
                            is_tactical(**m) && matches!(m.promotion(), None | Some(Role::Queen))
                        });
                        let mut packed: Vec<u16> = tactical.map(|m| pack(*m)).collect();
                        packed.sort_unstable();
                        packed
                    };
                    let ours = tactical_moves(&node);
                    assert_eq!(ours.len(), sorted(&ours).len());
                    let fen = selfmate_chess::fen::to_fen(game.position());
                    assert_eq!(sorted(&ours), sorted(&legal), "{fen}");
                }
                // Prefer captures, so that positions with few pieces and promotions come up too.
                let captures: Vec<Move> =
                    legal.iter().copied().filter(|m| m.is_zeroing()).collect();
                let pool =
                    if captures.is_empty() || rng.below(3) > 0 { &legal[..] } else { &captures };
                game.play_unchecked(pool[rng.below(pool.len())]);
            }
        }
    }
}
