//! The phase of a game: opening, middlegame or endgame.

use selfmate_chess::{Chess, Position, Role};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Up to move 10, as long as it is no endgame.
    Opening,
    Middlegame,
    /// At most a third of the pieces are left, such as two rooks or a queen on each side.
    Endgame,
}

/// The weight of each role in the material that decides the phase; `Role` starts at 1. All pieces of
/// the start position together have 24.
pub(crate) const ROLE_WEIGHTS: [i32; 7] = [0, 0, 1, 1, 2, 4, 0];
/// The largest sum of weights in an endgame.
const ENDGAME: i32 = 8;
/// The last move of the opening.
const OPENING_MOVES: u32 = 10;

impl Phase {
    pub const ALL: [Phase; 3] = [Phase::Opening, Phase::Middlegame, Phase::Endgame];

    pub fn of(position: &Chess) -> Phase {
        let board = position.board();
        let material: i32 = [Role::Knight, Role::Bishop, Role::Rook, Role::Queen]
            .into_iter()
            .map(|role| board.by_role(role).count() as i32 * ROLE_WEIGHTS[role as usize])
            .sum();
        if material <= ENDGAME {
            Phase::Endgame
        } else if position.fullmoves().get() <= OPENING_MOVES {
            Phase::Opening
        } else {
            Phase::Middlegame
        }
    }
}

#[cfg(test)]
mod tests {
    use selfmate_chess::fen::parse_fen;

    use super::*;

    #[test]
    fn moves_end_the_opening_and_exchanges_begin_the_endgame() {
        for (fen, expected) in [
            ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", Phase::Opening),
            ("r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 10", Phase::Opening),
            (
                "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 11",
                Phase::Middlegame,
            ),
            ("rr4k1/5ppp/8/8/8/8/5PPP/RR4K1 w - - 0 30", Phase::Endgame),
            ("rr1n2k1/5ppp/8/8/8/8/5PPP/RR4K1 w - - 0 30", Phase::Middlegame),
            ("4k3/4p3/8/8/8/8/4P3/4K3 w - - 0 1", Phase::Endgame),
        ] {
            assert_eq!(Phase::of(&parse_fen(fen).unwrap()), expected, "{fen}");
        }
    }
}
